"""Fixed designs: how often one of two equal arms is named, through the public functions (evidence section 11)."""

import numpy as np
import pytest

import truearm as ta

DELTA, RUNS = 0.2, 150


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_one_of_two_equal_shares_is_named_with_probability_at_most_delta(share):
    rng = np.random.default_rng(29)
    named = 0
    for _ in range(RUNS):
        tapes = {arm: (rng.random(1000) < share).astype(float) for arm in "AB"}
        found = ta.analyze(tapes, design="fixed", delta=DELTA, contamination=0, at_least=1)
        named += found.best is not None
    assert named <= DELTA * RUNS


def test_one_of_two_equal_quantiles_is_named_with_probability_at_most_delta():
    rng = np.random.default_rng(30)
    named = 0
    for _ in range(RUNS):
        tapes = {arm: rng.integers(0, 2, 1000) + rng.normal(0, 1e-3, 1000) for arm in "AB"}
        found = ta.analyze(tapes, design="fixed", delta=DELTA, contamination=0)
        named += found.best is not None
    assert named <= DELTA * RUNS
