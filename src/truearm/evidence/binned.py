"""One arm's readings as counts in buckets: a sample of which only the ends of each bucket's readings are known.

Whatever is asked is answered on the safe side of all readings that fit the counts: a judged arm's readings stand
at the upper ends of their buckets, a rival's at the lower ones (extensions 4.1). Where that may matter, the bucket
is noted, so that whoever can count again knows where to look closer. A bucket that holds one single value answers
as the readings themselves would.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.evidence.sample import Floats, Ints, Sample
from truearm.problem import Interval

_NONE = np.empty(0)
_NO_COUNTS = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Binned(Sample):
    """A sample whose `body` holds the lowest reading of each bucket that has any; bigger is better.

    Parameters
    ----------
    highs
        The highest reading of each.
    ends
        How many readings are in it and in those before.
    buckets
        Its number in the table of counts.
    asked
        Where to note the buckets that should be looked at more closely; None if nobody can.
    """

    highs: Floats = field(default_factory=lambda: _NONE)
    ends: Ints = field(default_factory=lambda: _NO_COUNTS)
    buckets: Ints = field(default_factory=lambda: _NO_COUNTS, repr=False)
    asked: set[int] | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """How many readings have a value."""
        return int(self.ends[-1]) if self.ends.size else 0

    @property
    def n(self) -> int:
        """How many pulls the sample stands for."""
        return self.size + self.missing + self.pending + self.outside

    @property
    def exact(self) -> bool:
        """Whether every bucket holds one single value."""
        return bool((self.body == self.highs).all())

    def noting(self, asked: set[int] | None) -> "Binned":
        """Return the sample that notes elsewhere which buckets should be looked at."""
        return replace(self, asked=asked)

    def note(self, places: NDArray[np.intp]) -> None:
        """Note buckets, by their place in this sample, unless each is a single value."""
        if self.asked is not None and self.buckets.size:
            inside = places[(places >= 0) & (places < self.body.size)]
            self.asked.update(self.buckets[inside[self.body[inside] < self.highs[inside]]].tolist())

    def at_worst(self) -> "Binned":
        """Return the sample with every reading at the lower end of its bucket."""
        return replace(self, highs=self.body, asked=None)

    def at_best(self) -> "Binned":
        """Return the sample with every reading at the upper end of its bucket."""
        return replace(self, body=self.highs, asked=None)

    def settled(self) -> "Binned":
        """Return the same sample: it has no tail."""
        return self

    def known(self) -> "Binned":
        """Return the sample without its missing readings."""
        return replace(self, missing=0, outside=0)

    def mapped(self, change: Callable[[Floats], Floats]) -> "Binned":
        """Return the sample after a nondecreasing change of its values."""
        return replace(self, body=change(self.body), highs=change(self.highs), plausible=None)

    def hidden(self) -> "Binned":
        """Return the sample with its censored readings unknown: how far they are from the others nobody knows."""
        if not self.censored:
            return self
        first = int(np.searchsorted(self.body, -np.inf, "right"))
        return replace(
            self,
            body=self.body[first:],
            highs=self.highs[first:],
            ends=self.ends[first:] - self.censored,
            buckets=self.buckets[first:],
            pending=self.pending + self.censored,
        )

    def passed(self, places: Ints) -> Ints:
        """Return how many readings are in the buckets before each of these places."""
        return np.concatenate(([0], self.ends))[places]

    def at(self, rank: int, *, top: bool = False) -> float:
        """Return the least, or with `top` the largest, value that the reading of a rank may have."""
        if rank < 1:
            return -np.inf
        if rank > self.size:
            return np.inf
        place = int(np.searchsorted(self.ends, rank))
        low, high = float(self.body[place]), float(self.highs[place])
        if rank == (self.ends[place - 1] if place else 0) + 1:
            return low
        if rank == self.ends[place]:
            return high
        self.note(np.array([place]))
        return high if top else low

    def between(self, ranks: tuple[int, int]) -> Interval:
        """Return bounds for the readings at a lower and an upper rank among all n."""
        low, high = ranks
        return Interval(self.at(low - self.unknown), self.at(high - self.idle, top=True))

    def count(self, cuts: ArrayLike, *, closed: bool = False) -> Ints:
        """Return how many values are certainly below each cut, at it too when closed."""
        found, most = self._fewest(cuts, closed=closed), self._most(cuts, closed=closed)
        if self.asked is not None and np.any(found < most):
            self.note(np.atleast_1d(np.searchsorted(self.highs, cuts)))
        return found

    def below(self, cuts: ArrayLike, *, closed: bool = False) -> Ints:
        """Return the most readings of a rival that may be in the lower set of each cut."""
        return self._with_unknown(self._most(cuts, closed=closed), cuts)

    def above(self, cuts: ArrayLike) -> Ints:
        """Return the most readings of the judged arm that may be in the upper set of each cut."""
        return self.size - self._fewest(cuts) + self.unknown

    def fewest_below(self, cuts: ArrayLike, *, closed: bool = False) -> Ints:
        """Return the fewest readings of a rival that may be in the lower set of each cut."""
        return self._with_unknown(self._fewest(cuts, closed=closed), cuts)

    def fewest_above(self, cuts: ArrayLike) -> Ints:
        """Return the fewest readings of the judged arm that may be in the upper set of each cut."""
        return self.size - self._most(cuts) + self.unknown

    def _most(self, cuts: ArrayLike, *, closed: bool = False) -> Ints:
        return self.passed(self.body.searchsorted(cuts, _side(closed=closed)))

    def _fewest(self, cuts: ArrayLike, *, closed: bool = False) -> Ints:
        return self.passed(self.highs.searchsorted(cuts, _side(closed=closed)))

    def _with_unknown(self, found: Ints, cuts: ArrayLike) -> Ints:
        """Return counts of a lower set with what is always in it: readings that are censored or unknown (T8)."""
        return np.where(np.equal(cuts, -np.inf), np.maximum(found, self.censored), found) + self.unknown

    def windows(self, rank: int, *, wide: bool) -> tuple[Floats, Floats]:
        """Return both ends of runs of buckets that together hold at least `rank` readings.

        Wide ones certainly hold so many; others are no wider than any run of so many readings.
        """
        starts = np.concatenate(([0], self.ends[:-1]))
        last = np.searchsorted(self.ends, starts + rank)
        some = last < self.ends.size
        first, last = np.flatnonzero(some), last[some]
        if wide:
            return self.body[first], self.highs[last]
        return self.highs[first], np.maximum(self.body[last], self.highs[first])


def _side(*, closed: bool) -> Literal["left", "right"]:
    return "right" if closed else "left"
