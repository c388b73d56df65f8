"""The append-only log of a study: a SQLite file in which every acknowledged event stays.

What was appended is on the disk when `append` returns, in the order of positions; nothing is ever changed or
removed, so replaying the log is restoring the study. Every write takes the lock at its start (BEGIN
IMMEDIATE): writers then wait for each other, where a lock taken halfway could only fail. Under that lock a writer
may learn that others were there first (`after`), the database refuses a ticket that was used before, and the chain
of digests grows by the new events. Whoever reads events has the chain checked on the way.

The file is told from other files by SQLite's application id, and from other generations of itself by the user
version. Both are read from the file's first hundred bytes before SQLite opens it, so that opening a wrong file
changes nothing, and they are written before the write-ahead log is switched on, so that they are always there.
"""

import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from truearm.errors import InvalidArgument, ProtocolError, VerificationError
from truearm.events import COLUMNS, Event
from truearm.problem import check_positive
from truearm.study import Study
from truearm.world import chain
from truearm.world.rows import as_json, from_text, linked, parsed, to_text

SCHEMA = 3
APPLICATION = 0x74724172  # "trAr" in the header of the file
SERVED = 0x74724173  # "trAs": studies of a server, many in one file

_MAGIC = b"SQLite format 3\0"
_CHUNK = 10_000  # rows read at a time, so that a slow reader holds no lock
_TABLES = (
    "CREATE TABLE study (definition TEXT NOT NULL, digest BLOB NOT NULL)",
    "CREATE TABLE event (position INTEGER PRIMARY KEY, kind TEXT NOT NULL, "
    "ticket INTEGER, arm TEXT, draw INTEGER, value TEXT, notes TEXT, digest BLOB NOT NULL)",
    "CREATE UNIQUE INDEX issued_once ON event (ticket) WHERE kind IN ('issued', 'counted')",
    "CREATE UNIQUE INDEX ended_once ON event (ticket) WHERE kind IN ('told', 'released')",
    "CREATE TRIGGER no_update BEFORE UPDATE ON event BEGIN SELECT RAISE (ABORT, 'the log only grows'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON event BEGIN SELECT RAISE (ABORT, 'the log only grows'); END",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {SCHEMA}",
)
_ROW = ("position", *COLUMNS, "digest")
_INSERT = f"INSERT INTO event ({', '.join(_ROW)}) VALUES ({', '.join('?' * len(_ROW))})"
_SELECT = f"SELECT {', '.join(_ROW)} FROM event WHERE position > ? ORDER BY position LIMIT ?"
_LEAST = 16  # hexadecimal digits of a noted head: fewer could be met by trying


_RESTORE = "restore a copy of the log, or begin anew in another file"


class Logged(NamedTuple):
    """An event and its position in the log, counted from 1."""

    position: int
    event: Event


class Store:
    """The log of one study in one file; made by `create`, continued by `append`, read by `events`.

    Several processes may hold a store on the same file. Within a process one store is enough: its methods may
    be called from any thread.

    Parameters
    ----------
    path
        The file. It is made by `create`, not before.
    patience
        Seconds to wait for other writers; a minute is far more than any of their commits takes.

    Raises
    ------
    InvalidArgument
        If the file holds something else, or a log of another generation; the file is left as it was.
    """

    def __init__(self, path: str | Path, patience: float = 60.0) -> None:
        self.path = Path(path).resolve()  # SQLite keeps files beside the log, by the name it was opened with
        self._patience = check_positive("patience", patience)
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._created = False
        if _is_log(self.path):
            self._connect()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file. What was acknowledged is in it anyway."""
        with self._lock:
            if self._connection:
                with _GUARD:
                    self._connection.close()
                    _OPEN[self._file] -= 1
            self._connection = None

    @property
    def created(self) -> bool:
        """Whether the file holds a study."""
        with self._lock:
            if self._connection is None and _is_log(self.path):
                self._connect()
            if not self._created and self._connection:
                self._created = _has_study(self._connection)
            return self._created

    @property
    def definition(self) -> dict[str, Any]:
        """What `create` was given."""
        with self._lock:
            text, digest = _begun(self._opened())
        if chain.first(text) != digest:
            msg = f"{self.path}: the definition of the study was changed after it was written; {_RESTORE}"
            raise VerificationError(msg)
        definition = parsed(text)
        if not isinstance(definition, dict):
            msg = f"{self.path}: the definition of a study is a dictionary, but this is {definition!r:.80}"
            raise ProtocolError(msg)
        return definition

    @property
    def head(self) -> str:
        """The last digest in hexadecimal; noted elsewhere, it shows later that nothing before it was changed."""
        with self._lock:
            return _end(self._opened())[1].hex()

    def create(self, definition: Mapping[str, Any]) -> None:
        """Make the file, or find in it the same study; several processes may do so at once.

        Raises
        ------
        ProtocolError
            If the file holds a study with another definition.
        """
        text = as_json("definition", definition)
        with self._lock:
            _is_log(self.path)  # a wrong file may have come since
            connection = self._connect()
            _write_definition(connection, text)
            _switch_on_log(connection, self._patience)
        if self.definition != json.loads(text):
            msg = f"{self.path} already holds another study; continue that one, or choose another file"
            raise ProtocolError(msg)

    def append(self, events: Iterable[Event], after: int | None = None) -> int:
        """Write events, all or none, and return the position of the last once they are on the disk.

        Parameters
        ----------
        after
            The last position the writer knows. If the log has grown since, by another writer, nothing is written:
            what that one does not know of may have led to other pulls.

        Raises
        ------
        ProtocolError
            If the log has grown or was moved, or a ticket would be handed out or told twice; nothing is written.
        """
        rows = [to_text(event) for event in events]
        with self._lock:
            connection = self._opened()
            if _identity(self.path) != self._file:
                msg = f"{self.path} was moved or removed while it was open; go on with it from where it is now"
                raise ProtocolError(msg)
            connection.execute("BEGIN IMMEDIATE")
            try:
                last, digest = _end(connection)
                if after is not None and last != after:
                    msg = f"another process has written to {self.path} meanwhile; begin again with what it holds"
                    raise ProtocolError(msg)
                connection.executemany(_INSERT, linked(rows, last, digest))
                connection.execute("COMMIT")
            except BaseException as error:
                _roll_back(connection)
                if isinstance(error, sqlite3.IntegrityError):
                    msg = (
                        f"a ticket is handed out once and told once, but one of {_tickets(rows)} was before; "
                        "another process may be at work on this log"
                    )
                    raise ProtocolError(msg) from None
                raise
            return last + len(rows)

    def events(self, since: int = 0) -> Iterator[Logged]:
        """Iterate over the events after position `since`, with those appended meanwhile.

        Raises
        ------
        VerificationError
            At the first event that does not fit its digest: it was changed after it was written.
        """
        return (logged for logged, _ in self._checked(since))

    def _checked(self, since: int) -> Iterator[tuple[Logged, bytes]]:
        before = self._digest(since)
        if since < 1:
            self._check_first()
        while True:
            with self._lock:
                rows = self._opened().execute(_SELECT, (since, _CHUNK)).fetchall()
            for *row, digest in rows:
                before = chain.linked(before, row)
                if before != digest:
                    msg = f"{self.path}: event {row[0]} was changed after it was written; {_RESTORE}"
                    raise VerificationError(msg)
                yield Logged(row[0], from_text(row[1:])), digest
            if len(rows) < _CHUNK:
                return
            since = rows[-1][0]

    def _check_first(self) -> None:
        """Refuse rows before the first position: they are in no digest."""
        with self._lock:
            first = self._opened().execute("SELECT min(position) FROM event").fetchone()[0]
        if first is not None and first < 1:
            msg = f"{self.path}: an event stands at position {first}, before the first; {_RESTORE}"
            raise VerificationError(msg)

    def _digest(self, position: int) -> bytes:
        with self._lock:
            connection = self._opened()
            found = None  # the first event comes after the definition, whatever stands at position 0
            if position > 0:
                found = connection.execute("SELECT digest FROM event WHERE position = ?", (position,)).fetchone()
            return _bytes(found[0]) if found else _begun(connection)[1]

    def _opened(self) -> sqlite3.Connection:
        if not self.created:
            msg = f"{self.path} holds no study yet; call create(definition) first"
            raise ProtocolError(msg)
        return self._connect()

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            with _GUARD:
                connection = sqlite3.connect(
                    self.path, timeout=self._patience, isolation_level=None, check_same_thread=False
                )
                try:
                    connection.text_factory = _decode
                    connection.execute("PRAGMA synchronous = FULL")
                    begun = _has_study(connection)
                except BaseException:
                    connection.close()
                    raise
                self._file = _identity(self.path)
                _OPEN[self._file] += 1
            self._connection = connection
            if begun:
                _switch_on_log(connection, self._patience)
        return self._connection


class Verified(NamedTuple):
    """What `verify` found: how many events there are, the last digest, and the study they make."""

    events: int
    head: str
    study: Study


def verify(path: str | Path, noted: str | None = None) -> Verified:
    """Check a whole log: its pages, the chain of its digests, and that its events follow from its definition.

    Parameters
    ----------
    noted
        A head that was noted when the log was written so far, or its first digits: it must be in the chain, since
        a forger could compute all other digests anew.

    Raises
    ------
    VerificationError
        If the log was changed, or the noted head is not in it.
    """
    wanted = "" if noted is None else _digits(noted)
    with Store(path) as store:
        try:
            _check_pages(store)
            definition, head, events = store.definition, store._digest(0).hex(), []
            met = head.startswith(wanted)
            for logged, digest in store._checked(0):
                head = digest.hex()
                met = met or head.startswith(wanted)
                events.append(logged.event)
            study = Study.replay(definition, events)
        except (sqlite3.DatabaseError, ProtocolError, InvalidArgument) as error:
            msg = f"{store.path}: {error}; {_RESTORE}"
            raise VerificationError(msg) from None
    if not met:
        msg = f"{store.path} was never at {noted}: it is another log, or was written anew; {_RESTORE}"
        raise VerificationError(msg)
    return Verified(len(events), head, study)


def _digits(noted: str) -> str:
    digits = noted.strip().lower()
    if len(digits) < _LEAST or set(digits) - set("0123456789abcdef"):
        msg = f"a head is noted by {_LEAST} or more of its hexadecimal digits, but got {noted!r}"
        raise InvalidArgument(msg)
    return digits


def _check_pages(store: Store) -> None:
    found = store._opened().execute("PRAGMA integrity_check").fetchone()[0]
    if found != "ok":
        msg = f"the file is damaged ({found})"
        raise ProtocolError(msg)


# Closing any descriptor of a file drops all locks this process has on it, those of SQLite too; another process may
# then take the write-ahead log for its own and remove it. So a file is read only while no store has it open.
_GUARD = threading.RLock()
_OPEN: Counter[tuple[int, int] | None] = Counter()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _is_log(path: Path) -> bool:
    """Return whether the file is one of ours, False if there is nothing yet, or raise."""
    if not path.parent.is_dir() or (path.exists() and not path.is_file()):
        msg = f"{path} cannot be a file; choose a file in an existing directory"
        raise InvalidArgument(msg)
    with _GUARD:
        file = _identity(path)
        if file is None:
            return False
        _check_one_name(path)
        if _OPEN[file] > 0:
            return True  # it was read before a store of this process opened it
        head = _head(path)
    if not head:
        return False
    application, version = (int.from_bytes(head[at : at + 4], "big") for at in (68, 60))
    if head.startswith(_MAGIC) and application == SERVED:
        msg = f"{path} holds the studies of a server; `truearm serve --database {path}` opens it"
        raise InvalidArgument(msg)
    if not head.startswith(_MAGIC) or application != APPLICATION:
        msg = f"{path} is not a truearm log, and was left as it is; choose another file"
        raise InvalidArgument(msg)
    if version > SCHEMA:
        msg = f"{path} is a log of schema {version}, and this truearm reads up to {SCHEMA}; install a newer one"
        raise InvalidArgument(msg)
    if version < SCHEMA:
        msg = (
            f"{path} is a log of an earlier truearm (schema {version}), which this one does not read; "
            "begin anew in another file"
        )
        raise InvalidArgument(msg)
    return True


def _check_one_name(path: Path) -> None:
    # What was last written may lie in a file beside one of the names, where who opens the other does not look.
    if (names := path.stat().st_nlink) > 1:
        msg = f"{path} is one of {names} names of the same file (hard links); keep one name, or copy the file"
        raise InvalidArgument(msg)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(100)


def _has_study(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall()
    if found and [sql for (sql,) in found] != list(_TABLES[:2]):  # no digest covers how columns are called
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        msg = f"{path}: the tables of the log were changed after it was written; {_RESTORE}"
        raise VerificationError(msg)
    return bool(found)


def _begun(connection: sqlite3.Connection) -> tuple[str, bytes]:
    rows = connection.execute("SELECT definition, digest FROM study LIMIT 2").fetchall()
    if len(rows) > 1:
        msg = f"the log holds more than one definition of a study; {_RESTORE}"
        raise VerificationError(msg)
    text, digest = rows[0] if rows else ("", b"")
    return str(text), _bytes(digest)


def _decode(text: bytes) -> str:
    """Return text with the bytes that are not UTF-8 marked: no digest fits it, so it counts as changed."""
    return text.decode(errors="surrogateescape")


def _end(connection: sqlite3.Connection) -> tuple[int, bytes]:
    last = connection.execute("SELECT position, digest FROM event ORDER BY position DESC LIMIT 1").fetchone()
    return (last[0], _bytes(last[1])) if last else (0, _begun(connection)[1])


def _bytes(digest: object) -> bytes:
    return digest if isinstance(digest, bytes) else b""  # of a damaged file, which fits nothing


def _write_definition(connection: sqlite3.Connection, text: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _has_study(connection):
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute("INSERT INTO study (definition, digest) VALUES (?, ?)", (text, chain.first(text)))
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _switch_on_log(connection: sqlite3.Connection, patience: float) -> None:
    # This one statement does not wait for other connections by itself.
    deadline = time.monotonic() + patience
    while True:
        try:
            if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
                return
        except sqlite3.OperationalError:
            if time.monotonic() >= deadline:
                raise
        if time.monotonic() >= deadline:
            msg = "the file system of the log has no write-ahead log; choose a local directory"
            raise InvalidArgument(msg)
        time.sleep(0.005)


def _tickets(rows: Iterable[list[Any]]) -> str:
    tickets = [str(ticket) for ticket in dict.fromkeys(row[1] for row in rows) if ticket is not None]
    return ", ".join(tickets[:5]) + (", ..." if len(tickets) > 5 else "")
