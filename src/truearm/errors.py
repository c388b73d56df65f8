"""Everything truearm raises on purpose. Each message names the argument, the value and the remedy.

TruearmError
├── InvalidArgument   (also ValueError)    a value outside its domain; nothing was computed
│   └── OutOfReach                         a theorem's condition fails; the message says what would satisfy it
├── ProtocolError     (also RuntimeError)  ask and tell used in an order that has no meaning; nothing changed
└── VerificationError (also ValueError)    a certificate and the readings do not belong together

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


class VerificationError(TruearmError, ValueError):
    """A certificate and the readings given for it do not belong together."""
