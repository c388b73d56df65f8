"""Hash-chained logs of studies in SQLite or PostgreSQL: one table that only grows, one writer at a time.

Row 0 of a study is its definition, the others are its events, and each digest covers the one before (docs/log.md).
`Database` holds the studies of a server, `Store` the log of one race. An append is on the disk when it returns.
"""

import ctypes
import json
import os
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from truearm.errors import InvalidArgument, ProtocolError, TruearmError, VerificationError
from truearm.events import ISSUED, TOLD, Event, Issued, Reading, from_row, padded, to_row
from truearm.problem import check_positive
from truearm.study import Study

RACE, SERVED, LEDGER = 0x74724172, 0x74724173, 0x7472416C  # "trAr", "trAs", "trAl" in the header of a SQLite file
VERSIONS = {RACE: 4, SERVED: 1, LEDGER: 1}
DEFINITION = "begun"  # the kind of row 0
_NAME = "race"  # of the only study in the file of a race
_RESTORE = "restore a copy of the log, or start a new one in another file"
_MAX_DEPTH = 64  # of nested notes; the JSON parser recurses
_CHUNK_ROWS = 20_000
_CHECKPOINT_PAGES = 4000  # of the write-ahead log, 16 MB
_MIN_HEAD_DIGITS = 16  # a shorter prefix of a digest can be forged by trying
_COLUMNS = "position, kind, ticket, arm, draw, value, notes, digest, worker, at"
_EVENTS = (
    "CREATE TABLE truearm_event (study TEXT NOT NULL, position BIGINT NOT NULL, kind TEXT NOT NULL, "
    "ticket BIGINT, arm TEXT, draw BIGINT, value TEXT, notes TEXT, digest {bytes} NOT NULL, worker TEXT, "
    "at DOUBLE PRECISION NOT NULL, PRIMARY KEY (study, position)){rowless}"
)
_TABLES = (
    _EVENTS,
    "CREATE UNIQUE INDEX truearm_issued_once ON truearm_event (study, ticket) WHERE kind IN ('issued', 'counted')",
    "CREATE UNIQUE INDEX truearm_ended_once ON truearm_event (study, ticket) WHERE kind IN ('told', 'released')",
    "CREATE UNIQUE INDEX truearm_given_once ON truearm_event (study, worker) WHERE kind = 'key'",
    "CREATE INDEX truearm_begun ON truearm_event (at, study) WHERE position = 0",
    "CREATE TABLE truearm_token (id TEXT PRIMARY KEY, digest {bytes} NOT NULL, role TEXT NOT NULL, study TEXT, "
    "at DOUBLE PRECISION NOT NULL)",
)
_STAMP = "CREATE TABLE IF NOT EXISTS truearm_stamp (stamp TEXT NOT NULL)"  # one row, see `_check_replaced`
_STAMP_TIMEOUT_S = 2.0  # between a checkpoint and its stamp, in another process
_TCP = {  # a machine that is gone is noticed within a minute, or when nothing sent is confirmed for 20 s
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
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
_INSERT = f"INSERT INTO truearm_event (study, {_COLUMNS}) VALUES ({', '.join(['%s'] * 11)})"
_AFTER = f"SELECT {_COLUMNS} FROM truearm_event WHERE study = %s AND position > %s ORDER BY position LIMIT %s"
_AT = f"SELECT {_COLUMNS} FROM truearm_event WHERE study = %s AND position = %s"
_LAST = f"SELECT {_COLUMNS} FROM truearm_event WHERE study = %s ORDER BY position DESC LIMIT 1"
_KEY = "SELECT position FROM truearm_event WHERE study = %s AND worker = %s AND kind = 'key'"
_READINGS = (  # in order of issue; the first condition is that of an index
    "SELECT told.ticket, told.arm, issued.draw, told.value, told.worker, told.at FROM truearm_event told "
    "JOIN truearm_event issued ON issued.study = told.study AND issued.ticket = told.ticket "
    "AND issued.kind IN ('issued', 'counted') WHERE told.study = %s AND told.kind IN ('told', 'released') "
    "AND told.kind = 'told' AND told.ticket > %s AND told.position <= %s ORDER BY told.ticket LIMIT %s"
)
_LIST = (
    "SELECT study, at FROM truearm_event WHERE position = 0 AND (at < %s OR (at = %s AND study < %s)) "
    "ORDER BY at DESC, study DESC LIMIT %s"
)


class StoreError(TruearmError, RuntimeError):
    """The database failed: nothing was acknowledged, and the same request may be sent again."""


class Row(NamedTuple):
    """A row of the log: an event as text, the worker that caused it, and when."""

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


def first_digest(definition: str) -> bytes:
    """Return the digest of a definition, which starts the chain."""
    return sha256(b"truearm log 3\0" + definition.encode()).digest()


def next_digest(before: bytes, row: Sequence[object]) -> bytes:
    """Return the digest of a row: the one before, then position and six columns as text, separated by NUL."""
    position, kind, ticket, arm, draw, value, notes = row
    text = (  # faster than a join
        f"{position}\0{kind}\0{'' if ticket is None else ticket}\0{'' if arm is None else arm}\0"
        f"{'' if draw is None else draw}\0{'' if value is None else value}\0{'' if notes is None else notes}"
    )
    return sha256(before + text.encode()).digest()


def chain(texts: Iterable[Sequence[Any]], position: int, digest: bytes, worker: str | None = None) -> list[Row]:
    """Return the rows of events as text that follow a position with this digest."""
    rows, at = [], time.time()
    for text in texts:
        position += 1
        digest = next_digest(digest, (position, *text))
        rows.append(Row._make((position, *text, digest, worker, at)))
    return rows


def check_chain(rows: Iterable[Row], position: int, digest: bytes, where: str) -> None:
    """Raise `VerificationError` at the first row that does not continue the chain."""
    for number, kind, ticket, arm, draw, value, notes, known, _, _ in rows:
        position += 1
        text = (  # `next_digest` inlined: this is most of the time to open a study
            f"{number}\0{kind}\0{'' if ticket is None else ticket}\0{'' if arm is None else arm}\0"
            f"{'' if draw is None else draw}\0{'' if value is None else value}\0{'' if notes is None else notes}"
        )
        digest = sha256(digest + text.encode()).digest()
        if known != digest or number != position:
            msg = f"{where}: event {number} was changed after it was written; {_RESTORE}"
            raise VerificationError(msg)


def to_text(event: Event) -> list[Any]:
    """Return the columns of an event: kind, ticket, arm, draw, value and notes. SQLite has no NaN, so text."""
    if type(event) is Issued and not event.counted:  # the two frequent kinds first
        return [ISSUED, event.ticket, check_text("arm", event.arm), event.draw, None, None]
    if type(event) is Reading and event.notes is None:
        return [TOLD, event.ticket, check_text("arm", event.arm), None, repr(float(event.value)), None]
    kind, ticket, arm, draw, value, notes = padded(to_row(event))
    arm = None if arm is None else check_text("arm", arm)
    value = repr(value) if isinstance(value, float) else value
    return [kind, ticket, arm, draw, value, None if notes is None else to_json("notes", notes)]


def from_text(columns: Sequence[Any]) -> Event:
    """Return the event of its columns."""
    kind, ticket, arm, _, value, notes = columns
    if kind == TOLD and notes is None and type(ticket) is int and type(arm) is str and type(value) is str:
        with suppress(ValueError):
            return Reading(ticket, arm, float(value))
    return from_row([*columns[:5], None if notes is None else parse_json(notes)])


def parse_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a JSON text of the log."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"the log has text that is not JSON: {error}"
        raise ProtocolError(msg) from None


def to_json(name: str, value: Mapping[str, Any]) -> str:
    """Return plain values as JSON text that every database can hold and every reader can parse."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        _check_parts(name, json.loads(text))
    except InvalidArgument:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"{name} must be a dict of plain JSON values, but: {error}"
        raise InvalidArgument(msg, name) from None
    return text


def check_text(name: str, text: str) -> str:
    """Return text without NUL, which PostgreSQL cannot hold, and without lone surrogates."""
    try:
        if "\0" not in text and (text.isascii() or text.encode()):
            return text
    except UnicodeEncodeError:
        pass
    msg = f"{name} must be text without NUL characters and invalid Unicode, but got {text!r}; remove them"
    raise InvalidArgument(msg, name, text)


def _check_parts(name: str, value: object, depth: int = 0) -> None:
    if depth > _MAX_DEPTH:
        msg = f"{name} may be nested {_MAX_DEPTH} levels deep at most; flatten it"
        raise InvalidArgument(msg, name)
    if isinstance(value, str):
        check_text(name, value)
    elif isinstance(value, list | dict):
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            _check_parts(name, item, depth + 1)


class Database:
    """The studies of a SQLite file or a PostgreSQL database, for all threads of a process.

    Parameters
    ----------
    url
        The path of a SQLite file, or ``postgresql://user@host/name``.
    application
        What the file is for: the studies of a server, or one race.
    timeout
        Seconds to wait for other writers, and for a statement of PostgreSQL.
    """

    def __init__(self, url: str | Path, application: int = SERVED, timeout: float = 20.0) -> None:
        self._server = _read_url(str(url))
        self.is_file = self._server is None
        # SQLite names its other files after the path it was opened with
        self.path, self._application, self._timeout = Path(url).resolve(), application, timeout
        self.name = (
            str(url) if self._server is None else f"postgresql://{self._server['host']}/{self._server['dbname']}"
        )
        self._turn = threading.Lock()  # writers of a file wait here instead of polling SQLite's lock
        self._idle: list[Any] = []
        self._file: tuple[int, int] | None = None  # device and inode, while it is open
        self._stat: tuple[int, ...] | None = None  # of the file when its stamp was last compared
        self._pages_since_checkpoint = 0
        self.replaced = False
        if application == SERVED:
            self.prepare()

    def close(self) -> None:
        """Close all connections."""
        with _GUARD:
            while self._idle:
                connection = self._idle.pop()
                if self.replaced:  # closing it would copy the old write-ahead log into the new file
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
                else:
                    connection.close()
            if self._file is not None:
                _OPEN[self._file] -= 1
            self._file = None
        if self.replaced:  # the next process that opens the file would replay the old write-ahead log into it
            with suppress(OSError):
                Path(f"{self.path}-wal").rename(f"{self.path}-wal.replaced")
            with suppress(OSError):
                Path(f"{self.path}-shm").unlink()

    def prepare(self) -> None:
        """Create the tables if there are none."""
        if self.is_file:
            check_file(self.path, self._application)
        with self._connection() as connection:
            (self._prepare_file if self.is_file else self._prepare_server)(connection)

    @contextmanager
    def write(self, study: str) -> "Iterator[Transaction]":
        """Lock a study while its log is read and continued; on any error nothing is written."""
        if self.is_file and not self._turn.acquire(timeout=self._timeout):
            msg = f"the database {self.name} is locked by another program; send the request again later"
            raise StoreError(msg)
        try:
            with self._connection() as connection:
                if self.is_file and self._stat is None:
                    self._prepare_file(connection)
                connection.execute("BEGIN IMMEDIATE" if self.is_file else "BEGIN")
                if not self.is_file:
                    connection.execute(f"{_AT} FOR UPDATE", (study, 0))
                transaction = Transaction(self, connection, study)
                yield transaction
                connection.execute("COMMIT")
                self._pages_since_checkpoint += 4 + transaction.appended // 16  # roughly
                if self.is_file and self._pages_since_checkpoint >= _CHECKPOINT_PAGES:
                    self._checkpoint(connection)
        finally:
            if self.is_file:
                self._turn.release()

    def rows(self, study: str, after: int, limit: int = _CHUNK_ROWS) -> list[Row]:
        """Return the rows of a study after a position."""
        return list(map(Row._make, self._select(_AFTER, (study, after, limit))))

    def row(self, study: str, position: int) -> Row | None:
        """Return the row at a position; row 0 has the definition in its notes."""
        return next(map(Row._make, self._select(_AT, (study, position))), None)

    def last(self, study: str) -> Row | None:
        """Return the last row of a study."""
        return next(map(Row._make, self._select(_LAST, (study,))), None)

    def readings(self, study: str, ticket: int, upto: int, limit: int) -> list[tuple[Any, ...]]:
        """Return ticket, arm, draw, value, worker and time of readings after a ticket, told up to a position."""
        return self._select(_READINGS, (study, ticket, upto, limit))

    def studies(self, limit: int, before: tuple[float, str] = (float("inf"), "")) -> list[tuple[str, float]]:
        """Return names of studies and when they were created, the newest first."""
        return self._select(_LIST, (before[0], before[0], before[1], limit))

    def add_token(self, name: str, digest: bytes, role: str, study: str | None) -> None:
        """Store a token by its digest."""
        statement = "INSERT INTO truearm_token (id, digest, role, study, at) VALUES (%s, %s, %s, %s, %s)"
        with self.write("") as transaction:
            transaction.execute(statement, (name, digest, role, study, time.time()))

    def remove_token(self, name: str) -> bool:
        """Delete a token; return False if there was none."""
        with self.write("") as transaction:
            return bool(transaction.execute("DELETE FROM truearm_token WHERE id = %s", (name,)).rowcount)

    def tokens(self) -> list[tuple[str, bytes, str, str | None, float]]:
        """Return all tokens: name, digest, role, study and time of creation."""
        return self._select("SELECT id, digest, role, study, at FROM truearm_token ORDER BY at")

    def check_writes(self) -> None:
        """Commit a write that changes nothing, or raise."""
        with self.write("") as transaction:
            transaction.execute("UPDATE truearm_stamp SET stamp = stamp")

    def ends(self) -> list[tuple[str, int]]:
        """Return study and position of the first and of the last row of all studies."""
        statement = "SELECT study, position FROM truearm_event ORDER BY study {0}, position {0} LIMIT 1"
        return [self._select(statement.format(order))[0] for order in ("ASC", "DESC")]

    def has_tables(self) -> bool:
        """Return False if a crash left a file without tables."""
        return bool(self._select("SELECT 1 FROM sqlite_master WHERE name = 'truearm_event'"))

    def _select(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._connection() as connection:
            return list(connection.execute(self.sql(statement), values).fetchall())

    def sql(self, statement: str) -> str:
        """Return a statement with the placeholders of the driver."""
        return statement.replace("%s", "?") if self.is_file else statement

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """Borrow a connection; roll back and translate errors of the driver."""
        connection = None
        try:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._open_file() if self.is_file else self._open_server()
            if self.is_file:
                self._check_replaced(connection)
            yield connection
            self._idle.append(connection)
        except BaseException as error:
            is_own = not isinstance(error, sqlite3.Error | OSError) and "psycopg" not in type(error).__module__
            if connection is not None:
                with suppress(Exception):
                    connection.rollback()
                if is_own or self.is_file:  # closing the last one of a file would write to it
                    self._idle.append(connection)
                else:  # if one is broken, all are
                    for each in [connection, *self._idle]:
                        each.close()
                    self._idle.clear()
            if is_own:
                raise
            raise self._translate(error) from error

    def _translate(self, error: BaseException) -> TruearmError:
        code = getattr(error, "sqlite_errorname", "") or ""
        if isinstance(error, sqlite3.IntegrityError) or type(error).__name__ == "UniqueViolation":
            return StoreError("another process wrote to this study at the same time; send the request again")
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if line.startswith("Could not decode to UTF-8"):
            return VerificationError(f"{self.name}: the log has text that is not UTF-8; {_RESTORE}")
        if password := (self._server or {}).get("password"):
            line = line.replace(password, "...")
        remedy = "send the request again when it is back"
        if code == "SQLITE_FULL" or "No space left" in line:
            remedy = "free space on its disk and send the request again"
        elif code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
            remedy = "allow the user that runs this to write to it and to its directory"
        return StoreError(f"the database {self.name} failed: {line}; {remedy}")

    def _open_file(self) -> sqlite3.Connection:
        if self._stat is not None and not self.path.exists():  # or SQLite would create an empty one
            raise self._gone()
        with _GUARD:
            connection = sqlite3.connect(
                self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False
            )
            if self._file is None:
                self._file = _stat(self.path)[:2]
                _OPEN[self._file] += 1
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # `_checkpoint` does it
        return connection

    def _prepare_file(self, connection: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self._timeout
        connection.execute("BEGIN IMMEDIATE")
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            for statement in (*_TABLES, *_GROWS["sqlite"]):
                connection.execute(statement.format(bytes="BLOB", rowless=" WITHOUT ROWID"))
            connection.execute(f"PRAGMA application_id = {self._application}")
            connection.execute(f"PRAGMA user_version = {VERSIONS[self._application]}")
        connection.execute(_STAMP)
        connection.execute("COMMIT")
        while True:  # this statement does not wait for other connections by itself
            with suppress(sqlite3.OperationalError):
                if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
                    break
            if time.monotonic() >= deadline:
                msg = (
                    f"{self.path} cannot have a write-ahead log; choose a local directory, or stop other programs"
                )
                raise StoreError(msg)
            time.sleep(0.005)
        self._stamp(connection)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Copy the write-ahead log into the file; what was committed stays committed if that fails."""
        self._pages_since_checkpoint = 0
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._stamp(connection)
        self._stat = _stat(self.path)

    def _stamp(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        self._stat = _stat(self.path)
        connection.execute("DELETE FROM truearm_stamp")
        connection.execute("INSERT INTO truearm_stamp VALUES (?)", (str(self._stat[2:]),))
        connection.execute("COMMIT")

    def _check_replaced(self, connection: sqlite3.Connection) -> None:
        """Raise if the file is not the one that was opened: SQLite would mix its write-ahead log with another one.

        Only `_checkpoint` writes to the file itself, and then stores time and size of the file in the database.
        """
        if self._stat is None or (not self.replaced and self._is_same(connection)):
            return
        self.replaced = True
        msg = (
            f"the file {self.path} was replaced while it was in use, and nothing more is written to it; stop the "
            f"server, remove {self.path.name}-wal and {self.path.name}-shm, restore the backup again, and start it"
        )
        raise StoreError(msg)

    def _is_same(self, connection: sqlite3.Connection) -> bool:
        assert self._stat is not None
        deadline = time.monotonic() + _STAMP_TIMEOUT_S
        while (stat := _stat(self.path)) != self._stat:
            if stat is None:
                raise self._gone()
            stamp = connection.execute("SELECT stamp FROM truearm_stamp").fetchone()
            if stat[:2] != self._stat[:2] or (stamp != (str(stat[2:]),) and time.monotonic() > deadline):
                return False
            if stamp == (str(stat[2:]),):  # another process or thread made a checkpoint
                self._stat = stat
                return True
            time.sleep(0.02)  # it is about to store the stamp
        return True

    def _gone(self) -> StoreError:
        return StoreError(f"the database {self.name} is gone; put the file back, nothing was written since")

    def _open_server(self) -> Any:  # noqa: ANN401 - psycopg is optional
        import psycopg

        connection = psycopg.connect(**{**_TCP, **(self._server or {})}, autocommit=True)
        timeouts = (f"SET {name} = {int(1000 * self._timeout)}" for name in ("lock_timeout", "statement_timeout"))
        connection.execute("; ".join(["SET synchronous_commit = on", *timeouts]))
        return connection

    def _prepare_server(self, connection: Any) -> None:  # noqa: ANN401
        connection.execute("BEGIN")
        connection.execute(f"SELECT pg_advisory_xact_lock({SERVED})")
        if connection.execute("SELECT to_regclass('truearm_event')").fetchone()[0] is None:
            for statement in (*_TABLES, *_GROWS["postgresql"]):
                connection.execute(statement.format(bytes="BYTEA", rowless=""))
            connection.execute(f"COMMENT ON TABLE truearm_event IS '{VERSIONS[SERVED]}'")
        connection.execute(_STAMP)
        connection.execute("INSERT INTO truearm_stamp SELECT '' WHERE NOT EXISTS (SELECT 1 FROM truearm_stamp)")
        version = connection.execute("SELECT obj_description('truearm_event'::regclass)").fetchone()[0]
        _check_version(self.name, int(version or 0), VERSIONS[SERVED])
        connection.execute("COMMIT")


class Transaction:
    """A locked study: read what others wrote, then append."""

    def __init__(self, database: Database, connection: Any, study: str) -> None:  # noqa: ANN401
        self._database, self._connection, self._study, self.appended = database, connection, study, 0

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - a cursor
        """Run a statement."""
        return self._connection.execute(self._database.sql(statement), values)

    def rows(self, after: int, limit: int = _CHUNK_ROWS) -> list[Row]:
        """Return the rows after a position."""
        return list(map(Row._make, self.execute(_AFTER, (self._study, after, limit)).fetchall()))

    def last(self) -> Row | None:
        """Return the last row."""
        return next(map(Row._make, self.execute(_LAST, (self._study,)).fetchall()), None)

    def rows_before_key(self, key: str, count: int) -> list[Row] | None:
        """Return the `count` rows before the row of a key, and the one before them; None if the key is new."""
        found = self.execute(_KEY, (self._study, key)).fetchone()
        return None if found is None else self.rows(found[0] - count - 2, count + 1)

    def count_studies(self) -> int:
        """Return the number of studies."""
        return int(self.execute("SELECT count(*) FROM truearm_event WHERE position = 0").fetchone()[0])

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows; others see them when the transaction ends."""
        cursor = self._connection.cursor()
        cursor.executemany(self._database.sql(_INSERT), [(self._study, *row) for row in rows])
        self.appended += len(rows)


class Logged(NamedTuple):
    """An event and its position in the log, counted from 1."""

    position: int
    event: Event


class Store:
    """The log of one study in one file, for any thread; other processes may hold the same file.

    Parameters
    ----------
    path
        The file. `create` makes it.
    timeout
        Seconds to wait for other writers.

    Raises
    ------
    InvalidArgument
        If the file is not a log, or one of another version; it is left as it was.
    """

    def __init__(self, path: str | Path, timeout: float = 60.0) -> None:
        self._database = Database(path, RACE, check_positive("timeout", timeout))
        self.path, self._created = self._database.path, False
        check_file(self.path, RACE)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def created(self) -> bool:
        """Whether the file holds a study."""
        if not self._created and check_file(self.path, RACE):
            self._created = self._database.has_tables() and self._database.row(_NAME, 0) is not None
        return self._created

    @property
    def definition(self) -> dict[str, Any]:
        """The definition that `create` stored."""
        row = self._row(0)
        if self._database.ends() != [(_NAME, 0), (_NAME, self._row(None).position)]:
            msg = f"{self.path}: the log was changed: it has rows outside of the chain; {_RESTORE}"
            raise VerificationError(msg)
        definition = parse_json(row.notes or "")
        is_whole = row[1:6] == (DEFINITION, None, None, None, None) and first_digest(row.notes or "") == row.digest
        if not is_whole or not isinstance(definition, dict):
            msg = f"{self.path}: the definition of the study was changed after it was written; {_RESTORE}"
            raise VerificationError(msg)
        return definition

    @property
    def head(self) -> str:
        """The last digest in hexadecimal; a copy of it kept elsewhere shows later that nothing was changed."""
        return self._row(None).digest.hex()

    def _row(self, position: int | None) -> Row:
        row = None
        if self.created:
            row = self._database.last(_NAME) if position is None else self._database.row(_NAME, position)
        if row is None:
            msg = f"{self.path} holds no study yet; call create(definition) first"
            raise ProtocolError(msg)
        return row

    def create(self, definition: Mapping[str, Any]) -> None:
        """Create the log, or find the same study in the file."""
        text = to_json("definition", definition)
        self._database.prepare()
        with self._database.write(_NAME) as transaction:
            if transaction.last() is None:
                row = Row(0, DEFINITION, None, None, None, None, text, first_digest(text), None, time.time())
                transaction.append([row])
        if self.definition != json.loads(text):
            msg = f"{self.path} already holds another study; continue that one, or choose another file"
            raise ProtocolError(msg)

    def append(self, events: Iterable[Event], after: int | None = None) -> int:
        """Write events, all or none, and return the position of the last once they are on the disk.

        Parameters
        ----------
        after
            The last position the writer knows; if the log has grown since, nothing is written.
        """
        if isinstance(events, Event):  # a tuple itself: an empty one would be lost
            msg = f"append takes a list of events, but got {events!r:.80}; write [event]"
            raise InvalidArgument(msg, "events", events)
        texts = [to_text(event) for event in events]
        if not self.created:
            self._row(0)
        try:
            with self._database.write(_NAME) as transaction:
                last = transaction.last()
                if last is None or after not in (None, last.position):
                    msg = f"another process has written to {self.path}; start again with what it holds"
                    raise ProtocolError(msg)
                transaction.append(chain(texts, last.position, last.digest))
        except StoreError as error:
            if isinstance(error.__cause__, sqlite3.IntegrityError):
                tickets = ", ".join(list(dict.fromkeys(str(text[1]) for text in texts if text[1] is not None))[:5])
                msg = (
                    f"a ticket is issued once and told once, but one of {tickets} was before; "
                    "another process may be using this log"
                )
                raise ProtocolError(msg) from None
            raise
        return last.position + len(texts)

    def events(self, since: int = 0) -> Iterator[Logged]:
        """Iterate over the events after a position, each checked against its digest."""
        for row in self.rows(since):
            yield Logged(row.position, from_text(row[1:7]))

    def rows(self, since: int = 0) -> Iterator[Row]:
        """Iterate over the rows after a position, each checked against its digest."""
        before = self._row(since)
        while rows := self._database.rows(_NAME, before.position):
            check_chain(rows, before.position, before.digest, str(self.path))
            yield from rows
            before = rows[-1]

    def check_file_content(self) -> None:
        """Raise if pages are damaged, or if the file has rows that are not part of the log."""
        connection = self._database._open_file()
        with closing(connection):
            pages = connection.execute("PRAGMA integrity_check").fetchone()[0]
            tables = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'truearm_event'").fetchone()
            count, last = connection.execute("SELECT count(*), max(position) FROM truearm_event").fetchone()
        if (
            pages != "ok"
            or tables != (_EVENTS.format(bytes="BLOB", rowless=" WITHOUT ROWID"),)
            or count != last + 1
        ):
            what = pages if pages != "ok" else "it has rows or columns that are not part of the log"
            msg = f"the file was changed or damaged ({what})"
            raise ProtocolError(msg)


class Verified(NamedTuple):
    """A verified log: the number of events, the last digest, and the study."""

    events: int
    head: str
    study: Study


def check_head(noted: str | None) -> str:
    """Return the first digits of a head, none if none was noted."""
    wanted = (noted or "").strip().lower()
    if noted is not None and not re.fullmatch(rf"[0-9a-f]{{{_MIN_HEAD_DIGITS},64}}", wanted):
        msg = f"a head is {_MIN_HEAD_DIGITS} or more hexadecimal digits, but got {noted!r}"
        raise InvalidArgument(msg)
    return wanted


def verify(path: str | Path, noted: str | None = None) -> Verified:
    """Check a whole log: its pages, the chain of its digests, and that its events follow from its definition.

    Parameters
    ----------
    noted
        A head that was noted when the log was written, or its first digits: it must be in the chain, because a
        forger can recompute all digests.
    """
    wanted = check_head(noted)
    with Store(path) as store:
        try:
            definition, head, events = store.definition, store._row(0).digest.hex(), []
            store.check_file_content()
            is_known = head.startswith(wanted)
            for row in store.rows():
                head = row.digest.hex()
                is_known = is_known or head.startswith(wanted)
                events.append(from_text(row[1:7]))
            study = Study.replay(definition, events)
        except (sqlite3.DatabaseError, StoreError, ProtocolError, InvalidArgument) as error:
            msg = f"{store.path}: {error}; {_RESTORE}"
            raise VerificationError(msg) from None
    if not is_known:
        msg = f"{store.path} was never at {noted}: it is another log, or was rewritten; {_RESTORE}"
        raise VerificationError(msg)
    return Verified(len(events), head, study)


# Closing any handle on a file drops all locks that this process has on it, those of SQLite too, so that another
# process could remove the write-ahead log. So a header is read only while no `Database` has the file open.
_GUARD = threading.RLock()
_OPEN: Counter[tuple[int, int]] = Counter()


@contextmanager
def lock(path: str | Path, *, wait: bool) -> Iterator[None]:
    """Keep other processes from replaying and continuing a log at the same time."""
    from filelock import FileLock, Timeout

    beside = Path(f"{Path(path).resolve()}-lock")
    if not beside.parent.is_dir():
        msg = f"{path} cannot be a file; choose a file in an existing directory"
        raise InvalidArgument(msg)
    held = FileLock(beside, timeout=-1 if wait else 0)
    try:
        held.acquire()
    except Timeout:
        msg = (
            f"another process uses {path} (or a thread of this one); wait for it, stop it, or choose another file"
        )
        raise ProtocolError(msg) from None
    try:
        yield
    finally:
        with suppress(OSError):  # a process that waits notices that the file is gone
            beside.unlink()
        held.release()


def check_file(path: Path, application: int) -> bool:
    """Return True if the file is ours and of this kind, False if there is none yet; raise if it is another one."""
    if path.name == ":memory:" or not path.parent.is_dir() or (path.exists() and not path.is_file()):
        msg = f"{path} cannot be a file; choose a file in an existing directory"
        raise InvalidArgument(msg)
    if not path.exists() or not path.stat().st_size:
        return False
    if (links := path.stat().st_nlink) > 1:  # the write-ahead log is beside one of the names only
        msg = f"{path} is one of {links} names of the same file (hard links); keep one name, or copy the file"
        raise InvalidArgument(msg)
    with _GUARD:
        if _OPEN[_stat(path)[:2]]:
            return True
        with path.open("rb") as file:
            header = file.read(100)
    known, version = (int.from_bytes(header[at : at + 4], "big") for at in (68, 60))
    if not header.startswith(b"SQLite format 3\0"):
        known = 0
    if (application, known) == (RACE, SERVED):
        msg = f"{path} holds the studies of a server; `truearm serve --database {path}` opens it"
        raise InvalidArgument(msg)
    if known != application:
        what = {RACE: "a truearm log", SERVED: "a database of truearm serve", LEDGER: "a ledger"}[application]
        msg = f"{path} is not {what}, and was left as it is; choose another file"
        raise InvalidArgument(msg)
    _check_version(str(path), version, VERSIONS[application])
    return True


def _check_version(name: str, version: int, known: int) -> None:
    if version > known:
        msg = f"{name} was written by a newer truearm (version {version}); install that one"
        raise InvalidArgument(msg)
    if version < known:
        msg = f"{name} was written by an earlier truearm (version {version}); start a new one in another file"
        raise InvalidArgument(msg)


def _stat(path: Path) -> Any:  # noqa: ANN401
    try:
        found = os.stat(path)  # noqa: PTH116 - twice as fast as that of a path
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _read_url(url: str) -> dict[str, Any] | None:
    """Return the parameters of a PostgreSQL address, None for a file; messages never repeat a password."""
    example = "postgresql://user:password@host/name"
    if not url.startswith(("postgresql://", "postgres://")):
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/|.*\bpassword=", url, re.DOTALL):  # but C:/ is a file
            msg = f"database must be a file or such as {example}, but got another address (not shown)"
            raise InvalidArgument(msg)
        return None
    try:
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict
    except ModuleNotFoundError:
        msg = "PostgreSQL needs psycopg; install it with: pip install 'truearm[postgres]', or use a file"
        raise InvalidArgument(msg) from None
    place, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    try:
        found = {"host": "", "dbname": "", **{name: str(value) for name, value in conninfo_to_dict(url).items()}}
        if place.count("@") <= 1 and "@" not in path and re.fullmatch("[0-9,]*", found.get("port", "")):
            return found
    except Error:  # its message repeats the address
        pass
    msg = (
        f"database cannot be read as an address such as {example}; write special characters of user and password "
        "as %40 for @, %2F for /, %3A for :, %3F for ? and %25 for %"
    )
    raise InvalidArgument(msg)
