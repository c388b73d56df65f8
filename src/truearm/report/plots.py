"""The pictures of a result through matplotlib, each on any Axes. Needs the extra `plot`.

The page of `truearm.report.html` draws the same numbers without matplotlib.
"""

import math
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from truearm.claims.certificate import Tapes
from truearm.claims.result import Result
from truearm.errors import InvalidArgument, OutOfReach
from truearm.report.numbers import name_of, percent, target_name
from truearm.report.picture import VIEW, Picture, Timeline, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARK, _FILL, _SOFT, _FAR, _INK = "#1c5d9f", "#9dbfe2", "#6b7682", "#a33b00", "#1b1f24"
_PENS = ("-", "--", "-.", ":")
_HUES = (_MARK, "#8a3a00", "#2f6b2f")
_FORMATS = (".png", ".svg", ".pdf")


def _axes(ax: "Axes | None") -> "Axes":
    if ax is not None:
        return ax
    pyplot = _matplotlib("pyplot")
    return cast("Axes", pyplot.subplots()[1])


def _matplotlib(room: str) -> Any:  # noqa: ANN401 - a module of a guest
    try:
        return import_module(f"matplotlib.{room}")
    except ImportError as missing:
        msg = "plots need matplotlib; install it with: pip install 'truearm[plot]'"
        raise OutOfReach(msg) from missing


def intervals(result: Result, ax: "Axes | None" = None) -> "Axes":
    """Draw where each arm's true quantile lies: a thin line, and as a bar what contamination alone leaves.

    Excluded arms are gray, with an open bar. An interval without an end runs to the edge.

    Parameters
    ----------
    ax
        Where to draw; new Axes by default.
    """
    ax = _axes(ax)
    shown = [arm for arm in result.arms if arm.n]
    window = span([x for arm in shown for x in (arm.observed, arm.low, arm.high)])
    for i, arm in enumerate(result.arms):
        if not arm.n or arm.low > arm.high:
            continue
        is_in = arm.name in result.candidates
        color = _MARK if is_in else _SOFT
        low, high = np.clip((arm.low, arm.high), *window)
        core = np.clip(sorted((arm.contamination_low, arm.contamination_high)), low, high)
        ax.plot([low, high], [i, i], color=color, linewidth=2, solid_capstyle="butt")
        ax.barh(i, core[1] - core[0], left=core[0], height=0.5, color=_FILL if is_in else "none", edgecolor=color)
        ax.plot([arm.observed], [i], marker="|", color=_INK, markersize=14, markeredgewidth=2)
    ax.set_yticks(range(len(result.arms)), [name_of(arm.name) for arm in result.arms], parse_math=False)
    ax.set_ylim(len(result.arms) - 0.5, -0.5)
    ax.set_xlim(*window)
    ax.set_xlabel(f"true {target_name(result.problem)} if {_promise(result)}")
    return ax


def _promise(result: Result) -> str:
    declared = result.problem.contamination
    if declared is None or not declared.eps:
        return "no reading is bad"
    return f"each reading is bad with a chance of at most {percent(declared.eps)}"


def evidence_over_time(result: Result, readings: Tapes, ax: "Axes | None" = None) -> "Axes":
    """Draw the evidence against the leader's rivals, as readings came, and the threshold.

    What exactly is drawn: see `Picture.evidence_over_time`.
    """
    return _draw_evidence(Picture.of(result, readings).evidence_over_time(), _axes(ax))


def _draw_evidence(time: Timeline, ax: "Axes") -> "Axes":
    tens = math.log(10)
    for i, (arm, line) in enumerate(time.lines.items()):
        pen, hue = _PENS[i % len(_PENS)], _HUES[i % len(_HUES)]
        ax.plot(time.pulls, np.array(line) / tens, linestyle=pen, color=hue, label=f"against {name_of(arm)}")
        if arm in time.rejected:
            pulls, value = time.rejected[arm]
            ax.plot([pulls], [value / tens], marker="o", color=hue)
    if time.lines:
        needed = time.log_threshold / tens
        ax.axhline(needed, color=_INK, linewidth=1, label="threshold")
        ax.set_xscale("log")
        ax.set_ylim(-needed, 2.5 * needed)
        for words in ax.legend(fontsize="small").get_texts():
            words.set_parse_math(False)
    ax.set_xlabel("pulls of all arms")
    ax.set_ylabel("evidence, as a power of ten")
    return ax


def quality(result: Result, ax: "Axes | None" = None) -> "Axes":
    """Draw the quality curve: the guaranteed share of the leader's true readings that are as good as x."""
    ax = _axes(ax)
    is_max = result.problem.goal == "max"
    points = sorted(result.quality)
    if points:
        x, shares = [point.x for point in points], [point.share for point in points]
        ax.step(x, shares, where="pre" if is_max else "post", color=_MARK)
        ax.fill_between(x, shares, step="pre" if is_max else "post", color=_MARK, alpha=0.15, linewidth=0)
        leader = next(arm for arm in result.arms if arm.name == result.leader)
        near = [value for value in x if abs(value - leader.observed) <= VIEW * leader.mad]
        ax.set_xlim(*span(near or x))
    ax.set_ylim(0.0, 1.0)
    ax.set_xlabel(f"x of {name_of(result.leader or 'no arm')}", parse_math=False)
    ax.set_ylabel(f"guaranteed share {'at least' if is_max else 'at most'} x")
    return ax


def readings_strip(result: Result, readings: Tapes, ax: "Axes | None" = None) -> "Axes":
    """Draw a few hundred readings per arm, the first pull on top; triangles are far from their arm's median.

    Readings beyond the picture stand at its edge.
    """
    return _draw_readings(Picture.of(result, readings), _axes(ax))


def _draw_readings(picture: Picture, ax: "Axes") -> "Axes":
    strips, arms = picture.strips(), picture.result.problem.arms
    window = span([end for strip in strips for end in strip.view])
    edges = window.low * 0.985 + window.high * 0.015, window.low * 0.015 + window.high * 0.985  # whole marks
    for i, strip in enumerate(strips):
        x, y = np.clip(strip.values, *edges), i - 0.4 + 0.8 * strip.places
        ax.plot(x[~strip.far], y[~strip.far], ".", color=_MARK, alpha=0.5, markersize=4, markeredgewidth=0)
        ax.plot(x[strip.far], y[strip.far], "^", color=_FAR, markersize=4)
        ax.axhline(i + 0.5, color=_SOFT, linewidth=0.5)
    ax.set_yticks(range(len(arms)), [name_of(arm) for arm in arms], parse_math=False)
    ax.set_ylim(len(arms) - 0.5, -0.5)
    ax.set_xlim(*window)
    ax.set_xlabel("reading")
    return ax


def pulls(plan: Any, ax: "Axes | None" = None) -> "Axes":  # noqa: ANN401 - a Plan, which is defined above
    """Draw how many pulls `toptwo` is expected to need against the gap, a line per contamination.

    A line ends where the contamination hides the gap, however many pulls there are.
    """
    ax = _axes(ax)
    for line, eps in enumerate(sorted({cell.eps for cell in plan.table})):
        cells = [(cell.gap, cell.pulls) for cell in plan.table if cell.eps == eps and cell.pulls is not None]
        if cells:
            pen, hue = _PENS[line % len(_PENS)], _HUES[line % len(_HUES)]
            ax.plot(*zip(*cells, strict=True), pen, color=hue, marker=".", label=f"{percent(eps)} may be bad")
    ax.set(xscale="log", yscale="log", xlabel="gap, in units of the readings", ylabel="pulls of all arms")
    gaps = sorted({cell.gap for cell in plan.table})
    ax.set_xticks(gaps, labels=[f"{gap:g}" for gap in gaps])
    ax.yaxis.set_major_locator(_matplotlib("ticker").LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.minorticks_off()
    if ax.lines:
        ax.legend(frameon=False)
    else:
        ax.text(0.5, 0.5, "contamination hides every gap", transform=ax.transAxes, ha="center")
    return ax


def save(result: Result, readings: Tapes, path: str | Path) -> Path:
    """Write the four pictures on one sheet, as PNG, SVG or PDF by the ending of the path.

    Returns
    -------
    Path
        The file written.
    """
    target = _target(path)
    picture = Picture.of(result, readings)
    height = 4 + 0.35 * len(result.arms)
    figure = _matplotlib("figure").Figure(figsize=(12, 2 * height), layout="constrained")
    corners = figure.subplots(2, 2)
    intervals(result, corners[0, 0]).set_title("Intervals")
    quality(result, corners[0, 1]).set_title("Quality")
    _draw_evidence(picture.evidence_over_time(), corners[1, 0]).set_title("Evidence over time")
    _draw_readings(picture, corners[1, 1]).set_title("Readings")
    figure.savefig(target, dpi=120)
    return target


def save_plan(plan: Any, path: str | Path) -> Path:  # noqa: ANN401
    """Write the picture of a plan, as PNG, SVG or PDF by the ending of the path."""
    target = _target(path)
    figure = _matplotlib("figure").Figure(figsize=(7, 5), layout="constrained")
    pulls(plan, figure.subplots()).set_title(f"{plan.arms} arms, {plan.family}, delta = {plan.delta:g}")
    figure.savefig(target, dpi=120)
    return target


def _target(path: str | Path) -> Path:
    if Path(path).suffix.lower() not in _FORMATS:
        msg = f"path must end in {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}, but got {str(path)!r}"
        raise InvalidArgument(msg)
    return Path(path)
