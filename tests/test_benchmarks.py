"""The driver of the benchmarks: what fails, is late or misses a peer is told, and the page has all results."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(HERE))

import run_all  # noqa: E402 - after the path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    programs = {
        "prints": "import sys; print('ratio 2.0', sys.argv[1:])",
        "writes": f"open('{tmp_path}/results/writes.md', 'w').write('# Its own')",
        "fails": "raise SystemExit('no such thing')",
        "late": "import time; time.sleep(60)",
        "lonely": "raise SystemExit('never run')",
    }
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(run_all, "PEERS", {"lonely": ("a_peer_that_is_not_there",)})
    return tmp_path


def test_what_goes_wrong_is_told_and_not_fatal(folder):
    assert run_all.run("fails", folder, "", 30)[0].endswith("no such thing")
    assert run_all.run("late", folder, "", 0.5)[0].startswith("stopped after")
    assert run_all.run("prints", folder, "", -1.0)[0] == "not run: the time was over"
    assert run_all.run("lonely", folder, "", 30)[0] == "not run: a_peer_that_is_not_there not installed"


def test_results_are_gathered_with_machine_and_date(folder):
    told = {name: run_all.run(name, folder, "{folder} 2", 30) for name in ("prints", "writes", "fails")}
    page = run_all.page(told, "`make bench`")
    assert f"ratio 2.0 ['{folder}', '2']" in page
    assert "## Its own" in page
    assert "| fails | failed after" in page
    assert "| hyperfine | " in page
    assert "UTC" in page
