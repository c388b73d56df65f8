"""One study in memory: the replay of its log, who holds which pull, and which changes are waited for.

A pull belongs to the worker that asked for it; when its lease ends the worker is free of it, but the pull stays
out and counts at its worst until it is told (docs/parallel.md).
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, Generic, TypeVar

from truearm.claims.result import Result
from truearm.errors import VerificationError
from truearm.events import ISSUED, Event
from truearm.problem import Pull
from truearm.service import snapshot
from truearm.service.database import Row
from truearm.service.wire import Live
from truearm.store import first_digest, from_text, next_digest, parse_json, to_text
from truearm.study import Study

BEGUN, GIVEN, KEY = "begun", "given", "key"


Answer = TypeVar("Answer")


class Wish(Generic[Answer]):
    """A change of a study that somebody waits for, and what became of it."""

    def __init__(self, work: "Work[Answer]", worker: str | None) -> None:
        self.work, self.worker = work, worker
        self.answer: Answer | None = None  # it counts once `granted`
        self.granted = False
        self.error: BaseException | None = None

    @property
    def ended(self) -> bool:
        """Whether it is granted, or is known to fail."""
        return self.granted or self.error is not None


class Hosted:
    """One study: its log, the replay of it, and who holds which pull."""

    def __init__(self, name: str, began: Row) -> None:
        self.name, self.began = name, began.at
        self.definition_text = began.notes or ""
        if first_digest(self.definition_text) != began.digest:
            msg = f"the definition of study {name!r} was changed after it was written; restore a back-up"
            raise VerificationError(msg)
        self.definition: dict[str, Any] = parse_json(self.definition_text)
        self.passive = bool(self.definition["service"]["passive"])  # its readings come without being asked for
        self.lease = float(self.definition["service"]["lease"])  # seconds for which a worker holds a pull
        self.position, self.digest = 0, began.digest
        self.study = Study.replay(self.definition, ())
        self.holders: dict[int, tuple[str, float]] = {}  # by ticket
        self.given: dict[str, list[float]] = {arm: [] for arm in self.study.problem.arms}
        self.kept = 0  # position of the last snapshot
        self.forgotten = False  # a write failed, so that what is in memory may be ahead of the log
        self.lock = threading.RLock()
        self.wishes: deque[Wish[Any]] = deque()  # whoever has the lock grants all of them
        self.picture: Live | None = None  # what its page showed last
        self._result: tuple[int, Result] | None = None

    @property
    def title(self) -> str:
        """What people call it."""
        return str(self.definition["service"]["title"]) or self.name

    def follow(self, rows: Iterable[Row]) -> None:
        """Take in rows that others wrote, each checked against the one before."""
        events: list[Event] = []
        for row in rows:
            self._link(row)
            if row.kind == GIVEN and row.arm in self.given:
                self.given[row.arm].append(float(row.value or "nan"))
            elif row.kind != KEY:
                events.append(from_text(row[1:7]))
                self._hold([row])
        self.study.follow(events)

    def _link(self, row: Row) -> None:
        if row.position != self.position + 1 or next_digest(self.digest, row[:7]) != row.digest:
            msg = (
                f"event {row.position} of study {self.name!r} was changed after it was written; restore a back-up"
            )
            raise VerificationError(msg)
        self.position, self.digest = row.position, row.digest

    def _hold(self, rows: Iterable[Row]) -> None:
        holders, lease = self.holders, self.lease
        for _, kind, ticket, _, _, _, _, _, worker, at in rows:
            if ticket is None:
                continue
            if kind == ISSUED and worker is not None:
                holders[ticket] = worker, at + lease
            else:
                holders.pop(ticket, None)

    def granted(self, wish: Wish[Any], at: float) -> list[Row]:
        """Do what is wished and return the rows of it, which the study believes from here on.

        An error that left the study as it is belongs to who wished; any other one is raised.
        """
        events: list[Event] = []
        self.study.log_to(events.extend)
        try:
            answer = wish.work(self, events)
        except Exception as error:
            if events:
                raise
            wish.error = error
            return []
        finally:
            self.study.log_to(None)
        rows = self.rows(map(to_text, events), wish.worker, at)
        self._hold(rows)
        if rows:
            self.position, self.digest = rows[-1].position, rows[-1].digest
        wish.answer = answer()
        return rows

    def rows(self, texts: Iterable[list[Any]], worker: str | None, at: float) -> list[Row]:
        """Return rows that continue the log."""
        digest, rows = self.digest, []
        for position, text in enumerate(texts, start=self.position + 1):
            row = (position, *text)
            digest = next_digest(digest, row)
            rows.append(tuple.__new__(Row, (*row, digest, worker, at)))  # two thirds of `_make`
        return rows

    def held(self, worker: str) -> list[Pull]:
        """Return the pulls a worker has and whose lease runs, in order of issue."""
        now, log = time.time(), self.study.log
        return [
            Pull(ticket, log.name(ticket))
            for ticket, (holder, until) in sorted(self.holders.items())
            if holder == worker and until > now
        ]

    def copied(self) -> "Hosted":
        """Return it as it is now, to be looked at while others go on."""
        made = copy(self)
        made.study, made.holders = copy(self.study), copy(self.holders)
        made.given = {arm: [*tape] for arm, tape in self.given.items()}
        return made

    def result(self) -> Result:
        """Return what is known now: of a study that goes on, as if it were stopped here."""
        if self._result is None or self._result[0] != self.position:
            self._result = self.position, self._found()
        return self._result[1]

    def _found(self) -> Result:
        if self.passive:
            return _analyzed(self.study, self.given)
        study = self.study
        if not study.done:
            study = copy(study)
            study.stop()
        assert study.result is not None
        return study.result

    def sealed(self) -> bytes:
        """Return what is in memory as bytes."""
        holders = [[ticket, *held] for ticket, held in self.holders.items()]
        shape = snapshot.shape(Study.replay(self.definition, ()))
        return snapshot.sealed([shape, self.digest, snapshot.to_bytes(self.study), holders, self.given])

    def restore(self, row: Row, body: bytes) -> None:
        """Take a snapshot if it is whole, of this log and of this version; else all of the log is replayed."""
        new = self.study
        try:
            shape, digest, study, held, given = snapshot.opened(body)
            if (shape, digest) != (snapshot.shape(new), row.digest):
                return  # of another version, or of another log, such as one restored from a back-up
            restored = snapshot.from_bytes(study)
            known = restored.definition == new.definition and given.keys() == self.given.keys()
            holders = {ticket: (worker, until) for ticket, worker, until in held}
        except Exception:  # it is a cache: whatever is wrong with it, the log has all
            return
        if not known:
            return
        self.study, self.given, self.holders = restored, given, holders
        self.position, self.digest, self.kept = row.position, row.digest, row.position


Work = Callable[[Hosted, list[Event]], Callable[[], Answer]]
"""What changes a study: it sees the events so far, and returns what answers once those are believed."""


def _analyzed(study: Study, given: dict[str, list[float]]) -> Result:
    from truearm.analysis import analyze

    problem = study.problem
    shares = problem.at_least is not None or problem.at_most is not None
    return analyze(
        given,
        delta=problem.delta,
        contamination=problem.contamination,
        tolerance=problem.tolerance,
        quantile=problem.quantile,
        goal=None if shares else "min" if problem.goal == "min" else "max",
        at_least=problem.at_least,
        at_most=problem.at_most,
        between=problem.between,
        dependent_arms=problem.dependent_arms,
        order="rows",
    )
