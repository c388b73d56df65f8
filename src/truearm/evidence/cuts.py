"""The minimum over cuts: how much evidence a product of counts holds, whatever the cut.

A cut splits the line into a lower set L and an upper set U. If arm j is at least as good as arm i, there is a
cut at which L holds at least p- of arm i and U at least p+ of arm j, at every pull and whatever the adversary
does (evidence T2). The product of the two arms' e-values at that cut is then a supermartingale (T1), and its
minimum over all cuts, which needs no knowledge of the cut, is evidence that j is worse. Everything here is
that minimum, for one rival (`pair`) or for a portfolio of rivals (`pooled`), in one design or the other.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, lambertw

from truearm.bounds.mixture import DEFAULT_PRIOR, Prior, log_mixture
from truearm.evidence.levels import Levels
from truearm.evidence.sample import EMPTY, Sample

Floats = NDArray[np.float64]

_FANOUT = 8  # pieces an open stretch of ranks is cut into; 4 to 16 cost the same within 20 %
_COARSE = 32  # first pieces of the whole range of ranks


class Stake(NamedTuple):
    """A bet that one rival is better: its sample, its share of the capital, what it saw before it was placed.

    Examples
    --------
    >>> Stake(Sample.of([1.0, 2.0])).log_share
    0.0
    """

    sample: Sample
    log_share: float = 0.0
    before: Sample = EMPTY
    """Readings pulled before the bet; they do not count for it (evidence T5)."""
    closed: bool = False
    """Whether readings at the cut count as below it: for rivals without priority over the arm (T3, ties)."""


class Evidence(NamedTuple):
    """The least log-evidence over all cuts, and the rank of the judged arm's reading at which it is found.

    Examples
    --------
    >>> Evidence(3.2, 10).log_value
    3.2
    """

    log_value: float
    rank: int


Term = Callable[
    [Floats, "float | NDArray[Any]", float], Floats
]  # (count in the null's favor, n, level) -> log-evidence


Lift = Callable[[Floats], Floats]
"""A nondecreasing map of cuts: rivals are cut at its values, so that an order is judged up to a shift."""


def mixture_term(prior: Prior = DEFAULT_PRIOR) -> Term:
    """Return one arm's log-evidence for data that may have been looked at (audit 2.C).

    Examples
    --------
    >>> float(mixture_term()(np.array(3.0), 20, 0.5).round(3))
    2.687
    """

    def term(count: Floats, n: float | NDArray[Any], level: float) -> Floats:
        return log_mixture(count, n, level, prior)

    return term


def fixed_term(count: Floats, n: float | NDArray[Any], level: float) -> Floats:
    """Return one arm's -log p for a number of readings fixed in advance (evidence section 11).

    Examples
    --------
    >>> float(fixed_term(np.array(3.0), 20, 0.5).round(3))
    6.654
    """
    if level <= 0:
        return np.zeros(np.shape(count))
    tail = bdtr(np.asarray(count, dtype=np.float64), n, level)
    return -np.log(np.maximum(tail, 1e-300))  # a floor on p is a floor on the evidence: conservative


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Both sides of the product, as functions of the rank r: the cut just below the judged arm's X_(r+1)."""

    own: Sample
    stakes: Sequence[Stake]
    levels: Levels
    log_cash: float
    term: Term
    lift: Lift | None = None
    """Where the rivals' readings are cut, from where the judged arm's are (evidence T7)."""

    def sides(self, ranks: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return the judged arm's own evidence, rising with the cut, and the log of the portfolio, falling.

        The higher the cut, the fewer of the arm's own readings are above it and the more of the rivals' below.
        """
        own, stakes = self.own, self.stakes
        beyond = ranks >= own.values.size
        cuts = (
            own.values[np.minimum(ranks, own.values.size - 1)] if own.values.size else np.full(ranks.shape, np.inf)
        )
        cuts = cuts if self.lift is None else self.lift(cuts)
        counts, sizes = [own.values.size - ranks + own.unknown], [[own.n]]
        for stake in stakes:
            count = np.where(beyond, _all_below(stake.sample), stake.sample.below(cuts, closed=stake.closed))
            n = stake.sample.n
            if stake.before.n:
                early = np.where(beyond, _all_below(stake.before), stake.before.below(cuts, closed=stake.closed))
                count, n = count - early, n - stake.before.n
            counts.append(count)
            sizes.append([n])
        first, bets = self._terms(np.array(counts, dtype=np.float64), np.array(sizes))
        if not stakes:
            return first, np.full(ranks.shape, self.log_cash)
        if len(stakes) == 1 and self.log_cash == -np.inf:
            return first, bets[0] + stakes[0].log_share  # spare the sum, and its rounding
        shares = np.array([[stake.log_share] for stake in stakes])
        return first, np.logaddexp(np.logaddexp.reduce(bets + shares, axis=0), self.log_cash)

    def _terms(self, counts: Floats, sizes: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return the evidence of the first row at one level and that of the others at the other."""
        if self.levels.low == self.levels.high:
            terms = self.term(counts, sizes, self.levels.low)
            return terms[0], terms[1:]
        first = self.term(counts[0], sizes[0], self.levels.high)
        return first, self.term(counts[1:], sizes[1:], self.levels.low)


def _all_below(sample: Sample) -> int:
    return sample.size + sample.unknown


def _least(cuts: _Cuts, guess: int | None, enough: float | None = None) -> Evidence:
    """Return the exact minimum over all cuts by branch and bound.

    Between ranks a < b the product is at least the rising side at a times the falling side at b; stretches where
    that already exceeds the best value found are never looked into. Ranks inside a tie are no cuts of their own,
    but they only overstate: the first rank of the tie has the same portfolio and less own evidence. Who only asks
    whether the minimum is `enough` is answered sooner, by a value that lies on the same side of it.
    """
    size = cuts.own.values.size
    edges = np.unique(np.linspace(0, size, min(size, _COARSE) + 1).astype(np.intp))
    if guess is not None:
        edges = np.unique(np.append(edges, min(guess, size)))
    up, down = cuts.sides(edges)
    at = int(np.argmin(up + down))
    best, rank = float((up + down)[at]), int(edges[at])
    left, right, up, down = edges[:-1], edges[1:], up[:-1], down[1:]
    steps = np.arange(1, _FANOUT)
    while True:
        still = (up + down < (best if enough is None else enough)) & (right - left > 1)
        if not still.any() or (enough is not None and best < enough):
            return Evidence(best, rank)
        left, right, up, down = left[still], right[still], up[still], down[still]
        inner = left[:, None] + (right - left)[:, None] * steps // _FANOUT
        flat = inner.ravel()
        inner_up, inner_down = cuts.sides(flat)
        at = int(np.argmin(inner_up + inner_down))
        if inner_up[at] + inner_down[at] < best:
            best, rank = float(inner_up[at] + inner_down[at]), int(flat[at])
        shape = inner.shape
        left, right = np.column_stack((left, inner)).ravel(), np.column_stack((inner, right)).ravel()
        up = np.column_stack((up, inner_up.reshape(shape))).ravel()
        down = np.column_stack((inner_down.reshape(shape), down)).ravel()


def pair(
    better: Sample,
    worse: Sample,
    levels: Levels,
    *,
    closed: bool = False,
    prior: Prior = DEFAULT_PRIOR,
    guess: int | None = None,
    times: float = 1.0,
    enough: float | None = None,
    lift: Lift | None = None,
) -> Evidence:
    """Return the evidence that one arm is better than another: E_ij of evidence section 2, the least of all cuts.

    Parameters
    ----------
    closed
        Whether equal quantiles belong to the null too: `worse` has priority over `better` (T3, ties).
    guess
        A rank of `worse` near the minimum, if one is known: saves time, never changes the value.
    times
        As if every reading had come so many times: a forecast, not evidence, unless it is 1.
    enough
        For callers who only ask whether the evidence reaches this: the value returned is then on the right side
        of it, found sooner, and need not be the minimum.
    lift
        Cuts the readings of `better` elsewhere than those of `worse`: up to which shift the order is judged.

    Examples
    --------
    >>> a, b = Sample.of(np.arange(20.0, 60.0)), Sample.of(np.arange(0.0, 40.0))
    >>> round(pair(a, b, Levels(0.5, 0.5)).log_value, 3)
    6.591
    """
    term = _repeated(mixture_term(prior), times)
    stakes = [Stake(better, closed=closed)]
    return _least(_Cuts(worse.settled(), stakes, levels, -np.inf, term, lift), guess, enough)


def _repeated(term: Term, times: float) -> Term:
    if times == 1:
        return term
    return lambda count, n, level: term(np.floor(times * count), (times * np.asarray(n)).astype(np.int64), level)


def fixed_pair(
    better: Sample,
    worse: Sample,
    levels: Levels,
    *,
    closed: bool = False,
    times: float = 1.0,
    enough: float | None = None,
    lift: Lift | None = None,
) -> Evidence:
    """Return -log of a p-value against "worse is at least as good", for sizes fixed in advance.

    The product w of the two arms' tail probabilities has p-value w(1 - ln w), its supremum over cuts is a
    p-value (Fisher's product, evidence section 11). Compare with log((k - 1)/delta). Parameters as in `pair`.

    Examples
    --------
    >>> a, b = Sample.of(np.arange(20.0, 60.0)), Sample.of(np.arange(0.0, 40.0))
    >>> round(fixed_pair(a, b, Levels(0.5, 0.5)).log_value, 3)
    10.924
    """
    term = _repeated(fixed_term, times)
    enough = None if enough is None else fisher_sum(enough)
    least = _least(_Cuts(worse, [Stake(better, closed=closed)], levels, -np.inf, term, lift), None, enough)
    return Evidence(fisher_evidence(least.log_value), least.rank)


def fisher_evidence(total: float) -> float:
    """Return -log of the p-value w(1 - ln w) of a product w of two p-values, from -ln w (evidence section 11).

    Examples
    --------
    >>> round(fisher_evidence(6.0), 3)
    4.054
    """
    total = max(0.0, total)
    return total - math.log1p(total)


def fisher_sum(log_evidence: float) -> float:
    """Return the t >= 0 with t - log(1 + t) = log_evidence.

    Examples
    --------
    >>> round(fisher_sum(4.054), 2)
    6.0
    """
    return -float(lambertw(-math.exp(-log_evidence - 1), -1).real) - 1 if log_evidence > 0 else 0.0


def portfolio(
    k: int, entered: Sequence[Stake], present: Sequence[Stake] | None = None
) -> tuple[list[Stake], float]:
    """Return the stakes of evidence T5 and the log of the cash that is not at stake.

    Parameters
    ----------
    k
        Number of arms, the judged one included.
    entered
        Rivals that have been leader, in that order, each with its readings before it became so.
    present
        Rivals whose whole samples share the uniform part; a missing one forgoes its share (conservative).

    Examples
    --------
    >>> stakes, cash = portfolio(3, [Stake(Sample.of([1.0]))])
    >>> [round(math.exp(s.log_share), 4) for s in stakes], round(math.exp(cash), 4)
    ([0.1667, 0.3333], 0.1667)
    """
    whole, fees, cash = log_shares(k, len(entered))
    later = [Stake(s.sample, fee, s.before, s.closed) for s, fee in zip(entered, fees, strict=k > 2)]
    return later + [Stake(s.sample, whole, EMPTY, s.closed) for s in present or entered], cash


@lru_cache(maxsize=1024)
def log_shares(k: int, entered: int) -> tuple[float, tuple[float, ...], float]:
    """Return the log-shares of a whole sample, of the later readings of each past leader, and of the cash.

    Examples
    --------
    >>> log_shares(2, 1)
    (0.0, (), -inf)
    """
    uniform = 2 / k  # evidence T5: u = 2/k; for two arms all of the capital
    if k == 2:
        return 0.0, (), -math.inf
    fees = tuple(math.log((1 - uniform) / (m * (m + 1))) for m in range(1, entered + 1))
    return math.log(uniform / (k - 1)), fees, math.log((1 - uniform) / (entered + 1))


def pooled(
    judged: Sample,
    stakes: Sequence[Stake],
    log_cash: float,
    levels: Levels,
    *,
    prior: Prior = DEFAULT_PRIOR,
    guess: int | None = None,
    enough: float | None = None,
    lift: Lift | None = None,
) -> Evidence:
    """Return log W_i, the evidence that the judged arm is not the best, minimized over all cuts (T5).

    Examples
    --------
    >>> a, b = Sample.of(np.arange(20.0, 60.0)), Sample.of(np.arange(0.0, 40.0))
    >>> stakes, cash = portfolio(2, [Stake(a)])
    >>> pooled(b, stakes, cash, Levels(0.5, 0.5)) == pair(a, b, Levels(0.5, 0.5))
    True
    """
    return _least(_Cuts(judged.settled(), stakes, levels, log_cash, mixture_term(prior), lift), guess, enough)


def pooled_at(
    judged: Sample,
    stakes: Sequence[Stake],
    log_cash: float,
    levels: Levels,
    *,
    cut: float,
    prior: Prior = DEFAULT_PRIOR,
) -> float:
    """Return log W_i at the cut just below a reading of the judged arm: an upper bound of the evidence, cheap.

    Examples
    --------
    >>> a, b = Sample.of(np.arange(20.0, 60.0)), Sample.of(np.arange(0.0, 40.0))
    >>> stakes, cash = portfolio(2, [Stake(a)])
    >>> round(pooled_at(b, stakes, cash, Levels(0.5, 0.5), cut=30.0), 3)
    6.591
    """
    counts = [int(judged.above(cut))]
    sizes = [judged.n]
    for stake in stakes:
        early = int(stake.before.below(cut, closed=stake.closed)) if stake.before.n else 0
        counts.append(int(stake.sample.below(cut, closed=stake.closed)) - early)
        sizes.append(stake.sample.n - stake.before.n)
    logs: list[float] = log_mixture(counts, sizes, levels.low, prior).tolist()
    own = logs[0] if levels.high == levels.low else float(log_mixture(counts[0], sizes[0], levels.high, prior))
    bets = [log + stake.log_share for log, stake in zip(logs[1:], stakes, strict=True)]
    top = max([*bets, log_cash])
    return own + top + math.log(sum(math.exp(bet - top) for bet in bets) + math.exp(log_cash - top))
