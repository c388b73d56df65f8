"""Compare priors of the mixture in short and long runs. Run: python benchmarks/priors.py.

For each prior (docs/evidence.md section 6): pulls of the default policy relative to the lower bound, as in
benchmarks/efficiency.py, with the same instances, attacks and readings for all, at delta = .05 and .001. A run
that rejected the best arm is counted as lost and excluded from the means: among equal arms it need not end.
Writes benchmarks/results/priors.md.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
from efficiency import INSTANCES, attacks

from truearm import lab
from truearm.bounds.mixture import DEFAULT_PRIOR, Prior
from truearm.lab import engine
from truearm.lab.simulate import simulate

PRIORS = [
    DEFAULT_PRIOR,
    Prior((6.0, 100.0), (0.5, 0.5)),
    Prior((6.0, 512.0), (0.6, 0.4)),
    Prior((8.0, 256.0), (0.5, 0.5)),
    Prior((8.0, 128.0), (0.5, 0.5)),
    Prior((12.0, 200.0), (0.5, 0.5)),
    Prior((8.0, 64.0, 512.0), (0.4, 0.3, 0.3)),
    Prior((16.0, 256.0), (0.5, 0.5)),
]
LONG = 1000  # pulls; a run whose bound is larger counts as long


def name(prior):
    return " + ".join(f"{w:g} Beta({c:g})" for c, w in zip(prior.concentrations, prior.weights, strict=True))


def cells(delta):
    """Yield every cell that some method can decide within 12,000 pulls at delta = .05."""
    for key in INSTANCES:
        instance = lab.instance(key)
        for column, attack, declared in attacks(instance):
            found = lab.limit(instance, attack, contamination=declared)
            if found.pulls(0.05) < 12_000:
                yield key, column, instance, attack, declared, found.pulls(delta)


def ratios(prior, delta, runs):
    """Return (instance, column, bound, pulls over the bound, runs that lost the best arm) of all cells."""
    engine.DEFAULT_PRIOR = prior
    found = []
    for key, column, instance, attack, declared, bound in cells(delta):
        repeats = max(runs // 4, 5) if len(instance.arms) >= 50 else runs
        done = simulate("toptwo", instance, attack, repeats, contamination=declared, delta=delta, seed=7)
        lost = done.runs["best_rejected"]
        found.append((key, column, bound, float(done.runs["pulls"][~lost].mean()) / bound, int(lost.sum())))
    return found


def row(prior, delta, runs):
    found = ratios(prior, delta, runs)
    short = [ratio for *_, bound, ratio, _ in found if bound < LONG]
    long = [ratio for *_, bound, ratio, _ in found if bound >= LONG]
    slow = [ratio for key, column, _, ratio, _ in found if (key, column) == ("G2s", "separated, clean")]
    means = [float(np.mean(part)) for part in ([*short, *long], short, long, slow)]
    worst, wrong = max(ratio for *_, ratio, _ in found), sum(lost for *_, lost in found)
    figures = " | ".join(f"{mean:.3f}" for mean in means)
    return f"| {name(prior)} | {delta:g} | {figures} | {worst:.2f} | {wrong} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--first", type=int, default=len(PRIORS), help="number of priors to measure")
    options, start = parser.parse_args(), time.perf_counter()
    runs = options.runs
    lines = [
        "| prior | delta | mean of all cells | bound under 1,000 pulls | longer | G2s clean | worst cell | lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for delta in (0.05, 0.001):
        for prior in PRIORS[: options.first]:
            lines.append(row(prior, delta, runs))
            print(lines[-1], flush=True)
    text = [f"# Priors: pulls over the limit, {runs} runs per cell (a quarter for k = 50)", "", *lines, ""]
    text.append(f"{math.ceil((time.perf_counter() - start) / 60)} minutes on one process.")
    (Path(__file__).parent / "results" / "priors.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
