"""`truearm plan`: before sampling, what it will take."""

import math
from collections.abc import Mapping
from decimal import ROUND_FLOOR
from typing import Any

import click
from click.core import ParameterSource

from truearm.cli.answer import GOOD, UNDECIDED, Screen
from truearm.cli.edge import ERROR, export
from truearm.cli.options import FORM, QUESTION, declare
from truearm.data.cells import Form
from truearm.data.columns import Columns
from truearm.data.tables import load
from truearm.evidence.units import Reduction
from truearm.planning import FAMILIES, Outlook, Plan, Size, plan
from truearm.problem import Contamination
from truearm.report.export import json_text
from truearm.report.numbers import count, number, percent

_OPTIONS = f"""
--arms ARMS  How many arms there are. [default: 5]
--gap GAP...  How far the others are behind the best: in units of the family, whose scale is 1, or with --share in
    points; 0.5 by default. Repeat it to give one for each.
--family {"|".join(FAMILIES)}  The law of the readings, of unit scale. [default: gaussian]
--share SHARE  Plan for shares: that of the best arm, such as 60%; gaps are then in points, such as 10%.
--pilot FILE|URL  Plan with the readings in this file instead of a family.
--arm COLUMN  The column of the pilot file that names the arm.
--value COLUMN  The column of the pilot file that holds the reading.
--rounds  Arms side by side in random order; blind by default.
+ unit {" ".join(FORM)} {QUESTION} between json
--plot FILE  Draw the table: PNG, SVG or PDF.
"""


@click.command("plan")
@declare(_OPTIONS)
@click.pass_context
def plan_command(
    ctx: click.Context,
    /,
    *,
    gap: tuple[tuple[float, bool], ...],
    pilot: str | None,
    json: bool,
    plot: str | None,
    **chosen: Any,  # noqa: ANN401 - the options of `plan`
) -> None:
    """Estimate, before sampling, whether arms can be told apart and how many pulls it will take.

    \b
    truearm plan --arms 5 --gap 0.5 --family gaussian --contamination 0.05
    truearm plan --arms 3 --gap 0.5 --gap 2 --family cauchy
    truearm plan --pilot pilot.csv --arm variant --value ms --goal min
    truearm plan --pilot preise.csv --arm laden --value preis --decimal ,
    truearm plan --share 0.6 --gap 0.1 --arms 3

    Ends with 3 if no number of pulls would decide.
    """  # noqa: D301 - click wants the control character
    given = {name for name in ctx.params if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    if chosen["rounds"] and "contamination" not in given:
        chosen["contamination"] = Contamination.of("blind")
    if chosen["contamination"] is None:
        raise click.UsageError("a plan needs a share of bad readings to plan for: --contamination 0.05, not none")
    if chosen["tolerance"].relative:
        amount = f"{100 * chosen['tolerance'].amount:g}%"
        msg = f"--tolerance {amount} is relative; a plan needs units of the readings, such as --tolerance 0.1"
        raise click.UsageError(msg)
    if chosen["share"] is None and (percents := [amount for amount, is_percent in gap if is_percent]):
        raise click.UsageError(
            f"--gap {100 * percents[0]:g}% is a ratio, but the family has unit scale; write --gap {percents[0]:g} "
            f"for {percents[0]:g} of its scale, use --pilot FILE for readings, or --share for a gap in points"
        )
    columns = Columns(*(chosen.pop(name) for name in ("arm", "value", "unit")))
    form = {name: chosen.pop(name) for name in FORM}
    if pilot is not None:
        if beside := [name for name in ("arms", "gap", "family") if name in given]:
            why = "arms, gaps and laws are those of the pilot's readings"
            raise click.UsageError(f"--{beside[0]} and --pilot exclude each other: {why}")
        is_share = chosen["at_least"] is not None or chosen["at_most"] is not None
        how = Reduction.of(at_least=chosen["at_least"], at_most=chosen["at_most"])
        readings = load(pilot, columns, how, Form.of(**form))
        chosen["goal"] = chosen["goal"] or ("min" if readings.timed and not is_share else None)
        chosen["pilot"] = readings.tapes
    elif about_file := [name for name in ("arm", "value", "unit", *form) if name in given]:
        msg = f"--{about_file[0].replace('_', '-')} says how a pilot file is read; give one with --pilot FILE"
        raise click.UsageError(msg)
    gaps = [amount for amount, _ in gap]
    found = plan(gap=gaps if len(gaps) > 1 else gaps[0] if gaps else 0.5, **chosen)
    assumed = "" if pilot is not None else _describe_defaults(given, chosen)
    click.echo(json_text(found.to_dict()) if json else _text(found, assumed))
    done = True
    if plot is not None:
        from truearm.report.plot import save_plan

        done = export(plot, lambda: save_plan(found, plot))
    ctx.exit(ERROR if not done else GOOD if found.identifiable else UNDECIDED)


def _describe_defaults(given: set[str], chosen: Mapping[str, Any]) -> str:
    """Return the defaults that the numbers rest on."""
    defaults = []
    if "gap" not in given:
        defaults.append(("a gap of 0.5 between the best arm and every other", "--gap"))
    if "family" not in given and chosen["share"] is None:
        defaults.append((f"{chosen['family']} readings of unit scale", "--family"))
    if not defaults:
        return ""
    whats, hows = zip(*defaults, strict=True)
    return f" This assumes {' and '.join(whats)}; change it with {', '.join(hows)} or --pilot FILE."


def _text(found: Plan, assumed: str = "") -> str:
    """Return a plan as text: a paragraph, what each method needs, and pulls against gap and contamination."""
    screen, way = Screen.here(), _policy(found)
    heading = f"Pulls `{way}` needs if the readings turn out clean, by gap and contamination to be allowed for:"
    tables = [screen.table(_needs(found)), f"{screen.wrap(heading)}\n\n{screen.table(_grid(found))}"]
    return screen.arrange([screen.wrap(f"{found}{assumed}")], tables)


def _policy(found: Plan) -> str:
    return "toptwo" if found.wins is None else "paired"


def _needs(found: Plan) -> list[tuple[str, ...]]:
    heading = ("decision", "lower bound", _policy(found), "possible up to")
    if found.contamination.blind:
        return [heading, ("blind", *_outlook(found, found.clean))]
    outlooks = {
        "certified, readings clean": found.clean,
        "certified, at their worst": found.worst,
        "separated, at their worst": found.promised,
    }
    sizes = {"Algorithm 1": found.algorithm1, "Algorithm 3": found.algorithm3}
    return [
        heading,
        *((name, *_outlook(found, outlook)) for name, outlook in outlooks.items()),
        *(
            (f"{name}: sharp, printed", "", f"{_pulls(size.sharp)}, {_pulls(size.paper)}", "")
            for name, size in sizes.items()
            if found.applicable or size != Size(None, None)
        ),
    ]


def _outlook(found: Plan, outlook: Outlook) -> tuple[str, ...]:
    if not outlook.decidable:
        return "never", "never", percent(outlook.largest_eps, ROUND_FLOOR)
    bound = "-" if found.tolerance else count(math.ceil(outlook.lower_bound))
    return bound, count(math.ceil(outlook.expected)), percent(outlook.largest_eps, ROUND_FLOOR)


def _pulls(pulls: int | None) -> str:
    return "never" if pulls is None else count(pulls)


def _grid(found: Plan) -> list[tuple[str, ...]]:
    by_gap: dict[float, list[str]] = {}
    for cell in found.table:
        by_gap.setdefault(cell.gap, []).append(_pulls(cell.pulls))
    levels = list(dict.fromkeys(cell.eps for cell in found.table))
    return [("gap", *map(percent, levels)), *((number(gap), *row) for gap, row in by_gap.items())]
