"""Everything truearm raises on purpose. Each message names the argument, the value and the remedy.

TruearmError
├── InvalidArgument   (also ValueError)    a value outside its domain; nothing was computed
│   └── OutOfReach                         a theorem's condition fails; the message says what would satisfy it
├── ProtocolError     (also RuntimeError)  ask and tell used in an order that has no meaning; nothing changed
├── ArmFailed         (also RuntimeError)  a pull raised; carries what was known up to then
├── CommandFailed     (also RuntimeError)  a user's command ended badly; carries its exit code and last words
└── VerificationError (also ValueError)    a certificate and the readings do not fit, or a log was changed

Not knowing is a result, never an error: see `Result.status`.
"""


class TruearmError(Exception):
    """The root of the tree, for callers who want to catch all of it."""


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
