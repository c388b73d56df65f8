"""Evidence from bounded scores of two arms on the same items (extensions B1 to B3).

A round is an item; D is the difference of the two scores there, scaled to [-1, 1]. The null says that the mean
of D is at most m0: over all draws, or over a fixed list of items that are drawn without replacement.
"""

import math
from collections.abc import Sequence

import numpy as np

from truearm.evidence.levels import Trust
from truearm.evidence.sample import Floats, Sample, align
from truearm.evidence.search import Evidence, Portfolio
from truearm.evidence.targets import PLAIN, Query, Target
from truearm.problem import Adversary, Design

REFUTED = 1e6  # nats; stands for infinity, which JSON lacks
_ROUNDING = 1e-9  # of sums of scores
_MAX_REPEATED = 2**17  # items of a forecast; beyond, it multiplies their evidence

BETS = 0.99 * 2.0 ** (-np.arange(17) / 2)  # extensions B2: a bet for every size of the gap, equal weights


def log_score_evidence(differences: Floats, m0: float, items: int | None = None) -> Floats:
    """Return the log-evidence against a mean difference of at most m0 after each item (extensions B2).

    Scaled differences are in the order in which items were drawn, -1 where a score is missing; without a number of
    items in the list they are independent draws.
    """
    n = differences.size
    before = np.concatenate(([0.0], np.cumsum(differences)))
    refuted = np.zeros(n, dtype=bool)
    level = np.full(n, min(m0, 1.0))
    if items is not None:
        left = items - np.arange(n)  # items not yet drawn, the current one included
        level = np.minimum((items * m0 - before[:-1]) / left, 1.0)  # extensions B2
        refuted = np.logical_or.accumulate(before[1:] - (left - 1) > items * m0 + _ROUNDING)  # extensions B2
    logs = np.logaddexp.reduce(np.cumsum(_log_wealth(differences, level), axis=1), axis=0)
    return np.where(refuted, math.inf, logs - math.log(BETS.size))


def _log_wealth(differences: Floats, level: Floats) -> Floats:
    """Return the logarithm of each bet's factor at each item, a row for each bet."""
    room = 1 + level
    ratio = np.divide(differences - level, room, out=np.zeros(differences.size), where=room > 0)
    factors: Floats = np.log1p(np.maximum(BETS[:, None] * ratio, -BETS[:, None]))
    return factors


class Scores(Target):
    """The mean of bounded scores on the same items. Nothing is claimed about a single arm."""

    __slots__ = ()

    @property
    def _width(self) -> float:
        low, high = self.problem.score_range or (0.0, 1.0)
        return high - low

    def _differences(self, one: Sample, other: Sample) -> Floats:
        """Return how far one arm was ahead on each item, in [-1, 1]; -1 where a score is missing or timed out."""
        apart = np.subtract(*align(one, other)) / self._width
        return np.where(np.isfinite(apart), apart, -1.0)

    def _null_mean(self, trust: Trust, gap: float) -> float:
        """Return m0, the most that bad scores can make of a mean difference of at most `gap` (extensions B1)."""
        eps, gap = trust.eps, gap / self._width
        if trust.adversary is Adversary.MALICIOUS or self.problem.items is not None:
            return gap + 2 * eps  # extensions B1
        return eps + (1 - eps) * gap  # extensions B1

    def _log_evidence(self, apart: Floats, trust: Trust, gap: float) -> float:
        if not apart.size:
            return 0.0
        found = log_score_evidence(apart, self._null_mean(trust, gap), self.problem.items)
        return float(min(found[-1], REFUTED))

    def evidence(self, judged: Sample, bets: Portfolio, trust: Trust, query: Query = PLAIN) -> Evidence:
        assert bets.whole is not None  # the rule of rounds has no legs
        apart = self._differences(bets.whole.sample, judged)
        gap, items = -query.shift.amount if query.shift else 0.0, self.problem.items
        size = min(round(query.times * apart.size), items or 2**53)  # as many as there can be
        if size <= max(_MAX_REPEATED, apart.size):
            return Evidence(self._log_evidence(np.resize(apart, size), trust, gap))
        if size == items:
            return Evidence(REFUTED)  # by the whole list, as `is_decidable`
        level = np.full(apart.size, self._null_mean(trust, gap))  # about the same while most items are left
        logs = _log_wealth(apart, level).sum(axis=1) * (size / apart.size)
        return Evidence(float(np.logaddexp.reduce(logs)) - math.log(BETS.size))

    def ceiling(self, judged: Sample, rival: Sample, trust: Trust, design: Design) -> float:  # noqa: ARG002
        return self._log_evidence(np.ones(min(judged.n, rival.n)), trust, 0.0)

    def eps_limit(self, adversary: Adversary) -> float:  # noqa: ARG002
        return 0.5  # two wrong scores move a difference by 2 eps, and eps is below one half elsewhere

    @property
    def is_symmetric(self) -> bool:
        return self.problem.items is None  # extensions B1: on a list all adversaries are alike

    def looks(self, sample: Sample) -> float:
        known = sample.values[np.isfinite(sample.values)]
        return float(known.mean()) if known.size else math.nan

    def is_same(self, one: Sample, other: Sample) -> bool:
        """Return True if two arms have the same mean on a whole list, or the same score on every item."""
        if not one.size or not one.size == one.n == other.n == other.size:
            return False
        apart = self._differences(one, other)
        return bool(abs(apart.sum()) < _ROUNDING) if one.n == self.problem.items else not apart.any()

    def breakdown_estimate(self, better: Sample, worse: Sample, adversary: Adversary) -> float:
        apart = self._differences(better, worse)
        mean = max(0.0, float(apart.mean())) if apart.size else 0.0
        doubled = adversary is Adversary.MALICIOUS or self.problem.items is not None
        return mean / 2 if doubled else mean  # extensions B1

    def is_decidable(self, better: Sample, worse: Sample, trust: Trust) -> bool:
        apart = self._differences(better, worse)
        return bool(apart.size and apart.mean() > self._null_mean(trust, -self.problem.tolerance.amount))

    def is_futile(self, samples: Sequence[Sample], alive: Sequence[int], trust: Trust, error: float) -> bool:  # noqa: ARG002
        """Return True if the whole list is scored: more readings do not exist."""
        return all(samples[i].n == self.problem.items for i in alive)

    def margin_range(self, one: Sample, other: Sample, *, relative: bool) -> tuple[float, float]:  # noqa: ARG002
        return self._width, 1e-6 * self._width  # no difference exceeds the range

    def is_ratio(self, one: Sample, other: Sample) -> bool:  # noqa: ARG002 - a score may be 0
        return False

    def lead(self, one: Sample, other: Sample, *, relative: bool) -> float:  # noqa: ARG002
        apart = np.subtract(*align(one, other))
        known = apart[np.isfinite(apart)]
        return float(known.mean()) if known.size else math.nan
