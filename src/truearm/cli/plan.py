"""`truearm plan`: estimate the effort before sampling."""

import math
from collections.abc import Mapping
from decimal import ROUND_FLOOR
from functools import partial
from typing import Any

import click

from truearm.cli.answer import GOOD, UNDECIDED, Answer, Screen, export, show
from truearm.cli.errors import ERROR
from truearm.cli.options import FORM, QUESTION, declare, explicit_options
from truearm.data.cells import Form
from truearm.data.columns import Columns
from truearm.data.tables import load
from truearm.evidence.units import MEDIANS, Reduction
from truearm.planning import FAMILIES, Plan, Size, plan
from truearm.problem import refuse
from truearm.report.export import json_text
from truearm.report.numbers import count, number, percent

_OPTIONS = f"""
--arms ARMS  How many arms there are. [default: 5]
--gap GAP...  How far the other arms are behind the best: in units of the scale of the family, or with --share in
    percentage points; 0.5 by default. Repeat it to give one for each of them.
--family {"|".join(FAMILIES)}  The distribution of the readings, with scale 1. [default: gaussian]
--share SHARE  Plan for shares: that of the best arm, such as 60%; gaps are then percentage points, such as 10%.
--pilot FILE|URL  Plan with the readings in this file instead of a family.
--rounds  Plan for rounds: arms side by side in random order, with --contamination blind by default.
+ arm value unit {" ".join(FORM)} {QUESTION} between json
--plot FILE  Draw the table: PNG, SVG or PDF.
"""


@click.command("plan")
@declare(_OPTIONS)
@click.pass_context
def plan_command(ctx: click.Context, /, *, pilot: str | None, plot: str | None, **_: Any) -> None:  # noqa: ANN401
    """Estimate, before sampling, whether arms can be told apart and how many pulls it will take.

    \b
    truearm plan --arms 5 --gap 0.5 --family gaussian --contamination 0.05
    truearm plan --arms 3 --gap 0.5 --gap 2 --family cauchy
    truearm plan --pilot pilot.csv --arm variant --value ms --goal min
    truearm plan --pilot prices.csv --arm store --value price --decimal ,
    truearm plan --share 0.6 --gap 0.1 --arms 3

    Exit codes: 0 pulls can decide; 2 usage; 3 no number of pulls would decide.
    """  # noqa: D301 - click wants the control character
    options = explicit_options(ctx, besides=("pilot", "json", "plot"))
    file = {name: options.pop(name) for name in ("arm", "value", "unit", *FORM) if name in options}
    gaps = options.pop("gap", ())
    ratio = next((amount for amount, is_percent in gaps if is_percent and "share" not in options), 0.0)
    remedy = f"write --gap {ratio:g} for {ratio:g} of its scale, or use --pilot FILE, or --share for points"
    refuse(ratio, f"--gap {100 * ratio:g}% is a ratio, but the family has unit scale; {remedy}")
    options |= {"gap": [amount for amount, _ in gaps] if len(gaps) > 1 else gaps[0][0]} if gaps else {}
    if pilot is not None:
        beside = next((name for name in ("arms", "gap", "family") if name in options), None)
        why = "arms, gaps and distributions are those of the pilot"
        refuse(beside, f"--{beside} and --pilot exclude each other: {why}; remove --{beside}")
        how = Reduction.of(at_least=options.get("at_least"), at_most=options.get("at_most"))
        form = Form.of(**{name: value for name, value in file.items() if name in FORM})
        readings = load(pilot, Columns(file.get("arm"), file.get("value"), file.get("unit")), how, form)
        options |= {"goal": "min"} if readings.timed and how == MEDIANS and "goal" not in options else {}
        options["pilot"] = readings.tapes
    option = next(iter(file), "").replace("_", "-")
    refuse(option and pilot is None, f"--{option} says how a pilot file is read; give one with --pilot FILE")
    forecast = plan(**options)
    assumed = "" if pilot is not None else _describe_defaults(options)
    code = GOOD if forecast.identifiable else UNDECIDED
    answer = Answer(partial(_text, forecast, assumed), code, {"json": lambda: json_text(forecast.to_dict())})
    code = show(ctx, answer)
    if plot is not None:
        from truearm.report.plot import save_plan

        code = code if export(plot, lambda: save_plan(forecast, plot)) else ERROR
    ctx.exit(code)


def _describe_defaults(options: Mapping[str, Any]) -> str:
    """Return the defaults that the numbers rest on."""
    defaults = {} if "gap" in options else {"--gap": "a gap of 0.5 between the best arm and every other"}
    if "family" not in options and "share" not in options:
        defaults["--family"] = "gaussian readings of unit scale"
    change = f"change it with {', '.join(defaults)} or --pilot FILE"
    return f" This assumes {' and '.join(defaults.values())}; {change}." if defaults else ""


def _text(forecast: Plan, assumed: str, screen: Screen) -> str:
    """Return a plan as text: a paragraph, what each method needs, and pulls against gap and contamination."""
    way = "toptwo" if forecast.wins is None else "paired"
    heading = f"Pulls that `{way}` needs if the readings turn out clean, by gap and declared contamination:"
    tables = [
        screen.table(_needs(forecast, way)),
        f"{screen.wrap(heading)}\n\n{screen.table(_grid(forecast))}",
    ]
    return screen.arrange([screen.wrap(f"{forecast}{assumed}")], tables)


def _needs(forecast: Plan, way: str) -> list[tuple[str, ...]]:
    outlooks = {
        "certified, readings clean": forecast.clean,
        "certified, at their worst": forecast.worst,
        "separated, at their worst": forecast.promised,
    }
    sizes = {"Algorithm 1": forecast.algorithm1, "Algorithm 3": forecast.algorithm3}
    if forecast.contamination.blind:
        outlooks, sizes = {"blind": forecast.clean}, {}
    rows: list[tuple[str, ...]] = [("decision", "lower bound", way, "possible up to")]
    for name, outlook in outlooks.items():
        bound = None if not outlook.decidable else "-" if forecast.tolerance else outlook.lower_bound
        expected = outlook.expected if outlook.decidable else None
        rows.append((name, _pulls(bound), _pulls(expected), percent(outlook.largest_eps, ROUND_FLOOR)))
    for name, size in sizes.items():
        if forecast.applicable or size != Size(None, None):
            rows.append((f"{name}: sharp, printed", "", f"{_pulls(size.sharp)}, {_pulls(size.paper)}", ""))
    return rows


def _pulls(pulls: float | str | None) -> str:
    return "never" if pulls is None else pulls if isinstance(pulls, str) else count(math.ceil(pulls))


def _grid(forecast: Plan) -> list[tuple[str, ...]]:
    by_gap: dict[float, list[str]] = {}
    for cell in forecast.table:
        by_gap.setdefault(cell.gap, []).append(_pulls(cell.pulls))
    levels = dict.fromkeys(cell.eps for cell in forecast.table)
    return [("gap", *map(percent, levels)), *((number(gap), *row) for gap, row in by_gap.items())]
