"""One writer of a log at a time: whoever replays it and then goes on keeps others out until it is done.

SQLite orders single writes; this keeps the reading of a log and the next ticket together, and tells the second
writer at its start instead of after its first pulls. The lock is a file beside the log, because closing a second
handle on the log itself would drop SQLite's own locks. It belongs to the file that a name leads to: links are
followed, and a log with two names of its own (hard links) is refused by the store.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from truearm.errors import InvalidArgument, ProtocolError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_FOREVER = 1e6  # seconds: eleven days


@contextmanager
def alone(path: str | Path, *, wait: bool) -> Iterator[None]:
    """Keep other writers of a log out: wait for them, or say that somebody is in the way."""
    beside = f"{Path(path).resolve()}-lock"
    holding = _by_sqlite if fcntl is None else _by_flock
    with holding(beside, path, wait=wait):
        yield


@contextmanager
def _by_flock(beside: str, path: str | Path, *, wait: bool) -> Iterator[None]:
    descriptor = _locked(beside, path, wait=wait)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)  # noqa: PTH108 - while still holding it: see _locked
        os.close(descriptor)


def _locked(beside: str, path: str | Path, *, wait: bool) -> int:
    while True:
        try:
            descriptor = os.open(beside, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            raise _nowhere(path) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            raise _taken(path) from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(beside)):  # noqa: PTH116
                return descriptor
        os.close(descriptor)  # the holder before us removed it: what we locked is no longer the lock


@contextmanager
def _by_sqlite(beside: str, path: str | Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock as SQLite locks a file, which it knows how to do on Windows too."""
    try:
        holder = sqlite3.connect(beside, timeout=_FOREVER if wait else 0.0, isolation_level=None)
    except sqlite3.OperationalError:
        raise _nowhere(path) from None
    with closing(holder):
        try:
            holder.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise (_taken if error.sqlite_errorcode == sqlite3.SQLITE_BUSY else _nowhere)(path) from None
        yield
    with suppress(OSError):  # Windows removes no file that somebody else has open
        os.unlink(beside)  # noqa: PTH108


def _nowhere(path: str | Path) -> InvalidArgument:
    return InvalidArgument(f"{path} cannot be a file; choose a file in an existing directory")


def _taken(path: str | Path) -> ProtocolError:
    return ProtocolError(
        f"another process is at work on {path} (or a thread of this one); wait for it, stop it, "
        "or choose another file"
    )
