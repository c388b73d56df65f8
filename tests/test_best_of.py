"""`race --best-of N`: the reading of a command in a round is its best of N runs (extensions R5)."""

import json

import numpy as np
import pytest

from entry import truearm
from statistical.promise import kept, power
from truearm import Study

COUNT = "n=$(cat {0} 2>/dev/null || echo 0); echo $((n + 1)) > {0}; "  # how often this command has run


def test_the_reading_is_the_best_run_and_limits_count_runs(tmp_path):
    """Every second run of `a` prints 9 instead of 1, `b` always prints 2: a wins by its best of two runs."""
    runs = tmp_path / "runs"
    a = COUNT.format(runs) + "echo $((1 + 8 * (n % 2)))"
    save, out = tmp_path / "race.db", tmp_path / "out.json"
    words = ["--metric", "stdout", "--goal", "min", "--best-of", "2", "-M", "40"]
    words += ["-n", "a", a, "-n", "b", "echo 2"]
    done = truearm("race", "-q", "--json", *words, "--save", save, "--export-json", out)
    found = json.loads(done.stdout)
    assert (done.returncode, found["best"], found["conditions"]["best_of"]) == (0, "a", 2)
    assert set(found["readings"]["a"]) == {1.0}
    assert int(runs.read_text()) == 2 * found["pulls"]["arms"]["a"] <= 40
    assert truearm("verify", out).returncode == truearm("verify", save).returncode == 0
    assert "each the best of 2 runs" in truearm("race", "--resume", save, "-q").stdout


@pytest.mark.statistical
def test_equal_commands_on_a_machine_that_reacts_to_all_but_labels():
    """The machine reacts to the slot, the time and past runs. Power against 3 times delta: above 0.99."""
    races, delta = 150, 0.2
    assert power(races, delta) > 0.99
    assert kept([_is_named(np.random.default_rng([5, i]), delta) for i in range(races)], delta)


def _is_named(rng, delta, rounds=60, runs=3):
    study = Study(["a", "b"], rounds=True, goal="min", max_pulls=2 * rounds, delta=delta)
    past = [1.0, 1.0]
    while pulls := study.ask():
        best = {pull.ticket: np.inf for pull in pulls}
        for _ in range(runs):
            for place in rng.permutation(len(pulls)):
                slot = len(past)
                slow = 0.2 * (slot % 2) + 0.3 * (slot % 10 < 5) + 0.1 * (past[-2] > past[-1])
                past.append(float(np.exp(slow + rng.normal(0, 0.03))))
                best[pulls[place].ticket] = min(best[pulls[place].ticket], past[-1])
        for pull in pulls:
            study.tell(pull, best[pull.ticket])
    return study.result.best is not None
