"""Certificates of real studies: changed readings, claims, dates and entries fail; a digest knows numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forging
from truearm.analysis import analyze
from truearm.claims.certificate import Claim, Entered, Status, digest
from truearm.errors import InvalidArgument, VerificationError
from truearm.problem import Problem
from truearm.verification import verify

STUDY = forging.STUDIES["certified"]().result
CERTIFICATE, TAPES = STUDY.certificate, {arm: np.array(tape) for arm, tape in STUDY.readings.items()}


@given(st.sampled_from("ABC"), st.data())
def test_one_changed_reading_fails(arm, data):
    at = data.draw(st.integers(0, TAPES[arm].size - 1))
    changed = TAPES[arm].copy()
    changed[at] = data.draw(st.floats().filter(lambda x: x != changed[at]))
    with pytest.raises(VerificationError, match="digest differs"):
        CERTIFICATE.verify({**TAPES, arm: changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"A": TAPES["A"][:-1]},
        {"B": TAPES["B"][1:]},
        {"C": TAPES["C"][::-1]},
        {"A": np.append(TAPES["A"], 0.0)},
        {"B": [*TAPES["B"][:-1], None]},
        {"C": []},
        {"A": TAPES["A"][:-1], "B": np.append(TAPES["A"][-1], TAPES["B"])},
    ],
    ids=["last removed", "first removed", "reordered", "one more", "one untold", "none", "moved"],
)
def test_removed_reordered_and_untold_readings_fail(changed):
    with pytest.raises(VerificationError, match="digest differs"):
        CERTIFICATE.verify({**TAPES, **changed})


@given(st.lists(st.floats(), max_size=20))
def test_a_digest_knows_numbers_not_bit_patterns(tape):
    problem = Problem(arms=("A",))
    other = [-math.nan if math.isnan(x) else (0.0 if x == 0 else x) for x in tape]
    assert digest(problem, {"A": tape}) == digest(problem, {"A": np.array(other)})
    forms = ([1, 2, None], [1.0, np.float64(2), None], (True, 2, None))
    assert len({digest(problem, {"A": form}) for form in forms}) == 1
    assert len({digest(problem, {"A": [x]}) for x in (math.nan, 0.0, None)}) == 3


@pytest.mark.parametrize("origin", [None, replace(CERTIFICATE.origin, by=None)])
def test_a_decision_of_nobody_is_not_verified(origin):
    with pytest.raises(InvalidArgument, match="give policy="):
        replace(CERTIFICATE, origin=origin).verify(TAPES)
    with pytest.raises(InvalidArgument, match="give its log"):
        replace(CERTIFICATE, origin=replace(CERTIFICATE.origin, overlapping=True)).verify(TAPES)


def test_dates_chosen_after_the_fact_certify_nothing():
    """Of two equal arms some pair of dates has enough evidence often; the study never stood there."""
    for seed in range(60, 260):  # the first sixty have none
        study = forging.told(Problem(arms=("A", "B"), contamination=None), (0, 0), seed=seed, max_pulls=160)
        result = study.result
        if result.best is not None:
            continue
        certificate = replace(result.certificate, rule="pooled", best="B", entries=(Entered("B", 0, 80),))
        for counts in ((n, m) for n in range(8, 81, 4) for m in range(8, 81, 4)):
            claim = Claim("A", "B", counts, 1, 0.0)
            judge = certificate.judge(claim, result.readings)
            found = judge.against(0).log_value
            if found < judge.log_threshold:
                continue
            certificate = replace(certificate, claims=(replace(claim, log_evidence=found),))
            forged = replace(result, status=Status.SEPARATED, best="B", candidates=("B",), certificate=certificate)
            with pytest.raises(VerificationError):
                verify(forged)
            return
    pytest.fail("no dates were found")


def undecided(seed, k=4):
    rng = np.random.default_rng(seed)
    gaps = rng.choice([0.0, 0.4, 0.6], k)
    return {arm: rng.normal(-gap, 1, 120) for arm, gap in zip("ABCD", gaps, strict=True)}


def test_without_a_best_arm_an_arm_is_excluded_only_where_that_holds_for_all_arms_at_once():
    weak = 0
    for seed in range(60):
        found = analyze(undecided(seed), pairs=True)
        if found.best is not None or found.status is Status.DOUBTFUL:
            continue
        strictly = {contest.worse for contest in found.contests if contest.excluded}
        assert set(found.excluded) == strictly == set("ABCD") - set(found.candidates)
        weak += bool({claim.arm for claim in found.certificate.claims} - strictly)
    assert weak  # rejections that would not be enough for all arms


def test_a_study_without_a_best_arm_excludes_none_by_less_than_that():
    kept = 0
    for seed in range(60):
        result = forging.told(
            Problem(arms=tuple("ABC"), delta=0.1), (0.3, 0.2, -0.5), seed=seed, max_pulls=150
        ).result
        if result.best is None and result.status is not Status.DOUBTFUL:
            rejected = {claim.arm for claim in result.certificate.claims}
            kept += bool(rejected & set(result.candidates))
            assert all(arm in rejected for arm in "ABC" if arm not in result.candidates)
    assert kept
