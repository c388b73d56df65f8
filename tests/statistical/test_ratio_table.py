"""The table of ratios of a race in rounds errs, together with the name, with probability at most delta."""

import numpy as np
import pytest

import truearm as ta
from truearm.claims.certify import ratios

from .promise import kept, power


def race(seed, scales):
    """Return a race of commands whose times are these scales, with noise."""
    rng = np.random.default_rng(seed)
    arms = {name: lambda scale=scale: scale * rng.lognormal(0, 0.1) for name, scale in scales.items()}
    return ta.find_best(arms, goal="min", rounds=True, contamination=0.01, delta=0.2, max_pulls=1000)


@pytest.mark.statistical
def test_the_table_of_the_named_arm_holds_together():
    """The limits of 100 tables at delta = 20%: three times as many errors would be found with power above 0.99."""
    scales, wrong = {"A": 1.0, "B": 1.08, "C": 1.08, "D": 1.1}, []
    assert power(100, 0.2) > 0.99
    for seed in range(100):
        result = race(seed, scales)
        table = ratios(result)
        truths = [scales[row.arm] / scales[row.reference] for row in table]
        wrong.append(any(not row.low <= true <= row.high for row, true in zip(table, truths, strict=True)))
        if result.best is not None:
            leads = {lead.than: lead.at_least for lead in result.better_by}
            assert all(row.low == pytest.approx(leads[row.arm]) for row in table if leads[row.arm] is not None)
    assert kept(wrong, 0.2)
