"""The driver of the benchmarks: what fails, is late or misses a peer is told, and the page has all results."""

import sys
from pathlib import Path

HERE = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(HERE))

import run_all  # noqa: E402 - after the path


def test_results_are_gathered_and_failures_reported(tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    programs = {
        "prints": "import sys; print('ratio 2.0', sys.argv[1:])",
        "writes": f"open('{tmp_path}/results/writes.md', 'w').write('# Its own')",
        "fails": "raise SystemExit('no such thing')",
        "late": "import time; time.sleep(60)",
    }
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(run_all, "PEERS", {"lonely": ("a_peer_that_is_not_there",)})
    assert run_all.run("fails", tmp_path, "", 30)[0].endswith("no such thing")
    assert run_all.run("late", tmp_path, "", 0.5)[0].startswith("stopped after")
    assert run_all.run("prints", tmp_path, "", -1.0)[0] == "not run: the time was over"
    assert run_all.run("lonely", tmp_path, "", 30)[0] == "not run: a_peer_that_is_not_there not installed"
    done = {name: run_all.run(name, tmp_path, "{folder} 2", 30) for name in ("prints", "writes", "fails")}
    page = run_all.page(done, "`make bench`")
    parts = (f"ratio 2.0 ['{tmp_path}', '2']", "## Its own", "| fails | failed after", "| hyperfine | ", "UTC")
    assert all(part in page for part in parts)
