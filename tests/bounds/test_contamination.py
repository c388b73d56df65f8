"""What contamination alone can do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truearm import bounds, families

from .cases import vector


@pytest.mark.parametrize("name", ["U-oblivious", "U-prescient", "U-malicious"])
def test_bias_is_the_audited_number(name):
    inputs, expected = vector(name)
    assert bounds.bias(**inputs) == pytest.approx(expected, rel=1e-14)


def test_malicious_bias_is_larger_by_two_clean_shares():
    inputs, expected = vector("U-ratio")
    ratio = bounds.rank_shift(inputs["eps"], "malicious") / bounds.rank_shift(inputs["eps"], "prescient")
    assert ratio == pytest.approx(expected, rel=1e-14)


def test_largest_contamination_on_an_array():
    inputs, expected = vector("epsmax")
    assert bounds.max_contamination(np.array(inputs["tbar"]), "prescient") == pytest.approx(expected, rel=1e-14)
    assert bounds.max_contamination(0.3, "malicious") == 0.3


def test_gaussian_shift_is_the_audited_number():
    inputs, expected = vector("shift-gaussian")
    for eps in inputs["eps"]:
        found = [bounds.shift(families.gaussian(), eps, a) for a in ("prescient", "malicious")]
        assert found == pytest.approx(expected[str(eps)], rel=1e-12)


def test_identified_interval_is_the_audited_one():
    inputs, expected = vector("identified-uniform")
    eps = inputs["eps"]
    c = eps / (1 - eps)
    for adversary in ("prescient", "malicious"):
        found = bounds.identified_interval(families.uniform(-1 - c, 1 + c), 0.5, eps, adversary)
        assert list(found) == pytest.approx(expected[adversary], rel=1e-12)


@given(a=st.floats(0.1, 100.0), eps=st.floats(0.01, 0.4))
def test_a_uniform_law_attains_the_bias(a, eps):
    contaminated = families.piecewise(bars=[(0.0, a, 1 - eps), (a, a / (1 - eps), eps)])
    moved = contaminated.m1.low - a / 2
    assert moved == pytest.approx(bounds.bias(eps, 4, a / 4, "oblivious"), rel=1e-9)  # Remark 11
    assert moved == pytest.approx(bounds.shift(families.uniform(0.0, a), eps, "oblivious"), rel=1e-9)


@given(eps=st.floats(0.01, 0.4), n=st.integers(5, 400), adversary=st.sampled_from(["prescient", "malicious"]))
def test_a_two_point_law_attains_every_rank_shift(eps, n, adversary):
    e = bounds.rank_shift(eps, adversary)
    law = families.discrete([0.0, 1.0 + n], [0.5 + e, 0.5 - e])  # Cor. 5: R(e) = 1 + n
    assert bounds.shift(law, eps, adversary) == pytest.approx(1.0 + n)
