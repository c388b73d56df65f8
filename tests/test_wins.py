import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import vectors
from truearm.bounds.mixture import DEFAULT_PRIOR, log_mixture
from truearm.claims.certificate import Claim, Status, Verdict
from truearm.claims.certify import certify
from truearm.evidence import Judge
from truearm.evidence.sample import Sample, worsen
from truearm.evidence.wins import PRIOR, Score, log_evidence, score, win_level
from truearm.problem import Adversary, Handicap, Problem, Tolerance
from truearm.study import Study

VECTORS = vectors("rounds_vectors")


def taped(values, sign=1.0):
    return Sample.in_order(sign * np.array([float(x) for x in values]))


def test_levels_are_those_of_the_vectors():
    vector = VECTORS["ext-paired-levels"]
    for eps in vector["inputs"]["eps"]:
        expected = vector["expected"][str(eps)]
        assert win_level(eps, Adversary.OBLIVIOUS) == pytest.approx(float(expected[1]), abs=1e-15)
        assert win_level(eps, Adversary.PRESCIENT) == pytest.approx(float(expected[1]), abs=1e-15)
        assert win_level(eps, Adversary.MALICIOUS) == pytest.approx(float(expected[4]), abs=1e-15)


def test_evidence_is_that_of_the_vectors():
    vector = VECTORS["ext-paired-logM"]
    rows = zip(vector["inputs"], vector["expected"]["p0"], vector["expected"]["log_M"], strict=True)
    for case, p0, expected in rows:
        found = Score(case["rounds"], case["rounds"] - case["S"])
        assert log_evidence(found, float(p0), DEFAULT_PRIOR) == pytest.approx(float(expected), abs=1e-10)


@pytest.mark.parametrize("place", range(3))
def test_counts_of_rounds_are_those_of_the_vectors(place):
    vector = VECTORS["ext-paired-rounds"]
    case, expected = vector["inputs"]["cases"][place], vector["expected"][place]
    sign = 1.0 if case["goal"] == "max" else -1.0
    one, other = (taped(vector["inputs"][name], sign) for name in ("x_i", "x_j"))
    found = score(one, other, lambda values: worsen(values, Tolerance(case["alpha"]), sign))
    assert (found.rounds, found.null) == (expected["rounds"], expected["S"])
    value = log_evidence(found, vector["inputs"]["p0"], DEFAULT_PRIOR)
    assert value == pytest.approx(float(expected["log_M"]), abs=1e-10)


def test_time_outs_count_as_in_the_vectors():
    vector = VECTORS["ext-paired-timeouts"]
    found = score(taped(vector["inputs"]["x_i"], -1.0), taped(vector["inputs"]["x_j"], -1.0))
    assert (found.rounds, found.null) == (vector["expected"]["rounds"], vector["expected"]["S"])


readings = st.lists(st.one_of(st.integers(-3, 3).map(float), st.just(-math.inf), st.just(math.nan)), max_size=12)


@given(readings, readings, st.lists(st.booleans(), min_size=12, max_size=12))
def test_a_reading_that_is_out_never_helps(one, other, told):
    known = np.array(told[: len(one)], dtype=bool)
    late, whole = Sample.in_order(taped(one).tape, known), taped(one)
    for pair in ((late, taped(other)), (taped(other), late)):
        there = [whole if tape is late else tape for tape in pair]
        assert score(*pair).wins <= score(*there).wins
        assert score(*pair).rounds == score(*there).rounds


def test_arms_that_timed_out_in_every_round_did_not_measure_the_same():
    late, same = taped([-math.inf, -math.inf]), taped([1.0, math.inf])
    problem = Problem(arms=("A", "B"), rounds=True)
    assert not Judge.of(problem).target.is_same(late, late)
    assert Judge.of(problem).target.is_same(same, same)


@pytest.mark.parametrize("contamination", [None, "blind", 0.0])
def test_a_winner_of_a_cycle_is_named_under_a_condition(contamination):
    """A beats B, B beats C and C beats A in five rounds of nine: no arm wins most rounds against both others."""
    rng, study = np.random.default_rng(1), Study(["A", "B", "C"], rounds=True, contamination=contamination)
    faces = {"A": [2.0, 4.0, 9.0], "B": [1.0, 6.0, 8.0], "C": [3.0, 5.0, 7.0]}
    while counts := study.ask_counts():
        study.tell_arrays({arm: rng.choice(faces[arm], n) for arm, n in counts.items()})
    claims = study.result.certificate.claims
    assert study.result.best is not None
    assert any(claim.leader != study.result.best for claim in claims)
    assert "one arm wins at least half of the rounds against every other" in str(study.result)


def circle(n=400):
    """Return arms of which h is near w in most rounds, w beats j in most, and j is far ahead of h in most.

    Of 100 rounds h is within 1 of w in 65, w beats j in 78, j is 2 or more ahead of h in 57; h and w win as often.
    """
    load, kind = np.sin(np.arange(n)) * 10, np.arange(n) % 100
    w = np.where(kind < 35, 5.0, np.where(kind >= 85, 0.5, -5.0))
    j = np.where(kind < 35, 3.0, np.where(kind < 57, 2.0, -10.0))
    return {"w": w + load, "h": load, "j": j + load}


def test_an_arm_near_the_best_is_not_called_near_every_arm():
    """h was "within 0.5 of every other arm", although j is 2 or more ahead of it in 57 of 100 rounds."""
    tapes = circle()
    problem = Problem(arms=tuple(tapes), rounds=True, tolerance=1.0, contamination=0.0)
    judge = Judge.of(problem, [Sample.in_order(tape) for tape in tapes.values()], leader=1)
    bar = judge.log_threshold
    ruled_out, near = judge.better(0, 2).log_value, judge.within(0).log_value
    assert min(ruled_out, near) >= bar > judge.within(2).log_value
    claims = (Claim("j", "w", None, 0, ruled_out), Claim("w", "h", None, 0, near, True))
    verdict = Verdict(status=Status.TOLERABLE, best="h", candidates=("w", "h"), rule=judge.rule, claims=claims)
    said = str(certify(problem, tapes, verdict))
    assert "every other arm" not in said
    assert "h is within 0.5 of the best arm in more than half of the rounds" in said
    assert "one arm wins at least half of the rounds against every other" in said


def test_a_baseline_that_wins_with_its_handicap_is_named():
    """ "new is worse than old. 95% sure that it wins" spoke of old."""
    problem = Problem(arms=("old", "new"), rounds=True, goal="min", handicap=Handicap("old", Tolerance(1.25)))
    study = Study(problem)
    while counts := study.ask_counts():
        study.tell_arrays({arm: np.full(n, 2.0 if arm == "old" else 9.0) for arm, n in counts.items()})
    said = str(study.result)
    assert said.startswith("new is worse than old by 1.25 or more.\n95% sure, for any disturbance")


def test_the_leader_beats_every_other_even_if_another_wins_more_in_all():
    narrow = taped([2.0, 2.0, 2.0, 0.0, 0.0])
    wide = taped([1.0, 1.0, 1.0, 9.0, 9.0])
    weak = taped([1.5, 1.5, -1.0, -1.0, -1.0])
    problem = Problem(arms=("A", "B", "C"), rounds=True)
    assert Judge.of(problem, [wide, narrow, weak]).best_looking([0, 1, 2]) == 1
    assert Judge.of(problem, [taped([])] * 3).best_looking([0, 1]) is None


def swinging(k, n=1500):
    """Return a judge of k arms that read alike but for their order in every other round."""
    swings = np.arange(n) % 2.0
    tapes = [Sample.in_order(swings if i % 2 else 1 - swings) for i in range(k)]
    return Judge.of(Problem(arms=tuple("ABCDEF"[:k]), rounds=True), tapes)


def at_delta(judge, delta):
    return Judge.of(replace(judge.problem, delta=delta), judge.samples)


@pytest.mark.parametrize("k", [2, 4])
def test_every_bar_of_rounds_pays_for_its_claims(k):
    """Extensions E1 and E6: deciding, telling pairs apart, giving up."""
    judge = swinging(k)
    assert math.exp(judge.log_threshold) == pytest.approx(2 * (k - 1) / 0.05)
    assert math.exp(judge.log_strict) == pytest.approx(k * (k - 1) / 0.05)
    chance = math.exp(-float(log_mixture(750, 1500, 0.55, PRIOR)))  # of half of the rounds, each won with 0.55
    futile = [at_delta(judge, near * k * (k - 1) * chance).is_futile((0, 1)) for near in (0.99, 1.01)]
    assert futile == [False, True]


@pytest.mark.parametrize("k", [2, 4])
def test_a_gate_is_settled_by_evidence_of_k_over_delta(k):
    tapes = [Sample.in_order(np.arange(12.0) + 2 * (i == 0)) for i in range(k)]
    judge = Judge.of(Problem(arms=tuple("ABCDEF"[:k]), rounds=True), tapes)
    least = k * math.exp(-judge.better(0, 1).log_value)
    found = [at_delta(judge, near * least).gate(0) for near in (0.99, 1.01)]
    assert found == [((), ()), (tuple(range(1, k)), ())]
    assert at_delta(judge, 1.01 * least).gate(1) == ((), (0,))
    shared = [at_delta(judge, near * least / k).gate(0, shared=True) for near in (0.99, 1.01)]
    assert shared == found  # delta of each comparison
