"""Laws of readings: quantiles from both sides, robust moments, and the paper's two families of laws.

A law has m1, the set of its medians; m2, its median absolute deviation; and m4, the median absolute
deviation of the distance to the median. Definition 2 requires the distribution function F to rise with slope
at least 1/(B m2) between the quantiles 1/2 - reach and 1/2 + reach; Definition 3 requires it also within 2 m2
of the median. The least slope of F between two points of an interval is the essential infimum of F' there
(F grows at least by the integral of F', and F' is a limit of slopes), so atoms neither help nor hurt.

Quantiles are Q_L(p) = inf{F >= p} and Q_R(p) = inf{F > p}; hence Q_L(0) = -inf and Q_R(1) = +inf.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.bounds import special
from truearm.bounds.contamination import as_array
from truearm.bounds.search import first_true
from truearm.errors import InvalidArgument
from truearm.problem import Interval, Regularity, as_number, as_text, check_positive, check_reach, require

__all__ = [
    "Law",
    "Located",
    "Numbers",
    "Piecewise",
    "cauchy",
    "discrete",
    "empirical",
    "gaussian",
    "laplace",
    "logistic",
    "lognormal",
    "of",
    "piecewise",
    "smoothed_bernoulli",
    "uniform",
]

Array: TypeAlias = NDArray[np.float64]
Numbers = TypeVar("Numbers", float, Array)
Side = Literal["left", "right"]

SAME_LEVEL = 1e-12  # levels nearer than this are one level, so that five weights of 0.1 reach 1/2
MAX_ATOMS = 2**20  # a discrete law from scipy.stats is tabulated; beyond this it would not fit in a cache
MAX_LOG = 700  # of a lognormal median: exp(709.8) overflows, and other quantiles need room too


class Law(ABC):
    """The law of the true readings of one arm, with atoms allowed.

    Functions of a law accept a float or an array and return the same. Where the median is not unique, m2 and m4
    are computed around its midpoint, and are themselves midpoints, as for the medians of data.

    >>> law = gaussian(10.0, 2.0)
    >>> law.m1
    Interval(low=10.0, high=10.0)
    >>> round(law.m2, 4), round(law.m4, 4), round(law.minimal_kappa(), 4)
    (1.349, 0.7982, 1.6901)
    >>> round(law.minimal_B(0.25), 4), round(law.minimal_B(0.25, mad=True), 4)
    (4.6655, 9.2314)
    >>> law.belongs(Regularity(B=4.7, m2=1.4, reach=0.25))
    True
    """

    @abstractmethod
    def _cdf(self, x: Array, side: Side) -> Array: ...

    @abstractmethod
    def _ppf(self, p: Array, side: Side) -> Array: ...

    @abstractmethod
    def _pdf(self, x: Array) -> Array: ...

    @property
    @abstractmethod
    def _moments(self) -> tuple[float, float]: ...

    @abstractmethod
    def _affine(self, a: float, b: float) -> "Law": ...

    def affine(self, a: float, b: float = 0.0) -> "Law":
        """Return the law of a Y + b, a not 0 (Lemma 23 item 1: the families are closed under it)."""
        check_positive("abs(a)", abs(as_number("a", a, "use a number other than 0")))
        return self._affine(a, _check_finite("b", b))

    @abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent readings."""

    @abstractmethod
    def least_slope(self, low: float, high: float) -> float:
        """Return the least slope of F between two points of [low, high], inf for a single point."""

    def cdf(self, x: Numbers) -> Numbers:
        """Return P(Y <= x)."""
        return as_given(x, self._cdf(as_array("x", x), "right"))

    def cdf_left(self, x: Numbers) -> Numbers:
        """Return P(Y < x)."""
        return as_given(x, self._cdf(as_array("x", x), "left"))

    def ppf_left(self, p: Numbers) -> Numbers:
        """Return Q_L(p) = inf{x: F(x) >= p}."""
        levels = as_array("p", p)
        inner = np.where(levels > 1, math.inf, self._ppf(np.clip(levels, 0.0, 1.0), "left"))
        return as_given(p, np.where(levels <= 0, -math.inf, inner))

    def ppf_right(self, p: Numbers) -> Numbers:
        """Return Q_R(p) = inf{x: F(x) > p}."""
        levels = as_array("p", p)
        inner = np.where(levels >= 1, math.inf, self._ppf(np.clip(levels, 0.0, 1.0), "right"))
        return as_given(p, np.where(levels < 0, -math.inf, inner))

    def pdf(self, x: Numbers) -> Numbers:
        """Return the density of the continuous part; atoms have none."""
        return as_given(x, self._pdf(as_array("x", x)))

    @property
    def m1(self) -> Interval:
        """The whole set of medians, [Q_L(1/2), Q_R(1/2)]."""
        return Interval(self.ppf_left(0.5), self.ppf_right(0.5))

    @property
    def median(self) -> float:
        """The midpoint of the set of medians."""
        low, high = self.m1
        return low + (high - low) / 2

    @property
    def m2(self) -> float:
        """The median absolute deviation, around the median."""
        return self._moments[0]

    @property
    def m4(self) -> float:
        """The median of the distance of |Y - m1| from m2; at most m2 (erratum E11)."""
        return self._moments[1]

    def minimal_kappa(self) -> float:
        """Return the least kappa with m2 <= kappa m4, at least 1 (erratum E11), inf when m4 = 0."""
        return self.m2 / self.m4 if self.m4 > 0 else math.inf

    def minimal_B(self, reach: float, mad: bool = False) -> float:  # noqa: N802 - the paper's letter
        """Return the least B for which the law is in the family of Definition 2, or with `mad` of Definition 3.

        It is inf when no B works: the median is not unique, m2 = 0, or F is flat somewhere in the
        interval, as between the atoms of a discrete law. It is 0 when the interval of Definition 2 is one
        atom, on which every B works. Definition 3 needs B >= 4.

        The reach, the paper's t-bar, is how far from the median, in quantile levels, F must rise.
        """
        t = check_reach(reach)
        m, m2 = self.median, self.m2
        if self.m1.width > 0 or m2 == 0:
            return math.inf
        low, high = self.ppf_left(0.5 - t), self.ppf_right(0.5 + t)
        if mad:
            low, high = min(low, m - 2 * m2), max(high, m + 2 * m2)
        slope = self.least_slope(low, high)
        return 1 / (m2 * slope) if slope > 0 else math.inf  # Def. 2: slope >= 1/(B m2)

    def belongs(self, regularity: Regularity, kappa: float | None = None) -> bool:
        """Return True if the law is in the family of Definition 2, or with kappa of 3, up to rounding."""
        rounding = 1 + SAME_LEVEL
        regular = (
            self.minimal_B(regularity.reach, mad=kappa is not None) <= regularity.B * rounding
            and self.m2 <= regularity.m2 * rounding
        )
        return regular and (kappa is None or self.minimal_kappa() <= kappa * rounding)


def as_given(x: Numbers, values: ArrayLike) -> Numbers:
    """Return values as a float if x is a number, else as an array."""
    array = np.asarray(values, dtype=float)
    return cast(Numbers, float(array) if np.ndim(x) == 0 else array)


class _Functions(NamedTuple):
    cdf: Callable[[Array], Array]
    ppf: Callable[[Array], Array]
    logpdf: Callable[[Array], Array]
    draw: str  # of numpy's generator


_STANDARD = {
    "gaussian": _Functions(
        special.ndtr, special.ndtri, lambda z: -z * z / 2 - math.log(2 * math.pi) / 2, "standard_normal"
    ),
    "cauchy": _Functions(
        lambda z: np.arctan2(1.0, -z) / math.pi,
        lambda p: np.where(p == 0.5, 0.0, np.sign(p - 0.5) / np.tan(math.pi * np.minimum(p, 1 - p))),
        lambda z: -np.log(math.pi * (1 + z * z)),
        "standard_cauchy",
    ),
    "laplace": _Functions(
        lambda z: np.where(z < 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2),
        lambda p: np.where(p < 0.5, np.log(2 * p), -np.log(2 - 2 * p)),
        lambda z: -np.abs(z) - math.log(2),
        "laplace",
    ),
    "logistic": _Functions(
        special.expit, special.logit, lambda z: -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z))), "logistic"
    ),
}


@dataclass(frozen=True)
class Shape:
    """The law of Z, which is "gaussian", "cauchy", "laplace" or "logistic", or with a sigma that of exp(sigma Z).

    It has the functions of a frozen law of scipy.stats, whose calls take fifty times as long. The density
    rises to one mode and then falls. It is known by name, so that it can be pickled.
    """

    name: str
    sigma: float | None = None

    def cdf(self, z: Array) -> Array:
        """Return the distribution function."""
        with np.errstate(divide="ignore"):
            return _STANDARD[self.name].cdf(z if self.sigma is None else np.log(np.maximum(z, 0.0)) / self.sigma)

    def ppf(self, p: Array) -> Array:
        """Return the quantiles at levels in [0, 1]."""
        with np.errstate(divide="ignore"):
            found = _STANDARD[self.name].ppf(p)
        return found if self.sigma is None else np.exp(self.sigma * found)

    def logpdf(self, z: Array) -> Array:
        """Return the logarithm of the density."""
        if self.sigma is None:
            return _STANDARD[self.name].logpdf(z)
        logs = np.log(np.where(z > 0, z, 1.0))
        density = _STANDARD[self.name].logpdf(logs / self.sigma) - math.log(self.sigma) - logs
        return np.where(z > 0, density, -math.inf)

    def pdf(self, z: Array) -> Array:
        """Return the density."""
        return np.exp(self.logpdf(z))

    def rvs(self, size: int, random_state: np.random.Generator) -> Array:
        """Return independent values."""
        values: Array = getattr(random_state, _STANDARD[self.name].draw)(size=size)
        return values if self.sigma is None else np.exp(self.sigma * values)


@dataclass(frozen=True)
class Located(Law):
    """The law of loc + scale S for a law S without atoms; a negative scale mirrors it.

    `shape` is S: a frozen law of scipy.stats, or one with the same functions.
    """

    shape: Any
    loc: float = 0.0
    scale: float = 1.0

    def _standard(self, x: ArrayLike) -> Array:
        return (np.asarray(x, dtype=float) - self.loc) / self.scale

    def _cdf(self, x: Array, side: Side) -> Array:  # noqa: ARG002 - there are no atoms
        below = np.asarray(self.shape.cdf(self._standard(x)))
        return below if self.scale > 0 else 1 - below

    def _ppf(self, p: Array, side: Side) -> Array:
        if self.scale < 0:
            p, side = 1 - p, "right" if side == "left" else "left"
        return self.loc + self.scale * _quantile_end(self.shape, p, side)

    def _pdf(self, x: Array) -> Array:
        return np.asarray(self.shape.pdf(self._standard(x)) / abs(self.scale))

    def _affine(self, a: float, b: float) -> Law:
        return Located(self.shape, a * self.loc + b, a * self.scale)

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        return self.loc + self.scale * np.asarray(self.shape.rvs(size=n, random_state=rng), dtype=float)

    @property
    def _moments(self) -> tuple[float, float]:
        m2, m4 = _standard_moments(self.shape)
        return abs(self.scale) * m2, abs(self.scale) * m4

    def least_slope(self, low: float, high: float) -> float:
        start, stop = sorted(self._standard([low, high]).tolist())
        pdf = self.shape.pdf
        if isinstance(self.shape, Shape):  # one peak
            return float(pdf(np.asarray([start, stop])).min()) / abs(self.scale)
        inset = SAME_LEVEL * (stop - start)  # rounding must not step off the end of the support
        start, stop = start + inset, stop - inset
        below, upto = self.shape.cdf([start, stop])
        by_level = self.shape.ppf(np.linspace(below, upto, 1025))
        grid = np.unique(np.concatenate([np.linspace(start, stop, 4097), np.clip(by_level, start, stop)]))
        for _ in range(12):  # grids around the lowest point, each 32 times finer: to the last bit
            lowest = int(np.argmin(pdf(grid)))
            start, stop = grid[max(lowest - 1, 0)], grid[min(lowest + 1, grid.size - 1)]
            least, grid = float(pdf(grid[lowest])), np.linspace(start, stop, 65)
        return least / abs(self.scale)


def _quantile_end(shape: Any, p: Array, side: Side) -> Array:  # noqa: ANN401 - as in `Located`
    """Return one end of each quantile set, which is more than a point where the distribution function is flat."""
    inside = np.asarray(shape.ppf(p))
    if isinstance(shape, Shape):
        return inside
    end = shape.ppf(np.clip(p - SAME_LEVEL if side == "left" else p + SAME_LEVEL, 0.0, 1.0))
    rounding = 1e-9 * float(np.ptp(shape.ppf([0.25, 0.75])))  # quantiles of scipy.stats are no more exact
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(end) & (np.abs(end - inside) > rounding), end, inside)


@lru_cache(maxsize=64)
def _standard_moments(shape: Any) -> tuple[float, float]:  # noqa: ANN401
    """Return m2 and m4 of a law without atoms, by bisection to the last bit."""
    m = Located(shape).median

    def mass(low: float, high: float) -> float:
        ends = shape.cdf(np.asarray([low, high]))
        return float(ends[1] - ends[0])

    def near(s: float) -> float:
        inner = max(m2 - s, 0.0)
        return mass(m + inner, m + m2 + s) + mass(m - m2 - s, m - inner)

    quarter, three_quarters = shape.ppf(np.asarray([0.25, 0.75]))
    m2 = _median_of(lambda r: mass(m - r, m + r), 2 * float(max(three_quarters - m, m - quarter)))
    return m2, _median_of(near, m2)


def _median_of(rise: Callable[[float], float], high: float) -> float:
    """Return the midpoint of the set where a nondecreasing function passes 1/2."""
    first = first_true(lambda r: rise(r) >= 0.5, 0.0, high)
    last = first_true(lambda r: rise(r) > 0.5, first, high)
    return first + (last - first) / 2


@dataclass(frozen=True, eq=False)
class Piecewise(Law):
    """A law made of atoms at its knots and of uniform pieces between neighboring knots."""

    knots: Array
    jumps: Array  # the mass of the atom at each knot
    masses: Array  # the mass spread evenly between each knot and the next

    @cached_property
    def _levels(self) -> Array:
        """F just below each knot and at it, knot after knot."""
        steps = np.zeros(2 * self.knots.size)
        steps[1::2], steps[2::2] = self.jumps, self.masses
        levels = np.cumsum(steps)
        return np.asarray(levels / levels[-1])

    @cached_property
    def _densities(self) -> Array:
        return np.asarray((self._levels[2::2] - self._levels[1:-1:2]) / np.diff(self.knots))

    def _cdf(self, x: Array, side: Side) -> Array:
        at = np.clip(np.searchsorted(self.knots, x), 0, self.knots.size - 1)
        between = np.interp(x, np.repeat(self.knots, 2), self._levels, left=0.0, right=1.0)
        return np.where(self.knots[at] == x, self._levels[2 * at + (side == "right")], between)

    def _ppf(self, p: Array, side: Side) -> Array:
        slack, levels = SAME_LEVEL if side == "right" else -SAME_LEVEL, self._levels
        at = np.clip(np.searchsorted(levels, p + slack, side) - (side == "right"), 0, levels.size - 1)
        between = np.interp(p, levels, np.repeat(self.knots, 2))
        return np.where(np.abs(levels[at] - p) <= SAME_LEVEL, self.knots[at // 2], between)

    def _pdf(self, x: Array) -> Array:  # from the right at a knot
        return np.concatenate([[0.0], self._densities, [0.0]])[np.searchsorted(self.knots, x, side="right")]

    def _affine(self, a: float, b: float) -> Law:
        order = slice(None) if a > 0 else slice(None, None, -1)
        return Piecewise((a * self.knots + b)[order], self.jumps[order], self.masses[order])

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        return self.ppf_left(1 - rng.random(n))  # levels in (0, 1]

    def _fold(self, center: float) -> "Piecewise":
        """Return the law of |Y - center|."""
        low, high = self.knots[:-1], self.knots[1:]
        middle = np.clip(center, low, high)  # where a piece is folded
        left = np.stack([center - middle, center - low, self._densities * (middle - low)], axis=1)
        right = np.stack([middle - center, high - center, self._densities * (high - middle)], axis=1)
        atoms = np.stack([np.abs(self.knots - center), self._levels[1::2] - self._levels[::2]], axis=1)
        bars = np.concatenate([left, right])
        return _assemble(atoms[self.jumps > 0], bars[(bars[:, 2] > 0) & (bars[:, 1] > bars[:, 0])])

    @cached_property
    def _moments(self) -> tuple[float, float]:
        distance = self._fold(self.median)
        return distance.median, distance._fold(distance.median).median

    def least_slope(self, low: float, high: float) -> float:
        if low >= high:
            return math.inf
        rounding = SAME_LEVEL * (high - low)
        if low < self.knots[0] - rounding or high > self.knots[-1] + rounding:
            return 0.0
        overlap = np.minimum(self.knots[1:], high) - np.maximum(self.knots[:-1], low)
        return float(np.min(self._densities[overlap > rounding], initial=math.inf))


def _assemble(atoms: Array, bars: Array) -> Piecewise:
    knots = np.unique(np.concatenate([atoms[:, 0], bars[:, 0], bars[:, 1]]))
    jumps = np.zeros(knots.size)
    np.add.at(jumps, np.searchsorted(knots, atoms[:, 0]), atoms[:, 1])
    starts, ends = np.searchsorted(knots, bars[:, 0]), np.searchsorted(knots, bars[:, 1])
    density = bars[:, 2] / (bars[:, 1] - bars[:, 0])
    change, active = np.zeros(knots.size), np.zeros(knots.size, dtype=int)
    for places, sign in ((starts, 1), (ends, -1)):
        np.add.at(change, places, sign * density)
        np.add.at(active, places, sign)
    # the running sum of densities is exact only where no bar is active, and there it must be
    height = np.where(np.cumsum(active) > 0, np.cumsum(change), 0.0)[:-1]
    return Piecewise(knots, jumps, height * np.diff(knots))


def _as_rows(name: str, rows: Iterable[Sequence[float]], columns: Sequence[str]) -> Array:
    """Return tuples of numbers as rows."""
    try:
        return np.asarray(list(rows), dtype=float).reshape(-1, len(columns))
    except (TypeError, ValueError, MemoryError):
        msg = f"{name} must be a list of ({', '.join(columns)}), but got {as_text(rows)}"
        raise InvalidArgument(msg, name, rows) from None


def piecewise(
    *,
    atoms: Iterable[tuple[float, float]] = (),
    bars: Iterable[tuple[float, float, float]] = (),
) -> Law:
    """Return the law made of atoms (value, mass) and uniform bars (low, high, mass); bars may overlap.

    Masses are divided by their sum; those that are 0 are dropped.

    >>> piecewise(bars=[(0.0, 1.0, 0.5), (3.0, 4.0, 0.5)]).m1
    Interval(low=1.0, high=3.0)
    """
    points, blocks = _as_rows("atoms", atoms, ("value", "mass")), _as_rows("bars", bars, ("low", "high", "mass"))
    masses = np.concatenate([points[:, 1], blocks[:, 2]])
    is_finite = np.all(np.isfinite(points)) and np.all(np.isfinite(blocks))
    require(is_finite, "atoms and bars", [points.tolist(), blocks.tolist()], "be finite numbers")
    require(np.all(masses >= 0) and np.any(masses > 0), "masses", masses.tolist(), "be >= 0 and not all 0")
    require(np.all(blocks[:, 0] < blocks[:, 1]), "bars", blocks.tolist(), "each have low < high")
    return _assemble(points[points[:, 1] > 0], blocks[blocks[:, 2] > 0])


def _check_finite(name: str, value: float) -> float:
    number = as_number(name, value, "use a number such as 0")
    require(math.isfinite(number), name, value, "be finite")
    return number


def _locate(shape: str, loc: float, scale: float) -> Law:
    return Located(Shape(shape), _check_finite("loc", loc), check_positive("scale", scale))


def gaussian(loc: float = 0.0, scale: float = 1.0) -> Law:
    """Return the normal law with that mean and standard deviation.

    >>> round(gaussian().m2, 10)
    0.6744897502
    """
    return _locate("gaussian", loc, scale)


def cauchy(loc: float = 0.0, scale: float = 1.0) -> Law:
    """Return the Cauchy law.

    >>> round(cauchy().minimal_B(0.25, mad=True), 6)
    15.707963
    """
    return _locate("cauchy", loc, scale)


def laplace(loc: float = 0.0, scale: float = 1.0) -> Law:
    """Return the law with density exp(-|x - loc|/scale)/(2 scale).

    >>> round(laplace().m2, 6)
    0.693147
    """
    return _locate("laplace", loc, scale)


def logistic(loc: float = 0.0, scale: float = 1.0) -> Law:
    """Return the logistic law.

    >>> round(logistic().m2, 6)
    1.098612
    """
    return _locate("logistic", loc, scale)


def lognormal(mu: float = 0.0, sigma: float = 1.0) -> Law:
    """Return the law of exp(mu + sigma N), whose median is exp(mu).

    >>> lognormal(0.0, 1.0).m1
    Interval(low=1.0, high=1.0)
    """
    is_inside = abs(_check_finite("mu", mu)) <= MAX_LOG
    require(is_inside, "mu", mu, f"be between -{MAX_LOG} and {MAX_LOG}", "use other units")
    return Located(Shape("gaussian", check_positive("sigma", sigma)), 0.0, math.exp(mu))


def uniform(low: float = 0.0, high: float = 1.0) -> Law:
    """Return the uniform law on [low, high].

    >>> uniform().m2, uniform().m4, uniform().minimal_kappa()
    (0.25, 0.125, 2.0)
    """
    start, stop = _check_finite("low", low), _check_finite("high", high)
    require(start < stop, "low and high", (low, high), "have low < high")
    return piecewise(bars=[(start, stop, 1.0)])


def smoothed_bernoulli(p: float, *, weight: float = 0.5) -> Law:
    """Return (1 - weight) Bernoulli(p) + weight Uniform[0, 1]; at weight 1/2 its median is p.

    The paper's lower bounds use weight 1/2, the repaired ones 3/4 (audit 1.h).

    >>> smoothed_bernoulli(0.5).m1
    Interval(low=0.5, high=0.5)
    """
    require(0 <= _check_finite("p", p) <= 1, "p", p, "be in [0, 1]")
    require(0 < _check_finite("weight", weight) <= 1, "weight", weight, "be in (0, 1]")
    return piecewise(atoms=[(0.0, (1 - weight) * (1 - p)), (1.0, (1 - weight) * p)], bars=[(0.0, 1.0, weight)])


def discrete(values: Sequence[float] | Array, weights: Sequence[float] | Array) -> Law:
    """Return the law with those atoms; weights are divided by their sum.

    >>> discrete([0, 1, 2, 3], [1, 1, 1, 1]).m1
    Interval(low=1.0, high=2.0)
    """
    places, masses = as_array("values", values), as_array("weights", weights)
    is_each = places.ndim == 1 and places.shape == masses.shape
    require(is_each, "values and weights", (places.shape, masses.shape), "be lists of equal lengths")
    return piecewise(atoms=zip(places, masses, strict=True))


def empirical(values: Sequence[float] | Array) -> Law:
    """Return the law that draws one of the values at random, with replacement.

    >>> empirical([3.0, 1.0, 2.0, 2.0]).m1
    Interval(low=2.0, high=2.0)
    """
    readings = as_array("values", values).ravel()
    is_law = readings.size > 0 and np.all(np.isfinite(readings))
    require(is_law, "values", readings[:5].tolist(), "be at least one finite number")
    knots, counts = np.unique(readings, return_counts=True)
    return Piecewise(knots, counts.astype(float), np.zeros(knots.size - 1))


def of(frozen: Any) -> Law:  # noqa: ANN401 - scipy.stats is not imported here, so its types have no name
    """Return the law of a frozen `scipy.stats` distribution; laws of this module pass unchanged.

    Moments and minimal B are computed numerically, to a relative error of about 1e-9. Discrete laws
    become tables, without tails of mass below 1e-12.

    >>> from scipy import stats
    >>> round(of(stats.expon()).m2, 6)
    0.481212
    """
    if isinstance(frozen, Law):
        return frozen
    if all(hasattr(frozen, name) for name in ("dist", "cdf", "ppf", "pdf", "rvs")):
        return Located(frozen)
    is_discrete = all(hasattr(frozen, name) for name in ("dist", "pmf", "ppf", "support"))
    require(is_discrete, "frozen", frozen, "be a frozen scipy.stats distribution", "use stats.norm(0, 1)")
    low, high = (float(end) for end in frozen.support())
    listed = getattr(frozen.dist, "xk", None)
    if listed is not None:
        values = np.asarray(listed, dtype=float) + (low - float(np.min(listed)))
        return discrete(values, np.asarray(frozen.pmf(values), dtype=float))
    center, width = float(frozen.ppf(0.5)), 64
    while width <= MAX_ATOMS:
        values = np.arange(max(low, center - width), min(high, center + width) + 1)
        weights = np.asarray(frozen.pmf(values), dtype=float)
        if values.size > high - low or weights.sum() >= 1 - SAME_LEVEL:
            return discrete(values, weights)
        width *= 2
    msg = f"of() takes discrete laws with at most {MAX_ATOMS} atoms on each side of the median; this one has more"
    raise InvalidArgument(f"{msg}; truncate it yourself with discrete(values, weights)", "frozen", frozen)
