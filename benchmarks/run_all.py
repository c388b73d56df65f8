"""Run every benchmark, each within a bounded time, and write benchmarks/RESULTS.md.

    python benchmarks/run_all.py [--only engine,analyze] [--minutes 45] [--full] [--collect]

The total time is --minutes, on two quiet cores: at most two thirds for the small sizes of most benchmarks, the
rest for the race with hyperfine, which comes last. It runs in a copy (build/bench) and overwrites only
benchmarks/RESULTS.md, so the full-size results, which pages quote and tests compare, do not change. `--full` runs
at full size and in place, for hours. A benchmark that fails, exceeds 5 minutes or lacks another tool is reported
and does not stop the others; the page is written after each. `--collect` runs nothing and writes the page from the
full-size results.
"""

import argparse
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from truearm.commands.measure import machine

HERE = Path(__file__).parent
COPY = HERE.parent / "build" / "bench"
PEERS = {
    "analyze": ("duckdb", "polars"),
    "builds": ("gcc", "git"),
    "counts": ("duckdb",),
    "engine": ("river", "mabwiser"),
    "false_alarms": ("hyperfine", "gcc", "taskset"),
    "race_vs_hyperfine": ("hyperfine", "gcc"),
    "service": ("optuna",),
    "startup": ("hyperfine",),
    "time_vs_pyperf": ("pyperf",),
}
FULL = {"counts": "--save", "howard_ramdas": "--save", "race_vs_hyperfine": "--jobs 1"}
SIZES = {  # what makes each of them take a few minutes at most
    "analyze": "10000000 2",
    "builds": "--pairs 10 --slow 5",
    "control": "8",
    "counts": "--rows 1e7 --memory-rows 2e7",
    "drift": "2",
    "efficiency": "--quick",
    "engine": "3",
    "evaluate": "2",
    "false_alarms": "--gates 4 --log {folder}/false_alarms.jsonl",
    "freshness": "10",
    "howard_ramdas": "--reps 8",
    "ledger": "60",
    "means": "100",
    "optimality": "binomial",
    "plausible_range": "12",
    "plan": "12",
    "priors": "--runs 2 --first 2",
    "race_vs_hyperfine": "--jobs 1 --trials 1000 --minutes {minutes:.1f} --commands 2",
    "revisions": "--max-time 60s",
    "rounds": "5",
    "scenarios": "powers gaps harm",
    "shares": "--quick",
    "startup": "--runs 10",
    "suites": "10",
    "time_vs_pyperf": "--trials 1 --pairs sum,sort,join",
    "wrong_decisions": "0.1",
}
VERSIONS = (
    *("numpy", "scipy", "numba", "duckdb", "polars", "pandas", "pyarrow"),
    *("river", "mabwiser", "optuna", "pyperf", "pytest-benchmark"),
)
LAST = "race_vs_hyperfine"  # gets the time that is left, at least a third of all
LIMIT_S = 300.0  # for any other benchmark


def is_installed(peer):
    return importlib.util.find_spec(peer) is not None or shutil.which(peer) is not None


def copy_files():
    """Return the folder of benchmarks in a fresh copy of what they read and write."""
    shutil.rmtree(COPY, ignore_errors=True)
    for part in ("benchmarks", "docs/images", "src", "tests"):
        shutil.copytree(HERE.parent / part, COPY / part, ignore=shutil.ignore_patterns("__pycache__"))
    return COPY / "benchmarks"


def run(name, folder, words, limit):
    """Run one benchmark; return how it ended and its page, or its output if there is no page."""
    if missing := [peer for peer in PEERS.get(name, ()) if not is_installed(peer)]:
        return f"not run: {', '.join(missing)} not installed", ""
    if limit <= 0:
        return "not run: the time was over", ""
    result, began, stamp = folder / "results" / f"{name}.md", time.time(), time.monotonic()
    words = words.format(folder=folder, minutes=(limit - 15) / 60).split()
    code, out = None, ""
    try:
        code, out, err = run_program([sys.executable, str(folder / f"{name}.py"), *words], folder, limit)
    except subprocess.TimeoutExpired:
        how = f"stopped after {limit:.0f} s"
    else:
        how = f"{time.monotonic() - stamp:.0f} s"
        if code:
            last = (err.strip() or out.strip() or f"exit code {code}").splitlines()[-1]
            how = f"failed after {how}: {last.replace('|', '/')}"
    if result.exists() and result.stat().st_mtime >= began:
        return how, lower_headings(result)
    return how, "" if code != 0 else f"## {name}, as printed\n\n```\n{out.rstrip()}\n```"


def run_program(words, folder, limit):
    """Return the exit code and output of a program; its child processes are always ended with it."""
    with subprocess.Popen(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(timeout=limit)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out, err


def lower_headings(path):
    """Return a page with its headings one level lower."""
    return re.sub(r"^#", "##", path.read_text(encoding="utf-8").strip(), flags=re.MULTILINE)


def version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def hyperfine_version():
    if shutil.which("hyperfine") is None:
        return "not installed"
    output = subprocess.run(["hyperfine", "--version"], capture_output=True, text=True, check=True).stdout
    return output.split()[-1]


def page(outcomes, what):
    """Return the machine, the versions, how each benchmark ended, and what came out."""
    here = {**machine(), **{name: version(name) for name in VERSIONS}, "hyperfine": hyperfine_version()}
    lines = [
        "# All benchmarks",
        "",
        f"{what}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC. Ratios to peers are inside each table.",
        "",
        *("| | |", "|---|---|"),
        *(f"| {name} | {value} |" for name, value in here.items()),
        "",
        *("| benchmark | this run |", "|---|---|"),
        *(f"| {name} | {how} |" for name, (how, _) in outcomes.items()),
    ]
    for _, found in outcomes.values():
        lines += ["", found] if found else []
    return "\n".join(lines) + "\n"


def write(outcomes, what):
    (HERE / "RESULTS.md").write_text(page(outcomes, what), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--minutes", type=float, help="for all together: 45, at full size 1,440")
    parser.add_argument("--full", action="store_true", help="at full size and in place")
    parser.add_argument("--collect", action="store_true", help="write the page from the full-size results")
    options = parser.parse_args()
    programs = {path.stem for path in HERE.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")}
    names = sorted(programs - {Path(__file__).stem})
    if unknown := set(options.only.split(",")) - {*names, ""}:
        parser.error(f"--only: there is no benchmark {', '.join(sorted(unknown))}")
    what = (
        "Results of full size, each with its conditions"
        if options.collect or options.full
        else "`make bench`, small sizes"
    )
    if options.collect:
        outcomes = {path.stem: ("kept", lower_headings(path)) for path in sorted((HERE / "results").glob("*.md"))}
        write(outcomes, what)
    else:
        names = options.only.split(",") if options.only else names
        folder, sizes = (HERE, FULL) if options.full else (copy_files(), SIZES)
        total = 60 * (options.minutes or (1440 if options.full else 45))
        outcomes, end = {}, time.monotonic() + total
        for name in sorted(names, key=LAST.__eq__):
            left = end - time.monotonic()
            if not options.full and name != LAST:
                left = min(left - total / 3 * (LAST in names), LIMIT_S)
            outcomes[name] = run(name, folder, sizes.get(name, ""), left)
            print(f"{name:20} {outcomes[name][0]}", flush=True)
            write(outcomes, what)
    print("benchmarks/RESULTS.md")


if __name__ == "__main__":
    main()
