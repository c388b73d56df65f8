"""The paper's algorithms: counts and radii as printed and sharp, answers, refusals, error probabilities."""

import math
from functools import partial

import numpy as np
import pytest

from contracts.driving import drive
from statistical.promise import kept
from truearm import bounds
from truearm.claims.certificate import Status
from truearm.claims.certify import certify
from truearm.errors import InvalidArgument, OutOfReach, VerificationError
from truearm.policies.lucb import Lucb
from truearm.policies.paper import Elimination, PartialIdentification, Uniform
from truearm.problem import Contamination, Problem, Regularity
from truearm.study import Study
from truearm.verification import verify

UNIFORM = Regularity(B=4.0, m2=0.5, reach=0.4)  # of U[-1, 1], which attains the slope everywhere


def problem(k=2, **changes):
    promises = {"contamination": 0.1, "delta": 0.1, "regularity": UNIFORM, **changes}
    return Problem(arms=tuple("ABCDE"[:k]), **promises)


def constants(*values, length=40_000):
    return {arm: np.full(length, value) for arm, value in zip("ABCDE", values, strict=False)}


def hoeffding(n, delta):
    return math.sqrt(math.log(2 / delta) / (2 * n))


partial_of = partial(PartialIdentification, np.mean, hoeffding)
PARTIAL = partial_of()


def start(policy, **changes):
    return policy.start(problem(**changes))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: start(Elimination(), regularity=None), OutOfReach, r"needs regularity.*Regularity\(B="),
        (lambda: start(Elimination(), quantile=0.9), OutOfReach, "compares medians, but quantile is 0.9"),
        (lambda: start(Elimination(), tolerance="2%"), OutOfReach, "relative tolerance, but got 2%; use policy"),
        (lambda: start(Elimination(), contamination=0.45), OutOfReach, "eps=0.45 is too large for reach=0.4"),
        (lambda: start(Uniform(), tolerance=0.0), OutOfReach, "needs a tolerance above 0"),
        (lambda: start(PARTIAL, tolerance="2%"), OutOfReach, "relative tolerance, but got 2%"),
        (lambda: start(Lucb(), tolerance="2%"), OutOfReach, "relative tolerance, but got 2%"),
        (lambda: start(Lucb(slack=0.2), quantile=0.9), OutOfReach, "slack must be below 1 - q = 0.1, but got 0.2"),
        (lambda: Lucb(slack=1.0), InvalidArgument, r"slack must be in \[0, 1\), but got 1.0"),
        (lambda: Lucb(growth=-0.1), InvalidArgument, r"growth must be in \[0, 1\), but got -0.1"),
        (lambda: Lucb(t_opt=0), InvalidArgument, "t_opt must be an integer not less than 1, but got 0"),
        (lambda: Elimination("tight"), InvalidArgument, "must be 'sharp' or 'paper', but got 'tight'"),
        (lambda: Uniform("loose"), InvalidArgument, "constants must be"),
        (lambda: partial_of(growth=-1.0), InvalidArgument, "growth must be a finite"),
        (lambda: partial_of({"A": -0.5}), InvalidArgument, "biases must be >= 0, but got -0.5"),
        (lambda: start(partial_of({"A": 0.5})), InvalidArgument, "biases must name every arm, but got"),
        (
            lambda: drive(PartialIdentification(np.mean, lambda *_: math.nan), problem(), constants(1.0, 0.0)),
            InvalidArgument,
            "radius must return a number >= 0, but got",
        ),
    ],
)
def test_what_a_policy_cannot_use_is_refused_with_a_remedy(call, error, words):
    with pytest.raises(error, match=words):
        call()


# --- elimination ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("adversary", "initial", "rounds"),
    [("prescient", 93, [25, 15, 11, 9, 8, 7]), ("malicious", 123, [32, 20, 14, 11, 10, 8])],
)
def test_paper_counts_are_the_printed_ones(adversary, initial, rounds):
    # vectors alg3-prescient and alg3-malicious
    of = problem(5, contamination=Contamination(0.1, adversary), regularity=Regularity(B=4, m2=0.25, reach=0.4))
    run = drive(Elimination("paper"), of, constants(*[0.0] * 5, length=400))
    assert [batch["A"] for batch in run.batches][:6] == [initial + rounds[0], *rounds[1:]]


def test_early_stop_is_in_the_round_of_the_audit():
    of = problem(5, tolerance=0.5, regularity=Regularity(B=4, m2=0.25, reach=0.4))
    run = drive(Elimination("paper"), of, constants(*[0.0] * 5))
    assert (run.verdict.status, run.verdict.best) == (Status.TOLERABLE, "A")
    assert len(run.batches) == bounds.early_stop_round(0.5, 5, 0.1, 4, 0.25) == 584


@pytest.mark.parametrize("policy", [Elimination(), Uniform()])
def test_an_arm_that_may_be_better_where_it_failed_is_not_excluded(policy):
    """Half of B and one more reading are missing: its median may be anything."""
    tapes = {**constants(9.0), "B": np.where(np.arange(40_000) % 20 < 11, np.nan, 0.0)}
    verdict = drive(policy, problem(2, tolerance=0.4), tapes).verdict
    assert (verdict and verdict.best) is None


def worst_case(rng, adversary, eps=0.1, n=1500):
    """Return tapes of uniform arms with effective gaps of exactly 0, contaminated as badly as possible."""
    bias = bounds.bias(eps, 4.0, 0.5, adversary)
    tapes = {}
    for arm, center, bad in (("A", bias, -np.inf), ("B", -bias, np.inf), ("C", -bias, np.inf)):
        values = rng.uniform(-1, 1, n) + center
        if adversary == "malicious":  # spoils only what is on the other side of the center, at twice the rate
            struck = (rng.random(n) < 2 * eps) & ((values > center) == (bad < 0))
        else:
            struck = rng.random(n) < eps
        tapes[arm] = np.where(struck, bad, values)
    return tapes


@pytest.mark.statistical
@pytest.mark.parametrize("adversary", ["oblivious", "malicious"])
def test_the_best_arm_is_excluded_with_probability_at_most_delta(adversary):
    rng, lost = np.random.default_rng(17), []
    of = problem(3, contamination=Contamination(0.1, adversary), delta=0.2)
    for _ in range(150):
        run = drive(Elimination(), of, worst_case(rng, adversary), keep=True)
        lost.append("A" not in Elimination().standing(run.states[-1]).alive)
    assert kept(lost, 0.2)


@pytest.mark.statistical
def test_a_time_limit_excludes_no_arm_whose_median_may_be_within_it():
    """Medians -5.05 and -4.95 (goal min, limit 5): the second is censored in about half of the runs.

    Taken for minus infinity it was excluded whatever the radius, wrongly in 20 of 60 runs. 30 runs at delta = 5%:
    more than 5 wrong have a chance of 3e-3 at 5%, and 98% at a third.
    """
    asked = problem(contamination=0.0, delta=0.05, regularity=Regularity(B=9.0, m2=0.6745, reach=0.4))
    wrong = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        tapes = {arm: -rng.normal(center, 1.0, 6000) for arm, center in (("A", 5.05), ("B", 4.95))}
        tapes = {arm: np.where(tape < -5.0, -math.inf, tape) for arm, tape in tapes.items()}
        run = drive(Elimination(), asked, tapes)
        wrong += run.verdict is not None and run.verdict.best == "A"
    assert wrong <= 5


def test_bad_readings_beyond_a_time_limit_exclude_no_arm_whose_median_may_be_within_it():
    """Medians 0 and -0.1, what is below -0.03 times out, and 2% of the readings are bad: -1e9.

    With these taken for the limit 59 of 200 runs excluded the better arm. 60 runs at delta = 10%: more than 12
    wrong have a chance of 6e-3 at 10%, and 94% at three times that.
    """
    asked = problem(contamination=0.02, delta=0.1, regularity=Regularity(B=4.0, m2=0.5, reach=0.3))
    lost = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        tapes = {arm: center + rng.uniform(-1, 1, 6000) for arm, center in (("A", -0.1), ("B", 0.0))}
        tapes = {arm: np.where(tape < -0.03, -math.inf, tape) for arm, tape in tapes.items()}
        tapes = {arm: np.where(rng.random(6000) < 0.02, -1e9, tape) for arm, tape in tapes.items()}
        run = drive(Elimination(), asked, tapes, keep=True)
        lost += "B" not in Elimination().standing(run.states[-1]).alive
    assert lost <= 12


# --- uniform sampling ------------------------------------------------------------------------------


@pytest.mark.parametrize("constants", ["sharp", "paper"])
@pytest.mark.parametrize("adversary", ["oblivious", "malicious"])
def test_one_batch_of_the_size_of_the_theorem(constants, adversary):
    of = problem(5, tolerance=0.4, contamination=Contamination(0.1, adversary))
    batch = Uniform(constants).ask(Uniform(constants).start(of))
    promise = {"eps": 0.1, "B": 4.0, "m2": 0.5, "reach": 0.4, "adversary": adversary}
    assert set(batch.values()) == {bounds.uniform_sample_size(5, 0.4, 0.1, **promise, constants=constants)}


def test_the_largest_median_wins_and_the_first_of_equals():
    tapes = {arm: np.full(2000, value) for arm, value in zip("ABCDE", (0.0, 2.0, 1.0, 2.0, -1.0), strict=True)}
    run = drive(Uniform(), problem(5, tolerance=0.4), tapes)
    assert (run.verdict.status, run.verdict.best) == (Status.TOLERABLE, "B")
    assert [(claim.arm, claim.tolerant) for claim in run.verdict.claims] == [
        *((arm, False) for arm in "ACE"),
        ("D", True),
    ]


def test_the_result_certifies_the_true_gap_not_the_effective_one():
    of, rng = problem(2, contamination=0.25, tolerance=0.4), np.random.default_rng(2)
    tapes = {arm: rng.uniform(-1, 1, 1000) for arm in "AB"}
    run = drive(Uniform(), of, tapes)
    result = certify(of, run.used(tapes), run.verdict)
    assert 0.4 < result.tolerance < np.inf  # contamination hides more than the tolerance
    assert "(tolerance 0.4)" in str(result)


@pytest.mark.statistical
def test_the_answer_is_beyond_the_tolerance_with_probability_at_most_delta():
    rng, wrong = np.random.default_rng(5), []
    of = problem(k=5, delta=0.2, tolerance=0.4)
    bias, n = bounds.bias(0.1, 4.0, 0.5, "oblivious"), Uniform().ask(Uniform().start(of))["A"]
    for _ in range(300):
        tapes = {"A": np.where(rng.random(n) < 0.1, -np.inf, rng.uniform(-1, 1, n))}
        for arm in "BCDE":  # effective gaps a hair above the tolerance
            truth = rng.uniform(-1, 1, n) - (0.4 + 2 * bias + 1e-6)
            tapes[arm] = np.where(rng.random(n) < 0.1, np.inf, truth)
        wrong.append(drive(Uniform(), of, tapes).verdict.best != "A")
    assert kept(wrong, 0.2)


# --- partial identification -------------------------------------------------------------------------


@pytest.mark.parametrize(("tolerance", "status"), [(0.5, None), (0.85, Status.TOLERABLE)])
def test_a_tolerance_holds_against_excluded_arms_too(tolerance, status):
    # C goes in round 1 with upper end 18.9, by A; A falls, and B, which could never have excluded C, leads
    tapes = {"A": [20.0, 0.0], "B": [18.9, 18.1], "C": [17.9], "D": [18.9, 18.1]}
    policy = PartialIdentification(np.min, lambda n, _: 1.0 if n == 1 else 0.01)
    run = drive(policy, problem(4, tolerance=tolerance), {arm: np.array(tape) for arm, tape in tapes.items()})
    assert run.counts == {"A": 2, "B": 2, "C": 1, "D": 2}
    assert (run.verdict and run.verdict.status) is status


def test_a_decision_by_an_estimator_is_verified_with_the_estimator():
    policy, tapes = PARTIAL, constants(1.0, 0.0)
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
    policy = partial_of({"A": 0.25, "B": 1.0, "C": 0.5})
    assert policy.selection_gap(problem(3, tolerance=2.0), "B") == 3.5
    assert PARTIAL.selection_gap(problem(), "A") == math.inf


@pytest.mark.statistical
def test_the_best_estimate_is_excluded_with_probability_at_most_delta():
    rng, lost = np.random.default_rng(8), []
    policy, of = partial_of(growth=0.1), problem(3, delta=0.2)
    for _ in range(200):  # equal means: the effective gaps are exactly 0
        tapes = {arm: (rng.random(1500) < 0.5).astype(float) for arm in "ABC"}
        run = drive(policy, of, tapes, keep=True)
        lost.append("A" not in policy.standing(run.states[-1]).alive)
    assert kept(lost, 0.2)
