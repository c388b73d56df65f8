"""Limits: how many pulls any method needs, from the laws of the readings alone.

The laws are those of an instance under an attack; methods know what a user declares, or also the laws' shape.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from truearm.bounds.limits import FIRST, Limit, cost, divergence, share_limit, solve
from truearm.bounds.lower import contaminated_lower_bound, lifting
from truearm.bounds.search import first_true
from truearm.errors import InvalidArgument
from truearm.evidence import Levels
from truearm.families import SAME_LEVEL, Array, Law, Located, Piecewise, Shape
from truearm.lab.adversaries import Attack, Observed, check_instance
from truearm.lab.arms import Instance, as_list
from truearm.problem import (
    Contamination,
    Tolerance,
    as_number,
    check_choice,
    check_count,
    check_eps,
    check_kind,
    check_reach,
    require,
)

_TAIL = 1e-13  # cuts beyond these quantiles of every law are not searched
_SYMMETRIC = (Shape("gaussian"), Shape("laplace"), Shape("logistic"))  # with a monotone likelihood ratio
_FAR = 40.0  # in units of scale; the tails of all known shapes are below e^-40 there


def limit(
    instance: Instance,
    attack: Attack | None = None,
    *,
    contamination: float | Contamination | None = None,
    tolerance: float | Tolerance = 0.0,
) -> Limit:
    """Return the limit of an instance under a stationary attack.

    Without an attack it is that of the instance, if it has one. Decisions must be certified against the
    `contamination`; None is the paper's assumption, that the arms are separated whatever the attack does. Arms
    within the tolerance of the best, which is absolute, are right answers too.
    """
    within = Tolerance.of(tolerance)
    require(not within.relative, "tolerance", tolerance, "be absolute", "use units of the readings, such as 0.1")
    seen, declared, best = observed(instance, attack), Contamination.of(contamination), instance.best

    def certify(arm: int) -> Limit:
        if instance.at_least is None:
            levels = Levels.of(instance.quantile, declared)
            return characteristic_time(seen, levels, best=arm, tolerance=within.amount)
        shares, c = [1 - float(law.cdf_left(instance.at_least)) for law in seen], declared or Contamination(0.0)
        return share_limit(shares, c.eps, c.adversary, tolerance=within.amount, answer=arm)

    if not within:
        return certify(best)
    # if several arms are right answers, the cheapest may be given
    found = [certify(arm) for arm in range(len(seen))]
    certified = [one for one in found if math.isfinite(one.time)]
    if not certified:
        return found[best]
    easiest = min(certified, key=lambda one: one.time)
    return replace(easiest, answers=len(certified), others=max(1, len(found) - len(certified)))


def observed(instance: Instance, attack: Attack | None = None) -> tuple[Observed, ...]:
    """Return the laws of the readings of all arms of an instance."""
    check_instance(instance, attack)
    source = attack or instance.attack
    if source is None:
        return tuple(Observed(law) for law in instance.arms)
    return tuple(source.observed(law, arm) for arm, law in enumerate(instance.arms))


def characteristic_time(
    laws: Sequence[Observed | Law], levels: Levels, *, best: int = 0, tolerance: float = 0.0
) -> Limit:
    """Return the least T with which arm `best` can be shown to be within the tolerance of every other.

    The laws are those of the readings, bad ones included; the levels are the least masses of L and U in the worlds
    to be ruled out.
    """
    check_kind("laws", laws, Sequence, "use a list of laws")
    check_kind("levels", levels, Levels, "use Levels(low=0.5, high=0.5)")
    require(check_count("best", best, 0) < max(1, len(laws)), "best", best, "be the place of a law")
    if len(laws) < 2:
        return Limit(0.0, (1.0,), best)
    if not is_decidable(laws, levels, best=best, tolerance=tolerance):
        return Limit.never(len(laws), best)
    leader, others = _against(laws, best, tolerance)
    high = _last_cut(leader, levels.low)
    cuts = [_cuts(leader, other, levels.high, high) for other in others]

    def costs(rival: int, x: Array) -> tuple[Array, Array]:
        other = others[rival]
        own = np.concatenate([leader.cdf_left(x), leader.cdf(x)])
        theirs = 1 - np.concatenate([other.cdf_left(x), other.cdf(x)])
        return cost(own, levels.low), cost(theirs, levels.high)

    return Limit.of(*solve(costs, cuts), best)


def is_decidable(laws: Sequence[Observed | Law], levels: Levels, *, best: int = 0, tolerance: float = 0.0) -> bool:
    """Return True if unlimited pulls would show that arm `best` is within the tolerance of every other."""
    leader, others = _against(laws, best, tolerance)
    if _mass(leader, -math.inf) >= levels.low or any(_mass(law, math.inf) >= levels.high for law in others):
        return False  # also when a level is 0 or less
    high = _last_cut(leader, levels.low)
    # at this cut both masses are large enough: evidence section 8
    return not any(other.cdf(high) <= 1 - levels.high + SAME_LEVEL for other in others)


def _against(laws: Sequence[Observed | Law], best: int, tolerance: float) -> tuple[Observed, list[Observed]]:
    """Return the law of the leader, and those of its rivals made worse by the tolerance."""
    for law in laws:
        require(isinstance(law, Observed | Law), "laws", law, "be laws", "use those of truearm.families")
    tolerance = as_number("tolerance", tolerance, "use a number such as 0.1")
    seen = [law if isinstance(law, Observed) else Observed(law) for law in laws]
    return seen[best], [_move(law, -tolerance) for arm, law in enumerate(seen) if arm != best]


def _move(law: Observed, by: float) -> Observed:
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


def _cuts(leader: Observed, other: Observed, level: float, high: float) -> Array:
    low = first_true(lambda x: 1 - other.cdf(x) < level, *_ends(other))  # to the last bit
    if low >= high:
        return np.asarray([high])
    points = [np.linspace(low, high, FIRST)]
    parts: list[Law | float] = [leader.clean, other.clean, leader.bad, other.bad]
    for part in parts:
        if isinstance(part, Law):
            points.append(part.ppf_left(np.linspace(part.cdf(low), part.cdf(high), FIRST)))
            points.append(part.knots if isinstance(part, Piecewise) else np.empty(0))
        else:
            points.append(np.asarray([part]))
    return np.unique(np.clip(np.concatenate(points), low, high))


def bernoulli_limit(means: Sequence[float]) -> Limit:
    """Return the limit for the means of Bernoulli arms, which nothing contaminates (Garivier and Kaufmann)."""
    means = as_list("means", means)
    is_right = len(means) > 1 and all(0 < mean < 1 for mean in means)
    require(is_right, "means", means, "be at least two numbers in (0, 1)")
    best = int(np.argmax(means))
    rivals = [arm for arm in range(len(means)) if arm != best]
    if any(means[arm] == means[best] for arm in rivals):
        return Limit.never(len(means), best)

    def costs(rival: int, x: Array) -> tuple[Array, Array]:
        twice = np.tile(x, 2)
        own, theirs = np.asarray(means[best]), np.asarray(means[rivals[rival]])
        return divergence(own, twice), divergence(theirs, twice)

    return Limit.of(*solve(costs, [np.linspace(means[arm], means[best], FIRST) for arm in rivals]), best)


def known_shape_limit(instance: Instance, eps: float) -> Limit:
    """Return the limit for methods that know the shape and scale of the arms, but not their locations.

    The attack is the one that Huber's least favorable pair makes; arms are certified against eps. All arms
    must be one normal, Laplace or logistic law in different places. With one meeting point x for all rivals,
    no method needs less than min(1/d(m_1, x), sum 1/d(m_j, x)), for every x (docs/optimality.md).
    """
    check_instance(instance)
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
        return Limit.never(places.size, best)
    return Limit(time, tuple((each / each.sum()).tolist()), best)


def _common_shape(instance: Instance) -> tuple[Shape, float]:
    kinds = {(law.shape, abs(law.scale)) if isinstance(law, Located) else (None, 0.0) for law in instance.arms}
    shape, scale = next(iter(kinds))
    if len(kinds) != 1 or shape not in _SYMMETRIC or instance.quantile != 0.5:
        msg = f"instance {instance.name!r} must rank one normal, Laplace or logistic law by its median"
        raise InvalidArgument(msg)
    return shape, scale


def least_favorable_kl(distance: float, eps: float, shape: str | Shape) -> float:
    """Return the divergence of Huber's least favorable pair, for one symmetric law in two places.

    It is the least divergence between contaminated readings of the two, 0 when contamination can make them
    equal. The distance is in units of the scale; the shape is "gaussian", "laplace" or "logistic".
    """
    from scipy.integrate import fixed_quad

    is_far = 0 <= as_number("distance", distance, "use a distance in units of scale") < math.inf
    require(is_far, "distance", distance, "be finite and >= 0")
    check_eps(eps)
    check_choice("shape", shape.name if isinstance(shape, Shape) else shape, [law.name for law in _SYMMETRIC])
    half, law = distance / 2, Shape(shape) if isinstance(shape, str) else shape

    def below(z: float) -> float:  # the first law, centered at -half
        return float(law.cdf(np.asarray(z + half)))

    def log_ratio(z: Array) -> Array:
        return law.logpdf(z - half) - law.logpdf(z + half)

    def density(z: Array) -> Array:
        return log_ratio(z) * law.pdf(z + half)

    def mass(z: float) -> float:  # of the least favorable law clipped at z
        return (1 - eps) * (below(z) + below(-z) * math.exp(-float(log_ratio(np.asarray(z)))))

    if mass(0.0) <= 1:
        return 0.0  # 2 F(half) (1 - eps) <= 1: docs/optimality.md
    clip = first_true(lambda z: mass(z) <= 1, 0.0, half + _FAR) if eps > 0 else half + _FAR
    edges = np.unique(np.clip([-clip, -half, 0.0, half, clip], -clip, clip)).tolist()
    inner = -float(sum(fixed_quad(density, *ends, n=256)[0] for ends in pairwise(edges)))
    top = float(log_ratio(np.asarray(clip)))
    outer = -top * below(-clip) * math.expm1(-top)  # both clipped tails; the law is symmetric
    return (1 - eps) * (inner + outer)


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
    (audit 1.h); both families are closed under changes of unit (Lemma 23). The reach must be below 1/4.
    """
    check_instance(instance)
    tolerance = as_number("tolerance", tolerance, "use a number such as 0.1")
    against = Contamination.of(contamination)
    if against is None:
        raise InvalidArgument("contamination must be a fraction or a Contamination, but got None")
    unit = lifting(0.5, against.eps, against.adversary, best=True).m2 / max(law.m2 for law in instance.arms)
    gaps = [unit * gap for gap in instance.effective_gaps(against.eps, against.adversary)]
    return contaminated_lower_bound(gaps, unit * tolerance, delta, eps=against.eps, reach=check_reach(reach))
