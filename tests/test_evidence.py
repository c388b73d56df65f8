import json
import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import FOLDER, breakdown_point, pair, vectors
from truearm.bounds.mixture import Prior, log_mixture
from truearm.errors import InvalidArgument, OutOfReach
from truearm.evidence import (
    Breakdown,
    Leg,
    Levels,
    Stake,
    Trust,
    breakdown,
    is_better,
    least_evidence,
    portfolio,
    quantiles,
    threshold,
)
from truearm.evidence.quantiles import Quantile
from truearm.evidence.sample import Sample
from truearm.evidence.scores import log_score_evidence
from truearm.evidence.targets import Query
from truearm.problem import Adversary, Contamination, Problem

VECTORS = vectors("evidence_vectors")


def vector(name):
    return VECTORS[name]["inputs"], VECTORS[name]["expected"]


def samples(inputs, *names):
    return [Sample.of(inputs[name]) for name in names]


def close(expected):
    return pytest.approx(expected, rel=1e-11, abs=1e-11)


def evidence_at(judged, rivals, cut):
    """Return log W at one cut, without contamination."""
    return CLEAN.evidence_at(judged, rivals, Trust(0.0, Adversary.OBLIVIOUS), cut)


EVEN = Levels(0.5, 0.5)
CLEAN = Quantile(Problem(arms=("A", "B"), contamination=None))
PAIRS = {  # of a vector: what each of its numbers is the evidence of
    "fs-E-identified": lambda _, i, j: [(i, j, EVEN), (j, i, EVEN)],
    "fs-E-alpha": lambda x, i, j: [(i, j.map(lambda v, a=a: v - a), EVEN) for a in x["alpha"]],
    "fs-E-certified": lambda x, i, j: [
        (i, j, Levels.of(0.5, Contamination(x["eps"], a))) for a in ("prescient", "malicious")
    ],
    "fs-E-quantile": lambda x, i, j: [(i, j, Levels.of(x["q"], c)) for c in (None, Contamination(0.1))],
}


@pytest.fixture
def sixteen(monkeypatch):
    """The prior of the vectors."""
    prior = Prior((16.0,), (1.0,))
    monkeypatch.setattr(quantiles, "log_mixture", partial(log_mixture, prior=prior))


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.usefixtures("sixteen")
def test_pair_evidence_of_the_vector(name):
    inputs, expected = vector(name)
    asked = PAIRS[name](inputs, *samples(inputs, "xi", "xj"))
    assert [pair(*each).log_value for each in asked] == close(expected)


@pytest.mark.usefixtures("sixteen")
def test_pair_evidence_with_ties_of_the_vector():
    inputs, expected = vector("fs-E-ties")
    i, j = samples(inputs, "xi", "xj")
    assert [pair(i, j, EVEN, closed=c).log_value for c in (False, True)] == close(expected)


def test_thresholds_of_the_vector():
    inputs, expected = vector("fs-thresholds")
    found = [threshold(inputs["k"], inputs["delta"], rule) for rule in ("causal", "clairvoyant", "dependent")]
    found += [threshold(2, delta, "clairvoyant") for delta in (0.05, 0.01, 0.001)]
    assert found == close(expected)


@pytest.mark.usefixtures("sixteen")
def test_breakdown_points_of_the_vector():
    inputs, expected = vector("fs-epsstar-k3")
    best, *rivals = samples(inputs, "x1", "x2", "x3")
    limit = math.log(threshold(3, inputs["delta"], "causal"))
    found = [breakdown_point(best, rivals, limit, a) for a in (Adversary.PRESCIENT, Adversary.MALICIOUS)]
    assert found == pytest.approx(expected, rel=1e-11)


SCORES = json.loads((FOLDER / "third_vectors.json").read_text())["cases"]


@pytest.mark.parametrize("case", SCORES, ids=lambda case: case["name"])
def test_evidence_of_bounded_scores_of_the_vector(case):
    found = log_score_evidence(np.array(case["differences"]), case["m0"], case["items"])
    expected = [math.inf if x is None else x for x in case["log_evidence"]]
    assert found == pytest.approx(expected, abs=1e-9)


def followed(inputs, judged, segments=None):
    """Return a judged arm of a vector, what bets against it, and the prefixes that took part."""

    def head(arm, n):
        told = [value for value in inputs["tapes"][arm][:n] if value != "nan"]
        return Sample.of(told).extend([], pending=n - len(told))

    whole = {arm: head(arm, len(tape)) for arm, tape in inputs["tapes"].items()}
    legs = [Leg(head(arm, a), head(arm, b)) for arm, a, b in segments or inputs["segments"] if arm != judged]
    stake = None if judged == inputs["leader"] else Stake(whole[inputs["leader"]])
    return whole[judged], portfolio(len(whole), stake, legs)


def least_followed(inputs, judged, segments=None):
    return least_evidence(*followed(inputs, judged, segments), EVEN).log_value


@pytest.mark.parametrize("name", ["ext-follow-1", "ext-follow-2", "ext-follow-pending"])
def test_evidence_that_follows_the_leader_of_the_vector(name):
    inputs, expected = vector(name)
    for arm, value in expected["log_W"].items():
        assert least_followed(inputs, arm) == close(float(value))


def test_cuts_at_the_judged_arms_own_readings_are_not_enough():
    """A leg may say more at such a cut than between two: with those alone C would be rejected at delta 0.05."""
    inputs, expected = vector("ext-follow-2")
    judged, rivals = followed(inputs, "C")
    own = [evidence_at(judged, rivals, cut) for cut in (*judged.values, math.inf)]
    assert min(own) == close(float(expected["log_W_own_cuts_only"]["C"]))
    assert least_evidence(judged, rivals, EVEN).log_value < math.log(20) < min(own)


def definition(judged, whole, legs, cut, k):
    """Return log W at a cut from counts alone: legs and the leader as (readings, start, end, closed)."""

    def log_m(tape, closed):
        low = [x <= cut if closed else x < cut for x in tape]
        return float(log_mixture(sum(low), len(low), 0.5))

    follow = sum(log_m(tape[:end], c) - log_m(tape[:start], c) for tape, start, end, c in legs)
    own = float(log_mixture(sum(x >= cut for x in judged), len(judged), 0.5))
    return own + np.logaddexp(math.log(0.95) + follow, math.log(0.05 / (k - 1)) + log_m(*whole))


@given(st.data(), st.integers(0, 2**32 - 1), st.sampled_from([1, 4, 40]))
def test_the_infimum_is_that_over_all_cuts(data, seed, coarse):
    """Every value that occurs, and every gap between two, is a cut (evidence T5, section 11)."""
    rng = np.random.default_rng(seed)
    sizes = data.draw(st.lists(st.integers(1, 60), min_size=3, max_size=3))
    tapes = [np.round(rng.normal(data.draw(st.integers(-1, 1)), 1, n) * coarse) / coarse for n in sizes]
    closed = data.draw(st.lists(st.booleans(), min_size=2, max_size=2))
    ends = [sorted(data.draw(st.lists(st.integers(0, len(t)), min_size=4, max_size=4))) for t in tapes[1:]]
    legs = [(tapes[1], *ends[0][:2], closed[0]), (tapes[2], *ends[1][:2], closed[1])]
    legs += [(tapes[1], *ends[0][2:], closed[0])]
    values = np.unique(np.concatenate(tapes))
    cuts = [*values, *((values[1:] + values[:-1]) / 2), values[0] - 1, values[-1] + 1]
    whole = (tapes[1], closed[0])
    expected = min(definition(tapes[0], whole, legs, cut, 3) for cut in cuts)
    made = [Leg(Sample.of(t[:a]), Sample.of(t[:b]), c) for t, a, b, c in legs]
    rivals = portfolio(3, Stake(Sample.of(tapes[1]), closed[0]), made)
    found = least_evidence(Sample.of(tapes[0]), rivals, EVEN)
    assert found.log_value == pytest.approx(expected, abs=1e-9)
    assert evidence_at(Sample.of(tapes[0]), rivals, found.at) == pytest.approx(expected, abs=1e-9)
    for bar in (expected - 1e-6, expected + 1e-6):
        soon = least_evidence(Sample.of(tapes[0]), rivals, EVEN, Query(enough=bar)).log_value
        assert (soon >= bar) == (expected >= bar)


@pytest.mark.usefixtures("sixteen")
def test_certified_tolerance_of_the_vector():
    inputs, expected = vector("fs-alphastar")
    a, b = samples(inputs, "xA", "xB")
    limit = math.log(threshold(2, inputs["delta"], "causal"))
    trust = Trust(0.0, Adversary.OBLIVIOUS)
    found = [CLEAN.least_tolerance(x, y, limit, trust, Query()) for x, y in ((b, a), (a, b))]
    assert found == close(expected)


def scanned(better, worse, levels, closed):
    """Try every cut: each reading of either arm, from below and from above, and both ends.

    Unknown readings are on both sides, and those of `better` at minus infinity below every cut (evidence T8).
    """
    censored = np.searchsorted(better.values, -math.inf, "right")
    counts = [(0, worse.values.size), (better.values.size, 0)]
    for v in np.unique(np.concatenate((better.values, worse.values))):
        for side in ("left",) if closed else ("left", "right"):
            above = worse.values.size - np.searchsorted(worse.values, v, side)
            counts.append((np.searchsorted(better.values, v, "right" if closed else side), above))
    below, above = np.array(counts).T
    below, above = np.maximum(below, censored) + better.unknown, above + worse.unknown
    return float(np.min(log_mixture(below, better.n, levels.low) + log_mixture(above, worse.n, levels.high)))


readings = st.lists(
    st.one_of(st.integers(-4, 4).map(float), st.floats(-5, 5), st.sampled_from([math.inf, -math.inf])),
    min_size=0,
    max_size=60,
)
some_levels = st.builds(
    lambda q, eps: Levels.of(q, Contamination(eps, "malicious")), st.floats(0.05, 0.95), st.floats(0, 0.4)
)


@given(readings, readings, some_levels, st.booleans())
def test_branch_and_bound_finds_the_minimum_over_all_cuts(x, y, levels, closed):
    better, worse = Sample.of([*x, math.nan]), Sample.of([*y, math.nan, math.nan])
    found = pair(better, worse, levels, closed=closed).log_value
    assert found == pytest.approx(scanned(better, worse, levels, closed), abs=1e-9)


@pytest.mark.parametrize("design", ["sequential", "fixed"])
@pytest.mark.parametrize("tolerance", [0.0, "2%"])
def test_an_arm_that_always_fails_is_not_better(design, tolerance):
    failing, fine = [math.nan] * 200, np.arange(1.0, 201.0)
    for x, y in ((failing, fine), (fine, failing), (failing, failing), ([], fine), ([], [])):
        found = is_better(x, y, design=design, tolerance=tolerance)
        assert not found
        assert found.breakdown == Breakdown(None, None, None)


def test_breakdown_of_dependent_arms_pays_their_threshold():
    x, y = np.arange(60.0, 260.0), np.arange(0.0, 200.0)
    together, apart = (breakdown(x, y, dependent_arms=flag) for flag in (True, False))
    assert is_better(x, y, dependent_arms=True).breakdown == together
    assert together.oblivious < apart.prescient < apart.oblivious
    assert together.oblivious == together.prescient
    with pytest.raises(OutOfReach, match="sequential"):
        breakdown(x, y, design="fixed", dependent_arms=True)


WRONG = {"design": "all", "goal": "up", "delta": 0, "quantile": 1.0, "contamination": 0.6, "tolerance": "a lot"}


@pytest.mark.parametrize("name", WRONG)
def test_bad_arguments_are_named(name):
    with pytest.raises(InvalidArgument, match=f"{name} must be"):
        is_better([1.0], [2.0], **{name: WRONG[name]})


def test_prefixes_per_arm_would_be_wrong():
    """docs/scale.md: each arm's first factor is 2 or 0, and the good one arrives first."""
    factors = list(product((0, 2), repeat=2))
    assert np.mean([max(a, b, a * b) >= 2 for a, b in factors]) == 0.75
    assert np.mean([max(a, a * b) >= 2 for a, b in factors]) == 0.5  # in order of issue
