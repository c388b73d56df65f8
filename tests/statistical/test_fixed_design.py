"""Fixed designs: how often one of two equal arms is named, through the public functions (evidence section 11)."""

import numpy as np
import pytest

import truearm as ta

from .promise import kept, power

DELTA, RUNS = 0.2, 150
LAWS = {
    "shares of a half": (29, lambda rng: (rng.random(1000) < 0.5).astype(float), {"at_least": 1}),
    "shares of 0.9": (29, lambda rng: (rng.random(1000) < 0.9).astype(float), {"at_least": 1}),
    "medians": (30, lambda rng: rng.integers(0, 2, 1000) + rng.normal(0, 1e-3, 1000), {}),
    "rounds": (31, lambda rng: rng.normal(size=1000), {"round": "rows"}),
}


@pytest.mark.parametrize("law", LAWS)
def test_one_of_two_equal_arms_is_named_with_probability_at_most_delta(law):
    """Twice as many errors would be found with power above 0.9."""
    seed, draw, options = LAWS[law]
    rng, named = np.random.default_rng(seed), []
    for _ in range(RUNS):
        tapes = {arm: draw(rng) for arm in "AB"}
        named.append(ta.analyze(tapes, design="fixed", delta=DELTA, contamination=0, **options).best is not None)
    assert power(RUNS, DELTA, times=2) > 0.9
    assert kept(named, DELTA)
