"""Shapes: own functions against scipy, closed moments against bisection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from truearm.families.shapes import Lognormal, Shape, Standard

PAIRS = [
    (Standard("gaussian"), stats.norm()),
    (Standard("cauchy"), stats.cauchy()),
    (Standard("laplace"), stats.laplace()),
    (Standard("logistic"), stats.logistic()),
    (Lognormal(sigma=0.7), stats.lognorm(0.7)),
]
IDS = [shape.name for shape, _ in PAIRS]
levels = st.floats(0.001, 0.999)


@pytest.mark.parametrize(("shape", "frozen"), PAIRS, ids=IDS)
def test_functions_agree_with_scipy(shape, frozen):
    z, p = np.linspace(-6, 6, 201) + 1e-3, np.linspace(0.001, 0.999, 101)
    np.testing.assert_allclose(shape.cdf(z), frozen.cdf(z), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(shape.pdf(z), frozen.pdf(z), rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(shape.ppf(p), frozen.ppf(p), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize(("shape", "frozen"), PAIRS, ids=IDS)
def test_tails_keep_their_digits(shape, frozen):
    p = np.array([1e-300, 1e-100, 1e-12])
    np.testing.assert_allclose(shape.ppf(p), frozen.ppf(p), rtol=1e-9)
    ends = shape.ppf(np.array([0.0, 1.0]))
    np.testing.assert_array_equal(ends, frozen.ppf([0.0, 1.0]))


@pytest.mark.parametrize(("shape", "frozen"), PAIRS, ids=IDS)
def test_closed_moments_agree_with_bisection(shape, frozen):
    generic = Shape(frozen)
    assert (shape.m2, shape.m4) == pytest.approx((generic.m2, generic.m4), rel=1e-12)
    assert shape.median == pytest.approx(generic.median, abs=1e-15)


@pytest.mark.parametrize(("shape", "frozen"), PAIRS, ids=IDS)
def test_the_least_slope_agrees_with_the_search(shape, frozen):
    low, high = shape.ppf(np.array([0.2, 0.9]))
    assert shape.least_slope(low, high) == pytest.approx(Shape(frozen).least_slope(low, high), rel=1e-9)


@given(levels, st.floats(0.5, 4))
def test_quantiles_invert_the_distribution_function(p, sigma):
    for shape in (*(shape for shape, _ in PAIRS), Lognormal(sigma=sigma)):
        assert shape.cdf(shape.ppf(np.asarray(p))) == pytest.approx(p, rel=1e-12)


def test_the_search_finds_a_narrow_dip():
    dip = stats.beta(0.3, 0.6)
    found = Shape(dip).least_slope(0.01, 0.99)
    assert found == pytest.approx(dip.pdf((0.3 - 1) / (0.3 + 0.6 - 2)), rel=1e-10)


def test_flat_pieces_are_found_from_both_sides():
    frozen = stats.rv_histogram((np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 3.0, 4.0])), density=False)()
    half = np.array([0.5, 0.25])
    assert Shape(frozen).ppf_left(half) == pytest.approx([1.0, 0.5])
    assert Shape(frozen).ppf_right(half) == pytest.approx([3.0, 0.5])
