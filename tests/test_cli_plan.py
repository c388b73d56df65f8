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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--contamination", "none"], "a plan needs a share of bad readings"),
        (["--arms", 3, "--gap", 1, "--gap", 1, "--gap", 1], "--gap must be one number or 2 of them"),
        (["--gap", "5%"], "--gap 5% is a ratio, but the family has unit scale; write --gap 0.05 for"),
        (["--tolerance", "2%"], "--tolerance 2% is relative; a plan needs units of the readings"),
        (["--contamination", 5], "write 5% or 0.05"),
        (["--contamination", "malicious:0.5"], "write 0.5:malicious"),
        (["--contamination", "malicious"], "write 0.05:malicious"),
        (["--plot", "no-such-folder/p.png"], "the folder 'no-such-folder' does not exist"),
        (["--pilot", "pilot.csv", "--arms", 3], "--arms and --pilot exclude each other"),
        (["--pilot", "pilot.csv", "--gap", 3], "--gap and --pilot exclude each other"),
        (["--pilot", "pilot.csv", "--family", "gaussian"], "--family and --pilot exclude each other"),
        (["--family", "poisson"], "is not one of"),
        (["--share", 0.6, "--gap", 0.7], "--gap must be at most the share of the best arm, 0.6, but got 0.7"),
        (["--gap", -1], "Error: --gap must be positive"),
        (["--arms", "five"], "must be a whole number from 2 to 1000, but got 'five'"),
        (["--arms", 1], "must be a whole number from 2 to 1000, but got '1'"),
        (["--between", 1, 2], "--between needs the readings of a pilot"),
        (["--at-least", 3], "--at-least 3 needs the readings of a pilot"),
        (["--at-least", "x"], "'x' is not a valid float"),
        (["--decimal", ","], "--decimal says how a pilot file is read; give one with --pilot FILE"),
    ],
)
def test_mistakes_end_with_two(words, message):
    ended = truearm("plan", *words)
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.split())


def test_a_pilot_leaves_the_papers_algorithms_no_part(tmp_path):
    (tmp_path / "pilot.json").write_text(json.dumps({"A": [1, 2, 3, 4], "B": [1, 1, 1, 1]}))
    told = " ".join(truearm("plan", "--pilot", tmp_path / "pilot.json").stdout.split())
    assert "The paper's Algorithms 1 and 3 need to know how regular the laws are" in told
    assert told.count("Algorithm") == 1  # no rows of a table that say nothing


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


def test_of_times_that_a_tool_exported_less_is_better(tmp_path):
    times = {"slow": 1.0, "middle": 0.6, "fast": 0.5}
    results = [{"command": name, "times": [x + i / 1000 for i in range(40)]} for name, x in times.items()]
    (tmp_path / "h.json").write_text(json.dumps({"results": results}))
    found = json.loads(truearm("plan", "--pilot", tmp_path / "h.json", "--json").stdout)
    assert sorted(found["gaps"]) == pytest.approx([0.1, 0.5])


def test_shares_and_gaps_may_be_percentages():
    words = ("plan", "--arms", 3)
    assert (
        truearm(*words, "--gap", "20%", "--share", "60%").stdout
        == truearm(*words, "--gap", 0.2, "--share", 0.6).stdout
    )
    assert "for 60 percent write 60%" in truearm(*words, "--share", "60").stderr
