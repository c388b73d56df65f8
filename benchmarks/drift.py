"""Measure how often a winner is named among equal arms under a load, and how often quiet runs are doubtful.

Run: python benchmarks/drift.py [RUNS of the wide grid]. Writes benchmarks/results/drift.md. The runs are those of
tests/statistical/test_drift.py: toptwo as in `find_best`, at most 2,500 pulls, delta 5%, noise .03 in log times,
3% slow spikes. A winner is a result that is not doubtful. Goals: at most 28 winners of 400 under each load, and
at most 16 doubtful of 5,000 runs without one.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from sections import write_sections

from truearm.evidence.serial import LOG_DOUBT

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
import loads  # noqa: E402 - after the path
from statistical.test_drift import NOMINAL, doubts, outcomes  # noqa: E402 - after the path

WIDE = int(sys.argv[1]) if len(sys.argv) > 1 else 20
RUNS, QUIET, NOISE = 20 * WIDE, 250 * WIDE, 0.03
QUIET_LAWS = (("run times", 2), ("run times", 5), ("0 or 1", 2), ("few values", 5))
SIZES = (0.25, 0.5, 1, 2, 5)
SCALES = (10, 30, 100, 300, 1000)
SETTINGS = (
    {"k": 2, "contamination": 0.05, "goal": "min"},
    {"k": 2, "contamination": None, "goal": "max"},
    {"k": 5, "contamination": None, "goal": "min"},
)

HARDEST = SETTINGS[1]  # two arms and no contamination declared: the earliest decisions


def label(setting):
    return f"{setting['k']} | {setting['contamination']} | {setting['goal']}"


def nominal():
    yield from ["| load | k | contamination | goal | winners | doubtful |", "|---" * 6 + "|"]
    for load, law in NOMINAL.items():
        for setting in SETTINGS:
            found = outcomes(law, RUNS, seed=5, **setting)
            yield f"| {load} | {label(setting)} | {found['winner']} | {found['doubtful']} |"


def quiet():
    yield from ["| law | k | doubtful |", "|---|---|---|"]
    for law, k in QUIET_LAWS:
        yield f"| {law} | {k} | {np.count_nonzero(doubts(law, k, QUIET, seed=6) >= LOG_DOUBT)} |"


def load_grid():
    for size in SIZES:
        for scale in SCALES:
            sd = size * NOISE
            yield f"wander | {size} | {scale}", partial(loads.wander, sd=sd, scale=scale)
            yield f"walk | {size} | {scale}", partial(loads.walk, sd=sd, scale=scale)
            yield f"wave | {size} | {scale}", partial(loads.wave, sd=sd, scale=scale)
            yield f"neighbor | {size} | {scale}", partial(loads.neighbor, height=2 * sd, scale=scale)
    for rise in (1, 2, 6, 12, 24):
        yield f"ramp | {rise} | 2500", partial(loads.ramp, rise=rise * NOISE)


def wide(runs=WIDE):
    yield "| load | size / noise | scale | k | contamination | goal | winners | doubtful |"
    yield "|---" * 8 + "|"
    rows = []
    for name, load in load_grid():
        found = outcomes(load, runs, seed=7, **HARDEST)
        rows.append((found["winner"], f"| {name} | {label(HARDEST)} | {found['winner']} | {found['doubtful']} |"))
    rows.sort(key=lambda row: -row[0])
    yield from (text for winners, text in rows if winners > 0.05 * runs)
    few, total = sum(winners <= 0.05 * runs for winners, _ in rows), sum(winners for winners, _ in rows)
    cells = len(rows)
    yield f"\n{few} of {cells} cells have at most 5% and are not listed; {total} in all {cells * runs:,} runs."


def main():
    sections = {
        f"Named loads, {RUNS} runs each (allowed: at most 28 winners of 400)": nominal(),
        f"No load, {QUIET:,} runs each (allowed: at most 16 doubtful of 5,000)": quiet(),
        f"Wide grid, {WIDE} runs each: cells with more than 5% false winners, worst first": wide(),
    }
    write_sections("drift", "Equal arms under a load", sections)


if __name__ == "__main__":
    main()
