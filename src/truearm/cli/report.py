"""`truearm report`: what is known from a saved study or race."""

import sys
from collections.abc import Sequence

import click

from truearm.claims.certify import ratios
from truearm.claims.gates import Gate, judge_gate
from truearm.claims.result import Result
from truearm.cli import options
from truearm.cli.edge import write
from truearm.cli.follower import Follower
from truearm.cli.gates import exit_code, suite_code
from truearm.cli.outcome import html_page
from truearm.cli.saved import Saved, open_log
from truearm.cli.screen import Screen
from truearm.commands.command import Command
from truearm.events import Reading
from truearm.report import tables, words
from truearm.report.export import csv_text, document, hyperfine_results, json_text
from truearm.report.numbers import unit_for


@click.command("report")
@click.argument("file", type=click.Path(dir_okay=False))
@options.shared("json")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a table in Markdown.")
@click.option("--csv", "as_csv", is_flag=True, help="Print one row per arm as CSV.")
@options.shared("export_html")
@click.pass_context
def report_command(
    ctx: click.Context, /, file: str, *, as_json: bool, as_markdown: bool, as_csv: bool, html: str | None
) -> None:
    """Print what is known from a saved study or race, finished or not.

    \b
    truearm report run.db
    truearm report run.db --export-html report.html
    truearm report run.db --json

    Pulls without a reading count at their worst. Nothing is written to the study.
    """  # noqa: D301 - click wants the control character
    if as_json + as_markdown + as_csv + (html is not None) > 1:
        msg = "choose one of --json, --markdown, --csv and --export-html"
        raise click.UsageError(msg)
    with open_log(file) as saved:
        study = saved.study
        if saved.suite is not None and saved.setting is not None:
            found, makers = Follower(saved.suite, study).makers(saved.setting)
            kind = "json" if as_json else "markdown" if as_markdown else "csv" if as_csv else "text"
            if html is not None:
                write(html, makers["html"]())
                return
            click.echo(makers[kind]().rstrip("\n"))
            ctx.exit(suite_code(found))
        study.stop()  # this object only: the log does not know of it
        result = study.result if saved.setting is None else saved.setting.mark(study.result)
        assert result is not None
        gate = judge_gate(result, saved.setting.guard if saved.setting else None)
        if html is not None:
            metric = saved.setting.metric if saved.setting else None
            unit = unit_for(metric or "stdout", result.arms, target=study.problem.target)
            write(html, html_page(result, study.readings, unit, metric, gate))
            return
        click.echo(_text(saved, result, gate, as_json=as_json, as_markdown=as_markdown, as_csv=as_csv))
        sys.exit(exit_code(result, gate=gate))


def _text(
    saved: Saved, result: Result, gate: Gate | None, *, as_json: bool, as_markdown: bool, as_csv: bool
) -> str:
    tapes = saved.study.readings
    metric = saved.setting.metric if saved.setting else "stdout"
    runs = [event for event in saved.study.events() if isinstance(event, Reading)]
    commands: Sequence[Command] = saved.setting.commands if saved.setting else ()
    if as_json:
        found = document(result, tapes, metric=metric if commands else None, seed=saved.study.seed)
        found.update({} if gate is None else {"verdict": gate.verdict})
        return json_text({**found, "results": hyperfine_results(commands, runs)} if commands else found)
    if as_csv:
        return csv_text(result, hyperfine_results(commands, runs)).rstrip("\n")
    unit = unit_for(metric, result.arms, target=result.problem.target)
    timed = saved.setting is not None and saved.setting.conditions.timeout is not None
    censored = result.problem.censored if timed else None
    voice = words.voice_for(result, metric, unit) if saved.setting else words.PLAIN
    rows = tables.arm_rows(result, voice, ratios(result), censored=censored)
    said = words.lines(result, voice=voice._replace(options=True), gate=gate)
    if as_markdown:
        return tables.markdown(rows, "\n".join(said))
    screen = Screen.here()
    answer = "\n".join(map(screen.wrap, said))
    return f"{answer}\n\n{tables.table(rows, screen.width if screen.terminal else None)}"
