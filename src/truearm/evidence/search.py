"""The least evidence along one axis: one branch and bound for all targets.

If arm j is at least as good as arm i, there is a place on the axis (a cut of the readings, or a share) at which
the product of the two arms' e-values is a supermartingale, whatever the adversary does (evidence T1, T2;
extensions 1.1). The place is unknown, so the evidence is the least product of all places. Along the axis what the
judged arm's own readings say rises and what its rivals say falls, which bounds the product between two places.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.bounds import special
from truearm.bounds.search import last_true
from truearm.evidence.sample import Floats, Sample
from truearm.problem import Design

Places = NDArray[Any]
"""Ranks of the judged arm's readings, or numbers."""
Term = Callable[[Floats, NDArray[Any], Any], Floats]
"""(count in the null's favor, n, level) -> log-evidence."""

PIECES = 32  # of the whole axis at the start
FANOUT = 8  # pieces that an open piece is cut into; 4 to 16 cost the same within 20%
UNIFORM = 0.05  # share of the capital on the leader's whole sample; evidence T5
TOLERANT = 0.5  # the same where that share alone may end a study, within a tolerance
_LARGEST = np.finfo(np.float64).max


class Evidence(NamedTuple):
    """The least log-evidence against an arm, and where it is found: a cut, a share, NaN if there is no axis."""

    log_value: float
    at: float = math.nan


class Stake(NamedTuple):
    """A bet that one rival is better, on its whole sample."""

    sample: Sample
    closed: bool = False
    """Whether readings at the cut count as below it: for rivals without priority over the arm (T3, ties)."""


class Leg(NamedTuple):
    """The gain of the bet on an arm while it led: its e-value at the end over the one at the start."""

    start: Sample
    end: Sample
    """The readings of `start` and those pulled since."""
    closed: bool = False


class Portfolio(NamedTuple):
    """The bets against an arm: a share of the capital on one rival's whole sample, the rest from leg to leg."""

    whole: Stake | None
    log_whole: float = 0.0
    legs: tuple[Leg, ...] = ()
    log_legs: float = -math.inf

    @property
    def weights(self) -> "Weights":
        """How the capital is divided."""
        return Weights(self.whole is not None, self.log_whole, len(self.legs), self.log_legs)


class Weights(NamedTuple):
    """How the capital of a portfolio is divided, whatever its samples are."""

    has_stake: bool
    log_whole: float
    legs: int
    log_legs: float


def portfolio(k: int, whole: Stake | None, legs: Sequence[Leg], *, tolerant: bool = False) -> Portfolio:
    """Return the portfolio of evidence T5 against one of k arms.

    If the judged arm leads there is no `whole`, and its share is not bet (conservative). If the study may end
    within a tolerance, which the bet on whole samples decides, that bet gets more.
    """
    if k <= 2:
        return Portfolio(whole)
    uniform = TOLERANT if tolerant else UNIFORM
    return Portfolio(whole, math.log(uniform / (k - 1)), tuple(legs), math.log1p(-uniform))


class Product(ABC):
    """The evidence against an arm as a function of the place.

    Its parts are the rows of one array, as logarithms: the evidence of the judged arm's own readings, of the bet
    on a whole sample and, where there are legs, of these at their ends and at their starts. The first rises
    along the axis and the others fall; the last one divides. `sizes` are the numbers of readings in that order,
    `times` is how often each reading counts.
    """

    def __init__(self, sizes: Sequence[float], weights: Weights, term: Term, times: float = 1.0) -> None:
        self.sizes = np.array(sizes)[:, None]
        self.weights, self.term, self.times = weights, term, times

    @property
    @abstractmethod
    def grid(self) -> Places:
        """The places to look at first, from one end of the axis to the other."""

    @abstractmethod
    def counts(self, places: Places) -> Floats:
        """Return by row and place how many readings favor the null: the judged arm's, the stake's, the legs'."""

    @abstractmethod
    def levels(self, places: Places) -> tuple[Any, Any]:
        """Return the least chances of such readings, of the judged arm and of its rivals."""

    def value_at(self, place: float) -> float:
        """Return the place on the scale of the readings or shares."""
        return place

    def parts(self, places: Places) -> Floats:
        """Return the parts of the product at some places."""
        counts, sizes, (has_stake, _, legs, _) = self.counts(places), self.sizes, self.weights
        if self.times != 1:
            counts, sizes = np.floor(self.times * counts), np.floor(self.times * sizes)
        high, low = self.levels(places)
        if isinstance(low, float) and low == high:  # one call for all: most of its cost is fixed
            terms = self.term(counts, sizes, low)
        else:
            terms = np.concatenate((self.term(counts[:1], sizes[:1], high), self.term(counts[1:], sizes[1:], low)))
        if has_stake and not legs:
            return terms
        ends, starts = terms[len(terms) - 2 * legs : len(terms) - legs], terms[len(terms) - legs :]
        bet = terms[1] if has_stake else np.zeros(places.shape)
        return np.array([terms[0], bet, ends.sum(axis=0), starts.sum(axis=0)])

    def bound(self, low: Floats, high: Floats) -> Floats:
        """Return a lower bound of the product between two places; at one place, its value."""
        has_stake, log_whole, legs, log_legs = self.weights
        others: Floats | float
        if not legs and log_legs == -math.inf:
            others = high[1] + log_whole
        else:
            others = high[2] - low[3] + log_legs if len(low) > 2 else log_legs  # evidence T5
            if has_stake:
                others = np.logaddexp(others, high[1] + log_whole)
        found: Floats = low[0] + others
        return found

    def value(self, place: float) -> float:
        """Return the product at one place, an upper bound of the least."""
        parts = self.parts(np.array([place]))
        return float(self.bound(parts, parts)[0])

    def between(self, gaps: Places) -> "Product | None":
        """Return the product at places between neighboring ranks, below these ones, if there are such places."""
        del gaps
        return None


def least(
    product: Product, *, near: float | None = None, enough: float | None = None, accuracy: float = 0.0
) -> Evidence:
    """Return the least value of a product by branch and bound: exact on ranks, else below it by the accuracy.

    A place `near` the minimum saves time and never changes the value. With `enough`, the value is on the right
    side of it and need not be the minimum. The accuracy is how much may be lost, in nats, relative above 1 nat.
    """
    grid = product.grid if near is None else np.sort(np.append(product.grid, near))
    ranks = grid.dtype.kind == "i"
    steps = np.arange(1, FANOUT) if ranks else np.arange(1, FANOUT) / FANOUT
    parts = product.parts(grid)
    best, place = _smallest(product.bound(parts, parts), grid)
    left, right, low, high = grid[:-1], grid[1:], parts[:, :-1], parts[:, 1:]
    closed, gaps = math.inf, [grid[:1]]  # below the lowest reading there are places too
    while enough is None or best >= enough:
        bound = product.bound(low, high)
        limit = best - accuracy * max(1.0, abs(best)) if accuracy else best
        is_open = bound < (limit if enough is None else min(enough, limit))
        is_single = right - left <= (1 if ranks else 4 * np.spacing(right))
        gaps.append(right[is_open & is_single])
        is_open &= ~is_single
        closed = min(closed, float(bound[~is_open].min(initial=math.inf)))
        if not is_open.any():
            break
        left, right, low, high = left[is_open], right[is_open], low[:, is_open], high[:, is_open]
        width = (right - left)[:, None]
        inner = left[:, None] + (width * steps // FANOUT if ranks else width * steps)
        parts = product.parts(inner.ravel())
        value, where = _smallest(product.bound(parts, parts), inner.ravel())
        best, place = min((best, place), (value, where))  # of equal minima the lowest place
        parts = parts.reshape(len(parts), *inner.shape)
        left, right = np.column_stack((left, inner)).ravel(), np.column_stack((inner, right)).ravel()
        low, high = (
            np.concatenate(ends, axis=2).reshape(len(parts), -1)
            for ends in ((low[..., None], parts), (parts, high[..., None]))
        )
    if not ranks:
        return Evidence(min(closed, best), product.value_at(place))
    found = Evidence(best, product.value_at(place))
    if not product.weights.legs or (enough is not None and best < enough):
        return found
    inside = product.between(np.concatenate(gaps))
    if inside is None:
        return found
    inner_least = least(inside, enough=enough)
    return inner_least if inner_least.log_value < best else found


def _smallest(values: Floats, places: Places) -> tuple[float, float]:
    at = int(np.argmin(values))
    return float(values[at]), places[at].item()


def first_multiple(holds: Callable[[float], bool], most: float) -> float:
    """Return the least factor >= 1 at which a condition holds, to 1%; infinity beyond `most`."""
    doublings = 0
    while not holds(2.0**doublings):
        doublings += 1
        if 2.0**doublings > most:
            return math.inf
    if not doublings:
        return 1.0
    powers = last_true(lambda power: holds(2.0**power), doublings, doublings - 1, accuracy=math.log2(1.01))
    return math.exp2(powers)


def rank_grid(size: int) -> NDArray[np.intp]:
    """Return the ranks to look at first, from 0 to a size."""
    pieces = max(1, min(size, PIECES))
    return np.arange(pieces + 1) * size // pieces


def tail_term(count: Floats, n: NDArray[Any] | float, level: float | Floats) -> Floats:
    """Return one arm's -log p for a number of readings fixed in advance (evidence section 11)."""
    sizes = np.asarray(n).astype(np.int64)
    tail = special.bdtr(np.asarray(count, dtype=np.float64), sizes, np.clip(level, 0.0, 1.0))
    logs: Floats = -np.log(np.maximum(tail, 1e-300))  # a least p: conservative
    return logs


def fisher(log_product: float) -> float:
    """Return -log of the p-value of a product of two tail probabilities, from -log of the product."""
    total = max(0.0, log_product)
    return total - math.log1p(min(total, _LARGEST))  # -log(w (1 - ln w)), w = e^-total: evidence section 11


def fisher_sum(log_evidence: float) -> float:
    """Return the t >= 0 with t - log(1 + t) = log_evidence: the sum of two -log p needed."""
    return -float(special.lambertw(-math.exp(-log_evidence - 1), -1).real) - 1 if log_evidence > 0 else 0.0


def least_in(design: Design, product: Product, *, enough: float | None = None, **how: Any) -> Evidence:  # noqa: ANN401
    """Return the least value of a product of e-values, or of -log p-values where the design is fixed."""
    if design == "sequential":
        return least(product, enough=enough, **how)
    found = least(product, enough=None if enough is None else fisher_sum(enough), **how)
    return found._replace(log_value=fisher(found.log_value))
