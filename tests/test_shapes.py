"""Shapes of laws: quantiles from both sides, moments and least slopes."""

import numpy as np
import pytest
from scipy import stats

from truearm.families.shapes import Shape, Standard

LAWS = [stats.norm(), stats.cauchy(), stats.laplace(), stats.logistic(), stats.lognorm(0.7)]


@pytest.mark.parametrize("frozen", LAWS, ids=lambda law: law.dist.name)
def test_shapes_with_one_mode_agree_with_the_search(frozen):
    shape, generic = Standard(frozen.dist.name, frozen.args), Shape(frozen)
    low, high = shape.ppf(np.array([0.2, 0.9]))
    assert shape.least_slope(low, high) == pytest.approx(generic.least_slope(low, high), rel=1e-9)
    assert (shape.m2, shape.m4) == pytest.approx((generic.m2, generic.m4), rel=1e-12)


def test_the_search_finds_a_narrow_dip():
    dip = stats.beta(0.3, 0.6)
    found = Shape(dip).least_slope(0.01, 0.99)
    assert found == pytest.approx(dip.pdf((0.3 - 1) / (0.3 + 0.6 - 2)), rel=1e-10)


def test_flat_pieces_are_found_from_both_sides():
    frozen = stats.rv_histogram((np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 3.0, 4.0])), density=False)()
    half = np.array([0.5, 0.25])
    assert Shape(frozen).ppf_left(half) == pytest.approx([1.0, 0.5])
    assert Shape(frozen).ppf_right(half) == pytest.approx([3.0, 0.5])
