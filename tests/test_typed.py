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
ta.Study(["A", "B"], gaol="min")
ta.Client("http://127.0.0.1:8000", "taste").tell("A", 1.0)
"""


def test_right_programs_pass_and_mistakes_are_found(tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    words = ["-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    surroundings = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    call = [sys.executable, *words, "right.py", "wrong.py"]
    told = subprocess.run(call, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False).stdout
    assert "right.py" not in told
    assert all(f"wrong.py:{line}:" in told for line in range(4, 12)), told
