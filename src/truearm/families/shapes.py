"""Laws without atoms in standard position: distribution function, quantiles, density and robust moments.

`truearm.families.Located` moves and stretches a shape. Its m2 is the median absolute deviation and m4 the median
of the distance of |Z - median| from m2, both found by bisection to the last bit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from truearm.bounds import special
from truearm.bounds.search import first_true, last_true_each

Array: TypeAlias = NDArray[np.float64]
Side = Literal["left", "right"]

SAME_LEVEL = 1e-12  # levels nearer than this are one level, so that five weights of 0.1 reach 1/2


@dataclass(frozen=True)
class Shape:
    """A law without atoms: a frozen one of scipy.stats, or one with the same functions.

    Parameters
    ----------
    has_one_peak
        Whether the density rises to one mode and then falls, and is 0 nowhere in between.
    """

    law: Any
    has_one_peak: bool = False

    def cdf(self, z: Array) -> Array:
        """Return the distribution function."""
        return np.asarray(self.law.cdf(z), dtype=float)

    def ppf(self, p: Array) -> Array:
        """Return a point of each quantile set, at levels in [0, 1]."""
        return np.asarray(self.law.ppf(p), dtype=float)

    def pdf(self, z: Array) -> Array:
        """Return the density."""
        return np.asarray(self.law.pdf(z), dtype=float)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent values."""
        return np.asarray(self.law.rvs(size=n, random_state=rng), dtype=float)

    def edge(self, p: Array, side: Side) -> Array:
        """Return one end of each quantile set, by bisection where the distribution function is flat."""
        inside = self.ppf(p)
        if self.has_one_peak:
            return inside
        is_left = side == "left"
        outside = self.ppf(np.maximum(p - SAME_LEVEL, 0.0) if is_left else np.minimum(p + SAME_LEVEL, 1.0))
        far = np.where(np.isfinite(inside) & np.isfinite(outside), outside, inside)
        rounding = 1e-9 * float(np.ptp(self.ppf(np.asarray([0.25, 0.75]))))
        if np.all(np.abs(far - inside) <= rounding):
            return inside

        def is_flat(z: Array) -> NDArray[np.bool_]:
            return self.cdf(z) >= p if is_left else self.cdf(z) <= p

        end = last_true_each(is_flat, inside, far, accuracy=np.abs(far - inside) * 2.0**-60)
        return np.where(np.abs(end - inside) <= rounding, inside, end)

    def least_slope(self, low: float, high: float) -> float:
        """Return the least density on [low, high], by ever finer grids around the lowest point."""
        if self.has_one_peak:
            return float(self.pdf(np.asarray([low, high])).min())
        inset = SAME_LEVEL * (high - low)  # rounding must not step off the end of the support
        start, stop = low + inset, high - inset
        ends = self.cdf(np.asarray([start, stop]))
        by_level = np.clip(self.ppf(np.linspace(ends[0], ends[1], 1025)), start, stop)
        grid = np.unique(np.concatenate([np.linspace(start, stop, 4097), by_level]))
        for _ in range(12):
            density = self.pdf(grid)
            lowest = int(np.argmin(density))
            start, stop = grid[max(lowest - 1, 0)], grid[min(lowest + 1, grid.size - 1)]
            grid = np.linspace(start, stop, 65)
        return float(density[lowest])

    def _within(self, low: float, high: float) -> float:
        ends = self.cdf(np.asarray([low, high]))
        return float(ends[1] - ends[0])

    @cached_property
    def median(self) -> float:
        """The midpoint of the set of medians."""
        low, high = (float(self.edge(np.asarray(0.5), side)) for side in ("left", "right"))
        return low + (high - low) / 2

    @cached_property
    def m2(self) -> float:
        """The median absolute deviation."""
        m = self.median
        quarter, three_quarters = self.ppf(np.asarray([0.25, 0.75]))
        high = 2 * max(three_quarters - m, m - quarter)
        return _crossing(lambda r: self._within(m - r, m + r), float(high))

    @cached_property
    def m4(self) -> float:
        """The median of the distance of |Y - m1| from m2; at most m2 (erratum E11)."""
        m, m2 = self.median, self.m2

        def near(s: float) -> float:
            inner = max(m2 - s, 0.0)
            return self._within(m + inner, m + m2 + s) + self._within(m - m2 - s, m - inner)

        return _crossing(near, m2)


def _crossing(rise: Callable[[float], float], high: float) -> float:
    """Return the midpoint of the set where a nondecreasing function passes 1/2."""
    first = first_true(lambda r: rise(r) >= 0.5, 0.0, high)
    last = first_true(lambda r: rise(r) > 0.5, first, high)
    return first + (last - first) / 2


class _Functions(NamedTuple):
    cdf: Callable[[Array], Array]
    ppf: Callable[[Array], Array]
    pdf: Callable[[Array], Array]
    draw: str  # of numpy's generator


def _mirror(tail: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return the quantiles of a symmetric law from those of its lower half."""
    return lambda p: np.where(p < 0.5, 1.0, -1.0) * tail(np.minimum(p, 1 - p))


_STANDARD = {  # a call of scipy.stats costs fifty times as much, and limits take thousands
    "gaussian": _Functions(
        special.ndtr, special.ndtri, lambda z: np.exp(-z * z / 2) / math.sqrt(2 * math.pi), "standard_normal"
    ),
    "cauchy": _Functions(
        lambda z: np.arctan2(1.0, -z) / math.pi,
        _mirror(lambda p: np.where(p < 0.5, -1 / np.tan(math.pi * p), 0.0)),
        lambda z: 1 / (math.pi * (1 + z * z)),
        "standard_cauchy",
    ),
    "laplace": _Functions(
        lambda z: np.where(z < 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2),
        _mirror(lambda p: np.log(2 * p)),
        lambda z: np.exp(-np.abs(z)) / 2,
        "laplace",
    ),
    "logistic": _Functions(
        special.expit,
        lambda p: np.log(p) - np.log1p(-p),
        lambda z: special.expit(z) * special.expit(-z),
        "logistic",
    ),
}


class _Standard(NamedTuple):
    """The normal, Cauchy, Laplace or logistic law, found by name so that it can be pickled."""

    name: str

    def cdf(self, z: Array) -> Array:
        return _STANDARD[self.name].cdf(z)

    def ppf(self, p: Array) -> Array:
        with np.errstate(divide="ignore"):
            return _STANDARD[self.name].ppf(p)

    def pdf(self, z: Array) -> Array:
        return _STANDARD[self.name].pdf(z)

    def rvs(self, size: int, random_state: np.random.Generator) -> Array:
        values: Array = getattr(random_state, _STANDARD[self.name].draw)(size=size)
        return values


class _Lognormal(NamedTuple):
    """The law of exp(sigma N) with N standard normal."""

    sigma: float

    def cdf(self, z: Array) -> Array:
        with np.errstate(divide="ignore"):
            return special.ndtr(np.log(np.maximum(z, 0.0)) / self.sigma)

    def ppf(self, p: Array) -> Array:
        return np.exp(self.sigma * special.ndtri(p))

    def pdf(self, z: Array) -> Array:
        safe = np.where(z > 0, z, 1.0)
        density = _STANDARD["gaussian"].pdf(np.log(safe) / self.sigma) / (safe * self.sigma)
        return np.where(z > 0, density, 0.0)

    def rvs(self, size: int, random_state: np.random.Generator) -> Array:
        return np.exp(self.sigma * random_state.standard_normal(size))


def standard(name: str) -> Shape:
    """Return the "gaussian", "cauchy", "laplace" or "logistic" law in standard position."""
    return Shape(_Standard(name), has_one_peak=True)


def lognormal(sigma: float) -> Shape:
    """Return the law of exp(sigma N) with N standard normal."""
    return Shape(_Lognormal(sigma), has_one_peak=True)
