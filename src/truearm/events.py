"""What happens to a study, as values in order: the one grammar of its log, in memory and in a file.

`Study.replay` brings a study back from its events. Here live the events, their plain form and the arrays a study
keeps them in; nothing that decides, and nothing that touches a disk.
"""

import copy
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from truearm.errors import InvalidArgument, ProtocolError

Notes = Mapping[str, Any]
Row = tuple[Any, ...]
"""An event as plain values, those of `COLUMNS` up to the last it has. A reading that is not finite is text."""

COLUMNS = ("kind", "ticket", "arm", "draw", "value", "notes")
ISSUED, COUNTED, TOLD, RELEASED, STOPPED = "issued", "counted", "told", "released", "stopped"


class Issued(NamedTuple):
    """A pull was handed out; `draw` says the how many-th of its arm it is, from 0 (audit 1.m).

    `counted` if it went out as a part of a number (`Study.ask_counts`), where the order is that of the arms.
    """

    ticket: int
    arm: str
    draw: int
    counted: bool = False


class Reading(NamedTuple):
    """The number a pull gave, as measured, with notes beside it: an exit code, a user time, a host."""

    ticket: int
    arm: str
    value: float
    notes: Notes | None = None


class Released(NamedTuple):
    """A pull that was handed out never began; its draw goes out again under a new ticket."""

    ticket: int
    arm: str


class Stopped(NamedTuple):
    """The study ended here with what had been told: by hand, or because an ask found that it was enough."""


Event = Issued | Reading | Released | Stopped


class Noted(float):
    """A number with notes beside it: what a source may return and `Study.tell` takes like any other number."""

    notes: Notes

    def __new__(cls, value: float, notes: Notes) -> "Noted":  # noqa: D102 - the class says it
        made = super().__new__(cls, value)
        made.notes = notes
        return made

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
    msg = f"a log takes a list of Issued, Reading, Released and Stopped, but got {event!r} in it"
    raise InvalidArgument(msg)


_PADS = (None,) * len(COLUMNS)


def padded(row: Sequence[Any]) -> list[Any]:
    """Return a row with a value for each of `COLUMNS`, None where it ends before."""
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
    msg = f"the log has an event that cannot be: {row!r}"
    raise ProtocolError(msg)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class Log:
    """The events of a study in order, kept small: readings and tickets in arrays, and marks of all else.

    Parameters
    ----------
    names
        The arms; arrays hold their numbers.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.arms, self.draws = array("i"), array("q")  # of every ticket
        self.tickets, self.values = array("q"), array("d")  # of every reading, in order of arrival
        self.notes: dict[int, Notes] = {}  # by ticket, where there are any
        self.released: set[int] = set()
        self._marks: list[tuple[int, str, int]] = []  # readings before, kind, how many tickets or which one

    def __copy__(self) -> "Log":
        made = object.__new__(Log)
        vars(made).update({name: copy.copy(part) for name, part in vars(self).items()})
        return made

    def mark(self, kind: str, number: int) -> None:
        """Note that so many tickets were issued or counted, that one was released, or that all was stopped."""
        self._marks.append((len(self.tickets), kind, number))

    def issued(self, first: int, stop: int, *, counted: bool) -> list[Issued]:
        """Return the events of the tickets from `first` on, before `stop`."""
        arms, draws = self.arms[first:stop], self.draws[first:stop]
        return [
            Issued(ticket, self.names[arm], draw, counted)
            for ticket, arm, draw in zip(range(first, stop), arms, draws, strict=True)
        ]

    def __iter__(self) -> Iterator[Event]:
        told = issued = 0
        for before, kind, number in self._marks:
            yield from self._readings(told, before)
            told = before
            if kind in (ISSUED, COUNTED):
                yield from self.issued(issued, issued + number, counted=kind == COUNTED)
                issued += number
            else:
                yield Released(number, self.names[self.arms[number]]) if kind == RELEASED else Stopped()
        yield from self._readings(told, len(self.tickets))

    def _readings(self, first: int, stop: int) -> Iterator[Reading]:
        for ticket, value in zip(self.tickets[first:stop], self.values[first:stop], strict=True):
            yield Reading(ticket, self.names[self.arms[ticket]], value, self.notes.get(ticket))
