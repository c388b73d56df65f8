"""Measure time and memory of data that an engine counts, relative to the engine's own median.

    python benchmarks/counts.py           10^8 rows for time, 2x10^8 for memory
    python benchmarks/counts.py --only speed --rows 1e7

Rows are written as Parquet to a temporary folder (1.6 GB per 10^8) and deleted. DuckDB's `median(value) group by
arm` and `analyze` run alternately in one process, so ratios are comparable between machines and times are not.
Memory is the peak of a separate process, with DuckDB's memory_limit at 1 GB in both.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "counts.md"
PARTS = ("speed", "memory")
CHUNK = 10_000_000

ROWS = """
copy (
  select case when i % 2 = 0 then 'old' else 'new' end as arm,
    (sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) + 0.3 * (i % 2))
      * case when random() < 0.01 then 1000 else 1 end as value
  from range({rows}) t(i)
) to '{path}' (format parquet)
"""
MEDIAN = "select arm, median(value) from read_parquet('{files}') group by arm"
COUNT = """
select arm, floor(value * 2048) as bucket, count(*), min(value), max(value) from read_parquet('{files}')
where value between -4 and 4 group by arm, bucket
"""

ALONE = """
import re, time
from pathlib import Path
import duckdb
con = duckdb.connect(config={{"memory_limit": "1GB", "temp_directory": ""}})
con.execute("set enable_progress_bar = false")
start = time.perf_counter()
try:
    {work}
    end = "finished"
except duckdb.OutOfMemoryException:
    end = "out of memory"
peak = re.search(r"VmHWM:\\s*([0-9]+)", Path("/proc/self/status").read_text())  # rusage would count the parent's
print(end, time.perf_counter() - start, int(peak[1]) / 1024)
"""
OURS = """import truearm
    found = truearm.analyze(con.read_parquet({files!r}), arm="arm", value="value")
    assert found.best == "new", found.status"""


def write_rows(folder: Path, rows: int) -> str:
    import duckdb

    con = duckdb.connect()
    con.execute("set enable_progress_bar = false")
    con.execute("select setseed(0.5)")
    for i, start in enumerate(range(0, rows, CHUNK)):
        con.execute(ROWS.format(rows=min(CHUNK, rows - start), path=folder / f"part{i:03}.parquet"))
    return str(folder / "*.parquet")


def speed(rows: int, repeats: int) -> list[str]:
    import duckdb

    import truearm

    with tempfile.TemporaryDirectory() as folder:
        files = write_rows(Path(folder), rows)
        con = duckdb.connect()
        con.execute("set enable_progress_bar = false")
        median, ours = [], []
        for _ in range(repeats):
            start = np.array([time.perf_counter(), time.process_time()])
            con.execute(MEDIAN.format(files=files)).fetchall()
            median.append(np.array([time.perf_counter(), time.process_time()]) - start)
            start = np.array([time.perf_counter(), time.process_time()])
            found = truearm.analyze(con.read_parquet(files), arm="arm", value="value")
            ours.append(np.array([time.perf_counter(), time.process_time()]) - start)
            assert found.best == "new", found.status
    wall, cpu = np.median(np.array(ours) / np.array(median), axis=0)
    least = [f"{min(times[0] for times in taken):.1f} s" for taken in (median, ours)]
    return [f"| {rows:,} | {least[0]} | {least[1]} | {wall:.2f} | {cpu:.2f} |"]


def memory(rows: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        files = write_rows(Path(folder), rows)
        work = {
            "DuckDB: median(value) group by arm": f"con.execute({MEDIAN.format(files=files)!r}).fetchall()",
            "DuckDB: count, min, max by arm and bucket": f"con.execute({COUNT.format(files=files)!r}).fetchall()",
            "truearm.analyze": OURS.format(files=files),
        }
        lines = []
        for name, text in work.items():
            done = subprocess.run(
                [sys.executable, "-c", ALONE.format(work=text)],
                capture_output=True,
                text=True,
                check=False,
                env=os.environ,
            )
            if done.returncode:
                lines.append(
                    f"| {name} | ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]} | | |"
                )
                continue
            *end, seconds, peak = done.stdout.split()
            lines.append(f"| {name} | {' '.join(end)} | {float(seconds):.1f} s | {float(peak):,.0f} MB |")
    return lines


def _replace_parts(kept: str, text: str) -> str:
    """Return the page with the parts that were measured now in place of the old ones."""
    if not kept:
        return text
    parts = {part.partition("\n")[0]: part for part in kept.split("\n## ")}
    parts |= {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}
    return "\n## ".join(part.rstrip("\n") + "\n" for part in parts.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--rows", type=float, default=1e8, help="for the time")
    parser.add_argument("--memory-rows", type=float, default=2e8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/counts.md")
    options = parser.parse_args()
    chosen = options.only or PARTS
    out = ["# Counts instead of readings", "", f"`python benchmarks/counts.py`, {os.cpu_count()} cores.", ""]
    if "speed" in chosen:
        out += ["## Time", "", "Two arms, Parquet; each taken in turn, the ratio is the median of the ratios.", ""]
        out += [
            "| rows | DuckDB's median by arm | analyze | ratio | of CPU times |",
            "|---|---|---|---|---|",
        ]
        sizes = [int(options.rows / 10), int(options.rows)] if options.rows >= 1e8 else [int(options.rows)]
        out += [line for rows in sizes for line in speed(rows, options.repeats)] + [""]
    if "memory" in chosen:
        out += [
            "## Memory",
            "",
            f"{int(options.memory_rows):,} rows, memory_limit 1 GB, nothing spilled to disk.",
            "",
        ]
        out += [
            "| what | end | time | peak of the process |",
            "|---|---|---|---|",
            *memory(int(options.memory_rows)),
            "",
        ]
    text = "\n".join(out)
    print(text)
    if options.save:
        kept = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() and options.only else ""
        RESULTS.write_text(_replace_parts(kept, text), encoding="utf-8")


if __name__ == "__main__":
    main()
