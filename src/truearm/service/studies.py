"""Studies in memory, each the replay of its log. Every change is a transaction that first reads what others wrote.

Memory is a cache: if a write fails, the study is dropped and read again. Nothing is answered before it is
committed. A pull belongs to the worker that asked for it; when its lease ends the worker is free, but the pull
stays pending and counts at its worst until its reading arrives (docs/scale.md).
"""

import math
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import msgspec

from truearm import store
from truearm.claims.result import Result
from truearm.errors import InvalidArgument, ProtocolError
from truearm.events import ISSUED, STOPPED, Event, Noted
from truearm.problem import Contamination, Problem, Pull, check_adversary, check_eps, refuse
from truearm.report.numbers import names
from truearm.run import Study
from truearm.service import models
from truearm.service.access import Settings
from truearm.store import Database, Row, StoreError

GIVEN, KEY = "given", "key"  # rows of passive studies
_MAX_IN_MEMORY = 1000  # studies
_KEY = "SELECT position FROM truearm_event WHERE study = %s AND worker = %s AND kind = 'key'"


class HostedStudy:
    """One study: the replay of its log, and which worker holds which pull."""

    def __init__(self, name: str, row: Row) -> None:
        self.name, self.began, self.definition_text = name, row.at, row.notes or ""
        self.definition = store.parse_json(self.definition_text)
        service = self.definition["service"]
        self.passive, self.lease, self.title = service["passive"], service["lease"], service["title"] or name
        self.position, self.digest = 0, row.digest
        self.study = Study.replay(self.definition)
        self.holders: dict[int, tuple[str, float]] = {}  # by ticket: worker and end of its lease
        self.given: dict[str, list[float]] = {arm: [] for arm in self.study.problem.arms}
        self.lock = threading.Lock()
        self.is_current = True  # False while it may differ from its log up to the position
        self._result: Result | None = None

    def catch_up(self, database: Database) -> None:
        """Apply the rows that other processes wrote."""
        self.is_current = False
        while True:
            rows = database.rows(self.name, self.position - 1)
            if not rows or rows.pop(0)[7] != self.digest:
                msg = f"the log of study {self.name!r} was replaced, as by a backup; send the request again"
                raise StoreError(msg)
            if not rows:
                break
            store.check_chain(rows, self.position, self.digest, f"study {self.name!r}")
            if self.passive:
                for _, kind, _, arm, _, value, *_ in rows:
                    if kind == GIVEN and arm in self.given:
                        self.given[arm].append(float(value or "nan"))
            else:
                self.study.follow(store.from_text(rows))
            self.mark(rows)
        self.is_current = True

    def mark(self, rows: Sequence[Sequence[Any]]) -> None:
        """Move to the last of these rows, which the study has applied, and record which worker holds each pull."""
        if rows:
            self.position, self.digest, self._result = rows[-1][0], rows[-1][7], None
        waiting = {*self.study.log.waiting().tolist()}
        self.holders = {ticket: held for ticket, held in self.holders.items() if ticket in waiting}
        for _, kind, ticket, *_, worker, at in (row for row in rows if row[2] in waiting):
            if kind == ISSUED and worker is not None:
                self.holders[ticket] = worker, at + self.lease

    def pending(self, pulls: Iterable[Pull]) -> list[models.Out]:
        """Return pulls with their workers."""
        return [models.Out(pull.ticket, pull.arm, *self.holders.get(pull.ticket, (None, None))) for pull in pulls]

    def __copy__(self) -> "HostedStudy":
        made = object.__new__(HostedStudy)
        given = {arm: [*values] for arm, values in self.given.items()}
        vars(made).update(vars(self), study=copy(self.study), holders={**self.holders}, given=given)
        return made

    @property
    def is_known(self) -> bool:
        """Whether there is a result: a passive study has one once every arm has a reading."""
        return all(self.given.values()) if self.passive else self.study.done

    @property
    def readings(self) -> Mapping[str, Sequence[float | None]]:
        """Per arm the readings, None for a pull not told."""
        return self.given if self.passive else self.study.readings

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return per arm the number of pulls and of those told."""
        if self.passive:
            return {arm: (len(values),) * 2 for arm, values in self.given.items()}
        return self.study.log.counts()

    def result(self) -> Result:
        """Return the result; of a study that still runs, as if it were stopped now."""
        if self._result is None and self.passive:
            from truearm.analysis import analyze

            self._result = analyze(self.given, **options_of(self.study.problem), order="rows")
        elif self._result is None:
            study = self.study if self.study.done else copy(self.study)
            study.stop()
            self._result = study.result
        assert self._result is not None
        return self._result


class Studies:
    """All studies of a database; those in use are in memory."""

    def __init__(self, database: Database, settings: Settings | None = None) -> None:
        self.database, self.settings = database, settings or Settings()
        self._loaded: OrderedDict[str, HostedStudy] = OrderedDict()
        self._guard = threading.Lock()

    def create(self, new: models.NewStudy) -> models.Created:
        """Create a study, or find the same one."""
        is_id = new.id is None or re.fullmatch(models.ID, new.id)  # `$` of the schema allows a newline
        msg = f"id must be lower-case letters, digits and hyphens, but got {new.id!r}; choose another one"
        refuse(not is_id, msg, "id", new.id)
        arms = len(new.arms)
        msg = f"arms may be {self.settings.max_arms} at most, but got {arms}; compare fewer at a time"
        refuse(arms > self.settings.max_arms, msg, "arms", arms)
        text, name = store.to_json("study", define(new)), new.id or secrets.token_hex(8)
        with self.database.write(name):
            known = self.database.first(name)
            if known is None:
                [(count,)] = self.database.execute("SELECT count(*) FROM truearm_event WHERE position = 0")
                if count >= self.settings.max_studies:
                    msg = f"there are {count} studies already; raise --max-studies, or use a new database"
                    raise ProtocolError(msg)
                self.database.append(name, [store.first_row(text)])
        if known is not None and known.notes != text:
            remedy = "repeat its arms and options to join it, or choose another id"
            raise ProtocolError(f"id {name!r} is the name of another study; {remedy}", "id", name)
        return models.Created(name, known is None)

    def ask(self, name: str, worker: str, n: int) -> models.Pulls:
        """Hand out pulls to a worker, first those that it holds."""
        store.check_text("worker", worker)
        self._check_batch("n", n)
        with self._hold(name, passive=False) as hosted:
            with self._change(hosted, worker):
                pulls = _next_pulls(hosted, worker, n)
            return models.Pulls(hosted.study.done, hosted.pending(pulls))

    def tell(self, name: str, readings: list[models.PullReading], worker: str | None = None) -> models.Outcomes:
        """Record readings one by one: a refused one does not stop the others."""
        self._check_batch("readings", len(readings))
        with self._hold(name, passive=False) as hosted, self._change(hosted, worker) as events:
            outcomes = [_tell(hosted.study, reading, events) for reading in readings]
        return models.Outcomes(hosted.study.done, outcomes)

    def release(
        self, name: str, tickets: list[int], worker: str | None = None, *, of_others: bool = False
    ) -> models.Outcomes:
        """Take back pulls that were never started; those that another worker holds only if `of_others`."""
        self._check_batch("tickets", len(tickets))
        with self._hold(name, passive=False) as hosted, self._change(hosted, worker):
            outcomes = [_release(hosted, ticket, worker, of_others=of_others) for ticket in tickets]
        return models.Outcomes(hosted.study.done, outcomes)

    def stop(self, name: str) -> models.Pulls:
        """End a study with what is known so far."""
        with self._hold(name, passive=False) as hosted, self._change(hosted) as events:
            if not hosted.study.done:
                events.append(Event(STOPPED))
                hosted.study.stop()
        return models.Pulls(True, [])

    def give(self, name: str, key: str, readings: list[models.ArmReading]) -> models.Added:
        """Add readings to a passive study, once for each key."""
        self._check_batch("readings", len(readings))
        store.check_text("key", key)
        with self._hold(name, passive=True) as hosted:
            texts = [_give(hosted, reading, i) for i, reading in enumerate(readings)]
            with self.database.write(name):
                hosted.catch_up(self.database)
                if known := self.database.execute(_KEY, (name, key)):
                    _check_same(key, self.database.rows(name, known[0][0] - len(texts) - 2, len(texts) + 1), texts)
                    return models.Added(0, hosted.position)
                rows = store.chain(texts, hosted.position, hosted.digest)
                rows += store.chain([[KEY, *[None] * 5]], rows[-1].position, rows[-1].digest, key)
                self.database.append(name, rows)
            return models.Added(len(texts), rows[-1].position)

    @contextmanager
    def read(self, name: str) -> Iterator[HostedStudy]:
        """Lock a study, up to date with its log."""
        with self._hold(name) as hosted:
            hosted.catch_up(self.database)
            yield hosted

    def snapshot(self, name: str) -> HostedStudy:
        """Return a copy of a study, for answers that take long."""
        with self.read(name) as hosted:
            return copy(hosted)

    @contextmanager
    def _change(self, hosted: HostedStudy, worker: str | None = None) -> Iterator[list[Event]]:
        """Commit the events that happen to a study in this block, after those that others wrote."""
        events: list[Event] = []
        with self.database.write(hosted.name):
            hosted.catch_up(self.database)
            hosted.is_current = False
            hosted.study.log_to(events.extend)
            yield events
            hosted.study.log_to(None)
            rows = store.chain(map(store.to_text, events), hosted.position, hosted.digest, worker)
            self.database.append(hosted.name, rows)
        hosted.mark(rows)
        hosted.is_current = True

    @contextmanager
    def _hold(self, name: str, *, passive: bool | None = None) -> Iterator[HostedStudy]:
        """Lock a study in memory; forget it if an error leaves it different from its log."""
        while True:
            hosted = self._load(name)
            if passive not in (None, hosted.passive):
                what = "is passive; send its readings to /readings"
                what = what if hosted.passive else "hands out pulls; use ask and tell"
                raise ProtocolError(f"study {name!r} {what}", "study", name)
            with hosted.lock:
                if not hosted.is_current:
                    continue
                try:
                    yield hosted
                finally:
                    if not hosted.is_current:
                        self._loaded.pop(name, None)
                return

    def _load(self, name: str) -> HostedStudy:
        with self._guard:
            if name in self._loaded:
                self._loaded.move_to_end(name)
                return self._loaded[name]
        row = self.database.first(name) if re.fullmatch(models.ID, name) else None  # a database may reject others
        if row is None:
            msg = f"there is no study {name!r}; see GET /studies"
            raise models.Refused(404, "Not found", msg, field="study", value=name)
        hosted = HostedStudy(name, row)
        with self._guard:
            known = self._loaded.setdefault(name, hosted)
            while len(self._loaded) > _MAX_IN_MEMORY:
                self._loaded.popitem(last=False)
        return known

    def _check_batch(self, field: str, size: int) -> None:
        msg = f"{field} may be {self.settings.max_batch} at most in one request, but got {size}; send several"
        refuse(size > self.settings.max_batch, msg, field, size)


def define(new: models.NewStudy) -> dict[str, Any]:
    """Return the definition of a study."""
    for arm in new.arms:
        store.check_text("arms", arm)
    options = msgspec.structs.asdict(new)
    service = {name: options.pop(name) for name in ("title", "passive", "lease")}
    store.check_text("title", new.title)
    options["contamination"] = _contamination(new.contamination, rounds=new.rounds)
    options["between"] = None if new.between is None else tuple(map(float, new.between))
    del options["id"]
    study = Study(**options)
    msg = "passive studies take readings one by one and cannot be in rounds; remove one of the two"
    refuse(new.passive and new.rounds, msg, "passive", value=True)
    return {**study.definition, "service": service}


def options_of(problem: Problem) -> dict[str, Any]:
    """Return the arguments of a problem that a server accepts."""
    names = ("delta", "contamination", "tolerance", "quantile", "at_least", "at_most", "between", "dependent_arms")
    is_share = problem.at_least is not None or problem.at_most is not None
    return {name: getattr(problem, name) for name in names} | {"goal": None if is_share else problem.goal}


def _contamination(given: float | models.Bound | str | None, *, rounds: bool) -> Contamination | None:
    if given == "auto":
        return Contamination.of("blind" if rounds else 0.05)
    if isinstance(given, models.Bound):
        eps = check_eps(given.eps, "contamination.eps")
        return Contamination(eps, check_adversary(given.adversary), given.causal, given.error)
    return Contamination.of(given)


def _next_pulls(hosted: HostedStudy, worker: str, n: int) -> list[Pull]:
    """Return the pulls that a worker holds and whose lease has not ended, and new ones if it wants more."""
    study, now = hosted.study, time.time()
    if study.done:
        return []
    held = [
        Pull(ticket, study.log.name(ticket))
        for ticket, (holder, until) in sorted(hosted.holders.items())
        if holder == worker and until > now
    ]
    if len(held) >= n or (held and study.problem.rounds):
        return held if study.problem.rounds else held[:n]
    held += study.ask(n - len(held))
    if left := study.round_left:
        held += study.ask(len(left))
    return held


def _number(value: models.Value) -> float:
    return math.nan if value is None else float(value)


def _tell(study: Study, reading: models.PullReading, events: list[Event]) -> models.Outcome:
    before, ticket = len(events), reading.ticket
    try:
        if reading.notes is not None:
            store.to_json("notes", reading.notes)
        arm = study.log.name(ticket) if ticket < len(study.log) else None  # `tell` refuses one never issued
        if None not in (arm, reading.arm) and arm != reading.arm:
            msg = f"ticket {ticket} is of arm {arm!r}, but got arm {reading.arm!r}; ask again and tell that pull"
            raise ProtocolError(msg)
        value = _number(reading.value)
        study.tell(ticket, value if reading.notes is None else Noted(value, reading.notes))
    except (ProtocolError, InvalidArgument) as error:
        return models.Outcome(ticket, "refused", str(error))
    return models.Outcome(ticket, "told" if len(events) > before else "known")


def _release(hosted: HostedStudy, ticket: int, worker: str | None, *, of_others: bool) -> models.Outcome:
    if ticket < len(hosted.study.log) and hosted.study.log.is_released(ticket):
        return models.Outcome(ticket, "known")
    holder, until = hosted.holders.get(ticket, (worker, 0.0))
    left = math.ceil(until - time.time())
    if holder != worker and left > 0 and not of_others:
        msg = (
            f"ticket {ticket} is held by {holder!r} for another {left} s, and only that worker knows if it was "
            "started; release it as that worker, or as an admin without a worker"
        )
        return models.Outcome(ticket, "refused", msg)
    try:
        hosted.study.release(ticket)
    except ProtocolError as error:
        return models.Outcome(ticket, "refused", str(error))
    return models.Outcome(ticket, "released")


def _give(hosted: HostedStudy, reading: models.ArmReading, i: int) -> list[Any]:
    if reading.arm not in hosted.given:  # the names of all arms are joined only then
        msg = f"readings[{i}].arm must be {names([*hosted.given], 'or')}, but got {reading.arm!r}"
        raise InvalidArgument(msg, f"readings[{i}].arm", reading.arm)
    notes = None if reading.notes is None else store.to_json(f"readings[{i}].notes", reading.notes)
    return [GIVEN, None, reading.arm, None, repr(_number(reading.value)), notes]


def _check_same(key: str, known: list[Sequence[Any]], texts: list[list[Any]]) -> None:
    first, *rows = known
    if first[1] == GIVEN or [list(row[1:7]) for row in rows] != texts:
        msg = f"key {key!r} was used with other readings before, and nothing was added; choose another key"
        raise ProtocolError(msg, "key", key)
