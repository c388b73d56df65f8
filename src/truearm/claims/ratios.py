"""How many times one arm's quantile is another's, under the contamination that was declared.

In rounds the whole table errs with probability at most delta (extensions E1). For quantiles a ratio takes the ends
of both intervals, which hold together with probability 1 - delta. Relative to the best arm, the near end
is the margin (`Result.better_by`) if that is sharper: a second statement, with an error probability delta.
"""

import math
from dataclasses import dataclass

from truearm.claims.certificate import Tapes
from truearm.claims.certify import as_measured, judge_of
from truearm.claims.result import Arm, Result
from truearm.evidence.wins import apart


@dataclass(frozen=True, slots=True)
class Ratio:
    """An arm's quantile divided by another arm's: as observed, and an interval that contains the true ratio."""

    arm: str
    reference: str
    observed: float
    low: float
    high: float


def ratios(result: Result, reference: str | None = None, *, readings: Tapes | None = None) -> tuple[Ratio, ...]:
    """Return the ratios of all other arms to the reference, or to the leader if none is named.

    Readings must be positive for ratios to mean anything; where an interval is not, there are none. The ratio of
    an arm whose quantile timed out to one whose did not is infinite.

    Parameters
    ----------
    readings
        Those of a result in rounds that does not contain them.
    """
    if result.problem.target == "wins":
        tapes = result.readings if readings is None else readings
        return _side_by_side(result, reference or result.leader, tapes)
    base = next((arm for arm in result.arms if arm.name == (reference or result.leader)), None)
    if base is None or not 0 < base.observed < math.inf or base.low > base.high:
        return ()
    certain = _certain(result) if result.best == base.name else {}
    return tuple(
        _ratio(result, arm, base, certain.get(arm.name) or 0.0)
        for arm in result.arms
        if arm.name != base.name and arm.observed > 0 and arm.low <= arm.high
    )


def _side_by_side(result: Result, reference: str | None, tapes: Tapes | None) -> tuple[Ratio, ...]:
    """Return the ratios in the middle round, with limits that hold together with probability 1 - delta.

    Limits relative to the best arm take the level of the decision, those relative to another arm that of all pairs
    (extensions E1).
    """
    if tapes is None or reference is None:
        return ()
    judge = as_measured(judge_of(result.certificate, tapes), tapes)
    arms = result.problem.arms
    base = arms.index(reference)
    share = math.exp(-judge.log_threshold) if reference == result.best else None
    ratios = []
    for i in range(len(arms)):
        ahead = apart(judge, *((base, i) if result.problem.goal == "min" else (i, base)), error=share)
        if i != base and ahead.scale == "ratio":
            ratios.append(Ratio(arms[i], reference, *ahead[1:]))
    return tuple(ratios)


def _certain(result: Result) -> dict[str, float | None]:
    """Return the factors by which the best arm is certainly better; a difference is no factor."""
    return {lead.than: lead.at_least for lead in result.better_by if lead.scale == "ratio"}


def _ratio(result: Result, arm: Arm, base: Arm, factor: float) -> Ratio:
    low = max(arm.low, 0.0) / base.high if 0 < base.high < math.inf else 0.0
    high = arm.high / base.low if base.low > 0 else math.inf
    if factor >= 1:
        low, high = (max(low, factor), high) if result.problem.goal == "min" else (low, min(high, 1 / factor))
    return Ratio(arm.name, base.name, arm.observed / base.observed, low, high)
