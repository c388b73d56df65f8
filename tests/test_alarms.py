import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from truearm.bounds.mixture import log_mixture
from truearm.claims.alarms import FALSE_ALARM, clusters, doubts, find, find_unshared_drift
from truearm.claims.certificate import sample_of
from truearm.evidence import Judge
from truearm.evidence.sample import Sample
from truearm.evidence.serial import LOG_DOUBT, log_evidence_of
from truearm.evidence.units import Suspect
from truearm.problem import Problem
from truearm.report import words

ONE = Problem(arms=("A",))
CLEAN = {
    "normal": lambda rng, n: rng.normal(10, 1, n),
    "centered normal": lambda rng, n: rng.normal(0, 1, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1, n),
    "narrow lognormal": lambda rng, n: rng.lognormal(0, 0.3, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "shifted Cauchy": lambda rng, n: 5 + rng.standard_cauchy(n),
    "exponential": lambda rng, n: rng.exponential(1, n),
}


def samples(problem, *tapes):
    return [sample_of(tape, len(tape), problem) for tape in tapes]


def alarms(problem, *tapes):
    return find(problem, samples(problem, *tapes))


def kinds(problem, *tapes):
    return [alarm.kind for alarm in alarms(problem, *tapes)]


def message(problem, tape):
    (alarm,) = alarms(problem, tape)
    return words.alarm(alarm, problem)


@pytest.fixture
def rng():
    return np.random.default_rng(20240511)


@pytest.mark.statistical
@pytest.mark.parametrize("law", CLEAN)
@pytest.mark.parametrize(
    ("runs", "eps"), [(150, 0.0), *(pytest.param(12_000, e, marks=pytest.mark.slow) for e in (0.0, 0.05, None))]
)
def test_clean_readings_hardly_ever_alarm(law, runs, eps, rng):
    """Each kind promises 0.001: the power against 0.003 is 0.93, and a kept promise fails with chance 1e-4.

    150 runs are a smoke test, which only sees false alarms that are a hundred times too frequent.
    """
    problem = Problem(arms=("A",), contamination=eps)
    seen = Counter(kind for _ in range(runs) for kind in kinds(problem, CLEAN[law](rng, 300)))
    for kind, times in seen.items():
        assert binomtest(times, runs, FALSE_ALARM, alternative="greater").pvalue > 1e-4, kind


@pytest.mark.statistical
def test_readings_that_keep_the_promise_to_the_limit_do_not_alarm(rng):
    # Cauchy readings, 5% of them far away or missing: all that was declared. Rates above 7% are found, power 0.9.
    times = 0
    for _ in range(150):
        tape = rng.standard_cauchy(600)
        bad = rng.random(600) < 0.05
        tape[bad] = np.where(rng.random(bad.sum()) < 0.5, np.nan, rng.normal(300, 100, bad.sum()))
        times += bool(kinds(ONE, tape))
    assert binomtest(times, 150, 6 * FALSE_ALARM, alternative="greater").pvalue > 1e-4


@pytest.mark.statistical
def test_looking_again_and_again_does_not_raise_alarms(rng):
    # Any of 30 looks alarms: outliers and missing readings hold at all times. A rate of 20% is found, power 0.97.
    ever = 0
    for _ in range(40):
        tape = rng.standard_cauchy(3000)
        tape[rng.random(3000) < 0.05] = np.nan
        looks = {kind for n in range(100, 3001, 100) for kind in kinds(ONE, tape[:n])}
        ever += bool(looks)
    assert binomtest(ever, 40, 4 * FALSE_ALARM, alternative="greater").pvalue > 1e-4


@pytest.mark.parametrize(("share", "far"), [(0.2, 100.0), (0.2, -100.0), (0.2, np.inf), (0.4, 1e6)])
def test_too_many_outliers_are_told_on_either_side(share, far, rng):
    tape = rng.normal(0, 1, 2000)
    tape[rng.random(2000) < share] = far
    assert kinds(ONE, tape) == ["outliers"]


def test_time_outs_are_not_outliers(rng):
    tape = rng.normal(10, 1, 1000)
    tape[rng.random(1000) < 0.2] = np.inf
    assert kinds(Problem(arms=("A",), goal="min"), tape) == []


@pytest.mark.parametrize(
    ("factor", "words"), [(1000, "1,000 times"), (60, "60 times"), (1 / 60, "1/60 of"), (1e-3, "1/1,000 of")]
)
@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_mistake_of_units_is_told_with_its_factor(factor, words, goal, sign, rng):
    tape = sign * rng.lognormal(1, 0.2, 500)
    tape[::60] *= factor
    text = message(Problem(arms=("A",), goal=goal), tape)
    assert f"are near {words} its median" in text
    assert "nothing was changed" in text


def test_missing_readings_are_judged_by_the_declaration_and_are_no_doubt(rng):
    """Counted at their worst they void nothing, whatever their share (evidence T8)."""
    tape, few = rng.normal(0, 1, 2000), [*np.linspace(0, 1, 20), math.nan]
    tape[rng.random(2000) < 0.09] = np.nan
    assert kinds(replace(ONE, contamination=0.1), tape) == kinds(replace(ONE, contamination=None), few) == []
    assert kinds(ONE, tape) == kinds(replace(ONE, contamination=0.0), few) == ["missing"]
    blind = Problem(arms=("A", "B"), goal="min", rounds=True, contamination="blind")
    assert kinds(blind, few, few[:20]) == []  # a run that was interrupted
    assert kinds(blind, [math.nan] * 20, few) == ["missing"]
    for share in (0.09, 0.6):
        tape[rng.random(2000) < share] = np.nan
        assert doubts(Judge.of(ONE, samples(ONE, tape))) == ()


@pytest.mark.parametrize("k", [1, 3])
def test_outliers_are_told_from_the_number_that_their_half_of_the_level_asks_for(k):
    """docs/assumptions.md: M_n(n - far; 1 - p) >= 2/a, a = 0.001/k; the other half pays for the limits."""
    n, p = 2000, 0.05 + 0.95 * 2 / math.pi * math.atan(1 / 14.826)
    least = next(far for far in range(n) if log_mixture(n - far, n, 1 - p) >= math.log(2 * k / 0.001))
    problem, calm = Problem(arms=tuple("ABC"[:k])), Sample.of(np.arange(float(n)))
    for far, told in ((least - 1, []), (least, ["outliers"])):
        wild = Sample.of(np.append(np.arange(float(n - far)), np.full(far, 1e9)))
        assert [alarm.kind for alarm in find(problem, [wild, *[calm] * (k - 1)])] == told


def test_columns_that_may_be_units_share_the_level():
    asked = []

    class Column(Suspect):
        def p_value(self, level):
            asked.append(level)
            return super().p_value(level)

    rows, rng = np.arange(40), np.random.default_rng(6)
    columns = [Column(name, rng.normal(size=40), rows % 2, rows // 4) for name in ("pid", "day", "user")]
    assert clusters(columns) == ()
    assert asked == pytest.approx([FALSE_ALARM / 3] * 3)


def test_pairs_that_are_looked_at_side_by_side_share_the_level():
    """Evidence T12d: told at exp(evidence)/400 tests, and not at one more."""
    rng = np.random.default_rng(8)
    calm, drifting = rng.normal(size=120), rng.normal(size=120) + np.linspace(0, 3, 120)
    most = int(math.exp(log_evidence_of(calm - drifting) - LOG_DOUBT))
    assert most > 1
    assert [len(find_unshared_drift([calm, drifting], tests)) for tests in (most, most + 1)] == [1, 0]
    twice = [calm, drifting, drifting]
    assert find_unshared_drift(twice) == find_unshared_drift(twice, 2)
