"""Rule R of docs/optimality.md: without noise it climbs to the best rate, and with noise it stops in time."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from truearm import families, lab
from truearm.bounds.limits import cost
from truearm.evidence.levels import Levels
from truearm.problem import Contamination

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from optimality import Duel, Sampler  # noqa: E402 - after the path


class World:
    """Exact laws in place of readings: what endless pulls would say at each cut, per pull of either arm."""

    def __init__(self, instance, contamination=None, attack=None):
        laws, best = lab.observed(instance, attack), instance.best
        levels = Levels.of(instance.quantile, Contamination.of(contamination))
        at = np.linspace(0.0025, 0.9975, 399)
        x = np.unique(np.concatenate([law.ppf_left(at) for law in instance.arms]))
        own = np.concatenate([laws[best].cdf_left(x), laws[best].cdf(x)])
        self.best, self.own = best, cost(own, levels.low)
        self.theirs = {
            arm: cost(1 - np.concatenate([law.cdf_left(x), law.cdf(x)]), levels.high)
            for arm, law in enumerate(laws)
            if arm != best
        }
        found = lab.limit(instance, attack, contamination=contamination)
        self.weights, self.rate = np.array(found.weights), 1 / found.time

    def duel(self, counts, arm):
        gains, others = counts[self.best] * self.own, counts[arm] * self.theirs[arm]
        at = int(np.argmin(gains + others))
        return Duel(float(gains[at] + others[at]), float(gains[at]), float(others[at]))

    def duels(self, counts):
        return {arm: self.duel(counts, arm) for arm in self.theirs}

    def least(self, counts):
        return min(duel.log_evidence for duel in self.duels(counts).values())


WIDE = lab.Instance("spreads 1 and 0.25", (families.gaussian(), families.gaussian(-0.5, 0.25)))
WORLDS = {
    "two arms, spreads 1 and 0.25": World(WIDE),  # the best shares are .80 and .20
    "five coins of five sides": World(lab.instance("D5")),  # kinks: five cuts only
    "ten arms": World(lab.instance("G10lin")),
    "certified, the worst attack": World(lab.instance("C5"), 0.05, lab.worst(lab.instance("C5"), 0.05)),
}


def driven(world, counts, pulls, change=lambda duel: duel):
    """Return the counts at every decision of rule R on exact laws, with the duels there."""
    sampler, path = Sampler(), []
    counts = np.array(counts, dtype=float)
    while counts.sum() < pulls:
        duels = {arm: change(duel) for arm, duel in world.duels(counts).items()}
        path.append((counts.copy(), duels))
        for arm, n in sampler.batch(counts.tolist(), world.best, duels).items():
            counts[arm] += n
    return path


@pytest.mark.parametrize("name", WORLDS)
def test_without_noise_the_rate_climbs_to_the_limit(name):
    world = WORLDS[name]
    counts, _ = driven(world, np.full(world.weights.size, 16), 200_000)[-1]
    assert 0.995 < world.least(counts) / (world.rate * counts.sum()) < 1.001
    assert counts / counts.sum() == pytest.approx(world.weights, abs=0.005)
    start = [*[16] * (world.weights.size - 1), 4000]  # a bad start: the last arm needs few pulls
    counts, _ = driven(world, start, 400_000)[-1]
    assert world.least(counts) / (world.rate * counts.sum()) > 0.98


def test_a_share_that_may_not_pass_065_stays_below_the_limit():
    world = WORLDS["two arms, spreads 1 and 0.25"]

    def clipped(duel):
        share, total = min(duel.share, 0.65), duel.gain + duel.other
        return Duel(duel.log_evidence, share * total, (1 - share) * total)

    counts, _ = driven(world, [16, 16], 200_000, clipped)[-1]
    assert world.least(counts) / (world.rate * counts.sum()) == pytest.approx(0.905, abs=0.005)


@pytest.mark.parametrize("name", WORLDS)
def test_the_key_inequality_holds_wherever_the_counts_are(name):
    """Optimality A3: at the active piece the drift of sum w* ln N is at least g*/G."""
    world, rng = WORLDS[name], np.random.default_rng(0)
    for counts in 1000 * rng.dirichlet(np.full(world.weights.size, 0.5), 300) + 1e-3:
        duels = world.duels(counts)
        arm = min(duels, key=lambda j: duels[j].log_evidence)
        share, best = duels[arm].share, world.best
        drift = world.weights[best] * share / counts[best] + world.weights[arm] * (1 - share) / counts[arm]
        assert drift >= world.rate / world.least(counts) * (1 - 1e-9)


@pytest.mark.parametrize("name", WORLDS)
def test_what_is_short_of_the_limit_adds_up_to_no_more_than_the_way_to_it(name):
    """The sum of g*/G(t) - 1/t is at most V(t0) - V(T), V = ln t - sum w* ln N, but for batches and fractions."""
    world = WORLDS[name]
    path = driven(world, np.full(world.weights.size, 64), 100_000)
    shortfall = 0.0
    for (counts, duels), (later, _) in pairwise(path):
        least, t = min(duel.log_evidence for duel in duels.values()), counts.sum()
        shortfall += (world.rate / least - 1 / t) * (later.sum() - t)
    way = [np.log(counts.sum()) - world.weights @ np.log(counts) for counts, _ in (path[0], path[-1])]
    assert 0 <= shortfall <= way[0] - way[1] + 0.06
