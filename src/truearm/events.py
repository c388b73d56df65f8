"""The events of a study, in order: pulls issued, readings, releases, and the end.

`Study.replay` rebuilds a study from its events. This module has the events, their plain form (rows for JSON and a
table), and `Log`, the arrays in which a study keeps its pulls and readings. Nothing here decides.
"""

import copy
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument, ProtocolError
from truearm.problem import Pull, as_number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Notes = Mapping[str, Any]
Row = tuple[Any, ...]
"""An event as plain values, those of `COLUMNS` up to its last one. A reading that is not finite is text."""

COLUMNS = ("kind", "ticket", "arm", "draw", "value", "notes")
ISSUED, COUNTED, TOLD, RELEASED, STOPPED = KINDS = ("issued", "counted", "told", "released", "stopped")
_CODE = {kind: code for code, kind in enumerate(KINDS)}
_OUT, _ARRIVED, _RELEASED = range(3)  # states of a pull
LOG_MISMATCH = "the log does not match its definition: it was edited, or written by another version of truearm"


class Issued(NamedTuple):
    """A pull was handed out; `draw` is its number among the pulls of its arm, from 0 (audit 1.m).

    `counted` if it was handed out as part of a number (`Study.ask_counts`), where the order is that of the arms.
    """

    ticket: int
    arm: str
    draw: int
    counted: bool = False


class Reading(NamedTuple):
    """The reading of a pull, as measured, with notes: an exit code, a user time, a host."""

    ticket: int
    arm: str
    value: float
    notes: Notes | None = None


class Released(NamedTuple):
    """A pull that was handed out never started; its draw is handed out again under a new ticket."""

    ticket: int
    arm: str


class Stopped(NamedTuple):
    """The study ended here: it was stopped, or an `ask` found that the readings decide."""


Event = Issued | Reading | Released | Stopped


class Noted(float):
    """A number with notes: a source may return it, and `Study.tell` takes it like any other number."""

    notes: Notes

    def __new__(cls, value: float, notes: Notes) -> "Noted":  # noqa: D102 - the class says it
        number = super().__new__(cls, value)
        number.notes = notes
        return number

    def __getnewargs__(self) -> tuple[float, Notes]:  # type: ignore[override]
        return float(self), self.notes


def to_row(event: Event) -> Row:
    """Return an event as plain values, ready for JSON and for a table."""
    match event:
        case Issued():
            return COUNTED if event.counted else ISSUED, event.ticket, event.arm, event.draw
        case Reading():
            value = float(event.value)
            row = (TOLD, event.ticket, event.arm, None, value if math.isfinite(value) else str(value))
            return row if event.notes is None else (*row, event.notes)
        case Released():
            return RELEASED, event.ticket, event.arm
        case Stopped():
            return (STOPPED,)
    msg = f"a log takes Issued, Reading, Released and Stopped events, but got {event!r:.80}"
    raise InvalidArgument(msg)


_PADS = (None,) * len(COLUMNS)


def padded(row: Sequence[Any]) -> list[Any]:
    """Return a row with a value for each of `COLUMNS`, None after its end."""
    return [*row, *_PADS[len(row) :]]


def from_row(row: Sequence[Any]) -> Event:
    """Return the event that `to_row` described."""
    try:
        kind, ticket, arm, draw, value, notes = padded(row)
        if kind == STOPPED:
            return Stopped()
        if _is_count(ticket) and isinstance(arm, str):
            if kind in (ISSUED, COUNTED) and _is_count(draw):
                return Issued(ticket, arm, draw, kind == COUNTED)
            if kind == TOLD and (notes is None or isinstance(notes, Mapping)):
                return Reading(ticket, arm, float(value), notes)
            if kind == RELEASED:
                return Released(ticket, arm)
    except (TypeError, ValueError, OverflowError):
        pass
    msg = f"the log has an invalid event: {row!r:.200}"
    raise ProtocolError(msg)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


class Columns(NamedTuple):
    """Many events as arrays, for a quick replay: one place per event."""

    kinds: NDArray[np.int8]
    """The place of the kind in `KINDS`."""
    tickets: Ints
    arms: Ints
    """The number of the arm, -1 for a name that the study does not have."""
    draws: Ints
    values: Floats
    notes: NDArray[np.object_]

    @classmethod
    def of(cls, events: Iterable[Event], names: Sequence[str]) -> "Columns":
        """Return events as arrays."""
        places = {name: i for i, name in enumerate(names)}
        kinds, tickets, arms, draws, values = array("b"), array("q"), array("q"), array("q"), array("d")
        notes: dict[int, Notes] = {}
        for event in events:
            ticket, arm, draw, value = -1, -1, -1, math.nan
            if type(event) is Reading:
                kind, (ticket, name, value, note) = 2, event
                if note is not None:
                    notes[len(kinds)] = note
                arm = places.get(name, -1)
            elif type(event) is Issued:
                kind, ticket, draw, arm = int(event.counted), event.ticket, event.draw, places.get(event.arm, -1)
            else:
                kind = _CODE[to_row(event)[0]]
                if isinstance(event, Released):
                    ticket, arm = event.ticket, places.get(event.arm, -1)
            kinds.append(kind)
            tickets.append(ticket)
            arms.append(arm)
            draws.append(draw)
            values.append(value)
        noted = np.full(len(kinds), None, dtype=object)
        for place, note in notes.items():
            noted[place] = note
        return cls(np.array(kinds), np.array(tickets), np.array(arms), np.array(draws), np.array(values), noted)

    def cut(self, first: int, stop: int) -> "Columns":
        """Return the events from `first` on, before `stop`."""
        return Columns(*(column[first:stop] for column in self))  # type: ignore[arg-type]

    @property
    def kind(self) -> str:
        """The kind of the first event."""
        return KINDS[self.kinds[0]]

    def count_issued(self) -> int:
        """Return how many pulls were issued one by one."""
        return int(np.count_nonzero(self.kinds == 0))

    def run(self) -> int:
        """Return how many events of the first one's kind come first."""
        others = np.flatnonzero(self.kinds != self.kinds[0])
        return int(others[0]) if others.size else self.kinds.size

    def pulls(self) -> dict[int, int]:
        """Return the arm of every ticket that is issued."""
        is_issued = self.kinds == 0
        return dict(zip(self.tickets[is_issued].tolist(), self.arms[is_issued].tolist(), strict=True))

    def batch(self, room: int, out: int) -> int:
        """Return how many events come before the next decision of a study, or before one that is not routine.

        Routine events are single pulls and readings. A study decides when `room` pulls were handed out and none
        is out, `out` being those that are out at the start, or when more pulls are asked for.
        """
        odd = np.flatnonzero((self.kinds != 0) & (self.kinds != 2))
        kinds = self.kinds[: odd[0]] if odd.size else self.kinds
        issued = np.cumsum(kinds == 0)
        beyond = int(np.searchsorted(issued, room, "right"))  # the first event that asks for more
        waiting = out + 2 * issued[:beyond] - np.arange(1, beyond + 1)
        decided = np.flatnonzero((issued[:beyond] == room) & (waiting == 0))
        return int(decided[0]) + 1 if decided.size else beyond


def _view(numbers: "array[Any]") -> NDArray[Any]:
    """Return an array's memory as numpy sees it; drop it before the array grows."""
    return np.frombuffer(numbers, dtype=numbers.typecode) if numbers else np.empty(0, dtype=numbers.typecode)


class Log:
    """The pulls and readings of a study in arrays, and the order of all events.

    A pull is a ticket; the n-th pull of an arm, in order of issue, is its draw n - 1. A draw whose pull was
    released is handed out again under a new ticket, except in rounds.

    Attributes
    ----------
    arms, draws, values
        By ticket; NaN is the value of a pull without a reading.
    arrivals
        Tickets in order of their readings' arrival.
    tickets
        For each arm, by draw, the last ticket.
    out
        How many pulls have no answer yet.
    append
        Where events go before the study acts on them: a function that takes a list of them, or None.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.arms, self.draws, self.values = array("i"), array("q"), array("d")
        self.arrivals = array("q")
        self.tickets = [array("q") for _ in names]
        self.notes: dict[int, Notes] = {}
        self.released = 0
        self.out = 0
        self.append: Callable[[list[Event]], object] | None = None
        self._unwritten: list[Event] = []  # pulls of an ask whose append failed
        self._states = array("b")  # by ticket
        self._free: list[list[int]] = [[] for _ in names]  # draws to hand out again
        self._prefix = [0] * len(names)  # per arm: all draws before this one have a reading
        self._marks = array("q"), array("b"), array("q")  # arrivals before, kind, how many tickets or which one

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "append": None, "_unwritten": []}  # a file stays in this process

    def __copy__(self) -> "Log":
        made = object.__new__(Log)
        vars(made).update(copy.deepcopy({**self.__getstate__(), "notes": {}}), notes=dict(self.notes))
        return made

    def __len__(self) -> int:
        """Return how many pulls were issued."""
        return len(self.arms)

    def write(self, events: Sequence[Event] = ()) -> None:
        """Append events to the file, after those whose append failed before."""
        if self.append is not None and (events or self._unwritten):
            self.append([*self._unwritten, *events])
            self._unwritten = []

    def write_issued(self, first: int, *, counted: bool = False, ended: bool = False) -> None:
        """Append the tickets from `first` on before anyone has them, and whether the ask ended the study."""
        if len(self) > first:
            self._mark(COUNTED if counted else ISSUED, len(self) - first)
        if ended:
            self.stop()
        if self.append is not None:
            self._unwritten += self.issued(first, len(self), counted=counted)
            self._unwritten += [Stopped()] if ended else []
            self.write()

    def find(self, pull: Pull | int) -> int:
        """Return the ticket of a pull that was handed out here and not released."""
        ticket = pull.ticket if isinstance(pull, Pull) else pull
        known = type(ticket) is int or (isinstance(ticket, int | np.integer) and not isinstance(ticket, bool))
        if not known or not 0 <= ticket < len(self.arms):
            msg = f"ticket {ticket!r} was never handed out; use the ticket of a pull that `ask` returned"
            raise ProtocolError(msg, "ticket", ticket)
        if self._states[ticket] == _RELEASED:
            msg = f"ticket {ticket} of {self.name(ticket)!r} was released; its draw has a new ticket"
            raise ProtocolError(msg, "ticket", ticket)
        if isinstance(pull, Pull) and pull.arm != self.name(ticket):
            here = f"ticket {ticket} is a pull of {self.name(ticket)!r} here"
            msg = f"{here}, not of {pull.arm!r}; tell the study that asked for it"
            raise ProtocolError(msg, "ticket", ticket)
        return ticket

    def as_reading(self, ticket: int, value: object) -> float:
        """Return what a pull read as a float."""
        name = f"value of ticket {ticket} ({self.name(ticket)!r})"
        return as_number(name, value, "use nan for a reading that went wrong", boolean=True)

    def issue(self, arms: Sequence[int]) -> range:
        """Hand out a pull of each of these arms, in this order, and return their tickets."""
        first, free, tickets, draws = len(self.arms), self._free, self.tickets, self.draws
        for ticket, arm in enumerate(arms, first):
            places = tickets[arm]
            if free[arm]:
                draw = free[arm].pop(0)
                places[draw] = ticket
            else:
                draw = len(places)
                places.append(ticket)
            draws.append(draw)
        self.arms.extend(arms)
        self._add(len(arms))
        return range(first, len(self.arms))

    def issue_many(self, arm: int, count: int) -> None:
        """Hand out many pulls of one arm."""
        again = min(count, len(self._free[arm]))
        self.issue([arm] * again)
        first, draw, count = len(self.arms), len(self.tickets[arm]), count - again
        self.arms.extend(array("i", [arm]) * count)
        self.draws.frombytes(np.arange(draw, draw + count, dtype=np.int64).tobytes())
        self.tickets[arm].frombytes(np.arange(first, first + count, dtype=np.int64).tobytes())
        self._add(count)

    def _add(self, count: int) -> None:
        self.values.extend(array("d", [math.nan]) * count)
        self._states.extend(array("b", [_OUT]) * count)
        self.out += count

    def record(self, ticket: int, value: float, notes: Notes | None = None) -> None:
        """Record the reading of a pull."""
        self.values[ticket] = value
        self._states[ticket] = _ARRIVED
        self.arrivals.append(ticket)
        self.out -= 1
        if notes is not None:
            self.notes[ticket] = notes

    def record_many(self, tickets: Ints, values: Floats) -> None:
        """Record the readings of many pulls, in order of arrival."""
        _view(self.values)[tickets] = values
        _view(self._states)[tickets] = _ARRIVED
        self.arrivals.frombytes(tickets.astype(np.int64).tobytes())
        self.out -= tickets.size

    def release(self, ticket: int, *, again: bool) -> None:
        """Take back a pull that never started; hand its draw out again if so asked."""
        self._states[ticket] = _RELEASED
        self.out -= 1
        self.released += 1
        self._mark(RELEASED, ticket)
        if again:
            self._free[self.arms[ticket]].append(self.draws[ticket])

    def stop(self) -> None:
        """Note that the study ended here."""
        self._mark(STOPPED, 0)

    def _mark(self, kind: str, number: int) -> None:
        """Note where in the order tickets were issued, one was released, or the study stopped."""
        for marks, value in zip(self._marks, (len(self.arrivals), _CODE[kind], number), strict=True):
            marks.append(value)

    def name(self, ticket: int) -> str:
        """Return the arm of a pull."""
        return self.names[self.arms[ticket]]

    def has_arrived(self, ticket: int) -> bool:
        """Return True if a pull has a reading."""
        return self._states[ticket] == _ARRIVED

    def is_released(self, ticket: int) -> bool:
        """Return True if a pull was taken back."""
        return self._states[ticket] == _RELEASED

    def waiting(self, arm: int | None = None) -> Ints:
        """Return the tickets that are out: in order of issue, or those of one arm in order of draw."""
        if arm is None:
            return np.flatnonzero(_view(self._states) == _OUT)
        tickets = np.array(self.tickets[arm][self.prefix(arm) :])
        return tickets[_view(self._states)[tickets] == _OUT] if tickets.size else tickets

    def length(self, arm: int) -> int:
        """Return how many pulls of an arm were issued; a last one that was released does not count."""
        tickets = self.tickets[arm]
        n = len(tickets)
        while n and self._states[tickets[n - 1]] == _RELEASED:
            n -= 1
        return n

    def tape(self, arm: int, first: int = 0, stop: int | None = None) -> tuple[Floats, Bools]:
        """Return the readings of an arm in order of draw, NaN where there is none, and which have arrived."""
        tickets = np.array(self.tickets[arm][first:stop], dtype=np.int64)
        return _view(self.values)[tickets], _view(self._states)[tickets] == _ARRIVED

    def prefix(self, arm: int) -> int:
        """Return how many draws of an arm have a reading, without a gap."""
        first = self._prefix[arm]
        _, arrived = self.tape(arm, first)
        gaps = np.flatnonzero(~arrived)
        self._prefix[arm] = first + (int(gaps[0]) if gaps.size else arrived.size)
        return self._prefix[arm]

    def tapes(self) -> dict[str, list[float | None]]:
        """Return for each arm the readings in order of draw, None where there is none."""
        found = {}
        for i, name in enumerate(self.names):
            values, arrived = self.tape(i, 0, self.length(i))
            tape: list[float | None] = values.tolist()
            for place in np.flatnonzero(~arrived).tolist():
                tape[place] = None
            found[name] = tape
        return found

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return for each arm how many pulls were handed out, and how many have a reading."""
        arms, states, k = np.array(self.arms, dtype=np.int64), np.array(self._states), len(self.names)
        pulls, told = (np.bincount(arms[some], minlength=k) for some in (states != _RELEASED, states == _ARRIVED))
        return {name: (int(p), int(t)) for name, p, t in zip(self.names, pulls, told, strict=True)}

    def arrived_since(self, first: int) -> dict[str, tuple[Ints, Floats]]:
        """Return by arm the draws and values of the readings from the `first` arrival on."""
        tickets = np.array(self.arrivals[first:], dtype=np.int64)
        arms, found = _view(self.arms)[tickets], {}
        for arm in np.unique(arms).tolist():
            own = tickets[arms == arm]
            found[self.names[arm]] = _view(self.draws)[own], _view(self.values)[own]
        return found

    def whole(self, first: Sequence[int], counts: Sequence[int]) -> dict[str, tuple[Ints, Floats]]:
        """Return by arm `counts` draws from `first` on and their values, or nothing while one has not arrived."""
        found = {}
        for i, (start, count) in enumerate(zip(first, counts, strict=True)):
            values, arrived = self.tape(i, start, start + count)
            if np.count_nonzero(arrived) < count:
                return {}
            if count:
                found[self.names[i]] = np.arange(start, start + count), values
        return found

    def answers(self, events: Columns) -> bool:
        """Return True if every reading of these events answers a pull that is out by then."""
        issued, known = events.kinds == 0, len(self.arms)
        tickets = events.tickets[~issued]
        in_time = (tickets >= 0) & (tickets < known + np.cumsum(issued)[~issued])
        old = tickets[tickets < known] if in_time.all() else tickets[:0]
        is_out = (_view(self._states)[old] == _OUT).all()
        return bool(in_time.all() and is_out and np.unique(tickets).size == tickets.size)

    def extend(self, events: Columns, arms: Sequence[int]) -> None:
        """Add pulls of these arms and readings (`Columns.batch`) at once; raise if the events do not match."""
        issued, first = events.kinds == 0, len(self.arms)
        tickets = events.tickets[~issued]
        self.issue(arms)
        if not self.has_issued(events, first) or (_view(self.arms)[tickets] != events.arms[~issued]).any():
            raise ProtocolError(LOG_MISMATCH)
        starts = np.flatnonzero(issued & ~np.append(False, issued[:-1]))
        ends = np.flatnonzero(issued & ~np.append(issued[1:], False))
        marks = np.cumsum(~issued)[starts] + len(self.arrivals), 0 * starts, ends - starts + 1
        for old, new in zip(self._marks, marks, strict=True):
            old.extend(new.tolist())
        self.record_many(tickets, events.values[~issued])
        for ticket, notes in zip(tickets.tolist(), events.notes[~issued], strict=True):
            if notes is not None:
                self.notes[ticket] = notes

    def has_issued(self, events: Columns, first: int) -> bool:
        """Return True if the pulls from a ticket on are those of the events."""
        is_issued = events.kinds <= 1
        expected = (range(first, len(self.arms)), self.arms[first:], self.draws[first:])
        found = (events.tickets, events.arms, events.draws)
        pairs = zip(found, expected, strict=True)
        return all(np.array_equal(column[is_issued], np.array(known, dtype=np.int64)) for column, known in pairs)

    def issued(self, first: int, stop: int, *, counted: bool) -> list[Issued]:
        """Return the events of the tickets from `first` on, before `stop`."""
        arms, draws = self.arms[first:stop], self.draws[first:stop]
        return [
            Issued(ticket, self.names[arm], draw, counted)
            for ticket, arm, draw in zip(range(first, stop), arms, draws, strict=True)
        ]

    def __iter__(self) -> Iterator[Event]:
        arrived = issued = 0
        for before, code, number in zip(*self._marks, strict=True):
            yield from self._readings(arrived, before)
            arrived, kind = before, KINDS[code]
            if kind in (ISSUED, COUNTED):
                yield from self.issued(issued, issued + number, counted=kind == COUNTED)
                issued += number
            else:
                yield Released(number, self.names[self.arms[number]]) if kind == RELEASED else Stopped()
        yield from self._readings(arrived, len(self.arrivals))

    def _readings(self, first: int, stop: int) -> Iterator[Reading]:
        for ticket in self.arrivals[first:stop]:
            yield Reading(ticket, self.names[self.arms[ticket]], self.values[ticket], self.notes.get(ticket))
