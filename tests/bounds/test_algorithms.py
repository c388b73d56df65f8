"""The paper's algorithms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truearm import bounds

from .cases import adversaries, deltas, family, vector


def test_uniform_sample_size_is_the_audited_number():
    inputs, expected = vector("alg1-n")
    promise = family(inputs) | {"reach": inputs["tbar"], "constants": "paper"}
    n = bounds.uniform_sample_size(inputs["k"], inputs["alpha"], inputs["delta"], **promise)
    assert (n, n * inputs["k"]) == (expected["per_arm"], expected["total"])


@pytest.mark.parametrize("name", ["alg3-prescient", "alg3-malicious"])
def test_elimination_schedule_is_the_audited_one(name):
    i, expected = vector(name)
    schedule = bounds.elimination_schedule(i["k"], i["delta"], i["eps"], i["tbar"], i["adversary"])
    assert math.isclose(schedule.N, expected["N"], rel_tol=1e-14)
    assert schedule.initial == expected["initial"]
    assert [schedule.per_round(r) for r in range(1, 7)] == expected["per_round"]
    assert [schedule.total(r) for r in range(1, 7)] == expected["cumulative"]


@pytest.mark.parametrize("name", ["alg3-prescient", "alg3-malicious"])
def test_elimination_radius_is_the_audited_one(name):
    i, expected = vector(name)
    r = np.arange(1, 7)
    assert bounds.round_delta(i["delta"], i["k"], r) == pytest.approx(expected["delta_r"], rel=1e-14)
    radius = bounds.elimination_radius(r, i["k"], i["delta"], i["B"], i["m2bar"])
    assert radius == pytest.approx(expected["alpha_r"], rel=1e-14)


def test_early_stop_is_the_audited_round():
    i, expected = vector("alg3-early-stop")
    setting = (i["k"], i["delta"], i["B"], i["m2bar"])
    assert bounds.early_stop_round(i["alpha"], *setting) == expected["argmax"]
    assert bounds.early_stop_round(i["alpha"], *setting, survivor="any") == expected["any_survivor"]
    at = bounds.elimination_radius(np.array(i["alpha_r_at"]), *setting)
    assert at == pytest.approx([expected["alpha_100"], expected["alpha_1000"]], rel=1e-14)


@given(k=st.integers(2, 100), delta=deltas, eps=st.floats(0.0, 0.2), r=st.integers(1, 500), adversary=adversaries)
def test_schedules_justify_the_elimination_radius(k, delta, eps, r, adversary):
    printed = bounds.elimination_schedule(k, delta, eps, 0.3, adversary)
    sharp = bounds.elimination_schedule(k, delta, eps, 0.3, adversary, constants="sharp")
    share = bounds.round_delta(delta, k, r)
    promise = {"eps": eps, "B": 4.0, "m2": 0.25, "reach": 0.3, "adversary": adversary, "constants": "paper"}
    allowed = bounds.elimination_radius(r, k, delta, 4.0, 0.25) + bounds.bias(eps, 4.0, 0.25, adversary)
    for schedule in (printed, sharp):
        assert bounds.median_error(schedule.total(r), share, **promise) <= allowed * (1 + 1e-9)
    assert sharp.total(r) <= printed.total(r)


@given(k=st.integers(2, 100), delta=deltas, r=st.integers(1, 300), eps=st.floats(0.0, 0.2), adversary=adversaries)
def test_counting_readings_never_widens_the_radius(k, delta, r, eps, adversary):
    n = bounds.elimination_schedule(k, delta, eps, 0.3, adversary).total(r)
    promise = {"delta": delta, "eps": eps, "B": 4.0, "m2": 0.25, "reach": 0.3, "adversary": adversary}
    counted = bounds.counted_elimination_radius(r, n, k, **promise)
    assert counted <= bounds.elimination_radius(r, k, delta, 4.0, 0.25)


def test_round_deltas_sum_to_delta():
    spent = 5 * np.sum(bounds.round_delta(0.1, 5, np.arange(1, 10**6)))
    assert 0.1 - 1e-6 < spent < 0.1


@given(st.lists(st.tuples(st.floats(-10, 10), st.floats(0, 2)), min_size=1, max_size=8))
def test_effective_gaps_by_their_definition(arms):
    medians, biases = zip(*arms, strict=True)
    gaps = bounds.effective_gaps(medians, biases)
    best = int(np.argmax(medians))
    assert gaps[best] == pytest.approx(-2 * biases[best], abs=1e-12)
    for gap, p, u in zip(gaps, medians, biases, strict=True):
        lost = medians[best] - p
        assert lost == pytest.approx(bounds.selection_gap(gap, biases[best], u), abs=1e-9)


def test_elimination_power_by_brute_force():
    promise = {"eps": 0.1, "B": 4.0, "m2": 0.25, "reach": 0.45, "adversary": "prescient"}
    gap, k, delta, slope = 0.3, 4, 0.1, 1.0
    n = bounds.elimination_sample_size(gap, k, delta, **promise)
    a = math.sqrt(math.log(2 * k / delta) / (2 * n)) / 0.9
    assert slope * 4 * a < gap  # both arms' intervals, 2a/g each, inside the gap
    assert n == math.floor(8 * slope**2 * math.log(2 * k / delta) / (0.9**2 * gap**2)) + 1
