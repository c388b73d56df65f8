import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from reference import vectors
from truearm import bounds, families
from truearm.bounds import lower as lower_bounds

VECTORS = vectors("vectors")
FIELDS = {"m1_tilde": "observed_median", "m1": "median", "m2": "m2", "B_needed": "B", "B": "B", "U": "bias"}

adversaries = st.sampled_from(["oblivious", "prescient", "malicious"])
liftings = {
    "p": st.floats(1 / 3, 2 / 3),
    "eps": st.floats(0.001, 0.066),
    "adversary": adversaries,
    "best": st.booleans(),
    "constants": st.sampled_from(["paper", "sharp"]),
}


def law_of(masses):
    return families.piecewise(atoms=[(0.0, masses.zero), (1.0, masses.one)], bars=[(0.0, 1.0, masses.uniform)])


@pytest.mark.parametrize("constants", ["paper", "sharp"])
@pytest.mark.parametrize("adversary", ["prescient", "malicious"])
@pytest.mark.parametrize("role", ["best", "other"])
def test_liftings_are_the_audited_ones(constants, adversary, role):
    vector = VECTORS[f"lift-{'paper' if constants == 'paper' else 'repaired'}-{adversary}"]
    i, expected = vector["inputs"], vector["expected"][role]
    arm = lower_bounds.lifting(i[f"p_{role}"], i["eps"], adversary, best=role == "best", constants=constants)
    for key, value in expected.items():
        assert getattr(arm, FIELDS[key]) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("adversary", ["prescient", "malicious"])
def test_lifted_effective_gap_is_the_gap_seen(adversary):
    vector = VECTORS[f"lift-repaired-{adversary}"]
    i = vector["inputs"]
    best = lower_bounds.lifting(i["p_best"], i["eps"], adversary, best=True)
    other = lower_bounds.lifting(i["p_other"], i["eps"], adversary, best=False)
    gaps = bounds.effective_gaps([best.median, other.median], [best.bias, other.bias])
    assert gaps[1] == pytest.approx(vector["expected"]["effective_gap"], rel=1e-12)
    assert gaps[1] == pytest.approx(best.observed_median - other.observed_median)


def test_kl_and_clean_lower_bound_are_the_audited_numbers():
    i, expected = VECTORS["kl-sber"]["inputs"], VECTORS["kl-sber"]["expected"]
    assert lower_bounds.smoothed_bernoulli_kl(i["p"], i["q"]) == pytest.approx(expected["kl"], rel=1e-13)
    assert lower_bounds.kl_curvature(i["eta"]) == pytest.approx(expected["C_eta"], rel=1e-14)
    setting = {"best": i["p"], "eta": i["eta"]}
    found = lower_bounds.bernoulli_lower_bound(i["gaps"], i["alpha"], i["delta"], **setting)
    assert found == pytest.approx(expected["lower_bound_4"], rel=1e-13)
    cited = lower_bounds.bernoulli_lower_bound(i["gaps"], i["alpha"], i["delta"], **setting, constants="paper")
    assert cited == pytest.approx(expected["lower_bound_2p4"], rel=1e-13)


def test_contaminated_lower_bound_is_the_audited_number():
    i, expected = VECTORS["lb-repaired"]["inputs"], VECTORS["lb-repaired"]["expected"]
    setting = {"eps": 0.05, "reach": 0.2}
    found = lower_bounds.contaminated_lower_bound(i["effective_gaps"], i["alpha"], i["delta"], **setting)
    assert found == pytest.approx(expected, rel=1e-13)


@given(**liftings)
def test_liftings_have_the_laws_they_state(p, eps, adversary, best, constants):
    arm = lower_bounds.lifting(p, eps, adversary, best=best, constants=constants)
    readings = lower_bounds.lifted_readings(arm, adversary)
    assert readings == pytest.approx(lower_bounds.smoothed_bernoulli(p, 0.5 if constants == "paper" else 0.75))
    assert sum(arm.clean) == pytest.approx(1)
    assert min(arm.clean) >= 0
    struck = arm.clean.one if best else arm.clean.zero
    assert 0 <= arm.strike <= 1
    assert arm.strike * (struck if adversary == "malicious" else 1) == pytest.approx(eps)
    law = law_of(arm.clean)
    assert law.median == pytest.approx(arm.median)
    assert law.m2 == pytest.approx(arm.m2)
    assert law.minimal_B(0.99 * arm.reach) == pytest.approx(arm.B)
    assert bounds.shift(law, eps, adversary) == pytest.approx(arm.bias)
    assert bounds.bias(eps, arm.B, arm.m2, adversary) == pytest.approx(arm.bias)


@given(p=st.floats(4 / 15, 11 / 15), eps=st.floats(0.001, 0.066), adversary=adversaries, best=st.booleans())
def test_repaired_liftings_share_B_and_m2_and_reach_a_quarter(p, eps, adversary, best):
    arm = lower_bounds.lifting(p, eps, adversary, best=best)
    assert math.isclose(arm.B, 4)
    assert arm.m2 == pytest.approx(1 / 3 if adversary == "malicious" else (1 - eps) / 3)
    assert arm.reach >= 0.25 - 1e-12


@given(p=st.floats(0.05, 0.95), weight=st.floats(0.5, 1.0))
def test_smoothed_bernoulli_agrees_with_its_law(p, weight):
    masses = lower_bounds.smoothed_bernoulli(p, weight)
    law = law_of(masses)
    assert lower_bounds.smoothed_bernoulli_median(p, weight) == pytest.approx(law.median, abs=1e-9)
    assert lower_bounds.smoothed_bernoulli_density([0.0, 1.0, 0.5], p, weight) == pytest.approx(masses)


@given(p=st.floats(0.05, 0.95), q=st.floats(0.05, 0.95), weight=st.floats(0.5, 0.9))
def test_kl_agrees_with_its_definition(p, q, weight):
    f, g = (lambda x, r=r: float(lower_bounds.smoothed_bernoulli_density(x, r, weight)) for r in (p, q))
    atoms = sum(f(x) * math.log(f(x) / g(x)) for x in (0.0, 1.0))
    between, _ = quad(lambda x: f(x) * math.log(f(x) / g(x)), 0.01, 0.99)
    assert lower_bounds.smoothed_bernoulli_kl(p, q, weight) == pytest.approx(atoms + between, abs=1e-12)


@given(eta=st.floats(0.05, 0.45), data=st.data())
def test_curvature_bounds_the_divergence_and_is_attained(eta, data):
    p, q = (data.draw(st.floats(eta, 1 - eta)) for _ in range(2))
    C = lower_bounds.kl_curvature(eta)
    assert lower_bounds.smoothed_bernoulli_kl(p, q) <= C * (p - q) ** 2 * (1 + 1e-9) + 1e-15
    step = 1e-3 * (1 - 2 * eta)
    near = lower_bounds.smoothed_bernoulli_kl(eta, eta + step) / step**2
    assert near > C * 0.96


def test_the_constant_of_theorem_16_comes_from_its_parts():
    C = lower_bounds.kl_curvature(4 / 15, 0.75)
    assert math.isclose(C, 225 / 352)
    assert math.isclose(lower_bounds.REPAIRED_CONSTANT, 1 / (4 * 9 * C))  # median gap = parameter gap / 3
