"""`truearm ledger`: the gates of a loop, what they spent, and what is guaranteed."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from truearm.claims.ledger import Gate, Settings
from truearm.cli import options
from truearm.cli.asked import Asked
from truearm.cli.edge import write
from truearm.cli.screen import Screen
from truearm.cli.setting import Setting
from truearm.commands.command import Command
from truearm.commands.revisions import Revision
from truearm.ledger import Ledger, at_level, read_ledger, tolerance_text
from truearm.report import tables, words
from truearm.report.export import json_text, ledger_document

__all__ = ["at_level", "ledger_command", "open_gate"]


@click.command("ledger")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@options.shared("json", "export_html")
def ledger_command(file: str, *, as_json: bool, html: str | None) -> None:
    """List the gates of a ledger: levels, evidence, verdicts, what is spent, and what is guaranteed.

    \b
    truearm race --ledger loop.db --base old -n old ./old -n new ./new     one more gate
    truearm ledger loop.db
    truearm ledger loop.db --export-html loop.html

    The file is recomputed while it is read; one that was changed is refused.
    """  # noqa: D301 - click wants the control character
    book = read_ledger(file)
    found = book.account
    if html is not None:
        from truearm.report.pages import ledger_page  # the terminal needs no templates

        write(html, ledger_page(found, Path(file).name))
    if as_json:
        click.echo(json_text({**ledger_document(found), "head": book.head}))
    elif html is None:
        screen = Screen.here()
        said = "\n".join(map(screen.wrap, words.ledger(found)))
        table = tables.table(tables.ledger_rows(found), screen.width) if found.gates else ""
        click.echo(screen.arrange([said], [table]))


def open_gate(asked: Asked, setting: Setting, revisions: Sequence[Revision]) -> tuple[Ledger, Gate]:
    """Open the ledger of a race and its next gate: from here on its level is spent."""
    path = Path(asked.ledger)
    known = read_ledger(path).settings if path.exists() and path.stat().st_size else Settings()
    expected = known.expected if asked.expected is None else asked.expected
    ledger = Ledger(path, delta=known.delta, error_rate=known.error_rate, expected=expected)
    commits = {revision.folder: revision.commit for revision in revisions}
    base = asked.base
    (candidate,) = (arm for arm in setting.arms if arm != base)
    details = {
        "metric": setting.metric,
        "goal": asked.goal or "min",
        "tolerance": tolerance_text(asked.tolerance),
        "commands": {command.name: _describe(command, commits) for command in setting.commands},
    }
    try:
        return ledger, ledger.open(candidate, base, details)
    except BaseException:
        ledger.close()
        raise


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
