"""Extensions D1 to D3: how often a false claim is ever made, about a control or about an order of all arms.

Worst case: variants of the values 0 and 1, a control of 0 and -1, so that all medians are 0 and one cut is all
that matters. A variant says what a coin says, the control another, and nothing is lost to the minimum over cuts.
"""

import math

import numpy as np
import pytest

from truearm.bounds.mixture import log_mixture
from truearm.claims.certify import control_claims
from truearm.evidence import Judge
from truearm.evidence.comparison import false_discovery, order, step_down
from truearm.evidence.sample import Sample
from truearm.problem import Contamination, Problem

from .promise import kept, power

pytestmark = pytest.mark.statistical
DELTA = 0.1


def coins(rng, runs, k, looks):
    """Return log-evidence of k-1 equal variants over the control at every look: (looks, runs, k-1)."""
    counts = np.zeros((runs, k), dtype=np.intp)
    for n in range(1, looks + 1):
        counts += rng.random((runs, k)) < 0.5
        table = log_mixture(np.arange(n + 1), n, 0.5)
        yield table[counts[:, 1:]] + table[counts[:, :1]]


def test_coins_are_what_the_judge_sees():
    """The least over cuts is at the common one, for all counts but the most lopsided."""
    rng, problem = np.random.default_rng(0), Problem(arms=("A", "B"), contamination=None)
    for _ in range(50):
        ones, zeros = rng.integers(5, 36, 2).tolist()
        control = Sample.of([0.0] * zeros + [-1.0] * (40 - zeros))
        variant = Sample.of([0.0] * (40 - ones) + [1.0] * ones)
        expected = float(log_mixture(40 - ones, 40, 0.5) + log_mixture(zeros, 40, 0.5))
        found = Judge.of(problem, [control, variant]).better(1, 0).log_value
        assert found == pytest.approx(expected) or (found < expected and expected > 10)


@pytest.mark.parametrize("k", [5, 10])
@pytest.mark.parametrize(("runs", "looks"), [(1500, 200), pytest.param(20_000, 1000, marks=pytest.mark.slow)])
def test_no_arm_equal_to_the_control_beats_it(k, runs, looks):
    """Of 1,500 runs, looked at after every reading; power above 0.99 against twice the promised 0.1."""
    problem = Problem(arms=tuple(map(str, range(k))), delta=DELTA, contamination=None)
    bar = Judge.of(problem, ()).log_bar(k - 1)
    wrong = np.zeros(runs, dtype=bool)
    for evidence in coins(np.random.default_rng(k), runs, k, looks):
        wrong |= evidence.max(axis=1) >= bar
    assert kept(wrong, DELTA)
    assert power(runs, DELTA, times=2) > 0.99
    assert wrong.mean() > 0.15 * DELTA  # the bound is not idle: a threshold far too high would hide a mistake


@pytest.mark.parametrize(("runs", "looks"), [(400, 150), pytest.param(5000, 600, marks=pytest.mark.slow)])
def test_true_winners_do_not_make_false_claims_cheaper_than_delta(runs, looks):
    """Step-down with 4 variants that win at once and 5 equal to the control: power 0.97 against twice 0.1."""
    problem = Problem(arms=tuple(map(str, range(10))), delta=DELTA, contamination=None)
    sure, log_bar = dict.fromkeys(range(5, 9), 1000.0), Judge.of(problem, ()).log_bar
    wrong = np.zeros(runs, dtype=bool)
    for evidence in coins(np.random.default_rng(3), runs, 6, looks):
        for run in np.flatnonzero(~wrong & (evidence.max(axis=1) >= log_bar(5))).tolist():
            values = {**sure, **dict(enumerate(evidence[run].tolist()))}
            claimed = step_down(values, log_bar)
            wrong[run] = any(variant < 5 for variant in claimed)
    assert kept(wrong, DELTA)
    assert power(400, DELTA, times=2) > 0.97


@pytest.mark.parametrize(("runs", "looks"), [(1500, 150), pytest.param(20_000, 600, marks=pytest.mark.slow)])
def test_false_discoveries_are_few_on_average_at_the_worst_stop(runs, looks):
    """4 true winners, 5 null variants; stopped as soon as a null one is claimed. Their mean share is at most 5/90.

    A share lies in [0, 1/5] while the 4 are claimed, so that the mean of 1,500 has a standard error below 0.003:
    twice the promise would be seen with certainty, and the bound below leaves four of them.
    """
    bar = math.log(9 / DELTA)
    share, done = np.zeros(runs), np.zeros(runs, dtype=bool)
    for evidence in coins(np.random.default_rng(4), runs, 6, looks):
        for run in np.flatnonzero(~done & (evidence.max(axis=1) >= bar - math.log(9))).tolist():
            values = {**dict.fromkeys(range(5, 9), 1000.0), **dict(enumerate(evidence[run].tolist()))}
            claimed = false_discovery(values, bar)
            false = sum(variant < 5 for variant in claimed)
            share[run], done[run] = false / len(claimed), false > 0
    promised = DELTA * 5 / 9
    assert share.mean() <= promised + 4 * share.std() / math.sqrt(runs)
    assert done.mean() > 0.05  # such stops do happen


@pytest.mark.parametrize("runs", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_equal_arms_have_no_order(runs):
    """Five arms: two of the values 0 and 1, two of 0 and -1, one uniform between; all medians 0. Power 0.92."""
    problem = Problem(arms=tuple("ABCDE"), delta=DELTA, contamination=None)
    rng, wrong = np.random.default_rng(5), []
    for _ in range(runs):
        up, down = rng.random((2, 120)) < 0.5, rng.random((2, 120)) < 0.5
        tapes = [*up.astype(float), *(down - 1.0), rng.uniform(-1, 1, 120)]
        looks = (15, 30, 60, 120)
        found = (
            order(Judge.of(problem, [Sample.of(tape[:n]) for tape in tapes]), tuple(range(5))).better.any()
            for n in looks
        )
        wrong.append(any(found))
    assert kept(wrong, DELTA)
    assert power(runs, DELTA) > 0.9


@pytest.mark.parametrize(("claim", "method"), [("better", "holm"), ("better", "fdr"), ("not_better", "holm")])
@pytest.mark.parametrize("runs", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_claims_about_arms_equal_to_the_control_are_rare(claim, method, runs):
    """Equal normal arms; 10% of the readings of all arms speak for the claim. Power 0.92."""
    eps, far = 0.1, 1e9 if claim == "better" else -1e9
    problem = Problem(arms=tuple("ABCDE"), delta=DELTA, contamination=Contamination(eps))
    rng, wrong = np.random.default_rng(6), []
    for _ in range(runs):
        tapes = rng.standard_normal((5, 200))
        bad = rng.random((5, 200)) < eps
        tapes[bad] = far
        tapes[0][bad[0]] = -far
        found = (
            getattr(control_claims(Judge.of(problem, [Sample.of(t[:n]) for t in tapes]), "A", method), claim)
            for n in (25, 50, 100, 200)
        )
        wrong.append(any(found))
    assert kept(wrong, DELTA)
    assert power(runs, DELTA) > 0.9
