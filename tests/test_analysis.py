import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

import truearm as ta
from truearm.analysis import analyze
from truearm.claims.certificate import Certificate, Status
from truearm.claims.plain import from_plain
from truearm.claims.result import Analysis
from truearm.errors import VerificationError
from truearm.evidence import Levels
from truearm.problem import Contamination

FALSE_ALARM = 1e-4  # of each statistical test here: seeds are fixed, so this is how often another seed would fail


def normals(gaps, n=400, seed=0):
    rng = np.random.default_rng(seed)
    return {chr(65 + i): rng.normal(-gap, size=n) for i, gap in enumerate(gaps)}


CLEAR = normals([0.0, 1.0, 1.5])
CLOSE = normals([0.0, 0.02, 3.0], n=3000)


@pytest.mark.parametrize("design", ["sequential", "fixed"])
def test_a_certificate_survives_json_and_knows_its_design(design):
    found = analyze(CLEAR, design=design)
    assert (found.status, found.best, found.candidates) == (Status.CERTIFIED, "A", ("A",))
    assert (dict(found.excluded), found.ranking, found.needed) == ({"B": "A", "C": "A"}, ("A", "B", "C"), {})
    turned = analyze({name: -values for name, values in CLEAR.items()}, goal="min", design=design)
    assert (turned.ranking, turned.breakdown) == (found.ranking, found.breakdown)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert Analysis.from_dict(plain) == found
    certificate = from_plain(Certificate, plain["certificate"])
    assert certificate.design == design
    assert certificate.verify(CLEAR)
    with pytest.raises(VerificationError):
        certificate.verify({**CLEAR, "B": CLEAR["B"] + 1})
    changed = {"sequential": "fixed", "fixed": "sequential"}[design]
    with pytest.raises(VerificationError):
        from_plain(Certificate, {**plain["certificate"], "design": changed}).verify(CLEAR)
    weak = normals([0.0, 0.0, 0.0], seed=5)
    forged = {**plain["certificate"], "digest": analyze(weak).certificate.digest}
    with pytest.raises(VerificationError, match=r"but the readings give"):
        from_plain(Certificate, forged).verify(weak)


def test_fisher_p_value_of_the_fixed_design_by_brute_force():
    x, y = np.arange(30.0), np.arange(12.0, 42.0)
    levels = Levels.of(0.5, Contamination(0.05))
    cuts = np.append(np.unique(x), math.inf)
    w = [binom.cdf((y <= c).sum(), 30, levels.low) * binom.cdf((x >= c).sum(), 30, levels.high) for c in cuts]
    p = max(value * (1 - math.log(value)) for value in w)
    found = analyze({"y": y, "x": x}, design="fixed")
    assert found.contests[0].p_value == pytest.approx(p, rel=1e-9)


POSITIVE = {name: np.exp(values / 10) for name, values in CLOSE.items()}
ANSWERS = [  # data, options, status, rule, whether the leader is named
    (CLOSE, {"contamination": 0.1}, Status.INDISTINGUISHABLE, "causal", False),
    (CLOSE, {"tolerance": 0.4}, Status.TOLERABLE, "causal", True),
    (CLOSE, {"tolerance": 0.4, "design": "fixed"}, Status.TOLERABLE, "fixed", True),
    (POSITIVE, {"tolerance": "10%", "goal": "min"}, Status.CERTIFIED, "causal", True),
    ({arm: POSITIVE[arm] for arm in "AB"}, {"tolerance": "10%"}, Status.TOLERABLE, "causal", True),
    (normals([0.0, 0.5]), {"contamination": None}, Status.SEPARATED, "causal", True),
    (normals([0.0, 0.0], seed=1), {"contamination": None}, Status.EXHAUSTED, "causal", False),
    (CLEAR, {"contamination": 0.02}, Status.CERTIFIED, "causal", True),
    (CLEAR, {"contamination": Contamination(0.02, "malicious")}, Status.CERTIFIED, "clairvoyant", True),
    (CLEAR, {"contamination": Contamination(0.02, "malicious", causal=True)}, Status.CERTIFIED, "causal", True),
    (CLEAR, {"contamination": 0.02, "dependent_arms": True}, Status.CERTIFIED, "dependent", True),
]


@pytest.mark.parametrize(
    ("data", "options", "status", "rule", "is_named"), ANSWERS, ids=lambda value: str(value)[:30]
)
def test_what_is_assumed_and_asked_decides_the_status(data, options, status, rule, is_named):
    found = analyze(data, **options)
    assert (found.status, found.certificate.rule) == (status, rule)
    assert found.best == (found.ranking[0] if is_named else None)
    assert found.certificate.verify(data)
    if status is Status.INDISTINGUISHABLE:
        assert (set(found.candidates), dict(found.excluded)) == ({"A", "B"}, {"C": found.ranking[0]})
        assert found.needed is None
        assert "Even unlimited readings would decide this only if" in str(found)


def test_what_is_needed_would_decide():
    small = normals([0.0, 0.7], n=60, seed=2)
    found = analyze(small)
    assert found.status is Status.EXHAUSTED
    times = 1 + found.needed["A"] / 60
    assert analyze({k: np.tile(v, math.ceil(times)) for k, v in small.items()}).status is Status.CERTIFIED
    assert analyze({k: np.tile(v, max(1, int(0.7 * times))) for k, v in small.items()}).status is Status.EXHAUSTED


def test_all_pairs_on_request():
    found = analyze(CLEAR, pairs=True)
    assert len(found.contests) == 6
    assert {(c.better, c.worse) for c in found.contests if c.excluded} >= {("A", "B"), ("A", "C")}
    weakest = min(c.breakdown.oblivious for c in found.contests if c.better == "A")
    assert 0.9 * found.breakdown.oblivious < weakest < found.breakdown.oblivious  # of six pairs, not of two


@pytest.mark.parametrize(
    ("frame", "chosen", "message"),
    [
        ({"A": [], "B": [1.0]}, {}, "arm 'A' has no readings"),
        ({}, {}, "at least one arm"),
        ({"A": [1.0]}, {"missing": "ignore"}, "missing readings always count at their worst"),
        (CLEAR, {"design": "fixed", "dependent_arms": True}, "independent arms"),
        *((CLEAR, {name: 2}, f"{name} must be True or False, but got 2") for name in ("pairs", "tiers", "fdr")),
        (CLEAR, {"control": np.array(["A", "B"])}, "control must name an arm"),
        (CLEAR, {"of": 1.5}, "of must be an integer"),
        (CLEAR, {"kind": ["csv"]}, "kind must be 'csv', "),
    ],
)
def test_what_is_wrong_is_named(frame, chosen, message):
    with pytest.raises(ta.TruearmError, match=message):
        analyze(frame, **chosen)


@given(st.integers(0, 10_000), st.sampled_from(["sequential", "fixed"]))
def test_no_arm_is_excluded_both_ways(seed, design):
    rng = np.random.default_rng(seed)
    data = {name: rng.integers(0, 4, 60).astype(float) for name in "ABC"}
    found = analyze(data, design=design, contamination=0.01, pairs=True)
    excluded = {(c.better, c.worse) for c in found.contests if c.excluded}
    assert not excluded & {(b, a) for a, b in excluded}
    assert found.candidates


def _wrong(design, adversary, seed, *, delta=0.1, n=250, eps=0.1):
    """Return True if the truly best arm is excluded when all readings are spoiled as badly as allowed."""
    rng = np.random.default_rng(seed)
    data = {"A": rng.normal(1e-9, size=n), "B": rng.normal(0, size=n), "C": rng.normal(0, size=n)}
    for name, bad in (("A", -9.0), ("B", 9.0), ("C", 9.0)):
        if adversary == "malicious":
            cut = np.quantile(data[name], 1 - eps if name == "A" else eps)
            hit = data[name] > cut if name == "A" else data[name] < cut
        else:
            hit = rng.random(n) < eps
        data[name] = np.where(hit, bad, data[name])
    return "A" in analyze(data, contamination=Contamination(eps, adversary), design=design, delta=delta).excluded


@pytest.mark.statistical
@pytest.mark.parametrize("design", ["sequential", "fixed"])
@pytest.mark.parametrize("adversary", ["oblivious", "malicious"])
def test_the_best_arm_is_excluded_no_more_often_than_promised(design, adversary):
    wrong = sum(_wrong(design, adversary, seed) for seed in range(100))
    assert binomtest(wrong, 100, 0.1, alternative="greater").pvalue > FALSE_ALARM


def test_readings_that_refute_eps_by_being_missing_certify_nothing():
    nan = math.nan
    for tapes in (
        {"a": [nan] * 200 + [1.0], "b": [nan] * 200 + [5.0]},
        {"a": [nan] * 60 + [*range(100)], "b": [nan] * 60 + [*range(100)]},
    ):
        found = ta.analyze(tapes)
        assert found.best is None
        assert {alarm.kind for alarm in found.alarms} >= {"missing"}
        assert found.tolerance == math.inf
        assert tuple(found.breakdown) == (None, None, None)
        assert found.excluded == {}


# Ties, doubts, units


@pytest.mark.parametrize("design", ["sequential", "fixed"])
def test_arms_that_say_the_same_are_ties_and_exclude_nobody(design):
    data = {"A": [3.0] * 200, "B": [3.0] * 200, "C": [1.0] * 200}
    for order in ("CBA", "BCA"):
        assert set(analyze({name: data[name] for name in order}, design=design).excluded) == {"C"}
    found = analyze(data, design=design)
    assert (found.status, found.best, found.ties) == (Status.CERTIFIED, "A", ("B",))
    assert dict(found.excluded) == {"C": "A"}
    assert str(found).startswith("A and B tie for the highest observed median: 3x that of C (at least ")
    assert found.certificate.verify(data)


@pytest.mark.parametrize("goal", ["max", "min"])
def test_an_arm_behind_by_the_order_of_listing_alone_is_not_ruled_out(goal):
    rng = np.random.default_rng(1)
    data = {arm: (rng.random(2_000) < share) * 1.0 for arm, share in zip("xyz", (0.12, 0.34, 0.115), strict=True)}
    found = analyze(data, goal=goal)
    assert (found.best, set(found.candidates)) == (None, set("xyz"))  # all medians are 0
    assert "ruled out" not in str(found)
    assert found.certificate.verify(data)


def test_an_arm_is_excluded_by_whoever_is_strictly_better():
    rng = np.random.default_rng(3)
    many, low = rng.normal(1.5, 0.1, 400), np.zeros(400)
    by_few = (analyze({"few": np.full(n, 2.0), "many": many, "low": low}) for n in range(2, 40))
    found = next(f for f in by_few if {c.arm: c.leader for c in f.certificate.claims}["low"] == "few")
    assert found.ranking[0] == "few"  # enough to reject the last arm, too little to call it worse
    assert dict(found.excluded) == {"low": "many"}


@pytest.mark.parametrize("rounds", [None, "rows"])
@pytest.mark.parametrize("late", [0.1, 0.9])
def test_a_bad_reading_beyond_the_limit_makes_no_margin_over_an_arm_that_times_out(rounds, late):
    """B takes 2.1 times as long as A, up to a limit; 4% of the readings are absurd, as promised."""
    rng = np.random.default_rng(1)
    quick, slow = rng.normal(1.0, 0.05, 600), rng.normal(2.1, 0.05, 600)
    slow[slow > np.quantile(slow, 1 - late)] = math.inf
    quick[rng.random(600) < 0.04] = 1e9
    found = analyze({"A": quick, "B": slow}, goal="min", round=rounds)
    [lead] = found.better_by
    assert found.best == "A"
    assert (lead.at_least or 0.0) < 2.1
    assert (lead.at_least is None) == (late > 0.5)
