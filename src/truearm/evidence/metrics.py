"""Many metrics of the same runs: evidence from rounds for each, and what may be claimed about all together.

A pair is a metric of one arm and of the reference. Three one-sided claims are possible for each: the arm is worse
than the reference by more than the tolerance, it is not, it is better. Bigger is better here. Arrays have the
kinds of claim first, then the pairs, then the rounds.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from truearm.bounds.mixture import log_mixture
from truearm.bounds.search import last_true
from truearm.evidence.comparison import false_discovery
from truearm.evidence.judge import Breakdown
from truearm.evidence.sample import Floats
from truearm.evidence.wins import PRIOR, win_level
from truearm.problem import Adversary

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]

Kind = Literal["worse", "within", "better"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Worse by more than the tolerance; not worse by more than it; better, without any tolerance."""
WORSE, WITHIN, BETTER = range(len(KINDS))


def rounds_won(reference: Floats, bar: Floats, arm: Floats) -> Bools:
    """Return which rounds support each kind of claim; a round with a missing reading supports no claim.

    Readings are oriented, a row per pair; the bar is the reference made worse by the tolerance.
    """
    return np.stack((arm < bar, arm >= bar, arm > reference))  # extensions D4


@dataclass(frozen=True, slots=True, eq=False)
class MetricEvidence:
    """The log-evidence for every claim after some rounds: the highest so far, and the last."""

    level: float
    rounds: int
    wins: Counts
    highest: Floats
    last: Floats

    @classmethod
    def begin(cls, pairs: int, level: float) -> "MetricEvidence":
        """Return what is known before the first round, at a level of `wins.win_level`."""
        shape = (len(KINDS), pairs)
        return cls(level, 0, np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape))

    def after(self, wins: Bools) -> "MetricEvidence":
        """Return what is known after more rounds."""
        if not wins.shape[2]:
            return self
        counts = self.wins[:, :, None] + np.cumsum(wins, axis=2)
        rounds = self.rounds + np.arange(1, wins.shape[2] + 1)
        found = log_mixture(rounds - counts, rounds, self.level, PRIOR)  # extensions E1, D4
        highest = np.maximum(self.highest, found.max(axis=2))
        return MetricEvidence(self.level, int(rounds[-1]), counts[:, :, -1], highest, found[:, :, -1])

    def claims(self, delta: float, *, fdr: bool = False, doubted: Bools | None = None) -> Bools:
        """Return which claims are made; false discoveries are bounded among pairs that are not doubted."""
        return discover(self, delta, doubted) if fdr else step_down(self.highest, delta)

    def is_futile(self, delta: float) -> Bools:
        """Return the pairs for which unlimited rounds like these would show neither worse nor not worse."""
        if self.level <= 0:
            return np.ones(self.wins.shape[1], dtype=bool)
        bar = math.log(2 * max(1, self.wins.shape[1]) / delta)
        cannot = log_mixture(self.wins, self.rounds, 1 - self.level, PRIOR) >= bar  # extensions E6
        return np.asarray(cannot[WORSE] & cannot[WITHIN])


def breakdown_of_rounds(wins: Bools, log_bar: float) -> Breakdown:
    """Return the largest contamination at which the evidence of some rounds ever reached a bar, by adversary.

    With the bar of all places at once, 2P/delta, any of the claims that reach it at the true eps is false with a
    chance of at most delta (extensions D4).
    """
    rounds = np.arange(1, wins.size + 1)
    null = rounds - np.cumsum(wins)

    def is_reached(eps: float, adversary: Adversary) -> bool:
        level = win_level(eps, adversary)
        return level > 0 and bool((log_mixture(null, rounds, level, PRIOR) >= log_bar).any())

    if not wins.size or not is_reached(0.0, Adversary.OBLIVIOUS):
        return Breakdown(None, None, None)
    # the levels of the first two are the same; a malicious adversary with half of eps is as bad (extensions E1)
    most = last_true(lambda eps: is_reached(eps, Adversary.OBLIVIOUS), 0.0, 0.5, accuracy=1e-4)
    return Breakdown(most, most, most / 2)


def step_down(log_evidence: Floats, delta: float) -> Bools:
    """Return what may be claimed so that any of it is false with probability at most delta (extensions D4).

    The most evidence goes first. A claim needs evidence in proportion to the places left, two per pair: one for
    worse, one for the other two kinds, which is taken when the arm is claimed to be better.
    """
    claims, left = np.zeros(log_evidence.shape, dtype=bool), 2 * log_evidence.shape[1]
    for place in np.argsort(-log_evidence, axis=None, kind="stable").tolist():
        kind, pair = divmod(place, log_evidence.shape[1])
        if log_evidence[kind, pair] < math.log(left / delta):
            break
        claims[kind, pair] = True
        left -= kind != WITHIN
    return claims


def discover(found: MetricEvidence, delta: float, doubted: Bools | None = None) -> Bools:
    """Return the differences claimed with a false discovery rate of at most delta (extensions D4).

    That an arm is not worse by more than the tolerance is a separate statement, with its own delta. Claims lower
    the bar for each other, so claims about doubtful pairs, or pairs shown not to be worse, do not count.
    """
    pairs = found.last.shape[1]
    claims = np.zeros(found.last.shape, dtype=bool)
    claims[WITHIN] = found.highest[WITHIN] >= math.log(max(1, pairs) / delta)
    bar, conflicting = math.log(2 * max(1, pairs) / delta), np.zeros(pairs, dtype=bool)
    while True:
        hidden = conflicting if doubted is None else conflicting | doubted
        differences = np.where(hidden, -np.inf, found.last[[WORSE, BETTER]]).ravel()
        claims[[WORSE, BETTER]] = False
        for place in false_discovery(dict(enumerate(differences.tolist())), bar):
            claims[(WORSE, BETTER)[place // pairs], place % pairs] = True
        if not (both := claims[WORSE] & claims[WITHIN]).any():
            claims[WORSE] |= conflicting
            return claims
        conflicting |= both
