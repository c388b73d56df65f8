"""Measure pulls of rule R relative to the lower bound, as delta falls (docs/optimality.md).

Rule R is `toptwo` with the constants of the proof instead of those that are quickest at usual deltas, and with
pairs of arms instead of the pool. Its pulls do not depend on delta, so one run to 1e-12 shows when it stops at
every larger delta. Goals: on the settings of the figure the mean ratio falls at each step and is at most 1.3 at
1e-12.

Run: python benchmarks/optimality.py [WORD]; with a word, only the settings whose names contain it are run. Writes
benchmarks/results/optimality.md, and draws docs/images/optimality.png from it.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from truearm import Contamination, families, lab
from truearm.evidence import Judge, Levels, Portfolio, Stake, by_looks, least_evidence
from truearm.evidence.levels import divergence
from truearm.evidence.sample import Sample
from truearm.policies import GROWTH, START
from truearm.problem import Problem

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "optimality.md"
PICTURE = ROOT / "docs" / "images" / "optimality.png"
DELTAS = tuple(10.0**-n for n in range(2, 13))
GOAL = 1.3
_NORMAL = families.gaussian()
SETTINGS = {
    # name: instance, contamination declared, runs
    "two normal arms, gap 0.5": (lab.instance("G2"), None, 400),
    "two normal arms, spreads 1 and 0.25": (
        lab.Instance("spreads", (_NORMAL, families.gaussian(-0.5, 0.25))),
        None,
        400,
    ),
    "two binomial arms": (lab.instance("D2"), None, 400),
    "three normal arms, gaps 0.5 and 0.8": (lab.translations(_NORMAL, [0.5, 0.8]), None, 200),
    "two Cauchy arms, gap 1.5, certified at 5%": (lab.translations(families.cauchy(), [1.5]), 0.05, 300),
    "ten normal arms, gaps 0.5 to 2.3": (lab.instance("G10lin"), None, 16),
}
NOT_IN_FIGURE = "ten normal arms"  # the ratio of many arms falls more slowly


EXPLORATION_POWER = 0.25  # an arm with fewer pulls than this power of all pulls is pulled first; optimality A1 (i)
BATCH_POWER = 0.9  # a batch is at most a fiftieth of this power of either arm's pulls; optimality A1 (iii)


class Duel(NamedTuple):
    """The evidence of the leader over one rival at the least cut."""

    log_evidence: float
    gain: float
    """The leader's pulls times kl^- of its share below the cut."""
    other: float
    """The same for the rival, above the cut."""

    @property
    def share(self) -> float:
        """The leader's share of the next pulls: its share of the gain; optimality A1 (ii)."""
        total = self.gain + self.other
        return self.gain / total if total > 0 else 0.5


class Sampler:
    """Choose what to pull next; remember only the fractions of pulls that are owed."""

    def __init__(self) -> None:
        self._owed: dict[tuple[int, int], float] = {}

    def batch(self, counts: Sequence[float], leader: int, duels: Mapping[int, Duel]) -> dict[int, int]:
        """Return the next pulls of each arm, from the pulls so far and the leader's duels with all rivals."""
        least = sum(counts) ** EXPLORATION_POWER
        if short := {arm: 1 for arm, n in enumerate(counts) if n < least}:
            return short
        rival = min(duels, key=lambda arm: duels[arm].log_evidence + math.log(counts[arm]))
        size = max(1, int(GROWTH * min(counts[leader], counts[rival]) ** BATCH_POWER))
        exact = size * duels[rival].share + self._owed.get((leader, rival), 0.0)
        whole = math.floor(exact + 0.5)
        self._owed[leader, rival] = exact - whole
        return {arm: n for arm, n in ((leader, whole), (rival, size - whole)) if n > 0}


class Step(NamedTuple):
    """Where a run stands when it decides what to pull next."""

    counts: tuple[int, ...]
    leader: int
    log_evidence: float
    """For the leader, over its strongest rival."""


def steps(problem: Problem, tapes: lab.Tapes) -> Iterator[Step]:
    """Yield every step of the one endless run that rule R makes, whatever delta."""
    arms = range(len(problem.arms))
    levels = Levels.of(problem.level, problem.contamination)
    samples = [Sample.of(tapes.upto(arm, START)[:START]) for arm in arms]
    sampler = Sampler()
    while True:
        leader = next(iter(by_looks(samples, arms, problem.level)), 0)
        duels = {}
        for arm in arms:
            if arm != leader:
                found = least_evidence(samples[arm], Portfolio(Stake(samples[leader])), levels)
                duels[arm] = Duel(found.log_value, *_gains(samples[leader], samples[arm], found.at, levels))
        counts = tuple(sample.n for sample in samples)
        yield Step(counts, leader, min(duel.log_evidence for duel in duels.values()))
        for arm, n in sampler.batch(counts, leader, duels).items():
            samples[arm] = samples[arm].extend(tapes.upto(arm, counts[arm] + n)[counts[arm] : counts[arm] + n])


def _gains(head: Sample, rival: Sample, cut: float, levels: Levels) -> tuple[float, float]:
    below, above = float(head.below(cut)) / head.n, float(rival.above(cut)) / rival.n
    return head.n * divergence(below, levels.low), rival.n * divergence(above, levels.high)


def stopping_pulls(problem: Problem, tapes: lab.Tapes, deltas: Sequence[float]) -> tuple[int, ...]:
    """Return after how many pulls the one run of rule R stops at each of several falling deltas."""
    run, stops = steps(problem, tapes), []
    step = next(run)
    for delta in deltas:
        bar = Judge.of(replace(problem, delta=delta), ()).log_threshold
        while step.log_evidence < bar:
            step = next(run)
        stops.append(sum(step.counts))
    return tuple(stops)


def one_run(instance, declared, number):
    arms = tuple(f"arm {i}" for i in range(len(instance.arms)))
    problem = Problem(arms=arms, contamination=Contamination.of(declared))
    tapes = lab.Tapes(instance, None, np.random.default_rng([12, number]), 10**7)
    return stopping_pulls(problem, tapes, DELTAS)


def row(name, executor):
    """Return a line of the table: mean ratios and their standard errors."""
    instance, declared, runs = SETTINGS[name]
    found = lab.limit(instance, contamination=declared)
    bounds = np.array([found.pulls(delta) for delta in DELTAS])
    pulls = np.array(list(executor.map(partial(one_run, instance, declared), range(runs), chunksize=5)))
    errors = pulls.std(axis=0, ddof=1) / math.sqrt(runs) / bounds
    cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(pulls.mean(axis=0) / bounds, errors, strict=True)]
    return "| " + " | ".join([name, str(runs), f"{found.time:.1f}", *cells]) + " |"


def ratios(line):
    """Return the name, the mean ratios and their standard errors of a line of the table."""
    name, _, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
    means, errors = zip(*(map(float, cell.split("±")) for cell in cells), strict=True)
    return name, means, errors


def draw(rows):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.4, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.add_subplot()
    colors = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"]  # Okabe and Ito
    for color, (name, means, errors) in zip(colors, rows, strict=False):
        reach = 2 * np.array(errors)
        axis.errorbar(DELTAS, means, yerr=reach, color=color, marker="o", markersize=3.5, capsize=2, label=name)
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.axhline(GOAL, color="gray", linewidth=0.8, linestyle=":")
    axis.set(xscale="log", xlim=(2e-2, 5e-13), ylim=(0.95, None))
    axis.set(xlabel="delta", ylabel="mean pulls over the lower bound")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25, linewidth=0.6)
    axis.legend(frameon=False, fontsize=8)
    figure.savefig(PICTURE, dpi=110)


def write_results(lines):
    """Write the table and the picture."""
    rows = [found for found in map(ratios, lines) if not found[0].startswith(NOT_IN_FIGURE)]
    falls = all(later < earlier for _, means, _ in rows for earlier, later in pairwise(means))
    last = max(means[-1] for _, means, _ in rows)
    text = [
        "# Rule R: mean pulls over T* kl(delta, 1 - delta), with standard errors",
        "",
        "| setting | runs | T* | " + " | ".join(f"1e-{n}" for n in range(2, 13)) + " |",
        "|---" * (3 + len(DELTAS)) + "|",
        *lines,
        "",
        f"In the picture, which leaves out ten arms, the ratio {'falls' if falls else 'does not fall'} at each "
        f"step and is at most {last:.3f} at 1e-12 (goal {GOAL}).",
    ]
    RESULTS.write_text("\n".join(text) + "\n")
    draw(rows)


def main(word=""):
    kept = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    table = {ratios(line)[0]: line for line in kept if "±" in line}
    with ProcessPoolExecutor(2) as executor:
        for name in SETTINGS:
            if word in name or name not in table:
                table[name] = row(name, executor)
            print(table[name], flush=True)
            write_results([table[known] for known in SETTINGS if known in table])


if __name__ == "__main__":
    main(*sys.argv[1:])
