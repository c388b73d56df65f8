"""Limits: how many pulls any method needs, from the laws of the readings alone.

A method that errs with chance at most delta must be able to rule out every world in which its answer is
wrong. For a cut of the line into L and U, the cheapest such world for rival j lifts the mass of L under the
best arm to p- and that of U under j to p+, at the cost kl^-(P(S), p) = kl(P(S), p) where P(S) < p, and 0
elsewhere. Hence

    1/T = max over shares w of min over rivals j and cuts of w_1 kl^-(P_1(L), p-) + w_j kl^-(P_j(U), p+),

and the expected number of pulls is at least T kl(delta, 1 - delta) (evidence section 3).

Write d_1 and d_j for the two costs and r_j = w_j/w_1. The least r_j that gives every cut of rival j the cost
y is r_j(y) = max over cuts of (y - d_1)/d_j, convex in y, and T = min over y of (1 + sum r_j(y))/y. The
minimum is where the sum of d_1/d_j over the maximizing cuts passes 1, which bisection finds; cuts are added
around the maximizing ones until these are known well enough.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py

from truearm.bounds import shift
from truearm.errors import InvalidArgument
from truearm.evidence import Levels
from truearm.families import Law, Located, Piecewise
from truearm.lab.adversaries import Attack, Observed
from truearm.lab.arms import Instance
from truearm.lower_bounds import contaminated_lower_bound, lifting
from truearm.problem import Contamination, Tolerance, check_delta, check_eps, check_reach
from truearm.shapes import SAME_LEVEL, Array, Gaussian, Laplace, Logistic, Shape, first_true

Costs: TypeAlias = Callable[[int, Array], tuple[Array, Array]]  # rival, cuts -> d_1, d_j

_FIRST = 129  # first cuts: so many evenly in value, and as many evenly in the level of each law
_ADDED = 31  # cuts added around a maximizing one in a round; the spacing shrinks by 8
_ROUNDS = 12
_SETTLED = 1e-7  # of the range of the cuts; the shares are then as exact, and T to the square of it
_TAIL = 1e-13  # cuts beyond these quantiles of every law are not searched
_FAR = 40.0  # in units of scale; the tails of all known shapes are below e^-40 there


def kl(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of Bernoulli(q) from Bernoulli(p), in nats.

    Examples
    --------
    >>> round(kl(0.05, 0.95), 6)
    2.649995
    """
    if q in (0, 1):
        return 0.0 if p == q else math.inf
    return float(_divergence(np.asarray(p, dtype=float), np.asarray(q, dtype=float)))


def _excess(u: Array) -> Array:
    """Return (1 + u) log(1 + u) - u, by the series of atanh(u/(2 + u)) where the difference would cancel."""
    s = np.where(np.abs(u) < 0.3, u / (2 + u), 0.0)
    tail = np.polynomial.polynomial.polyval(s * s, [1 / odd for odd in range(3, 25, 2)])
    series = 2 * s * s * (1 + s * (1 + s) * tail) / (1 - s)
    return np.where(np.abs(u) < 0.3, series, xlog1py(1 + u, u) - u)


def _divergence(p: Array, q: Array) -> Array:
    gap = p - q  # both terms are >= 0, so nothing cancels
    return q * _excess(gap / q) + (1 - q) * _excess(-gap / (1 - q))


def _cost(mass: Array, level: float) -> Array:
    return _divergence(np.minimum(mass, level), np.asarray(level))  # kl^-, evidence section 3


@dataclass(frozen=True)
class Limit:
    """The characteristic time of a problem, and the shares of pulls that attain it.

    Parameters
    ----------
    time
        The characteristic time T; inf when no method can decide.
    weights
        Optimal share of the pulls for each arm, in the order of the arms; NaN when the time is inf.
    answer
        The arm that these shares certify.
    answers
        How many arms can be certified as right; more than one only with a tolerance.
    others
        How many arms may each be answered with chance delta though they cannot be certified.

    Examples
    --------
    >>> from truearm.lab.arms import instance
    >>> round(limit(instance("G2")).time, 6)
    50.982798
    """

    time: float
    weights: tuple[float, ...]
    answer: int
    answers: int = 1
    others: int = 1

    def pulls(self, delta: float) -> float:
        """Return the least expected number of pulls of any method that errs with chance at most delta.

        With several right answers some one of them is given with chance at least 1/answers, less what the
        others may take, and the bound is weaker than T log(1/delta) by about that factor (docs/limits.md).

        Examples
        --------
        >>> from truearm.lab.arms import instance
        >>> round(limit(instance("G2")).pulls(0.05), 6)
        135.104163
        """
        chance = (1 - check_delta(delta) * self.others) / self.answers
        return self.time * kl(chance, delta) if chance > delta else 0.0  # evidence section 3, docs/limits.md


def limit(
    instance: Instance,
    attack: Attack | None = None,
    *,
    contamination: float | Contamination | None = None,
    tolerance: float | Tolerance = 0.0,
) -> Limit:
    """Return the limit of an instance under a stationary attack.

    Parameters
    ----------
    attack
        What the readings suffer; None takes the instance's own attack, or none.
    contamination
        What the method must allow for. None is the paper's promise, that the arms are separated whatever the
        attack does; otherwise decisions must be certified against this contamination.
    tolerance
        Absolute; arms this close to the best are right answers too.

    Examples
    --------
    >>> from truearm.lab.adversaries import worst
    >>> from truearm.lab.arms import instance
    >>> pair = instance("G2")
    >>> round(limit(pair, worst(pair, 0.05)).time, 4)
    105.3857
    >>> round(limit(pair, worst(pair, 0.05), contamination=0.05).time, 4)
    259.2232
    """
    within = Tolerance.of(tolerance)
    if within.relative:
        msg = f"tolerance={tolerance!r} must be absolute here; a relative one is absolute for log-readings"
        raise InvalidArgument(msg)
    seen = observed(instance, attack)
    levels = Levels.of(instance.quantile, Contamination.of(contamination))
    if not within:
        return characteristic_time(seen, levels, best=instance.best)
    found = [characteristic_time(seen, levels, best=arm, tolerance=within.amount) for arm in range(len(seen))]
    certified = [one for one in found if math.isfinite(one.time)]
    if not certified:
        return found[instance.best]
    easiest = min(certified, key=lambda one: one.time)
    return replace(easiest, answers=len(certified), others=max(1, len(found) - len(certified)))


def observed(instance: Instance, attack: Attack | None = None) -> tuple[Observed, ...]:
    """Return the laws of the readings of all arms of an instance.

    Examples
    --------
    >>> from truearm.lab.arms import confounded
    >>> [round(law.cdf(1.0), 6) for law in observed(confounded(0.2))]
    [0.9, 0.9]
    """
    source = attack or instance.attack
    if source is None:
        return tuple(Observed(law) for law in instance.arms)
    return tuple(source.observed(law, arm) for arm, law in enumerate(instance.arms))


def characteristic_time(
    laws: Sequence[Observed | Law], levels: Levels, *, best: int = 0, tolerance: float = 0.0
) -> Limit:
    """Return the least T with which arm `best` can be told to be within the tolerance of every other.

    Parameters
    ----------
    laws
        The laws of the readings as they are seen.
    levels
        Least masses of L and U in the worlds to be ruled out.

    Examples
    --------
    >>> from truearm import families
    >>> two = [families.uniform(0.2, 1.2), families.uniform(0.0, 1.0)]
    >>> round(characteristic_time(two, Levels(0.5, 0.5)).time, 4)
    49.6635
    """
    seen = [law if isinstance(law, Observed) else Observed(law) for law in laws]
    rivals = [arm for arm in range(len(seen)) if arm != best]
    never = Limit(math.inf, (math.nan,) * len(seen), best)
    if not rivals:
        return Limit(0.0, (1.0,), best)
    leader, others = seen[best], [_moved(seen[arm], -tolerance) for arm in rivals]
    if _mass(leader, -math.inf) >= levels.low or any(_mass(law, math.inf) >= levels.high for law in others):
        return never  # also when a level is 0 or less
    high = _last_cut(leader, levels.low)
    if any(other.cdf(high) <= 1 - levels.high + SAME_LEVEL for other in others):
        return never  # at this cut both masses are large enough: evidence section 8
    cuts = [_cuts(leader, other, _first_cut(other, levels.high), high) for other in others]

    def costs(rival: int, x: Array) -> tuple[Array, Array]:
        other = others[rival]
        own = np.concatenate([leader.cdf_left(x), leader.cdf(x)])
        theirs = 1 - np.concatenate([other.cdf_left(x), other.cdf(x)])
        return _cost(own, levels.low), _cost(theirs, levels.high)

    time, ratios = _solved(costs, cuts)
    weights = np.ones(len(seen))
    weights[rivals] = ratios
    return Limit(time, tuple((weights / weights.sum()).tolist()), best)


def _moved(law: Observed, by: float) -> Observed:
    if by == 0:
        return law
    bad = law.bad.affine(1.0, by) if isinstance(law.bad, Law) else law.bad + by
    return Observed(law.clean.affine(1.0, by), law.eps, bad, law.spoils)


def _mass(law: Observed, infinity: float) -> float:
    return law.eps if law.bad == infinity else 0.0


def _ends(law: Observed) -> tuple[float, float]:
    parts = [law.clean, law.bad] if isinstance(law.bad, Law) else [law.clean]
    points = [law.bad] if isinstance(law.bad, float) and math.isfinite(law.bad) else []
    lows = [part.ppf_right(_TAIL) for part in parts] + points
    highs = [part.ppf_left(1 - _TAIL) for part in parts] + points
    return min(lows), max(highs)


def _last_cut(law: Observed, level: float) -> float:
    """Return the lowest x with P(X <= x) >= level, to the last bit."""
    return first_true(lambda x: law.cdf(x) >= level, *_ends(law))


def _first_cut(law: Observed, level: float) -> float:
    """Return the lowest x with P(X > x) < level, to the last bit."""
    return first_true(lambda x: 1 - law.cdf(x) < level, *_ends(law))


def _cuts(leader: Observed, other: Observed, low: float, high: float) -> Array:
    if low >= high:
        return np.asarray([high])
    points = [np.linspace(low, high, _FIRST)]
    parts: list[Law | float] = [leader.clean, other.clean, leader.bad, other.bad]
    for part in parts:
        if isinstance(part, Law):
            points.append(part.ppf_left(np.linspace(part.cdf(low), part.cdf(high), _FIRST)))
            points.append(part.knots if isinstance(part, Piecewise) else np.empty(0))
        else:
            points.append(np.asarray([part]))
    return np.unique(np.clip(np.concatenate(points), low, high))


class _Table(NamedTuple):
    """Cuts and their two costs, one row for each rival; every cut is there left and right closed."""

    cuts: Array
    own: Array
    theirs: Array

    @classmethod
    def of(cls, costs: Costs, x: Array) -> "_Table":
        pairs = [costs(rival, row) for rival, row in enumerate(x)]
        return cls(np.tile(x, 2), np.stack([own for own, _ in pairs]), np.stack([other for _, other in pairs]))

    def joined(self, more: "_Table") -> "_Table":
        return _Table(*(np.concatenate(columns, axis=1) for columns in zip(self, more, strict=True)))


def _solved(costs: Costs, cuts: Sequence[Array]) -> tuple[float, Array]:
    """Return T and the ratios of the rivals' shares to that of the best arm."""
    width = max(row.size for row in cuts)
    table = _Table.of(costs, np.stack([np.pad(row, (0, width - row.size), mode="edge") for row in cuts]))
    found = _balanced(table)
    for _ in range(_ROUNDS):
        near = [_around(table.cuts, side) for side in found[2]]
        if all(np.all(np.ptp(new, axis=1) <= _SETTLED * np.ptp(table.cuts, axis=1)) for new in near):
            break
        table = table.joined(_Table.of(costs, np.concatenate(near, axis=1)))
        found = _balanced(table)
    return found[0], found[1]


def _around(cuts: Array, active: NDArray[np.intp]) -> Array:
    """Return new cuts between the second neighbors of the active cut of each row; first ones may coincide."""
    first, last = cuts.min(axis=1, keepdims=True), cuts.max(axis=1, keepdims=True)
    low = high = np.take_along_axis(cuts, active[:, None], axis=1)
    for _ in range(2):
        low = np.max(np.where(cuts < low, cuts, first), axis=1, keepdims=True)
        high = np.min(np.where(cuts > high, cuts, last), axis=1, keepdims=True)
    share = np.arange(1, _ADDED + 1) / (_ADDED + 1)
    return low + (high - low) * share


def _balanced(table: _Table) -> tuple[float, Array, list[NDArray[np.intp]]]:
    """Return T, the ratios and the active cuts, by bisection for the cost y at which sum d_1/d_j passes 1.

    A rival can have two distant cuts active at that y, one just below it and one just above; both are given.
    """
    safe = np.maximum(table.theirs, 1e-300)  # a cut that costs the rival nothing forbids any y above d_1
    rows = np.arange(table.own.shape[0])

    def active(y: float) -> NDArray[np.intp]:
        return cast(NDArray[np.intp], np.argmax((y - table.own) / safe, axis=1))

    low, high = 0.0, float(np.max(table.own))
    while low < (y := low + (high - low) / 2) < high and high - low > 1e-15 * high:
        side = active(y)
        balance = np.sum(table.own[rows, side] / safe[rows, side])
        low, high = (y, high) if balance < 1 else (low, y)
    below = active(low)  # the side on which no cut is forbidden
    ratios = (low - table.own[rows, below]) / safe[rows, below]
    return float((1 + np.sum(ratios)) / low), ratios, [below, active(high)]


def bernoulli_limit(means: Sequence[float]) -> Limit:
    """Return the limit for the means of Bernoulli arms, which nothing contaminates (Garivier and Kaufmann).

    Examples
    --------
    >>> known = bernoulli_limit([0.5, 0.45, 0.43, 0.4])
    >>> round(known.time, 1), [round(weight, 3) for weight in known.weights]
    (989.8, [0.417, 0.39, 0.136, 0.057])
    """
    if len(means) < 2 or not all(0 < mean < 1 for mean in means):
        msg = f"means must be at least two numbers in (0, 1), but got {list(means)!r}"
        raise InvalidArgument(msg)
    best = int(np.argmax(means))
    rivals = [arm for arm in range(len(means)) if arm != best]
    if any(means[arm] == means[best] for arm in rivals):
        return Limit(math.inf, (math.nan,) * len(means), best)

    def costs(rival: int, x: Array) -> tuple[Array, Array]:
        twice = np.tile(x, 2)
        own, theirs = np.asarray(means[best]), np.asarray(means[rivals[rival]])
        return _divergence(own, twice), _divergence(theirs, twice)

    time, ratios = _solved(costs, [np.linspace(means[arm], means[best], _FIRST) for arm in rivals])
    weights = np.ones(len(means))
    weights[rivals] = ratios
    return Limit(time, tuple((weights / weights.sum()).tolist()), best)


def known_shape_limit(instance: Instance, eps: float) -> Limit:
    """Return the limit for methods that know the shape and scale of the arms and lack only their places.

    The attack is the one that Huber's least favorable pair makes; arms are certified against eps. All arms
    must be one normal, Laplace or logistic law in different places. With one meeting point x for all rivals,
    no method needs less than min(1/d(m_1, x), sum 1/d(m_j, x)), for every x (prior work 3.2, docs/limits.md).

    Examples
    --------
    >>> from truearm.lab.arms import instance
    >>> round(known_shape_limit(instance("G2"), 0.05).pulls(0.05), 3)
    600.547
    """
    shape, scale = _common_shape(instance)
    check_eps(eps)
    places = np.asarray(instance.values) / scale
    best = instance.best
    rivals = [arm for arm in range(places.size) if arm != best]

    def times(x: float) -> Array:
        distances = np.abs(places - x)
        costs = np.asarray([least_favorable_kl(float(d), eps, shape) for d in distances])
        return np.where(costs > 0, 1 / np.maximum(costs, 1e-300), math.inf)

    def rivals_lose(x: float) -> bool:
        each = times(x)
        return bool(each[best] >= np.sum(each[rivals]))

    x = first_true(rivals_lose, float(np.max(places[rivals])), float(places[best]))
    each = times(x)
    time = min(float(each[best]), float(np.sum(each[rivals])))
    if not time < math.inf:
        return Limit(math.inf, (math.nan,) * places.size, best)
    return Limit(time, tuple((each / each.sum()).tolist()), best)


def _common_shape(instance: Instance) -> tuple[Shape, float]:
    kinds = {(law.shape, abs(law.scale)) if isinstance(law, Located) else (None, 0.0) for law in instance.arms}
    shape, scale = next(iter(kinds))
    if len(kinds) != 1 or not isinstance(shape, Gaussian | Laplace | Logistic) or instance.quantile != 0.5:
        msg = f"instance {instance.name!r} must rank one normal, Laplace or logistic law by its median"
        raise InvalidArgument(msg)
    return shape, scale


def least_favorable_kl(distance: float, eps: float, shape: Shape) -> float:
    """Return the divergence of Huber's least favorable pair, for one symmetric law in two places.

    It is the least divergence between contaminated readings of the two, 0 when contamination can make them
    equal.

    Parameters
    ----------
    distance
        Between the two places, in units of the scale.
    shape
        A symmetric law with monotone likelihood ratio: `Gaussian()`, `Laplace()` or `Logistic()`.

    Examples
    --------
    >>> round(least_favorable_kl(1.0, 0.0, Gaussian()), 12)
    0.5
    >>> least_favorable_kl(0.1, 0.1, Gaussian())
    0.0
    """
    half = distance / 2

    def below(z: float) -> float:  # the first law, centered at -half
        return float(shape.cdf(np.asarray(z + half)))

    def log_ratio(z: Array) -> Array:
        return _log_density(shape, z - half) - _log_density(shape, z + half)

    def mass(z: float) -> float:  # of the least favorable law clipped at z
        return (1 - eps) * (below(z) + below(-z) * math.exp(-float(log_ratio(np.asarray(z)))))

    if mass(0.0) <= 1:
        return 0.0  # 2 F(half) (1 - eps) <= 1: prior work 3.2
    clip = first_true(lambda z: mass(z) <= 1, 0.0, half + _FAR) if eps > 0 else half + _FAR
    edges = np.unique(np.clip([-clip, -half, 0.0, half, clip], -clip, clip))
    z, weight = _nodes(edges)
    inner = -float(np.sum(weight * log_ratio(z) * np.exp(_log_density(shape, z + half))))
    top = float(log_ratio(np.asarray(clip)))
    outer = -top * below(-clip) * math.expm1(-top)  # both clipped tails; the law is symmetric
    return (1 - eps) * (inner + outer)


_legendre = lru_cache(np.polynomial.legendre.leggauss)


def _nodes(edges: Array) -> tuple[Array, Array]:
    x, weight = _legendre(256)
    half = np.diff(edges) / 2
    middle = edges[:-1] + half
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * weight).ravel()


def _log_density(shape: Shape, z: Array) -> Array:
    size = np.abs(z)
    if isinstance(shape, Gaussian):
        return -z * z / 2 - math.log(2 * math.pi) / 2
    if isinstance(shape, Laplace):
        return -size - math.log(2)
    if isinstance(shape, Logistic):
        return cast(Array, -size - 2 * np.log1p(np.exp(-size)))
    msg = f"shape must be Gaussian(), Laplace() or Logistic(), but got {shape!r}"
    raise InvalidArgument(msg)


def minimax_pulls(
    instance: Instance,
    contamination: float | Contamination,
    delta: float,
    *,
    tolerance: float = 0.0,
    reach: float = 0.2,
) -> float:
    """Return the pulls that some instance with the same effective gaps forces on any method (Theorem 16).

    The instance is compared in units of its largest m2 with the repaired lifting, whose arms share one m2
    (audit 1.h); both families are closed under changes of unit (Lemma 23).

    Parameters
    ----------
    reach
        The paper's t-bar; the theorem holds below 1/4, and 0.2 leaves room.

    Examples
    --------
    >>> from truearm.lab.arms import lifted
    >>> round(minimax_pulls(lifted([0.6, 0.45], 0.05), 0.05, 0.05), 3)
    27.976
    """
    against = Contamination.of(contamination)
    if against is None:
        msg = "contamination must be a fraction or a Contamination, but got None"
        raise InvalidArgument(msg)
    biases = [shift(law, against.eps, against.adversary) for law in instance.arms]
    best, values = instance.best, instance.values
    unit = lifting(0.5, against.eps, against.adversary, best=True).m2 / max(law.m2 for law in instance.arms)
    gaps = [
        unit * (values[best] - biases[best] - values[arm] - biases[arm])  # effective gap, section 3
        for arm in range(len(values))
        if arm != best
    ]
    return contaminated_lower_bound(gaps, unit * tolerance, delta, eps=against.eps, reach=check_reach(reach))
