"""The one judge: who is rejected by whose evidence, when it is enough, and how far a judgment reaches.

A judge holds the problem, the samples, the rule with its levels and threshold, who leads and who led. Policies,
analyses, certificates, gates and pages only ask it. The minimum over cuts itself is computed in `cuts`. Bigger is
better here.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from truearm.bounds import sequential_rank
from truearm.bounds.mixture import log_mixture
from truearm.bounds.search import last_true
from truearm.evidence.cuts import (
    Evidence,
    Leg,
    Lift,
    Portfolio,
    Stake,
    fixed_pair,
    pair,
    pooled,
    pooled_at,
    portfolio,
)
from truearm.evidence.levels import Levels, Rule, log_threshold, rule_for, threshold
from truearm.evidence.points import Breakdown, breakdown_point
from truearm.evidence.sample import Sample
from truearm.evidence.shifts import certified_tolerance, improved, worsened
from truearm.problem import Adversary, Contamination, Design, Problem, Tolerance

FALSE_ALARM = 0.001  # one study in a thousand: rare enough that a reader still looks when it happens
UNDECLARED = Contamination(0.05)  # contamination=None declares no share: what is missing is judged by the default
_LARGEST = np.finfo(np.float64).max / 4  # a margin beyond it is not looked for: sums would overflow
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


def _seen(sample: Sample, level: float) -> float:
    if not sample.missing:
        return sample.quantile(level)
    bottom = sample.missing - sample.idle
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


def _closed(judge: "Judge", judged: int, levels: Levels) -> float:
    return judge.against(judged, closed=True, levels=levels, enough=judge.log_threshold).log_value


@dataclass(frozen=True, slots=True)
class Judge:
    """Everything a judgment about an order of arms depends on.

    Parameters
    ----------
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
    levels: Levels
    log_threshold: float
    """How much log-evidence rejects an arm."""
    leader: int = 0
    entries: tuple[Entry, ...] = ()
    design: Design = "sequential"

    @classmethod
    def of(
        cls,
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
        return cls(
            problem,
            tuple(samples),
            rule,
            Levels.of(problem.level, problem.contamination),
            log_threshold(problem, rule),
            leader,
            tuple(entries),
            design,
        )

    def after(
        self,
        samples: tuple[Sample, ...] | None = None,
        *,
        leader: int | None = None,
        entries: tuple[Entry, ...] | None = None,
    ) -> "Judge":
        """Return the judge after more readings, or with another leader or more arms that were followed."""
        return Judge(
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
    def hopeless(self) -> bool:
        """Whether no number of readings can decide: a level of 0 promises nothing (evidence section 11)."""
        return min(self.levels) <= 0

    @property
    def log_strict(self) -> float:
        """How much closed log-evidence lets every arm at once be called strictly worse than the best (T10a)."""
        return log_threshold(self.problem, self.rule, 1 / len(self.problem.arms))

    @property
    def refuted(self) -> tuple[int, ...]:
        """The arms with more missing readings than eps explains, where they are promised to be among the bad ones.

        Although the promise holds an arm is ever listed with probability at most `FALSE_ALARM` (audit 2.C, Ville).
        """
        if self.problem.missing == "worst":
            return ()
        allowed = (self.problem.contamination or UNDECLARED).eps
        bar = math.log(len(self.samples) / FALSE_ALARM)
        return tuple(i for i, s in enumerate(self.samples) if exceeds(s.missing, s.n, allowed, bar))

    def under(self, adversary: Adversary) -> "Judge":
        """Return the judge of pairs under another adversary; levels say what it is asked at (evidence T6).

        Pairs, because a leg of T5 need not lose evidence where contamination rises.
        """
        rule = rule_for(self.problem, adversary, design=self.design)
        return replace(self, rule=rule, log_threshold=log_threshold(self.problem, rule), entries=())

    def rivals(self, judged: int, *, closed: bool = False) -> Portfolio:
        """Return who bets against an arm: the leader, and by the pooled rule whoever was followed.

        Of arms with the same quantile the first listed is the best: readings of a rival listed after the judged
        arm count as below the cut when they are at it (T3, lexicographic ties), with `closed` those of all rivals.
        """
        whole = Stake(self.samples[self.leader], closed or self.leader > judged)
        if self.rule != "pooled":
            return Portfolio(whole)
        legs = [
            Leg(e.before, self.samples[e.arm] if e.until is None else e.until, closed or e.arm > judged)
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
        levels: Levels | None = None,
        guess: int | None = None,
        enough: float | None = None,
        lift: Lift | None = None,
    ) -> Evidence:
        """Return the evidence that an arm is not the best, or with `closed` that it is strictly worse.

        The other parameters as in `cuts.pair`.
        """
        levels = levels or self.levels
        if self.design == "fixed":
            head, open_cut = self.samples[self.leader], not (closed or self.leader > judged)
            return fixed_pair(head, self.samples[judged], levels, closed=not open_cut, enough=enough, lift=lift)
        rivals = self.rivals(judged, closed=closed)
        return pooled(self.samples[judged], rivals, levels, guess=guess, enough=enough, lift=lift)

    def paired(self, judged: int, *, guess: int | None = None) -> Evidence:
        """Return what the leader's whole sample alone says against an arm, and where it says least."""
        whole = Stake(self.samples[self.leader], self.leader > judged)
        return pooled(self.samples[judged], Portfolio(whole), self.levels, guess=guess)

    def at_cut(self, judged: int, cut: float) -> float:
        """Return the log-evidence against an arm at one cut, which the least over all cuts does not exceed."""
        return pooled_at(self.samples[judged], self.rivals(judged), self.levels, cut=cut)

    def within(self, judged: int, *, levels: Levels | None = None) -> Evidence:
        """Return the evidence that an arm is not better than the leader by more than the tolerance.

        Of a portfolio only the bet on the leader's whole sample counts (evidence T5, tolerance).
        """
        head, rival, levels = self.samples[self.leader], self.samples[judged], levels or self.levels
        lift = partial(worsened, tolerance=self.problem.tolerance, sign=self.problem.sign)
        if self.design == "fixed":
            return fixed_pair(head, rival, levels, lift=lift)
        share = self.rivals(judged).log_whole
        return pooled(rival, Portfolio(Stake(head), share), levels, lift=lift)

    def better(self, one: int, other: int, *, enough: float | None = None) -> Evidence:
        """Return the pair's evidence that one arm is strictly better than another."""
        return self._measure()(self.samples[one], self.samples[other], self.levels, closed=True, enough=enough)

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
        upper = [s.at(int(r) - (s.missing - s.idle)) for s, r in zip(samples, top, strict=True)]
        reached = np.array([s.at(int(r) - s.idle - s.pending) for s, r in zip(samples, bottom, strict=True)])
        lower = worsened(reached, self.problem.tolerance, self.problem.sign).tolist()
        return all(
            upper[i] == -math.inf or any(upper[i] < low for j, low in enumerate(lower) if j != i) for i in alive
        )

    def breakdown(self, rejections: "Sequence[Callable[[Levels], float]]", adversary: Adversary) -> float | None:
        """Return the largest eps of this judge's adversary up to which every rejection holds (evidence T6)."""
        return breakdown_point(
            rejections, self.log_threshold, quantile=self.problem.level, adversary=adversary, accuracy=1e-7
        )

    def pair_breakdown(self, better: int, worse: int) -> Breakdown:
        """Return up to which contamination one arm rejects another, by adversary; to the digits a table shows."""
        judges = {a: replace(self, leader=better, entries=()).under(a) for a in Adversary}
        return Breakdown(
            *(
                breakdown_point(
                    # closed cuts: two equal arms do not exclude each other
                    [partial(_closed, judge, worse)],
                    judge.log_threshold,
                    quantile=self.problem.level,
                    adversary=adversary,
                    accuracy=1e-4,
                )
                for adversary, judge in judges.items()
            )
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
        head, measure, worst = self.samples[self.leader], self._measure(), 0.0
        widest = sorted(range(len(self.samples)), key=lambda i: -self.samples[i].quantile(self.problem.level))
        for i in widest:
            if i == self.leader or i in outright:
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

    def _uncensored(self, judged: int) -> "Judge":
        """Return the judge with an arm's censored readings at the best value they may have had.

        All arms have one limit, and every reading with a value is within it: a censored one is no better than the
        worst of those (evidence T8).
        """
        if not self.samples[judged].censored:
            return self
        known = [s.values[np.isfinite(s.values)] for s in self.samples]
        floor = min((float(values[0]) for values in known if values.size), default=-math.inf)
        lifted = self.samples[judged].mapped(lambda values: np.maximum(values, floor))
        return replace(self, samples=(*self.samples[:judged], lifted, *self.samples[judged + 1 :]))

    def _span(self, judged: int, *, relative: bool) -> float:
        """Return a distance, or the log of a factor, that no reading of one arm has over one of the other."""
        both = np.concatenate([self.samples[i].values for i in (self.leader, judged)])
        both = both[np.isfinite(both)]
        if not both.size:
            return 0.0
        if not relative:  # halves: huge readings do not overflow
            return min(float(both.max() / 2 - both.min() / 2) * 2 + 1, _LARGEST)
        logs = np.log(np.abs(both[both != 0]))
        return min(float(logs.max() - logs.min()) + 1, _LARGEST_LOG) if logs.size else 0.0

    def _measure(self) -> Callable[..., Evidence]:
        return fixed_pair if self.design == "fixed" else pair
