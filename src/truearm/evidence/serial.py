"""Evidence that one arm's readings drift or depend on each other: a bet on ranks (evidence T12).

The null: the readings of each arm are independent draws of one law, whatever it is, and the tapes of different
arms are independent. Then the rank of each reading among the earlier ones is uniform and independent of them;
ties are broken by a fixed hash, so the same tape always gives the same evidence. Bettors expect the next rank on
the side where the last ones were, over several memories. Fixed shares of a capital of 1 go to them and to cash,
and every `EVERY` ranks a part of all capital is redistributed, so that bets are left for a load that comes late.
The capital is a nonnegative martingale: the chance that it ever reaches x is at most 1/x. After `FULL` readings
the ranks are those of blocks, ranked among blocks of the same epoch (T12b). Only the highest capital of each
arm's tape is used, because it does not depend on the policy (T12c).
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.evidence.sample import Floats

DOUBT = 1 / 400  # the share of studies of independent readings that are doubtful, at most
LOG_DOUBT = -math.log(DOUBT)  # what `combine` must reach for a study to be doubtful
FULL = 2048  # readings ranked one by one: as many as most studies need
MEMORIES = (1.0, 4.0, 16.0, 64.0, math.inf)  # over how many ranks bettors average; all of them for a ramp
STRENGTH = 12.0  # bet per expected distance from 1/2: best for small ones, 1 / variance of a uniform rank
LIMIT = 1.9  # largest bet; at 2 one rank at the wrong end takes all capital
CASH = 0.5  # part of the capital that never bets: it costs ln 2 at most, and pays for bets on late loads
EVERY, SHARED = 32, 0.1  # after this many ranks this part is redistributed; .03 to .2 find nearly as many loads
LOOKS = (64, 1.0)  # a look is due after this many readings, and this growth

_KEEP = tuple(0.0 if memory == 1.0 else math.exp(-1 / memory) for memory in MEMORIES)
_SHARES = (*[(1 - CASH) / len(MEMORIES)] * len(MEMORIES), CASH)
_NONE = np.empty(0)


class Purse(NamedTuple):
    """The capital of all bettors after some ranks."""

    bets: int = 0
    sums: tuple[float, ...] = (0.0,) * len(MEMORIES)
    """For each memory the weighted sum of all ranks less 1/2."""
    weights: tuple[float, ...] = (0.0,) * len(MEMORIES)
    parts: tuple[float, ...] = _SHARES
    """How the capital is divided, in units of the capital at the last division."""
    log_divided: float = 0.0
    log_highest: float = 0.0

    def after(self, ranks: Iterable[float]) -> "Purse":
        """Return the capital after bets on more ranks."""
        bets, log_divided = self.bets, self.log_divided
        sums, weights, parts = list(self.sums), list(self.weights), list(self.parts)
        top = math.exp(self.log_highest - log_divided)
        for rank in ranks:
            bets, x = bets + 1, rank - 0.5
            for i, keep in enumerate(_KEEP):
                bet = STRENGTH * sums[i] / (1 + weights[i])  # averages begin with a zero
                parts[i] *= 1 + min(max(bet, -LIMIT), LIMIT) * x  # evidence T12
                sums[i], weights[i] = keep * sums[i] + x, keep * weights[i] + 1
            top = max(top, total := sum(parts))
            if bets % EVERY == 0:
                log_divided += math.log(total)
                top /= total
                parts = [(1 - SHARED) / total * parts[i] + SHARED * share for i, share in enumerate(_SHARES)]
        return Purse(bets, tuple(sums), tuple(weights), tuple(parts), log_divided, log_divided + math.log(top))


@dataclass(frozen=True, slots=True, eq=False)
class Serial:
    """One arm's readings so far as a bet against drift and dependence."""

    stream: int = 0
    """Which sequence of tie-breakers to use; arms that are combined need different ones."""
    n: int = 0
    size: int = 0
    """How many of the n readings have a value."""
    earlier: tuple[float, ...] = field(default=(), repr=False)
    """Readings of this epoch, or scores of its blocks, sorted."""
    cuts: tuple[float, ...] = field(default=(), repr=False)
    rest: NDArray[Any] = field(default_factory=lambda: _NONE, repr=False)
    """Scores of readings in an unfinished block."""
    purse: Purse = field(default_factory=Purse, repr=False)

    @property
    def log_evidence(self) -> float:
        """The log of the highest capital so far."""
        return self.purse.log_highest

    def extend(self, readings: ArrayLike) -> "Serial":
        """Return the state after more readings in order of pull; NaN are skipped, infinities are values."""
        given = np.asarray(readings, dtype=np.float64)
        new = given[~np.isnan(given)]
        state = replace(self, n=self.n + given.size)
        while new.size:
            epoch = (state.size // FULL).bit_length()
            left = (FULL << epoch) - state.size
            state, new = state._bet_on(new[:left], epoch, ends=new.size >= left), new[left:]
        return state

    def _bet_on(self, readings: Floats, epoch: int, *, ends: bool) -> "Serial":
        """Return the state after more readings of one epoch; in the first one a block is a single reading."""
        block = 1 << epoch
        scores: NDArray[Any] = readings
        if epoch:
            above = np.sum([readings > cut for cut in self.cuts], axis=0, dtype=np.uint8)
            scores = np.concatenate((self.rest.astype(np.uint8), above))
        whole = scores.size - scores.size % block
        values = scores[:whole].reshape(-1, block).sum(axis=1, dtype=np.float64)
        earlier, ranks = list(self.earlier), []
        tie_breakers = _uniforms(self.stream, self.purse.bets, values.size)
        for value, tie_breaker in zip(values.tolist(), tie_breakers.tolist(), strict=True):
            below, upto = bisect_left(earlier, value), bisect_right(earlier, value)
            earlier.insert(upto, value)
            ranks.append((below + tie_breaker * (1 + upto - below)) / len(earlier))  # evidence T12
        cuts = tuple(earlier[FULL // 4 :: FULL // 4]) if ends and not epoch else self.cuts
        return replace(
            self,
            size=self.size + readings.size,
            earlier=() if ends else tuple(earlier),
            cuts=cuts,
            rest=scores[whole:],
            purse=self.purse.after(ranks),
        )


def log_evidence_of(tape: ArrayLike, stream: int = 0) -> float:
    """Return the log evidence of one arm's whole tape against independent draws of one law."""
    return Serial(stream).extend(tape).log_evidence


def combine(logs: Sequence[float], *, dependent: bool = False) -> float:
    """Return -log of a p-value that all arms give independent draws, from the log evidence of each.

    If the tapes of the arms may depend on each other, only the arm that drifts most counts.
    """
    alone = max(logs) - math.log(len(logs))  # evidence T12, Bonferroni
    if dependent or len(logs) == 1:
        return max(0.0, alone)
    total = sum(logs)
    terms = [j * math.log(total) - math.lgamma(j + 1) if total > 0 else -math.inf for j in range(1, len(logs))]
    joint = total - float(np.logaddexp.reduce([0.0, *terms]))  # evidence T12, Fisher
    return max(0.0, max(alone, joint) - math.log(2))


def is_due(seen: int, n: int) -> bool:
    """Return True if a study that looked at `seen` of n readings should look again.

    Nothing is lost between looks, because evidence is the highest along the tape; a decision must look anyway.
    """
    return n - seen >= max(LOOKS[0], LOOKS[1] * seen)


def _uniforms(stream: int, first: int, count: int) -> Floats:
    """Return tie-breakers in (0, 1), a hash of their numbers (SplitMix64: Steele, Lea and Flood 2014)."""
    start = (stream * 0xD1B54A32D192ED03 + (first + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = np.uint64(start) + np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
