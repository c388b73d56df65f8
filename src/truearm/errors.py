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

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

_OPTIONS = ContextVar("options", default=False)
_NAMES: ContextVar[Mapping[str, str]] = ContextVar("names", default=MappingProxyType({}))


def given(**arguments: object) -> str:
    """Return arguments as the caller writes them: in Python, or, inside `speaking_options`, on a command line.

    Examples
    --------
    >>> given(arm="site", value="ms")
    "arm='site', value='ms'"
    >>> with speaking_options(), speaking_of(unit="round"):
    ...     given(unit="user"), given(drop_unnamed=True)
    ("--round 'user'", '--drop-unnamed')
    """
    if not _OPTIONS.get():
        return ", ".join(f"{word(name)}={value!r}" for name, value in arguments.items())
    return " ".join(
        f"--{word(name).replace('_', '-')}{'' if value is True else f' {value!r}'}"
        for name, value in arguments.items()
    )


def argument(name: str) -> str:
    """Return an argument's name as the caller writes it.

    Examples
    --------
    >>> argument("at_most")
    'at_most'
    >>> with speaking_options():
    ...     argument("at_most")
    '--at-most'
    """
    return f"--{word(name).replace('_', '-')}" if _OPTIONS.get() else word(name)


def word(name: str) -> str:
    """Return what something is called here: inside `speaking_of` perhaps otherwise.

    Examples
    --------
    >>> word("unit")
    'unit'
    """
    return _NAMES.get().get(name, name)


@contextmanager
def speaking_options() -> Iterator[None]:
    """Let messages write arguments as options of the command line in the body.

    Examples
    --------
    >>> with speaking_options():
    ...     given(at_most=3)
    '--at-most 3'
    """
    token = _OPTIONS.set(True)
    try:
        yield
    finally:
        _OPTIONS.reset(token)


@contextmanager
def speaking_of(**names: str) -> Iterator[None]:
    """Let messages call things by other names in the body: what takes rounds as its units speaks of rounds.

    Examples
    --------
    >>> with speaking_of(unit="round"):
    ...     word("unit")
    'round'
    """
    token = _NAMES.set({**_NAMES.get(), **names})
    try:
        yield
    finally:
        _NAMES.reset(token)


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
