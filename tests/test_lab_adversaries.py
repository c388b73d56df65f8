"""Attacks: each keeps the contract of its power, and shows the law it says it shows."""

import math

import numpy as np
import pytest
from scipy import stats

from truearm import bounds, families, lab

EPS, N = 0.1, 20_000
FALSE_ALARM = 1e-4  # of each statistical test in this file
PAIR = lab.instance("G2")
TIES = lab.instance("D2")


def _square_wave(place, arm):
    return np.where((place // 50 + arm) % 2 == 0, -5.0, 5.0)


def _last_good(_law, truth, bad, _arm):
    return np.full(truth.size, truth[~bad][-1])


HONEST = {
    "constant": lab.oblivious(EPS, -math.inf),
    "law": lab.oblivious(EPS, families.cauchy(3.0)),
    "mixture": lab.Mixture(EPS, (families.gaussian(-9), families.gaussian(9)), (0.3, 0.7)),
    "drifting": lab.Drifting(EPS, _square_wave),
    "benign": lab.benign(PAIR, EPS),
    "worst": lab.worst(PAIR, EPS),
    "worst prescient": lab.worst(PAIR, EPS, "prescient"),
    "amplified": lab.Prescient(EPS, lab.amplified),
    "last good": lab.Prescient(EPS, _last_good),
    "steering": lab.Steering(EPS, best=0),
}
MALICIOUS = {
    "worst malicious": lab.worst(PAIR, EPS, "malicious"),
    "top": lab.malicious(EPS, "top", families.gaussian(-3.0)),
    "bottom": lab.malicious(EPS, "bottom", 7.0),
}
ATTACKS = HONEST | MALICIOUS
LAWS = {"normal": families.gaussian(), "ties": TIES.arms[0]}


def _independent(first, second):
    table = np.histogram2d(first, second, bins=2, range=[[-0.5, 1.5]] * 2)[0]
    return stats.chi2_contingency(table).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_marks_and_true_readings_have_their_laws(attack, law):
    tape = attack.tape(np.random.default_rng(1), law, 0, N)
    assert stats.binomtest(int(tape.bad.sum()), N, EPS).pvalue > FALSE_ALARM
    middle = int(np.sum(tape.truth <= 3.0))
    assert stats.binomtest(middle, N, law.cdf(3.0)).pvalue > FALSE_ALARM
    np.testing.assert_array_equal(tape.readings[~tape.bad], tape.truth[~tape.bad])


@pytest.mark.statistical
@pytest.mark.parametrize("arm", [0, 1])
@pytest.mark.parametrize("attack", HONEST.values(), ids=HONEST)
def test_honest_marks_are_independent_of_true_readings(attack, arm):
    tape = attack.tape(np.random.default_rng(2), families.gaussian(), arm, N)
    for cut in (-1.0, 0.0, 1.5):
        assert _independent(tape.bad, tape.truth > cut)


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("name", ["constant", "law", "benign", "worst", "worst malicious", "top", "bottom"])
def test_readings_follow_the_observed_law(name, law):
    attack = ATTACKS[name]
    seen, readings = attack.observed(law, 1), attack.tape(np.random.default_rng(5), law, 1, N).readings
    for x in (-2.0, 0.0, 1.0, 2.5, 3.0):
        count = int(np.sum(readings <= x))
        assert stats.binomtest(count, N, min(max(seen.cdf(x), 0), 1)).pvalue > FALSE_ALARM
        count = int(np.sum(readings < x))
        assert stats.binomtest(count, N, min(max(seen.cdf_left(x), 0), 1)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("power", ["oblivious", "prescient", "malicious"])
@pytest.mark.parametrize("law", [families.gaussian(), families.cauchy(2.0, 3.0), families.uniform()])
def test_worst_moves_medians_as_far_as_lemma_1_says(law, power):
    ends = bounds.extreme_medians(law, EPS, power)
    attack = lab.worst(PAIR, EPS, power)
    assert attack.observed(law, 0).cdf(ends.low) == pytest.approx(0.5)
    assert attack.observed(law, 1).cdf(ends.high) == pytest.approx(0.5)


@pytest.mark.statistical
def test_a_prescient_attack_doubles_the_two_sided_error_of_a_constant_one():  # audit 2.A
    rng, law, misses = np.random.default_rng(10), families.gaussian(), []
    for attack in (lab.oblivious(EPS, math.inf), lab.Prescient(EPS, lab.amplified)):
        below = [np.mean(attack.tape(rng, law, 0, 51).readings <= 0) for _ in range(4000)]
        misses.append(np.mean(np.abs(np.asarray(below) - 0.5) > 0.16))
    assert misses[1] > 1.5 * misses[0] > 0


@pytest.mark.statistical
def test_global_time_lets_an_attack_steer_the_sample():  # audit 1.m
    tape = lab.steered_by_parity(np.random.default_rng(13), families.gaussian(), EPS, 200_000)
    below, n = int(np.sum(tape.readings <= 0)), tape.readings.size
    expected = (0.9 * 0.5 * 0.45) / (0.9 * 0.5 + 0.1 * 0.55)
    assert stats.binomtest(below, n, expected).pvalue > FALSE_ALARM
    assert stats.binomtest(below, n, (1 - EPS) / 2).pvalue < 1e-20
