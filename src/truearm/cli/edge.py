"""The edge of the command line: whatever goes wrong becomes words and an exit code that no gate uses.

Here live what every verb ends through, and how a file is written that the user named. An error that was foreseen
says what to do. One that was not is a defect of ours: it is called so, names where it happened, and is no
traceback.
"""

import errno
import io
import os
import re
import sqlite3
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from truearm.commands.signals import uninterrupted
from truearm.errors import ARGUMENT, InvalidArgument, TruearmError, printable

FAILED = 2  # wrong usage, or a command, file, disk or log failed
UNFORESEEN = "truearm met an error of its own"
_LONGEST = 9000  # letters of a message: what a command said last may be long, a name of a file's column too
_MEANT = {  # words of other tools and of the theory
    **dict.fromkeys(("--eps", "--epsilon"), ("--contamination",)),
    **dict.fromkeys(("--alpha", "--confidence", "--error"), ("--delta",)),
    **dict.fromkeys(("--minimize", "--maximize", "--higher-is-better", "--lower-is-better"), ("--goal",)),
    **dict.fromkeys(("--reps", "--repeat", "--iterations", "--number"), ("--runs",)),
    **dict.fromkeys(("--export-asciidoc", "--export-orgmode"), ("--export-markdown",)),
    "--baseline": ("--control",),
}
_GONE = (errno.EPIPE, errno.ESHUTDOWN)  # nobody reads what we print


class Failure(click.ClickException):
    """Something failed that is no wrong usage."""

    exit_code = FAILED


def guarded(work: Callable[[], Any]) -> int:
    """Do some work of the command line and return its exit code; errors are told on standard error."""
    try:
        return _ended(work)
    except KeyboardInterrupt:  # a second one, while the first was being told
        return FAILED


def _ended(work: Callable[[], Any]) -> int:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        with suppress(AttributeError):  # what is no letter there is shown by its number
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = work()
        if sys.stdout is not None:
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # this is the edge
        with uninterrupted():
            _let_go(sys.stdout)
            _tell(_worded(error))
        return FAILED
    except SystemExit as ended:  # click ends with 1 if nobody reads its output; verbs hand a gate's code back
        return ended.code if isinstance(ended.code, int) and ended.code != 1 else FAILED
    return code if isinstance(code, int) else 0


def _worded(error: BaseException) -> click.ClickException | None:
    """Return an error as what is said of it; None if nobody would hear it."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        return click.UsageError(_unknown(error.option_name, error.ctx), error.ctx)
    if isinstance(error, click.MissingParameter) and error.ctx is not None:
        return click.UsageError(_missing(error), error.ctx)
    if isinstance(error, click.ClickException):
        return error
    if isinstance(error, OSError) and error.errno in _GONE:
        return None
    return Failure(str(error)) if isinstance(error, TruearmError) else Failure(_explained(error))


def as_options(text: str, command: click.Command, argument: str | None = None) -> str:
    """Return a text with Python arguments (`name=value`) written as options of the command.

    Parameters
    ----------
    argument
        The argument that the text is about; it may begin with its name.
    """
    params = [one for one in command.params if isinstance(one, click.Option)]
    options = {
        opt.lstrip("-").replace("-", "_"): opt for one in params for opt in one.opts if opt.startswith("--")
    }

    def write(found: re.Match[str]) -> str:
        if found[1] not in options:
            return found[0]
        value = {"True": "", "None": "none"}.get(found[2], found[2]).strip("()").replace(", ", " ")
        return f"{options[found[1]]} {value}".rstrip()

    text = ARGUMENT.sub(write, text).replace(", --", " --")
    if argument in options:
        text = re.sub(rf"^{argument}\b|(?<=remove ){argument}\b", options[argument], text)
    return text


def _missing(error: click.MissingParameter) -> str:
    """Return what is said where words are missing: the first example of the verb's help."""
    said = error.format_message().rstrip(".")
    lines = (error.ctx.command.help or "").splitlines() if error.ctx is not None else []
    examples = [re.split(r" {2,}", line.strip())[0] for line in lines if line.strip().startswith("truearm ")]
    return f"{said}; for example: {examples[0]}" if examples else said


def _unknown(option: str, ctx: click.Context) -> str:
    """Return what is said of an option that a verb does not have."""
    if option == "--missing":
        return "--missing was removed: missing readings always count at their worst"
    known = [name for parameter in ctx.command.params for name in parameter.opts if name.startswith("--")]
    near = [name for name in _MEANT.get(option, ()) if name in known] or get_close_matches(option, known, 1, 0.7)
    near = near or [name for name in known if name.rpartition("-")[2] == option.rpartition("-")[2]]
    if near:
        hint = f"did you mean {near[0]}?"
    elif ctx.command.name == "race":
        hint = (
            f"put each command in quotes, such as 'gzip -kf data'; `{ctx.command_path} --help` lists the options"
        )
    else:
        hint = f"`{ctx.command_path} --help` lists them"
    return f"{ctx.command_path} has no option {option!r}; {hint}"


def _explained(error: BaseException) -> str:
    words = str(error)
    if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):  # what numpy makes of it
        error = KeyboardInterrupt()
    match error:
        case KeyboardInterrupt() | click.Abort():
            words = "interrupted; nothing was decided"
        case sqlite3.Error():
            words = f"the log cannot be read or written: {error}; check the disk, or choose another file"
        case OSError():
            where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
            words = f"{where}{error.strerror or error}; choose another file, or make room"
        case MemoryError():
            words = "there is not enough memory for this; give it less at a time"
        case ValueError() if "null byte" in words or "null character" in words:
            words = "an argument holds a NUL character; remove it"
        case _:
            last = traceback.extract_tb(error.__traceback__)[-1:]
            place = "".join(f" ({Path(frame.filename).name}, line {frame.lineno})" for frame in last)
            what = f"{type(error).__name__}: {words}"
            words = f"{UNFORESEEN}{place}: {what}; please report it with what you typed"
    return words


def _tell(error: click.ClickException | None) -> None:
    if error is None:
        return
    words = io.StringIO()
    error.show(words)
    said = printable(words.getvalue().rstrip("\n"), lines=True)
    with suppress(OSError, ValueError):
        click.echo(said if len(said) <= _LONGEST else f"{said[:_LONGEST]} ...", err=True)


def _let_go(stream: Any) -> None:  # noqa: ANN401 - a text stream, or None
    """Print what was said before an error, or, if that cannot be, let go of it: it would fail again at the end."""
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):
        with suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def load(*modules: str) -> None:
    """Import modules with signals held back: Python loses some that arrive during an import."""
    missing = [name for name in modules if name not in sys.modules]
    if missing:
        with uninterrupted():
            for name in missing:
                import_module(name)


def write(path: str | Path, text: str, *, append: bool = False) -> None:
    """Write a text file that the user named; a pipe that nobody reads is an error, and not waited for."""
    descriptor = _opened(path, os.O_APPEND if append else os.O_TRUNC)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:  # noqa: PTH123
            file.write(text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _opened(path: str | Path, how: int) -> int:
    at_once = getattr(os, "O_NONBLOCK", 0)  # not on Windows, where a path leads to no pipe
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | at_once | getattr(os, "O_BINARY", 0) | how, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "nobody reads this pipe", os.fspath(path)) from None
        raise
    if at_once:
        os.set_blocking(descriptor, True)
    return descriptor


class Exports:
    """Files to write beside a result that is told anyway: each that fails is told, and the end is an error."""

    def __init__(self) -> None:
        self.failed = False

    @contextmanager
    def writing(self, path: str | Path) -> Iterator[None]:
        """Write a file in the body; what goes wrong with the disk is told."""
        try:
            yield
        except OSError as error:
            self.failed = True
            why = error.strerror or error
            _tell(Failure(f"{path} cannot be written: {why}; the result is told all the same"))

    def code(self, otherwise: int = 0) -> int:
        """Return the exit code of a verb that would end with another one."""
        return FAILED if self.failed else otherwise


def check_file(path: str | Path) -> None:
    """Raise if a path exists and is not a regular file: a pipe would block, a device would not keep a log."""
    with suppress(FileNotFoundError, NotADirectoryError):
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - it follows links
            msg = f"{path} is not an ordinary file; choose another one"
            raise InvalidArgument(msg)
