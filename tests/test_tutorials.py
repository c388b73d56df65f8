"""The tutorials are run as they are written: Python sessions by doctest, shell lines by the real command."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
TUTORIALS = [*sorted(DOCS.joinpath("tutorials").glob("*.md")), DOCS / "lab.md"]
CONSOLE = re.compile(r"^```console\n\$ truearm ([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def _session(page):
    """Return the page with fences blanked out: doctest would take them for output."""
    return re.sub(r"^```.*$", "", CONSOLE.sub("", page), flags=re.MULTILINE)


def test_there_are_tutorials():
    assert {path.stem for path in TUTORIALS} >= {"salaries", "flights", "run_times"}


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_tutorial_does_what_it_says(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = path.read_text(encoding="utf-8")
    session = doctest.DocTestParser().get_doctest(_session(page), {}, path.stem, str(path), 0)
    told = []
    doctest.DocTestRunner(optionflags=FLAGS).run(session, out=told.append)
    assert not told, "".join(told)
    for words, expected in CONSOLE.findall(page):
        command = [str(Path(sys.executable).with_name("truearm")), *words.split()]
        ended = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "80"}
        )
        assert ended.stdout.split()[: len(expected.split())] == expected.split()
