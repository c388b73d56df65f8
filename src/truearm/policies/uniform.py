"""Pull every arm equally often, as often as the tolerance demands, and take the best median: Algorithm 1."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from truearm import bounds
from truearm.bounds import Constants
from truearm.bounds.ranks import most_bad
from truearm.claims.certificate import Status, Verdict
from truearm.errors import InvalidArgument, OutOfReach
from truearm.policies import Batch, Standing, Told, rounds
from truearm.policies.rounds import State
from truearm.problem import Contamination, Problem


@dataclass(frozen=True, slots=True)
class Uniform:
    """Algorithm 1: one batch whose size is known in advance, then the arm with the largest median.

    Ends as `tolerable`: with probability 1 - delta the effective gap of the answer is at most the tolerance, so
    that its true median is within tolerance + U_best + U_selected of the best one (erratum E3; the biases U are
    `bounds.bias`). No gap needs to be positive. Valid against all three adversaries and for dependent arms.
    Where no reading has a value above -inf it ends as `exhausted`.

    Parameters
    ----------
    constants
        "sharp" as audit section 2 proves them, or "paper" as printed.
    """

    constants: Constants = "sharp"
    patient: ClassVar[bool] = True
    alike: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.constants not in ("sharp", "paper"):
            msg = f"constants must be 'sharp' or 'paper', but got {self.constants!r}"
            raise InvalidArgument(msg)

    def start(self, problem: Problem) -> State:
        """Return the state before the one batch."""
        regularity = rounds.check_problem(problem, "uniform")
        if not problem.tolerance:
            msg = (
                "policy 'uniform' needs a tolerance > 0, which decides how often it pulls; "
                "give tolerance=..., or use policy 'elimination' or 'toptwo'"
            )
            raise OutOfReach(msg)
        c = problem.contamination or Contamination(0.0)
        n = bounds.uniform_sample_size(
            len(problem.arms),
            problem.tolerance.amount,
            problem.delta,
            eps=c.eps,
            B=regularity.B,
            m2=regularity.m2,
            reach=regularity.reach,
            adversary=c.adversary,
            constants=self.constants,
        )
        state = rounds.opened(problem, n)
        return _stopped(replace(state, leader=0)) if len(problem.arms) == 1 else state

    def ask(self, state: State) -> Batch | Verdict:
        """Return the batch or the verdict; it was decided when the readings came in."""
        return state.decision

    def tell(self, state: State, told: Mapping[str, Told], issued: Mapping[str, int]) -> State:  # noqa: ARG002
        """Return the state with the verdict."""
        problem, state = state.problem, rounds.merged(state, told)
        half, share = problem.tolerance.amount / 2, problem.delta / len(problem.arms)
        eps = 0.0 if problem.contamination is None else problem.contamination.eps
        bad = most_bad(state.readings[0].size, share / 3, eps)  # evidence T8c
        return _stopped(rounds.judged(state, rounds.medians, half, bad))  # Thm 2, Thm 14

    def standing(self, state: State) -> Standing:
        """Return the leader and the arms left."""
        return rounds.standing(state)


def _stopped(state: State) -> State:
    nothing = Verdict(status=Status.EXHAUSTED, candidates=state.problem.arms)
    return rounds.tolerable(state) or replace(state, decision=nothing)
