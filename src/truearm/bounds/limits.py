"""The solver for the least number of pulls of any method, from costs at cuts. Numbers in, numbers out.

Evidence section 3 derives T from the costs d_1 and d_j of a cut for the best arm and rival j. The share of rival j
relative to the best arm is r_j(y) = max over cuts of (y - d_1)/d_j, convex in y, and T = min over y of
(1 + sum r_j(y))/y. The minimum is where the sum of d_1/d_j over the maximizing cuts passes 1, which bisection
finds; cuts are added around the maximizing ones until these are known well enough.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from truearm.bounds import special
from truearm.bounds.search import bracket
from truearm.problem import Adversary, check_adversary, check_delta, check_eps

Array = NDArray[np.float64]
Costs: TypeAlias = Callable[[int, Array], tuple[Array, Array]]
"""Rival and cuts to d_1 and d_j, each with all cuts left closed and then all of them right closed."""

FIRST = 129  # first cuts: this many evenly in value, and in the level of each law
_NEW_CUTS = 31  # cuts added around a maximizing one in a round; the spacing shrinks by 8
_ROUNDS = 12  # at most: the spacing is then below that of floats
_TINY = 1e-12  # distance from levels 0 and 1, where a divergence may be infinite
_CUT_ACCURACY = 1e-7  # of the range of the cuts; the shares are then as exact, and T to the square of it


def kl(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of Bernoulli(q) from Bernoulli(p), in nats."""
    if q in (0, 1):
        return 0.0 if p == q else math.inf
    return float(divergence(np.asarray(p, dtype=float), np.asarray(q, dtype=float)))


def _excess(u: Array) -> Array:
    """Return (1 + u) log(1 + u) - u, by the series of atanh(u/(2 + u)) where the difference would cancel."""
    s = np.where(np.abs(u) < 0.3, u / (2 + u), 0.0)
    tail = np.polynomial.polynomial.polyval(s * s, [1 / odd for odd in range(3, 25, 2)])
    series = 2 * s * s * (1 + s * (1 + s) * tail) / (1 - s)
    return np.where(np.abs(u) < 0.3, series, special.xlog1py(1 + u, u) - u)


def divergence(p: Array, q: Array) -> Array:
    """Return the divergences of Bernoulli(q) from Bernoulli(p), without cancellation where they are small."""
    gap = p - q  # both terms are >= 0, so nothing cancels
    return q * _excess(gap / q) + (1 - q) * _excess(-gap / (1 - q))


def cost(mass: Array, level: float | Array) -> Array:
    """Return kl^-: the cost of lifting the mass of a set to a level, 0 if it is there already."""
    return divergence(np.minimum(mass, level), np.asarray(level))  # kl^-, evidence section 3


@dataclass(frozen=True)
class Limit:
    """The characteristic time T of a problem, inf when no method can decide, and what attains it."""

    time: float
    weights: tuple[float, ...]
    """Optimal share of the pulls for each arm; NaN when the time is inf."""
    answer: int
    """The arm that these shares certify."""
    answers: int = 1
    """How many arms can be certified as right; more than one only with a tolerance."""
    others: int = 1
    """How many arms may be answered with chance delta each, although they cannot be certified."""

    @classmethod
    def of(cls, time: float, ratios: Array, answer: int) -> "Limit":
        """Return the limit from the rivals' shares of pulls, in units of the answer's."""
        weights = np.insert(ratios, answer, 1.0)
        return cls(time, tuple((weights / weights.sum()).tolist()), answer)

    @classmethod
    def never(cls, arms: int, answer: int) -> "Limit":
        """Return the limit where no number of pulls decides."""
        return cls(math.inf, (math.nan,) * arms, answer)

    def pulls(self, delta: float) -> float:
        """Return the least expected number of pulls of any method that errs with chance at most delta.

        With several right answers, one of them is given with chance at least 1/answers, minus what the
        others may take, and the bound is weaker than T log(1/delta) by about that factor (docs/optimality.md).
        """
        chance = (1 - check_delta(delta) * self.others) / self.answers
        return self.time * kl(chance, delta) if chance > delta else 0.0  # evidence section 3, docs/optimality.md


def share_limit(
    shares: Sequence[float],
    eps: float = 0.0,
    adversary: str = "oblivious",
    *,
    tolerance: float = 0.0,
    answer: int | None = None,
) -> Limit:
    """Return the least number of pulls for finding the largest of several shares (extensions 1.5).

    Shares are as observed, including bad readings; the decision must hold under eps and adversary. The answer,
    by default the arm with the largest share, must be certified as within the tolerance, in points, of the best.
    """
    eps, malicious = check_eps(eps), check_adversary(adversary) is Adversary.MALICIOUS
    best = int(np.argmax(shares)) if answer is None else answer
    rivals = [share for i, share in enumerate(shares) if i != best]
    top = shares[best]

    def level(theta: Array) -> Array:
        return np.maximum(theta - eps if malicious else (1 - eps) * theta, _TINY)  # audit 2.A

    def clean(mass: float) -> float:
        return mass + eps if malicious else mass / (1 - eps)

    # where both costs are positive, the ends drawn in: at a level of 1 a divergence may be infinite
    last = min(1 + tolerance - clean(1 - top), 1 - _TINY)
    ends = [(max(clean(share), tolerance, _TINY), last) for share in rivals]
    if not rivals or any(low >= high - _TINY for low, high in ends):
        return Limit.never(len(shares), best)

    def costs(rival: int, theta: Array) -> tuple[Array, Array]:
        twice = np.tile(theta, 2)
        own = cost(np.full(twice.shape, 1 - top), np.minimum(level(1 - twice + tolerance), 1 - _TINY))
        return own, cost(np.full(twice.shape, rivals[rival]), level(twice))

    return Limit.of(*solve(costs, [np.linspace(low, high, FIRST) for low, high in ends]), best)


class _Table(NamedTuple):
    """Cuts and their two costs, one row for each rival; every cut is there left and right closed."""

    cuts: Array
    own: Array
    theirs: Array

    @classmethod
    def of(cls, costs: Costs, x: Array) -> "_Table":
        pairs = [costs(rival, row) for rival, row in enumerate(x)]
        return cls(np.tile(x, 2), np.stack([own for own, _ in pairs]), np.stack([other for _, other in pairs]))

    def join(self, more: "_Table") -> "_Table":
        return _Table(*(np.concatenate(columns, axis=1) for columns in zip(self, more, strict=True)))


def solve(costs: Costs, cuts: Sequence[Array]) -> tuple[float, Array]:
    """Return T and the ratios of the rivals' shares to that of the best arm.

    The first cuts of each rival are between those at which either cost vanishes.
    """
    width = max(row.size for row in cuts)
    table = _Table.of(costs, np.stack([np.pad(row, (0, width - row.size), mode="edge") for row in cuts]))
    found = _balance(table)
    for _ in range(_ROUNDS):
        near = [_around(table.cuts, side) for side in found[2]]
        if all(np.all(np.ptp(new, axis=1) <= _CUT_ACCURACY * np.ptp(table.cuts, axis=1)) for new in near):
            break
        table = table.join(_Table.of(costs, np.concatenate(near, axis=1)))
        found = _balance(table)
    return found[0], found[1]


def _around(cuts: Array, active: NDArray[np.intp]) -> Array:
    """Return new cuts between the second neighbors of the active cut of each row; first ones may coincide."""
    first, last = cuts.min(axis=1, keepdims=True), cuts.max(axis=1, keepdims=True)
    low = high = np.take_along_axis(cuts, active[:, None], axis=1)
    for _ in range(2):
        low = np.max(np.where(cuts < low, cuts, first), axis=1, keepdims=True)
        high = np.min(np.where(cuts > high, cuts, last), axis=1, keepdims=True)
    share = np.arange(1, _NEW_CUTS + 1) / (_NEW_CUTS + 1)
    return low + (high - low) * share


def _balance(table: _Table) -> tuple[float, Array, list[NDArray[np.intp]]]:
    """Return T, the ratios and the active cuts, by bisection for the cost y at which sum d_1/d_j passes 1.

    A rival can have two distant cuts active at that y, one just below it and one just above; both are given.
    """
    safe = np.maximum(table.theirs, 1e-300)  # a cut that costs the rival nothing forbids any y above d_1
    rows = np.arange(table.own.shape[0])

    def active(y: float) -> NDArray[np.intp]:
        return cast(NDArray[np.intp], np.argmax((y - table.own) / safe, axis=1))

    def below_one(y: float) -> bool:
        side = active(y)
        return bool(np.sum(table.own[rows, side] / safe[rows, side]) < 1)

    low, high = bracket(below_one, 0.0, float(np.max(table.own)), relative=1e-15)
    below = active(low)  # the side on which no cut is forbidden
    ratios = (low - table.own[rows, below]) / safe[rows, below]
    return float((1 + np.sum(ratios)) / low), ratios, [below, active(high)]
