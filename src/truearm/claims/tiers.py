"""Tiers as claims: the certified order of all arms with names.

What is certain is decided in `evidence.tiers` (extensions D3).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from truearm.claims.certificate import Place
from truearm.evidence import Breakdown, Judge
from truearm.evidence.tiers import claim_breakdown, order

_MANY = 100  # arms; of more nobody reads how much contamination each claim withstands


@dataclass(frozen=True, slots=True)
class Better:
    """One arm is better than another."""

    better: str
    worse: str
    log_evidence: float
    breakdown: Breakdown | None
    """Largest contamination under which all such claims hold; None with more than 100 arms."""


@dataclass(frozen=True, slots=True)
class Tiers:
    """All arms in order, as far as it is certain."""

    tiers: tuple[tuple[str, ...], ...]
    """Each arm of a tier is better than each of every later one; inside a tier arms stand as they look."""
    places: tuple[Place, ...]
    """The place of every arm, all at once, in the order of the tiers."""
    nearest: tuple[Better, ...]
    """For each arm the claims that say most: over the first arm listed below it, and by the last above it."""
    claimed: int
    """Pairs of arms whose order is certain."""
    pairs: int
    """Pairs of arms in all."""
    skipped: int
    """Pairs that were not looked at by themselves, because there were too many: they count as open."""


def tiers_of(judge: Judge, ranking: Sequence[int]) -> Tiers:
    """Return the tiers of a judge's arms.

    Parameters
    ----------
    judge
        Of pairs, on all readings at hand.
    ranking
        All arms as they look, the best first.
    """
    arms, found = judge.problem.arms, order(judge, tuple(ranking))
    k = len(arms)

    def better(i: int, j: int) -> Better:
        points = claim_breakdown(judge, i, j) if k <= _MANY else None
        return Better(arms[i], arms[j], judge.better(i, j).log_value, points)

    places = found.places
    return Tiers(
        tiers=tuple(tuple(arms[i] for i in tier) for tier in found.tiers),
        places=tuple(Place(arms[i], *places[i]) for i in found.listed),
        nearest=tuple(better(i, j) for i, j in found.nearest),
        claimed=int(found.better.sum()),
        pairs=k * (k - 1) // 2,
        skipped=found.skipped,
    )
