"""`truearm report` through its real entry point, and what the docs say of all verbs."""

import json
import random
import subprocess
from pathlib import Path

import click
import pytest

from entry import TRUEARM, truearm
from truearm.cli import _VERBS, main
from truearm.run import find_best

DOCS = Path(__file__).parent.parent / "docs" / "cli.md"


@pytest.fixture
def saved(tmp_path):
    """Return a folder with the log of a study that the library wrote: its budget is spent after 40 pulls."""
    draw = random.Random(1).random
    find_best({"A": draw, "B": draw}, max_pulls=40, contamination=None, store=tmp_path / "run.db")
    return tmp_path


def test_report_prints_text_json_markdown_and_csv_and_writes_nothing(saved):
    before = (saved / "run.db").read_bytes()
    shown = truearm("report", "run.db", cwd=saved)
    assert (shown.returncode, "40 readings." in shown.stdout) == (3, True)
    assert "command" not in shown.stdout
    assert "| `A` |" in truearm("report", "run.db", "--markdown", cwd=saved).stdout
    assert truearm("report", "run.db", "--csv", cwd=saved).stdout.startswith("command,mean,")
    found = json.loads(truearm("report", "run.db", "--json", cwd=saved).stdout)
    assert (found["status"], found["pulls"]["total"], found["metric"]) == ("exhausted", 40, None)
    assert (saved / "run.db").read_bytes() == before


@pytest.mark.parametrize("option", ["--export-html", "--html"])
def test_report_writes_a_page_also_by_the_old_name_of_the_option(saved, option):
    found = truearm("report", "run.db", option, "page.html", cwd=saved)
    assert found.returncode == 0, found.stderr
    assert "<html" in (saved / "page.html").read_text()


def test_report_knows_the_units_of_a_race(tmp_path):
    truearm("race", "-r", "3", "--save", "run.db", "true", "sleep 0.01", cwd=tmp_path)
    assert "median [ms]" in truearm("report", "run.db", cwd=tmp_path).stdout
    results = json.loads(truearm("report", "run.db", "--json", cwd=tmp_path).stdout)["results"]
    assert [len(result["times"]) for result in results] == [3, 3]


def test_files_that_are_missing_or_others_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "there is no file 'run.db'; `truearm race --save" in truearm("report", "run.db", cwd=tmp_path).stderr
    assert "not a truearm log" in truearm("report", "notes.txt", cwd=tmp_path).stderr
    (tmp_path / "empty.db").touch()  # what a crash may leave before anything is in it
    for words in (("report", "empty.db"), ("race", "--resume", "empty.db")):
        said = truearm(*words, cwd=tmp_path).stderr
        assert "empty.db holds no study yet; `truearm race --save empty.db`" in said


@pytest.mark.parametrize("verb", _VERBS)
def test_every_verb_and_option_is_in_the_docs(verb):
    words = DOCS.read_text().replace("\n", " ")
    command = main.get_command(click.Context(main), verb)
    options = [name for parameter in command.params for name in parameter.opts if name.startswith("-")]
    assert f"truearm {verb}" in words or f"{verb}," in words
    missing = [name for name in options if f"`{name}" not in words and f" {name}" not in words]
    assert not missing


@pytest.mark.parametrize("verb", _VERBS)
def test_every_help_begins_with_an_example(verb):
    command = main.get_command(click.Context(main), verb)
    assert f"truearm {verb}" in command.help


def test_the_database_of_a_server_is_known_as_such(tmp_path):
    pytest.importorskip("uvicorn")  # of the extra `serve`
    subprocess.run(
        [TRUEARM, "serve", "--database", "s.db", "--new-token", "admin"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    for words in (("report", "s.db"), ("verify", "s.db"), ("race", "--resume", "s.db")):
        found = truearm(*words, cwd=tmp_path)
        assert found.returncode == 2
        assert "s.db holds the studies of a server; `truearm serve --database" in found.stderr
