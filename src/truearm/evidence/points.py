"""How much contamination a judgment withstands: the breakdown point, certified and estimated (evidence T6)."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from truearm.bounds.search import last_reached, last_reached_by_all
from truearm.evidence.cuts import (
    Evidence,
    Stake,
    at_rank,
    fisher,
    fisher_sum,
    fixed_pair,
    fixed_term,
    least_each,
    mixture_term,
    pair,
)
from truearm.evidence.levels import Levels, Strength
from truearm.evidence.sample import Sample
from truearm.problem import Adversary, Contamination


class Breakdown(NamedTuple):
    """The largest contamination under which a decision holds, per adversary; None where none is certified."""

    oblivious: float | None
    prescient: float | None
    malicious: float | None

    def decided_at(self, declared: Contamination | None) -> "Breakdown":
        """Return the points of what was decided at a declared contamination, by whatever: none is below it."""
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
    """
    return certified_eps(
        evidences,
        log_threshold,
        lambda eps: Levels.at(quantile, eps, adversary),
        limit=_vanishing(quantile, adversary),
        accuracy=accuracy,
    )


def _vanishing(quantile: float, adversary: Adversary) -> float:
    """Return the eps from which on a level is 0."""
    return min(quantile, 1 - quantile) if adversary is Adversary.MALICIOUS else 1.0


def breakdown_of_pairs(
    better: Sample,
    worse: Sequence[Sample],
    log_threshold: float,
    *,
    closed: NDArray[np.bool_],
    quantile: float,
    adversary: Adversary,
    fixed: bool = False,
    start: float = 0.0,
    accuracy: float = 1e-13,
) -> float | None:
    """Return the `breakdown_point` of one rival's evidences against several arms, asked in step.

    Parameters
    ----------
    closed
        By arm, as in `pair`.
    fixed
        Whether evidence is that of `fixed_pair`, not that of `pair`.
    start
        An eps to look at first.
    """
    measure: Callable[..., Evidence] = fixed_pair if fixed else pair
    term, enough = (fixed_term, fisher_sum(log_threshold)) if fixed else (mixture_term(), log_threshold)

    def levels(eps: float) -> Levels:
        return Levels.at(quantile, eps, adversary)

    def short(places: Sequence[int], eps: float) -> list[int]:
        arms, which = [worse[i] for i in places], closed[list(places)]
        found = least_each(better, arms, levels(eps), closed=which, term=term, enough=enough).log_values
        return [i for i, value in zip(places, found.tolist(), strict=True) if value < enough]

    def point(place: int, outside: float) -> float | None:
        arm, bet = worse[place], Stake(better, bool(closed[place]))

        def least(eps: float) -> tuple[float, Callable[[float], float]]:
            found = measure(better, arm, levels(eps), closed=bet.closed)
            said = at_rank(bet, arm, found.rank, term=term)
            return found.log_value, lambda eps: float(fisher(said(levels(eps)))) if fixed else said(levels(eps))

        first = start if start < outside else 0.0
        return last_reached_by_all(least, log_threshold, outside, start=first, **_digits(accuracy))

    return _common(len(worse), short, point, _vanishing(quantile, adversary))


def _digits(accuracy: float) -> dict[str, float]:
    return {"accuracy": 1e-3 * accuracy, "relative": accuracy}


def _common(
    count: int,
    short: Callable[[Sequence[int], float], list[int]],
    point: Callable[[int, float], float | None],
    limit: float,
) -> float | None:
    """Return up to which eps below a limit all of several evidences are enough, None if one is not at 0.

    Parameters
    ----------
    short
        Gives those of some of them that are not enough at an eps.
    point
        Gives up to which eps one of them is, that is not any more at another eps.
    """
    certified, left = limit, list(range(count))
    while left:
        found = point(left[0], certified)
        if found is None:
            return None
        certified, left = found, short(left[1:], found) if left[1:] else []
    return certified


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
    """

    def short(places: Sequence[int], eps: float) -> list[int]:
        return [i for i in places if evidences[i](at(eps), enough=log_threshold) < log_threshold]

    def point(place: int, outside: float) -> float | None:
        return last_reached(lambda eps: evidences[place](at(eps)), log_threshold, outside, **_digits(accuracy))

    return _common(len(evidences), short, point, limit)


def breakdown_estimate(better: Sample, worse: Sample, quantile: float, adversary: Adversary) -> float:
    """Return where the breakdown point would end with endless readings like these: a plug-in estimate.

    At a cut, contamination e can hide the order once 1-e <= min(F(L)/q, G(U)/(1-q)) (malicious:
    e >= max(q-F(L), 1-q-G(U))); F(L) rises and G(U) falls with the cut, so the best cut is where they cross.
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
