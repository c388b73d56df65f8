import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truearm.analysis import analyze
from truearm.claims.certificate import (
    DECIDED,
    Alarm,
    Bound,
    Certificate,
    Claim,
    Entered,
    Exclusion,
    Status,
    Verdict,
    digest,
    sample_of,
)
from truearm.claims.certify import certify
from truearm.errors import InvalidArgument, VerificationError
from truearm.evidence import Levels
from truearm.problem import Contamination, Problem

RNG = np.random.default_rng(7)
TAPES = {"A": RNG.normal(2, 1, 150), "B": RNG.normal(0, 1, 120), "C": RNG.normal(-1, 1, 60)}
COUNTS = {"C": (60, 50, 40), "B": (130, 110, 50)}  # the dates of the claims: earlier than the end


RULES = {
    "pooled": {},
    "causal": {},
    "clairvoyant": {"contamination": Contamination(0.05, "prescient")},
    "dependent": {"dependent_arms": True},
}


def certificate_of(tapes=TAPES, rule="pooled", *, sign=1, **promises):
    problem = Problem(arms=("A", "B", "C"), goal="max" if sign > 0 else "min", **{**RULES[rule], **promises})
    claims = tuple(Claim(arm, "A", counts, int(rule == "pooled"), 0.0) for arm, counts in COUNTS.items())
    draft = Certificate(
        problem=problem,
        rule=rule,
        best="A",
        entries=(Entered("A", 5, 150),) if rule == "pooled" else (),
        claims=claims,
        digest=digest(problem, tapes),
    )
    dated = tuple(claim._replace(log_evidence=draft.evidence(claim, tapes)(None)) for claim in claims)
    return replace(draft, claims=dated)


@pytest.mark.parametrize("rule", RULES)
def test_claims_that_name_no_policy_are_recomputed_and_the_rest_is_on_trust(rule):
    verified = certificate_of(rule=rule).verify(TAPES)
    assert not verified
    assert str(verified) == "verified with trust in: who decided: the certificate names no policy of ours"


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("other", RULES)
def test_the_rule_follows_from_the_problem(rule, other):
    """Whether it is known who led is not the problem's to say: there the evidence decides."""
    if rule == other:
        return
    said = "evidence" if {rule, other} == {"pooled", "causal"} else r"certificate\.rule is"
    with pytest.raises(VerificationError, match=said):
        replace(certificate_of(rule=rule), rule=other).verify(TAPES)


def test_the_same_decision_holds_for_negated_readings_and_goal_min():
    negated = {arm: -tape for arm, tape in TAPES.items()}
    mirrored = certificate_of(negated, sign=-1)
    mirrored.verify(negated)
    assert [c.log_evidence for c in mirrored.claims] == [c.log_evidence for c in certificate_of().claims]


@given(st.sampled_from("ABC"), st.data())
def test_one_changed_reading_fails(arm, data):
    at = data.draw(st.integers(0, TAPES[arm].size - 1))
    changed = TAPES[arm].copy()
    changed[at] = data.draw(st.floats().filter(lambda x: x != changed[at]))
    with pytest.raises(VerificationError, match="digest differs"):
        certificate_of().verify({**TAPES, arm: changed})


@pytest.mark.parametrize(
    "change",
    [
        lambda tape: tape[:-1],
        lambda tape: tape[1:],
        lambda tape: tape[::-1],
        lambda tape: np.append(tape, 0.0),
        lambda tape: [*tape[:-1], None],
        lambda _tape: [],
    ],
    ids=["last removed", "first removed", "reordered", "one more", "one untold", "none"],
)
@pytest.mark.parametrize("arm", ["A", "B", "C"])
def test_removed_reordered_and_untold_readings_fail(arm, change):
    with pytest.raises(VerificationError, match="digest differs"):
        certificate_of().verify({**TAPES, arm: change(TAPES[arm])})


def test_readings_moved_from_one_arm_to_the_next_fail():
    moved = {**TAPES, "A": TAPES["A"][:-1], "B": np.append(TAPES["A"][-1], TAPES["B"])}
    with pytest.raises(VerificationError):
        certificate_of().verify(moved)


def test_lists_arrays_and_integers_of_the_same_value_have_one_digest():
    problem = Problem(arms=("A",))
    forms = ([1, 2, None], [1.0, np.float64(2), None], (True, 2, None))
    assert len({digest(problem, {"A": form}) for form in forms}) == 1


@given(st.lists(st.floats(), max_size=20))
def test_a_digest_knows_numbers_not_bit_patterns(tape):
    problem = Problem(arms=("A",))
    other = [-math.nan if math.isnan(x) else (0.0 if x == 0 else x) for x in tape]
    assert digest(problem, {"A": tape}) == digest(problem, {"A": np.array(other)})


def test_nan_zero_and_untold_are_three_different_things():
    problem = Problem(arms=("A",))
    assert len({digest(problem, {"A": [x]}) for x in (math.nan, 0.0, None)}) == 3


def test_evidence_that_falls_short_fails():
    weak = {"A": TAPES["A"][:6], "B": TAPES["B"][:6], "C": TAPES["C"][:6]}
    claimed = replace(
        certificate_of(), entries=(Entered("A", 5, 6),), digest=digest(certificate_of().problem, weak)
    )
    with pytest.raises(VerificationError, match=r"counts has 60 of 'A', not 0 to 6"):
        claimed.verify(weak)
    early = replace(
        claimed,
        claims=tuple(c._replace(counts=(6, 6, 6)) for c in claimed.claims),
    )
    with pytest.raises(VerificationError, match=r"evidence against 'C' is .*, short of the 2\.99"):
        early.verify(weak)


def test_promises_made_harsher_afterwards_fail():
    harsher = Problem(arms=("A", "B", "C"), contamination=Contamination(0.45, "malicious"))
    forged = replace(certificate_of(contamination=0.05), problem=harsher)
    with pytest.raises(VerificationError, match=r"certificate\.rule is 'pooled', but the problem asks for"):
        forged.verify(TAPES)
    harsher = Problem(arms=("A", "B", "C"), contamination=Contamination(0.45, "malicious", causal=True))
    with pytest.raises(VerificationError, match="short of"):
        replace(forged, problem=harsher).verify(TAPES)


def test_a_claim_without_a_rule_has_no_threshold_and_fails():
    forged = replace(certificate_of(), rule=None)
    assert forged.log_threshold is None
    with pytest.raises(VerificationError, match="rest on no rule"):
        forged.verify(TAPES)


def test_a_claim_rests_on_its_own_date():
    certificate = certificate_of()
    later = {arm: np.append(tape, [50.0] * 40) for arm, tape in TAPES.items()}
    for claim in certificate.claims:
        assert certificate.evidence(claim, later)(None) == claim.log_evidence


def test_evidence_of_a_claim_falls_with_contamination():
    certificate = certificate_of()
    at = certificate.evidence(certificate.claims[0], TAPES)
    values = [at(Levels.of(0.5, Contamination(eps))) for eps in (0.0, 0.05, 0.1, 0.2)]
    assert values == sorted(values, reverse=True)
    assert at(None) == values[1]


def test_a_tolerant_claim_is_checked_against_the_tolerance():
    problem = Problem(arms=("A", "B", "C"), tolerance=4.0)
    claims = tuple(Claim(arm, "B", (150, 120, 60), 1, 0.0, tolerant=True) for arm in "AC")
    entries = (Entered("B", 0, 120),)
    tolerant = Certificate(
        problem=problem, rule="pooled", best="B", entries=entries, claims=claims, digest=digest(problem, TAPES)
    )
    dated = tuple(claim._replace(log_evidence=tolerant.evidence(claim, TAPES)(None)) for claim in claims)
    tolerant = replace(tolerant, claims=dated)
    tolerant.verify(TAPES)
    with pytest.raises(VerificationError, match="tolerant without a tolerance"):
        replace(tolerant, problem=Problem(arms=("A", "B", "C"))).verify(TAPES)
    with pytest.raises(VerificationError, match="short of"):
        replace(tolerant, problem=Problem(arms=("A", "B", "C"), tolerance=1.0)).verify(TAPES)


def excluding(**changes):
    problem = Problem(arms=("A", "B", "C"))
    lower = Bound("A", 60, 1.0, rank=20)
    exclusions = [Exclusion(arm, Bound(arm, 60, 0.5, rank=40), lower) for arm in "BC"]
    exclusions[0] = exclusions[0]._replace(**changes)
    return Certificate(
        problem=problem, rule=None, best="A", exclusions=tuple(exclusions), digest=digest(problem, TAPES)
    )


def test_bounds_of_nobody_knows_whom_are_on_trust():
    assert excluding().verify(TAPES).trust[-1] == "the bounds that exclude arms"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"upper": Bound("C", 60, 0.5, rank=40)}, "the bound that excludes 'B' is one of 'C'"),
        ({"lower": Bound("B", 60, 1.0, rank=20)}, "'B' excludes no other arm"),
        ({"upper": Bound("B", 60, 1.5, rank=40)}, "do not exclude 'B'"),
        ({"arm": "C"}, "says nothing against"),
    ],
)
def test_bounds_that_do_not_exclude_fail(changes, complaint):
    with pytest.raises(VerificationError, match=complaint):
        excluding(**changes).verify(TAPES)


def test_a_best_arm_needs_a_word_against_every_other():
    certificate = certificate_of()
    with pytest.raises(VerificationError, match="says nothing against"):
        replace(certificate, claims=certificate.claims[:1]).verify(TAPES)


@pytest.mark.parametrize(
    "entries",
    [
        (Entered("A", 1000, 2000),),
        (Entered("A", 20, 10),),
        (Entered("A", 5, 40), Entered("B", 5, 40), Entered("A", 30, 60)),
    ],
)
def test_an_arm_cannot_be_followed_before_its_readings_nor_twice_over_them(entries):
    certificate = certificate_of()
    claims = tuple(claim._replace(entered=len(entries)) for claim in certificate.claims)
    with pytest.raises(VerificationError, match="cannot be followed from"):
        replace(certificate, entries=entries, claims=claims).verify(TAPES)


def test_evidence_of_a_claim_counts_an_entry_up_to_the_date_of_the_claim():
    """Of one that went on to pull 150 the first 60 or 130 readings; of one that had ended, those until then."""
    certificate = replace(certificate_of(), entries=(Entered("B", 5, 30), Entered("A", 5, 150)))
    claim = certificate.claims[1]._replace(entered=2)
    judge = certificate.judge(claim, TAPES)
    assert [(e.arm, e.before.n, e.until.n) for e in judge.entries] == [(1, 5, 30), (0, 5, claim.counts[0])]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"entries": (Entered("A", 1000, 2000),)}, "cannot be followed from"),
        ({"entries": (Entered("A", -1, 60),)}, "cannot be followed from"),
        ({"entries": (Entered("A", 5, 60), Entered("A", 5, 60))}, "cannot be followed from"),
        ({"entries": (Entered("D", 5, 60),)}, "names no arm"),
        ({"claims": tuple(Claim(a, a, c, 1, 9.0) for a, c in COUNTS.items())}, "names no two arms"),
        ({"claims": tuple(Claim(a, "A", (130, 110), 1, 9.0) for a in "CB")}, "not one count per arm"),
        (
            {"claims": tuple(Claim(a, "A", (-1, 110, 40), 1, 9.0) for a in "CB")},
            "counts has -1 of 'A', not 0 to 150",
        ),
        ({"claims": tuple(Claim(a, "A", c, 2, 9.0) for a, c in COUNTS.items())}, "entered is 2 of 1"),
        ({"claims": certificate_of().claims[::-1]}, "counts has 60 of 'A', not 130 to 150"),
        (
            {"claims": tuple(c._replace(log_evidence=99.0) for c in certificate_of().claims)},
            "log_evidence is 99.0",
        ),
    ],
)
def test_dates_that_cannot_have_been_fail(change, complaint):
    with pytest.raises(VerificationError, match=complaint):
        replace(certificate_of(), **change).verify(TAPES)


@settings(max_examples=40)
@given(
    st.lists(st.one_of(st.none(), st.floats()), max_size=30),
    st.integers(0, 30),
    st.sampled_from(["max", "min"]),
)
def test_a_sample_of_a_tape_accounts_for_every_pull(tape, n, goal):
    problem, head = Problem(arms=("A",), goal=goal), tape[:n]
    sample, sign = sample_of(tape, len(head), problem), problem.sign
    assert sample.n == len(head) == sample.size + sample.missing + sample.pending
    assert sample.unknown - sample.pending == sample.missing
    assert sample.unknown + sample.idle == sample.missing + sample.pending
    assert sample.censored == head.count(problem.censored)
    assert sample.pending == head.count(None)
    assert sample.missing == sum(x is not None and math.isnan(x) for x in head)
    assert sample.values.tolist() == sorted(sign * x for x in head if x is not None and not math.isnan(x))


HOLED = {"A": np.where(np.arange(150) % 5 == 0, np.nan, TAPES["A"]), "B": TAPES["B"], "C": TAPES["C"]}


def test_missing_readings_are_recomputed_at_their_worst():
    """Evidence with the holes is that of readings below all others."""
    found = [claim.log_evidence for claim in certificate_of(HOLED).claims]
    filled = {**HOLED, "A": np.where(np.isnan(HOLED["A"]), -99.0, HOLED["A"])}
    again = [claim.log_evidence for claim in certificate_of(filled).claims]
    assert found == again


def test_a_doubtful_verdict_names_no_arm():
    verdict = Verdict.doubtful((Alarm("missing", "A", 30, 100),), ("A", "B"))
    assert (verdict.status, verdict.best, verdict.candidates) == (Status.DOUBTFUL, None, ("A", "B"))
    assert verdict.status not in DECIDED
    assert not verdict.claims


def test_ties_are_listed_in_the_order_of_the_arms():
    tapes = {"A": np.full(60, 1.0), "B": np.full(60, 1.0), "C": np.full(60, 0.0), "D": np.full(60, 1.0)}
    problem = Problem(arms=tuple("ABCD"))
    claims = tuple(Claim(arm, "A", (60,) * 4, 0, 9.0) for arm in "DCB")
    verdict = Verdict(status=Status.CERTIFIED, best="A", candidates=("A",), rule="causal", claims=claims)
    result = certify(problem, tapes, verdict)
    assert (result.ties, result.candidates) == (("B", "D"), ("A", "B", "D"))
    assert {lead.than: lead.at_least is not None for lead in result.better_by} == {
        "B": False,
        "C": True,
        "D": False,
    }


@pytest.mark.parametrize("readings", [[1.0, 2.0], 3, "data.csv", None])
def test_readings_to_verify_by_are_named_by_their_arm(readings):
    found = analyze({"A": range(100, 300), "B": range(200)})
    with pytest.raises(InvalidArgument, match=r"readings must be a dict of readings by arm, .*, but got"):
        found.certificate.verify(readings)
