"""`make lowest` runs tests that exist."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import lowest  # noqa: E402 - after the path


def test_every_test_it_runs_is_there():
    assert [name for name in (*lowest.TESTS, *lowest.MORE_TESTS) if not (ROOT / name).exists()] == []
