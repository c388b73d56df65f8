"""Shares: evidence and intervals against vectors and brute force, and the way through study, analysis and CLI."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import truearm as ta
from entry import truearm
from reference import vectors
from truearm.bounds.limits import share_limit
from truearm.bounds.mixture import log_mixture_at
from truearm.claims.certificate import Status
from truearm.evidence import Judge, Leg, Portfolio, Stake, Trust
from truearm.evidence.sample import Sample, Shift
from truearm.evidence.shares import ACCURACY, Share, deciding_limit, share_term
from truearm.evidence.targets import Query
from truearm.evidence.units import Reduction, by_unit
from truearm.problem import Adversary, Contamination, Problem
from truearm.report.words import notes

VECTORS = vectors("share_vectors")
PAIRS = [f"ext-share-pair-{i}" for i in range(1, 7)]
counts = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def coins(won, n):
    return Sample.of([1.0] * won + [0.0] * (n - won))


SHARE = Share(Problem(arms=("A", "B"), at_least=1))


def least_share(own, bet, trust, shift=0.0):
    """Return the evidence of a pair: successes of n of the judged arm, failures of n of its rival."""
    failed, n = bet
    return SHARE.evidence(coins(*own), Portfolio(Stake(coins(n - failed, n))), trust, Query(shift=Shift(shift)))


def judge_of(*arms, **options):
    problem = Problem(arms=tuple("ABCD"[: len(arms)]), at_least=1, **options)
    return Judge.of(problem, [coins(*arm) for arm in arms])


# --- vectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ext-Mprime", "ext-Mprime-ends"])
def test_one_arms_evidence_is_that_of_the_vectors(name):
    vector = VECTORS[name]
    for (n, s, p), plain, mixed in zip(vector["inputs"]["n_s_p"], *vector["expected"].values(), strict=True):
        level = np.array([float(p)])
        assert log_mixture_at(s, n, level)[0] == pytest.approx(float(plain), abs=1e-9, rel=1e-10)
        assert share_term(np.array(s), np.array(n), level)[0] == pytest.approx(float(mixed), abs=1e-9)


@pytest.mark.parametrize("name", PAIRS)
def test_evidence_of_a_pair_is_a_lower_bound_this_near(name):
    vector = VECTORS[name]
    x = vector["inputs"]
    own, bet = (x["successes_j"], x["n_j"]), (x["failures_i"], x["n_i"])
    for case, expected in zip(x["cases"], vector["expected"], strict=True):
        trust, exact = Trust(case["eps"], Adversary(case["adversary"])), float(expected["log_E"])
        found = least_share(own, bet, trust, shift=case["tolerance"])
        assert exact - ACCURACY * max(1, exact) - 1e-9 <= found.log_value <= exact + 1e-9
        assert found.at == pytest.approx(float(expected["theta"]), abs=1e-3)


@pytest.mark.parametrize(("name", "design"), [("any-time", "sequential"), ("fixed", "fixed")])
def test_intervals_are_those_of_the_vectors(name, design):
    vector = VECTORS[f"ext-share-interval-{name}"]
    for x, expected in zip(vector["inputs"], vector["expected"], strict=True):
        contamination = Contamination(x["eps"], x["adversary"])
        found, _ = SHARE.intervals(coins(x["successes"], x["n"]), contamination, 2 * x["d"], design)
        assert found == pytest.approx([float(end) for end in expected], abs=1e-9)


def test_the_plug_in_breakdown_point_is_the_difference_of_the_shares():
    vector = VECTORS["ext-share-breakdown"]
    for x, expected in zip(vector["inputs"], vector["expected"], strict=True):
        judge = judge_of((x["successes_i"], x["n_i"]), (x["successes_j"], x["n_j"]))
        for adversary in Adversary:
            assert judge.target.breakdown_estimate(*judge.samples, adversary) == pytest.approx(
                float(expected[adversary.value])
            )


def test_the_fixed_design_gives_the_p_values_of_the_vectors():
    vector = VECTORS["ext-share-fixed-p"]
    for x, expected in zip(vector["inputs"], vector["expected"], strict=True):
        problem = Problem(arms=("i", "j"), at_least=1, contamination=Contamination(x["eps"], x["adversary"]))
        arms = [coins(x["n_i"] - x["failures_i"], x["n_i"]), coins(x["successes_j"], x["n_j"])]
        found = math.exp(-Judge.of(problem, arms, design="fixed").against(1).log_value)
        assert 1 - 1e-9 <= found / float(expected["p_value"]) <= 1 + 20 * ACCURACY


# --- definitions, by brute force ------------------------------------------------------------------


def test_a_leg_is_not_bounded_at_one_end_alone():
    """What divides falls with theta too: its least value on a piece is at the other end (evidence T5)."""
    bets = Portfolio(None, 0.0, (Leg(coins(59, 60), coins(90, 120)),), 0.0)
    own, trust = coins(5, 80), Trust(0.0, Adversary.OBLIVIOUS)
    theta = np.linspace(1e-6, 1, 20_001)
    end, start = (share_term(np.array(hits), np.array(n), 1 - theta) for hits, n in ((30, 120), (1, 60)))
    each = share_term(np.array(5), np.array(80), theta) + end - start
    found = SHARE.evidence(own, bets, trust).log_value
    assert each.min() - 0.01 * max(1, abs(each.min())) <= found <= each.min() + 1e-9


@given(counts, counts, st.integers(0, 3), st.integers(0, 3), st.sampled_from([None, 0.0, 0.1]))
def test_missing_readings_at_their_worst_are_the_least_of_all_completions(one, other, first, second, eps):
    """T8a."""
    problem = Problem(arms=("A", "B"), at_least=1, contamination=eps)
    samples = [Sample(coins(*arm).values, holes) for arm, holes in ((one, first), (other, second))]
    found = Judge.of(problem, samples).against(1).log_value
    each = [
        Judge.of(problem, [coins(one[0] + i, one[1] + first), coins(other[0] + j, other[1] + second)]).against(1)
        for i, j in product(range(first + 1), range(second + 1))
    ]
    assert found == pytest.approx(min(e.log_value for e in each), abs=ACCURACY, rel=ACCURACY)


# --- what follows from the evidence ---------------------------------------------------------------


def test_a_share_limit_is_what_the_definition_says():
    """Extensions 1.5, against a brute search over shares of pulls and theta, with scipy's log-likelihoods."""
    p, q, eps = 0.5, 0.3, 0.05
    theta = np.linspace(0.3, 0.55, 2001)

    def kl(a, b):
        one = binom(1, a)
        return sum(one.pmf(x) * (one.logpmf(x) - binom.logpmf(x, 1, b)) for x in (0, 1))

    low, high = kl(1 - p, np.maximum(1 - p, (1 - eps) * (1 - theta))), kl(q, np.maximum(q, (1 - eps) * theta))
    best = max((w * low + (1 - w) * high).min() for w in np.linspace(0.01, 0.99, 199))
    assert share_limit([p, q], eps).time == pytest.approx(1 / best, rel=1e-3)
    assert share_limit([q, p], eps).answer == 1


def test_a_time_out_is_a_failure_and_a_missing_reading_may_be_either():
    tape = [100.0] * 80 + [math.inf] * 10 + [math.nan] * 10
    result = ta.analyze({"A": tape, "B": [300.0] * 100}, at_most=200)
    arm = result.arms[0]
    assert result.problem.time_out == math.inf
    assert arm.observed == pytest.approx(80 / 90)
    assert (arm.contamination_low, arm.contamination_high) == pytest.approx((0.75 / 0.95, 0.9 / 0.95))


def test_a_unit_succeeds_if_at_least_half_of_its_readings_do():
    values, units = np.array([1.0, 5.0, 1.0, 1.0, 5.0, 9.0, 2.0]), np.array([1, 1, 2, 2, 2, 3, 4])
    upper, lower = (by_unit(values, units, Reduction(middle)) for middle in ("upper", "lower"))
    assert (upper >= 4).tolist() == [True, False, True, False]
    assert (lower <= 4).tolist() == [True, True, False, True]
    frame = {
        "arm": ["A"] * 400 + ["B"] * 400,
        "user": [i // 2 for i in range(800)],
        "x": [0, 9] * 200 + [0, 0] * 200,
    }
    result = ta.analyze(frame, arm="arm", value="x", unit="user", at_least=4)
    assert (result.best, result.arms[0].observed, result.arms[1].observed) == ("A", 1.0, 0.0)
    assert any("A user succeeds if at least half of its readings do" in note for note in notes(result))


# --- command line, lab, page ----------------------------------------------------------------------


@pytest.fixture
def times(tmp_path):
    rng = np.random.default_rng(4)
    rows = [f"{arm},{x:.2f}" for arm, scale in (("A", 80), ("B", 160)) for x in rng.exponential(scale, 600)]
    file = tmp_path / "times.csv"
    file.write_text("\n".join(["site,ms", *rows]))
    return str(file)


def test_the_command_line_analyzes_shares(times, tmp_path):
    page = tmp_path / "page.html"
    asked = ("analyze", times, "--arm", "site", "--value", "ms", "--at-most", "200")
    done = truearm(*asked, "--export-html", str(page))
    assert done.returncode == 0
    assert "true share <= 200  standing" in done.stdout  # without the MAD, which shares do not have
    assert "A has the largest share of readings at most 200" in done.words
    assert "share of readings at most 200" in page.read_text()
    assert "median absolute deviation" not in page.read_text()
    assert truearm(*asked, "--goal", "min").returncode != 0
    assert truearm(*asked, "--json").json["target"] == "share"


@pytest.mark.parametrize(
    ("tapes", "goal", "decides"),
    [
        ({"A": [1] * 800 + [0] * 200, "B": [1] * 600 + [0] * 400}, "max", "at_least=1"),
        ({"A": [1] * 800 + [0] * 200, "B": [1] * 600 + [0] * 400}, "min", "at_most=0"),
        ({"A": [1, 1, 0] * 300, "B": [1, 1, 0] * 300}, "max", "binary"),
        ({"A": [*range(40), *[50] * 60], "B": [*range(40), *[50] * 60]}, "max", ""),
    ],
)
def test_where_medians_tie_the_share_that_decides_is_named(tapes, goal, decides):
    result = ta.analyze(tapes, goal=goal)
    assert {alarm.detail for alarm in result.alarms if alarm.kind == "ties"} == {decides}
    if "=" in decides:
        name, limit = decides.split("=")
        assert ta.analyze(tapes, **{name: float(limit)}).status is Status.CERTIFIED
        assert f"decides ({decides})." in str(result)


def test_the_limit_that_decides_pays_for_all_that_were_tried():
    """Marks of four values have three limits: the evidence at the best of them is compared with 3/delta."""
    marks = [Sample.of([3.0, 3.0, 4.0, 5.0] * 30), Sample.of([3.0, 3.0, 3.0, 2.0] * 30)]
    split = [sample.map(lambda values: (values >= 4).astype(float)) for sample in marks]
    least = 3 * math.exp(-Judge.of(Problem(arms=("A", "B"), at_least=1), split).against(1).log_value)
    found = [deciding_limit(Problem(arms=("A", "B"), delta=near * least), marks) for near in (0.99, 1.01)]
    assert found == [None, 4.0]
