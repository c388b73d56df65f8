"""Measure the time and memory of `analyze`, relative to an engine's own medians or counts of the same data.

Files: ten arms, as Parquet and as CSV, ten million rows by default and a fiftieth of that, compared with DuckDB's
`SELECT arm, median(value) ... GROUP BY arm`. Frames: as many rows in Polars, compared with Polars medians and
counts. Many arms: CPU seconds for 100 to 1,000 arms of 300 readings; twice the arms should take twice as long.
Each round of a file is repeated up to `TRIES` times until other processes use little CPU; the least disturbed try
counts. Reported: medians over rounds, the ratio of wall times per round as median, least and most, and the ratio
of CPU times. Peak memory is that of a separate process, without its imports.
Linux only. Run: python benchmarks/analyze.py [ROWS] [ROUNDS]
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

from truearm.analysis import analyze

GAPS = {"decided": 0.1, "undecided": 0.002}  # between neighboring arms; the readings have a spread of 0.5
COLUMNS = (
    "rows",
    "file",
    "readings",
    "status",
    "DuckDB medians",
    "analyze",
    "ratio",
    "range",
    "CPU",
    "peak memory",
)
QUIET = 0.05  # of one core, for other processes
TRIES = 3


def write_file(folder, name, gap, rows):
    path = Path(folder, name)
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT 'arm ' || i % 10 AS arm, random() + random() + random() + i % 10 * {gap} AS value "
            f"FROM range({rows}) t(i)) TO '{path}'"
        )
    return path


def time_call(work):
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return (time.perf_counter() - wall, time.process_time() - cpu), found


def medians(path):
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT arm, median(value) FROM '{path}' GROUP BY arm").fetchall()


def one_round(path):
    """Return wall and CPU times of DuckDB's medians and of analyzing a file, and the status.

    The result, which contains all readings, is deleted, so that memory does not grow with rounds.
    """
    duck, _ = time_call(lambda: medians(path))
    analyzed, found = time_call(lambda: analyze(path, arm="arm", value="value"))
    return (duck, analyzed), found.status.value


def other_cpu_seconds():
    """Return the seconds of CPU time that other processes have used since the machine was started."""
    ticks = [int(field) for field in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK") - time.process_time()


def quiet_round(path):
    attempts = []
    while len(attempts) < TRIES and (not attempts or min(attempts)[0] > QUIET):
        time.sleep(bool(attempts))
        wall, used = time.perf_counter(), other_cpu_seconds()
        found = one_round(path)
        attempts.append(((other_cpu_seconds() - used) / (time.perf_counter() - wall), len(attempts), found))
    return min(attempts)[-1]


def peak_kilobytes():
    """Return the most kilobytes this process has had; `getrusage` would also count the parent's."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def print_peak(path):
    """Print how many megabytes reading and analyzing a file take at most."""
    before = peak_kilobytes()
    analyze(path, arm="arm", value="value")
    print((peak_kilobytes() - before) // 1024)


def row(path, rounds):
    runs = [quiet_round(path) for _ in range(rounds)]
    times = np.array([run[0] for run in runs])  # rounds, parts, wall and CPU
    ratios = times[:, 1] / times[:, 0]
    memory = subprocess.run([sys.executable, __file__, "peak", path], capture_output=True, text=True, check=True)
    parts = [f"{seconds:.2f} s" for seconds in np.median(times[:, :, 0], axis=0)]
    wall, cpu = np.median(ratios, axis=0)
    cells = (
        *parts,
        f"{wall:.2f}",
        f"{ratios[:, 0].min():.2f} to {ratios[:, 0].max():.2f}",
        f"{cpu:.2f}",
        f"{memory.stdout.strip()} MB",
    )
    return (path.suffix[1:], path.stem, runs[0][1], *cells)


def print_header(columns):
    print("| " + " | ".join(columns) + " |", "|---" * len(columns) + "|", sep="\n")


def measure_files(rows, rounds):
    print_header(COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        for size in (rows, rows // 50):
            for form in ("parquet", "csv"):
                for name, gap in GAPS.items():
                    path = write_file(folder, f"{name}.{form}", gap, size)
                    print(f"| {size:,} | " + " | ".join(row(path, rounds)) + " |", flush=True)


def measure_frames(rows, rounds):
    """Print how a frame in memory compares with its own medians, and shares with its own counts."""
    print_header(("frame", "question", "its own", "analyze", "ratio", "CPU"))
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 10, rows)
    names = pl.Series([f"arm {i}" for i in range(10)]).gather(codes)
    frame = pl.DataFrame({"arm": names, "value": rng.normal(size=rows) + codes * GAPS["decided"]})
    counts = ((pl.col("value") >= 1).sum(), pl.len())
    questions = {
        "medians": (lambda: frame.group_by("arm").agg(pl.col("value").median()), {}),
        "shares": (lambda: frame.group_by("arm").agg(*counts), {"at_least": 1.0}),
    }
    for name, (own, options) in questions.items():
        pairs = [
            (
                time_call(own)[0],
                time_call(lambda options=options: analyze(frame, arm="arm", value="value", **options))[0],
            )
            for _ in range(rounds)
        ]
        times = np.median(np.array(pairs), axis=0)
        cells = [f"{times[0, 0]:.2f} s", f"{times[1, 0]:.2f} s", *(f"{x:.2f}" for x in times[1] / times[0])]
        print("| " + " | ".join(("polars", name, *cells)) + " |", flush=True)


def measure_many_arms(rounds):
    """Print seconds of CPU time by the number of arms, one of which is far ahead, or none."""
    sizes = (100, 300, 1000)
    print_header(("readings", *(f"{k:,} arms" for k in sizes)))
    for name, lead in (("one far ahead", 3.0), ("all alike", 0.0)):
        cells = []
        for k in sizes:
            rng = np.random.default_rng(k)
            tapes = {f"arm {i}": rng.normal(lead * (i == 0), size=300) for i in range(k)}
            cells.append(
                f"{min(time_call(lambda tapes=tapes: analyze(tapes))[0][1] for _ in range(rounds)):.2f} s"
            )
        print("| " + " | ".join((name, *cells)) + " |", flush=True)


def main(rows=10_000_000, rounds=7):
    analyze({"A": range(50), "B": range(100, 150)})  # loads what an analysis needs
    measure_files(rows, rounds)
    print()
    measure_frames(rows, rounds)
    print()
    measure_many_arms(min(rounds, 3))


if __name__ == "__main__":
    if sys.argv[1:2] == ["peak"]:
        print_peak(sys.argv[2])
    else:
        main(*map(int, sys.argv[1:]))
