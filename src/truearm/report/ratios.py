"""How many times better one arm is than another, under the contamination that was declared.

A ratio of two arms takes the ends of both intervals. All intervals of a result hold at once, so all ratios hold at
once too, with the same error probability delta.

Where the best arm is decided, the near end can be sharper. "The rival is worse than the best by more than a
factor f" has evidence of its own: that of the pair, the best made worse by f (evidence T3, T7). The claims are
nested in f, and if the true factor is f0, a claim beyond it is ever made only if the evidence at f0 ever reaches
the threshold: with probability at most delta over all rivals. So the largest f with enough evidence bounds the
factor from below, with an error probability delta of its own.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from truearm.claims.certificate import Status, Tapes, sample_of
from truearm.claims.result import Arm, Result
from truearm.evidence import Levels, pair, pair_rule, shifted, threshold
from truearm.evidence.sample import Sample
from truearm.problem import Tolerance

_ACCURACY = 1e-4  # of the logarithm of a factor: a hundredth of a percent


class Ratio(NamedTuple):
    """An arm's quantile divided by another arm's: as observed, and an interval that contains the true ratio.

    Examples
    --------
    >>> Ratio("B", "A", 1.37, 1.31, 1.44).low
    1.31
    """

    arm: str
    reference: str
    observed: float
    low: float
    high: float


def ratios(result: Result, tapes: Tapes, reference: str | None = None) -> tuple[Ratio, ...]:
    """Return the ratios of all other arms to the reference, or to the leader if none is named.

    Readings must be positive for ratios to mean anything; where an interval is not, there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from truearm.claims.certificate import Verdict
    >>> from truearm.problem import Problem
    >>> from truearm.claims.result import certify
    >>> tapes = {"A": np.linspace(1.0, 1.1, 200), "B": np.linspace(2.0, 2.2, 200)}
    >>> verdict = Verdict(status=Status.CERTIFIED, best="A", candidates=("A",))
    >>> [ratio] = ratios(certify(Problem(arms=("A", "B"), goal="min"), tapes, verdict), tapes)
    >>> ratio.arm, ratio.reference, round(ratio.low, 2), round(ratio.high, 2)
    ('B', 'A', 1.96, 2.06)
    """
    base = next((arm for arm in result.arms if arm.name == (reference or result.leader)), None)
    if base is None or not 0 < base.median < math.inf or base.low > base.high:
        return ()
    decided = result.status in (Status.CERTIFIED, Status.SEPARATED) and result.best == base.name
    return tuple(
        _ratio(result, arm, base, margin(result, tapes, arm.name) if decided else 0.0)
        for arm in result.arms
        if arm.name != base.name and arm.median > 0 and arm.low <= arm.high
    )


def _ratio(result: Result, arm: Arm, base: Arm, factor: float) -> Ratio:
    low = max(arm.low, 0.0) / base.high if base.high > 0 else 0.0
    high = arm.high / base.low if base.low > 0 else math.inf
    if factor >= 1:
        low, high = (max(low, factor), high) if result.problem.goal == "min" else (low, min(high, 1 / factor))
    return Ratio(arm.name, base.name, arm.median / base.median, low, high)


def margin(result: Result, tapes: Tapes, rival: str) -> float:
    """Return the largest factor by which a rival is certified to be worse than the best arm, 0 if none is.

    Examples
    --------
    >>> from truearm.study import Study
    >>> study = Study(["A", "B"])
    >>> while counts := study.ask_counts():
    ...     study.tell_arrays({arm: [30.0 if arm == "A" else 10.0] * n for arm, n in counts.items()})
    >>> round(margin(study.result, study.readings, "B"), 2)
    3.0
    """
    problem = result.problem
    levels = Levels.of(problem.level, problem.contamination)
    if result.best is None or min(levels) <= 0:
        return 0.0
    best, other = (sample_of(tapes[arm], len(tapes[arm]), problem.sign) for arm in (result.best, rival))
    rule = pair_rule(problem.contamination, dependent_arms=problem.dependent_arms)
    bar = math.log(threshold(len(problem.arms), problem.delta, rule))

    def holds(log_factor: float) -> bool:
        handicap = Tolerance(math.expm1(log_factor), relative=True)
        return pair(shifted(best, handicap, problem.sign), other, levels, closed=True).log_value >= bar

    return math.exp(_last(holds, _span(best, other))) if holds(0.0) else 0.0


def _span(best: Sample, other: Sample) -> float:
    """Return the logarithm of a factor that no reading of one arm has over one of the other."""
    sizes = [abs(float(x)) for s in (best, other) for x in s.values if 0 < abs(float(x)) < math.inf]
    return math.log(max(sizes) / min(sizes)) + 1 if sizes else 0.0


def _last(holds: Callable[[float], bool], high: float) -> float:
    low = 0.0
    while high - low > _ACCURACY:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
