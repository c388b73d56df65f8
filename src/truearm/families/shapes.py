"""Laws without atoms in standard position: distribution function, quantiles, density and robust moments.

`truearm.families.Located` moves and stretches a shape. Its m2 is the median absolute deviation and m4 the median
of the distance of |Z - median| from m2, both found by bisection to the last bit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from truearm.bounds import special
from truearm.bounds.search import first_true, last_true_each

Array: TypeAlias = NDArray[np.float64]

SAME_LEVEL = 1e-12  # levels nearer than this are one level, so that five weights of 0.1 reach 1/2


def _crossing(rise: Callable[[float], float], low: float, high: float) -> float:
    """Return the midpoint of the set where a nondecreasing function passes 1/2."""
    first = first_true(lambda r: rise(r) >= 0.5, low, high)
    last = first_true(lambda r: rise(r) > 0.5, first, high)
    return first + (last - first) / 2


class Shape:
    """A continuous scipy.stats law, or anything with cdf, ppf, pdf and draw."""

    def __init__(self, frozen: Any) -> None:  # noqa: ANN401 - scipy.stats is not imported here
        self.frozen = frozen

    def cdf(self, z: Array) -> Array:
        """Return the distribution function."""
        return np.asarray(self.frozen.cdf(z), dtype=float)

    def ppf(self, p: Array) -> Array:
        """Return a point of each quantile set, at levels in [0, 1]."""
        return np.asarray(self.frozen.ppf(p), dtype=float)

    def pdf(self, z: Array) -> Array:
        """Return the density."""
        return np.asarray(self.frozen.pdf(z), dtype=float)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent values."""
        return np.asarray(self.frozen.rvs(size=n, random_state=rng), dtype=float)

    @cached_property
    def _rounding(self) -> float:
        quarter, three_quarters = self.ppf(np.asarray([0.25, 0.75]))
        return 1e-9 * float(three_quarters - quarter)

    def ppf_left(self, p: Array) -> Array:
        """Return the lower ends of the quantile sets, by bisection where the distribution function is flat."""
        return self._edge(p, self.ppf(np.maximum(p - SAME_LEVEL, 0.0)), lambda z: self.cdf(z) >= p)

    def ppf_right(self, p: Array) -> Array:
        """Return the upper ends of the quantile sets, by bisection where the distribution function is flat."""
        return self._edge(p, self.ppf(np.minimum(p + SAME_LEVEL, 1.0)), lambda z: self.cdf(z) <= p)

    def _edge(self, p: Array, outside: Array, flat: Callable[[Array], NDArray[np.bool_]]) -> Array:
        inside = self.ppf(p)
        far = np.where(np.isfinite(inside) & np.isfinite(outside), outside, inside)
        if np.all(np.abs(far - inside) <= self._rounding):
            return inside
        end = last_true_each(flat, inside, far, accuracy=np.abs(far - inside) * 2.0**-60)
        return np.where(np.abs(end - inside) <= self._rounding, inside, end)

    def least_slope(self, low: float, high: float) -> float:
        """Return the least density on [low, high], by ever finer grids around the lowest point."""
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
        half = np.asarray(0.5)
        low, high = float(self.ppf_left(half)), float(self.ppf_right(half))
        return low + (high - low) / 2

    @cached_property
    def m2(self) -> float:
        """The median absolute deviation."""
        m = self.median
        quarter, three_quarters = self.ppf(np.asarray([0.25, 0.75]))
        high = 2 * max(three_quarters - m, m - quarter)
        return _crossing(lambda r: self._within(m - r, m + r), 0.0, float(high))

    @cached_property
    def m4(self) -> float:
        """The median of the distance of |Y - m1| from m2; at most m2 (erratum E11)."""
        m, m2 = self.median, self.m2

        def near(s: float) -> float:
            inner = max(m2 - s, 0.0)
            return self._within(m + inner, m + m2 + s) + self._within(m - m2 - s, m - inner)

        return _crossing(near, 0.0, m2)


class _Functions(NamedTuple):
    cdf: Callable[[Array], Array]
    ppf: Callable[[Array], Array]
    pdf: Callable[[Array], Array]
    draw: str  # of numpy's generator


def _cauchy_ppf(p: Array) -> Array:
    tail = -1 / np.tan(math.pi * np.minimum(p, 1 - p))
    return np.where(p < 0.5, tail, np.where(p > 0.5, -tail, 0.0))


def _laplace_cdf(z: Array) -> Array:
    tail: Array = np.exp(-np.abs(z)) / 2
    return np.where(z < 0, tail, 1 - tail)


def _laplace_ppf(p: Array) -> Array:
    tail: Array = np.log(2 * np.minimum(p, 1 - p))
    return np.where(p < 0.5, tail, -tail)


_STANDARD = {  # a call of scipy.stats costs fifty times as much, and limits take thousands
    "gaussian": _Functions(
        special.ndtr, special.ndtri, lambda z: np.exp(-z * z / 2) / math.sqrt(2 * math.pi), "standard_normal"
    ),
    "cauchy": _Functions(
        lambda z: np.arctan2(1.0, -z) / math.pi,
        _cauchy_ppf,
        lambda z: 1 / (math.pi * (1 + z * z)),
        "standard_cauchy",
    ),
    "laplace": _Functions(_laplace_cdf, _laplace_ppf, lambda z: np.exp(-np.abs(z)) / 2, "laplace"),
    "logistic": _Functions(
        special.expit,
        lambda p: np.log(p) - np.log1p(-p),
        lambda z: special.expit(z) * special.expit(-z),
        "logistic",
    ),
}


@dataclass(frozen=True)
class Standard(Shape):
    """The normal, Cauchy, Laplace or logistic law in standard position; the density has one mode."""

    name: str

    def cdf(self, z: Array) -> Array:
        """Return the distribution function."""
        return _STANDARD[self.name].cdf(z)

    def ppf(self, p: Array) -> Array:
        """Return the quantiles."""
        with np.errstate(divide="ignore"):
            return _STANDARD[self.name].ppf(p)

    ppf_left = ppf_right = ppf

    def pdf(self, z: Array) -> Array:
        """Return the density."""
        return _STANDARD[self.name].pdf(z)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent values."""
        values: Array = getattr(rng, _STANDARD[self.name].draw)(size=n)
        return values

    def least_slope(self, low: float, high: float) -> float:
        """Return the least density on [low, high], that of an end."""
        return float(min(self.pdf(np.asarray(low)), self.pdf(np.asarray(high))))


@dataclass(frozen=True)
class Lognormal(Standard):
    """The law of exp(sigma N) with N standard normal."""

    name: str = "lognormal"
    sigma: float = 1.0

    def cdf(self, z: Array) -> Array:
        """Return Phi(log(z)/sigma)."""
        with np.errstate(divide="ignore"):
            return special.ndtr(np.log(np.maximum(z, 0.0)) / self.sigma)

    def ppf(self, p: Array) -> Array:
        """Return exp(sigma Phi^-1(p))."""
        return np.exp(self.sigma * special.ndtri(p))

    ppf_left = ppf_right = ppf

    def pdf(self, z: Array) -> Array:
        """Return the density, 0 for z <= 0."""
        safe = np.where(z > 0, z, 1.0)
        score = np.log(safe) / self.sigma
        density = np.exp(-score * score / 2) / (safe * self.sigma * math.sqrt(2 * math.pi))
        return np.where(z > 0, density, 0.0)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return exponentials of normals."""
        return np.exp(self.sigma * rng.standard_normal(n))
