"""Measure the cost of intervals and evidence: the best of several timings, in one run.

An interval is compared with `np.partition` alone for the same ranks. Run: python benchmarks/intervals.py
"""

import time

import numpy as np

from truearm.bounds import sequential_quantile_ranks
from truearm.bounds.mixture import log_mixture
from truearm.evidence import Levels, Portfolio, Stake, least_evidence
from truearm.evidence.intervals import median_interval, quantile_interval
from truearm.evidence.sample import Sample

SIZE = 10**7
REPEATS = 7


def seconds(call, repeats=REPEATS):
    call()  # the first call pays for memory the later ones find ready
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def interval_costs(rng):
    x = rng.normal(size=SIZE)
    with_missing = x.copy()
    with_missing[:: SIZE // 1000] = np.nan
    print(f"intervals on {SIZE:.0e} readings (times of np.partition alone)")
    for quantile in (0.5, 0.95):
        low, high = sequential_quantile_ranks(SIZE, quantile, 0.05, 0.05, "oblivious")
        alone = seconds(lambda ranks=(low - 1, high - 1): np.partition(x, ranks))
        plain = seconds(lambda q=quantile: quantile_interval(x, quantile=q))
        missing = seconds(lambda q=quantile: quantile_interval(with_missing, quantile=q))
        print(f"  quantile {quantile:4}: np.partition {alone * 1e3:6.0f} ms, interval {plain * 1e3:6.0f} ms")
        print(f"                 ratio {plain / alone:5.2f}, with 0.01 % NaN {missing / alone:5.2f}")
    print(f"  median_interval: {seconds(lambda: median_interval(x)) * 1e3:6.0f} ms")


def evidence_costs(rng):
    print("least_evidence(): the exact minimum over all cuts, samples already sorted")
    for n in (10**3, 10**4, 10**5, 10**6):
        better, worse = (Sample.of(rng.normal(mean, 1, n)) for mean in (3 / np.sqrt(n), 0.0))
        cost = seconds(lambda a=better, b=worse: least_evidence(b, Portfolio(Stake(a)), Levels(0.475, 0.475)), 21)
        print(f"  n = {n:8}: {cost * 1e6:8.0f} us")


def mixture_costs(rng):
    print("log_mixture(): one value of many")
    for n in (10**2, 10**4, 10**6):
        near = rng.binomial(n, 0.45, 10_000)
        far = np.linspace(0, n, 10_000).astype(int)
        costs = [seconds(lambda s=s, n=n: log_mixture(s, n, 0.45)) / s.size for s in (near, far)]
        print(
            f"  n = {n:8}: {costs[0] * 1e9:6.0f} ns near the level, {costs[1] * 1e9:6.0f} ns over the whole range"
        )


if __name__ == "__main__":
    generator = np.random.default_rng(0)
    interval_costs(generator)
    evidence_costs(generator)
    mixture_costs(generator)
