"""QLUCB: pull the arm with the largest lower limit and the rival with the largest upper limit until they separate.

Howard and Ramdas (2022), with limits that are order statistics and hold at all times at once. Where theirs are
about the law of the readings, these are about the law of the true readings (certified), by the trusted masses of
audit 2.A: the count of readings at or below a true quantile dominates a binomial process whose success
probability is the trusted mass (audit 2.C), and a lower limit needs nothing else. The upper limit of a q-quantile
is the mirrored lower limit of a (1-q)-quantile.

A missing reading counts at its worst for either limit (evidence T8).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from truearm import bounds
from truearm.bounds.mixture import Prior
from truearm.bounds.search import first_count
from truearm.claims.certificate import Claim, Status, Verdict
from truearm.errors import OutOfReach
from truearm.evidence import Levels
from truearm.evidence.sample import Sample
from truearm.policies import Batch, Eager, Standing, Told, check_compares
from truearm.problem import UNBOUNDED, Interval, Problem, as_number, check_count, require


@lru_cache(maxsize=1 << 16)
def limit_rank(n: int, p0: float, alpha: float, t_opt: int = 1000) -> int:
    """Return the rank of a lower limit that holds at all n at once, where p0 is the trusted mass; 0 means none.

    It errs with probability alpha, below 1/2, and is tightest near `t_opt` readings.
    """
    log = 2 * math.log(1 / (2 * alpha))
    concentration = max(t_opt / (log + math.log1p(log)) - 1, 1e-3)  # Howard and Ramdas, Theorem 1b
    return int(bounds.sequential_rank(n, p0, alpha, Prior((concentration,), (1.0,))))


@dataclass(frozen=True, slots=True, eq=False)
class LucbState:
    """The state of the policy."""

    problem: Problem
    levels: Levels
    """Trusted masses below the quantile plus slack, and above the quantile."""
    samples: tuple[Sample, ...]
    limits: tuple[Interval, ...]
    """The two confidence limits of each arm."""
    leader_next: bool
    decision: Batch | Verdict


@dataclass(frozen=True, slots=True)
class Lucb(Eager):
    """The policy QLUCB: any quantile, certified under a declared contamination, by one interval for each arm.

    Each of k one-sided limits ever fails with probability at most delta/k: the upper one of the best arm, the
    lower ones of the others. If none fails, the answer's quantile is at least that of every arm. With a
    `Contamination` the limits are about true readings and the status is `certified`; with None they are about
    the readings as they come, and the status is `separated`: right if all effective gaps are positive (audit 2.B).
    Valid against all three adversaries, also clairvoyant ones, and for dependent arms. It never ends if
    arms cannot be told apart.

    Parameters
    ----------
    slack
        Accept an arm whose (q + slack)-quantile is at least every q-quantile; the status is then `tolerable`.
    growth
        Pulls of leader and rival in a batch, as a fraction of their readings; 0 is one pull of each in turn, as
        published.
    t_opt
        Number of readings for which the limits are tightest; 1000 as published.
    """

    slack: float = 0.0
    growth: float = 0.02
    t_opt: int = 1000
    patient: ClassVar[bool] = True
    alike: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_count("t_opt", self.t_opt)
        for name in ("slack", "growth"):
            value = as_number(name, getattr(self, name), "give a fraction")
            require(0 <= value < 1, name, value, "be in [0, 1)")

    def start(self, problem: Problem) -> LucbState:
        check_compares(problem, "lucb")
        if problem.level + self.slack >= 1:
            raise OutOfReach(f"slack must be below 1 - q = {1 - problem.level:.6g}, but got {self.slack!r}")
        k = len(problem.arms)
        levels = Levels(
            Levels.of(problem.level + self.slack, problem.contamination).low,
            Levels.of(problem.level, problem.contamination).high,
        )  # audit 2.A
        empty = Sample.of([])
        state = LucbState(problem, levels, (empty,) * k, (UNBOUNDED,) * k, leader_next=False, decision={})
        if k == 1:
            return replace(state, decision=_make_verdict(state, 0, self._status(problem)))
        if min(levels) <= 0:  # evidence section 11: nothing can be certified
            return replace(state, decision=Verdict(status=Status.INDISTINGUISHABLE, candidates=problem.arms))
        # before an arm has an upper limit nothing can end
        first = first_count(lambda n: self._rank(state, n, levels.high) >= 1) if self.growth else 1
        return replace(state, decision=dict.fromkeys(problem.arms, first))

    def tell(self, state: LucbState, readings: Mapping[str, Told], issued: Mapping[str, int]) -> LucbState:  # noqa: ARG002
        samples, limits = list(state.samples), list(state.limits)
        for arm, new in readings.items():
            i = state.problem.arms.index(arm)
            samples[i] = samples[i].extend(new.values)
            limits[i] = self._limits(state, samples[i])
        state = replace(state, samples=tuple(samples), limits=tuple(limits))
        leader, rival = _pair(state)
        if status := self._end_status(state, leader, rival):
            return replace(state, decision=_make_verdict(state, leader, status))
        batch = self._batch(state, leader, rival)
        return replace(state, leader_next=not state.leader_next, decision=batch)

    def standing(self, state: LucbState) -> Standing:
        arms = state.problem.arms
        leader = arms[_pair(state)[0]] if any(s.size for s in state.samples) else None
        return Standing(leader, arms, {}, math.inf, Verdict(status=Status.EXHAUSTED, candidates=arms))

    def _status(self, problem: Problem) -> Status:
        return Status.TOLERABLE if self.slack else Status.strict(problem)

    def _end_status(self, state: LucbState, leader: int, rival: int) -> Status | None:
        """Return the status with which the run ends now, None if it goes on."""
        low, high = state.limits[leader].low, state.limits[rival].high
        if low == -math.inf:
            return None  # nothing is known in favor of the leader
        status = self._status(state.problem)
        # a tie separates nothing (audit 2.B, strict), but an equal true quantile is as good
        if low > high or (low == high and status is not Status.SEPARATED):
            return status
        amount = state.problem.tolerance.amount
        return Status.TOLERABLE if amount and low >= high - amount else None  # audit 2.A, 2.B (v)

    def _batch(self, state: LucbState, leader: int, rival: int) -> Batch:
        arms = state.problem.arms
        if not self.growth:
            return {arms[leader if state.leader_next else rival]: 1}  # as published: docs/policies.md
        # equal numbers: as a fraction of its pulls, those of a steady leader would outgrow those of its rivals
        size = max(1, int(self.growth * min(state.samples[leader].n, state.samples[rival].n)))
        return {arms[i]: size for i in sorted((leader, rival))}

    def _limits(self, state: LucbState, sample: Sample) -> Interval:
        low, high = (self._rank(state, sample.n, p0) for p0 in state.levels)
        return Interval(sample.at(low - sample.unknown), sample.at(sample.n + 1 - high - sample.outside))  # T8

    def _rank(self, state: LucbState, n: int, p0: float) -> int:
        return limit_rank(n, p0, state.problem.delta / len(state.problem.arms), self.t_opt)


def _pair(state: LucbState) -> tuple[int, int]:
    """Return the arm with the largest lower limit, and the other arm with the largest upper limit."""
    lows = [limit.low for limit in state.limits]
    leader = lows.index(max(lows))
    highs = [-math.inf if i == leader else limit.high for i, limit in enumerate(state.limits)]
    rival = highs.index(max(highs))
    return leader, rival if rival != leader else int(leader == 0)


def _make_verdict(state: LucbState, leader: int, status: Status) -> Verdict:
    """Return the verdict with every other arm's upper limit below the leader's lower one, less the tolerance."""
    arms, head = state.problem.arms, state.limits[leader]
    counts, tolerant = tuple(sample.n for sample in state.samples), status is Status.TOLERABLE
    highs = [limit.high - state.problem.tolerance.amount * (limit.high > head.low) for limit in state.limits]
    claims = tuple(
        Claim(arm, arms[leader], counts, tolerant=tolerant, bounds=(highs[i], head.low))
        for i, arm in enumerate(arms)
        if i != leader
    )
    return Verdict(status=status, best=arms[leader], candidates=(arms[leader],), claims=claims)
