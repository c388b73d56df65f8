"""Run the scenarios in benchmarks/scenarios at full size, and save their tables and figures.

A scenario is a TOML file with a list of grids. In a grid every key may have one value or a list; each combination
is one simulation. The last column has the published values. Run: python benchmarks/scenarios.py [NAME ...]
[--runs N] [--plot FILE], all by default. Writes benchmarks/results/scenarios.md unless --runs is given.
"""

import argparse
import math
import time
import tomllib
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import baselines
import plots

from truearm import Contamination, Regularity, families, lab
from truearm.lab import adversaries, arms
from truearm.policies import by_name

HERE = Path(__file__).parent
BASELINES = {
    "mean_elimination": baselines.MeanElimination,
    "lil_ucb": baselines.LilUcb,
    "mean_ucb": baselines.MeanUcb,
    "plain_median": baselines.PlainMedian,
}


def cells(table):
    """Yield the settings of a scenario, one dictionary for each simulation."""
    common = {key: table[key] for key in ("replications", "seed", "max_pulls") if key in table}
    for grid in table["grid"]:
        lists = {key: value if isinstance(value, list) else [value] for key, value in grid.items()}
        for values in product(*lists.values()):
            yield common | dict(zip(lists, values, strict=True))


def instance_of(value):
    """Return the name and the instance that a scenario describes."""
    if isinstance(value, str):
        return value, lab.instance(value)
    options = dict(value)
    kind = options.pop("kind")
    label = " ".join([kind.replace("_", "-"), *(str(part) for part in options.values())])
    if kind == "translations":
        law = getattr(families, options.pop("law", "gaussian"))()
        return label, arms.translations(law, options.pop("gaps"), name=label)
    if kind == "coins":
        return label, arms.coins(options.pop("shares"), name=label)
    if kind == "howard_ramdas":
        return label, arms.howard_ramdas(options.pop("arms"), **options)
    return label, getattr(arms, kind)(**options)


def policy_of(value):
    """Return the label and the policy or baseline that a scenario describes."""
    options = {"name": value} if isinstance(value, str) else dict(value)
    name = options.pop("name")
    label = " ".join([name.replace("_", "-"), *(f"{key}={part}" for key, part in options.items())])
    return label, BASELINES[name](**options) if name in BASELINES else by_name(name, **options)


def attack_of(kind, instance, eps, power, size):
    if kind == "own":
        return instance.attack
    if kind == "none" or eps == 0:
        return None
    if kind == "worst":
        return adversaries.worst(instance, eps, power)
    if kind == "benign":
        return adversaries.benign(instance, eps)
    bad = tuple(-size if arm == instance.best else size for arm in range(len(instance.arms)))
    return adversaries.oblivious(eps, bad)  # directed


def regularity_of(laws, reach):
    m2 = max(law.m2 for law in laws)
    slopes = max(law.minimal_B(reach) * law.m2 for law in laws)  # B m2 bounds the inverse slope of every arm
    return Regularity(B=slopes / m2, m2=m2, reach=reach)


def run(cell, executor):
    """Return one row of the table, or None if the limit exceeds that of the scenario."""
    eps, power = float(cell.get("eps", 0.0)), cell.get("adversary", "oblivious")
    name, instance = instance_of(cell["instance"])
    label, policy = policy_of(cell["policy"])
    attack_name = cell.get("attack", "none")
    attack = attack_of(attack_name, instance, eps, power, float(cell.get("size", 10.0)))
    declared = Contamination(eps, power) if cell.get("contamination") == "declared" else None
    delta = cell.get("delta", 0.05)
    if "limit_below" in cell:
        found = lab.limit(instance, attack, contamination=declared)
        if not found.pulls(delta) < cell["limit_below"]:
            return None
    options = {key: cell[key] for key in ("replications", "seed", "max_pulls", "tolerance") if key in cell}
    if "between" in cell:
        options["between"] = (cell["between"]["low"], cell["between"]["high"])
    if "reach" in cell:
        options["regularity"] = regularity_of(instance.arms, cell["reach"])
    done = lab.simulate(
        policy, instance, attack, contamination=declared, delta=delta, executor=executor, **options
    )
    summary = done.summary
    # baselines assume more, since they know the noise, and so does a slack in quantile levels
    bounded = not isinstance(policy, lab.Runner) and not getattr(policy, "slack", 0)
    medians = done.problem.target == "quantile" and instance.quantile == 0.5
    gaps = (
        instance.effective_gaps(*((attack.eps, attack.power) if attack else (0.0, "oblivious"))) if medians else []
    )
    return {
        "policy": label,
        "instance": name,
        "attack": attack_name,
        "eps": eps,
        "adversary": power,
        "contamination": "declared" if declared else "None",
        "delta": delta,
        "runs": summary.replications,
        "errors": summary.errors.count,
        "error_rate": summary.errors.value,
        "error_low": summary.errors.interval.low,
        "error_high": summary.errors.interval.high,
        "answered": summary.answered.count,
        "pulls": summary.pulls,
        "standard_error": summary.standard_error,
        "limit": summary.limit if bounded else math.nan,
        "ratio": summary.ratio if bounded else math.nan,
        "published": float(cell.get("published", math.nan)),
        "effective_gap": min(gaps, default=math.nan),
    }


SHOWN = ("policy", "instance", "attack", "eps", "adversary", "contamination", "delta")
NUMBERS = ("errors", "answered", "runs", "pulls", "standard_error", "limit", "ratio", "published")


def lines(rows):
    """Yield the rows as a Markdown table of what changes and what was measured."""
    names = [key for key in SHOWN if len({row[key] for row in rows}) > 1] or ["policy", "instance"]
    yield "| " + " | ".join([*names, *NUMBERS]) + " |"
    yield "|---" * (len(names) + len(NUMBERS)) + "|"
    for row in rows:
        shown = [
            "-" if math.isnan(x := row[key]) else f"{x:.2f}" if key == "ratio" else f"{x:.0f}" for key in NUMBERS
        ]
        yield "| " + " | ".join([*(str(row[key]) for key in names), *shown]) + " |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=int, help="runs of each cell, in place of the scenario's")
    parser.add_argument("--plot", help="draw the picture of the last scenario into this file")
    given = parser.parse_args()
    text = ["# The scenarios, at full size"]
    names = given.names or sorted(path.stem for path in (HERE / "scenarios").glob("*.toml"))
    with ProcessPoolExecutor(2) as executor:
        for name in names:
            table, start = tomllib.loads((HERE / "scenarios" / f"{name}.toml").read_text()), time.perf_counter()
            settings = list(cells(table))
            if given.runs:
                settings = [cell | {"replications": given.runs} for cell in settings]
            rows = [row for cell in settings if (row := run(cell, executor)) is not None]
            seconds = time.perf_counter() - start
            text += ["", f"## {table['title']} ({name}, {seconds:.0f} s on two processes)", "", table["about"], ""]
            text += lines(rows)
            print("\n".join(text[-len(rows) - 5 :]), flush=True)
            if given.plot:
                plots.draw(rows, table["plot"], given.plot)
    if not given.runs:
        (HERE / "results" / "scenarios.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
