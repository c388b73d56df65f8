"""Readings of the selected arm: levels they exceed, and whole curves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truearm import bounds, families

from .cases import (
    VECTORS,
    adversaries,
    assert_rarer,
    attacked,
    each_adversary,
    family,
    fractions,
    repetitions,
    vector,
)


def test_quality_bound_is_the_audited_number():
    i, expected = vector("quality-paper")
    run = family(i) | {"tolerance": i["alpha"], "k": i["k"], "delta": i["delta"], "reach": 0.4}
    found = bounds.quality_bound(i["t"], i["m1_hat"], i["m2_hat"], **run, kappa=i["kappa"], constants="paper")
    assert found == pytest.approx(
        (expected["threshold"], expected["prob_safe"], expected["prob_literal"]), rel=1e-14
    )
    improved = bounds.quality_bound(i["t"], i["m1_hat"], i["m2_hat"], **run)
    assert improved.threshold == pytest.approx(VECTORS["quality-improved"]["expected"], rel=1e-14)


def test_dkw_radius_and_curve_are_the_audited_numbers():
    i, expected = vector("dkw")
    radius = bounds.dkw_radius(i["n"], i["delta"] / i["k"])
    assert radius == pytest.approx(expected["radius"], rel=1e-14)
    for adversary in ("prescient", "malicious"):
        floor = bounds.survival_floor(i["Fhat"], radius, i["eps"], adversary)
        assert floor == pytest.approx(expected[adversary], rel=1e-14)


def test_sequential_dkw_radius_is_the_audited_number():
    i, expected = vector("dkw-time-uniform")
    stitched = bounds.sequential_dkw_radius(i["n"], i["delta"])
    assert stitched == pytest.approx(expected["howard_ramdas"], rel=1e-14)
    union = bounds.sequential_dkw_radius(i["n"], i["delta"], form="union")
    assert union == pytest.approx(expected["union"], rel=1e-14)


@given(low=st.floats(0, 1), radius=st.floats(0, 0.5), eps=fractions, adversary=adversaries)
def test_survival_bounds_are_ordered_and_probabilities(low, radius, eps, adversary):
    floor = bounds.survival_floor(low, radius, eps, adversary)
    ceiling = bounds.survival_ceiling(low, radius, eps, adversary)
    assert 0 <= floor <= ceiling <= 1
    assert floor >= bounds.survival_floor(low, radius, eps, "malicious") - 1e-12


def test_laws_reach_the_promised_quantile():
    law, reach = families.gaussian(3.0, 2.0), 0.3
    B = law.minimal_B(reach)
    for t in np.linspace(0, reach, 7):
        level = bounds.median_quantile_floor(float(t), median=3.0, B=B, m2=law.m2, reach=reach)
        assert 1 - law.cdf_left(level) >= 0.5 + t - 1e-9  # Lemma 21


def floor_failures(x, eps, adversary, radius):
    """Whether some x has a floor above its true P(Y >= x) = 1 - x; the floor falls only at readings."""
    n = x.shape[1]
    points = np.concatenate([np.minimum(x, 1.0), np.ones((len(x), 1))], axis=1)
    below = np.concatenate([np.arange(n) / n * np.ones_like(x), np.mean(np.isfinite(x), axis=1)[:, None]], axis=1)
    below = np.minimum(below, below[:, -1:])
    floors = bounds.survival_floor(below, radius, eps, adversary)
    return np.any(floors > 1 - points + 1e-12, axis=1)


@pytest.mark.statistical
@repetitions
@each_adversary
def test_survival_floor_holds_for_all_x_at_once(reps, adversary):
    rng, n, eps, delta = np.random.default_rng(25), 80, 0.1, 0.1
    x = np.sort(attacked(rng, (reps, n), eps, adversary), axis=1)
    assert_rarer(floor_failures(x, eps, adversary, bounds.dkw_radius(n, delta)), delta)


@pytest.mark.statistical
@pytest.mark.parametrize("reps", [300, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", ["stitched", "union"])
def test_survival_floor_holds_for_all_n_at_once(reps, form):
    rng, horizon, eps, delta = np.random.default_rng(26), 200, 0.1, 0.1
    x = attacked(rng, (reps, horizon), eps, "malicious")
    failed = np.zeros(reps, dtype=bool)
    for n in range(1, horizon + 1):
        radius = bounds.sequential_dkw_radius(n, delta, form=form)
        failed |= floor_failures(np.sort(x[:, :n], axis=1), eps, "malicious", radius)
    assert_rarer(failed, delta)


@pytest.mark.statistical
@pytest.mark.parametrize("reps", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
@each_adversary
def test_quality_threshold_holds_for_all_arms_and_levels(reps, adversary):
    rng, n, k, eps, delta = np.random.default_rng(28), 151, 4, 0.05, 0.2
    x = np.minimum(attacked(rng, (reps, k, n), eps, adversary), 1e6)
    median = np.median(x, axis=2)
    deviation = np.median(np.abs(x - median[:, :, None]), axis=2)
    run = {"n": n, "k": k, "delta": delta, "eps": eps, "B": 4.0, "m2": 0.25, "reach": 0.45, "adversary": adversary}
    for t in (0.0, 0.2, 0.45):
        threshold = bounds.quality_threshold(t, median, deviation, **run)
        assert_rarer(np.any(threshold > 0.5 - t, axis=1), delta)
