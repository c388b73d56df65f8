"""Gates: PASS, FAIL or UNSURE about arms that must not be worse than a baseline."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom

from truearm import Study
from truearm.claims.gates import judge_gate
from truearm.cli import main
from truearm.commands.measure import Measurement
from truearm.commands.process import Run, Tail
from truearm.errors import InvalidArgument
from truearm.policies.paired import Paired
from truearm.problem import Handicap, Problem, Tolerance


def guarded(means, seed, *, tolerance=0.02, noise=0.03, rounds=2000, **options):
    """Return the study of a gate on these run times, with normal noise in each, and its verdict."""
    arms = ["old", *(f"new{i}" for i in range(1, len(means)))]
    rng = np.random.default_rng(seed)
    tapes = {arm: mean * (1 + noise * rng.normal(size=rounds)) for arm, mean in zip(arms, means, strict=True)}
    problem = Problem.of(arms, goal="min", rounds=True, **{"contamination": "blind", **options})
    handicap = Handicap("old", Tolerance(tolerance, relative=True)) if tolerance else None
    study = Study(replace(problem, handicap=handicap), policy=Paired(guard="old"), seed=seed)
    done = dict.fromkeys(arms, 0)
    while counts := study.ask_counts():
        if max(done[arm] + n for arm, n in counts.items()) > rounds:
            study.stop()
            break
        study.tell_arrays({arm: tapes[arm][done[arm] : done[arm] + n] for arm, n in counts.items()})
        done.update({arm: done[arm] + n for arm, n in counts.items()})
    return study, judge_gate(study.result)


@pytest.mark.parametrize(
    ("means", "options", "verdict", "least", "rounds"),
    [
        ([1.0, 1.0], {}, "PASS", 20, 200),  # equal code, within 2%
        ([1.0, 1.05], {}, "FAIL", 20, 200),
        ([1.0, 0.95], {"tolerance": 0}, "PASS", 20, 100),
        ([1.0, 1.05], {"tolerance": 0}, "FAIL", 20, 100),
        ([1.0, 1.0], {"tolerance": 0, "rounds": 300}, "UNSURE", 18, 300),  # of these 5% may be named
        ([1.0, 1.02], {"rounds": 300}, "UNSURE", 18, 300),  # exactly at the tolerance
        ([1.0, 1.0, 1.0, 0.9], {}, "PASS", 20, 300),
        ([1.0, 0.9, 1.05], {}, "FAIL", 19, 200),  # the best arm passes first, and one still fails
        ([1.0, 1.0], {"contamination": 0.05}, "PASS", 20, 300),
    ],
)
def test_a_gate_passes_fails_or_is_unsure(means, options, verdict, least, rounds):
    """20 gates each: equal code passes, 5% slower code fails, each after about as many rounds on average."""
    found = [guarded(means, seed, **options) for seed in range(20)]
    assert [gate.verdict for _, gate in found].count(verdict) >= least
    assert np.mean([max(study.result.pulls.values()) for study, _ in found]) <= rounds


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("means", [[1.0, 1.02], [1.0, 1.02, 1.02]])
def test_a_gate_at_its_tolerance_is_seldom_decided(means):
    """200 gates where FAIL and PASS are hardest to avoid: errors in 15% of them would be found with power .95."""
    found = [guarded(means, seed, rounds=300)[1].verdict for seed in range(200)]
    assert max(found.count("FAIL"), found.count("PASS")) <= binom.ppf(0.999, 200, 0.05)


def test_an_arm_that_passed_is_measured_no_longer():
    study, gate = guarded([1.0, 0.8, 1.01], 3)
    assert gate.verdict == "PASS"
    assert study.result.pulls["new1"] < 20 < study.result.pulls["new2"] == study.result.pulls["old"]


def test_a_gate_ends_where_bad_runs_could_hide_the_difference():
    """At 5% bad runs equal code is indistinguishable without a tolerance (extensions E6)."""
    study, gate = guarded([1.0, 1.0], 1, tolerance=0, contamination=0.05, rounds=5000)
    assert (study.result.status.value, gate.verdict) == ("indistinguishable", "UNSURE")
    assert "More readings would not help (95% sure" in str(study.result)


def test_a_gate_comes_back_from_plain_values():
    study, _ = guarded([1.0, 1.02], 2, rounds=100)
    again = Study.from_dict(json.loads(json.dumps(study.to_dict())))
    assert again.policy == Paired(guard="old")
    with pytest.raises(InvalidArgument, match="guard must be one of the arms A, B, but got 'C'"):
        Study(["A", "B"], rounds=True, policy=Paired(guard="C"))
    assert again.result.to_dict() == study.result.to_dict()


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

    monkeypatch.setattr("truearm.cli.race_runner.measure", measured)
    gate = ["--fail-if-worse-than", "old", "--tolerance", "50%", "--timeout", str(timeout)]
    found = CliRunner().invoke(main, ["race", "old", "new", *gate, *target, "-M", "400", "-q"])
    assert found.exit_code == code, found.output
    said = " ".join(found.output.split())
    assert ("--timeout ends runs before they can be that much worse than old" in said) == (timeout < 1.5)
    assert "time-out" not in next(line for line in found.output.splitlines() if line.startswith("old  "))


def gated(*commands, tolerance="10%", rounds=40):
    """Return the words of a race with a gate on commands that print numbers, and its exit code."""
    words = [part for i, line in enumerate(commands) for part in ("-n", ("old", "a", "b")[i], line)]
    gate = ["--fail-if-worse-than", "old", *(["--tolerance", tolerance] if tolerance else []), "-M", str(rounds)]
    done = CliRunner().invoke(main, ["race", "--metric", "stdout", "--goal", "min", "-i", *words, *gate])
    return " ".join(done.output.split()), done.exit_code


WORSE = "a is worse than old by more than 10%"


@pytest.mark.parametrize(
    ("commands", "options", "code", "said"),
    [
        (["echo 10", "echo 10.4"], {}, 0, "PASS: a is not worse than old by more than 10%. 95% sure, for any"),
        (["echo 10", "echo 9"], {"tolerance": None}, 0, "PASS: a is better than old. 95% sure"),
        (["echo 10", "echo 12"], {}, 1, f"FAIL: {WORSE}. 95% sure, for any"),
        (["echo 10", "echo 9", "echo 12"], {}, 1, "FAIL: b is worse than old by more than 10%."),
        (["echo 10", "echo 9", "echo 10"], {}, 0, "PASS: a and b are not worse than old by more than 10%."),
        (["echo 10", "echo 10.4"], {"rounds": 7}, 3, f"UNSURE: whether {WORSE} is not shown"),
        (["echo 10", "false"], {"rounds": 30}, 3, f"UNSURE: whether {WORSE} is not shown"),
        (["echo 10", "echo 11"], {}, 3, f"UNSURE: whether {WORSE} is not shown"),
        (["echo -1", "echo 2"], {}, 3, "UNSURE: a tolerance in percent needs positive readings; pass it in the"),
        (["echo 10", "echo 10"], {"tolerance": None}, 3, "UNSURE: whether a is worse than old is not shown"),
    ],
)
def test_the_verdict_comes_first(commands, options, code, said):
    text, found = gated(*commands, **options)
    assert text.startswith(said), text
    assert found == code
    assert "looks best" not in text
    assert "No winner" not in text


SWING = "expr 100 + $TRUEARM_ITERATION % 7"


def test_a_gate_that_cannot_be_decided_within_its_budget_ends_early(tmp_path):
    """Rounds are won by turns, so that neither side gets ahead."""
    path = tmp_path / "g.json"
    words = ["race", "--metric", "stdout", "--goal", "min", "-n", "old", SWING, "-n", "a"]
    words += ["expr 100 + '(' $TRUEARM_ITERATION + 3 ')' % 7", "--fail-if-worse-than", "old", "-M", "60"]
    done = CliRunner().invoke(main, [*words, "--export-json", str(path), "--save", str(tmp_path / "g.db")])
    text = " ".join(done.output.split())
    assert done.exit_code == 3
    assert text.startswith("UNSURE: whether a is worse than old is not shown: a is between ")
    assert "Stopped early: at this rate 60 rounds would not show it either." in text
    assert "Interrupted" not in text
    found = json.loads(path.read_text())
    assert found["verdict"] == "UNSURE"
    assert found["pulls"]["total"] < 120
    assert CliRunner().invoke(main, ["verify", str(path)]).exit_code == 0
    assert CliRunner().invoke(main, ["report", str(tmp_path / "g.db")]).output.startswith("UNSURE: whether a is")


def test_a_gate_is_on_the_page_and_in_the_job_of_github(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    page = tmp_path / "g.html"
    words = ["race", "--metric", "stdout", "--goal", "min", "-n", "old", "echo 10", "-n", "a", "echo 12"]
    gate = ["--fail-if-worse-than", "old", "--github-summary", "--export-html", str(page), "-q", "-M", "200"]
    for target in ([], ["--quantile", "0.5"]):
        done = CliRunner().invoke(main, [*words, *gate, *target])
        assert done.exit_code == 1, done.output
        assert "::error title=A gate failed::FAIL: a is worse than old." in done.output
        assert "<title>FAIL: a is worse than old" in page.read_text()
        assert (tmp_path / "summary.md").read_text().lstrip().startswith("FAIL: a is worse than old.")
