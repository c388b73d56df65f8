import json

import numpy as np
import pytest

from entry import truearm


def test_a_plan_in_words_and_tables():
    ended = truearm("plan", "--arms", 2, "--gap", 0.5, "--contamination", 0.05)
    told = " ".join(ended.stdout.split())
    assert ended.returncode == 0
    assert told.startswith("About ")
    assert "pulls tell 2 arms apart at 5% contamination" in told
    assert "687 in the second" in told  # evidence section 5: G2 certified, 259.22 kl(.05, .95)
    assert "Algorithm 3: sharp, printed" in told


def test_a_plan_says_what_nobody_told_it():
    gap, law = "a gap of 0.5 between the best arm and every other", "gaussian readings of unit scale"
    for words, assumed in (
        ((), f"This assumes {gap} and {law}; change it with --gap, --family or --pilot FILE."),
        (("--gap", 0.5), f"This assumes {law}; change it with --family or --pilot FILE."),
        (("--share", 0.6), f"This assumes {gap}; change it with --gap or --pilot FILE."),
    ):
        assert assumed in " ".join(truearm("plan", *words).stdout.split())
    assert "assumes" not in truearm("plan", "--gap", 0.5, "--family", "gaussian").stdout


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


def test_a_plan_as_a_picture(tmp_path):
    ended = truearm("plan", "--arms", 2, "--plot", tmp_path / "plan.png")
    assert ended.returncode == 0
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_a_pilot_is_read_as_everyday_files_are(tmp_path):
    rng = np.random.default_rng(1)
    rows = [
        f"{arm};{user};{rng.normal(k, 0.3):.3f}".replace(".", ",")
        for user in range(60)
        for k, arm in enumerate("AB")
    ]
    (tmp_path / "p.dat").write_text("\n".join(["arm;user;x", *rows, *rows]))
    columns = ("--pilot", tmp_path / "p.dat", "--arm", "arm", "--value", "x", "--json")
    ended = truearm("plan", *columns, "--kind", "csv", "--decimal", ",", "--unit", "user")
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["arms"]) == (0, 2)
    assert found["gaps"][0] == pytest.approx(1, abs=0.2)


def test_a_pilot_of_run_times_compares_lowest_medians(tmp_path):
    times = {"slow": 1.0, "middle": 0.6, "fast": 0.5}
    results = [{"command": name, "times": [x + i / 1000 for i in range(40)]} for name, x in times.items()]
    (tmp_path / "h.json").write_text(json.dumps({"results": results}))
    found = json.loads(truearm("plan", "--pilot", tmp_path / "h.json", "--json").stdout)
    assert sorted(found["gaps"]) == pytest.approx([0.1, 0.5])
