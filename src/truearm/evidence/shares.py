"""Shares: which arm has the largest share of readings in a set fixed in advance (extensions 1).

A quantile fixes the level and searches the cut; a share fixes the cut and searches the level. If arm j has at
least the share of arm i, some theta lies between the two: readings of i are then failures with a chance of at
least g(1-theta), those of j successes with one of at least g(theta), whatever the adversary does. Samples hold 1
for a success and 0 for a failure, and only their counts matter. Equal shares belong to every null, so evidence is
strict.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from truearm.bounds import special
from truearm.bounds.mixture import log_mixture_at
from truearm.bounds.search import last_true
from truearm.evidence.levels import Trust
from truearm.evidence.quantiles import few_values
from truearm.evidence.sample import Floats, Sample, is_success
from truearm.evidence.search import (
    PIECES,
    Evidence,
    Places,
    Portfolio,
    Product,
    Stake,
    Term,
    Weights,
    least_in,
    tail_term,
)
from truearm.evidence.targets import PLAIN, Query, Target
from truearm.problem import Adversary, Contamination, Design, Interval, Problem, Tolerance

NO_BET = 0.05  # of the capital of each e-value: without it one success seen makes the infimum 0 (extensions 1.1)
ACCURACY = 1e-4  # of the evidence, that the search for the infimum may lose
ROUGH = 1e-2  # the same where evidence only guides what is pulled next
_MAX_LEG_LEVEL = 1 - 1e-6  # level at which a leg is bet: at 1 both of its ends would be infinite
_HALF = 0.5  # between a failure, 0, and a success, 1
_INSIDE = 1e-12  # distance from 0 and 1, where a divergence may be infinite


class Count(NamedTuple):
    """How many of n readings favor the null: failures of an arm that bets, successes of the one that is judged."""

    hits: int
    n: int


def successes(sample: Sample) -> Count:
    """Return the judged arm's count: readings that succeeded, and those without a value (evidence T8)."""
    return Count(int(sample.above(_HALF)), sample.n)


def failures(sample: Sample) -> Count:
    """Return the count of an arm that bets: readings that failed, and those without a value (evidence T8)."""
    return Count(int(sample.below(_HALF)), sample.n)


def count_successes(values: Floats, problem: Problem) -> Sample:
    """Return readings as a sample of successes and failures, without a sort."""
    won, missing = (int(np.count_nonzero(found)) for found in (is_success(values, problem), np.isnan(values)))
    return Sample(np.repeat([0.0, 1.0], [values.size - won - missing, won]), missing)


def share_term(count: Floats, n: Floats, levels: Floats) -> Floats:
    """Return log M', the evidence of one arm in data that may have been looked at; a part is never bet."""
    bet = log_mixture_at(count, n, levels)
    return np.logaddexp(math.log1p(-NO_BET) + bet, math.log(NO_BET))  # extensions 1.1


class _Thetas(Product):
    """The evidence by the share theta that the better arm may have."""

    def __init__(
        self,
        rows: Sequence[Count],
        weights: Weights,
        trust: Trust,
        *,
        shift: float = 0.0,
        term: Term | None = None,
        times: float = 1.0,
    ) -> None:
        super().__init__([row.n for row in rows], weights, term or share_term, times)
        self.hits = np.array([[float(row.hits)] for row in rows])
        self.trust, self.shift = trust, shift

    @property
    def grid(self) -> Places:
        return np.linspace(max(0.0, self.shift), 1.0, PIECES + 1)

    def counts(self, places: Places) -> Floats:  # noqa: ARG002 - the same at every share
        return self.hits

    def levels(self, places: Places) -> tuple[Any, Any]:
        high, low = self.trust.mass(places), self.trust.mass(1 - places + self.shift)
        rows = np.repeat(low[None], len(self.hits) - 1, axis=0)
        legs = slice(1 if self.weights.has_stake else 0, None)
        rows[legs] = np.minimum(rows[legs], _MAX_LEG_LEVEL)  # a level may be lowered
        return high[None], rows


@lru_cache(maxsize=4096)  # many arms have the same counts
def _least_share(rows: tuple[Count, ...], weights: Weights, trust: Trust, query: Query) -> Evidence:
    design, shift, _, enough, times, rough = query
    term: Term = tail_term if design == "fixed" else share_term
    product = _Thetas(rows, weights, trust, shift=shift.amount if shift else 0.0, term=term, times=times)
    return least_in(design, product, enough=enough, accuracy=ROUGH if rough else ACCURACY)


def _rows(judged: Sample, bets: Portfolio) -> tuple[Count, ...]:
    """Return the counts of a product: of the judged arm, the stake, the legs at their ends and at their starts."""
    whole = [failures(bets.whole.sample)] if bets.whole else []
    ends = [failures(leg.end) for leg in bets.legs]
    # a pending pull hurts nowhere: it failed at the end of a leg, and not before its start (evidence T5)
    starts = [Count(failures(leg.start).hits - leg.start.pending, leg.start.n) for leg in bets.legs]
    return (successes(judged), *whole, *ends, *starts)


@lru_cache(maxsize=4096)
def highest_level(hits: int, n: int, error: float, design: Design) -> float:
    """Return the largest chance of a success that `hits` successes among n do not refute (extensions 1.4)."""
    if hits >= n:
        return 1.0
    if design == "fixed":
        return float(special.betaincinv(hits + 1, n - hits, 1 - error))  # Clopper and Pearson
    bar = -math.log(error)
    # the end at which it no longer holds: rounding can only widen an interval
    return last_true(lambda p: float(log_mixture_at(hits, n, np.array([p]))[0]) >= bar, 1.0, 0.0, accuracy=1e-12)


class Share(Target):
    """The share of readings in a set."""

    __slots__ = ()

    def evidence(self, judged: Sample, bets: Portfolio, trust: Trust, query: Query = PLAIN) -> Evidence:
        query = query._replace(near=0.0)  # the search needs no hint
        return _least_share(_rows(judged, bets), bets.weights, trust, query)

    def product(self, judged: Sample, bets: Portfolio, trust: Trust) -> Product:
        return _Thetas(_rows(judged, bets), bets.weights, trust)

    def common_terms(
        self, samples: Sequence[Sample], trust: Trust, design: Design
    ) -> tuple[Floats, Floats] | None:
        theta, term = np.linspace(0, 1, 2 * PIECES + 1)[1:-1], tail_term if design == "fixed" else share_term
        own, rival = (np.array([count(s) for s in samples], dtype=np.float64) for count in (successes, failures))
        high, low = trust.mass(theta)[None], trust.mass(1 - theta)[None]
        return term(own[:, :1], own[:, 1:], high), term(rival[:, :1], rival[:, 1:], low)

    def gains(self, judged: Sample, stake: Stake, trust: Trust, at: float) -> tuple[float, float]:
        return Target.gains(self, judged, stake, trust, min(max(at, _INSIDE), 1 - _INSIDE))

    def ceiling(self, judged: Sample, rival: Sample, trust: Trust, design: Design) -> float:
        rows = (Count(0, judged.n), Count(0, rival.n))
        return _least_share(rows, Portfolio(Stake(rival)).weights, trust, Query(design)).log_value

    def eps_limit(self, adversary: Adversary) -> float:
        return 0.5 if adversary is Adversary.MALICIOUS else 1.0  # beyond it g(1-theta) or g(theta) is 0

    def is_ratio(self, one: Sample, other: Sample) -> bool:  # noqa: ARG002 - points of a share
        return False

    def is_hopeless(self, trust: Trust) -> bool:  # noqa: ARG002 - unlimited readings show any difference that is left
        return False

    def looks(self, sample: Sample) -> float:
        return (sample.size - int(sample.count(_HALF))) / sample.size if sample.size else math.nan

    def rank(self, samples: Sequence[Sample], among: Sequence[int]) -> list[int]:
        """Return the arms by their share, missing readings taken for failures."""
        return sorted((i for i in among if samples[i].size), key=lambda i: -_share_at_worst(samples[i]))

    def intervals(
        self, sample: Sample, contamination: Contamination, error: float, design: Design
    ) -> tuple[Interval, Interval]:
        """Return where the true share lies; each end is wrong with at most half of the error (extensions 1.4)."""
        trust, counts = Trust.of(contamination), (failures(sample), successes(sample))

        def between(fails: float, succeeds: float) -> Interval:
            return Interval(max(0.0, 1 - trust.clean_share(fails)), min(1.0, trust.clean_share(succeeds)))

        most = (highest_level(*count, error / 2, design) for count in counts)
        return between(*most), between(*(count.hits / max(1, count.n) for count in counts))

    def breakdown_estimate(self, better: Sample, worse: Sample, adversary: Adversary) -> float:
        """Return the difference of the observed shares, half of it for a malicious adversary (extensions 1.2)."""
        if not better.size or not worse.size:
            return 0.0
        gap = max(0.0, _share_at_worst(better) - _share_at_best(worse))
        return gap / 2 if adversary is Adversary.MALICIOUS else gap

    def is_decidable(self, better: Sample, worse: Sample, trust: Trust) -> bool:
        return not self._is_hidden(_share_at_worst(better), _share_at_best(worse), trust)

    def _is_hidden(self, one: float, other: float, trust: Trust) -> bool:
        """Return True if contamination can hide forever that one observed share is larger (extensions 1.2).

        Some theta then has g(1-theta+a) at most the failures of the first, and g(theta) at most the other's
        successes, a being the tolerance.
        """
        amount = self.problem.tolerance.amount
        first = max(amount, 1 + amount - trust.clean_share(1 - one))
        return first <= min(1.0, trust.clean_share(other))

    def is_futile(self, samples: Sequence[Sample], alive: Sequence[int], trust: Trust, error: float) -> bool:
        """Return True if contamination hides each arm's lead over another one (extensions 1.6)."""

        def is_overlapped(upper: Sequence[float], lower: Sequence[float]) -> bool:
            highest = sorted(range(len(lower)), key=lower.__getitem__)[-2:]  # one of them hides any hidden arm
            return all(any(self._is_hidden(upper[i], lower[j], trust) for j in highest if j != i) for i in alive)

        # pending pulls may turn out either way: successes for the upper limit, failures for the lower one; missing
        # readings are failures for the one and successes for the other
        won = [s.size - int(s.count(_HALF)) for s in samples]
        most = [(w + s.pending, s.n) for w, s in zip(won, samples, strict=True)]
        lost = [(s.n - w - s.missing, s.n) for w, s in zip(won, samples, strict=True)]
        if not is_overlapped([c / max(1, n) for c, n in most], [1 - c / max(1, n) for c, n in lost]):
            return False  # limits are further apart than the observed shares
        share = error / len(samples)
        upper = [highest_level(c, n, share, "sequential") for c, n in most]
        return is_overlapped(upper, [1 - highest_level(c, n, share, "sequential") for c, n in lost])

    def least_tolerance(self, better: Sample, worse: Sample, log_bar: float, trust: Trust, query: Query) -> float:
        found = Target.least_tolerance(self, better, worse, log_bar, trust, query)  # extensions 1.3
        return found if found < 1 else math.inf  # a tolerance of 1 is no bound


def _share_at_worst(sample: Sample) -> float:
    """Return the share if every missing reading were a failure."""
    known = sample.size + sample.missing
    return (sample.size - int(sample.count(_HALF))) / known if known else 0.0


def _share_at_best(sample: Sample) -> float:
    """Return the share if every missing reading were a success."""
    known = sample.size + sample.missing
    return (known - int(sample.count(_HALF))) / known if known else 1.0


def is_binary(samples: Sequence[Sample]) -> bool:
    """Return True if every reading is 0 or 1, or 0 or -1, as oriented readings of a minimum are."""
    return few_values(samples) in ([0.0, 1.0], [-1.0, 0.0])


def deciding_limit(problem: Problem, samples: Sequence[Sample]) -> float | None:
    """Return a limit at which shares would decide where quantiles tie, in the user's units; None if no limit does.

    Only readings with few distinct values are tried. The error probability is split over all limits tried, so that
    the decision at that limit holds despite the search.
    """
    from truearm.evidence.judge import Judge

    limits = (few_values(samples) or [0.0])[1:]
    asked = replace(problem, quantile=0.5, goal="max", at_least=0.0, tolerance=Tolerance(), handicap=None)
    asked = replace(asked, delta=problem.delta / max(1, len(limits)))

    def least_at(limit: float) -> float:
        split = [sample.map(lambda values: (values >= limit).astype(np.float64)) for sample in samples]
        judge = Judge.of(asked, split)
        leader = judge.best_looking(range(len(split)))
        if leader is None:
            return -math.inf
        judge = judge.after(leader=leader)
        return min((judge.against(i).log_value for i in range(len(split)) if i != leader), default=-math.inf)

    reached = {limit: least_at(limit) for limit in limits}
    best = max(reached, key=lambda limit: reached[limit], default=None)
    bar = Judge.of(asked, samples).log_bar()
    return None if best is None or reached[best] < bar else problem.sign * best
