import numpy as np
import pytest

from contracts.driving import drive
from statistical.promise import kept
from truearm import bounds
from truearm.claims.certificate import Status
from truearm.claims.certify import certify
from truearm.errors import InvalidArgument, OutOfReach
from truearm.policies.paper import Uniform
from truearm.problem import Contamination, Problem, Regularity

UNIFORM = Regularity(B=4.0, m2=0.5, reach=0.4)


def problem(k=5, **changes):
    promises = {"contamination": 0.1, "delta": 0.1, "tolerance": 0.4, "regularity": UNIFORM, **changes}
    return Problem(arms=tuple("ABCDE"[:k]), **promises)


@pytest.mark.parametrize("constants", ["sharp", "paper"])
@pytest.mark.parametrize("adversary", ["oblivious", "malicious"])
def test_one_batch_of_the_size_of_the_theorem(constants, adversary):
    of = problem(contamination=Contamination(0.1, adversary))
    batch = Uniform(constants).ask(Uniform(constants).start(of))
    promise = {"eps": 0.1, "B": 4.0, "m2": 0.5, "reach": 0.4, "adversary": adversary}
    assert set(batch.values()) == {bounds.uniform_sample_size(5, 0.4, 0.1, **promise, constants=constants)}


def test_the_printed_size():
    of = problem(tolerance=0.2, regularity=Regularity(B=4, m2=0.5, reach=0.3))
    assert Uniform("paper").ask(Uniform("paper").start(of))["A"] == 3685  # vector alg1-n


def test_the_largest_median_wins_and_the_first_of_equals():
    tapes = {arm: np.full(2000, value) for arm, value in zip("ABCDE", (0.0, 2.0, 1.0, 2.0, -1.0), strict=True)}
    run = drive(Uniform(), problem(), tapes)
    assert (run.verdict.status, run.verdict.best) == (Status.TOLERABLE, "B")
    assert [e.arm for e in run.verdict.exclusions] == ["A", "C", "D", "E"]


def test_the_result_certifies_the_true_gap_not_the_effective_one():
    of, rng = problem(2, contamination=0.25, tolerance=0.4), np.random.default_rng(2)
    tapes = {arm: rng.uniform(-1, 1, 1000) for arm in "AB"}
    run = drive(Uniform(), of, tapes)
    result = certify(of, run.used(tapes), run.verdict)
    assert 0.4 < result.tolerance < np.inf  # contamination hides more than the tolerance
    assert "(tolerance 0.4)" in str(result)


def test_missing_readings_leave_open_what_they_may_hide():
    tapes = {"A": np.full(2000, 9.0), "B": np.where(np.arange(2000) % 20 < 11, np.nan, 0.0)}
    verdict = drive(Uniform(), problem(2), tapes).verdict
    assert verdict.best is None


def test_a_run_without_a_single_value_decides_nothing():
    run = drive(Uniform(), problem(2), {arm: np.full(2000, np.nan) for arm in "AB"})
    assert (run.verdict.status, run.verdict.best, run.verdict.candidates) == (Status.EXHAUSTED, None, ("A", "B"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tolerance": 0.0}, "needs a tolerance above 0"),
        ({"tolerance": "5%"}, "relative one 0.05"),
        ({"regularity": None}, "needs regularity"),
        ({"quantile": 0.25}, "compares medians"),
    ],
)
def test_what_it_cannot_serve_it_refuses_with_a_remedy(changes, words):
    with pytest.raises(OutOfReach, match=words):
        Uniform().start(problem(**changes))


def test_unknown_constants_are_refused():
    with pytest.raises(InvalidArgument, match="constants must be"):
        Uniform("loose")


@pytest.mark.statistical
def test_the_answer_is_within_tolerance_as_often_as_promised():
    rng, wrong = np.random.default_rng(5), []
    of = problem(k=5, delta=0.2)
    bias, n = bounds.bias(0.1, 4.0, 0.5, "oblivious"), Uniform().ask(Uniform().start(of))["A"]
    for _ in range(300):
        tapes = {"A": np.where(rng.random(n) < 0.1, -np.inf, rng.uniform(-1, 1, n))}
        for arm in "BCDE":  # effective gaps a hair above the tolerance
            truth = rng.uniform(-1, 1, n) - (0.4 + 2 * bias + 1e-6)
            tapes[arm] = np.where(rng.random(n) < 0.1, np.inf, truth)
        wrong.append(drive(Uniform(), of, tapes).verdict.best != "A")
    assert kept(wrong, 0.2)
