"""Bearer tokens with roles, stored as digests and compared in constant time.

A token is printed once, when it is created. Its secret has 256 random bits, so a plain digest is enough.
"""

import hmac
import re
import secrets
import time
from hashlib import sha256
from typing import NamedTuple

from truearm.errors import InvalidArgument
from truearm.service.models import ID
from truearm.store import Database

ROLES = ("viewer", "worker", "admin")  # each role includes the previous ones
_MAX_AGE_S = 2.0  # after which tokens are read from the database again


class Grant(NamedTuple):
    """What a token allows: a role, in all studies or in one."""

    role: str
    study: str | None
    name: str = ""

    def allows(self, role: str, study: str | None) -> bool:
        """Return True if this is enough for a role in a study; None is a request that concerns no single study."""
        return ROLES.index(self.role) >= ROLES.index(role) and self.study in (None, study)


OPEN = Grant("admin", None, "open")
"""What every request may do while there are no tokens, which is possible on loopback only."""


def create_token(database: Database, role: str, study: str | None = None) -> str:
    """Create a token and return it; it cannot be read again."""
    if role not in ROLES:
        msg = (
            f"role must be one of {', '.join(ROLES)}, but got {role!r}; "
            "a machine that measures is a worker, and an admin creates studies"
        )
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
    """The tokens of a database, read again every two seconds so that a removed one soon stops working.

    Parameters
    ----------
    required
        Whether requests need a token even if there is none; once one exists they do in any case.
    """

    def __init__(self, database: Database, *, required: bool = False) -> None:
        self._database, self.required = database, required
        self._read_at = -1e9
        self._known: dict[str, tuple[bytes, Grant]] = {}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def is_fresh(self) -> bool:
        """Whether they were read recently."""
        return time.monotonic() - self._read_at <= _MAX_AGE_S

    def read(self) -> None:
        """Read them from the database."""
        rows = self._database.tokens()
        self._known = {name: (digest, Grant(role, study, name)) for name, digest, role, study, _ in rows}
        self.required = self.required or bool(rows)
        self._read_at = time.monotonic()

    def grant(self, token: str | None) -> Grant | None:
        """Return what a token allows, None if nothing."""
        if not self.required:
            return OPEN
        name, _, secret = (token or "").removeprefix("ta_").partition("_")
        digest, grant = self._known.get(name, (b"\0" * 32, None))
        return grant if hmac.compare_digest(digest, _digest(secret)) else None
