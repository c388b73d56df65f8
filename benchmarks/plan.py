"""How many pulls `toptwo` takes, fitted: the constants of `truearm.planning`, and how well they foretell.

Runs the compiled engine on a hundred settings, fits five constants by least squares of the relative error, writes
them into src/truearm/planning.py, and each setting with its forecast into benchmarks/results/plan.md. Run it again
after a change of `toptwo` or of its evidence: python benchmarks/plan.py [EVERY] (a minute or two; 4 takes every
fourth setting). Runs that rejected the best arm are left out: with rivals that are alike they never end. Goal: no
forecast off by more than 15%.
"""

import itertools
import math
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from truearm import families, lab, planning
from truearm.lab.simulate import simulate
from truearm.policies.toptwo import START

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "truearm" / "planning.py"
LAWS = {name: getattr(families, name)() for name in ("gaussian", "laplace", "cauchy", "lognormal", "uniform")}
DELTAS = (0.05, 0.01, 0.1, 0.001)
MODES = (("separated", None, False), ("certified", 0.03, False), ("certified, worst", 0.03, True))
LONGEST = 20_000  # pulls of a forecast run, but for the few that are long on purpose


def unit(law):
    """The distance between the quartiles, in units of the normal law's."""
    return (law.ppf_left(0.75) - law.ppf_left(0.25)) / 1.349


def translated(law, gaps):
    return lab.translations(LAWS[law], [unit(LAWS[law]) * gap for gap in gaps])


def settings():
    """Give name, instance, contamination declared, whether it is attacked, and delta."""
    deltas, modes = itertools.cycle(DELTAS), itertools.cycle(MODES)
    for law, k in itertools.product(LAWS, (2, 3, 5, 10, 20)):
        spread = np.linspace(0.5, 2.0, k - 1).tolist() if k > 2 else [0.7]
        for kind, gaps in (("0.4", [0.4] * (k - 1)), ("1", [1.0] * (k - 1)), ("0.5 to 2", spread)):
            mode, eps, attacked = next(modes)
            yield f"{law}, gaps {kind}, {mode}", translated(law, gaps), eps, attacked, next(deltas)
        next(modes)  # three kinds of gaps and three modes: shift them
    for law, k, gap in (("gaussian", 2, 0.03), ("gaussian", 2, 0.1), ("cauchy", 3, 0.1), ("laplace", 7, 0.15)):
        yield f"{law}, gaps {gap}, separated", translated(law, [gap] * (k - 1)), None, False, 0.05
    for law, k, gap in (("gaussian", 12, 2.0), ("laplace", 2, 1.7), ("uniform", 3, 1.5), ("cauchy", 5, 3.0)):
        yield f"{law}, gaps {gap}, separated", translated(law, [gap] * (k - 1)), None, False, 0.05
    for q, k in itertools.product((0.9, 0.25), (2, 5)):
        arms = (families.gaussian(), *[families.gaussian(-0.7)] * (k - 1))
        yield f"gaussian, gaps 0.7, quantile {q}, certified", lab.Instance("q", arms, q), 0.02, False, 0.05
    for name in ("D2", "D5", "D10lin"):
        yield f"binomial ({name}), certified", lab.instance(name), 0.05, False, 0.05


def measured(instance, eps, attacked, delta, executor):
    """Return the limit, the mean pulls and their relative standard error, None if they are many."""
    attack = lab.worst(instance, eps) if attacked else None
    found = lab.limit(instance, attack, contamination=eps)
    k = len(instance.arms)
    forecast = planning.toptwo_pulls(found, delta)
    if not forecast < LONGEST and k > 2:
        return None
    runs = 20 if forecast > LONGEST else 300 if k == 2 else 160 if k == 3 else 80
    options = {"contamination": eps, "delta": delta, "max_pulls": int(30 * forecast)}
    done = simulate("toptwo", instance, attack, runs, seed=11, executor=executor, **options).runs
    pulls = done["pulls"][~done["best_rejected"]]
    return found, pulls.mean(), pulls.std(ddof=1) / math.sqrt(pulls.size) / pulls.mean()


def fitted(rows):
    """Return the constants with the least squared relative error, from settings beyond the first pulls."""
    equations = []
    for _, delta, limit, pulls, _ in rows:
        first = START * len(limit.weights)
        if pulls > 1.15 * first:
            nats = np.cbrt(pulls**3 - first**3) / limit.time
            equations.append(np.array(planning.terms(limit, delta)) / nats)
    found, *_ = np.linalg.lstsq(np.array(equations), np.ones(len(equations)), rcond=None)
    return tuple(round(float(x), 3) for x in found)


def main(every=1):
    begin, rows = time.perf_counter(), []
    with ProcessPoolExecutor(2) as executor:
        for name, instance, eps, attacked, delta in itertools.islice(settings(), 0, None, every):
            if (found := measured(instance, eps, attacked, delta, executor)) is not None:
                rows.append((name, delta, *found))
    constants = fitted(rows)
    text = SOURCE.read_text()
    SOURCE.write_text(re.sub(r"^NATS = \(.*?\)", f"NATS = {constants}", text, count=1, flags=re.MULTILINE))
    planning.NATS = constants
    lines = ["| setting | k | delta | T* | pulls, mean | forecast | error |", "|---|---|---|---|---|---|---|"]
    errors = []
    for name, delta, limit, pulls, error in rows:
        forecast = planning.toptwo_pulls(limit, delta)
        errors.append(forecast / pulls - 1)
        cells = f"{name} | {len(limit.weights)} | {delta:g} | {limit.time:.1f} | {pulls:.0f} ± {100 * error:.0f} %"
        lines.append(f"| {cells} | {forecast:.0f} | {100 * errors[-1]:+.0f} % |")
    beyond = sum(abs(error) > 0.15 for error in errors)
    summary = (
        f"Constants {constants}. Errors: root mean square {100 * np.sqrt(np.mean(np.square(errors))):.1f} %, "
        f"{100 * min(errors):+.0f} % to {100 * max(errors):+.0f} %, beyond 15 %: {beyond} of {len(errors)}."
    )
    head = ["# Forecasts of `plan`, against runs", "", summary, ""]
    (ROOT / "benchmarks" / "results" / "plan.md").write_text("\n".join([*head, *lines]) + "\n")
    print(summary, f"{time.perf_counter() - begin:.0f} s", sep="\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
