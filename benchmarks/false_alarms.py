"""Measure how often gates fail on identical code, and whether they find a true regression of 5%.

    python benchmarks/false_alarms.py [--gates 60] [--runs 400] [--minutes 10] [--only quiet,wander] [--log FILE]

A gate compares two commands, "old" and "new", and fails if new is slower. Both are a C program that works for
about 2 ms, process start and end included, with 2% jitter in the amount of work. In the case "same" both do the
same work; in the case "slower" new takes 5% longer. Every command and tool is pinned to one core with taskset,
one gate per core at a time. Worlds: quiet; a neighbor on the same core that comes and goes, half a second each on
average; a load on the same core that wanders between none and 60% within some seconds. The tools of a gate run in
turn, so that they meet the same world.

The table of tolerances shows how often equal code passes and slower code fails; the default of the GitHub action
is chosen from it. Every gate is appended to a log when it ends, and gates in the log are not run again: the same
command continues after an interruption, and a larger --gates adds gates. No gate starts after --minutes. With
`--runs 0` the tools choose the number of runs, which takes about four times as long. Needs gcc and taskset;
hyperfine is skipped if it is not installed.
"""

import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from scipy import stats

from truearm.commands.measure import machine

HERE = Path(__file__).parent
TRUEARM = [sys.executable, "-m", "truearm"]
LENGTH, JITTER, SLOWER, THRESHOLD = 0.002, 0.02, 1.05, 1.05
DELTA = 0.05


class Pair(NamedTuple):
    """What a gate compares, and where."""

    old: list[str]
    new: list[str]
    core: int
    runs: int


class Found(NamedTuple):
    alarm: bool
    runs: int
    code: int | None = None  # of truearm: 0 passed, 1 failed, 3 not decided, 4 doubtful


# The tools: each looks at a pair as its users do in CI.


def on_core(pair: Pair, words: list[str], **more) -> subprocess.CompletedProcess:
    pinned = ["taskset", "-c", str(pair.core), *words]
    return subprocess.run(pinned, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)


def truearm(pair: Pair, *more: str) -> dict[str, Found]:
    limit = ["-M", str(pair.runs)] if pair.runs else []
    names = ["-n", "old", " ".join(pair.old), "-n", "new", " ".join(pair.new)]
    done = on_core(
        pair, [*TRUEARM, "race", "-N", "-q", "--json", *limit, *names, "--fail-if-worse-than", "old", *more]
    )
    if done.returncode not in (0, 1, 3, 4):
        raise RuntimeError(done.stderr)
    name = " ".join(["truearm", *more])
    return {name: Found(done.returncode == 1, json.loads(done.stdout)["pulls"]["total"], done.returncode)}


def within(tolerance: str) -> Callable[[Pair], dict[str, Found]]:
    return lambda pair: truearm(pair, "--tolerance", tolerance)


def hyperfine(pair: Pair) -> dict[str, Found]:
    """Return two gates on one series of runs: a threshold on the means, and Welch's test."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        limit = ["--runs", str(pair.runs)] if pair.runs else []
        lines = [" ".join(pair.old), " ".join(pair.new)]
        done = on_core(
            pair, ["hyperfine", "-N", "-w", "3", *limit, "--style", "none", "--export-json", file.name, *lines]
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        old, new = (found["times"] for found in json.loads(Path(file.name).read_text())["results"])
    runs = len(old) + len(new)
    p = stats.ttest_ind(new, old, equal_var=False, alternative="greater").pvalue
    return {
        "hyperfine, mean 5%": Found(statistics.fmean(new) > THRESHOLD * statistics.fmean(old), runs),
        "t-test, p < 5%": Found(bool(p < DELTA), runs),
    }


TEST = """
import json, os, subprocess

def run():
    subprocess.run(json.loads(os.environ["GATE"]), check=True)

def test_it(benchmark):
    rounds = int(os.environ["RUNS"])
    benchmark.pedantic(run, rounds=rounds, warmup_rounds=3) if rounds else benchmark(run)
"""


def pytest_benchmark(pair: Pair) -> dict[str, Found]:
    runs = 0
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_gate.py").write_text(TEST)
        quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", folder]
        words = [sys.executable, "-m", "pytest", *quiet, "--benchmark-storage=saved", "--benchmark-save=gate"]
        for command, more in (
            (pair.old, []),
            (pair.new, ["--benchmark-compare", f"--benchmark-compare-fail=mean:{THRESHOLD - 1:.0%}"]),
        ):
            env = {**os.environ, "GATE": json.dumps(command), "RUNS": str(pair.runs)}
            done = on_core(pair, [*words, *more, "test_gate.py"], cwd=folder, env=env)
            alarm = done.returncode != 0
            if alarm and "Performance has regressed" not in done.stdout + done.stderr:
                raise RuntimeError(done.stdout + done.stderr)
        for saved in Path(folder, "saved").rglob("*.json"):
            runs += json.loads(saved.read_text())["benchmarks"][0]["stats"]["rounds"]
    return {"pytest-benchmark, mean:5%": Found(alarm, runs)}


TOOLS: dict[str, Callable[[Pair], dict[str, Found]]] = {
    **{tolerance: within(tolerance) for tolerance in ("1%", "2%", "3%", "5%")},
    "truearm": truearm,
    "hyperfine": hyperfine,
    "pytest": pytest_benchmark,
}
DEFAULT_TOOLS = ["2%", "hyperfine", "1%", "3%", "5%"]


# The worlds: what else happens on the core.


def busy(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def comes_and_goes() -> None:
    while True:
        busy(random.expovariate(2.0))
        time.sleep(random.expovariate(2.0))


def wanders() -> None:
    """Take a share of the core that is between none and 60% and forgets itself within some seconds."""
    state, step = random.gauss(), 0.01
    keep = math.exp(-step / 5.0)
    while True:
        state = keep * state + math.sqrt(1 - keep * keep) * random.gauss()
        share = 0.6 / (1 + math.exp(-2 * state))
        busy(share * step)
        time.sleep((1 - share) * step)


WORLDS: dict[str, Callable[[], None] | None] = {"quiet": None, "neighbor": comes_and_goes, "wander": wanders}


def beside(load: Callable[[], None], core: int) -> None:
    os.sched_setaffinity(0, {core})
    load()


@contextmanager
def loaded(world: str, core: int) -> Iterator[None]:
    load = WORLDS[world]
    if load is None:
        yield
        return
    other = get_context("fork").Process(target=beside, args=(load, core), daemon=True)
    other.start()
    try:
        yield
    finally:
        other.terminate()
        other.join()


# The program, and how many steps make 2 ms of it.


def compiled(folder: Path) -> str:
    program = folder / "worker"
    subprocess.run(["gcc", "-O2", str(HERE / "worker.c"), "-o", str(program), "-lm"], check=True)
    return str(program)


def least(program: str, steps: float, times: int = 300) -> float:
    """Return the least wall time of the program, without disturbances."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        os.waitpid(os.posix_spawn(program, [program, str(steps), "0"], os.environ), 0)
        found.append(time.perf_counter() - began)
    return min(found)


def steps_for(program: str) -> Callable[[float], float]:
    """Return the number of steps that take the given seconds."""
    empty, many = least(program, 0), 2_000_000
    step = (least(program, many, 50) - empty) / many
    return lambda seconds: max(0.0, seconds - empty) / step


# The gates, their log, and the tables.


def gates(asked: argparse.Namespace) -> Iterator[tuple[str, str, int, str]]:
    """Yield what to run: world, case, number and tool; pytest-benchmark only for the same code."""
    for number in range(asked.gates):  # all worlds in turn, so that a part is a part of all
        for case in asked.cases:
            for world in asked.only:
                for tool in asked.tools:
                    if (case, tool) != ("slower", "pytest"):
                        yield world, case, number, tool


# cost of a gate on a quiet machine: seconds to start the tool, and runs on the same code and on slower code
COSTS = {
    "truearm": (0.7, 1700, 100),
    **dict.fromkeys(("1%", "2%", "3%", "5%"), (0.7, 300, 300)),
    "hyperfine": (0.1, 3000, 3000),
    "pytest": (2.0, 800, 800),
}


def seconds_for(asked: argparse.Namespace, key: tuple[str, str, int, str]) -> float:
    start, same, slower = COSTS[key[3]]
    runs = same if key[1] == "same" else slower
    return (start + 0.0024 * min(runs, 2 * asked.runs or runs)) * (1.0 if key[0] == "quiet" else 1.5)


def run_all(asked: argparse.Namespace) -> None:
    end = time.monotonic() + 60 * asked.minutes
    done = {tuple(row["key"]) for row in rows(asked.log)}
    left = [key for key in gates(asked) if key not in done]
    # one thread for each core keeps a gate of one world together: its tools meet the same load
    expected = sum(seconds_for(asked, key) for key in left) / len(asked.cores)
    print(f"{len(left):,} comparisons to run, about {expected / 60:.0f} minutes on a quiet machine", flush=True)
    grouped: dict[tuple[str, str, int], list[str]] = {}
    for world, case, number, tool in left:
        grouped.setdefault((world, case, number), []).append(tool)
    cores: SimpleQueue[int] = SimpleQueue()
    for core in asked.cores:
        cores.put(core)
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(asked.cores)) as pool:
        program = compiled(Path(folder))
        steps = steps_for(program)

        def one(key: tuple[str, str, int], tools: list[str]) -> None:
            if time.monotonic() > end:
                return
            core = cores.get()
            try:
                with loaded(key[0], core):
                    for tool in tools:
                        record(key, tool, core)
            finally:
                cores.put(core)

        def record(key: tuple[str, str, int], tool: str, core: int) -> None:
            length = LENGTH * (SLOWER if key[1] == "slower" else 1.0)
            old, new = ([program, f"{steps(s):.0f}", str(JITTER)] for s in (LENGTH, length))
            began = time.monotonic()
            found = TOOLS[tool](Pair([*old, "old"], [*new, "new"], core, asked.runs))
            took = time.monotonic() - began
            told = {name: value._asdict() for name, value in found.items()}
            with lock, asked.log.open("a") as log:
                log.write(json.dumps({"key": [*key, tool], "found": told, "seconds": round(took, 2)}) + "\n")

        for ended in [pool.submit(one, key, tools) for key, tools in grouped.items()]:
            ended.result()


def rows(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def table(found: list[dict], case: str, worlds: list[str]) -> Iterator[str]:
    by: dict[str, dict[str, list[dict]]] = {}
    for row in found:
        world, its, _, _ = row["key"]
        if its == case:
            for name, value in row["found"].items():
                by.setdefault(name, {}).setdefault(world, []).append(value)
    what = "failed" if case == "same" else "found"
    yield f"| gate | {' | '.join(f'{world}: {what} | runs' for world in worlds)} |"
    yield "|---" * (1 + 2 * len(worlds)) + "|"
    for name, cells in by.items():
        yield f"| {name} | {' | '.join(_cell(cells.get(world, [])) for world in worlds)} |"


def _cell(found: list[dict]) -> str:
    if not found:
        return "- | -"
    failed = sum(value["alarm"] for value in found)
    return f"{failed}/{len(found)} | {statistics.mean(value['runs'] for value in found):,.0f}"


def endings(found: list[dict]) -> Iterator[str]:
    """Give how truearm ended where code was the same."""
    yield "| gate | world | PASS | FAIL | UNSURE | doubtful |"
    yield "|---" * 6 + "|"
    by: dict[tuple[str, str], list[int]] = {}
    for row in found:
        for name, value in row["found"].items():
            if value["code"] is not None and row["key"][1] == "same":
                by.setdefault((name, row["key"][0]), []).append(value["code"])
    for (name, world), codes in by.items():
        yield f"| {name} | {world} | {' | '.join(str(codes.count(code)) for code in (0, 1, 3, 4))} |"


def tolerances(found: list[dict], worlds: list[str]) -> Iterator[str]:
    """Give how often equal code passed and slower code failed at each tolerance, and after how many runs."""
    heads = (f"{world}: equal PASS | runs | 5% slower FAIL | runs" for world in worlds)
    yield f"| tolerance | {' | '.join(heads)} |"
    yield "|---" * (1 + 4 * len(worlds)) + "|"
    for tolerance in ("1%", "2%", "3%", "5%"):
        cells = []
        for world in worlds:
            for case, code in (("same", 0), ("slower", 1)):
                mine = [row for row in found if row["key"][3] == tolerance and row["key"][:2] == [world, case]]
                ended = [value for row in mine for value in row["found"].values()]
                right = sum(value["code"] == code for value in ended)
                cells += [
                    f"{right}/{len(ended)}",
                    f"{statistics.mean(v['runs'] for v in ended):,.0f}" if ended else "-",
                ]
        yield f"| {tolerance} | {' | '.join(cells)} |"


PAGE = """# Gates on identical code

Made by `benchmarks/false_alarms.py`: up to {gates} gates of each kind, {runs}; {machine}.
Runs are means, of both commands together. The load of the machine was {load} when the page was made.

## The same code twice: gates that failed, all of them false alarms

{same}

An error probability of {delta:.0%} allows {allowed} of {gates} on average; more than {most} have a chance of 0.1%.

## 5% slower: regressions found

{slower}

## Which tolerance

{tolerances}

## How truearm ended on the same code

{endings}
"""


def page(asked: argparse.Namespace) -> str:
    found, about = rows(asked.log), machine()
    worlds = [world for world in WORLDS if any(row["key"][0] == world for row in found)]
    number = len({row["key"][2] for row in found})
    version = "no hyperfine"
    if shutil.which("hyperfine"):
        asked_of = ["hyperfine", "--version"]
        version = subprocess.run(asked_of, capture_output=True, text=True, check=True).stdout.strip()
    words = (
        f"{about['cpus']} CPUs",
        about["system"],
        about["architecture"],
        version,
        f"truearm {about['truearm']}",
    )
    return PAGE.format(
        gates=number,
        runs=f"at most {asked.runs} runs of each command" if asked.runs else "as many runs as the tools choose",
        machine=", ".join(map(str, words)),
        load=f"{os.getloadavg()[1]:.1f}",
        same="\n".join(table(found, "same", worlds)),
        slower="\n".join(table(found, "slower", worlds)),
        tolerances="\n".join(tolerances(found, worlds)),
        endings="\n".join(endings(found)),
        delta=DELTA,
        allowed=f"{DELTA * number:.3g}",
        most=int(stats.binom.ppf(0.999, number, DELTA)),
    )


def listed(allowed: dict) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        given = text.split(",")
        if unknown := [name for name in given if name not in allowed]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(allowed)}")
        return given

    return read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=60, help="of each kind")
    parser.add_argument("--runs", type=int, default=400, help="of each command at most; 0 leaves it to the tools")
    parser.add_argument("--minutes", type=float, default=10.0, help="after which no gate starts")
    parser.add_argument("--only", type=listed(WORLDS), default=list(WORLDS), help="worlds")
    parser.add_argument("--tools", type=listed(TOOLS), default=DEFAULT_TOOLS)
    parser.add_argument("--cases", type=listed({"same": 0, "slower": 0}), default=["same", "slower"])
    parser.add_argument("--cores", type=lambda text: [int(core) for core in text.split(",")])
    parser.add_argument("--log", type=Path, help="of gates that ended; what is in it is not run again")
    parser.add_argument("--save", type=Path, default=HERE / "results" / "false_alarms.md")
    asked = parser.parse_args()
    asked.cores = asked.cores or sorted(os.sched_getaffinity(0))
    asked.log = asked.log or Path(tempfile.gettempdir()) / f"truearm_false_alarms_{asked.runs}.jsonl"
    if missing := [tool for tool in ("gcc", "taskset") if not shutil.which(tool)]:
        sys.exit(f"{missing[0]} is not installed (Debian: apt-get install hyperfine gcc util-linux)")
    if not shutil.which("hyperfine"):
        asked.tools = [tool for tool in asked.tools if tool != "hyperfine"]
    print(f"Log: {asked.log}")
    run_all(asked)
    asked.save.write_text(page(asked))
    print(asked.save.read_text())


if __name__ == "__main__":
    main()
