"""Baselines keep their promise on clean normal readings and break it under contamination; ours does not."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest

from truearm.lab import instance, oblivious

baselines = pytest.importorskip("truearm.lab.baselines")
simulate = pytest.importorskip("truearm.lab.simulate").simulate

ON_MEANS = [baselines.MeanElimination(), baselines.LilUcb(), baselines.MeanUcb()]


def directed(eps):
    return oblivious(eps, (-15.0, 15.0))


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ON_MEANS, ids=lambda policy: type(policy).__name__)
def test_means_hold_on_clean_normal_readings(policy):
    done = simulate(policy, instance("G5w"), None, 200, delta=0.05)
    errors = done.summary.errors.count
    assert done.summary.answered.count == 200
    assert binomtest(errors, 200, 0.05, alternative="greater").pvalue > 1e-4


@pytest.mark.parametrize("policy", ON_MEANS, ids=lambda policy: type(policy).__name__)
def test_means_mislead_under_directed_contamination(policy):
    done = simulate(policy, instance("G2"), directed(0.1), 40, delta=0.05)
    assert done.summary.errors.count >= 36


def test_the_default_policy_holds_there():
    done = simulate("toptwo", instance("G2"), directed(0.1), 100, delta=0.05)
    assert binomtest(done.summary.errors.count, 100, 0.05, alternative="greater").pvalue > 1e-4


def test_plain_medians_have_no_guarantee():
    done = simulate(baselines.PlainMedian(16), instance("G5s"), None, 100)
    assert done.summary.errors.value > 0.2


@pytest.mark.parametrize(
    "policy", [*ON_MEANS, baselines.PlainMedian(50)], ids=lambda policy: type(policy).__name__
)
def test_budgets_are_kept(policy):
    done = simulate(policy, instance("G5s"), None, 4, max_pulls=120)
    assert set(done.runs["status"]) == {"exhausted"}
    assert done.runs["pulls"].max() <= 120


def test_elimination_on_means_looks_after_every_round():
    tapes = np.array([[10.0] * 4096, [0.0] * 4096])
    given = SimpleNamespace(upto=lambda arm, _: tapes[arm])
    problem = simulate("toptwo", instance("D2"), None, 1).problem
    run = baselines.MeanElimination().run(problem, given, 4096)
    n = np.arange(1.0, 50)
    first = int(np.argmax(2 * baselines.mean_radius(n, 2, 0.05, 1.0) < 10)) + 1
    assert run.counts == (first, first)
