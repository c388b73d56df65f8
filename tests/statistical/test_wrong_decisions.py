"""The best arm is ever rejected with probability at most delta, at the worst instance for each promise.

Arm 0 is the best: by exactly nothing (equal medians under certified evidence), or by exactly as much as the
contamination hides (zero effective gap under the paper's promise). Of coins the last is: by a billionth of a
chance its median is 1 and those of the others are 0, and all of them come before it where they tie.
"""

import numpy as np
import pytest

from truearm import Contamination, bounds, families, lab
from truearm.lab.arms import Instance, translations
from truearm.lab.simulate import simulate

from .promise import kept

pytestmark = pytest.mark.statistical
DELTA, EPS = 0.1, 0.1
NORMAL = families.gaussian()
COIN = families.discrete([0.0, 1.0], [0.5, 0.5])
LUCKY = families.discrete([0.0, 1.0], [0.5 - 1e-9, 0.5 + 1e-9])
FULL = ((2, 1500, 4000), (5, 700, 6000), (20, 200, 12_000))
SIZES = [(2, 200, 1500), (5, 100, 1500), *(pytest.param(*size, marks=pytest.mark.slow) for size in FULL)]


def equal(k):
    return translations(NORMAL, [0.0] * (k - 1))


def hidden(k, adversary="oblivious"):
    """Return arms whose effective gaps are exactly zero."""
    return translations(NORMAL, [2 * bounds.shift(NORMAL, EPS, adversary)] * (k - 1))


def swinging(place, arm):
    """Slander the best arm and praise the others, then nothing, in turns that grow."""
    loud = np.log2(place + 16).astype(int) % 2 == 0
    return np.where(loud, -np.inf if arm == 0 else np.inf, 0.0)


def settings(k):
    declared = Contamination(EPS)
    malicious = Contamination(EPS, "malicious", causal=True)
    promised, spoiled, same = hidden(k), hidden(k, "malicious"), equal(k)
    coins = Instance("coins", (*(COIN,) * (k - 1), LUCKY))
    return {
        "zero effective gap": (promised, lab.worst(promised, EPS), None),
        "zero effective gap, malicious": (spoiled, lab.worst(spoiled, EPS, "malicious"), None),
        "equal medians": (same, lab.worst(same, EPS), declared),
        "equal medians, malicious": (same, lab.worst(same, EPS, "malicious"), malicious),
        "equal medians, changing": (same, lab.Drifting(EPS, swinging), declared),
        "ties": (coins, None, None),
        "clairvoyant": (same, lab.Steering(EPS, best=0), Contamination(EPS, "prescient")),
        "clairvoyant, ties": (coins, lab.Steering(EPS, best=k - 1), Contamination(EPS, "prescient")),
    }


SCENARIOS = list(settings(2))


def losses(scenario, k, runs, horizon):
    """Return in which runs the best arm was ever rejected."""
    instance, attack, declared = settings(k)[scenario]
    limits = {"delta": DELTA, "contamination": declared, "seed": 11, "max_pulls": horizon}
    return simulate("toptwo", instance, attack, runs, **limits).runs["best_rejected"]


@pytest.mark.parametrize(("k", "runs", "horizon"), SIZES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_best_arm_is_kept(scenario, k, runs, horizon):
    assert kept(losses(scenario, k, runs, horizon), DELTA)


def test_the_promise_is_needed():
    # equal medians, but the promise of a positive effective gap is false: separated evidence is then misled
    same = equal(2)
    done = simulate("toptwo", same, lab.worst(same, EPS), 60, delta=DELTA, seed=11, max_pulls=4000)
    assert not kept(done.runs["best_rejected"], DELTA)
