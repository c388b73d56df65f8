"""Baselines to compare with: rules on means, and medians without bounds.

They are correct for readings with sub-Gaussian noise of a known scale and no contamination. On such readings,
rules on means need fewer pulls than rules on medians. Nothing here is certified.
"""

import math
from dataclasses import dataclass

import numpy as np

from truearm.claims.certificate import Status
from truearm.lab.kernels import Floats, Ints, entry, jit
from truearm.lab.simulate import Run, Tapes
from truearm.problem import Problem, check_count, check_positive

_RUNNING, _SHORT, _EXHAUSTED, _DECIDED = range(4)
_N, _ANSWER = range(2)
_SUM, _INDEX = range(2)
_CHUNK = 4096  # pulls of each arm that rules in lock step look at in one go


def mean_radius(n: Floats, k: int, delta: float, scale: float) -> Floats:
    """Return how far a mean of n readings may be from its expectation, for all n and k arms at once.

    A union over n and arms of the sub-Gaussian tail, sum of delta/(2 n^2 k) over both sides below delta.
    """
    return scale * np.sqrt(2 * np.log(4 * k * n**2 / delta) / n)


@dataclass(frozen=True)
class MeanElimination:
    """Successive elimination on means: pull all arms left, drop those whose means are two radii behind."""

    scale: float = 1.0
    """Of the noise; the standard deviation of normal readings."""

    def run(self, problem: Problem, tapes: Tapes, max_pulls: int) -> Run:
        """Return how the run ended."""
        k = len(problem.arms)
        alive, counts, sums = np.arange(k), np.zeros(k, np.int64), np.zeros(k)
        while alive.size > 1:
            n = int(counts[alive[0]])
            new = min(_CHUNK, (max_pulls - int(counts.sum())) // alive.size)
            if new < 1:
                return Run(Status.EXHAUSTED, None, tuple(counts.tolist()), _others(k, alive))
            readings = np.stack([tapes.upto(arm, n + new)[n : n + new] for arm in alive.tolist()])
            steps = np.arange(n + 1.0, n + new + 1)
            with np.errstate(invalid="ignore"):
                means = (sums[alive, None] + np.cumsum(readings, axis=1)) / steps
                behind = means + 2 * mean_radius(steps, k, problem.delta, self.scale) < means.max(axis=0)
            at = int(np.argmax(behind.any(axis=0))) if behind.any() else new - 1
            counts[alive] += at + 1
            sums[alive] = means[:, at] * steps[at]
            alive = alive[~behind[:, at]]
        answer = int(alive[0])
        return Run(Status.SEPARATED, answer, tuple(counts.tolist()), _others(k, alive))


def _others(k: int, alive: Ints) -> tuple[int, ...]:
    return tuple(i for i in range(k) if i not in alive)


@dataclass(frozen=True)
class LilUcb:
    """lil'UCB of Jamieson, Malloy, Nowak and Bubeck, with the constants of its theorem.

    Stops when one arm has had lambda = ((2 + beta)/beta)^2 times the pulls of all others.
    """

    scale: float = 1.0
    eps: float = 0.01
    beta: float = 1.0

    def run(self, problem: Problem, tapes: Tapes, max_pulls: int) -> Run:
        """Return how the run ended."""
        inner = problem.delta * self.eps / (5 * (2 + self.eps))  # the theorem's share of each bound
        factor = (1 + self.beta) * (1 + math.sqrt(self.eps)) * self.scale * math.sqrt(2 * (1 + self.eps))
        ratio = ((2 + self.beta) / self.beta) ** 2
        return _sequential(problem, tapes, max_pulls, np.array([factor, inner, self.eps, ratio]))


@dataclass(frozen=True)
class MeanUcb:
    """LUCB on means: pull the leader or the rival of largest upper limit, until the limits do not overlap."""

    scale: float = 1.0

    def run(self, problem: Problem, tapes: Tapes, max_pulls: int) -> Run:
        """Return how the run ended."""
        k = len(problem.arms)
        return _sequential(problem, tapes, max_pulls, np.array([self.scale, problem.delta / (4 * k), 0.0, -1.0]))


@dataclass(frozen=True)
class PlainMedian:
    """Pull every arm equally often and name the largest median: no bound, no guarantee."""

    pulls: int = 100
    """Of each arm; many people take fewer."""

    def run(self, problem: Problem, tapes: Tapes, max_pulls: int) -> Run:
        """Return how the run ended."""
        k, each = len(problem.arms), check_count("pulls", self.pulls)
        if k * each > max_pulls:
            return Run(Status.EXHAUSTED, None, (0,) * k)
        medians = [np.nanmedian(tapes.upto(arm, each)[:each]) for arm in range(k)]
        answer = int(np.argmax(medians))
        return Run(Status.SEPARATED, answer, (each,) * k, tuple(i for i in range(k) if i != answer))


def _sequential(problem: Problem, tapes: Tapes, max_pulls: int, rule: Floats) -> Run:
    """Run a rule that pulls one arm at a time, the one of largest index."""
    check_positive("scale", float(rule[0]))
    k = len(problem.arms)
    ints, reals = np.zeros((2, k), np.int64), np.zeros((2, k))
    reals[_INDEX] = np.inf
    tape = np.empty((k, 64))
    for arm in range(k):
        tape[arm] = tapes.upto(arm, 64)[:64]
    while (code := _advance(tape, ints, reals, rule, max_pulls)) == _SHORT:
        wider = np.empty((k, 2 * tape.shape[1]))
        for arm in range(k):
            wider[arm] = tapes.upto(arm, wider.shape[1])[: wider.shape[1]]
        tape = wider
    counts = tuple(ints[_N].tolist())
    if code == _EXHAUSTED:
        return Run(Status.EXHAUSTED, None, counts)
    answer = int(ints[_ANSWER, 0])
    return Run(Status.SEPARATED, answer, counts, tuple(i for i in range(k) if i != answer))


@entry
def _advance(tape: Floats, ints: Ints, reals: Floats, rule: Floats, max_pulls: int) -> int:
    """Pull one arm at a time until the rule stops, the budget ends or a tape does."""
    pulls = ints[_N].sum()
    while True:
        arm = _choose_arm(ints, reals, rule)
        if pulls >= max_pulls:
            return _EXHAUSTED
        n = ints[_N, arm]
        if n == tape.shape[1]:
            return _SHORT
        ints[_N, arm] = n + 1
        pulls += 1
        reals[_SUM, arm] += tape[arm, n]
        mean = reals[_SUM, arm] / (n + 1)
        reals[_INDEX, arm] = math.inf if math.isnan(mean) else mean + _radius(rule, n + 1)
        winner = _winner(ints, reals, rule, pulls, arm)
        if winner >= 0:
            ints[_ANSWER, 0] = winner
            return _DECIDED


@jit
def _choose_arm(ints: Ints, reals: Floats, rule: Floats) -> int:
    """Return the arm with the largest index, or, if there is a leader, the one of the two with fewer pulls."""
    leader = -1
    if rule[3] < 0:
        leader = _leader(ints, reals)
    rival = -1
    for i in range(ints.shape[1]):
        if i != leader and (rival < 0 or reals[_INDEX, i] > reals[_INDEX, rival]):
            rival = i
    return leader if leader >= 0 and ints[_N, leader] < ints[_N, rival] else rival


@jit
def _leader(ints: Ints, reals: Floats) -> int:
    leader, top = 0, -math.inf
    for i in range(ints.shape[1]):
        mean = reals[_SUM, i] / max(1, ints[_N, i])
        if mean > top:
            leader, top = i, mean
    return leader


@jit
def _radius(rule: Floats, n: int) -> float:
    if rule[3] > 0:
        return float(rule[0] * math.sqrt(math.log(math.log((1 + rule[2]) * n) / rule[1]) / n))
    return float(rule[0] * math.sqrt(2 * math.log(n * n / rule[1]) / n))


@jit
def _winner(ints: Ints, reals: Floats, rule: Floats, pulls: int, arm: int) -> int:
    """Return the arm that the rule ends with, or -1."""
    if rule[3] > 0:
        n = ints[_N, arm]
        return arm if pulls >= ints.shape[1] and n >= 1 + rule[3] * (pulls - n) else -1
    leader, top = _leader(ints, reals), -math.inf
    for i in range(ints.shape[1]):
        if i != leader:
            top = max(top, reals[_INDEX, i])
    return leader if 2 * reals[_SUM, leader] / ints[_N, leader] - reals[_INDEX, leader] > top else -1
