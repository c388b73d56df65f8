"""Laws: the vectors of the audit, closed forms against scipy, and the two families as properties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reference import vectors
from truearm import families
from truearm.problem import Regularity

VECTORS = vectors("vectors")
SCIPY = {
    "gaussian": stats.norm(),
    "cauchy": stats.cauchy(),
    "laplace": stats.laplace(),
    "logistic": stats.logistic(),
}
PAIRS = [
    *((getattr(families, name)(), frozen) for name, frozen in SCIPY.items()),
    (families.lognormal(sigma=0.7), stats.lognorm(0.7)),
]
SCIPY["uniform01"] = stats.uniform()
STANDARD = {name: getattr(families, name.removesuffix("01"))() for name in SCIPY}
# audit 1.i item 8: in the family of Definition 3 with B = 8, flat beyond 2 m2
atoms = st.lists(
    st.tuples(st.integers(-8, 8), st.integers(1, 9)), min_size=1, max_size=6, unique_by=lambda atom: atom[0]
)
bars = st.lists(
    st.tuples(st.integers(-8, 7), st.integers(1, 5), st.integers(1, 9)).map(lambda b: (b[0], b[0] + b[1], b[2])),
    max_size=4,
)
mixed = st.builds(lambda a, b: families.piecewise(atoms=a, bars=b), atoms, bars)
smooth = st.sampled_from([*STANDARD.values(), families.lognormal(0.3, 0.8), families.of(stats.gamma(2.5))])
laws = st.one_of(mixed, smooth)
levels = st.floats(0.01, 0.99)


@pytest.mark.parametrize("name", STANDARD)
@pytest.mark.parametrize("make", [STANDARD.get, lambda name: families.of(SCIPY[name])], ids=["own", "scipy"])
def test_moments_and_minimal_b_match_the_vectors(name, make):
    law, expected = make(name), VECTORS[f"moments-{name}"]["expected"]
    found = {"m2": law.m2, "m4": law.m4, "kappa_min": law.minimal_kappa()}
    assert found == pytest.approx(expected, rel=1e-12)
    for reach, expected in VECTORS[f"Bmin-{name}"]["expected"].items():
        found = [law.minimal_B(float(reach)), law.minimal_B(float(reach), mad=True)]
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("law", "frozen"), PAIRS)
def test_laws_agree_with_scipy(law, frozen):
    z, p, tail = np.linspace(-6, 6, 201) + 1e-3, np.linspace(0.001, 0.999, 101), np.array([1e-300, 1e-100, 1e-12])
    np.testing.assert_allclose(law.cdf(z), frozen.cdf(z), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(law.pdf(z), frozen.pdf(z), rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(law.ppf_left(p), frozen.ppf(p), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(law.cdf(law.ppf_right(p)), p, rtol=1e-12)
    np.testing.assert_allclose(law.ppf_left(tail), frozen.ppf(tail), rtol=1e-9)
    assert (law.ppf_right(0.0), law.ppf_left(1.0)) == (frozen.ppf(0.0), frozen.ppf(1.0))
    low, high = law.ppf_left(np.array([0.2, 0.9]))
    found = [(s.m2, s.m4, s.median, s.least_slope(low, high)) for s in (law, families.of(frozen))]
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-15)


def test_empirical_moments_match_the_vectors():
    vector = VECTORS["empirical"]
    for parity in ("odd", "even"):
        law = families.empirical(vector["inputs"][f"x_{parity}"])
        assert law.median == vector["expected"][f"med_{parity}"]
        assert law.m2 == vector["expected"][f"mad_{parity}"]


@pytest.mark.parametrize("frozen", [stats.binom(4, 0.75), stats.poisson(3.3), stats.geom(0.3, loc=2)])
def test_discrete_scipy_laws_become_tables(frozen):
    law, x = families.of(frozen), np.arange(-1.5, 12, 0.5)
    np.testing.assert_allclose(law.cdf(x), frozen.cdf(x), atol=1e-14)
    assert law.ppf_left(0.5) == frozen.ppf(0.5)


def test_a_listed_scipy_law_keeps_its_values():
    frozen = stats.rv_discrete(values=([1, 2, 7], [0.2, 0.3, 0.5]))(loc=1)
    assert families.of(frozen).m1 == (3.0, 8.0)


def test_a_flat_piece_of_a_scipy_law_shows_in_its_median_set():
    frozen = stats.rv_histogram((np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 3.0, 4.0])), density=False)
    law = families.of(frozen())
    assert law.m1 == pytest.approx((1.0, 3.0), abs=1e-9)
    assert (law.ppf_left(0.25), law.ppf_right(0.25)) == pytest.approx((0.5, 0.5))
    assert law.minimal_B(0.1) == math.inf


def test_an_interior_dip_of_the_density_sets_b():
    dip = families.of(stats.beta(0.5, 0.5))  # least dense at the median
    assert dip.minimal_B(0.25) == pytest.approx(1 / (dip.m2 * stats.beta.pdf(0.5, 0.5, 0.5)), rel=1e-9)
    narrow = stats.beta(0.3, 0.6)
    expected = narrow.pdf((0.3 - 1) / (0.3 + 0.6 - 2))
    assert families.of(narrow).least_slope(0.01, 0.99) == pytest.approx(expected, rel=1e-10)


def test_minimal_b_of_laws_with_atoms():
    assert families.discrete([0, 1, 2], [3, 4, 3]).minimal_B(0.1) == 0.0  # the interval is one atom
    assert families.discrete([0, 1, 2], [3, 4, 3]).minimal_B(0.3) == math.inf  # it spans a flat piece
    assert families.discrete([0, 1], [1, 1]).minimal_B(0.1) == math.inf  # two medians
    assert families.discrete([0], [1]).minimal_B(0.1) == math.inf  # m2 = 0
    assert families.smoothed_bernoulli(0.5).minimal_B(0.2) == pytest.approx(2 / 0.5)


def test_levels_that_differ_by_rounding_are_one_level():
    assert families.discrete(range(10), [0.1] * 10).m1 == (4.0, 5.0)
    assert families.discrete(range(3), [0.1 + 0.2, 0.2, 0.5]).m1 == (1.0, 2.0)


def test_quantiles_beyond_the_ends_bound_nothing():
    for law in (families.gaussian(), families.uniform(), families.discrete([0, 1], [1, 1])):
        assert (law.ppf_left(0.0), law.ppf_right(1.0)) == (-math.inf, math.inf)
        assert (law.ppf_left(-0.1), law.ppf_right(-0.1), law.ppf_left(1.1)) == (-math.inf, -math.inf, math.inf)


@given(laws, levels)
def test_quantiles_satisfy_their_definition(law, p):
    low, high = law.ppf_left(p), law.ppf_right(p)
    assert low <= high
    assert law.cdf(low) >= p - 1e-9 >= law.cdf_left(low) - 2e-9
    assert law.cdf_left(high) <= p + 1e-9


@given(laws, st.sampled_from([0.1, 0.3]), levels, levels)
def test_the_slope_condition_holds_between_any_two_points(law, reach, u, v):  # Definition 2
    b = law.minimal_B(reach)
    low, high = law.ppf_left(0.5 - reach), law.ppf_right(0.5 + reach)
    x, y = sorted((low + u * (high - low), low + v * (high - low)))
    assert not 0 < b < math.inf or law.cdf(y) - law.cdf(x) >= (y - x) / (b * law.m2) - 1e-9


def test_membership_follows_the_definitions():
    law = families.cauchy(3.0, 2.0)
    assert law.belongs(Regularity(B=2 * math.pi, m2=2.0, reach=0.25))
    assert not law.belongs(Regularity(B=6.2, m2=2.0, reach=0.25))
    assert not law.belongs(Regularity(B=7.0, m2=1.9, reach=0.25))
    assert law.belongs(Regularity(B=5 * math.pi, m2=2.0, reach=0.25), kappa=(1 + math.sqrt(3)) / 2)
    assert not law.belongs(Regularity(B=5 * math.pi, m2=2.0, reach=0.25), kappa=1.36)


@pytest.mark.statistical
@pytest.mark.parametrize("law", [*STANDARD.values(), families.lognormal(), families.of(stats.gamma(2.5))])
def test_readings_follow_the_law(law):
    x = law.affine(-2.0, 1.0).sample(np.random.default_rng(7), 4000)
    assert stats.kstest(x, law.affine(-2.0, 1.0).cdf).pvalue > 1e-4  # false alarm 1e-4 per law
