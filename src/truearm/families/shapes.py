"""Standard shapes of laws without atoms: distribution function, quantiles, density and robust moments.

A shape is a law in standard position; `truearm.families` moves and stretches it. Its m2 is the median
absolute deviation and m4 the median of the distance of |Z - median| from m2; where there is no closed form
they are found by bisection, to the last bit.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

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


class Shape(ABC):
    """A law without atoms in standard position; `truearm.families.Located` moves and stretches it."""

    @abstractmethod
    def cdf(self, z: Array) -> Array:
        """Return the distribution function."""

    @abstractmethod
    def ppf(self, p: Array) -> Array:
        """Return the quantiles at levels in [0, 1]."""

    @abstractmethod
    def pdf(self, z: Array) -> Array:
        """Return the density."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent values."""

    def ppf_left(self, p: Array) -> Array:
        """Return the lower ends of the quantile sets."""
        return self.ppf(p)

    def ppf_right(self, p: Array) -> Array:
        """Return the upper ends of the quantile sets."""
        return self.ppf(p)

    def least_slope(self, low: float, high: float) -> float:
        """Return the least density on [low, high]; that of an end, since the density has one mode."""
        return float(min(self.pdf(np.asarray(low)), self.pdf(np.asarray(high))))

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


@dataclass(frozen=True)
class Gaussian(Shape):
    """The standard normal law; m4 solves Phi(m2 + s) - Phi(m2 - s) = 1/4."""

    def cdf(self, z: Array) -> Array:
        """Return Phi."""
        return special.ndtr(z)

    def ppf(self, p: Array) -> Array:
        """Return the inverse of Phi."""
        return special.ndtri(p)

    def pdf(self, z: Array) -> Array:
        """Return phi."""
        return np.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return standard normals."""
        return rng.standard_normal(n)


@dataclass(frozen=True)
class Cauchy(Shape):
    """The standard Cauchy law."""

    m2 = 1.0
    m4 = math.sqrt(3) - 1  # audit 1.f

    def cdf(self, z: Array) -> Array:
        """Return 1/2 + arctan(z)/pi, without loss in the lower tail."""
        return np.arctan2(1.0, -z) / math.pi

    def ppf(self, p: Array) -> Array:
        """Return -cot(pi p)."""
        with np.errstate(divide="ignore"):
            tail = -1 / np.tan(math.pi * np.minimum(p, 1 - p))
        return np.where(p < 0.5, tail, np.where(p > 0.5, -tail, 0.0))

    def pdf(self, z: Array) -> Array:
        """Return 1/(pi (1 + z^2))."""
        return 1 / (math.pi * (1 + z * z))

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return ratios of normals."""
        return rng.standard_cauchy(n)


@dataclass(frozen=True)
class Laplace(Shape):
    """The law with density exp(-|z|)/2."""

    m2 = math.log(2)
    m4 = math.asinh(0.5)  # audit 1.f

    def cdf(self, z: Array) -> Array:
        """Return the distribution function."""
        tail = np.exp(-np.abs(z)) / 2
        return cast(Array, np.where(z < 0, tail, 1 - tail))

    def ppf(self, p: Array) -> Array:
        """Return the quantiles."""
        with np.errstate(divide="ignore"):
            tail = np.log(2 * np.minimum(p, 1 - p))
        return cast(Array, np.where(p < 0.5, tail, -tail))

    def pdf(self, z: Array) -> Array:
        """Return exp(-|z|)/2."""
        return np.exp(-np.abs(z)) / 2

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return Laplace variables."""
        return rng.laplace(size=n)


@dataclass(frozen=True)
class Logistic(Shape):
    """The law with distribution function 1/(1 + exp(-z))."""

    m2 = math.log(3)
    m4 = math.log((10 + math.sqrt(640)) / 18)  # audit 1.f

    def cdf(self, z: Array) -> Array:
        """Return the logistic function."""
        return special.expit(z)

    def ppf(self, p: Array) -> Array:
        """Return the logit."""
        with np.errstate(divide="ignore"):
            return cast(Array, np.log(p) - np.log1p(-p))

    def pdf(self, z: Array) -> Array:
        """Return F (1 - F)."""
        return special.expit(z) * special.expit(-z)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return logistic variables."""
        return rng.logistic(size=n)


@dataclass(frozen=True)
class Lognormal(Shape):
    """The law of exp(sigma N) with N standard normal."""

    sigma: float

    def cdf(self, z: Array) -> Array:
        """Return Phi(log(z)/sigma)."""
        with np.errstate(divide="ignore"):
            return special.ndtr(np.log(np.maximum(z, 0.0)) / self.sigma)

    def ppf(self, p: Array) -> Array:
        """Return exp(sigma Phi^-1(p))."""
        return cast(Array, np.exp(self.sigma * special.ndtri(p)))

    def pdf(self, z: Array) -> Array:
        """Return the density, 0 for z <= 0."""
        safe = np.where(z > 0, z, 1.0)
        score = np.log(safe) / self.sigma
        density = np.exp(-score * score / 2) / (safe * self.sigma * math.sqrt(2 * math.pi))
        return np.where(z > 0, density, 0.0)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return exponentials of normals."""
        return cast(Array, np.exp(self.sigma * rng.standard_normal(n)))


@dataclass(frozen=True)
class Frozen(Shape):
    """A continuous scipy.stats law; nothing is assumed of it beyond cdf, ppf, pdf and rvs."""

    frozen: Any

    def cdf(self, z: Array) -> Array:
        """Return the distribution function."""
        return np.asarray(self.frozen.cdf(z), dtype=float)

    def ppf(self, p: Array) -> Array:
        """Return a point of each quantile set."""
        return np.asarray(self.frozen.ppf(p), dtype=float)

    def pdf(self, z: Array) -> Array:
        """Return the density."""
        return np.asarray(self.frozen.pdf(z), dtype=float)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return what scipy draws from this generator."""
        return np.asarray(self.frozen.rvs(size=n, random_state=rng), dtype=float)

    @cached_property
    def _rounding(self) -> float:
        quarter, three_quarters = self.ppf(np.asarray([0.25, 0.75]))
        return 1e-9 * float(three_quarters - quarter)

    def ppf_left(self, p: Array) -> Array:
        """Return the lower ends, by bisection where the distribution function is flat."""
        middle = self.ppf(p)
        return self._edge(middle, self.ppf(np.maximum(p - SAME_LEVEL, 0.0)), lambda z: self.cdf(z) >= p)

    def ppf_right(self, p: Array) -> Array:
        """Return the upper ends, by bisection where the distribution function is flat."""
        middle = self.ppf(p)
        return self._edge(middle, self.ppf(np.minimum(p + SAME_LEVEL, 1.0)), lambda z: self.cdf(z) <= p)

    def _edge(self, inside: Array, outside: Array, flat: Callable[[Array], NDArray[np.bool_]]) -> Array:
        far = np.where(np.isfinite(inside) & np.isfinite(outside), outside, inside)
        if np.all(np.abs(far - inside) <= self._rounding):
            return inside
        end = last_true_each(flat, inside, far, accuracy=np.abs(far - inside) * 2.0**-60)
        return np.where(np.abs(end - inside) <= self._rounding, inside, end)

    def least_slope(self, low: float, high: float) -> float:
        """Return the least density on [low, high], by ever finer grids around the lowest point."""
        inset = SAME_LEVEL * (high - low)  # rounding must not step off the end of the support
        start, stop = low + inset, high - inset
        grid = np.unique(np.concatenate([np.linspace(start, stop, 4097), self._levels(start, stop)]))
        for _ in range(12):
            density = self.pdf(grid)
            lowest = int(np.argmin(density))
            start, stop = grid[max(lowest - 1, 0)], grid[min(lowest + 1, grid.size - 1)]
            grid = np.linspace(start, stop, 65)
        return float(density[lowest])

    def _levels(self, low: float, high: float) -> Array:
        ends = self.cdf(np.asarray([low, high]))
        return np.clip(self.ppf(np.linspace(ends[0], ends[1], 1025)), low, high)
