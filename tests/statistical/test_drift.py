"""A load on all arms makes no winner of equal ones, and independent readings are not called doubtful.

Evidence of drift stands beside the policy: it looks when looks are due and once more at the end, and a winner
counts only if the combined evidence of the tapes is below `LOG_DOUBT`. benchmarks/drift.py reports the full sizes.
"""

import math
from collections import Counter

import numpy as np
import pytest

from truearm import Study
from truearm.evidence.serial import LOG_DOUBT, Serial, combined, due
from truearm.lab import loads
from truearm.run import run

from .promise import kept

pytestmark = pytest.mark.statistical
DELTA, MAX_PULLS = 0.05, 2500
NOMINAL = {"wander": loads.wander, "neighbor": loads.neighbor, "ramp": loads.ramp}
WINNERS = ("certified", "separated", "tolerable")


class Monitor:
    """The tapes of k arms, what they say about drift, and whether that was looked at lately."""

    def __init__(self, k):
        self.tapes, self.states, self.seen = [[] for _ in range(k)], [Serial(i) for i in range(k)], 0

    def doubtful(self, *, now=False):
        n = sum(map(len, self.tapes))
        if now or due(self.seen, n):
            self.states = [s.extended(tape[s.n :]) for s, tape in zip(self.states, self.tapes, strict=True)]
            self.seen = n
        return combined(self.states) >= LOG_DOUBT if self.seen == n else False


def outcome(log_load, rng, *, k=2, goal="min", contamination=0.05):
    """Return "winner", "doubtful" or "none" for one run of equal arms."""
    readings, monitor = iter(loads.times(log_load, rng).tolist()), Monitor(k)

    def source(arm):
        def pull():
            monitor.tapes[int(arm)].append(next(readings))
            return monitor.tapes[int(arm)][-1]

        return pull

    arms = [str(i) for i in range(k)]
    study = Study(arms, goal=goal, contamination=contamination, max_pulls=log_load.size)
    result = run(study, source, watch=monitor.doubtful)  # what `find_best` does
    if monitor.doubtful(now=True):
        return "doubtful"
    return "winner" if result.status.value in WINNERS else "none"


def outcomes(load, runs, *, seed=0, **setting):
    """Count the outcomes of so many runs under a load, a function of the number of pulls and a generator."""
    streams = [np.random.default_rng([seed, i]) for i in range(runs)]
    return Counter(outcome(load(MAX_PULLS, rng), rng, **setting) for rng in streams)


def coins(rng, size):
    return rng.integers(0, 2, size).astype(float)


LAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "heavy tails": lambda rng, size: rng.standard_cauchy(size),
    "run times": lambda rng, size: loads.times(np.zeros(size), rng),
    "0 or 1": coins,
    "rare 1": lambda rng, size: (rng.random(size) < 0.01).astype(float),
    "few values": lambda rng, size: np.round(rng.normal(size=size)),
    "constant": lambda _, size: np.ones(size),
    "infinities": lambda rng, size: np.where(rng.random(size) < 0.3, math.inf, rng.normal(size=size)),
}


def doubts(law, k, runs, *, n=MAX_PULLS, seed=1):
    """Return -log p of the whole tapes of k arms that share n independent readings."""
    rng = np.random.default_rng(seed)
    found = np.empty(runs)
    for i in range(runs):
        found[i] = combined(Serial(j).extended(tape) for j, tape in enumerate(LAWS[law](rng, n).reshape(k, -1)))
    return found


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("law", LAWS)
def test_independent_readings_are_not_doubtful(law, k):
    """200 runs: a chance of .15 at the level .05 is found with a chance of 90%."""
    found = doubts(law, k, 200)
    assert kept(found >= math.log(20), 0.05)
    assert kept(found >= LOG_DOUBT, 0.001)


@pytest.mark.parametrize("law", ["run times", "0 or 1"])
def test_nor_are_those_of_long_tapes_in_blocks(law):
    """200 runs of 10,000 readings per arm, most of them in blocks: power as above."""
    found = doubts(law, 2, 200, n=20_000)
    assert kept(found >= math.log(20), 0.05)
    assert kept(found >= LOG_DOUBT, 0.001)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("law", ["run times", "0 or 1"])
def test_independent_readings_are_not_doubtful_in_full(law, k):
    """5,000 runs: at most 16 doubtful; a chance of .006 passes with a chance of .4%."""
    assert np.count_nonzero(doubts(law, k, 5000) >= LOG_DOUBT) <= 16


@pytest.mark.parametrize("load", NOMINAL)
def test_a_load_makes_no_winner(load):
    """40 runs: a chance of .4 is found with a chance of 98%; without doubts it is more than .5."""
    found = outcomes(NOMINAL[load], 40)
    assert kept(np.arange(40) < found["winner"], DELTA)
    assert found["doubtful"] > 30


@pytest.mark.slow
@pytest.mark.parametrize("contamination", [0.05, None])
@pytest.mark.parametrize("load", NOMINAL)
def test_a_load_makes_no_winner_in_full(load, contamination):
    """400 runs, at most 28 winners: a chance of .15 passes with a chance below 1e-6."""
    assert outcomes(NOMINAL[load], 400, contamination=contamination)["winner"] <= 28
