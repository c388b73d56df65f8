"""`truearm simulate`: instances and policies in, a table out."""

import json

from entry import truearm

SMALL = ("simulate", "D2", "--replications", 4)


def test_instances_are_listed():
    for words in (("--list",), ()):
        assert "G5 " in truearm("simulate", *words).stdout


def test_a_simulation_becomes_a_table():
    ended = truearm(*SMALL, "--attack", "worst", "--contamination", "2%", "--policy", "toptwo", "--policy", "lucb")
    assert ended.returncode == 0, ended.stderr
    rows = [line.split()[:2] for line in ended.stdout.splitlines()]
    assert rows == [["instance", "policy"], ["D2", "toptwo"], ["D2", "lucb"]]


def test_a_policy_that_needs_to_know_the_arms_is_refused_before_any_run():
    ended = truearm(*SMALL, "--policy", "elimination")
    assert (ended.returncode, "'toptwo', 'lucb'" in ended.stderr, "4 runs" in ended.stderr) == (2, True, False)


def test_json_is_the_same_for_two_workers():
    found = [json.loads(truearm(*SMALL, "--json", "--workers", n, "--contamination", 0).stdout) for n in (1, 2)]
    for [row] in found:
        assert row.pop("ms_per_run") > 0
        assert (row["errors"], row["answered"], row["runs"]) == (0, 4, 4)
        assert row["pulls"] > row["limit"] > 0
    assert found[0] == found[1]
