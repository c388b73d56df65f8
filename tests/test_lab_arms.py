"""Instances: what the paper, the literature and docs/evidence.md say of them."""

import numpy as np
import pytest
from scipy import stats

import truearm as ta
from reference import vectors
from truearm import bounds, families, lab

VECTORS = vectors("vectors")


@pytest.mark.parametrize("name", lab.INSTANCES)
def test_named_instances_have_arm_0_as_their_only_best(name):
    one = lab.instance(name)
    assert one.good() == (0,)
    assert len(one.arms) == int("".join(c for c in name if c.isdigit()))


def test_scipy_laws_and_data_are_arms_too():
    one = lab.Instance("mixed", (stats.gamma(2.0), stats.expon()))
    assert one.best == 0
    assert lab.empirical({"A": [1, 2, 9], "B": [3, 4, 5]}).best == 1


def test_howard_ramdas_gaps_are_twice_the_slack_in_levels():
    for kind in ("uniform", "cauchy"):
        one = lab.howard_ramdas(kind, 0.7)
        rise = one.arms[1].ppf_left(0.725) - one.arms[1].ppf_left(0.7)
        assert one.gaps[1] == pytest.approx(2 * rise)


def test_schreuder_contamination_is_a_tenth_cauchy():
    one = lab.schreuder(8)
    x, law = 1.3, one.attack.observed(one.arms[0], 0)
    assert law.cdf(x) == pytest.approx(0.9 * stats.norm.cdf(x, 1, 0.5) + 0.1 * stats.cauchy.cdf(x, 1))
    assert lab.schreuder(8, contaminated=False).attack is None
    with pytest.raises(ta.InvalidArgument, match="k must be at most 100,000"):
        lab.schreuder(10**18)


def test_confounded_arms_show_one_law():  # audit 1.j
    one, x = lab.confounded(0.1), np.linspace(-2, 2, 41)
    first, second = lab.observed(one)
    c = 0.1 / 0.9
    np.testing.assert_allclose(first.cdf(x), stats.uniform.cdf(x, -1 - c, 2 + 2 * c), atol=1e-12)
    np.testing.assert_allclose(second.cdf(x), first.cdf(x), atol=1e-12)
    assert one.gaps[1] == pytest.approx(2 * bounds.bias(0.1, 4.0, 0.5, "oblivious"))


def test_extreme_shift_moves_the_median_by_the_bias():  # Remark 11
    one = lab.extreme_shift(0.2, 3.0)
    law = one.arms[0]
    moved = law.median + bounds.bias(0.2, 4.0, law.m2, "oblivious")
    assert one.attack.observed(law, 0).cdf(moved) == pytest.approx(0.5)
    assert lab.extreme_shift(0.0).attack is None


@pytest.mark.statistical
def test_malicious_extreme_attains_lemma_8():
    n, delta, eps = 101, 0.1, 0.2
    radius = bounds.malicious_attained_radius(n, delta, eps)
    one = lab.malicious_extreme(eps, eps - radius)
    rng = np.random.default_rng(3)
    medians = [np.median(one.attack.tape(rng, one.arms[0], 0, n).readings) for _ in range(2000)]
    low = int(np.sum(np.asarray(medians) < 1.0))
    assert stats.binomtest(low, 2000, delta, alternative="greater").pvalue > 1e-4  # false alarm 1e-4


@pytest.mark.parametrize("adversary", ["prescient", "malicious"])
@pytest.mark.parametrize(("constants", "kind"), [("paper", "paper"), ("sharp", "repaired")])
def test_liftings_match_the_vectors_and_show_smoothed_bernoulli_readings(adversary, constants, kind):
    vector = VECTORS[f"lift-{kind}-{adversary}"]
    p = [vector["inputs"]["p_best"], vector["inputs"]["p_other"]]
    one = lab.lifted(p, vector["inputs"]["eps"], adversary, constants=constants)
    for arm, expected in enumerate((vector["expected"]["best"], vector["expected"]["other"])):
        assert (one.values[arm], one.arms[arm].m2) == pytest.approx((expected["m1"], expected["m2"]))
        seen = families.smoothed_bernoulli(p[arm], weight=0.5 if constants == "paper" else 0.75)
        x = np.array([-0.1, 0.0, 0.2, 0.7, 0.999, 1.0])
        np.testing.assert_allclose(lab.observed(one)[arm].cdf(x), seen.cdf(x), atol=1e-12)
