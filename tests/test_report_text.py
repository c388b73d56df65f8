import math

import numpy as np
import pytest
from hypothesis import strategies as st

from truearm.claims.certificate import Alarm, Status, Verdict
from truearm.claims.certify import certify
from truearm.claims.ratios import ratios
from truearm.claims.result import Arm
from truearm.problem import Problem
from truearm.report.text import (
    PLAIN,
    SIZES,
    TIMES,
    in_unit,
    markdown,
    paragraph,
    rows,
    standing_of,
    table,
    unit_for,
)
from truearm.study import Study

positive = st.floats(1e-3, 1e3)


def arm(observed):
    return Arm("A", 16, observed, -math.inf, math.inf, -math.inf, math.inf, 0.1, 0.0, math.inf)


def studied(values, goal="min", **options):
    """Return a finished study whose arms always say the same."""
    study = Study(list(values), goal=goal, **options)
    while counts := study.ask_counts():
        study.tell_arrays({arm: [values[arm]] * n for arm, n in counts.items()})
    return study


@pytest.mark.parametrize(
    ("metric", "median", "sign"),
    [
        ("wall", 2e-4, "us"),
        ("wall", 0.02, "ms"),
        ("cpu", 3.0, "s"),
        ("memory", 5e6, "MiB"),
        ("memory", 5e9, "GiB"),
        ("stdout", 5e9, ""),
        ("wall", math.nan, "ms"),
    ],
)
def test_units_suit_the_readings(metric, median, sign):
    assert unit_for(metric, [arm(median)]).sign == sign


def test_a_unit_may_be_asked_for():
    assert unit_for("wall", [arm(2.0)], "millisecond") == TIMES[1]
    assert unit_for("memory", [arm(2.0)], "millisecond") == SIZES[0]


def test_showing_in_a_unit_scales_every_number():
    study = studied({"A": 0.012, "B": 0.024}, tolerance=0.001)
    shown = in_unit(study.result, TIMES[1])
    assert [a.observed for a in shown.arms] == pytest.approx([12.0, 24.0])
    assert shown.problem.tolerance.amount == pytest.approx(1.0)
    assert paragraph(shown, TIMES[1]).startswith("A has the lowest median: B's is 2x as high")


def test_relative_tolerances_have_no_unit():
    study = studied({"A": 0.012, "B": 0.024}, tolerance="2%")
    assert in_unit(study.result, TIMES[1]).problem.tolerance.amount == 0.02


def test_ratios_are_relative_to_the_leader_or_to_whom_one_names():
    study = studied({"A": 1.0, "B": 2.0, "C": 4.0})
    found = ratios(study.result)
    assert [(r.arm, r.reference, r.observed) for r in found] == [("B", "A", 2.0), ("C", "A", 4.0)]
    named = ratios(study.result, "C")
    assert [(r.arm, r.observed) for r in named] == [("A", 0.25), ("B", 0.5)]


@pytest.mark.parametrize("goal", ["min", "max"])
def test_ratios_to_the_best_arm_are_as_sharp_as_what_the_evidence_says(goal):
    tapes = {"A": np.linspace(1.0, 1.1, 60), "B": np.linspace(3.0, 3.3, 60)}
    best = "A" if goal == "min" else "B"
    verdict = Verdict(status=Status.CERTIFIED, best=best, candidates=(best,))
    result = certify(Problem(arms=("A", "B"), goal=goal), tapes, verdict)
    [found], [lead] = ratios(result), result.better_by
    least = found.low if goal == "min" else 1 / found.high
    assert lead.at_least <= least * (1 + 1e-12)
    assert least <= 3.0


def test_differences_alarms_and_doubts_are_shown_in_the_unit_too():
    tapes = {"A": [-0.5] * 200, "B": [0.5] * 200}
    verdict = Verdict(status=Status.CERTIFIED, best="B", candidates=("A", "B"))
    shown = in_unit(certify(Problem(arms=("A", "B")), tapes, verdict), TIMES[1])
    assert shown.better_by[0].observed == pytest.approx(1000)
    assert [alarm.values for alarm in shown.alarms] == [(-500.0,), (500.0,)]


def test_negative_readings_have_no_ratio():
    study = studied({"A": -1.0, "B": 2.0}, goal="max")
    assert ratios(study.result) == ()


@pytest.mark.statistical
def test_ratios_contain_the_truth_under_contamination():
    # 60 races of laws with ratio 1.5, 5 % of the readings of A far out; each end errs with probability <= 5 %.
    # More than 12 errors of 60 have probability 3e-5 if the rate is 10 %.
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(60):
        tapes = {name: scale * rng.lognormal(0, 0.1, 60) for name, scale in (("A", 1.0), ("B", 1.5))}
        tapes["A"][rng.random(60) < 0.05] = 100.0
        verdict = Verdict(status=Status.CERTIFIED, best="A", candidates=("A",))
        [found] = ratios(certify(Problem(arms=("A", "B"), goal="min"), tapes, verdict))
        wrong += not found.low <= 1.5 <= found.high
    assert wrong <= 12


@pytest.mark.parametrize(
    ("metric", "goal", "words"),
    [
        ("wall", "min", "A is fastest: "),
        ("memory", "min", "A is smallest: "),
        ("stdout", "min", "A has the lowest median: "),
    ],
)
def test_a_race_is_told_in_words_for_what_was_measured(metric, goal, words):
    study = studied({"A": 1.0, "B": 2.0}, goal=goal)
    assert paragraph(study.result, PLAIN, metric).startswith(words)
    assert "each run is bad" in paragraph(study.result, PLAIN, metric)


def test_slow_is_not_called_fast_when_more_is_better():
    study = studied({"A": 2.0, "B": 1.0}, goal="max")
    assert paragraph(study.result, PLAIN, "wall").startswith("A has the highest median: 2x B's")


@pytest.mark.parametrize(("goal", "late"), [("min", math.inf), ("max", -math.inf)])
def test_a_censored_quantile_is_shown_as_a_time_out(goal, late):
    study = studied({"A": 1.0, "late": late}, goal=goal)
    found = ratios(study.result)
    shown = {row.arm: row for row in rows(study.result, PLAIN, found, censored=study.problem.censored)}
    assert shown["late"].quantile == "time-out"
    assert shown["A"].quantile == "1"
    assert {row.arm: row for row in rows(study.result, PLAIN)}["late"].quantile in ("inf", "-inf")
    assert shown["late"].relative == ("-" if goal == "min" else "")


def test_the_table_is_aligned_and_the_standing_told():
    study = studied({"A": 1.0, "B": 20.0})
    lines = table(rows(study.result, PLAIN, ratios(study.result))).splitlines()
    assert lines[0].split()[:3] == ["command", "runs", "median"]
    assert lines[1].endswith("best")
    assert lines[2].endswith("excluded")
    assert lines[1].index("best") == lines[2].index("excluded")


def test_long_names_are_cut_to_the_width_of_a_terminal():
    study = studied({"A" * 200: 1.0, "B": 20.0})
    lines = rows(study.result, PLAIN)
    assert max(map(len, table(lines, 80).splitlines())) <= 80
    assert "A" * 200 in table(lines)


def test_ties_stand_as_ties_and_nothing_calls_them_excluded():
    study = studied({"A": 3.0, "B": 3.0, "C": 9.0})
    standings = {arm: standing_of(study.result, arm) for arm in "ABC"}
    assert sorted(standings.values()) == ["best", "excluded", "tied"]
    assert standings["C"] == "excluded"


def test_an_arm_of_a_doubtful_result_is_neither_best_nor_excluded():
    problem = Problem(arms=("A", "B"))
    result = certify(
        problem, {"A": [1.0], "B": [2.0]}, Verdict.doubtful((Alarm("dependence", "A"),), problem.arms)
    )
    assert {standing_of(result, arm) for arm in "AB"} == {"candidate"}


def test_within_the_tolerance_is_good_enough_and_rivals_stay_candidates():
    rng = np.random.default_rng(2)
    study = Study(["A", "B"], goal="min", tolerance="5%")
    while counts := study.ask_counts():
        study.tell_arrays({arm: rng.normal(10, 0.1, n) for arm, n in counts.items()})
    assert study.result.status is Status.TOLERABLE
    assert {standing_of(study.result, arm) for arm in "AB"} == {"good enough", "candidate"}


def test_names_cannot_break_a_table():
    study = studied({"a|b`c\n": 1.0, "B": 20.0})
    text = markdown(rows(study.result, PLAIN), "a <b> | c")
    assert text.splitlines()[0] == "a \\<b\\> \\| c"
    assert all(line.count("|") - line.count("\\|") == 7 for line in text.splitlines()[2:])
