"""Measure one arm a fixed number of times, or until its interval is as narrow as requested.

Nothing is compared. With a number of pulls fixed in advance the interval is that of a fixed design; otherwise, or
if such a study is stopped early, it holds at all times together: a second statement, with a separate delta.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from truearm.claims.certificate import Status, Verdict
from truearm.evidence import Judge
from truearm.policies import GROWTH, START, Batch, Judged, Standing, Told
from truearm.problem import Problem, check_count, refuse


@dataclass(frozen=True, slots=True)
class Alone:
    """The policy of a single arm.

    Parameters
    ----------
    first
        Pulls before the first look.
    runs
        The number of pulls, fixed in advance; None continues until the tolerance is reached, or forever.
    """

    patient: bool = False
    first: int = START
    runs: int | None = None
    alike: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("first", self.first)
        if self.runs is not None:
            check_count("runs", self.runs)

    def start(self, problem: Problem) -> Judged:
        msg = f"policy 'alone' measures one arm alone, but got {len(problem.arms)} arms; use policy 'toptwo'"
        refuse(len(problem.arms) != 1 or problem.rounds, msg)
        return Judged(judge=Judge.of(problem), alive=(0,), first=self.first)

    def ask(self, state: Judged) -> Batch | Verdict:
        n, (arm,) = state.judge.samples[0].n, state.problem.arms
        if n < (goal := self.runs or self.first):
            return {arm: goal - n}
        if self.runs is not None:
            return _verdict(state, fixed=True)
        return _verdict(state) if _is_narrow(state) else {arm: max(1, int(GROWTH * n))}

    def tell(self, state: Judged, readings: Mapping[str, Told], issued: Mapping[str, int]) -> Judged:
        return state.after(readings, issued)

    def standing(self, state: Judged) -> Standing:
        (arm,) = state.problem.arms
        return Standing(arm if state.judge.samples[0].size else None, (arm,), {}, 0.0, _verdict(state))


def _is_narrow(state: Judged) -> bool:
    """Return True if the true value is certain to be within the tolerance of the observed one."""
    tolerance, judge = state.problem.tolerance, state.judge
    if not tolerance or judge.is_contradicted(0):
        return False
    true, _ = judge.intervals(0, state.problem.declared)
    seen = judge.estimate(0)
    room = tolerance.amount * abs(seen) if tolerance.relative else tolerance.amount
    return bool(max(true.high - seen, seen - true.low) <= room)


def _verdict(state: Judged, *, fixed: bool = False) -> Verdict:
    """Return the only arm as the best, or `exhausted` if its interval is wider than requested."""
    problem = state.problem
    if not state.judge.samples[0].n or (problem.tolerance and not _is_narrow(state) and not fixed):
        return state.verdict(Status.EXHAUSTED)
    verdict = state.verdict(Status.strict(problem), 0)
    return replace(verdict, design="fixed") if fixed else verdict
