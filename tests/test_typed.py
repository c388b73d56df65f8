"""`py.typed` is true: a user's program is checked against real types, not against Any."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
RIGHT = """
from pathlib import Path
from typing import assert_type

import truearm as ta
from truearm.claims.result import Analysis
from truearm.planning import Plan

found = ta.analyze({"A": [1.0, 2.0], "B": [2.0, 3.0]}, goal="min")
assert_type(found, Analysis)
assert_type(found.best, str | None)
assert_type(ta.plan(arms=5, gap=0.5), Plan)
timed = ta.time({"a": "pass", "b": "1 + 1"}, max_seconds=5)
assert_type(timed, ta.Result)
timed.save_html(Path("page.html"))
timed.save_html("page.html")
assert_type(ta.find_best({"A": lambda: 1.0, "B": lambda: 2.0}), ta.Result)
study = ta.Study(["A", "B"])
for pull in study.ask():
    study.tell(pull, 1.0)
assert_type(study.result, ta.Result | None)
with ta.Client("http://127.0.0.1:8000", "taste", ["A", "B"], at_least=4) as client:
    while pulls := client.ask():
        assert_type(pulls, list[ta.Pull])
        client.tell_many([(pull, 4.0) for pull in pulls])
    assert_type(client.done, bool)
    assert_type(client.result, ta.Result | None)
    assert_type(client.readings, dict[str, list[float | None]])
assert_type(ta.audit(100, 1), ta.Audit)
assert_type(ta.median_interval([1.0, 2.0, 3.0]), ta.Interval)
"""
WRONG = """
import truearm as ta

ta.analyze({"A": [1.0]}, goal="lowest")
ta.plan(arms="five")
ta.time({"a": "pass"}, max_minutes=3)
ta.find_best({"A": lambda: 1.0}).winner
ta.nothing
ta.Client(8000, "taste")
ta.Client("http://127.0.0.1:8000", "taste").tell("A", 1.0)
"""


def checked(program, folder):
    (folder / "program.py").write_text(program)
    words = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "",
        "--cache-dir",
        str(ROOT / ".mypy_cache"),
    ]
    surroundings = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    return subprocess.run(
        [*words, "program.py"], cwd=folder, env=surroundings, capture_output=True, text=True, check=False
    ).stdout


def test_a_users_program_has_the_types_it_says(tmp_path):
    assert checked(RIGHT, tmp_path).startswith("Success")


def test_mistakes_of_a_users_program_are_found(tmp_path):
    told = checked(WRONG, tmp_path)
    assert all(f"program.py:{line}:" in told for line in range(4, 11)), told
