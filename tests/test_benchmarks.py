"""The driver of the benchmarks: what fails, is late or misses a peer is told, and the page has all results."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import run_all


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    programs = {
        "prints": "print('ratio 2.0')",
        "writes": f"open('{tmp_path}/results/writes.md', 'w').write('# Its own')",
        "fails": "raise SystemExit('no such thing')",
        "late": "import time; time.sleep(60)",
        "lonely": "raise SystemExit('never run')",
    }
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(run_all, "HERE", tmp_path)
    monkeypatch.setattr(run_all, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(run_all, "PEERS", {"lonely": ("a_peer_that_is_not_there",)})
    return tmp_path


def test_what_goes_wrong_is_told_and_not_fatal():
    assert run_all.run("fails", 30)[0].endswith("no such thing")
    assert run_all.run("late", 0.5)[0].startswith("stopped after")
    assert run_all.run("lonely", 30)[0] == "not run: a_peer_that_is_not_there not installed"


def test_results_are_kept_and_gathered_with_machine_and_date():
    told = {name: run_all.run(name, 30) for name in ("prints", "writes")}
    page = run_all.page(told)
    assert "ratio 2.0" in page
    assert "## Its own" in page
    assert "| hyperfine | " in page
    assert "UTC" in page
    assert all(how.endswith(" s") for how, _ in told.values())
