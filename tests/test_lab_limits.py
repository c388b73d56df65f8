"""Limits: the vectors, the published tables, and an independent solver."""

import math

import numpy as np
import pytest
from scipy import optimize

from reference import vectors
from truearm import families, lab
from truearm.bounds.limits import kl
from truearm.errors import OutOfReach
from truearm.families import Shape

VECTORS = vectors("vectors", "evidence_vectors")
# instances of evidence section 5, computed elsewhere: pulls at delta = .05, eps = .05 worst, separated
TABLE = {
    "G2": 279, "G2s": math.inf, "C2": 332, "LN2": 279, "D2": 35, "G5": 631, "G5s": 18097, "G5w": 121, "C5": 231,
    "LN5": 394, "D5": 58, "G10": 487, "G10lin": 380, "C10lin": 268, "LN10lin": 380, "D10lin": 95, "G50": 930,
    "G50lin": 625, "C50": 985,
}  # fmt: skip
# docs/optimality.md, known shape, computed elsewhere: eps, gap, pulls with the shape known, certified, separated
KNOWN = [
    (0.0, 1.0, 21.2, 35.2, 35.2),
    (0.01, 1.0, 26.8, 40.1, 38.0),
    (0.05, 1.0, 57.7, 74.4, 52.9),
    (0.05, 0.5, 600, 687, 279),
    (0.10, 1.0, 202, 248, 87.7),
    (0.10, 0.5, math.inf, math.inf, 878),
]


def _pair(gap):
    return lab.translations(families.gaussian(), [gap])


def test_two_gaussian_arms_match_the_vector():
    one = lab.instance("G2")
    attack = lab.worst(one, 0.05)
    found = [lab.limit(one), lab.limit(one, attack), lab.limit(one, attack, contamination=0.05)]
    expected = VECTORS["fs-Tstar-2"]["expected"]
    assert [*(one.time for one in found), found[0].pulls(0.05)] == pytest.approx(expected, rel=1e-12)


def test_five_and_fifty_arms_match_the_vector():
    five, fifty = lab.instance("G5"), lab.instance("G50")
    attack = lab.worst(five, 0.05)
    found = [
        lab.limit(five, attack),
        lab.limit(five, attack, contamination=0.05),
        lab.limit(fifty, lab.worst(fifty, 0.05)),
    ]
    expected = VECTORS["fs-Tstar-5"]["expected"]
    assert [one.time for one in found] == pytest.approx(expected[0::2], rel=1e-12)
    assert [one.weights[0] for one in found] == pytest.approx(expected[1::2], rel=1e-6)


@pytest.mark.parametrize("name", lab.INSTANCES)
def test_named_instances_match_the_table(name):
    one = lab.instance(name)
    assert lab.limit(one, lab.worst(one, 0.05)).pulls(0.05) == pytest.approx(TABLE[name], abs=0.5)


@pytest.mark.parametrize(
    ("means", "weights", "expected"),
    [
        ([0.5, 0.45, 0.43, 0.4], [0.417, 0.390, 0.136, 0.057], 989.8),
        ([0.3, 0.21, 0.2, 0.19, 0.18], [0.336, 0.251, 0.177, 0.132, 0.104], 326.6),
    ],
)
def test_bernoulli_means_match_garivier_and_kaufmann(means, weights, expected):
    found = lab.bernoulli_limit(means)
    assert found.weights == pytest.approx(weights, abs=6e-4)
    assert found.time == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(("eps", "gap", "known", "certified", "separated"), KNOWN)
def test_known_shape_matches_prior_work(eps, gap, known, certified, separated):
    one = _pair(gap)
    attack = lab.worst(one, eps)
    assert lab.known_shape_limit(one, eps).pulls(0.05) == pytest.approx(known, rel=3e-3)
    assert lab.limit(one, attack, contamination=eps).pulls(0.05) == pytest.approx(certified, rel=3e-3)
    assert lab.limit(one, attack).pulls(0.05) == pytest.approx(separated, rel=3e-3)


@pytest.mark.parametrize("shape", [Shape("gaussian"), Shape("laplace"), Shape("logistic")])
@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_least_favorable_divergence_agrees_with_direct_integration(shape, eps):
    z = np.linspace(-30, 30, 600_001)
    first, second = (1 - eps) * shape.pdf(z + 0.6), (1 - eps) * shape.pdf(z - 0.6)
    ratio = second / np.maximum(first, 1e-320)

    def clipped(c):
        return np.trapezoid(np.where(ratio < c, first, second / c), z) - 1

    c = optimize.brentq(clipped, 1.0, 3.3) if eps else np.inf
    low, high = np.where(ratio < c, first, second / c), np.where(ratio > 1 / c, second, first / c)
    inner = (low > 1e-200) & (high > 1e-200)
    direct = np.trapezoid(np.where(inner, low * np.log(low.clip(1e-200) / high.clip(1e-200)), 0), z)
    assert lab.least_favorable_kl(1.2, eps, shape) == pytest.approx(direct, rel=1e-5)


def test_arms_that_contamination_confounds_have_no_limit():
    for contamination in (None, 0.1):
        assert lab.limit(lab.confounded(0.1), contamination=contamination).time == math.inf
    assert lab.limit(lab.translations(families.gaussian(), [0.0])).pulls(0.05) == math.inf
    assert math.isnan(lab.limit(_pair(0.1), lab.worst(_pair(0.1), 0.2)).weights[0])


def test_a_tolerance_shifts_the_rivals():
    one = _pair(0.5)
    found = lab.limit(one, tolerance=0.2)
    assert found.time == pytest.approx(lab.limit(_pair(0.7)).time, rel=1e-9)
    assert found.pulls(0.05) == pytest.approx(lab.limit(_pair(0.7)).pulls(0.05), rel=1e-9)


def test_several_right_answers_weaken_the_bound_as_proved():
    found = lab.limit(_pair(0.1), tolerance=0.4)  # both arms are right
    assert (found.answers, found.answer) == (2, 0)
    assert found.time == pytest.approx(lab.limit(_pair(0.5)).time, rel=1e-9)
    assert found.pulls(0.05) == pytest.approx(found.time * kl(0.475, 0.05))


def test_the_minimax_form_is_theorem_16_in_units_of_the_lifting():
    vector = VECTORS["lb-repaired"]
    p = [0.6, *(0.6 - 3 * gap for gap in vector["inputs"]["effective_gaps"])]
    found = lab.minimax_pulls(lab.lifted(p, 0.05), 0.05, vector["inputs"]["delta"], tolerance=0.02)
    assert found == pytest.approx(vector["expected"])
    with pytest.raises(OutOfReach, match="7/45"):
        lab.minimax_pulls(_pair(1.0), 0.05, 0.05)
