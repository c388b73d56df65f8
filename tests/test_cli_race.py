"""`truearm race` through its real entry point, with real commands."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from entry import TRUEARM, is_running, on_terminal, truearm, wait_for
from truearm.claims.certificate import Certificate
from truearm.claims.plain import from_plain
from truearm.store import Store

NUMBERS = ("--metric", "stdout", "--goal", "max", "-n", "low", "echo 1", "-n", "high", "echo 2")


def race(*words, **more):
    return truearm("race", *words, **more)


def test_a_race_in_words_and_in_every_file(tmp_path):
    exports = [f"--export-{kind}={kind}.out" for kind in ("json", "csv", "markdown")]
    summary = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    done = race(*NUMBERS, "--seed", "7", *exports, "--github-summary", "--save", "r.db", cwd=tmp_path, env=summary)
    assert (done.returncode, done.stderr, "\x1b" in done.stdout) == (0, "", False)  # a pipe has no colors
    words = done.stdout.replace("\n", " ")
    assert words.startswith("high is best: 2x the reading of low")
    assert "95% sure, for any disturbance that treats the commands alike, assu" in words
    assert "continue with" not in words  # it is decided
    found = json.loads((tmp_path / "json.out").read_text())
    readings = {arm: [float(x) for x in tape] for arm, tape in found["readings"].items()}
    from_plain(Certificate, found["certificate"]).verify(readings)
    assert (found["status"], found["best"], found["seed"]) == ("certified", "high", 7)
    assert found["machine"]["cpus"] >= 1
    assert [command["shell"] for command in found["commands"]] == [None, None]
    for result in found["results"]:
        assert set(result) >= {"command", "mean", "stddev", "median", "user", "system", "min", "max", "times"}
        assert len(result["times"]) == found["pulls"]["arms"][result["command"]]
        assert set(result["exit_codes"]) == {0}
    rows = list(csv.DictReader((tmp_path / "csv.out").read_text().splitlines()))
    assert list(rows[0])[:8] == ["command", "mean", "stddev", "median", "user", "system", "min", "max"]
    assert {row["command"]: row["standing"] for row in rows} == {"low": "excluded", "high": "best"}
    text = (tmp_path / "markdown.out").read_text()
    assert "| `high` |" in text
    assert text.strip() == (tmp_path / "summary.md").read_text().strip()
    assert "--delta" in race("--resume", "r.db", "--delta", "0.1", cwd=tmp_path).stderr
    assert "remove commands" in race("--resume", "r.db", "true", cwd=tmp_path).stderr
    assert "--resume" in race(*NUMBERS, "--save", "r.db", cwd=tmp_path).stderr


def test_wall_times_are_told_with_units_and_a_speed_up():
    found = race("-n", "quick", "true", "-n", "slow", "sleep 0.05")
    assert found.returncode == 0, found.stderr
    assert re.search(r"^quick is fastest: [\d.]+x faster than slow", found.stdout.replace("\n", " "))
    assert "median [ms]" in found.stdout
    assert "shell" not in found.stdout


def test_the_same_command_with_and_without_shell_syntax_is_measured_alike():
    """Pairs of runs one after the other, so that a load on the machine meets both.

    With a shell for one only, that one was shorter in 3 to 5 of 60 pairs on a busy machine. Alike, either is
    shorter in half of the 60 pairs: fewer than 10 or more than 50 has probability 3e-8.
    """
    document = json.loads(race("-r", "60", "-n", "a", "sleep 0.005;", "-n", "b", "sleep 0.005", "--json").stdout)
    pairs = zip(*document["readings"].values(), strict=True)
    assert 10 <= sum(a < b for a, b in pairs) <= 50
    assert document["shell_cost"] > 0


def test_commands_that_need_no_shell_are_reported_with_its_cost():
    done = race("--shell", "/bin/sh", "-r", "2", "true", "sleep 0.01")
    assert "Commands ran through /bin/sh, which takes about" in done.stdout.replace("\n", " ")


def test_a_scan_has_steps_and_a_value_cannot_break_out():
    found = race("--metric", "stdout", "--goal", "max", "-P", "v", "0", "1", "-D", "0.5", "echo {v}", "--json")
    assert json.loads(found.stdout)["best"] == "v=1"
    attack = race(*NUMBERS[:4], "-L", "v", "1;exit 9,2", "echo {v} | tail -c2", "-i", "-r2")
    assert attack.returncode == 3, attack.stderr


def test_hooks_run_around_runs_and_around_the_race(tmp_path):
    hooks = [f"--{stage}=echo {stage} >> log" for stage in ("setup", "prepare", "conclude", "cleanup")]
    found = race(*NUMBERS, *hooks, "--warmup", "1", "--json", cwd=tmp_path)
    lines = (tmp_path / "log").read_text().split()
    runs = json.loads(found.stdout)["pulls"]["total"]
    assert lines == ["setup", *["prepare", "conclude"] * (runs + 2), "cleanup"]


def test_a_failed_cleanup_keeps_the_result(tmp_path):
    found = race(*NUMBERS, "--cleanup", "sh -c 'exit 5'", cwd=tmp_path)
    assert found.returncode == 0
    assert "cleanup" in found.stderr
    assert "high is best: 2x the reading of low" in found.stdout


def test_a_failed_command_stops_the_race_with_its_own_words():
    found = race("-n", "bad", "sh -c 'echo oops >&2; exit 3'", "true")
    assert found.returncode == 2
    says = r"Error: command .* ended with exit code 3; fix it\noops\nUse -i to count failed runs .*, or -i=3 if"
    assert re.match(says, found.stderr)
    assert "or -i=1,3 if" in race("-i=1", "sh -c 'exit 3'", "sh -c 'exit 1'").stderr


def test_ignored_failures_are_missing_readings_and_strict_refuses_them():
    found = race("-i", "-r", "40", "--strict", "-n", "bad", "false", "-n", "good", "true")
    assert found.returncode == 4
    words = found.stdout.replace("\n", " ")
    assert "40 runs of bad failed or were lost: missing readings, at the worst." in words
    assert "are missing, more than chance explains" in words


@pytest.mark.parametrize(
    ("metric", "goal", "side"),
    [("wall", "min", "inf"), ("cpu", "max", "-inf"), ("memory", "min", "inf"), ("stdout", "max", "-inf")],
)
def test_a_time_out_is_on_the_bad_side_for_every_metric(metric, goal, side):
    words = ("--metric", metric, "--goal", goal, "-r", "2", "--timeout", "0.3")
    document = json.loads(race(*words, "-n", "late", "sleep 9", "-n", "quick", "echo 1", "--json").stdout)
    assert document["readings"]["late"] == [side, side]
    assert all(isinstance(value, float) for value in document["readings"]["quick"])


LATE = ("-n", "quick", "sleep 0.02", "-n", "late", "sleep 9")
ALL_LATE = ("-n", "late", "sleep 9", "-n", "later", "sleep 8")


@pytest.mark.parametrize(
    "words",
    [
        ALL_LATE,
        (*LATE, "--goal", "max"),
        (*LATE, "-u", "second", "--quantile", "0.9"),
        (*LATE, *ALL_LATE[2:], "--control", "late"),
    ],
)
def test_time_outs_are_shown_everywhere(words, tmp_path):
    """One command late, all late, all but one: quantiles are infinite, and there is no ratio to one."""
    exports = [f"--export-{kind}={kind}.out" for kind in ("json", "csv", "markdown", "html")]
    found = race("--timeout", "0.2", "-r", "2", *words, *exports, cwd=tmp_path)
    assert found.returncode == 3, found.stderr
    assert found.stderr == ""
    assert re.search(r"^late +2 +time-out ", found.stdout, re.MULTILINE)
    assert "infinityx" not in found.stdout
    assert "| `late` | 2 | time-out |" in (tmp_path / "markdown.out").read_text()
    rows = {row["command"]: row for row in csv.DictReader((tmp_path / "csv.out").read_text().splitlines())}
    assert (rows["late"]["timed_out"], rows["late"]["median"], rows["late"]["quantile"]) == ("2", "", "")
    late = next(r for r in json.loads((tmp_path / "json.out").read_text())["results"] if r["command"] == "late")
    assert (late["timed_out"], late["median"], late["max"]) == ([True, True], None, None)
    assert "late" in (tmp_path / "html.out").read_text()


@pytest.mark.parametrize(("much", "seconds"), [("5s", 5.0), ("20ms", 0.02), ("0.02", 0.02)])
def test_a_tolerance_is_a_time_with_its_unit(much, seconds):
    commands = ("-n", "old", "sleep 0.001", "-n", "new", "sleep 0.002")
    words = (*commands, "--fail-if-worse-than", "old", "--tolerance", much)
    found = race("-r", "2", *words, "--json")
    assert json.loads(found.stdout)["certificate"]["problem"]["handicap"]["tolerance"]["amount"] == seconds
    told = race("-r", "2", *words).stdout
    assert f"worse than old by more than {1000 * seconds:,g} ms" in " ".join(told.split())


def test_a_run_that_goes_on_beyond_the_time_that_was_asked_for_is_stopped(tmp_path):
    """It has no reading, and what was measured before is kept."""
    words = ("--max-time", "0.5", "-n", "hangs", "sleep 87654", "-n", "quick", "true", "--json", "--save", "r.db")
    found = race(*words, cwd=tmp_path)
    assert found.returncode == 3, found.stderr
    told = json.loads(found.stdout)
    assert (told["status"], told["pulls"]["arms"]["hangs"]) == ("exhausted", 1)
    assert "87654" not in subprocess.run(["ps", "ax"], capture_output=True, text=True, check=True).stdout
    again = race(*words[:-3], cwd=tmp_path)
    assert "a run of hangs was stopped, without a reading; --timeout would count it as slow" in again.words
    assert re.search(r"^No winner after 0\.5 s: .* \d+ runs?, [\d.]+ s\.", again.words)
    for later in (truearm("report", "r.db", cwd=tmp_path), race("--resume", "r.db", "-M", "1", cwd=tmp_path)):
        assert re.search(r"^No winner yet: .* \d+ runs?\. ", later.words)  # the time of all runs is not known


def test_exactly_so_many_runs_are_whole_rounds():
    words = ("-n", "a", "echo 1", "-n", "b", "echo 1", "-n", "c", "echo 2")
    found = json.loads(race("-r", "7", *words, "--json").stdout)
    assert found["pulls"]["arms"] == {"a": 7, "b": 7, "c": 7}
    assert found["target"] == "wins"


def started(*words, cwd):
    return subprocess.Popen(
        [TRUEARM, "race", *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for_readings(path, least, process):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and path.stat().st_size:
            with Store(path) as store:
                if store.created and sum(e.kind == "told" for e in store.events()) >= least:
                    return
        time.sleep(0.02)


def test_a_second_interrupt_ends_the_cleanup_and_says_so(tmp_path):
    words = ("--save", "run.db", "--cleanup", "touch cleaning; sleep 60")
    process = started(*words, "sleep 0.02", "sleep 0.021", cwd=tmp_path)
    wait_for_readings(tmp_path / "run.db", 5, process)
    process.send_signal(signal.SIGINT)
    while not (tmp_path / "cleaning").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert "Interrupted." in out
    assert "Warning: cleanup 'touch cleaning; sleep 60' was interrupted; it may be half done" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_tells_what_is_known(tmp_path, number):
    process = started("--save", "run.db", "sleep 0.02", "sleep 0.021", "--cleanup", "touch cleaned", cwd=tmp_path)
    wait_for_readings(tmp_path / "run.db", 5, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 3, err
    assert "No winner yet" in out
    assert "Interrupted." in out
    assert (tmp_path / "cleaned").exists()


def events_of(path):
    with Store(path) as store:
        return list(store.events())


def kill_and_resume(folder, kills, pause):
    """Kill a race again and again; return the log after each kill, and how many runs had ended by then."""
    logs = []
    random = "sh -c 'echo x >> ran; date +1%N'"  # the same law twice: such a race has no end
    endless = ("--contamination", "none", "--delta", "1e-9", "-n", "a", random, "-n", "b", random)
    words = ("--metric", "stdout", "--goal", "max", *endless, "--save", "run.db")
    for number in range(kills):
        process = started(*words, cwd=folder)
        known = sum(event.kind == "told" for event in logs[-1][0]) if logs else 0
        wait_for_readings(folder / "run.db", known + 2, process)  # the lost run, and a new one
        time.sleep(pause(number))
        assert process.poll() is None
        process.kill()
        process.communicate()
        ran = (folder / "ran").read_text().count("x")
        logs.append((events_of(folder / "run.db"), ran))
        words = ("--resume", "run.db")
    return logs


def check_nothing_is_lost(logs):
    for (before, _), (after, _) in pairwise(logs):
        assert list(map(repr, after[: len(before)])) == list(map(repr, before))  # a NaN equals nothing
    for number, (events, ran) in enumerate(logs):
        good = sum(e.kind == "told" and e.value > 0 for e in events)
        assert ran - good <= number + 1  # one run per kill was in flight


@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_kills_lose_nothing_that_was_acknowledged(tmp_path, kills):
    check_nothing_is_lost(kill_and_resume(tmp_path, kills, lambda number: 0.007 * (number * 13 % 50)))


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}])
def test_a_terminal_sees_the_race_live(env):
    words = ("-r", "30", "-n", "quick", "true", "-n", "slow", "sleep 0.03")
    seen = on_terminal(*words, stream="stderr", COLUMNS="100", **env)
    assert re.search(r"standing +evidence", re.sub(r"\x1b\[[0-9;]*m", "", seen))
    assert re.search(r"about [\d.]+ s left \(an estimate\)", seen)
    assert ("\x1b[1;32m" in seen or "\x1b[2m" in seen) or "NO_COLOR" in env
    assert "\x1b[1;32m" not in seen or "NO_COLOR" not in env


def pids_in(path):
    return [int(word) for word in path.read_text().split()]


def test_a_hang_up_that_is_ignored_stays_ignored(tmp_path):
    words = ["race", "--save", "run.db", "-r", "20", "sleep 0.02", "sleep 0.021"]
    with subprocess.Popen(["nohup", TRUEARM, *words], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        wait_for_readings(tmp_path / "run.db", 5, process)
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=60)
    assert "20 rounds" in out
    assert "Interrupted" not in out


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize(
    "how",
    ["setsid sleep 600 & echo $! >> pids; wait", "setsid -f sh -c 'echo $$ >> pids; exec sleep 600'; sleep 600"],
)
def test_a_time_out_kills_children_in_sessions_of_their_own(tmp_path, how):
    done = race("-r", "2", "--timeout", "0.3", how, "true", cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    pids = pids_in(tmp_path / "pids")
    assert len(pids) == 2
    assert wait_for(lambda: not any(map(is_running, pids)))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_an_interrupt_kills_children_in_sessions_of_their_own(tmp_path):
    setup, line = (f"setsid -f sh -c 'echo $$ > {name}; exec sleep 600'" for name in ("server", "pids"))
    process = started("-s", setup, f"{line}; sleep 600", "true", cwd=tmp_path)
    assert wait_for(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text().strip())
    process.send_signal(signal.SIGQUIT)
    process.communicate(timeout=30)
    assert wait_for(lambda: not any(map(is_running, pids_in(tmp_path / "pids"))))
    [server] = pids_in(tmp_path / "server")
    assert is_running(server)  # a setup may leave a server running
    os.kill(server, signal.SIGKILL)


@pytest.mark.parametrize("second", ["echo 2", "false"])
def test_a_race_is_resumed_as_its_last_words_say(tmp_path, second):
    (tmp_path / "my runs").mkdir()
    first = race("-n", "a", "true", "-n", "b", second, "-r", "2", "--save", "my runs/s.db", cwd=tmp_path)
    says = " ".join((first.stdout + first.stderr).split())
    assert "truearm race --resume 'my runs/s.db'" in says


@pytest.mark.parametrize("runs", [("false", "true"), ("true", "false"), ("false",)])
def test_what_is_known_is_exported_also_if_the_first_run_fails(tmp_path, runs):
    exports = [f"--export-{kind}=x.{kind}" for kind in ("json", "csv", "markdown", "html")]
    done = race("--runs", "1", "--seed", "1", *exports, *runs, cwd=tmp_path)
    assert done.returncode == 2
    assert "command 'false' ended with exit code 1" in done.stderr
    assert all((tmp_path / f"x.{kind}").stat().st_size for kind in ("json", "csv", "markdown", "html"))
    known = json.loads((tmp_path / "x.json").read_text())
    assert set(known["readings"]) == set(runs)


def test_parameters_are_replaced_in_environment_directory_input_and_output(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_text(f"{len(name)}{name == 'two':d}\n")
    where = ("--env", "WHERE={d}", "--cwd", "{d}", "--input", "{d}/data", "--output", "null")
    line = 'sh -c \'read x; test "$(basename "$PWD")" = "$WHERE" && echo $x\''
    done = race("--json", "-L", "d", "one,two", "--metric", "stdout", "--goal", "max", *where, line, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(arm["observed"] for arm in json.loads(done.stdout)["arms"]) == [30, 31]
