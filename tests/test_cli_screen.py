"""What a race looks like on a terminal: it fits, the answer stands first, colors mean something."""

import re

import pytest
from click import Context
from click.testing import CliRunner

from entry import on_terminal
from truearm.cli import main

WORDS = ("-q", "--metric", "stdout", "--goal", "min", "-n", "a-longer-name", "echo 1", "-n", "b", "echo 1.5")


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_the_answer_stands_first_and_everything_fits(columns):
    seen = on_terminal(*WORDS, COLUMNS=str(columns))
    assert seen.startswith("\x1b[32m\x1b[1ma-longer-name is best")
    lines = plain(seen).split("\n")
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("95% sure") for line in lines)
    assert ("●" in seen) == (columns >= 80)
    assert re.search(r"\x1b\[2mb .*excluded", seen)  # dim: out of the race
    assert re.search(r"\x1b\[32m\x1b\[1ma-longer-name .* best", seen)


def test_without_colors_the_words_are_the_same():
    seen = on_terminal(*WORDS, COLUMNS="140", NO_COLOR="1")
    assert "\x1b" not in seen
    assert "●" in seen


def test_long_commands_are_shortened_and_their_numbers_stay():
    said = plain(on_terminal(*WORDS[:5], f"echo 1 {'x' * 90}", f"echo 2 {'x' * 90}", "-v", COLUMNS="80"))
    assert re.search(r"^command +runs +median +ratio per round +standing$", said, re.MULTILINE)
    assert re.search(r"^echo 1 x+… +\d+ +1 .*best$", said, re.MULTILINE)
    assert max(map(len, re.findall(r"^(?:command|echo).*", said, re.MULTILINE))) <= 80


def test_help_fits_80_columns():
    for verb in main.list_commands(Context(main)):
        said = CliRunner().invoke(main, [verb, "--help"], terminal_width=80).stdout
        assert [line for line in said.split("\n") if len(line) > 80] == []
