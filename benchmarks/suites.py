"""Measure rounds until metrics that are 10% slower are named, and until all are settled, by number of metrics.

Run times with a load shared by a round, half of the rest shared by all metrics of a run, noise 3% in all; some
metrics are 10% slower, the others are equal; tolerance 5%, delta 0.05, allowing for 5% bad runs (there are
none). Writes benchmarks/results/suites.md.
"""

import math
import sys
from pathlib import Path

import numpy as np

from truearm.evidence.metrics import BETTER, WITHIN, WORSE, MetricEvidence, rounds_won
from truearm.evidence.wins import win_level
from truearm.problem import Adversary

METRICS = (1, 5, 20, 100, 500)
LONGEST, DELTA, SLOWER, TOLERANCE = 400, 0.05, 1.1, 1.05
LEVEL = win_level(0.05, Adversary.OBLIVIOUS)


def wins(rng, metrics, slow):
    """Return which rounds speak for what, with the first metrics slower."""
    load, common = rng.normal(size=(1, 1, LONGEST)), rng.normal(size=(2, 1, LONGEST))
    old, new = load + 0.03 * math.sqrt(0.5) * (common + rng.normal(size=(2, metrics, LONGEST)))
    new[:slow] += math.log(SLOWER)
    return rounds_won(-old, -old - math.log(TOLERANCE), -new)


def suite(seed, metrics, slow, *, fdr=False):
    """Return the round in which all slow metrics are named, that in which all are settled, and if any is false."""
    votes, evidence = wins(np.random.default_rng(seed), metrics, slow), MetricEvidence.begin(metrics, LEVEL)
    named = LONGEST
    for n in range(1, LONGEST + 1):
        evidence = evidence.after(votes[:, :, n - 1 : n])
        claims = evidence.claims(DELTA, fdr=fdr)
        if claims[WORSE, :slow].all():
            named = min(named, n)
        if claims.any(axis=0).all():
            break
    return named, n, bool(claims[WORSE, slow:].any())


def row(metrics, runs):
    half = -(-metrics // 2)
    one = np.array([suite([1, i], metrics, 1) for i in range(runs)])
    many, found = (np.array([suite([2, i], metrics, half, fdr=fdr) for i in range(runs)]) for fdr in (False, True))
    equal = np.array([suite([3, i], metrics, 0) for i in range(runs)])
    figures = (one[:, 0], many[:, 0], found[:, 0], one[:, 1], equal[:, 1])
    cells = (f"{x.mean():.0f} ± {x.std() / math.sqrt(runs):.1f}" for x in figures)
    return f"| {metrics} | {' | '.join(cells)} | {equal[:, 2].sum()} of {runs} |"


def false_claims(share, apart, runs, rounds=120):
    """Return in how many suites of 20 metrics, at the edge of a null and without bad runs, any claim is false."""
    false = [WORSE, BETTER] if apart == 0 else [WORSE, WITHIN, BETTER]
    found = 0
    for i in range(runs):
        rng = np.random.default_rng([10, i])
        load, common = rng.normal(size=(1, 1, rounds)), rng.normal(size=(2, 1, rounds))
        own = rng.normal(size=(2, 20, rounds))
        old, new = load + 0.03 * (math.sqrt(share) * common + math.sqrt(1 - share) * own)
        evidence = MetricEvidence.begin(20, 0.5).after(rounds_won(-old, -old - math.log(TOLERANCE), -new - apart))
        found += bool(evidence.claims(DELTA)[false].any())
    return found


def errors(runs):
    """Return lines about false claims where metrics are correlated."""
    lines = [
        "",
        f"Suites of 20 metrics with any false claim, of {runs} each; delta 0.05 allows {runs * DELTA:.0f}.",
        "",
        "| correlation of the metrics of a run | equal | worse by the tolerance, exactly |",
        "|---|---|---|",
    ]
    for share in (0.0, 0.5, 0.8):
        cells = (false_claims(share, apart, runs) for apart in (0.0, math.log(TOLERANCE)))
        lines.append(f"| {share:g} | {' | '.join(map(str, cells))} |")
        print(lines[-1], flush=True)
    return lines


def main(runs):
    lines = [
        "# Suites",
        "",
        "Mean rounds, and standard errors, until all metrics that are 10% slower are named: one; half of them,",
        "by Holm's rule and by the false discovery rate; until all metrics are settled; and false alarms of the",
        f"gate on equal code. {runs} suites of each. 3% noise, tolerance 5%, delta 0.05, eps 5%.",
        "",
        "| metrics | one named | half named | half, e-BH | settled, one slower | settled, equal | false alarms |",
        "|---|---|---|---|---|---|---|",
    ]
    for metrics in METRICS:
        lines.append(row(metrics, runs))
        print(lines[-1], flush=True)
    lines += errors(25 * runs)
    (Path(__file__).parent / "results" / "suites.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
