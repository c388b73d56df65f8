"""`truearm report` and `truearm ledger`: show what is in a saved file."""

from functools import partial
from pathlib import Path

import click

from truearm.cli.answer import FORMS, GOOD, Answer, Screen, pages, show
from truearm.cli.errors import ERROR
from truearm.cli.options import declare
from truearm.cli.race_answer import race_answer
from truearm.cli.race_log import open_log
from truearm.ledger import read_ledger
from truearm.problem import refuse
from truearm.report import summaries, tables
from truearm.report.export import json_text, ledger_document

_FORMATS = """
+ json
--markdown  Print a table in Markdown.
--csv  Print one row per arm as CSV.
+ export-html
"""


@click.command("report")
@click.argument("file", type=click.Path(dir_okay=False))
@declare(_FORMATS)
@click.pass_context
def report_command(ctx: click.Context, /, file: str, *, export_html: str | None, **_: bool) -> None:
    """Print what is known from a saved study or race, finished or not.

    \b
    truearm report run.db
    truearm report run.db --export-html report.html
    truearm report run.db --json

    Pulls without a reading count at their worst. Nothing is written to the study.
    """  # noqa: D301 - click wants the control character
    chosen = [f"--{form}" for form in FORMS if ctx.params.get(form)]
    refuse(len(chosen) > 1, f"{' and '.join(chosen)} both go to standard output; choose one of them")
    with open_log(file) as race:
        if race.suite is None:
            race.study.stop()  # in memory only; the log stays as it is
        code = show(ctx, race_answer(race), silent=export_html is not None and not chosen)
    ctx.exit(code if code == ERROR or export_html is None else GOOD)


@click.command("ledger")
@click.argument("file", type=click.Path(dir_okay=False))
@declare("+ json export-html")
@click.pass_context
def ledger_command(ctx: click.Context, /, file: str, *, json: bool, export_html: str | None) -> None:
    """List the gates of a ledger: levels, evidence, verdicts, what is spent, and what is guaranteed.

    \b
    truearm race --ledger loop.db --base old -n old ./old -n new ./new  a new gate
    truearm ledger loop.db
    truearm ledger loop.db --export-html loop.html

    The file is verified while it is read; one that was changed is refused.
    """  # noqa: D301 - click wants the control character
    account = read_ledger(file)
    rows = tables.ledger_rows(account) if account.gates else []
    text = partial(Screen.lay_out, lines=summaries.ledger(account), rows=rows)
    forms = {
        "json": lambda: json_text({**ledger_document(account), "head": account.head}),
        "html": lambda: pages().ledger_page(account, Path(file).name),
    }
    ctx.exit(show(ctx, Answer(text, GOOD, forms), silent=export_html is not None and not json))
