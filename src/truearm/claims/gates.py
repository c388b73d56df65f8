"""Gates: whether arms are worse than a baseline by more than a tolerance, as PASS, FAIL or UNSURE."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from truearm.claims.certificate import DECIDED, Status, Tapes
from truearm.claims.certify import judge_of
from truearm.claims.result import Result
from truearm.evidence import Judge
from truearm.evidence.sample import orient
from truearm.evidence.wins import may_reach

Outcome = Literal["PASS", "FAIL", "UNSURE"]


@dataclass(frozen=True, slots=True)
class Gate:
    """The verdict of a gate: PASS if every arm passes, FAIL if one fails, else UNSURE (evidence T10b)."""

    baseline: str
    verdict: Outcome
    failed: tuple[str, ...] = ()
    """Arms that are certified to be worse than the baseline by more than the tolerance."""
    undecided: tuple[str, ...] = ()
    """Arms that neither fail nor pass."""
    budget: int | None = None
    """Rounds that there may be, if neither verdict was likely within them and the gate ended early."""


def judge_gate(
    result: Result, baseline: str | None = None, *, tapes: Tapes | None = None, budget: int | None = None
) -> Gate | None:
    """Return the verdict of a gate; all its statements together err with probability delta.

    The baseline is by default the guard of the policy; without one there is no gate. Tapes are the readings of
    a result that does not contain them; without any, its claims are all that is known.
    """
    arms, certificate = result.problem.arms, result.certificate
    if baseline is None and certificate.origin is not None:
        baseline = certificate.origin.options.get("guard")
    if baseline is None:
        return None
    others = tuple(arm for arm in arms if arm != baseline)
    if result.status is Status.DOUBTFUL or is_meaningless(result):
        return Gate(baseline, "UNSURE", undecided=others)
    readings = result.readings if tapes is None else tapes
    if readings is None:
        failed = {claim.arm for claim in certificate.claims if claim.leader == baseline and not claim.tolerant}
        passed = {claim.leader for claim in certificate.claims if claim.arm == baseline}
    else:  # other targets than wins are judged at the delta of one comparison already
        judge = judge_of(certificate, readings)
        found = judge.gate(arms.index(baseline), shared=not result.problem.rounds)
        failed, passed = ({arms[i] for i in some} for some in found)
    if failed:
        return Gate(baseline, "FAIL", failed=tuple(arm for arm in others if arm in failed))
    # the best arm is no worse than the baseline; by quantiles the decision may need less than a pair does
    best = {result.best} if result.status in DECIDED else set()
    undecided = tuple(arm for arm in others if arm not in {*best, *passed})
    return Gate(baseline, "UNSURE", undecided=undecided, budget=budget) if undecided else Gate(baseline, "PASS")


def is_out_of_reach(judge: Judge, baseline: int, rounds: int) -> bool:
    """Return True if a gate in rounds will likely neither pass nor fail within this many rounds: a forecast."""
    bar = judge.log_bar(1, 1 / len(judge.samples))
    others = [i for i in range(len(judge.samples)) if i != baseline]
    may_pass = all(may_reach(judge, i, baseline, rounds, bar) for i in others)
    return not may_pass and not any(may_reach(judge, baseline, i, rounds, bar) for i in others)


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
