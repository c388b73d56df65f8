"""Who wins side by side: what rounds say, in which arms were measured together. Numbers in, numbers out.

A round measures several arms once each, under the same load, by the same person, on the same item or day. Place
r of every tape is round r. Of two arms only the sign of a round counts, so that whatever a round does to both of
them alike is no matter. Symbols: S rounds of n in which one arm does not win, each with a chance of at least p0
if it truly wins no more than half of them. Bigger is better here.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.bounds import sequential_rank
from truearm.bounds.mixture import Prior, log_mixture
from truearm.evidence.sample import Sample
from truearm.problem import Adversary, Contamination

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# one stream instead of two cuts: more weight on large wins than the default prior has (benchmarks/rounds.py)
PRIOR = Prior((6.0, 100.0), (0.5, 0.5))
_NONE = np.empty(0)


def win_level(eps: float, adversary: Adversary) -> float:
    """Return p0, the least chance of a round that an arm does not win if it truly wins at most half of them.

    Two readings of a round may be bad, each with a chance of eps. A level of 0 or less gives no evidence.
    """
    return 0.5 - 2 * eps if adversary is Adversary.MALICIOUS else (1 - 2 * eps) / 2  # extensions E1


def win_level_of(contamination: Contamination | None) -> float:
    """Return p0 under a declared contamination; None takes the rounds as they are."""
    return 0.5 if contamination is None else win_level(contamination.eps, contamination.adversary)


@dataclass(frozen=True, slots=True, eq=False)
class Taped(Sample):
    """A sample that keeps its tape, so that the r-th readings of two arms can be compared.

    Parameters
    ----------
    tape
        Oriented readings in order of round; NaN where a reading is missing or out.
    told
        Which of them are told; those that are not may still turn out either way.
    """

    tape: Floats = field(default_factory=lambda: _NONE, repr=False)
    told: Bools = field(default_factory=lambda: np.empty(0, dtype=bool), repr=False)

    @classmethod
    def in_rounds(cls, tape: ArrayLike, told: Bools | None = None, *, worst: bool = True) -> "Taped":
        """Return the sample of one arm's oriented readings in order of round."""
        values = np.array(tape, dtype=np.float64)
        known = np.ones(values.size, dtype=bool) if told is None else told
        values[~known] = np.nan
        numbers = np.sort(values[~np.isnan(values)])
        out = values.size - int(np.count_nonzero(known))
        return cls(numbers, values.size - out - numbers.size, out, worst=worst, tape=values, told=known)

    def mapped(self, change: Callable[[Floats], Floats]) -> "Taped":
        """Return the sample after a nondecreasing change of its values."""
        return Taped.in_rounds(change(self.tape), self.told, worst=self.worst)

    def first(self, n: int) -> "Taped":
        """Return the first n rounds."""
        return self if n >= self.tape.size else Taped.in_rounds(self.tape[:n], self.told[:n], worst=self.worst)

    @property
    def lost(self) -> Bools:
        """Which rounds have a missing reading that is promised to be one of the bad ones (evidence T8)."""
        return np.zeros(self.tape.size, dtype=bool) if self.worst else self.told & np.isnan(self.tape)


class Score(NamedTuple):
    """How two arms did in the rounds that both were in."""

    rounds: int
    wins: int
    """Rounds that the first one won."""
    idle: int = 0
    """Rounds that are promised to have gone bad: they count as rounds, and for neither."""

    @property
    def null(self) -> int:
        """Rounds that the first did not win: lost ones, ties, and those with a reading missing or out."""
        return self.rounds - self.wins - self.idle


def score(one: Taped, other: Taped, lift: Callable[[Floats], Floats] | None = None) -> Score:
    """Return how one arm did against another.

    A reading that timed out loses to one that did not; of two that timed out nobody knows (extensions E6).

    Parameters
    ----------
    lift
        What is done to the readings of the other one first, such as making them worse by a tolerance.
    """
    n = min(one.tape.size, other.tape.size)
    rival = other.tape[:n] if lift is None else lift(other.tape[:n])
    idle = 0 if one.worst and other.worst else int(np.count_nonzero(one.lost[:n] | other.lost[:n]))
    return Score(n, int(np.count_nonzero(one.tape[:n] > rival)), idle)  # a comparison with NaN is never won


def log_evidence(found: Score, p0: float, prior: Prior = PRIOR) -> float:
    """Return the log-evidence that the first of two arms wins more than half of the rounds."""
    return float(log_mixture(found.null, found.rounds, p0, prior))  # extensions E1


def cannot_win(found: Score, p0: float, log_bar: float, out: int = 0, prior: Prior = PRIOR) -> bool:
    """Tell whether the first of two arms could not be shown to win, however many rounds like these there were."""
    won = found.rounds - found.null + out  # pulls that are out may turn out as wins
    return bool(log_mixture(min(won, found.rounds), found.rounds, 1 - p0, prior) >= log_bar)  # extensions E6


def ahead(one: Taped, other: Taped, *, relative: bool, sign: float, certain: bool = False) -> Floats:
    """Return by how much one arm was at least ahead of another in each round, lowest first; idle rounds left out.

    As a difference, or as the logarithm of a factor. A round that speaks for the null is minus infinity.

    Parameters
    ----------
    certain
        Whether one that timed out is behind by nothing more than that: of how far, no reading tells.
    """
    n = min(one.tape.size, other.tape.size)
    mine, rival = one.tape[:n], other.tape[:n]
    if certain:
        rival = np.where(np.isneginf(rival), mine, rival)  # extensions E1
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if relative:
            mine, rival = (sign * np.log(sign * x) for x in (mine, rival))  # NaN where a ratio means nothing
        apart = mine - rival
    apart[np.isnan(apart)] = -np.inf
    idle = one.lost[:n] | other.lost[:n]
    return np.sort(apart[~idle] if idle.any() else apart)


def at_least(apart: Floats, rounds: int, p0: float, share: float, prior: Prior = PRIOR) -> float:
    """Return a lower limit of the median of what `ahead` gives, at all times with error probability `share`."""
    rank = sequential_rank(rounds, p0, share, prior)  # extensions E1
    return -math.inf if rank < 1 else math.inf if rank > apart.size else float(apart[rank - 1])


def leading(samples: Sequence[Taped], among: Sequence[int]) -> int | None:
    """Return the arm whose worst score against the others is best; ties go to the better median, then by order."""
    seen = [i for i in among if samples[i].size]
    if not seen:
        return None

    def worst(i: int) -> tuple[float, float]:
        lead = min((_lead(samples[i], samples[j]) for j in seen if j != i), default=0.0)
        return lead, samples[i].quantile(0.5)

    return max(seen, key=worst)


def led(samples: Sequence[Taped]) -> list[int]:
    """Return all arms as `leading` would take them one after the other; those without a value come last."""
    left = [i for i, sample in enumerate(samples) if sample.size]
    sizes = np.array([samples[i].tape.size for i in left])
    tapes = np.full((len(left), sizes.max(initial=0)), np.nan)
    for row, i in zip(tapes, left, strict=True):
        row[: samples[i].tape.size] = samples[i].tape
    leads = np.array([((one > tapes).sum(axis=1) - (tapes > one).sum(axis=1)) for one in tapes], dtype=np.float64)
    leads /= np.maximum(1, np.minimum(sizes[:, None], sizes)) if left else 1
    np.fill_diagonal(leads, np.inf)
    medians = np.array([samples[i].quantile(0.5) for i in left])
    ranking = []
    while left:
        best = int(np.lexsort((-np.arange(len(left)), medians, leads.min(axis=1)))[-1])
        ranking.append(left.pop(best))
        medians = np.delete(medians, best)
        leads = np.delete(np.delete(leads, best, axis=0), best, axis=1)
    return ranking + [i for i, sample in enumerate(samples) if not sample.size]


def _lead(one: Taped, other: Taped) -> float:
    there = score(one, other)
    return (there.wins - score(other, one).wins) / max(1, there.rounds)
