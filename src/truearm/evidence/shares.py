"""Shares: which arm has the largest share of readings in a set fixed in advance, under contamination.

A quantile fixes the level and searches the cut; a share fixes the cut and searches the level. If arm j has at
least the share of arm i, some theta lies between the two: readings of i are then failures with a chance of at
least g(1-theta), those of j successes with a chance of at least g(theta), whatever the adversary does. The product
of the two arms' e-values at that theta is a supermartingale, and its infimum over theta, which needs no knowledge
of theta, is evidence that j has the smaller share (extensions 1.1). Samples hold 1 for a success and 0 for a
failure; everything here rests on their counts.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.bounds import special
from truearm.bounds.mixture import log_mixture_at
from truearm.bounds.search import last_true
from truearm.evidence.binned import Binned
from truearm.evidence.cuts import Portfolio, Stake, fisher, fisher_sum, portfolio
from truearm.evidence.judge import NOBODY, Judge, Least, Margin
from truearm.evidence.levels import Strength, Trust, divergence
from truearm.evidence.points import certified_eps
from truearm.evidence.sample import Sample
from truearm.evidence.shifts import succeeded
from truearm.problem import Adversary, Contamination, Interval, Problem, Tolerance

Floats = NDArray[np.float64]

NO_BET = 0.05  # of the capital of each e-value: without it one success seen makes the infimum 0 (extensions 1.1)
ACCURACY = 1e-4  # of the evidence, that the search for the infimum may lose: so many more pulls it costs
_COARSE, _FANOUT = 32, 8  # first pieces of the range of theta, and pieces an open one is cut into
_ROUGH = 1e-2  # nats, where evidence only guides what is pulled next
_POINT = 1e-6  # accuracy of a distance between two shares
_MOST = 1 - 1e-6  # level at which a leg is bet
_HANDFUL = 10  # different readings: marks, not measurements
_HALF = 0.5  # between a failure, 0, and a success, 1
_INSIDE = 1e-12  # where shares of evidence are computed: at 0 and 1 themselves a divergence may be infinite

Term = Callable[[Floats, Floats, Floats], Floats]
"""(count in the null's favor, n, levels) -> log-evidence."""


class Count(NamedTuple):
    """How many of n readings favor the null: failures of an arm that bets, successes of the one that is judged."""

    hits: float
    n: float

    def times(self, factor: float) -> "Count":
        """Return the count as if every reading had come so many times."""
        return Count(math.floor(factor * self.hits), math.floor(factor * self.n))


def successes(sample: Sample) -> int:
    """Return how many readings succeeded, those without a value among them: the judged arm's count (T8)."""
    return int(sample.above(_HALF))


def failures(sample: Sample) -> int:
    """Return how many readings failed, those without a value among them: the count of an arm that bets (T8)."""
    return int(sample.below(_HALF))


def counted(values: Floats, problem: Problem) -> Sample:
    """Return readings as a sample of successes and failures, by counting alone."""
    won, missing = (int(np.count_nonzero(found)) for found in (succeeded(values, problem), np.isnan(values)))
    body = np.repeat([0.0, 1.0], [values.size - won - missing, won])
    return Sample(body, missing)


def _failed(sample: Sample) -> Count:
    return Count(failures(sample), sample.n)


def mixture_term(count: Floats, n: Floats, levels: Floats) -> Floats:
    """Return log M', the evidence of one arm in data that may have been looked at, a part of it never bet."""
    bet = log_mixture_at(count, n, levels)
    return np.logaddexp(math.log1p(-NO_BET) + bet, math.log(NO_BET))  # extensions 1.1


def fixed_term(count: Floats, n: Floats, levels: Floats) -> Floats:
    """Return -log p of one arm for a number of readings fixed in advance."""
    tail = special.bdtr(count, n.astype(np.int64), np.clip(levels, 0.0, 1.0))
    return -np.log(np.maximum(tail, 1e-300))  # a floor on p is a floor on the evidence: conservative


class Bets(NamedTuple):
    """The bets against an arm: failures of one rival, and of others while they led (evidence T5)."""

    whole: Count | None
    log_whole: float = 0.0
    legs: tuple[tuple[Count, Count], ...] = ()
    """Per leg the failures up to its start and up to its end."""
    log_legs: float = -math.inf


class _Parts(NamedTuple):
    """The product in parts, as functions of theta: the first rises, the others fall, and the last one divides."""

    own: Floats
    whole: Floats
    ends: Floats
    starts: Floats

    def picked(self, places: NDArray[np.bool_] | slice) -> "_Parts":
        return _Parts(*(part[places] for part in self))


@dataclass(frozen=True, slots=True)
class _Product:
    """Both sides of the product as functions of theta."""

    own: Count
    bets: Bets
    trust: Trust
    shift: float
    term: Term

    def at(self, theta: Floats) -> _Parts:
        """Return the parts at these shares."""
        whole, _, legs, _ = self.bets
        up, none = self._terms([self.own], trusted(theta, self.trust))[0], np.zeros(theta.shape)
        levels = trusted(1 - theta + self.shift, self.trust)
        bet = self._terms([whole], levels)[0] if whole else none
        if not legs:
            return _Parts(up, bet, none, none)
        # a level may be lowered; at 1 both ends of a leg would be infinite
        logs = self._terms([count for leg in legs for count in leg], np.minimum(levels, _MOST))
        return _Parts(up, bet, logs[1::2].sum(axis=0), logs[::2].sum(axis=0))

    def bounded(self, low: _Parts, high: _Parts) -> Floats:
        """Return what the product is at least, at all shares from low to high; at one share, what it is."""
        bets = self.bets
        if bets.log_legs == -math.inf:
            return low.own + (high.whole + bets.log_whole)
        followed = high.ends - low.starts + bets.log_legs  # evidence T5
        if bets.whole is None:
            return low.own + followed
        return low.own + np.logaddexp(followed, high.whole + bets.log_whole)

    def _terms(self, counts: Sequence[Count], levels: Floats) -> Floats:
        columns = np.array(counts, dtype=np.float64)
        return self.term(columns[:, :1], columns[:, 1:], levels[None, :])


def trusted(theta: Floats, trust: Trust) -> Floats:
    """Return g(theta): the least chance that a reading is clean and in a set that clean ones are in with theta."""
    if trust.adversary is Adversary.MALICIOUS:
        return np.maximum(0.0, theta - trust.eps)  # audit 2.A
    return np.maximum(0.0, (1 - trust.eps) * theta)  # audit 2.A


@lru_cache(maxsize=4096)  # of many arms, many have the same counts
def least_share(
    own: Count,
    bets: Bets,
    trust: Trust,
    *,
    shift: float = 0.0,
    term: Term = mixture_term,
    enough: float | None = None,
    accuracy: float = ACCURACY,
) -> Least:
    """Return the least log-evidence over all shares theta that the judged arm has less than one of the others.

    Branch and bound: between a < b the product is at least the rising side at a times the falling sides at b, over
    what divides at a. The value returned is the least such bound of the last pieces, below the infimum by at most
    the accuracy: in nats, and relative from 1 nat on.

    Parameters
    ----------
    own, bets
        Successes of the judged arm; failures of the arms that bet against it.
    shift
        Judge whether an arm exceeds the others by more than this; if negative, by more than minus as many points
        (extensions 1.3).
    enough
        For callers who only ask whether the evidence reaches this, as in `cuts.pair`.
    """
    product = _Product(own, bets, trust, shift, term)
    edges = np.linspace(max(0.0, shift), 1.0, _COARSE + 1)
    parts = product.at(edges)
    values = product.bounded(parts, parts)
    place = int(np.argmin(values))
    best, theta, floor = float(values[place]), float(edges[place]), math.inf
    left, right, low, high = edges[:-1], edges[1:], parts.picked(slice(-1)), parts.picked(slice(1, None))
    steps = np.arange(1, _FANOUT) / _FANOUT
    while True:
        bound = product.bounded(low, high)
        near = best - accuracy * max(1.0, abs(best))
        limit = near if enough is None else min(enough, near)
        still = (bound < limit) & (right - left > 4 * np.spacing(right))
        floor = min(floor, float(bound[~still].min(initial=math.inf)))
        if not still.any() or (enough is not None and best < enough):
            return Least(min(floor, best), theta)
        left, right, low, high = left[still], right[still], low.picked(still), high.picked(still)
        inner = left[:, None] + (right - left)[:, None] * steps
        flat, shape = inner.ravel(), inner.shape
        parts = product.at(flat)
        values = product.bounded(parts, parts)
        place = int(np.argmin(values))
        if values[place] < best:
            best, theta = float(values[place]), float(flat[place])
        left, right = np.column_stack((left, inner)).ravel(), np.column_stack((inner, right)).ravel()
        square = [part.reshape(shape) for part in parts]
        low = _Parts(*(np.column_stack(pair).ravel() for pair in zip(low, square, strict=True)))
        high = _Parts(*(np.column_stack(pair).ravel() for pair in zip(square, high, strict=True)))


@lru_cache(maxsize=4096)
def highest_level(count: int, n: int, error: float, design: str) -> float:
    """Return the largest chance of a success that so few successes among n do not refute (extensions 1.4).

    Parameters
    ----------
    error
        The probability that the true chance is larger: at any time, or for a number fixed in advance.
    """
    if count >= n:
        return 1.0
    if design == "fixed":
        return float(special.betaincinv(count + 1, n - count, 1 - error))  # Clopper and Pearson
    bar = -math.log(error)
    # the end at which it no longer holds: rounding can only widen an interval
    return last_true(lambda p: float(log_mixture_at(count, n, np.array([p]))[0]) >= bar, 1.0, 0.0, accuracy=1e-12)


def interval(sample: Sample, error: float, trust: Trust, design: str) -> Interval:
    """Return where the true share of successes lies; each end is wrong with at most half of the error."""
    most = [highest_level(count(sample), sample.n, error / 2, design) for count in (failures, successes)]
    fails, succeeds = (_clean(level, trust) for level in most)
    return Interval(max(0.0, 1 - fails), min(1.0, succeeds))


def _clean(level: float, trust: Trust) -> float:
    """Return the share of clean readings at which the trusted mass reaches a level."""
    if trust.adversary is Adversary.MALICIOUS:
        return level + trust.eps
    return level / (1 - trust.eps) if trust.eps < 1 else math.inf


@dataclass(frozen=True, slots=True)
class ShareJudge(Judge):
    """The judge of shares: an order of arms is judged at all shares that the better one may have (extensions 1).

    Equal shares belong to every null, so evidence is strict and nothing is decided by the order of listing.
    """

    levels: Trust

    @classmethod
    def declared(cls, problem: Problem) -> Trust:
        """Return the contamination that a problem declares, none for the paper's promise."""
        c = problem.declared
        return Trust(c.eps, c.adversary)

    def _at(self, levels: Strength | None) -> Trust:
        if levels is None:
            return self.levels
        assert isinstance(levels, Trust)  # the levels of one quantile say nothing of shares
        return levels

    @property
    def symmetric(self) -> bool:
        """Whether a malicious adversary with half of eps is as bad as another one with all of it."""
        return True  # extensions 1.2: g(theta) + g(1-theta) is 1 - e for the one and 1 - 2e for the other

    def terms(self, among: Sequence[int], count: int) -> tuple[Floats, Floats]:
        """Return what arms say at a few common shares: against themselves, and against others (extensions 1.1).

        Two rows added are at least the evidence of a pair, which is the least over all shares.

        Parameters
        ----------
        count
            How many shares: half of them evenly spread, half where the arms are.
        """
        seen = np.array([self.looks(i) for i in among])
        near = (
            np.quantile(seen[~np.isnan(seen)], np.linspace(0, 1, count // 2)) if not np.isnan(seen).all() else []
        )
        theta = np.unique(np.concatenate((np.linspace(0, 1, count - count // 2 + 2)[1:-1], near)))
        term = fixed_term if self.design == "fixed" else mixture_term
        own, bets = (np.array([f(i) for i in among], dtype=np.float64) for f in (self._own, self._bet))
        high, low = trusted(theta, self.levels)[None], trusted(1 - theta, self.levels)[None]
        return term(own[:, :1], own[:, 1:], high), term(bets[:, :1], bets[:, 1:], low)

    def looks(self, arm: int) -> float:
        """Return the share of successes among the readings that have a value."""
        sample = self.samples[arm]
        return (sample.size - int(sample.count(_HALF))) / sample.size if sample.size else math.nan

    def best_looking(self, among: Sequence[int]) -> int | None:
        """Return the arm with the largest share, missing readings that count at their worst taken for failures."""
        left = [i for i in among if self.samples[i].size]
        return max(left, key=lambda i: self._guaranteed(self.samples[i])) if left else None

    def ranked(self) -> list[int]:
        """Return all arms, the best-looking first; arms without a single value come last."""
        left = [i for i, sample in enumerate(self.samples) if sample.size]
        found = sorted(left, key=lambda i: -self._guaranteed(self.samples[i]))
        return found + [i for i, sample in enumerate(self.samples) if not sample.size]

    @staticmethod
    def _guaranteed(sample: Sample) -> float:
        told = sample.size + sample.missing - sample.idle
        return (sample.size - int(sample.count(_HALF))) / told if told else 0.0

    @staticmethod
    def _reached(sample: Sample) -> float:
        """Return the share if every missing reading that counts at its worst were a success."""
        told = sample.size + sample.missing - sample.idle
        return (told - int(sample.count(_HALF))) / told if told else 1.0

    def identified(self, arm: int, contamination: Contamination) -> tuple[Interval, Interval]:
        """Return where an arm's true share lies, for all arms at once, and what contamination leaves of it."""
        sample, trust = self.samples[arm], Trust(contamination.eps, contamination.adversary)
        share = self.problem.delta / len(self.problem.arms)
        fails, succeeds = (_clean(count(sample) / sample.n, trust) for count in (failures, successes))
        core = Interval(max(0.0, 1 - fails), min(1.0, succeeds))
        return interval(sample, share, trust, self.design), core

    def contradicted(self, arm: int) -> bool:
        """Tell whether the interval of an arm's share is empty, at the level it has in a result."""
        share = self.problem.delta / len(self.problem.arms)
        low, high = interval(self.samples[arm], share, self.levels, "sequential")
        return low > high

    def _bets(self, judged: int) -> Bets:
        """Return who bets against an arm: the leader, and by the pooled rule whoever was followed."""
        whole = self._bet(self.leader)
        if self.rule != "pooled":
            return Bets(whole)
        legs = tuple(
            # what is out hurts nowhere: it failed at the end of a leg, and not before its start (evidence T5)
            (Count(failures(e.before) - e.before.pending, e.before.n), _failed(e.until or self.samples[e.arm]))
            for e in self.entries
            if e.arm != judged
        )
        shares = self._shares()
        if shares.log_legs == -math.inf:
            return Bets(whole)
        return Bets(None if judged == self.leader else whole, shares.log_whole, legs, shares.log_legs)

    def _shares(self) -> Portfolio:
        """Return how the capital is divided (evidence T5)."""
        stake = Stake(self.samples[self.leader])
        return portfolio(len(self.samples), stake, (), tolerant=bool(self.problem.tolerance))

    def _bet(self, arm: int) -> Count:
        return _failed(self.samples[arm])

    def _own(self, arm: int) -> Count:
        return Count(successes(self.samples[arm]), self.samples[arm].n)

    def against(
        self,
        judged: int,
        *,
        closed: bool = False,  # noqa: ARG002 - evidence is strict as it is
        levels: Strength | None = None,
        enough: float | None = None,
        shift: float = 0.0,
    ) -> Least:
        """Return the evidence that an arm's share is not the largest; the other parameters as in `least_share`."""
        trust = self._at(levels)
        if self.design == "fixed":
            return _fixed(self._own(judged), self._bet(self.leader), trust, shift=shift, enough=enough)
        return least_share(self._own(judged), self._bets(judged), trust, shift=shift, enough=enough)

    def least(self, judged: int, near: float = math.nan) -> Least:  # noqa: ARG002 - a certificate repeats the search
        """Return the evidence against an arm and the share at which it is found, roughly if it rejects nothing."""
        rough = least_share(self._own(judged), self._bets(judged), self.levels, accuracy=_ROUGH)
        return self.against(judged) if rough.log_value >= self.log_threshold * (1 - 2 * _ROUGH) else rough

    def paired(self, judged: int, near: float = math.nan) -> Least:  # noqa: ARG002 - the search needs no hint
        """Return what the leader's whole sample alone says against an arm, roughly, and where it says least."""
        return least_share(self._own(judged), Bets(self._bet(self.leader)), self.levels, accuracy=_ROUGH)

    def at_cut(self, judged: int, cut: float) -> float:
        """Return the log-evidence against an arm if its share were this, which the least does not exceed."""
        product = _Product(self._own(judged), self._bets(judged), self.levels, 0.0, mixture_term)
        parts = product.at(np.array([cut]))
        return float(product.bounded(parts, parts)[0])

    def gains(self, judged: int, cut: float) -> tuple[float, float]:
        """Return what the readings of the leader and of a rival say at a share, by the divergences there."""
        theta = min(max(cut, _INSIDE), 1 - _INSIDE)
        low, high = (float(x) for x in trusted(np.array([1 - theta, theta]), self.levels))
        head, rival = self._bet(self.leader), self._own(judged)
        return (
            head.n * divergence(head.hits / head.n, low),
            rival.n * divergence(rival.hits / rival.n, high),
        )

    def within(self, judged: int, *, levels: Strength | None = None) -> Least:
        """Return the evidence that an arm is not better than the leader by more points than the tolerance.

        Of a portfolio only the bet on the leader's whole sample counts (evidence T5; extensions 1.3).
        """
        trust, amount = self._at(levels), self.problem.tolerance.amount
        if self.design == "fixed":
            return _fixed(self._own(judged), self._bet(self.leader), trust, shift=amount)
        share = self._shares().log_whole if self.rule == "pooled" else 0.0
        return least_share(self._own(judged), Bets(self._bet(self.leader), share), trust, shift=amount)

    def better(self, one: int, other: int, *, enough: float | None = None) -> Least:
        """Return the pair's evidence that one arm has a larger share than another."""
        return self._pair(one, other, enough=enough)

    def _pair(self, one: int, other: int, *, shift: float = 0.0, enough: float | None = None) -> Least:
        return self._measured(self._own(other), self._bet(one), shift=shift, enough=enough)

    def _measured(self, own: Count, bet: Count, *, shift: float, enough: float | None = None) -> Least:
        if self.design == "fixed":
            return _fixed(own, bet, self.levels, shift=shift, enough=enough)
        return least_share(own, Bets(bet), self.levels, shift=shift, enough=enough)

    def repeated(self, judged: int, times: float, enough: float) -> float:
        """Return the log-evidence within the tolerance if every reading had come so many times: a forecast."""
        own, bet = self._own(judged).times(times), self._bet(self.leader).times(times)
        return self._measured(own, bet, shift=self.problem.tolerance.amount, enough=enough).log_value

    def ceiling(self, judged: int) -> float:
        """Return the most log-evidence that any values of so many readings of leader and rival could give."""
        own, bet = self._own(judged), self._bet(self.leader)
        return self._measured(Count(0, own.n), Count(0, bet.n), shift=0.0).log_value

    def breakdown_estimate(self, judged: int, adversary: Adversary) -> float:
        """Return the difference of the observed shares, half of it for a malicious adversary (extensions 1.2)."""
        head, rival = self.samples[self.leader], self.samples[judged]
        if not head.size or not rival.size:
            return 0.0
        gap = max(0.0, self._guaranteed(head) - self._reached(rival))
        return gap / 2 if adversary is Adversary.MALICIOUS else gap

    def decidable(self, judged: int) -> bool:
        """Tell whether endless readings like these would put an arm behind the leader, up to the tolerance."""
        head, rival = self.samples[self.leader], self.samples[judged]
        return not self._hidden(self._guaranteed(head), self._reached(rival))

    def _hidden(self, one: float, other: float) -> bool:
        """Tell whether contamination can hide for ever that one observed share is the larger (extensions 1.2).

        Some theta then has g(1-theta+a) at most the failures of the one, and g(theta) at most the other's
        successes, a being the tolerance.
        """
        amount = self.problem.tolerance.amount
        first = max(amount, 1 + amount - _clean(1 - one, self.levels))
        return first <= min(1.0, _clean(other, self.levels))

    def futile(self, alive: Sequence[int]) -> bool:
        """Tell whether endless pulls of this kind could not certify any arm that is alive (extensions 1.6).

        Saying so although an arm could be certified happens with probability at most delta, if the readings are
        stationary.
        """

        def overlapped(upper: Sequence[float], lower: Sequence[float]) -> bool:
            highest = sorted(range(len(lower)), key=lower.__getitem__)[-2:]  # who is hidden is so by one of them
            return all(any(self._hidden(upper[i], lower[j]) for j in highest if j != i) for i in alive)

        # pending pulls may turn out either way: successes for the upper limit, failures for the lower one; missing
        # readings are what they count as: failures for the one, successes for the other, or neither
        won = [s.size - int(s.count(_HALF)) for s in self.samples]
        most = [(w + s.pending, s.n) for w, s in zip(won, self.samples, strict=True)]
        lost = [(s.n - w - s.missing + s.idle, s.n) for w, s in zip(won, self.samples, strict=True)]
        if not overlapped([c / max(1, n) for c, n in most], [1 - c / max(1, n) for c, n in lost]):
            return False  # limits lie further apart than what was seen
        share = self.problem.delta / len(self.samples)
        upper = [highest_level(c, n, share, "sequential") for c, n in most]
        return overlapped(upper, [1 - highest_level(c, n, share, "sequential") for c, n in lost])

    def breakdown(
        self,
        judged: Sequence[int],
        adversary: Adversary,
        *,
        closed: bool = False,
        earlier: Mapping[int, Judge] = NOBODY,
        accuracy: float = 1e-7,
    ) -> float | None:
        """Return the largest eps of this adversary up to which all these arms are rejected (evidence T6)."""
        rejections = self._rejections(judged, closed=closed, earlier=earlier)
        limit = 0.5 if adversary is Adversary.MALICIOUS else 1.0  # from there on g(1-theta) or g(theta) is 0
        return certified_eps(
            rejections, self.log_threshold, lambda eps: Trust(eps, adversary), limit=limit, accuracy=accuracy
        )

    def tolerance(self, outright: Sequence[int], *, relative: bool | None = None) -> float:  # noqa: ARG002
        """Return alpha*: how many points the leader may be from the largest share, pairs of arms alone."""
        bar, worst = self.log_bar(), 0.0
        rivals = sorted(set(range(len(self.samples))) - {self.leader, *outright})

        def holds(rival: int, amount: float) -> bool:
            return self._pair(self.leader, rival, shift=amount, enough=bar).log_value >= bar

        for i in sorted(rivals, key=lambda i: -self.looks(i)):
            if not holds(i, worst):
                worst = last_true(partial(holds, i), 1.0, worst, accuracy=_POINT)  # extensions 1.3
        return worst if worst < 1 else math.inf  # a whole point is no bound

    def margin(self, judged: int) -> float | None:
        """Return by how many points an arm is certainly below the best; None if that is not certain."""
        # by the pair: a leg need not gain where the levels fall, and the claims must be nested
        bar = self.log_bar(share=1 / len(self.samples))

        def holds(amount: float) -> bool:
            return self._pair(self.leader, judged, shift=-amount, enough=bar).log_value >= bar

        if not holds(0.0):
            return None
        return last_true(holds, 0.0, 1.0, accuracy=_POINT)  # nested claims: evidence T10a, extensions 1.3

    def lead(self, rival: int) -> Margin:
        """Return how many points the leader is above another arm."""
        # the paper's promise is about the order alone: margins of true shares are not among what it gives
        margin = None if self.problem.contamination is None else self.margin(rival)
        return Margin("difference", self.observed(self.leader) - self.observed(rival), margin or None)


def _fixed(own: Count, bet: Count, trust: Trust, *, shift: float, enough: float | None = None) -> Least:
    """Return -log of a p-value against "the judged arm's share is no smaller", for sizes fixed in advance."""
    bar = None if enough is None else fisher_sum(enough)
    found = least_share(own, Bets(bet), trust, shift=shift, term=fixed_term, enough=bar)
    return Least(float(fisher(found.log_value)), found.at)  # extensions 1.7


def deciding_limit(problem: Problem, samples: Sequence[Sample]) -> float | None:
    """Return from which reading on a share would decide where quantiles tie, in the user's units; None if at none.

    Only where readings have a handful of values. The error probability is divided among all limits that are
    tried, so that the decision at the limit returned holds in spite of the search.

    Parameters
    ----------
    samples
        Oriented readings: bigger is better.
    """
    found = _few_values(samples)
    limits = found[1:] if found is not None else ()
    asked = replace(problem, quantile=0.5, goal="max", at_least=0.0, tolerance=Tolerance(), handicap=None)
    asked = replace(asked, delta=problem.delta / max(1, len(limits)))
    reached = {limit: _least_at(asked, samples, limit) for limit in limits}
    bar = Judge.of(asked, samples).log_bar()
    best = max(reached, key=lambda limit: reached[limit], default=None)
    return None if best is None or reached[best] < bar else problem.sign * best


def is_binary(samples: Sequence[Sample]) -> bool:
    """Return True if every reading is 0 or 1, or 0 or -1, as oriented readings of a minimum are."""
    found = _few_values(samples)
    return found in ([0.0, 1.0], [-1.0, 0.0])


def _few_values(samples: Sequence[Sample]) -> list[float] | None:
    """Return all different readings if they are a handful, the worst first."""
    known: set[float] = set()
    for sample in samples:
        if isinstance(sample, Binned) and not sample.exact:
            return None
        values = sample.values[sample.values > -math.inf]
        steps = np.flatnonzero(values[1:] > values[:-1]) if values.size else np.empty(0, dtype=np.intp)
        if steps.size >= _HANDFUL:
            return None
        known.update(values[:1].tolist(), values[steps + 1].tolist())
    return sorted(known) if len(known) <= _HANDFUL else None


def _least_at(problem: Problem, samples: Sequence[Sample], limit: float) -> float:
    """Return the evidence against the nearest rival of the arm with most readings from a limit on."""
    split = [sample.mapped(lambda values: (values >= limit).astype(np.float64)) for sample in samples]
    judge = Judge.of(problem, split)
    leader = judge.best_looking(range(len(split)))
    if leader is None:
        return -math.inf
    judge = judge.after(leader=leader)
    return min((judge.against(i).log_value for i in range(len(split)) if i != leader), default=-math.inf)
