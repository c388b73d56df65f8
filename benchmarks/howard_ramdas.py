"""Compare QLUCB with its published means: Howard and Ramdas (2022), Figure 5.

Ten arms, delta = 0.05, slack 0.025 in quantile units, limits tightest at 1000 readings. The published numbers are
means and standard errors of 64 runs with the beta-binomial limits, from the results file of the authors' code.
Ours are as many runs of `Lucb(growth=0)`, which pulls as they do. Their random numbers cannot be repeated, so
agreement is statistical: the goal is at least 8 cells within 3 joint standard errors.

Run: .venv/bin/python benchmarks/howard_ramdas.py [--reps 64] [--cells all|uniform:0.5,...] [--save]
"""

import argparse
import math
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from truearm.claims.certificate import Verdict
from truearm.policies import Told
from truearm.policies.lucb import Lucb
from truearm.problem import Problem

ARMS = tuple(f"arm{i}" for i in range(10))
SLACK = 0.025
# arms, quantile: mean and standard error of pulls
PUBLISHED = """
cauchy 0.05 2319 108
cauchy 0.1 4988 145
cauchy 0.2 10491 250
cauchy 0.3 14407 371
cauchy 0.4 16766 423
cauchy 0.5 19347 472
cauchy 0.6 17658 450
cauchy 0.7 16238 405
cauchy 0.8 12956 304
cauchy 0.9 8996 141
cauchy 0.95 6548 104
normal_spread 0.05 26379 756
normal_spread 0.1 49932 1412
normal_spread 0.2 86788 2443
normal_spread 0.3 110119 3085
normal_spread 0.4 123278 2858
normal_spread 0.5 98516 5329
normal_spread 0.6 7780 230
normal_spread 0.7 3418 82
normal_spread 0.8 2252 43
normal_spread 0.9 2327 11
normal_spread 0.95 3509 9
uniform 0.05 4530 106
uniform 0.1 7581 189
uniform 0.2 12489 379
uniform 0.3 15844 369
uniform 0.4 16877 442
uniform 0.5 17815 450
uniform 0.6 16408 356
uniform 0.7 14672 404
uniform 0.8 10585 257
uniform 0.9 5525 130
uniform 0.95 3476 9
"""
# every shape of arms, low and high quantiles; cells of over 25,000 pulls are left to --cells all
DEFAULT = (
    "uniform:0.05,uniform:0.2,uniform:0.5,uniform:0.9,cauchy:0.1,cauchy:0.3,cauchy:0.8,cauchy:0.95,"
    "normal_spread:0.6,normal_spread:0.8"
)


def published_cells():
    cells = {}
    for line in PUBLISHED.split("\n"):
        if line:
            arms, quantile, mean, error = line.split()
            cells[arms, float(quantile)] = (float(mean), float(error))
    return cells


def parse_cells(text):
    if text == "all":
        return list(published_cells())
    parts = (cell.split(":") for cell in (DEFAULT if text == "default" else text).split(","))
    return [(arms, float(quantile)) for arms, quantile in parts]


def draws(shape, quantile, best, rng, size=1024):
    """Yield the readings of one arm; the best one is shifted by twice the slack, or twice as wide."""
    shift = 2 * (math.tan(math.pi * (quantile + SLACK - 0.5)) - math.tan(math.pi * (quantile - 0.5)))
    while True:
        if shape == "uniform":
            values = rng.random(size) + 2 * SLACK * best
        elif shape == "cauchy":
            values = rng.standard_cauchy(size) + shift * best
        else:
            values = rng.standard_normal(size) * (1 + best)
        yield from values.reshape(-1, 1)


def pulls(cell, seed):
    """Return the number of pulls of one run."""
    shape, quantile = cell
    policy = Lucb(slack=SLACK, growth=0.0)
    state = policy.start(Problem(arms=ARMS, contamination=None, quantile=quantile))
    streams = np.random.default_rng(seed).spawn(len(ARMS))
    tapes = {arm: draws(shape, quantile, i == 0, streams[i]) for i, arm in enumerate(ARMS)}
    total, places = 0, np.zeros(1, dtype=np.intp)
    while not isinstance(batch := policy.ask(state), Verdict):
        state = policy.tell(state, {arm: Told(places, next(tapes[arm])) for arm in batch}, {})
        total += len(batch)
    return total


def run(cell, reps, pool):
    mark = zlib.crc32(repr(cell).encode())  # cells that shared their draws would also share their luck
    found = np.array(list(pool.map(pulls, [cell] * reps, [(mark, r) for r in range(reps)], chunksize=4)))
    return float(found.mean()), float(found.std(ddof=1) / math.sqrt(reps))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--reps", type=int, default=64)
    parser.add_argument("--cells", default="default")
    parser.add_argument("--save", action="store_true", help="also write results/howard_ramdas.md")
    options = parser.parse_args()
    theirs, lines = published_cells(), []

    def report(line):
        print(line, flush=True)
        lines.append(line)

    report(f"# QLUCB, {options.reps} runs per cell, against the published means of 64\n")
    report("| arms | quantile | ours | published | z | seconds |\n|---|---|---|---|---|---|")
    good = 0
    with ProcessPoolExecutor(2) as pool:
        for cell in (cells := parse_cells(options.cells)):
            start = time.perf_counter()
            (mean, error), (target, spread) = run(cell, options.reps, pool), theirs[cell]
            z = (mean - target) / math.hypot(error, spread) if error or spread else math.nan
            good += abs(z) <= 3
            ours, known = f"{mean:.0f} ± {error:.0f}", f"{target:.0f} ± {spread:.0f}"
            spent = time.perf_counter() - start
            report(f"| {cell[0]} | {cell[1]} | {ours} | {known} | {z:+.2f} | {spent:.0f} |")
    report(f"\n{good} of {len(cells)} cells within 3 joint standard errors.")
    if options.save:
        target = Path(__file__).parent / "results" / "howard_ramdas.md"
        target.parent.mkdir(exist_ok=True)
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
