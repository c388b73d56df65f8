import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("strings.py", "lowest median|Doubtful"),  # a real machine: a loaded one may well be in doubt
        ("salaries.py", "B has the highest median"),
        ("honest_no.py", "may have the lowest median"),
        ("demo.py", "zlib"),
    ],
)
def test_every_example_runs_and_answers(name, words):
    ended = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode in ((0,) if name == "demo.py" else (0, 3, 4)), ended.stderr
    assert re.search(words, " ".join(ended.stdout.split()))
