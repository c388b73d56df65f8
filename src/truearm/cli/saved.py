"""A study in a file: how it is begun and found again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from truearm.cli.setting import Setting
from truearm.errors import InvalidArgument
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
    with Store(path) as store:
        race = store.definition.get("race")
        setting = None if race is None else Setting.from_dict(race)
        yield Saved(store, resumed(store, broke_off=broke_off), setting)
