"""The events from which `Study.replay` rebuilds a study; no decision is made here."""

import copy
import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument, ProtocolError
from truearm.problem import Pull

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Notes = Mapping[str, Any]
Row = Sequence[Any]
"""An event as plain values without trailing Nones. A reading that is not finite is text."""

ISSUED, COUNTED, TOLD, RELEASED, STOPPED = KINDS = ("issued", "counted", "told", "released", "stopped")
_CODE = {kind: code for code, kind in enumerate(KINDS)}
_OUT, _ARRIVED, _RELEASED = range(3)  # states of a pull
LOG_MISMATCH = "the log does not match its definition: it was edited, or written by another version of truearm"


class Event(NamedTuple):
    """Something that happened to a study; its fields are the columns of a log.

    A pull was handed out ("issued", or "counted" by `ask_counts`, in the order of the arms), its reading came in
    ("told"), it never started ("released"), or the study ended ("stopped": by `stop`, or because the readings
    decided in an `ask`).
    """

    kind: str
    ticket: Any = None
    arm: Any = None
    draw: Any = None
    """The number of a pull among those of its arm, from 0 (audit 1.m)."""
    value: Any = None
    notes: Notes | None = None
    """What else is known about a reading: an exit code, the user CPU time, a host."""


class Noted(float):
    """A number with notes: a source may return it, and `Study.tell` accepts it like any other number."""

    notes: Notes

    def __new__(cls, value: float, notes: Notes) -> "Noted":  # noqa: D102 - see the class
        number = super().__new__(cls, value)
        number.notes = notes
        return number

    def __getnewargs__(self) -> tuple[float, Notes]:  # type: ignore[override]
        return float(self), self.notes


def to_row(event: Event) -> Row:
    """Return an event as plain values, ready for JSON and for a table."""
    if not isinstance(event, Event):
        raise InvalidArgument(f"a log takes events, but got {event!r:.80}")
    value = None if event.value is None else float(event.value)
    row = event if value is None else event._replace(value=value if math.isfinite(value) else str(value))
    return row[: max(i for i, column in enumerate(row, 1) if column is not None)]


def from_row(row: Row) -> Event:
    """Return the event that `to_row` described."""
    with suppress(TypeError, ValueError, OverflowError):
        kind, ticket, arm, draw, value, notes = Event(*row)
        if kind == STOPPED:
            return Event(kind)
        if _is_count(ticket) and isinstance(arm, str):
            if kind in (ISSUED, COUNTED) and _is_count(draw):
                return Event(kind, ticket, arm, draw)
            if kind == TOLD and isinstance(notes, Mapping | None):
                return Event(kind, ticket, arm, None, float(value), notes)
            if kind == RELEASED:
                return Event(kind, ticket, arm)
    raise ProtocolError(f"the log has an invalid event: {row!r:.200}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _view(numbers: "array[Any]") -> NDArray[Any]:
    """Return a numpy view of an array; drop it before the array grows."""
    return np.frombuffer(numbers, dtype=numbers.typecode) if numbers else np.empty(0, dtype=numbers.typecode)


class Log:
    """The pulls and readings of a study in arrays, and the order of all events.

    A pull is a ticket; the n-th pull of an arm, in order of issue, is its draw n - 1. A draw whose pull was
    released is handed out again under a new ticket, except in rounds. `arms`, `draws` and `values` are by ticket,
    with NaN for a pull without a reading; `tickets` has the last ticket of each draw by arm, `out` counts pulls
    without an answer, and `append` receives a list of events before the study acts on them.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.arms, self.draws, self.values = array("i"), array("q"), array("d")
        self.tickets = [array("q") for _ in names]
        self.notes: dict[int, Notes] = {}
        self.released = 0
        self.out = 0
        self.append: Callable[[list[Event]], object] | None = None
        self._unwritten: list[Event] = []  # pulls of an ask whose append failed
        self._states = array("b")  # by ticket
        self._free: list[list[int]] = [[] for _ in names]  # draws to hand out again
        self._order = array("q")  # of all events: len(KINDS) * ticket + the place of the kind in KINDS

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

    def write_since(self, first: int) -> None:
        """Append the events from `first` on to the file; if that fails, the next write starts with them."""
        if self.append is not None:
            self._unwritten += self.events(first)
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
            raise ProtocolError(f"{here}, not of {pull.arm!r}; tell the study that asked for it", "ticket", ticket)
        return ticket

    def issue(self, arms: Sequence[int], *, counted: bool = False) -> None:
        """Hand out a pull of each of these arms, in this order."""
        first, count = len(self.arms), len(arms)
        tickets, free, draws = self.tickets, self._free, self.draws
        for ticket, arm in enumerate(arms, first):
            if free[arm]:
                draws.append(free[arm].pop(0))
                tickets[arm][draws[-1]] = ticket
            else:
                draws.append(len(tickets[arm]))
                tickets[arm].append(ticket)
        self.arms.extend(arms)
        self.values.extend(array("d", [math.nan]) * count)
        self._states.extend(array("b", [_OUT]) * count)
        self._order.extend(range(len(KINDS) * first + counted, len(KINDS) * (first + count), len(KINDS)))
        self.out += count

    def record(self, tickets: Sequence[int], values: Sequence[float], notes: Notes | None = None) -> None:
        """Record the readings of pulls that are out; notes are those of a single one."""
        places = np.array(tickets, dtype=np.int64)
        _view(self.values)[places], _view(self._states)[places] = values, _ARRIVED
        self._order.frombytes((len(KINDS) * places + _CODE[TOLD]).tobytes())
        self.out -= len(tickets)
        if notes is not None:
            self.notes[tickets[0]] = notes

    def are_out(self, tickets: Sequence[int], arms: Sequence[str]) -> bool:
        """Return True if these are distinct pulls of these arms, all without an answer."""
        if not 0 <= min(tickets) <= max(tickets) < len(self.arms) or len(set(tickets)) < len(tickets):
            return False
        places = np.array(tickets, dtype=np.int64)
        names = [self.names[arm] for arm in _view(self.arms)[places].tolist()]
        return bool((_view(self._states)[places] == _OUT).all()) and names == list(arms)

    def release(self, ticket: int, *, again: bool) -> None:
        """Take back a pull that never started; `again` hands its draw out under a new ticket."""
        self._states[ticket] = _RELEASED
        self.out -= 1
        self.released += 1
        self._order.append(len(KINDS) * ticket + _CODE[RELEASED])
        if again:
            self._free[self.arms[ticket]].append(self.draws[ticket])

    def stop(self) -> None:
        """Record that the study ended here."""
        self._order.append(_CODE[STOPPED])

    @property
    def readings(self) -> int:
        """How many readings came in."""
        return len(self.arms) - self.out - self.released

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
        tickets = np.array(self.tickets[arm])
        return tickets[_view(self._states)[tickets] == _OUT] if tickets.size else tickets

    def length(self, arm: int) -> int:
        """Return how many pulls of an arm were issued; a last one that was released does not count."""
        tickets = self.tickets[arm]
        n = len(tickets)
        while n and self._states[tickets[n - 1]] == _RELEASED:
            n -= 1
        return n

    def tape(self, arm: int, first: int = 0, stop: int | None = None) -> tuple[Floats, Bools]:
        """Return the readings of an arm in order of draw, NaN for a pull without one, and which have arrived."""
        tickets = np.array(self.tickets[arm][first:stop], dtype=np.int64)
        return _view(self.values)[tickets], _view(self._states)[tickets] == _ARRIVED

    def prefix(self, arm: int) -> int:
        """Return how many draws of an arm have readings before the first gap."""
        arrived = self.tape(arm)[1]
        return arrived.size if arrived.all() else int(arrived.argmin())

    def tapes(self) -> dict[str, list[float | None]]:
        """Return for each arm the readings in order of draw, None for a pull without one."""
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
        pulls, read = (np.bincount(arms[some], minlength=k) for some in (states != _RELEASED, states == _ARRIVED))
        return {name: (int(p), int(r)) for name, p, r in zip(self.names, pulls, read, strict=True)}

    def arrivals_since(self, first: int) -> dict[str, tuple[Ints, Floats]]:
        """Return the draws and values of the readings of each arm since an event."""
        codes = np.array(self._order[first:], dtype=np.int64)
        tickets = codes[codes % len(KINDS) == _CODE[TOLD]] // len(KINDS)
        arms, found = _view(self.arms)[tickets], {}
        for arm in np.unique(arms).tolist():
            own = tickets[arms == arm]
            found[self.names[arm]] = _view(self.draws)[own], _view(self.values)[own]
        return found

    def whole(self, first: Sequence[int], counts: Sequence[int]) -> dict[str, tuple[Ints, Floats]]:
        """Return `counts` draws of each arm from `first` on, with values; empty until all have arrived."""
        found = {}
        for i, (start, count) in enumerate(zip(first, counts, strict=True)):
            values, arrived = self.tape(i, start, start + count)
            if np.count_nonzero(arrived) < count:
                return {}
            if count:
                found[self.names[i]] = np.arange(start, start + count), values
        return found

    @property
    def position(self) -> int:
        """The number of events up to now."""
        return len(self._order)

    def events(self, first: int = 0) -> Iterator[Event]:
        """Iterate over the events in order, from `first` on."""
        for code in self._order[first:]:
            ticket, place = divmod(code, len(KINDS))
            kind = KINDS[place]
            if kind == STOPPED:
                yield Event(kind)
            elif kind == TOLD:
                yield Event(kind, ticket, self.name(ticket), None, self.values[ticket], self.notes.get(ticket))
            else:
                yield Event(kind, ticket, self.name(ticket), None if kind == RELEASED else self.draws[ticket])
