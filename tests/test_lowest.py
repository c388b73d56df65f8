"""`make lowest` installs the lowest versions in pyproject.toml and runs tests that exist."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import lowest  # noqa: E402 - after the path


def test_every_requirement_has_a_lowest_version():
    base, extras = lowest.requirements()
    assert "numpy==1.26.0" in base
    assert "litestar==2.25.0" in extras
    assert all("==" in one for one in [*base, *extras])


def test_a_requirement_without_one_is_named():
    with pytest.raises(ValueError, match="'numpy<3'"):
        lowest.lowest("numpy<3")


def test_every_test_it_runs_is_there():
    assert [name for name in (*lowest.TESTS, *lowest.MORE_TESTS) if not (ROOT / name).exists()] == []
