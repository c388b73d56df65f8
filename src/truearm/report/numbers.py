"""Numbers, names and units as text. Numbers that bound something are rounded to the safe side."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from truearm.claims.result import Arm
from truearm.errors import printable
from truearm.problem import Interval, Problem, Tolerance

MAX_LISTED = 5  # arms named one by one in a sentence; more are counted
_EXACT_DIGITS = 12  # of an argument: a tolerance is shown as it was passed
_SHOWN_ABOVE_1 = 1e-6  # factors nearer to 1 than this are shown as 1


class Unit(NamedTuple):
    """A unit to show readings in: its sign, its name, and its size in the unit of the readings."""

    sign: str = ""
    name: str = ""
    size: float = 1.0

    def attach(self, text: str) -> str:
        """Return a number with its unit; percentages and points have their own."""
        return text if not self.sign or text.endswith(("%", "point", "points")) else f"{text} {self.sign}"

    def title(self, name: str) -> str:
        """Return the title of a column of readings."""
        return f"{name} [{self.sign}]" if self.sign else name


PLAIN_UNIT = Unit()
TIMES = (
    Unit("ns", "nanoseconds", 1e-9),
    Unit("us", "microseconds", 1e-6),
    Unit("ms", "milliseconds", 1e-3),
    Unit("s", "seconds", 1.0),
)
SIZES = (
    Unit("B", "bytes", 1.0),
    Unit("KiB", "kibibytes", 1024.0),
    Unit("MiB", "mebibytes", 1024.0**2),
    Unit("GiB", "gibibytes", 1024.0**3),
)
UNITS = {"wall": TIMES, "cpu": TIMES, "memory": SIZES, "stdout": (PLAIN_UNIT,)}


def unit_for(metric: str, arms: Sequence[Arm], name: str | None = None, *, target: str = "quantile") -> Unit:
    """Return the largest unit of a metric that the largest observed value fills, or the one of that name."""
    units = UNITS.get(metric, (PLAIN_UNIT,)) if target != "share" else (PLAIN_UNIT,)  # a share has no unit
    for unit in units:
        if name is not None and name.removesuffix("s") == unit.name.removesuffix("s"):
            return unit
    largest = max((abs(arm.observed) for arm in arms if math.isfinite(arm.observed)), default=math.nan)
    if math.isnan(largest):
        return units[len(units) // 2]
    return next((unit for unit in reversed(units) if largest >= unit.size), units[0])


def count(n: int) -> str:
    """Return a count with thousands separators."""
    return f"{n:,}"


def plural(n: int, noun: str) -> str:
    """Return a count with a noun."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def number(x: float, quantum: float | None = None, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number with four significant digits, or as many as the quantum needs; "-" for NaN."""
    if not math.isfinite(x):
        return "-" if math.isnan(x) else str(x)
    exact = Decimal(repr(float(x) + 0.0))  # no minus zero
    if x and not 1e-6 <= abs(x) < 1e12:
        return f"{float(exact.quantize(_last_digit(exact, 4), rounding)):.4g}"
    step = _last_digit(exact, 4) if quantum is None else _last_digit(Decimal(repr(float(quantum))), 1)
    return _trim(f"{exact.quantize(min(step, Decimal(1)), rounding):,f}")


def _last_digit(x: Decimal, digits: int) -> Decimal:
    return Decimal(1).scaleb(x.adjusted() - digits + 1)


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float, rounding: str = ROUND_HALF_EVEN, digits: int = 3) -> str:
    """Return a share in percent, with this many significant digits."""
    return f"{_hundredths(share, rounding, digits)}%"


def _hundredths(share: float, rounding: str, digits: int) -> str:
    hundred = 100 * Decimal(f"{share:.{_EXACT_DIGITS}g}")  # 1 - 0.07 is 93%, not a bit below it
    return _trim(f"{hundred.quantize(_last_digit(hundred, digits), rounding):f}") if hundred else "0"


def points(share: float, rounding: str = ROUND_HALF_EVEN, digits: int = 2) -> str:
    """Return a difference of two shares in percentage points."""
    text = _hundredths(share, rounding, digits)
    return f"{text} point{'' if text == '1' else 's'}"


def breakdown_percent(point: float) -> str:
    """Return a breakdown point, rounded down; at one half nothing more is claimed."""
    return percent(min(point, 0.5), ROUND_FLOOR, 2)


def quantile_name(quantile: float) -> str:
    """Return the name of a quantile: the median, or a percentile."""
    if quantile == 0.5:
        return "median"
    text = _hundredths(quantile, ROUND_HALF_EVEN, 3)
    teen = text[-2:] in ("11", "12", "13")
    ending = "th" if teen or "." in text else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    return f"{text}{ending} percentile"


def target_name(problem: Problem) -> str:
    """Return the name of what arms are compared by; in rounds, of what is shown for each arm."""
    if problem.target == "share":
        return f"share of readings at {'least' if problem.at_most is None else 'most'} {number(_limit(problem))}"
    if problem.target == "mean":
        return "mean score"
    return "median" if problem.target == "wins" else quantile_name(problem.quantile)


def column_name(problem: Problem) -> str:
    """Return the same as the title of a column."""
    if problem.target != "share":
        return target_name(problem)
    return f"share {'>=' if problem.at_most is None else '<='} {number(_limit(problem))}"


def _limit(problem: Problem) -> float:
    return (problem.at_least if problem.at_most is None else problem.at_most) or 0.0


def value(x: float, problem: Problem, unit: Unit = PLAIN_UNIT) -> str:
    """Return an observed value of what arms are compared by, without its unit; a share in percent."""
    if problem.target == "share" and not math.isnan(x):
        return percent(x)
    return number(x / unit.size)


def ends(low: float, high: float, problem: Problem | None = None, unit: Unit = PLAIN_UNIT) -> tuple[str, str]:
    """Return both ends of an interval, rounded outward: of what a problem compares, or of readings."""
    if problem is not None and problem.target == "share" and not math.isinf(high - low):
        first, last = ends(100 * low, 100 * high)
        return f"{first}%", f"{last}%"
    low, high = low / unit.size, high / unit.size
    width = high - low
    quantum = width / 10 if 0 < width < math.inf else None  # two digits of the width
    return number(low, quantum, ROUND_FLOOR), number(high, quantum, ROUND_CEILING)


def interval(low: float, high: float, problem: Problem | None = None, unit: Unit = PLAIN_UNIT) -> str:
    """Return an interval for a table."""
    if math.isinf(low) and math.isinf(high):
        return "-"
    return "contradictory" if low > high else " to ".join(ends(low, high, problem, unit))


def span(between: Interval, unit: Unit = PLAIN_UNIT) -> str:
    """Return the plausible range."""
    low, high = (unit.attach(number(x / unit.size)) for x in between)
    if math.isinf(between.high):
        return f"{low} or more"
    return f"{low} to {high}" if math.isfinite(between.low) else f"{high} or less"


def name_of(arm: str) -> str:
    """Return an arm's name with control characters escaped, so that it stays on its line."""
    return printable(arm)


def join(parts: Sequence[str], word: str = "and") -> str:
    """Return several phrases in a sentence."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}" if parts else ""


def names(arms: Sequence[str], word: str = "and") -> str:
    """Return several arms in a sentence; beyond five the rest is counted."""
    shown = [name_of(arm) for arm in arms[:MAX_LISTED]]
    more = len(arms) - MAX_LISTED
    return join([*shown, plural(more, "other")] if more > 0 else shown, word)


def is_or_are(subjects: Sequence[object]) -> str:
    """Return the verb for one subject or several."""
    return "is" if len(subjects) == 1 else "are"


def seconds(elapsed: float) -> str:
    """Return a duration."""
    return f"{number(float(f'{elapsed:.2g}'))} s" if elapsed < 600 else f"{count(round(elapsed / 60))} min"


def evidence(log_value: float) -> str:
    """Return evidence as a number."""
    return number(float(f"{math.exp(min(log_value, 700.0)):.3g}"))


def amount(tolerance: Tolerance, unit: Unit = PLAIN_UNIT) -> str:
    """Return a tolerance as it was passed: rounded up, "worse by more than that" would be wrong."""
    if tolerance.relative:
        return percent(tolerance.amount, digits=_EXACT_DIGITS)
    size = float(f"{tolerance.amount / unit.size:.{_EXACT_DIGITS}g}")
    return unit.attach(number(size, size * 10.0 ** (1 - _EXACT_DIGITS)))


def distance(x: float, problem: Problem, unit: Unit = PLAIN_UNIT) -> str:
    """Return how far arms may be apart, rounded up, in the unit that the problem's tolerance has."""
    given = x == problem.tolerance.amount
    if problem.target == "share":
        return points(x, ROUND_CEILING, _EXACT_DIGITS if given else 2)
    if given:
        return amount(problem.tolerance, unit)
    if problem.tolerance.relative:
        return percent(x, ROUND_CEILING)
    return unit.attach(number(x / unit.size, x / unit.size / 10, ROUND_CEILING))


def factor(x: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a factor with three digits, or as many as distinguish it from 1."""
    return number(x, factor_step(x) if math.isfinite(x) else None, rounding)


def factor_step(x: float) -> float:
    """Return the last digit of a factor that is worth showing."""
    if abs(x - 1) <= _SHOWN_ABOVE_1:
        return 0.01
    return x / 100 if x >= 10 else min(0.01, 10.0 ** math.floor(math.log10(abs(x - 1))))


def least_factor(x: float | None, observed: float = 1.0) -> str:
    """Return a certified factor in brackets; empty if it is hardly above 1 for the observed one."""
    trivial = max(_SHOWN_ABOVE_1, (observed - 1) / 100)
    return f" (at least {factor(x, ROUND_FLOOR)}x)" if x is not None and x > 1 + trivial else ""
