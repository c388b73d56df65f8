"""Pictures as SVG: scalable shapes, with their labels as text of the page so that these never stretch.

Every shape is drawn on a board 1000 units wide and stretched to the page; strokes keep their width.
"""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from truearm.problem import Interval
from truearm.report.numbers import name_of, number
from truearm.report.picture import Strip

WIDTH = 1000
_BAR, _STRIP, _GRAPH = 24, 60, 400  # heights of the boards
_MARGIN = 30  # on both sides of a strip, for readings off the chart
_TICKS = 5  # of an axis, about
_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Tick(NamedTuple):
    """A label of an axis, and its place as a share of the axis."""

    place: float
    label: str

    @property
    def edge(self) -> str:
        """The class of a label near an end."""
        return "start" if self.place < 0.04 else "end" if self.place > 0.96 else ""


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


def _board(kind: str, height: int, label: str, shapes: str) -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(name_of(label))}">{shapes}</svg>'
    )


def bar(
    ends: tuple[float, float],
    observed: float,
    label: str,
    *,
    core: tuple[float, float] | None = None,
    shade: tuple[float, float] | None = None,
) -> str:
    """Return an interval: a line, contamination's part as a bar, the observed value as a tick.

    All are places on the board.

    Parameters
    ----------
    core
        What contamination alone leaves open.
    shade
        A range behind it: equal, or tolerated.
    """
    low, high = (min(max(x, 0), WIDTH) for x in ends)
    shapes = []
    if shade is not None:
        left, right = (min(max(x, 0), WIDTH) for x in shade)
        wide = right - left + 4
        shapes.append(f'<rect class="outside" x="{left - 2:.1f}" width="{wide:.1f}" y="0" height="{_BAR}"/>')
    if core is not None:
        first, last = (min(max(x, 0), WIDTH) for x in core)
        shapes.append(f'<rect class="core" x="{first}" width="{max(0, last - first)}" y="5" height="14"/>')
    shapes.append(f'<rect class="sampling" x="{low}" width="{max(0, high - low):.1f}" y="10.5" height="3"/>')
    shapes.append(
        '<path class="beyond low" d="M12 4L2 12L12 20"/><path class="beyond high" d="M988 4L998 12L988 20"/>'
    )
    if 0 <= observed <= WIDTH:
        shapes.append(f'<line class="observed" x1="{observed}" x2="{observed}" y1="1" y2="23"/>')
    return _board("bar", _BAR, label, "".join(shapes))


def strip(found: Strip, window: Interval, label: str) -> str:
    """Return some of an arm's readings, the first pull on top; those off the chart are in the shaded margins."""
    inner = WIDTH - 2 * _MARGIN
    with np.errstate(invalid="ignore", over="ignore"):
        share = (found.values / 2 - window.low / 2) / (window.high / 2 - window.low / 2)
    places = np.where(share < 0, _MARGIN / 2, np.where(share > 1, WIDTH - _MARGIN / 2, _MARGIN + inner * share))
    heights = 4 + 52 * found.places
    marks = [
        "".join(f"M{x:.0f} {y:.0f}{shape}" for x, y in zip(places[kind], heights[kind], strict=True))
        for kind, shape in ((~found.far, "h0"), (found.far, "v5"))
    ]
    margins = "".join(
        f'<rect class="outside" x="{x}" y="0" width="{_MARGIN}" height="{_STRIP}"/>' for x in (0, WIDTH - _MARGIN)
    )
    shapes = f'<path class="dots" d="{marks[0]}"/><path class="far" d="{marks[1]}"/>'
    return _board("strip", _STRIP, label, margins + shapes)


class Graph(NamedTuple):
    """A picture, and the labels of its axes."""

    drawn: str
    across: list[Tick]
    up: list[Tick]


def gates(bars: Sequence[float], found: Sequence[float | None], label: str) -> Graph:
    """Return what every gate of a ledger needed, as steps, and a dot for the log-evidence it closed with."""
    known = [value for value in found if value is not None]
    tens, top = math.log(10), 1.25 * max(bars)
    window = Interval(min(0.0, max(min(known, default=0.0), -top)) / tens, top / tens)
    wide = WIDTH / len(bars)

    def y(log_evidence: float) -> float:
        share = (log_evidence / tens - window.low) / (window.high - window.low)
        return round(_GRAPH * (1 - min(max(share, 0.0), 1.0)), 1)

    heights = _power_ticks(window)
    rules = "".join(f"M0 {_GRAPH * (1 - t.place):.1f}H{WIDTH}" for t in heights)
    steps = "".join(f"M{i * wide:.1f} {y(bar)}h{wide:.1f}" for i, bar in enumerate(bars))
    closed = [(i, value) for i, value in enumerate(found) if value is not None]
    dots = (
        f'<path class="gate{" missed" * (value < bars[i])}" d="M{(i + 0.5) * wide:.1f} {y(value)}h0"/>'
        for i, value in closed
    )
    frame = f'<path class="frame" d="M0 0H{WIDTH}V{_GRAPH}H0Z{rules}"/><path class="needed" d="{steps}"/>'
    across = [Tick((i + 0.5) / len(bars), number(i + 1)) for i in range(0, len(bars), -(-len(bars) // 10))]
    return Graph(_board("graph", _GRAPH, label, frame + "".join(dots)), across, heights)


def _power_ticks(window: Interval) -> list[Tick]:
    low, high = window
    steps = (s for m in (1, 10, 100, 1000, 10**9) for s in (m, 2 * m, 5 * m))
    step = next(s for s in steps if s * _TICKS >= (high - low) * 0.99)
    powers = range(math.ceil(low / step) * step, math.floor(high) + 1, step)
    return [Tick((p - low) / (high - low), power(p)) for p in powers]


def power(p: int) -> str:
    """Return a power of ten, small ones as a number."""
    return number(10.0**p) if -3 <= p <= 3 else f"10{str(p).translate(_POWERS)}"


def axis(marks: Sequence[Tick]) -> str:
    """Return the labels below a board; every second one is hidden on a narrow page."""
    spans = (
        f'<span class="{" ".join(filter(None, (t.edge, "minor" * ((len(marks) - i) % 2 == 0))))}" '
        f'style="left:{100 * t.place:.1f}%">{escape(t.label)}</span>'
        for i, t in enumerate(marks)
    )
    return f'<div class="ticks" aria-hidden="true">{"".join(spans)}</div>'
