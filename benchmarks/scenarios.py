"""Run the scenarios that come with the package at full size and keep their tables.

Run: python benchmarks/scenarios.py [NAME ...], all by default. Writes benchmarks/results/scenarios.md. Each is one
command, such as `truearm simulate schreuder`; what was published stands in the line above a table or in its last
column.
"""

import subprocess
import sys
import time
from pathlib import Path

NAMES = ("evidence", "howard-ramdas-5", "howard-ramdas-6", "schreuder", "powers", "gaps", "harm")


def table(name):
    command = [sys.executable, "-m", "truearm.cli", "simulate", name, "--workers", "2"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip()


def main(names):
    text = ["# The scenarios that come with the package, at full size"]
    for name in names:
        start = time.perf_counter()
        shown = table(name)
        seconds = time.perf_counter() - start
        text += ["", f"## `truearm simulate {name}` ({seconds:.0f} s on two processes)", "", "```", shown, "```"]
        print(name, f"{seconds:.0f} s", flush=True)
    (Path(__file__).parent / "results" / "scenarios.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:] or NAMES)
