"""Bounds that need no family of laws: ranks of order statistics, and whole distribution functions.

Symbols: n readings of one arm, contamination eps, error probability delta, quantile level q, k arms; `below` is
the share of readings below x and `radius` how far an empirical distribution function can be from the true one.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from truearm.bounds import special
from truearm.bounds.contamination import (
    Count,
    First,
    Numbers,
    as_arrays,
    check_counts,
    check_each,
    check_shapes,
    is_malicious,
    need,
    plain,
    trusted_mass,
)
from truearm.bounds.mixture import DEFAULT_PRIOR, Prior, log_mixture
from truearm.problem import as_number, check_choice, check_count, check_delta, check_eps, check_kind, require

_RankTest = Callable[[Any, Any], Any]

_RELATIVE_SLACK = 1e-9  # binomial tails this close to delta count as above it: betaincc keeps 1e-10 at n = 1e9
_LOG_SLACK = 1e-9  # the same for log evidence
_MAX_READINGS = 2**53  # larger counts are not exact as floats


def _check_size(n: Any, least: int = 0) -> Any:  # noqa: ANN401 - a Count
    counts = check_counts("n", n, least)
    need(np.max(counts) <= _MAX_READINGS, f"n={n!r} is too large; use at most {_MAX_READINGS:,}")
    return counts


class Ranks(NamedTuple):
    """Indices of two order statistics; 0 and n + 1 stand for minus and plus infinity."""

    low: int
    high: int


def most_bad(n: Count, delta: Numbers, eps: float) -> Count:
    """Return how many of n readings may be bad, except with probability delta."""
    found: Any = np.floor(n * eps + np.sqrt(n * np.log(1 / delta) / 2)).astype(np.int64)  # Hoeffding; evidence T8c
    return cast(Count, found if np.ndim(n) else int(found))


def contaminated_order_bounds(n: int, s: int) -> Ranks:
    """Return ranks of the n true readings between which the median lies once s of them are replaced.

    >>> contaminated_order_bounds(8, 3)
    Ranks(low=1, high=8)
    """
    check_count("n", n)
    check_count("s", s, least=0)
    need(2 * s < n, f"s={s!r} of n={n!r} replaced readings leave the median unbounded: s < n/2 fails")
    return Ranks((n + 1) // 2 - s, n // 2 + 1 + s)  # Lemma 24, corrected as erratum E4


def lower_rank(n: Count, p: float, delta: float) -> Count:
    """Return the largest r with P(Bin(n, p) < r) <= delta.

    Where p is a trusted mass, the r-th smallest of n readings is a lower confidence limit. Rank 0 stands for
    minus infinity, also if p <= 0. A tail within rounding error of delta counts as above it.

    >>> lower_rank(np.array([10, 100, 1000]), 0.45, 0.025)
    array([  2,  35, 419])
    """
    ceiling = check_delta(delta) * (1 - _RELATIVE_SLACK)

    def qualifies(rank: Numbers, count: Numbers) -> Any:  # noqa: ANN401
        return special.betaincc(rank, count - rank + 1.0, p) <= ceiling  # P(Bin(n, p) <= rank - 1)

    return cast(Count, _last_rank(n, p, qualifies, top=1.0 if delta >= 0.5 else p))


def _last_rank(n: Any, p: float, qualifies: _RankTest, *, top: float) -> Any:  # noqa: ANN401 - a Count
    """Return the last rank that qualifies, 0 if none does; such ranks come first, up to ceil(n top) at most."""
    chance = as_number("the chance of one reading", p, "use trusted_mass")
    require(chance <= 1, "the chance of one reading", p, "be at most 1", "use trusted_mass")
    counts = np.asarray(_check_size(n), dtype=np.int64)
    low = np.zeros_like(counts)
    high = np.minimum(np.ceil(counts * top).astype(np.int64), counts) + 1 if p > 0 else low
    while np.any(is_open := high - low > 1):
        middle = (low + high) // 2
        is_enough = qualifies(np.maximum(middle, 1), np.maximum(counts, 1))  # where a search is over, any rank
        low, high = np.where(is_open & is_enough, middle, low), np.where(is_open & ~is_enough, middle, high)
    return low if np.ndim(n) else int(low)


def quantile_ranks(n: int, q: float, delta: float, eps: float, adversary: str) -> Ranks:
    """Return ranks between which the whole true q-quantile set lies with probability 1 - delta.

    For n fixed in advance, every law and every adversary of that power.

    >>> quantile_ranks(100, 0.5, 0.05, 0.1, "prescient")
    Ranks(low=35, high=66)
    """
    n = check_counts("n", n, 0)
    below, above = trusted_mass(q, eps, adversary), trusted_mass(1 - q, eps, adversary)
    half = check_delta(delta) / 2  # a prescient adversary can fail both sides: audit 2.A
    return Ranks(lower_rank(n, below, half), n + 1 - lower_rank(n, above, half))  # audit 2.A


def elimination_ranks(n: int, k: int, delta: float) -> Ranks:
    """Return ranks for comparing k arms without knowing eps, B, m2, reach or the adversary.

    An arm whose high reading lies strictly below another's low reading may be eliminated: with probability
    1 - delta the best arm stays, if its lowest contaminated median is not below the highest of any other arm.

    >>> elimination_ranks(60, 2, 0.1)
    Ranks(low=24, high=37)
    """
    n = check_counts("n", n, 0)
    low = lower_rank(n, 0.5, check_delta(delta) / check_count("k", k))  # audit 2.B
    return Ranks(low, n + 1 - low)


def sequential_rank(n: Count, p0: float, delta: float, prior: Prior = DEFAULT_PRIOR) -> Count:
    """Return a lower rank that holds for all n at once with probability 1 - delta.

    Readings may be looked at, and sampling stopped, at any time. The rank never falls as n grows. p0 is the
    trusted mass; the prior is chosen before any reading is seen.

    >>> sequential_rank(1000, 0.45, 0.05, Prior((25.0,), (1.0,)))
    405
    """
    check_kind("prior", prior, Prior, "use Prior((16.0,), (1.0,))")
    bar = math.log(1 / check_delta(delta)) + _LOG_SLACK

    def qualifies(rank: Numbers, count: Numbers) -> Any:  # noqa: ANN401
        return log_mixture(rank - 1, count, p0, prior) >= bar  # audit 2.C

    return cast(Count, _last_rank(n, p0, qualifies, top=p0))  # no evidence, M < 1, from s = n p0 on


def sequential_quantile_ranks(
    n: int, q: float, delta: float, eps: float, adversary: str, *, prior: Prior = DEFAULT_PRIOR
) -> Ranks:
    """Return ranks around the true q-quantile set that hold for all n at once.

    >>> sequential_quantile_ranks(100, 0.5, 0.05, 0.1, "prescient")
    Ranks(low=30, high=71)
    """
    n = check_counts("n", n, 0)
    below, above = trusted_mass(q, eps, adversary), trusted_mass(1 - q, eps, adversary)
    half = check_delta(delta) / 2
    low, high = sequential_rank(n, below, half, prior), n + 1 - sequential_rank(n, above, half, prior)
    return Ranks(low, high)  # audit 2.C


def sequential_elimination_ranks(n: int, k: int, delta: float, *, prior: Prior = DEFAULT_PRIOR) -> Ranks:
    """Return `elimination_ranks` that hold for all n at once.

    >>> sequential_elimination_ranks(60, 2, 0.1)
    Ranks(low=19, high=42)
    """
    n = check_counts("n", n, 0)
    low = sequential_rank(n, 0.5, check_delta(delta) / check_count("k", k), prior)  # audit 2.B, 2.C
    return Ranks(low, n + 1 - low)


def dkw_radius(n: First, delta: Numbers) -> First:
    """Return the one-sided radius of an empirical distribution function, all x at once, n fixed.

    >>> round(dkw_radius(500, 0.05 / 10), 6)
    0.07279
    """
    d = check_each(check_delta, delta)
    need(np.all(np.asarray(d) <= 0.5), f"delta={delta!r} is above 1/2, where this is not proved; use delta <= 0.5")
    size = check_counts("n", n)
    check_shapes(n=size, delta=d)
    return plain(np.sqrt(np.log(1 / d) / (2 * size)))  # audit 2.E


def sequential_dkw_radius(n: First, delta: Numbers, *, form: str = "stitched") -> First:
    """Return the radius of an empirical distribution function for all x and all n at once.

    "stitched" (Howard and Ramdas, Theorem 2) is smaller than "union" from a few hundred readings on. Choose before
    looking: the smaller of the two at every n would spend delta twice.

    >>> round(sequential_dkw_radius(1000, 0.05), 6), round(sequential_dkw_radius(1000, 0.05, form="union"), 6)
    (0.086569, 0.093029)
    """
    check_choice("form", form, ("stitched", "union"))
    size, d = _check_size(n, 1), check_each(check_delta, delta)
    check_shapes(n=size, delta=d)
    if form == "union":
        return plain(np.sqrt(np.log(np.pi**2 * size**2.0 / (6 * d)) / (2 * size)))  # audit 2.E
    return plain(0.85 * np.sqrt((np.log(1 + np.log(size)) + 0.8 * np.log(1612 / d)) / size))  # audit 2.E


def survival_floor(below: First, radius: Numbers, eps: float, adversary: str) -> First:
    """Return a lower bound on P(Y >= x) of true readings, from the fraction of readings below x.

    >>> round(survival_floor(0.2, dkw_radius(500, 0.005), 0.1, "prescient"), 6)
    0.696901
    """
    check_eps(eps)
    below, radius = as_arrays(below=below, radius=radius)
    lost = below + radius + eps if is_malicious(adversary) else (below + radius) / (1 - eps)  # audit 2.E
    return plain(np.maximum(1 - lost, 0.0))


def survival_ceiling(below: First, radius: Numbers, eps: float, adversary: str) -> First:
    """Return an upper bound on P(Y >= x) of true readings, from the fraction of readings below x.

    >>> round(survival_ceiling(0.2, dkw_radius(500, 0.005), 0.1, "prescient"), 6)
    0.969766
    """
    check_eps(eps)
    below, radius = as_arrays(below=below, radius=radius)
    kept = 1 - below + radius
    kept = kept + eps if is_malicious(adversary) else kept / (1 - eps)  # audit 2.E
    return plain(np.minimum(kept, 1.0))
