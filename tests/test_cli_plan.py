import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TRUEARM = Path(sys.executable).with_name("truearm")


def truearm(*words):
    command = [str(TRUEARM), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_plan_in_words_and_tables():
    ended = truearm("plan", "--arms", 2, "--gap", 0.5, "--contamination", 0.05)
    told = " ".join(ended.stdout.split())
    assert ended.returncode == 0
    assert "2 arms can be told apart at 5 % contamination" in told
    assert "687 in the second" in told  # evidence section 5: G2 certified, 259.22 kl(.05, .95)
    assert "Algorithm 3" in told


def test_what_cannot_be_decided_ends_with_three():
    ended = truearm("plan", "--arms", 2, "--gap", 0.05, "--contamination", "10%", "--json")
    found = json.loads(ended.stdout)
    assert ended.returncode == 3
    assert found["identifiable"] is False
    assert found["clean"]["lower_bound"] is None


def test_a_plan_from_pilot_data(tmp_path):
    rng = np.random.default_rng(0)
    pilot = {"A": rng.normal(1, size=80).tolist(), "B": rng.normal(0, size=80).tolist()}
    (tmp_path / "pilot.json").write_text(json.dumps(pilot))
    ended = truearm("plan", "--pilot", tmp_path / "pilot.json", "--json")
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["family"], found["arms"]) == (0, "pilot data", 2)
    assert found["algorithm1"] == {"paper": None, "sharp": None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--contamination", "none"], "a plan needs a share of bad readings"),
        (["--arms", 3, "--gap", 1, "--gap", 1, "--gap", 1], "gap must be one number or 2 of them"),
        (["--tolerance", "2%"], "must be absolute"),
        (["--family", "poisson"], "is not one of"),
    ],
)
def test_mistakes_end_with_two(words, message):
    ended = truearm("plan", *words)
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.split())


def test_a_plan_as_a_picture(tmp_path):
    ended = truearm("plan", "--arms", 2, "--plot", tmp_path / "plan.png")
    assert ended.returncode == 0
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_an_unknown_kind_is_refused(tmp_path):
    ended = truearm("plan", "--arms", 2, "--plot", tmp_path / "plan.docx")
    assert ended.returncode == 2
    assert ".png" in ended.stderr
