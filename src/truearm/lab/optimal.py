"""Rule R: top-two sampling that needs, as delta falls, no more pulls than any method must (docs/optimality.md).

It is `toptwo` with the constants that the proof asks for in place of those that are quickest at usual deltas, and
with pairs of arms in place of the pool. What it pulls does not depend on delta, so one run tells when it stops at
every delta. Here are the rule and its runs; laws and lower bounds are in `limits`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from truearm.claims.certificate import Status
from truearm.evidence import Judge, Levels, by_looks, pair
from truearm.evidence.levels import divergence
from truearm.evidence.sample import Sample
from truearm.lab.simulate import Run, Tapes
from truearm.policies.toptwo import GROWTH, START
from truearm.problem import Problem

EXPLORED = 0.25  # an arm with fewer pulls than this power of all pulls is pulled first; optimality A1 (i)
BATCHED = 0.9  # a batch is at most a fiftieth of this power of either arm's pulls; optimality A1 (iii)


class Duel(NamedTuple):
    """What the readings of the leader and of one rival say at the cut where they say least."""

    log_evidence: float
    gain: float
    """Of the leader: its pulls times kl^- of its share below the cut."""
    other: float
    """The same of the rival, above the cut."""

    @property
    def share(self) -> float:
        """The leader's share of the next pulls: its share of what was gained; optimality A1 (ii)."""
        total = self.gain + self.other
        return self.gain / total if total > 0 else 0.5


class Sampler:
    """Choose what to pull next; remember only the fractions of pulls that are owed."""

    def __init__(self) -> None:
        self._owed: dict[tuple[int, int], float] = {}

    def batch(self, counts: Sequence[float], leader: int, duels: Mapping[int, Duel]) -> dict[int, int]:
        """Return the next pulls of each arm, from the pulls so far and what the leader's duels with all say."""
        least = sum(counts) ** EXPLORED
        if short := {arm: 1 for arm, n in enumerate(counts) if n < least}:
            return short
        rival = min(duels, key=lambda arm: duels[arm].log_evidence + math.log(counts[arm]))
        size = max(1, int(GROWTH * min(counts[leader], counts[rival]) ** BATCHED))
        exact = size * duels[rival].share + self._owed.get((leader, rival), 0.0)
        whole = math.floor(exact + 0.5)
        self._owed[leader, rival] = exact - whole
        return {arm: n for arm, n in ((leader, whole), (rival, size - whole)) if n > 0}


class Step(NamedTuple):
    """Where a run stands when it decides what to pull next."""

    counts: tuple[int, ...]
    leader: int
    log_evidence: float
    """For the leader, over its strongest rival."""


def steps(problem: Problem, tapes: Tapes) -> Iterator[Step]:
    """Give every step of the one endless run that rule R makes, whatever delta."""
    arms = range(len(problem.arms))
    levels = Levels.of(problem.level, problem.contamination)
    samples = [Sample.of(tapes.upto(arm, START)[:START]) for arm in arms]
    sampler = Sampler()
    while True:
        leader = next(iter(by_looks(samples, arms, problem.level)), 0)
        duels = {}
        for arm in arms:
            if arm != leader:
                found = pair(samples[leader], samples[arm], levels)
                duels[arm] = Duel(found.log_value, *_gains(samples[leader], samples[arm], found.at, levels))
        counts = tuple(sample.n for sample in samples)
        yield Step(counts, leader, min(duel.log_evidence for duel in duels.values()))
        for arm, n in sampler.batch(counts, leader, duels).items():
            samples[arm] = samples[arm].extend(tapes.upto(arm, counts[arm] + n)[counts[arm] : counts[arm] + n])


def _gains(head: Sample, rival: Sample, cut: float, levels: Levels) -> tuple[float, float]:
    below, above = float(head.below(cut)) / head.n, float(rival.above(cut)) / rival.n
    return head.n * divergence(below, levels.low), rival.n * divergence(above, levels.high)


def stopping_pulls(problem: Problem, tapes: Tapes, deltas: Sequence[float]) -> tuple[int, ...]:
    """Return after how many pulls the one run of rule R stops at each of several falling deltas."""
    run, stops = steps(problem, tapes), []
    step = next(run)
    for delta in deltas:
        bar = Judge.of(replace(problem, delta=delta), ()).log_threshold
        while step.log_evidence < bar:
            step = next(run)
        stops.append(sum(step.counts))
    return tuple(stops)


class Optimal:
    """Rule R as something the lab can run: stops when the leader beats every rival in pairs (evidence T3).

    No arm is rejected on the way, so that open cuts are valid with ties too, and atoms cost nothing.
    """

    def run(self, problem: Problem, tapes: Tapes, max_pulls: int) -> Run:
        """Return how the run ended."""
        run, bar = steps(problem, tapes), Judge.of(problem, ()).log_threshold
        while (step := next(run)).log_evidence < bar:
            if sum(step.counts) >= max_pulls:
                return Run(Status.EXHAUSTED, None, step.counts)
        others = tuple(arm for arm in range(len(step.counts)) if arm != step.leader)
        return Run(Status.strict(problem), step.leader, step.counts, others)
