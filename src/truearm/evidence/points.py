"""How much contamination a judgment withstands: the breakdown point, certified and estimated (evidence T6)."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from truearm.bounds.search import last_true
from truearm.evidence.levels import Levels
from truearm.evidence.sample import Sample
from truearm.problem import Adversary, Contamination


class Breakdown(NamedTuple):
    """The largest contamination under which a decision holds, per adversary; None where none is certified.

    Examples
    --------
    >>> Breakdown(0.08, 0.06, 0.03).malicious
    0.03
    """

    oblivious: float | None
    prescient: float | None
    malicious: float | None

    def decided_at(self, declared: Contamination | None) -> "Breakdown":
        """Return the points of what was decided at a declared contamination, by whatever: none is below it.

        Examples
        --------
        >>> Breakdown(0.04, None, None).decided_at(Contamination(0.05))
        Breakdown(oblivious=0.05, prescient=None, malicious=None)
        """
        if declared is None:
            return self
        order = list(Adversary)  # each is a special case of the next
        last = order.index(declared.adversary)
        return Breakdown(*(max(x or 0.0, declared.eps) if i <= last else x for i, x in enumerate(self)))


def breakdown_point(
    evidences: Sequence[Callable[[Levels], float]],
    log_threshold: float,
    *,
    quantile: float,
    adversary: Adversary,
    accuracy: float = 1e-13,
) -> float | None:
    """Return eps*: up to it, every one of these evidences reaches the threshold (evidence T6).

    It is valid without knowing the true eps, and for all eps at once: only the true one can be in error.
    None when the threshold is not reached even without contamination.

    Examples
    --------
    >>> from truearm.evidence.cuts import pair
    >>> a, b = Sample.of(np.arange(50.0, 150.0)), Sample.of(np.arange(0.0, 100.0))
    >>> point = breakdown_point(
    ...     [lambda levels: pair(a, b, levels).log_value], 3.0, quantile=0.5, adversary=Adversary.OBLIVIOUS
    ... )
    >>> round(point, 4)
    0.2946
    """
    limit = min(quantile, 1 - quantile) if adversary is Adversary.MALICIOUS else 1.0  # levels vanish there
    found = [lambda eps, e=e: e(Levels.at(quantile, eps, adversary)) for e in evidences]
    return certified_eps(found, log_threshold, limit=limit, accuracy=accuracy)


def certified_eps(
    evidences: Sequence[Callable[[float], float]], log_threshold: float, *, limit: float, accuracy: float = 1e-13
) -> float | None:
    """Return up to which eps all of these evidences, as functions of it, reach the threshold; None if not at 0.

    Parameters
    ----------
    limit
        An eps from which on nothing can be certified.

    Examples
    --------
    >>> round(certified_eps([lambda eps: 4 - 5 * eps, lambda eps: 4 - 10 * eps], 3.0, limit=1.0), 6)
    0.1
    """
    certified = limit

    def reached(evidence: Callable[[float], float], eps: float) -> bool:
        return evidence(eps) >= log_threshold

    for evidence in evidences:
        if certified < limit and reached(evidence, certified):
            continue
        if not reached(evidence, 0.0):
            return None
        certified = last_true(
            lambda eps, e=evidence: reached(e, eps),  # type: ignore[misc]
            0.0,
            certified,
            accuracy=1e-3 * accuracy,
            relative=accuracy,
        )
    return certified


def breakdown_estimate(better: Sample, worse: Sample, quantile: float, adversary: Adversary) -> float:
    """Return where the breakdown point would end with endless readings like these: a plug-in estimate.

    At a cut, contamination e can hide the order once 1-e <= min(F(L)/q, G(U)/(1-q)) (malicious:
    e >= max(q-F(L), 1-q-G(U))); F(L) rises and G(U) falls with the cut, so the best cut is where they cross.

    Examples
    --------
    >>> a, b = Sample.of(np.arange(50.0, 150.0)), Sample.of(np.arange(0.0, 100.0))
    >>> round(breakdown_estimate(a, b, 0.5, Adversary.OBLIVIOUS), 3)
    0.5
    >>> round(breakdown_estimate(a, b, 0.5, Adversary.MALICIOUS), 3)
    0.25
    """
    size = worse.values.size
    if not size or not better.values.size:
        return 0.0

    def room(rank: int) -> tuple[float, float]:
        at = worse.values[rank] if rank < size else np.inf
        lower = better.size + better.unknown if rank == size else int(better.below(at))
        over = worse.size - int(worse.passed(np.array(rank))) + worse.unknown
        below, above = lower / better.n, over / worse.n
        if adversary is Adversary.MALICIOUS:
            return quantile - below, 1 - quantile - above
        return 1 - below / quantile, 1 - above / (1 - quantile)

    # the first falls and the second rises with the rank
    crossing = bisect_left(range(size), True, key=lambda rank: room(rank)[0] <= room(rank)[1])
    return max(0.0, min(max(room(rank)) for rank in (max(crossing - 1, 0), crossing)))
