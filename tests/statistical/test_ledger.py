"""A loop of useless proposals accepts any of them with a chance of at most delta (extensions L1, L2).

The proposer adapts: what looked good is proposed again, with more noise. All proposals are equal to their base, so
every acceptance is false, and the expected share of false ones is the chance of any.
"""

import random
from functools import partial

import pytest

import truearm as ta

from .promise import kept

pytestmark = pytest.mark.statistical
DELTA = 0.2


def accepts_any(path, loop, gates, error_rate):
    """Return whether a loop accepts a useless proposal."""
    draw, noise = random.Random(loop), 1.0
    with ta.Ledger(path / f"{loop}.db", delta=DELTA, error_rate=error_rate, expected=gates) as ledger:
        for number in range(gates):
            pull = partial(draw.gauss, 0, noise)
            gate = ledger.accept(f"{number}", pull, pull, max_pulls=60)
            if gate.accepted:
                return True
            noise = 2 * noise if gate.log_evidence > 0 else 1.0
    return False


FULL = [pytest.param(150, 20, rate, marks=pytest.mark.slow) for rate in ("any", "fdr")]


@pytest.mark.parametrize(("loops", "gates", "error_rate"), [(20, 4, "any"), *FULL])
def test_useless_proposals_are_rarely_accepted(tmp_path, loops, gates, error_rate):
    """In 20 loops a chance of .75 is found with a chance of 90%, in 150 one of .38."""
    assert kept([accepts_any(tmp_path, loop, gates, error_rate) for loop in range(loops)], DELTA)
