"""Draw figures of simulations with matplotlib (extra `plot`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

_NAMES = {
    "mean-elimination": "successive elimination on means",
    "lil-ucb": "lil'UCB",
    "mean-ucb": "LUCB on means",
    "plain-median": "medians without bounds",
    "toptwo": "truearm",
    "elimination": "Algorithm 3",
    "lucb": "QLUCB",
}
# colors that are safe for red-green color blindness (Okabe and Ito)
_COLORS = ["#D55E00", "#E69F00", "#CC79A7", "#56B4E9", "#0072B2", "#009E73"]


def draw(rows: Sequence[Row], kind: str, path: str | Path) -> None:
    """Draw the picture that a scenario asks for and write it to a file.

    Parameters
    ----------
    rows
        Rows of `scenarios.run`.
    kind
        "eps": error rate and pulls against the fraction of bad readings. "gap": pulls against 1/gap^2.
    """
    figure = _against_eps(rows) if kind == "eps" else _against_gap(rows)
    figure.savefig(path, dpi=120)


def _blank(columns: int) -> "tuple[Figure, Sequence[Axes]]":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * columns, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(1, columns, i + 1) for i in range(columns)]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25, linewidth=0.6)
    return figure, axes


def _by_policy(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["policy"], []).append(row)
    return groups


def _name(policy: str) -> str:
    first, *options = policy.split(" ")
    known = _NAMES.get(first, first)
    pulls = [option.removeprefix("pulls=") for option in options if option.startswith("pulls=")]
    return f"{known}, {pulls[0]} pulls each" if pulls else known


def _against_eps(rows: Sequence[Row]) -> "Figure":
    figure, (left, right) = _blank(2)
    for color, (policy, group) in zip(_COLORS, _by_policy(rows).items(), strict=False):
        eps = [100 * row["eps"] for row in group]
        rate = np.array([row["error_rate"] for row in group])
        reach = [rate - [row["error_low"] for row in group], [row["error_high"] for row in group] - rate]
        style: dict[str, Any] = {
            "color": color,
            "marker": "o",
            "markersize": 3.5,
            "linewidth": 2.2 if policy == "toptwo" else 1.4,
        }
        left.errorbar(eps, rate, yerr=np.abs(reach), elinewidth=0.7, capsize=2, label=_name(policy), **style)
        right.plot(eps, [row["pulls"] for row in group], **style)
    sure = [row for row in rows if row["limit"] == row["limit"] and row["policy"] == "toptwo"]
    right.plot(
        [100 * row["eps"] for row in sure],
        [row["limit"] for row in sure],
        color="gray",
        linestyle="--",
        linewidth=1,
        label="least that any method needs which knows no shape",
    )
    promise = rows[0]["delta"]
    left.axhline(promise, color="black", linewidth=0.8, linestyle=":", label=f"promised: {promise:.0%}")
    left.set(xlabel="bad readings, %", ylabel="wrong answers", ylim=(-0.03, 1.03))
    left.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    right.set(xlabel="bad readings, %", ylabel="pulls, mean", yscale="log")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _against_gap(rows: Sequence[Row]) -> "Figure":
    figure, (axis,) = _blank(1)
    for color, (policy, group) in zip(_COLORS[3:], _by_policy(rows).items(), strict=False):
        x = np.array([row["effective_gap"] for row in group]) ** -2.0
        order = np.argsort(x)
        pulls = np.array([row["pulls"] for row in group])[order]
        spread = 2 * np.array([row["standard_error"] for row in group])[order]
        axis.errorbar(x[order], pulls, yerr=spread, color=color, marker="o", markersize=4, label=_name(policy))
    axis.set(xlabel="1 / effective gap squared", ylabel="pulls, mean and two standard errors")
    axis.set(xlim=(0, None), ylim=(0, None))
    axis.legend(loc="upper left", frameon=False, fontsize=8)
    return figure
