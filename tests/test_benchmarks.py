"""The driver of the benchmarks: what fails, is late or misses a peer is told, and the page has all results."""

import contextlib
import os
import select
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


def test_what_was_written_before_the_end_is_kept(folder):
    name = "late"
    writes = f"open('{folder}/results/{{name}}.md', 'w').write('# Two rounds'); "
    (folder / "fails.py").write_text(writes.format(name="fails") + "raise SystemExit('a | b')")
    assert run_all.run("fails", folder, "", 30)[1] == "## Two rounds"
    assert run_all.run("fails", folder, "", 30)[0].endswith(": a / b")  # a cell of a table
    (folder / f"{name}.py").write_text(writes.format(name=name) + "import time; time.sleep(600)")
    most = 1.0
    while not (folder / "results" / f"{name}.md").exists():  # longer where starting takes longer
        most *= 2
        told = run_all.run(name, folder, "", most)
    assert told == (f"stopped after {most:.0f} s", "## Two rounds")


def test_what_is_killed_says_so(folder):
    (folder / "fails.py").write_text("import os; os.kill(os.getpid(), 9)")
    assert run_all.run("fails", folder, "", 30)[0].endswith("exit code -9")


def test_what_is_late_leaves_nobody_behind(folder):
    (folder / "late.py").write_text(
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open('pid', 'w').write(str(child.pid))\nchild.wait()"
    )
    most = 1.0
    while not (folder / "pid").exists():  # longer where starting takes longer
        most *= 2
        assert run_all.run("late", folder, "", most)[0].startswith("stopped after")
    with contextlib.suppress(ProcessLookupError):  # dead and buried
        assert select.select([os.pidfd_open(int((folder / "pid").read_text()))], [], [], 60)[0]


def test_results_are_gathered_with_machine_and_date(folder):
    told = {name: run_all.run(name, folder, "{folder} 2", 30) for name in ("prints", "writes", "fails")}
    page = run_all.page(told, "`make bench`")
    assert f"ratio 2.0 ['{folder}', '2']" in page
    assert "## Its own" in page
    assert "| fails | failed after" in page
    assert "| hyperfine | " in page
    assert "UTC" in page


@pytest.fixture
def house(folder, monkeypatch):
    for part in ("benchmarks/results", "docs/images", "src", "tests"):
        (folder / part).mkdir(parents=True)
    monkeypatch.setattr(run_all, "HERE", folder / "benchmarks")
    monkeypatch.setattr(run_all, "COPY", folder / "copy")
    return folder / "benchmarks"


def test_results_of_full_size_stay_as_they_are(house, monkeypatch):
    name = "writes"
    kept = house / "results" / f"{name}.md"
    kept.write_text("# Kept")
    (house / "writes.py").write_text(f"open('results/{name}.md', 'w').write('# New')")
    monkeypatch.setattr(sys, "argv", ["run_all.py", "--only", name])
    run_all.main()
    assert kept.read_text() == "# Kept"
    assert "## New" in (house / "RESULTS.md").read_text()


def test_the_race_comes_last_and_has_half_of_the_time(house, monkeypatch):
    for name in ("a", "race_vs_hyperfine", "z"):
        (house / f"{name}.py").touch()
    limits, pages = {}, []

    def run(name, _folder, _words, most):
        pages.append((house / "RESULTS.md").exists())
        limits[name] = most
        return "1 s", ""

    monkeypatch.setattr(run_all, "run", run)
    monkeypatch.setattr(sys, "argv", ["run_all.py", "--minutes", "8"])
    run_all.main()
    assert list(limits) == ["a", "z", "race_vs_hyperfine"]
    assert pages == [False, True, True]  # written after each
    assert limits["a"] <= 240
    assert 240 < limits["race_vs_hyperfine"] <= 480


def test_every_size_is_that_of_a_benchmark():
    names = {path.stem for path in HERE.glob("*.py")}
    assert set(run_all.SIZES) | set(run_all.PEERS) | set(run_all.FULL) <= names
    words = " ".join(run_all.SIZES["race_vs_hyperfine"].split())
    assert "--jobs 1" in words
    assert "--scenarios" not in words  # all of S0 to S5
    assert "--minutes" in words
