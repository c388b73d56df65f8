"""Everything truearm raises on purpose. Each message names the argument, the value and the remedy.

TruearmError
├── InvalidArgument   (also ValueError)    a value outside its domain; nothing was computed
│   └── OutOfReach                         a theorem's condition fails; the message says what would satisfy it
├── ProtocolError     (also RuntimeError)  ask and tell used in an order that has no meaning; nothing changed
├── ArmFailed         (also RuntimeError)  a pull raised; carries what was known up to then
├── CommandFailed     (also RuntimeError)  a user's command ended badly; carries its exit code and last words
└── VerificationError (also ValueError)    a certificate and the readings do not fit, or a log was changed

Not knowing is a result, never an error: see `Result.status`.

A message is one sentence that writes arguments as Python does (`name=value`). The error carries the name of the
argument; the command line and the service show it as their option or field.
"""

import re

ARGUMENT = re.compile(r"""(?<!['"\w-])([a-z_]+)=('[^']*'|\([^()]*\)|[^\s,;:]*[^\s,;:.])""")
"""An argument in a message: its name and its value, as Python writes them."""


def first_line(error: Exception) -> str:
    """Return the first line of another library's error."""
    words = str(error).splitlines()
    return f"{words[0]:.200}" if words else type(error).__name__


def printable(text: str, *, lines: bool = False) -> str:
    """Escape characters that do not print, so that a terminal never obeys them; `lines` keeps line breaks."""

    def escape(char: str) -> str:
        return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"

    return "".join(c if c.isprintable() or (lines and c in "\n\t") else escape(c) for c in text)


class TruearmError(Exception):
    """The base class of all errors of truearm: `argument` and `value` say what was wrong, where there is one."""

    def __init__(self, message: str = "", argument: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.argument, self.value = argument, value


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
        self.arm, self.result = arm, result


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
        self.command, self.exit_code, self.stderr_tail, self.stage = command, exit_code, stderr_tail, stage


class VerificationError(TruearmError, ValueError):
    """A certificate and the readings given for it do not belong together, or a log is not as it was written."""
