"""Turn errors into one sentence and exit code 2, which no gate uses.

An unexpected error is a defect of truearm: the message names its place, without a traceback.
"""

import errno
import io
import os
import re
import shutil
import sqlite3
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from truearm.commands.terminal import hold_signals, is_terminal
from truearm.errors import ARGUMENT, TruearmError, printable

ERROR = 2  # wrong usage, or a command, file, disk or log failed
INTERNAL_ERROR = "internal error in truearm"
_SYNONYMS = {  # options of other tools, and terms from the theory
    **dict.fromkeys(("--eps", "--epsilon"), "--contamination"),
    **dict.fromkeys(("--alpha", "--confidence", "--error"), "--delta"),
    **dict.fromkeys(("--minimize", "--maximize", "--higher-is-better", "--lower-is-better"), "--goal"),
    **dict.fromkeys(("--reps", "--repeat", "--iterations", "--number"), "--runs"),
    **dict.fromkeys(("--export-asciidoc", "--export-orgmode"), "--export-markdown"),
    **dict.fromkeys(("--baseline", "--reference"), "--control"),
}
_PIPE_ERRORS = (errno.EPIPE, errno.ESHUTDOWN)  # the reader of our output is gone


class Failure(click.ClickException):
    """A failure that is not wrong usage."""

    exit_code = ERROR


def run_verb(verb: Callable[[], Any]) -> int:
    """Run a verb and return its exit code; errors go to standard error."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = verb()
        if sys.stdout is not None:
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        with suppress(KeyboardInterrupt), hold_signals():  # a second one, while the first is being reported
            _flush_or_drop(sys.stdout)
            show_error(_to_click_error(error))
        return ERROR
    except SystemExit as ended:  # click ends with 1 if its output is closed; verbs return a gate's code
        return ended.code if isinstance(ended.code, int) and ended.code != 1 else ERROR
    return code if isinstance(code, int) else 0


def _to_click_error(error: BaseException) -> click.ClickException | None:
    """Return an error with its message; None if the reader of our output is gone."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        return click.UsageError(_describe_unknown(error.option_name, error.ctx), error.ctx)
    if isinstance(error, click.MissingParameter) and error.ctx is not None:
        return click.UsageError(_describe_missing(error, error.ctx), error.ctx)
    if isinstance(error, click.ClickException):
        return error
    if isinstance(error, OSError) and error.errno in _PIPE_ERRORS:
        return None
    return Failure(str(error) if isinstance(error, TruearmError) else _explain(error))


def as_options(text: str, command: click.Command, argument: str | None = None) -> str:
    """Return text with arguments (`name=value`) as options; it may begin with the `argument` it is about."""
    flags = [flag for parameter in command.params for flag in parameter.opts if flag.startswith("--")]
    options = {flag.removeprefix("--").replace("-", "_"): flag for flag in flags}

    def write(found: re.Match[str]) -> str:
        if found[1] not in options:
            return found[0]
        value = {"True": "", "None": "none"}.get(found[2], found[2]).strip("()").replace(", ", " ")
        return f"{options[found[1]]} {value}".rstrip() + "\0"

    # options have no comma between them
    text = ARGUMENT.sub(write, text).replace("\0, --", " --").replace("\0", "")
    if argument in options:
        text = re.sub(rf"^{argument}\b|(?<=remove ){argument}\b", options[argument], text)
    return text


def _describe_missing(error: click.MissingParameter, ctx: click.Context) -> str:
    """Return which argument is missing, with the first example of the verb's help."""
    message, verb = error.format_message().rstrip("."), f"truearm {ctx.command.name} "
    lines = (ctx.command.help or "").splitlines()
    examples = [re.split(r" {2,}", line.strip())[0] for line in lines if line.strip().startswith(verb)]
    return f"{message}; for example: {examples[0]}" if examples else message


def _describe_unknown(option: str, ctx: click.Context) -> str:
    known = [name for parameter in ctx.command.params for name in parameter.opts if name.startswith("--")]
    near = [name for name in known if name == _SYNONYMS.get(option)] or get_close_matches(option, known, 1, 0.75)
    quotes = "put each command in quotes, such as 'gzip -kf data'; " if ctx.command.name == "race" else ""
    hint = f"did you mean {near[0]}?" if near else f"{quotes}`{ctx.command_path} --help` lists the options"
    return f"{ctx.command_path} has no option {option!r}; {hint}"


def _explain(error: BaseException) -> str:
    message = str(error)
    if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):  # as numpy raises it
        error = KeyboardInterrupt()
    match error:
        case KeyboardInterrupt() | click.Abort():
            return "interrupted; nothing was decided"
        case sqlite3.Error():
            return f"the log cannot be read or written: {error}; check the disk, or choose another file"
        case OSError():
            where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
            remedy = (
                "give the path of a file" if error.errno == errno.ENOENT else "choose another file, or make room"
            )
            return f"{where}{error.strerror or error}; {remedy}"
        case MemoryError():
            return "not enough memory for this; use less data at a time"
        case ValueError() if "null byte" in message or "null character" in message:
            return "an argument contains a NUL character; remove it"
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" ({Path(frame.filename).name}, line {frame.lineno})" for frame in last)
    return f"{INTERNAL_ERROR}{place}: {type(error).__name__}: {message}; please report it with what you typed"


def show_error(error: click.ClickException | None) -> None:
    """Print an error on its own lines; nothing for None."""
    if error is None:
        return
    text = io.StringIO()
    error.show(text)
    message = printable(text.getvalue().rstrip("\n"), lines=True)[:9000]  # a name may be as long as a file
    with suppress(OSError, ValueError):
        if is_terminal(sys.stderr):
            width = shutil.get_terminal_size().columns
            message = "\n".join(fill(line, width, break_on_hyphens=False) for line in message.split("\n"))
        click.echo(message, err=True)


def _flush_or_drop(stream: Any) -> None:  # noqa: ANN401 - a text stream, or None
    """Print what is buffered, or drop it if that fails: it would fail again when the process ends."""
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):
        with suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
