"""The table of ratios of a race in rounds errs, together with the name, with probability at most delta."""

import numpy as np
import pytest

import truearm as ta
from truearm.claims.certify import ratios

from .promise import kept, power

TRUTHS = {"A": 1.0, "B": 1.08, "C": 1.08, "D": 1.1}


def race(seed, eps=0.05, n=4000):
    """Return a race of commands with these typical times, under a common load, with all bad readings allowed.

    In a round either the best arm is spoiled for the better or all others for the worse, so that a pair meets a
    bad reading with the whole chance of 2 eps.
    """
    rng = np.random.default_rng(seed)
    times = np.array([*TRUTHS.values()])[:, None] * np.exp(rng.normal(0, 3, n) + rng.normal(0, 0.1, (4, n)))
    fate = rng.random(n)
    times[0, fate < eps] *= 1e-9
    times[1:, fate > 1 - eps] *= 1e9
    tapes = {arm: iter(row) for arm, row in zip(TRUTHS, times, strict=True)}
    study = ta.Study(list(TRUTHS), goal="min", rounds=True, contamination=eps, delta=0.2, max_pulls=4 * n)
    while counts := study.ask_counts():
        study.tell_arrays({arm: [next(tapes[arm]) for _ in range(m)] for arm, m in counts.items()})
    return study.result


@pytest.mark.statistical
def test_the_table_of_the_named_arm_holds_together():
    """The limits of 100 tables at delta = 20%: three times as many errors would be found with power above 0.99."""
    wrong = []
    assert power(100, 0.2) > 0.99
    for seed in range(100):
        result = race(seed)
        table = ratios(result)
        truths = [TRUTHS[row.arm] / TRUTHS[row.reference] for row in table]
        wrong.append(any(not row.low <= true <= row.high for row, true in zip(table, truths, strict=True)))
        if result.best is not None:
            leads = {lead.than: lead.at_least for lead in result.better_by}
            assert all(row.low == pytest.approx(leads[row.arm]) for row in table if leads[row.arm] is not None)
    assert kept(wrong, 0.2)
