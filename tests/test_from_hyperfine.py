"""Options of hyperfine mean the same here, or the message explains why not. Real commands."""

import os
import re
from functools import partial
from pathlib import Path

import pytest

import truearm as ta
from entry import truearm
from truearm.verification import verify

NUMBERS = ("--metric", "stdout", "--goal", "max")


@pytest.fixture
def race(tmp_path, monkeypatch):
    """Run `truearm race` in an empty folder, in this process: the commands are processes, and starts are quick."""
    monkeypatch.chdir(tmp_path)
    return partial(truearm, "race")


def log_of(name="log"):
    return Path(name).read_text().splitlines()


def names(found):
    return [command["name"] for command in found.json["commands"]]


def test_values_reach_a_command_as_typed(race):
    found = race(*NUMBERS, "-r1", "--json", "-L", "cmd", "echo 1,printf '%s' 2,expr 1 + 2", "{cmd}")
    assert list(found.json["readings"].values()) == [[1.0], [2.0], [3.0]]
    found = race(*NUMBERS, "-r1", "--json", "-L", "cmd", "echo 1,echo 9 | tail -c2", "{cmd}")
    assert list(found.json["readings"].values()) == [[1.0], [9.0]]
    assert {command["shell"] for command in found.json["commands"]} == {"/bin/sh"}  # one for all


def test_combinations_come_in_the_order_of_hyperfine(race):
    found = race("-r1", "--json", "-L", "a", "1,2", "-L", "b", "x,y", "echo {a} {b}", "printf {a}{b}")
    assert names(found) == [
        *("echo 1 x", "printf 1x", "echo 2 x", "printf 2x"),
        *("echo 1 y", "printf 1y", "echo 2 y", "printf 2y"),
    ]
    found = race("-r1", "--json", "-L", "a", "1,2", "-n", "one", "-n", "two", "echo {a}")
    assert names(found) == ["one", "two"]
    assert [command["command"] for command in found.json["commands"]] == ["echo 1", "echo 2"]


@pytest.mark.parametrize("kind", ["json", "csv", "markdown", "html"])
def test_an_export_to_standard_output_is_alone_there(race, kind):
    found = race(*NUMBERS, "-r1", f"--export-{kind}", "-", "-n", "a", "echo 1", "-n", "b", "echo 2")
    begins = {"json": "{", "csv": "command,mean", "markdown": "No winner yet", "html": "<!doctype html>"}
    assert found.stdout.lower().startswith(begins[kind].lower())
    assert "No winner yet" in found.stderr  # what is for people
    assert not Path("-").exists()


def test_each_command_has_an_output_of_its_own_by_a_parameter(race):
    race("-r1", "--output", "{v}.txt", "-L", "v", "1,2", "echo {v}")
    assert (log_of("1.txt"), log_of("2.txt")) == (["1"], ["2"])


def test_show_output_shows_it(race, capfd):
    race("-r1", "--show-output", "echo visible", "sh -c 'echo warned >&2'")
    shown = capfd.readouterr()
    assert "visible" in shown.out
    assert "warned" in shown.err
    assert "--show-output" in race("--show-output", "--output", "null", "true", "echo").stderr


def test_named_exit_codes_are_no_failures(race):
    found = race("-i=3,1", "-r3", "--json", "-n", "a", "false", "-n", "b", "sh -c 'exit 3'")
    assert all(isinstance(x, float) and x > 0 for tape in found.json["readings"].values() for x in tape)
    assert {code for result in found.json["results"] for code in result["exit_codes"]} == {1, 3}


@pytest.mark.parametrize("given", ["-i=1", "--ignore-failure=1"])
def test_other_exit_codes_still_stop(race, given):
    found = race(given, "-r3", "true", "sh -c 'echo why >&2; exit 4'")
    assert found.returncode == 2
    assert "exit code 4" in found.stderr
    assert "why" in found.stderr


@pytest.mark.parametrize(
    ("line", "says"), [("no-such-program-1 | cat; exit 127", "not found"), ("./plain;", "ermission denied")]
)
def test_a_command_that_was_not_found_or_not_run_stops_whatever_is_ignored(race, line, says):
    Path("plain").write_text("")
    found = race("-i", "-r3", "true", line)
    assert found.returncode == 2
    assert says in found.stderr
    assert "-i=12" in found.stderr


def test_every_run_knows_its_number(race):
    hook = "echo p $TRUEARM_ITERATION >> log"
    race("-w1", "-r2", "-p", hook, "-n", "a", "echo a $TRUEARM_ITERATION >> log", "-n", "b", "true")
    assert [line for line in log_of() if line[0] == "a"] == ["a warmup-0", "a 0", "a 1"]
    assert sorted(line for line in log_of() if line[0] == "p") == sorted(
        ["p warmup-0", "p 0", "p 1"] * 2  # before the runs of either command
    )


def test_every_run_has_an_environment_of_random_length(race):
    """30 lengths of 4,096: that fewer than 25 differ has a chance below one in a million."""
    race("-r30", "-n", "a", "env > a.$TRUEARM_ITERATION", "-n", "b", "true")
    sizes = [Path(f"a.{i}").stat().st_size for i in range(30)]
    assert len(set(sizes)) >= 25
    assert max(sizes) - min(sizes) <= 4096 + 2  # and the digits of the number of the run
    assert "TRUEARM_PAD" not in os.environ
    note = "import os; open('pads', 'a').write(str(len(os.environ['TRUEARM_PAD'])) + ' ')"
    ta.time({"a": "sum(range(99))", "b": "sum(range(999))"}, setup=note, runs=4, progress=False)
    assert len(set(Path("pads").read_text().split())) >= 6


def test_every_run_may_follow_an_unmeasured_run_of_the_same_command(race):
    lines = [part for arm in "ab" for part in ("-n", arm, f"echo {arm} $TRUEARM_ITERATION >> log")]
    race("-r3", "--warmup-every-run", *lines)
    runs = [tuple(line.split()) for line in log_of()]
    assert len(runs) == 12
    assert all(one == (arm, f"warmup-{i}") for one, (arm, i) in zip(runs[::2], runs[1::2], strict=True))


def test_mean_and_range_are_shown_with_v(race):
    words = (*NUMBERS, "-r3", "-n", "a", "echo 1", "-n", "b", "echo 2")
    assert "mean" not in race(*words).stdout
    found = race("-v", *words)
    heading = r"^command +mean +deviation +MAD +min +max +user \[ms\] +system$"
    assert re.search(heading, found.stdout, re.MULTILINE)
    assert re.search(r"^a +1 +0 +0 +1 +1 ", found.stdout, re.MULTILINE)
    assert "- A round measures all arms that are left once each, side by side" in found.words


def test_commands_that_always_measure_the_same_tie(race):
    found = race(*NUMBERS, "-n", "a", "echo 1", "-n", "b", "echo 1", "-n", "c", "echo 0")
    assert found.returncode == 3
    assert found.words.startswith("a and b tie: they measured the same in each of ")
    assert re.search(r"in each of \d+ rounds.*\. More runs would not show which is best \(95% sure", found.words)
    assert len(re.findall(r"^[ab] .* tied$", found.stdout, re.MULTILINE)) == 2


def test_nothing_shown_of_a_command_that_is_excluded_includes_equality(race):
    """Three commands, just enough rounds: an interval that holds for all pairs at once still includes 1."""
    found = race(*NUMBERS, "-n", "a", "echo 2", "-n", "b", "echo 1", "-n", "c", "echo 1.99")
    assert found.returncode == 0
    assert re.search(r"^c .* 0\.995 \((at most|[\d.]+ to) 0\.995\) +excluded$", found.stdout, re.MULTILINE)
    assert re.search(r"^b .* 0\.5 \((at most|[\d.]+ to) 0\.5\) +excluded$", found.stdout, re.MULTILINE)


# One command alone. What it prints depends on the number of the run alone, and looks random.
NOISE = "sh -c 'echo $TRUEARM_ITERATION | cksum | cut -c1-3'"
ALONE = ("--metric", "stdout", "--goal", "min", "-n", "noise", NOISE)


def test_one_command_alone_has_a_median_an_interval_and_a_spread(race):
    found = race("-r", "60", *ALONE)
    assert found.returncode == 0
    assert re.match(
        r"noise: observed median \d+, true median between \d+ and \d+\. 95% sure, assuming each run has at most "
        r"a 5% chance of being bad and the number of runs was fixed in advance\. 60 runs, ",
        found.words,
    )
    assert "standing" not in found.stdout
    assert "seed" not in found.stdout


def test_the_interval_of_one_command_is_the_one_for_how_it_stopped(race):
    """Of a number fixed in advance the interval is narrower, and only then is it right."""
    fixed = race("-r", "60", "--json", *ALONE)
    stopped = race("-r", "60", "--max-time", "1h", "--json", *ALONE)  # a clock may end it early
    assert fixed.json["readings"] == stopped.json["readings"]
    assert (fixed.json["design"], stopped.json["design"]) == ("fixed", "sequential")
    (narrow,), (wide,) = fixed.json["arms"], stopped.json["arms"]
    assert wide["low"] <= narrow["low"] <= narrow["high"] <= wide["high"]
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]
    assert verify(fixed.json)
    assert verify(stopped.json)


def test_one_command_ends_by_itself_once_its_interval_has_two_ends(race, monkeypatch):
    monkeypatch.setattr("truearm.cli.race_runner.MIN_ALONE_S", 0.0)
    found = race("--json", *ALONE)
    (arm,) = found.json["arms"]
    assert (found.returncode, found.json["design"]) == (0, "sequential")
    assert None not in (arm["low"], arm["high"])
    assert arm["n"] < 100


@pytest.mark.parametrize("words", [("-i", "false"), ("--timeout", "0.01", "sleep 1")])
def test_one_command_that_always_fails_or_is_late_ends_soon_too(race, monkeypatch, words):
    monkeypatch.setattr("truearm.cli.race_runner.MIN_ALONE_S", 0.0)
    assert "has no median: half or more of 16 runs failed, got lost or timed out." in race(*words).words


def test_a_tolerance_says_how_well_one_command_is_to_be_known(race):
    found = race("--tolerance", "60%", "--json", *ALONE)
    (arm,) = found.json["arms"]
    assert found.returncode == 0
    assert max(arm["high"] - arm["observed"], arm["observed"] - arm["low"]) <= 0.6 * arm["observed"]
    assert race("--tolerance", "1", "-M", "40", *ALONE).returncode == 3


def test_outliers_of_one_command_are_noted(race):
    line = "sh -c 'test $TRUEARM_ITERATION = 0 && echo 9999 || echo 1.$TRUEARM_ITERATION'"
    found = race("--metric", "stdout", "--goal", "min", "-r", "20", line)
    assert (
        "1 run of 20 lies more than ten robust standard deviations from the median, the farthest 9,999"
        in found.words
    )
    assert "The first run is one of them: -w 1 leaves it out." in found.words
