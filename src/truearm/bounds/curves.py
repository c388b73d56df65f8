"""Bounds on a whole distribution function, for all x at once and any law. Numbers in, numbers out.

Symbols: n readings of one arm, contamination eps, error probability delta; `below` is the fraction of readings
below x and `radius` how far an empirical distribution function can be from the true one.
"""

from typing import overload

import numpy as np

from truearm.bounds.arguments import Numbers, check_counts, check_each, is_malicious, plain
from truearm.errors import InvalidArgument, OutOfReach
from truearm.problem import check_delta, check_eps


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
    d = check_each(check_delta, delta)
    if np.any(np.asarray(d) > 0.5):
        msg = f"delta={delta!r} is above 1/2, where the one-sided inequality is not proved; use delta <= 0.5"
        raise OutOfReach(msg)
    return plain(np.sqrt(np.log(1 / d) / (2 * check_counts("n", n))))  # audit 2.E


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
    size, d = check_counts("n", n), check_each(check_delta, delta)
    if form == "union":
        return plain(np.sqrt(np.log(np.pi**2 * size**2.0 / (6 * d)) / (2 * size)))  # audit 2.E
    if form != "stitched":
        msg = f"form must be 'stitched' or 'union', but got {form!r}"
        raise InvalidArgument(msg)
    return plain(0.85 * np.sqrt((np.log(1 + np.log(size)) + 0.8 * np.log(1612 / d)) / size))  # audit 2.E


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
    lost = below + radius + eps if is_malicious(adversary) else (below + radius) / (1 - eps)  # audit 2.E
    return plain(np.maximum(1 - lost, 0.0))


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
    kept = kept + eps if is_malicious(adversary) else kept / (1 - eps)  # audit 2.E
    return plain(np.minimum(kept, 1.0))
