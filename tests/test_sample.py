import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import vectors
from truearm.errors import InvalidArgument
from truearm.evidence.intervals import (
    Moments,
    identification,
    mad_interval,
    median_interval,
    moments,
    quality_curve,
    quantile_interval,
)
from truearm.problem import Contamination

INF, NAN = math.inf, math.nan
DESIGNS = ("fixed", "sequential")
VECTORS = vectors("vectors")

finite = st.one_of(st.integers(-5, 5).map(float), st.floats(-100, 100))
readings = st.lists(finite, min_size=0, max_size=80)
wild = st.lists(st.one_of(finite, st.sampled_from([INF, -INF, NAN])), min_size=0, max_size=80)
declared = st.builds(Contamination, st.floats(0, 0.45), st.sampled_from(["oblivious", "prescient", "malicious"]))
designs = st.sampled_from(DESIGNS)


def vector(name):
    return VECTORS[name]["inputs"], VECTORS[name]["expected"]


def contains(outer, inner):
    return outer.low <= inner.low and inner.high <= outer.high


@pytest.mark.parametrize("name", [name for name in VECTORS if name.startswith("ranks-A")])
def test_intervals_use_the_ranks_of_the_vector(name):
    inputs, expected = vector(name)
    n, rng = inputs["n"], np.random.default_rng(0)
    found = quantile_interval(
        rng.permutation(np.arange(1.0, n + 1)),
        quantile=inputs["q"],
        delta=inputs["delta"],
        contamination=Contamination(inputs["eps"], inputs["adversary"]),
        design="fixed",
    )
    assert found == (expected["l"] or -INF, expected["u"] if expected["u"] <= n else INF)


def test_moments_of_the_vector():
    inputs, expected = vector("empirical")
    assert moments(inputs["x_odd"])[:2] == (expected["med_odd"], expected["mad_odd"])
    assert moments(inputs["x_even"])[:2] == (expected["med_even"], expected["mad_even"])


@pytest.mark.parametrize("adversary", ["prescient", "malicious"])
def test_quality_of_the_vector(adversary):
    inputs, expected = vector("dkw")
    x = np.repeat([0.0, 1.0], [100, 400])
    curve = quality_curve(
        x,
        delta=inputs["delta"],
        contamination=Contamination(inputs["eps"], adversary),
        arms=inputs["k"],
        design="fixed",
    )
    assert curve(1.0) == pytest.approx(expected[adversary], rel=1e-12)


@given(readings, st.lists(finite, min_size=1, max_size=6), st.floats(0.05, 0.95), declared, designs)
def test_intervals_with_missing_readings_contain_those_of_every_completion(x, true, q, contamination, design):
    """The interval at their worst allows for every value of the missing readings (evidence T8)."""
    holed, filled = [*x, *[NAN] * len(true)], [*x, *true]
    how = {"contamination": contamination, "design": design}
    assert contains(quantile_interval(holed, quantile=q, **how), quantile_interval(filled, quantile=q, **how))
    assert contains(mad_interval(holed, **how), mad_interval(filled, **how))
    at_worst, known = (quality_curve(values, **how) for values in (holed, filled))
    assert all(at_worst(v) <= known(v) for v in filled)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("x", [[], [7.0], [NAN], [INF]])
def test_hardly_any_readings_bound_nothing(x, design):
    assert median_interval(x, design=design) == (-INF, INF)
    assert mad_interval(x, design=design) == (0.0, INF)
    assert quality_curve(x, design=design)(7.0) == 0.0
    assert quality_curve(x, design=design).reached(0.5) == -INF


def test_the_largest_floats_do_not_overflow():
    x = [-1.7e308] * 50 + [1.5e308] * 51
    assert mad_interval(x, contamination=None, design="fixed") == (0.0, INF)
    assert mad_interval(np.linspace(1.5e308, 1.7e308, 101), contamination=None).high < 1e307
    assert moments([-1.7e308, 1.7e308]) == Moments(0.0, 1.7e308, 0.0)


@given(st.lists(finite, min_size=1, max_size=200), st.floats(0.05, 0.95), declared, designs)
def test_the_parts_of_the_identification_add_up(x, q, contamination, design):
    found = identification(x, quantile=q, contamination=contamination, design=design)
    assert contains(found.interval, found.contamination)
    if found.interval.width < INF:
        parts = found.contamination_width + found.sampling_width
        assert parts == pytest.approx(found.interval.width, abs=1e-9)
    if contamination.eps == 0:
        assert found.contamination.low <= found.estimate <= found.contamination.high


def test_the_contamination_part_is_the_identified_set():
    x = np.random.default_rng(1).permutation(np.arange(1.0, 1001))
    assert identification(x, contamination=0.1).contamination == (450.0, 551.0)
    assert identification(x, contamination=Contamination(0.1, "malicious")).contamination == (400.0, 601.0)
    assert identification(x, quantile=0.3, contamination=0.1).contamination == (270.0, 371.0)
    assert identification(x, quantile=0.1, contamination=Contamination(0.2, "malicious")).contamination.low == -INF


@given(wild, st.floats(0.01, 0.99), declared, designs)
def test_reached_is_the_largest_reading_with_that_share(x, share, contamination, design):
    curve = quality_curve(x, contamination=contamination, design=design)
    good = [v for v in x if not math.isnan(v) and curve(v) >= share]
    assert curve.reached(share) == max(good, default=-INF)


WHOLE = [list(range(100)), tuple(range(100)), range(100), [Fraction(i) for i in range(100)]]
WHOLE += [np.arange(100, dtype="u1"), np.arange(100, dtype="f4"), np.arange(200.0)[::2] / 2]


@pytest.mark.parametrize("x", WHOLE)
def test_readings_of_every_kind_are_the_same_readings(x):
    assert median_interval(x) == median_interval(np.arange(100.0))
    assert mad_interval(x) == mad_interval(np.arange(100.0))


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([1, "two"], r"x\[1\] must be a number, but got 'two'; use nan"),
        ([1, None], r"x\[1\] must be a number, but got None"),
        ([[1, 2], [3]], r"x\[0\] must be a number, but got \[1, 2\]"),
        (np.array(["2026-01-01"], dtype="M8[D]"), r"x\[0\] must be a number"),
        ([[1.0, 2.0]], r"one-dimensional, but has shape \(1, 2\); pass one arm's"),
        (None, "list of readings, but got None"),
        ("123", r"x\[0\] must be a number, but got '1'"),
    ],
)
def test_invalid_readings_are_named(x, words):
    for call in (median_interval, mad_interval, quality_curve, moments):
        with pytest.raises(InvalidArgument, match=words):
            call(x)
