"""What a cold review found to be false more often than delta, each in the world in which it was found.

A false alarm of these tests: with the stated rates under the null at most 1 in 1,000 seeds would fail, and the
seeds are fixed. Power: before the fixes the counts were 20 of 20, 80 of 200, 30 of 40 and 20 of 20.
"""

import numpy as np
import pytest

import truearm as ta
from reference import count_tapes
from truearm.claims.certify import ratios
from truearm.cli.answer import FAILED, exit_code
from truearm.report.words import standing

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize(("goal", "true"), [("min", 1.3), ("max", 0.7)])
def test_a_difference_is_no_factor(goal, true):
    """15% of the readings are negative, so leads are differences; ratios of the positive medians still hold."""
    rng, missed = np.random.default_rng(3), 0
    for _ in range(20):
        tapes = {"A": rng.normal(100, 3, 400), "B": rng.normal(100 * true, 3, 400)}
        for tape in tapes.values():
            tape[rng.random(400) < 0.15] = -1.0
        [ratio] = ratios(ta.analyze(tapes, goal=goal, contamination=0.05))
        missed += not ratio.low <= true <= ratio.high
    assert missed == 0


def tied_in_an_atom(rng, n):
    """Return two arms whose medians are 10 by an atom each, though nearly all other readings of A are larger."""
    return {"A": np.where(rng.random(n) < 0.6, 10.0, 15.0), "B": np.where(rng.random(n) < 0.51, 10.0, 5.0)}


def test_an_arm_that_ties_is_never_called_worse():
    rng, worse, seen = np.random.default_rng(3), 0, 0
    for _ in range(100):
        found = ta.analyze(tied_in_an_atom(rng, 200), contamination=0.0)
        excluded = standing(found, "B") == "excluded"
        worse += excluded or exit_code(found, unless_best="B") == FAILED
        seen += "B" in found.may_tie
        assert found.best != "A" or "tie" in str(found)
    assert worse <= 13  # closed evidence, at most 5% of 100: more than 13 has a chance of .0005
    assert seen > 20


def test_a_study_that_stops_early_calls_no_tied_arm_worse():
    rng, worse = np.random.default_rng(5), 0
    draws = {"A": (0.6, 10.0, 15.0), "B": (0.51, 10.0, 5.0)}
    pull = {arm: lambda d=d: d[1] if rng.random() < d[0] else d[2] for arm, d in draws.items()}
    for _ in range(20):
        found = ta.find_best(pull, contamination=0.0, max_pulls=1000)
        worse += standing(found, "B") == "excluded"
    assert worse <= 5  # binomial, 20 runs at 5%: more has a chance of .0003; 30 of 40 before


def equal_arms(rng, k, n):
    """Return arms of two values each, 0 in every median set, of which any may lead."""
    return {f"{i}": np.where(rng.random(n) < 0.5, -1.0, 1.0) * (1 + 0.001 * i) for i in range(k)}


def test_a_pair_with_a_breakdown_point_is_excluded():
    """Of the pairs in 12 runs some 10 had a point and were not, because the union over pairs was left out."""
    rng = np.random.default_rng(11)
    for _ in range(12):
        found = ta.analyze(equal_arms(rng, 12, 60), contamination=0.0, design="fixed", delta=0.5, pairs=True)
        for contest in found.contests:
            assert contest.excluded or contest.breakdown.oblivious is None


@pytest.mark.slow
def test_breakdown_points_of_all_pairs_hold_for_all_pairs():
    """20 arms with equal medians: some pair has a point with chance 5% at most. Power .9 at three times that."""
    rng = np.random.default_rng(11)
    false = 0
    for _ in range(120):
        found = ta.analyze(equal_arms(rng, 20, 60), contamination=0.0, design="fixed", pairs=True)
        false += any(contest.breakdown.oblivious is not None for contest in found.contests)
    assert false <= 14  # of 120 at 5%: more has a chance of .0006


def test_a_time_out_is_never_outside_the_range_of_a_share():
    """True shares are .95; a range of good readings made time-outs bad ones, and missed them in 20 of 20."""
    rng = np.random.default_rng(1)

    def pull():
        return float("inf") if rng.random() < 0.05 else rng.uniform(20, 190)

    for _ in range(4):
        options = {"at_most": 200, "between": (0, 200), "contamination": 0.05, "max_pulls": 400}
        found = ta.find_best({"A": pull, "B": pull}, **options)
        assert all(arm.low <= 0.95 <= arm.high for arm in found.arms)


def test_the_error_of_an_audit_is_in_every_sentence():
    rng = np.random.default_rng(2)
    tapes = {name: rng.normal(shift, 1, 400) for name, shift in (("A", 0), ("B", 2), ("C", 2))}
    audited = ta.audit(400, 0, arms=3, delta=0.2)
    found = ta.analyze(tapes, contamination=audited, control="A", fdr=True)
    assert "at most 25% of the arms named better are not" in str(found)
    assert not any("5%, each on its own" in line and "25%" not in line for line in found.assumptions)


def test_ties_are_stated_about_observed_medians():
    """Medians 3 and 4 that often measure alike: a tie was said to be 95% sure, and was false in 23 of 80 runs."""
    rng, tied = np.random.default_rng(4), 0
    for _ in range(40):
        tapes = {"A": np.where(rng.random(400) < 0.62, 3.0, 4.0), "B": np.where(rng.random(400) < 0.49, 3.0, 4.0)}
        found = ta.analyze(tapes, goal="min", contamination=0.0)
        if found.best and found.ties:
            tied += 1
            assert "tie for the lowest observed median" in str(found)
            assert "95% sure that no arm is better, assuming no reading is bad" in str(found)
    assert tied


def test_a_range_is_not_assumed_for_shares():
    tapes = {"A": np.arange(100.0), "B": np.arange(100.0)}
    shares, medians = (ta.analyze(tapes, between=(0, 100), **asked) for asked in ({"at_least": 60}, {}))
    assert not any("True readings are in" in line for line in shares.assumptions)
    assert any("True readings are in" in line for line in medians.assumptions)


def test_coarse_counts_name_no_leader():
    rng = np.random.default_rng(1)
    counts = count_tapes({"A": rng.normal(10, 1, 500), "B": rng.normal(10.2, 1, 500)}, edges=[9, 12])
    assert "looks best (" not in str(ta.analyze(counts))
