"""Run every benchmark beside its peers, each within a bounded time, and write benchmarks/RESULTS.md.

    python benchmarks/run_all.py [--most 1800] [--only engine,analyze] [--collect]

A benchmark that fails, runs out of time or misses a peer is told and keeps none of the others back. `--collect`
runs nothing and writes the page from the results that are kept.
"""

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from truearm.world.machine import machine

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PEERS = {
    "analyze": ("duckdb",),
    "engine": ("river", "mabwiser"),
    "race_vs_hyperfine": ("hyperfine", "gcc"),
    "shares": ("polars", "pandas"),
}
ARGUMENTS = {"race_vs_hyperfine": ("--jobs", "1", "--scenarios", "S0,S1,S2,S3,S4,S5")}
VERSIONS = ("numpy", "scipy", "numba", "duckdb", "polars", "pandas", "pyarrow", "river", "mabwiser", "pyperf")


def is_there(peer):
    return importlib.util.find_spec(peer) is not None or shutil.which(peer) is not None


def run(name, most):
    """Run one benchmark, and return how it ended, and what it printed if it wrote no file of its own."""
    missing = [peer for peer in PEERS.get(name, ()) if not is_there(peer)]
    if missing:
        return f"not run: {', '.join(missing)} not installed", ""
    kept, began, stamp = RESULTS / f"{name}.md", time.time(), time.monotonic()
    words = [sys.executable, str(HERE / f"{name}.py"), *ARGUMENTS.get(name, ())]
    try:
        ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=most)
    except subprocess.TimeoutExpired:
        return f"stopped after {most:.0f} s; the results are those kept before", ""
    took = time.monotonic() - stamp
    if ended.returncode:
        last = (ended.stderr.strip() or ended.stdout.strip()).splitlines()[-1:]
        return f"failed after {took:.0f} s: {' '.join(last)}", ""
    is_written = kept.exists() and kept.stat().st_mtime >= began
    return f"{took:.0f} s", "" if is_written else ended.stdout.rstrip()


def version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def hyperfine():
    if shutil.which("hyperfine") is None:
        return "not installed"
    return subprocess.run(["hyperfine", "--version"], capture_output=True, text=True, check=True).stdout.split()[
        -1
    ]


def page(told):
    """Return the machine, the versions, how each benchmark ended, and all results, headings one lower."""
    here = {**machine(), **{name: version(name) for name in VERSIONS}, "hyperfine": hyperfine()}
    lines = [
        "# All benchmarks",
        "",
        f"`make bench`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC. Ratios to peers are inside each table.",
        "",
        *("| | |", "|---|---|"),
        *(f"| {name} | {value} |" for name, value in here.items()),
        "",
        *("| benchmark | this run |", "|---|---|"),
        *(f"| {name} | {how} |" for name, (how, _) in told.items()),
    ]
    for name, (_, printed) in told.items():
        if printed:
            lines += ["", f"## {name}, as printed in this run", "", "```", printed, "```"]
    for path in sorted(RESULTS.glob("*.md")):
        lines += ["", re.sub(r"^#", "##", path.read_text(encoding="utf-8").strip(), flags=re.MULTILINE)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=1800.0, help="seconds that one benchmark may take")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--collect", action="store_true", help="run nothing, gather what is kept")
    asked = parser.parse_args()
    names = [path.stem for path in sorted(HERE.glob("*.py")) if path.stem != Path(__file__).stem]
    chosen = asked.only.split(",") if asked.only else names
    told = {}
    for name in names:
        told[name] = "not run; results kept before", ""
        if name in chosen and not asked.collect:
            told[name] = run(name, asked.most)
            print(f"{name:20} {told[name][0]}", flush=True)
    (HERE / "RESULTS.md").write_text(page(told), encoding="utf-8")
    print("benchmarks/RESULTS.md")


if __name__ == "__main__":
    main()
