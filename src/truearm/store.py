"""Hash-chained logs of studies in SQLite or PostgreSQL: one table that only grows, one writer at a time.

Row 0 of a study is its definition, the others are its events, and each digest covers the one before
(docs/certificate.md). `Database` holds the studies of a server, `Store` the log of one race. An append is on the
disk when it returns.
"""

import json
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from truearm.errors import InvalidArgument, ProtocolError, TruearmError, VerificationError
from truearm.events import Event, from_row, to_row
from truearm.problem import refuse
from truearm.study import Study

RACE, SERVED, LEDGER = 0x74724172, 0x74724173, 0x7472416C  # "trAr", "trAs", "trAl" in the header of a SQLite file
VERSIONS = {RACE: 4, SERVED: 1, LEDGER: 1}
DEFINITION = "begun"  # the kind of row 0
_NAME = "race"  # of the only study in the file of a race
_RESTORE = "restore a copy of the log, or start a new one in another file"
_CHANGED = f"the log was changed after it was written; {_RESTORE}"
_MAX_DEPTH = 64  # of nested notes; the JSON parser recurses
CHUNK_ROWS = 20_000
_CHECKPOINT_PAGES = 4000  # of the write-ahead log, 16 MB
_STAMP_TIMEOUT_S = 2.0  # between a checkpoint and its stamp, in another process
# a machine that is gone is noticed within a minute, or when nothing sent is confirmed for 20 s
_TCP = "connect_timeout=5 keepalives_idle=30 keepalives_interval=10 keepalives_count=3 tcp_user_timeout=20000"
_COLUMNS = "position, kind, ticket, arm, draw, value, notes, digest, worker, at"
_TABLES = (
    "CREATE TABLE truearm_event (study TEXT NOT NULL, position BIGINT NOT NULL, kind TEXT NOT NULL, "
    "ticket BIGINT, arm TEXT, draw BIGINT, value TEXT, notes TEXT, digest {bytes} NOT NULL, worker TEXT, "
    "at DOUBLE PRECISION NOT NULL, PRIMARY KEY (study, position)){rowless}",
    "CREATE UNIQUE INDEX truearm_issued_once ON truearm_event (study, ticket) WHERE kind IN ('issued', 'counted')",
    "CREATE UNIQUE INDEX truearm_ended_once ON truearm_event (study, ticket) WHERE kind IN ('told', 'released')",
    "CREATE UNIQUE INDEX truearm_given_once ON truearm_event (study, worker) WHERE kind = 'key'",
    "CREATE INDEX truearm_begun ON truearm_event (at, study) WHERE position = 0",
    "CREATE TABLE truearm_token (id TEXT PRIMARY KEY, digest {bytes} NOT NULL, role TEXT NOT NULL, study TEXT, "
    "at DOUBLE PRECISION NOT NULL)",
    "CREATE TABLE truearm_stamp (stamp TEXT NOT NULL)",  # one row, see `_check_replaced`
    "INSERT INTO truearm_stamp VALUES ('')",
)
_ONLY_GROWS = {
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
_LOCK = "SELECT 1 FROM truearm_event WHERE study = %s AND position = 0 FOR UPDATE"
_LAST = f"SELECT {_COLUMNS} FROM truearm_event WHERE study = %s ORDER BY position DESC LIMIT 1"


class StoreError(TruearmError, RuntimeError):
    """A failure of the database: nothing was acknowledged, and the same request may be sent again."""


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


def first_row(definition: str) -> Row:
    """Return row 0 of a study."""
    return Row(0, DEFINITION, None, None, None, None, definition, first_digest(definition), None, time.time())


def _digests(rows: Iterable[Sequence[Any]], digest: bytes) -> Iterator[bytes]:
    """Iterate over the digests of rows: of the one before, then of seven columns as text, separated by NUL."""
    for position, kind, ticket, arm, draw, value, notes in map(itemgetter(slice(7)), rows):
        joined = (  # a third faster than a join; a replay may need a million of them
            f"{position}\0{kind}\0{'' if ticket is None else ticket}\0{'' if arm is None else arm}\0"
            f"{'' if draw is None else draw}\0{'' if value is None else value}\0{'' if notes is None else notes}"
        )
        digest = sha256(digest + joined.encode()).digest()
        yield digest


def chain(texts: Iterable[Sequence[Any]], position: int, digest: bytes, worker: str | None = None) -> list[Row]:
    """Return the rows of events as text that follow a position with this digest."""
    rows, at = [(number, *text) for number, text in enumerate(texts, position + 1)], time.time()
    return [Row._make((*row, new, worker, at)) for row, new in zip(rows, _digests(rows, digest), strict=True)]


def check_chain(rows: Sequence[Sequence[Any]], position: int, digest: bytes, where: str) -> None:
    """Raise `VerificationError` at the first row that does not continue the chain."""
    for number, (row, new) in enumerate(zip(rows, _digests(rows, digest), strict=True), position + 1):
        if row[0] != number or row[7] != new:
            raise VerificationError(f"{where}: event {row[0]} was changed after it was written; {_RESTORE}")


def to_text(event: Event) -> list[Any]:
    """Return the columns of an event: kind, ticket, arm, draw, value (as text: SQLite has no NaN) and notes."""
    kind, ticket, arm, draw, value, notes = Event(*to_row(event))
    arm = None if arm is None else check_text("arm", arm)
    value = repr(value) if isinstance(value, float) else value
    return [kind, ticket, arm, draw, value, None if notes is None else to_json("notes", notes)]


def from_text(rows: Sequence[Sequence[Any]]) -> Iterable[tuple[Any, ...]]:
    """Return the events of rows, as `Study.follow` accepts them."""
    if not any(map(itemgetter(6), rows)):
        return map(itemgetter(slice(1, 7)), rows)
    return ((*row[1:6], None if row[6] is None else parse_json(row[6])) for row in rows)


def parse_json(text: str | None) -> dict[str, Any]:
    """Return the object in a JSON text of the log."""
    with suppress(TypeError, ValueError, RecursionError):
        if isinstance(found := json.loads(text or ""), dict):
            return found
    raise ProtocolError(f"the log has text that is not a JSON object: {text!r:.80}")


def to_json(name: str, value: Mapping[str, Any]) -> str:
    """Return plain values as JSON text that every database can hold and every reader can parse."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"{name} must be a dict of plain JSON values, but: {error}", name) from None
    check_text(name, text.replace("\\u0000", "\0"))
    brackets = re.sub(r'"(?:[^"\\]|\\.)*"|[^][{}]', "", text)
    if max(accumulate(1 if one in "[{" else -1 for one in brackets), default=0) > _MAX_DEPTH:
        raise InvalidArgument(f"{name} may be nested {_MAX_DEPTH} levels deep at most; flatten it", name)
    return text


def check_text(name: str, text: str) -> str:
    """Return text without NUL, which PostgreSQL cannot hold, and without lone surrogates."""
    with suppress(UnicodeEncodeError):
        if isinstance(text, str) and "\0" not in text and (text.isascii() or text.encode()):
            return text
    msg = f"{name} must be text without NUL characters and invalid Unicode, but got {text!r:.200}; remove them"
    raise InvalidArgument(msg, name, text)


def check_file(path: str | Path) -> Path:
    """Return the absolute path of a file, which may not exist yet; a pipe would block, a device keeps no log."""
    is_other = is_right = False
    with suppress(TypeError, ValueError, OSError):  # neither text nor a path, or a name that no file can have
        place = Path(path).resolve()
        is_other = place.exists() and not (place.is_file() or place.is_dir())
        is_right = place.parent.is_dir() and not place.is_dir() and place.name != ":memory:"
    refuse(is_other, f"{path} is not an ordinary file; choose another one", "path", path)
    msg = f"{str(path) or repr(path):.200} cannot be a file; choose a file in an existing directory"
    refuse(not is_right, msg, "path", path)
    return place


class Database:
    """The logs in a SQLite file or in a PostgreSQL database, for all threads of a process.

    Inside `with write(study)`, what the same thread reads and appends belongs to that transaction.
    `application` says what the file is for; `timeout` is how many seconds other writers and a statement may take.
    """

    def __init__(self, url: str | Path, application: int = SERVED, timeout: float = 20.0) -> None:
        self._server = _read_url(str(url))
        self.is_file = self._server is None
        # SQLite names its other files after the path it was opened with
        self.path = check_file(url) if self.is_file else Path()
        self._application, self._timeout = application, timeout
        self.name = str(url) if self._server is None else "postgresql://{host}/{dbname}".format(**self._server)
        self._turn = threading.Lock()  # writers of a file wait here instead of polling SQLite's lock
        self._idle: list[Any] = []
        self._writing = threading.local()  # the connection of this thread's transaction
        self._stat: tuple[int, ...] | None = None  # of the file as it was opened, or after the last checkpoint
        self._pages = 0  # of the write-ahead log since then, roughly
        self._is_replaced = False
        if self.is_file:
            self.exists()
        if application == SERVED:
            with self._connection() as connection:
                (self._prepare_file if self.is_file else self._prepare_server)(connection)

    def close(self) -> None:
        """Close all connections; what is asked later opens the file again."""
        while self._idle:
            self._idle.pop().close()
        stat = _stat(self.path)
        if self._stat is not None and stat is not None and stat[:2] == self._stat[:2]:
            self._stat = stat  # closing made a checkpoint

    def exists(self) -> bool:
        """Return False if there is no file yet, or one without tables; raise if it is not one of ours."""
        path = check_file(self.path)
        if not path.exists():
            return self._stat is not None  # a statement then reports that the file is gone
        if (links := path.stat().st_nlink) > 1:  # SQLite keeps the latest writes next to only one of the names
            msg = f"{path} is one of {links} names of the same file (hard links); keep one name, or copy the file"
            raise InvalidArgument(msg)
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE name = 'truearm_event'"))

    @contextmanager
    def write(self, study: str) -> Iterator[None]:
        """Lock a study while its log is read and continued; on any error nothing is written."""
        if self.is_file and not self._turn.acquire(timeout=self._timeout):
            raise StoreError(f"the database {self.name} is locked by another program; send it again later")
        try:
            with self._connection() as connection:
                if self.is_file and self._stat is None:
                    self._prepare_file(connection)
                self._writing.connection = connection
                connection.execute("BEGIN IMMEDIATE" if self.is_file else "BEGIN")
                if not self.is_file:
                    self.execute(_LOCK, (study,))
                yield
                connection.execute("COMMIT")
                if self.is_file and self._pages >= _CHECKPOINT_PAGES:
                    self._checkpoint(connection)
        finally:
            self._writing.connection = None
            if self.is_file:
                self._turn.release()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement and return its rows; if it changes rows, return how many."""
        with self._connection() as connection:
            cursor = connection.execute(statement.replace("%s", "?") if self.is_file else statement, values)
            return [(cursor.rowcount,)] if cursor.description is None else list(cursor.fetchall())

    def append(self, study: str, rows: Sequence[Row]) -> None:
        """Write rows in a transaction; others see them when it ends."""
        with self._connection() as connection:
            statement = _INSERT.replace("%s", "?") if self.is_file else _INSERT
            connection.cursor().executemany(statement, [(study, *row) for row in rows])
        self._pages += 4 + len(rows) // 16

    def rows(self, study: str, after: int, limit: int = CHUNK_ROWS) -> list[Any]:
        """Return the rows of a study after a position, as plain tuples: making `Row`s would double the time."""
        return self.execute(_AFTER, (study, after, limit))

    def first(self, study: str) -> Row | None:
        """Return row 0 of a study, which has the definition in its notes; raise if it was changed."""
        row = next((Row(*row) for row in self.rows(study, -1, 1) if row[0] == 0), None)
        if row and (row[1:6] != (DEFINITION, *[None] * 4) or row.digest != first_digest(str(row.notes))):
            raise VerificationError(f"{self.name} ({study}): {_CHANGED}")
        return row

    def last(self, study: str) -> Row | None:
        """Return the last row of a study."""
        return next((Row(*row) for row in self.execute(_LAST, (study,))), None)

    def check_writes(self) -> None:
        """Commit a write that changes nothing, or raise."""
        with self.write(""):
            self.execute("UPDATE truearm_stamp SET stamp = stamp")

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """Borrow a connection; roll back and translate errors of the driver."""
        if (connection := getattr(self._writing, "connection", None)) is not None:
            yield connection
            return
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
            is_ours = not isinstance(error, sqlite3.Error | OSError) and "psycopg" not in type(error).__module__
            if connection is not None:
                with suppress(Exception):
                    connection.rollback()
                self._idle.append(connection)
                if not is_ours and not self.is_file:  # if one connection to a server is broken, all are
                    self.close()
            if is_ours:
                raise
            raise self._translate(error) from error

    def _translate(self, error: BaseException) -> TruearmError:
        if isinstance(error, sqlite3.IntegrityError) or type(error).__name__ == "UniqueViolation":
            msg = "a ticket is issued once and told once, but another process wrote one of these; send them again"
            return StoreError(msg)
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if line.startswith("Could not decode to UTF-8"):
            return VerificationError(f"{self.name}: the log has text that is not UTF-8; {_RESTORE}")
        if password := (self._server or {}).get("password"):
            line = line.replace(password, "...")
        remedy = "check its disk and permissions, then try again"
        return StoreError(f"the database {self.name} failed: {line}; {remedy}")

    def _open_file(self) -> sqlite3.Connection:
        mode = "rwc" if self._stat is None else "rw"  # a file that is gone is not created again
        place, wait = f"{self.path.as_uri()}?mode={mode}", self._timeout
        connection = sqlite3.connect(place, wait, isolation_level=None, check_same_thread=False, uri=True)
        try:
            self._check_application(connection)
        except BaseException:
            connection.close()
            raise
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # `_checkpoint` does it
        return connection

    def _check_application(self, connection: sqlite3.Connection) -> None:
        """Raise if the file is not one of ours and of this kind, or of another version."""
        try:
            connection.execute("BEGIN")  # one snapshot: another process may be creating the file
            [known] = connection.execute("PRAGMA application_id").fetchone()
            [version] = connection.execute("PRAGMA user_version").fetchone()
            size = self.path.stat().st_size
            connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorname != "SQLITE_NOTADB":
                raise
            known, version, size = 0, 0, 1
        if not (known or version or size):
            return  # a new file
        if known != self._application:
            what = {RACE: "a truearm log", SERVED: "a database of truearm serve", LEDGER: "a ledger"}
            kind = what[self._application] + (f" but {what[known]}" if known in what else "")
            msg = f"{self.path} is not {kind}, and was left as it is; choose another file"
            if (self._application, known) == (RACE, SERVED):
                msg = f"{self.path} holds the studies of a server; `truearm serve --database {self.path}` opens it"
            raise InvalidArgument(msg)
        _check_version(str(self.path), version, VERSIONS[known])

    def _prepare_file(self, connection: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self._timeout
        connection.execute("BEGIN IMMEDIATE")
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            for statement in (*_TABLES, *_ONLY_GROWS["sqlite"]):
                connection.execute(statement.format(bytes="BLOB", rowless=" WITHOUT ROWID"))
            connection.execute(f"PRAGMA application_id = {self._application}")
            connection.execute(f"PRAGMA user_version = {VERSIONS[self._application]}")
        connection.execute("COMMIT")
        while time.monotonic() < deadline:  # this statement does not wait for other connections
            with suppress(sqlite3.OperationalError):
                if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
                    self._stamp(connection)
                    return
            time.sleep(0.005)
        msg = f"{self.path} cannot have a write-ahead log; choose a local directory, or stop other programs"
        raise StoreError(msg)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Copy the write-ahead log into the file; what was committed stays committed if that fails."""
        self._pages = 0
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._stamp(connection)

    def _stamp(self, connection: sqlite3.Connection) -> None:
        """Store time and size of the file, which only `_checkpoint` changes; one process at a time."""
        connection.execute("BEGIN IMMEDIATE")
        self._stat = _stat(self.path)
        connection.execute("UPDATE truearm_stamp SET stamp = ?", (str(self._stat),))
        connection.execute("COMMIT")

    def _check_replaced(self, connection: sqlite3.Connection) -> None:
        """Raise if the file is not the one that was opened: SQLite would mix its write-ahead log with another."""
        deadline = time.monotonic() + _STAMP_TIMEOUT_S
        while self._stat is not None and (stat := _stat(self.path)) != self._stat and not self._is_replaced:
            if stat is None:
                raise StoreError(f"the database {self.name} is gone; put the file back, nothing was written")
            if stat[:2] != self._stat[:2] or time.monotonic() > deadline:
                self._is_replaced = True
                with suppress(OSError):  # or SQLite copies it into the new file at the end
                    os.truncate(f"{self.path}-wal", 0)
                break
            with suppress(sqlite3.Error):
                if connection.execute("SELECT stamp FROM truearm_stamp").fetchone() == (str(stat),):
                    self._stat = stat  # another process or thread made a checkpoint
                    break
            time.sleep(0.02)  # it is about to store the stamp
        if self._is_replaced:
            files = f"{self.path.name}-wal and {self.path.name}-shm"
            msg = f"the file {self.path} was replaced while it was in use, and nothing more is written to it; "
            raise StoreError(f"{msg}stop the server, remove {files}, restore the backup again, and start it")

    def _open_server(self) -> Any:  # noqa: ANN401 - psycopg is optional
        import psycopg

        connection = psycopg.connect(_TCP, **(self._server or {}), autocommit=True)
        timeouts = (f"SET {name} = {int(1000 * self._timeout)}" for name in ("lock_timeout", "statement_timeout"))
        connection.execute("; ".join(["SET synchronous_commit = on", *timeouts]))
        return connection

    def _prepare_server(self, connection: Any) -> None:  # noqa: ANN401
        connection.execute("BEGIN")
        connection.execute(f"SELECT pg_advisory_xact_lock({SERVED})")
        if connection.execute("SELECT to_regclass('truearm_event')").fetchone()[0] is None:
            for statement in (*_TABLES, *_ONLY_GROWS["postgresql"]):
                connection.execute(statement.format(bytes="BYTEA", rowless=""))
            connection.execute(f"COMMENT ON TABLE truearm_event IS '{VERSIONS[SERVED]}'")
        version = connection.execute("SELECT obj_description('truearm_event'::regclass)").fetchone()[0]
        _check_version(self.name, int(version or 0), VERSIONS[SERVED])
        connection.execute("COMMIT")


class Store(AbstractContextManager["Store"]):
    """The log of one study in one file, for any thread; other processes may hold the same file."""

    def __init__(self, path: str | Path) -> None:
        self._database = Database(path, RACE, timeout=60.0)
        self.path, self.close = self._database.path, self._database.close

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def created(self) -> bool:
        """Whether the file holds a study."""
        return self._database.exists() and self._database.last(_NAME) is not None

    @property
    def definition(self) -> dict[str, Any]:
        """The definition that `create` stored."""
        return parse_json(self._row(0).notes)

    def _row(self, position: int) -> Row:
        """Return row 0 or the last row (-1)."""
        if not self.created:
            raise ProtocolError(f"{self.path} holds no study yet; call create(definition) first")
        row = self._database.first(_NAME) if position == 0 else self._database.last(_NAME)
        if row is None:
            raise VerificationError(f"{self.path}: {_CHANGED}")
        return row

    def create(self, definition: Mapping[str, Any]) -> None:
        """Create the log, or find the same study in the file."""
        text = to_json("definition", definition)
        with self._database.write(_NAME):
            if self._database.last(_NAME) is None:
                self._database.append(_NAME, [first_row(text)])
        if self.definition != json.loads(text):
            msg = f"{self.path} already holds another study; continue that one, or choose another file"
            raise ProtocolError(msg)

    def append(self, events: Iterable[Event], after: int | None = None) -> int:
        """Write events, all or none, and return the position of the last once they are on the disk.

        If the log has grown beyond `after`, the last position that the writer knows, nothing is written.
        """
        texts = [to_text(event) for event in events]
        self._row(-1)
        with self._database.write(_NAME):
            last = self._row(-1)
            if after not in (None, last.position):
                raise ProtocolError(f"another process has written to {self.path}; open it again to continue")
            self._database.append(_NAME, chain(texts, last.position, last.digest))
        return last.position + len(texts)

    def events(self) -> Iterator[Event]:
        """Iterate over the events, each checked against its digest."""
        return map(from_row, self.rows())

    def rows(self, heads: set[str] | None = None) -> Iterator[tuple[Any, ...]]:
        """Iterate over the events as `Study.follow` accepts them; each digest is added to `heads`."""
        before = self._row(0)
        [(count, last)] = self._database.execute(
            "SELECT count(*), coalesce(CAST(max(position) AS BIGINT), 0) FROM truearm_event"
        )
        while rows := self._database.rows(_NAME, before.position, CHUNK_ROWS):
            check_chain(rows, before.position, before.digest, str(self.path))
            if heads is not None:
                heads.update(row[7].hex() for row in rows)
            yield from from_text(rows)
            before = Row(*rows[-1])
        if before.position < last or count != last + 1:  # a damaged page hides rows from a search, not from a scan
            raise VerificationError(f"{self.path}: {_CHANGED}")

    def check_file_content(self) -> None:
        """Raise if pages are damaged, or if the table is not the one created: a view could answer anything."""
        [(found,)] = self._database.execute("PRAGMA integrity_check(1)")
        table = self._database.execute("SELECT sql FROM sqlite_master WHERE name = 'truearm_event'")
        if table != [(_TABLES[0].format(bytes="BLOB", rowless=" WITHOUT ROWID"),)]:
            found = "its table differs"
        if found != "ok":
            raise ProtocolError(f"the file was changed or damaged ({found})")


class Verified(NamedTuple):
    """A verified log: the number of events, the last digest, and the study."""

    events: int
    head: str
    study: Study


def check_head(noted: str, heads: Iterable[str], where: str | Path) -> None:
    """Raise if a head that was noted earlier is not among the digests of a chain."""
    wanted = noted.strip().lower()
    if not re.fullmatch("[0-9a-f]{16,64}", wanted):  # fewer digits can be forged by trying
        raise InvalidArgument(f"a head is 16 or more hexadecimal digits, but got {noted!r}")
    if not any(known.startswith(wanted) for known in heads):
        msg = f"{where} was never at {noted}: it is another one, or was rewritten; {_RESTORE}"
        raise VerificationError(msg)


def verify(path: str | Path, noted: str | None = None) -> Verified:
    """Check a whole log: its pages, the chain of its digests, and that its events follow from its definition.

    A forger can recompute all digests, but not so that `noted`, a head that was noted earlier, is one of them.
    """
    with Store(path) as store:
        try:
            heads = {store._row(0).digest.hex()}
            definition = store.definition
            store.check_file_content()
            study = Study.replay(definition)
            study.follow(store.rows(heads))
            last = store._row(-1)
        except (StoreError, ProtocolError, InvalidArgument) as error:
            raise VerificationError(f"{store.path}: {error}; {_RESTORE}") from None
    if noted is not None:
        check_head(noted, heads, store.path)
    return Verified(last.position, last.digest.hex(), study)


@contextmanager
def lock(path: str | Path) -> Iterator[None]:
    """Keep other processes from replaying and continuing a log at the same time."""
    from filelock import FileLock, Timeout

    place = Path(f"{check_file(path)}-lock")
    try:
        with FileLock(place, timeout=0):
            try:
                yield
            finally:
                place.unlink(missing_ok=True)
    except Timeout:
        msg = f"another process uses {path} (or a thread of this one)"
        raise ProtocolError(f"{msg}; wait for it, stop it, or choose another file") from None


def _check_version(name: str, version: int, known: int) -> None:
    by = f"{'a newer' if version > known else 'an earlier'} truearm (version {version})"
    refuse(version != known, f"{name} was written by {by}; install that version, or choose another file")


def _stat(path: Path) -> tuple[int, ...] | None:
    """Return device, inode, time and size of a file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _read_url(url: str) -> dict[str, Any] | None:
    """Return the parameters of a PostgreSQL address, None for a file; messages never repeat a password."""
    msg = (
        "database must be a file or such as postgresql://user:password@host/name, but got another address (not "
        "shown); write special characters as %40 for @, %2F for /, %3A for :, %3F for ? and %25 for %"
    )
    if not url.startswith(("postgresql://", "postgres://")):
        # but C:/ is a file
        refuse(re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/|.*\bpassword=", url, re.DOTALL), msg)
        return None
    try:
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict
    except ModuleNotFoundError:
        needed = "PostgreSQL needs psycopg; install it with: pip install 'truearm[postgres]', or use a file"
        raise InvalidArgument(needed) from None
    place, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    try:
        found = {"host": "", "dbname": "", **{name: str(value) for name, value in conninfo_to_dict(url).items()}}
        if place.count("@") <= 1 and "@" not in path and re.fullmatch("[0-9,]*", found.get("port", "")):
            return found
    except Error:  # its message repeats the address
        pass
    raise InvalidArgument(msg)
