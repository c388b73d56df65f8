"""Answers that must not change: 300 seeded problems through every entry point, with the answers of version 0.1."""

import gzip
import json
from pathlib import Path

import pytest
from golden_problems import differences, solve

LINES = gzip.decompress((Path(__file__).parent / "answers.jsonl.gz").read_bytes()).decode().splitlines()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "third", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_answers(third):
    for line in LINES[third::3]:
        answer = json.loads(line)
        found = json.loads(json.dumps(solve(answer["problem"])))
        assert list(differences(answer, found)) == [], f"problem {answer['problem']}"
