"""`truearm analyze`: which arm is best in data already there."""

import shutil
import sys
from collections.abc import Iterator
from decimal import ROUND_FLOOR
from typing import Any

import click
from click.core import ParameterSource

from truearm.analysis import analyze
from truearm.claims.certificate import Status
from truearm.claims.result import Analysis
from truearm.cli import edge, options
from truearm.cli.screen import Screen
from truearm.data.columns import looks_like_time
from truearm.evidence import Breakdown
from truearm.report.export import json_text
from truearm.report.numbers import count, name_of, percent
from truearm.report.tables import arm_rows, control_rows, table, tier_rows
from truearm.report.words import analysis_voice, breakdowns, lines, quality

UNDECIDED, DOUBTFUL = 3, 4  # exit codes: no decision, and readings that contradict an assumption


@click.command("analyze", context_settings={"max_content_width": 100})
@click.argument("files", metavar="FILE...", type=click.Path(allow_dash=True), nargs=-1, required=True)
@click.option("--arm", metavar="COLUMN", help="The column that names the arm.")
@click.option("--value", metavar="COLUMN", help="The column that holds the reading.")
@options.shared("unit", "order", "round", *options.FORM, *options.QUESTION, "score_range")
@click.option(
    "--of",
    type=options.Whole(1),
    help="With --score-range: these items are the first of a random order of a list of this length.",
)
@click.option(
    "--design",
    type=click.Choice(["sequential", "fixed"]),
    default="sequential",
    show_default=True,
    help="'sequential' holds however often the data were looked at; 'fixed' has more power, and holds if the "
    "number of readings of every arm was chosen in advance.",
)
@options.shared("between")
@click.option("--dependent-arms", is_flag=True, help="Readings of different arms move together.")
@click.option("--pairs", is_flag=True, help="Compare every arm with every other.")
@click.option("--control", metavar="ARM", help="Say which of the other arms are better than this one.")
@click.option(
    "--fdr",
    is_flag=True,
    help="With --control: bound the mean share of false ones among the arms named, not the chance of any.",
)
@click.option("--tiers", is_flag=True, help="Put all arms in order, as far as it is certain: groups and places.")
@click.option(
    "--query", metavar="SQL", help="The rows to analyze, in SQL: of a database, or of FILE, called data in it."
)
@options.shared("json", "export_html", "verbose")
def analyze_command(
    files: tuple[str, ...],
    *,
    value: str | None,
    as_json: bool,
    html: str | None,
    verbose: bool,
    **chosen: Any,  # noqa: ANN401 - the options of `analyze`
) -> None:
    """Find the best arm in a file of readings, even if some of them are wrong.

    \b
    truearm analyze data.csv --arm variant --value revenue
    truearm analyze data.parquet --arm variant --value latency_ms --goal min --quantile 0.95
    truearm analyze data.parquet --arm variant --value latency_ms --at-most 200
    truearm analyze log.csv --arm variant --value ms --unit user --order time
    truearm analyze data.csv --arm variant --value revenue --control A
    truearm analyze data.csv --tiers                   every column is an arm
    truearm analyze scores.csv --arm model --value score --round item --score-range 0 1
    truearm analyze hyperfine.json                     what hyperfine or pyperf exported: less is better
    truearm analyze old.json new.json                  the same benchmark, before and after
    truearm analyze preise.csv --arm laden --value preis --decimal ,
    zcat log.csv.gz | truearm analyze - --arm site --value ms
    truearm analyze 'logs/*.parquet' --arm site --value ms         of any size: counted, not read
    truearm analyze postgres://host/shop --query 'select site, ms from visits' --arm site --value ms

    Reads CSV, TSV, Parquet, JSON lines, JSON, Arrow and Excel. Ends with 0 if there is a best arm (certified,
    tolerable or separated; with --control if an arm beats it, or none does), with 3 if the data do not decide.
    """  # noqa: D301 - click wants the control character
    context = click.get_current_context()
    # defaults depend on what is compared, and an export of a race brings its own
    chosen = {k: v for k, v in chosen.items() if context.get_parameter_source(k) is not ParameterSource.DEFAULT}
    found = analyze(list(files), value=value, **chosen)
    if as_json:
        click.echo(json_text(found.to_dict()))
    else:
        advice = _advice(found, None if "goal" in chosen else value)
        texts = "\n\n".join((describe(found, verbose=verbose), *map(_wrap, advice)))
        click.echo(edge.as_options(texts, context.command))
    exports = edge.Exports()
    if html is not None:
        from truearm.report.pages import page

        with exports.writing(html):
            edge.write(html, page(found, found.readings, unit=analysis_voice(found).unit))
    undecided = DOUBTFUL if found.status is Status.DOUBTFUL else UNDECIDED
    sys.exit(exports.code(0 if found.answered else undecided))


def _advice(found: Analysis, value: str | None) -> Iterator[str]:
    """Give what to know of the file, and what would help: one sentence each.

    Parameters
    ----------
    value
        The column of the readings, unless --goal was given.
    """
    yield from found.about_data
    if value is not None and found.problem.target != "share" and looks_like_time(value):
        yield f"Larger was taken to be better; if {name_of(value)} is a time, use --goal min."
    sizes = set(found.pulls.values())
    planned = (
        len(sizes) == 1 and min(sizes) > 1 and found.design == "sequential" and not found.problem.dependent_arms
    )
    if planned and found.status is Status.EXHAUSTED:
        yield (
            f"Every arm has {count(sizes.pop())} readings: if that number was chosen before the first of them, "
            "--design fixed has more power."
        )


def describe(found: Analysis, *, verbose: bool = False) -> str:
    """Return an analysis as text: the answer, and tables of arms, tiers and pairs."""
    screen = Screen.here()
    width = screen.width if screen.terminal else None
    more = (control_rows(found), tier_rows(found))
    tables = [rows for rows in more if rows]
    if any(contest.breakdown for contest in found.contests):
        tables.append(_contests(found))
    voice = analysis_voice(found)._replace(options=True)
    said = lines(found, voice=voice, verbose=verbose)
    parts = ["\n".join(map(_wrap, said)), table(arm_rows(found, voice), width)]
    parts += [table(rows, width) for rows in tables]
    if verbose:
        parts += [_wrap(quality(found, voice)), _wrap(breakdowns(found)), screen.bullets(found.assumptions)]
    return "\n\n".join(filter(None, parts))


def _wrap(words: str) -> str:
    return click.wrap_text(words, min(shutil.get_terminal_size().columns, 100))


def _contests(found: Analysis) -> list[tuple[str, ...]]:
    heading = ("better", "worse", "log-evidence", "p-value", "oblivious", "prescient", "malicious", "holds")
    return [
        heading,
        *(
            (
                name_of(c.better),
                name_of(c.worse),
                f"{c.log_evidence:.2f}",
                f"{c.p_value:.3g}",
                *_points(c.breakdown),
                "yes" if c.excluded else "no",
            )
            for c in sorted(found.contests, key=lambda c: -c.log_evidence)
        ),
    ]


def _points(points: Breakdown | None) -> tuple[str, ...]:
    return tuple("-" if point is None else percent(point, ROUND_FLOOR) for point in points or ())
