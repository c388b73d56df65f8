"""A study in a file: how it is begun, found again, and kept to one writer at a time."""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from truearm.claims.plain import from_plain, to_plain
from truearm.cli.setting import Setting
from truearm.errors import InvalidArgument, ProtocolError
from truearm.policies import Policy
from truearm.policies.toptwo import TopTwo
from truearm.problem import Problem, Reading
from truearm.run import replay
from truearm.study import Study
from truearm.world.store import Event, Note, Store

_PROBLEM = ("delta", "contamination", "tolerance", "quantile", "goal", "regularity", "dependent_arms")


class Journal(Store):
    """A log that keeps beside every reading how it was measured, in the same commit."""

    details: Mapping[str, Any] | None = None

    def append(self, events: Iterable[Event]) -> int:
        """Write events, and a note of the details at hand for a reading among them."""
        written = list(events)
        if self.details is not None:
            written += [Note(self.details, e.ticket) for e in written if isinstance(e, Reading)]
        return super().append(written)


class Saved(NamedTuple):
    """A log and the study it holds; the setting if it is a race."""

    store: Journal
    study: Study
    setting: Setting | None


def definition_of(
    problem: Problem, policy: TopTwo, *, seed: int | None, setting: Setting | None = None
) -> dict[str, Any]:
    """Return what a log must know to begin the study again.

    Examples
    --------
    >>> made = definition_of(Problem(arms=("A", "B")), TopTwo(), seed=1)
    >>> study_from(made).problem.arms
    ('A', 'B')
    """
    return {
        "problem": to_plain(problem),
        "policy": "toptwo",
        "options": {"first": policy.first, "balanced": policy.balanced},
        "seed": seed,
        **({} if setting is None else {"race": setting.to_dict()}),
    }


def study_from(definition: Mapping[str, Any]) -> Study:
    """Return the study of a definition, before its first pull.

    Examples
    --------
    >>> made = definition_of(Problem(arms=("A", "B")), TopTwo(first=20), seed=None)
    >>> study_from(made).ask_counts()
    {'A': 20, 'B': 20}
    """
    problem = from_plain(Problem, definition["problem"], "problem")
    policy: str | Policy[Any] = definition["policy"]
    if "options" in definition:
        policy = TopTwo(**definition["options"])
    fields = {name: getattr(problem, name) for name in _PROBLEM}
    return Study(problem.arms, policy=policy, seed=definition["seed"], **fields)


def begun(path: str | Path, definition: Mapping[str, Any]) -> Journal:
    """Return a new log with this definition; a file that holds a study is left as it is."""
    store = Journal(path)
    if store.created:
        store.close()
        msg = f"{path} holds a study already; continue it with --resume, or choose another file"
        raise InvalidArgument(msg)
    store.create(definition)
    return store


@contextmanager
def opened(path: str | Path, *, broke_off: bool = False) -> Iterator[Saved]:
    """Open a log and replay its study.

    Parameters
    ----------
    broke_off
        Count pulls that are out as missing, at their worst, because nobody will tell them any more.
    """
    if not Path(path).exists():
        msg = f"{path} does not exist; `truearm race --save {path}` or `truearm next {path} --arm ...` makes it"
        raise InvalidArgument(msg)
    with closing(Journal(path)) as store:
        definition = store.definition
        setting = Setting.from_dict(definition["race"]) if "race" in definition else None
        yield Saved(store, replay(study_from(definition), store, broke_off=broke_off), setting)


@contextmanager
def alone(path: str | Path, *, wait: bool) -> Iterator[None]:
    """Keep other writers of a log out: wait for them, or say who is in the way.

    SQLite orders single writes; this keeps the reading of a log and the next ticket together. The lock is a file
    beside the log, because closing a second handle on the log itself would drop SQLite's own locks.
    """
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
