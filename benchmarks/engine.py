"""Measure the cost of a simulated pull as a multiple of drawing its reading, and how runs scale.

Ten normal arms, one core. The unit is one standard normal from the engine's generator, timed alternately with the
runs, so that a busy machine slows both. Goals: toptwo 60 at 15 thousand pulls and 40 at 200 thousand. Other
libraries are timed too if they are installed.
Run: python benchmarks/engine.py [ROUNDS]. Writes benchmarks/results/engine.md.
"""

import importlib.util
import os
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from sections import write_sections

from truearm import families
from truearm.lab import instance, translations
from truearm.lab.simulate import simulate
from truearm.policies.toptwo import TopTwo

DRAWS = 400_000


def ten_arms(gap):
    return translations(families.gaussian(), [gap] * 9)


CASES = [
    # name, goal, policy, gap, options, replications per round
    ("toptwo, 15 thousand pulls", 60, TopTwo(), 0.17, {}, 4),
    ("toptwo, 200 thousand pulls", 40, TopTwo(), 0.05, {"max_pulls": 10**7}, 1),
]


def clock():
    return time.process_time()


def normal():
    """Seconds per standard normal."""
    rng = np.random.default_rng(0)
    begin = clock()
    rng.standard_normal(DRAWS)
    return (clock() - begin) / DRAWS


def run(policy, gap, options, replications, seed):
    """Seconds per pull, readings drawn included."""
    begin = clock()
    done = simulate(policy, ten_arms(gap), None, replications, seed=seed, engine="compiled", **options)
    return (clock() - begin) / done.runs["pulls"].sum(), done.runs["pulls"].mean()


def engines(rounds):
    yield "| run | pulls | ns a pull | ns a normal | ratio (median of rounds) | goal |"
    yield "|---|---|---|---|---|---|"
    for name, goal, policy, gap, options, replications in CASES:
        run(policy, gap, options, 1, 999)  # compile, and fill the tables
        pairs = [(normal(), *run(policy, gap, options, replications, seed)) for seed in range(rounds)]
        units, prices, pulls = zip(*pairs, strict=True)
        ratio = statistics.median(price / unit for price, unit in zip(prices, units, strict=True))
        price, unit = 1e9 * statistics.median(prices), 1e9 * statistics.median(units)
        mean = statistics.mean(pulls)
        yield f"| {name} | {mean:.0f} | {price:.0f} | {unit:.1f} | {ratio:.1f} | {goal or '-'} |"


def river_rate(pulls):
    from river import bandit

    policy, rng = bandit.UCB(delta=1.0, seed=0), np.random.default_rng(0)
    begin = clock()
    for _ in range(pulls):
        arm = policy.pull(range(10))
        policy.update(arm, rng.standard_normal() - 0.17 * (arm > 0))
    return pulls / (clock() - begin)


def mabwiser_rate(pulls):
    from mabwiser.mab import MAB, LearningPolicy

    mab, rng = MAB(list(range(10)), LearningPolicy.UCB1()), np.random.default_rng(0)
    mab.fit(list(range(10)), [0.0] * 10)
    begin = clock()
    for _ in range(pulls // 10):
        arm = mab.predict()
        mab.partial_fit([arm], [rng.standard_normal() - 0.17 * (arm > 0)])
    return pulls // 10 / (clock() - begin)


def peers(pulls=20_000):
    """Pulls per second of other libraries, one decision and one reading at a time, and of ours."""
    yield "| library | pulls per second |"
    yield "|---|---|"
    yield f"| truearm, toptwo engine | {1 / run(TopTwo(), 0.17, {}, 4, 1)[0]:,.0f} |"
    for name, rule, rate in (("river", "UCB", river_rate), ("mabwiser", "UCB1", mabwiser_rate)):
        installed = importlib.util.find_spec(name)
        yield f"| {name}, {rule} | {rate(pulls):,.0f} |" if installed else f"| {name} is not installed | - |"


def scaling(replications=1600):
    """Wall time of the same replications alone, on two processes, and on two workers of a Dask cluster."""
    arms = instance("G10")

    def wall(executor=None):
        begin = time.perf_counter()
        simulate("toptwo", arms, None, replications, executor=executor)
        return time.perf_counter() - begin

    wall()
    load = os.getloadavg()[0]
    yield f"{replications} runs of G10 on 2 of {os.cpu_count()} cores, load {load:.1f} before."
    with ProcessPoolExecutor(2) as executor:
        wall(executor)
        alone, shared = zip(*[(wall(), wall(executor)) for _ in range(5)], strict=True)
    yield f"Processes: {min(alone):.2f} s alone, {min(shared):.2f} s on two, {min(alone) / min(shared):.2f} times."
    if importlib.util.find_spec("distributed"):
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            executor = client.get_executor(pure=False)
            wall(executor)
            alone, shared = zip(*[(wall(), wall(executor)) for _ in range(5)], strict=True)
        gain = min(alone) / min(shared)
        yield f"Dask: {min(alone):.2f} s alone, {min(shared):.2f} s on two workers, {gain:.2f} times."


def main(rounds=7):
    sections = {
        "The cost of a pull, ten arms": engines(rounds),
        "Other libraries": peers(),
        "Scaling": scaling(),
    }
    write_sections("engine", "The engine", sections)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
