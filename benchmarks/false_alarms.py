"""Measure how often gates fail on identical code, and whether they find a true regression of 5%.

    python benchmarks/false_alarms.py [--gates 60] [--runs 400] [--minutes 30] [--only quiet,wander] [--tools 2%]

A gate compares two commands, "old" and "new", and fails if new is slower. Both are a C program that works for
about 2 ms, start and end of the process included, with 2% jitter in the amount of work: the same work in the case
"same", 5% more for new in the case "slower". Every command and tool is pinned to one core, one gate per core at a
time. Worlds: quiet; a neighbor on the same core that comes and goes, half a second each on average; a load on the
same core that wanders between none and 60% within some seconds. The tools of a gate run in turn, so they meet the
same world.

Each gate is appended to a log when it ends, and gates in the log are not run again: the same command continues an
interrupted run, and a larger --gates adds to it. No gate starts after --minutes. Needs gcc and taskset; skips
hyperfine where it is not installed.
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


class Outcome(NamedTuple):
    verdict: str  # PASS, FAIL, UNSURE or doubtful
    runs: int  # of both commands together


# The tools: each looks at a pair as its users do in CI.

VERDICTS = {0: "PASS", 1: "FAIL", 3: "UNSURE", 4: "doubtful"}


def on_core(pair: Pair, words: list[str]) -> subprocess.CompletedProcess:
    pinned = ["taskset", "-c", str(pair.core), *words]
    return subprocess.run(pinned, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def truearm(tolerance: str, best_of: int) -> Callable[[Pair], dict[str, Outcome]]:
    def decide(pair: Pair) -> dict[str, Outcome]:
        words = ["-M", str(pair.runs), "-n", "old", " ".join(pair.old), "-n", "new", " ".join(pair.new)]
        words += ["--fail-if-worse-than", "old", "--tolerance", tolerance, "--best-of", str(best_of)]
        done = on_core(pair, [*TRUEARM, "race", "-N", "-q", "--json", *words])
        if done.returncode not in VERDICTS:
            raise RuntimeError(done.stderr)
        name = f"truearm --tolerance {tolerance}" + f" --best-of {best_of}" * (best_of > 1)
        runs = best_of * json.loads(done.stdout)["pulls"]["total"]
        return {name: Outcome(VERDICTS[done.returncode], runs)}

    return decide


def hyperfine(pair: Pair) -> dict[str, Outcome]:
    """Return two gates on one series of runs: a threshold on the means, and Welch's test."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = ["-N", "-w", "3", "--runs", str(pair.runs), "--style", "none", "--export-json", file.name]
        done = on_core(pair, ["hyperfine", *words, " ".join(pair.old), " ".join(pair.new)])
        if done.returncode:
            raise RuntimeError(done.stderr)
        old, new = (result["times"] for result in json.loads(Path(file.name).read_text())["results"])
    p = stats.ttest_ind(new, old, equal_var=False, alternative="greater").pvalue
    slower = statistics.fmean(new) > THRESHOLD * statistics.fmean(old)
    runs = len(old) + len(new)
    return {
        "hyperfine, mean 5%": Outcome("FAIL" if slower else "PASS", runs),
        "t-test, p < 5%": Outcome("FAIL" if p < DELTA else "PASS", runs),
    }


TOLERANCES, BEST_OF = ("1%", "2%", "3%", "5%"), 4
TOOLS: dict[str, Callable[[Pair], dict[str, Outcome]]] = {
    "2%": truearm("2%", 1),
    **{f"{tolerance} best": truearm(tolerance, BEST_OF) for tolerance in TOLERANCES},
    "hyperfine": hyperfine,
}


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
    """Take a share of the core that is between none and 60% and changes within some seconds."""
    state, step = random.gauss(), 0.01
    keep = math.exp(-step / 5.0)
    while True:
        state = keep * state + math.sqrt(1 - keep * keep) * random.gauss()
        share = 0.6 / (1 + math.exp(-2 * state))
        busy(share * step)
        time.sleep((1 - share) * step)


WORLDS: dict[str, Callable[[], None] | None] = {"quiet": None, "neighbor": comes_and_goes, "wander": wanders}


def run_on_core(load: Callable[[], None], core: int) -> None:
    os.sched_setaffinity(0, {core})
    load()


@contextmanager
def apply_load(world: str, core: int) -> Iterator[None]:
    load = WORLDS[world]
    if load is None:
        yield
        return
    other = get_context("fork").Process(target=run_on_core, args=(load, core), daemon=True)
    other.start()
    try:
        yield
    finally:
        other.terminate()
        other.join()


# The program, and how many steps make 2 ms of it.


def compile_worker(folder: Path) -> str:
    program = folder / "worker"
    subprocess.run(["gcc", "-O2", str(HERE / "worker.c"), "-o", str(program), "-lm"], check=True)
    return str(program)


def least_time(program: str, steps: float, repeats: int = 300) -> float:
    """Return the least wall time of the program: what it takes when nothing disturbs it."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        os.waitpid(os.posix_spawn(program, [program, str(steps), "0"], os.environ), 0)
        times.append(time.perf_counter() - began)
    return min(times)


def steps_for(program: str) -> Callable[[float], float]:
    """Return how many steps make the program take so many seconds."""
    empty, many = least_time(program, 0), 2_000_000
    step = (least_time(program, many, 50) - empty) / many
    return lambda seconds: max(0.0, seconds - empty) / step


# The gates, their log, and the table.


def gates(options: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    """Yield every gate, all worlds in turn, so that an interrupted run covers all of them."""
    for number in range(options.gates):
        for case in ("same", "slower"):
            for world in options.only:
                yield world, case, number


def run_all(options: argparse.Namespace) -> None:
    end = time.monotonic() + 60 * options.minutes
    done = {tuple(row["key"]) for row in read_log(options.log)}
    cores: SimpleQueue[int] = SimpleQueue()
    for core in options.cores:
        cores.put(core)
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(options.cores)) as pool:
        program = compile_worker(Path(folder))
        steps = steps_for(program)

        def decide(world: str, case: str, number: int) -> None:
            tools = [tool for tool in options.tools if (world, case, number, tool) not in done]
            if not tools or time.monotonic() > end:
                return
            core = cores.get()
            try:
                with apply_load(world, core):
                    for tool in tools:
                        record((world, case, number, tool), core)
            finally:
                cores.put(core)

        def record(key: tuple[str, str, int, str], core: int) -> None:
            length = LENGTH * (SLOWER if key[1] == "slower" else 1.0)
            old, new = ([program, f"{steps(s):.0f}", str(JITTER)] for s in (LENGTH, length))
            found = TOOLS[key[3]](Pair([*old, "old"], [*new, "new"], core, options.runs))
            plain = {name: value._asdict() for name, value in found.items()}
            with lock, options.log.open("a") as log:
                log.write(json.dumps({"key": key, "found": plain}) + "\n")

        for future in [pool.submit(decide, *gate) for gate in gates(options)]:
            future.result()


def read_log(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def table(rows: list[dict]) -> Iterator[str]:
    by: dict[tuple[str, str], dict[str, list[dict]]] = {}
    for row in rows:
        for name, value in row["found"].items():
            by.setdefault((row["key"][0], name), {"same": [], "slower": []})[row["key"][1]].append(value)
    yield "| load | gate | equal code: PASS | FAIL | runs | 5% slower: FAIL | PASS | runs |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for (world, name), cases in sorted(by.items(), key=lambda item: list(WORLDS).index(item[0][0])):
        same, slower = cases["same"], cases["slower"]
        cells = [*count_verdicts(same, "PASS", "FAIL"), *count_verdicts(slower, "FAIL", "PASS")]
        yield f"| {world} | {name} | {' | '.join(cells)} |"


def count_verdicts(rows: list[dict], first: str, second: str) -> list[str]:
    if not rows:
        return ["-", "-", "-"]
    shares = [f"{sum(row['verdict'] == verdict for row in rows)}/{len(rows)}" for verdict in (first, second)]
    return [*shares, f"{statistics.mean(row['runs'] for row in rows):,.0f}"]


PAGE = """# Gates on identical code

Made by `benchmarks/false_alarms.py`: at most {runs} runs of each command; {machine}.
Runs are means, of both commands together. Gates that neither pass nor fail are UNSURE. The load of the machine was
{load} when the page was made.

{table}

An error probability of {delta:.0%} allows {allowed} of 60 on average; more than {most} have a chance of 0.1%.
"""


def page(options: argparse.Namespace) -> str:
    about = machine()
    version = "no hyperfine"
    if shutil.which("hyperfine"):
        version = subprocess.run(
            ["hyperfine", "--version"], capture_output=True, text=True, check=True
        ).stdout.strip()
    words = (
        f"{about['cpus']} CPUs",
        about["system"],
        about["architecture"],
        version,
        f"truearm {about['truearm']}",
    )
    return PAGE.format(
        runs=options.runs,
        machine=", ".join(map(str, words)),
        load=f"{os.getloadavg()[1]:.1f}",
        table="\n".join(table(read_log(options.log))),
        delta=DELTA,
        allowed=f"{DELTA * 60:.3g}",
        most=int(stats.binom.ppf(0.999, 60, DELTA)),
    )


def choices(allowed: dict) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        given = text.split(",")
        if unknown := [name for name in given if name not in allowed]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} must be one of {', '.join(allowed)}")
        return given

    return read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=60, help="of each kind")
    parser.add_argument("--runs", type=int, default=400, help="of each command at most")
    parser.add_argument("--minutes", type=float, default=30.0, help="after which no gate starts")
    parser.add_argument("--only", type=choices(WORLDS), default=list(WORLDS), help="worlds")
    parser.add_argument("--tools", type=choices(TOOLS), default=list(TOOLS))
    parser.add_argument("--log", type=Path, help="of gates that ended; they are not run again")
    parser.add_argument("--save", type=Path, default=HERE / "results" / "false_alarms.md")
    options = parser.parse_args()
    options.cores = sorted(os.sched_getaffinity(0))
    options.log = options.log or Path(tempfile.gettempdir()) / f"truearm_gates_{options.runs}.jsonl"
    if missing := [tool for tool in ("gcc", "taskset") if not shutil.which(tool)]:
        sys.exit(f"{missing[0]} is not installed (Debian: apt-get install hyperfine gcc util-linux)")
    if not shutil.which("hyperfine"):
        options.tools = [tool for tool in options.tools if tool != "hyperfine"]
    print(f"Log: {options.log}")
    run_all(options)
    options.save.write_text(page(options))
    print(options.save.read_text())


if __name__ == "__main__":
    main()
