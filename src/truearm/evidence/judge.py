"""The one judge: who is rejected by whose evidence, when it is enough, and how far a judgment reaches.

A judge holds the problem, the samples, the rule with its levels and threshold, who leads and who led. Policies,
analyses, certificates, gates and pages only ask it. What depends on the target is asked of one class per target:
here is what all of them share, and the judge of quantiles. The minimum over cuts itself is computed in `cuts`.
Bigger is better here.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truearm.bounds import sequential_rank
from truearm.bounds.mixture import log_mixture
from truearm.bounds.search import last_true, last_true_each
from truearm.evidence.binned import Binned
from truearm.evidence.cuts import (
    Evidence,
    Leg,
    Lift,
    Portfolio,
    Stake,
    enough_each,
    fisher,
    fisher_sum,
    fixed_pair,
    fixed_term,
    mixture_term,
    pair,
    pooled,
    pooled_at,
    portfolio,
)
from truearm.evidence.grid import Floats, pair_bounds
from truearm.evidence.intervals import quality_of, ranks_of
from truearm.evidence.levels import Levels, Rule, Strength, Trust, divergence, log_threshold, rule_for, threshold
from truearm.evidence.moments import deviation, spread
from truearm.evidence.points import Breakdown, breakdown_estimate, breakdown_point
from truearm.evidence.sample import Sample
from truearm.evidence.shifts import certified_tolerance, improved, shifted, worsened
from truearm.problem import Adversary, Contamination, Design, Interval, Problem, Tolerance

FALSE_ALARM = 0.001  # one study in a thousand: rare enough that a reader still looks when it happens
UNDECLARED = Contamination(0.05)  # contamination=None declares no share: what is missing is judged by the default
_FINITE = np.finfo(np.float64).max
_LARGEST = _FINITE / 4  # a margin beyond it is not looked for: sums would overflow
_LARGEST_LOG = 700.0  # as the logarithm of a factor: beyond it `expm1` overflows
_MARGIN = 1e-4  # accuracy of a margin: of the logarithm of a factor, or of the span of the readings


def exceeds(bad: int, n: int, allowed: float, log_bar: float) -> bool:
    """Tell whether so many bad among n readings contradict a chance of at most `allowed` for each (audit 2.C).

    Examples
    --------
    >>> [exceeds(bad, 100, 0.05, math.log(1000)) for bad in (5, 20)]
    [False, True]
    """
    if allowed <= 0:
        return bad > 0
    return bool(log_mixture(n - bad, n, 1 - allowed) >= log_bar)


def best_looking(samples: Sequence[Sample], among: Sequence[int], level: float) -> int | None:
    """Return the arm with the best empirical quantile, ties by fewest readings below it, then by order.

    Missing readings that count at their worst are at the bottom, because only what they leave can be certified.

    Examples
    --------
    >>> best_looking([Sample.of([1.0, 2.0]), Sample.of([3.0])], [0, 1], 0.5)
    1
    >>> best_looking([Sample.of([1.0, 2.0]), Sample.of([3.0, np.nan, np.nan])], [0, 1], 0.5)
    0
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
    """Return all arms as `best_looking` would take them one after the other; those without a value come last.

    Examples
    --------
    >>> by_looks([Sample.of([1.0, 2.0]), Sample.of([]), Sample.of([3.0]), Sample.of([1.0])], 0.5)
    [2, 0, 3, 1]
    """
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


class Entry(NamedTuple):
    """An arm that was followed, its readings from before and those up to when it no longer was (evidence T5).

    Examples
    --------
    >>> Entry(0, Sample.of([1.0, 2.0])).before.n
    2
    """

    arm: int
    before: Sample
    until: Sample | None = None
    """None while it is followed: all its readings up to now."""
    known: dict[tuple[float, float, bool], float] | None = None
    """What it said at cuts that were asked for, as `Leg.known`: none while readings may still come."""


def _closed(judge: "Judge", judged: int, levels: Strength) -> float:
    return judge.against(judged, closed=True, levels=levels, enough=judge.log_threshold).log_value


class Least(NamedTuple):
    """The least log-evidence against an arm, and where it is found: a cut, a share, NaN if there is no choice.

    Examples
    --------
    >>> Least(3.2, 17.5).at
    17.5
    """

    log_value: float
    at: float


class Margin(NamedTuple):
    """How much better the leader is than another arm: on which scale, as observed, and what is certain of it.

    Examples
    --------
    >>> Margin("ratio", 1.4, 1.06).at_least
    1.06
    """

    scale: Literal["ratio", "difference"]
    observed: float
    at_least: float | None


@dataclass(frozen=True, slots=True)
class Judge(ABC):
    """Everything a judgment about an order of arms depends on; `Judge.of` gives the judge of a problem's target.

    Parameters
    ----------
    levels
        What the evidence is computed at under the declared contamination.
    leader
        The arm the others are compared with.
    entries
        For the pooled rule, the arms that were followed, in that order, one at a time.

    Examples
    --------
    >>> arms = [Sample.of(np.arange(20.0, 60.0)), Sample.of(np.arange(0.0, 40.0))]
    >>> judge = Judge.of(Problem(arms=("A", "B"), contamination=None), arms)
    >>> judge.rule, round(judge.log_threshold, 3), round(judge.against(1).log_value, 3)
    ('causal', 2.996, 6.591)
    """

    problem: Problem
    samples: tuple[Sample, ...]
    rule: Rule
    levels: Strength
    log_threshold: float
    """How much log-evidence rejects an arm."""
    leader: int = 0
    entries: tuple[Entry, ...] = ()
    design: Design = "sequential"

    @staticmethod
    def of(
        problem: Problem,
        samples: Sequence[Sample],
        *,
        leader: int = 0,
        entries: Sequence[Entry] = (),
        design: Design = "sequential",
        ordered: bool = False,
    ) -> "Judge":
        """Return the judge of a problem; `ordered` if it is known who was followed when (evidence T5)."""
        rule = rule_for(problem, design=design, ordered=ordered)
        kind = _kind(problem)
        return kind(
            problem,
            tuple(samples),
            rule,
            kind.declared(problem),
            log_threshold(problem, rule),
            leader,
            tuple(entries),
            design,
        )

    @classmethod
    @abstractmethod
    def declared(cls, problem: Problem) -> Strength:
        """Return what the evidence is computed at under the contamination that a problem declares."""

    def after(
        self,
        samples: tuple[Sample, ...] | None = None,
        *,
        leader: int | None = None,
        entries: tuple[Entry, ...] | None = None,
    ) -> Self:
        """Return the judge after more readings, or with another leader or more arms that were followed."""
        return type(self)(
            self.problem,
            self.samples if samples is None else samples,
            self.rule,
            self.levels,
            self.log_threshold,
            self.leader if leader is None else leader,
            self.entries if entries is None else entries,
            self.design,
        )

    @property
    def log_strict(self) -> float:
        """How much closed log-evidence lets every arm at once be called strictly worse than the best (T10a)."""
        return log_threshold(self.problem, self.rule, 1 / len(self.problem.arms))

    @property
    def refuted(self) -> tuple[int, ...]:
        """The arms with more readings than eps explains that are bad by promise: missing, or outside the range.

        Although the promise holds an arm is ever listed with probability at most `FALSE_ALARM` (audit 2.C, Ville).
        """
        allowed = (self.problem.contamination or UNDECLARED).eps
        bar = math.log(len(self.samples) / FALSE_ALARM)
        return tuple(i for i, s in enumerate(self.samples) if s.idle and exceeds(s.idle, s.n, allowed, bar))

    def under(self, adversary: Adversary) -> Self:
        """Return the judge of pairs under another adversary; levels say what it is asked at (evidence T6).

        Pairs, because a leg of T5 need not lose evidence where contamination rises.
        """
        rule = rule_for(self.problem, adversary, design=self.design)
        return replace(self, rule=rule, log_threshold=log_threshold(self.problem, rule), entries=())

    @property
    def hopeless(self) -> bool:
        """Whether no number of readings can decide, whatever they say."""
        return False

    @property
    def symmetric(self) -> bool:
        """Whether a malicious adversary with half of eps is as bad as another one with all of it."""
        return False

    def best_looking(self, among: Sequence[int]) -> int | None:
        """Return the arm that looks best by the readings, None if none of them has a value."""
        left = [i for i in among if self.samples[i].size]
        return max(left, key=self.looks) if left else None

    def ranked(self) -> list[int]:
        """Return all arms, the best-looking first; arms without a single value come last."""
        left = [i for i, sample in enumerate(self.samples) if sample.size]
        ranking = []
        while left:
            best = self.best_looking(left)
            ranking.append(left.pop(left.index(best)) if best is not None else left.pop())
        return ranking + [i for i, sample in enumerate(self.samples) if not sample.size]

    def same(self, among: Sequence[int]) -> bool:  # noqa: ARG002 - for judges that compare reading by reading
        """Tell whether arms measured the same wherever they met; by themselves they do not meet."""
        return False

    @abstractmethod
    def looks(self, arm: int) -> float:
        """Return how good an arm looks: what is compared, as observed; bigger is better."""

    def optimism(self, arm: int, pulls: int) -> float:
        """Return how good an arm may look after so many pulls of all arms: who looks best here is pulled next."""
        slack = 0.5 * math.sqrt(0.5 * math.log(4 * pulls) / max(1, self.samples[arm].n))  # extensions D1
        return self.looks(arm) + slack  # as of a share; other targets have their own scale

    def observed(self, arm: int) -> float:
        """Return the same in the user's units."""
        return self.problem.sign * self.looks(arm)

    @abstractmethod
    def identified(self, arm: int, contamination: Contamination) -> tuple[Interval, Interval]:
        """Return where an arm's true value lies, for all arms at once, and what contamination alone leaves of it.

        The second is an estimate. The contamination may differ from the declared one: a reader may ask "what if".
        """

    @abstractmethod
    def contradicted(self, arm: int) -> bool:
        """Tell whether no true value fits an arm's readings and the contamination declared."""

    def spread(self, arm: int, *, known: bool = True) -> tuple[float, float, float]:  # noqa: ARG002
        """Return an arm's observed median absolute deviation, and where the true one lies for all arms at once.

        Parameters
        ----------
        known
            False if the readings contradict a promise: then nothing is known but what was observed.
        """
        return math.nan, -math.inf, math.inf  # a target need not have one

    def quality(self) -> tuple[tuple[float, float], ...]:
        """Return values and shares of the leader's readings that are certainly as good, in the user's units."""
        return ()

    @abstractmethod
    def against(
        self, judged: int, *, closed: bool = False, levels: Strength | None = None, enough: float | None = None
    ) -> Evidence | Least:
        """Return the evidence that an arm is not the best, or with `closed` that it is strictly worse.

        Parameters
        ----------
        levels
            What to compute it at instead of the declared contamination.
        enough
            For callers who only ask whether the evidence reaches this, as in `cuts.pair`.
        """

    @abstractmethod
    def least(self, judged: int, near: float = math.nan) -> Least:
        """Return the evidence against an arm and where it is found; to know a place near it saves time."""

    @abstractmethod
    def paired(self, judged: int, near: float = math.nan) -> Least:
        """Return what the leader's whole sample alone says against an arm, and where it says least."""

    @abstractmethod
    def at_cut(self, judged: int, cut: float) -> float:
        """Return the log-evidence against an arm at one such place, which the least of all does not exceed."""

    @abstractmethod
    def gains(self, judged: int, cut: float) -> tuple[float, float]:
        """Return what the readings of the leader and of a rival say at such a place, by the divergences there."""

    @abstractmethod
    def within(self, judged: int, *, levels: Strength | None = None) -> Evidence | Least:
        """Return the evidence that an arm is not better than the leader by more than the tolerance."""

    @abstractmethod
    def better(self, one: int, other: int, *, enough: float | None = None) -> Evidence | Least:
        """Return the pair's evidence that one arm is strictly better than another."""

    def pair_bounds(self) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of `better` for all pairs at once, the row's arm over the column's."""
        nothing = np.full((len(self.samples),) * 2, math.inf)  # known of them: each pair is searched by itself
        return -nothing, nothing

    @abstractmethod
    def repeated(self, judged: int, times: float, enough: float) -> float:
        """Return the log-evidence within the tolerance if every reading had come so many times: a forecast."""

    @abstractmethod
    def ceiling(self, judged: int) -> float:
        """Return the most log-evidence that any values of so many readings of leader and rival could give."""

    @abstractmethod
    def breakdown_estimate(self, judged: int, adversary: Adversary) -> float:
        """Return where the breakdown point would end with endless readings like these: a plug-in estimate."""

    @abstractmethod
    def decidable(self, judged: int) -> bool:
        """Tell whether endless readings like these would put an arm behind the leader, up to the tolerance."""

    def worse_than(self, baseline: int, share: float | None = None) -> tuple[int, ...]:
        """Return the arms that are certainly worse than a baseline named in advance (evidence T10b).

        Parameters
        ----------
        share
            Error probability of each comparison; delta over the number of arms if None.
        """
        others = [i for i, sample in enumerate(self.samples) if i != baseline and sample.n]
        if self.hopeless or not self.samples[baseline].n:
            return ()
        pairs = rule_for(self.problem, design=self.design)
        bar = math.log(threshold(2, share or self.problem.delta / len(self.samples), pairs))
        return tuple(i for i in others if self.better(baseline, i, enough=bar).log_value >= bar)

    @abstractmethod
    def futile(self, alive: Sequence[int]) -> bool:
        """Tell whether endless pulls of this kind could not certify any arm that is alive."""

    @abstractmethod
    def breakdown(
        self,
        rejections: "Sequence[Callable[[Strength], float]]",
        adversary: Adversary,
        *,
        accuracy: float = 1e-7,
    ) -> float | None:
        """Return the largest eps of this judge's adversary up to which every rejection holds (evidence T6)."""

    def pair_breakdown(self, better: int, worse: int) -> Breakdown:
        """Return up to which contamination one arm rejects another, by adversary; to the digits a table shows."""
        judges = {a: replace(self, leader=better, entries=()).under(a) for a in Adversary}
        # closed cuts: two equal arms do not exclude each other
        return Breakdown(*(j.breakdown([partial(_closed, j, worse)], a, accuracy=1e-4) for a, j in judges.items()))

    @abstractmethod
    def tolerance(self, outright: Sequence[int], *, relative: bool | None = None) -> float:
        """Return alpha*: how far the leader may be from the best, pairs of arms alone.

        Parameters
        ----------
        outright
            Arms that are rejected without any tolerance.
        relative
            Whether the distance is a ratio; as the problem's tolerance if None.
        """

    @abstractmethod
    def lead(self, rival: int) -> Margin:
        """Return how much better the leader is than another arm, by the evidence that decided."""

    def leads(self, rivals: Sequence[int]) -> list[Margin]:
        """Return the same for several arms."""
        return [self.lead(rival) for rival in rivals]


def _kind(problem: Problem) -> type[Judge]:
    """Return the class that judges the target of a problem."""
    if problem.target == "quantile":
        return QuantileJudge
    from truearm.evidence.shares import ShareJudge
    from truearm.evidence.wins_judge import WinsJudge

    return ShareJudge if problem.target == "share" else WinsJudge


@dataclass(frozen=True, slots=True)
class QuantileJudge(Judge):
    """The judge of quantiles: an order of arms is judged at all cuts of the readings (evidence T1 to T12).

    Examples
    --------
    >>> arms = [Sample.of(np.arange(20.0, 60.0)), Sample.of(np.arange(0.0, 40.0))]
    >>> Judge.of(Problem(arms=("A", "B"), quantile=0.25), arms).levels
    Levels(low=0.2375, high=0.7124999999999999)
    """

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
        """Return where one arm's true quantile lies, for all arms at once, and what contamination leaves of it.

        Examples
        --------
        >>> judge = Judge.of(Problem(arms=("A", "B")), [Sample.of(range(100)), Sample.of([])], design="fixed")
        >>> judge.identified(0, Contamination(0.1))
        (Interval(low=33.0, high=66.0), Interval(low=44.0, high=55.0))
        """
        c, problem, sample = contamination, self.problem, self.samples[arm]
        n, share = sample.n, problem.delta / len(problem.arms)
        masses = Levels.of(problem.level, c)
        inner = (math.ceil(masses.low * n - 1e-9), n + 1 - math.ceil(masses.high * n - 1e-9))  # audit 2.A
        whole = sample.between(ranks_of(n, problem.level, share, c.eps, c.adversary, design=self.design))
        return _in_units(whole, problem.sign), _in_units(sample.between(inner), problem.sign)

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
        points = ((problem.sign * curve.reached(percent / 100), percent / 100) for percent in range(1, 100))
        return tuple(point for point in points if math.isfinite(point[0]))

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

        Examples
        --------
        >>> twins = [Sample.of(np.arange(4000.0)), Sample.of(np.arange(4000.0))]
        >>> [Judge.of(Problem(arms=("A", "B"), contamination=c), twins).futile((0, 1)) for c in (0.1, None)]
        [True, False]
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
        rejections: "Sequence[Callable[[Strength], float]]",
        adversary: Adversary,
        *,
        accuracy: float = 1e-7,
    ) -> float | None:
        """Return the largest eps of this judge's adversary up to which every rejection holds (evidence T6)."""
        return breakdown_point(
            rejections, self.log_threshold, quantile=self.problem.level, adversary=adversary, accuracy=accuracy
        )

    def tolerance(self, outright: Sequence[int], *, relative: bool | None = None) -> float:
        """Return alpha*: how far the leader may be from the best, pairs of arms alone (evidence T7).

        Parameters
        ----------
        outright
            Arms that are rejected without any tolerance.
        relative
            Whether the distance is a ratio; as the problem's tolerance if None.
        """
        relative = self.problem.tolerance.relative if relative is None else relative
        pairs = rule_for(self.problem, design=self.design)
        bar, sign = log_threshold(self.problem, pairs), self.problem.sign
        head, measure, worst, settled = self.samples[self.leader], self._measure(), 0.0, set(outright)
        widest = sorted(range(len(self.samples)), key=lambda i: -self.samples[i].quantile(self.problem.level))
        for i in widest:
            if i == self.leader or i in settled:
                continue
            lift = partial(worsened, tolerance=Tolerance(worst, relative=relative), sign=sign)
            if measure(head, self.samples[i], self.levels, enough=bar, lift=lift).log_value >= bar:
                continue
            worst = certified_tolerance(
                head, self.samples[i], bar, levels=self.levels, relative=relative, sign=sign, evidence=measure
            )
            if worst == math.inf:
                break
        return worst

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

        Examples
        --------
        >>> arms = [Sample.of(np.full(60, 30.0)), Sample.of(np.full(60, 10.0))]
        >>> judge = Judge.of(Problem(arms=("A", "B")), arms)
        >>> round(judge.margin(1, relative=True), 2), round(judge.margin(1, relative=False), 2)
        (2.0, 20.0)
        """
        bar, judge = self.log_strict, self._uncensored(judged)
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
        """Return `margin` of many arms, searched in step.

        Examples
        --------
        >>> arms = [Sample.of(np.full(60, 30.0)), Sample.of(np.full(60, 10.0)), Sample.of(np.full(60, 30.0))]
        >>> judge = Judge.of(Problem(arms=("A", "B", "C")), arms)
        >>> judge.margins([1, 2], [True, True]) == [judge.margin(1, relative=True), None]
        True
        """
        counted = any(isinstance(sample, Binned) for sample in self.samples)
        if self.rule == "pooled" or self.hopeless or counted or not arms:
            return [self.margin(i, relative=ratio) for i, ratio in zip(arms, relative, strict=True)]
        fixed, sign = self.design == "fixed", self.problem.sign
        bar, term = self.log_strict, fixed_term if fixed else mixture_term()
        bar = fisher_sum(bar) if fixed else bar
        judges = [self._uncensored(i) for i in arms]
        worse = [judge.samples[i].settled() for judge, i in zip(judges, arms, strict=True)]
        most = [judge._span(i, relative=r) for judge, i, r in zip(judges, arms, relative, strict=True)]

        def hold(amounts: Floats) -> NDArray[np.bool_]:
            shifts = [
                Tolerance(math.expm1(x) if ratio else x, ratio)
                for x, ratio in zip(amounts.tolist(), relative, strict=True)
            ]
            lifts = [partial(improved, tolerance=shift, sign=sign) for shift in shifts]
            head = Stake(self.samples[self.leader], closed=True)
            return enough_each(head, worse, lifts, self.levels, term=term, enough=bar)

        certain = hold(np.zeros(len(arms)))
        accuracy = np.array(
            [_MARGIN if ratio else 1e-6 * span for ratio, span in zip(relative, most, strict=True)]
        )
        found = last_true_each(hold, np.zeros(len(arms)), np.array(most), accuracy=accuracy).tolist()
        told = [math.expm1(x) if ratio else x for x, ratio in zip(found, relative, strict=True)]
        return [x if sure else None for x, sure in zip(told, certain.tolist(), strict=True)]

    def _uncensored(self, judged: int) -> Self:
        """Return the judge to whom an arm's censored readings may be anything (evidence T8c)."""
        hidden = self.samples[judged].hidden()
        return replace(self, samples=(*self.samples[:judged], hidden, *self.samples[judged + 1 :]))

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


def _in_units(interval: Interval, sign: float) -> Interval:
    low, high = interval
    if high == -math.inf:  # censored: worse than a limit nobody told, so that no reading bounds it (evidence T8)
        high = math.inf
    return Interval(low, high) if sign > 0 else Interval(-high, -low)
