"""Fit the constants of `truearm.planning`, and measure the error of the forecasts.

Runs `toptwo` on a hundred settings of quantiles (compiled) and forty of shares (not compiled: half an hour), fits
five constants for each by least squares of the relative error, writes them into src/truearm/planning.py, and each
setting with its forecast into benchmarks/results/plan.md. Run it again after a change of `toptwo` or of its
evidence: python benchmarks/plan.py [EVERY] (4 runs every fourth setting). Runs that rejected the best arm do not
count: with equal rivals they never end. Goal: no forecast off by more than 15%.
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
from truearm.policies import START

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "truearm" / "planning.py"
LAWS = {name: getattr(families, name)() for name in ("gaussian", "laplace", "cauchy", "lognormal", "uniform")}
DELTAS = (0.05, 0.01, 0.1, 0.001)
MODES = (("separated", None, False), ("certified", 0.03, False), ("certified, worst", 0.03, True))
SHARES = ((0.1, 0.06), (0.2, 0.12), (0.4, 0.3), (0.6, 0.3), (0.6, 0.45), (0.8, 0.6), (0.9, 0.82), (0.95, 0.7))
LONGEST = 20_000  # pulls of a forecast run, except the few long ones


def unit(law):
    """Return the distance between the quartiles, in units of the normal law's."""
    return (law.ppf_left(0.75) - law.ppf_left(0.25)) / 1.349


def translated(law, gaps):
    return lab.translations(LAWS[law], [unit(LAWS[law]) * gap for gap in gaps])


def settings():
    """Yield name, instance, contamination declared, whether it is attacked, and delta."""
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


def share_settings():
    """Yield the same for shares."""
    deltas, modes, alike = itertools.cycle(DELTAS), itertools.cycle(MODES), itertools.cycle((True, False))
    for k, (best, rival) in itertools.product((2, 3, 5, 10, 20), SHARES):
        mode, certified, attacked = next(modes)
        last = rival if next(alike) else max(3 * rival - 2 * best, rival / 4)
        shares, eps = [best, *np.linspace(rival, last, k - 1)], (best - rival) / 4 if certified else None
        yield (
            f"shares {best:g} and {rival:g} to {last:.3g}, {mode}",
            lab.coins(shares),
            eps,
            attacked,
            next(deltas),
        )


def measure(instance, eps, attacked, delta, *, executor, nats):
    """Return the limit, the mean pulls and their relative standard error, or None if they are too many."""
    attack = lab.worst(instance, eps) if attacked else None
    found = lab.limit(instance, attack, contamination=eps)
    k = len(instance.arms)
    forecast = planning.toptwo_pulls(found, delta, nats)
    if not forecast < (LONGEST if instance.at_least is None else 5000) and (
        k > 2 or instance.at_least is not None
    ):
        return None
    runs = 20 if forecast > LONGEST else 300 if k == 2 else 160 if k == 3 else 80
    options = {"contamination": eps, "delta": delta, "max_pulls": int(30 * forecast)}
    done = simulate("toptwo", instance, attack, runs, seed=11, executor=executor, **options).runs
    pulls = done["pulls"][~done["best_rejected"]]
    return found, pulls.mean(), pulls.std(ddof=1) / math.sqrt(pulls.size) / pulls.mean()


def fit(rows):
    """Return the constants with the least squared relative error, from settings beyond the first pulls."""
    equations = []
    for _, delta, limit, pulls, _ in rows:
        first = START * len(limit.weights)
        if pulls > 1.15 * first:
            nats = np.cbrt(pulls**3 - first**3) / limit.time
            equations.append(np.array(planning.terms(limit, delta)) / nats)
    found, *_ = np.linalg.lstsq(np.array(equations), np.ones(len(equations)), rcond=None)
    return tuple(round(float(x), 3) for x in found)


def report(name, settings, every, executor):
    """Fit the constants of this name, write them into the source, and yield a table of the forecasts."""
    rows, nats = [], getattr(planning, name)
    for label, instance, eps, attacked, delta in itertools.islice(settings, 0, None, every):
        if (found := measure(instance, eps, attacked, delta, executor=executor, nats=nats)) is not None:
            rows.append((label, delta, *found))
    nats = fit(rows)
    text = SOURCE.read_text()
    SOURCE.write_text(re.sub(rf"^{name} = \(.*?\)", f"{name} = {nats}", text, count=1, flags=re.MULTILINE))
    lines, errors = (
        ["| setting | k | delta | T* | pulls, mean | forecast | error |", "|---|---|---|---|---|---|---|"],
        [],
    )
    for label, delta, limit, pulls, error in rows:
        forecast = planning.toptwo_pulls(limit, delta, nats)
        errors.append(forecast / pulls - 1)
        cells = (
            f"{label} | {len(limit.weights)} | {delta:g} | {limit.time:.1f} | {pulls:.0f} ± {100 * error:.0f} %"
        )
        lines.append(f"| {cells} | {forecast:.0f} | {100 * errors[-1]:+.0f} % |")
    beyond = sum(abs(error) > 0.15 for error in errors)
    summary = (
        f"{name} = {nats}. Errors: root mean square {100 * np.sqrt(np.mean(np.square(errors))):.1f} %, "
        f"{100 * min(errors):+.0f} % to {100 * max(errors):+.0f} %, beyond 15 %: {beyond} of {len(errors)}."
    )
    print(summary, flush=True)
    return [summary, "", *lines, ""]


def main(every=1):
    begin, text = time.perf_counter(), ["# Forecasts of `plan`, against runs", ""]
    with ProcessPoolExecutor(2) as executor:
        text += report("NATS", settings(), every, executor)
        text += report("SHARE_NATS", share_settings(), every, executor)
    (ROOT / "benchmarks" / "results" / "plan.md").write_text("\n".join(text))
    print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
