"""The one mutable object a user holds: who was asked, who answered, and what that means so far.

A study joins a policy, which is pure, to a world in which pulls are out at the same time and come back late. The
n-th pull of an arm, in order of issue, is the n-th draw of that arm: each arm has a tape, and a ticket is a place
on it. Decisions happen at two moments only, so that replaying the events repeats them: in `tell` when nothing is
out any more, and in `ask(n)` when more pulls are wanted than the open batch holds. Every event is appended to the
log before it is believed, here and nowhere else.
"""

import copy
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm import policies
from truearm.claims import alarms
from truearm.claims.certificate import SIDE_BY_SIDE, Alarm, Origin, Status, Tapes, Verdict
from truearm.claims.certify import certify
from truearm.claims.plain import from_plain, to_plain
from truearm.claims.result import Result
from truearm.claims.support import supported
from truearm.errors import InvalidArgument, OutOfReach, ProtocolError
from truearm.events import (
    COUNTED,
    ISSUED,
    RELEASED,
    STOPPED,
    Event,
    Issued,
    Log,
    Noted,
    Reading,
    Released,
    Stopped,
    from_row,
    to_row,
)
from truearm.evidence.sample import as_readings
from truearm.evidence.serial import Serial, due
from truearm.evidence.shifts import orient
from truearm.policies import Policy, Standing, Told
from truearm.problem import Problem, ProblemOptions, Pull, as_number, check_count

Floats = NDArray[np.float64]


_LATE = 64  # pulls; an older one that is still out is passed over when the order of pulls is looked at

_MOST = 2**25  # pulls of a batch put in order, at 32 bytes each; a log that anybody wrote may ask for more

_Readings = tuple[Floats, NDArray[np.bool_]]
"""One arm's readings in order of pull, and which of them are told."""

_STRANGE = "the log does not follow from its definition; it was changed, or written by another version"


class _Tape:
    """One arm's pulls in order of issue: what they said, and which are still out."""

    def __init__(self) -> None:
        self.values: Floats = np.empty(64)
        self.told = np.zeros(64, dtype=bool)
        self.tickets = array("q")
        self.issued = 0
        self.prefix = 0  # all pulls before this one are told
        self.fed = 0  # all pulls before this one went to a patient policy
        self.released: list[int] = []  # places whose pull never began, to be handed out again
        self.dropped: set[int] = set()  # such places in rounds: a round cannot be taken up again later
        self.fresh: list[int] = []  # told one by one since an impatient policy last looked
        self.chunks: list[NDArray[np.intp]] = []  # told as arrays since then

    def __copy__(self) -> "_Tape":
        made = object.__new__(_Tape)
        vars(made).update({name: copy.copy(part) for name, part in vars(self).items()})
        return made

    @property
    def begun(self) -> int:
        """How many pulls were issued; a last one that never began is as if it never was."""
        begun = self.issued
        while begun - 1 in self.released or begun - 1 in self.dropped:
            begun -= 1
        return begun

    def grow(self, count: int) -> None:
        """Make room for `count` more pulls."""
        needed = self.issued + count
        if needed > self.values.size:
            size = max(needed, 2 * self.values.size)
            self.values = np.concatenate((self.values, np.empty(size - self.values.size)))
            self.told = np.concatenate((self.told, np.zeros(size - self.told.size, dtype=bool)))

    def advance(self) -> None:
        """Move the prefix past everything told without a gap."""
        told = self.told[self.prefix : self.issued]
        gap = int(np.argmin(told)) if told.size else 0
        self.prefix = self.issued if told.size and told[gap] else self.prefix + gap


def _kind(event: Event) -> tuple[type[Event], bool]:
    return type(event), isinstance(event, Issued) and event.counted


def _too_many(pulls: int) -> OutOfReach:
    msg = f"a batch of {pulls:,} pulls is too large to hand out one by one; use ask_counts, or a smaller max_pulls"
    return OutOfReach(msg, "max_pulls")


def _listed(readings: _Readings) -> list[float | None]:
    values: list[float | None] = readings[0].tolist()
    for place in np.flatnonzero(~readings[1]).tolist():
        values[place] = None
    return values


class Study:
    """Ask which arms to pull, tell what they said, until it is known which is best.

    One thread at a time: those that share a study hold a lock while they ask or tell, and not while they measure.

    Parameters
    ----------
    arms
        Names of the arms; one alone is the best without a pull, unless `policy="alone"` measures it. Of arms that
        tie exactly the first listed is named, the others as ties.
    policy
        "toptwo", "elimination", "uniform", "lucb", or a policy object.
    max_pulls
        Budget of pulls in all; a million is minutes of work for the fastest arm and enough for gaps of 1 %.
    seed
        Shuffle the pulls inside a batch, reproducibly; None interleaves them evenly. In rounds, the pulls inside
        each round are shuffled in any case.
    **options
        What is asked and assumed, as in `truearm.problem.ProblemOptions`: delta, contamination, tolerance,
        quantile, goal, at_least, at_most, rounds, between, regularity, dependent_arms. In rounds `ask()` returns
        whole rounds: all arms left, once each.

    Examples
    --------
    >>> import random
    >>> draw = random.Random(1)
    >>> study = Study(["A", "B"], contamination=0.05)
    >>> while pulls := study.ask():
    ...     for pull in pulls:
    ...         study.tell(pull, draw.gauss(10 if pull.arm == "A" else 8, 1))
    >>> study.result.best, study.result.status.value
    ('A', 'certified')
    """

    def __init__(
        self,
        arms: Sequence[str],
        *,
        policy: "str | Policy[Any]" = "toptwo",
        max_pulls: int = 1_000_000,
        seed: int | None = None,
        **options: Unpack[ProblemOptions],
    ) -> None:
        problem = Problem.of(arms, **options)
        self._begin(problem, policy, max_pulls, seed)

    def _begin(self, problem: Problem, policy: "str | Policy[Any]", max_pulls: int, seed: int | None) -> None:
        self.problem = problem
        self.policy: Policy[Any] = policies.serving(problem, policy)
        self.max_pulls = check_count("max_pulls", max_pulls, least=0)
        seed = None if seed is None else check_count("seed", seed, least=0)
        self.seed = seed
        if problem.rounds and seed is None:
            seed = 0  # always shuffled: who goes first in a round may have an advantage
        self._rng = None if seed is None else np.random.default_rng(seed)
        self._place = {arm: i for i, arm in enumerate(self.problem.arms)}
        self._tapes = [_Tape() for _ in self.problem.arms]
        self._log = Log(self.problem.arms)
        self._append: Callable[[list[Event]], object] | None = None
        self._unwritten: list[Event] = []  # pulls of an ask whose append failed
        self._out = 0
        self._wanted: list[int] = [0] * len(self._tapes)
        self._order: list[int] = []  # the open batch as single pulls, last first; made when first needed
        self._sides = 0  # arms in each of its rounds
        self._verdict: Verdict | None = None
        self._final: list[_Readings] | None = None  # as of the decision
        self._result: Result | None = None
        self._serials = [Serial(i) for i in range(len(self._tapes))]
        self._seen = [0] * len(self._tapes)  # per arm the place up to which the order of pulls was looked at
        self._verdict_due = False
        self._overlapping = False  # whether a decision was made while pulls were out
        self._watched = 0  # readings told when the order of pulls was last looked at
        self._noticed: tuple[Alarm, ...] = ()
        self._state = self.policy.start(self.problem)
        self._follow()

    @classmethod
    def of(
        cls,
        problem: Problem,
        *,
        policy: "str | Policy[Any]" = "toptwo",
        max_pulls: int = 1_000_000,
        seed: int | None = None,
    ) -> "Study":
        """Return a study of a problem that is made already.

        Examples
        --------
        >>> Study.of(Problem(arms=("A", "B"), goal="min"), max_pulls=100)
        Study(['A', 'B'], pulls=0, done=False)
        """
        study = cls.__new__(cls)
        study._begin(problem, policy, max_pulls, seed)
        return study

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_append": None, "_unwritten": []}  # a file is not a part of the study

    def __copy__(self) -> "Study":
        made = object.__new__(type(self))
        vars(made).update(self.__getstate__())  # a policy, its state and a verdict never change
        for name in ("_wanted", "_order", "_serials", "_seen", "_log"):
            setattr(made, name, copy.copy(getattr(self, name)))
        made._tapes = [copy.copy(tape) for tape in self._tapes]  # or each would miss what the other is told
        made._rng = copy.deepcopy(self._rng)
        return made

    def __repr__(self) -> str:
        return f"Study({list(self.problem.arms)!r}, pulls={self.pulls}, done={self.done})"

    @property
    def done(self) -> bool:
        """Whether it is decided; pulls that are still out may be told or forgotten."""
        return self._verdict is not None

    @property
    def pulls(self) -> int:
        """How many pulls were handed out."""
        return len(self._log.arms) - len(self._log.released)

    @property
    def in_flight(self) -> int:
        """How many pulls are out."""
        return self._out

    @property
    def in_round(self) -> bool:
        """Whether a round has begun of which a pull is out or not yet handed out."""
        return self.problem.rounds and (self._out > 0 or len(self._order) % max(1, self._sides) > 0)

    @property
    def round_left(self) -> int:
        """How many pulls of a round that has begun are not handed out yet."""
        return len(self._order) % max(1, self._sides) if self.problem.rounds else 0

    @property
    def out(self) -> list[Pull]:
        """The pulls that are out, in order of issue."""
        log = self._log
        out = np.ones(len(log.arms), dtype=bool)
        out[np.array(log.tickets, dtype=np.int64)] = False
        out[list(log.released)] = False
        return [Pull(ticket, log.names[log.arms[ticket]]) for ticket in np.flatnonzero(out).tolist()]

    @property
    def standing(self) -> Standing:
        """Where the decision stands: for a person who watches, with no guarantee of its own."""
        return self.policy.standing(self._state)

    @property
    def readings(self) -> dict[str, list[float | None]]:
        """Per arm the readings in order of pull, None for a pull not told; as of the decision once done."""
        snapshot = self._final if self._final is not None else self._snapshot()
        return dict(zip(self.problem.arms, (_listed(readings) for readings in snapshot), strict=True))

    @property
    def result(self) -> Result | None:
        """The result once done, None before."""
        if self._result is None and self._verdict is not None:
            readings = self.readings
            found = certify(
                self.problem,
                readings,
                self._verdict,
                design=self._verdict.design,
                noticed=self._noticed,
                origin=self._origin,
            )
            self._result = replace(supported(found, readings), readings=readings)
        return self._result

    def ask(self, n: int | None = None) -> list[Pull]:
        """Return new pulls: the open batch, or exactly n to keep n workers busy.

        Without n the list is empty when the study is done or while all wanted pulls are out. With n it is shorter
        only when the study is done or the budget of pulls is spent. No ticket is handed out twice.
        """
        if n is not None:
            check_count("n", n)
        pulls: list[Pull] = []
        first, was_done = len(self._log.arms), self.done
        while not self.done and (n is None or len(pulls) < n):
            if not any(self._wanted) and not (n is not None and self._refilled()):
                break
            if not self._order and sum(self._wanted) > _MOST:
                if pulls:
                    break
                raise _too_many(sum(self._wanted))
            taken = self._taken(None if n is None else n - len(pulls))
            pulls += self._issue(taken)
            if n is None:
                break
        if pulls or self.done != was_done:
            self._handed_out(first, ISSUED, ended=self.done)
        return pulls

    def ask_counts(self) -> dict[str, int]:
        """Return the open batch as numbers of pulls, to be answered by `tell_arrays`; {} when there is none."""
        if self.done or not any(self._wanted):
            return {}
        counts = {arm: n for arm, n in zip(self.problem.arms, self._wanted, strict=True) if n}
        first = len(self._log.arms)
        for i, n in enumerate(self._wanted):
            if n:
                self._issue_many(i, n)
        self._wanted, self._order = [0] * len(self._tapes), []
        self._handed_out(first, COUNTED)
        return counts

    def tell(self, pull: Pull | int, value: float) -> None:
        """Record what a pull said: NaN for a reading that went wrong, infinity on the bad side for a time-out.

        The notes of a `Noted` number are kept beside it. The same value again is ignored; another one is an error
        that changes nothing.
        """
        ticket, arm, place = self._slot(pull)
        tape = self._tapes[arm]
        plain = type(value) is float  # the usual case, at the least cost
        number = value if plain else self._number(value, arm, ticket)
        if tape.told[place]:
            self._repeated(ticket, number, float(tape.values[place]), self.problem.arms[arm])
            return
        log, notes = self._log, value.notes if not plain and isinstance(value, Noted) else None
        if self._append is not None:
            self._write([Reading(int(ticket), log.names[arm], number, notes)])
        if notes is not None:
            log.notes[ticket] = notes
        log.tickets.append(ticket)
        log.values.append(number)
        tape.values[place] = number
        tape.told[place] = True
        tape.fresh.append(place)
        self._out -= 1
        if self._out == 0 and not any(self._wanted):
            self._decide()

    def tell_arrays(self, readings: Mapping[str, ArrayLike]) -> None:
        """Record readings of several arms at once, each in order of issue, as `ask_counts` wanted them."""
        checked = []
        for arm, values in readings.items():
            if arm not in self._place:
                msg = f"readings has the unknown arm {arm!r}; the arms are {', '.join(self.problem.arms)}"
                raise InvalidArgument(msg)
            tape, numbers = self._tapes[self._place[arm]], as_readings(values, arm)
            places = np.flatnonzero(~tape.told[tape.prefix : tape.issued]) + tape.prefix
            never = [*tape.released, *tape.dropped]
            places = np.setdiff1d(places, never) if never else places
            if numbers.size > places.size:
                msg = f"{numbers.size} readings of {arm!r} were told, but only {places.size} pulls of it are out"
                raise ProtocolError(msg)
            if numbers.size:  # nothing told is no event
                places = places[: numbers.size]
                checked.append((tape, places, np.frombuffer(tape.tickets, dtype=np.int64)[places], numbers))
        if self._append is not None and checked:
            names, arms = self.problem.arms, self._log.arms
            pairs = [zip(tickets.tolist(), numbers.tolist(), strict=True) for _, _, tickets, numbers in checked]
            self._write([Reading(ticket, names[arms[ticket]], value) for told in pairs for ticket, value in told])
        for tape, places, tickets, numbers in checked:
            tape.values[places] = numbers
            tape.told[places] = True
            tape.chunks.append(places)
            tape.advance()
            self._log.tickets.frombytes(tickets.tobytes())
            self._log.values.frombytes(numbers.tobytes())
            self._out -= numbers.size
        if self._out == 0 and not any(self._wanted):
            self._decide()

    def release(self, pull: Pull | int) -> None:
        """Take back a pull that never began; its place on the tape goes out again under a new ticket.

        In rounds it does not: later it would not be side by side, so the round counts for nobody.

        A pull that began and was lost, killed or timed out is not released but told as NaN or as an infinity:
        that it was lost may be due to what it would have said.
        """
        ticket, arm, place = self._slot(pull)
        if self._tapes[arm].told[place]:
            msg = f"ticket {ticket} of {self.problem.arms[arm]!r} is told already; release what never began"
            raise ProtocolError(msg)
        self._write([Released(int(ticket), self.problem.arms[arm])])
        self._log.mark(RELEASED, int(ticket))
        self._log.released.add(int(ticket))
        self._out -= 1
        if self.problem.rounds:
            self._tapes[arm].dropped.add(place)
            if self._out == 0 and not any(self._wanted):
                self._decide()
            return
        self._tapes[arm].released.append(place)
        if not self.done:
            self._wanted[arm] += 1
            self._order = []

    def draw(self, pull: Pull | int) -> int:
        """Return which draw of its arm a pull is, counted from 0 in order of issue."""
        return self._slot(pull)[2]

    def stop(self) -> None:
        """End the study here with what is known so far: its result is `exhausted` unless it was done before.

        Only this object ends: what it logs to (`log_to`) is not told, so that the log can be continued.
        """
        if self._verdict is None:
            self._finish(self._interrupted())
            self._log.mark(STOPPED, 0)

    def events(self) -> Iterator[Event]:
        """Iterate over all that happened, in order.

        Examples
        --------
        >>> study = Study(["A", "B"])
        >>> study.tell(study.ask(1)[0], 2.5)
        >>> list(study.events())[-1]
        Reading(ticket=0, arm='A', value=2.5, notes=None)
        """
        return iter(self._log)

    def log_to(self, append: Callable[[list[Event]], object] | None) -> None:
        """Have every event from now on appended before it is believed, and pulls before they are handed out.

        With None events are appended nowhere from now on.

        An append that raises leaves a tell or a release undone. The pulls of an ask that could not be logged stay
        out, and are appended before the next event.

        Examples
        --------
        >>> study, log = Study(["A", "B"]), []
        >>> study.log_to(log.extend)
        >>> study.ask(1)
        [Pull(ticket=0, arm='A')]
        >>> log
        [Issued(ticket=0, arm='A', draw=0, counted=False)]
        """
        self._append = append

    @property
    def _origin(self) -> Origin:
        by: str | None
        try:
            by, options = policies.definition_of(self.policy)
        except InvalidArgument:
            by, options = None, {}
        return Origin(by, options, self.max_pulls, self.seed, self._overlapping)

    @property
    def definition(self) -> dict[str, Any]:
        """What `replay` makes the study from, as plain values."""
        name, options = policies.definition_of(self.policy)
        return {
            "problem": to_plain(self.problem),
            "policy": name,
            "options": options,
            "max_pulls": self.max_pulls,
            "seed": self.seed,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain values: its definition and its events. `from_dict` replays them.

        Examples
        --------
        >>> study = Study(["A", "B"])
        >>> study.tell(study.ask(1)[0], 2.5)
        >>> study.to_dict()["events"]
        [['issued', 0, 'A', 0], ['told', 0, 'A', None, 2.5]]
        >>> Study.from_dict(study.to_dict()).readings
        {'A': [2.5], 'B': []}
        """
        return {**self.definition, "events": [list(to_row(event)) for event in self._log]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Study":
        """Return the study that `to_dict` described, by replaying its events."""
        events = data.get("events", ()) if isinstance(data, Mapping) else ()
        if not isinstance(events, list | tuple):
            msg = f"events must be a list, but got {events!r:.80}; give what to_dict returned"
            raise ProtocolError(msg)
        return cls.replay(data, map(from_row, events))

    @classmethod
    def replay(cls, definition: Mapping[str, Any], events: Iterable[Event]) -> "Study":
        """Return the study of a definition after these events, with every decision where it was.

        Parameters
        ----------
        definition
            As `definition` gives it; further keys are left alone.

        Examples
        --------
        >>> events = [Issued(0, "A", 0), Reading(0, "A", 2.5), Issued(1, "B", 0)]
        >>> study = Study.replay(Study(["A", "B"]).definition, events)
        >>> study.readings, study.out
        ({'A': [2.5], 'B': [None]}, [Pull(ticket=1, arm='B')])
        """
        if not isinstance(definition, Mapping):
            msg = f"the definition of a study must be a dictionary, but got {definition!r:.80}"
            raise ProtocolError(msg)
        needed = ("problem", "policy", "options", "max_pulls", "seed")
        if lacking := [key for key in needed if key not in definition]:
            msg = f"the definition of the study lacks {', '.join(lacking)}; it was written by another version"
            raise ProtocolError(msg)
        study = cls.of(
            from_plain(Problem, definition["problem"], "problem"),
            policy=policies.from_definition(definition["policy"], definition["options"]),
            max_pulls=definition["max_pulls"],
            seed=definition["seed"],
        )
        study.follow(events)
        return study

    def follow(self, events: Iterable[Event]) -> None:
        """Repeat what happened to this study elsewhere, such as in another process that shares its log.

        Examples
        --------
        >>> here, there = Study(["A", "B"]), Study(["A", "B"])
        >>> there.tell(there.ask(1)[0], 2.5)
        >>> here.follow(there.events())
        >>> here.readings
        {'A': [2.5], 'B': []}
        """
        for (kind, counted), run in groupby(events, key=_kind):
            if kind is Issued:  # asks in a row are one
                self._hand_out_again(list(run), counted=counted)
            else:
                for event in run:
                    self._repeat(event)

    @classmethod
    def retraced(
        cls,
        problem: Problem,
        tapes: Tapes,
        *,
        policy: "str | Policy[Any]" = "toptwo",
        max_pulls: int = 1_000_000,
        seed: int | None = None,
    ) -> "Study":
        """Return the study that took these tapes and stopped, if it never decided while pulls were out.

        Then the tapes alone say what it knew at each decision: whole batches, in the order of its own asking.

        Examples
        --------
        >>> study = Study.retraced(Problem(arms=("A", "B")), {"A": [2.0] * 16, "B": [1.0] * 16})
        >>> study.result.status.value, study.pulls
        ('exhausted', 32)
        """
        study = cls.of(problem, policy=policy, max_pulls=max_pulls, seed=seed)
        while not study.done and (study._took(tapes) or study._dropped(tapes)):
            pass
        study.stop()
        return study

    def _took(self, tapes: Tapes) -> bool:
        """Hand out what tapes hold of the open batch and tell it; say whether they hold any of it."""
        first, held = len(self._log.arms), [tapes.get(arm, ()) for arm in self.problem.arms]
        for i, tape in enumerate(self._tapes):
            count = min(self._wanted[i], len(held[i]) - tape.issued)
            self._issue_many(i, count)
            self._wanted[i] -= count
        self._order = []
        self._handed_out(first, ISSUED)
        for ticket in range(first, len(self._log.arms)):
            value = held[self._log.arms[ticket]][self._log.draws[ticket]]
            if value is not None:
                self.tell(ticket, float(value))
        return len(self._log.arms) > first

    def _dropped(self, tapes: Tapes) -> bool:
        """Release what rounds lack that were followed by others: it never began; say whether there is any."""
        later = any(len(tapes.get(arm, ())) > tape.issued for arm, tape in self._named_tapes())
        lacking = self.out if self.problem.rounds and later else []
        for pull in lacking:
            self.release(pull)
        return bool(lacking)

    def _hand_out_again(self, issued: list[Event], *, counted: bool) -> None:
        first = len(self._log.arms)
        if not counted:
            self.ask(len(issued))
        elif sum(self._wanted) == len(issued):  # or it is as strange, and may be more than memory holds
            self.ask_counts()
        if self._log.issued(first, len(self._log.arms), counted=counted) != issued:
            raise ProtocolError(_STRANGE)

    def _repeat(self, event: Event) -> None:
        if not isinstance(event, Stopped) and self.problem.arms[self._slot(event.ticket)[1]] != event.arm:
            raise ProtocolError(_STRANGE)
        match event:
            case Reading(ticket, _, value, notes):
                self.tell(ticket, value if notes is None else Noted(value, notes))
            case Released(ticket):
                self.release(ticket)
            case Stopped():
                self.stop()

    def _handed_out(self, first: int, kind: str, *, ended: bool = False) -> None:
        """Log the tickets from `first` on, before anyone has them, and that the ask ended the study if it did."""
        stop = len(self._log.arms)
        if stop > first:
            self._log.mark(kind, stop - first)
        if ended:
            self._log.mark(STOPPED, 0)
        if self._append is not None:
            self._unwritten += self._log.issued(first, stop, counted=kind == COUNTED)
            self._unwritten += [Stopped()] if ended else []
            self._write([])

    def _write(self, events: list[Event]) -> None:
        """Append events to the log: the one place where they go there, before they are believed."""
        if self._append is not None:
            self._append([*self._unwritten, *events])
            self._unwritten = []

    def _snapshot(self) -> list[_Readings]:
        snapshot = []
        for tape in self._tapes:
            begun = tape.begun
            snapshot.append((tape.values[:begun].copy(), tape.told[:begun].copy()))
        return snapshot

    def _slot(self, pull: Pull | int) -> tuple[int, int, int]:
        """Return the ticket of a pull, its arm and its place on the tape."""
        log, ticket = self._log, pull.ticket if isinstance(pull, Pull) else pull
        known = type(ticket) is int or (isinstance(ticket, int | np.integer) and not isinstance(ticket, bool))
        if not known or not 0 <= ticket < len(log.arms):
            msg = f"ticket {ticket!r} was never handed out; use the ticket of a pull that `ask` returned"
            raise ProtocolError(msg)
        arm, place = log.arms[ticket], log.draws[ticket]
        if ticket in log.released:
            msg = f"ticket {ticket} of {self.problem.arms[arm]!r} was released; its place has a new ticket"
            raise ProtocolError(msg)
        if isinstance(pull, Pull) and pull.arm != log.names[arm]:
            here = f"ticket {ticket} is a pull of {log.names[arm]!r} here"
            msg = f"{here}, not of {pull.arm!r}; tell the study that asked for it"
            raise ProtocolError(msg)
        return ticket, arm, place

    def _number(self, value: object, arm: int, ticket: int) -> float:
        name = f"value of ticket {ticket} ({self.problem.arms[arm]!r})"
        return as_number(name, value, "tell nan for a reading that went wrong", boolean=True)

    def _repeated(self, ticket: int, value: float, known: float, arm: str) -> None:
        if value == known or (math.isnan(value) and math.isnan(known)):
            return
        msg = f"ticket {ticket} of {arm!r} was told as {known!r} and now as {value!r}; the first value is kept"
        raise ProtocolError(msg)

    def _issue(self, arms: Sequence[int]) -> list[Pull]:
        """Hand out a pull of each of these arms, in this order."""
        log, names, tapes, pulls = self._log, self.problem.arms, self._tapes, []
        for ticket, arm in enumerate(arms, start=len(log.arms)):
            tape = tapes[arm]
            if tape.released:
                place = tape.released.pop(0)
                tape.tickets[place] = ticket
            else:
                place = tape.issued
                tape.grow(1)
                tape.issued += 1
                tape.tickets.append(ticket)
            log.arms.append(arm)
            log.draws.append(place)
            pulls.append(Pull(ticket, names[arm]))
        self._out += len(pulls)
        return pulls

    def _issue_many(self, arm: int, count: int) -> None:
        tape = self._tapes[arm]
        again = min(count, len(tape.released))
        self._issue([arm] * again)
        count -= again
        tape.grow(count)
        first = len(self._log.arms)
        self._log.arms.extend(array("i", [arm]) * count)
        self._log.draws.frombytes(np.arange(tape.issued, tape.issued + count, dtype=np.int64).tobytes())
        tape.tickets.frombytes(np.arange(first, first + count, dtype=np.int64).tobytes())
        tape.issued += count
        self._out += count

    def _refilled(self) -> bool:
        """Open a new batch because workers are idle, also while pulls are out. Tell whether there is one.

        Pulls handed out by the same `ask` are out already, so that two asks in a row are one.
        """
        if self._out == 0 or self.pulls >= self.max_pulls:
            return False  # tell has decided already, or will: an ask that hands out nothing decides nothing
        short = self.problem.rounds and self.max_pulls - self.pulls < len(self.problem.arms)
        before = copy.copy(self) if short else None  # the budget may not hold a round of the arms that are left
        self._reopen()
        if before is not None and not self.done and not any(self._wanted):
            kept = {name: getattr(self, name) for name in ("_append", "_unwritten")}
            vars(self).update(vars(before) | kept)
        return any(self._wanted)

    def _reopen(self) -> None:
        self._overlapping = True
        self._decide()
        answer = self.policy.ask(self._state)
        if not isinstance(answer, Verdict) and not any(self._wanted):
            self._want(answer)  # the same batch again keeps workers busy

    def _taken(self, n: int | None) -> list[int]:
        """Take up to n pulls from the open batch, evenly interleaved or shuffled."""
        if not self._order:
            arms = np.repeat(np.arange(len(self._wanted)), self._wanted)
            if self._rng is not None and self.problem.rounds:
                sides = np.flatnonzero(self._wanted)
                self._sides = sides.size
                order = np.concatenate([self._rng.permutation(sides) for _ in range(max(self._wanted))])
            elif self._rng is not None:
                order = self._rng.permutation(arms)
            else:
                phase = np.concatenate([(np.arange(w) + 0.5) / w for w in self._wanted if w])
                order = arms[np.argsort(phase, kind="stable")]
            self._order = order[::-1].tolist()
        count = len(self._order) if n is None else min(n, len(self._order))
        taken = [self._order.pop() for _ in range(count)]
        for arm in taken:
            self._wanted[arm] -= 1
        return taken

    def _want(self, batch: Mapping[str, int]) -> None:
        """Open a batch, cut to the budget of pulls."""
        left = self.max_pulls - self.pulls
        wanted = [batch.get(arm, 0) for arm in self.problem.arms]
        total = sum(wanted)
        if total > left and self.problem.rounds:  # whole rounds only
            sides = np.count_nonzero(wanted)
            wanted = [min(n, left // int(sides)) for n in wanted]
        elif total > left:
            asked = [i for i, n in enumerate(wanted) if n]
            wanted = [n * left // total for n in wanted]
            for j in range(left - sum(wanted)):
                wanted[asked[j % len(asked)]] += 1
        self._wanted, self._order = wanted, []

    def _decide(self) -> None:
        """Give the policy what it can use, and follow its answer."""
        if not self.done:
            self._learn()
            self._follow()

    def _learn(self) -> None:
        told = self._ready()
        while told:
            self._state = self.policy.tell(self._state, told, {a: t.begun for a, t in self._named_tapes()})
            if isinstance(self.policy.ask(self._state), Verdict) or not self.policy.patient:
                break
            told = self._ready()

    def _follow(self) -> None:
        answer = self.policy.ask(self._state)
        if isinstance(answer, Verdict):
            self._finish(answer)
            return
        told = self.pulls - self._out
        if not self._alike and due(self._watched, told) and self._dependence():
            self._finish(Verdict(status=Status.EXHAUSTED, candidates=self.problem.arms))
            return
        if self.policy.patient:
            answer = {
                arm: missing
                for arm, tape in self._named_tapes()
                if (missing := tape.fed + answer.get(arm, 0) - tape.issued) > 0
            }
        elif self._out:
            return  # workers are idle: `_refilled` opens the batch
        self._want(answer)
        if self._out == 0 and not any(self._wanted):
            self._finish(self._interrupted())

    def _named_tapes(self) -> list[tuple[str, _Tape]]:
        return list(zip(self.problem.arms, self._tapes, strict=True))

    def _ready(self) -> dict[str, Told]:
        return self._whole_batch() if self.policy.patient else self._fresh()

    def _fresh(self) -> dict[str, Told]:
        """Return everything told since the policy last looked, oriented."""
        told = {}
        for arm, tape in self._named_tapes():
            if tape.fresh or tape.chunks:
                places = np.concatenate((np.array(tape.fresh, dtype=np.intp), *tape.chunks))
                told[arm] = Told(places, orient(tape.values[places], self.problem, arm))
                tape.fresh, tape.chunks = [], []
        return told

    def _whole_batch(self) -> dict[str, Told]:
        """Return exactly the batch a patient policy asked for, or nothing while a part of it is out."""
        batch = self.policy.ask(self._state)
        if isinstance(batch, Verdict):
            return {}
        for arm, tape in self._named_tapes():
            tape.fresh, tape.chunks = [], []
            tape.advance()
            if tape.prefix < tape.fed + batch.get(arm, 0):
                return {}
        told = {}
        for arm, count in batch.items():
            tape = self._tapes[self._place[arm]]
            places = np.arange(tape.fed, tape.fed + count)
            told[arm] = Told(places, orient(tape.values[places], self.problem, arm))
            tape.fed += count
        return told

    def _interrupted(self) -> Verdict:
        # as an ask at this moment would: that is how one `Stopped` replays both
        self._learn()
        answer = self.policy.ask(self._state)
        if isinstance(answer, Verdict):
            return answer
        standing = self.standing
        return standing.so_far or Verdict(status=Status.EXHAUSTED, candidates=standing.alive)

    @property
    def _alike(self) -> bool:
        return getattr(self.policy, "alike", False)  # a policy of the user's own need not say

    def _dependence(self) -> tuple[Alarm, ...]:
        """Return whose readings depend on when they were taken, by the order of pulls (evidence T12)."""
        self._watched = self.pulls - self._out
        for i, tape in enumerate(self._tapes):
            tape.advance()
            upto = max(tape.prefix, tape.issued if self._verdict_due else tape.issued - _LATE)
            new = slice(self._seen[i], upto)
            values = tape.values[new] if upto <= tape.prefix else tape.values[new][tape.told[new]]
            self._serials[i] = self._serials[i].extended(values)
            self._seen[i] = max(self._seen[i], upto)
        return alarms.dependence(self.problem, self._serials)

    def _beside(self) -> list[Floats]:
        """Return each arm's readings in order of pull, NaN where there is none."""
        return [np.where(tape.told[: tape.issued], tape.values[: tape.issued], np.nan) for tape in self._tapes]

    def _finish(self, verdict: Verdict) -> None:
        """End the study: in doubt if readings depend on their time in ways that do not meet all arms alike."""
        self._verdict_due = True
        # drift meets all arms of a round alike: only what they do not share is looked at
        found = alarms.unshared(self._beside()) if self.problem.rounds else self._dependence()
        if found and self._alike and not self.problem.rounds and len(self._tapes) > 1:
            self._noticed = tuple(alarm._replace(detail=SIDE_BY_SIDE) for alarm in found)
            found = alarms.unshared(self._beside())
        if len(self._tapes) == 1:  # nothing is compared: the median is reported with a note
            self._noticed, found = found, ()
        self._verdict = Verdict.doubtful(found, self.problem.arms) if found else verdict
        self._final = self._snapshot()
        self._wanted, self._order = [0] * len(self._tapes), []
