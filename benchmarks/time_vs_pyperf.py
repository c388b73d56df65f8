"""Compare `truearm time` with pyperf on pairs of Python statements where the second does more work.

    python benchmarks/time_vs_pyperf.py [--trials 3] [--pairs sum,sort]

Both tools run with their defaults, start-up included: two runs of `pyperf timeit` and one of `pyperf compare_to`,
or one `truearm time`. Right: the first statement is named faster. Open: the difference is not significant, or not
decided. The tools run in turn, so that a load that comes and goes meets both.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Pair(NamedTuple):
    name: str
    description: str
    setup: str
    faster: str
    slower: str


PAIRS = (
    Pair("sum", "sum of 1,000 and of 1,100 numbers", "x, y = [7] * 1000, [7] * 1100", "sum(x)", "sum(y)"),
    Pair(
        "sort",
        "sorting 1,000 and 1,050 random numbers",
        "import random; r = random.Random(1); y = [r.random() for _ in range(1050)]; x = y[:1000]",
        "sorted(x)",
        "sorted(y)",
    ),
    Pair("join", "join of 500 letters, and a loop", "x = ['a'] * 500", "''.join(x)", "s = ''\nfor c in x: s += c"),
    Pair(
        "lookup",
        "200 and 220 lookups by words, whose hashes differ from process to process",
        "d = {f'key{i}': i for i in range(220)}; y = list(d); x = y[:200]",
        "for k in x: d[k]",
        "for k in y: d[k]",
    ),
    Pair(
        "json",
        "writing 100 and 105 numbers as JSON",
        "import json; y = list(range(1000, 1105)); x = y[:100]",
        "json.dumps(x)",
        "json.dumps(y)",
    ),
    Pair("call", "one call, and two", "def f(x): return x", "f(1)", "f(f(1))"),
)


class Trial(NamedTuple):
    answer: str  # "right", "wrong" or "open"
    wall: float
    processes: int


def by_pyperf(pair, folder):
    start = time.perf_counter()
    for name, statement in (("faster", pair.faster), ("slower", pair.slower)):
        file = Path(folder, f"{name}.json")
        file.unlink(missing_ok=True)
        pyperf("timeit", "-q", "-s", pair.setup, "-o", str(file), statement)
    comparison = pyperf("compare_to", str(Path(folder, "faster.json")), str(Path(folder, "slower.json")))
    wall = time.perf_counter() - start
    answer = "right" if " slower" in comparison else "wrong" if " faster" in comparison else "open"
    files = [json.loads(Path(folder, f"{name}.json").read_text()) for name in ("faster", "slower")]
    return Trial(answer, wall, sum(len(bench["runs"]) for file in files for bench in file["benchmarks"]))


def pyperf(*words):
    return subprocess.run(
        [sys.executable, "-m", "pyperf", *words],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ).stdout


def by_truearm(pair, _folder):
    start = time.perf_counter()
    words = ["-n", "faster", pair.faster, "-n", "slower", pair.slower, "-s", pair.setup, "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "truearm", "time", *words], check=False, capture_output=True, text=True
    )
    wall = time.perf_counter() - start
    found = json.loads(done.stdout)
    answer = {"faster": "right", "slower": "wrong"}.get(found["best"], "open")
    return Trial(answer, wall, found["pulls"]["total"] + 2)


TOOLS = {"pyperf": by_pyperf, "truearm": by_truearm}


def line(pair, trials):
    cells = [pair.name]
    for tool in TOOLS:
        mine = [found[tool] for found in trials]
        right = sum(trial.answer == "right" for trial in mine)
        wrong = sum(trial.answer == "wrong" for trial in mine)
        cells += [f"{right}/{len(mine)}", f"{wrong}/{len(mine)}"]
        cells += [
            f"{statistics.median(t.processes for t in mine):g}",
            f"{statistics.median(t.wall for t in mine):.1f}",
        ]
    ratios = [found["truearm"].wall / found["pyperf"].wall for found in trials]
    return [*cells, f"{statistics.median(ratios):.2f}", f"{max(ratios):.2f}"]


def report(rows, trials, loads):
    heading = ["pair", *(f"{tool} {what}" for tool in TOOLS for what in ("right", "wrong", "processes", "wall"))]
    heading += ["ratio of walls", "largest"]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (heading, ["---"] * len(heading), *rows))
    descriptions = "\n".join(f"- {pair.name}: {pair.description}" for pair in PAIRS)
    low, high = min(loads), max(loads)
    return f"""# truearm time and pyperf

Made by `benchmarks/time_vs_pyperf.py`, {trials} trial{"s" * (trials > 1)} of each line; pyperf
{metadata.version("pyperf")}, truearm {metadata.version("truearm")}, Python {sys.version.split()[0]},
{os.cpu_count()} CPUs, load average of the machine {low:.1f} to {high:.1f} during the run.

{descriptions}

Both with their defaults; what is neither right nor wrong is open. Processes and wall time (seconds, including
the start of the tool) are medians over the trials, for both statements together. truearm is wrong in at most 5% of
trials if disturbances do not depend on the statement. pyperf's t-test assumes that there are none.

{table}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--pairs", default=",".join(pair.name for pair in PAIRS))
    options = parser.parse_args()
    rows, loads = [], [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as folder:
        for pair in (pair for pair in PAIRS if pair.name in options.pairs.split(",")):
            trials = []
            for i in range(options.trials):
                order = list(TOOLS) if i % 2 == 0 else list(TOOLS)[::-1]
                trials.append({tool: TOOLS[tool](pair, folder) for tool in order})
                loads.append(os.getloadavg()[0])
            rows.append(line(pair, trials))
            print("  ".join(rows[-1]), flush=True)
    if len(rows) == len(PAIRS):
        (HERE / "results" / "time_vs_pyperf.md").write_text(report(rows, options.trials, loads))


if __name__ == "__main__":
    main()
