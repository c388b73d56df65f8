"""All arms in order, as far as it is certain: a partial order, places for all arms at once, tiers (extensions D3).

One arm is claimed over another by strict pair evidence that allows for all pairs in both directions, so that with
probability 1 - delta no claim is ever false, nor is anything that follows from claims.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.evidence.judge import Breakdown, Judge

Relation = NDArray[np.bool_]
"""Whether the row's arm is better than the column's."""

MAX_SEARCHES = 100_000  # pairs: half a minute; those left then count as not claimed


class Order(NamedTuple):
    """A certified partial order."""

    better: Relation
    """Claims, and what follows from them."""
    listed: tuple[int, ...]
    """All arms, the better tiers first, inside a tier as they look."""
    skipped: int
    """Pairs that were not searched because there were too many; they count as not claimed."""

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """For each arm the best and the worst place it may have, all at once (extensions D3)."""
        ahead, behind = self.better.sum(axis=0).tolist(), self.better.sum(axis=1).tolist()
        return tuple((1 + a, len(self.listed) - b) for a, b in zip(ahead, behind, strict=True))

    @property
    def tiers(self) -> tuple[tuple[int, ...], ...]:
        """The arms in groups: each arm of a tier is better than each of every later one."""
        arms = np.array(self.listed, dtype=np.intp)
        ahead = self.better[np.ix_(arms, arms)].cumsum(axis=0)
        ends = [r for r in range(1, arms.size) if (ahead[r - 1, r:] == r).all()]
        starts = [0, *ends]
        return tuple(self.listed[a:b] for a, b in zip(starts, [*ends, arms.size], strict=True))

    @property
    def nearest(self) -> tuple[tuple[int, int], ...]:
        """For each arm the claims that say most: over the first arm listed below it, and by the last above."""
        place = {arm: r for r, arm in enumerate(self.listed)}
        found = set()
        for arm in self.listed:
            worse, better = np.flatnonzero(self.better[arm]), np.flatnonzero(self.better[:, arm])
            if worse.size:
                found.add((arm, min(worse.tolist(), key=place.__getitem__)))
            if better.size:
                found.add((max(better.tolist(), key=place.__getitem__), arm))
        return tuple(sorted(found, key=lambda pair: (place[pair[0]], place[pair[1]])))


def order(judge: Judge, ranking: tuple[int, ...]) -> Order:
    """Return what is certain of the order of all arms.

    Parameters
    ----------
    ranking
        All arms as they look, the best first.
    """
    k, bar = len(judge.samples), judge.log_strict
    better, searches, skipped, may_claim = np.zeros((k, k), dtype=bool), 0, 0, judge.screen(bar)
    for place in range(k - 2, -1, -1) if not judge.is_hopeless else ():
        arm = ranking[place]
        for other in ranking[place + 1 :]:  # an arm that looks better is never shown to be worse
            if better[arm, other] or not may_claim(arm, other):  # follows from claims before, or is ruled out
                continue
            if searches == MAX_SEARCHES:
                skipped += 1
                continue
            searches += 1
            if judge.better(arm, other, enough=bar).log_value >= bar:
                better[arm] |= better[other]
                better[arm, other] = True
    better = closed(better)
    ahead = better.sum(axis=0)
    seen = {arm: r for r, arm in enumerate(ranking)}
    listed = _by_tier(better, sorted(range(k), key=lambda arm: (int(ahead[arm]), seen[arm])), seen)
    return Order(better, listed, skipped)


def _by_tier(better: Relation, listed: list[int], seen: dict[int, int]) -> tuple[int, ...]:
    tiers = Order(better, tuple(listed), 0).tiers
    return tuple(arm for tier in tiers for arm in sorted(tier, key=seen.__getitem__))


def closed(better: Relation) -> Relation:
    """Return a relation with all that follows from it by transitivity."""
    known = better
    while True:
        steps = known.astype(np.float32)  # counts of ways are whole and far below 2^24
        more: Relation = known | (steps @ steps > 0)
        if (more == known).all():
            return known
        known = more


def claim_breakdown(judge: Judge, better: int, worse: int) -> Breakdown:
    """Return up to which contamination a claim between two arms holds, all claims together (extensions D3)."""
    return judge.pair_breakdown(better, worse, 1 / len(judge.samples))  # k(k-1)/delta for all pairs
