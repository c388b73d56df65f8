"""How numbers, names and amounts are written, and the parts of sentences that all others are made of.

Nothing is computed. Numbers that bound something are rounded to the safe side. `summary` says what was found, and
`promises` what it rests on and what contradicts that.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from truearm.claims.result import Lead
from truearm.problem import Adversary, Contamination, Interval, Problem, Tolerance

LISTED = 5  # arms named one by one in a sentence; more are counted
_EXACT = 12  # digits of what somebody gave: what is said of it is said of nothing else
_SHOWN = 1 + 1e-6  # factors nearer to 1 than this are 1 to a person


class Signs(NamedTuple):
    """What stands for numbers that have no digits.

    Examples
    --------
    >>> Signs("-inf", "inf", "-").high
    'inf'
    """

    low: str
    high: str
    none: str


IN_WORDS = Signs("minus infinity", "infinity", "unknown")
ON_PAGES = Signs("−∞", "∞", "–")
ON_TERMINALS = Signs("-inf", "inf", "-")


def count(n: int) -> str:
    """Return a count with thousands separators.

    Examples
    --------
    >>> count(1234567)
    '1,234,567'
    """
    return f"{n:,}"


def counted(n: int, what: str) -> str:
    """Return a count with what is counted.

    Examples
    --------
    >>> counted(1, "event"), counted(2000, "event")
    ('1 event', '2,000 events')
    """
    return f"{count(n)} {what}{'s' * (n != 1)}"


def number(
    x: float, quantum: float | None = None, rounding: str = ROUND_HALF_EVEN, *, signs: Signs = IN_WORDS
) -> str:
    """Return a reading in digits a person can use: four that count, or as many as the quantum asks for.

    Examples
    --------
    >>> number(12.3456), number(1234567.8), number(0.00012345), number(-math.inf)
    ('12.35', '1,234,568', '0.0001234', 'minus infinity')
    >>> number(11.847, 0.1, ROUND_FLOOR), number(2e-9), number(6.02e23)
    ('11.8', '2e-09', '6.02e+23')
    >>> number(math.nan, signs=ON_TERMINALS), number(math.inf, signs=ON_PAGES)
    ('-', '∞')
    """
    if math.isnan(x):
        return signs.none
    if math.isinf(x):
        return signs.high if x > 0 else signs.low
    exact = Decimal(repr(float(x) + 0.0))  # no minus zero
    if x and not 1e-6 <= abs(x) < 1e12:
        return f"{float(exact.quantize(_step(exact, 4), rounding)):.4g}"
    step = _step(exact, 4) if quantum is None else _step(Decimal(repr(float(quantum))), 1)
    text = f"{exact.quantize(min(step, Decimal(1)), rounding):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _step(x: Decimal, digits: int) -> Decimal:
    """Return the unit of the last of so many digits of x that count."""
    return Decimal(1).scaleb(x.adjusted() - digits + 1)


def percent(share: float, rounding: str = ROUND_HALF_EVEN, digits: int = 3) -> str:
    """Return a share in percent, with so many digits that count.

    Examples
    --------
    >>> percent(0.05), percent(0.0619876, ROUND_FLOOR), percent(1e-5), percent(0.0)
    ('5%', '6.19%', '0.001%', '0%')
    """
    return f"{_hundredths(share, rounding, digits)}%"


def _hundredths(share: float, rounding: str, digits: int) -> str:
    hundred = 100 * Decimal(f"{share:.{_EXACT}g}")  # 1 - 0.07 is 93%, not a bit below it
    if not hundred:
        return "0"
    text = f"{hundred.quantize(_step(hundred, digits), rounding):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantile_name(quantile: float) -> str:
    """Return what people call a quantile.

    Examples
    --------
    >>> quantile_name(0.5), quantile_name(0.95), quantile_name(0.01), quantile_name(0.999)
    ('median', '95th percentile', '1st percentile', '99.9th percentile')
    """
    if quantile == 0.5:
        return "median"
    text = _hundredths(quantile, ROUND_HALF_EVEN, 3)
    teen = text[-2:] in ("11", "12", "13")
    ending = "th" if teen or "." in text else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    return f"{text}{ending} percentile"


def target_name(problem: Problem) -> str:
    """Return what people call what arms are compared by.

    Examples
    --------
    >>> target_name(Problem(arms=("A",), quantile=0.95)), target_name(Problem(arms=("A",), at_most=200))
    ('95th percentile', 'share of readings at most 200')
    """
    return _TARGETS[problem.target](problem)


def _share_name(problem: Problem) -> str:
    return f"share of readings at {'least' if problem.at_most is None else 'most'} {number(_limit(problem))}"


_TARGETS: Mapping[str, Callable[[Problem], str]] = {
    "quantile": lambda problem: quantile_name(problem.quantile),
    "share": _share_name,
    "wins": lambda _: "median",  # what is shown of an arm by itself
}


def column_name(problem: Problem) -> str:
    """Return the same in a word or two, for the head of a column.

    Examples
    --------
    >>> column_name(Problem(arms=("A",))), column_name(Problem(arms=("A",), at_least=4))
    ('median', 'share >= 4')
    """
    if problem.target != "share":
        return target_name(problem)
    return f"share {'>=' if problem.at_most is None else '<='} {number(_limit(problem))}"


def _limit(problem: Problem) -> float:
    return (problem.at_least if problem.at_most is None else problem.at_most) or 0.0


def value(x: float, problem: Problem, signs: Signs = IN_WORDS) -> str:
    """Return an observed value of what arms are compared by: a share in percent.

    Examples
    --------
    >>> value(0.625, Problem(arms=("A",))), value(0.625, Problem(arms=("A",), at_least=4))
    ('0.625', '62.5%')
    """
    return percent(x) if problem.target == "share" and not math.isnan(x) else number(x, signs=signs)


def value_ends(low: float, high: float, problem: Problem, signs: Signs = IN_WORDS) -> tuple[str, str]:
    """Return both ends of an interval of it, rounded outward.

    Examples
    --------
    >>> value_ends(0.6014, 0.6582, Problem(arms=("A",), at_least=4))
    ('60.1%', '65.9%')
    """
    if problem.target != "share" or math.isinf(high - low):
        return interval_ends(low, high, signs)
    first, last = interval_ends(100 * low, 100 * high)
    return f"{first}%", f"{last}%"


def name_of(arm: str) -> str:
    """Return an arm's name with everything that does not print replaced, so that it stays on its line.

    Examples
    --------
    >>> name_of("two" + chr(10) + "lines") == "two" + chr(0xFFFD) + "lines"
    True
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in arm)


def interval_ends(low: float, high: float, signs: Signs = IN_WORDS) -> tuple[str, str]:
    """Return both ends in words, rounded outward to the digits the width deserves.

    Examples
    --------
    >>> interval_ends(11.8264, 12.8731)
    ('11.8', '12.9')
    >>> interval_ends(870.0, 1129.0), interval_ends(-math.inf, 2.0)
    (('870', '1,129'), ('minus infinity', '2'))
    """
    width = high - low
    quantum = width / 10 if 0 < width < math.inf else None  # two digits of the width
    return number(low, quantum, ROUND_FLOOR, signs=signs), number(high, quantum, ROUND_CEILING, signs=signs)


def span(between: Interval) -> str:
    """Return the plausible range in words.

    Examples
    --------
    >>> span(Interval(0.0, 1000.0)), span(Interval(0.0, math.inf)), span(Interval(-math.inf, 7.5))
    ('0 to 1,000', '0 or more', '7.5 or less')
    """
    if math.isinf(between.high):
        return f"{number(between.low)} or more"
    return (
        f"{number(between.low)} to {number(between.high)}"
        if math.isfinite(between.low)
        else (f"{number(between.high)} or less")
    )


class Voice(NamedTuple):
    """What a reading is called, a better and the best arm, where people have words for it, and an arm.

    Examples
    --------
    >>> Voice("run", "run", "fastest", "faster").best, Voice(unit="ms").measured("12.5")
    ('fastest', '12.5 ms')
    """

    reading: str = "reading"
    pull: str = "pull"
    best: str = ""
    better: str = ""
    arm: str = "arm"
    unit: str = ""
    """The sign that stands behind readings; shares and percentages bear their own."""
    undecided: str = "Not decided yet"
    """Of readings that did not decide and may go on."""

    def measured(self, text: str) -> str:
        """Return a number that is a reading, or a difference of two, with its unit."""
        return text if not self.unit or text.endswith(("%", "point", "points")) else f"{text} {self.unit}"


PLAIN = Voice()
TIMED = Voice("run", "run", "fastest", "faster")


def names(arms: Sequence[str], word: str = "and") -> str:
    """Return several arms in a sentence; beyond five the rest is counted.

    Examples
    --------
    >>> names(["A"]), names(["A", "B"], "or"), names(list("ABCDEFG"))
    ('A', 'A or B', 'A, B, C, D, E and 2 others')
    """
    shown = [name_of(arm) for arm in arms[:LISTED]]
    if (more := len(arms) - LISTED) > 0:
        shown.append(f"{count(more)} other{'s' * (more > 1)}")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def bad(contamination: Contamination, what: str = "reading") -> str:
    """Return the promise about bad readings: how many, and whose.

    Examples
    --------
    >>> bad(Contamination(0.05), "run")
    'as long as each run is bad with a chance of at most 5%, whatever its true value'
    """
    if contamination.eps == 0:
        return f"as long as no {what} is bad"
    share = percent(contamination.eps, ROUND_FLOOR)  # a promise of no more than was allowed for
    if contamination.adversary is Adversary.MALICIOUS:
        return f"as long as at most {share} of the {what}s are bad, even if an adversary picks which"
    sees = ", even if whoever makes them sees the true ones" * (contamination.adversary is Adversary.PRESCIENT)
    return f"as long as each {what} is bad with a chance of at most {share}, whatever its true value{sees}"


def amount(tolerance: Tolerance) -> str:
    """Return a tolerance in words, as it was given: rounded up, "worse by more than that" would not be shown.

    Examples
    --------
    >>> amount(Tolerance.of("3%")), amount(Tolerance(1.256))
    ('3%', '1.256')
    """
    return _given(tolerance)


def _given(tolerance: Tolerance) -> str:
    if tolerance.relative:
        return percent(tolerance.amount, digits=_EXACT)
    return number(tolerance.amount, tolerance.amount * 10.0 ** (1 - _EXACT))


def lead(one: Lead, goal: str, voice: Voice = PLAIN, *, points: bool = False, plain: bool = False) -> str:
    """Return how far the best arm is from another one, rounded to the safe side; of two shares in points.

    With `plain` the arms themselves are compared, and not a median of each.

    Examples
    --------
    >>> lead(Lead("B", "ratio", 1.414, 1.0666), "max"), lead(Lead("B", "difference", 5.12, None), "min")
    ("1.41x B's (at least 1.06x)", "5.12 below B's")
    >>> lead(Lead("B", "ratio", 1.414, 1.0666), "min")
    "B's is 1.41x as high (at least 1.06x)"
    >>> lead(Lead("B", "ratio", 1.414, 1.0666), "min", Voice("run", "run", "fastest", "faster"))
    '1.41x faster than B (at least 1.06x)'
    >>> lead(Lead("B", "difference", 0.1234, 0.0567), "max", points=True)
    "12.3 points above B's (at least 5.6)"
    """
    rival = name_of(one.than)
    whose = rival if plain else f"{rival}'s"
    if points:
        least = 100 * (one.at_least or 0.0)
        sure = f" (at least {number(least, least / 10, ROUND_FLOOR)})" if least else ""
        return f"{in_points(one.observed, digits=3)} above {rival}'s{sure}"
    if one.scale == "difference":
        sure = (
            "" if one.at_least is None else f" (at least {number(one.at_least, one.at_least / 10, ROUND_FLOOR)})"
        )
        side = "above" if goal == "max" else "below"
        return f"{voice.measured(number(one.observed, abs(one.observed) / 100))} {side} {whose}{sure}"
    sure = "" if one.at_least is None else least_factor(one.at_least)
    times = factor(one.observed)
    if voice.better:
        return f"{times} {voice.better} than {rival}{sure}"
    return f"{times} {whose}{sure}" if goal == "max" else f"{whose} is {times} as high{sure}"


def factor(x: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return how many times, in three digits, or as many as tell it from 1.

    Examples
    --------
    >>> factor(1.4142), factor(1.06999, ROUND_FLOOR), factor(250.0), factor(1.00042)
    ('1.41x', '1.06x', '250x', '1.0004x')
    """
    return f"{number(x, factor_step(x), rounding)}x"


def factor_step(x: float) -> float:
    """Return the last digit of a factor that is worth showing.

    Examples
    --------
    >>> factor_step(1.41), factor_step(250.0), factor_step(1.00042)
    (0.01, 2.5, 0.0001)
    """
    if abs(x - 1) <= _SHOWN - 1:
        return 0.01
    return x / 100 if x >= 10 else min(0.01, 10.0 ** math.floor(math.log10(abs(x - 1))))


def least_factor(x: float) -> str:
    """Return a certain factor in brackets, in as many digits as tell it from 1; nothing where it is no more.

    Examples
    --------
    >>> least_factor(1.0666), least_factor(1.00042), least_factor(1.0)
    (' (at least 1.06x)', ' (at least 1.0004x)', '')
    """
    return f" (at least {factor(x, ROUND_FLOOR)})" if x > _SHOWN else ""


def in_points(share: float, rounding: str = ROUND_HALF_EVEN, digits: int = 2) -> str:
    """Return a difference of two shares in points of a hundred.

    Examples
    --------
    >>> in_points(0.1), in_points(0.01)
    ('10 points', '1 point')
    """
    text = _hundredths(share, rounding, digits)
    return f"{text} point{'' if text == '1' else 's'}"


def distance(amount: float, problem: Problem) -> str:
    """Return how far arms may be apart, in the unit that a problem's tolerance has.

    Examples
    --------
    >>> distance(0.02, Problem(arms=("A",), tolerance="1%")), distance(0.02, Problem(arms=("A",), at_least=1))
    ('2%', '2 points')
    """
    if problem.target == "share":
        digits = _EXACT if amount == problem.tolerance.amount else 2
        return in_points(amount, ROUND_CEILING, digits)
    if amount == problem.tolerance.amount:
        return _given(problem.tolerance)
    return _amount(amount, relative=problem.tolerance.relative)


def _amount(amount: float, *, relative: bool) -> str:
    return percent(amount, ROUND_CEILING) if relative else number(amount, amount / 10, ROUND_CEILING)
