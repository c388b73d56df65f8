"""A result follows from its readings, or the part that does not is named: attacks, and all small forgeries."""

import copy
import json
import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import forging
from reference import count_tapes
from truearm.analysis import analyze
from truearm.data.columns import Columns
from truearm.data.tables import load
from truearm.errors import InvalidArgument, TruearmError, VerificationError
from truearm.policies.lucb import Lucb
from truearm.problem import Problem
from truearm.report.export import document
from truearm.study import Study
from truearm.verification import verify


@pytest.mark.parametrize("name", forging.NAMES)
def test_a_genuine_result_is_verified_plainly(name):
    log = forging.STUDIES[name]() if name in forging.OVERLAPPING else None
    assert str(verify(forging.genuine(name), log)) == "verified"


def studied(name):
    return forging.STUDIES[name]().result


CERTIFIED, LUCB, EXHAUSTED, DEPENDENT = (studied(n) for n in ("certified", "lucb", "exhausted", "dependent"))


def with_certificate(result, **changes):
    return replace(result, certificate=replace(result.certificate, **changes))


def with_bound(less):
    """Return a result by bounds with the upper bound of its first claim changed."""
    first, *others = LUCB.certificate.claims
    upper, lower = first.bounds
    return with_certificate(LUCB, claims=(replace(first, bounds=(upper - less, lower)), *others))


def crowned():
    """Return a result that names the worst arm, with claims against the others that look like the real ones."""
    claims = tuple(
        replace(claim, arm="A" if claim.arm == "B" else claim.arm, leader="B")
        for claim in CERTIFIED.certificate.claims
    )
    forged = replace(CERTIFIED, best="B", leader="B", candidates=("B",))
    return with_certificate(forged, best="B", claims=claims)


ENTRIES = EXHAUSTED.certificate.entries
ATTACKS = {  # one field at a time is changed by `forging.forgeries`
    "a lower bound": with_bound(9.0),
    "no rule, with a tolerance": with_certificate(
        CERTIFIED, rule=None, problem=replace(CERTIFIED.problem, tolerance=99.0), claims=(), best="B"
    ),
    "negative counts": with_certificate(
        CERTIFIED, claims=tuple(replace(c, counts=(-1, *c.counts[1:])) for c in CERTIFIED.certificate.claims)
    ),
    "an arm that never led": with_certificate(EXHAUSTED, entries=(*ENTRIES, replace(ENTRIES[0], arm="C"))),
    "pooled on dependent arms": with_certificate(DEPENDENT, rule="pooled"),
    "another best with claims": crowned(),
    "a candidate less": replace(EXHAUSTED, candidates=EXHAUSTED.candidates[:1]),
    "more quality": replace(CERTIFIED, quality=tuple(p._replace(x=p.x + 1) for p in CERTIFIED.quality)),
    "another policy": with_certificate(CERTIFIED, origin=LUCB.certificate.origin),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_named_attacks_fail(attack):
    forged = ATTACKS[attack]
    for given in (forged, json.loads(json.dumps(forged.to_dict(readings=True)))):
        with pytest.raises(VerificationError):
            verify(given)
    if forged.certificate not in (CERTIFIED.certificate, EXHAUSTED.certificate):
        with pytest.raises(VerificationError):
            forged.certificate.verify(forged.readings)


def test_the_message_names_the_part_that_fails():
    with pytest.raises(VerificationError, match=r"^best is 'B', but the readings give 'A'$"):
        verify(replace(CERTIFIED, best="B"))
    with pytest.raises(VerificationError, match=r"^certificate\.claims\[0\]\.counts\[0\] is -1, but the readings"):
        ATTACKS["negative counts"].certificate.verify(CERTIFIED.readings)
    with pytest.raises(VerificationError, match=r"candidates\[1\] is not there, but the readings give 'B'"):
        verify(ATTACKS["a candidate less"])


# An input of the decision may be another if the same result follows from it: the statements hold for both.
# Such are a budget that was not spent, an order inside whole batches, the first pulls of a study that was stopped
# before, what would have been shown but for a doubt, an assumption that asks for the same pulls.
INPUTS = ("origin.max_pulls", "origin.seed", "origin.options.", "problem.regularity.")
HARMLESS = tuple(f"certificate.{name}" for name in INPUTS)


def passed(names, each, seed):
    """Return how many forgeries were tried, and which were verified plainly although they change a statement."""
    rng, tried, wrong = random.Random(seed), 0, []
    for name in names:
        data, log = forging.genuine(name), forging.STUDIES[name]() if name in forging.OVERLAPPING else None
        for path, other, forged in rng.sample(list(forging.forgeries(data)), each):
            tried += 1
            try:
                plainly = bool(verify(forged, log))
            except TruearmError:  # any other error is a failure
                plainly = False
            where = ".".join(map(str, path))
            paired = forged["certificate"]["problem"]["rounds"] if plainly else False
            same = where == "certificate.problem.dependent_arms" and paired  # arms of a round may always depend
            if plainly and not same and not where.startswith(HARMLESS):
                wrong.append((name, where, other))
    return tried, wrong


QUICK = (
    *("within a ratio", "too many missing", "drifting", "pending", "uniform", "handicap", "clairvoyant"),
    *("certified", "late and stopped", "analyzed", "analyzed, fixed", "analyzed, drifting", "rounds", "share"),
    *("against a control", "analyzed, control and tiers"),
)


FULL = pytest.param(forging.NAMES, 90, 21, marks=pytest.mark.slow)


@pytest.mark.parametrize(("names", "each", "seed"), [(QUICK, 12, 20), FULL], ids=["quick", "full"])
def test_no_small_forgery_is_verified(names, each, seed):
    """If one in 60 of all kinds of forgeries here passed, the quick one would show it with a chance of 96 %."""
    assert passed(names, each, seed) == (each * len(names), [])


def test_a_document_of_the_command_line_is_verified():
    found = document(CERTIFIED, CERTIFIED.readings, machine={"cpu": "x"}, results=[])
    verified = verify(json.loads(json.dumps(found)))
    assert verified
    assert verified.beside == ("metric", "unit", "machine", "results")
    found["ratios"] = [{"arm": "B", "reference": "A", "observed": 0.5, "low": 0.4, "high": 0.6}]
    with pytest.raises(VerificationError, match="ratios"):
        verify(found)


def test_rounding_changes_no_meaning_and_more_does():
    data = forging.genuine("certified")
    for factor, fails in ((1 + 1e-7, False), (1 + 1e-5, True)):
        rounded = copy.deepcopy(data)
        rounded["arms"][0]["low"] *= factor
        if fails:
            with pytest.raises(VerificationError, match=r"arms\[0\]\.low"):
                verify(rounded)
        else:
            assert verify(rounded)


def test_other_words_are_on_trust():
    data = forging.genuine("certified")
    data["assumptions"][0] = "Nothing is assumed."
    assert verify(data).trust == ("the wording of assumptions[0], which differs in this version",)


def test_an_arm_may_be_called_like_words_and_is_recomputed_all_the_same():
    data = forging.genuine("an arm called notes")
    data["pulls"]["arms"]["notes"] += 1
    with pytest.raises(VerificationError, match=r"^pulls\.arms\.notes is \d+, but the readings give \d+$"):
        verify(data)


def test_the_log_replaces_what_readings_do_not_say():
    data = forging.genuine("late")
    assert data["certificate"]["origin"]["overlapping"]
    assert "events" not in data
    with pytest.raises(InvalidArgument, match="give its log"):
        verify(data)
    study = forging.STUDIES["late"]()
    assert verify(data, study)
    data["best"] = "B"
    with pytest.raises(VerificationError):
        verify(data, study)


def test_readings_must_be_at_hand_and_the_right_ones():
    found = analyze(forging.frame())
    assert verify(found)
    for wrong, says in (
        ({"policy": 5}, "policy must be a policy"),
        ({"readings": {"A": 5}}, "'A'] must be a list"),
    ):
        with pytest.raises(InvalidArgument, match=says):
            verify(analyze({"A": [1.0], "B": [2.0]}), **wrong)
    with pytest.raises(InvalidArgument, match="does not contain its readings"):
        verify(replace(found, readings=None))
    with pytest.raises(VerificationError, match="digest differs"):
        verify(found, forging.frame(seed=6))


@pytest.mark.parametrize("data", [{}, [], 5, {"certificate": 5}, {"certificate": {}}, None])
def test_what_is_no_result_is_refused(data):
    with pytest.raises(InvalidArgument):
        verify(data)


@pytest.mark.parametrize("options", [{}, {"design": "fixed"}, {"pairs": True}])
def test_rounds_of_arms_that_were_not_in_all_of_them_are_verified_by_what_was_analyzed(options):
    rng = np.random.default_rng(1)
    tapes = {"A": rng.normal(2, 1, 60), "B": rng.normal(0, 1, 50)}
    found = analyze(tapes, round="rows", **options)
    plain = json.loads(json.dumps(found.to_dict()))
    for check in (partial(verify, found), partial(verify, plain), found.certificate.verify):
        assert check(tapes)
        assert check({"A": tapes["A"].tolist(), "B": [*tapes["B"].tolist(), *[None] * 10]})
        for other in ({**tapes, "B": tapes["B"][1:]}, {**tapes, "A": np.append(tapes["A"], np.nan)}):
            with pytest.raises(VerificationError, match="such as round"):
                check(other)
    assert verify(found)


def test_a_number_of_readings_is_not_rounded():
    """Of three million readings a millionth are three."""
    few = count_tapes({"A": np.arange(6.0), "B": np.arange(-3.0, 3.0)})
    columns = {arm: replace(column, counts=column.counts << 19) for arm, column in few.columns.items()}
    many = replace(few, columns=columns)
    data = json.loads(json.dumps(analyze(many).to_dict()))
    assert verify(data, many)
    data["pulls"]["arms"]["A"] += 1
    with pytest.raises(VerificationError, match=r"^pulls\.arms\.A is 3145729, but the readings give 3145728$"):
        verify(data, many)


def test_what_a_document_carries_is_what_it_is_verified_by():
    """The readings in a document must be those of the log or table that verifies it."""
    study, data = forging.STUDIES["late"](), forging.genuine("late")
    assert verify(data, study)
    forged = copy.deepcopy(data)
    forged["readings"]["A"][0] += 100
    for given in (study, study.readings):
        with pytest.raises(VerificationError, match="readings in the document are not those"):
            verify(forged, given)
    stopped = forging.STUDIES["late and stopped"]()
    assert verify(forging.genuine("late and stopped"), stopped)
    assert verify(
        forging.genuine("late and stopped"), Study.replay(stopped.definition, list(stopped.events())[:-1])
    )


def rows(n=60, seed=2):
    """Return a table of arms and users, each with a few readings that are alike."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n), 4)
    arm = np.where(user % 2, "A", "B")
    return {
        "arm": arm,
        "user": user,
        "ms": rng.normal(0, 1, n)[user] + rng.normal(0, 0.1, user.size) + (arm == "A"),
    }


def test_what_columns_say_of_rows_needs_the_table():
    roles = {"arm": "arm", "value": "ms"}
    by_unit = load(rows(), Columns(**roles, unit="user"))
    found = analyze(rows(), **roles, unit="user")
    assert "one reading per 'user'" in str(verify(found, by_unit.tapes))
    assert verify(found, by_unit)
    clustered = load(rows(), Columns(**roles))
    doubted = analyze(rows(), **roles)
    assert [doubt.kind for doubt in doubted.doubts] == ["clusters"]
    assert "a doubt about the rows, of the column 'user'" in str(verify(doubted, clustered.tapes))
    assert verify(doubted, clustered)
    denied = analyze(clustered.tapes)
    with pytest.raises(VerificationError, match="status is 'certified', but the readings give 'doubtful'"):
        verify(denied, clustered)
    assert not doubted.certificate.verify(clustered.tapes)


def test_fixed_designs_of_dependent_arms_are_refused_as_they_would_be_when_asked_for():
    found = analyze(forging.frame(), design="fixed")
    problem = replace(found.problem, dependent_arms=True)
    forged = replace(with_certificate(found, problem=problem), problem=problem)
    with pytest.raises(VerificationError, match="needs independent arms"):
        verify(forged, forging.frame())


def test_a_study_with_a_user_defined_policy_is_verified_with_it():
    class Mine(Lucb):
        pass

    problem = Problem(arms=("A", "B"))
    study = forging.told(problem, (2, 0), policy=Mine())
    assert study.result.certificate.origin.by is None
    with pytest.raises(InvalidArgument, match="give policy="):
        verify(study.result)
    assert verify(study.result, policy=Mine())
