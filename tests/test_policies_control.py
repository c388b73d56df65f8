"""The policy that compares arms with a control: what it pulls, when it stops, and that a log replays it."""

import numpy as np
import pytest

from truearm import AgainstControl, Contamination, InvalidArgument, OutOfReach, Study, find_best
from truearm.claims.certificate import Verdict
from truearm.policies import Told
from truearm.problem import Problem

MEANS = {"A": 0.0, "B": 1.0, "C": 0.0, "D": -2.0, "E": 1.5}


def played(policy, *, seed=0, means=MEANS, max_pulls=3000, **more):
    rng = np.random.default_rng(seed)
    study = Study(list(means), policy=policy, max_pulls=max_pulls, **more)
    while counts := study.ask_counts():
        study.tell_arrays({arm: rng.normal(means[arm], 1, n) for arm, n in counts.items()})
    return study


@pytest.mark.parametrize("fdr", [False, True])
@pytest.mark.parametrize("balanced", [False, True])
def test_arms_that_beat_the_control_are_named(fdr, balanced):
    study = played(AgainstControl("A", fdr=fdr, balanced=balanced), max_pulls=1500)
    result = study.result
    assert set(result.control.named("better")) == {"B", "E"}
    assert result.control.named("not better") == ("D",)
    assert result.control.named("open") == ("C",)
    assert result.certificate.verify(result.readings)
    assert result.answered


def test_pulls_go_where_something_may_be_won():
    """Until the winner is claimed the variants that lose get few pulls beyond their first 16."""
    means = {"A": 0.0, **{f"L{i}": -1.0 for i in range(4)}, "W": 0.5}
    result = played(AgainstControl("A"), means=means).result
    claim = result.certificate.control.better[0]
    counts = dict(zip(means, claim.counts, strict=True))
    assert claim.leader == "W"
    assert max(counts[f"L{i}"] for i in range(4)) < 0.5 * min(counts["A"], counts["W"])


def test_it_stops_when_every_arm_is_settled():
    study = played(AgainstControl("A"), means={"A": 0.0, "B": 3.0, "C": -3.0})
    assert study.done
    assert study.result.control.settled
    assert study.result.total < 400
    assert study.result.best == "B"  # the best arm is certified too


def test_it_stops_when_more_pulls_do_not_help():
    """Equal arms at 20 % contamination: no number of pulls shows that one beats the other (evidence T9)."""
    study = played(AgainstControl("A"), means={"A": 0.0, "B": 0.0}, contamination=0.2, max_pulls=20_000)
    assert study.result.total < 20_000
    assert study.result.control.named("open") == ("B",)
    assert study.result.status.value == "indistinguishable"
    assert not study.result.answered


def test_claims_of_step_down_keep_their_dates_and_those_of_a_rate_are_made_at_the_stop():
    study = played(AgainstControl("A"))
    better = study.result.certificate.control.better
    dates = [sum(claim.counts) for claim in better]
    assert dates == sorted(dates)
    assert dates[0] < study.result.total
    assert {claim.arm for claim in better} == {"A"}
    study = played(AgainstControl("A", fdr=True), max_pulls=900)
    counts = {claim.counts for claim in study.result.certificate.control.better}
    assert counts == {tuple(study.result.pulls.values())}


def test_asking_changes_nothing_and_pulls_out_count_at_their_worst():
    policy = AgainstControl("A")
    state = policy.start(Problem(arms=("A", "B")))
    told = {arm: Told(np.arange(32), np.arange(32.0) + 40 * (arm == "B")) for arm in "AB"}
    done, waiting = (policy.tell(state, told, issued) for issued in ({"A": 32, "B": 32}, {"A": 64, "B": 64}))
    assert policy.ask(done) == policy.ask(done)
    assert isinstance(policy.ask(done), Verdict)
    assert not isinstance(policy.ask(waiting), Verdict)
    assert waiting.judge.samples[0].pending == 32


@pytest.mark.parametrize(
    ("policy", "error", "words"),
    [
        (lambda: AgainstControl("Z"), InvalidArgument, "control must name an arm, but got 'Z'"),
        (AgainstControl, InvalidArgument, "needs the name of an arm"),
        (lambda: "control", InvalidArgument, "AgainstControl"),
        (lambda: AgainstControl("A", first=0), InvalidArgument, "first must be"),
        (lambda: AgainstControl("A", fdr=True), OutOfReach, "remove fdr"),
    ],
)
def test_wrong_controls_are_refused(policy, error, words):
    with pytest.raises(error, match=words):
        Study(["A", "B"], policy=policy(), contamination=Contamination(0.05, "malicious"))


def test_missing_and_censored_readings_do_not_win():
    arms = {"A": lambda: 1.0, "B": lambda: float("nan"), "C": lambda: -float("inf")}
    result = find_best(arms, policy=AgainstControl("A"), max_pulls=400, progress=False)
    assert result.control.named("better") == ()


def test_doubts_void_the_claims():
    study = Study(["A", "B"], policy=AgainstControl("A"), max_pulls=2000)
    draws = dict.fromkeys("AB", 0)
    while pulls := study.ask():
        for pull in pulls:
            draws[pull.arm] += 1
            study.tell(pull, draws[pull.arm] + 0.5 * (pull.arm == "B"))
    assert study.result.status.value == "doubtful"
    assert study.result.control is None
