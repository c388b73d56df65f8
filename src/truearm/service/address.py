"""Where a database is: a file, or a PostgreSQL by its URL. What is said of it never holds a password."""

import re
from typing import Any, NamedTuple

from truearm.errors import InvalidArgument

_EXAMPLE = "postgresql://user:password@host/name"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/|.*\bpassword=", re.DOTALL)  # C:/ is a file


class Address(NamedTuple):
    """A database: its name without a password, and for PostgreSQL what its driver is told."""

    name: str
    server: dict[str, Any] | None = None

    @classmethod
    def of(cls, url: str) -> "Address":
        """Return what a user wrote, or refuse it without repeating it."""
        if url.startswith(("postgresql://", "postgres://")):
            server = _read(url)
            return cls(f"postgresql://{server.get('host', '')}/{server.get('dbname', '')}", server)
        if _URL.match(url):
            msg = (
                f"database must be a file or such as {_EXAMPLE}, but got another address; it is not repeated here"
            )
            raise InvalidArgument(msg)
        return cls(url)

    def blanked(self, text: str) -> str:
        """Return what a driver said without the password."""
        password = (self.server or {}).get("password")
        return text.replace(password, "...") if password else text


def _read(url: str) -> dict[str, Any]:
    try:
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict
    except ModuleNotFoundError:
        msg = "PostgreSQL needs psycopg; install it with: pip install 'truearm[postgres]', or use a file"
        raise InvalidArgument(msg) from None
    place, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    try:
        found = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        known = place.count("@") <= 1 and "@" not in path and re.fullmatch("[0-9,]*", found.get("port", ""))
    except Error:  # its words repeat what it cannot read
        known = None
    if not known:
        msg = (
            f"database cannot be read; it is such as {_EXAMPLE}, and characters of user and password that mean "
            "something else there are written as %40 for @, %2F for /, %3A for :, %3F for ? and %25 for %"
        )
        raise InvalidArgument(msg)
    return found
