"""Compiled arithmetic that the engines share: the mixture e-value, counts in sorted stretches, merging.

The same numbers as `truearm.mixture` to about ten digits, at a hundredth of the price: log-gamma values come from
tables, since counts are whole numbers, and one continued fraction gives the incomplete beta function.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, gammaln

from truearm.mixture import Prior

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])

_FAR = -40.0  # log of a tail that a sum with 1 does not notice
_HUGE = 600.0  # log of what the exponential function still reaches
_ACCURACY = 1e-13  # as in truearm.mixture
_LARGE = 1e120  # a step of the fraction multiplies by less than 1e30, so nothing overflows between two looks
_SMALL = 2048  # 16 megabytes per level, most of them never touched
_INSERT = 24  # up to so many new readings are sorted by insertion


def compiled(function: Function) -> Function:
    """Return the function compiled at its first call, kept on disk, and free of the interpreter's lock."""
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)  # type: ignore[return-value]


class Mixtures(NamedTuple):
    """Tables for the mixture e-values at a few levels.

    Examples
    --------
    >>> mixtures((0.5,), Prior((16.0,), (1.0,)), 128).logs.shape
    (1, 3, 128)
    """

    levels: Floats
    """Per level p0, log p0 and log(1 - p0)."""
    components: Floats
    """Per level and component the beta parameters a0 and b0, and the constant K of `log_mixture`."""
    logs: Floats
    """Per level and component log-gamma of a0 + s, of b0 + s and of a0 + b0 + s for every s."""
    known: Floats
    """Per level the values for small n as they are met, 0 where none is known yet."""


@lru_cache(maxsize=16)
def _known(levels: tuple[float, ...], prior: Prior) -> Floats:  # noqa: ARG001 - one table for each of both
    return np.zeros((len(levels), _SMALL * (_SMALL + 1) // 2))  # pages that nobody touches cost nothing


@lru_cache(maxsize=16)
def mixtures(levels: tuple[float, ...], prior: Prior, size: int) -> Mixtures:
    """Return tables for counts below `size`."""
    p0 = np.array(levels)[:, None]
    log_p, log_q = np.log(p0), np.log1p(-p0)
    c, weights = np.array(prior.concentrations), np.array(prior.weights)
    a, b = c * p0, c * (1 - p0)
    constants = weights * np.exp(a * log_p + b * log_q - betaln(a, b)) / betainc(a, b, p0)  # audit 2.C
    counts = np.arange(float(size))
    rows = [gammaln(first[..., None] + counts) for first in (a, b, a + b)]
    return Mixtures(
        np.concatenate([p0, log_p, log_q], axis=1),
        np.stack([a, b, constants], axis=2),
        np.stack(rows, axis=2).reshape(p0.size, 3 * c.size, size),
        _known(levels, prior),
    )


@compiled
def log_mixture(tables: Mixtures, level: int, s: int, n: int) -> float:
    """Return log M_n(s; p0) at one of the levels of the tables, looked up where n is small."""
    if n >= _SMALL:
        return computed(tables, level, s, n)
    at = n * (n + 1) // 2 + s
    value = tables.known[level, at]
    if value == 0:
        value = computed(tables, level, s, n)
        tables.known[level, at] = value
    return float(value)


@compiled
def computed(tables: Mixtures, level: int, s: int, n: int) -> float:
    """Return log M_n(s; p0) at one of the levels of the tables.

    A component is weight B_p0(a,b)/(B_p0(a0,b0) p0^s (1-p0)^(n-s)), a = a0 + s, b = b0 + n - s. With the
    fraction f of B_p0(a,b) = p0^a (1-p0)^b / f it is K/f, K free of the data; with that of the upper tail it is
    K (B(a,b)/(p0^a (1-p0)^b) - 1/f), whose first term is K e^-front.
    """
    p0, log_p, log_q = tables.levels[level, 0], tables.levels[level, 1], tables.levels[level, 2]
    logs = tables.logs[level]
    total, shift = 0.0, 0.0
    for c in range(tables.components.shape[1]):
        a, b = tables.components[level, c, 0] + s, tables.components[level, c, 1] + (n - s)
        constant = tables.components[level, c, 2]
        if p0 * (a + b + 2) < a + 1:
            total += constant / fraction(a, b, p0)
            continue
        front = a * log_p + b * log_q - (logs[3 * c, s] + logs[3 * c + 1, n - s] - logs[3 * c + 2, n])
        if -front - shift > _HUGE:  # the largest term stays in reach of the exponential function
            total *= math.exp(shift + front)
            shift = -front
        total += constant * math.exp(-front - shift)
        if front > _FAR:
            total -= constant / fraction(b, a, 1 - p0) * math.exp(-shift)
    return shift + math.log(total)  # audit 2.C


@compiled
def fraction(a: float, b: float, x: float) -> float:
    """Return x^a (1-x)^b / (B(a,b) I_x(a,b)), for x below about a/(a+b).

    The classical continued fraction a + N_1/(a+1 + N_2/(a+2 + ...)), by its forward recurrence, which needs no
    division: N_(2m+1) = -(a+m)(a+b+m)x and N_2m = m(b-m)x.
    """
    before, top, low, bottom = 1.0, a, 0.0, 1.0
    for m in range(100_000):
        odd = -(a + m) * (a + b + m) * x
        middle_top = (a + 2 * m + 1) * top + odd * before
        middle_bottom = (a + 2 * m + 1) * bottom + odd * low
        even = (m + 1) * (b - m - 1) * x
        new_top = (a + 2 * m + 2) * middle_top + even * top
        new_bottom = (a + 2 * m + 2) * middle_bottom + even * bottom
        here, there = new_bottom * top, bottom * new_top
        before, top, low, bottom = middle_top, new_top, middle_bottom, new_bottom
        if abs(here - there) <= _ACCURACY * abs(there):
            break
        if abs(top) > _LARGE:
            scale = 1 / top
            before, top, low, bottom = before * scale, 1.0, low * scale, bottom * scale
    return top / bottom


@compiled
def below(values: Floats, start: int, size: int, x: float, closed: bool) -> int:
    """Return how many of the sorted values[start:start+size] are below x, at it too when closed."""
    low, high = start, start + size
    while low < high:
        middle = (low + high) // 2
        if values[middle] < x or (closed and values[middle] == x):
            low = middle + 1
        else:
            high = middle
    return low - start


@compiled
def merge(values: Floats, start: int, size: int, new: Floats) -> int:
    """Merge new readings, NaN left out, into sorted ones in place, from the back; return the new size."""
    known = np.empty(new.size)
    count = 0
    for x in new:
        if not math.isnan(x):
            known[count] = x
            count += 1
    known = known[:count]
    if count <= _INSERT:
        insert(known)
    else:
        known.sort()
    at, i = start + size + count - 1, start + size - 1
    for j in range(count - 1, -1, -1):
        x = known[j]
        while i >= start and values[i] > x:
            values[at] = values[i]
            at -= 1
            i -= 1
        values[at] = x
        at -= 1
    return size + count


@compiled
def insert(values: Floats) -> None:
    """Sort a few values by insertion."""
    for j in range(1, values.size):
        x, i = values[j], j - 1
        while i >= 0 and values[i] > x:
            values[i + 1] = values[i]
            i -= 1
        values[i + 1] = x


@compiled
def rank_at_least(tables: Mixtures, level: int, n: int, bar: float) -> int:
    """Return the last rank r with log M_n(r - 1) >= bar, 0 if none, as `bounds.sequential_rank`."""
    low, high = 0, min(math.ceil(n * tables.levels[level, 0]), n) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if log_mixture(tables, level, middle - 1, n) >= bar:
            low = middle
        else:
            high = middle
    return low
