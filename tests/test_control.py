import json
import math
from dataclasses import replace

import numpy as np
import pytest

from reference import vectors
from truearm import Contamination, TruearmError, VerificationError, analyze, verify
from truearm.claims.result import Analysis
from truearm.evidence import Judge, Trust
from truearm.evidence.comparison import false_discovery, step_down
from truearm.evidence.sample import Sample
from truearm.problem import Adversary, Problem
from truearm.report.tables import control_rows

VECTORS = vectors("answers_vectors")
MEANS = {"A": 0.0, "B": 0.0, "C": 0.8, "D": 1.6, "E": -1.0}


@pytest.fixture(scope="module")
def tapes():
    rng = np.random.default_rng(0)
    return {arm: rng.normal(mean, 1, 400) for arm, mean in MEANS.items()}


@pytest.mark.parametrize("name", ["ext-claims-1", "ext-claims-2", "ext-claims-3"])
def test_claims_are_those_of_the_vectors(name):
    given, expected = VECTORS[name]["inputs"], VECTORS[name]["expected"]
    evidence = {i: math.log(e) for i, e in enumerate(given["E_j0"], 1)}
    problem = Problem(arms=tuple(map(str, range(given["k"]))), delta=given["delta"])
    log_bar = Judge.of(problem, ()).log_bar
    bars = [math.exp(log_bar(left)) for left in range(given["k"] - 1, 0, -1)]
    assert bars == pytest.approx([float(x) for x in expected["holm_thresholds"]])
    assert list(step_down(evidence, log_bar)) == expected["holm_claims"]
    together = false_discovery(evidence, log_bar(given["k"] - 1))
    assert sorted(together) == sorted(expected["eBH_claims"])


def test_other_adversaries_need_more_evidence():
    """c0 by its equation (1 + ln c)/c = delta, solved here by another way: 1,033.9/9 at delta 0.05."""
    arms = ("A", "B", "C", "D")
    clairvoyant = Judge.of(Problem(arms=arms, contamination=Contamination(0.05, "prescient")), ())
    dependent = Judge.of(Problem(arms=arms, dependent_arms=True), ())
    for left in (1, 3):
        c0 = math.exp(clairvoyant.log_bar(left)) / left
        assert (1 + math.log(c0)) / c0 == pytest.approx(0.05)
        assert math.exp(dependent.log_bar(left)) == pytest.approx(4 * left / 0.05**2)


def test_a_tolerance_settles_what_is_equal(tapes):
    found = analyze(tapes, control="A", tolerance=1.0)
    assert found.control.named("not better") == ("B", "E")
    assert "B and E are not better by more than 1" in str(found)


@pytest.mark.parametrize("contamination", [0.05, None, Contamination(0.02, "malicious")])
@pytest.mark.parametrize("design", ["sequential", "fixed"])
def test_the_breakdown_allows_for_all_arms(tapes, contamination, design):
    """At eps* the pair has (k-1)/delta, which step-down may undercut, and beyond it no more."""
    found = analyze(tapes, control="A", contamination=contamination, design=design)
    judge = Judge.of(found.problem, [Sample.of(t) for t in tapes.values()], design=design)
    bar = judge.under("oblivious").log_threshold - (math.log(2) if design == "fixed" else 0.0)  # one direction
    for i, variant in enumerate(found.control.variants, 1):
        if variant.standing != "better":
            assert tuple(variant.breakdown) == (None, None, None)
            continue
        for eps, enough in ((variant.breakdown.oblivious, True), (variant.breakdown.oblivious + 1e-3, False)):
            at = replace(judge, trust=Trust(eps, Adversary.OBLIVIOUS))
            assert (at.better(i, 0).log_value >= bar) == enough


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"fdr": True, "design": "fixed"}, "design='sequential'"),
        ({"fdr": True, "dependent_arms": True}, "dependent arms"),
        ({"fdr": True, "contamination": Contamination(0.05, "prescient")}, "see readings not yet taken"),
        ({"control": "Z"}, "control must name an arm, but got 'Z'; the arms are A, B"),
        ({"control": None, "fdr": True}, "add control="),
    ],
)
def test_what_has_no_answer_is_refused(tapes, more, words):
    with pytest.raises(TruearmError, match=words):
        analyze(tapes, **{"control": "A", **more})
    with pytest.raises(TruearmError, match="only arm"):
        analyze({"A": tapes["A"]}, control="A")


def forged(certificate, **changes):
    return replace(certificate, control=replace(certificate.control, **changes))


def test_a_false_claim_is_found_out(tapes):
    for fdr in (False, True):
        found = analyze(tapes, control="A", fdr=fdr)
        again = Analysis.from_dict(json.loads(json.dumps(found.to_dict())))
        assert again == found
        assert again.certificate.verify(tapes)
    certificate = analyze(tapes, control="A").certificate
    d, c = certificate.control.better
    b = replace(d, leader="B")
    early = replace(d, counts=tuple(len(tape) - 1 for tape in tapes.values()))
    for wrong in ((d, c, b), (b,), (d, d), (c, d), (d,), (replace(d, leader="A"),), (early, c)):
        with pytest.raises(VerificationError):
            forged(certificate, better=wrong).verify(tapes)
    with pytest.raises(VerificationError, match="not_better"):
        forged(certificate, not_better=(replace(certificate.control.not_better[0], arm="B"),)).verify(tapes)
    with pytest.raises(VerificationError, match="method"):
        forged(certificate, method="fdr").verify(tapes)


def test_what_is_claimed_at_the_declared_contamination_is_shown_to_stand_there():
    """The step-down rule needs less evidence of later claims than a breakdown point does."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        found = analyze(
            {arm: rng.normal(mean, 3, 300) for arm, mean in (("A", 10), ("B", 13), ("C", 11.3))}, control="A"
        )
        points = {variant.arm: variant.breakdown.oblivious for variant in found.control.variants}
        if points["C"] == 0.05:
            break
    assert found.control.named("better") == ("B", "C")
    assert found.control.variants[1].breakdown.prescient < 0.05
    shown = {row[0]: row[3] for row in control_rows(found)}
    assert (shown["B"], shown["C"]) == (f"{int(points['B'] * 100)}%", "5%")
    assert verify(found)
