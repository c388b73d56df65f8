"""Helpers of the statistical tests: check a stated error probability, and follow e-values to their maximum.

Each check is a binomial test with a false-alarm rate of FALSE_ALARM at a fixed seed: if the statement holds, the
test fails with at most that chance, once, when the seed is chosen. Power is against an error probability three
times as large as stated: 0.92 at 100 runs for 0.1, above 0.99 at 150 runs for 0.2. Fewer runs are a smoke test.
"""

import numpy as np
from scipy.stats import binom, binomtest

from truearm.bounds.mixture import log_mixture

FALSE_ALARM = 1e-4


def kept(failures, promised):
    """Return True if this share of failures is compatible with a probability of at most `promised`."""
    failures = np.asarray(failures, dtype=bool)
    found = binomtest(int(failures.sum()), failures.size, promised, alternative="greater")
    return found.pvalue > FALSE_ALARM


def power(runs, promised, times=3):
    """Return how likely `kept` is False if the true probability is `times` the promised one."""
    least = int(binom.isf(FALSE_ALARM, runs, promised)) + 1
    return float(binom.sf(least - 1, runs, min(1.0, times * promised)))


def broken(failures, promised):
    """Return True if this share of failures proves a probability above `promised`."""
    return not kept(failures, promised)


def log_summits(rng, runs, horizon, p0):
    """Return max over n <= horizon of log M_n, at least 0, along tapes of successes of chance p0."""
    counts, summits = np.zeros(runs, dtype=np.intp), np.zeros(runs)
    for n in range(1, horizon + 1):
        counts += rng.random(runs) < p0
        unique, where = np.unique(counts, return_inverse=True)
        summits = np.maximum(summits, log_mixture(unique, n, p0)[where])
    return summits
