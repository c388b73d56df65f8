"""Where logs lie: one table that only grows, in SQLite or PostgreSQL. All SQL of the service is here.

Position 0 of a study holds its definition, the others its events, with the digests of docs/log.md. A write happens
in a transaction that holds the study: in SQLite the file is locked from the beginning (BEGIN IMMEDIATE), in
PostgreSQL the row of the definition. Within it a writer first reads what others wrote. Snapshots are a cache that
may be deleted, and tokens are kept as digests.
"""

import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from truearm.errors import InvalidArgument, ProtocolError, TruearmError
from truearm.service.address import Address
from truearm.service.bounded import Bounded
from truearm.store import SERVED

APPLICATION = SERVED  # in the header of a SQLite file
VERSION = 1
_COLUMNS = "position, kind, ticket, arm, draw, value, notes, digest, worker, at"
_TABLES = (
    "CREATE TABLE truearm_event (study TEXT NOT NULL, position BIGINT NOT NULL, kind TEXT NOT NULL, "
    "ticket BIGINT, arm TEXT, draw BIGINT, value TEXT, notes TEXT, digest {bytes} NOT NULL, worker TEXT, "
    "at DOUBLE PRECISION NOT NULL, PRIMARY KEY (study, position)){rowless}",
    "CREATE UNIQUE INDEX truearm_issued_once ON truearm_event (study, ticket) WHERE kind = 'issued'",
    "CREATE UNIQUE INDEX truearm_ended_once ON truearm_event (study, ticket) WHERE kind IN ('told', 'released')",
    "CREATE UNIQUE INDEX truearm_given_once ON truearm_event (study, worker) WHERE kind = 'key'",
    "CREATE INDEX truearm_begun ON truearm_event (at, study) WHERE position = 0",
    "CREATE TABLE truearm_snapshot (study TEXT PRIMARY KEY, position BIGINT NOT NULL, body {bytes} NOT NULL)",
    "CREATE TABLE truearm_token (id TEXT PRIMARY KEY, digest {bytes} NOT NULL, role TEXT NOT NULL, study TEXT, "
    "at DOUBLE PRECISION NOT NULL)",
)
_GROWS = {
    "sqlite": tuple(
        f"CREATE TRIGGER truearm_no_{what} BEFORE {what.upper()} ON truearm_event "
        "BEGIN SELECT RAISE (ABORT, 'the log only grows'); END"
        for what in ("update", "delete")
    ),
    "postgresql": (
        "CREATE FUNCTION truearm_only_grows() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the log only grows'; END $$",
        "CREATE TRIGGER truearm_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON truearm_event "
        "FOR EACH STATEMENT EXECUTE FUNCTION truearm_only_grows()",
    ),
}
_INSERT = f"INSERT INTO truearm_event (study, {_COLUMNS}) VALUES ({', '.join('?' * 11)})"
_AFTER = f"SELECT {_COLUMNS} FROM truearm_event WHERE study = ? AND position > ? ORDER BY position LIMIT ?"
_AT = f"SELECT {_COLUMNS} FROM truearm_event WHERE study = ? AND position = ?"
_TOLD = (  # in order of the index of what has ended
    "SELECT told.ticket, told.arm, issued.draw, told.value, told.worker, told.at FROM truearm_event told "
    "JOIN truearm_event issued ON issued.study = told.study AND issued.ticket = told.ticket "
    "AND issued.kind = 'issued' WHERE told.study = ? AND told.kind IN ('told', 'released') AND told.kind = 'told' "
    "AND told.ticket > ? AND told.position <= ? ORDER BY told.ticket LIMIT ?"
)
_LIST = (
    "SELECT study, at FROM truearm_event WHERE position = 0 AND (at < ? OR (at = ? AND study < ?)) "
    "ORDER BY at DESC, study DESC LIMIT ?"
)
_KEEP = (
    "INSERT INTO truearm_snapshot (study, position, body) VALUES (?, ?, ?) ON CONFLICT (study) DO UPDATE "
    "SET position = excluded.position, body = excluded.body WHERE truearm_snapshot.position <= excluded.position"
)
_CHUNK = 20_000  # rows read at a time
_AWAY = 2.0  # seconds for which a server that did not answer is not asked again


class Row(NamedTuple):
    """A row of the log: an event as text, who caused it and when."""

    position: int
    kind: str
    ticket: int | None
    arm: str | None
    draw: int | None
    value: str | None
    notes: str | None
    digest: bytes
    worker: str | None
    at: float


class DatabaseError(TruearmError, RuntimeError):
    """The database failed: nothing was acknowledged, and the same request may be sent again."""


class Busy(TruearmError, RuntimeError):
    """It cannot be done without waiting, and who asked does not want to wait; nothing happened."""

    def __init__(self) -> None:
        super().__init__("this cannot be done without waiting")


class Connection(Protocol):
    """What the two drivers have in common."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:  # noqa: ANN401, D102 - a cursor
        ...

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> object:  # noqa: D102
        ...

    def close(self) -> None: ...  # noqa: D102


class Database:
    """The tables by a file name or a URL, for all threads of a process.

    Each thread has a connection of its own; those that write to a file share one.

    Parameters
    ----------
    url
        The path of a SQLite file, or ``postgresql://user@host/name``.
    patience
        Seconds to wait for other writers, and for a statement of PostgreSQL.
    """

    def __init__(self, url: str, patience: float = 20.0) -> None:
        self.url = url
        self._patience = patience
        self._away_until = 0.0
        self._all: set[Connection] = set()
        self._guard = threading.Lock()
        self._address = Address.of(url)
        self.is_file = self._address.server is None
        # SQLite's writers of one process queue here: they would otherwise sleep and try again
        self._turn = threading.Lock() if self.is_file else None
        self._prepared: tuple[int, int] | None = None  # which file it was, by device and inode
        self._forget()
        if self.is_file:
            _check_file(url)
        with self._in_turn() as connection:
            self._prepare(connection)

    def __str__(self) -> str:
        """Name it without its password."""
        return self._address.name

    def close(self) -> None:
        """Let go of all connections."""
        with self._guard:
            for connection in self._all:
                with suppress(Exception):
                    connection.close()
            self._all.clear()
        self._forget()

    def _forget(self) -> None:
        self._own = _Own()
        # one that writes keeps what it wrote in its cache, as long as no other one does
        self._writer = _Shared() if self.is_file else self._own

    @contextmanager
    def writing(self, study: str, *, wait: bool = True) -> "Iterator[Transaction]":
        """Hold a study while its log is read and continued; on any error nothing is written.

        Without `wait` raise `Busy` if another writer has the file, or if the database is another machine's.
        """
        with self._in_turn(wait=wait) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE" if self.is_file else "BEGIN")
            except sqlite3.OperationalError as error:
                if wait or not error.sqlite_errorname.startswith("SQLITE_BUSY"):
                    raise
                raise Busy from None
            try:
                if not self.is_file:
                    connection.execute(f"{self._sql(_AT)} FOR UPDATE", (study, 0))
                yield Transaction(self, connection, study)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(Exception):
                    connection.execute("ROLLBACK")
                raise

    def after(self, study: str, position: int, limit: int = _CHUNK) -> list[Row]:
        """Return the rows of a study after a position."""
        with self._failing() as connection:
            return self._rows(connection, _AFTER, (study, position, limit))

    def told(self, study: str, ticket: int, upto: int, limit: int) -> list[tuple[Any, ...]]:
        """Return ticket, arm, draw, value, worker and time of readings after a ticket, told up to a position."""
        with self._failing() as connection:
            values = (study, ticket, upto, limit)
            return [tuple(row) for row in connection.execute(self._sql(_TOLD), values).fetchall()]

    def at(self, study: str, position: int) -> Row | None:
        """Return the row at a position; that at 0 has the definition in its notes."""
        with self._failing() as connection:
            rows = self._rows(connection, _AT, (study, position))
        return rows[0] if rows else None

    def studies(self, limit: int, before: tuple[float, str] = (float("inf"), "")) -> list[tuple[str, float]]:
        """Return names of studies and when they began, the newest first."""
        with self._failing() as connection:
            values = (before[0], before[0], before[1], limit)
            return [tuple(row) for row in connection.execute(self._sql(_LIST), values).fetchall()]

    def keep_snapshot(self, study: str, position: int, body: bytes) -> None:
        """Keep a snapshot unless there is a newer one."""
        with self._in_turn() as connection:
            connection.execute(self._sql(_KEEP), (study, position, body))

    def snapshot(self, study: str) -> tuple[int, bytes] | None:
        """Return the position and the body of the snapshot of a study."""
        with self._failing() as connection:
            found = connection.execute(
                self._sql("SELECT position, body FROM truearm_snapshot WHERE study = ?"), (study,)
            ).fetchone()
        return (found[0], bytes(found[1])) if found else None

    def add_token(self, name: str, digest: bytes, role: str, study: str | None) -> None:
        """Keep a token by its digest."""
        with self._in_turn() as connection:
            statement = "INSERT INTO truearm_token (id, digest, role, study, at) VALUES (?, ?, ?, ?, ?)"
            connection.execute(self._sql(statement), (name, digest, role, study, time.time()))

    def remove_token(self, name: str) -> bool:
        """Forget a token; tell whether there was one."""
        with self._in_turn() as connection:
            return bool(connection.execute(self._sql("DELETE FROM truearm_token WHERE id = ?"), (name,)).rowcount)

    def tokens(self) -> list[tuple[str, bytes, str, str | None, float]]:
        """Return all tokens: name, digest, role, study and when they were made."""
        with self._failing() as connection:
            found = connection.execute(
                "SELECT id, digest, role, study, at FROM truearm_token ORDER BY at"
            ).fetchall()
        return [(name, bytes(digest), role, study, at) for name, digest, role, study, at in found]

    def _rows(self, connection: Connection, statement: str, values: Sequence[Any]) -> list[Row]:
        found = connection.execute(self._sql(statement), values).fetchall()
        return [Row._make((*row[:7], bytes(row[7]), *row[8:])) for row in found]

    def _sql(self, statement: str) -> str:
        return statement if self.is_file else statement.replace("?", "%s")

    @contextmanager
    def _in_turn(self, *, wait: bool = True) -> Iterator[Connection]:
        """Give the connection that writes."""
        if self._turn is None and not wait:
            raise Busy
        if self._turn is not None and not self._turn.acquire(timeout=self._patience if wait else 0):
            if not wait:
                raise Busy
            msg = f"the database {self} is locked by another program; send the request again when it is not"
            raise DatabaseError(msg)
        try:
            with self._failing(self._writer, wait=wait) as connection:
                yield connection
        finally:
            if self._turn is not None:
                self._turn.release()

    @contextmanager
    def _failing(self, own: "_Own | _Shared | None" = None, *, wait: bool = True) -> Iterator[Connection]:
        """Give this thread's connection, or the one that is asked for, and say in words what a driver raises."""
        own = own or self._own
        try:
            yield self._connected(own, wait=wait)
        except TruearmError:
            raise
        except Exception as error:
            if isinstance(error, sqlite3.IntegrityError) or type(error).__name__ == "UniqueViolation":
                msg = "another process wrote to this study at the same time; send the request again"
                raise DatabaseError(msg) from error
            if not _is_driver_error(error):
                raise
            self._drop(own)
            msg = f"the database {self} failed: {self._address.blanked(_first_line(error))}; {_remedy(error)}"
            raise DatabaseError(msg) from error

    def _connected(self, own: "_Own | _Shared", *, wait: bool) -> Connection:
        if own.connection is not None and self.is_file and self._file() != own.file:
            self._drop(own)  # it would go on writing to a file that nobody finds again
        if own.connection is None:
            if not wait:
                raise Busy
            own.connection = self._sqlite(own) if self.is_file else self._postgresql()
            with self._guard:
                self._all.add(own.connection)
        if self.is_file and own.waits != wait:  # for other programs that write
            own.connection.execute(f"PRAGMA busy_timeout = {int(1000 * self._patience) if wait else 0}")
            own.waits = wait
        return own.connection

    def _drop(self, own: "_Own | _Shared") -> None:
        connection, own.connection = own.connection, None
        if connection is not None:
            with self._guard:
                self._all.discard(connection)
            with suppress(Exception):
                connection.close()

    def _file(self) -> tuple[int, int]:
        """Return which file lies where the database should, by device and inode."""
        try:
            found = os.stat(self.url)  # noqa: PTH116 - twice as fast as that of a path
        except FileNotFoundError:
            msg = f"the database {self} is gone; put the file back, nothing was written meanwhile"
            raise DatabaseError(msg) from None
        return found.st_dev, found.st_ino

    def _sqlite(self, own: "_Own | _Shared") -> Connection:
        if self._prepared is not None:
            self._file()  # one that is gone is not begun anew
        connection = sqlite3.connect(
            self.url, timeout=self._patience, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous = FULL")
        own.file, own.waits = self._file(), True
        if self._prepared not in (None, own.file):  # another one, such as a back-up that was put there
            _check_ours(connection, self.url)
            self._journal(connection)
        return connection

    def _postgresql(self) -> Connection:
        from psycopg.errors import ConnectionTimeout

        if time.monotonic() < self._away_until:  # or all threads would wait for it, one request after the other
            msg = f"the database {self} does not answer; send the request again when it is back"
            raise DatabaseError(msg)
        try:
            return Bounded(self._address.server or {}, self._patience)
        except ConnectionTimeout:
            self._away_until = time.monotonic() + _AWAY
            raise

    def _prepare(self, connection: Connection) -> None:
        if self.is_file:
            self._prepare_file(connection)
            self._prepared = self._writer.file
            return
        connection.execute("BEGIN")
        try:
            connection.execute(f"SELECT pg_advisory_xact_lock({APPLICATION})")
            if connection.execute("SELECT to_regclass('truearm_event')").fetchone()[0] is None:
                for statement in (*_TABLES, *_GROWS["postgresql"]):
                    connection.execute(statement.format(bytes="BYTEA", rowless=""))
                connection.execute(f"COMMENT ON TABLE truearm_event IS '{VERSION}'")
            found = connection.execute("SELECT obj_description('truearm_event'::regclass)").fetchone()[0]
            _check_version(str(self), int(found or 0))
            connection.execute("COMMIT")
        except BaseException:
            with suppress(Exception):
                connection.execute("ROLLBACK")
            raise

    def _journal(self, connection: Connection) -> None:
        deadline = time.monotonic() + self._patience
        while True:  # this one statement does not wait for other connections by itself
            try:
                if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
                    break
            except sqlite3.OperationalError as error:
                if _is_closed_to_us(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(0.005)

    def _prepare_file(self, connection: Connection) -> None:
        _check_ours(connection, self.url)  # before anything is written
        self._journal(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                for statement in (*_TABLES, *_GROWS["sqlite"]):
                    connection.execute(statement.format(bytes="BLOB", rowless=" WITHOUT ROWID"))
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            with suppress(Exception):
                connection.execute("ROLLBACK")
            raise


class _Own(threading.local):
    """The connection of a thread."""

    connection: Connection | None = None
    waits = True
    file: tuple[int, int] | None = None


class _Shared:
    """The connection of all threads that take turns."""

    connection: Connection | None = None
    waits = True
    file: tuple[int, int] | None = None


class Transaction:
    """One study, held: what others wrote to it, and what is appended now."""

    def __init__(self, database: Database, connection: Connection, study: str) -> None:
        self._database, self._connection, self._study = database, connection, study

    def after(self, position: int, digest: bytes, most: int | None = None) -> Iterator[Row]:
        """Iterate over the rows after a position, where the log must have this digest; `Busy` if over `most`."""
        limit = _CHUNK if most is None else most + 2  # with the one at the position, and one that is too many
        while True:
            rows = self._database._rows(self._connection, _AFTER, (self._study, position - 1, limit))
            if most is not None and len(rows) == limit:
                raise Busy
            yield from continued(self._study, rows, digest)
            if len(rows) < limit:
                return
            position, digest = rows[-1].position, rows[-1].digest

    def begun(self) -> Row | None:
        """Return the row of the definition, None if there is no such study."""
        rows = self._database._rows(self._connection, _AT, (self._study, 0))
        return rows[0] if rows else None

    def count(self) -> int:
        """Return how many studies there are."""
        return int(self._connection.execute("SELECT count(*) FROM truearm_event WHERE position = 0").fetchone()[0])

    def before_key(self, key: str, count: int) -> list[Row] | None:
        """Return so many rows before that of a key, and the one before them; None if the key is new."""
        statement = "SELECT position FROM truearm_event WHERE study = ? AND worker = ? AND kind = 'key'"
        found = self._connection.execute(self._database._sql(statement), (self._study, key)).fetchone()
        if found is None:
            return None
        return self._database._rows(self._connection, _AFTER, (self._study, found[0] - count - 2, count + 1))

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows, which are there for everybody once the transaction ends."""
        values = [(self._study, *row) for row in rows]
        self._connection.executemany(self._database._sql(_INSERT), values)


def continued(study: str, rows: list[Row], digest: bytes) -> Iterator[Row]:
    r"""Iterate over all rows but the first, which must be the one that was read last."""
    if not rows or rows[0].digest != digest:
        msg = f"the log of study {study!r} was replaced, such as by a back-up; send the request again"
        raise DatabaseError(msg)
    yield from rows[1:]


def _check_ours(connection: Connection, path: str) -> None:
    begun = connection.execute("PRAGMA user_version").fetchone()[0]
    if not begun and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        msg = f"database {path!r} is not a database of truearm serve, and was left as it is; choose another file"
        raise InvalidArgument(msg)


def _is_driver_error(error: Exception) -> bool:
    return isinstance(error, sqlite3.Error | OSError) or type(error).__module__.startswith("psycopg")


def _is_closed_to_us(error: Exception) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN"))


def _first_line(error: Exception) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r"password=\S+|://[^@\s]*@", "://", line)


def _remedy(error: Exception) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL" or "No space left" in str(error):
        return "make room on its disk and send the request again"
    if _is_closed_to_us(error):
        return "let the user that serves write to it and to its directory"
    return "send the request again when it is back"


def _check_file(name: str) -> None:
    path = Path(name)
    if not path.parent.is_dir() or path.is_dir() or str(path) == ":memory:":  # each thread would have its own
        msg = f"database {name!r} cannot be a file; choose a file in an existing directory"
        raise InvalidArgument(msg)
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("rb") as file:
        head = file.read(100)
    application, version = (int.from_bytes(head[at : at + 4], "big") for at in (68, 60))
    if not head.startswith(b"SQLite format 3\0") or application not in (0, APPLICATION):
        what = f"database {str(path)!r} is not a database of truearm serve"
        msg = f"{what}, and was left as it is; choose another file"
        raise InvalidArgument(msg)
    _check_version(str(path), version)


def _check_version(name: str, version: int) -> None:
    if version > VERSION:
        msg = f"database {name!r} was written by a newer truearm (version {version}); install that one"
        raise ProtocolError(msg)
