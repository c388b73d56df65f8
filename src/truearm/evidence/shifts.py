"""Arms made worse by a tolerance: what "not better by more than so much" is judged by, and the least such amount.

A shift is a nondecreasing map of the readings, so the quantile of the shifted readings is the shifted quantile,
and every statement about an order of arms is one about the order up to the shift (evidence T7).
"""

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from truearm.bounds.mixture import DEFAULT_PRIOR, Prior
from truearm.evidence.binned import Binned
from truearm.evidence.cuts import fisher_sum, fixed_pair, fixed_term, mixture_term, most_below, pair
from truearm.evidence.levels import Levels
from truearm.evidence.sample import Sample
from truearm.problem import Interval, Problem, Tolerance

Floats = NDArray[np.float64]

_NEARLY = 1 - 1e-3  # of a tolerance found by counts: where it is asked what else would be certified


def worsened(values: Floats, tolerance: Tolerance, sign: float = 1.0) -> Floats:
    """Return oriented readings made worse by a tolerance.

    A relative tolerance divides positive readings (multiplies them where `sign` is -1, because small ones are
    good) and leaves the others as they are: they are on the lower side all the same (evidence section 11).
    """
    with np.errstate(over="ignore"):
        if not tolerance.relative:
            return values - tolerance.amount
        ratio = 1 + tolerance.amount
        moved: Floats = np.where(sign * values > 0, values / ratio if sign > 0 else values * ratio, values)
        return moved


def improved(values: Floats, tolerance: Tolerance, sign: float = 1.0) -> Floats:
    """Return what `worsened` would make these readings of."""
    with np.errstate(over="ignore"):
        if not tolerance.relative:
            return values + tolerance.amount
        ratio = 1 + tolerance.amount
        moved: Floats = np.where(sign * values > 0, values * ratio if sign > 0 else values / ratio, values)
        return moved


def oriented(values: Floats, problem: Problem, arm: str) -> Floats:
    """Return an arm's readings as they are judged: bigger is better, and worse by the handicap if it has one.

    Of a share what matters is only whether a reading is in its set: 1 if it is, 0 if not.
    """
    if problem.target == "share":
        return np.where(np.isnan(values), values, succeeded(values, problem).astype(np.float64))
    turned: Floats = values if problem.sign > 0 else -values
    given = problem.handicap
    if given is None or given.arm != arm:
        return turned
    moved = worsened(turned, given.tolerance, problem.sign)
    # a time-out of another arm may be anything beyond the limit, and so it is no worse than these (evidence T8c)
    return moved if given.limit is None else np.where(moved < problem.sign * given.limit, -np.inf, moved)


def succeeded(values: Floats, problem: Problem) -> NDArray[np.bool_]:
    """Tell which readings are in the set whose share is compared; a missing one is not."""
    if problem.at_least is not None:
        return values >= problem.at_least
    return values <= (math.inf if problem.at_most is None else problem.at_most)


def empty(problem: Problem, arm: str) -> Sample:
    """Return the sample of an arm before its first reading: it knows how the problem counts readings."""
    plausible = None
    # of shares only successes are left, and a time-out would be outside a range of good readings: all count
    if problem.between is not None and problem.target != "share":  # `oriented` may turn it around, and moves it
        plausible = Interval(*np.sort(oriented(np.array(problem.between), problem, arm)).tolist())
    return Sample.of([], plausible=plausible)


def shifted(sample: Sample, tolerance: Tolerance, sign: float = 1.0) -> Sample:
    """Return an arm made worse by the tolerance: evidence against it then means "within the tolerance"."""
    return sample.mapped(lambda values: worsened(values, tolerance, sign)) if tolerance else sample


def certified_tolerance(
    better: Sample,
    worse: Sample,
    log_threshold: float,
    *,
    levels: Levels,
    relative: bool = False,
    sign: float = 1.0,
    fixed: bool = False,
    prior: Prior = DEFAULT_PRIOR,
) -> float:
    """Return alpha*, the least tolerance within which one arm is certified not to be worse (evidence T7).

    A cut that fails at one tolerance tells at which it no longer does: a lower bound of the answer, which is
    raised until no cut fails.

    Parameters
    ----------
    fixed
        Whether evidence is that of `fixed_pair`, not that of `pair` with a prior.
    """
    evidence = fixed_pair if fixed else partial(pair, prior=prior)
    term, enough = (fixed_term, fisher_sum(log_threshold)) if fixed else (mixture_term(prior), log_threshold)
    if isinstance(better, Binned) and isinstance(worse, Binned) and not (better.exact and worse.exact):
        best, worst = better.at_worst(), worse.at_best()  # as they are judged: extensions 4.1
        most = certified_tolerance(
            best, worst, log_threshold, levels=levels, relative=relative, sign=sign, fixed=fixed, prior=prior
        )
        near = Tolerance(_NEARLY * most if math.isfinite(most) else 0.0, relative=relative)
        evidence(better, worse, levels, enough=log_threshold, lift=partial(worsened, tolerance=near, sign=sign))
        return most  # what was asked just before notes the buckets on which it depends
    amount, step = 0.0, math.ulp(float(relative))
    while amount < math.inf:
        lift = partial(worsened, tolerance=Tolerance(amount, relative=relative), sign=sign)
        found = evidence(better, worse, levels, enough=log_threshold, lift=lift)
        if found.log_value >= log_threshold:
            break
        own = term(np.array([float(worse.size - found.rank + worse.unknown)]), worse.n, levels.high)
        below = int(most_below(better.n, levels.low, own, enough, term=term)[0]) - better.unknown
        above = worse.at(found.rank + 1) if found.rank < worse.size else None
        needed = _mended(better, above, below, relative=relative, sign=sign)
        if needed > amount:
            amount, step = needed, math.ulp(needed + relative)
        else:  # the tolerance is right, and the shift by it was rounded to the wrong side
            amount, step = amount + step, 2 * step
    return amount


def _mended(better: Sample, above: float | None, below: int, *, relative: bool, sign: float) -> float:
    """Return the least tolerance at which a failing cut holds, infinity if there is none.

    The cut is just below the first value `above` it; it holds if at most so many of `better` are below it.
    """
    censored = better.censored  # below every cut
    if above is None or censored == better.size or below < censored:
        return math.inf
    return _needed(above, better.at(min(below + 1, better.size)), relative=relative, sign=sign)


def _needed(worse: float, reached: float, *, relative: bool, sign: float) -> float:
    """Return the tolerance that brings one value down to another."""
    if not relative:
        return worse - reached
    if worse <= reached:
        return 0.0
    if sign > 0:
        return worse / reached - 1 if reached > 0 else math.inf
    return reached / worse - 1 if worse < 0 else math.inf
