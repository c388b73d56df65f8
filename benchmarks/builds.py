"""Measure how often a gate fails on equal sources, with one build each and with random builds.

    python benchmarks/builds.py [--pairs 100] [--slow 20] [--builds 20]

Each pair has two commits with equal sources: a C program whose speed depends on its memory layout, with a loop of
branches (a fifth of its time) and one of plain arithmetic. The build inserts a random number of bytes first. A
gate at 2% of the CPU time asks whether one commit is worse, first with one build of each, then with --builds.
Finally, commits with 5% more work are raced over random builds. Needs about 10 minutes on two quiet cores. Writes
benchmarks/results/builds.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from truearm.commands.measure import machine

HERE = Path(__file__).parent
PROGRAM = """
#include <stdint.h>
volatile uint64_t kept;
__attribute__((noinline)) uint64_t branches(uint64_t n) {
    uint64_t steps = 0;
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t x = i;
        for (int k = 0; k < 12; k++) { x = x & 1 ? 3 * x + 1 : x >> 1; if (x < 3) break; steps += x & 7; }
    }
    return steps;
}
__attribute__((noinline)) uint64_t arithmetic(uint64_t n) {
    uint64_t a = 0, b = 1;
    for (uint64_t i = 0; i < n; i++) { a += b; b ^= i; if (a & 64) b++; }
    return a + b;
}
int main(void) { kept = branches(WORK * 1200) + arithmetic(WORK * 45000); }
"""
BUILD = 'echo "__asm__(\\".text; .skip $((%s %% 256 * 16 + 16))\\");" > pad.h; sh build'
LINE = "gcc -O2 -DWORK={work} -include pad.h -o bench bench.c  # {comment}\n"


def commit(folder: Path, tag: str, work: int) -> None:
    """Commit sources that do this much work, and tag them."""
    (folder / "bench.c").write_text(PROGRAM)
    (folder / "build").write_text(LINE.format(work=work, comment=tag))
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["add", "-A"], ["commit", "-qm", tag], ["tag", tag]):
        subprocess.run(["git", *identity, *words], cwd=folder, check=True)


def race(folder: Path, *words: str) -> dict[str, object]:
    """Race two commits and return what was found, with the exit code."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "truearm", "race", "-q", "--json", "--metric", "cpu", *words, "--", "./bench"],
            cwd=folder,
            env={**os.environ, "XDG_CACHE_HOME": cache},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1, 3):
        raise SystemExit(done.stderr)
    return {**json.loads(done.stdout), "code": done.returncode}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--slow", type=int, default=20)
    parser.add_argument("--builds", type=int, default=20)
    options = parser.parse_args()
    random = ["--builds", str(options.builds), "--runs-per-build", "3", "--build", BUILD % "{seed}"]
    failed = {"one build each": 0, "random builds": 0}
    found = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
        for tag, work in (("old", 100), ("same", 100), ("slow", 105)):
            commit(folder, tag, work)
        gate = ["--fail-if-worse-than", "old", "--tolerance", "2%", "--rev", "old", "--rev", "same"]
        for pair in range(options.pairs):
            # the layout of one build follows from its revision and the pair: the same line builds both
            seed = f'$(printf "{{rev}} {pair}" | cksum | cut -d " " -f 1)'
            failed["one build each"] += race(folder, *gate, "-M", "150", "--build", BUILD % seed)["code"] == 1
            failed["random builds"] += race(folder, *gate, *random)["code"] == 1
            print(f"{pair + 1} pairs: failed {failed}", flush=True)
        for _ in range(options.slow):
            found += race(folder, *random, "--rev", "old", "--rev", "slow")["best"] == "old"
    about = machine()
    lines = [
        "# Gates on equal sources, with one build each and over random builds",
        "",
        f"Made by `benchmarks/builds.py --pairs {options.pairs} --slow {options.slow} --builds {options.builds}`; "
        f"{about['cpus']} CPUs, {about['processor']}; load {os.getloadavg()[1]:.1f}.",
        "",
        "| equal sources, gate at 2% | FAIL | of |",
        "|---|---:|---:|",
        *(f"| {how} | {count} | {options.pairs} |" for how, count in failed.items()),
        "",
        f"5% more work was found over random builds in {found} of {options.slow} races "
        f"of {options.builds} rounds.",
    ]
    (HERE / "results" / "builds.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
