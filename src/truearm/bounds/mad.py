"""How near the median absolute deviation of n readings is to the true one. Numbers in, numbers out.

Symbols: n readings of one arm, contamination eps, error probability delta, reach (the paper's t-bar), slope
constant B, median absolute deviation m2 or a bound on it, kappa; U is `contamination.bias`. What needs the family
of Definition 3, with its conditions, lives here.
"""

import math

from truearm.bounds.arguments import LEVEL_SLACK, Constants, check_constants, is_malicious
from truearm.bounds.contamination import bias, clean_share, rank_shift, room_for_chance
from truearm.errors import InvalidArgument, OutOfReach
from truearm.problem import check_count, check_delta, check_eps, check_positive


def _mad_chance(delta: float, eps: float, adversary: str, constants: str) -> float:
    """Return c such that chance moves median and deviation by at most sqrt(c/n) levels."""
    check_constants(constants)
    d, clean = check_delta(delta), clean_share(check_eps(eps), adversary)
    if constants == "paper":
        return 2 * math.log((6 if is_malicious(adversary) else 4) / d)  # Lemma 19, Lemma 20
    return float(math.log(6 / d) / (2 * clean**2))  # audit 2.D


def check_mad_family(B: float, kappa: float | None, constants: str) -> None:
    """Refuse numbers for which the family of Definition 3 is empty, or that do not describe it."""
    if check_positive("B", B) < 4:
        msg = f"B={B!r} is below 4, where the family of Definition 3 is empty; use B >= 4 (audit 1.i)"
        raise OutOfReach(msg)
    if constants == "paper" and kappa is None:
        msg = "kappa must be given with constants='paper'; the sharp constants do not need it"
        raise InvalidArgument(msg)
    if kappa is not None and check_positive("kappa", kappa) < 1:
        msg = f"kappa={kappa!r} is below 1, where the family is empty (m4 <= m2, erratum E11); use kappa >= 1"
        raise OutOfReach(msg)


def mad_room(eps: float, B: float, reach: float | None, adversary: str, constants: str) -> float:
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

    Examples
    --------
    >>> size = dict(eps=0.05, B=4, m2=0.25, adversary="prescient")
    >>> mad_sample_size(0.1, 0.05, **size)
    266
    >>> mad_sample_size(0.1, 0.05, **size, reach=0.4, kappa=2, constants="paper")
    56090
    """
    check_mad_family(B, kappa, constants)
    room = mad_room(eps, B, reach, adversary, constants)
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
    check_mad_family(B, kappa, constants)
    room = mad_room(eps, B, reach, adversary, constants)
    chance = _mad_chance(delta, eps, adversary, constants)
    step = math.sqrt(chance / check_count("n", n))
    if step > room + LEVEL_SLACK:
        msg = f"n={n!r} is below the threshold of the theorem; take n >= {math.ceil(chance / room**2)}"
        raise OutOfReach(msg)
    if constants == "paper" and kappa is not None:
        return (1 + 2 * kappa) * bias(eps, B, m2, adversary) + 4 * kappa * B * m2 * step  # Lemma 19, Lemma 20
    return bias(eps, B, m2, adversary) + B * m2 * step  # audit 2.D
