"""A gate in rounds: it goes on until it knows of every arm whether it is worse than the guard, and no longer."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom

from truearm import Study
from truearm.claims import gates
from truearm.cli import main
from truearm.cli.outcome import Outcome
from truearm.cli.saved import open_log
from truearm.cli.setting import Setting
from truearm.commands import measure as processes
from truearm.commands.command import Command
from truearm.commands.measure import Measurement
from truearm.commands.process import Run, Tail
from truearm.errors import InvalidArgument
from truearm.policies.paired import Paired

ROUNDS = 3000


def guarded(means, seed, *, noise=0.05, guard="old", rounds=ROUNDS, contamination=0.05):
    """Return the study of a gate on these run times, with normal noise in each."""
    arms = ["old", *(f"new{i}" for i in range(1, len(means)))]
    rng = np.random.default_rng(seed)
    tapes = {arm: mean * (1 + noise * rng.normal(size=rounds)) for arm, mean in zip(arms, means, strict=True)}
    study = Study(arms, goal="min", rounds=True, policy=Paired(guard=guard), contamination=contamination)
    done = dict.fromkeys(arms, 0)
    while counts := study.ask_counts():
        if max(done[arm] + n for arm, n in counts.items()) > rounds:
            study.stop()
            break
        study.tell_arrays({arm: tapes[arm][done[arm] : done[arm] + n] for arm, n in counts.items()})
        done.update({arm: done[arm] + n for arm, n in counts.items()})
    return study


def worse(study):
    return gates.worse_than(study.result, study.readings, "old")


def test_an_arm_that_another_one_beats_first_is_still_shown_to_be_worse():
    """The second arm beats the third in some ten rounds; that the first does too takes some fifty.

    20 races: that all of them miss nothing has a chance of 36% if one in twenty may, so one may.
    """
    found = [worse(guarded([1.0, 0.7, 1.06], seed)) for seed in range(20)]
    assert sum("new2" in names for names in found) >= 19
    unguarded = [worse(guarded([1.0, 0.7, 1.06], seed, guard=None)) for seed in range(20)]
    assert sum("new2" in names for names in unguarded) <= 10  # so there was something to mend


def test_equal_code_ends_as_soon_as_nothing_can_be_shown():
    """12 gates each: given up in one direction it takes some 800 rounds, in both some 1,500."""
    one_way, both_ways = (
        np.mean([guarded([1.0, 1.0], seed, guard=guard).pulls for seed in range(12)]) for guard in ("old", None)
    )
    assert one_way < 0.7 * both_ways


@pytest.mark.slow
@pytest.mark.statistical
def test_equal_code_fails_no_gate():
    """300 gates: an alarm in a tenth of them would be found with a chance of 95%; of three arms as of two."""
    for means in ([1.0, 1.0], [1.0, 1.0, 1.0]):
        assert sum(bool(worse(guarded(means, seed))) for seed in range(300)) <= binom.ppf(0.999, 300, 0.05)


def test_a_regression_is_found_and_an_improvement_is_named():
    """20 each, 5% apart with noise of 5%: found in .95 or more, so that fewer than 17 have a chance of 2%."""
    assert sum(worse(guarded([1.0, 1.05], seed)) == ("new1",) for seed in range(20)) >= 17
    assert sum(guarded([1.0, 0.95], seed).result.best == "new1" for seed in range(20)) >= 17


def test_what_was_given_up_is_told():
    study = guarded([1.0, 1.0], 1)
    assert study.result.status.value == "exhausted"
    assert gates.is_gate_given_up(study.result, study.readings, "old")
    assert not gates.is_gate_given_up(study.result, study.readings, None)
    early = guarded([1.0, 1.0], 1, rounds=20)
    assert not gates.is_gate_given_up(early.result, early.readings, "old")


def test_a_gate_comes_back_from_plain_values():
    study = guarded([1.0, 1.0], 2, rounds=100)
    again = Study.from_dict(json.loads(json.dumps(study.to_dict())))
    assert again.policy == Paired(guard="old")
    assert again.result.to_dict() == study.result.to_dict()


def test_a_guard_is_one_of_the_arms():
    with pytest.raises(InvalidArgument, match="guard must be one of the arms A, B, but got 'C'"):
        Study(["A", "B"], rounds=True, policy=Paired(guard="C"))


def test_a_race_says_that_more_runs_would_not_show_it():
    study = guarded([1.0, 1.0], 1)
    setting = Setting(commands=(Command("true", name="old"), Command("true", name="new1")), guard="old")
    ended = Outcome(
        result=study.result, tapes=study.readings, setting=setting, runs=(), seed=1, gate="old", ended=False
    )
    said = " ".join(ended.text().split())
    assert "is worse than old is not shown; more runs would not show it (95% sure" in said
    assert "Interrupted" not in said


def test_a_race_with_a_gate_tells_its_policy(tmp_path):
    log = str(tmp_path / "r.db")
    words = ("--metric", "stdout", "--goal", "min", "-n", "old", "-n", "new", "echo 1", "echo 2", "--save", log)
    done = CliRunner().invoke(main, ["race", *words, "--fail-if-worse-than", "old"])
    assert done.exit_code == 1, done.output
    with open_log(log) as found:
        assert found.study.policy == Paired(guard="old")
        assert found.study.problem.delta == 0.05


@pytest.mark.parametrize("target", [[], ["--quantile", "0.5"]])
@pytest.mark.parametrize(("new", "timeout", "code"), [(1.3, 1.2, 3), (1.3, 2.0, 0), (2.5, 2.0, 1)])
def test_a_run_that_times_out_is_no_worse_than_the_limit(monkeypatch, new, timeout, code, target):
    """The old one takes 1, half as much again is allowed: what takes 1.3 is good, however early it is stopped."""
    clock = np.random.default_rng(7)

    def measured(command, _metric, conditions):
        taken = (new if command.text == "new" else 1.0) * clock.uniform(0.99, 1.01)
        late = taken > conditions.timeout
        run = Run(min(taken, conditions.timeout), 0.0, 0.0, None, 0, late, Tail(), Tail(), left_behind=False)
        return Measurement(value=math.nan if late else taken, run=run)

    monkeypatch.setattr(processes, "measure", measured)
    gate = ["--fail-if-worse-than", "old", "--tolerance", "50%", "--timeout", str(timeout)]
    found = CliRunner().invoke(main, ["race", "old", "new", *gate, *target, "-M", "400", "-q"])
    assert found.exit_code == code, found.output
    said = " ".join(found.output.split())
    assert ("--timeout ends runs before they can be that much worse than old" in said) == (timeout < 1.5)
    assert "time-out" not in next(line for line in found.output.splitlines() if line.startswith("old  "))


def gated(*commands, tolerance="10%", rounds=7):
    """Return the words of a race with a gate on commands that print numbers, and its exit code."""
    words = [part for i, line in enumerate(commands) for part in ("-n", ("old", "a", "b")[i], line)]
    gate = ["--fail-if-worse-than", "old", *(["--tolerance", tolerance] if tolerance else []), "-M", str(rounds)]
    done = CliRunner().invoke(main, ["race", "--metric", "stdout", "--goal", "min", "-i", *words, *gate])
    return " ".join(done.output.split()), done.exit_code


def test_an_open_gate_with_a_tolerance_says_what_is_open_and_not_who_may_be_best():
    """The old one is better for certain; what is open is by how much."""
    said, code = gated("echo 10", "echo 10.4")
    assert code == 3
    assert said.startswith("UNSURE: whether a is worse than old by more than 10% is not shown.")
    assert "is not shown. a does not look that much worse." in said
    assert "may have the most wins" not in said
    assert "looks best" not in said
    assert "is not shown. a looks that much worse." in gated("echo 10", "echo 12")[0]


def test_a_baseline_is_ruled_out_only_as_worse_as_it_is_judged():
    """Both others lose to the old one in every round, and tie with each other."""
    swings = "expr 102 + $TRUEARM_ITERATION % 2"
    said, code = gated("echo 100", swings, "expr 103 - $TRUEARM_ITERATION % 2", rounds=40)
    assert code == 3
    assert "UNSURE: whether a or b is worse than old by more than 10% is not shown" in said
    assert "most wins" not in said


def test_a_tolerance_that_is_met_exactly_is_no_tie():
    said, _ = gated("echo 10", "echo 11", rounds=30)
    assert "No winner: a measured worse than old by exactly 10% in each of " in said
    assert "tie" not in said.replace("ratio", "")
    assert "the same in each" not in said


def test_what_more_runs_would_not_show_they_are_not_said_to_decide():
    """Runs that always fail count for nobody, so that no number of them shows anything."""
    said, code = gated("echo 10", "false", tolerance=None, rounds=30)
    assert code == 3
    assert "is worse than old is not shown; more runs would not show it (95% sure" in said
    assert "more run would tell" not in said


def test_an_answer_about_who_is_worse_says_who_wins():
    said, code = gated("echo 10", "echo 12", rounds=30)
    assert code == 1
    assert said.startswith("FAIL: a is worse than old by more than 10%. 95% sure")


def test_a_command_that_only_fails_does_not_seem_to_be_worse():
    said, _ = gated("echo 10", "false")
    assert "UNSURE: whether a is worse than old by more than 10% is not shown." in said
    assert "that much worse" not in said


def test_an_arm_that_is_rejected_does_not_keep_a_gate_from_giving_up():
    """It may still be among the candidates: only evidence that holds for all arms at once excludes it."""
    result = (study := guarded([1.0, 1.0, 1.5], 1)).result
    assert (result.best, result.certificate.rejected) == (None, ("new2",))
    assert gates.is_gate_given_up(result, study.readings, "old")
