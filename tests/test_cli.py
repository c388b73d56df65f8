"""The command line as a whole: verbs are found, near misses are named."""

import pytest
from click.testing import CliRunner

from truearm import __version__
from truearm.cli import main


def test_the_version_is_the_packages():
    assert __version__ in CliRunner().invoke(main, ["--version"]).output


def test_help_lists_every_verb():
    shown = CliRunner().invoke(main, ["-h"]).output
    assert all(
        verb in shown
        for verb in ("race", "analyze", "plan", "simulate", "next", "tell", "status", "report", "verify")
    )


@pytest.mark.parametrize(
    ("verb", "words"), [("analize", "did you mean 'analyze'?"), ("xyz", "the verbs are race, time, analyze")]
)
def test_a_verb_that_is_none_gets_a_hint(verb, words):
    result = CliRunner().invoke(main, [verb])
    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.parametrize(
    "words",
    [
        ("race", "true", "--save", "none/x.db"),
        ("report", "x.db", "--html", "none/x.html"),
        ("simulate", "harm", "--output", "none/x.csv"),
        ("plan", "--plot", "none/x.png"),
    ],
)
def test_a_folder_that_is_not_there_is_told_before_the_work(words):
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "the folder 'none' does not exist; make it first" in " ".join(result.output.split())
