"""`truearm time`: what a user of timeit types, and what comes back."""

import json
import re
import signal
import sys

import pytest
from click.testing import CliRunner

from entry import interrupt_starts, truearm
from truearm.cli import main
from truearm.commands.python import FreshTimer

SETUP = ("-s", "x = list(range(500))")
PAIR = ("-n", "loop", "t = 0\nfor v in x: t += v", "-n", "built in", "sum(x)")


def run(*words):
    return CliRunner().invoke(main, ["time", *words])


def test_an_interrupt_while_a_process_starts_leaves_none_behind(monkeypatch):
    started = interrupt_starts(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        FreshTimer(text="import time; time.sleep(60)", loops=1)()
    assert started[0].returncode == -signal.SIGKILL


def test_the_document_tells_how_it_was_timed_and_can_be_verified(tmp_path):
    done = run(*PAIR, *SETUP, "--contamination", "0", "--json", "--export-html", str(tmp_path / "page.html"))
    told = json.loads(done.output)
    assert told["best"] == "built in"
    assert (told["unit"], told["conditions"]["process"]) == ("second", "fresh")
    assert told["conditions"]["statements"] == {"loop": PAIR[2], "built in": "sum(x)"}
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    (tmp_path / "r.json").write_text(done.output)
    checked = CliRunner().invoke(main, ["verify", str(tmp_path / "r.json")])
    assert checked.exit_code == 0, checked.output


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (("sum(x)", "-s", "x = range(3)", "-r", "12", "--contamination", "none", "-v"), 0, (" ns, true median ",)),
        (("1", "-r", "2"), 0, ("-r 30 would",)),
        (("pass", "1", "-r", "2", "-q"), 3, ("No winner yet",)),
        (("1", "2", "--delta", "1e-9", "--max-time", "0.5"), 3, ("No winner after 0.5 s: ",)),
    ],
)
def test_a_number_of_runs_may_or_may_not_do(words, code, parts):
    done = run(*words)
    assert done.exit_code == code
    assert all(part in done.output.replace("\n", " ") for part in (*parts, words[0]))


def test_interpreters_are_compared():
    done = run("pass", "--python", sys.executable, "--python", "python3", "-r", "1")
    assert done.exit_code == 3, done.output
    assert re.search("^statement  +runs .*\n.*\npython3  ", done.output, re.MULTILINE)


def test_a_statement_that_fails_after_it_was_calibrated_is_named_too(tmp_path):
    runs = tmp_path / "runs"
    runs.write_text("")
    fails = f"with open({str(runs)!r}, 'r+') as f:\n  n = len(f.read()); f.write('x')\n  if n > 2000: 1 / 0"
    done = run("pass", fails)
    assert done.exit_code == 2
    assert done.output.startswith("Error: statement ")
    assert "failed: ZeroDivisionError: division by zero" in done.output


def test_modules_beside_the_user_are_found(tmp_path):
    (tmp_path / "mine.py").write_text("def f(): return 1\n")
    done = truearm("time", "mine.f()", "-s", "import mine", "-r", 1, cwd=tmp_path)
    assert done.stdout.startswith("mine.f(): observed median "), done.stderr
