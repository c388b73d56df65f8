"""`truearm evaluate`: which of several commands has the highest mean score on a list of items."""

import csv
import json as json_format
import shlex
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from truearm.claims.certificate import Status
from truearm.cli.answer import answer_with, show
from truearm.cli.options import declare, explicit_options
from truearm.commands.command import Command, needs_shell
from truearm.commands.measure import Conditions, measure
from truearm.commands.process import end_runs
from truearm.commands.terminal import interruptible
from truearm.errors import CommandFailed, InvalidArgument, printable
from truearm.evaluation import evaluate
from truearm.problem import refuse
from truearm.report import words
from truearm.report.export import document
from truearm.report.numbers import name_of

ITEM = "{item}"
_TABLES = {".csv": ",", ".tsv": "\t"}
_OPTIONS = """
--items PATH  The items: one per line, or per row of a .csv or .tsv file.
--arm NAME=COMMAND...  A command that prints the score of an item on its last line; repeatable. {item} is replaced
    by the item, as one argument; without {item} the command reads it from standard input.
+ score-range goal delta
--contamination EPS  At most this fraction of the scores of each arm may be wrong, fixed before items are drawn.
    [default: 0]
+ tolerance control tiers
-M, --max-items N  Stop after this many items.
--workers N  Commands to run at once; one for each arm by default.
+ timeout
--on-error missing|stop  Count the score of a command that fails as missing, at its worst, or stop. [default:
    missing]
+ seed
--store FILE  Log every score in FILE; after a crash the same command continues, and scores no item twice.
+ quiet json export-html
"""


@click.command("evaluate")
@declare(_OPTIONS, items={"required": True}, arm={"required": True})
@click.pass_context
def evaluate_command(ctx: click.Context, /, *, items: str, arm: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401
    """Find the command with the highest mean score on a list of items, scoring no more of them than needed.

    \b
    truearm evaluate --items q.jsonl --arm 'a=./a {item}' --arm 'b=./b {item}'
    truearm evaluate --items q.csv --arm a=./a --arm b=./b --store run.db

    Items are drawn in random order; every command scores the same items, and those that lost are dropped. A row of
    a table is a JSON object by column name. Commands run without a shell: write sh -c './ask "$1" | tail -1' sh
    {item}. Scores are in --score-range, 0 to 1 by default.

    Exit codes: 0 decided; 2 usage, or a command failed; 3 not decided; 4 doubtful.
    """  # noqa: D301 - click wants the control character
    chosen = explicit_options(ctx, besides=("items", "arm", "timeout", "workers", "quiet", "json", "export_html"))
    scorers, item_list = _scorers(arm, options["timeout"]), _read_items(items)
    pool = ThreadPoolExecutor(options["workers"] or len(scorers))
    with interruptible():
        try:
            result = evaluate(scorers, item_list, workers=pool, progress=not options["quiet"], **chosen)
        finally:
            end_runs(pool)
    terms = words.default_terms(result)._replace(options=True)
    goes_on = options["store"] and result.status is Status.EXHAUSTED and options["max_items"] is None
    notes = [f"All scores are in {name_of(options['store'])}; the same command continues."] if goes_on else []
    make_document = partial(document, result, result.readings or {})
    ctx.exit(show(ctx, answer_with(result, terms, notes=notes, document=make_document)))


def _read_items(path: str) -> list[str]:
    """Return the items of a file as text: a row of a table as a JSON object, a JSON string as its text."""
    kind = Path(path).suffix.lower()
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        lines = [line.strip("\r") for line in text.split("\n") if line.strip()]
        values = [json_format.loads(line) for line in lines] if kind in (".json", ".jsonl", ".ndjson") else lines
    except UnicodeDecodeError:
        raise InvalidArgument(f"{path!r} is not UTF-8; convert it, such as with iconv") from None
    except ValueError as error:
        msg = f"a line of {path!r} is not JSON ({error}); write each item as JSON on a line of its own"
        raise InvalidArgument(msg) from None
    refuse("\0" in text, f"{path!r} contains a NUL character, which no argument may; remove it")
    if kind not in _TABLES:
        return [value if isinstance(value, str) else line for value, line in zip(values, lines, strict=True)]
    rows = csv.DictReader(text.splitlines(keepends=True), delimiter=_TABLES[kind], restkey="", restval="")
    return [
        next(iter(row.values())) if len(row) == 1 else json_format.dumps(row, ensure_ascii=False) for row in rows
    ]


def _score(words: tuple[str, ...], conditions: Conditions, item: str) -> float:
    """Return the score of an item that a command prints."""
    command = Command(shlex.join(word.replace(ITEM, item) for word in words), shell="none")
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        if not any(ITEM in word for word in words):
            file.write(item)
            file.flush()
            command = replace(command, input=file.name)
        try:
            measured = measure(command, "stdout", conditions)
        except CommandFailed as error:
            # the message leaves the item out, so that equal failures are counted together
            start, last = f"command {printable(error.command)!r}", error.stderr_tail.strip().rpartition("\n")[2]
            why = f"exit code {error.exit_code}: {last}".rstrip(": ")
            why = why if error.exit_code else "it" + str(error).removeprefix(start).partition("; print it")[0]
            raise CommandFailed(why, command=error.command, exit_code=error.exit_code) from None
    if measured.run.timed_out:
        raise TimeoutError(f"killed after {conditions.timeout:g} seconds")
    return measured.value


def _scorers(arms: tuple[str, ...], timeout: float | None) -> dict[str, Callable[[str], float]]:
    scorers: dict[str, Callable[[str], float]] = {}
    refuse(len(arms) < 2, f"--arm must name two commands or more, but got {arms[0]!r} alone; add another --arm")
    for arm in arms:
        name, _, text = arm.partition("=")
        msg = f"an arm is written NAME=COMMAND, such as 'a=./ask model-a {ITEM}', but got {arm!r}"
        refuse(not name.strip() or not text.strip(), msg)
        refuse(name in scorers, f"two arms are called {name!r}; give each its own name")
        msg = f"arm {name!r} needs a shell, and commands run without one; write sh -c '...\"$1\"...' sh {ITEM}"
        refuse(needs_shell(text), msg)
        parts = tuple(shlex.split(text))
        filled = [word.replace(ITEM, "x") for word in parts if ITEM in word]
        is_code = ITEM in parts[0] or any(shlex.quote(word) != word for word in filled)
        refuse(is_code, f"{ITEM} in {text!r} would become code; make it a separate word, after the program")
        scorers[name] = partial(_score, parts, Conditions(timeout=timeout))
    return scorers
