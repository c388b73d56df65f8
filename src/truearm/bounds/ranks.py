"""Which order statistics bound a true quantile, for any law at all. Numbers in, numbers out.

Symbols: n readings of one arm, k arms, contamination eps, error probability delta, quantile level q; p or p0 is
the trusted mass, the least chance that a reading is clean and at most the true quantile. Rank r is the r-th
smallest reading; 0 and n + 1 are the infinities. Only counts are computed here, never readings.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple, overload

import numpy as np

from truearm.bounds import special
from truearm.bounds.arguments import Counts, Numbers, check_counts
from truearm.bounds.contamination import trusted_mass
from truearm.bounds.mixture import DEFAULT_PRIOR, Prior, log_mixture
from truearm.bounds.search import last_true_each
from truearm.errors import InvalidArgument, OutOfReach
from truearm.problem import check_count, check_delta

_RankTest = Callable[[Any, Any], Any]

_RELATIVE_SLACK = 1e-9  # binomial tails this close to delta count as above it: betaincc keeps 1e-10 at n = 1e9
_LOG_SLACK = 1e-9  # the same for log evidence


class Ranks(NamedTuple):
    """Indices of two order statistics; 0 and n + 1 stand for minus and plus infinity.

    Examples
    --------
    >>> Ranks(35, 66).low
    35
    """

    low: int
    high: int


@overload
def most_bad(n: int, delta: float, eps: float) -> int: ...
@overload
def most_bad(n: Counts, delta: Numbers, eps: float) -> Counts: ...
def most_bad(n: int | Counts, delta: Numbers, eps: float) -> int | Counts:
    """Return how many of n readings are bad, but for an error probability of delta."""
    found = np.floor(n * eps + np.sqrt(n * np.log(1 / delta) / 2)).astype(np.int64)  # Hoeffding; evidence T8c
    return found if np.ndim(n) else int(found)


def contaminated_order_bounds(n: int, s: int) -> Ranks:
    """Return ranks of the n true readings between which the median lies once s of them are replaced.

    Examples
    --------
    >>> contaminated_order_bounds(8, 3)
    Ranks(low=1, high=8)
    """
    check_count("n", n)
    check_count("s", s, least=0)
    if 2 * s >= n:
        msg = f"s={s!r} of n={n!r} replaced readings leave the median unbounded: the condition s < n/2 fails"
        raise OutOfReach(msg)
    return Ranks((n + 1) // 2 - s, n // 2 + 1 + s)  # Lemma 24, corrected as erratum E4


@overload
def lower_rank(n: int, p: float, delta: float) -> int: ...
@overload
def lower_rank(n: int | Counts, p: float, delta: float) -> int | Counts: ...
def lower_rank(n: int | Counts, p: float, delta: float) -> int | Counts:
    """Return the largest r with P(Bin(n, p) < r) <= delta.

    Where p is a trusted mass, the r-th smallest of n readings is a lower confidence limit. Rank 0 stands for
    minus infinity; it is what p <= 0 earns. A tail within rounding error of delta counts as above it.

    Examples
    --------
    >>> lower_rank(100, 0.5, 0.025)
    40
    >>> lower_rank(np.array([10, 100, 1000]), 0.45, 0.025)
    array([  2,  35, 419])
    """
    ceiling = check_delta(delta) * (1 - _RELATIVE_SLACK)

    def qualifies(rank: Numbers, count: Numbers) -> Any:  # noqa: ANN401
        return special.betaincc(rank, count - rank + 1.0, p) <= ceiling  # P(Bin(n, p) <= rank - 1)

    return _last_rank(check_counts("n", n, 0), p, qualifies, top=1.0 if delta >= 0.5 else p)


def _last_rank(n: int | Counts, p: float, qualifies: _RankTest, *, top: float) -> int | Counts:
    """Return the last rank that qualifies, 0 if none; they come first, and none exceeds ceil(n top)."""
    if not p <= 1:
        msg = f"the chance of one reading must be at most 1, but got {p!r}; use trusted_mass"
        raise InvalidArgument(msg)
    if p <= 0:
        return 0 * n
    if np.ndim(n) == 0:
        ranks = range(1, min(math.ceil(n * top), int(n)) + 1)
        return bisect_left(ranks, True, key=lambda rank: not qualifies(rank, int(n)))
    counts = np.asarray(n, dtype=np.int64)
    high = np.minimum(np.ceil(counts * top).astype(np.int64), counts) + 1

    def each(rank: Counts) -> Any:  # noqa: ANN401
        return qualifies(np.maximum(rank, 1), np.maximum(counts, 1))  # a search that is over may ask for rank 0

    return last_true_each(each, np.zeros_like(counts), high)


def quantile_ranks(n: int, q: float, delta: float, eps: float, adversary: str) -> Ranks:
    """Return ranks between which the whole true q-quantile set lies with probability 1 - delta.

    For n fixed in advance, every law and every adversary of that power.

    Examples
    --------
    >>> quantile_ranks(100, 0.5, 0.05, 0.1, "prescient")
    Ranks(low=35, high=66)
    >>> quantile_ranks(20, 0.5, 0.05, 0.4, "malicious")
    Ranks(low=0, high=21)
    """
    below, above = trusted_mass(q, eps, adversary), trusted_mass(1 - q, eps, adversary)
    half = check_delta(delta) / 2  # a prescient adversary can fail both sides: audit 2.A
    return Ranks(lower_rank(n, below, half), n + 1 - lower_rank(n, above, half))  # audit 2.A


def elimination_ranks(n: int, k: int, delta: float) -> Ranks:
    """Return ranks for comparing k arms without knowing eps, B, m2, reach or the adversary.

    An arm whose high reading lies strictly below another's low reading may go: with probability 1 - delta the
    best arm stays, if its lowest contaminated median is not below the highest of any other arm.

    Examples
    --------
    >>> elimination_ranks(60, 2, 0.1)
    Ranks(low=24, high=37)
    """
    low = lower_rank(n, 0.5, check_delta(delta) / check_count("k", k))  # audit 2.B
    return Ranks(low, n + 1 - low)


@overload
def sequential_rank(n: int, p0: float, delta: float, prior: Prior = ...) -> int: ...
@overload
def sequential_rank(n: int | Counts, p0: float, delta: float, prior: Prior = ...) -> int | Counts: ...
def sequential_rank(n: int | Counts, p0: float, delta: float, prior: Prior = DEFAULT_PRIOR) -> int | Counts:
    """Return a lower rank that holds for all n at once with probability 1 - delta.

    Readings may be looked at, and sampling stopped, at any time. The rank never falls as n grows.

    Parameters
    ----------
    p0
        The trusted mass; at or below 0 the rank is 0.
    prior
        Chosen before any reading is seen.

    Examples
    --------
    >>> sequential_rank(1000, 0.45, 0.05, Prior((25.0,), (1.0,)))
    405
    """
    bar = math.log(1 / check_delta(delta)) + _LOG_SLACK

    def qualifies(rank: Numbers, count: Numbers) -> Any:  # noqa: ANN401
        return log_mixture(rank - 1, count, p0, prior) >= bar  # audit 2.C

    return _last_rank(check_counts("n", n, 0), p0, qualifies, top=p0)  # no evidence, M < 1, from s = n p0 on


def sequential_quantile_ranks(
    n: int, q: float, delta: float, eps: float, adversary: str, *, prior: Prior = DEFAULT_PRIOR
) -> Ranks:
    """Return ranks around the true q-quantile set that hold for all n at once.

    Examples
    --------
    >>> sequential_quantile_ranks(100, 0.5, 0.05, 0.1, "prescient")
    Ranks(low=30, high=71)
    """
    below, above = trusted_mass(q, eps, adversary), trusted_mass(1 - q, eps, adversary)
    half = check_delta(delta) / 2
    return Ranks(
        sequential_rank(n, below, half, prior), n + 1 - sequential_rank(n, above, half, prior)
    )  # audit 2.C


def sequential_elimination_ranks(n: int, k: int, delta: float, *, prior: Prior = DEFAULT_PRIOR) -> Ranks:
    """Return `elimination_ranks` that hold for all n at once.

    Examples
    --------
    >>> sequential_elimination_ranks(60, 2, 0.1)
    Ranks(low=19, high=42)
    """
    low = sequential_rank(n, 0.5, check_delta(delta) / check_count("k", k), prior)  # audit 2.B, 2.C
    return Ranks(low, n + 1 - low)
