"""Intervals as lines of letters, for the side of a table on a terminal. Nothing is decided here."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import NamedTuple

from truearm.claims.ratios import Ratio
from truearm.claims.result import Result
from truearm.report.text import is_bounded
from truearm.report.wording import factor_step, number

_WIDE = 10.0  # times: a span of more is drawn by its logarithm
_LETTERS = ("─", "├", "┤", "●", "│")
_PLAIN = ("-", "|", "|", "o", ":")


class Span(NamedTuple):
    """An observed value and an interval around it, which may be endless."""

    low: float
    observed: float
    high: float


def spans(result: Result, found: Sequence[Ratio] = ()) -> list[Span]:
    """Return for each arm what is drawn: in rounds its ratio to the reference, else the interval of its own."""
    if not result.problem.rounds:
        return [Span(arm.low, arm.observed, arm.high) for arm in result.arms]
    by_arm = {ratio.arm: ratio for ratio in found}
    references = {ratio.reference for ratio in found}
    unknown = Span(math.nan, math.nan, math.nan)

    def of(name: str) -> Span:
        if name not in by_arm:
            return Span(1.0, 1.0, 1.0) if name in references else unknown
        ratio = by_arm[name]
        ends = (ratio.low, ratio.high) if is_bounded(result, ratio) else (ratio.observed, ratio.observed)
        return Span(ends[0], ratio.observed, ends[1])

    return [of(arm.name) for arm in result.arms]


def drawn(arms: Sequence[Span], width: int, *, mark: float | None = None, plain: bool = False) -> list[str]:
    """Return a scale and a line for each arm, so many letters wide; nothing if there is nothing to tell apart.

    Parameters
    ----------
    mark
        A value that all lines show.
    plain
        Use letters that every terminal has.
    """
    known = [x for arm in arms for x in arm if math.isfinite(x)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if not low < high:
        return []
    by_log = low > 0 and high / low > _WIDE

    def place(x: float) -> int:
        x = min(max(x, low), high)
        share = math.log(x / low) / math.log(high / low) if by_log else (x - low) / (high - low)
        return round(share * (width - 1))

    line, left, right, dot, rule = _PLAIN if plain else _LETTERS

    def row(arm: Span) -> str:
        letters = [" "] * width
        if mark is not None and low <= mark <= high:
            letters[place(mark)] = rule
        if math.isnan(arm.observed):
            return "".join(letters).rstrip()
        first, last = place(arm.low), place(arm.high)
        letters[first : last + 1] = line * (last + 1 - first)
        if first < last:
            letters[first] = left if arm.low >= low else line
            letters[last] = right if arm.high <= high else line
        letters[place(arm.observed)] = dot
        return "".join(letters).rstrip()

    ends = (_end(low, high, ROUND_FLOOR), _end(high, high, ROUND_CEILING))
    scale = f"{ends[0]}{' ' * max(1, width - len(ends[0]) - len(ends[1]))}{ends[1]}"
    return [scale, *map(row, arms)]


def _end(x: float, high: float, rounding: str) -> str:
    return number(x, abs(high) / 100 if abs(high) >= 10 else factor_step(x), rounding)
