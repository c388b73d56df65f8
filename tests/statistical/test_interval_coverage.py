"""Audit 2.A, 2.C, 2.D, 2.E: intervals and curves against the worst adversary for each.

100 runs see a promise of 0.1 broken threefold with probability 0.92 (`promise`), 500 one broken twofold.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

from truearm.evidence.intervals import mad_interval, quality_curve, quantile_interval
from truearm.problem import Contamination

from .promise import kept

pytestmark = pytest.mark.statistical
INF = math.inf
DELTA, EPS = 0.1, 0.1
sizes = pytest.mark.parametrize("runs", [500, pytest.param(40_000, marks=pytest.mark.slow)])


def normal(levels):
    return norm.ppf(levels)


def two_points(levels):
    return np.where(levels <= 0.5, 1.0, 2.0)  # every point of [1, 2] is a median


LAWS = [(normal, (0.0, 0.0)), (two_points, (1.0, 2.0))]


@sizes
@pytest.mark.parametrize(("law", "medians", "n"), [(*LAWS[0], 50), (*LAWS[1], 101)])
def test_a_prescient_adversary_who_picks_the_weaker_end(runs, law, medians, n):
    rng = np.random.default_rng(n)
    declared = Contamination(EPS, "prescient")
    y, bad = law(rng.random((runs, n))), rng.random((runs, n)) < EPS
    up = [quantile_interval(x, delta=DELTA, contamination=declared, design="fixed") for x in np.where(bad, INF, y)]
    down = [
        quantile_interval(x, delta=DELTA, contamination=declared, design="fixed") for x in np.where(bad, -INF, y)
    ]
    assert kept([a.low > medians[0] or b.high < medians[1] for a, b in zip(up, down, strict=True)], DELTA)


@sizes
@pytest.mark.parametrize("quantile", [0.5, 0.3])
def test_a_malicious_adversary_who_removes_the_lowest_readings(runs, quantile):
    rng = np.random.default_rng(2)
    levels = rng.random((runs, 100))
    attacked = np.where(levels < EPS, INF, normal(levels))  # the lowest eps of the true readings
    found = [
        quantile_interval(
            x, quantile=quantile, delta=DELTA, contamination=Contamination(EPS, "malicious"), design="fixed"
        )
        for x in attacked
    ]
    assert kept([f.low > norm.ppf(quantile) for f in found], DELTA / 2)  # one end has half of delta


@pytest.mark.parametrize("runs", [2000, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("adversary", ["prescient", "malicious"])
@pytest.mark.parametrize("quantile", [0.5, 0.3])
def test_the_time_uniform_interval_at_every_number_of_readings(runs, adversary, quantile):
    rng, horizon = np.random.default_rng(3), 400
    declared = Contamination(EPS, adversary)
    ranks = [
        quantile_interval(np.arange(1.0, n + 1), quantile=quantile, delta=DELTA, contamination=declared)
        for n in range(1, horizon + 1)
    ]
    low = np.array([max(r.low, 0) for r in ranks])
    high = np.array([min(r.high, n + 1) for n, r in enumerate(ranks, start=1)])
    levels, bad = rng.random((runs, horizon)), rng.random((runs, horizon)) < EPS
    if adversary == "malicious":
        kept_low, kept_high = (levels <= quantile) & (levels >= EPS), (levels >= quantile) & (levels <= 1 - EPS)
    else:
        kept_low, kept_high = (levels <= quantile) & ~bad, (levels >= quantile) & ~bad
    # the end at rank l misses when fewer than l readings lie on its side; all bad ones lie on the other
    misses_low = (np.cumsum(kept_low, axis=1) < low).any(axis=1)
    misses_high = (np.cumsum(kept_high, axis=1) < np.arange(1, horizon + 1) + 1 - high).any(axis=1)
    assert kept(misses_low, DELTA / 2)
    assert kept(misses_low | misses_high, DELTA)


@pytest.mark.parametrize("runs", [100, pytest.param(8000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("law", "median", "mad"),
    [
        (lambda rng, shape: rng.normal(size=shape), 0.0, norm.ppf(0.75)),
        (lambda rng, shape: rng.standard_cauchy(size=shape), 0.0, 1.0),
        (lambda rng, shape: rng.exponential(size=shape), math.log(2), math.asinh(0.5)),
    ],
)
@pytest.mark.parametrize("design", ["fixed", "sequential"])
def test_the_mad_under_the_best_of_five_attacks(runs, law, median, mad, design):
    rng = np.random.default_rng(4)
    y, bad = law(rng, (runs, 120)), rng.random((runs, 120)) < EPS
    attacks = (INF, -INF, median, median + mad, np.nan)
    missed = np.zeros(runs, dtype=bool)
    for value in attacks:
        for i, x in enumerate(np.where(bad, value, y)):
            found = mad_interval(x, delta=DELTA, contamination=Contamination(EPS, "prescient"), design=design)
            missed[i] |= not found.low <= mad <= found.high
    assert kept(missed, DELTA)


def too_high(curve):
    """Return True if the curve of readings, which are levels, is above the truth somewhere."""
    truth = 1 - np.minimum(np.append(curve.values, 1.0), 1.0)
    return bool(np.any(curve.bounds > truth + 1e-12))


def attacked_levels(rng, shape, adversary):
    levels = rng.random(shape)
    bad = levels < EPS if adversary == "malicious" else rng.random(shape) < EPS
    return np.where(bad, INF, levels)


@sizes
@pytest.mark.parametrize("adversary", ["oblivious", "malicious"])
def test_the_quality_curve_at_all_points_at_once(runs, adversary):
    x = attacked_levels(np.random.default_rng(5), (runs, 100), adversary)
    declared = Contamination(EPS, adversary)
    assert kept(
        [too_high(quality_curve(row, delta=DELTA, contamination=declared, design="fixed")) for row in x], DELTA
    )


@pytest.mark.parametrize("runs", [100, pytest.param(8000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("adversary", ["oblivious", "malicious"])
def test_the_quality_curve_of_a_selected_arm(runs, adversary):
    k = 10
    x = attacked_levels(np.random.default_rng(6), (runs, k, 60), adversary)
    declared = Contamination(EPS, adversary)
    how = {"delta": DELTA, "contamination": declared, "arms": k, "design": "fixed"}
    # the worst selection takes an arm whose curve is too high, if there is one
    assert kept([any(too_high(quality_curve(arm, **how)) for arm in arms) for arms in x], DELTA)


@pytest.mark.parametrize("runs", [100, pytest.param(4000, marks=pytest.mark.slow)])
def test_the_sequential_quality_curve_at_many_looks(runs):
    x = attacked_levels(np.random.default_rng(7), (runs, 800), "oblivious")
    looks = np.unique(np.geomspace(5, 800, 25).astype(int))
    assert kept(
        [any(too_high(quality_curve(row[:n], delta=DELTA, contamination=EPS)) for n in looks) for row in x], DELTA
    )
