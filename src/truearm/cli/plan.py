"""`truearm plan`: before sampling, what it will take."""

import math
import shutil
import sys
from decimal import ROUND_FLOOR
from typing import Any, Literal

import click
from click.core import ParameterSource

from truearm.cli import edge, options
from truearm.data.cells import Form
from truearm.data.columns import Columns
from truearm.data.tables import load
from truearm.evidence.units import Reduction
from truearm.planning import FAMILIES, Outlook, Plan, Size, plan
from truearm.problem import Contamination, Tolerance
from truearm.report.export import json_text
from truearm.report.numbers import count, number, percent
from truearm.report.tables import table

_MOST_ARMS = 1000  # a minute of work
UNDECIDABLE = 3  # exit code when no number of pulls would decide: not an error, and no plan either


@click.command("plan", context_settings={"max_content_width": 100})
@click.option(
    "--arms", type=options.Whole(2, _MOST_ARMS), default=5, show_default=True, help="How many arms there are."
)
@click.option(
    "--gap",
    "gaps",
    type=options.GAP,
    multiple=True,
    metavar="GAP",
    help="How far the others are behind the best: in units of the family, whose scale is 1, or with --share in "
    "points; 0.5 by default. Repeat it to give one for each.",
)
@click.option(
    "--family",
    type=click.Choice(list(FAMILIES)),
    default="gaussian",
    show_default=True,
    help="The law of the readings, of unit scale.",
)
@click.option(
    "--share",
    type=options.SHARE,
    help="Plan for shares: that of the best arm, such as 60%; gaps are then in points, such as 10%.",
)
@click.option("--pilot", metavar="FILE", help="Plan with the readings in FILE instead of a family.")
@click.option("--arm", metavar="COLUMN", help="The column of the pilot file that names the arm.")
@click.option("--value", metavar="COLUMN", help="The column of the pilot file that holds the reading.")
@click.option("--rounds", is_flag=True, help="Arms side by side in random order; blind by default.")
@options.shared("unit", *options.FORM, *options.QUESTION, "between", "json")
@click.option(
    "--plot",
    type=options.NewFile(dir_okay=False),
    metavar="FILE",
    help="Draw the table: PNG, SVG or PDF.",
)
def plan_command(
    *,
    arms: int,
    gaps: tuple[tuple[float, bool], ...],
    pilot: str | None,
    arm: str | None,
    value: str | None,
    unit: str | None,
    goal: Literal["max", "min"] | None,
    contamination: Contamination | None,
    tolerance: Tolerance,
    as_json: bool,
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
    source = click.get_current_context().get_parameter_source("contamination")
    if chosen["rounds"] and source is ParameterSource.DEFAULT:
        contamination = Contamination.of("blind")
    if contamination is None:
        msg = "a plan needs a share of bad readings to plan for: --contamination 0.05, not none"
        raise click.UsageError(msg)
    if tolerance.relative:
        amount = f"{100 * tolerance.amount:g}%"
        msg = f"--tolerance {amount} is relative; a plan needs units of the readings, such as --tolerance 0.1"
        raise click.UsageError(msg)
    if chosen["share"] is None and (percents := [gap for gap, percent in gaps if percent]):
        msg = (
            f"--gap {100 * percents[0]:g}% is a ratio, but the family has unit scale; write --gap {percents[0]:g} "
            f"for {percents[0]:g} of its scale, use --pilot FILE for readings, or --share for a gap in points"
        )
        raise click.UsageError(msg)
    form = {name: chosen.pop(name) for name in options.FORM}
    if pilot is not None:
        _refuse_beside_pilot("arms", "gaps", "family")
        how = Reduction.of(at_least=chosen["at_least"], at_most=chosen["at_most"])
        readings = load(pilot, Columns(arm, value, unit), how, Form.of(**form))
        goal = goal or ("min" if readings.timed and chosen["at_least"] is chosen["at_most"] is None else None)
        chosen["pilot"] = readings.tapes
    elif given := [name for name, said in {"arm": arm, "value": value, "unit": unit, **form}.items() if said]:
        msg = f"--{given[0].replace('_', '-')} says how a pilot file is read; give one with --pilot FILE"
        raise click.UsageError(msg)
    gap = [amount for amount, _ in gaps] if len(gaps) > 1 else gaps[0][0] if gaps else 0.5
    found = plan(arms=arms, gap=gap, goal=goal, contamination=contamination, tolerance=tolerance, **chosen)
    click.echo(json_text(found.to_dict()) if as_json else _text(found, _describe_defaults(pilot, chosen)))
    exports = edge.Exports()
    if plot is not None:
        from truearm.report.plot import save_plan

        with exports.writing(plot):
            save_plan(found, plot)
    sys.exit(exports.code(0 if found.identifiable else UNDECIDABLE))


def _describe_defaults(pilot: str | None, chosen: dict[str, Any]) -> str:
    """Return the defaults that the numbers rest on."""
    context, defaults = click.get_current_context(), []
    if context.get_parameter_source("gaps") is ParameterSource.DEFAULT:
        defaults.append(("a gap of 0.5 between the best arm and every other", "--gap"))
    if context.get_parameter_source("family") is ParameterSource.DEFAULT and chosen["share"] is None:
        defaults.append((f"{chosen['family']} readings of unit scale", "--family"))
    if pilot is not None or not defaults:
        return ""
    whats, hows = zip(*defaults, strict=True)
    return f" This assumes {' and '.join(whats)}; change it with {', '.join(hows)} or --pilot FILE."


def _refuse_beside_pilot(*names: str) -> None:
    """Refuse options that say what the readings of a pilot say already."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            flag = f"--{name.removesuffix('s') if name == 'gaps' else name}"
            msg = f"{flag} and --pilot exclude each other: arms, gaps and laws are those of the pilot's readings"
            raise click.UsageError(msg)


def _text(found: Plan, assumed: str = "") -> str:
    """Return a plan as text: a paragraph, what each method needs, and pulls against gap and contamination."""
    width = min(shutil.get_terminal_size().columns, 100)
    way = "toptwo" if found.wins is None else "paired"
    heading = f"Pulls `{way}` needs if the readings turn out clean, by gap and contamination to be allowed for:"
    parts = [
        click.wrap_text(f"{found}{assumed}", width),
        table(_needs(found)),
        f"{heading}\n\n{table(_grid(found))}",
    ]
    return "\n\n".join(parts)


def _needs(found: Plan) -> list[tuple[str, ...]]:
    if found.contamination.blind:
        return [("decision", "lower bound", "paired", "possible up to"), ("blind", *_outlook(found, found.clean))]
    outlooks = {
        "certified, readings clean": found.clean,
        "certified, at their worst": found.worst,
        "separated, at their worst": found.promised,
    }
    heading = ("decision", "lower bound", "toptwo" if found.wins is None else "paired", "possible up to")
    return [
        heading,
        *((name, *_outlook(found, outlook)) for name, outlook in outlooks.items()),
        *_algorithms(found),
    ]


def _outlook(found: Plan, outlook: Outlook) -> tuple[str, ...]:
    if not outlook.decidable:
        return "never", "never", percent(outlook.largest_eps, ROUND_FLOOR)
    bound = "-" if found.tolerance else count(math.ceil(outlook.lower_bound))
    return bound, count(math.ceil(outlook.expected)), percent(outlook.largest_eps, ROUND_FLOOR)


def _algorithms(found: Plan) -> list[tuple[str, ...]]:
    sizes = {"Algorithm 1": found.algorithm1, "Algorithm 3": found.algorithm3}
    return [
        (f"paper's {name}: sharp, printed", "", _size(size), "")
        for name, size in sizes.items()
        if found.applicable or size != Size(None, None)
    ]


def _size(size: Size) -> str:
    return ", ".join("never" if pulls is None else count(pulls) for pulls in (size.sharp, size.paper))


def _grid(found: Plan) -> list[tuple[str, ...]]:
    by_gap: dict[float, list[str]] = {}
    for cell in found.table:
        by_gap.setdefault(cell.gap, []).append("never" if cell.pulls is None else count(cell.pulls))
    levels = list(dict.fromkeys(cell.eps for cell in found.table))
    return [("gap", *map(percent, levels)), *((number(gap), *row) for gap, row in by_gap.items())]
