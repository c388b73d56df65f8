"""Evidence from bounded scores of two arms on the same items (extensions B1 to B3).

A round is an item; D is the difference of the two scores there, scaled to [-1, 1]. The null says that the mean
of D is at most m0: over all draws, or over a fixed list of items that are drawn without replacement.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BETS = 0.99 * 2.0 ** (-np.arange(17) / 2)  # extensions B2: a bet for every size of the gap, equal weights


def null_mean(gap: float, eps: float, *, independent: bool, listed: bool) -> float:
    """Return m0, the most that bad scores can make of a mean difference of at most `gap` (extensions B1).

    Parameters
    ----------
    independent
        Whether a score is bad independently of its true value.
    listed
        Whether eps bounds the share of wrong scores of each arm on a fixed list, not a chance.
    """
    if independent and not listed:
        return eps + (1 - eps) * gap  # extensions B1
    return gap + 2 * eps  # extensions B1


def log_score_evidence(differences: Floats, m0: float, items: int | None = None) -> Floats:
    """Return the log-evidence against a mean difference of at most m0 after each item (extensions B2).

    Parameters
    ----------
    differences
        Scaled differences in the order in which items were drawn; -1 where a score is missing.
    items
        The length of the list the items are drawn from without replacement; None: independent draws.
    """
    n = differences.size
    before = np.concatenate(([0.0], np.cumsum(differences)))
    refuted = np.zeros(n, dtype=bool)
    level = np.full(n, min(m0, 1.0))
    if items is not None:
        left = items - np.arange(n)  # items not yet drawn, the current one included
        level = np.minimum((items * m0 - before[:-1]) / left, 1.0)  # extensions B2
        refuted = np.logical_or.accumulate(before[1:] - (left - 1) > items * m0 + 1e-9)  # extensions B2
    room = 1 + level
    ratio = np.divide(differences - level, room, out=np.zeros(n), where=room > 0)
    steps = np.log1p(np.maximum(BETS[:, None] * ratio, -BETS[:, None]))
    logs = np.logaddexp.reduce(np.cumsum(steps, axis=1), axis=0) - math.log(BETS.size)
    return np.where(refuted, math.inf, logs)
