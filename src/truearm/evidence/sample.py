"""One arm's readings: order statistics, and counts on both sides of a cut.

Readings without a value to sort by are counted apart. A pull that is asked and not yet told counts at its worst,
because what it will say may be why it is late. A missing reading (NaN) does too, because whether a pull fails may
depend on what it would have said; only where failing is promised to be independent of the value it counts in n and
on neither side (evidence T8). So does a reading outside the plausible range, where one is named: it is known to be
bad (extensions E2). Minus infinity is a censored reading: a time-out, known only to be worse than every value, and
never outside the range. Of two such readings nobody knows the order, so a rival's count as below every cut. Plus
infinity is an ordinary reading.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.errors import InvalidArgument
from truearm.problem import Interval, as_number

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_NONE = np.empty(0)
_MANY = 1 << 15  # readings, from which on `rising` is faster than one sort of them all
_BLOCK = 1 << 15  # of them at a time, while what is computed of them is near the processor
_ROW = 256  # numbers that processors sort at once: so many cost 2 ns each, a million 54 ns
_LONG, _TAILS = 4096, 8  # a body so long is rewritten only when the tail is an eighth of it: copying costs most


def as_readings(readings: ArrayLike, name: str = "x") -> Floats:
    """Return readings as a one-dimensional float array, or name the first that is not a number."""
    if isinstance(readings, np.ma.MaskedArray):  # under its mask any number may stand
        readings = np.ma.filled(readings.astype(np.float64), np.nan)
    if isinstance(readings, np.ndarray) and readings.dtype == np.float64:
        array = readings
    else:
        array = _converted(readings, name)
    if array.ndim != 1:
        msg = f"{name} must be one-dimensional, but has shape {array.shape}; pass one arm's readings at a time"
        raise InvalidArgument(msg)
    return array


def _converted(readings: ArrayLike, name: str) -> Floats:
    try:
        items = np.asarray(readings)
    except ValueError:  # rows of different lengths
        items = np.empty(0, dtype=object)
    if items.dtype.kind in "biuf":
        return items.astype(np.float64)
    if not isinstance(readings, Iterable) or isinstance(readings, Mapping):
        msg = f"{name} must be a list of readings, but got {readings!r}"
        raise InvalidArgument(msg)
    remedy = "use nan for a reading that went wrong"
    return np.array([as_number(f"{name}[{i}]", x, remedy, boolean=True) for i, x in enumerate(readings)])


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """All readings of one arm, sorted; bigger is better.

    Parameters
    ----------
    body
        Sorted readings without NaN.
    missing
        How many readings were NaN.
    pending
        How many pulls are asked and not yet told.
    tail
        More such readings, sorted and few, that wait to be merged into a long body.
    worst
        Whether missing readings count at their worst, or are promised to be independent of their value.
    plausible
        The range in which true readings lie; readings told later that lie outside it are only counted.
    outside
        How many readings lie outside it.
    """

    body: Floats
    missing: int = 0
    pending: int = 0
    tail: Floats = field(default_factory=lambda: _NONE, repr=False)
    worst: bool = True
    plausible: Interval | None = field(default=None, repr=False)
    outside: int = field(default=0, repr=False)

    @classmethod
    def of(
        cls, readings: ArrayLike, name: str = "x", *, worst: bool = True, plausible: Interval | None = None
    ) -> "Sample":
        """Sort readings into a sample."""
        return cls(_NONE, worst=worst, plausible=plausible).merged(as_readings(readings, name))

    @property
    def values(self) -> Floats:
        """All readings that have a value, sorted."""
        return _merged(self.body, self.tail) if self.tail.size else self.body

    @property
    def size(self) -> int:
        """How many readings have a value."""
        return self.body.size + self.tail.size

    @property
    def n(self) -> int:
        """How many pulls the sample stands for."""
        return self.body.size + self.tail.size + self.missing + self.pending + self.outside

    @property
    def answered(self) -> int:
        """How many pulls are told, whatever they said."""
        return self.n - self.pending

    @property
    def unknown(self) -> int:
        """How many readings may be on either side of every cut, and count on the side that hurts."""
        return self.pending + self.missing if self.worst else self.pending

    @property
    def idle(self) -> int:
        """How many readings are on neither side of any cut: bad ones, by promise (evidence T8, extensions E2)."""
        return self.outside if self.worst else self.outside + self.missing

    @property
    def bottom(self) -> int:
        """How many missing readings count at their worst."""
        return self.missing if self.worst else 0

    @property
    def censored(self) -> int:
        """How many readings are only known to be worse than every value."""
        return int(self.count(-np.inf, closed=True))

    def merged(self, readings: ArrayLike, pending: int = 0) -> "Sample":
        """Return the sample with more readings, and with `pending` pulls still out."""
        new = np.asarray(readings, dtype=np.float64)
        holes = np.isnan(new)
        known = rising(new[~holes] if holes.any() else new)
        missing = self.missing + new.size - known.size
        inside = known if self.plausible is None else within(known, self.plausible)
        outside = self.outside + known.size - inside.size
        tail = _merged(self.tail, inside) if self.tail.size else inside
        if self.body.size < _LONG or self.body.size < _TAILS * tail.size:
            body = _merged(self.body, tail) if tail.size else self.body
            return Sample(body, missing, pending, _NONE, self.worst, self.plausible, outside)
        return Sample(self.body, missing, pending, tail, self.worst, self.plausible, outside)

    def settled(self) -> "Sample":
        """Return the same sample without a tail, for callers that need `values` more than once."""
        return self.mapped(lambda values: values) if self.tail.size else self

    def mapped(self, change: Callable[[Floats], Floats]) -> "Sample":
        """Return the sample after a nondecreasing change of its values."""
        return replace(self, body=change(self.values), tail=_NONE, plausible=None)

    def hidden(self) -> "Sample":
        """Return the sample with its censored readings unknown: how far they are from the others nobody knows."""
        if not self.censored:
            return self
        values, censored = self.values, self.censored
        return replace(self, body=values[censored:], tail=_NONE, pending=self.pending + censored)

    def known(self) -> "Sample":
        """Return the sample without its missing readings."""
        return Sample(self.values, 0, self.pending)

    def passed(self, places: Ints) -> Ints:
        """Return how many readings are before each of these places of `values`."""
        return places

    def at(self, rank: int, *, top: bool = False) -> float:  # noqa: ARG002 - of counts it may not be known
        """Return the value at a rank among the readings that have one; ranks outside are infinities."""
        if rank < 1:
            return -np.inf
        if rank > self.size:
            return np.inf
        return _at_rank(self.body, self.tail, rank) if self.tail.size else float(self.body[rank - 1])

    def between(self, ranks: tuple[int, int]) -> Interval:
        """Return the readings at a lower and an upper rank among all n, those without a value at their worst."""
        low, high = ranks
        return Interval(self.at(low - self.unknown), self.at(high - self.idle))

    def quantile(self, level: float) -> float:
        """Return the empirical quantile X_(ceil(q n)) of the readings that have a value, NaN if none has."""
        if not self.size:
            return np.nan
        return self.at(max(1, math.ceil(level * self.size - 1e-9)))

    def count(self, cuts: ArrayLike, *, closed: bool = False) -> Ints:
        """Return how many values lie below each cut, at it too when closed."""
        side: Literal["left", "right"] = "right" if closed else "left"
        found = self.body.searchsorted(cuts, side)
        return found + self.tail.searchsorted(cuts, side) if self.tail.size else found

    def below(self, cuts: ArrayLike, *, closed: bool = False) -> Ints:
        """Return a rival's readings in the lower set of each cut: unknown and censored ones always (T8)."""
        side: Literal["left", "right"] = "right" if closed else "left"
        found = self.body.searchsorted(cuts, side)
        if self.tail.size:
            found = found + self.tail.searchsorted(cuts, side)
        if not closed:  # only the open cut at minus infinity leaves censored readings above it
            if isinstance(cuts, float):
                found = self.count(cuts, closed=True) if cuts == -np.inf else found
            elif (lowest := np.equal(cuts, -np.inf)).any():
                found = np.where(lowest, self.censored, found)
        return found + self.pending + self.missing if self.worst else found + self.pending

    def above(self, cuts: ArrayLike) -> Ints:
        """Return the judged arm's readings in the upper set of each cut: unknown ones always (evidence T8)."""
        return self.size - self.count(cuts) + self.unknown

    def fewest_below(self, cuts: ArrayLike, *, closed: bool = False) -> Ints:
        """Return the same as `below`; of counts in buckets only bounds are known."""
        return self.below(cuts, closed=closed)

    def fewest_above(self, cuts: ArrayLike) -> Ints:
        """Return the same as `above`; of counts in buckets only bounds are known."""
        return self.above(cuts)


def rising(values: Floats) -> Floats:
    """Return numbers sorted, none of them NaN: many are first put into buckets, which are then sorted one by one.

    A bucket of at most half a row lies inside a row, or inside one that begins half a row later, wherever it is;
    so sorting all of the former rows and then all of the latter sorts all such buckets, whatever else rows hold.
    """
    n = values.size
    if n < _MANY:
        return np.sort(values)
    some = np.sort(values[:: n >> 11])
    some = some[np.isfinite(some)]
    tail, buckets = some.size >> 8, min(n >> 5, 1 << 16)
    width = float(some[-1 - tail] / buckets - some[tail] / buckets) if some.size else 0.0
    if not np.finfo(np.float64).tiny * buckets < width:  # nearly all are equal
        return np.sort(values)
    first = max(float(some[tail]) - width, float(np.finfo(np.float64).min))
    keys, desk = np.empty(n, dtype=np.uint16), np.empty(_BLOCK)
    with np.errstate(over="ignore"):
        for start in range(0, n, _BLOCK):
            key = desk[: min(_BLOCK, n - start)]
            np.subtract(values[start : start + _BLOCK], first, out=key)
            np.multiply(key, 1 / width, out=key)
            keys[start : start + _BLOCK] = np.clip(key, 0, buckets - 1, out=key)
    found = values.take(np.argsort(keys, kind="stable"), mode="clip")  # the mode that looks at no place twice
    for start in (0, _ROW // 2):
        end = n - (n - start) % _ROW
        found[start:end].reshape(-1, _ROW).sort(axis=1)
        found[end:].sort()
    if (found[1:] < found[:-1]).any():  # there are larger buckets
        sizes = np.bincount(keys, minlength=buckets)
        ends = np.cumsum(sizes)
        for bucket in np.flatnonzero(sizes > _ROW // 2).tolist():
            part = found[ends[bucket] - sizes[bucket] : ends[bucket]]
            part[:] = rising(part) if part.size < n // 2 else np.sort(part)
    return found


def within(values: Floats, plausible: Interval) -> Floats:
    """Return the sorted readings inside a range, preceded by the censored ones."""
    low, high = plausible
    ends = values.searchsorted(-np.inf, "right"), values.searchsorted(low), values.searchsorted(high, "right")
    censored, first, last = (int(end) for end in ends)
    if first <= censored and last == values.size:
        return values
    return np.concatenate((values[:censored], values[max(first, censored) : max(last, censored)]))


def _merged(body: Floats, tail: Floats) -> Floats:
    """Merge two sorted arrays in linear time."""
    merged = tail
    if body.size:
        places = body.searchsorted(tail) + np.arange(tail.size)
        merged, old = np.empty(body.size + tail.size), np.ones(body.size + tail.size, dtype=bool)
        merged[places], old[places] = tail, False
        merged[old] = body
    merged.flags.writeable = False
    return merged


def _at_rank(body: Floats, tail: Floats, rank: int) -> float:
    """Return the value at a rank of two sorted arrays together."""
    least, most = max(0, rank - body.size), min(rank, tail.size)
    taken = least + bisect_left(range(least, most), True, key=lambda i: bool(body[rank - i - 1] <= tail[i]))
    return max(
        float(tail[taken - 1]) if taken else -np.inf, float(body[rank - taken - 1]) if rank > taken else -np.inf
    )


EMPTY = Sample(_NONE)
