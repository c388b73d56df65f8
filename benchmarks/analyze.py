"""How long `analyze` takes beside DuckDB's own medians on the same file, in one run, and how much memory.

Ten arms, ten million rows by default, as Parquet and as CSV. The goal is 2.5 times the wall time of
`SELECT arm, median(value) ... GROUP BY arm`, which keeps all cores busy. Each round is tried up to `TRIES` times
until other processes use hardly anything meanwhile, and the try they disturb least counts. Told are medians over
rounds, the ratio of each round's wall times as median, least and most, and the ratio of CPU times. Peak memory is
that of a process of its own, without what its imports take. Linux only.
Run: python benchmarks/analyze.py [ROWS] [ROUNDS]
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np

from truearm.analysis import analyze
from truearm.world import files

GAPS = {"decided": 0.1, "undecided": 0.002}  # between neighboring arms; the readings have a spread of 0.5
COLUMNS = (
    "file",
    "readings",
    "status",
    "DuckDB medians",
    "read",
    "analyze",
    "ratio",
    "range",
    "CPU",
    "peak memory",
)
QUIET = 0.05  # of one core, for other processes
TRIES = 5


def written(folder, name, gap, rows):
    path = Path(folder, name)
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT 'arm ' || i % 10 AS arm, random() + random() + random() + i % 10 * {gap} AS value "
            f"FROM range({rows}) t(i)) TO '{path}'"
        )
    return path


def timed(work):
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return (time.perf_counter() - wall, time.process_time() - cpu), found


def medians(path):
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT arm, median(value) FROM '{path}' GROUP BY arm").fetchall()


def one_round(path):
    """Return wall and CPU times of DuckDB's medians, of reading and of analyzing, and what was found."""
    duck, _ = timed(lambda: medians(path))
    read, tapes = timed(lambda: files.read(path, arm="arm", value="value"))
    analyzed, found = timed(lambda: analyze(tapes))
    return (duck, read, analyzed), found


def others():
    """Return the seconds of CPU time that other processes have used since the machine was started."""
    ticks = [int(field) for field in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK") - time.process_time()


def quiet_round(path):
    tried = []
    while len(tried) < TRIES and (not tried or min(tried)[0] > QUIET):
        time.sleep(bool(tried))
        wall, used = time.perf_counter(), others()
        found = one_round(path)
        tried.append(((others() - used) / (time.perf_counter() - wall), len(tried), found))
    return min(tried)[-1]


def most_memory():
    """Return the most kilobytes this process has had; Linux tells, and `getrusage` would count the parent's."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def peak(path):
    """Print how many megabytes reading and analyzing a file take at most."""
    before = most_memory()
    analyze(files.read(path, arm="arm", value="value"))
    print((most_memory() - before) // 1024)


def row(path, rounds):
    runs = [quiet_round(path) for _ in range(rounds)]
    times = np.array([run[0] for run in runs])  # rounds, parts, wall and CPU
    ratios = (times[:, 1] + times[:, 2]) / times[:, 0]
    memory = subprocess.run([sys.executable, __file__, "peak", path], capture_output=True, text=True, check=True)
    parts = [f"{seconds:.2f} s" for seconds in np.median(times[:, :, 0], axis=0)]
    wall, cpu = np.median(ratios, axis=0)
    told = (
        *parts,
        f"{wall:.2f}",
        f"{ratios[:, 0].min():.2f} to {ratios[:, 0].max():.2f}",
        f"{cpu:.2f}",
        f"{memory.stdout.strip()} MB",
    )
    return (path.suffix[1:], path.stem, runs[0][1].status.value, *told)


def main(rows=10_000_000, rounds=7):
    print("| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|", sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        for form in ("parquet", "csv"):
            for name, gap in GAPS.items():
                print(
                    "| " + " | ".join(row(written(folder, f"{name}.{form}", gap, rows), rounds)) + " |", flush=True
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["peak"]:
        peak(sys.argv[2])
    else:
        main(*map(int, sys.argv[1:]))
