"""Who may do what: tokens with a role, kept as digests and compared in constant time.

A token is printed once, when it is made. Its secret has 256 random bits, so that a plain digest is enough.
"""

import hmac
import re
import secrets
import time
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from truearm.errors import InvalidArgument
from truearm.service.database import Database
from truearm.service.wire import ID

ROLES = ("viewer", "worker", "admin")  # each may what those before it may
_FRESH = 2.0  # seconds for which tokens are not read again


class Grant(NamedTuple):
    """What a token allows: a role, in all studies or in one."""

    role: str
    study: str | None
    name: str = ""

    def allows(self, role: str, study: str | None) -> bool:
        """Tell whether this is enough for a role in a study; None is a request about no study, or about all."""
        return ROLES.index(self.role) >= ROLES.index(role) and self.study in (None, study)


OPEN = Grant("admin", None, "open")
"""What everybody may while there are no tokens, which is so on loopback only."""


def make(database: Database, role: str, study: str | None = None) -> str:
    """Make a token and return it; nobody can read it again."""
    if role not in ROLES:
        which = "a machine that measures is a worker, and an admin begins studies"
        msg = f"role must be one of {', '.join(ROLES)}, but got {role!r}; {which}"
        raise InvalidArgument(msg)
    if study is not None and not re.fullmatch(ID, study):
        msg = f"study of a token must be the id of one, but got {study!r}; for all studies write the role alone"
        raise InvalidArgument(msg)
    name, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    database.add_token(name, _digest(secret), role, study)
    return f"ta_{name}_{secret}"


def _digest(secret: str) -> bytes:
    return sha256(b"truearm token\0" + secret.encode(errors="surrogateescape")).digest()


class Tokens:
    """The tokens of a database, read again now and then so that one that was removed is soon worth nothing.

    Parameters
    ----------
    needed
        Whether requests need one also while there is none; from the first that is seen on they do in any case.
    """

    def __init__(
        self, database: Database, clock: Callable[[], float] = time.monotonic, *, needed: bool = False
    ) -> None:
        self._database, self._clock, self._needed = database, clock, needed
        self._at = -1e9
        self._known: dict[str, tuple[bytes, Grant]] = {}

    def __len__(self) -> int:
        if not self.fresh:
            self.read()
        return len(self._known)

    @property
    def fresh(self) -> bool:
        """Whether they were read a moment ago."""
        return self._clock() - self._at <= _FRESH

    def read(self) -> None:
        """Read them from the database."""
        rows = self._database.tokens()
        self._known = {name: (digest, Grant(role, study, name)) for name, digest, role, study, _ in rows}
        self._needed = self._needed or bool(rows)
        self._at = self._clock()

    def grant(self, token: str | None) -> Grant | None:
        """Return what a token allows, None if it allows nothing; the database is read only if that is due."""
        if not self.fresh:
            self.read()
        if not self._needed:
            return OPEN
        name, _, secret = (token or "").removeprefix("ta_").partition("_")
        digest, grant = self._known.get(name, (b"\0" * 32, None))
        return grant if hmac.compare_digest(digest, _digest(secret)) else None
