"""Ranks that need no regularity."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from truearm import bounds, families
from truearm.bounds.mixture import Prior, log_mixture

from .cases import (
    VECTORS,
    adversaries,
    assert_as_often,
    assert_rarer,
    attacked,
    deltas,
    each_adversary,
    fractions,
    levels,
    repetitions,
    sizes,
    vector,
)

SINGLE = Prior((25.0,), (1.0,))


@pytest.mark.parametrize("name", [v for v in VECTORS if v.startswith("ranks-A")])
def test_quantile_ranks_are_the_audited_ones(name):
    i, expected = vector(name)
    ranks = bounds.quantile_ranks(i["n"], i["q"], i["delta"], i["eps"], i["adversary"])
    assert ranks == (expected["l"], expected["u"])
    misses = [
        binom.cdf(ranks.low - 1, i["n"], bounds.trusted_mass(i["q"], i["eps"], i["adversary"])),
        binom.cdf(i["n"] - ranks.high, i["n"], bounds.trusted_mass(1 - i["q"], i["eps"], i["adversary"])),
    ]
    assert misses == pytest.approx([expected["miss_low"], expected["miss_high"]], rel=1e-12)


@pytest.mark.parametrize("name", [v for v in VECTORS if v.startswith("ranks-B")])
def test_elimination_ranks_are_the_audited_ones(name):
    i, expected = vector(name)
    assert bounds.elimination_ranks(i["n"], i["k"], i["delta"]) == (expected["l"], expected["u"])
    assert binom.cdf(expected["l"] - 1, i["n"], 0.5) == pytest.approx(expected["miss"], rel=1e-12)


def test_sequential_ranks_are_the_audited_ones():
    i, expected = vector("tu-ranks")
    found = bounds.sequential_rank(np.array(i["n"]), i["p0"], i["delta"], SINGLE)
    assert found.tolist() == expected
    assert [bounds.sequential_rank(n, i["p0"], i["delta"], SINGLE) for n in i["n"]] == expected


def test_order_bounds_are_the_audited_ones():
    inputs, expected = vector("order-stat-bounds")
    assert [list(bounds.contaminated_order_bounds(*case)) for case in inputs["cases"]] == expected


@pytest.mark.parametrize("n", range(1, 7))
def test_order_bounds_by_brute_force(n):
    for s in range((n + 1) // 2):
        ranks = bounds.contaminated_order_bounds(n, s)
        for replaced in itertools.combinations(range(n), s):
            for z in itertools.product((-100.0, 2.5, 100.0), repeat=s):
                x = np.arange(1.0, n + 1)
                x[list(replaced)] = z
                assert ranks.low <= np.median(x) <= ranks.high


@given(n=sizes, p=st.floats(0.001, 0.999), delta=deltas)
def test_lower_rank_agrees_with_the_binomial_law(n, p, delta):
    r = bounds.lower_rank(n, p, delta)
    assert binom.cdf(r - 1, n, p) <= delta
    assert binom.cdf(r, n, p) > delta * (1 - 1e-8)


@given(n=sizes, p0=st.floats(0.05, 0.95), delta=deltas)
def test_sequential_rank_is_where_the_evidence_crosses(n, p0, delta):
    r = bounds.sequential_rank(n, p0, delta)
    evidence = log_mixture(np.arange(n + 1), n, p0)
    assert r == 1 + max(np.flatnonzero(evidence >= -math.log(delta) + 1e-9), default=-1)
    assert r <= bounds.lower_rank(n, p0, delta)


@given(n=sizes, q=levels, delta=deltas, eps=fractions, adversary=adversaries)
def test_sequential_ranks_contain_the_fixed_ones(n, q, delta, eps, adversary):
    fixed = bounds.quantile_ranks(n, q, delta, eps, adversary)
    always = bounds.sequential_quantile_ranks(n, q, delta, eps, adversary)
    assert always.low <= fixed.low <= fixed.high + 1
    assert fixed.high <= always.high


def test_ranks_are_fast_and_right_at_a_hundred_million_readings():
    n = 10**8
    r = bounds.lower_rank(n, 0.45, 0.025)
    assert binom.cdf(r - 1, n, 0.45) <= 0.025 < binom.cdf(r, n, 0.45)
    assert bounds.sequential_rank(n, 0.45, 0.025) < r


def test_a_tail_equal_to_delta_counts_as_above_it():
    assert bounds.lower_rank(5, 0.5, 1 / 32) == 0
    assert bounds.lower_rank(5, 0.5, 1.001 / 32) == 1


@pytest.mark.statistical
@repetitions
@each_adversary
@pytest.mark.parametrize("q", [0.5, 0.3])
def test_quantile_ranks_miss_exactly_as_often_as_computed(reps, adversary, q):
    rng, n, eps = np.random.default_rng(21), 100, 0.1
    ranks = bounds.quantile_ranks(n, q, 0.1, eps, adversary)
    up = np.sort(attacked(rng, (reps, n), eps, adversary), axis=1)
    mass = bounds.trusted_mass(q, eps, adversary)
    assert_as_often(up[:, ranks.low - 1] > q, binom.cdf(ranks.low - 1, n, mass))
    down = np.sort(attacked(rng, (reps, n), eps, adversary, upward=False), axis=1)
    mass = bounds.trusted_mass(1 - q, eps, adversary)
    assert_as_often(down[:, ranks.high - 1] < q, binom.cdf(n - ranks.high, n, mass))


@pytest.mark.statistical
@repetitions
def test_two_sided_ranks_hold_against_a_prescient_choice_of_side(reps):
    rng, n, eps = np.random.default_rng(22), 100, 0.1
    ranks = bounds.quantile_ranks(n, 0.5, 0.1, eps, "prescient")
    y, bad = rng.random((reps, n)), rng.random((reps, n)) < eps
    below, above = np.sum(~bad & (y <= 0.5), axis=1), np.sum(~bad & (y > 0.5), axis=1)
    assert_rarer((below < ranks.low) | (above < n + 1 - ranks.high), 0.1)


@pytest.mark.statistical
@repetitions
@each_adversary
def test_elimination_keeps_the_best_arm_at_gap_zero(reps, adversary):
    rng, n, k, eps = np.random.default_rng(23), 60, 2, 0.1
    ranks = bounds.elimination_ranks(n, k, 0.1)
    gap = 2 * bounds.shift(families.uniform(), eps, adversary)  # lowest median of the best = highest of the other
    best = np.sort(gap + attacked(rng, (reps, n), eps, adversary, upward=False), axis=1)
    other = np.sort(attacked(rng, (reps, n), eps, adversary), axis=1)
    assert_rarer(other[:, ranks.low - 1] > best[:, ranks.high - 1], 0.1)


@pytest.mark.statistical
@each_adversary
@pytest.mark.parametrize("reps", [1000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_sequential_ranks_hold_for_all_n_at_once(reps, adversary):
    rng, horizon, eps, delta = np.random.default_rng(24), 1500, 0.1, 0.05
    n = np.arange(1, horizon + 1)
    mass = bounds.trusted_mass(0.5, eps, adversary)
    always, fixed = bounds.sequential_rank(n, mass, delta), bounds.lower_rank(n, mass, delta)
    crossed, peeked = np.zeros(reps, dtype=bool), np.zeros(reps, dtype=bool)
    for i in range(reps):
        count = np.cumsum(attacked(rng, horizon, eps, adversary) <= 0.5)
        crossed[i], peeked[i] = np.any(count < always), np.any(count < fixed)
    assert_rarer(crossed, delta)
    assert np.mean(peeked) > 4 * delta  # the same test catches a rank meant for one n only


@given(n=sizes, q=levels, delta=deltas, eps=fractions)
def test_oblivious_ranks_lie_inside_malicious_ones(n, q, delta, eps):
    oblivious, prescient, malicious = (
        bounds.quantile_ranks(n, q, delta, eps, a) for a in ("oblivious", "prescient", "malicious")
    )
    assert oblivious == prescient
    assert malicious.low <= oblivious.low
    assert oblivious.high <= malicious.high


@given(n=sizes, k=st.integers(1, 50), delta=deltas)
def test_sequential_elimination_ranks_contain_the_fixed_ones(n, k, delta):
    fixed, always = bounds.elimination_ranks(n, k, delta), bounds.sequential_elimination_ranks(n, k, delta)
    assert always.low <= fixed.low
    assert always.low + always.high == fixed.low + fixed.high == n + 1
