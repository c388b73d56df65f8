"""Measure how often the best arm is ever rejected at the worst instances.

The scenarios are those of tests/statistical/test_wrong_decisions.py, at full size (`make statistical` tests them)
or at a part of it. Run: python benchmarks/wrong_decisions.py [0.1]. Writes benchmarks/results/wrong_decisions.md.
"""

import sys
import time
from pathlib import Path

from scipy.stats import binomtest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
from statistical.test_wrong_decisions import DELTA, FULL, SCENARIOS, losses  # noqa: E402 - after the path


def main():
    start, part = time.perf_counter(), float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    lines = ["| worst case | k | runs | pulls at most | best arm ever rejected | p-value against delta |"]
    lines.append("|---|---|---|---|---|---|")
    for scenario in SCENARIOS:
        for k, runs, pulls in FULL:
            lost = losses(scenario, k, max(1, round(part * runs)), pulls)
            test = binomtest(int(lost.sum()), lost.size, DELTA, alternative="greater")
            lines.append(f"| {scenario} | {k} | {lost.size} | {pulls:,} | {lost.mean():.4f} | {test.pvalue:.3f} |")
            print(lines[-1], flush=True)
    text = [f"# The best arm ever rejected, allowed at most {DELTA}", "", *lines]
    text += ["", f"{time.perf_counter() - start:.0f} s on one core."]
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "wrong_decisions.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
