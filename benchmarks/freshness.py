"""Measure the cost of recomputing evidence at every decision instead of after a growth of pulls.

`policies.toptwo.STALE` is the growth of a pair of arms after which the evidence between them is recomputed: 1
evaluates all arms, at all cuts, at every decision. Same tapes for every value. Reported: the mean ratio of pulls
to the limit over instances of up to ten arms, clean, under the worst attack and certified, and the longest run
relative to its cell's mean. Run: python benchmarks/freshness.py [RUNS]. Writes benchmarks/results/freshness.md.
"""

import sys
import time
from pathlib import Path

import numpy as np

from truearm import Contamination, lab
from truearm.lab.simulate import simulate
from truearm.policies import toptwo

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
VALUES = (1.0, 1.05, 1.1, 1.2, 1.5, 1000.0)


def cells():
    for name in lab.INSTANCES:
        arms = lab.instance(name)
        if len(arms.arms) > 10:
            continue
        for attack, declared in (
            (None, None),
            (lab.worst(arms, 0.05), None),
            (lab.worst(arms, 0.1), Contamination(0.1)),
        ):
            limit = lab.limit(arms, attack, contamination=declared).pulls(0.05)
            if limit < 12_000:
                yield arms, attack, declared, limit


def measure(value):
    toptwo.STALE = value
    ratios, longest, spent = [], [], 0.0
    for arms, attack, declared, limit in cells():
        begin = time.process_time()
        pulls = simulate("toptwo", arms, attack, RUNS, contamination=declared, seed=5).runs["pulls"]
        spent += time.process_time() - begin
        ratios.append(pulls.mean() / limit)
        longest.append(pulls.max() / pulls.mean())
    return np.mean(ratios), max(longest), spent


def main():
    measure(1.2)  # compile, and fill the tables
    lines = [f"# How often evidence is recomputed ({RUNS} runs per cell)", ""]
    lines += [
        "| STALE | mean ratio to the limit | longest run over its cell's mean | seconds |",
        "|---|---|---|---|",
    ]
    for value in VALUES:
        ratio, longest, seconds = measure(value)
        lines.append(f"| {value:g} | {ratio:.3f} | {longest:.1f} | {seconds:.1f} |")
        print(lines[-1], flush=True)
    (Path(__file__).parent / "results" / "freshness.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
