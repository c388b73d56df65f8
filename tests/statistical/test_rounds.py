"""In rounds a load makes no winner of equal arms, whatever it does, and a true winner is found under it.

Runs are those of `Study(rounds=True)`, with run times of `lab.loads`: noise .03 in their logarithms, 3% slow
spikes. benchmarks/rounds.py reports the full sizes.
"""

import math

import numpy as np
import pytest

from truearm import Contamination, Study
from truearm.lab import loads

from .promise import kept

pytestmark = pytest.mark.statistical
DELTA = 0.05
LOADS = {"quiet": None, **loads.LOADS}


def in_rounds(tapes, *, policy="toptwo", **setting):
    """Return the study of these tapes, a row per arm, after it ended or the rounds did."""
    arms = [str(i) for i in range(len(tapes))]
    study = Study(arms, rounds=True, policy=policy, max_pulls=tapes.size, **setting)
    done = dict.fromkeys(arms, 0)
    while counts := study.ask_counts():
        study.tell_arrays({arm: tapes[int(arm)][done[arm] : done[arm] + n] for arm, n in counts.items()})
        for arm, n in counts.items():
            done[arm] += n
    return study


def winners(make, runs, *, seed=0, **setting):
    """Return in which runs a winner was named."""
    found = [in_rounds(make(np.random.default_rng([seed, i])), **setting)._verdict for i in range(runs)]
    return np.array([verdict.best is not None for verdict in found])


def equal(load, k=2, rounds=400):
    return lambda rng: loads.side_by_side(LOADS[load], [1.0] * k, rounds, rng)


@pytest.mark.parametrize("contamination", [0.05, None])
@pytest.mark.parametrize("load", LOADS)
def test_a_load_makes_no_winner(load, contamination):
    """60 runs of 400 rounds: a chance of .25 is found with a chance of 97%."""
    assert kept(winners(equal(load), 60, contamination=contamination, goal="min"), DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("contamination", [0.05, None])
@pytest.mark.parametrize("load", LOADS)
def test_a_load_makes_no_winner_in_full(load, contamination, k):
    """400 runs of 1,500 rounds: a chance of .12 is found with a chance of 99%."""
    assert kept(winners(equal(load, k, 1500), 400, contamination=contamination, goal="min"), DELTA)


def autocorrelated(rng, rounds, rho=0.9):
    """Return two equal arms, each with errors of its own that depend on the last: AR(1), as pulls take turns."""
    noise = rng.normal(size=(2, rounds)) * math.sqrt(1 - rho * rho)
    noise[:, 0] = rng.normal(size=2)
    for t in range(1, rounds):
        noise[:, t] += rho * noise[:, t - 1]
    return noise


def shared(rng, rounds, rho=0.9):
    """Return two equal arms on one process of this dependence, which both meet one after the other."""
    steps = rng.normal(size=2 * rounds) * math.sqrt(1 - rho * rho)
    steps[0] = rng.normal()
    for t in range(1, 2 * rounds):
        steps[t] += rho * steps[t - 1]
    return rng.permuted(steps.reshape(rounds, 2), axis=1).T


@pytest.mark.parametrize("contamination", [0.05, None])
def test_dependent_readings_make_no_winner(contamination):
    """120 runs of an AR(1) process of .9, which made a winner in 17 of 40 by pulls alone: .2 is found with 99%."""
    named = winners(lambda rng: shared(rng, 400), 120, contamination=contamination)
    assert kept(named, DELTA)


@pytest.mark.parametrize("missing", ["worst", "independent"])
def test_who_fails_when_slow_does_not_win(missing):
    """60 runs: readings above the median are lost; promised to be independent, that is found out."""

    def make(rng):
        tapes = loads.side_by_side(None, [1.0, 1.0], 400, rng)
        tapes[0][tapes[0] > 1.0] = np.nan
        return tapes

    for i in range(60):
        found = in_rounds(make(np.random.default_rng(i)), goal="min", missing=missing).result
        assert found.best is None


def spoiled(rng, rounds, eps, adversary):
    """Return equal arms of which the first is made to win wherever a reading may be bad."""
    tapes = rng.normal(size=(2, rounds))
    if adversary == "malicious":  # rounds that it lost, as many as the levels allow
        bad = (tapes[0] < tapes[1]) & (rng.random(rounds) < 4 * eps)
        tapes[0][bad] = 9.0
    else:
        high, low = rng.random(rounds) < eps, rng.random(rounds) < eps
        tapes[0][high], tapes[1][low] = 9.0, -9.0
    return tapes


@pytest.mark.parametrize("adversary", ["oblivious", "prescient", "malicious"])
def test_the_declared_contamination_makes_no_winner(adversary):
    """150 runs at eps .1, delta .1, equal arms spoiled at their worst: .25 is found with a chance of 99%."""
    declared = Contamination(0.05 if adversary == "malicious" else 0.1, adversary)
    named = winners(
        lambda rng: spoiled(rng, 400, declared.eps, adversary), 150, contamination=declared, delta=0.1
    )
    assert kept(named, 0.1)


@pytest.mark.parametrize("load", ["quiet", "wander", "neighbor"])
def test_a_winner_is_found_under_every_load(load):
    """20 runs, 5% apart: all decided, and rightly, within 400 rounds."""
    for i in range(20):
        tapes = loads.side_by_side(LOADS[load], [1.05, 1.0], 400, np.random.default_rng(i))
        assert in_rounds(tapes, goal="min")._verdict.best == "1"


def test_the_interval_covers_the_median_ratio():
    """100 runs of 200 rounds under a walking load at delta .2: a miss of .4 is found with a chance of 99%."""
    missed = []
    for i in range(100):
        tapes = loads.side_by_side(loads.walk, [1.0, 1.1], 200, np.random.default_rng(i))
        judge = in_rounds(tapes, goal="min", delta=0.2, policy="toptwo")._state.judge
        found = judge.apart(0, 1)
        missed.append(not found.low <= 1.1 <= found.high)
    assert kept(missed, 0.2)


def test_the_best_of_several_is_never_the_one_that_only_others_lose_to():
    """A beats B, B beats C, C beats A in 60% of rounds: with no arm unbeaten, a winner beats all it rejected."""
    rng, wrong = np.random.default_rng(4), 0
    for _ in range(40):
        order = rng.integers(0, 3, 600)
        tapes = np.array([(order + shift) % 3 for shift in range(3)], dtype=float)
        swap = rng.random(600) < 0.1
        tapes[:, swap] = -tapes[:, swap]
        verdict = in_rounds(tapes)._verdict
        wrong += verdict.best is not None and all(claim.leader == verdict.best for claim in verdict.claims)
    assert wrong == 0
