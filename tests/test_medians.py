"""One median and one leader everywhere: the arm that looks best has the best median shown."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from truearm import Study, analyze
from truearm.cli import main


@pytest.mark.parametrize("goal", ["min", "max"])
@pytest.mark.parametrize("rounds", [True, False])
def test_the_arm_that_looks_best_after_two_pulls_of_each_has_the_best_median(goal, rounds):
    best = min if goal == "min" else max
    for seed in range(40):
        rng, study = np.random.default_rng(seed), Study(["A", "B"], goal=goal, rounds=rounds, max_pulls=4)
        while pulls := study.ask():
            for pull in pulls:
                study.tell(pull, float(rng.exponential()))
        found = study.result
        assert found.leader == best(found.arms, key=lambda arm: arm.observed).name
        frame = {arm: np.array(tape) for arm, tape in found.readings.items()}
        ranking = analyze(frame, goal=goal, round="rows" if rounds else None).ranking
        assert ranking[0] == found.leader


def test_screen_json_and_the_list_of_hyperfine_show_the_same_median(tmp_path):
    runner, file = CliRunner(), str(tmp_path / "r.json")
    for _ in range(3):
        found = runner.invoke(main, ["race", "-r", "2", "-q", "--export-json", file, "true", "echo"])
        data = json.loads((tmp_path / "r.json").read_text())
        medians = {arm["name"]: arm["observed"] for arm in data["arms"]}
        assert {one["command"]: one["median"] for one in data["results"]} == pytest.approx(medians), found.output
        assert data["leader"] in (None, min(medians, key=medians.get))
