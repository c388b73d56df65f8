"""Measure pulls of the default policy relative to the lower bound. Run: python benchmarks/efficiency.py [--quick].

Every cell: mean pulls / (T* kl(delta, 1-delta)), delta = .05 (docs/optimality.md). Goals: a mean of at most 2.45,
no cell above 3.2 (3.4 where the bound is under 100 pulls), for `separated` and for `certified`; at delta = .001,
over seven of the instances, at most 1.60 (benchmarks/priors.py has all of them); at most 1/1.5 of QLUCB's pulls
on average, and 1/50 of those of Algorithm 3 with the paper's constants (B squared). Writes
benchmarks/results/efficiency.md.
"""

import argparse
import math
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from truearm import Contamination, Regularity, lab
from truearm.lab.simulate import simulate
from truearm.policies.lucb import Lucb
from truearm.policies.paper import Elimination

INSTANCES = list(lab.INSTANCES)
SEVEN = ["G2", "D2", "G5w", "C5", "G10", "G10lin", "G5s"]
REACH = 0.2  # for Algorithm 3, which must know the family


def attacks(instance):
    """Return the columns: name, attack, and the contamination declared (None is the paper's assumption)."""
    mild, strong = lab.worst(instance, 0.05), lab.worst(instance, 0.1)
    benign = lab.benign(instance, 0.1)
    return [
        ("separated, clean", None, None),
        ("separated, .05 worst", mild, None),
        ("separated, .1 worst", strong, None),
        ("separated, .1 benign", benign, None),
        ("certified, .05 worst", mild, Contamination(0.05)),
        ("certified, .1 worst", strong, Contamination(0.1)),
        ("certified, .1 benign", benign, Contamination(0.1)),
    ]


def ratio(policy, instance, attack, declared, *, runs, executor, delta=0.05):
    """Return the ratio with its standard error, or None where no method decides within 12,000 pulls at .05."""
    limit = lab.limit(instance, attack, contamination=declared)
    if not limit.pulls(0.05) < 12_000:
        return None
    bound = limit.pulls(delta)
    done = simulate(policy, instance, attack, runs, contamination=declared, executor=executor, seed=7, delta=delta)
    found = done.summary
    return found.ratio, found.standard_error / bound, bound, found.pulls, found.errors.count


def table(names, delta, runs, executor):
    lines = ["| instance | " + " | ".join(name for name, *_ in attacks(lab.instance("G2"))) + " |"]
    lines.append("|---" * (lines[0].count("|") - 1) + "|")
    by_mode = {"separated": [], "certified": []}
    wrong = total = 0
    for name in names:
        instance = lab.instance(name)
        row = [name]
        for column, attack, declared in attacks(instance):
            repeats = max(runs // 4, 10) if len(instance.arms) >= 50 else runs
            cell = ratio("toptwo", instance, attack, declared, runs=repeats, executor=executor, delta=delta)
            if cell is None:
                row.append("-")
                continue
            value, error, bound, _, errors = cell
            wrong, total = wrong + errors, total + repeats
            by_mode[column.split(",")[0]].append((value, bound, f"{name} {column}"))
            row.append(f"{value:.2f} ± {error:.2f} ({bound:.0f})")
        lines.append("| " + " | ".join(row) + " |")
        print(lines[-1], flush=True)
    summary = [f"Wrong answers: {wrong} of {total}."]
    for mode, cells in by_mode.items():
        values = [value for value, *_ in cells]
        worst = max(cells)
        summary.append(
            f"{mode}: mean ratio {np.mean(values):.2f} over {len(cells)} cells, worst {worst[0]:.2f} "
            f"({worst[2]}, bound {worst[1]:.0f} pulls); above 3.2 with a bound of 100 pulls or more: "
            f"{sum(value > 3.2 and bound >= 100 for value, bound, _ in cells)}; "
            f"above 3.4: {sum(value > 3.4 for value in values)}."
        )
    everything = [value for cells in by_mode.values() for value, *_ in cells]
    summary.append(f"Both: mean ratio {np.mean(everything):.2f} over {len(everything)} cells.")
    return lines, summary


def peers(runs, executor):
    lines = ["| instance, .05 worst | limit | toptwo | QLUCB | ratio | Algorithm 3, paper's constants | ratio |"]
    lines.append("|---|---|---|---|---|---|---|")
    lucb_ratios, paper_ratios = [], []
    for name in ("G2", "C2", "G5w", "C5", "G10", "C10lin"):
        instance = lab.instance(name)
        attack = lab.worst(instance, 0.05)
        ours = ratio("toptwo", instance, attack, None, runs=runs, executor=executor)
        lucb = ratio(Lucb(growth=0.0), instance, attack, None, runs=max(runs // 2, 10), executor=executor)
        regularity = Regularity(
            B=max(law.minimal_B(REACH) for law in instance.arms),
            m2=max(law.m2 for law in instance.arms),
            reach=REACH,
        )
        paper = simulate(
            Elimination(constants="paper"),
            instance,
            attack,
            2,
            contamination=Contamination(0.05),
            regularity=regularity,
            executor=executor,
            seed=7,
            max_pulls=10**7,
        ).summary
        lucb_ratios.append(lucb[3] / ours[3])
        paper_ratios.append(paper.pulls / ours[3])
        lines.append(
            f"| {name} | {ours[2]:.0f} | {ours[3]:.0f} | {lucb[3]:.0f} | {lucb_ratios[-1]:.2f} "
            f"| {paper.pulls:,.0f} | {paper_ratios[-1]:.0f} |"
        )
        print(lines[-1], flush=True)
    mean = math.exp(np.mean(np.log(lucb_ratios)))
    summary = [
        f"QLUCB needs {mean:.2f} times as many pulls on average, "
        f"Algorithm 3 {math.exp(np.mean(np.log(paper_ratios))):.0f} times (at least {min(paper_ratios):.0f})."
    ]
    return lines, summary


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="an eighth of the runs")
    runs = 12 if parser.parse_args().quick else 100
    start = time.perf_counter()
    with ProcessPoolExecutor(2) as executor:
        lines, summary = table(INSTANCES, 0.05, runs, executor)
        sure_lines, sure_summary = table(SEVEN, 0.001, runs, executor)
        peer_lines, peer_summary = peers(runs, executor)
    text = [f"# Pulls over the limit, delta = .05, {runs} runs per cell ({max(runs // 4, 10)} for k = 50)", ""]
    text += [
        "Each cell: ratio ± standard error (limit in pulls); - where no method can decide within 12,000 pulls.",
        "",
    ]
    text += [*lines, "", *summary, "", "## delta = .001", "", *sure_lines, "", *sure_summary]
    text += ["", "## Against other policies", "", *peer_lines, "", *peer_summary]
    text += ["", f"{time.perf_counter() - start:.0f} s on two processes."]
    path = Path(__file__).parent / "results" / "efficiency.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(text) + "\n")
    print("\n".join(summary + peer_summary))


if __name__ == "__main__":
    main()
