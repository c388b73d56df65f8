"""How much contamination a judgment withstands: the breakdown point, certified and estimated (evidence T6)."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from truearm.bounds.search import last_reached
from truearm.evidence.levels import Levels, Strength
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


class Rejection(Protocol):
    """The log-evidence that rejects an arm, by what it is computed at and, as in `cuts.pair`, what is enough."""

    def __call__(self, levels: Strength, /, *, enough: float | None = None) -> float:
        """Return the log-evidence."""
        ...


def breakdown_point(
    evidences: Sequence[Rejection],
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
    ...     [lambda levels, enough=None: pair(a, b, levels, enough=enough).log_value],
    ...     3.0, quantile=0.5, adversary=Adversary.OBLIVIOUS,
    ... )
    >>> round(point, 4)
    0.2946
    """
    limit = min(quantile, 1 - quantile) if adversary is Adversary.MALICIOUS else 1.0  # levels vanish there
    return certified_eps(
        evidences, log_threshold, lambda eps: Levels.at(quantile, eps, adversary), limit=limit, accuracy=accuracy
    )


def certified_eps(
    evidences: Sequence[Rejection],
    log_threshold: float,
    at: Callable[[float], Strength],
    *,
    limit: float,
    accuracy: float = 1e-13,
) -> float | None:
    """Return up to which eps all of these evidences reach the threshold; None if not at 0.

    Parameters
    ----------
    at
        Gives what they are computed at, by eps.
    limit
        An eps from which on nothing can be certified.

    Examples
    --------
    >>> from truearm.evidence.levels import Trust
    >>> evidences = [lambda trust, enough=None, by=by: 4 - by * trust.eps for by in (5, 10)]
    >>> round(certified_eps(evidences, 3.0, lambda eps: Trust(eps, Adversary.OBLIVIOUS), limit=1.0), 6)
    0.1
    """
    certified = limit
    for evidence in evidences:
        if certified < limit and evidence(at(certified), enough=log_threshold) >= log_threshold:
            continue
        found = last_reached(
            lambda eps, e=evidence: e(at(eps)),  # type: ignore[misc]
            log_threshold,
            certified,
            accuracy=1e-3 * accuracy,
            relative=accuracy,
        )
        if found is None:
            return None
        certified = found
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

    def crossed(rank: int) -> bool:
        falling, rising = room(rank)
        return falling <= rising

    crossing = bisect_left(range(size), True, key=crossed)
    return max(0.0, min(max(room(rank)) for rank in (max(crossing - 1, 0), crossing)))
