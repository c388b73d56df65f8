"""Exclude arms round by round when their medians fall too far behind: Algorithm 3, with B squared (erratum E1).

Needs to be told how regular the arms are. With "paper" constants rounds, counts and radius are the printed ones.
With "sharp" constants the radius comes from the number of readings at hand (audit 1.k), and looks are geometric:
the theorem asks only that the counts of all rounds be fixed in advance and large enough for the reach, and few
looks spend little of delta.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from truearm import bounds
from truearm.bounds import Constants
from truearm.bounds.ranks import most_bad
from truearm.claims.certificate import Verdict
from truearm.errors import InvalidArgument
from truearm.policies import Batch, Standing, Told, rounds
from truearm.policies.rounds import State
from truearm.problem import Contamination, Problem

GROWTH = 1.3  # of counts between sharp looks: 1.2 to 1.5 need the same pulls within 3 %, see docs/policies.md


@dataclass(frozen=True, slots=True)
class Elimination:
    """Algorithm 3: pull all arms left equally, exclude those whose medians are too far behind.

    Ends as `separated` with the last arm, which is the best one with probability 1 - delta if all effective gaps
    are positive; with a tolerance also as `tolerable`, when the leader's effective gap is certainly within it.
    Valid against all three adversaries, also clairvoyant ones, and for dependent arms. Without tolerance it goes
    on for ever when two effective gaps are not positive.

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
        """Return the state before the first round."""
        rounds.check_problem(problem, "elimination")
        state = rounds.opened(problem, self._total(problem, 1, 0))
        return rounds.separated(state) if len(problem.arms) == 1 else state

    def ask(self, state: State) -> Batch | Verdict:
        """Return the next batch or the verdict; it was decided when the last readings came in."""
        return state.decision

    def tell(self, state: State, told: Mapping[str, Told], issued: Mapping[str, int]) -> State:  # noqa: ARG002
        """Return the state after a round, with the next decision made."""
        state = rounds.merged(state, told)
        n = state.readings[state.alive[0]].size
        now = state.problem, state.round, n
        state = rounds.judged(state, rounds.medians, self._radius(*now), self._bad(*now))
        if len(state.alive) == 1:
            return rounds.separated(state)
        return rounds.tolerable(state) or rounds.continued(state, self._total(state.problem, state.round + 1, n))

    def standing(self, state: State) -> Standing:
        """Return the leader and the arms left."""
        return rounds.standing(state)

    def _total(self, problem: Problem, r: int, n: int) -> int:
        """Return the pulls of each arm left up to round r, given those up to the round before."""
        k, c = len(problem.arms), _contamination(problem)
        regularity = rounds.check_problem(problem, "elimination")
        if self.constants == "paper":
            schedule = bounds.elimination_schedule(k, problem.delta, c.eps, regularity.reach, c.adversary)
            return (schedule.initial if r == 1 else n) + schedule.per_round(r)  # Alg. 3
        # the least count at which chance stays within the reach, whatever error is asked for: audit 1.k
        least = bounds.median_sample_size(
            regularity.B * regularity.m2,  # an error that asks no more of n than the reach does: reach < 1
            bounds.round_delta(problem.delta, k, r),
            eps=c.eps,
            B=regularity.B,
            m2=regularity.m2,
            reach=regularity.reach,
            adversary=c.adversary,
        )
        return max(math.ceil(GROWTH * n), least)

    def _bad(self, problem: Problem, r: int, n: int) -> int:
        """Return how many of n readings may be bad: a third of the round's error, of which half is spent."""
        share = bounds.round_delta(problem.delta, len(problem.arms), r) / 3
        return most_bad(n, share, _contamination(problem).eps)  # evidence T8c

    def _radius(self, problem: Problem, r: int, n: int) -> float:
        k, c = len(problem.arms), _contamination(problem)
        regularity = rounds.check_problem(problem, "elimination")
        if self.constants == "paper":
            return bounds.elimination_radius(r, k, problem.delta, regularity.B, regularity.m2)
        return bounds.counted_elimination_radius(
            r,
            n,
            k,
            delta=problem.delta,
            eps=c.eps,
            B=regularity.B,
            m2=regularity.m2,
            reach=regularity.reach,
            adversary=c.adversary,
        )


def _contamination(problem: Problem) -> Contamination:
    return problem.contamination or Contamination(0.0)
