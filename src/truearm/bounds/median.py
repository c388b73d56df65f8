"""How near median and median absolute deviation of n readings are to the true ones.

Symbols: n readings of one arm, contamination eps, error probability delta, reach (the paper's t-bar), slope
constant B, median absolute deviation m2 or a bound on it, kappa; U is `contamination.bias`. Statements about the
deviation need the family of Definition 3.
"""

import math
from typing import Any

import numpy as np

from truearm.bounds.contamination import (
    LEVEL_SLACK,
    Constants,
    First,
    Numbers,
    bias,
    check_constants,
    check_counts,
    check_each,
    check_shapes,
    clean_share,
    is_malicious,
    need,
    plain,
    rank_shift,
    room_for_chance,
    to_count,
)
from truearm.errors import InvalidArgument
from truearm.problem import check_count, check_delta, check_eps, check_positive, refuse


def median_chance(delta: Numbers, eps: Numbers, adversary: str, constants: str) -> Any:  # noqa: ANN401
    """Return c such that chance moves the median of n readings by at most sqrt(c/n) levels."""
    check_constants(constants)
    d, fraction = check_each(check_delta, delta), check_each(check_eps, eps)
    check_shapes(delta=d, eps=fraction)
    if constants == "paper":
        return 2 * np.log((3 if is_malicious(adversary) else 2) / d)  # Lemma 6, Lemma 7
    return np.log(2 / d) / (2 * clean_share(fraction, adversary) ** 2)  # audit 2.0


def median_radius(
    n: First,
    delta: Numbers,
    eps: Numbers,
    adversary: str,
    *,
    constants: Constants = "sharp",
    reach: float | None = None,
) -> First:
    """Return how far, in quantile levels, the median of n readings can be from the true one.

    With probability 1 - delta the error is at most R(radius), where R bounds the law's quantiles around its
    median (Definition 1); in the paper's slope family R(t) = B m2 t. A radius beyond the reach, up to which R is
    known, is an error.

    >>> round(median_radius(1000, 0.05, 0.1, "prescient"), 6)
    0.103274
    """
    chance = median_chance(delta, eps, adversary, constants)
    levels: Any = rank_shift(np.asarray(eps), adversary)
    size = check_counts("n", n)
    check_shapes(n=size, delta=chance, eps=levels)
    radius = levels + np.sqrt(chance / size)  # Lemma 6, Lemma 7; audit 2.0
    if reach is not None:
        least = np.max(chance / room_for_chance(float(np.max(eps)), reach, adversary) ** 2)
        need(
            np.all(np.asarray(radius) <= reach + LEVEL_SLACK),
            f"n={n!r} is too small: contamination and chance can move the median by {np.max(radius):.4g} "
            f"quantile levels, beyond reach={reach!r}; take n >= {math.ceil(least)}",
        )
    return plain(radius)


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

    >>> round(median_error(1000, 0.05, eps=0.1, B=4, m2=0.25, reach=0.4, adversary="prescient"), 6)
    0.103274
    """
    radius = median_radius(check_count("n", n), delta, check_eps(eps), adversary, constants=constants, reach=reach)
    return check_positive("B", B) * check_positive("m2", m2) * radius  # Cor. 12, Cor. 13


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

    >>> median_sample_size(0.1, 0.05, eps=0.1, B=4, m2=1, reach=0.4, adversary="prescient")
    3644
    """
    chance = float(median_chance(check_delta(delta), check_eps(eps), adversary, constants))
    slope, room = check_positive("B", B) * check_positive("m2", m2), room_for_chance(eps, reach, adversary)
    check_positive("error", error)
    # Cor. 12, Cor. 13; audit 2.0
    return to_count(lambda: chance * max((slope / error) ** 2, room**-2), error=error, B=B, m2=m2)


def malicious_attained_radius(n: int, delta: float, eps: float) -> float:
    """Return a radius that a malicious adversary reaches with probability 1 - delta on some law.

    The law and the attack are in audit 1.c; with it no bound below R(eps - sqrt(log(1/delta)/(2n))) can hold.

    >>> round(malicious_attained_radius(101, 0.1, 0.2), 6)
    0.093234
    """
    check_eps(eps)
    radius = eps - math.sqrt(math.log(1 / check_delta(delta)) / (2 * check_count("n", n)))  # Lemma 8
    least = f"n > {math.log(1 / delta) / (2 * eps**2):.6g}" if eps**2 > 0 else "a larger eps"
    need(radius > 0, f"n={n!r} is too small for eps={eps!r}: n > log(1/delta)/(2 eps^2) fails; use {least}")
    return radius


def _mad_chance(delta: float, eps: float, adversary: str, constants: str) -> float:
    """Return c such that chance moves median and deviation by at most sqrt(c/n) levels."""
    check_constants(constants)
    d, clean = check_delta(delta), clean_share(check_eps(eps), adversary)
    if constants == "paper":
        return 2 * math.log((6 if is_malicious(adversary) else 4) / d)  # Lemma 19, Lemma 20
    return float(math.log(6 / d) / (2 * clean**2))  # audit 2.D


def check_mad_family(B: float, kappa: float | None, constants: str) -> None:
    """Raise if the family of Definition 3 is empty or not fully described."""
    check_constants(constants)
    is_large = check_positive("B", B) >= 4
    need(is_large, f"B={B!r} is below 4, where the family of Definition 3 is empty; use B >= 4 (audit 1.i)")
    msg = "kappa must be given with constants='paper'; the sharp constants do not need it"
    refuse(constants == "paper" and kappa is None, msg, "kappa")
    is_large = kappa is None or check_positive("kappa", kappa) >= 1
    need(is_large, f"kappa={kappa!r} is below 1, where the family is empty (erratum E11); use kappa >= 1")


def mad_room(eps: float, B: float, reach: float | None, adversary: str, constants: str) -> float:
    """Return how many quantile levels chance may use in the theorem about the deviation."""
    e = rank_shift(check_eps(eps), adversary)
    barrier = eps if constants == "paper" else e  # the paper needs eps < 1/B for every adversary
    need(barrier < 1 / B, f"eps={eps!r} is too large for B={B!r}: {barrier:.6g} < 1/B = {1 / B:.6g} fails")
    if constants == "sharp":
        return 1 / B - e  # audit 2.D
    if reach is None:
        raise InvalidArgument("reach must be given with constants='paper'; the sharp constants do not need it")
    return min(room_for_chance(eps, reach, adversary), 1 / B - e)  # Lemma 19, Lemma 20


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

    >>> mad_sample_size(0.1, 0.05, eps=0.05, B=4, m2=0.25, adversary="prescient")
    266
    """
    check_mad_family(B, kappa, constants)
    room = mad_room(eps, B, reach, adversary, constants)
    factor = 4 * kappa if constants == "paper" and kappa is not None else 1.0  # Lemma 19: 16 kappa^2
    slope, chance = factor * B * check_positive("m2", m2), _mad_chance(delta, eps, adversary, constants)
    check_positive("error", error)
    return to_count(lambda: chance * max((slope / error) ** 2, room**-2), error=error, B=B, m2=m2)  # audit 2.D


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

    >>> round(mad_error(266, 0.05, eps=0.05, B=4, m2=0.25, adversary="prescient"), 4)
    0.1262
    """
    check_mad_family(B, kappa, constants)
    room = mad_room(eps, B, reach, adversary, constants)
    chance = _mad_chance(delta, eps, adversary, constants)
    step = math.sqrt(chance / check_count("n", n))
    check_positive("m2", m2)
    least = np.ceil(chance / room / room)
    need(step <= room + LEVEL_SLACK, f"n={n!r} is below the threshold of the theorem; take n >= {least:.0f}")
    if constants == "paper" and kappa is not None:
        return (1 + 2 * kappa) * bias(eps, B, m2, adversary) + 4 * kappa * B * m2 * step  # Lemma 19, Lemma 20
    return bias(eps, B, m2, adversary) + B * m2 * step  # audit 2.D
