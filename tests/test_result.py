import json
import math
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truearm.analysis import analyze
from truearm.claims.certificate import Status, Verdict
from truearm.claims.certify import certify
from truearm.claims.result import Analysis, Lead, Result
from truearm.errors import InvalidArgument
from truearm.evidence import breakdown
from truearm.evidence.intervals import quality_curve
from truearm.policies.paper import PartialIdentification
from truearm.problem import Contamination, Problem, Regularity
from truearm.study import Study

RNG = np.random.default_rng(11)
TAPES = {"A": RNG.normal(2, 1, 300), "B": RNG.normal(1, 1, 300)}


def decided(tapes=TAPES, best="A", *, status=Status.CERTIFIED, design="sequential", **promises):
    problem = Problem(arms=tuple(tapes), **promises)
    return certify(problem, tapes, Verdict(status=status, best=best, candidates=(best,), design=design))


def undecided(tapes=TAPES, status=Status.EXHAUSTED, **promises):
    problem = Problem(arms=tuple(tapes), **promises)
    return certify(problem, tapes, Verdict(status=status, candidates=problem.arms))


def through_json(result):
    return Result.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))


def same(one, other):
    return repr(one) == repr(other)  # NaN is not equal to itself


@pytest.mark.parametrize(
    "promises",
    [
        {},
        {"contamination": None, "status": Status.SEPARATED},
        {"contamination": Contamination(0.02, "malicious", causal=True), "goal": "min", "best": "B"},
        {"tolerance": "5%", "quantile": 0.9, "dependent_arms": True},
        {"regularity": Regularity(B=4.7, m2=0.7, reach=0.25), "design": "fixed"},
    ],
)
def test_a_result_goes_to_json_and_comes_back(promises):
    result = decided(**promises)
    assert same(through_json(result), result)
    assert str(through_json(result)) == str(result)


tape = st.lists(st.one_of(st.none(), st.floats(), st.integers(-3, 3).map(float)), max_size=25)


@given(st.lists(tape, min_size=1, max_size=3), st.sampled_from(list(Status)), st.sampled_from([None, 0.0, 0.1]))
def test_any_readings_go_to_strict_json_and_keep_their_dictionary(tapes, status, eps):
    result = undecided(dict(zip("ABC", tapes, strict=False)), status, contamination=eps)
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert Result.from_dict(data).to_dict() == data


def test_what_was_not_measured_is_unknown():
    result = undecided({"A": TAPES["A"], "B": []})
    arm = result.arms[1]
    assert math.isnan(arm.observed)
    assert (arm.low, arm.high, arm.n) == (-math.inf, math.inf, 0)
    assert result.leader == "A"
    nothing = undecided({"A": [], "B": [None]})
    assert (nothing.leader, nothing.tolerance, nothing.quality) == (None, math.inf, ())
    assert tuple(nothing.breakdown) == tuple(nothing.breakdown_estimate) == (None, None, None)
    alone = decided({"A": TAPES["A"]})
    assert (alone.tolerance, alone.breakdown_estimate.oblivious) == (0, 1.0)


def test_breakdown_of_two_arms_is_that_of_the_pair_and_falls_with_the_power_of_the_adversary():
    points = decided().breakdown
    assert tuple(points) == pytest.approx(tuple(breakdown(TAPES["A"], TAPES["B"])), abs=1e-6)
    assert decided().breakdown_estimate.oblivious > points.oblivious > points.prescient > points.malicious > 0
    assert points.malicious == pytest.approx(points.prescient / 2, abs=1e-6)  # evidence T6, a median
    causal = decided(contamination=Contamination(0.02, "malicious", causal=True))
    assert causal.breakdown.prescient == pytest.approx(causal.breakdown.oblivious, abs=1e-6)


def test_the_quality_curve_pays_for_the_selection_and_falls_in_the_users_direction():
    curve = quality_curve(TAPES["A"], delta=0.05, contamination=0.05, arms=2)
    up, down = decided().quality, decided(goal="min", best="B").quality
    assert all(point.x == curve.reached(point.share) for point in up)
    assert quality_curve(TAPES["A"]).reached(0.5) >= curve.reached(0.5)
    assert [p.share for p in up] == sorted(p.share for p in up)
    assert [p.x for p in up] == sorted((p.x for p in up), reverse=True)
    assert [p.x for p in down] == sorted(p.x for p in down)
    assert all(math.isfinite(point.x) for point in up + down)


# How much better, ties, doubts


def leads(tapes, **promises):
    return decided(tapes, next(iter(tapes)), **promises).better_by


@pytest.mark.parametrize(
    ("goal", "good", "poor", "scale"),
    [
        ("max", 3.0, 1.0, "ratio"),
        ("min", 1.0, 3.0, "ratio"),
        ("max", 2.0, -1.0, "difference"),
        ("min", -2.0, 1.0, "difference"),
    ],
)
def test_how_much_better_is_a_factor_where_readings_are_positive(goal, good, poor, scale):
    [found] = leads({"A": [good] * 200, "B": [poor] * 200}, goal=goal)
    assert (found.than, found.scale, found.observed) == ("B", scale, 3.0)
    assert 3 * (1 - 1e-3) <= found.at_least <= 3


@pytest.mark.parametrize("goal", ["max", "min"])
def test_an_arm_that_times_out_is_infinitely_far_and_survives_json(goal):
    lost, good = (math.inf, 1.0) if goal == "min" else (-math.inf, 1.0)
    result = decided({"A": [good] * 60, "B": [lost] * 60}, goal=goal)
    assert result.better_by[0].observed == math.inf
    assert "too many readings of B are missing or timed out" in str(result)
    assert through_json(result).better_by == result.better_by
    assert str(through_json(result)) == str(result)


@pytest.mark.parametrize("pair_of", [(1.7e308, -1.7e308), (1.7e308, 5e-324), (math.inf, math.inf), (0.0, -1e308)])
def test_the_largest_readings_have_margins_without_overflow(pair_of):
    result = decided({"A": [pair_of[0]] * 60, "B": [pair_of[1]] * 60})
    assert not math.isnan(result.better_by[0].observed)
    assert str(result)


def test_a_margin_is_named_only_where_it_is_certain():
    few = leads({"A": TAPES["A"][:40], "B": TAPES["B"][:40]}, contamination=0.2)
    assert few == (Lead("B", "difference", few[0].observed, None),)  # of both signs
    [many] = leads({"A": TAPES["A"] + 9, "B": TAPES["B"] + 9})
    assert 1 < many.at_least < many.observed
    assert undecided(contamination=0.45).better_by == ()
    assert decided(status=Status.TOLERABLE, tolerance=1.0, contamination=0.45).better_by == ()


@pytest.mark.statistical
def test_margins_hold_together_with_their_own_delta():
    """200 analyses at delta = 20%, 5% of the best arm's readings far out; 3 rivals at factors 1, 1.1 and 1.5.

    A false margin in more than 63 of 200 has probability below 1e-4 if each analysis errs with probability 20%,
    and above 99% if it errs with three times that.
    """
    rng, wrong = np.random.default_rng(17), 0
    true = {"A": 1.0, "B": 1.0, "C": 1 / 1.1, "D": 1 / 1.5}
    for _ in range(200):
        tapes = {arm: scale * rng.lognormal(0, 0.3, 150) for arm, scale in true.items()}
        tapes["A"][rng.random(150) < 0.05] = 100.0
        found = decided(tapes, delta=0.2, contamination=0.05).better_by
        wrong += any(lead.at_least is not None and lead.at_least > true["A"] / true[lead.than] for lead in found)
    assert wrong <= 63


@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("names", ["ABC", "CBA", "BCA"])
def test_arms_that_tie_with_the_best_are_listed_and_stay_candidates(goal, names):
    worse = 1.0 if goal == "max" else 9.0
    study = Study(list(names), goal=goal)
    while counts := study.ask_counts():
        study.tell_arrays({arm: [worse if arm == "C" else 3.0] * n for arm, n in counts.items()})
    result = study.result
    assert result.status is Status.CERTIFIED
    assert {result.best, *result.ties} == set(result.candidates) == {"A", "B"}
    tied, behind = (next(x for x in result.better_by if (x.than == "C") == out) for out in (False, True))
    assert (tied.observed, tied.at_least) == (1.0, None)
    assert behind.observed > 1
    assert through_json(result).ties == result.ties


# An estimator of the user's own


def by_means(max_pulls=4000, **options):
    """Return the result of a study by means, where the medians have another order."""
    policy = PartialIdentification(np.mean, lambda n, delta: math.sqrt(math.log(2 / delta) / (2 * n)))
    study = Study(["A", "B"], policy=policy, max_pulls=max_pulls, **options)
    laws = {"A": cycle([0.4, 0.4, 1.0]), "B": cycle([0.5, 0.5, 0.0])}  # means 0.6 and 0.33, medians 0.4 and 0.5
    while pulls := study.ask():
        for pull in pulls:
            study.tell(pull, next(laws[pull.arm]))
    return study.result


@pytest.mark.parametrize("contamination", [None, 0.01])
def test_an_estimate_is_not_judged_by_medians(contamination):
    result = by_means(contamination=contamination)
    assert (result.status, result.best) == (Status.SEPARATED, "A")
    assert result.to_dict()["target"] == "estimate"
    assert result.better_by == ()
    assert tuple(result.breakdown) == (None, None, None)
    assert "median" not in str(result)
    assert str(result).startswith("A has the highest estimate.\n95% sure that no arm is better, assuming")
    assert any("the estimator errs" in promise for promise in result.assumptions)
    assert through_json(result).certificate.estimated


def test_estimates_that_decide_less_say_so():
    result = by_means(max_pulls=6)
    assert (result.status, result.leader) == (Status.EXHAUSTED, None)
    assert str(result) == "No winner yet: A or B may have the highest estimate.\n6 readings."
    within = "A is within 0.5 of the highest estimate, apart from what bad readings hide.\n95% sure"
    assert str(by_means(tolerance=0.5, contamination=0.01)).startswith(within)


WRONG = [
    ({"schema": 2}, "the result has schema 2, but this truearm reads 3; make it again"),
    ({"status": "sure"}, "result.status: invalid enum value 'sure'"),
    ({"pulls": {"total": 3, "arms": {"A": None}}}, "result.pulls[...]: expected `int`"),
    ({"pulls": None}, "this is not a result of truearm: TypeError"),
    ({"certified_tolerance": 10**400}, "result.tolerance"),
    ({"arms": [{}]}, "result.arms[0]: object missing required field `name`"),
    ({"arms": ["A"]}, "this is not a result of truearm: AttributeError"),
    ({"quality": [[1.0]]}, "this is not a result of truearm: ValueError"),
    ({"certificate": {"problem": {"delta": 10**400}}}, "certificate.problem.delta"),
    ({"certificate": {"problem": {"delta": 2.0}}}, "delta must be"),
    ({"certificate": {"claims": [{"leader": "A"}]}}, "certificate.claims[0]: object missing required field `arm`"),
    ({"missing": {"A": "many"}}, "missing"),
    ({"contests": [{}]}, "contests"),
    ({"excluded": {"A": 3}}, "excluded"),
]


def merge(data, change):
    """Return data with the values of a change; inside the certificate only those are replaced."""
    inner = {
        key: merge(data[key], value) if key in ("certificate", "problem") else value
        for key, value in change.items()
    }
    return {**data, **inner}


@pytest.mark.parametrize(("change", "told"), WRONG)
def test_an_invalid_document_is_refused(change, told):
    with pytest.raises(InvalidArgument) as error:
        Analysis.from_dict(merge(analyze({"A": np.arange(9.0), "B": np.arange(9.0)}).to_dict(), change))
    assert told in str(error.value)
    for junk in (None, [], {}, "x", 3):
        with pytest.raises(InvalidArgument, match="this is not a result of truearm"):
            Analysis.from_dict(junk)
