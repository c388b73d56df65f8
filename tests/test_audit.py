"""What is known of eps: audits (extensions E5) and lower bounds (extensions E4)."""

import json
import math

import numpy as np
import pytest
from scipy.stats import binom

import truearm as ta
from reference import vectors
from truearm import Contamination, InvalidArgument, analyze, audit, least_eps
from truearm.bounds.mixture import log_mixture
from truearm.claims.certify import check_support
from truearm.evidence.intervals import distance, eps_of_change
from truearm.problem import Adversary, Problem

VECTORS = vectors("answers_vectors")


@pytest.mark.parametrize(("name", "design"), [("ext-audit-fixed", "fixed"), ("ext-audit-any-time", "sequential")])
def test_bounds_are_those_of_the_vectors(name, design):
    for given, expected in zip(VECTORS[name]["inputs"], VECTORS[name]["expected"], strict=True):
        found = audit(given["A"], given["b"], delta=given["d1"], design=design)
        assert found.eps == pytest.approx(float(expected), abs=2e-9)


def test_so_many_clean_checks_are_needed():
    given, expected = (VECTORS["ext-audit-count"][key] for key in ("inputs", "expected"))
    for design, n in (("fixed", expected["fixed"]), ("sequential", expected["any_time"])):
        just, less = (audit(checks, 0, delta=given["d1"], design=design).eps for checks in (n, n - 1))
        assert just <= given["eps"] < less


def test_the_bound_covers():
    """Exactly, by the binomial law: the chance that the fixed bound is below the truth is at most delta."""
    for eps in (0.01, 0.05, 0.2):
        missed = sum(binom.pmf(b, 60, eps) for b in range(61) if audit(60, b, design="fixed").eps < eps)
        assert missed <= 0.05


@pytest.mark.parametrize("eps", [0.05, 0.2])
def test_the_bound_covers_whenever_one_stops(eps):
    """Along 2,000 tapes of 150 checks the truth is ever excluded in at most 0.05 of them, plus four errors."""
    rng = np.random.default_rng(0)
    bad = (rng.random((2000, 150)) < eps).cumsum(axis=1)
    n = np.arange(1, 151)
    ever = (log_mixture(bad, n, eps) >= math.log(1 / 0.05)).any(axis=1)
    assert 0.001 < ever.mean() <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 2000)
    some = [(int(n[i]), int(bad[r, i])) for r in range(5) for i in (20, 80, 149)]
    for checks, wrong in some:  # the interval is what the e-value does not exclude
        assert (audit(checks, wrong).eps < eps) == bool(log_mixture(wrong, checks, eps) >= math.log(20))


def test_each_arm_has_its_share():
    assert audit(100, 0, arms=5).eps == audit(100, 0, delta=0.01).eps
    each = audit([100, 60], [1, 0])
    assert each.eps == max(audit(100, 1, delta=0.025).eps, audit(60, 0, delta=0.025).eps)
    assert (each.arms, each.delta) == (2, 0.05)
    assert audit([100, 60], 0).bad == (0, 0)


def test_an_audit_is_a_contamination():
    found = audit(100, 0, delta=0.01)
    problem = Problem(arms=("A", "B"), contamination=found)
    assert problem.contamination == Contamination(found.eps, error=0.01)
    assert problem.error == pytest.approx(0.06)
    rng = np.random.default_rng(0)
    result = analyze({"A": rng.normal(2, 1, 300), "B": rng.normal(0, 1, 300)}, contamination=found)
    assert "94% sure" in str(result)
    assert any("comes from an audit and is wrong with probability at most 1%" in s for s in result.assumptions)
    assert ta.Result.from_dict(json.loads(json.dumps(result.to_dict()))).problem == result.problem


def test_a_study_is_not_audited_as_if_its_size_was_fixed():
    """A study with few bad readings stops sooner: the fixed bound was below the truth in 12.6% instead of 10%."""
    rng = np.random.default_rng(0)
    result = ta.find_best({"A": lambda: rng.normal(3), "B": rng.normal}, contamination=None)
    with pytest.raises(InvalidArgument, match="choose the pulls to check by a coin when they are issued"):
        audit(10, 0, of=result, design="fixed")
    assert audit(10, 0, of=result) == audit(10, 0, arms=2)
    tapes = {"A": np.arange(60.0), "B": np.arange(60.0) - 90}
    fixed = analyze(tapes, design="fixed")
    assert audit(59, 0, of=fixed, design="fixed") == audit(59, 0, arms=2, design="fixed")
    with pytest.raises(InvalidArgument, match="design must be 'sequential'"):
        audit(59, 0, of=analyze(tapes), design="fixed")


@pytest.mark.parametrize(("n", "apart", "eps"), [(500, 0.2, 0.018), (2000, 0.1, 0.009)])
def test_two_periods_that_differ_show_bad_readings(n, apart, eps):
    one, two = np.arange(n) / n, np.where(np.arange(n) < apart * n, 5.0, np.arange(n) / n)
    assert distance(np.sort(one), np.sort(two)) == pytest.approx(apart, abs=2 / n)
    assert least_eps(one, two) == pytest.approx(eps, abs=2e-3)
    assert least_eps(one, two, adversary="malicious") == pytest.approx(least_eps(one, two) / 2)


def test_one_law_shows_nothing():
    """One false alarm in 1,000 pairs is promised; 5 of 300 would be one chance in 10,000."""
    rng = np.random.default_rng(1)
    pairs = rng.normal(size=(300, 2, 64))
    assert sum(least_eps(x, y) > 0 for x, y in pairs) < 5
    tapes = rng.normal(size=(300, 200))
    assert sum(eps_of_change(tape, 0.001, Adversary.OBLIVIOUS) > 0 for tape in tapes) < 5


def test_a_decision_that_is_not_supported_is_told():
    tapes = {"A": np.arange(1024) * 0.618 % 1 + 0.15, "B": np.arange(1024) * 0.618 % 1}
    tapes["B"][:512] -= 0.6
    found = check_support(analyze(tapes, contamination=None), tapes)
    assert found.best == "A"
    alarm = found.alarms[0]
    assert (alarm.kind, alarm.arm) == ("unsupported", "B")
    assert "so it is not supported" in str(found)
    quiet = {arm: np.roll(tape, 0) for arm, tape in tapes.items()}
    quiet["B"] = np.random.default_rng(0).permutation(tapes["B"])
    assert check_support(analyze(quiet, contamination=None), quiet).alarms == ()
