"""Extensions 1: how often a wrong order of shares is ever certified, under the worst attack for each statement.

The claim is always "arm i has the larger share", and always wrong. Bad readings of i are successes, those of j
failures, so that the counts alone decide; a run looks at them again and again as they grow by a tenth. Powers as
in `promise`: three hundred runs of a promise of 0.1 see one broken twofold with probability 0.9.
"""

import math

import numpy as np
import pytest

from truearm.claims.certificate import Verdict
from truearm.evidence import Judge, Portfolio, Stake, Trust
from truearm.evidence.sample import Sample, Shift
from truearm.evidence.shares import Share, share_term
from truearm.evidence.targets import Query
from truearm.policies import Told
from truearm.policies.toptwo import TopTwo
from truearm.problem import Adversary, Contamination, Problem

from .promise import kept

pytestmark = pytest.mark.statistical
DELTA = 0.1
RUNS = [300, pytest.param(10_000, marks=pytest.mark.slow)]


SHARE = Share(Problem(arms=("A", "B"), at_least=1))


def coins(won, n):
    return Sample(np.repeat([0.0, 1.0], [n - won, won]))


def attacked(theta, eps, adversary, side):
    """Return the share seen when bad readings all go to one side."""
    if adversary == "malicious":
        return theta + eps * side
    return (1 - eps) * theta + eps * (side > 0)


def ever_certified(rng, runs, thetas, trust, *, chances, horizon=3000):
    """Return which runs ever certify the claim, the arms pulled in turn.

    The evidence is at most the product at the true shares, so that the search runs only where that suffices.
    """
    won, n, wrong = np.zeros((2, runs)), np.full((2, runs), 8.0), np.zeros(runs, dtype=bool)
    won[:] = rng.binomial(8, np.array(chances)[:, None], won.shape)
    bar, shift = math.log(1 / DELTA), thetas[1] - thetas[0]
    for _ in range(int(40 * math.log10(horizon))):
        arm = (n[0] > n[1]).astype(int)
        size = np.maximum(4, n.min(axis=0) // 10)
        won[arm, np.arange(runs)] += rng.binomial(size.astype(int), np.array(chances)[arm])
        n[arm, np.arange(runs)] += size
        levels = trust.mass(np.array([1 - thetas[0], thetas[1]]))
        most = share_term(n[0] - won[0], n[0], levels[0]) + share_term(won[1], n[1], levels[1])
        for i in np.flatnonzero((most >= bar) & ~wrong):
            bet, own = (coins(int(won[j, i]), int(n[j, i])) for j in (0, 1))
            found = SHARE.evidence(own, Portfolio(Stake(bet)), trust, Query(shift=Shift(shift), enough=bar))
            wrong[i] = found.log_value >= bar
    return wrong


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("theta", [0.5, 0.02, 0.97])
@pytest.mark.parametrize(("eps", "adversary"), [(0.0, "oblivious"), (0.05, "oblivious"), (0.02, "malicious")])
def test_equal_shares_are_ever_ordered_this_seldom(runs, theta, eps, adversary):
    """Rare events and nearly certain ones too; the malicious adversary moves what the laws leave to move."""
    rng = np.random.default_rng(31)
    eps = min(eps, theta, 1 - theta)
    chances = [attacked(theta, eps, adversary, side) for side in (1, -1)]
    trust = Trust(eps, Adversary(adversary))
    assert kept(ever_certified(rng, runs, (theta, theta), trust, chances=chances), DELTA)


@pytest.mark.parametrize("runs", RUNS)
def test_an_arm_beyond_the_tolerance_is_ever_called_within_it_this_seldom(runs):
    """Extensions 1.3: j exceeds i by just the tolerance."""
    rng = np.random.default_rng(32)
    chances = [attacked(theta, 0.05, "oblivious", side) for theta, side in ((0.4, 1), (0.5, -1))]
    trust = Trust(0.05, Adversary.OBLIVIOUS)
    assert kept(ever_certified(rng, runs, (0.4, 0.5), trust, chances=chances), DELTA)


@pytest.mark.parametrize("runs", [100, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("design", ["sequential", "fixed"])
@pytest.mark.parametrize("theta", [0.01, 0.6])
def test_an_interval_misses_this_seldom(runs, design, theta):
    """At every look of a sequence, or at one number of readings; bad readings all failures (extensions 1.4)."""
    rng = np.random.default_rng(33)
    chance, looks = 0.95 * theta, [20, 100, 500, 2500] if design == "sequential" else [300]
    missed = []
    for _ in range(runs):
        tape = (rng.random(looks[-1]) < chance).astype(float)
        found = [SHARE.intervals(Sample.of(tape[:n]), Contamination(0.05), DELTA, design)[0] for n in looks]
        missed.append(not all(low <= theta <= high for low, high in found))
    assert kept(missed, DELTA)


def decided(shares, rng, *, most, **options):
    """Return the verdict of the default policy on draws of these shares, None after so many pulls."""
    problem = Problem(arms=tuple("ABCDE"[: len(shares)]), at_least=1, delta=DELTA, **options)
    policy, pulls = TopTwo(), dict.fromkeys(problem.arms, 0)
    state = policy.start(problem)
    while not isinstance(batch := policy.ask(state), Verdict):
        told = {}
        for arm, n in batch.items():
            values = (rng.random(n) < shares[problem.arms.index(arm)]).astype(float)
            told[arm] = Told(np.arange(pulls[arm], pulls[arm] + n), values)
            pulls[arm] += n
        state = policy.tell(state, told, pulls)
        if sum(pulls.values()) > most:
            return None
    return batch


@pytest.mark.parametrize("runs", [6, pytest.param(300, marks=pytest.mark.slow)])
def test_the_policy_names_a_wrong_arm_this_seldom(runs):
    """The adversary lifts one of three tied coins and sinks the others; six runs are a smoke test."""
    rng = np.random.default_rng(34)
    shares = [attacked(0.3, 0.05, "oblivious", side) for side in (-1, 1, -1)]
    verdicts = [decided(shares, rng, most=1500, contamination=0.05) for _ in range(runs)]
    assert kept([v is not None and v.best is not None for v in verdicts], DELTA)


@pytest.mark.parametrize("runs", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_more_pulls_are_ever_called_useless_this_seldom_where_they_are_not(runs):
    """Extensions 1.6: the shares are six points apart, one more than bad readings can hide."""
    rng, failed = np.random.default_rng(35), []
    problem = Problem(arms=("A", "B"), at_least=1, delta=DELTA, contamination=Contamination(0.05))
    for _ in range(runs):
        tapes = [(rng.random(20_000) < p).astype(float) for p in (0.56, 0.5)]
        looks = np.geomspace(50, 20_000, 12).astype(int)
        failed.append(any(Judge.of(problem, [Sample.of(t[:n]) for t in tapes]).is_futile((0, 1)) for n in looks))
    assert kept(failed, DELTA)
