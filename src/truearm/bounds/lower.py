"""What no algorithm can do: smoothed Bernoulli arms, their contaminated liftings, and the pulls they cost.

A smoothed Bernoulli law with parameter p and weight w is (1-w) Ber(p) + w Unif[0, 1]; the paper has w = 1/2.
Its lifting is a clean law whose contaminated readings follow it exactly, with the median moved as far as
contamination can move it. The paper's lifting needs a different B for every arm; the repaired one (w = 3/4,
audit 1.h) has B = 4 and one m2 for all arms, and proves Theorem 16 with an explicit constant.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from truearm.bounds.contamination import Constants, Floats, as_array, check_constants, need, rank_shift
from truearm.problem import (
    Adversary,
    as_number,
    check_adversary,
    check_delta,
    check_flag,
    check_inside,
    check_kind,
    require,
)

REPAIRED_CONSTANT = 352 / 8100  # (1/4) / (2025/352): audit 1.h
_ROUNDING = 1e-12  # allowed when sums of decimal fractions meet an end of their range
_WEIGHT = {"paper": 0.5, "sharp": 0.75}  # uniform share of the observed law
_PARAMETERS = {"paper": (1 / 3, 2 / 3), "sharp": (4 / 15, 11 / 15)}  # where each lifting is proved: audit 1.h


class Masses(NamedTuple):
    """A law on [0, 1]: its atoms at 0 and 1 and the mass spread evenly between them."""

    zero: float
    one: float
    uniform: float


class Lifting(NamedTuple):
    """A contaminated arm whose readings follow a smoothed Bernoulli law.

    `clean` is the true law, `target` the value a bad reading takes, `strike` the chance that a reading on the
    opposite atom is replaced (a malicious adversary) or that any reading is (the others). `reach` is the open
    upper end of the reaches for which the clean law is in the family with that B and m2.
    """

    clean: Masses
    target: Literal[0, 1]
    strike: float
    observed_median: float
    median: float
    m2: float
    B: float
    bias: float
    reach: float


def _check_parameter(name: str, p: float) -> float:
    remedy = "it is a parameter of a smoothed Bernoulli law"
    number = as_number(name, p, remedy)
    require(0 <= number <= 1, name, p, "be in [0, 1]", remedy)
    return number


def smoothed_bernoulli(p: float, weight: float = 0.5) -> Masses:
    """Return the masses of (1 - weight) Ber(p) + weight Unif[0, 1]."""
    _check_parameter("p", p)
    _check_parameter("weight", weight)
    return Masses((1 - weight) * (1 - p), (1 - weight) * p, weight)  # appendix D


def smoothed_bernoulli_density(x: ArrayLike, p: float, weight: float = 0.5) -> Floats:
    """Return the density with respect to length on (0, 1) plus one unit of mass on each of 0 and 1."""
    masses, points = smoothed_bernoulli(p, weight), as_array("x", x)
    inside = (points > 0) & (points < 1)
    return np.select([points == 0, points == 1, inside], masses, 0.0)


def smoothed_bernoulli_median(p: float, weight: float = 0.5) -> float:
    """Return the median: p itself at the paper's weight, (1 + p)/3 at weight 3/4."""
    masses = smoothed_bernoulli(p, weight)
    need(0.5 <= weight <= 1, f"weight={weight!r} must be in [1/2, 1]: the median must fall between the atoms")
    return (0.5 - masses.zero) / weight  # audit 1.h


def smoothed_bernoulli_kl(p: float, q: float, weight: float = 0.5) -> float:
    """Return the Kullback-Leibler divergence of the law at q from the law at p, in nats."""
    terms = ((p, q), (1 - _check_parameter("p", p), 1 - _check_parameter("q", q)))
    rest = 1 - _check_parameter("weight", weight)
    bernoulli = sum(a * math.log(a / b) if b > 0 else math.inf for a, b in terms if a > 0)
    return rest * bernoulli  # appendix D


def kl_curvature(eta: float, weight: float = 0.5) -> float:
    """Return the least C with KL <= C (p - q)^2 for all p, q in [eta, 1 - eta]."""
    check_inside("eta", eta, 0.5, "every parameter must be in [eta, 1 - eta]")
    return (1 - _check_parameter("weight", weight)) / (2 * eta * (1 - eta))  # C_eta, erratum E13


def _check_gaps(gaps: ArrayLike, tolerance: float, delta: float) -> Floats:
    """Return max(gap, tolerance) of every arm but the best."""
    values = np.atleast_1d(as_array("gaps", gaps))
    tolerance = as_number("tolerance", tolerance, "use a number such as 0.1")
    is_right = values.size and np.all(np.isfinite(values)) and np.all(values >= 0) and 0 <= tolerance < math.inf
    require(is_right, "gaps and tolerance", (gaps, tolerance), "be finite and >= 0, with at least one gap")
    need(check_delta(delta) < 3 / 20, f"delta={delta!r} is too large: the bound is proved for delta < 3/20")
    scale = np.maximum(values, tolerance)
    need(np.all(scale > 0), "a gap of 0 needs a positive tolerance: equal arms are never told apart")
    return np.asarray(scale)


def bernoulli_lower_bound(
    gaps: ArrayLike, tolerance: float, delta: float, *, best: float, eta: float, constants: Constants = "sharp"
) -> float:
    """Return the expected pulls any algorithm needs on clean smoothed Bernoulli arms.

    Gaps are those of the parameters of all arms but the best. Every parameter, and best + tolerance, must be in
    [eta, 1 - eta]. "paper" has log(1/(2.4 delta)), cited by the paper; it is proved here only when every gap
    exceeds the tolerance. "sharp" has log(1/(4 delta)), proved in audit 1.h. Both have 1/(4 C), erratum E13.
    """
    check_constants(constants)
    scale = _check_gaps(gaps, tolerance, delta)
    lowest = as_number("best", best, "use the largest parameter") - float(np.max(gaps))
    curvature = kl_curvature(eta)
    need(
        lowest >= eta - _ROUNDING and best + tolerance <= 1 - eta + _ROUNDING,
        f"parameters from {lowest:.6g} to best + tolerance = {best + tolerance:.6g} leave "
        f"[eta, 1 - eta] = [{eta:.6g}, {1 - eta:.6g}]; use a smaller eta, tolerance or gap",
    )
    factor = 2.4 if constants == "paper" else 4.0
    return float(np.sum(scale**-2.0) / (4 * curvature) * math.log(1 / (factor * delta)))  # Lemma 28, E13


def lifting(p: float, eps: float, adversary: str, *, best: bool, constants: Constants = "sharp") -> Lifting:
    """Return a clean law and an attack under which readings are smoothed Bernoulli with parameter p.

    The median of the best arm is pushed down, those of the others up, so the medians seen differ by the effective
    gap. "paper" has weight 1/2, with the true m2 and the B it needs (erratum E14), "sharp" weight 3/4.
    """
    check_constants(constants)
    low, high = _PARAMETERS[constants]
    as_number("p", p, "use a number such as 0.5")
    as_number("eps", eps, "use a number such as 0.05")
    need(low <= p <= high, f"p={p!r} must be in [{low:.6g}, {high:.6g}] for this lifting")
    need(0 <= eps < 1 / 15, f"eps={eps!r} must be in [0, 1/15) for this lifting")
    malicious, best = check_adversary(adversary) is Adversary.MALICIOUS, check_flag("best", best)
    zero, one, uniform = smoothed_bernoulli(p, _WEIGHT[constants])
    sign = 1 if best else -1  # bad readings of the best arm are zeros, those of the others ones
    if malicious:  # a mass eps was moved from one atom to the other: audit 1.h
        clean = Masses(zero - sign * eps, one + sign * eps, uniform)
    else:  # (observed - eps at one atom)/(1 - eps): audit 1.h
        added = (eps, 0.0) if best else (0.0, eps)
        clean = Masses((zero - added[0]) / (1 - eps), (one - added[1]) / (1 - eps), uniform / (1 - eps))
    source = clean.one if best else clean.zero
    observed_median = smoothed_bernoulli_median(p, _WEIGHT[constants])
    bias = rank_shift(eps, adversary) / clean.uniform  # B m2 = 1/slope
    median = observed_median + sign * bias
    edge = min(median, 1 - median)
    m2 = min(1 / (4 * clean.uniform), edge)  # audit 1.h; the second only at weight 1/2
    return Lifting(
        clean=clean,
        target=0 if best else 1,
        strike=eps / source if malicious else eps,  # erratum E15
        observed_median=observed_median,
        median=median,
        m2=m2,
        B=1 / (clean.uniform * m2),
        bias=bias,
        reach=clean.uniform * edge,
    )


def lifted_readings(arm: Lifting, adversary: str) -> Masses:
    """Return the law of the contaminated readings of a lifting."""
    check_kind("arm", arm, Lifting, "use lifting(...)")
    clean, strike = arm.clean, arm.strike
    if check_adversary(adversary) is Adversary.MALICIOUS:
        upward = strike * clean.zero if arm.target else -strike * clean.one
        return Masses(clean.zero - upward, clean.one + upward, clean.uniform)
    zero, one, uniform = ((1 - strike) * mass for mass in clean)
    return Masses(zero, one + strike, uniform) if arm.target else Masses(zero + strike, one, uniform)


def contaminated_lower_bound(
    gaps: ArrayLike, tolerance: float, delta: float, *, eps: float, reach: float
) -> float:
    """Return the expected pulls any algorithm needs on some contaminated arms with these effective gaps.

    The gaps are those of all arms but the best. The arms are `lifting`s: B = 4, one m2 for all, any adversary.
    """
    scale = _check_gaps(gaps, tolerance, delta)
    for name, value in (("eps", eps), ("reach", reach)):
        as_number(name, value, "use a number such as 0.05")
    proof = "; Theorem 16 as repaired in audit 1.h needs it"
    need(0 <= eps < 1 / 15, f"the condition eps < 1/15 fails for eps={eps!r}{proof}")
    need(0 < reach < 1 / 4, f"the condition 0 < reach < 1/4 fails for reach={reach!r}{proof}")
    widest = f"{np.max(gaps):.6g} + {tolerance:.6g}"
    need(np.max(gaps) + tolerance < 7 / 45, f"the condition max gap + tolerance < 7/45 fails for {widest}{proof}")
    return float(REPAIRED_CONSTANT * np.sum(scale**-2.0) * math.log(1 / (4 * delta)))  # Thm 16, audit 1.h
