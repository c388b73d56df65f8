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
    """What stands for numbers that have no digits."""

    low: str
    high: str
    none: str


IN_WORDS = Signs("minus infinity", "infinity", "unknown")
ON_PAGES = Signs("−∞", "∞", "–")
ON_TERMINALS = Signs("-inf", "inf", "-")


def count(n: int) -> str:
    """Return a count with thousands separators."""
    return f"{n:,}"


def counted(n: int, what: str) -> str:
    """Return a count with what is counted."""
    return f"{count(n)} {what}{'s' * (n != 1)}"


def number(
    x: float, quantum: float | None = None, rounding: str = ROUND_HALF_EVEN, *, signs: Signs = IN_WORDS
) -> str:
    """Return a reading in digits a person can use: four that count, or as many as the quantum asks for."""
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
    """Return a share in percent, with so many digits that count."""
    return f"{_hundredths(share, rounding, digits)}%"


def _hundredths(share: float, rounding: str, digits: int) -> str:
    hundred = 100 * Decimal(f"{share:.{_EXACT}g}")  # 1 - 0.07 is 93%, not a bit below it
    if not hundred:
        return "0"
    text = f"{hundred.quantize(_step(hundred, digits), rounding):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantile_name(quantile: float) -> str:
    """Return what people call a quantile."""
    if quantile == 0.5:
        return "median"
    text = _hundredths(quantile, ROUND_HALF_EVEN, 3)
    teen = text[-2:] in ("11", "12", "13")
    ending = "th" if teen or "." in text else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    return f"{text}{ending} percentile"


def target_name(problem: Problem) -> str:
    """Return what people call what arms are compared by."""
    return _TARGETS[problem.target](problem)


def _share_name(problem: Problem) -> str:
    return f"share of readings at {'least' if problem.at_most is None else 'most'} {number(_limit(problem))}"


_TARGETS: Mapping[str, Callable[[Problem], str]] = {
    "quantile": lambda problem: quantile_name(problem.quantile),
    "share": _share_name,
    "wins": lambda _: "median",  # what is shown of an arm by itself
}


def column_name(problem: Problem) -> str:
    """Return the same in a word or two, for the head of a column."""
    if problem.target != "share":
        return target_name(problem)
    return f"share {'>=' if problem.at_most is None else '<='} {number(_limit(problem))}"


def _limit(problem: Problem) -> float:
    return (problem.at_least if problem.at_most is None else problem.at_most) or 0.0


def value(x: float, problem: Problem, signs: Signs = IN_WORDS) -> str:
    """Return an observed value of what arms are compared by: a share in percent."""
    return percent(x) if problem.target == "share" and not math.isnan(x) else number(x, signs=signs)


def value_ends(low: float, high: float, problem: Problem, signs: Signs = IN_WORDS) -> tuple[str, str]:
    """Return both ends of an interval of it, rounded outward."""
    if problem.target != "share" or math.isinf(high - low):
        return interval_ends(low, high, signs)
    first, last = interval_ends(100 * low, 100 * high)
    return f"{first}%", f"{last}%"


def name_of(arm: str) -> str:
    """Return an arm's name with everything that does not print replaced, so that it stays on its line."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in arm)


def interval_ends(low: float, high: float, signs: Signs = IN_WORDS) -> tuple[str, str]:
    """Return both ends in words, rounded outward to the digits the width deserves."""
    width = high - low
    quantum = width / 10 if 0 < width < math.inf else None  # two digits of the width
    return number(low, quantum, ROUND_FLOOR, signs=signs), number(high, quantum, ROUND_CEILING, signs=signs)


def span(between: Interval) -> str:
    """Return the plausible range in words."""
    if math.isinf(between.high):
        return f"{number(between.low)} or more"
    return (
        f"{number(between.low)} to {number(between.high)}"
        if math.isfinite(between.low)
        else (f"{number(between.high)} or less")
    )


class Voice(NamedTuple):
    """What a reading is called, a better and the best arm, where people have words for it, and an arm."""

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
    """Return several arms in a sentence; beyond five the rest is counted."""
    shown = [name_of(arm) for arm in arms[:LISTED]]
    if (more := len(arms) - LISTED) > 0:
        shown.append(f"{count(more)} other{'s' * (more > 1)}")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def bad(contamination: Contamination, what: str = "reading") -> str:
    """Return the promise about bad readings: how many, and whose."""
    if contamination.eps == 0:
        return f"as long as no {what} is bad"
    share = percent(contamination.eps, ROUND_FLOOR)  # a promise of no more than was allowed for
    if contamination.adversary is Adversary.MALICIOUS:
        return f"as long as at most {share} of the {what}s are bad, even if an adversary picks which"
    sees = ", even if whoever makes them sees the true ones" * (contamination.adversary is Adversary.PRESCIENT)
    return f"as long as each {what} is bad with a chance of at most {share}, whatever its true value{sees}"


def amount(tolerance: Tolerance) -> str:
    """Return a tolerance in words, as it was given: rounded up, "worse by more than that" would not be shown."""
    return _given(tolerance)


def _given(tolerance: Tolerance) -> str:
    if tolerance.relative:
        return percent(tolerance.amount, digits=_EXACT)
    return number(tolerance.amount, tolerance.amount * 10.0 ** (1 - _EXACT))


def lead(one: Lead, goal: str, voice: Voice = PLAIN, *, points: bool = False, plain: bool = False) -> str:
    """Return how far the best arm is from another one, rounded to the safe side; of two shares in points.

    With `plain` the arms themselves are compared, and not a median of each.
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
    """Return how many times, in three digits, or as many as tell it from 1."""
    return f"{number(x, factor_step(x), rounding)}x"


def factor_step(x: float) -> float:
    """Return the last digit of a factor that is worth showing."""
    if abs(x - 1) <= _SHOWN - 1:
        return 0.01
    return x / 100 if x >= 10 else min(0.01, 10.0 ** math.floor(math.log10(abs(x - 1))))


def least_factor(x: float) -> str:
    """Return a certain factor in brackets, in as many digits as tell it from 1; nothing where it is no more."""
    return f" (at least {factor(x, ROUND_FLOOR)})" if x > _SHOWN else ""


def in_points(share: float, rounding: str = ROUND_HALF_EVEN, digits: int = 2) -> str:
    """Return a difference of two shares in points of a hundred."""
    text = _hundredths(share, rounding, digits)
    return f"{text} point{'' if text == '1' else 's'}"


def distance(amount: float, problem: Problem) -> str:
    """Return how far arms may be apart, in the unit that a problem's tolerance has."""
    if problem.target == "share":
        digits = _EXACT if amount == problem.tolerance.amount else 2
        return in_points(amount, ROUND_CEILING, digits)
    if amount == problem.tolerance.amount:
        return _given(problem.tolerance)
    return _amount(amount, relative=problem.tolerance.relative)


def _amount(amount: float, *, relative: bool) -> str:
    return percent(amount, ROUND_CEILING) if relative else number(amount, amount / 10, ROUND_CEILING)
