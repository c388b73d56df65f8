"""How long `analyze` takes beside DuckDB's own medians on the same Parquet file, in one run.

Ten arms, ten million rows by default. The goal is 2.5 times `SELECT arm, median(value) ... GROUP BY arm`. Rounds
are interleaved, and the ratio of the medians of both is told with that of CPU times beside it, since DuckDB uses
all cores.
Run: python benchmarks/analyze.py [ROWS] [ROUNDS]
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from truearm import files
from truearm.analysis import analyze

GAPS = {"decided": 0.1, "undecided": 0.002}  # between neighboring arms; the readings have a spread of 0.5


def written(folder, name, gap, rows):
    path = Path(folder, f"{name}.parquet")
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
    return time.perf_counter() - wall, time.process_time() - cpu, found


def medians(path):
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT arm, median(value) FROM '{path}' GROUP BY arm").fetchall()


def compared(path, rounds):
    duck, read, analyzed = [], [], []
    for _ in range(rounds):
        duck.append(timed(lambda: medians(path))[:2])
        *times, tapes = timed(lambda: files.read(path, arm="arm", value="value"))
        read.append(times)
        *times, found = timed(lambda tapes=tapes: analyze(tapes))
        analyzed.append(times)
    return found, [
        [statistics.median(column) for column in zip(*runs, strict=True)] for runs in (duck, read, analyzed)
    ]


def main(rows=10_000_000, rounds=5):
    print("| readings | status | DuckDB medians | read | analyze | ratio | ratio of CPU time |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, gap in GAPS.items():
            found, (duck, read, analyzed) = compared(written(folder, name, gap, rows), rounds)
            ratios = [(r + a) / d for d, r, a in zip(duck, read, analyzed, strict=True)]
            cells = [f"{part[0]:.2f} s" for part in (duck, read, analyzed)] + [f"{ratio:.2f}" for ratio in ratios]
            print(f"| {name} | {found.status.value} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
