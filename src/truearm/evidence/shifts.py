"""How readings are judged: oriented so that bigger is better, and arms made better or worse by an amount.

A shift is a nondecreasing map of the readings, so the quantile of the shifted readings is the shifted quantile,
and every statement about an order of arms is one about the order up to the shift (evidence T7).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.evidence.sample import Floats, Sample
from truearm.problem import Interval, Problem, Tolerance


class Shift(NamedTuple):
    """By how much an arm is made worse, or better if negative: a distance, or a factor less 1 if relative."""

    amount: float
    relative: bool = False

    @classmethod
    def of(cls, tolerance: Tolerance) -> "Shift":
        """Return the shift by a tolerance."""
        return cls(tolerance.amount, tolerance.relative)


def worsen(values: Floats, shift: Shift | Tolerance, sign: float = 1.0) -> Floats:
    """Return oriented readings made worse by a shift.

    A relative shift divides positive readings (multiplies them where `sign` is -1, because small ones are
    good) and leaves the others as they are: they are on the lower side all the same (evidence section 11). A
    negative relative amount -a makes what `worsen` by a would return to what it was.
    """
    amount = shift.amount
    with np.errstate(over="ignore"):
        if not shift.relative:
            return values - amount
        ratio = 1 + abs(amount)
        divide = (sign > 0) == (amount >= 0)
        moved: Floats = np.where(sign * values > 0, values / ratio if divide else values * ratio, values)
        return moved


def orient(values: Floats, problem: Problem, arm: str) -> Floats:
    """Return an arm's readings as they are judged: bigger is better, and worse by the handicap if it has one.

    For a share only membership in the set matters: 1 for a success, 0 for a failure.
    """
    if problem.target == "share":
        return np.where(np.isnan(values), values, is_success(values, problem).astype(np.float64))
    turned: Floats = values if problem.sign > 0 else -values
    handicap = problem.handicap
    if handicap is None or handicap.arm != arm:
        return turned
    moved = worsen(turned, handicap.tolerance, problem.sign)
    # a time-out of another arm may be anything beyond the limit, and so it is no worse than these (evidence T8c)
    return moved if handicap.limit is None else np.where(moved < problem.sign * handicap.limit, -np.inf, moved)


def is_success(values: Floats, problem: Problem) -> NDArray[np.bool_]:
    """Return which readings are in the set whose share is compared; a missing one is not."""
    if problem.at_least is not None:
        return values >= problem.at_least
    return values <= (math.inf if problem.at_most is None else problem.at_most)


def start_sample(problem: Problem, arm: str) -> Sample:
    """Return the sample of an arm before its first reading."""
    if problem.rounds:
        return Sample.in_order([])
    # a share counts every reading as what it says, and a time-out is never outside a range of good readings
    if problem.between is None or problem.target == "share":
        return Sample()
    ends = np.sort(orient(np.array(problem.between), problem, arm))  # orientation may turn and move the range
    return Sample(plausible=Interval(*ends.tolist()))


def shifted(sample: Sample, tolerance: Tolerance, sign: float = 1.0) -> Sample:
    """Return an arm made worse by the tolerance: evidence against it then means "within the tolerance"."""
    return sample.map(lambda values: worsen(values, tolerance, sign)) if tolerance else sample
