"""Graphs as markup: scalable shapes, with their labels as text of the page so that these never stretch.

Every shape is drawn on a board 1000 units wide and stretched to the page; strokes keep their width.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from truearm.claims.result import Reach
from truearm.problem import Interval
from truearm.report.markup import text
from truearm.report.numbers import number
from truearm.report.picture import Strip, Timeline

WIDTH = 1000
_BAR, _STRIP, _GRAPH = 24, 100, 400  # heights of the boards
_GUTTER = 30  # of a strip on both sides, for readings beyond its view
_BINS = 60  # of the density over a strip
_TICKS = 5  # of an axis, about
_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Tick(NamedTuple):
    """A label of an axis, and where it stands as a share of the axis."""

    place: float
    label: str


def at(x: float, window: Interval) -> float:
    """Return where a value stands on a board, -1 left of it and 1001 right of it."""
    low, high = window
    if x < low or x > high:
        return -1.0 if x < low else WIDTH + 1.0
    return round(WIDTH * ((x / 2 - low / 2) / (high / 2 - low / 2)), 1)  # halves: huge readings do not overflow


def ticks(window: Interval, size: float = 1.0) -> list[Tick]:
    """Return round numbers inside a window, in a unit of that size."""
    window = Interval(window.low / size, window.high / size)
    low, high = window
    rough = (high / 2 - low / 2) / _TICKS * 2
    if not 0 < rough < math.inf:
        return []
    power = 10.0 ** math.floor(math.log10(rough))
    if not 0 < power < math.inf:
        return []
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [i * step for i in range(first, last + 1)] if last - first <= 2 * _TICKS else []
    return [Tick(at(x, window) / WIDTH, number(x, step)) for x in values if low <= x <= high]


def _edge(place: float) -> str:
    return "start" if place < 0.04 else "end" if place > 0.96 else ""


def axis(marks: Sequence[Tick]) -> str:
    """Return the labels below a board; every second one gives way on a narrow page."""
    spans = (
        f'<span class="{" ".join(filter(None, (_edge(t.place), "minor" * ((len(marks) - i) % 2 == 0))))}" '
        f'style="left:{100 * t.place:.1f}%">{text(t.label)}</span>'
        for i, t in enumerate(marks)
    )
    return f'<div class="ticks" aria-hidden="true">{"".join(spans)}</div>'


def _board(kind: str, height: int, label: str, shapes: str) -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(label)}">{shapes}</svg>'
    )


def bar(ends: Sequence[float], observed: float, label: str) -> str:
    """Return one arm's interval: a thin line, contamination's part as a bar, the observed value as a tick.

    Parameters
    ----------
    ends
        Low and high of the interval, and of contamination's part, as places on the board.
    observed
        The place of the observed quantile.
    """
    low, high, core_low, core_high = (min(max(x, 0), WIDTH) for x in ends)
    tick = (
        f'<line class="observed" x1="{observed}" x2="{observed}" y1="1" y2="23"/>' if 0 <= observed <= 1000 else ""
    )
    return _board(
        "bar",
        _BAR,
        label,
        f'<rect class="core" x="{core_low}" width="{max(0, core_high - core_low)}" y="5" height="14"/>'
        f'<rect class="sampling" x="{low}" width="{max(0, high - low)}" y="10.5" height="3"/>'
        '<path class="beyond low" d="M12 4L2 12L12 20"/><path class="beyond high" d="M988 4L998 12L988 20"/>'
        f"{tick}",
    )


def places(own: tuple[int, int], tier: tuple[int, int], k: int, label: str) -> str:
    """Return the places that an arm may have among k, before the shade of those of its tier."""
    (shade, shade_wide), (left, wide) = (
        (WIDTH * (first - 1) / k, WIDTH * (last - first + 1) / k) for first, last in (tier, own)
    )
    return _board(
        "bar",
        _BAR,
        label,
        f'<rect class="outside" x="{shade:.1f}" width="{shade_wide:.1f}" y="0" height="{_BAR}"/>'
        f'<rect class="core" x="{left:.1f}" width="{wide:.1f}" y="6" height="12"/>',
    )


def beside(ends: tuple[float, float], observed: float, shade: Sequence[float], label: str) -> str:
    """Return an interval and the observed value in it, before the shade of what is tolerated."""
    low, high = (min(max(x, 0), WIDTH) for x in ends)
    left, wide = shade[0] - 1, shade[1] - shade[0] + 2
    tick = f'<line class="observed" x1="{observed}" x2="{observed}" y1="3" y2="21"/>'
    return _board(
        "bar",
        _BAR,
        label,
        f'<rect class="outside" x="{left:.1f}" width="{wide:.1f}" y="0" height="{_BAR}"/>'
        f'<rect class="sampling" x="{low}" width="{max(0, high - low):.1f}" y="10" height="4"/>'
        f"{tick if 0 <= observed <= WIDTH else ''}",
    )


def strip(found: Strip, window: Interval, label: str) -> str:
    """Return an arm's readings: their density, and below it single ones, the first pull on top.

    Readings beyond the window stand in the shaded margins.
    """
    inner = WIDTH - 2 * _GUTTER
    with np.errstate(invalid="ignore", over="ignore"):
        share = (found.values / 2 - window.low / 2) / (window.high / 2 - window.low / 2)
    places = np.where(share < 0, _GUTTER / 2, np.where(share > 1, WIDTH - _GUTTER / 2, _GUTTER + inner * share))
    heights = 44 + 52 * found.places
    marks = [
        "".join(f"M{x:.0f} {y:.0f}{shape}" for x, y in zip(places[kind], heights[kind], strict=True))
        for kind, shape in ((~found.far, "h0"), (found.far, "v5"))
    ]
    margins = "".join(
        f'<rect class="outside" x="{x}" y="0" width="{_GUTTER}" height="{_STRIP}"/>' for x in (0, WIDTH - _GUTTER)
    )
    shapes = f'<path class="dots" d="{marks[0]}"/><path class="far" d="{marks[1]}"/>'
    return _board("strip", _STRIP, label, margins + _density(found, window, inner) + shapes)


def _density(found: Strip, window: Interval, inner: int) -> str:
    values = found.sorted[(found.sorted >= window.low) & (found.sorted <= window.high)]
    if not values.size:
        return ""
    share = np.linspace(0, 1, _BINS + 1)
    edges = window.low * (1 - share) + window.high * share
    counts = np.diff(np.searchsorted(values, edges[1:-1]), prepend=0, append=values.size)
    step = inner / _BINS
    path = "".join(f"V{38 - 36 * c / counts.max():.1f}h{step:.2f}" for c in counts)
    return f'<path class="density" d="M{_GUTTER} 38{path}V38Z"/>'


def graph(shapes: str, across: Sequence[Tick], up: Sequence[Tick], *, label: str, titles: tuple[str, str]) -> str:
    """Return a graph with its axes; titles name what is drawn upward and across."""
    rules = "".join(f"M0 {_GRAPH * (1 - t.place):.1f}H{WIDTH}" for t in up)
    side = "".join(f'<span style="bottom:{100 * t.place:.1f}%">{text(t.label)}</span>' for t in up)
    frame = f'<path class="frame" d="M0 0H{WIDTH}V{_GRAPH}H0Z{rules}"/>'
    return (
        f'<p class="note">{text(titles[0])}</p><div class="plot">'
        f'<div class="y-ticks" aria-hidden="true">{side}</div>'
        f"{_board('graph', _GRAPH, label, frame + shapes)}"
        f'<div class="below">{axis(across)}<p class="axis-title">{text(titles[1])}</p></div></div>'
    )


def quality(points: Sequence[Reach], window: Interval, *, falling: bool) -> str:
    """Return the quality curve as steps, with the area under it."""
    steps = sorted(points, key=lambda point: point.share, reverse=falling)
    heights = [round(_GRAPH * (1 - point.share), 1) for point in steps]
    places = [min(max(at(point.x, window), 0), WIDTH) for point in steps]
    before, after = (
        (heights, [*heights[1:], float(_GRAPH)]) if falling else ([float(_GRAPH), *heights[:-1]], heights)
    )
    path = f"M0 {before[0]}" + "".join(f"H{x}V{y}" for x, y in zip(places, after, strict=True)) + f"H{WIDTH}"
    return f'<path class="shade" d="{path}V{_GRAPH}H0Z"/><path class="curve" d="{path}"/>'


class Scale(NamedTuple):
    """The axes of the evidence: logarithms of pulls across, powers of ten of evidence up."""

    across: Interval
    up: Interval

    @classmethod
    def of(cls, time: Timeline) -> "Scale":
        """Return axes that show where the threshold is crossed, not how far beyond it the evidence goes."""
        values = [value for line in time.lines.values() for value in line]
        top = min(max(*values, 1.2 * time.log_threshold), 2.5 * time.log_threshold)
        bottom = max(min(*values, 0.0), -time.log_threshold)
        room = (top - bottom) / 20
        first, last = math.log10(time.pulls[0]), math.log10(time.pulls[-1])
        tens = math.log(10)
        return cls(Interval(first, max(last, first + 0.01)), Interval((bottom - room) / tens, (top + room) / tens))

    def x(self, pulls: float) -> float:
        """Return the place of a number of pulls on the board."""
        low, high = self.across
        return round(WIDTH * (math.log10(pulls) - low) / (high - low), 1)

    def y(self, log_evidence: float) -> float:
        """Return the height of an evidence on the board, far above or below it too."""
        low, high = self.up
        height = _GRAPH * (1 - (log_evidence / math.log(10) - low) / (high - low))
        return round(min(max(height, -1e6), 1e6), 1)


def evidence(time: Timeline, scale: Scale) -> str:
    """Return one line per rival, a dot where the study rejected it, and the threshold."""
    y = scale.y(time.log_threshold)
    needed = f'<line class="threshold" x1="0" x2="{WIDTH}" y1="{y}" y2="{y}"/>'
    lines = [
        f'<polyline class="line {_pen(i)}" points="'
        + " ".join(f"{scale.x(n)},{scale.y(value)}" for n, value in zip(time.pulls, line, strict=True))
        + '"/>'
        for i, line in enumerate(time.lines.values())
    ]
    dots = [
        f'<path class="rejection {_pen(i)}" d="M{scale.x(pulls)} {scale.y(value)}h0"/>'
        for i, arm in enumerate(time.lines)
        for pulls, value in ([time.rejected[arm]] if arm in time.rejected else [])
    ]
    return "".join((needed, *lines, *dots))


def _pen(i: int) -> str:
    return f"hue-{i % 3} dash-{i % 4}"  # twelve different pens; neighbors differ in color and in dashes


def pen_sample(i: int) -> str:
    """Return a short stretch of the i-th line, for the legend."""
    return (
        '<svg viewBox="0 0 40 16" aria-hidden="true">'
        f'<line class="line {_pen(i)}" x1="0" x2="40" y1="8" y2="8"/></svg>'
    )


def power_ticks(window: Interval) -> list[Tick]:
    """Return powers of ten on a scale of their logarithms."""
    low, high = window
    step = next(
        s for m in (1, 10, 100, 1000, 10**9) for s in (m, 2 * m, 5 * m) if s * _TICKS >= (high - low) * 0.99
    )
    powers = range(math.ceil(low / step) * step, math.floor(high) + 1, step)
    return [Tick((p - low) / (high - low), power(p)) for p in powers]


def power(p: int) -> str:
    """Return a power of ten, small ones as a number."""
    if -3 <= p <= 3:
        return number(10.0**p)
    return f"10{str(p).translate(_POWERS)}"


def pull_ticks(scale: Scale, last: int) -> list[Tick]:
    """Return powers of ten of pulls, and the last number of pulls at the end."""
    low, high = scale.across
    powers = (p for p in range(math.ceil(low - 1e-9), math.floor(high) + 1))
    marks = [Tick((p - low) / (high - low), number(10.0**p)) for p in powers]
    return [*(mark for mark in marks if mark.place < 0.85), Tick(1.0, number(last))]
