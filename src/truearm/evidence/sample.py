"""One arm's readings: in order of pull, sorted, or as bucket counts when there are many. Bigger is better here.

Missing readings (NaN) and pending pulls may have any value, so they count on the side that hurts (evidence T8). A
reading outside the plausible range is known to be bad: it counts in n and on neither side (extensions E2). Minus
infinity is a time-out, known only to be worse than every value: a rival's time-outs are below every cut. Plus
infinity is an ordinary value.

A bucket holds the number of readings between a lowest and a highest one. Questions are answered on the safe side
of all readings that fit the counts, and buckets on which the answer depends are noted, so that they can be counted
more finely (extensions 4.1).

A shift makes an arm better or worse. It is a nondecreasing map of the readings, so the quantile of the shifted
readings is the shifted quantile, and every statement about an order of arms is one about the order up to the shift
(evidence T7).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.errors import InvalidArgument
from truearm.problem import Interval, Problem, Tolerance, as_number

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

_NONE = np.empty(0)


def as_readings(readings: ArrayLike, name: str = "x") -> Floats:
    """Return readings as a one-dimensional float array, or name the first that is not a number."""
    if isinstance(readings, np.ma.MaskedArray):  # masked cells hold arbitrary numbers
        readings = np.ma.filled(readings.astype(np.float64), np.nan)
    if isinstance(readings, np.ndarray) and readings.dtype == np.float64:
        array = readings
    else:
        array = _convert(readings, name)
    if array.ndim != 1:
        msg = f"{name} must be one-dimensional, but has shape {array.shape}; pass one arm's readings at a time"
        raise InvalidArgument(msg)
    return array


def _convert(readings: ArrayLike, name: str) -> Floats:
    try:
        items = np.asarray(readings)
    except ValueError:  # rows of different lengths
        items = np.empty(0, dtype=object)
    except MemoryError:  # such as range(10**12)
        raise InvalidArgument(f"{name} does not fit into memory; pass a random sample of it", name) from None
    if items.dtype.kind in "biuf":
        return items.astype(np.float64)
    if not isinstance(readings, Iterable) or isinstance(readings, Mapping):
        raise InvalidArgument(f"{name} must be a list of readings, but got {readings!r}")
    remedy = "use nan for a reading that went wrong"
    return np.array([as_number(f"{name}[{i}]", x, remedy, boolean=True) for i, x in enumerate(readings)])


class Buckets(NamedTuple):
    """Readings as counts: `Sample.values` has the lowest reading of each bucket that has any."""

    highs: Floats
    """The highest reading of each."""
    ends: Ints
    """How many readings are in it and in those before."""
    numbers: Ints
    """Its number in the table of counts."""
    notes: set[int] | None = None
    """Where to note the numbers of buckets to refine; None if they cannot be refined."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """All readings of one arm: sorted, without NaN, and how many others there are.

    The tape has them in order of pull or round, NaN where one is missing or pending, and `arrived` says which have
    an answer; both are None where the order does not matter.
    """

    values: Floats = field(default_factory=lambda: _NONE)
    missing: int = 0
    pending: int = 0
    outside: int = field(default=0, repr=False)
    plausible: Interval | None = field(default=None, repr=False)
    tape: Floats | None = field(default=None, repr=False)
    arrived: Bools | None = field(default=None, repr=False)
    buckets: Buckets | None = field(default=None, repr=False)

    @classmethod
    def of(cls, readings: ArrayLike) -> "Sample":
        """Sort readings into a sample."""
        return cls().extend(as_readings(readings))

    @classmethod
    def in_order(cls, tape: ArrayLike, arrived: Bools | None = None) -> "Sample":
        """Return the sample of readings that keep their places, so that those of two arms can be compared."""
        values = np.array(tape, dtype=np.float64)
        known = np.ones(values.size, dtype=bool) if arrived is None else arrived
        values[~known] = np.nan
        numbers = np.sort(values[~np.isnan(values)])
        pending = values.size - int(np.count_nonzero(known))
        return cls(numbers, values.size - pending - numbers.size, pending, tape=values, arrived=known)

    def extend(self, readings: ArrayLike, pending: int = 0) -> "Sample":
        """Return the sample with more readings, and with `pending` pulls still without an answer."""
        new = np.asarray(readings, dtype=np.float64)
        known = new[~np.isnan(new)]
        known.sort()
        inside = known if self.plausible is None else _inside(known, self.plausible)
        values = inside
        if self.values.size:  # a stable sort of two sorted runs merges them
            values = np.sort(np.concatenate((self.values, inside)), kind="stable") if inside.size else self.values
        values.flags.writeable = False
        missing, outside = self.missing + new.size - known.size, self.outside + known.size - inside.size
        return Sample(values, missing, pending, outside, self.plausible)

    def place(self, indices: Ints, readings: Floats, issued: int) -> "Sample":
        """Return a sample in order after more readings at their places, with this many pulls in all."""
        tape, arrived = np.full(issued, np.nan), np.zeros(issued, dtype=bool)
        if self.tape is not None:
            tape[: self.n], arrived[: self.n] = self.in_rounds
        tape[indices], arrived[indices] = readings, True
        return Sample.in_order(tape, arrived)

    @property
    def in_rounds(self) -> tuple[Floats, Bools]:
        """Readings by round, and which rounds have an answer."""
        assert self.tape is not None  # a problem in rounds keeps the order
        assert self.arrived is not None
        return self.tape, self.arrived

    @property
    def size(self) -> int:
        """How many readings have a value."""
        if self.buckets is None:
            return self.values.size
        return int(self.buckets.ends[-1]) if self.buckets.ends.size else 0

    @property
    def n(self) -> int:
        """How many pulls the sample is from."""
        return self.size + self.missing + self.pending + self.outside

    @property
    def answers(self) -> int:
        """How many pulls have an answer, whatever it is."""
        return self.n - self.pending

    @property
    def unknown(self) -> int:
        """How many readings may be on either side of every cut, and count on the side that hurts."""
        return self.pending + self.missing

    @property
    def time_outs(self) -> int:
        """How many readings are only known to be worse than every value."""
        return int(self.count(-np.inf, closed=True))

    @property
    def is_exact(self) -> bool:
        """Whether every reading is known, and not only its bucket."""
        return self.buckets is None or bool((self.values == self.buckets.highs).all())

    def map(self, change: Callable[[Floats], Floats]) -> "Sample":
        """Return the sample after a nondecreasing change of its values."""
        buckets = None if self.buckets is None else self.buckets._replace(highs=change(self.buckets.highs))
        tape = None if self.tape is None else change(self.tape)
        return replace(self, values=change(self.values), tape=tape, buckets=buckets, plausible=None)

    def hide_censored(self) -> "Sample":
        """Return the sample with its time-outs unknown: how far they are from the other readings is not known."""
        if not (censored := self.time_outs):
            return self
        first = int(self.values.searchsorted(-np.inf, "right"))
        buckets = self.buckets
        if buckets is not None:
            buckets = buckets._replace(
                highs=buckets.highs[first:], ends=buckets.ends[first:] - censored, numbers=buckets.numbers[first:]
            )
        return replace(self, values=self.values[first:], pending=self.pending + censored, buckets=buckets)

    def count(self, cuts: ArrayLike, *, closed: bool = False) -> Ints:
        """Return how many values are certainly below each cut, or at it if closed."""
        side: Literal["left", "right"] = "right" if closed else "left"
        if self.buckets is None:
            return self.values.searchsorted(cuts, side)
        found = self.before(self.buckets.highs.searchsorted(cuts, side))
        if self.buckets.notes is not None and np.any(found < self.before(self.values.searchsorted(cuts, side))):
            self.note(np.atleast_1d(np.searchsorted(self.buckets.highs, cuts)))
        return found

    def below(self, cuts: ArrayLike, *, closed: bool = False) -> Ints:
        """Return a rival's readings in the lower set of each cut: unknown and censored ones always (T8)."""
        found = self.before(self.values.searchsorted(cuts, "right" if closed else "left"))
        if not closed and (lowest := np.equal(cuts, -np.inf)).any():
            found = np.where(lowest, self.time_outs, found)
        return found + self.unknown

    def above(self, cuts: ArrayLike) -> Ints:
        """Return the judged arm's readings in the upper set of each cut: unknown ones always (evidence T8)."""
        if self.buckets is None:
            return self.size - self.values.searchsorted(cuts) + self.unknown
        return self.size - self.before(self.buckets.highs.searchsorted(cuts)) + self.unknown

    def at(self, rank: int, *, top: bool = False) -> float:
        """Return the value at a rank, infinite outside; in a bucket the least possible, or with `top` the most."""
        if rank < 1:
            return -np.inf
        if rank > self.size:
            return np.inf
        if self.buckets is None:
            return float(self.values[rank - 1])
        highs, ends = self.buckets.highs, self.buckets.ends
        place = int(np.searchsorted(ends, rank))
        low, high = float(self.values[place]), float(highs[place])
        if rank == (ends[place - 1] if place else 0) + 1:
            return low
        if rank == ends[place]:
            return high
        self.note(np.array([place]))
        return high if top else low

    def between(self, ranks: tuple[int, int]) -> Interval:
        """Return the readings at a lower and an upper rank among all n, those without a value at their worst."""
        low, high = ranks
        return Interval(self.at(low - self.unknown), self.at(high - self.outside, top=True))

    def quantile(self, level: float) -> float:
        """Return the empirical quantile X_(ceil(q n)) of the readings that have a value, NaN if none has."""
        return self.at(max(1, math.ceil(level * self.size - 1e-9))) if self.size else np.nan

    def at_end(self, *, best: bool) -> "Sample":
        """Return bucket counts with every reading at the upper (best) or the lower end of its bucket."""
        if self.buckets is None:
            return self
        values = self.buckets.highs if best else self.values
        return replace(self, values=values, buckets=self.buckets._replace(highs=values, notes=None))

    def note_in(self, notes: set[int] | None) -> "Sample":
        """Return the sample with another place to note the buckets to refine."""
        return self if self.buckets is None else replace(self, buckets=self.buckets._replace(notes=notes))

    def note(self, places: Ints) -> None:
        """Note buckets, by their place in this sample, unless each is a single value."""
        buckets = self.buckets
        if buckets is not None and buckets.notes is not None and buckets.numbers.size:
            inside = places[(places >= 0) & (places < self.values.size)]
            split = self.values[inside] < buckets.highs[inside]
            buckets.notes.update(buckets.numbers[inside[split]].tolist())

    def before(self, places: Ints) -> Ints:
        """Return how many readings are before each of these places of `values`."""
        if self.buckets is None:
            return places
        found: Ints = np.concatenate(([0], self.buckets.ends))[places]
        return found


def align(one: Sample, other: Sample) -> tuple[Floats, Floats]:
    """Return the readings of two arms in the rounds that both were in."""
    (mine, _), (theirs, _) = one.in_rounds, other.in_rounds
    n = min(mine.size, theirs.size)
    return mine[:n], theirs[:n]


def _inside(values: Floats, plausible: Interval) -> Floats:
    """Return the sorted readings inside a range, preceded by the censored ones."""
    low, high = plausible
    ends = values.searchsorted(-np.inf, "right"), values.searchsorted(low), values.searchsorted(high, "right")
    censored, first, last = (int(end) for end in ends)
    return np.concatenate((values[:censored], values[max(first, censored) : max(last, censored)]))


class Shift(NamedTuple):
    """By how much an arm is made worse, or better if negative: a distance, or a factor less 1 if relative."""

    amount: float
    relative: bool = False

    @classmethod
    def of(cls, tolerance: Tolerance) -> "Shift":
        """Return the shift by a tolerance."""
        return cls(tolerance.amount, tolerance.relative)

    def lift(self, sign: float) -> Callable[[Floats], Floats] | None:
        """Return the function that shifts readings, None if it changes nothing."""
        return partial(worsen, shift=self, sign=sign) if self.amount else None


def worsen(values: Floats, shift: Shift | Tolerance, sign: float = 1.0) -> Floats:
    """Return oriented readings made worse by a shift.

    A relative shift divides positive readings (multiplies them where `sign` is -1, because small ones are
    good) and leaves the others as they are: they are on the lower side in any case (evidence section 11). A
    negative relative amount -a undoes a shift by a.
    """
    amount = shift.amount
    with np.errstate(over="ignore"):
        if not shift.relative:
            return values - amount
        ratio = 1 + abs(amount)
        divide = (sign > 0) == (amount >= 0)
        moved: Floats = np.where(sign * values > 0, values / ratio if divide else values * ratio, values)
        return moved


def orient(values: Floats, problem: Problem, arm: str) -> Floats:
    """Return an arm's readings as they are judged: bigger is better, and worse by the handicap if it has one.

    For a share only membership in the set matters: 1 for a success, 0 for a failure.
    """
    if problem.target == "share":
        return np.where(np.isnan(values), values, is_success(values, problem).astype(np.float64))
    turned: Floats = values if problem.sign > 0 else -values
    handicap = problem.handicap
    if handicap is None or handicap.arm != arm:
        return turned
    moved = worsen(turned, handicap.tolerance, problem.sign)
    # a time-out of another arm may be anything beyond the limit, and so it is no worse than these (evidence T8c)
    return moved if handicap.limit is None else np.where(moved < problem.sign * handicap.limit, -np.inf, moved)


def is_success(values: Floats, problem: Problem) -> Bools:
    """Return which readings are in the set whose share is compared; a missing one is not."""
    if problem.at_least is not None:
        return values >= problem.at_least
    return values <= (math.inf if problem.at_most is None else problem.at_most)


def start_sample(problem: Problem, arm: str) -> Sample:
    """Return the sample of an arm before its first reading."""
    if problem.rounds:
        return Sample.in_order([])
    # a share counts every reading as it is, and a time-out is never outside a range of good readings
    if problem.between is None or problem.target == "share":
        return Sample()
    ends = np.sort(orient(np.array(problem.between), problem, arm))  # orientation may turn and move the range
    return Sample(plausible=Interval(*ends.tolist()))


def shift_sample(sample: Sample, tolerance: Tolerance, sign: float = 1.0) -> Sample:
    """Return an arm made worse by the tolerance: evidence against it then means "within the tolerance"."""
    return sample.map(lambda values: worsen(values, tolerance, sign)) if tolerance else sample
