"""What pictures show, as places and paths of SVG; the markup is in `templates/macros.html`.

Every shape is drawn on a board 1000 units wide and stretched to the page; strokes keep their width. Labels are
text of the page, so that these never stretch.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.claims.alarms import FAR
from truearm.evidence.intervals import moments
from truearm.problem import Interval
from truearm.report.numbers import number

WIDTH = 1000
_GRAPH = 400  # height of a graph
MARGIN = 30  # on both sides of a strip, for readings off the chart
_VIEW = 5 * 1.4826  # MADs around a median that readings are drawn in: five robust standard deviations
_MAX_FAR = 60  # readings drawn of those far from the median
_TICKS = 5  # of an axis, about
_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
Floats = NDArray[np.float64]


class Tick(NamedTuple):
    """A label of an axis, and its place as a share of the axis."""

    place: float
    label: str


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
    """Return the place of a value on a board, -1 left of it and 1001 right of it."""
    low, high = window
    if x < low or x > high:
        return -1.0 if x < low else WIDTH + 1.0
    return round(WIDTH * ((x / 2 - low / 2) / (high / 2 - low / 2)), 1)  # halves: huge readings do not overflow


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


class Bar(NamedTuple):
    """An interval as places on a board: a line, and the observed value as a tick, None if off the board."""

    low: float
    high: float
    observed: float | None
    core: tuple[float, float] | None = None
    """What contamination alone leaves open."""
    shade: tuple[float, float] | None = None
    """A range behind it: equal, or tolerated."""


def bar(
    ends: tuple[float, float],
    observed: float,
    core: tuple[float, float] | None = None,
    shade: tuple[float, float] | None = None,
) -> Bar:
    """Return a bar, cut off at the ends of the board."""

    def cut(low: float, high: float) -> tuple[float, float]:
        return min(max(low, 0), WIDTH), min(max(high, 0), WIDTH)

    tick = observed if 0 <= observed <= WIDTH else None
    return Bar(*cut(*ends), tick, core and cut(*core), shade and cut(shade[0] - 2, shade[1] + 2))


class Strip(NamedTuple):
    """The readings of an arm in order of pull, NaN for those missing or pending."""

    values: Floats
    pending: int
    far: NDArray[np.bool_]
    """Which lie more than ten robust standard deviations from the median."""
    view: Interval
    """Five robust standard deviations around the median, no wider than the readings."""

    @classmethod
    def of(cls, tape: Sequence[float | None] | Floats) -> "Strip":
        """Return the strip of a tape."""
        pending = 0 if isinstance(tape, np.ndarray) else sum(value is None for value in tape)
        values = np.array(tape, dtype=np.float64)  # None becomes NaN
        center, mad, _ = moments(values)
        with np.errstate(invalid="ignore", over="ignore"):
            far = np.abs(values - center) > (FAR * mad if mad > 0 else math.inf)
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
        if math.isfinite(center) and 0 < mad < math.inf:
            low, high = max(low, center - _VIEW * mad), min(high, center + _VIEW * mad)
        return cls(values, pending, far, Interval(low, high))

    def off_chart(self, window: Interval) -> int:
        """Return how many readings a window does not show."""
        return int(np.count_nonzero((self.values < window.low) | (self.values > window.high)))


def strip_paths(strip: Strip, window: Interval, most: int) -> tuple[str, str]:
    """Return at most about `most` readings as paths, the first pull on top: the near ones, and those far away.

    What is off the chart is in the margins.
    """
    values, n, inner = strip.values, strip.values.size, WIDTH - 2 * MARGIN
    with np.errstate(invalid="ignore", over="ignore"):
        share = (values / 2 - window.low / 2) / (window.high / 2 - window.low / 2)
    x = np.where(share < 0, MARGIN / 2, np.where(share > 1, WIDTH - MARGIN / 2, MARGIN + inner * share))
    y = 4 + 52 * np.arange(n) / max(1, n - 1)
    few = max(10, min(_MAX_FAR, most // 4))  # of those far away, which the even spacing would mostly skip
    drawn = np.union1d(_evenly(np.flatnonzero(~np.isnan(values)), most), _evenly(np.flatnonzero(strip.far), few))

    def path(places: NDArray[np.intp], mark: str) -> str:
        return "".join(f"M{x[i]:.0f} {y[i]:.0f}{mark}" for i in places)

    return path(drawn[~strip.far[drawn]], "h0"), path(drawn[strip.far[drawn]], "v5")


def _evenly(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    if places.size <= most:
        return places
    return places[np.linspace(0, places.size - 1, most).astype(np.intp)]


class Graph(NamedTuple):
    """What gates needed and reached: paths, and the labels of both axes."""

    rules: str
    needed: str
    dots: list[tuple[str, bool]]
    """Where the evidence of a gate is, and whether it is less than it needed."""
    across: list[Tick]
    up: list[Tick]


def gates(bars: Sequence[float], found: Sequence[float | None]) -> Graph:
    """Return what every gate of a ledger needed, as steps, and a dot for the log-evidence it closed with."""
    known = [value for value in found if value is not None]
    tens, top = math.log(10), 1.25 * max(bars)
    window = Interval(min(0.0, max(min(known, default=0.0), -top)) / tens, top / tens)
    wide = WIDTH / len(bars)

    def y(log_evidence: float) -> float:
        share = (log_evidence / tens - window.low) / (window.high - window.low)
        return round(_GRAPH * (1 - min(max(share, 0.0), 1.0)), 1)

    heights = _power_ticks(window)
    return Graph(
        "".join(f"M0 {_GRAPH * (1 - t.place):.1f}H{WIDTH}" for t in heights),
        "".join(f"M{i * wide:.1f} {y(bar)}h{wide:.1f}" for i, bar in enumerate(bars)),
        [(f"M{(i + 0.5) * wide:.1f} {y(x)}h0", x < bars[i]) for i, x in enumerate(found) if x is not None],
        [Tick((i + 0.5) / len(bars), number(i + 1)) for i in range(0, len(bars), -(-len(bars) // 10))],
        heights,
    )


def _power_ticks(window: Interval) -> list[Tick]:
    low, high = window
    steps = (s for m in (1, 10, 100, 1000, 10**9) for s in (m, 2 * m, 5 * m))
    step = next(s for s in steps if s * _TICKS >= (high - low) * 0.99)
    powers = range(math.ceil(low / step) * step, math.floor(high) + 1, step)
    return [Tick((p - low) / (high - low), power(p)) for p in powers]


def power(p: int) -> str:
    """Return a power of ten, small ones as a number."""
    return number(10.0**p) if -3 <= p <= 3 else f"10{str(p).translate(_POWERS)}"
