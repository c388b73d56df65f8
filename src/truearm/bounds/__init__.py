"""Every inequality of the paper about estimating and choosing, printed and sharp. Numbers in, numbers out.

Symbols: n readings of one arm, k arms, contamination eps, error probability delta, quantile level q, round r,
reach (the paper's t-bar), slope constant B, median absolute deviation m2 or a bound on it, kappa. In every
formula e is `rank_shift(eps, adversary)`, what contamination does to a quantile level, and g is 1 - eps, or 1
against a malicious adversary. `constants="paper"` prints what the paper prints, errata corrected; "sharp" is
what audit section 2 proves. Lower bounds are in `lower_bounds.py`; docs/bounds.md maps theorems to functions.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincc

from truearm.bounds.mixture import DEFAULT_PRIOR, Prior, log_mixture
from truearm.errors import InvalidArgument, OutOfReach
from truearm.problem import (
    Adversary,
    Interval,
    check_adversary,
    check_count,
    check_delta,
    check_eps,
    check_positive,
    check_quantile,
    check_reach,
)

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Numbers = float | NDArray[Any]
Constants = Literal["sharp", "paper"]
_RankTest = Callable[[Any, Any], Any]

_RELATIVE_SLACK = 1e-9  # binomial tails this close to delta count as above it: betaincc keeps 1e-10 at n = 1e9
_LOG_SLACK = 1e-9  # the same for log evidence
_LEVEL_SLACK = 1e-12  # rounding allowed when a quantile level computed from n is compared with the reach


class Law(Protocol):
    """What `shift` must know of a law: its left and right quantiles and its median set."""

    @property
    def m1(self) -> Interval:
        """The whole median set."""

    def ppf_left(self, p: float, /) -> float:
        """Return inf{x: F(x) >= p}."""

    def ppf_right(self, p: float, /) -> float:
        """Return inf{x: F(x) > p}."""


class Ranks(NamedTuple):
    """Indices of two order statistics; 0 and n + 1 stand for minus and plus infinity.

    Examples
    --------
    >>> Ranks(35, 66).low
    35
    """

    low: int
    high: int


class Quality(NamedTuple):
    """A level the selected arm's true readings exceed, and how often at least.

    `probability` holds for the pulls of either choice of constants; `printed` is the paper's
    1/2 + t - 3 delta/k, which holds for the printed number of pulls only (erratum E12).

    Examples
    --------
    >>> Quality(9.6, 0.55, 0.66).threshold
    9.6
    """

    threshold: float
    probability: float
    printed: float


def _each(check: Callable[[Any], object], value: Numbers) -> Any:  # noqa: ANN401 - what came in goes out
    """Check a number, or the two extremes of an array: every domain here is an interval."""
    if np.ndim(value) == 0:
        return check(value)
    array = np.asarray(value)
    if array.size:
        check(array.min().item())
        check(array.max().item())
    return array


def _positive(name: str, value: Numbers) -> Any:  # noqa: ANN401
    return _each(lambda v: check_positive(name, v), value)


def _count(name: str, value: Numbers, least: int = 1) -> Any:  # noqa: ANN401
    return _each(lambda v: check_count(name, v, least), value)


def _plain(value: Numbers) -> Numbers:
    return float(value) if np.ndim(value) == 0 else value


def _check_constants(constants: str) -> None:
    if constants not in ("sharp", "paper"):
        msg = f"constants must be 'sharp' or 'paper', but got {constants!r}"
        raise InvalidArgument(msg)


def _is_malicious(adversary: str) -> bool:
    return check_adversary(adversary) is Adversary.MALICIOUS


def _clean_share(eps: Numbers, adversary: str) -> Numbers:
    return 1.0 if _is_malicious(adversary) else 1 - eps  # g of audit, notation


def _room(eps: float, reach: float, adversary: str) -> float:
    """Return reach - e, the quantile levels left for chance, or say that there are none."""
    check_reach(reach)
    room = reach - rank_shift(eps, adversary)
    if room <= 0:
        msg = (
            f"eps={eps!r} is too large for reach={reach!r}: against a {check_adversary(adversary).value} "
            f"adversary the condition eps < {max_contamination(reach, adversary):.6g} fails; lower eps, "
            f"or show that the reach exceeds {rank_shift(eps, adversary):.6g}"
        )
        raise OutOfReach(msg)
    return room


# What contamination alone can do


@overload
def rank_shift(eps: float, adversary: str) -> float: ...
@overload
def rank_shift(eps: Numbers, adversary: str) -> Numbers: ...
def rank_shift(eps: Numbers, adversary: str) -> Numbers:
    """Return how far, in quantile levels, contamination can move a median: e.

    Examples
    --------
    >>> rank_shift(0.2, "prescient"), rank_shift(0.2, "malicious")
    (0.125, 0.2)
    """
    fraction = _each(check_eps, eps)
    return _plain(fraction if _is_malicious(adversary) else fraction / (2 * (1 - fraction)))  # Lemmas 1 and 7


@overload
def max_contamination(reach: float, adversary: str) -> float: ...
@overload
def max_contamination(reach: Numbers, adversary: str) -> Numbers: ...
def max_contamination(reach: Numbers, adversary: str) -> Numbers:
    """Return the eps below which the median of a law known up to that reach can be bounded.

    Examples
    --------
    >>> max_contamination(0.25, "oblivious")
    0.3333333333333333
    """
    t = _each(check_reach, reach)
    return _plain(t if _is_malicious(adversary) else 2 * t / (1 + 2 * t))  # eps_max, section 4.1


def extreme_medians(law: Law, eps: float, adversary: str) -> Interval:
    """Return the lowest and highest median that contamination can give to readings of a law.

    Examples
    --------
    >>> from truearm import families
    >>> extreme_medians(families.uniform(0.0, 1.0), 0.2, "prescient")
    Interval(low=0.375, high=0.625)
    """
    e = rank_shift(eps, adversary)
    return Interval(float(law.ppf_left(0.5 - e)), float(law.ppf_right(0.5 + e)))  # Lemma 1; audit 2.B


def shift(law: Law, eps: float, adversary: str) -> float:
    """Return exactly how far contamination can move the median of a law.

    Where the law has several medians, the one left farthest behind counts.

    Examples
    --------
    >>> from truearm import families
    >>> round(shift(families.gaussian(0.0, 1.0), 0.1, "malicious"), 6)
    0.253347
    """
    extreme = extreme_medians(law, eps, adversary)
    return max(extreme.high - law.m1.low, law.m1.high - extreme.low)  # Lemma 1, Cor. 5


def identified_interval(law: Law, q: float, eps: float, adversary: str) -> Interval:
    """Return all true q-quantiles that explain an observed law, as endless readings would show it.

    Examples
    --------
    >>> from truearm import families
    >>> identified_interval(families.uniform(-1.0, 1.0), 0.5, 0.1, "prescient")
    Interval(low=-0.09999999999999998, high=0.10000000000000009)
    """
    low = trusted_mass(q, eps, adversary)
    high = 1 - trusted_mass(1 - q, eps, adversary)  # (1-eps) q + eps, or q + eps
    return Interval(
        float(law.ppf_left(low)) if low > 0 else -math.inf,
        float(law.ppf_right(high)) if high < 1 else math.inf,
    )  # audit 2.A


@overload
def bias(eps: float, B: float, m2: float, adversary: str) -> float: ...
@overload
def bias(eps: Numbers, B: Numbers, m2: Numbers, adversary: str) -> Numbers: ...
def bias(eps: Numbers, B: Numbers, m2: Numbers, adversary: str) -> Numbers:
    """Return U, the error of the median that no number of readings removes.

    Examples
    --------
    >>> round(bias(0.1, 4, 0.25, "prescient"), 6), bias(0.1, 4, 0.25, "malicious")
    (0.055556, 0.1)
    """
    return _plain(_positive("B", B) * _positive("m2", m2) * rank_shift(eps, adversary))  # Cor. 10, Cor. 13


# The median and the median absolute deviation of n readings


def _median_chance(delta: Numbers, eps: Numbers, adversary: str, constants: str) -> Any:  # noqa: ANN401
    """Return c such that chance moves the median of n readings by at most sqrt(c/n) levels."""
    _check_constants(constants)
    d, clean = _each(check_delta, delta), _clean_share(_each(check_eps, eps), adversary)
    if constants == "paper":
        return 2 * np.log((3 if _is_malicious(adversary) else 2) / d)  # Lemma 6, Lemma 7
    return np.log(2 / d) / (2 * clean**2)  # audit 2.0


def _mad_chance(delta: float, eps: float, adversary: str, constants: str) -> float:
    """Return c such that chance moves median and deviation by at most sqrt(c/n) levels."""
    _check_constants(constants)
    d, clean = check_delta(delta), _clean_share(check_eps(eps), adversary)
    if constants == "paper":
        return 2 * math.log((6 if _is_malicious(adversary) else 4) / d)  # Lemma 19, Lemma 20
    return float(math.log(6 / d) / (2 * clean**2))  # audit 2.D


def _check_threshold(n: Numbers, radius: Numbers, least: Numbers, reach: float) -> None:
    if np.any(np.asarray(radius) > reach + _LEVEL_SLACK):
        msg = (
            f"n={n!r} is too small: contamination and chance can move the median by {np.max(radius):.4g} "
            f"quantile levels, beyond reach={reach!r}; take n >= {math.ceil(np.max(least))}"
        )
        raise OutOfReach(msg)


@overload
def median_radius(
    n: int, delta: float, eps: float, adversary: str, *, constants: Constants = ..., reach: float | None = ...
) -> float: ...
@overload
def median_radius(
    n: Numbers,
    delta: Numbers,
    eps: Numbers,
    adversary: str,
    *,
    constants: Constants = ...,
    reach: float | None = ...,
) -> Numbers: ...
def median_radius(
    n: Numbers,
    delta: Numbers,
    eps: Numbers,
    adversary: str,
    *,
    constants: Constants = "sharp",
    reach: float | None = None,
) -> Numbers:
    """Return how far, in quantile levels, the median of n readings can be from the true one.

    With probability 1 - delta the error is at most R(radius), where R bounds the law's quantiles around its
    median (Definition 1); in the paper's slope family R(t) = B m2 t.

    Parameters
    ----------
    reach
        Up to which level R is known; when given, a radius beyond it is an error.

    Examples
    --------
    >>> round(median_radius(1000, 0.05, 0.1, "prescient"), 6)
    0.103274
    >>> round(median_radius(1000, 0.05, 0.1, "prescient", constants="paper"), 6)
    0.141449
    >>> median_radius(100, 0.05, 0.1, "malicious", reach=0.2)
    Traceback (most recent call last):
        ...
    truearm.errors.OutOfReach: n=100 is too small: contamination and chance can move the median by 0.2358
    quantile levels, beyond reach=0.2; take n >= 185
    """
    chance = _median_chance(delta, eps, adversary, constants)
    radius = rank_shift(eps, adversary) + np.sqrt(chance / _count("n", n))  # Lemma 6, Lemma 7; audit 2.0
    if reach is not None:
        room = _room(float(np.max(eps)), reach, adversary)
        _check_threshold(n, radius, chance / room**2, reach)
    return _plain(radius)


def median_error(
    n: int,
    delta: float,
    *,
    eps: float,
    B: float,
    m2: float,
    reach: float,
    adversary: str,
    constants: Constants = "sharp",
) -> float:
    """Return U plus chance: how far the median of n readings can be from the true one.

    Examples
    --------
    >>> round(median_error(1000, 0.05, eps=0.1, B=4, m2=0.25, reach=0.4, adversary="prescient"), 6)
    0.103274
    """
    slope = check_positive("B", B) * check_positive("m2", m2)
    return slope * median_radius(n, delta, eps, adversary, constants=constants, reach=reach)  # Cor. 12, Cor. 13


def median_sample_size(
    error: float,
    delta: float,
    *,
    eps: float,
    B: float,
    m2: float,
    reach: float,
    adversary: str,
    constants: Constants = "sharp",
) -> int:
    """Return how many readings bring the median within U + error of the true one.

    Examples
    --------
    >>> size = dict(eps=0.1, B=4, m2=1, reach=0.4, adversary="prescient")
    >>> median_sample_size(0.1, 0.05, **size), median_sample_size(0.1, 0.05, **size, constants="paper")
    (3644, 11805)
    """
    chance = float(_median_chance(delta, eps, adversary, constants))
    slope = check_positive("B", B) * check_positive("m2", m2)
    return math.ceil(_median_size(chance, error, slope, _room(eps, reach, adversary)))


def _median_size(chance: float, error: float, slope: float, room: float) -> float:
    return chance * max((slope / check_positive("error", error)) ** 2, room**-2)  # Cor. 12, Cor. 13; audit 2.0


def malicious_attained_radius(n: int, delta: float, eps: float) -> float:
    """Return a radius that a malicious adversary reaches with probability 1 - delta on some law.

    The law and the attack are in audit 1.c; with it no bound below R(eps - sqrt(log(1/delta)/(2n))) can hold.

    Examples
    --------
    >>> round(malicious_attained_radius(101, 0.1, 0.2), 6)
    0.093234
    """
    check_eps(eps)
    radius = eps - math.sqrt(math.log(1 / check_delta(delta)) / (2 * check_count("n", n)))  # Lemma 8
    if radius <= 0:
        least = f"n > {math.log(1 / delta) / (2 * eps**2):.6g}" if eps > 0 else "a positive eps"
        msg = f"n={n!r} is too small for eps={eps!r}: n > log(1/delta)/(2 eps^2) fails; use {least}"
        raise OutOfReach(msg)
    return radius


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


def _check_mad_family(B: float, kappa: float | None, constants: str) -> None:
    if check_positive("B", B) < 4:
        msg = f"B={B!r} is below 4, where the family of Definition 3 is empty; use B >= 4 (audit 1.i)"
        raise OutOfReach(msg)
    if constants == "paper" and kappa is None:
        msg = "kappa must be given with constants='paper'; the sharp constants do not need it"
        raise InvalidArgument(msg)
    if kappa is not None and check_positive("kappa", kappa) < 1:
        msg = f"kappa={kappa!r} is below 1, where the family is empty (m4 <= m2, erratum E11); use kappa >= 1"
        raise OutOfReach(msg)


def _mad_room(eps: float, B: float, reach: float | None, adversary: str, constants: str) -> float:
    """Return how many quantile levels chance may use in the theorem about the deviation."""
    e = rank_shift(eps, adversary)
    barrier = eps if constants == "paper" else e  # the paper asks eps < 1/B of every adversary
    if barrier >= 1 / B:
        msg = f"eps={eps!r} is too large for B={B!r}: the condition {barrier:.6g} < 1/B = {1 / B:.6g} fails"
        raise OutOfReach(msg)
    if constants == "sharp":
        return 1 / B - e  # audit 2.D
    if reach is None:
        msg = "reach must be given with constants='paper'; the sharp constants do not need it"
        raise InvalidArgument(msg)
    return min(_room(eps, reach, adversary), 1 / B - e)  # Lemma 19, Lemma 20


def mad_sample_size(
    error: float,
    delta: float,
    *,
    eps: float,
    B: float,
    m2: float,
    adversary: str,
    reach: float | None = None,
    kappa: float | None = None,
    constants: Constants = "sharp",
) -> int:
    """Return how many readings bring the median absolute deviation near the true one.

    Sharp: both the median and the deviation are within U + error. Paper: the deviation is within
    (1 + 2 kappa) U + error; `reach` and `kappa` are needed for this one only.

    Examples
    --------
    >>> size = dict(eps=0.05, B=4, m2=0.25, adversary="prescient")
    >>> mad_sample_size(0.1, 0.05, **size)
    266
    >>> mad_sample_size(0.1, 0.05, **size, reach=0.4, kappa=2, constants="paper")
    56090
    """
    _check_mad_family(B, kappa, constants)
    room = _mad_room(eps, B, reach, adversary, constants)
    factor = 4 * kappa if constants == "paper" and kappa is not None else 1.0  # Lemma 19: 16 kappa^2
    wanted = (factor * B * check_positive("m2", m2) / check_positive("error", error)) ** 2
    return math.ceil(_mad_chance(delta, eps, adversary, constants) * max(wanted, room**-2))  # audit 2.D


def mad_error(
    n: int,
    delta: float,
    *,
    eps: float,
    B: float,
    m2: float,
    adversary: str,
    reach: float | None = None,
    kappa: float | None = None,
    constants: Constants = "sharp",
) -> float:
    """Return how far the median absolute deviation of n readings can be from the true one.

    With the sharp constants the same number bounds the error of the median, jointly.

    Examples
    --------
    >>> round(mad_error(266, 0.05, eps=0.05, B=4, m2=0.25, adversary="prescient"), 4)
    0.1262
    """
    _check_mad_family(B, kappa, constants)
    room = _mad_room(eps, B, reach, adversary, constants)
    chance = _mad_chance(delta, eps, adversary, constants)
    step = math.sqrt(chance / check_count("n", n))
    if step > room + _LEVEL_SLACK:
        msg = f"n={n!r} is below the threshold of the theorem; take n >= {math.ceil(chance / room**2)}"
        raise OutOfReach(msg)
    if constants == "paper" and kappa is not None:
        return (1 + 2 * kappa) * bias(eps, B, m2, adversary) + 4 * kappa * B * m2 * step  # Lemma 19, Lemma 20
    return bias(eps, B, m2, adversary) + B * m2 * step  # audit 2.D


# Ranks and curves that need no regularity


def trusted_mass(q: float, eps: float, adversary: str) -> float:
    """Return the least chance that a reading is clean and at most the true q-quantile.

    Examples
    --------
    >>> trusted_mass(0.5, 0.1, "oblivious"), trusted_mass(0.5, 0.1, "malicious")
    (0.45, 0.4)
    """
    check_quantile(q)
    check_eps(eps)
    return q - eps if _is_malicious(adversary) else (1 - eps) * q  # audit 2.A


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
        return betaincc(rank, count - rank + 1.0, p) <= ceiling  # P(Bin(n, p) <= rank - 1)

    return _last_rank(_count("n", n, 0), p, qualifies, top=1.0 if delta >= 0.5 else p)


def _last_rank(n: int | Counts, p: float, qualifies: _RankTest, *, top: float) -> int | Counts:
    """Return the last rank that qualifies, 0 if none; they come first, and none exceeds ceil(n top)."""
    if not p <= 1:
        msg = f"the chance of one reading must be at most 1, but got {p!r}; use trusted_mass"
        raise InvalidArgument(msg)
    if p <= 0:
        return 0 * n
    if np.ndim(n) == 0:
        return _last_scalar_rank(int(n), min(math.ceil(n * top) + 1, int(n) + 1), qualifies)
    counts = np.asarray(n, dtype=np.int64)
    low, high = np.zeros_like(counts), np.minimum(np.ceil(counts * top).astype(np.int64), counts) + 1
    while np.any(high - low > 1):
        middle = np.maximum((low + high) // 2, 1)
        good = qualifies(middle, np.maximum(counts, 1)) & (middle < high)
        low, high = np.where(good, middle, low), np.where(good, high, np.minimum(middle, high))
    return low


def _last_scalar_rank(n: int, high: int, qualifies: _RankTest) -> int:
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if qualifies(middle, n) else (low, middle)
    return low


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

    return _last_rank(_count("n", n, 0), p0, qualifies, top=p0)  # no evidence, M < 1, from s = n p0 on


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


@overload
def dkw_radius(n: int, delta: float) -> float: ...
@overload
def dkw_radius(n: Numbers, delta: Numbers) -> Numbers: ...
def dkw_radius(n: Numbers, delta: Numbers) -> Numbers:
    """Return the one-sided radius of an empirical distribution function, all x at once, n fixed.

    Examples
    --------
    >>> round(dkw_radius(500, 0.05 / 10), 6)
    0.07279
    """
    d = _each(check_delta, delta)
    if np.any(np.asarray(d) > 0.5):
        msg = f"delta={delta!r} is above 1/2, where the one-sided inequality is not proved; use delta <= 0.5"
        raise OutOfReach(msg)
    return _plain(np.sqrt(np.log(1 / d) / (2 * _count("n", n))))  # audit 2.E


@overload
def sequential_dkw_radius(n: int, delta: float, *, form: str = ...) -> float: ...
@overload
def sequential_dkw_radius(n: Numbers, delta: Numbers, *, form: str = ...) -> Numbers: ...
def sequential_dkw_radius(n: Numbers, delta: Numbers, *, form: str = "stitched") -> Numbers:
    """Return the radius of an empirical distribution function for all x and all n at once.

    Parameters
    ----------
    form
        ``"stitched"`` (Howard and Ramdas, Theorem 2; smaller from a few hundred readings on) or ``"union"``.
        Choose before looking: the smaller of the two at every n would spend delta twice.

    Examples
    --------
    >>> round(sequential_dkw_radius(1000, 0.05), 6), round(sequential_dkw_radius(1000, 0.05, form="union"), 6)
    (0.086569, 0.093029)
    """
    size, d = _count("n", n), _each(check_delta, delta)
    if form == "union":
        return _plain(np.sqrt(np.log(np.pi**2 * size**2.0 / (6 * d)) / (2 * size)))  # audit 2.E
    if form != "stitched":
        msg = f"form must be 'stitched' or 'union', but got {form!r}"
        raise InvalidArgument(msg)
    return _plain(0.85 * np.sqrt((np.log(1 + np.log(size)) + 0.8 * np.log(1612 / d)) / size))  # audit 2.E


@overload
def survival_floor(below: float, radius: float, eps: float, adversary: str) -> float: ...
@overload
def survival_floor(below: Numbers, radius: Numbers, eps: float, adversary: str) -> Numbers: ...
def survival_floor(below: Numbers, radius: Numbers, eps: float, adversary: str) -> Numbers:
    """Return a lower bound on P(Y >= x) of true readings, from the fraction of readings below x.

    Examples
    --------
    >>> round(survival_floor(0.2, dkw_radius(500, 0.005), 0.1, "prescient"), 6)
    0.696901
    """
    check_eps(eps)
    lost = below + radius + eps if _is_malicious(adversary) else (below + radius) / (1 - eps)  # audit 2.E
    return _plain(np.maximum(1 - lost, 0.0))


@overload
def survival_ceiling(below: float, radius: float, eps: float, adversary: str) -> float: ...
@overload
def survival_ceiling(below: Numbers, radius: Numbers, eps: float, adversary: str) -> Numbers: ...
def survival_ceiling(below: Numbers, radius: Numbers, eps: float, adversary: str) -> Numbers:
    """Return an upper bound on P(Y >= x) of true readings, from the fraction of readings below x.

    Examples
    --------
    >>> round(survival_ceiling(0.2, dkw_radius(500, 0.005), 0.1, "prescient"), 6)
    0.969766
    """
    check_eps(eps)
    kept = 1 - below + radius
    kept = kept + eps if _is_malicious(adversary) else kept / (1 - eps)  # audit 2.E
    return _plain(np.minimum(kept, 1.0))


# The algorithms


def uniform_sample_size(
    k: int,
    tolerance: float,
    delta: float,
    *,
    eps: float,
    B: float,
    m2: float,
    reach: float,
    adversary: str,
    constants: Constants = "sharp",
) -> int:
    """Return the pulls of each arm after which the best empirical median is good enough (Algorithm 1).

    With probability 1 - delta the arm with the largest empirical median has an effective gap of at most
    `tolerance`; its true median is then within `selection_gap` of the best one.

    Examples
    --------
    >>> promise = dict(eps=0.1, B=4, m2=0.5, reach=0.3, adversary="prescient")
    >>> uniform_sample_size(5, 0.2, 0.1, **promise, constants="paper")
    3685
    >>> uniform_sample_size(5, 0.2, 0.1, **promise)
    1138
    """
    half, share = check_positive("tolerance", tolerance) / 2, check_delta(delta) / check_count("k", k)
    promise = {"eps": eps, "B": B, "m2": m2, "reach": reach}
    return median_sample_size(half, share, **promise, adversary=adversary, constants=constants)  # Thm 2, Thm 14


@overload
def round_delta(delta: float, k: int, r: int) -> float: ...
@overload
def round_delta(delta: float, k: int, r: Numbers) -> Numbers: ...
def round_delta(delta: float, k: int, r: Numbers) -> Numbers:
    """Return the error probability spent on one arm in round r; over k arms and all rounds it sums to delta.

    Examples
    --------
    >>> round(round_delta(0.1, 5, 1), 6)
    0.012159
    """
    spent = 6 * check_delta(delta) / (math.pi**2 * check_count("k", k))
    return _plain(spent / _count("r", r) ** 2.0)  # Alg. 3


def elimination_constant(eps: float, reach: float, adversary: str) -> float:
    """Return N, the price of the reach in Algorithm 3.

    Examples
    --------
    >>> round(elimination_constant(0.1, 0.4, "malicious"), 6)
    22.222222
    """
    return 2 / _room(eps, reach, adversary) ** 2  # Alg. 3


@dataclass(frozen=True, slots=True)
class Schedule:
    """How many pulls of each surviving arm Algorithm 3 makes.

    Examples
    --------
    >>> elimination_schedule(5, 0.1, 0.1, 0.4, "prescient", constants="sharp").total(1)
    93
    """

    k: int
    delta: float
    N: float
    constants: Constants

    @property
    def initial(self) -> int:
        """Pulls before the first round."""
        if self.constants == "sharp":
            return 0
        return math.ceil(self.N * math.log(math.pi**2 * self.k / (2 * self.delta)))  # Alg. 3

    def per_round(self, r: int) -> int:
        """Return the pulls of round r = 1, 2, ..."""
        if check_count("r", r) == 1 and self.constants == "sharp":
            return self.total(1)
        if self.constants == "sharp":
            return self.total(r) - self.total(r - 1)
        return 1 + math.ceil(2 * self.N * math.log1p(1 / r))  # Alg. 3

    def total(self, r: int) -> int:
        """Return all pulls up to the end of round r."""
        if self.constants == "sharp":
            return math.ceil(
                max(check_count("r", r), self.N * math.log(3 / round_delta(self.delta, self.k, r)))
            )  # 1.k
        settled = math.ceil(2 * self.N) + 1  # from here on 2 N log(1 + 1/r) < 1: two pulls in each round
        rounds = np.arange(1, min(check_count("r", r), settled) + 1)
        first = self.initial + int(np.sum(1 + np.ceil(2 * self.N * np.log1p(1 / rounds))))  # Alg. 3
        return first + 2 * max(0, r - settled)


def elimination_schedule(
    k: int, delta: float, eps: float, reach: float, adversary: str, *, constants: Constants = "paper"
) -> Schedule:
    """Return the pulls of Algorithm 3, initial and per round.

    Either choice of constants justifies `elimination_radius`. The default is the algorithm as printed, whose
    name this function bears.

    Examples
    --------
    >>> schedule = elimination_schedule(5, 0.1, 0.1, 0.4, "prescient")
    >>> schedule.initial, [schedule.per_round(r) for r in range(1, 7)], schedule.total(6)
    (93, [25, 15, 11, 9, 8, 7], 168)
    """
    _check_constants(constants)
    return Schedule(
        check_count("k", k), check_delta(delta), elimination_constant(eps, reach, adversary), constants
    )


@overload
def elimination_radius(r: int, k: int, delta: float, B: float, m2: float) -> float: ...
@overload
def elimination_radius(r: Numbers, k: int, delta: float, B: float, m2: float) -> Numbers: ...
def elimination_radius(r: Numbers, k: int, delta: float, B: float, m2: float) -> Numbers:
    """Return alpha_r of Algorithm 3: in round r every surviving median is within U + alpha_r.

    B is squared, as the proof needs and the caption omits (erratum E1).

    Examples
    --------
    >>> round(elimination_radius(1, 5, 0.1, 4, 0.25), 6)
    3.319137
    """
    slope = check_positive("B", B) * check_positive("m2", m2)
    return _plain(slope * np.sqrt(2 * np.log(3 / round_delta(delta, k, r)) / r))  # Alg. 3, erratum E1


def counted_elimination_radius(
    r: int, n: int, k: int, *, delta: float, eps: float, B: float, m2: float, reach: float, adversary: str
) -> float:
    """Return alpha_r from the number n of readings each arm really has in round r.

    Examples
    --------
    >>> promise = dict(delta=0.1, eps=0.1, B=4, m2=0.25, reach=0.4, adversary="prescient")
    >>> round(counted_elimination_radius(6, 168, 5, **promise), 6)
    0.178652
    """
    d = round_delta(delta, k, r)
    error = median_error(n, d, eps=eps, B=B, m2=m2, reach=reach, adversary=adversary)
    return error - bias(eps, B, m2, adversary)  # audit 1.k


def early_stop_round(
    tolerance: float,
    k: int,
    delta: float,
    B: float,
    m2: float,
    *,
    survivor: Literal["argmax", "any"] = "argmax",
) -> int:
    """Return the first round of Algorithm 3 whose answer has an effective gap of at most `tolerance`.

    Parameters
    ----------
    survivor
        ``"argmax"`` returns the survivor with the largest median; ``"any"`` lets it be any of them, and is
        also the round by which an arm with an effective gap above `tolerance` has been eliminated.

    Examples
    --------
    >>> early_stop_round(0.5, 5, 0.1, 4, 0.25), early_stop_round(0.5, 5, 0.1, 4, 0.25, survivor="any")
    (584, 2731)
    """
    if survivor not in ("argmax", "any"):
        msg = f"survivor must be 'argmax' or 'any', but got {survivor!r}"
        raise InvalidArgument(msg)
    check_count("k", k, least=2)  # with one arm alpha_r need not fall, and nothing is to be decided
    radius = check_positive("tolerance", tolerance) / (2 if survivor == "argmax" else 4)  # audit 1.l
    low, high = 0, 1
    while elimination_radius(high, k, delta, B, m2) > radius:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        too_wide = elimination_radius(middle, k, delta, B, m2) > radius
        low, high = (middle, high) if too_wide else (low, middle)
    return high


def elimination_sample_size(
    gap: float, k: int, delta: float, *, eps: float, B: float, m2: float, reach: float, adversary: str
) -> int:
    """Return the readings per arm after which `elimination_ranks` exclude an arm with that effective gap.

    Examples
    --------
    >>> elimination_sample_size(0.5, 5, 0.1, eps=0.1, B=4, m2=0.25, reach=0.4, adversary="prescient")
    182
    """
    share = check_delta(delta) / check_count("k", k)
    chance = 4 * float(_median_chance(share, eps, adversary, "sharp"))  # (2a/g)^2 n, a at delta/k
    slope = check_positive("B", B) * check_positive("m2", m2)
    separation = chance * (2 * slope / check_positive("gap", gap)) ** 2
    threshold = chance / _room(eps, reach, adversary) ** 2
    return max(math.floor(separation) + 1, math.ceil(threshold))  # audit 2.B (iv): strictly above the first


def effective_gaps(medians: ArrayLike, biases: ArrayLike) -> Floats:
    """Return (p* - U*) - (p_i + U_i) for every arm; the best arm's own entry is -2 U*.

    Examples
    --------
    >>> effective_gaps([1.0, 0.5], [0.125, 0.125])
    array([-0.25,  0.25])
    """
    p, u = np.broadcast_arrays(np.asarray(medians, dtype=np.float64), np.asarray(biases, dtype=np.float64))
    if p.ndim != 1 or p.size == 0 or not (np.all(np.isfinite(p)) and np.all(u >= 0)):
        msg = f"medians must be finite and biases >= 0, one per arm, but got {medians!r} and {biases!r}"
        raise InvalidArgument(msg)
    best = int(np.argmax(p))
    return np.asarray((p[best] - u[best]) - (p + u))  # section 3


def selection_gap(tolerance: float, bias_best: float, bias_selected: float) -> float:
    """Return how far the selected true median can be below the best when its effective gap is in tolerance.

    The paper's definition allows one bias; two are needed (erratum E3).

    Examples
    --------
    >>> selection_gap(0.25, 0.125, 0.125)
    0.5
    """
    return tolerance + bias_best + bias_selected  # erratum E3, audit 1.j


def median_quantile_floor(
    t: float, *, median: float, B: float, m2: float, reach: float, mad_family: bool = False
) -> float:
    """Return a level that true readings reach with probability at least 1/2 + t, from true moments.

    Parameters
    ----------
    mad_family
        Whether the law is also in the family of Definition 3, which allows t up to 2/B.

    Examples
    --------
    >>> median_quantile_floor(0.25, median=0.5, B=4, m2=0.25, reach=0.3)
    0.25
    """
    _check_level(t, B, reach, mad_family=mad_family)
    return median - t * B * check_positive("m2", m2)  # Lemma 21


def _check_level(t: float, B: float, reach: float, *, mad_family: bool) -> None:
    check_reach(reach)
    highest = max(reach, 2 / check_positive("B", B)) if mad_family else reach
    if not 0 <= t <= highest:
        msg = f"t={t!r} must be in [0, {highest:.6g}]: beyond it the family promises nothing of the law"
        raise OutOfReach(msg)


def quality_bound(
    t: float,
    median: float,
    mad: float,
    *,
    tolerance: float,
    k: int,
    delta: float,
    eps: float,
    B: float,
    m2: float,
    reach: float,
    adversary: str,
    kappa: float | None = None,
    constants: Constants = "sharp",
) -> Quality:
    """Return what Algorithm 1 promises of its answer from that arm's empirical median and deviation.

    `kappa` is needed for the paper's constants only.

    Examples
    --------
    >>> run = dict(tolerance=0.1, k=4, delta=0.05, eps=0.05, B=4, m2=0.3, reach=0.4, adversary="prescient")
    >>> round(quality_bound(0.2, 10, 0.27, **run).threshold, 6)
    9.637158
    >>> round(quality_bound(0.2, 10, 0.27, **run, kappa=2, constants="paper").threshold, 6)
    9.256105
    """
    _check_constants(constants)
    _check_mad_family(B, kappa, constants)
    _check_level(t, B, reach, mad_family=False)
    _room(eps, reach, adversary)
    _mad_room(eps, B, reach, adversary, "paper")  # eps < 1/B also carries the kappa-free proof: audit 1.e
    unavoidable, half = bias(eps, B, m2, adversary), check_positive("tolerance", tolerance) / 2
    loss = (1 + t * B) * (unavoidable + half)  # audit 1.e (3)
    if constants == "paper" and kappa is not None:
        loss = (1 + 4 * kappa * t * B) * half + (1 + (1 + 2 * kappa) * B * t) * unavoidable  # Thm 22
    spent = 3 * check_delta(delta)
    return Quality((median - t * B * mad) - loss, 0.5 + t - spent, 0.5 + t - spent / check_count("k", k))


def quality_threshold(
    t: float,
    median: float,
    mad: float,
    *,
    n: int,
    k: int,
    delta: float,
    eps: float,
    B: float,
    m2: float,
    reach: float,
    adversary: str,
) -> float:
    """Return a level exceeded by true readings with probability 1/2 + t, for all k arms and all t at once.

    n readings per arm, n fixed in advance; the statement as a whole fails with probability at most delta.

    Examples
    --------
    >>> run = dict(n=500, k=4, delta=0.05, eps=0.05, B=4, m2=0.3, reach=0.4, adversary="prescient")
    >>> round(quality_threshold(0.2, 10, 0.27, **run), 6)
    9.554473
    """
    _check_mad_family(B, None, "sharp")
    _check_level(t, B, reach, mad_family=True)
    share = check_delta(delta) / (2 * check_count("k", k))  # log(2/share) = log(4k/delta)
    radius = median_radius(n, share, eps, adversary, reach=reach)
    return (median - t * B * mad) - (1 + t * B) * B * check_positive("m2", m2) * radius  # audit 1.e, best form
