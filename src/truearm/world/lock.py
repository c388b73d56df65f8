"""One writer of a log at a time: whoever replays it and then goes on keeps others out until it is done.

SQLite orders single writes; this keeps the reading of a log and the next ticket together, and tells the second
writer at its start instead of after its first pulls. The lock is a file beside the log, because closing a second
handle on the log itself would drop SQLite's own locks. It belongs to the file that a name leads to: links are
followed, and a log with two names of its own (hard links) is refused by the store.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from truearm.errors import InvalidArgument, ProtocolError


@contextmanager
def alone(path: str | Path, *, wait: bool) -> Iterator[None]:
    """Keep other writers of a log out: wait for them, or say that somebody is in the way.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, alone(f"{folder}/run.db", wait=False):
    ...     with alone(f"{folder}/../{Path(folder).name}/run.db", wait=False):
    ...         pass
    Traceback (most recent call last):
        ...
    truearm.errors.ProtocolError: another process is at work on ...run.db (or a thread of this one); wait ...
    """
    beside = f"{Path(path).resolve()}-lock"
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
            msg = f"{path} cannot be a file; choose a file in an existing directory"
            raise InvalidArgument(msg) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            msg = (
                f"another process is at work on {path} (or a thread of this one); wait for it, stop it, "
                "or choose another file"
            )
            raise ProtocolError(msg) from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(beside)):  # noqa: PTH116
                return descriptor
        os.close(descriptor)  # the holder before us removed it: what we locked is no longer the lock
