"""Quantiles: an order of arms is judged at all cuts of the readings (evidence T1 to T12).

A cut splits the line into a lower set L and an upper set U. If arm j is at least as good as arm i, there is a cut
at which L holds at least p- of arm i and U at least p+ of arm j, at every pull (evidence T2).
"""

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.bounds import sequential_rank
from truearm.bounds.mixture import log_mixture
from truearm.bounds.search import first_true
from truearm.evidence.intervals import deviation, quality_of, rank_pairs, ranks_of, spread
from truearm.evidence.levels import Levels, Trust
from truearm.evidence.sample import Floats, Ints, Sample, Shift, worsen
from truearm.evidence.search import (
    Evidence,
    Places,
    Portfolio,
    Product,
    Stake,
    Term,
    fisher_sum,
    least_in,
    rank_grid,
    tail_term,
)
from truearm.evidence.targets import PLAIN, Query, Target
from truearm.problem import Adversary, Contamination, Design, Interval

_FINITE = np.finfo(np.float64).max
_LARGEST = _FINITE / 4  # margins are searched up to here: sums must not overflow
_LARGEST_LOG = 700.0  # log of the largest factor: beyond it `expm1` overflows
_RATIO_ACCURACY, _SPAN_ACCURACY = 1e-4, 1e-6  # of a margin: of a logarithm, and as a share of the readings' span
_STRIDE = 64  # buckets that are ruled out together
_ENOUGH_NATS = 100.0  # nats: no threshold is higher, so above it a bound is enough
_NEARLY = 1 - 1e-3  # share of a tolerance found by counts at which the deciding buckets are noted
_SAMPLED_READINGS, _MAX_CUTS = 64, 64  # readings of each arm that place common cuts, and how many cuts
_MAX_GRADES = 10  # distinct readings of grades; measurements have more


class _Cuts(Product):
    """The evidence by cut; places are ranks, and a cut is just below the judged arm's reading of the next rank."""

    def __init__(
        self,
        judged: Sample,
        bets: Portfolio,
        levels: Levels,
        term: Term,
        *,
        lift: Callable[[Floats], Floats] | None = None,
        times: float = 1.0,
        axis: Floats | None = None,
    ) -> None:
        if lift is not None and bets.legs:  # cuts between ranks need all readings moved
            judged, lift = judged.map(lift), None
        rivals = [bets.whole.sample] if bets.whole else []
        rivals += [leg.end for leg in bets.legs] + [leg.start for leg in bets.legs]
        super().__init__([s.n for s in (judged, *rivals)], bets.weights, term, times)
        self.judged, self.bets, self.pair_of_levels, self.lift = judged, bets, levels, lift
        self.axis = judged.values if axis is None else axis
        self.is_inner = axis is not None

    @property
    def grid(self) -> Places:
        return rank_grid(self.axis.size)

    def counts(self, places: Places) -> Floats:
        beyond, size = places >= self.axis.size, self.axis.size
        cuts = self.axis[np.minimum(places, size - 1)] if size else np.full(places.shape, np.inf)
        rows = [np.where(beyond, self.judged.unknown, self.judged.above(cuts))]
        cuts = cuts if self.lift is None else self.lift(cuts)
        return self._rivals(rows, cuts, beyond)

    def _rivals(self, rows: list[Ints], cuts: Floats, beyond: NDArray[np.bool_] | bool) -> Floats:
        bets = [(*self.bets.whole, 0)] if self.bets.whole else []
        bets += [(leg.end, leg.closed, 0) for leg in self.bets.legs]
        # pending ones hurt nowhere: T5
        bets += [(leg.start, leg.closed, leg.start.pending) for leg in self.bets.legs]
        for sample, closed, pending in bets:
            below = np.where(beyond, sample.size + sample.unknown, sample.below(cuts, closed=closed))
            rows.append(below - pending)
        return np.array(rows, dtype=np.float64)

    def levels(self, places: Places) -> tuple[Any, Any]:  # noqa: ARG002 - the same at every cut
        return self.pair_of_levels.high, self.pair_of_levels.low

    def value_at(self, place: float) -> float:
        if place >= self.axis.size:
            return math.inf
        cut = self.axis[int(place) : int(place) + 1]
        return float((cut if self.lift is None else self.lift(cut))[0])

    def between(self, gaps: Places) -> "Product | None":
        """Return the evidence at cuts between two readings of the judged arm.

        Passing a reading raises the evidence only if a leg starts with it: the cut at it, before it is passed. If
        it counts as below the cut that is at it, the cut before is just below (evidence section 11).
        """
        if self.is_inner:
            return None
        found = [np.empty(0)]
        for start, _, closed in self.bets.legs:
            early = start.values[start.time_outs :]  # censored readings are below every cut
            early = np.nextafter(early, -np.inf) if closed else early
            found.append(early[np.isin(self.judged.count(early), gaps)])
        cuts = np.unique(np.concatenate(found))
        return _Cuts(self.judged, self.bets, self.pair_of_levels, self.term, axis=cuts) if cuts.size else None


class _Cut(_Cuts):
    """The evidence at one cut, which need not be at a reading."""

    def counts(self, places: Places) -> Floats:
        return self._rivals([self.judged.above(places)], places, beyond=False)


def _term(design: Design) -> Term:
    return tail_term if design == "fixed" else log_mixture


def least_evidence(
    judged: Sample, bets: Portfolio, levels: Levels, query: Query = PLAIN, *, sign: float = 1.0
) -> Evidence:
    """Return log W_i, the least evidence at any cut that the judged arm is not the best (evidence T5).

    With one stake it is E_ij of evidence section 2. For a fixed design it is -log of a p-value: the product w of
    two tail probabilities has p-value w(1 - ln w), whose supremum over cuts is one too (Fisher's product, evidence
    section 11). For bucket counts it is a lower bound (extensions 4.1).
    """
    design, shift, near, enough, times, _ = query
    term, whole, lift = _term(design), bets.whole, shift.lift(sign) if shift else None
    if judged.buckets is None or whole is None or whole.sample.buckets is None:
        rank = None if math.isnan(near) else int(judged.count(near))
        cuts = _Cuts(judged, bets, levels, term, lift=lift, times=times)
        return least_in(design, cuts, near=rank, enough=enough)
    judged = judged if lift is None else judged.map(lift)

    def bound(own: Sample, rival: Sample) -> Evidence:
        among = bets._replace(whole=whole._replace(sample=rival))
        return least_in(design, _Cuts(own, among, levels, term, times=times), enough=enough)

    low = bound(judged.at_end(best=True), whole.sample.at_end(best=False))
    if judged.buckets is None or judged.buckets.notes is None or (judged.is_exact and whole.sample.is_exact):
        return low
    bar = _ENOUGH_NATS if enough is None else enough
    if low.log_value < bar:
        high = bound(judged.at_end(best=False), whole.sample.at_end(best=True))
        if high.log_value >= (0 if enough is None else enough):
            limit = bar if enough is not None else min(bar, high.log_value)
            cuts = _Cuts(judged.at_end(best=True), bets, levels, term, times=times)
            _note_open(cuts, judged, whole.sample, fisher_sum(limit) if design == "fixed" else limit)
    return low


def _note_open(cuts: _Cuts, own: Sample, rival: Sample, bar: float) -> None:
    """Note the buckets inside which the evidence may be below a bar, although it is not at their ends."""
    places = np.arange(own.values.size)
    edges = np.append(places[::_STRIDE], own.values.size)
    parts = cuts.parts(edges)
    ruled_out = cuts.bound(parts[:, :-1], parts[:, 1:]) >= bar
    places = places[~np.repeat(ruled_out, np.diff(edges))]
    parts = cuts.parts(places)
    below = places[cuts.bound(parts, parts) < bar]
    own.note(below)
    # a rival's bucket matters if a cut in such a bucket of the judged arm may split it
    highs, rival_highs = (s.buckets.highs if s.buckets else s.values for s in (own, rival))
    first, last = rival_highs.searchsorted(own.values[below]), rival.values.searchsorted(highs[below], "right")
    steps = np.zeros(rival.values.size + 1, dtype=np.intp)
    np.add.at(steps, first, 1)
    np.subtract.at(steps, np.maximum(first, last), 1)
    rival.note(np.flatnonzero(np.cumsum(steps[:-1]) > 0))


def by_looks(samples: Sequence[Sample], among: Sequence[int], level: float) -> list[int]:
    """Return the arms with a value, best-looking first; missing readings count as lowest (evidence section 11)."""

    def look(sample: Sample) -> tuple[float, float]:
        x = sample.quantile(level)
        if sample.missing:
            x = sample.at(max(1, math.ceil(level * (sample.size + sample.missing) - 1e-9)) - sample.missing)
        return -x, (int(sample.count(x)) + int(sample.count(x, closed=True))) / sample.size

    return sorted((i for i in among if samples[i].size), key=lambda i: look(samples[i]))


class Quantile(Target):
    """The quantile of each arm's readings."""

    __slots__ = ()

    def _levels(self, trust: Trust) -> Levels:
        return trust.levels(self.problem.level)

    def evidence(self, judged: Sample, bets: Portfolio, trust: Trust, query: Query = PLAIN) -> Evidence:
        return least_evidence(judged, bets, self._levels(trust), query, sign=self.problem.sign)

    def product(self, judged: Sample, bets: Portfolio, trust: Trust) -> Product:
        return _Cut(judged, bets, self._levels(trust), _term("sequential"))

    def common_terms(
        self, samples: Sequence[Sample], trust: Trust, design: Design
    ) -> tuple[Floats, Floats] | None:
        if any(s.buckets is not None for s in samples):
            return None
        levels, term, sizes = self._levels(trust), _term(design), np.array([[s.n] for s in samples])
        some = np.sort(
            np.concatenate([np.empty(0), *(s.values[:: max(1, s.size // _SAMPLED_READINGS)] for s in samples)])
        )
        cuts = np.unique(some[np.linspace(0, some.size - 1, _MAX_CUTS).astype(np.intp)]) if some.size else some
        # a cut at the judged arm's next reading has as many of its readings above and no fewer of a rival's below
        own = np.array([s.above(cuts) for s in samples], dtype=np.float64)
        rival = np.array([s.below(cuts) for s in samples], dtype=np.float64)
        return term(own, sizes, levels.high), term(rival, sizes, levels.low)

    def ceiling(self, judged: Sample, rival: Sample, trust: Trust, design: Design) -> float:
        levels, term, none = self._levels(trust), _term(design), np.asarray(0.0)
        sides = ((rival, levels.low), (judged, levels.high))
        return sum(float(term(none, np.asarray(sample.n), level)) for sample, level in sides)

    def eps_limit(self, adversary: Adversary) -> float:
        level = self.problem.level
        return min(level, 1 - level) if adversary is Adversary.MALICIOUS else 1.0

    def is_hopeless(self, trust: Trust) -> bool:
        return min(self._levels(trust)) <= 0  # evidence section 11

    @property
    def is_symmetric(self) -> bool:
        return self.problem.level == 0.5  # T6: (1-e)/2 = 1/2 - e/2

    def looks(self, sample: Sample) -> float:
        return sample.quantile(self.problem.level)

    def rank(self, samples: Sequence[Sample], among: Sequence[int]) -> list[int]:
        return by_looks(samples, among, self.problem.level)

    def optimism(self, sample: Sample, pulls: int) -> float:
        slack = 0.5 * math.sqrt(0.5 * sample.n * math.log(4 * pulls))  # extensions D1
        return sample.at(math.ceil(self.problem.level * sample.n + slack) - sample.outside)

    def intervals(
        self, sample: Sample, contamination: Contamination, error: float, design: Design
    ) -> tuple[Interval, Interval]:
        pairs = rank_pairs(sample.n, self.problem.level, error, contamination, design)
        interval, core = (_between(sample, ranks) for ranks in pairs)
        if self.problem.sign > 0:
            return interval, core
        return Interval(-interval.high, -interval.low), Interval(-core.high, -core.low)

    def spread(self, sample: Sample, error: float | None, design: Design) -> tuple[float, float, float]:
        observed = deviation(sample) if sample.n else math.nan
        if not sample.n or error is None:
            return observed, 0.0, math.inf
        trust = Trust.of(self.problem.contamination)
        ranks = ranks_of(sample.n, 0.5, error / 2, trust.eps, trust.adversary, design=design)
        low, high = spread(sample.hide_censored(), ranks)
        return observed, low, high

    def quality(self, sample: Sample, error: float, design: Design) -> tuple[tuple[float, float], ...]:
        """Return the quality curve at shares of 1% to 99% (audit 2.E)."""
        curve = quality_of(sample, error, contamination=self.problem.contamination, design=design)
        shares = [percent / 100 for percent in range(1, 100)]
        reached = zip(curve.values_at(shares), shares, strict=True)
        return tuple((self.problem.sign * x, share) for x, share in reached if math.isfinite(x))

    def breakdown_estimate(self, better: Sample, worse: Sample, adversary: Adversary) -> float:
        """Return the plug-in estimate.

        At a cut, contamination e can hide the order once 1-e <= min(F(L)/q, G(U)/(1-q)) (malicious:
        e >= max(q-F(L), 1-q-G(U))); F(L) rises and G(U) falls with the cut, so the best cut is where they cross.
        """
        size, level = worse.values.size, self.problem.level
        if not size or not better.values.size:
            return 0.0

        def room(rank: int) -> tuple[float, float]:
            lower = better.size + better.unknown if rank == size else int(better.below(worse.values[rank]))
            over = worse.size - int(worse.before(np.array(rank))) + worse.unknown
            below, above = lower / better.n, over / worse.n
            if adversary is Adversary.MALICIOUS:
                return level - below, 1 - level - above
            return 1 - below / level, 1 - above / (1 - level)

        crossing = bisect_left(range(size), True, key=lambda rank: operator.le(*room(rank)))
        return max(0.0, min(max(room(rank)) for rank in (max(crossing - 1, 0), crossing)))

    def is_futile(self, samples: Sequence[Sample], alive: Sequence[int], trust: Trust, error: float) -> bool:
        """Return True if each arm is censored at the level it is judged by, or overlapped (evidence T9)."""
        if self.problem.contamination is None and not any(s.missing or s.time_outs for s in samples):
            return False  # observed laws have one best quantile: only censored or missing readings never decide
        levels, counts = self._levels(trust), np.array([s.n for s in samples])
        share = error / counts.size
        top = counts + 1 - np.asarray(sequential_rank(counts, 1 - levels.low, share))
        bottom = np.asarray(sequential_rank(counts, 1 - levels.high, share))
        # pending pulls may turn out either way, so they are high for the upper bound and low for the lower one;
        # missing readings count at the bottom for the upper bound, and at the top for the lower one
        upper = [s.at(int(r) - s.missing, top=True) for s, r in zip(samples, top, strict=True)]
        reached = np.array([s.at(int(r) - s.outside - s.pending) for s, r in zip(samples, bottom, strict=True)])
        lower = worsen(reached, self.problem.tolerance, self.problem.sign).tolist()
        highest = sorted(range(len(lower)), key=lower.__getitem__)[-2:]  # one of them is another arm's
        return all(upper[i] == -math.inf or any(upper[i] < lower[j] for j in highest if j != i) for i in alive)

    def least_tolerance(self, better: Sample, worse: Sample, log_bar: float, trust: Trust, query: Query) -> float:
        amount, relative = query.shift or Shift(0.0)

        def is_enough(one: Sample, other: Sample, amount: float) -> bool:
            asked = query._replace(shift=Shift(amount, relative), enough=log_bar)
            return self.evidence(other, Portfolio(Stake(one)), trust, asked).log_value >= log_bar

        ends = better.at_end(best=False), worse.at_end(best=True)  # as they are judged: extensions 4.1
        holds = partial(is_enough, *ends)
        most = _largest_margin(better, worse, relative=relative)
        most = math.expm1(most) if relative else most
        found = first_true(holds, amount, most) if holds(most) else math.inf
        if not (better.is_exact and worse.is_exact):  # notes the buckets on which it depends
            is_enough(better, worse, _NEARLY * found if found < math.inf else 0.0)
        return found

    def is_ratio(self, one: Sample, other: Sample) -> bool:
        seen = [self.problem.sign * self.looks(sample) for sample in (one, other)]
        return all(0 < x < math.inf for x in seen) and Target.is_ratio(self, one, other)

    def lead(self, one: Sample, other: Sample, *, relative: bool) -> float:
        best, rest = (self.problem.sign * self.looks(sample) for sample in (one, other))
        if not relative:
            return 0.0 if best == rest else self.problem.sign * (best - rest)  # no inf - inf
        return best / rest if self.problem.goal == "max" else rest / best

    def margin_range(self, one: Sample, other: Sample, *, relative: bool) -> tuple[float, float]:
        most = _largest_margin(one, other, relative=relative)
        return most, _RATIO_ACCURACY if relative else _SPAN_ACCURACY * most


def _largest_margin(one: Sample, other: Sample, *, relative: bool) -> float:
    """Return an upper bound of the difference of two finite readings, or of the log of their ratio."""
    both = np.concatenate([_ends(sample.values) for sample in (one, other)])
    if relative:
        both = np.log(np.abs(both[both != 0]))
    if not both.size:
        return 0.0
    span = float(both.max() / 2 - both.min() / 2) * 2 + 1  # halves: huge readings do not overflow
    return min(span, _LARGEST_LOG if relative else _LARGEST)


def _ends(values: Floats) -> Floats:
    """Return the lowest and the highest finite value of sorted ones, and those next to zero."""
    first, zero, above, last = np.searchsorted(values, (-_FINITE, 0.0, np.nextafter(0.0, 1.0), np.inf)).tolist()
    return values[sorted({i for i in (first, zero - 1, zero, above, last - 1) if first <= i < last})]


def _between(sample: Sample, ranks: tuple[int, int]) -> Interval:
    """Return the readings at two ranks; beyond the limit of time-outs none bounds the quantile from above.

    A quantile that is itself beyond the limit has its lower end among the censored readings (evidence T8c).
    """
    found = sample.between(ranks)
    return found if found.low > -math.inf else sample.hide_censored().between(ranks)


def few_values(samples: Sequence[Sample]) -> list[float] | None:
    """Return the distinct readings, worst first, or None if there are many."""
    known: set[float] = set()
    for sample in samples:
        if not sample.is_exact:
            return None
        values, place = sample.values, sample.time_outs
        while place < values.size and len(known) <= _MAX_GRADES:
            known.add(float(values[place]))
            place = int(values.searchsorted(values[place], "right"))
    return sorted(known) if len(known) <= _MAX_GRADES else None
