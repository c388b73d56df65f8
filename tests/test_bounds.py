import inspect
import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from truearm import bounds, families
from truearm.bounds import lower as lower_bounds
from truearm.bounds import median
from truearm.bounds.mixture import Prior, log_mixture
from truearm.errors import InvalidArgument, OutOfReach

ROOT = Path(__file__).parent
VECTORS = {v["id"]: v for v in json.loads((ROOT / "vectors" / "vectors.json").read_text())["vectors"]}
ADVERSARIES = ("oblivious", "prescient", "malicious")
FALSE_ALARM = 1e-4  # chance that a correct bound fails one of the statistical tests below
SINGLE = Prior((25.0,), (1.0,))

adversaries = st.sampled_from(ADVERSARIES)
fractions = st.floats(0.0, 0.45)
deltas = st.floats(1e-6, 0.4)
sizes = st.integers(1, 3000)
levels = st.floats(0.02, 0.98)


def vector(name):
    return VECTORS[name]["inputs"], VECTORS[name]["expected"]


def family(inputs, *, m2="m2bar"):
    return {"eps": inputs["eps"], "B": inputs["B"], "m2": inputs[m2], "adversary": inputs["adversary"]}


# The numbers of the audit


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


@pytest.mark.parametrize(
    "name", ["n-prescient-alpha0.1", "n-prescient-alpha10", "n-malicious-alpha0.1", "n-malicious-alpha10"]
)
@pytest.mark.parametrize("constants", ["paper", "sharp"])
def test_median_sample_size_is_the_audited_number(name, constants):
    inputs, expected = vector(name)
    promise = family(inputs) | {"reach": inputs["tbar"], "constants": constants}
    n = bounds.median_sample_size(inputs["alpha"], inputs["delta"], **promise)
    assert n == expected[f"{constants}_ceil"]
    chance = median.median_chance(inputs["delta"], inputs["eps"], inputs["adversary"], constants)
    room = inputs["tbar"] - bounds.rank_shift(inputs["eps"], inputs["adversary"])
    size = median._median_size(chance, inputs["alpha"], inputs["B"] * inputs["m2bar"], room)
    assert size == pytest.approx(expected[constants], rel=1e-14)


def test_uniform_sample_size_is_the_audited_number():
    inputs, expected = vector("alg1-n")
    promise = family(inputs) | {"reach": inputs["tbar"], "constants": "paper"}
    n = bounds.uniform_sample_size(inputs["k"], inputs["alpha"], inputs["delta"], **promise)
    assert (n, n * inputs["k"]) == (expected["per_arm"], expected["total"])


@pytest.mark.parametrize("name", ["alg3-prescient", "alg3-malicious"])
def test_elimination_schedule_is_the_audited_one(name):
    i, expected = vector(name)
    schedule = bounds.elimination_schedule(i["k"], i["delta"], i["eps"], i["tbar"], i["adversary"])
    assert math.isclose(schedule.N, expected["N"], rel_tol=1e-14)
    assert schedule.initial == expected["initial"]
    assert [schedule.per_round(r) for r in range(1, 7)] == expected["per_round"]
    assert [schedule.total(r) for r in range(1, 7)] == expected["cumulative"]


@pytest.mark.parametrize("name", ["alg3-prescient", "alg3-malicious"])
def test_elimination_radius_is_the_audited_one(name):
    i, expected = vector(name)
    r = np.arange(1, 7)
    assert bounds.round_delta(i["delta"], i["k"], r) == pytest.approx(expected["delta_r"], rel=1e-14)
    radius = bounds.elimination_radius(r, i["k"], i["delta"], i["B"], i["m2bar"])
    assert radius == pytest.approx(expected["alpha_r"], rel=1e-14)


def test_early_stop_is_the_audited_round():
    i, expected = vector("alg3-early-stop")
    setting = (i["k"], i["delta"], i["B"], i["m2bar"])
    assert bounds.early_stop_round(i["alpha"], *setting) == expected["argmax"]
    assert bounds.early_stop_round(i["alpha"], *setting, survivor="any") == expected["any_survivor"]
    at = bounds.elimination_radius(np.array(i["alpha_r_at"]), *setting)
    assert at == pytest.approx([expected["alpha_100"], expected["alpha_1000"]], rel=1e-14)


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


def test_quality_bound_is_the_audited_number():
    i, expected = vector("quality-paper")
    run = family(i) | {"tolerance": i["alpha"], "k": i["k"], "delta": i["delta"], "reach": 0.4}
    found = bounds.quality_bound(i["t"], i["m1_hat"], i["m2_hat"], **run, kappa=i["kappa"], constants="paper")
    assert found == pytest.approx(
        (expected["threshold"], expected["prob_safe"], expected["prob_literal"]), rel=1e-14
    )
    improved = bounds.quality_bound(i["t"], i["m1_hat"], i["m2_hat"], **run)
    assert improved.threshold == pytest.approx(VECTORS["quality-improved"]["expected"], rel=1e-14)


@pytest.mark.parametrize("name", ["mad-n-prescient", "mad-n-malicious"])
def test_mad_sample_size_is_the_audited_number(name):
    i, expected = vector(name)
    promise = family(i) | {"reach": i["tbar"], "kappa": i["kappa"]}
    assert bounds.mad_sample_size(i["E"], i["delta"], **promise) == expected["improved_ceil"]
    assert bounds.mad_sample_size(i["E"], i["delta"], **promise, constants="paper") == expected["paper_ceil"]


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


def test_dkw_radius_and_curve_are_the_audited_numbers():
    i, expected = vector("dkw")
    radius = bounds.dkw_radius(i["n"], i["delta"] / i["k"])
    assert radius == pytest.approx(expected["radius"], rel=1e-14)
    for adversary in ("prescient", "malicious"):
        floor = bounds.survival_floor(i["Fhat"], radius, i["eps"], adversary)
        assert floor == pytest.approx(expected[adversary], rel=1e-14)


def test_sequential_dkw_radius_is_the_audited_number():
    i, expected = vector("dkw-time-uniform")
    stitched = bounds.sequential_dkw_radius(i["n"], i["delta"])
    assert stitched == pytest.approx(expected["howard_ramdas"], rel=1e-14)
    union = bounds.sequential_dkw_radius(i["n"], i["delta"], form="union")
    assert union == pytest.approx(expected["union"], rel=1e-14)


def test_order_bounds_are_the_audited_ones():
    inputs, expected = vector("order-stat-bounds")
    assert [list(bounds.contaminated_order_bounds(*case)) for case in inputs["cases"]] == expected


@pytest.mark.parametrize("constants", ["paper", "sharp"])
@pytest.mark.parametrize("adversary", ["prescient", "malicious"])
def test_median_radius_is_the_audited_number(adversary, constants):
    i, expected = vector("median-radius")
    radius = bounds.median_radius(i["n"], i["delta"], i["eps"], adversary, constants=constants)
    assert radius == pytest.approx(expected[f"{adversary}_{constants}"], rel=1e-14)


# The paper's examples of tightness


@given(a=st.floats(0.1, 100.0), eps=st.floats(0.01, 0.4))
def test_a_uniform_law_attains_the_bias(a, eps):
    contaminated = families.piecewise(bars=[(0.0, a, 1 - eps), (a, a / (1 - eps), eps)])
    moved = contaminated.m1.low - a / 2
    assert moved == pytest.approx(bounds.bias(eps, 4, a / 4, "oblivious"), rel=1e-9)  # Remark 11
    assert moved == pytest.approx(bounds.shift(families.uniform(0.0, a), eps, "oblivious"), rel=1e-9)


@given(eps=st.floats(0.05, 0.4), delta=st.floats(0.01, 0.5), more=st.integers(1, 300))
def test_the_malicious_instance_attains_its_radius(eps, delta, more):
    n = math.floor(math.log(1 / delta) / (2 * eps**2)) + more
    a = eps - bounds.malicious_attained_radius(n, delta, eps)
    law = families.discrete([0.0, 1.0], [0.5 + eps - a, 0.5 - eps + a])
    assert law.m1 == (0.0, 0.0)
    assert eps / (0.5 + eps - a) <= 1  # the strike on Y = 0 is a probability
    assert binom.cdf(n // 2, n, 0.5 + a) <= delta * (1 + 1e-9)  # median < 1 needs at most n/2 ones


def test_the_malicious_instance_in_numbers():
    a = 0.2 - bounds.malicious_attained_radius(101, 0.1, 0.2)
    assert binom.cdf(50, 101, 0.5 + a) == pytest.approx(0.0148, abs=5e-5)  # audit 1.c


@pytest.mark.parametrize("n", range(1, 7))
def test_order_bounds_by_brute_force(n):
    for s in range((n + 1) // 2):
        ranks = bounds.contaminated_order_bounds(n, s)
        for replaced in itertools.combinations(range(n), s):
            for z in itertools.product((-100.0, 2.5, 100.0), repeat=s):
                x = np.arange(1.0, n + 1)
                x[list(replaced)] = z
                assert ranks.low <= np.median(x) <= ranks.high


@given(eps=st.floats(0.01, 0.4), n=st.integers(5, 400), adversary=st.sampled_from(["prescient", "malicious"]))
def test_a_two_point_law_attains_every_rank_shift(eps, n, adversary):
    e = bounds.rank_shift(eps, adversary)
    law = families.discrete([0.0, 1.0 + n], [0.5 + e, 0.5 - e])  # Cor. 5: R(e) = 1 + n
    assert bounds.shift(law, eps, adversary) == pytest.approx(1.0 + n)


# Properties


@given(n=sizes, p=st.floats(0.001, 0.999), delta=deltas)
def test_lower_rank_agrees_with_the_binomial_law(n, p, delta):
    r = bounds.lower_rank(n, p, delta)
    assert binom.cdf(r - 1, n, p) <= delta
    assert binom.cdf(r, n, p) > delta * (1 - 1e-8)


@given(n=sizes, q=levels, delta=deltas, adversary=adversaries)
def test_without_contamination_the_classical_interval(n, q, delta, adversary):
    ranks = bounds.quantile_ranks(n, q, delta, 0.0, adversary)
    low, high = binom.ppf(delta / 2, n, q), binom.isf(delta / 2, n, q)
    assume(abs(binom.cdf(low, n, q) / (delta / 2) - 1) > 1e-8)
    assume(abs(binom.sf(high, n, q) / (delta / 2) - 1) > 1e-8)
    assert ranks.low == low
    assert ranks.high == high + 1


@given(n=sizes, q=levels, delta=deltas, eps=fractions, adversary=adversaries)
def test_ranks_mirror_when_the_quantile_does(n, q, delta, eps, adversary):
    assume(1 - (1 - q) == q)
    ranks = bounds.quantile_ranks(n, q, delta, eps, adversary)
    mirrored = bounds.quantile_ranks(n, 1 - q, delta, eps, adversary)
    assert mirrored == (n + 1 - ranks.high, n + 1 - ranks.low)


@given(n=sizes, q=levels, delta=deltas, eps=fractions)
def test_oblivious_ranks_lie_inside_malicious_ones(n, q, delta, eps):
    oblivious, prescient, malicious = (bounds.quantile_ranks(n, q, delta, eps, a) for a in ADVERSARIES)
    assert oblivious == prescient
    assert malicious.low <= oblivious.low
    assert oblivious.high <= malicious.high


@given(n=sizes, q=levels, delta=deltas, eps=fractions, factor=st.floats(0.1, 1.0), adversary=adversaries)
def test_ranks_widen_with_contamination_and_confidence(n, q, delta, *, eps, factor, adversary):
    wide = bounds.quantile_ranks(n, q, delta * factor, eps, adversary)
    for narrow in (
        bounds.quantile_ranks(n, q, delta, eps, adversary),
        bounds.quantile_ranks(n, q, delta * factor, eps * factor, adversary),
    ):
        assert wide.low <= narrow.low
        assert narrow.high <= wide.high


@given(n=sizes, p=st.floats(0.001, 0.999), delta=deltas)
def test_ranks_grow_by_at_most_one_reading(n, p, delta):
    at, after = bounds.lower_rank(np.array([n, n + 1]), p, delta)
    assert 0 <= after - at <= 1


@given(p0=st.floats(0.05, 0.95), delta=deltas)
def test_sequential_ranks_grow_by_at_most_one_reading(p0, delta):
    ranks = bounds.sequential_rank(np.arange(0, 400), p0, delta)
    assert ranks[0] == 0
    assert set(np.diff(ranks)) <= {0, 1}


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


@given(n=sizes, k=st.integers(1, 50), delta=deltas)
def test_sequential_elimination_ranks_contain_the_fixed_ones(n, k, delta):
    fixed, always = bounds.elimination_ranks(n, k, delta), bounds.sequential_elimination_ranks(n, k, delta)
    assert always.low <= fixed.low
    assert always.low + always.high == fixed.low + fixed.high == n + 1


@given(n=sizes, delta=deltas, eps=st.floats(0.0, 0.45), adversary=adversaries)
def test_sharp_radius_is_never_worse_than_the_printed_one(n, delta, eps, adversary):
    sharp = bounds.median_radius(n, delta, eps, adversary)
    assert sharp <= bounds.median_radius(n, delta, eps, adversary, constants="paper")


@given(
    error=st.floats(0.01, 2.0),
    delta=deltas,
    eps=st.floats(0.0, 0.2),
    B=st.floats(4.0, 4.5),
    kappa=st.floats(1.0, 5.0),
    adversary=adversaries,
)
def test_sharp_sizes_are_never_worse_than_the_printed_ones(error, delta, *, eps, B, kappa, adversary):
    promise = {"eps": eps, "B": B, "m2": 0.3, "reach": 0.4, "adversary": adversary}
    mad = promise | {"kappa": kappa}
    assert bounds.median_sample_size(error, delta, **promise) <= bounds.median_sample_size(
        error, delta, **promise, constants="paper"
    )
    assert bounds.mad_sample_size(error, delta, **mad) <= bounds.mad_sample_size(
        error, delta, **mad, constants="paper"
    )
    run = mad | {"tolerance": error, "k": 3, "delta": delta}
    printed = bounds.quality_bound(0.2, 1.0, 0.3, **run, constants="paper")
    assert bounds.quality_bound(0.2, 1.0, 0.3, **run).threshold >= printed.threshold


@given(
    error=st.floats(0.01, 2.0),
    delta=deltas,
    eps=st.floats(0.0, 0.2),
    constants=st.sampled_from(["paper", "sharp"]),
    adversary=adversaries,
)
def test_sample_sizes_and_errors_undo_each_other(error, delta, eps, constants, adversary):
    promise = {"eps": eps, "B": 4.2, "m2": 0.3, "reach": 0.4, "adversary": adversary, "constants": constants}
    floor = bounds.bias(eps, 4.2, 0.3, adversary)
    n = bounds.median_sample_size(error, delta, **promise)
    assert bounds.median_error(n, delta, **promise) <= (floor + error) * (1 + 1e-9)
    kappa = 1.5
    n = bounds.mad_sample_size(error, delta, **promise, kappa=kappa)
    floor *= 1 + 2 * kappa if constants == "paper" else 1
    assert bounds.mad_error(n, delta, **promise, kappa=kappa) <= (floor + error) * (1 + 1e-9)


@given(n=sizes, delta=deltas, eps=st.floats(0.0, 0.4), factor=st.floats(0.1, 1.0), adversary=adversaries)
def test_radius_is_monotone(n, delta, eps, factor, adversary):
    radius = bounds.median_radius(n, delta, eps, adversary)
    assert bounds.median_radius(n + 1, delta, eps, adversary) <= radius
    assert bounds.median_radius(n, delta * factor, eps, adversary) >= radius
    assert bounds.median_radius(n, delta, eps * factor, adversary) <= radius
    assert radius <= bounds.median_radius(n, delta, eps, "malicious") / (1 - eps)


@given(k=st.integers(2, 100), delta=deltas, eps=st.floats(0.0, 0.2), r=st.integers(1, 500), adversary=adversaries)
def test_schedules_justify_the_elimination_radius(k, delta, eps, r, adversary):
    printed = bounds.elimination_schedule(k, delta, eps, 0.3, adversary)
    sharp = bounds.elimination_schedule(k, delta, eps, 0.3, adversary, constants="sharp")
    share = bounds.round_delta(delta, k, r)
    promise = {"eps": eps, "B": 4.0, "m2": 0.25, "reach": 0.3, "adversary": adversary, "constants": "paper"}
    allowed = bounds.elimination_radius(r, k, delta, 4.0, 0.25) + bounds.bias(eps, 4.0, 0.25, adversary)
    for schedule in (printed, sharp):
        assert bounds.median_error(schedule.total(r), share, **promise) <= allowed * (1 + 1e-9)
    assert sharp.total(r) <= printed.total(r)


@given(k=st.integers(2, 100), delta=deltas, r=st.integers(1, 200), constants=st.sampled_from(["paper", "sharp"]))
def test_a_schedule_adds_up(k, delta, r, constants):
    schedule = bounds.elimination_schedule(k, delta, 0.1, 0.3, "prescient", constants=constants)
    total = schedule.initial + sum(schedule.per_round(i) for i in range(1, r + 1))
    assert schedule.total(r) == total


@given(k=st.integers(2, 100), delta=deltas, r=st.integers(1, 300), eps=st.floats(0.0, 0.2), adversary=adversaries)
def test_counting_readings_never_widens_the_radius(k, delta, r, eps, adversary):
    n = bounds.elimination_schedule(k, delta, eps, 0.3, adversary).total(r)
    promise = {"delta": delta, "eps": eps, "B": 4.0, "m2": 0.25, "reach": 0.3, "adversary": adversary}
    counted = bounds.counted_elimination_radius(r, n, k, **promise)
    assert counted <= bounds.elimination_radius(r, k, delta, 4.0, 0.25)


@given(
    k=st.integers(2, 50),
    delta=deltas,
    tolerance=st.floats(0.05, 5.0),
    survivor=st.sampled_from(["argmax", "any"]),
)
def test_early_stop_is_the_first_round_that_will_do(k, delta, tolerance, survivor):
    r = bounds.early_stop_round(tolerance, k, delta, 4.0, 0.25, survivor=survivor)
    factor = 2 if survivor == "argmax" else 4
    radii = factor * bounds.elimination_radius(np.arange(max(1, r - 50), r + 1), k, delta, 4.0, 0.25)
    assert radii[-1] <= tolerance
    assert np.all(radii[:-1] > tolerance)


def test_round_deltas_sum_to_delta():
    spent = 5 * np.sum(bounds.round_delta(0.1, 5, np.arange(1, 10**6)))
    assert 0.1 - 1e-6 < spent < 0.1


@given(st.lists(st.tuples(st.floats(-10, 10), st.floats(0, 2)), min_size=1, max_size=8))
def test_effective_gaps_by_their_definition(arms):
    medians, biases = zip(*arms, strict=True)
    gaps = bounds.effective_gaps(medians, biases)
    best = int(np.argmax(medians))
    assert gaps[best] == pytest.approx(-2 * biases[best], abs=1e-12)
    for gap, p, u in zip(gaps, medians, biases, strict=True):
        lost = medians[best] - p
        assert lost == pytest.approx(bounds.selection_gap(gap, biases[best], u), abs=1e-9)


@given(low=st.floats(0, 1), radius=st.floats(0, 0.5), eps=fractions, adversary=adversaries)
def test_survival_bounds_are_ordered_and_probabilities(low, radius, eps, adversary):
    floor = bounds.survival_floor(low, radius, eps, adversary)
    ceiling = bounds.survival_ceiling(low, radius, eps, adversary)
    assert 0 <= floor <= ceiling <= 1
    assert floor >= bounds.survival_floor(low, radius, eps, "malicious") - 1e-12


def test_laws_reach_the_promised_quantile():
    law, reach = families.gaussian(3.0, 2.0), 0.3
    B = law.minimal_B(reach)
    for t in np.linspace(0, reach, 7):
        level = bounds.median_quantile_floor(float(t), median=3.0, B=B, m2=law.m2, reach=reach)
        assert 1 - law.cdf_left(level) >= 0.5 + t - 1e-9  # Lemma 21


def test_elimination_power_by_brute_force():
    promise = {"eps": 0.1, "B": 4.0, "m2": 0.25, "reach": 0.45, "adversary": "prescient"}
    gap, k, delta, slope = 0.3, 4, 0.1, 1.0
    n = bounds.elimination_sample_size(gap, k, delta, **promise)
    a = math.sqrt(math.log(2 * k / delta) / (2 * n)) / 0.9
    assert slope * 4 * a < gap  # both arms' intervals, 2a/g each, inside the gap
    assert n == math.floor(8 * slope**2 * math.log(2 * k / delta) / (0.9**2 * gap**2)) + 1


def test_ranks_are_fast_and_right_at_a_hundred_million_readings():
    n = 10**8
    r = bounds.lower_rank(n, 0.45, 0.025)
    assert binom.cdf(r - 1, n, 0.45) <= 0.025 < binom.cdf(r, n, 0.45)
    assert bounds.sequential_rank(n, 0.45, 0.025) < r


def test_a_tail_equal_to_delta_counts_as_above_it():
    assert bounds.lower_rank(5, 0.5, 1 / 32) == 0
    assert bounds.lower_rank(5, 0.5, 1.001 / 32) == 1


def test_no_trusted_mass_earns_rank_zero():
    assert bounds.lower_rank(100, 0.0, 0.1) == bounds.lower_rank(100, -0.2, 0.1) == 0
    assert bounds.sequential_rank(np.array([1, 1000]), 0.0, 0.1).tolist() == [0, 0]
    assert bounds.identified_interval(families.uniform(), 0.3, 0.3, "malicious").low == -math.inf
    assert bounds.identified_interval(families.uniform(), 0.7, 0.3, "malicious").high == math.inf


def test_empty_arrays_give_empty_arrays():
    assert bounds.lower_rank(np.array([], dtype=np.int64), 0.5, 0.1).size == 0
    assert bounds.rank_shift(np.array([]), "oblivious").size == 0


@given(n=st.integers(0, 40), p=st.floats(0.01, 1.0), delta=st.floats(0.01, 0.99))
def test_ranks_of_few_readings_by_enumeration(n, p, delta):
    tails = binom.cdf(np.arange(n), n, p)
    assume(np.all(np.abs(tails / delta - 1) > 1e-8))
    assert bounds.lower_rank(n, p, delta) == np.sum(tails <= delta)
    assert bounds.lower_rank(np.array([n, n]), p, delta).tolist() == [np.sum(tails <= delta)] * 2


def test_scalars_are_plain_and_arrays_stay_arrays():
    assert type(bounds.rank_shift(np.float64(0.1), "prescient")) is float
    assert type(bounds.median_radius(100, 0.05, 0.1, "malicious")) is float
    assert type(bounds.lower_rank(100, 0.5, 0.05)) is int
    assert bounds.bias(np.array([0.1, 0.2]), 4, np.array([0.25, 0.5]), "malicious") == pytest.approx([0.1, 0.4])
    assert bounds.dkw_radius(np.array([100, 200]), np.array([0.05, 0.1])).shape == (2,)


# What is outside the conditions

PROMISE = {"eps": 0.1, "B": 4.0, "m2": 0.25, "reach": 0.4, "adversary": "prescient"}
RUN = PROMISE | {"tolerance": 0.1, "k": 3, "delta": 0.1}
MAD = {"eps": 0.1, "B": 4.0, "m2": 0.25, "adversary": "malicious"}
REFUSALS = {
    "eps too large for reach": lambda: bounds.median_sample_size(0.1, 0.1, **PROMISE | {"reach": 0.05}),
    "show that the reach exceeds": lambda: bounds.elimination_constant(0.3, 0.2, "malicious"),
    "take n >= ": lambda: bounds.median_error(10, 0.1, **PROMISE),
    "B >= 4": lambda: bounds.mad_sample_size(0.1, 0.1, **MAD | {"B": 3.0}),
    "kappa >= 1": lambda: bounds.mad_sample_size(0.1, 0.1, **MAD, kappa=0.7),
    "< 1/B": lambda: bounds.mad_sample_size(0.1, 0.1, **MAD | {"eps": 0.3}),
    "below the threshold": lambda: bounds.mad_error(10, 0.1, **MAD),
    "s < n/2": lambda: bounds.contaminated_order_bounds(6, 3),
    "use n > ": lambda: bounds.malicious_attained_radius(10, 0.1, 0.1),
    "a positive eps": lambda: bounds.malicious_attained_radius(10, 0.1, 0.0),
    "delta <= 0.5": lambda: bounds.dkw_radius(10, 0.6),
    "promises nothing": lambda: bounds.quality_bound(0.45, 0.0, 1.0, **RUN),
}
MISUSES = {
    "kappa must be given": lambda: bounds.mad_sample_size(0.1, 0.1, **MAD, reach=0.4, constants="paper"),
    "reach must be given": lambda: bounds.mad_sample_size(0.1, 0.1, **MAD, kappa=2, constants="paper"),
    "constants must be": lambda: bounds.median_radius(10, 0.1, 0.1, "malicious", constants="best"),
    "adversary must be": lambda: bounds.rank_shift(0.1, "angry"),
    r"eps must be in \[0, 0.5\), but got 0.6": lambda: bounds.rank_shift(np.array([0.1, 0.6]), "oblivious"),
    "eps must be in .* nan": lambda: bounds.rank_shift(np.array([0.1, math.nan]), "oblivious"),
    "n must be an integer": lambda: bounds.dkw_radius(np.array([1.5, 2.0]), 0.1),
    "m2 must be positive": lambda: bounds.bias(0.1, 4, np.array([0.1, 0.0]), "oblivious"),
    "survivor must be": lambda: bounds.early_stop_round(0.5, 5, 0.1, 4, 0.25, survivor="all"),
    "must be at most 1": lambda: bounds.lower_rank(10, math.nan, 0.1),
    "form must be": lambda: bounds.sequential_dkw_radius(10, 0.1, form="best"),
    "biases >= 0": lambda: bounds.effective_gaps([1.0, 2.0], [0.1, -0.1]),
}


@pytest.mark.parametrize("message", REFUSALS)
def test_a_failed_condition_is_named_with_its_remedy(message):
    pattern = message.replace("eps too large", r"eps=0.1 is too large").replace("for reach", "for reach=0.05")
    with pytest.raises(OutOfReach, match=pattern):
        REFUSALS[message]()


@pytest.mark.parametrize("message", MISUSES)
def test_a_wrong_argument_is_named(message):
    with pytest.raises(InvalidArgument, match=message):
        MISUSES[message]()


# Promised probabilities, against the worst adversary for each


def attacked(rng, shape, eps, adversary, *, upward=True):
    """Readings of Uniform[0, 1], every bad one sent to the same side; the malicious one drops the far end."""
    y = rng.random(shape)
    bad = (y < eps if upward else y > 1 - eps) if adversary == "malicious" else rng.random(shape) < eps
    return np.where(bad, np.inf if upward else -np.inf, y)


def assert_rarer(failures, delta):
    """The promise holds up to chance: a correct bound fails here with probability at most FALSE_ALARM."""
    assert binomtest(int(np.sum(failures)), len(failures), delta, alternative="greater").pvalue > FALSE_ALARM


def assert_as_often(failures, probability):
    """The probability is attained: a correct value fails here with probability at most FALSE_ALARM."""
    assert binomtest(int(np.sum(failures)), len(failures), probability).pvalue > FALSE_ALARM


repetitions = pytest.mark.parametrize("reps", [4000, pytest.param(60_000, marks=pytest.mark.slow)])
each_adversary = pytest.mark.parametrize("adversary", ["prescient", "malicious"])


@pytest.mark.statistical
@repetitions
@each_adversary
@pytest.mark.parametrize("n", [60, 61])
def test_median_error_keeps_its_promise(reps, adversary, n):
    rng = np.random.default_rng(20)
    x = np.sort(attacked(rng, (reps, n), 0.1, adversary), axis=1)
    promise = {"eps": 0.1, "B": 4.0, "m2": 0.25, "reach": 0.45, "adversary": adversary}
    failures = np.median(x, axis=1) - 0.5 > bounds.median_error(n, 0.1, **promise)
    assert_rarer(failures, 0.05)  # one of the two sides


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


@pytest.mark.statistical
@repetitions
@each_adversary
def test_survival_floor_holds_for_all_x_at_once(reps, adversary):
    rng, n, eps, delta = np.random.default_rng(25), 80, 0.1, 0.1
    x = np.sort(attacked(rng, (reps, n), eps, adversary), axis=1)
    assert_rarer(floor_failures(x, eps, adversary, bounds.dkw_radius(n, delta)), delta)


def floor_failures(x, eps, adversary, radius):
    """Whether some x has a floor above its true P(Y >= x) = 1 - x; the floor falls only at readings."""
    n = x.shape[1]
    points = np.concatenate([np.minimum(x, 1.0), np.ones((len(x), 1))], axis=1)
    below = np.concatenate([np.arange(n) / n * np.ones_like(x), np.mean(np.isfinite(x), axis=1)[:, None]], axis=1)
    below = np.minimum(below, below[:, -1:])
    floors = bounds.survival_floor(below, radius, eps, adversary)
    return np.any(floors > 1 - points + 1e-12, axis=1)


@pytest.mark.statistical
@pytest.mark.parametrize("reps", [300, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", ["stitched", "union"])
def test_survival_floor_holds_for_all_n_at_once(reps, form):
    rng, horizon, eps, delta = np.random.default_rng(26), 200, 0.1, 0.1
    x = attacked(rng, (reps, horizon), eps, "malicious")
    failed = np.zeros(reps, dtype=bool)
    for n in range(1, horizon + 1):
        radius = bounds.sequential_dkw_radius(n, delta, form=form)
        failed |= floor_failures(np.sort(x[:, :n], axis=1), eps, "malicious", radius)
    assert_rarer(failed, delta)


@pytest.mark.statistical
@repetitions
@each_adversary
@pytest.mark.parametrize("n", [120, 121])
def test_median_and_deviation_keep_their_joint_promise(reps, adversary, n):
    rng, eps, delta = np.random.default_rng(27), 0.05, 0.2
    x = np.minimum(attacked(rng, (reps, n), eps, adversary), 1e6)
    allowed = bounds.mad_error(n, delta, eps=eps, B=4.0, m2=0.25, adversary=adversary)
    median = np.median(x, axis=1)
    deviation = np.median(np.abs(x - median[:, None]), axis=1)
    assert_rarer((np.abs(median - 0.5) > allowed) | (np.abs(deviation - 0.25) > allowed), delta)


@pytest.mark.statistical
@pytest.mark.parametrize("reps", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
@each_adversary
def test_quality_threshold_holds_for_all_arms_and_levels(reps, adversary):
    rng, n, k, eps, delta = np.random.default_rng(28), 151, 4, 0.05, 0.2
    x = np.minimum(attacked(rng, (reps, k, n), eps, adversary), 1e6)
    median = np.median(x, axis=2)
    deviation = np.median(np.abs(x - median[:, :, None]), axis=2)
    run = {
        "n": n,
        "k": k,
        "delta": delta,
        "eps": eps,
        "B": 4.0,
        "m2": 0.25,
        "reach": 0.45,
        "adversary": adversary,
    }
    for t in (0.0, 0.2, 0.45):
        threshold = bounds.quality_threshold(t, median, deviation, **run)
        assert_rarer(np.any(threshold > 0.5 - t, axis=1), delta)


# The table of theorems


def test_the_table_of_theorems_is_complete_and_true():
    text = (ROOT.parent / "docs" / "bounds.md").read_text()
    named = set(re.findall(r"`(lower_bounds|bounds)\.(\w+)", text))
    public = {("bounds", name) for name in bounds.__all__ if inspect.isfunction(getattr(bounds, name))} | {
        ("lower_bounds", name)
        for name, thing in vars(lower_bounds).items()
        if inspect.isfunction(thing) and thing.__module__ == lower_bounds.__name__ and not name.startswith("_")
    }
    assert len(public) > 40
    assert public <= named
    assert all(hasattr({"bounds": bounds, "lower_bounds": lower_bounds}[m], name) for m, name in named)


def test_the_table_of_theorems_names_tests_that_exist():
    text = (ROOT.parent / "docs" / "bounds.md").read_text()
    sources = "".join((ROOT / f"test_{m}.py").read_text() for m in ("bounds", "lower_bounds", "errata"))
    tests = set(re.findall(r"`(test_\w+)`", text))
    assert tests
    assert all(f"def {name}(" in sources for name in tests)
