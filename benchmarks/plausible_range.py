"""Measure pulls until two arms are told apart, with and without a plausible range.

Normal readings of standard deviation 1, delta 0.05. Bad readings are as harmful as possible: far below for the
better arm, far above for the other, all of them outside the range from -10 to 10.
"""

import sys
from pathlib import Path

import numpy as np

from truearm import Study

CASES = {
    "gap 1, eps 5%": (1.0, 0.05, 0.05, (119, 80)),
    "gap 0.5, eps 5%": (0.5, 0.05, 0.05, (1216, 266)),
    "gap 1, eps 10%": (1.0, 0.1, 0.1, (322, 103)),
    "gap 1, eps 5%, 2% actually bad": (1.0, 0.05, 0.02, (96, 85)),
}


def pulls(gap, eps, bad, between, seed):
    """Return the pulls of one study, and whether it named the wrong arm."""
    rng = np.random.default_rng(seed)
    study = Study(["A", "B"], contamination=eps, between=between, max_pulls=50_000)
    while counts := study.ask_counts():
        readings = {}
        for arm, n in counts.items():
            true, wild = (gap, -1e6) if arm == "A" else (0.0, 1e6)
            readings[arm] = np.where(rng.random(n) < bad, wild, rng.normal(true, 1, n))
        study.tell_arrays(readings)
    return study.pulls, study.result.best == "B"


def main(runs):
    lines = [
        "# What a plausible range saves",
        "",
        f"Pulls of {runs} studies of two arms: mean with its standard error, then the median; in brackets those",
        "of a prototype. Bad readings are as harmful as possible, and all are outside the range.",
        "",
        "| | without | with the range | fewer pulls | wrong answers |",
        "|---|---|---|---|---|",
    ]
    for case, (gap, eps, bad, known) in CASES.items():
        cells, medians, wrong = [], [], 0
        for between, reference in zip((None, (-10, 10)), known, strict=True):
            found = [pulls(gap, eps, bad, between, seed) for seed in range(runs)]
            counts = np.array([n for n, _ in found])
            wrong += sum(is_wrong for _, is_wrong in found)
            medians.append(np.median(counts))
            error = counts.std() / np.sqrt(runs)
            cells.append(f"{counts.mean():.0f} ± {error:.0f}, {medians[-1]:.0f} ({reference})")
        gain = f"{medians[0] / medians[1]:.1f}x ({known[0] / known[1]:.1f}x)"
        lines.append(f"| {case} | {' | '.join(cells)} | {gain} | {wrong} |")
        print(lines[-1], flush=True)
    path = Path(__file__).parent / "results" / "plausible_range.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
