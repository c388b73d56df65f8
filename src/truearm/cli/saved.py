"""A study in a file: how it is begun, found again, and kept to one writer at a time."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from truearm.cli.edge import check_file
from truearm.cli.setting import Setting
from truearm.errors import InvalidArgument, ProtocolError, TruearmError
from truearm.run import logged, resumed
from truearm.study import Study
from truearm.world.store import Store


class Saved(NamedTuple):
    """A log and the study it holds; the setting if it is a race."""

    store: Store
    study: Study
    setting: Setting | None


def begun(path: str | Path, study: Study, setting: Setting | None = None) -> Store:
    """Make a new log for a study, and for the setting of a race; a file that holds a study is left as it is."""
    check_file(path)
    store = Store(path)
    if store.created:
        store.close()
        msg = f"{path} holds a study already; continue it with --resume, or choose another file"
        raise InvalidArgument(msg)
    store.create({**study.definition, **({} if setting is None else {"race": setting.to_dict()})})
    logged(study, store)
    return store


@contextmanager
def opened(path: str | Path, *, broke_off: bool = False) -> Iterator[Saved]:
    """Open a log and replay its study, which goes on logging there.

    Parameters
    ----------
    broke_off
        Count pulls that are out as missing, at their worst, because nobody will tell them any more.
    """
    if not Path(path).exists():
        msg = f"{path} does not exist; `truearm race --save {path}` or `truearm next {path} --arm ...` makes it"
        raise InvalidArgument(msg)
    check_file(path)
    with ExitStack() as stack:
        with _in_words(path):
            store = stack.enter_context(Store(path))
            race = store.definition.get("race")
            setting = None if race is None else Setting.from_dict(race)
            study = resumed(store, broke_off=broke_off)
        yield Saved(store, study, setting)


@contextmanager
def _in_words(path: str | Path) -> Iterator[None]:
    """Say of a log that cannot be read what is wrong with it, whatever its bytes made of the reader."""
    try:
        yield
    except (TruearmError, OSError, MemoryError):
        raise
    except sqlite3.OperationalError as error:  # the disk, a lock or the file system, and not what is in the file
        msg = f"{path} cannot be opened as a log: {error}; make its folder writable, or copy the log elsewhere"
        raise InvalidArgument(msg) from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        msg = f"{path} is damaged ({what:.120}), and was left as it is; use a copy, or begin anew in another file"
        raise InvalidArgument(msg) from error


@contextmanager
def alone(path: str | Path, *, wait: bool) -> Iterator[None]:
    """Keep other writers of a log out: wait for them, or say who is in the way.

    SQLite orders single writes; this keeps the reading of a log and the next ticket together. The lock is a file
    beside the log, because closing a second handle on the log itself would drop SQLite's own locks.
    """
    check_file(path)
    beside = f"{Path(path).absolute()}-lock"
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
            msg = f"another process is at work on {path}; wait for it, or stop it"
            raise ProtocolError(msg) from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(beside)):  # noqa: PTH116
                return descriptor
        os.close(descriptor)  # the holder before us removed it: what we locked is no longer the lock
