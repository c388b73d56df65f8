"""Median and median absolute deviation of n readings."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from truearm import bounds, families

from .cases import adversaries, assert_rarer, attacked, deltas, each_adversary, family, repetitions, vector


@pytest.mark.parametrize(
    "name", ["n-prescient-alpha0.1", "n-prescient-alpha10", "n-malicious-alpha0.1", "n-malicious-alpha10"]
)
@pytest.mark.parametrize("constants", ["paper", "sharp"])
def test_median_sample_size_is_the_audited_number(name, constants):
    inputs, expected = vector(name)
    promise = family(inputs) | {"reach": inputs["tbar"], "constants": constants}
    n = bounds.median_sample_size(inputs["alpha"], inputs["delta"], **promise)
    assert n == expected[f"{constants}_ceil"]


@pytest.mark.parametrize("constants", ["paper", "sharp"])
@pytest.mark.parametrize("adversary", ["prescient", "malicious"])
def test_median_radius_is_the_audited_number(adversary, constants):
    i, expected = vector("median-radius")
    radius = bounds.median_radius(i["n"], i["delta"], i["eps"], adversary, constants=constants)
    assert radius == pytest.approx(expected[f"{adversary}_{constants}"], rel=1e-14)


@pytest.mark.parametrize("name", ["mad-n-prescient", "mad-n-malicious"])
def test_mad_sample_size_is_the_audited_number(name):
    i, expected = vector(name)
    promise = family(i) | {"reach": i["tbar"], "kappa": i["kappa"]}
    assert bounds.mad_sample_size(i["E"], i["delta"], **promise) == expected["improved_ceil"]
    assert bounds.mad_sample_size(i["E"], i["delta"], **promise, constants="paper") == expected["paper_ceil"]


@given(eps=st.floats(0.05, 0.4), delta=st.floats(0.01, 0.5), more=st.integers(1, 300))
def test_the_malicious_instance_attains_its_radius(eps, delta, more):
    n = math.floor(math.log(1 / delta) / (2 * eps**2)) + more
    a = eps - bounds.malicious_attained_radius(n, delta, eps)
    law = families.discrete([0.0, 1.0], [0.5 + eps - a, 0.5 - eps + a])
    assert law.m1 == (0.0, 0.0)
    assert eps / (0.5 + eps - a) <= 1  # the strike on Y = 0 is a probability
    assert binom.cdf(n // 2, n, 0.5 + a) <= delta * (1 + 1e-9)  # median < 1 needs at most n/2 ones


@given(
    error=st.floats(0.01, 2.0),
    delta=deltas,
    eps=st.floats(0.0, 0.2),
    constants=st.sampled_from(["paper", "sharp"]),
    adversary=adversaries,
)
def test_sample_sizes_and_errors_undo_each_other(error, delta, eps, constants, adversary):
    promise = {"eps": eps, "B": 4.2, "m2": 0.3, "reach": 0.4, "adversary": adversary, "constants": constants}
    floor = bounds.bias(eps, 4.2, 0.3, adversary)
    n = bounds.median_sample_size(error, delta, **promise)
    assert bounds.median_error(n, delta, **promise) <= (floor + error) * (1 + 1e-9)
    kappa = 1.5
    n = bounds.mad_sample_size(error, delta, **promise, kappa=kappa)
    floor *= 1 + 2 * kappa if constants == "paper" else 1
    assert bounds.mad_error(n, delta, **promise, kappa=kappa) <= (floor + error) * (1 + 1e-9)


@pytest.mark.statistical
@repetitions
@each_adversary
@pytest.mark.parametrize("n", [60, 61])
def test_median_error_keeps_its_promise(reps, adversary, n):
    rng = np.random.default_rng(20)
    x = np.sort(attacked(rng, (reps, n), 0.1, adversary), axis=1)
    promise = {"eps": 0.1, "B": 4.0, "m2": 0.25, "reach": 0.45, "adversary": adversary}
    failures = np.median(x, axis=1) - 0.5 > bounds.median_error(n, 0.1, **promise)
    assert_rarer(failures, 0.05)  # one of the two sides


@pytest.mark.statistical
@repetitions
@each_adversary
@pytest.mark.parametrize("n", [120, 121])
def test_median_and_deviation_keep_their_joint_promise(reps, adversary, n):
    rng, eps, delta = np.random.default_rng(27), 0.05, 0.2
    x = np.minimum(attacked(rng, (reps, n), eps, adversary), 1e6)
    allowed = bounds.mad_error(n, delta, eps=eps, B=4.0, m2=0.25, adversary=adversary)
    median = np.median(x, axis=1)
    deviation = np.median(np.abs(x - median[:, None]), axis=1)
    assert_rarer((np.abs(median - 0.5) > allowed) | (np.abs(deviation - 0.25) > allowed), delta)
