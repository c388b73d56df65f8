"""What the statistical tests share: a verdict on a promised probability, and tapes of counts.

Each verdict is a binomial test with a false-alarm rate of FALSE_ALARM, at a fixed seed: a promise that holds
fails its test with at most that chance, once, when the seed is first chosen.
"""

import numpy as np
from scipy.stats import binomtest

from truearm.mixture import log_mixture

FALSE_ALARM = 1e-4


def kept(failures, promised):
    """Say whether this share of failures is compatible with a probability of at most `promised`."""
    failures = np.asarray(failures, dtype=bool)
    found = binomtest(int(failures.sum()), failures.size, promised, alternative="greater")
    return found.pvalue > FALSE_ALARM


def broken(failures, promised):
    """Say whether this share of failures proves a probability above `promised`."""
    return not kept(failures, promised)


def log_e_values(successes, p0):
    """Return log M_n at n = 1, 2, ... along each row of success indicators."""
    counts = np.cumsum(successes, axis=1)
    values = np.empty(counts.shape)
    for n in range(1, counts.shape[1] + 1):
        unique, where = np.unique(counts[:, n - 1], return_inverse=True)
        values[:, n - 1] = log_mixture(unique, n, p0)[where]
    return values
