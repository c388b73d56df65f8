"""The judge of quantiles: an order of arms is judged at all cuts of the readings (evidence T1 to T12).

The minimum over cuts itself is computed in `cuts`. Bigger is better here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from truearm.bounds import sequential_rank
from truearm.bounds.search import last_true
from truearm.evidence.binned import Binned
from truearm.evidence.cuts import (
    Evidence,
    Leg,
    Lift,
    Portfolio,
    Stake,
    fisher,
    fisher_sum,
    fixed_pair,
    fixed_term,
    least_each,
    mixture_term,
    pair,
    pooled,
    pooled_at,
    portfolio,
)
from truearm.evidence.grid import Floats, pair_bounds
from truearm.evidence.intervals import quality_of, ranks_of
from truearm.evidence.judge import NOBODY, Judge, Least, Margin
from truearm.evidence.levels import Levels, Strength, Trust, divergence
from truearm.evidence.margins import Lifted
from truearm.evidence.moments import deviation, spread
from truearm.evidence.points import breakdown_estimate, breakdown_of_pairs, breakdown_point
from truearm.evidence.sample import Sample
from truearm.evidence.shifts import certified_tolerance, improved, shifted, worsened
from truearm.problem import Adversary, Contamination, Interval, Problem, Tolerance

_FINITE = np.finfo(np.float64).max
_LARGEST = _FINITE / 4  # a margin beyond it is not looked for: sums would overflow
_LARGEST_LOG = 700.0  # as the logarithm of a factor: beyond it `expm1` overflows
_AT_ONCE = 1024  # arms that are searched in step: more of them gain nothing and take memory
_MARGIN = 1e-4  # accuracy of a margin: of the logarithm of a factor, or of the span of the readings


def best_looking(samples: Sequence[Sample], among: Sequence[int], level: float) -> int | None:
    """Return the arm with the best empirical quantile, ties by fewest readings below it, then by order.

    Missing readings that count at their worst are at the bottom, because only what they leave can be certified.
    """
    quantiles = [(_seen(samples[i], level), i) for i in among if samples[i].size]
    if not quantiles:
        return None
    top = max(q for q, _ in quantiles)
    tied = [i for q, i in quantiles if q == top]
    if len(tied) == 1:
        return tied[0]
    return min(tied, key=lambda i: _mid_rank(samples[i], top))  # evidence section 11, ties


def by_looks(samples: Sequence[Sample], level: float) -> list[int]:
    """Return all arms as `best_looking` would take them one after the other; those without a value come last."""
    looks = {i: _seen(sample, level) for i, sample in enumerate(samples) if sample.size}
    ranked = sorted(looks, key=lambda i: (-looks[i], _mid_rank(samples[i], looks[i])))
    return ranked + [i for i, sample in enumerate(samples) if not sample.size]


def _seen(sample: Sample, level: float) -> float:
    if not sample.missing:
        return sample.quantile(level)
    bottom = sample.bottom
    return sample.at(max(1, math.ceil(level * (sample.size + bottom) - 1e-9)) - bottom)


def _mid_rank(sample: Sample, x: float) -> float:
    return (int(sample.count(x)) + int(sample.count(x, closed=True))) / sample.size


@dataclass(frozen=True, slots=True)
class QuantileJudge(Judge):
    """The judge of quantiles: an order of arms is judged at all cuts of the readings (evidence T1 to T12)."""

    levels: Levels

    @classmethod
    def declared(cls, problem: Problem) -> Levels:
        """Return the levels of the quantile under the contamination that a problem declares."""
        return Levels.of(problem.level, problem.contamination)

    def _at(self, levels: Strength | None) -> Levels:
        if levels is None:
            return self.levels
        return levels.levels(self.problem.level) if isinstance(levels, Trust) else levels

    @property
    def hopeless(self) -> bool:
        """Whether no number of readings can decide: a level of 0 promises nothing (evidence section 11)."""
        return min(self.levels) <= 0

    @property
    def symmetric(self) -> bool:
        """Whether a malicious adversary with half of eps is as bad as another one with all of it."""
        return self.problem.level == 0.5  # T6: (1-e)/2 = 1/2 - e/2

    def best_looking(self, among: Sequence[int]) -> int | None:
        """Return the arm with the best observed quantile, ties by fewest readings below it."""
        return best_looking(self.samples, among, self.problem.level)

    def ranked(self) -> list[int]:
        """Return all arms, the best-looking first; arms without a single value come last."""
        return by_looks(self.samples, self.problem.level)

    def looks(self, arm: int) -> float:
        """Return an arm's observed quantile, of the readings that have a value."""
        return self.samples[arm].quantile(self.problem.level)

    def identified(self, arm: int, contamination: Contamination) -> tuple[Interval, Interval]:
        """Return where one arm's true quantile lies, for all arms at once, and what contamination leaves of it."""
        c, problem, sample = contamination, self.problem, self.samples[arm]
        n, share = sample.n, problem.delta / len(problem.arms)
        masses = Levels.of(problem.level, c)
        inner = (math.ceil(masses.low * n - 1e-9), n + 1 - math.ceil(masses.high * n - 1e-9))  # audit 2.A
        ranks = ranks_of(n, problem.level, share, c.eps, c.adversary, design=self.design)
        return _in_units(_between(sample, ranks), problem.sign), _in_units(_between(sample, inner), problem.sign)

    def contradicted(self, arm: int) -> bool:
        """Tell whether the interval of an arm's quantile is empty, at the level it has in a result."""
        c, sample = self.problem.contamination or Contamination(0.0), self.samples[arm]
        share = self.problem.delta / len(self.problem.arms)
        low, high = sample.between(
            ranks_of(sample.n, self.problem.level, share, c.eps, c.adversary, design="sequential")
        )
        return low > high

    def spread(self, arm: int, *, known: bool = True) -> tuple[float, float, float]:
        """Return an arm's observed median absolute deviation, and where the true one lies for all arms at once."""
        c, sample = self.problem.contamination or Contamination(0.0), self.samples[arm]
        observed = deviation(sample) if sample.n else math.nan
        if not sample.n or not known:
            return observed, 0.0, math.inf
        share = self.problem.delta / len(self.problem.arms)
        ranks = ranks_of(sample.n, 0.5, share / 2, c.eps, c.adversary, design=self.design)
        low, high = spread(sample.hidden(), ranks)
        return observed, low, high

    def quality(self) -> tuple[tuple[float, float], ...]:
        """Return the leader's quality curve at shares of 1% to 99%, valid after selection (audit 2.E)."""
        problem, share = self.problem, self.problem.delta / len(self.samples)
        head = self.samples[self.leader]
        curve = quality_of(head, share, contamination=problem.contamination, design=self.design)
        shares = [percent / 100 for percent in range(1, 100)]
        reached = zip(curve.reached_each(shares), shares, strict=True)
        return tuple((problem.sign * x, share) for x, share in reached if math.isfinite(x))

    def rivals(self, judged: int, *, closed: bool = False) -> Portfolio:
        """Return who bets against an arm: the leader, and by the pooled rule whoever was followed.

        Of arms with the same quantile the first listed is the best: readings of a rival listed after the judged
        arm count as below the cut when they are at it (T3, lexicographic ties), with `closed` those of all rivals.
        """
        whole = Stake(self.samples[self.leader], closed or self.leader > judged)
        if self.rule != "pooled":
            return Portfolio(whole)
        legs = [
            Leg(e.before, self.samples[e.arm] if e.until is None else e.until, closed or e.arm > judged, e.known)
            for e in self.entries
            if e.arm != judged
        ]
        return portfolio(
            len(self.samples),
            None if judged == self.leader else whole,
            legs,
            tolerant=bool(self.problem.tolerance),
        )

    def against(
        self,
        judged: int,
        *,
        closed: bool = False,
        levels: Strength | None = None,
        enough: float | None = None,
        guess: int | None = None,
        lift: Lift | None = None,
    ) -> Evidence:
        """Return the evidence that an arm is not the best, or with `closed` that it is strictly worse.

        The other parameters as in `cuts.pair`.
        """
        levels = self._at(levels)
        if self.design == "fixed":
            head, open_cut = self.samples[self.leader], not (closed or self.leader > judged)
            return fixed_pair(head, self.samples[judged], levels, closed=not open_cut, enough=enough, lift=lift)
        rivals = self.rivals(judged, closed=closed)
        return pooled(self.samples[judged], rivals, levels, guess=guess, enough=enough, lift=lift)

    def against_each(
        self, judged: Sequence[int], *, closed: bool = False, enough: float | None = None
    ) -> list[float]:
        """Return the log-evidence against each of several arms, searched in step."""
        if not self._in_pairs:
            return Judge.against_each(self, judged, closed=closed, enough=enough)
        return self._in_step(judged, closed=self._closed(judged, closed=closed), enough=enough)

    def _in_step(
        self,
        judged: Sequence[int],
        *,
        closed: NDArray[np.bool_],
        enough: float | None = None,
        lift: Lift | None = None,
    ) -> list[float]:
        """Return the leader's log-evidence against each of several arms; parameters as in `cuts.pair`."""
        fixed = self.design == "fixed"
        term, bar = (fixed_term, fisher_sum) if fixed else (mixture_term(), float)
        found: list[float] = []
        for first in range(0, len(judged), _AT_ONCE):
            least = least_each(
                self.samples[self.leader],
                [self.samples[i].settled() for i in judged[first : first + _AT_ONCE]],
                self.levels,
                closed=closed[first : first + _AT_ONCE],
                term=term,
                lift=None if lift is None else lambda values, _: lift(values),
                enough=None if enough is None else bar(enough),
            )
            found += (fisher(least.log_values) if fixed else least.log_values).tolist()
        return found

    def least(self, judged: int, near: float = math.nan) -> Least:
        """Return the evidence against an arm and the cut at which it is found."""
        guess = None if math.isnan(near) else int(self.samples[judged].count(near))
        found = self.against(judged, guess=guess)
        return Least(found.log_value, found.cut)

    def paired(self, judged: int, near: float = math.nan) -> Least:
        """Return what the leader's whole sample alone says against an arm, and the cut where it says least."""
        whole = Stake(self.samples[self.leader], self.leader > judged)
        guess = None if math.isnan(near) else int(self.samples[judged].count(near))
        found = pooled(self.samples[judged], Portfolio(whole), self.levels, guess=guess)
        return Least(found.log_value, found.cut)

    def at_cut(self, judged: int, cut: float) -> float:
        """Return the log-evidence against an arm at one cut, which the least over all cuts does not exceed."""
        return pooled_at(self.samples[judged], self.rivals(judged), self.levels, cut=cut)

    def gains(self, judged: int, cut: float) -> tuple[float, float]:
        """Return what the readings of the leader and of a rival say at a cut, by the divergences there."""
        head, rival = self.samples[self.leader], self.samples[judged]
        below = float(head.below(cut, closed=self.leader > judged)) / head.n
        above = float(rival.above(cut)) / rival.n
        return head.n * divergence(below, self.levels.low), rival.n * divergence(above, self.levels.high)

    def within(self, judged: int, *, levels: Strength | None = None) -> Evidence:
        """Return the evidence that an arm is not better than the leader by more than the tolerance.

        Of a portfolio only the bet on the leader's whole sample counts (evidence T5, tolerance).
        """
        head, rival, levels = self.samples[self.leader], self.samples[judged], self._at(levels)
        lift = partial(worsened, tolerance=self.problem.tolerance, sign=self.problem.sign)
        if self.design == "fixed":
            return fixed_pair(head, rival, levels, lift=lift)
        share = self.rivals(judged).log_whole
        return pooled(rival, Portfolio(Stake(head), share), levels, lift=lift)

    def better(self, one: int, other: int, *, enough: float | None = None) -> Evidence:
        """Return the pair's evidence that one arm is strictly better than another."""
        return self._measure()(self.samples[one], self.samples[other], self.levels, closed=True, enough=enough)

    def optimism(self, arm: int, pulls: int) -> float:
        """Return the reading at an upper rank, above which an arm's quantile is not likely."""
        sample = self.samples[arm]
        slack = 0.5 * math.sqrt(0.5 * sample.n * math.log(4 * pulls))  # extensions D1
        return sample.at(math.ceil(self.problem.level * sample.n + slack) - sample.idle)

    def pair_bounds(self) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of `better` for all pairs at once, the row's arm over the column's."""
        term = fixed_term if self.design == "fixed" else mixture_term()
        low, high = pair_bounds(self.samples, self.levels, term)
        return (fisher(low), fisher(high)) if self.design == "fixed" else (low, high)

    def repeated(self, judged: int, times: float, enough: float) -> float:
        """Return the log-evidence within the tolerance if every reading had come so many times: a forecast."""
        head, rival, closed = self.samples[self.leader], self._tolerated(judged), self.leader > judged
        found = self._measure()(head, rival, self.levels, closed=closed, times=times, enough=enough)
        return found.log_value

    def ceiling(self, judged: int) -> float:
        """Return the most log-evidence that any values of so many readings of leader and rival could give."""
        term = fixed_term if self.design == "fixed" else mixture_term()
        sides = ((self.leader, self.levels.low), (judged, self.levels.high))
        return sum(float(term(np.asarray(0.0), self.samples[i].n, level)) for i, level in sides)

    def breakdown_estimate(self, judged: int, adversary: Adversary) -> float:
        """Return where the breakdown point would end with endless readings like these: a plug-in estimate."""
        return breakdown_estimate(self.samples[self.leader], self.samples[judged], self.problem.level, adversary)

    def decidable(self, judged: int) -> bool:
        """Tell whether endless readings like these would put an arm behind the leader, up to the tolerance."""
        declared, rival = self.problem.contamination or Contamination(0.0), self._tolerated(judged)
        head, level = self.samples[self.leader], self.problem.level
        # else at some cut the plug-in laws allow the opposite order: evidence section 8
        return not self.hopeless and breakdown_estimate(head, rival, level, declared.adversary) > declared.eps

    def _tolerated(self, arm: int) -> Sample:
        return shifted(self.samples[arm], self.problem.tolerance, self.problem.sign)

    def futile(self, alive: Sequence[int]) -> bool:
        """Tell whether endless pulls of this kind could not certify any arm that is alive (evidence T9).

        Each arm in `alive` must be censored at the level it is judged by, or overlapped by another: an upper
        confidence bound of what its readings could at best guarantee lies below a lower bound of what the other's
        could at worst reach. Saying so although an arm could be certified happens with probability at most delta,
        if the readings are stationary.
        """
        if self.hopeless:
            return True
        if self.problem.contamination is None and not any(s.missing or s.censored for s in self.samples):
            return (
                False  # the observed laws have one best quantile: only what is censored or missing never decides
            )
        samples, counts = self.samples, np.array([s.n for s in self.samples])
        share = self.problem.delta / counts.size
        top = counts + 1 - np.asarray(sequential_rank(counts, 1 - self.levels.low, share))
        bottom = np.asarray(sequential_rank(counts, 1 - self.levels.high, share))
        # pending pulls may turn out either way, so they are high for the upper bound and low for the lower one;
        # missing readings are what they count as: at the bottom and at the top, or on neither side
        upper = [s.at(int(r) - s.bottom, top=True) for s, r in zip(samples, top, strict=True)]
        reached = np.array([s.at(int(r) - s.idle - s.pending) for s, r in zip(samples, bottom, strict=True)])
        lower = worsened(reached, self.problem.tolerance, self.problem.sign).tolist()
        highest = sorted(range(len(lower)), key=lower.__getitem__)[-2:]  # one of them is another arm's
        return all(upper[i] == -math.inf or any(upper[i] < lower[j] for j in highest if j != i) for i in alive)

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
        bar, level = self.log_threshold, self.problem.level
        if self._in_pairs and not any(i in earlier for i in judged):
            return breakdown_of_pairs(
                self.samples[self.leader],
                [self.samples[i].settled() for i in judged],
                bar,
                closed=self._closed(judged, closed=closed),
                quantile=level,
                adversary=adversary,
                fixed=self.design == "fixed",
                start=self.problem.declared.eps,
                accuracy=accuracy,
            )
        rejections = self._rejections(judged, closed=closed, earlier=earlier)
        if self._counted:  # these note what they are asked
            rejections = [partial(rejection, enough=bar) for rejection in rejections]
        return breakdown_point(rejections, bar, quantile=level, adversary=adversary, accuracy=accuracy)

    @property
    def _counted(self) -> bool:
        """Whether readings are counted in buckets."""
        return any(isinstance(sample, Binned) for sample in self.samples)

    @property
    def _in_pairs(self) -> bool:
        """Whether pairs of sorted samples are all there is to search."""
        return self.rule != "pooled" and not self._counted

    def _closed(self, judged: Sequence[int], *, closed: bool) -> NDArray[np.bool_]:
        """Tell of which arms the readings of the leader at a cut count as below it (T3, lexicographic ties)."""
        return np.array([closed or self.leader > i for i in judged], dtype=bool)

    def tolerance(self, outright: Sequence[int], *, relative: bool | None = None) -> float:
        """Return alpha*: how far the leader may be from the best, pairs of arms alone (evidence T7)."""
        relative = self.problem.tolerance.relative if relative is None else relative
        bar, sign = self.log_bar(), self.problem.sign
        head, measure, worst, settled = self.samples[self.leader], self._measure(), 0.0, set(outright)
        widest = sorted(range(len(self.samples)), key=lambda i: -self.samples[i].quantile(self.problem.level))
        for i in widest:
            if i == self.leader or i in settled:
                continue
            settled.add(i)
            lift = partial(worsened, tolerance=Tolerance(worst, relative=relative), sign=sign)
            if measure(head, self.samples[i], self.levels, enough=bar, lift=lift).log_value >= bar:
                continue
            worst = certified_tolerance(
                head,
                self.samples[i],
                bar,
                levels=self.levels,
                relative=relative,
                sign=sign,
                fixed=self.design == "fixed",
            )
            if worst == math.inf:
                break
            left = [j for j in widest if j != self.leader and j not in settled]
            settled.update(self._tolerable(left, Tolerance(worst, relative=relative)))
        return worst

    def _tolerable(self, arms: Sequence[int], tolerance: Tolerance) -> list[int]:
        """Return those of some arms than which the leader is certainly not worse by more than a tolerance."""
        if not self._in_pairs:
            return []  # each is asked by itself
        lift = partial(worsened, tolerance=tolerance, sign=self.problem.sign)
        found = self._in_step(arms, closed=np.zeros(len(arms), dtype=bool), enough=self.log_bar(), lift=lift)
        return [i for i, log_value in zip(arms, found, strict=True) if log_value >= self.log_bar()]

    def lead(self, rival: int) -> Margin:
        """Return how much better the leader is than another arm: a ratio where both have positive readings."""
        [found] = self.leads([rival])
        return found

    def leads(self, rivals: Sequence[int]) -> list[Margin]:
        """Return the same for several arms, which are searched together."""
        relative = [self._is_ratio(rival) for rival in rivals]
        if self.problem.contamination is None:
            # the paper's promise is about the order alone: margins of true quantiles are not among what it gives
            margins: Sequence[float | None] = [None] * len(rivals)
        else:
            margins = self.margins(rivals, relative)
        return [self._told(*found) for found in zip(rivals, relative, margins, strict=True)]

    def _is_ratio(self, rival: int) -> bool:
        best, other = self.observed(self.leader), self.observed(rival)
        return 0 < best < math.inf and 0 < other < math.inf and self._mostly_positive(rival)

    def _told(self, rival: int, relative: bool, margin: float | None) -> Margin:
        best, other = self.observed(self.leader), self.observed(rival)
        if not relative:
            distance = 0.0 if best == other else self.problem.sign * (best - other)  # no inf - inf
            return Margin("difference", distance, margin or None)
        ratio = best / other if self.problem.goal == "max" else other / best
        return Margin("ratio", ratio, 1 + margin if margin else None)

    def _mostly_positive(self, rival: int) -> bool:
        """Tell whether ratios mean something: hardly a reading of either arm is zero or less."""
        arms = (self.samples[i] for i in (self.leader, rival))
        if self.problem.sign > 0:
            return all(int(s.count(0.0, closed=True)) <= 0.1 * s.size for s in arms)
        return all(s.size - int(s.count(0.0)) <= 0.1 * s.size for s in arms)

    def margin(self, judged: int, *, relative: bool) -> float | None:
        """Return by how much an arm is certainly worse than the best: a distance, or a factor less 1; None if not.

        All rivals of the arm are made worse by the amount. Such claims are nested, so one beyond the true margin
        is ever made only if the evidence at the true one is ever enough (evidence T10a).
        """
        bar, judge = self.log_strict, self._uncensored([judged])
        if self.hopeless or judge.against(judged, closed=True, enough=bar).log_value < bar:
            return None

        def holds(amount: float) -> bool:
            shift = Tolerance(math.expm1(amount) if relative else amount, relative)
            lift = partial(improved, tolerance=shift, sign=self.problem.sign)
            return judge.against(judged, closed=True, enough=bar, lift=lift).log_value >= bar

        most = judge._span(judged, relative=relative)
        found = last_true(holds, 0.0, most, accuracy=_MARGIN if relative else 1e-6 * most)
        return math.expm1(found) if relative else found

    def margins(self, arms: Sequence[int], relative: Sequence[bool]) -> list[float | None]:
        """Return `margin` of many arms, searched in step."""
        if not self._in_pairs or self.hopeless or not arms:
            judge = self if self.rule == "pooled" else self._uncensored(arms)
            return [judge.margin(i, relative=ratio) for i, ratio in zip(arms, relative, strict=True)]
        fixed, lifted = self.design == "fixed", self._uncensored(arms)
        most = np.array([lifted._span(i, relative=r) for i, r in zip(arms, relative, strict=True)])
        searched = Lifted(
            self.samples[self.leader],
            [lifted.samples[i].settled() for i in arms],
            np.array(relative),
            self.problem.sign,
            self.levels,
            fixed_term if fixed else mixture_term(),
            fisher_sum(self.log_strict) if fixed else self.log_strict,
        )
        found = searched.margins(most, accuracy=np.where(relative, _MARGIN, 1e-6 * most)).tolist()
        told = [math.expm1(x) if ratio else x for x, ratio in zip(found, relative, strict=True)]
        return [None if math.isnan(x) else x for x in told]

    def _uncensored(self, judged: Sequence[int]) -> Self:
        """Return the judge to whom the censored readings of some arms may be anything (evidence T8c)."""
        samples = list(self.samples)
        for i in judged:
            samples[i] = samples[i].hidden()
        return replace(self, samples=tuple(samples))

    def _span(self, judged: int, *, relative: bool) -> float:
        """Return a distance, or the log of a factor, that no reading of one arm has over one of the other."""
        both = np.concatenate([_ends(self.samples[i].values) for i in (self.leader, judged)])
        if not both.size:
            return 0.0
        if not relative:  # halves: huge readings do not overflow
            return min(float(both.max() / 2 - both.min() / 2) * 2 + 1, _LARGEST)
        logs = np.log(np.abs(both[both != 0]))
        return min(float(logs.max() - logs.min()) + 1, _LARGEST_LOG) if logs.size else 0.0

    def _measure(self) -> Callable[..., Evidence]:
        return fixed_pair if self.design == "fixed" else pair


def _ends(values: Floats) -> Floats:
    """Return of sorted values the lowest and the highest that are finite, and those next to zero."""
    first, zero, above, last = np.searchsorted(values, (-_FINITE, 0.0, np.nextafter(0.0, 1.0), np.inf)).tolist()
    return values[sorted({i for i in (first, zero - 1, zero, above, last - 1) if first <= i < last})]


def _between(sample: Sample, ranks: tuple[int, int]) -> Interval:
    """Return the readings at two ranks; beyond the limit of time-outs none bounds the quantile from above.

    A quantile that is itself beyond the limit has its lower end among the censored readings (evidence T8c).
    """
    found = sample.between(ranks)
    return found if found.low > -math.inf else sample.hidden().between(ranks)


def _in_units(interval: Interval, sign: float) -> Interval:
    low, high = interval
    return Interval(low, high) if sign > 0 else Interval(-high, -low)
