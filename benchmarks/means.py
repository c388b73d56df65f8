"""Measure the cost of medians on clean normal readings, relative to means, for two arms.

The rule on means knows the variance, pulls both arms equally, and stops when a normal mixture (Robbins) of the
mean difference reaches 1/delta. It is correct for clean normal readings only. Run: python benchmarks/means.py
[RUNS]. Writes benchmarks/results/means.md.
"""

import sys
from pathlib import Path

import numpy as np

from truearm import families
from truearm.lab import translations, worst
from truearm.lab.simulate import simulate

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 400
DELTA, SPREAD = 0.05, 0.1  # SPREAD is the mixture's variance of the difference
GAPS = (1.0, 0.5, 0.25)
RESULTS = Path(__file__).parent / "results" / "means.md"


def by_means(gap, rng):
    """Return the pulls of both arms until the mixture decides, and whether it is wrong."""
    n = np.arange(1, int(400 / gap**2))
    total = np.cumsum(rng.normal(gap, np.sqrt(2), n.size))  # of differences, variance 2
    log_mixture = SPREAD * total**2 / (4 * (2 + SPREAD * n)) - np.log1p(SPREAD * n / 2) / 2
    stop = int(np.argmax(log_mixture >= np.log(1 / DELTA)))
    return 2 * (stop + 1), total[stop] < 0


def row(gap):
    rng = np.random.default_rng(1)
    means = np.array([by_means(gap, rng) for _ in range(RUNS)])
    arms = translations(families.gaussian(), [gap])
    found = [simulate("toptwo", arms, worst(arms, 0.0), RUNS, contamination=eps).summary for eps in (None, 0.05)]
    pulls = [means[:, 0].mean(), *(one.pulls for one in found)]
    wrong = [int(means[:, 1].sum()), *(one.errors.count for one in found)]
    cells = " | ".join(
        f"{mean:.0f}, {mean / pulls[0]:.1f}x, {bad} wrong" for mean, bad in zip(pulls, wrong, strict=True)
    )
    return f"| {gap} | {cells} |"


def main():
    lines = [
        "# Clean normal readings: medians, and means that know the variance",
        "",
        f"`python benchmarks/means.py`: two arms, delta {DELTA}, {RUNS} runs of each cell; mean pulls, "
        "relative to the rule on means.",
        "",
        "| gap, in standard deviations | means, variance known | medians, separated | medians, certified at 5% |",
        "|---|---|---|---|",
        *map(row, GAPS),
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
