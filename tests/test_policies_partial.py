import math

import numpy as np
import pytest

from contracts.driving import drive
from statistical.promise import kept
from truearm.claims.certificate import Status
from truearm.errors import InvalidArgument, OutOfReach, VerificationError
from truearm.policies.paper import PartialIdentification
from truearm.problem import Problem
from truearm.study import Study
from truearm.verification import verify


def hoeffding(n, delta):
    return math.sqrt(math.log(2 / delta) / (2 * n))


def problem(k=2, **changes):
    return Problem(arms=tuple("ABCDE"[:k]), **{"contamination": 0.1, "delta": 0.1, **changes})


def constants(*values, length=4000):
    return {arm: np.full(length, value) for arm, value in zip("ABCDE", values, strict=False)}


def test_a_round_is_one_pull_of_every_arm_left():
    run = drive(PartialIdentification(np.mean, hoeffding), problem(3), constants(1.0, 0.0, 0.5))
    assert set(map(tuple, run.batches)) == {("A", "B", "C"), ("A", "C")}
    assert all(set(batch.values()) == {1} for batch in run.batches)


def test_an_arm_goes_when_it_is_two_radii_behind():
    run = drive(PartialIdentification(np.mean, hoeffding), problem(), constants(1.0, 0.0))
    n = run.counts["A"]

    def radius(r):
        return hoeffding(r, 6 * 0.1 / (math.pi**2 * 2 * r**2))

    assert 2 * radius(n) < 1 <= 2 * radius(n - 1)
    assert (run.verdict.status, run.verdict.best) == (Status.SEPARATED, "A")


def test_growth_makes_looks_geometric():
    run = drive(PartialIdentification(np.mean, hoeffding, growth=1.0), problem(), constants(0.2, 0.0))
    assert [batch["A"] for batch in run.batches[:5]] == [1, 1, 2, 4, 8]


def test_a_tolerance_ends_early():
    run = drive(PartialIdentification(np.mean, hoeffding), problem(tolerance=0.4), constants(0.5, 0.52))
    assert (run.verdict.status, run.verdict.best) == (Status.TOLERABLE, "B")


@pytest.mark.parametrize(("tolerance", "status"), [(0.5, None), (0.85, Status.TOLERABLE)])
def test_a_tolerance_holds_against_excluded_arms_too(tolerance, status):
    # C goes in round 1 with upper end 18.9, by A; A falls, and B, which could never have excluded C, leads
    tapes = {"A": [20.0, 0.0], "B": [18.9, 18.1], "C": [17.9], "D": [18.9, 18.1]}
    policy = PartialIdentification(np.min, lambda n, _: 1.0 if n == 1 else 0.01)
    run = drive(policy, problem(4, tolerance=tolerance), {arm: np.array(tape) for arm, tape in tapes.items()})
    assert run.counts == {"A": 2, "B": 2, "C": 1, "D": 2}
    assert (run.verdict and run.verdict.status) is status


def test_the_estimator_sees_sorted_readings_with_nan_last():
    seen = []
    policy = PartialIdentification(lambda x: seen.append(x.copy()) or 0.0, lambda *_: math.inf)
    drive(policy, problem(), {"A": np.array([3.0, np.nan, 1.0]), "B": np.zeros(3)})
    assert np.array_equal(seen[4], [1.0, 3.0, np.nan], equal_nan=True)


def test_who_has_the_estimator_repeats_the_decision():
    policy, tapes = PartialIdentification(np.mean, hoeffding), constants(1.0, 0.0)
    study = Study(problem(), policy=policy)
    while counts := study.ask_counts():
        study.tell_arrays({arm: tapes[arm][:n] for arm, n in counts.items()})
    assert study.result.best == "A"
    assert verify(study.result, policy=policy)
    with pytest.raises(InvalidArgument, match="give policy="):
        verify(study.result)
    with pytest.raises(VerificationError, match="status is 'separated'"):
        verify(study.result, policy=PartialIdentification(np.mean, lambda n, delta: 2 * hoeffding(n, delta)))


def test_biases_say_how_far_the_answer_may_be_off():
    policy = PartialIdentification(np.mean, hoeffding, {"A": 0.25, "B": 1.0, "C": 0.5})
    assert policy.selection_gap(problem(3, tolerance=2.0), "B") == 3.5
    assert PartialIdentification(np.mean, hoeffding).selection_gap(problem(), "A") == math.inf


def test_biases_do_not_change_the_rule():
    with_biases = PartialIdentification(np.mean, hoeffding, {"A": 9.0, "B": 9.0})
    plain = PartialIdentification(np.mean, hoeffding)
    tapes = constants(1.0, 0.0)
    assert drive(with_biases, problem(), tapes).batches == drive(plain, problem(), tapes).batches


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"growth": -1.0}, "growth must be a finite number >= 0, but got -1.0"),
        ({"biases": {"A": -0.5}}, "biases must be >= 0, but got -0.5 for arm 'A'"),
    ],
)
def test_options_are_checked(options, words):
    with pytest.raises(InvalidArgument, match=words):
        PartialIdentification(np.mean, hoeffding, **options)


def test_biases_must_name_every_arm():
    with pytest.raises(InvalidArgument, match="lacks 'B'"):
        PartialIdentification(np.mean, hoeffding, {"A": 0.5}).start(problem())


def test_a_relative_tolerance_is_out_of_reach():
    with pytest.raises(OutOfReach, match=r"relative one 0\.02"):
        PartialIdentification(np.mean, hoeffding).start(problem(tolerance="2%"))


def test_a_radius_that_is_no_number_is_named():
    with pytest.raises(InvalidArgument, match=r"radius must return a number >= 0, but radius\(1, "):
        drive(PartialIdentification(np.mean, lambda *_: math.nan), problem(), constants(1.0, 0.0))


@pytest.mark.statistical
def test_the_best_arm_is_excluded_at_most_as_often_as_promised():
    rng, lost = np.random.default_rng(8), []
    policy, of = PartialIdentification(np.mean, hoeffding, growth=0.1), problem(3, delta=0.2)
    for _ in range(200):  # equal means: the effective gaps are exactly 0
        tapes = {arm: (rng.random(1500) < 0.5).astype(float) for arm in "ABC"}
        run = drive(policy, of, tapes, keep=True)
        lost.append("A" not in policy.standing(run.states[-1]).alive)
    assert kept(lost, 0.2)
