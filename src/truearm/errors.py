"""Everything truearm raises on purpose. Each message names the argument, the value and the remedy.

TruearmError
├── InvalidArgument   (also ValueError)    a value outside its domain; nothing was computed
│   └── OutOfReach                         a theorem's condition fails; the message says what would satisfy it
├── ProtocolError     (also RuntimeError)  ask and tell used in an order that has no meaning; nothing changed
├── ArmFailed         (also RuntimeError)  a pull raised; carries what was known up to then
├── CommandFailed     (also RuntimeError)  a user's command ended badly; carries its exit code and last words
└── VerificationError (also ValueError)    a certificate and the readings do not fit, or a log was changed

Not knowing is a result, never an error: see `Result.status`.

How a message writes an argument is up to whoever is asked for it: `given` writes it as the caller would.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Literal

_VOICE: ContextVar[Literal["python", "options", "json"]] = ContextVar("voice", default="python")
_NAMES: ContextVar[Mapping[str, str]] = ContextVar("names", default=MappingProxyType({}))


def given(**arguments: object) -> str:
    """Return arguments as the caller writes them: in Python, on a command line, or in JSON."""
    match _VOICE.get():
        case "options":
            return " ".join(
                f"{argument(name)}{'' if value is True else f' {written(value)}'}"
                for name, value in arguments.items()
            )
        case "json":
            return ", ".join(f'"{word(name)}": {written(value)}' for name, value in arguments.items())
    return ", ".join(f"{word(name)}={written(value)}" for name, value in arguments.items())


def either(python: str, options: str) -> str:
    """Return what to do next, in Python or in JSON, or else on the command line."""
    return options if _VOICE.get() == "options" else python


def written(value: object) -> str:
    """Return a value as the caller writes it: in Python, on a command line, or in JSON."""
    voice = _VOICE.get()
    if isinstance(value, tuple):
        parts = (" " if voice == "options" else ", ").join(map(written, value))
        return {"python": f"({parts})", "options": parts, "json": f"[{parts}]"}[voice]
    if isinstance(value, float) and value.is_integer() and abs(value) < _PLAIN:
        value = int(value)
    if voice == "json":
        return json.dumps(value, default=str)
    return "none" if voice == "options" and value is None else repr(value)


_PLAIN = 1e15  # from here on numbers are written with an exponent


def argument(name: str) -> str:
    """Return an argument's name as the caller writes it."""
    return f"--{word(name).replace('_', '-')}" if _VOICE.get() == "options" else word(name)


def word(name: str) -> str:
    """Return what something is called here: inside `speaking_of` perhaps otherwise."""
    return _NAMES.get().get(name, name)


def speaking_options() -> AbstractContextManager[None]:
    """Let messages write arguments as options of the command line in the body."""
    return _speaking("options")


def speaking_json() -> AbstractContextManager[None]:
    """Let messages write arguments as fields of JSON in the body."""
    return _speaking("json")


@contextmanager
def _speaking(voice: Literal["options", "json"]) -> Iterator[None]:
    token = _VOICE.set(voice)
    try:
        yield
    finally:
        _VOICE.reset(token)


@contextmanager
def speaking_of(**names: str) -> Iterator[None]:
    """Let messages call things by other names in the body: what takes rounds as its units speaks of rounds."""
    token = _NAMES.set({**_NAMES.get(), **names})
    try:
        yield
    finally:
        _NAMES.reset(token)


def first_line(error: Exception) -> str:
    r"""Return the beginning of what an error of somebody else says."""
    words = str(error).splitlines()
    return f"{words[0]:.200}" if words else type(error).__name__


class TruearmError(Exception):
    """The root of the tree, for callers who want to catch all of it.

    Attributes
    ----------
    argument, value
        The argument that is wrong and what it was, where it is one; what speaks to programs passes them on.

    Examples
    --------
    >>> error = InvalidArgument("delta must be below 1, but got 2", "delta", 2)
    >>> str(error), error.argument, error.value
    ('delta must be below 1, but got 2', 'delta', 2)
    """

    def __init__(self, message: str = "", argument: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.argument = argument
        self.value = value


class InvalidArgument(TruearmError, ValueError):
    """A value outside its domain."""


class UnknownArgument(InvalidArgument, TypeError):
    """A keyword that the function does not have."""


class OutOfReach(InvalidArgument):
    """A theorem was asked for outside the conditions under which it is proved."""


class ProtocolError(TruearmError, RuntimeError):
    """Ask and tell used in an order that has no meaning; nothing changed."""


class ArmFailed(TruearmError, RuntimeError):
    """A pull raised an exception, which is the cause of this one.

    Attributes
    ----------
    arm, result
        The arm that failed, and the result as far as it was known: nothing told before is lost.
    """

    def __init__(self, message: str, *, arm: str = "", result: object = None) -> None:
        super().__init__(message)
        self.arm = arm
        self.result = result


class CommandFailed(TruearmError, RuntimeError):
    """A user's command ended badly, and the caller did not ask to go on.

    Attributes
    ----------
    command, exit_code, stderr_tail, stage
        The command's text, its exit code (minus the signal's number if a signal ended it), and the end of
        what it wrote to standard error, as it wrote it; whether it was measured ("command") or a hook.
    """

    def __init__(
        self, message: str, *, command: str = "", exit_code: int = 0, stderr_tail: str = "", stage: str = "command"
    ) -> None:
        # One positional argument and defaults for the rest: so the error survives a pickle from a worker.
        super().__init__(message)
        self.command = command
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail
        self.stage = stage


class VerificationError(TruearmError, ValueError):
    """A certificate and the readings given for it do not belong together, or a log is not as it was written."""
