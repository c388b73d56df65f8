"""Measure all remaining arms side by side in rounds, and reject an arm when another wins often enough.

The policy of rounds (extensions E1). Every round has all remaining arms, once each, so that the n-th pull of
an arm is its reading of round n. A pull that is out counts for the null of every pair it is in, so that readings
may come late and in any order.

A gate names a guard before the race: the question is which arms are worse than it (evidence T10b). It ends when
one arm is shown to be worse or all are shown to be better. An arm shown to be better is no longer measured.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from truearm.claims.certificate import Status
from truearm.evidence import Judge
from truearm.evidence.wins import forecast
from truearm.policies import FUTILITY, GROWTH, Eager, Judged, Standing, Told
from truearm.problem import Problem, check_count, refuse, require


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedState(Judged):
    """The state of the policy."""

    guard: int | None
    next_futility: float
    endless: bool
    batch: int
    limit: float

    @property
    def rounds(self) -> int:
        """How many rounds have begun."""
        return max(sample.n for sample in self.judge.samples)


@dataclass(frozen=True, slots=True)
class Paired(Eager):
    """The policy of `rounds=True`: certified, separated, tolerable or indistinguishable by wins side by side.

    Parameters
    ----------
    first
        Rounds before the first decision.
    endless
        Decide nothing: rounds of all arms until the caller stops the study.
    guard
        The arm that a gate compares all others with (evidence T10b).
    batch
        Request at least this many rounds at once.
    limit
        End after this many rounds.
    """

    patient: bool = False
    first: int = 1
    endless: bool = False
    guard: str | None = None
    batch: int = 1
    limit: int | None = None
    alike: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("first", "batch", "limit"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    def start(self, problem: Problem) -> PairedState:
        msg = "policy 'paired' compares arms in rounds; set rounds=True, or use policy 'toptwo'"
        refuse(not problem.rounds, msg)
        is_arm = self.guard is None or self.guard in problem.arms
        require(is_arm, "guard", self.guard, f"be one of the arms {', '.join(problem.arms)}")
        state = PairedState(
            judge=Judge.of(problem),
            alive=tuple(range(len(problem.arms))),
            first=self.first,
            guard=None if self.guard is None else problem.arms.index(self.guard),
            next_futility=self.first,
            endless=self.endless,
            batch=self.batch,
            limit=min((n for n in (self.limit, problem.items) if n is not None), default=math.inf),
        )
        return _decide(state)

    def tell(self, state: PairedState, readings: Mapping[str, Told], issued: Mapping[str, int]) -> PairedState:
        return _decide(state.after(readings, issued))

    def standing(self, state: PairedState) -> Standing:
        arms, judge = state.problem.arms, state.judge
        leader = judge.best_looking(state.alive)
        against = dict.fromkeys(arms, 0.0) | {claim.arm: claim.log_evidence for claim in state.claims}
        for judged in state.alive:
            if judged != leader:
                rivals = (_evidence(judge, i, judged) for i in state.alive if i != judged)
                against[arms[judged]] = max(rivals, default=0.0)
        futile = leader is not None and judge.is_futile(state.alive)
        # an arm that has passed a gate is no longer measured, but may still be the best
        left = state.alive if state.guard is None else range(len(arms))
        so_far = state.verdict(Status.INDISTINGUISHABLE if futile else Status.EXHAUSTED, alive=left)
        alive, best = tuple(arms[i] for i in state.alive), None if leader is None else arms[leader]
        known = Standing(best, alive, against, judge.log_threshold, so_far)
        if leader is None or state.problem.target == "mean":
            return known
        judge = judge.after(leader=leader)
        found = {i: forecast(judge, i) for i in state.alive if i != leader}
        excluded = [i for i in range(len(arms)) if i not in state.alive]
        return known._replace(
            times=max((each.times for each in found.values()), default=1.0),
            close=tuple(arms[i] for i, each in found.items() if each.close),
            within=judge.tolerance(excluded, relative=True) if state.problem.handicap is None else math.inf,
        )


def _evidence(judge: Judge, better: int, worse: int, enough: float | None = None) -> float:
    return judge.after(leader=better).against(worse, enough=enough).log_value


def _decide(state: PairedState) -> PairedState:
    """Return the state with the next rounds or the verdict chosen."""
    if not state.endless and (len(state.alive) == 1 or state.judge.is_hopeless):
        return _stop(state)
    if state.rounds < state.limit and (state.endless or state.rounds < state.first):
        return _ask_rounds(state, max(1, state.first - state.rounds))
    if state.guard is not None:
        return _decide_gate(state, state.guard)
    state = _reject(state)
    if len(state.alive) == 1:
        return _stop(state)
    if claims := state.tolerance_claims([i for i in state.alive if i != state.judge.leader]):
        state = replace(state, claims=state.claims + claims)
        return replace(state, decision=state.verdict(Status.TOLERABLE, state.judge.leader))
    return _go_on(state, lambda: state.judge.is_futile(state.alive))


def _go_on(state: PairedState, is_futile: Callable[[], bool]) -> PairedState:
    """Return the state with more rounds, unless they would not help or their limit is reached."""
    is_last = state.rounds >= state.limit
    if is_last or state.rounds >= state.next_futility:
        state = replace(state, next_futility=state.rounds * FUTILITY)
        if is_futile():
            return _stop(state)
    if is_last:
        return _stop(state, Status.EXHAUSTED)
    return _ask_rounds(state, max(1, int(GROWTH * state.rounds)))


def _decide_gate(state: PairedState, guard: int) -> PairedState:
    """Return the state of a gate, which ends at the first arm that fails, or when all pass (evidence T10b)."""
    failed, passed = state.judge.gate(guard)
    left = [i for i in range(len(state.problem.arms)) if i not in (guard, *passed)]
    if failed or not left:
        # the best of all arms is named if the evidence shows it too
        state = _reject(replace(state, alive=tuple(range(len(state.problem.arms)))))
        return _stop(state, Status.EXHAUSTED)
    state = replace(state, alive=tuple(sorted([guard, *left])))
    return _go_on(state, lambda: all(state.judge.is_futile((guard, i)) for i in left))


def _ask_rounds(state: PairedState, rounds: int) -> PairedState:
    asked = int(min(max(rounds, state.batch), state.limit - state.rounds))
    return replace(state, decision=dict.fromkeys((state.problem.arms[i] for i in state.alive), asked))


def _reject(state: PairedState) -> PairedState:
    """Reject arms by the evidence of the best-looking arm, the leader, or else of another."""
    leader = state.judge.best_looking(state.alive)
    if leader is None:
        return state
    state = replace(state, judge=state.judge.after(leader=leader))
    alive, claims, bar = list(state.alive), list(state.claims), state.judge.log_threshold
    for judged in state.alive:
        rivals = sorted((i for i in alive if i != judged), key=lambda i: i != leader)
        found = ((i, _evidence(state.judge, i, judged, enough=bar)) for i in rivals)
        claim = next((state.claim(judged, i, value) for i, value in found if value >= bar), None)
        if claim is not None:
            alive.remove(judged)
            claims.append(claim)
    return replace(state, alive=tuple(alive), claims=tuple(claims))


def _stop(state: PairedState, otherwise: Status = Status.INDISTINGUISHABLE) -> PairedState:
    """Return the state that ends with the only arm left, or with this status if there are more."""
    if len(state.alive) > 1:
        return replace(state, decision=state.verdict(otherwise))
    best, arms, claims = state.alive[0], state.problem.arms, list(state.claims)
    judge = state.judge.after(leader=best)
    for place, claim in enumerate(claims):  # by the best arm itself, if its evidence also suffices (extensions E1)
        judged = arms.index(claim.arm)
        if claim.leader != arms[best] and (found := judge.against(judged).log_value) >= judge.log_threshold:
            claims[place] = state.claim(judged, best, found)
    state = replace(state, judge=judge, claims=tuple(claims))
    return replace(state, decision=state.verdict(Status.strict(state.problem), best))
