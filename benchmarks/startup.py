"""Measure CPU and wall time until the first output and until the first run of a race, compared with hyperfine.

    python benchmarks/startup.py [--runs 20]

CPU time is user and system time of the tool itself. The first run of a race is a probe: it reads the clock, and
the CPU time of its parent from the kernel. Bytecode is compiled, as in an installation. Tools run in turn, so
that a load meets all alike. Limits: 150 ms of CPU time for `truearm --help`, 500 ms until the first run of
`truearm race`. Needs Linux, and Debian's hyperfine.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
PROBE = """#!/bin/sh
test -e "$0.started" && exit
{ date +%s%N; cat /proc/$PPID/task/*/schedstat; } > "$0.part"
mv "$0.part" "$0.started"
"""
TRUEARM = [sys.executable, "-m", "truearm"]
LIMITS = {"truearm --help": 150, "truearm race: first run": 500}


def time_command(words, env):
    """Return the CPU and wall time of a command, in milliseconds."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return 1000 * (used.ru_utime + used.ru_stime), 1000 * (time.perf_counter() - start)


def time_first_run(words, env, probe):
    """Return the CPU and wall time that a tool took until it started the probe, in milliseconds."""
    started_file = Path(f"{probe}.started")
    started_file.unlink(missing_ok=True)
    start = time.time_ns()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, check=False)
    started, *threads = started_file.read_text().splitlines()
    return sum(int(thread.split()[0]) for thread in threads) / 1e6, (int(started) - start) / 1e6


def cases(probe):
    starts = f"import subprocess; subprocess.run([{str(probe)!r}])"
    race = [*TRUEARM, "race", "-N", "-r", "2", "-n", "a", str(probe), "-n", "b", str(probe)]
    return {
        "python -c pass": (time_command, [sys.executable, "-c", "pass"]),
        "truearm --help": (time_command, [*TRUEARM, "--help"]),
        "import numpy": (time_command, [sys.executable, "-c", "import numpy"]),
        "import scipy.special": (time_command, [sys.executable, "-c", "import scipy.special"]),
        "hyperfine: first run": (time_first_run, ["hyperfine", "-N", "-r", "2", str(probe), "true"]),
        "python: first run of subprocess": (time_first_run, [sys.executable, "-c", starts]),
        "truearm race: first run": (time_first_run, race),
        "truearm time: first process": (
            time_first_run,
            [*TRUEARM, "time", "-r", "2", "--python", str(probe), "pass"],
        ),
    }


def measure(runs):
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder, "probe")
        probe.write_text(PROBE)
        probe.chmod(0o755)
        env = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        known = {name: case for name, case in cases(probe).items() if shutil.which(case[1][0])}
        for i in range(runs + 1):  # the first one compiles
            for name, (how, words) in known.items():
                taken = how(words, env) if how is time_command else how(words, env, probe)
                if i:
                    found.setdefault(name, []).append(taken)
    return found


def report(found, load):
    rows = []
    for name, taken in found.items():
        cpu, wall = zip(*taken, strict=True)
        limit = LIMITS.get(name)
        verdict = "" if limit is None else f"{limit}, {'kept' if statistics.median(cpu) < limit else 'NOT KEPT'}"
        times = f"{min(cpu):.0f} | {statistics.median(cpu):.0f} | {statistics.median(wall):.0f}"
        rows.append(f"| {name} | {times} | {verdict} |")
    lines = "\n".join(rows)
    return f"""# Start-up

Made by `benchmarks/startup.py`, {len(next(iter(found.values())))} runs of each, in turn; truearm
{metadata.version("truearm")}, Python {sys.version.split()[0]}, {os.cpu_count()} CPUs, load average of the machine
{load:.1f} before. Milliseconds of the whole command, or until the tool started its first run.

| what | CPU, least | CPU, median | wall, median | limit of CPU |
|---|---|---|---|---|
{lines}

scipy is loaded after the first run of a race, between two runs; `tests/test_startup.py` checks that
nothing is loaded while a run is being measured.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    load = os.getloadavg()[0]
    text = report(measure(parser.parse_args().runs), load)
    (HERE / "results" / "startup.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
