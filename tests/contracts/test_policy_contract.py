"""What every policy must do, checked for all of them."""

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from truearm.claims.certificate import Status, Verdict
from truearm.claims.certify import certify
from truearm.evidence.intervals import moments
from truearm.policies.lucb import Lucb
from truearm.policies.paired import Paired
from truearm.policies.paper import Elimination, PartialIdentification, Uniform
from truearm.policies.toptwo import TopTwo
from truearm.problem import Contamination, Problem, Regularity, Tolerance
from truearm.study import Study
from truearm.verification import verify

from .driving import drive


def median(readings):
    return moments(readings).m1


def radius(n, delta):
    return math.sqrt(math.log(2 / delta) / (2 * n)) * 5


POLICIES = {
    "toptwo": TopTwo(),
    "toptwo-balanced": TopTwo(balanced=True),
    "elimination": Elimination(),
    "elimination-paper": Elimination("paper"),
    "uniform": Uniform(),
    "uniform-paper": Uniform("paper"),
    "paired": Paired(),
    "lucb": Lucb(),
    "lucb-published": Lucb(growth=0.0),
    "lucb-early": Lucb(t_opt=50),
    "partial": PartialIdentification(median, radius),
    "partial-growing": PartialIdentification(median, radius, growth=0.5),
}
PROBLEM = Problem(
    arms=("A", "B", "C"), contamination=0.05, regularity=Regularity(B=5.0, m2=0.7, reach=0.3), delta=0.1
)
LENGTH = 4000
TIED = {"equal": 1.0, "plus infinity": math.inf}
UNORDERED = {"censored": -math.inf, "missing": math.nan}


def problem_for(name, problem=PROBLEM):
    if name == "paired":
        return replace(problem, rounds=True, regularity=None)
    return replace(problem, tolerance=Tolerance(3.0)) if name.startswith("uniform") else problem


def readings(seed=0, means=(9.0, 3.0, 0.0), length=LENGTH):
    rng = np.random.default_rng(seed)
    tapes = {arm: rng.normal(mean, 1, length) for arm, mean in zip("ABC", means, strict=True)}
    for tape in tapes.values():
        tape[rng.random(length) < 0.02] = np.nan
        tape.flags.writeable = False
    return tapes


def constant(value, arms="ABC"):
    return {arm: np.full(LENGTH, value) for arm in arms}


@pytest.fixture(params=POLICIES, scope="module")
def name(request):
    return request.param


@pytest.fixture(scope="module")
def policy(name):
    return POLICIES[name]


@pytest.fixture(scope="module")
def run(name, policy):
    return drive(policy, problem_for(name), readings(), keep=True)


def test_the_best_of_distant_arms_is_found_and_excluded_arms_stay_out(policy, run):
    assert (run.verdict.best, run.verdict.candidates) == ("A", ("A",))
    assert {claim.arm for claim in run.verdict.claims} == {"B", "C"}
    alive = {"A", "B", "C"}
    for state, batch in zip(run.states, [*run.batches, {}], strict=True):
        now = set(policy.standing(state).alive)
        assert set(batch) <= now <= alive
        assert all(isinstance(n, int) and n > 0 for n in batch.values())
        alive = now
    assert all(run.batches)
    first, last = policy.standing(run.states[0]), policy.standing(run.states[-1])
    assert (first.leader, last.leader) == (None, "A")
    assert "A" in last.so_far.candidates


def test_old_states_still_answer_as_they_did_and_survive_a_pickle(policy, run):
    for state, answer in zip(run.states, [*run.batches, run.verdict], strict=True):
        assert policy.ask(state) == policy.ask(pickle.loads(pickle.dumps(state))) == answer


def test_order_of_arrival_inside_a_batch_is_indifferent(name, policy, run):
    shuffled = drive(policy, problem_for(name), readings(), shuffle=np.random.default_rng(3))
    assert (shuffled.verdict, shuffled.batches) == (run.verdict, run.batches)


def test_one_arm_is_the_best_without_a_pull(name, policy):
    state = policy.start(replace(problem_for(name), arms=("A",)))
    verdict = policy.ask(state)
    assert isinstance(verdict, Verdict)
    assert (verdict.best, verdict.candidates) == ("A", ("A",))


def result_of(policy, problem, tapes):
    """Certify what a policy ends with; where the tapes end first, what it has by then."""
    run = drive(policy, problem, tapes, keep=True)
    verdict = policy.standing(run.states[-1]).so_far if run.verdict is None else run.verdict
    return certify(problem, run.used(tapes), verdict)


@pytest.mark.parametrize("value", TIED.values(), ids=TIED)
def test_no_arm_is_worse_if_all_readings_are_equal(name, policy, value):
    result = result_of(policy, problem_for(name), constant(value))
    assert set(result.candidates) == {"A", "B", "C"}
    assert {*result.ties, result.best} in ({"A", "B", "C"}, {None}, {"A", "B", "C", None})
    assert not any(lead.at_least for lead in result.better_by)


@pytest.mark.parametrize("value", UNORDERED.values(), ids=UNORDERED)
def test_readings_without_an_order_name_no_best_arm(name, policy, value):
    result = result_of(policy, problem_for(name), constant(value))
    assert result.best is None
    assert result.candidates == ("A", "B", "C")


def test_an_arm_that_always_fails_leaves_the_best_open(name, policy):
    """Its readings are unknown, and that many failures are more than eps allows."""
    tapes = {**readings(means=(0.0, 5.0, 0.0)), "A": np.full(LENGTH, np.nan)}
    result = result_of(policy, problem_for(name), tapes)
    assert result.best is None
    assert "A" in result.candidates
    assert result.status is not Status.DOUBTFUL


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_readings_of_one_arm_are_an_order(name, policy, value):
    tapes = {**readings(means=(0.0, 0.0, -9.0)), "B": np.full(LENGTH, value)}
    run = drive(policy, replace(problem_for(name), arms=("A", "B")), tapes)
    if name.startswith("partial") and value < 0:
        assert run.verdict is None
    else:
        assert run.verdict.best == ("B" if value > 0 else "A")


@pytest.mark.parametrize("goal", ["max", "min"])
def test_the_certificate_can_be_verified(name, policy, goal):
    problem = replace(problem_for(name), goal=goal)
    tapes = {arm: problem.sign * tape for arm, tape in readings().items()}
    used = {arm: tape.tolist() for arm, tape in drive(policy, problem, tapes).used(tapes).items()}
    result = Study.retrace(problem, used, policy=policy).result
    plain = json.loads(json.dumps(result.to_dict(readings=True)))
    assert plain["best"] == "A"
    assert name.startswith("partial") or verify(plain)
    assert verify(plain, policy=policy)


@pytest.mark.parametrize(
    "contamination", [None, 0.0, Contamination(0.05, "prescient"), Contamination(0.05, "malicious")], ids=str
)
def test_every_assumption_finds_the_best_arm(name, policy, contamination):
    assert drive(policy, replace(problem_for(name), contamination=contamination), readings()).verdict.best == "A"
