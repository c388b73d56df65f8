"""A study in a file: how it is begun and found again."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from truearm.claims.plain import from_plain, to_plain
from truearm.claims.suites import Suite
from truearm.cli.agreeing import marked
from truearm.cli.edge import check_file
from truearm.cli.setting import Setting
from truearm.errors import InvalidArgument, TruearmError
from truearm.run import logged, resumed
from truearm.store import Store
from truearm.study import Study


class Saved(NamedTuple):
    """A log and the study it holds; the setting if it is a race, and what is asked if it is a suite."""

    store: Store
    study: Study
    setting: Setting | None
    suite: Suite | None = None


def begun(path: str | Path, study: Study, setting: Setting | None = None, suite: Suite | None = None) -> Store:
    """Make a new log for a study, and for the setting of a race; a file that holds a study is left as it is."""
    check_file(path)
    store = Store(path)
    if store.created:
        store.close()
        how = "leave --arm out to go on with it" if setting is None else "go on with it by --resume"
        msg = f"{path} holds a study already; {how}, or choose another file"
        raise InvalidArgument(msg)
    definition = study.definition if suite is None else {**study.definition, "suite": to_plain(suite)}
    store.create(definition if setting is None else marked({**definition, "race": setting.to_dict()}))
    logged(study, store)
    return store


@contextmanager
def opened(
    path: str | Path, *, broke_off: bool = False, agree: Callable[[Mapping[str, Any], Setting], None] | None = None
) -> Iterator[Saved]:
    """Open a log and replay its study, which goes on logging there.

    Parameters
    ----------
    broke_off
        Count pulls that are out as missing, at their worst, because nobody will tell them any more.
    agree
        Called with what the log of a race begins with, before anything is written to it.
    """
    makers = f"`truearm race --save {path}` or `truearm next {path} --arm ...`"
    if not Path(path).exists():
        msg = f"there is no file {str(path)!r}; {makers} makes it"
        raise InvalidArgument(msg)
    check_file(path)
    with ExitStack() as stack:
        with _in_words(path):
            store = stack.enter_context(Store(path))
            if not store.created:  # such as a file that a crash left before anything was in it
                msg = f"{path} holds no study yet; {makers} begins one in it"
                raise InvalidArgument(msg)
            definition = store.definition
            setting = None if (race := definition.get("race")) is None else Setting.from_dict(race)
            asked = definition.get("suite")
            suite = None if asked is None else from_plain(Suite, asked, "suite")
        if setting is not None and agree is not None:
            agree(definition, setting)
        with _in_words(path):
            study = resumed(store, broke_off=broke_off)
        yield Saved(store, study, setting, suite)


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
