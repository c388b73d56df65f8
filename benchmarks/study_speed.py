"""Measure the pure-Python path: single tells, arrays, one decision. Run: python benchmarks/study_speed.py.

Goals: 20,000 single tells/s with k = 10 over 1e5 pulls, 1e6 readings/s as arrays, a first decision under
20 ms, and an ask under 5 ms at 1e5 readings per arm.
"""

import time

import numpy as np
import scipy.special  # noqa: F401 - otherwise the first decision includes the import, about 160 ms

from truearm import Study
from truearm.policies import Told

ARMS = [f"arm{i}" for i in range(10)]
# the runner-up is so close that the run uses its whole budget
MEANS = np.concatenate(([0.0, -0.0001], np.linspace(-0.02, -1.0, 8)))


def tapes(n, rng):
    return {arm: rng.normal(mean, 1, n) for arm, mean in zip(ARMS, MEANS, strict=True)}


def single(budget):
    data = {arm: tape.tolist() for arm, tape in tapes(budget, np.random.default_rng(1)).items()}
    iterators = {arm: iter(tape) for arm, tape in data.items()}
    study = Study(ARMS, contamination=None, max_pulls=budget)
    first = slowest = 0.0
    start = time.perf_counter()
    while pulls := study.ask():
        for pull in pulls:
            before = time.perf_counter()
            study.tell(pull, next(iterators[pull.arm]))
            slowest = max(slowest, time.perf_counter() - before)
        first = first or slowest
    return study.pulls / (time.perf_counter() - start), first, slowest


def arrays(budget):
    data = tapes(budget, np.random.default_rng(1))
    done = dict.fromkeys(ARMS, 0)
    study = Study(ARMS, contamination=None, max_pulls=budget)
    decisions, start = 0, time.perf_counter()
    while counts := study.ask_counts():
        decisions += 1
        study.tell_arrays({arm: data[arm][done[arm] : done[arm] + n] for arm, n in counts.items()})
        for arm, n in counts.items():
            done[arm] += n
    assert study.pulls == budget, "decided too early to measure"
    return study.pulls / (time.perf_counter() - start), decisions


def ask_time(per_arm):
    """Return the typical and the worst time of a tell and an ask when every arm has that many readings."""
    study = Study(ARMS, contamination=None, max_pulls=10**9)
    policy, data = study.policy, tapes(2 * per_arm, np.random.default_rng(3))
    counts = dict.fromkeys(ARMS, per_arm)
    readings = {arm: Told(np.arange(n), data[arm][:n]) for arm, n in counts.items()}
    state = policy.tell(policy.start(study.problem), readings, counts)
    times = []
    for _ in range(20):
        batch = policy.ask(state)
        readings = {
            arm: Told(np.arange(n) + counts[arm], data[arm][counts[arm] : counts[arm] + n])
            for arm, n in batch.items()
        }
        counts = {arm: n + batch.get(arm, 0) for arm, n in counts.items()}
        start = time.perf_counter()
        state = policy.tell(state, readings, counts)
        policy.ask(state)
        times.append(time.perf_counter() - start)
    return float(np.median(times)), max(times)


def main():
    rate, first, slowest = single(100_000)
    print(f"single tells, k=10, 1e5 pulls      {rate:12,.0f} /s   (goal 20,000)")
    print(f"first decision                     {1e3 * first:12.2f} ms   (goal 20)")
    print(f"slowest decision of that run       {1e3 * slowest:12.2f} ms")
    runs = sorted(arrays(1_000_000) for _ in range(7))
    rate, decisions = runs[3]
    print(f"arrays, k=10, 1e6 readings         {rate:12,.0f} /s   (goal 1,000,000; median of 7)")
    print(f"a decision in these                {1e9 / rate / decisions:12.2f} ms   (of {decisions:,})")
    print(f"the best of these                  {runs[-1][0]:12,.0f} /s")
    print(f"arrays, k=10, 4e6 readings         {arrays(4_000_000)[0]:12,.0f} /s   (decisions grow with the log)")
    typical, worst = ask_time(100_000)
    print(
        f"tell and ask at 1e5 per arm        {1e3 * typical:12.2f} ms   (goal 5; worst of 20: {1e3 * worst:.2f})"
    )


if __name__ == "__main__":
    main()
