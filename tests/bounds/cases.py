"""What the tests of the bounds share: audited numbers, ranges of arguments, attacks, when a promise is kept."""

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.stats import binomtest

from reference import vectors

VECTORS = vectors("vectors")
ADVERSARIES = ("oblivious", "prescient", "malicious")
FALSE_ALARM = 1e-4  # chance that a correct bound fails one of the statistical tests

adversaries = st.sampled_from(ADVERSARIES)
fractions = st.floats(0.0, 0.45)
deltas = st.floats(1e-6, 0.4)
sizes = st.integers(1, 3000)
levels = st.floats(0.02, 0.98)

repetitions = pytest.mark.parametrize("reps", [4000, pytest.param(60_000, marks=pytest.mark.slow)])
each_adversary = pytest.mark.parametrize("adversary", ["prescient", "malicious"])


def vector(name):
    return VECTORS[name]["inputs"], VECTORS[name]["expected"]


def family(inputs, *, m2="m2bar"):
    return {"eps": inputs["eps"], "B": inputs["B"], "m2": inputs[m2], "adversary": inputs["adversary"]}


def attacked(rng, shape, eps, adversary, *, upward=True):
    """Readings of Uniform[0, 1], every bad one sent to the same side; the malicious one drops the far end."""
    y = rng.random(shape)
    bad = (y < eps if upward else y > 1 - eps) if adversary == "malicious" else rng.random(shape) < eps
    return np.where(bad, np.inf if upward else -np.inf, y)


def assert_rarer(failures, delta):
    """The promise holds up to chance: a correct bound fails here with probability at most FALSE_ALARM."""
    assert binomtest(int(np.sum(failures)), len(failures), delta, alternative="greater").pvalue > FALSE_ALARM


def assert_as_often(failures, probability):
    """The probability is attained: a correct value fails here with probability at most FALSE_ALARM."""
    assert binomtest(int(np.sum(failures)), len(failures), probability).pvalue > FALSE_ALARM
