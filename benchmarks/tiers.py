"""Tiers of many arms: seconds, pairs of which the order is certain, and pairs that were searched by themselves."""

import time
from pathlib import Path

import numpy as np

from truearm.evidence import Judge
from truearm.evidence.sample import Sample
from truearm.evidence.tiers import order
from truearm.problem import Problem

CASES = ((10, 1000), (100, 100), (1000, 100), (1000, 1000))


class Counted:
    """Count searches of single pairs."""

    def __init__(self, judge):
        self.judge, self.searched = judge, 0

    def __getattr__(self, name):
        return getattr(self.judge, name)

    def better(self, *pair, **more):
        self.searched += 1
        return self.judge.better(*pair, **more)


def main():
    lines = [
        "# Tiers of many arms",
        "",
        "Normal readings of standard deviation 1, true medians of standard deviation 1, 5 % contamination allowed",
        "for. A search is the minimum over all cuts of one pair; the other pairs are decided by common bounds.",
        "Seconds on a machine with other work to do.",
        "",
        "| arms | readings each | seconds | pairs | in certain order | searched | tiers |",
        "|---|---|---|---|---|---|---|",
    ]
    for k, n in CASES:
        rng = np.random.default_rng(k + n)
        samples = [Sample.of(rng.normal(shift, 1, n)) for shift in rng.normal(size=k)]
        ranking = tuple(sorted(range(k), key=lambda i: -samples[i].quantile(0.5)))
        judge = Counted(Judge.of(Problem(arms=tuple(map(str, range(k)))), samples))
        began = time.perf_counter()
        found = order(judge, ranking)
        took, pairs = time.perf_counter() - began, k * (k - 1) // 2
        cells = (k, n, f"{took:.2f}", pairs, int(found.better.sum()), judge.searched, len(found.tiers))
        lines.append(f"| {' | '.join(map(str, cells))} |")
        print(lines[-1], flush=True)
    Path(__file__).parent.joinpath("results", "tiers.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
