"""One e-value per arm: how unlikely a low count is, for every level it may have. Numbers in, numbers out.

Symbols: s successes among n draws whose success probability is at least p0. The e-value M_n(s; p0) is the
likelihood ratio of a mixture over theta < p0 to p0. As draws come in it is a nonnegative supermartingale
from 1 (audit 2.C), it decreases in s, and it depends on the draws through s alone, so that an adversary that
can only add successes can only lower it.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.bounds import special
from truearm.problem import require

Floats = NDArray[np.float64]

_TINY = 1e-200  # scipy's incomplete beta function loses digits to underflow from about 1e-260 on
_LEAST, _NEAREST = 1e-300, 1e-15  # levels nearer to 0 or 1 are treated as 0 or 1
_TERMS = 8  # of the continued fraction: where I_x is below 1e-200 more of them change no bit


class Prior(NamedTuple):
    """A mixture of Beta(c p0, c (1 - p0)), cut to theta < p0, over some c; fixed before the data are seen."""

    concentrations: tuple[float, ...]
    weights: tuple[float, ...]


DEFAULT_PRIOR = Prior((16.0, 512.0), (0.6, 0.4))  # evidence section 6: near the best single c from 10 to 1e6 draws


def log_mixture(successes: ArrayLike, n: ArrayLike, p0: float, prior: Prior = DEFAULT_PRIOR) -> Floats:
    """Return log M_n(s; p0), the evidence that fewer draws succeed than a level of p0 allows.

    Counts may have any shapes that broadcast. A level p0 of 0 or less gives no evidence: zero.
    """
    s = np.asarray(successes, dtype=np.float64)
    failures = np.asarray(n, dtype=np.float64) - s
    if p0 < _LEAST:
        return np.zeros(failures.shape)
    require(p0 < 1, "p0", p0, "be below 1", "a certain success leaves nothing to bet on")
    return _mix(s, failures, p0, _cached_components(p0, prior))


def _mix(s: Floats, failures: Floats, p: float | Floats, components: tuple[Floats, Floats, Floats]) -> Floats:
    axes = (-1, *[1] * (max(s.ndim, failures.ndim) - np.ndim(p)), *np.shape(p))
    a, b, constants = (part.reshape(axes) for part in components)
    total: Floats = np.logaddexp.reduce(_log_partial_beta(a + s, b + failures, p) + constants, axis=0)
    return total - s * np.log(p) - failures * np.log1p(-p)  # audit 2.C


def _components(p: float | Floats, prior: Prior) -> tuple[Floats, Floats, Floats]:
    """Return a, b and log(weight / (B(a,b) I_p(a,b))) of the beta components."""
    c, weights = (np.array(part).reshape(-1, *[1] * np.ndim(p)) for part in prior)
    a, b = c * p, c * (1 - p)
    return a, b, np.log(weights) - _log_partial_beta(a, b, p)


_cached_components = lru_cache(maxsize=512)(_components)


def log_mixture_at(successes: ArrayLike, n: ArrayLike, levels: Floats) -> Floats:
    """Return log M_n(s; p0) at many levels, the limits at 0 and 1 included; it rises with the level.

    At a level of 0 or less one success gives minus infinity, and at a level of 1 one failure gives infinity.
    """
    s, p = np.asarray(successes, dtype=np.float64), np.clip(levels, _LEAST, 1 - _NEAREST)
    failures = np.asarray(n, dtype=np.float64) - s
    total = _mix(s, failures, p, _components(p, DEFAULT_PRIOR))
    total = np.where(levels < _LEAST, np.where(s > 0, -np.inf, 0.0), total)
    return np.where(levels > 1 - _NEAREST, np.where(failures > 0, np.inf, total), total)


def _log_partial_beta(a: Floats, b: Floats, x: float | Floats) -> Floats:
    """Return log of the integral of t^(a-1) (1-t)^(b-1) over (0, x)."""
    mass = special.betainc(a, b, x)
    value: Floats = special.betaln(a, b) + np.log(np.maximum(mass, _TINY))
    small = mass < _TINY
    if small.any():
        value[small] = _log_partial_beta_tail(*(np.broadcast_to(part, small.shape)[small] for part in (a, b, x)))
    return value


def _log_partial_beta_tail(a: Floats, b: Floats, x: Floats) -> Floats:
    """Return the same far in the tail, x well below a/(a+b), where I_x underflows.

    B_x(a,b) = x^a (1-x)^b / (a K), K the classical continued fraction of the incomplete beta function, computed
    from its last term up.
    """
    m = np.arange(1, _TERMS + 1)[:, None]
    top = a + 2 * m
    even = m * (b - m) * x / ((top - 1) * top)
    odd = (a + m) * (a + b + m) * x / (top * (top + 1))
    rest = np.ones(a.shape)
    for above, below in zip(even[::-1], odd[::-1], strict=True):  # rest = 1 + even / (1 - odd / rest)
        np.divide(below, rest, out=rest)
        np.subtract(1, rest, out=rest)
        np.divide(above, rest, out=rest)
        rest += 1
    value: Floats = a * np.log(x) + b * np.log1p(-x) - np.log(a) - np.log(1 - (a + b) * x / ((a + 1) * rest))
    return value
