"""Access to a server: settings, limits, and bearer tokens with roles.

A token is printed once, when it is created, and stored as a digest; its secret has 256 random bits, so a plain
digest is enough.
"""

import asyncio
import hmac
import re
import secrets
import time
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

import msgspec

from truearm.errors import InvalidArgument
from truearm.problem import refuse
from truearm.service.models import ID, Refused
from truearm.store import Database

ROLES = ("viewer", "worker", "admin")  # each role includes the previous ones
_MAX_AGE_S = 2.0  # after which tokens are read from the database again


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a server: what it serves and where, and the limits of requests, studies and clients."""

    database: str = "truearm.db"
    host: str = "127.0.0.1"
    port: int = 8000
    proxy: str | None = None
    """Addresses or networks of reverse proxies, separated by commas, whose X-Forwarded-For is trusted."""
    max_body: int = 1_000_000  # bytes: a full batch with notes
    max_batch: int = 1000  # readings or pulls in one request
    max_arms: int = 500
    max_studies: int = 10_000
    max_streams: int = 200  # clients that follow events, per process
    max_idle: int = 100  # connections of one address that wait for a request
    rate: float = 200.0  # requests per second of one address, with bursts of twice as many
    patience: float = 10.0  # seconds in which the head and the body of a request must arrive


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def client_network(address: str) -> str:
    """Return the address of a client, in IPv6 its network: one client has a whole /64."""
    try:
        found = IPv6Address(address)
    except ValueError:
        return address
    return str(found.ipv4_mapped or IPv6Network((int(found), 64), strict=False))


def parse_proxies(proxy: str) -> str:
    """Return the addresses of proxies, in IPv4 also as a server that listens on :: sees them."""
    try:
        known = [ip_network(text.strip()) for text in proxy.split(",")]
    except ValueError as error:
        remedy = "use an address or a network, such as 10.0.0.1 or 10.0.0.0/8, several with commas"
        msg = f"proxy must be an address or a network, but got {proxy!r:.80} ({error}); {remedy}"
        raise InvalidArgument(msg) from None
    mapped = [
        f"::ffff:{one.network_address}/{96 + one.prefixlen}" for one in known if isinstance(one, IPv4Network)
    ]
    return ",".join([*map(str, known), *mapped])


def check_host(host: str, *, tokens: int) -> None:
    """Refuse to listen for other machines while no token is needed."""
    reach = f"host {host!r} can be reached from other machines, and this database has no token"
    is_open = not tokens and not is_loopback(host)
    refuse(is_open, f"{reach}; create one first with --new-token admin, or serve 127.0.0.1")


class Grant(NamedTuple):
    """The rights of a token: a role, in all studies or in one."""

    role: str
    study: str | None
    name: str = ""

    def allows(self, role: str, study: str | None) -> bool:
        """Return True if this is enough for a role in a study; None is a request that concerns no single study."""
        return ROLES.index(self.role) >= ROLES.index(role) and self.study in (None, study)


def create_token(database: Database, role: str, study: str | None = None) -> str:
    """Create a token and return it; it cannot be read again."""
    msg = f"role must be one of {', '.join(ROLES)}, but got {role!r}; workers measure, admins create studies"
    refuse(role not in ROLES, msg)
    msg = f"a study's id has lower-case letters, digits and hyphens, but got {study!r}; for all studies, omit it"
    refuse(study is not None and not re.fullmatch(ID, study), msg)
    name, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    statement = "INSERT INTO truearm_token (id, digest, role, study, at) VALUES (%s, %s, %s, %s, %s)"
    with database.write(""):
        database.execute(statement, (name, _digest(secret), role, study, time.time()))
    return f"ta_{name}_{secret}"


def remove_token(database: Database, name: str) -> bool:
    """Delete a token; return False if there was none."""
    with database.write(""):
        return database.execute("DELETE FROM truearm_token WHERE id = %s", (name,)) == [(1,)]


def list_tokens(database: Database) -> list[tuple[str, bytes, str, str | None]]:
    """Return name, digest, role and study of all tokens."""
    return database.execute("SELECT id, digest, role, study FROM truearm_token ORDER BY at")


def _digest(secret: str) -> bytes:
    return sha256(b"truearm token\0" + secret.encode(errors="surrogateescape")).digest()


class Tokens:
    """The tokens of a database, read again every two seconds so that a removed one soon stops working.

    Once there was a token, requests need one, even if all are removed.
    """

    def __init__(self, database: Database) -> None:
        self._database, self.required = database, False
        self._read_at = -1e9
        self._known: dict[str, tuple[bytes, Grant]] = {}

    def __len__(self) -> int:
        return len(self._known)

    async def refresh(self) -> None:
        """Read them again if they are old."""
        if time.monotonic() - self._read_at > _MAX_AGE_S:
            await asyncio.to_thread(self.read)

    def read(self) -> None:
        """Read them from the database."""
        rows = list_tokens(self._database)
        self._known = {name: (digest, Grant(role, study, name)) for name, digest, role, study in rows}
        self.required = self.required or bool(rows)
        self._read_at = time.monotonic()

    def authenticate(self, authorization: str) -> Grant:
        """Return what the token of a header allows; without tokens, on loopback only, everything is allowed."""
        if not self.required:
            return Grant("admin", None, "open")
        scheme, _, token = authorization.partition(" ")
        name, _, secret = token.removeprefix("ta_").partition("_")
        digest, grant = self._known.get(name, (b"\0" * 32, None))
        if hmac.compare_digest(digest, _digest(secret)) and grant is not None and scheme.lower() == "bearer":
            return grant
        needs = "this server needs a token; set TRUEARM_TOKEN, or send `Authorization: Bearer TOKEN`"
        detail = "this token is unknown or was removed; use another one" if token else needs
        raise Refused(401, "No token", detail, headers={"WWW-Authenticate": "Bearer"})
