"""By how much arms are certainly worse than a rival: the margins of many, searched in step (evidence T10a).

What an arm's own readings say at a rank does not depend on the amount by which they are lifted. A rank at which
the evidence fails therefore bounds the margin: no amount holds that lifts the reading there beyond a certain
reading of the rival. A few such ranks lead to the one that decides.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from truearm.bounds.search import last_true_each
from truearm.evidence.cuts import Failures, Stake, Term, failing_each
from truearm.evidence.levels import Levels
from truearm.evidence.sample import Ints, Sample
from truearm.evidence.shifts import improved
from truearm.problem import Tolerance

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
        As for `cuts.failing_each`.

    Examples
    --------
    >>> from truearm.evidence.cuts import mixture_term
    >>> a, b = Sample.of(np.arange(100.0, 200.0)), Sample.of(np.arange(60.0, 160.0))
    >>> head, levels = Stake(a, closed=True), Levels(0.5, 0.5)
    >>> arms = Lifted(head, [b, b, a], np.array([False, True, False]), 1.0, levels, mixture_term(), 3.0)
    >>> arms.margins(np.array([141.0, 2.2, 101.0]), accuracy=np.full(3, 1e-4)).round(3)
    array([17.   ,  0.131,    nan])
    """

    rival: Stake
    arms: Sequence[Sample]
    relative: NDArray[np.bool_]
    sign: float
    levels: Levels
    term: Term
    enough: float

    def margins(self, most: Floats, *, accuracy: Floats) -> Floats:
        """Return the amounts that bisection from 0 to `most` finds the last to hold, NaN where 0 does not."""
        sizes, near = np.array([s.size for s in self.arms]), accuracy / 4
        everyone, spans = np.arange(sizes.size), np.column_stack((np.zeros_like(sizes), sizes))
        good, bad = np.zeros(sizes.size), most.copy()
        certain = self._failing(everyone, good, spans).ranks < 0
        limits = self._limits(everyone, ((1 - self.levels.high) * sizes).astype(np.intp))

        def tried(which: Ints, amounts: Floats) -> tuple[Ints, Ints]:
            """Learn of some arms whether amounts hold; return those for which they do not, and a rank of each."""
            found = self._failing(which, amounts, spans[which])
            fails = found.ranks >= 0
            held, failed = which[~fails], which[fails]
            good[held], bad[failed], spans[failed] = amounts[~fails], amounts[fails], found.spans[fails]
            return failed, found.ranks[fails]

        aimed = limits - near
        for _ in range(_RANKS):
            left = np.flatnonzero(certain & (bad - good > 2 * near))
            if not left.size:
                break
            aimed = np.where((good < aimed) & (aimed < bad), aimed, good + (bad - good) / 2)
            failed, ranks = tried(left, aimed[left])
            limits[failed] = self._limits(failed, ranks)
            aimed = limits + np.where(aimed == good, near, -near)

        def hold(amounts: Floats) -> NDArray[np.bool_]:
            unknown = np.flatnonzero(certain & (good < amounts) & (amounts < bad))
            if unknown.size:
                tried(unknown, amounts[unknown])
            return amounts <= good

        found = last_true_each(hold, np.zeros(sizes.size), most, accuracy=accuracy)
        return np.where(certain, found, np.nan)

    def _failing(self, which: Ints, amounts: Floats, spans: Ints) -> Failures:
        """Return where the evidence against each of some arms fails."""
        lifts = []
        for relative, amount in zip(self.relative[which].tolist(), amounts.tolist(), strict=True):
            shift = Tolerance(math.expm1(amount) if relative else amount, relative)
            lifts.append(partial(improved, tolerance=shift, sign=self.sign))
        arms = [self.arms[i] for i in which]
        return failing_each(self.rival, arms, lifts, self.levels, spans, term=self.term, enough=self.enough)

    def _limits(self, which: Ints, ranks: Ints) -> Floats:
        """Return the amounts from which on the evidence against some arms fails at a rank of each, NaN if none."""
        arms, rival, (low, high) = [self.arms[i] for i in which], self.rival.sample, self.levels
        above = np.array([s.size + s.unknown for s in arms]) - ranks
        own = self.term(above.astype(np.float64), np.array([s.n for s in arms]), high)

        def holds(below: Ints) -> NDArray[np.bool_]:
            return own + self.term(below.astype(np.float64), rival.n, low) >= self.enough

        below = last_true_each(holds, np.full(len(arms), -1), np.full(len(arms), rival.size + rival.unknown + 1))
        reached = np.array([rival.at(count - rival.unknown + 1) for count in below.tolist()])
        lowest = np.array([s.at(rank + 1) for s, rank in zip(arms, ranks.tolist(), strict=True)])
        with np.errstate(all="ignore"):
            found: Floats = np.where(self.relative[which], self.sign * np.log(reached / lowest), reached - lowest)
        return found
