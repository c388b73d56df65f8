"""Answers that must not change: 300 seeded problems through every entry point, with the answers of version 0.1."""

import gzip
import json
from pathlib import Path

import pytest
from golden_problems import differences, solve

LINES = gzip.decompress((Path(__file__).parent / "answers.jsonl.gz").read_bytes()).decode().splitlines()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, len(LINES), 25))
def test_answers(first):
    for line in LINES[first : first + 25]:
        answer = json.loads(line)
        found = json.loads(json.dumps(solve(answer["problem"])))
        assert list(differences(answer, found)) == [], f"problem {answer['problem']}"
