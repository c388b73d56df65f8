"""Studies in memory, each the replay of its log. Every change happens in a transaction that first catches up.

What is in memory is a cache: when a write fails, the study is forgotten and read again. Nothing is answered
before it is committed. Changes of a study that come while another is written share the next transaction.
"""

import math
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from truearm.errors import InvalidArgument, ProtocolError
from truearm.events import Event, Noted, Stopped
from truearm.problem import Contamination, Pull, check_adversary, check_eps
from truearm.service import wire
from truearm.service.database import Busy, Database, DatabaseError, Row, continued
from truearm.service.hosted import BEGUN, GIVEN, KEY, Answer, Hosted, Wish, Work
from truearm.service.settings import Limits
from truearm.store import check_text, first_digest, next_digest, to_json
from truearm.study import Study

_LOADED = 1000  # studies kept in memory
_NAMED = 10  # arms that a message names
_FEW = 100  # pulls, readings and rows of others that one does not wait for: to take them in takes a millisecond
_SNAPSHOT = 20_000  # events after which a snapshot is worth its time: to replay them takes .2 s
_GROWTH = 0.05  # and the growth of the log: what is replayed after a crash is at most this part of it


class NotFound(ProtocolError):
    """There is no study of that name."""


class Conflict(ProtocolError):
    """The request has no meaning for this study as it is."""


class Host:
    """All studies of a database, those in use in memory."""

    def __init__(self, database: Database, limits: Limits | None = None) -> None:
        self.database, self.limits = database, limits or Limits()
        self._loaded: OrderedDict[str, Hosted] = OrderedDict()
        self._guard = threading.Lock()
        self.listeners: list[Callable[[str], None]] = []

    def close(self) -> None:
        """Keep snapshots of what is in memory, and let go of the database."""
        for hosted in list(self._loaded.values()):
            with hosted.lock:
                if hosted.position > hosted.kept:
                    with suppress(DatabaseError, ProtocolError):  # it is a cache
                        self._keep(hosted)
        self.database.close()

    def create(self, new: wire.NewStudy) -> wire.Made:
        """Begin a study, or find the same one."""
        if new.id is not None and not re.fullmatch(wire.ID, new.id):  # its `$` lets a last newline pass
            msg = f"id must be small letters, digits and hyphens, but got {new.id!r}; choose another one"
            raise InvalidArgument(msg, "id", new.id)
        text = to_json("study", self._defined(new))
        name = new.id or secrets.token_hex(8)
        began = Row(0, BEGUN, None, None, None, None, text, first_digest(text), None, time.time())
        with self.database.writing(name) as transaction:
            known = transaction.begun()
            if known is None:
                if transaction.count() >= self.limits.studies:
                    most = self.limits.studies
                    msg = f"there are {most} studies already; raise the limit, or use another database"
                    raise Conflict(msg)
                transaction.append([began])
        if known is not None and known.notes != text:
            msg = f"id {name!r} is the name of another study; choose another one"
            raise Conflict(msg, "id", name)
        return wire.Made(name, known is None)

    def _defined(self, new: wire.NewStudy) -> dict[str, Any]:
        if len(new.arms) > self.limits.arms:
            msg = f"arms may be {self.limits.arms} at most, but got {len(new.arms)}; compare fewer at a time"
            raise InvalidArgument(msg, "arms", len(new.arms))
        for arm in new.arms:
            check_text("arms", arm)
        study = Study(
            new.arms,
            delta=new.delta,
            contamination=_bound(new.contamination),
            tolerance=new.tolerance,
            quantile=new.quantile,
            goal=new.goal,
            at_least=new.at_least,
            at_most=new.at_most,
            between=None if new.between is None else (float(new.between[0]), float(new.between[1])),
            dependent_arms=new.dependent_arms,
            rounds=new.rounds,
            policy=new.policy,
            max_pulls=new.max_pulls,
            seed=new.seed,
        )
        if new.passive and new.rounds:
            msg = "passive studies take readings one by one and cannot be in rounds; leave one of the two out"
            raise InvalidArgument(msg, "passive", value=True)
        service = {"title": check_text("title", new.title), "passive": new.passive, "lease": new.lease}
        return {**study.definition, "service": service}

    def ask(self, name: str, worker: str, n: int, *, wait: bool = True) -> wire.Asked:
        """Hand out pulls to a worker, those first that it has already.

        Without `wait`, here and below, raise `Busy` if it would take long: if the study or the database is in use,
        or there is much to do or to read. Then nothing happened.
        """
        check_text("worker", worker)
        self._check_batch("n", n)

        def pulls(hosted: Hosted, _: object) -> "Callable[[], wire.Asked]":
            _check_active(hosted)
            found = _pulls(hosted, worker, n)
            return lambda: wire.Asked(hosted.study.done, _out(hosted, found))

        return self._changed(name, worker, pulls, size=n, wait=wait)

    def tell(
        self, name: str, readings: list[wire.Told], worker: str | None = None, *, wait: bool = True
    ) -> wire.Outcomes:
        """Record what pulls gave, each by itself: what is refused does not keep the others back."""
        self._check_batch("readings", len(readings))

        def outcomes(hosted: Hosted, events: "list[Event]") -> "Callable[[], wire.Outcomes]":
            _check_active(hosted)
            found = [_told(hosted.study, told, events) for told in readings]
            return lambda: wire.Outcomes(hosted.study.done, found)

        return self._changed(name, worker, outcomes, size=len(readings), wait=wait)

    def release(
        self, name: str, tickets: list[int], worker: str | None = None, *, of_others: bool = False
    ) -> wire.Outcomes:
        """Take back pulls that never began: what another worker has only if it is to be `of_others` too."""
        self._check_batch("tickets", len(tickets))

        def outcomes(hosted: Hosted, _: object) -> "Callable[[], wire.Outcomes]":
            _check_active(hosted)
            found = [_released(hosted, ticket, worker, of_others=of_others) for ticket in tickets]
            return lambda: wire.Outcomes(hosted.study.done, found)

        return self._changed(name, worker, outcomes)

    def stop(self, name: str) -> wire.Asked:
        """End a study with what is known so far."""

        def stopped(hosted: Hosted, events: "list[Event]") -> "Callable[[], wire.Asked]":
            _check_active(hosted)
            if not hosted.study.done:
                events.append(Stopped())
                hosted.study.stop()
            return lambda: wire.Asked(True, [])

        return self._changed(name, None, stopped)

    def give(self, name: str, key: str, readings: list[wire.Given]) -> wire.Taken:
        """Add readings to a passive study, once for each key."""
        self._check_batch("readings", len(readings))
        check_text("key", key)
        with self._held(name) as hosted:
            if not hosted.passive:
                msg = f"study {name!r} hands out pulls; use ask and tell, or begin a passive study"
                raise Conflict(msg, "study", name)
            texts = [_given(hosted, reading, i) for i, reading in enumerate(readings)]
            with self.database.writing(name) as transaction:
                self._following(hosted, transaction.after(hosted.position, hosted.digest))
                if (known := transaction.before_key(key, len(texts))) is not None:
                    _check_same(key, known, texts)
                    return wire.Taken(0, hosted.position)
                rows = hosted.rows(texts, None, time.time())
                rows.append(_keyed(rows[-1], key))
                transaction.append(rows)
            self._following(hosted, rows)
            self._keep_if_due(hosted)
        self._listen(name)
        return wire.Taken(len(texts), rows[-1].position)

    @contextmanager
    def looking(self, name: str) -> Iterator[Hosted]:
        """Hold a study, up to date with its log, while it is looked at."""
        with self._held(name) as hosted:
            known = -1
            while hosted.position > known:
                known = hosted.position
                rows = self.database.after(name, known - 1)
                self._following(hosted, continued(name, rows, hosted.digest))
            yield hosted

    @contextmanager
    def _held(self, name: str) -> Iterator[Hosted]:
        while True:
            hosted = self._hosted(name)
            with hosted.lock:
                if not hosted.forgotten:
                    yield hosted
                    return

    def _following(self, hosted: Hosted, rows: Iterable[Row]) -> None:
        try:
            hosted.follow(rows)
        except Busy:
            raise
        except BaseException:
            self._forget(hosted)
            raise

    def _hosted(self, name: str, *, wait: bool = True) -> Hosted:
        with self._guard:
            if name in self._loaded:
                self._loaded.move_to_end(name)
                return self._loaded[name]
        if not wait:
            raise Busy
        hosted = self._read(name)
        with self._guard:
            known = self._loaded.setdefault(name, hosted)
            while len(self._loaded) > _LOADED:
                self._loaded.popitem(last=False)
        return known

    def _read(self, name: str) -> Hosted:
        """Return a study from its snapshot if the log still has the digest it was taken at."""
        began = (
            self.database.at(name, 0) if re.fullmatch(wire.ID, name) else None
        )  # not all text is for a database
        if began is None:
            msg = f"there is no study {name!r}; see GET /studies"
            raise NotFound(msg, "study", name)
        hosted = Hosted(name, began)
        kept = self.database.snapshot(name)
        row = None if kept is None else self.database.at(name, kept[0])
        if kept is not None and row is not None:
            hosted.restore(row, kept[1])
        return hosted

    def _forget(self, hosted: Hosted) -> None:
        hosted.forgotten = True
        with self._guard:
            if self._loaded.get(hosted.name) is hosted:
                del self._loaded[hosted.name]

    def _changed(
        self, name: str, worker: str | None, work: Work[Answer], *, size: int = 0, wait: bool = True
    ) -> Answer:
        """Have a change made, by this thread or by one that writes to the study already.

        Without `wait` by this thread alone, if it is small and nothing has to be waited for.
        """
        wish = Wish(work, worker)
        while not wish.ended:
            hosted = self._hosted(name, wait=wait)
            if wait:
                hosted.wishes.append(wish)  # for whoever has the lock
            if not hosted.lock.acquire(blocking=wait):
                raise Busy
            try:
                if not wait:
                    if size > _FEW or hosted.wishes or hosted.forgotten or self._is_due(hosted):
                        raise Busy
                    hosted.wishes.append(wish)
                changed = not wish.ended and not hosted.forgotten and self._grant(hosted, wait=wait)
            finally:
                hosted.lock.release()
            if changed:
                self._listen(name)
        if wish.error is not None:
            raise wish.error
        return cast("Answer", wish.answer)

    def _grant(self, hosted: Hosted, *, wait: bool = True) -> bool:
        """Make all changes that are waited for, in one transaction, and tell whether there were any."""
        wishes = [hosted.wishes.popleft() for _ in range(len(hosted.wishes))]  # more may come meanwhile
        rows: list[Row] = []
        at_fault: Wish[Any] | None = None
        try:
            with self.database.writing(hosted.name, wait=wait) as transaction:
                rows_of_others = transaction.after(hosted.position, hosted.digest, None if wait else _FEW)
                self._following(hosted, rows_of_others)
                now = time.time()
                for at_fault in wishes:
                    rows += hosted.granted(at_fault, now)
                at_fault = None
                if rows:
                    transaction.append(rows)
        except Busy:
            raise
        except BaseException as error:
            if rows or at_fault:
                self._forget(hosted)  # it is ahead of its log
            for wish in [at_fault] if at_fault else wishes:  # the others wish again
                wish.error = wish.error or error
            return False
        for wish in wishes:
            wish.granted = True
        if wait:
            self._keep_if_due(hosted)
        return bool(rows)

    def _listen(self, name: str) -> None:
        for listener in self.listeners:
            listener(name)

    def _is_due(self, hosted: Hosted) -> bool:
        return hosted.position - hosted.kept >= max(_SNAPSHOT, _GROWTH * hosted.position)

    def _keep_if_due(self, hosted: Hosted) -> None:
        if self._is_due(hosted):
            with suppress(DatabaseError, ProtocolError):  # it is a cache
                self._keep(hosted)

    def _keep(self, hosted: Hosted) -> None:
        hosted.kept = hosted.position
        self.database.keep_snapshot(hosted.name, hosted.position, hosted.sealed())

    def _check_batch(self, field: str, size: int) -> None:
        if size > self.limits.batch:
            msg = f"{field} may be {self.limits.batch} at most in one request, but got {size}; send several"
            raise InvalidArgument(msg, field, size)


def rehearse() -> None:
    """Decide once: what the first decision of a process imports takes longer than all that follows."""
    study = Study(["A", "B"], max_pulls=64)
    while pulls := study.ask():
        for pull in pulls:
            study.tell(pull, 0.0)


def _bound(given: "float | wire.Spoiled | None") -> Contamination | None:
    if isinstance(given, wire.Spoiled):
        eps = check_eps(given.eps, "contamination.eps")
        return Contamination(eps, check_adversary(given.adversary), given.causal, given.error)
    return Contamination.of(given)


def _check_active(hosted: Hosted) -> None:
    if hosted.passive:
        msg = (
            f"study {hosted.name!r} is passive: it takes readings that nobody asked for; send them to its readings"
        )
        raise Conflict(msg, "study", hosted.name)


def _pulls(hosted: Hosted, worker: str, n: int) -> list[Pull]:
    """Return the pulls a worker has, and new ones if it wants more."""
    held, study = hosted.held(worker), hosted.study
    if study.done:
        return []
    if len(held) >= n or (held and study.problem.rounds):
        return held if study.problem.rounds else held[:n]
    held += study.ask(n - len(held))
    if left := study.round_left:
        held += study.ask(left)
    return held


def _out(hosted: Hosted, pulls: Iterable[Pull]) -> list[wire.Out]:
    return [wire.Out(pull.ticket, pull.arm, *hosted.holders.get(pull.ticket, (None, None))) for pull in pulls]


def _number(value: wire.Value) -> float:
    return math.nan if value is None else float(value)


def _told(study: Study, told: wire.Told, events: list[Event]) -> wire.Outcome:
    before = len(events)
    try:
        if told.notes is not None:
            to_json("notes", told.notes)
        _check_arm(study, told)
        value = _number(told.value)
        study.tell(told.ticket, value if told.notes is None else Noted(value, told.notes))
    except (ProtocolError, InvalidArgument) as error:
        return wire.Outcome(told.ticket, "refused", str(error))
    return wire.Outcome(told.ticket, "told" if len(events) > before else "known")


def _check_arm(study: Study, told: wire.Told) -> None:
    log = study.log
    if told.arm is not None and told.ticket < len(log) and told.arm != (known := log.name(told.ticket)):
        msg = f"ticket {told.ticket} is of arm {known!r}, but got arm {told.arm!r}; ask again and tell that pull"
        raise ProtocolError(msg)


def _released(hosted: Hosted, ticket: int, worker: str | None, *, of_others: bool) -> wire.Outcome:
    if ticket < len(hosted.study.log) and hosted.study.log.is_released(ticket):
        return wire.Outcome(ticket, "known")
    holder, until = hosted.holders.get(ticket, (worker, 0.0))
    left = math.ceil(until - time.time())
    if holder != worker and left > 0 and not of_others:
        said = f"ticket {ticket} is held by {holder!r} for another {left} s, who alone knows whether it began; "
        return wire.Outcome(ticket, "refused", f"{said}release it as that worker, or as an admin without a worker")
    try:
        hosted.study.release(ticket)
    except ProtocolError as error:
        return wire.Outcome(ticket, "refused", str(error))
    return wire.Outcome(ticket, "released")


def _given(hosted: Hosted, reading: wire.Given, i: int) -> list[Any]:
    if reading.arm not in hosted.given:
        known = ", ".join([*hosted.given][:_NAMED]) + (", ..." if len(hosted.given) > _NAMED else "")
        msg = f"readings[{i}].arm must be one of {known}, but got {reading.arm!r}"
        raise InvalidArgument(msg, f"readings[{i}].arm", reading.arm)
    notes = None if reading.notes is None else to_json(f"readings[{i}].notes", reading.notes)
    return [GIVEN, None, reading.arm, None, repr(_number(reading.value)), notes]


def _check_same(key: str, known: list[Row], texts: list[list[Any]]) -> None:
    first, *rows = known
    if first.kind == GIVEN or [list(row[1:7]) for row in rows] != texts:
        msg = f"key {key!r} came with other readings before, and nothing was added; choose another key"
        raise Conflict(msg, "key", key)


def _keyed(last: Row, key: str) -> Row:
    row = (last.position + 1, KEY, None, None, None, None, None)
    return Row(*row, next_digest(last.digest, row), key, last.at)
