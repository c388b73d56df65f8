"""Pair evidence of many arms at once: bounds from counts at cuts common to all arms, which spare most searches.

What arm i says at a cut falls as the cut rises, what arm j says against itself rises (`cuts`). Between two cuts
the sum is therefore at least i's at the upper plus j's at the lower one, and the evidence is at most the least sum
at the cuts themselves. The cuts may be chosen from the readings: the bounds hold at any cuts (extensions D3).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from truearm.evidence.cuts import Term
from truearm.evidence.levels import Levels
from truearm.evidence.sample import Ints, Sample

Floats = NDArray[np.float64]

_CUTS = 256  # common cuts: of 1,000 arms they leave fewer than one pair in 100 to be searched by itself
_EACH = 2048  # values of an arm that are looked at to place them
_ROWS = 1 << 22  # numbers held at once while pairs are bounded


def common_cuts(samples: Sequence[Sample], count: int = _CUTS) -> Floats:
    """Return cuts at which all arms are counted: evenly many readings between them, and both ends."""
    some = [s.values[:: max(1, s.values.size // _EACH)] for s in samples if s.size]
    pool = np.sort(np.concatenate(some)) if some else np.empty(0)
    places = np.linspace(0, pool.size - 1, min(count, pool.size)).astype(np.intp)
    return np.concatenate(([-np.inf], np.unique(pool[places]), [np.inf]))


def against_itself(samples: Sequence[Sample], cuts: Floats, level: float, term: Term, *, least: bool) -> Floats:
    """Return by arm and cut what an arm's own readings say against it, at the least or at the most."""
    counts = [s.above(cuts) if least else s.fewest_above(cuts) for s in samples]
    return _rows(counts, samples, level, term)


def against_others(
    samples: Sequence[Sample], cuts: Floats, level: float, term: Term, *, closed: bool, least: bool
) -> Floats:
    """Return each arm's evidence against others by cut; with `closed`, readings at the cut are below it."""
    counts = [s.below(cuts, closed=closed) if least else s.fewest_below(cuts, closed=closed) for s in samples]
    return _rows(counts, samples, level, term)


def _rows(counts: Sequence[Ints], samples: Sequence[Sample], level: float, term: Term) -> Floats:
    return term(np.array(counts, dtype=np.float64), np.array([[s.n] for s in samples]), level)


def pair_bounds(samples: Sequence[Sample], levels: Levels, term: Term) -> tuple[Floats, Floats]:
    """Return lower and upper bounds of the strict log-evidence that the row's arm is better than the column's."""
    cuts = common_cuts(samples)
    own, own_most = (against_itself(samples, cuts, levels.high, term, least=least) for least in (True, False))
    rival, rival_most = (
        against_others(samples, cuts, levels.low, term, closed=True, least=least) for least in (True, False)
    )
    k = len(samples)
    low, high = np.empty((k, k)), np.empty((k, k))
    rows = max(1, _ROWS // (k * cuts.size))
    for first in range(0, k, rows):
        part = slice(first, first + rows)
        low[part] = (rival[part, None, 1:] + own[None, :, :-1]).min(axis=2)
        high[part] = (rival_most[part, None] + own_most[None]).min(axis=2)
    return low, high
