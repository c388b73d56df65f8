"""The exceptions of truearm. Each message names the argument, the value and the remedy.

TruearmError
├── InvalidArgument   (also ValueError)    a value outside its domain; nothing was computed
│   ├── UnknownArgument (also TypeError)   a keyword that the function does not have
│   └── OutOfReach                         a theorem's condition fails; the message says what would satisfy it
├── ProtocolError     (also RuntimeError)  a call that does not fit the study or its log; nothing changed
├── ArmFailed         (also RuntimeError)  a pull raised; carries the result so far
├── CommandFailed     (also RuntimeError)  a user's command failed; carries its exit code and last output
└── VerificationError (also ValueError)    a certificate does not match its readings, or a log was changed

Not knowing is a result, never an error: see `Result.status`.

A message is one sentence that writes arguments as Python does (`name=value`). The error carries the name of the
argument; the command line and the service show it as their option or field.
"""

import re

ARGUMENT = re.compile(r"""(?<!['"\w-])([a-z_]+)=('[^']*'|\([^()]*\)|[^\s,;:]*[^\s,;:.])""")
"""An argument in a message: its name and its value, as Python writes them."""


def first_line(error: Exception) -> str:
    """Return the first line of another library's error."""
    lines = str(error).splitlines()
    return f"{lines[0]:.200}" if lines else type(error).__name__


def printable(text: str, *, lines: bool = False) -> str:
    """Escape control characters, so that a terminal does not act on them; `lines` keeps line breaks."""

    def escape(char: str) -> str:
        return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"

    return "".join(c if c.isprintable() or (lines and c in "\n\t") else escape(c) for c in text)


class TruearmError(Exception):
    """The base class of all errors of truearm: `argument` and `value` say what was wrong, if known."""

    def __init__(self, message: str = "", argument: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.argument, self.value = argument, value


class InvalidArgument(TruearmError, ValueError):
    """A value outside its domain."""


class UnknownArgument(InvalidArgument, TypeError):
    """A keyword that the function does not have."""


class OutOfReach(InvalidArgument):
    """A request outside the conditions of a theorem."""


class ProtocolError(TruearmError, RuntimeError):
    """A call that does not fit the state of a study or its log; nothing changed."""


class ArmFailed(TruearmError, RuntimeError):
    """A pull that raised an exception, which is the cause of this one.

    Attributes
    ----------
    arm, result
        The arm that failed, and the result so far, with all earlier readings.
    """

    def __init__(self, message: str, *, arm: str = "", result: object = None) -> None:
        super().__init__(message)
        self.arm, self.result = arm, result


class CommandFailed(TruearmError, RuntimeError):
    """A user's command that failed, where the caller did not ask to continue.

    Attributes
    ----------
    command, exit_code, stderr_tail, stage
        The command's text, its exit code (the negative number of a signal that ended it), the end of its standard
        error, and whether it was measured ("command") or a hook.
    """

    def __init__(
        self, message: str, *, command: str = "", exit_code: int = 0, stderr_tail: str = "", stage: str = "command"
    ) -> None:
        # one positional argument and defaults for the rest, so that a worker can pickle the error
        super().__init__(message)
        self.command, self.exit_code, self.stderr_tail, self.stage = command, exit_code, stderr_tail, stage


class VerificationError(TruearmError, ValueError):
    """A certificate that does not match its readings, or a log that was changed."""
