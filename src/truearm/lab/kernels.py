"""Compiled arithmetic that the engines share: the mixture e-value, counts in sorted arrays, merging.

The same numbers as `truearm.bounds.mixture` to about ten digits, at a hundredth of the cost: log-gamma values
come from tables, since counts are whole numbers, and one continued fraction gives the incomplete beta function.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, gammaln

from truearm.bounds.mixture import Prior
from truearm.errors import OutOfReach

try:
    import numba
except ImportError as missing:
    _msg = "compiled policies need numba; install it with: pip install 'truearm[lab]'"
    raise OutOfReach(_msg) from missing

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])

_FAR = -40.0  # log of a tail too small to change a sum with 1
_ACCURACY = 1e-13  # relative, of the continued fraction
_LARGE = 1e120  # a step of the fraction multiplies by less than 1e30, so nothing overflows between two looks
_SMALL = 4096  # 64 megabytes per level, most of them never touched
_MAX_STEPS = 1e5  # of the fraction; near the middle it needs about the square root of the count


# without "_nrt" functions do not count references to arrays, half of the time; so none may allocate one
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
_INNER = _OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def entry(function: Function) -> Function:
    """Compile a function that Python calls; the code is cached on disk and runs without the interpreter's lock."""
    return cast(Function, numba.njit(**_OPTIONS)(function))


def jit(function: Function) -> Function:
    """Compile a function that only compiled code calls: without a Python wrapper, which takes long to make."""
    return cast(Function, numba.njit(**_INNER)(function))


def inline(function: Function) -> Function:
    """Compile a function into its callers: passing many arrays is slow, and constant arguments save branches."""
    return cast(Function, numba.njit(**_INNER, forceinline=True)(function))


def view(function: Function) -> Function:
    """Compile a function that returns a part of an array: only the caller may make one."""
    return cast(Function, numba.njit(**_INNER, inline="always")(function))


class MixtureTable(NamedTuple):
    """Tables for the mixture e-value at one level p0."""

    p0: float
    log_p: float
    log_q: float
    components: Floats
    """Per component the beta parameters a0 and b0, and the log of the constant K of `evaluate_mixture`."""
    logs: Floats
    """Per component log-gamma of a0 + s, of b0 + s and of a0 + b0 + s for every s."""
    known: Floats
    """Cached values for small n, 0 where not computed yet."""


@lru_cache(maxsize=16)
def _cache(p0: float, prior: Prior) -> Floats:  # noqa: ARG001 - one table for each of both
    return np.zeros(_SMALL * (_SMALL + 1) // 2)  # untouched pages take no memory


@lru_cache(maxsize=32)
def mixture(p0: float, prior: Prior, size: int) -> MixtureTable:
    """Return tables for counts below `size`."""
    log_p, log_q = math.log(p0), math.log1p(-p0)
    c, weights = np.array(prior.concentrations), np.array(prior.weights)
    a, b = c * p0, c * (1 - p0)
    constants = np.log(weights) + a * log_p + b * log_q - betaln(a, b) - np.log(betainc(a, b, p0))  # audit 2.C
    counts = np.arange(float(size))
    rows = [gammaln(first[:, None] + counts) for first in (a, b, a + b)]
    logs = np.stack(rows, axis=1).reshape(3 * c.size, size)
    return MixtureTable(p0, log_p, log_q, np.stack([a, b, constants], axis=1), logs, _cache(p0, prior))


@jit
def log_mixture(tables: MixtureTable, s: int, n: int) -> float:
    """Return log M_n(s; p0), looked up where n is small."""
    at = n * (n + 1) // 2 + s
    if at >= tables.known.size:
        return evaluate_mixture(tables, s, n)
    value = tables.known[at]
    if value == 0:
        value = evaluate_mixture(tables, s, n)
        tables.known[at] = value
    return float(value)


@jit
def evaluate_mixture(tables: MixtureTable, s: int, n: int) -> float:
    """Return log M_n(s; p0)."""
    total = -math.inf
    for c in range(tables.components.shape[0]):
        part = tables.components[c, 2] + log_component(tables, c, s, n)
        total = max(total, part) + math.log1p(math.exp(-abs(total - part)))
    return total  # audit 2.C


@jit
def log_component(tables: MixtureTable, c: int, s: int, n: int) -> float:
    """Return the log of a component over its constant K, which is free of the data.

    A component is weight B_p0(a,b)/(B_p0(a0,b0) p0^s (1-p0)^(n-s)), a = a0 + s, b = b0 + n - s. With the
    fraction f of B_p0(a,b) = p0^a (1-p0)^b / f it is K/f; with that of the upper tail it is
    K (B(a,b)/(p0^a (1-p0)^b) - 1/f), whose first term is K e^-front.
    """
    p0, a, b = tables.p0, tables.components[c, 0] + s, tables.components[c, 1] + (n - s)
    if p0 * (a + b + 2) < a + 1:
        return -math.log(fraction(a, b, p0, _ACCURACY))
    log_beta = tables.logs[3 * c, s] + tables.logs[3 * c + 1, n - s] - tables.logs[3 * c + 2, n]
    front = float(a * tables.log_p + b * tables.log_q - log_beta)
    if front < _FAR:
        return -front
    slack = math.exp(-front) * (b - (a + b) * (1 - p0))  # a small tail needs few digits
    tail = math.exp(front) / fraction(b, a, 1 - p0, min(_ACCURACY * max(1.0, slack), 1e-3))
    return math.log1p(-tail) - front


@jit
def fraction(a: float, b: float, x: float, accuracy: float) -> float:
    """Return x^a (1-x)^b / (B(a,b) I_x(a,b)), for x below about a/(a+b).

    The classical continued fraction a + N_1/(a+1 + N_2/(a+2 + ...)), by its forward recurrence, which needs no
    division: N_(2m+1) = -(a+m)(a+b+m)x and N_2m = m(b-m)x.
    """
    before, top, low, bottom, m = 1.0, a, 0.0, 1.0, 0.0
    while m < _MAX_STEPS:
        odd, even, step = -(a + m) * (a + b + m) * x, (m + 1) * (b - m - 1) * x, a + 2 * m + 1
        inner, under = step * top + odd * before, step * bottom + odd * low
        new, base = (step + 1) * inner + even * top, (step + 1) * under + even * bottom
        here, there = base * top, bottom * new
        before, top, low, bottom = inner, new, under, base
        m += 1
        if abs(here - there) <= accuracy * abs(there):
            break
        if abs(top) > _LARGE:
            scale = 1 / top
            before, top, low, bottom = before * scale, 1.0, low * scale, bottom * scale
    return top / bottom


@inline
def count(values: Floats, x: float, closed: bool) -> int:
    """Return how many of the sorted values are below x, or with `closed` at most x."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) // 2
        if values[middle] < x or (closed and values[middle] == x):
            low = middle + 1
        else:
            high = middle
    return low


@jit
def at_rank(values: Floats, rank: int) -> float:
    """Return the sorted value at a rank; ranks outside 1..size are infinities."""
    if rank < 1:
        return -math.inf
    return float(values[rank - 1]) if rank <= values.size else math.inf


@jit
def merge(values: Floats, new: Floats, into: Floats) -> int:
    """Merge sorted values and new readings, NaN left out, into another array; return how many there are.

    New readings are few, and are sorted in place; values between two of them are copied at once.
    """
    added = 0
    for i in range(new.size):
        if not math.isnan(new[i]):
            new[added] = new[i]
            added += 1
    sort(new[:added])
    at = 0
    for j in range(added):
        end = at + count(values[at:], new[j], True)
        copy(values[at:end], into[at + j :])
        into[end + j] = new[j]
        at = end
    copy(values[at:], into[at + added :])
    return values.size + added


@jit
def copy(values: Floats, into: Floats) -> None:
    """Copy values to the beginning of another array."""
    for i in range(values.size):
        into[i] = values[i]


@jit
def sort(values: Floats) -> None:
    """Sort values in place, by insertion over shrinking distances: few lines to compile, quick for few values."""
    gap = 1
    while gap < values.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for j in range(gap, values.size):
            x, i = values[j], j - gap
            while i >= 0 and values[i] > x:
                values[i + gap] = values[i]
                i -= gap
            values[i + gap] = x
        gap //= 3


@jit
def rank_at_least(tables: MixtureTable, n: int, bar: float) -> int:
    """Return the last rank r with log M_n(r - 1) >= bar, 0 if none, as `bounds.sequential_rank`."""
    low, high = 0, min(math.ceil(n * tables.p0), n) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if log_mixture(tables, middle - 1, n) >= bar:
            low = middle
        else:
            high = middle
    return low
