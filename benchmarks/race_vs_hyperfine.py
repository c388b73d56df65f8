"""Compare `truearm race` with hyperfine on commands whose truth is known, with disturbed runs.

    python benchmarks/race_vs_hyperfine.py [--trials 20] [--minutes 10] [--scenarios S0,S5] [--commands 2,4]

Every command sleeps: the first for 10 ms, the others for 10.5 ms (10.2 ms in S5), with 2% jitter. In some
scenarios a share of the runs takes a very different time. The right answer is the first command. Both tools run
with their command lines, each trial in a separate process, start-up included in the wall time. Trials are in
rounds: every scenario once, both tools one after the other, hyperfine first in every other round. Results are
written after each round. Needs gcc, and Debian's hyperfine.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from truearm.cli.race_log import Setting, create
from truearm.commands.command import Command
from truearm.commands.measure import machine, measure
from truearm.policies.toptwo import TopTwo
from truearm.problem import Problem
from truearm.run import run
from truearm.study import Study

HERE = Path(__file__).parent
TRUEARM = str(Path(sys.executable).parent / "truearm")
LIMIT = 45  # seconds; about five times the time of hyperfine
LONGEST = 75  # seconds a pair may take: the limit, start and end of a race, and hyperfine on four commands


class Scenario(NamedTuple):
    name: str
    description: str
    best: str  # arguments of the sleeper
    other: str
    eps: float | None  # declared to truearm where bad runs know the command; None: blind, its default


SCENARIOS = (
    Scenario("S0", "no disturbance", "10 0 0", "10.5 0 0", None),
    Scenario("S1", "5% of all runs take 200 ms", "10 0.05 200", "10.5 0.05 200", None),
    Scenario("S2", "5% of the best take 200 ms", "10 0.05 200", "10.5 0 0", 0.05),
    Scenario("S3", "10% of the best take 200 ms", "10 0.10 200", "10.5 0 0", 0.10),
    Scenario("S4", "10% of the others fail fast (0.3 ms)", "10 0 0", "10.5 0.10 0.3", 0.10),
    Scenario("S5", "10% of the best take 12.5 ms, others 10.2 ms", "10 0.10 12.5", "10.2 0 0", 0.10),
)


Line = tuple[int, Scenario]  # how many commands, and which


class Trial(NamedTuple):
    answer: str  # "right", "wrong" or "open"
    by_median: str
    runs: int
    wall: float


def compile_sleeper(folder: Path) -> str:
    program = folder / "sleeper"
    subprocess.run(["gcc", "-O2", str(HERE / "sleeper.c"), "-o", str(program), "-lm"], check=True)
    return str(program)


def commands(scenario: Scenario, count: int, sleeper: str) -> list[str]:
    # arguments that mean the same but read otherwise, because names have to differ
    others = [f"{sleeper} {'0' * i}{scenario.other}" for i in range(count - 1)]
    return [f"{sleeper} {scenario.best}", *others]


def verdict(best: int | None) -> str:
    return "open" if best is None else "right" if best == 0 else "wrong"


def with_hyperfine(lines: list[str]) -> Trial:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        began = time.monotonic()
        subprocess.run(
            ["hyperfine", "-N", "--style", "none", "--export-json", file.name, *lines],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wall = time.monotonic() - began
        results = json.loads(Path(file.name).read_text())["results"]
    by = {key: min(range(len(lines)), key=lambda i: results[i][key]) for key in ("mean", "median")}
    return Trial(verdict(by["mean"]), verdict(by["median"]), sum(len(r["times"]) for r in results), wall)


def with_truearm(lines: list[str], eps: float | None) -> Trial:
    began = time.monotonic()
    assumed = [] if eps is None else ["--contamination", str(eps)]
    words = ["race", "-N", "--json", *assumed, "--max-time", str(LIMIT), *lines]
    done = subprocess.run([TRUEARM, *words], check=False, capture_output=True, text=True)
    wall = time.monotonic() - began
    found = json.loads(done.stdout)
    assert found["target"] == "wins", "a race is in rounds"
    best = None if found["best"] is None else lines.index(found["best"])
    return Trial(verdict(best), "", found["pulls"]["total"], wall)


def run_trial(scenario: Scenario, lines: list[str], number: int) -> tuple[Trial, Trial]:
    """Return a trial of each tool, hyperfine's first, side by side so that both meet the same load."""
    if number % 2:
        ours = with_truearm(lines, scenario.eps)
        return with_hyperfine(lines), ours
    return with_hyperfine(lines), with_truearm(lines, scenario.eps)


def row(scenario: Scenario, count: int, pairs: list[tuple[Trial, Trial]]) -> str:
    def share(trials: tuple[Trial, ...], answer: str, field: str = "answer") -> str:
        return f"{sum(getattr(t, field) == answer for t in trials)}/{len(trials)}"

    def middle(values: Iterable[float]) -> str:
        return f"{statistics.median(values):.4g}"

    theirs, ours = zip(*pairs, strict=True)
    cells = [
        scenario.name,
        count,
        share(theirs, "right"),
        share(theirs, "right", "by_median"),
        middle(t.runs for t in theirs),
        middle(t.wall for t in theirs),
        "blind" if scenario.eps is None else f"{scenario.eps:.0%}",
        share(ours, "right"),
        share(ours, "wrong"),
        share(ours, "open"),
        middle(t.runs for t in ours),
        middle(t.wall for t in ours),
        middle(mine.wall / its.wall for its, mine in pairs),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def overhead(runs: int = 800) -> list[str]:
    """Return lines about the wall time per run of `true`, without the start of the tools."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = (Path(folder) / f"{i}.db" for i in range(10**6))
        tools = {
            "truearm race": lambda: time_race(runs, None),
            "truearm race --save": lambda: time_race(runs, next(fresh)),
            "hyperfine -N": lambda: time_hyperfine(runs),
        }
        rounds = [{name: measure() for name, measure in tools.items()} for _ in range(9)]
    return [f"| {name} | {1000 * statistics.median(r[name] for r in rounds):.3f} ms |" for name in tools]


def time_race(runs: int, path: Path | None) -> float:
    """Return the time per run from the first run to the last: the loop of a race without start-up."""
    commands = [Command("true", name="a"), Command("true", name="b")]
    setting = Setting(commands=tuple(commands))
    study = Study(Problem(arms=("a", "b"), goal="min"), policy=TopTwo(first=runs // 2), seed=1)
    if path is not None:
        create(path, study, setting)
    by_name = {command.name: command for command in commands}
    moments = [time.perf_counter()]

    def watch() -> bool:
        moments[1:] = [time.perf_counter()]
        return study.pulls >= runs

    run(study, lambda arm: lambda: measure(by_name[arm]).value, watch=watch)
    return (moments[1] - moments[0]) / runs


def time_hyperfine(runs: int) -> float:
    def wall(count: int) -> float:
        began = time.perf_counter()
        words = ["hyperfine", "-N", "--style", "none", "-r", str(count), "true"]
        subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
        return time.perf_counter() - began

    return (wall(runs) - wall(2)) / (runs - 2)


HEAD = """# truearm race and hyperfine

Made by `benchmarks/race_vs_hyperfine.py --jobs {jobs}`, {trials} of each line in paired rounds; {machine}.

{descriptions}

hyperfine ranks by the mean; "by median" is the ranking by its exported medians. It runs every
command about 3 seconds, whatever the difference. truearm measures in rounds, every command once in random order;
it assumes what the column eps says, and may answer "open" ({limit} seconds are its budget). Runs and
wall time (seconds, including the start of the tool) are medians over the trials, for all commands together; ratio
is the median of truearm's wall time over hyperfine's in the same round.

"""

COLUMNS = (
    *("scenario", "arms", "hyperfine right", "by median", "runs", "wall"),
    *("eps", "truearm right", "wrong", "open", "runs", "wall", "ratio"),
)

TAIL = """

Wall time per run of `true`, without the start of the tools, median of 9 (with --save every run is committed
twice to the disk, before it starts and when it has ended):

| tool | per run |
|---|---|
"""


def about() -> str:
    found = machine()
    version = subprocess.run(["hyperfine", "--version"], capture_output=True, text=True, check=True).stdout
    words = (f"{found['cpus']} CPUs", found["system"], found["architecture"], version.strip())
    urgent = os.sched_getscheduler(0) != os.SCHED_OTHER  # chrt -f 10, where others use the machine too
    priority = "both tools at real-time priority" if urgent else "ordinary priority"
    return ", ".join([*map(str, words), f"truearm {found['truearm']}", priority])


def page(found: dict[Line, list[tuple[Trial, Trial]]], jobs: int, costs: list[str]) -> str:
    """Return the table of the results so far."""
    numbers = sorted({len(pairs) for pairs in found.values()})
    trials = " or ".join(map(str, numbers)) + (" trial" if numbers == [1] else " trials")
    descriptions = "\n".join(f"- {s.name}: {s.description}" for s in SCENARIOS)
    fields = {"trials": trials, "jobs": jobs, "descriptions": descriptions, "machine": about(), "limit": LIMIT}
    rows = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    rows += [row(scenario, count, pairs) for (count, scenario), pairs in found.items()]
    return HEAD.format(**fields) + "\n".join(rows) + TAIL + "\n".join(costs) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20, help="rounds, at most")
    parser.add_argument("--minutes", type=float, default=10.0, help="no pair starts that may end later")
    parser.add_argument("--jobs", type=int, default=1, help="pairs at a time; sleeping takes no CPU")
    parser.add_argument("--scenarios", default=",".join(s.name for s in SCENARIOS))
    parser.add_argument("--commands", default="2,4")
    parser.add_argument("--save", type=Path, default=HERE / "results" / "race_vs_hyperfine.md")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    if missing := [tool for tool in ("gcc", "hyperfine") if not shutil.which(tool)]:
        parser.error(f"not installed: {', '.join(missing)} (Debian: apt-get install {' '.join(missing)})")
    chosen = [s for s in SCENARIOS if s.name in options.scenarios.split(",")]
    lines = [(count, scenario) for count in map(int, options.commands.split(",")) for scenario in chosen]
    found: dict[Line, list[tuple[Trial, Trial]]] = {}
    costs = overhead()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        sleeper = compile_sleeper(Path(folder))

        def try_line(number: int, line: Line) -> tuple[Trial, Trial] | None:
            if time.monotonic() + LONGEST > end:
                return None
            return run_trial(line[1], commands(line[1], line[0], sleeper), number)

        for number in range(options.trials):
            pairs = list(pool.map(partial(try_line, number), lines))
            for line, pair in zip(lines, pairs, strict=True):
                if pair is not None:
                    found.setdefault(line, []).append(pair)
            if found:
                options.save.write_text(page(found, options.jobs, costs), encoding="utf-8")
            if None in pairs:
                break
            print(f"{number + 1} rounds", flush=True)
    if not found:
        sys.exit(f"--minutes {options.minutes:g} is too short: a trial of both tools may take {LONGEST} s")
    print(options.save.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
