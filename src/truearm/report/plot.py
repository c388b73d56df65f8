"""A result as one matplotlib figure, and the forecast of a plan. Needs the extra `plot`."""

import math
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from truearm.claims.certify import ratios
from truearm.claims.result import Result
from truearm.errors import OutOfReach
from truearm.problem import refuse
from truearm.report.numbers import name_of, percent, target_name
from truearm.report.svg import window_of
from truearm.report.tables import display_order, spans
from truearm.report.words import assuming, standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARK, _FILL, _SOFT, _INK = "#1c5d9f", "#9dbfe2", "#6b7682", "#1b1f24"
_FORMATS = (".png", ".svg", ".pdf")


def _matplotlib(module: str) -> Any:  # noqa: ANN401 - a module
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as missing:
        raise OutOfReach("plots need matplotlib; install it with: pip install 'truearm[plot]'") from missing


def draw(result: Result, ax: "Axes | None" = None) -> "Axes":
    """Draw each arm's true value, in rounds its ratio: a line, and as a bar what contamination alone leaves open.

    Excluded arms are gray, with an open bar. An interval without an end runs to the edge.
    """
    ax = cast("Axes", _matplotlib("pyplot").subplots()[1]) if ax is None else ax
    problem, found = result.problem, ratios(result) if result.problem.rounds else ()
    order, arms = display_order(result), {arm.name: arm for arm in result.arms}
    shown = dict(zip(order, spans(result, found), strict=True))
    window = window_of([x for span in shown.values() for x in span])
    for i, (name, span) in enumerate(shown.items()):
        if math.isnan(span.observed) or span.low > span.high:
            continue
        is_in, arm = standing(result, name) != "excluded", arms[name]
        color = _MARK if is_in else _SOFT
        low, high = np.clip((span.low, span.high), *window)
        inner = (span.observed,) * 2 if problem.rounds else (arm.contamination_low, arm.contamination_high)
        core = np.clip(sorted(inner), low, high)
        ax.plot([low, high], [i, i], color=color, linewidth=2, solid_capstyle="butt")
        ax.barh(i, core[1] - core[0], left=core[0], height=0.5, color=_FILL if is_in else "none", edgecolor=color)
        ax.plot([span.observed], [i], marker="|", color=_INK, markersize=14, markeredgewidth=2)
    ax.set_yticks(range(len(order)), [name_of(name) for name in order], parse_math=False)
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_xlim(*window)
    what = f"divided by {name_of(result.leader or '')}, round by round" if problem.rounds else target_name(problem)
    ax.set_xlabel(what if problem.rounds else f"true {what} if {assuming(problem.declared)}")
    return ax


def draw_plan(plan: Any, ax: "Axes") -> "Axes":  # noqa: ANN401 - a Plan, which is defined above this layer
    """Draw how many pulls `toptwo` is expected to need against the gap, a line per contamination.

    A line ends where the contamination hides the gap, however many pulls there are.
    """
    for eps in sorted({cell.eps for cell in plan.table}):
        cells = [(cell.gap, cell.pulls) for cell in plan.table if cell.eps == eps and cell.pulls is not None]
        if cells:
            ax.plot(*zip(*cells, strict=True), marker=".", label=f"{percent(eps)} may be bad")
    ax.set(xscale="log", yscale="log", xlabel="gap, in units of the readings", ylabel="pulls of all arms")
    if ax.lines:
        ax.legend(frameon=False)
    else:
        ax.text(0.5, 0.5, "contamination hides every gap", transform=ax.transAxes, ha="center")
    return ax


def save_plan(plan: Any, path: str | Path) -> Path:  # noqa: ANN401 - a Plan
    """Write the picture of a plan, as PNG, SVG or PDF by the ending of the path."""
    msg = f"path must end in {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}, but got {str(path)!r}"
    refuse(Path(path).suffix.lower() not in _FORMATS, msg)
    figure = _matplotlib("figure").Figure(figsize=(7, 5), layout="constrained")
    draw_plan(plan, figure.subplots()).set_title(f"{plan.arms} arms, {plan.family}, delta = {plan.delta:g}")
    figure.savefig(path, dpi=120)
    return Path(path)
