"""Positions and paths of SVG pictures; the markup is in `templates/macros.html`.

Every shape is drawn on a board 1000 units wide and stretched to the page; strokes keep their width. Labels are
text of the page, so that they never stretch.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.evidence.intervals import moments
from truearm.problem import Interval
from truearm.report.numbers import name_of, number

WIDTH = 1000
MARGIN = 30  # on both sides of a strip, for readings off the chart
_VIEW = 5 * 1.4826  # MADs around a median that readings are drawn in: five robust standard deviations
_TICKS = 5  # of an axis, approximately
Floats = NDArray[np.float64]


class Tick(NamedTuple):
    """A label of an axis, and its place as a share of the axis."""

    place: float
    label: str


class Span(NamedTuple):
    """An observed value and an interval around it, which may be unbounded."""

    low: float
    observed: float
    high: float


Piece = tuple[float, float]  # where a rectangle of a board begins, and how wide it is


class Row(NamedTuple):
    """A row of a chart: an interval as a line on a board, the observed value as a tick, and words beside it."""

    name: str
    where: str
    state: str
    kind: str  # classes of the row: of its state, and which ends of the interval are off the board
    line: Piece
    core: Piece | None  # what contamination alone leaves open
    shade: Piece | None  # a range behind it: equal, or tolerated
    observed: float | None  # None if off the board


def row(
    name: str,
    span: Span,
    window: Interval,
    where: str,
    state: str,
    *,
    kind: str | None = None,
    core: Sequence[float] | None = None,
    shade: Sequence[float] | None = None,
) -> Row:
    """Return a row of a chart, its kind by default the first word of its state.

    An interval that contradicts itself, or has no observed value, has no line.
    """
    low, high = span.low, span.high
    if math.isnan(span.observed) or low > high:
        low = high = window.low
    ends = ["open-low"] * (low < window.low) + ["open-high"] * (high > window.high)
    return Row(
        name_of(name),
        where,
        state,
        " ".join([state.partition(" ")[0] if kind is None else kind, *ends]),
        _piece((low, high), window),
        None if core is None else _piece(sorted(max(low, min(high, x)) for x in core), window),
        None if shade is None else _piece(shade, window, least=4.0),  # equal arms are a line
        at(span.observed, window) if window.low <= span.observed <= window.high else None,
    )


def _piece(ends: Sequence[float], window: Interval, least: float = 0.0) -> Piece:
    first, last = (at(end, window) for end in ends)
    return round(first - least / 2, 1), round(last - first + least, 1)


def window_of(values: Sequence[float]) -> Interval:
    """Return a stretch that holds all finite values, with some room on both sides."""
    finite = [x for x in values if math.isfinite(x)]
    if not finite:
        return Interval(0.0, 1.0)
    low, high = min(finite), max(finite)
    room = (high / 2 - low / 2) / 10 or abs(low) / 10 or 1.0  # halves, so that huge readings do not overflow
    huge = math.nextafter(math.inf, 0.0)
    return Interval(max(low - room, -huge), min(high + room, huge))


def at(x: float, window: Interval) -> float:
    """Return the place of a value on a board, at its nearer end if it is outside the window."""
    low, high = window
    share = (x / 2 - low / 2) / (high / 2 - low / 2)  # halves: huge readings do not overflow
    return round(WIDTH * min(max(share, 0.0), 1.0), 1)


def ticks(window: Interval, size: float = 1.0, sign: str = "") -> list[Tick]:
    """Return round numbers inside a window, in a unit of that size."""
    window = Interval(window.low / size, window.high / size)
    low, high = window
    rough = (high / 2 - low / 2) / _TICKS * 2
    power = 10.0 ** math.floor(math.log10(rough)) if 0 < rough < math.inf else 0.0
    if not 0 < power < math.inf:
        return []
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [i * step for i in range(first, last + 1)] if last - first <= 2 * _TICKS else []
    return [Tick(at(x, window) / WIDTH, f"{number(x, step)}{sign}") for x in values if low <= x <= high]


def view_of(values: Floats) -> Interval:
    """Return five robust standard deviations around the median of readings, no wider than all of them."""
    finite = values[np.isfinite(values)]
    center, mad, _ = moments(values)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
    if math.isfinite(center) and 0 < mad < math.inf:
        low, high = max(low, center - _VIEW * mad), min(high, center + _VIEW * mad)
    return Interval(low, high)


def strip(values: Floats, window: Interval, most: int) -> str:
    """Return at most `most` readings as a path, the first pull on top; what is off the chart is in the margins."""
    n, inner = values.size, WIDTH - 2 * MARGIN
    with np.errstate(invalid="ignore", over="ignore"):
        share = (values / 2 - window.low / 2) / (window.high / 2 - window.low / 2)
    x = np.where(share < 0, MARGIN / 2, np.where(share > 1, WIDTH - MARGIN / 2, MARGIN + inner * share))
    y = 4 + 52 * np.arange(n) / max(1, n - 1)
    known = np.flatnonzero(~np.isnan(values))
    drawn = known[np.unique(np.linspace(0, known.size - 1, min(most, known.size)).astype(np.intp))]
    return "".join(f"M{x[i]:.0f} {y[i]:.0f}h0" for i in drawn)
