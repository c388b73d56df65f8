"""By how much arms are certainly worse than a rival: the margins of many, searched in step (evidence T10a).

What an arm's own readings say at a rank does not depend on the amount by which they are lifted. A rank at which
the evidence fails therefore bounds the margin: no amount holds that lifts the reading there beyond a certain
reading of the rival. A few such ranks lead to the one that decides.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truearm.bounds.search import last_true_each
from truearm.evidence.cuts import Leasts, Term, least_each, most_below
from truearm.evidence.levels import Levels
from truearm.evidence.sample import Ints, Sample

Floats = NDArray[np.float64]

_RANKS = 16  # at most: three or four are enough, and bisection does the rest


@dataclass(frozen=True, slots=True, eq=False)
class Lifted:
    """Arms that are lifted, each by an amount of its own, and a rival that is to stay better.

    Parameters
    ----------
    relative
        Of which arms the amount is the logarithm of a factor.
    term, enough
        As for `cuts.least_each`.
    """

    rival: Sample
    arms: Sequence[Sample]
    relative: NDArray[np.bool_]
    sign: float
    levels: Levels
    term: Term
    enough: float

    def margins(self, most: Floats, *, accuracy: Floats) -> Floats:
        """Return the amounts that bisection from 0 to `most` finds the last to hold, NaN where 0 does not."""
        sizes, near = np.array([s.size for s in self.arms]), accuracy / 16
        spans, ranks = np.column_stack((np.zeros_like(sizes), sizes)), self._likely()
        good, bad = np.full(sizes.size, -np.inf), most.copy()  # known to hold, and not to

        def tried(which: Ints, amounts: Floats) -> Ints:
            """Learn of some arms whether amounts hold; return those for which they do not."""
            found = self._lifted(which, amounts, spans[which])
            fails = found.log_values < self.enough
            held, failed = which[~fails], which[fails]
            good[held], bad[failed], spans[failed] = amounts[~fails], amounts[fails], found.spans[fails]
            ranks[failed] = found.ranks[fails]
            return failed

        def open_() -> Ints:
            return np.flatnonzero((bad > 0) & (bad - good > 3 * near))

        limits = np.zeros(sizes.size)
        for _ in range(_RANKS):
            if not (left := open_()).size:
                break
            below = self._most_below(left, ranks[left])
            limits[left] = self._limits(left, ranks[left], below)
            beyond = np.maximum(np.fmin(limits + near, bad), 0.0)[left]
            fails = self._below(left, ranks[left], beyond) > below
            bad[left[fails]] = beyond[fails]
            if (left := open_()).size:
                low, aimed = np.maximum(good, 0.0), limits - near
                aimed = np.where((low < aimed) & (aimed < bad), aimed, low + (bad - low) / 2)
                tried(left, np.where(limits <= near, 0.0, aimed)[left])

        def hold(amounts: Floats) -> NDArray[np.bool_]:
            unknown = np.flatnonzero((good < amounts) & (amounts < bad))
            if unknown.size:
                tried(unknown, amounts[unknown])
            return amounts <= good

        certain = hold(np.zeros(sizes.size))
        found = last_true_each(hold, np.zeros(sizes.size), most, accuracy=accuracy)
        return np.where(certain, found, np.nan)

    def _lifted(self, which: Ints, amounts: Floats, spans: Ints) -> Leasts:
        """Return whether the evidence against each of some arms is enough, and where it is not."""
        return least_each(
            self.rival,
            [self.arms[i] for i in which],
            self.levels,
            closed=np.ones(which.size, dtype=bool),
            term=self.term,
            lift=self._lift(which, amounts),
            spans=spans,
            enough=self.enough,
        )

    def _lift(self, which: Ints, amounts: Floats) -> Callable[[Floats, Ints], Floats]:
        """Return what lifts readings of some arms, each by its amount: `improved` of many arms at once."""
        by_ratio = self.relative[which]
        each = zip(by_ratio.tolist(), amounts.tolist(), strict=True)
        ratios = np.array([1 + math.expm1(amount) if relative else 1.0 for relative, amount in each])

        def lift(values: Floats, arms: Ints) -> Floats:
            with np.errstate(over="ignore"):
                scaled = values * ratios[arms] if self.sign > 0 else values / ratios[arms]
                relative = np.where(self.sign * values > 0, scaled, values)
                return np.where(by_ratio[arms], relative, values + amounts[arms])

        return lift

    def _likely(self) -> Ints:
        """Return a rank of each arm near which the evidence is likely to fail first.

        About so many readings fewer above it than the level allows are as unlikely as is enough.
        """
        sizes, high = np.array([s.size for s in self.arms]), self.levels.high
        short = np.sqrt(2 * self.enough * high * (1 - high) * sizes)
        return np.clip((1 - high) * sizes + short, 0, sizes).astype(np.intp)

    def _most_below(self, which: Ints, ranks: Ints) -> Ints:
        """Return how many of the rival's readings may be below the cut at a rank of each arm, -1 if none."""
        arms, n, (low, high) = [self.arms[i] for i in which], self.rival.n, self.levels
        above = np.array([s.size + s.unknown for s in arms]) - ranks
        own = self.term(above.astype(np.float64), np.array([s.n for s in arms]), high)
        return most_below(n, low, own, self.enough, term=self.term)

    def _limits(self, which: Ints, ranks: Ints, below: Ints) -> Floats:
        """Return the amounts from which on more than so many are below the cut at a rank of each, NaN if none."""
        arms, rival = [self.arms[i] for i in which], self.rival
        reached = np.array([rival.at(count - rival.unknown + 1) for count in below.tolist()])
        lowest = np.array([s.at(rank + 1) for s, rank in zip(arms, ranks.tolist(), strict=True)])
        with np.errstate(all="ignore"):
            found: Floats = np.where(self.relative[which], self.sign * np.log(reached / lowest), reached - lowest)
        return found

    def _below(self, which: Ints, ranks: Ints, amounts: Floats) -> Ints:
        """Return how many of the rival's readings are below the cut at a rank of each, lifted."""
        values = [self.arms[i].at(rank + 1) for i, rank in zip(which, ranks.tolist(), strict=True)]
        cuts = self._lift(which, amounts)(np.array(values), np.arange(which.size))
        return self.rival.below(cuts, closed=True)
