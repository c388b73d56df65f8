"""Bounds for eps: checked readings bound it from above, readings that contradict each other from below.

Readings alone never bound eps from above: every law is a mixture of itself with itself, so all of it may be bad
(extensions E3). Checking some of them at the source does (E5 there). Lower bounds are alarms (E4).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.bounds import special
from truearm.bounds.mixture import log_mixture
from truearm.bounds.search import bracket
from truearm.errors import InvalidArgument
from truearm.evidence.sample import as_readings
from truearm.problem import Adversary, Design, check_adversary, check_delta

Floats = NDArray[np.float64]

_ACCURACY = 1e-9  # of a bound for eps


def most_eps(n: int, bad: int, delta: float, design: Design) -> float:
    """Return an upper bound for the chance of a bad reading, of which n were checked (extensions E5)."""
    if bad == n:
        return 1.0
    if design == "fixed":
        return float(special.betaincinv(bad + 1, n - bad, 1 - delta))
    bar = -math.log(delta)
    # 1 is never refuted by fewer than all; the bracket's outer end is on the safe side
    possible = bracket(lambda e: float(log_mixture(bad, n, e)) < bar, bad / n, 1.0, accuracy=_ACCURACY)
    return possible[1]


def least_eps(x: ArrayLike, y: ArrayLike, *, delta: float = 0.001, adversary: str = "oblivious") -> float:
    """Return a lower bound for eps from two sets of readings that should be alike (extensions E4).

    Two periods of one arm, or two arms that are the same (an A/A pair): where their readings differ by more than
    chance allows, some are bad, or the arm did not stay what it was. Sizes must be chosen in advance.

    Parameters
    ----------
    delta
        The chance that the bound is too high.

    Examples
    --------
    >>> same = np.arange(1000) % 100
    >>> least_eps(same, same), round(least_eps(same, np.where(np.arange(1000) % 4, same, 1000)), 3)
    (0.0, 0.121)
    """
    one, two = (np.sort(_numbers(values, name)) for values, name in ((x, "x"), (y, "y")))
    share = 1.0 if check_adversary(adversary) is not Adversary.MALICIOUS else 0.5
    radius = sum(math.sqrt(math.log(4 / check_delta(delta)) / (2 * part.size)) for part in (one, two))
    return share * max(0.0, distance(one, two) - radius)


def _numbers(values: ArrayLike, name: str) -> Floats:
    readings = as_readings(values, name)
    known = readings[~np.isnan(readings)]
    if not known.size:
        msg = f"{name} must hold at least one reading that has a value, but got none"
        raise InvalidArgument(msg)
    return known


def distance(one: Floats, two: Floats) -> float:
    """Return the largest distance between the distribution functions of two sorted sets of readings."""
    cuts = np.concatenate((one, two))
    shares = (part.searchsorted(cuts, "right") / part.size for part in (one, two))
    return float(np.abs(np.subtract(*shares)).max())


def eps_of_change(tape: Floats, delta: float, adversary: Adversary) -> float:
    """Return a lower bound for eps from one arm's readings in order, whenever one looks (extensions E4).

    The first 2^j readings are compared with as many that follow, j as large as there are readings for; that two
    laws differ is allowed for at all j together.
    """
    known = tape[~np.isnan(tape)]
    j = known.size.bit_length() - 2
    if j < 1:
        return 0.0
    half = 1 << j
    one, two = np.sort(known[:half]), np.sort(known[half : 2 * half])
    radius = 2 * math.sqrt(math.log(4 * j * (j + 1) / delta) / (2 * half))
    share = 0.5 if adversary is Adversary.MALICIOUS else 1.0
    return share * max(0.0, distance(one, two) - radius)
