"""What a race looks like on a terminal: it fits, the answer stands first, colors mean something."""

import io
import os
import re
import subprocess
import sys

import pytest

from entry import received
from truearm.cli.live import Board
from truearm.cli.saved import Race
from truearm.commands.terminal import bar
from truearm.report.tables import table
from truearm.study import Study

WORDS = ("--metric", "stdout", "--goal", "min", "-n", "a-longer-name", "echo 1", "-n", "b", "echo 1.5")


def on_a_terminal(*words, **env):
    """Run a race whose standard output is a terminal, and return what that terminal received."""
    ours, theirs = os.openpty()
    told = {**os.environ, "TERM": "xterm", "PYTHONUTF8": "1", **env}
    told.pop("NO_COLOR", None) if "NO_COLOR" not in env else None
    with subprocess.Popen(
        [sys.executable, "-m", "truearm", "race", "-q", *words], stdout=theirs, stderr=subprocess.PIPE, env=told
    ) as process:
        os.close(theirs)
        seen = received(ours)
        assert process.wait(60) == 0
    return seen.replace("\r\n", "\n")


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_the_answer_stands_first_and_everything_fits(columns):
    seen = on_a_terminal(*WORDS, COLUMNS=str(columns))
    assert seen.startswith("\x1b[32m\x1b[1ma-longer-name is best")
    lines = plain(seen).split("\n")
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("95% sure") for line in lines)
    assert ("●" in seen) == (columns >= 80)
    assert re.search(r"\x1b\[2mb .*excluded", seen)  # dim: out of the race
    assert re.search(r"\x1b\[32m\x1b\[1ma-longer-name .* best", seen)


def test_without_colors_the_words_are_the_same():
    seen = on_a_terminal(*WORDS, COLUMNS="140", NO_COLOR="1")
    assert "\x1b" not in seen
    assert "●" in seen


class Terminal(io.StringIO):
    def isatty(self):
        return True


def last_lines(monkeypatch, columns, draw):
    """Return where the cursor stands after each drawing: what is left of a line behind it is its last one."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    study = Study(["a", "b"], rounds=True, seed=1)
    for pull in study.ask(8):
        study.tell(pull, 1.0 + (pull.arm == "b"))
    draw(study)
    drawn = plain(terminal.getvalue()).replace("\x1b[?25h", "").replace("\x1b[?25l", "")
    return [part.rpartition("\n")[2] for part in re.split(r"\r\x1b\[2K", drawn)]


def draw_bar(study):
    with bar(study, shown=True) as show:
        show()


def draw_board(study):
    with Board(Race(study=study), unit=None, limit=60.0) as board:
        board.draw()


@pytest.mark.parametrize("draw", [draw_bar, draw_board])
def test_the_echo_of_ctrl_c_stays_on_the_last_line(monkeypatch, draw):
    """On a line that fills the terminal `^C` begins another one, and the drawing would not be taken back whole."""
    for columns in (*range(45, 90), 120):
        lines = last_lines(monkeypatch, columns, draw)
        assert any(lines)
        assert max(map(len, lines)) <= columns - len("^C") - 1


def test_a_narrow_table_goes_without_what_is_missed_least():
    heading = ("arm", "readings", "median", "true median", "MAD", "standing")
    line = ("it is red", "200", "9.942", "9.49 to 10.43", "0.884", "excluded by blue")
    widths = {52: "arm median true median standing", 60: "arm readings median true median standing"}
    for width, titles in widths.items():
        shown = table([heading, line], width).split("\n")
        assert " ".join(shown[0].split()) == titles
        assert max(map(len, shown)) <= width
    assert "MAD" in table([heading, line])
