"""Generated worlds in which the truth is known: laws, an attack that uses all of eps, failures, a time limit.

A world is made to be believed wrongly. One arm is best, by a cut: just enough of its readings are at or above the
cut, just enough of every other arm's are below it, farther than the tolerance. What the adversary may spoil it
spoils against the truth; pulls fail that would have told the truth; beyond a limit readings are time-outs. Inside,
bigger is better. Nothing of `truearm` computes the truth here.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from truearm import Contamination, Tolerance

INF, NAN = math.inf, math.nan
SLACK = 0.002  # how far the quantiles are from being tied, in chances
QUANTILES = (0.25, 0.5, 0.9)
CUTS = (1.0, -1.0, 0.0)
STEPS = np.array([0.001, 0.02, 0.5, 2.0, 30.0, 1e6])


@dataclass(frozen=True)
class Law:
    """Atoms of one arm: what is true, what fails, and what the adversary makes of it."""

    values: np.ndarray
    chances: np.ndarray
    fails: np.ndarray
    """Per atom, the chance that the pull fails."""
    spoiled: np.ndarray
    """Per atom, the chance that the adversary takes it."""
    lie: float
    limit: float
    """At or below it a reading is a time-out, a bad one too."""

    def draw(self, rng, n):
        """Return n readings as they are shown, oriented."""
        at = rng.choice(self.values.size, n, p=self.chances)
        shown = np.where(rng.random(n) < self.fails[at], NAN, self.values[at])
        shown = np.where(rng.random(n) < self.spoiled[at], self.lie, shown)
        return np.where(shown <= self.limit, -INF, shown)

    def shown(self):
        """Return the law of what is shown: values, NaN for missing, and their chances."""
        kept = self.chances * (1 - self.spoiled)
        values = np.concatenate((self.values, [NAN, self.lie]))
        values = np.where(values <= self.limit, -INF, values)
        chances = np.concatenate(
            (kept * (1 - self.fails), [np.sum(kept * self.fails), np.sum(self.chances * self.spoiled)])
        )
        return values, chances

    def target(self, *, observed):
        """Return values and chances of the readings a result speaks of, with failures and time-outs undone."""
        if not observed:
            return self.values, self.chances
        kept = self.chances * (1 - self.spoiled)
        return np.append(self.values, self.lie), np.append(kept, np.sum(self.chances * self.spoiled))


def quantile(values, chances, level):
    """Return the least value at which the distribution function reaches the level."""
    order = np.argsort(values)
    reached = np.cumsum(chances[order]) >= level - 1e-12
    return float(values[order][np.argmax(reached)])


def made_worse(x, tolerance, sign):
    """Return oriented readings made worse by a tolerance; a ratio moves readings above 0 in the user's units."""
    x = np.asarray(x, dtype=float)
    if not tolerance.relative:
        return x - tolerance.amount
    positive = sign * x > 0
    return np.where(positive, x / (1 + tolerance.amount) if sign > 0 else x * (1 + tolerance.amount), x)


@dataclass(frozen=True)
class World:
    """Arms with a known truth, and the promises that are kept in it."""

    laws: tuple
    best: int
    sign: float
    quantile: float
    tolerance: Tolerance
    contamination: Contamination | None
    eps: float
    """How much is bad in truth; 0 where the result speaks of the observed laws."""
    promises: dict = field(repr=False)

    @property
    def names(self):
        return tuple("ABCDE"[: len(self.laws)])

    @property
    def level(self):
        return self.quantile if self.sign > 0 else 1 - self.quantile

    def readings(self, rng, arm, n):
        """Return n readings of an arm in the user's units."""
        return self.sign * self.laws[arm].draw(rng, n)

    def truths(self):
        """Return the oriented quantile of each arm that a result speaks of."""
        observed = self.contamination is None
        return [quantile(*law.target(observed=observed), self.level) for law in self.laws]

    def levels(self):
        """Return (p-, p+) of evidence section 1."""
        c = self.contamination
        if c is None:
            return self.level, 1 - self.level
        if c.adversary == "malicious":
            return self.level - c.eps, 1 - self.level - c.eps
        return (1 - c.eps) * self.level, (1 - c.eps) * (1 - self.level)

    def certifiable(self):
        """Return the arms that no other blocks, by the laws of what is shown (evidence section 8)."""
        arms = range(len(self.laws))
        return {i for i in arms if not any(self._blocks(j, i) for j in arms if j != i)}

    def _blocks(self, j, i):
        low, high = self.levels()
        (x, p), (y, r) = self.laws[i].shown(), self.laws[j].shown()
        for cut in (*y[~np.isnan(y)], INF):
            moved = made_worse(cut, self.tolerance, self.sign)
            below = np.where(np.isnan(x), True, (x < moved) | (x == -INF))
            above = np.where(np.isnan(y), True, y >= cut)
            if np.sum(p * below) >= low - 1e-12 and np.sum(r * above) >= high - 1e-12:
                return True
        return False


def shares(rng, parts, total):
    """Return positive chances that add up to a total, none of them tiny."""
    raw = rng.dirichlet(np.full(parts, 2.0)) + 0.1
    return total * raw / raw.sum()


def generated(rng, *, goal, eps, arms=None, tolerance=None, quantile_of=None):
    """Return a world at the edge of what the promises allow; `eps` None is the paper's promise."""
    sign = 1.0 if goal == "max" else -1.0
    k = int(rng.choice([2, 3, 5])) if arms is None else arms
    q = float(rng.choice(QUANTILES)) if quantile_of is None else quantile_of
    level = q if sign > 0 else 1 - q
    slack = Tolerance.of([0.0, 0.3, "25%"][rng.integers(3)] if tolerance is None else tolerance)
    malicious = eps is not None and 0 < eps < min(level, 1 - level) and rng.random() < 0.3
    declared = (
        None if eps is None else Contamination(eps, "malicious", causal=True) if malicious else Contamination(eps)
    )
    hidden = rng.choice([0.0, 0.05]) if eps is None else eps
    failing = rng.random() < 0.5
    cut = sign * float(rng.choice(CUTS))
    edge = float(made_worse(cut, slack, sign))
    limit = float(rng.choice([-INF, edge - 0.3, cut + 0.3], p=[0.6, 0.25, 0.15]))
    best = int(rng.integers(k))

    def law(i):
        honest = i == best  # its readings at or above the cut tell the truth, those of others below
        edges = (1 - level, cut) if honest else (level, edge)
        share = edges[0] / (1 - hidden) + SLACK if eps is None else edges[0] + SLACK
        steps = rng.choice(STEPS, 4, replace=False)
        lows, highs = edge - steps[:2], cut + np.append(0.0, steps[2:3])
        values = np.concatenate((lows, highs))
        telling = values >= cut if honest else values < edge
        chances = np.empty(4)
        chances[telling], chances[~telling] = shares(rng, 2, share), shares(rng, 2, 1 - share)
        spoiled = np.where(telling, hidden / share, 0.0) if malicious else np.full(4, hidden)
        fails = np.where(telling & failing, rng.choice([0.05, 0.3, 0.8]), 0.0)
        lie = [lows.min() - 1, INF][not honest] if rng.random() < 0.5 else (lows[0] if honest else highs[1])
        return Law(values, chances, fails, spoiled, float(lie), limit)

    promises = {"goal": goal, "contamination": declared, "tolerance": slack, "quantile": q}
    true_eps = 0.0 if eps is None else float(hidden)
    return World(tuple(law(i) for i in range(k)), best, sign, q, slack, declared, true_eps, promises)


DECIDED = ("certified", "separated", "tolerable")


def falsehoods(result, world):
    """Return the kinds of claims in a result that are false in its world."""
    truths = world.truths()
    named = dict(zip(result.problem.arms, truths, strict=True))
    top = max(truths)
    leader = None if result.leader is None else named[result.leader]
    wrong = {
        "decision": result.status in DECIDED and made_worse(top, world.tolerance, world.sign) > named[result.best]
        if result.status == "tolerable"
        else result.best is not None and named[result.best] < top,
        "margin": any(_too_much(lead, result, named, world) for lead in result.better_by),
        "breakdown": leader is not None and leader < top and _unbroken(result.breakdown, world),
        "tolerance": leader is not None and _too_near(result.tolerance, top, leader, world),
        "interval": any(not _inside(arm.low, world.sign * named[arm.name], arm.high) for arm in result.arms),
        "mad": any(_mad_missed(arm, law, world) for arm, law in zip(result.arms, world.laws, strict=True)),
        "quality": result.leader is not None and _curve_too_high(result, world),
        "futile": result.status == "indistinguishable"
        and bool({world.names[i] for i in world.certifiable()} & set(result.candidates)),
    }
    if hasattr(result, "excluded"):
        wrong["excluded"] = any(named[arm] >= named[by] for arm, by in result.excluded.items())
        wrong["contest"] = any(c.excluded and named[c.worse] == top for c in result.contests)
    return {kind for kind, found in wrong.items() if found}


def _too_much(lead, result, named, world):
    if lead.at_least is None:
        return False
    best, other = named[result.best], named[lead.than]
    amount = Tolerance(lead.at_least - 1, relative=True) if lead.scale == "ratio" else Tolerance(lead.at_least)
    return made_worse(best, amount, world.sign) < other - 1e-6 * max(1.0, abs(other))


def _unbroken(point, world):
    c = world.contamination
    claimed = [point.malicious] if c is not None and c.adversary == "malicious" else list(point)
    return any(eps is not None and eps >= world.eps for eps in claimed)


def _too_near(amount, top, leader, world):
    if amount == INF:
        return False
    claimed = Tolerance(amount, world.tolerance.relative)
    return made_worse(top, claimed, world.sign) > leader + 1e-9 * max(1.0, abs(leader))


def _inside(low, x, high):
    return low <= x <= high


def _mad_missed(arm, law, world):
    values, chances = law.target(observed=world.contamination is None)
    if np.any(np.isinf(values)) or np.any(np.isnan(values)):
        return False
    center = quantile(values, chances, 0.5)
    mad = quantile(np.abs(values - center), chances, 0.5)
    return not _inside(arm.mad_low - 1e-9, mad, arm.mad_high + 1e-9 * max(1.0, abs(arm.mad_high)))


def _curve_too_high(result, world):
    law = world.laws[result.problem.arms.index(result.leader)]
    values, chances = law.target(observed=world.contamination is None)
    return any(np.sum(chances[values >= world.sign * x]) < share - 1e-9 for x, share in result.quality)
