"""Gates: what the readings say of a baseline that no arm may be worse than."""

import numpy as np

from truearm.claims.certificate import Status, Tapes
from truearm.claims.certify import judge_of
from truearm.claims.result import Result
from truearm.evidence.shifts import orient
from truearm.evidence.wins import is_given_up


def worse_than(result: Result, tapes: Tapes, baseline: str, *, shared: bool = False) -> tuple[str, ...]:
    """Return the arms that are certified to be worse than the baseline.

    Each is judged against it by the strict evidence of the pair, which errs over all arms and at any time with
    probability at most delta; arms that tie with the baseline are not worse (evidence T10b).

    Parameters
    ----------
    shared
        Whether the problem's delta is already that of one comparison, because the race began with this gate.
    """
    arms = result.problem.arms
    if result.status is Status.DOUBTFUL or is_meaningless(result):
        return ()
    found = judge_of(result.certificate, tapes).worse_than(arms.index(baseline), shared=shared)
    return tuple(arms[i] for i in found)


def is_gate_given_up(result: Result, tapes: Tapes, baseline: str | None) -> bool:
    """Return True if a gate in rounds ended because no arm left can be shown to be worse (extensions E6)."""
    if baseline is None or result.status is not Status.EXHAUSTED or not result.problem.rounds or not result.total:
        return False
    judge, arms = judge_of(result.certificate, tapes), result.problem.arms
    left = set(result.candidates) - {baseline, *result.certificate.rejected}
    return all(is_given_up(judge, arms.index(baseline), arms.index(arm)) for arm in left)


def is_meaningless(result: Result) -> bool:
    """Return True if a gate's tolerance in percent is of a baseline that is not positive, and so says nothing."""
    given = result.problem.handicap
    return (
        given is not None
        and given.tolerance.relative
        and any(arm.name == given.arm and arm.observed <= 0 for arm in result.arms)
    )


def is_hidden(result: Result) -> bool:
    """Return True if runs time out before they can be worse than a gate's baseline by more than the tolerance."""
    given = result.problem.handicap
    if given is None or given.limit is None:
        return False
    seen = np.array([arm.observed for arm in result.arms if arm.name == given.arm])
    return bool(np.isinf(orient(seen, result.problem, given.arm)).any())
