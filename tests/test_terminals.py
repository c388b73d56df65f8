"""Hostile names in exports and on terminals; limits on hanging hooks, leftover processes and interrupts."""

import csv
import html
import io
import json
import os
import pty
import random
import re
import select
import signal
import sys
import time

import pytest
from click.testing import CliRunner

from entry import received
from truearm.claims.result import Result
from truearm.cli import main
from truearm.commands.command import Command
from truearm.commands.measure import measure
from truearm.report.export import cell, csv_text, document, json_text
from truearm.report.tables import arm_rows, markdown
from truearm.report.words import PLAIN, summarize
from truearm.run import find_best
from truearm.study import Study

PIECES = (
    *("`", "``", "|", "\\", "\n", "\r", "\t", "\x1b[2J", "\x9b2J", "\x7f", "\u202e", "\u2028"),
    *("<b>", "</code>", "&lt;"),
    *("=", "+", "-", "@", "*", "_", "[x](y)", "#", " ", "  ", "a", "b", "1", ";", ",", '"', "'", "$x$", "~~"),
)


def names(seed, cases):
    rng = random.Random(seed)
    return ["".join(rng.choices(PIECES, k=rng.randrange(1, 6))) + str(i) for i in range(cases)]


def result_of(arms):
    study = Study(arms, max_pulls=len(arms))
    for pull in study.ask(len(arms)):
        study.tell(pull, 1.0)
    study.stop()
    assert isinstance(study.result, Result)
    return study.result, study.readings


def is_quiet(text):
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]", text)


def shown_in_markdown(written):
    """Return the name that a cell of a GitHub table shows as code: the rules of the format, in a few lines."""
    if written.startswith("<code>"):
        inside = written.removeprefix("<code>").removesuffix("</code>")
        assert not re.search(r"[`|<>\\*_\[\]~$]", inside)
        return html.unescape(inside)
    assert written[0] == written[-1] == "`"
    inside = written[1:-1]
    assert "`" not in inside
    assert not re.search(r"(?<!\\)\||\\\\\|", inside)
    return inside.replace("\\|", "|")


def check_names(arms):
    result, tapes = result_of(arms)
    table = markdown(arm_rows(result, PLAIN), summarize(result).replace("\n", " "))
    lines = table.split("\n")[2:][2:]
    assert is_quiet(table)
    assert len(lines) == len(arms)
    for line, row in zip(lines, arm_rows(result, PLAIN)[1:], strict=True):
        assert shown_in_markdown(line.removeprefix("| ").partition(" | 1 | ")[0]) == row[0]
    text = csv_text(result, [])
    assert is_quiet(text)
    found = list(csv.reader(io.StringIO(text)))
    assert len(found) == len(arms) + 1
    assert not any(re.match(r"\s*[=+@-]", row[0]) for row in found if not re.fullmatch(r"[-+]?\d+", row[0]))
    written = json_text(document(result, tapes))
    assert is_quiet(written)
    assert json.loads(written)["pulls"]["arms"].keys() == set(arms)


@pytest.mark.parametrize("seeds", [range(1, 2), pytest.param(range(40), marks=pytest.mark.slow)])
def test_names_stay_in_their_cells(seeds):
    for seed in seeds:
        check_names(names(seed, 60))


def test_numbers_stay_numbers_in_csv():
    assert [cell(x) for x in (-1.5, "-1.5", "+2", "-1e3", None)] == [-1.5, "-1.5", "+2", "-1e3", None]
    assert [cell(x) for x in ("-x", "+1+1", "@a", " =1", "\uff1d1")] == ["'-x", "'+1+1", "'@a", "' =1", "'\uff1d1"]


@pytest.mark.parametrize("how", [(), ("--json",), ("--csv",), ("--markdown",)])
def test_no_name_reaches_a_terminal_raw(how, tmp_path):
    log = str(tmp_path / "x.db")
    arms = ("a\x1b[2J", "b\x9b2J", "c\rd", "e\u202ef")
    find_best({arm: lambda: 1.0 for arm in arms}, max_pulls=8, store=log, progress=False)
    for words in (("report", log, *how), ("report", "x\x1b[2J.db"), ("analyze", "x\x9b2J.csv")):
        shown = CliRunner().invoke(main, list(words)).output
        assert is_quiet(shown.replace("\t", " ")), words


@pytest.mark.parametrize(
    ("hook", "says"), [("-s", "give it more time, or run it before the race"), ("-p", "0.1 s"), ("-C", "0.1 s")]
)
def test_a_race_whose_hook_hangs_ends_with_an_error(hook, says):
    found = CliRunner().invoke(main, ["race", "--timeout", "0.1", hook, "sleep 60", "-r", "2", "true", "echo"])
    assert (found.exit_code, says in found.output) == (2, True)


def test_processes_left_behind_are_reported():
    assert measure(Command("sleep 1 & true")).run.left_behind
    if sys.platform == "linux":  # in a session of its own
        assert measure(Command("setsid -f sleep 1; sleep 0.1")).run.left_behind
    assert not measure(Command("sleep 0.01 & wait")).run.left_behind
    found = CliRunner().invoke(main, ["race", "-r", "2", "sleep 1 & true", "echo"])
    assert "2 runs of sleep 1 & true left processes running" in " ".join(found.stdout.split())


def start_on_terminal(words):
    """Start a command on a terminal of its own; return its process id and the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm", "COLUMNS": "50"}  # too narrow for all columns
        os.execv(sys.executable, [sys.executable, "-m", "truearm.cli", *words])
    return pid, terminal


def cursor_after(words, wait, requests):
    """Run a race on a terminal, ask it to end some time after it hid the cursor, and return what it wrote."""
    pid, terminal = start_on_terminal(words)
    written, hidden, sent, deadline = b"", None, 0, time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.001)[0]:
            try:
                written += os.read(terminal, 1 << 16)
            except OSError:
                break
        if hidden is None and b"\x1b[?25l" in written:
            hidden = time.monotonic()
        if hidden is not None and sent < len(requests) and time.monotonic() >= hidden + wait + 0.003 * sent:
            os.kill(pid, requests[sent])
            sent += 1
    os.close(terminal)
    os.waitpid(pid, 0)
    return written


def check_cursor(seed, cases):
    rng = random.Random(seed)
    for _ in range(cases):
        wait = rng.choice([0.0, rng.random() * 0.02, rng.random() * 0.3])
        number = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
        requests = [number] * rng.choice([1, 1, 2])
        written = cursor_after(("race", "sleep 0.002", "sleep 0.0021"), wait, requests)
        assert written.rfind(b"\x1b[?25h") > written.rfind(b"\x1b[?25l"), (wait, requests, written[-300:])
        assert b"Traceback" not in written, written[-500:]


def test_a_terminal_says_early_that_commands_are_nearly_equal():
    """Each command wins every other round, by one in a hundred: the line comes up while the race goes on."""
    one, other = (f"echo $((100 + (TRUEARM_ITERATION + {i}) % 2))" for i in range(2))
    limits = ("--contamination", "5%", "--max-time", "60")
    words = ("race", "--metric", "stdout", "--goal", "min", *limits, "-n", "one", one, "-n", "other", other)
    pid, terminal = start_on_terminal(words)
    written = b""
    while b"nearly equal" not in written:
        try:
            written += os.read(terminal, 1 << 16)
        except OSError:  # it ended
            break
    os.kill(pid, signal.SIGINT)
    received(terminal)
    os.waitpid(pid, 0)
    shown = " ".join(re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", written).decode(errors="replace").split())
    assert re.search(r"one and other are nearly equal|other and one are nearly equal", shown)
    assert "Ctrl-C to stop" in shown
    assert "…" not in shown  # numbers are never cut


@pytest.mark.parametrize(("seed", "cases"), [(1, 2), pytest.param(2, 120, marks=pytest.mark.slow)])
def test_the_cursor_comes_back_after_an_interrupt(seed, cases):
    check_cursor(seed, cases)
