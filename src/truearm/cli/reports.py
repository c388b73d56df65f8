"""`truearm report` and `truearm ledger`: what a saved file shows; and how a race opens a gate of a ledger."""

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from truearm.claims.gates import Account, LedgerGate
from truearm.cli.answer import FORMS, GOOD, Answer, Screen, pages, show
from truearm.cli.asked import RaceOptions
from truearm.cli.edge import ERROR
from truearm.cli.options import declare
from truearm.cli.outcome import race_answer
from truearm.cli.saved import Setting, open_log
from truearm.commands.command import Command
from truearm.commands.revisions import Revision
from truearm.ledger import Ledger, read_ledger
from truearm.problem import refuse
from truearm.report import tables, words
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
    found = read_ledger(file)
    rows = tables.ledger_rows(found) if found.gates else []
    text = partial(Screen.lay_out, lines=words.ledger(found), rows=rows)
    forms = {
        "json": lambda: json_text({**ledger_document(found), "head": found.head}),
        "html": lambda: pages().ledger_page(found, Path(file).name),
    }
    ctx.exit(show(ctx, Answer(text, GOOD, forms), silent=export_html is not None and not json))


def read_account(asked: RaceOptions) -> Account:
    """Return the account of the ledger of a race, which may not exist yet."""
    path, fixed = Path(asked.ledger), {} if asked.expected is None else {"expected": asked.expected}
    known = read_ledger(path) if path.exists() and path.stat().st_size else Account()
    return replace(known, **fixed)


def open_gate(ledger: Ledger, asked: RaceOptions, setting: Setting, revisions: Sequence[Revision]) -> LedgerGate:
    """Open the next gate of a ledger: from here on its level is spent."""
    commits = {revision.folder: revision.commit for revision in revisions}
    (candidate,) = (arm for arm in setting.arms if arm != asked.base)
    details = {
        "metric": setting.metric,
        "goal": asked.goal or "min",
        "tolerance": str(asked.tolerance),
        "commands": {command.name: _describe(command, commits) for command in setting.commands},
    }
    return ledger.open(candidate, asked.base, details)


def _describe(command: Command, commits: dict[str, str | None]) -> dict[str, Any]:
    """Return what a ledger keeps of a command: its text, its commit, and the digest of its program."""
    found: dict[str, Any] = {"command": command.text}
    if command.cwd in commits:
        found["commit"] = commits[command.cwd]
    word = command.argv[0] if command.shell is None else command.text.split()[0]
    program = Path(command.cwd or ".", word) if "/" in word else Path(shutil.which(word) or "/")
    if program.is_file():
        found["sha256"] = hashlib.sha256(program.read_bytes()).hexdigest()
    return found
