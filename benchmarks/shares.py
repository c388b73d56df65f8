"""Measure pulls for shares relative to the lower bound. Run: python benchmarks/shares.py [--quick].

Twelve instances with shares from .002 to .95 and 2, 5 and 20 arms, delta = .05, clean (separated) and under the
worst attack of a quarter of the gap (certified at that eps). Only counts matter: batches are drawn as binomials.
Goal: a mean ratio of at most 2.8. Writes benchmarks/results/shares.md.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from truearm import Contamination
from truearm.bounds.limits import share_limit
from truearm.claims.certificate import Verdict
from truearm.policies import Told
from truearm.policies.toptwo import TopTwo
from truearm.problem import Problem

PAIRS = [
    (0.004, 0.002),
    (0.01, 0.004),
    (0.03, 0.02),
    (0.06, 0.04),
    (0.1, 0.06),
    (0.2, 0.15),
    (0.4, 0.3),
    (0.5, 0.4),
    (0.6, 0.45),
    (0.8, 0.7),
    (0.9, 0.82),
    (0.95, 0.9),
]
RUNS = {2: 10, 5: 5, 20: 2}


def instance(best, rival, k):
    """Return the best share and those of k - 1 rivals, from the nearest down to three gaps behind."""
    gap = best - rival
    return [best, *(max(rival - 2 * gap * j / max(1, k - 2), rival / 4) for j in range(k - 1))]


def attacked_shares(shares, eps):
    """Return the observed shares if bad readings are failures of the best arm and successes of the others."""
    return [(1 - eps) * shares[0], *((1 - eps) * share + eps for share in shares[1:])]


def drive(task):
    """Return the pulls of one study, and whether it named the best arm."""
    shares, eps, seed = task
    rng, arms = np.random.default_rng(seed), tuple(f"arm {i}" for i in range(len(shares)))
    contamination = None if eps is None else Contamination(eps)
    policy, pulls = TopTwo(), dict.fromkeys(arms, 0)
    state = policy.start(Problem(arms=arms, at_least=1, contamination=contamination))
    while not isinstance(batch := policy.ask(state), Verdict):
        readings = {}
        for arm, n in batch.items():
            won = int(rng.binomial(n, shares[arms.index(arm)]))
            readings[arm] = Told(np.arange(pulls[arm], pulls[arm] + n), np.repeat([1.0, 0.0], [won, n - won]))
            pulls[arm] += n
        state = policy.tell(state, readings, pulls)
    return sum(pulls.values()), batch.best == arms[0]


def cells(executor, quick):
    """Yield for each cell its name, mode, number of arms, bound, mean pulls, standard error and wrong answers."""
    for best, rival in PAIRS:
        for k, runs in RUNS.items():
            for mode in ("clean", "certified"):
                clean = instance(best, rival, k)
                eps = None if mode == "clean" else (best - rival) / 4
                seen = clean if eps is None else attacked_shares(clean, eps)
                bound = share_limit(seen, eps or 0.0).pulls(0.05)
                tasks = [(seen, eps, 1000 * k + i) for i in range(max(1, runs // 5) if quick else runs)]
                pulls, right = zip(*executor.map(drive, tasks), strict=True)
                error = np.std(pulls) / max(1, len(pulls) - 1) ** 0.5
                yield (
                    f"{best:g} over {rival:g}",
                    mode,
                    k,
                    bound,
                    np.mean(pulls),
                    error,
                    right.count(False),
                    len(tasks),
                )


def table(executor, quick):
    found = list(print_cells(cells(executor, quick)))
    names = list(dict.fromkeys(cell[0] for cell in found))
    columns = [(mode, k) for mode in ("clean", "certified") for k in RUNS]
    lines = ["| shares | " + " | ".join(f"{mode}, k = {k}" for mode, k in columns) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    by_place = {cell[:3]: cell for cell in found}
    for name in names:
        row = [by_place[name, mode, k] for mode, k in columns]
        lines.append(
            f"| {name} | " + " | ".join(f"{c[4] / c[3]:.2f} ± {c[5] / c[3]:.2f} ({c[3]:.0f})" for c in row) + " |"
        )
    ratios = {mode: [c[4] / c[3] for c in found if c[1] == mode] for mode in ("clean", "certified")}
    lines.append("")
    for mode, values in ratios.items():
        lines.append(
            f"{mode}: mean ratio {np.mean(values):.2f}, worst {max(values):.2f}, over {len(values)} cells."
        )
    lines.append(f"All: mean ratio {np.mean(list(ratios.values())):.2f} (goal: at most 2.8).")
    lines.append(f"Wrong answers: {sum(c[6] for c in found)} of {sum(c[7] for c in found)}.")
    return lines


def print_cells(found):
    for cell in found:
        print(cell[0], cell[1], cell[2], f"{cell[4] / cell[3]:.2f}", f"({cell[3]:.0f})", flush=True)
        yield cell


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a fifth of the runs")
    quick = parser.parse_args().quick
    start = time.perf_counter()
    with ProcessPoolExecutor(2) as executor:
        lines = table(executor, quick)
    runs = ", ".join(f"{n} for k = {k}" for k, n in RUNS.items())
    text = [f"# Shares: pulls over the limit, delta = .05 (runs per cell: {runs})", ""]
    text += ["Each cell: ratio ± standard error (limit in pulls).", "", *lines, ""]
    text += [f"{time.perf_counter() - start:.0f} s on two processes."]
    path = Path(__file__).parent / "results" / "shares.md"
    path.write_text("\n".join(text) + "\n")
    print("\n".join(lines[-4:]))


if __name__ == "__main__":
    main()
