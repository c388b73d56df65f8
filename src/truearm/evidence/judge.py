"""The judge: the evidence against each arm, whether it is enough, and how far a decision holds.

What is compared is a `Target`; rejections, tolerances, margins and breakdown points are searches over
contamination and shift of its evidence. Bigger is better here.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from truearm.bounds.mixture import log_mixture
from truearm.bounds.search import last_true
from truearm.evidence.levels import Rule, Trust, log_threshold, one_sided, rule_for, threshold
from truearm.evidence.sample import Sample, Shift, start_sample
from truearm.evidence.search import Evidence, Leg, Portfolio, Stake, first_multiple, fisher_sum, portfolio
from truearm.evidence.shares import ROUGH
from truearm.evidence.targets import Margin, Query, Target, target_of
from truearm.problem import Adversary, Contamination, Design, Interval, Problem

FALSE_ALARM = 0.001  # one study in a thousand: rare enough that a reader still looks when it happens
_ROUNDING = 1e-9  # sums of the same numbers in another order differ by less
UNDECLARED = Contamination(0.05)  # contamination=None declares no share, so the default judges missing readings


def exceeds(bad: int, n: int, allowed: float, log_bar: float) -> bool:
    """Return True if this many bad of n readings contradict a chance of at most `allowed` for each (audit 2.C)."""
    if 1 - allowed >= 1:  # a chance too small for a float
        return bad > 0
    return bool(log_mixture(n - bad, n, 1 - allowed) >= log_bar)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The largest contamination under which a decision holds, per adversary; None where nothing is certified."""

    oblivious: float | None
    prescient: float | None
    malicious: float | None

    def __iter__(self) -> Iterator[float | None]:
        return iter((self.oblivious, self.prescient, self.malicious))

    def at_least(self, declared: Contamination | None) -> "Breakdown":
        """Return the points, raised to the declared contamination at which the decision was made."""
        if declared is None:
            return self
        order = list(Adversary)  # each is a special case of the next
        last = order.index(declared.adversary)
        return Breakdown(*(max(x or 0.0, declared.eps) if i <= last else x for i, x in enumerate(self)))


class Entry(NamedTuple):
    """An arm that was followed, with its readings up to the start and up to the end of that (evidence T5)."""

    arm: int
    before: Sample
    until: Sample | None = None
    """None while it is followed: all its readings up to now."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Everything a judgment about an order of arms depends on."""

    problem: Problem
    target: Target
    samples: tuple[Sample, ...]
    rule: Rule
    trust: Trust
    log_threshold: float
    leader: int = 0
    entries: tuple[Entry, ...] = ()
    """For the pooled rule, the arms that were followed, one at a time, in order."""
    design: Design = "sequential"
    earlier: Mapping[int, "Judge"] = field(default_factory=dict)
    """The judges of arms that were rejected before the end, as of then."""

    @staticmethod
    def of(
        problem: Problem,
        samples: Sequence[Sample] | None = None,
        *,
        leader: int = 0,
        entries: Sequence[Entry] = (),
        design: Design = "sequential",
        ordered: bool = False,
    ) -> "Judge":
        """Return the judge of a problem, by default before the first reading.

        `ordered` means that it is known which arm was followed when (evidence T5).
        """
        if samples is None:
            samples = [start_sample(problem, arm) for arm in problem.arms]
        rule, trust = rule_for(problem, design=design, ordered=ordered), Trust.of(problem.contamination)
        target, bar = target_of(problem), log_threshold(problem, rule)
        return Judge(problem, target, tuple(samples), rule, trust, bar, leader, tuple(entries), design)

    def after(self, samples: tuple[Sample, ...] | None = None, **changes: Any) -> "Judge":  # noqa: ANN401 - fields
        """Return the judge after more readings, or with another leader or more arms that were followed."""
        return replace(self, samples=self.samples if samples is None else samples, **changes)

    @property
    def log_strict(self) -> float:
        """The closed log-evidence at which any arm may be called strictly worse than the best (T10a)."""
        return log_threshold(self.problem, one_sided(self.rule), 1 / len(self.problem.arms))

    @property
    def pairs(self) -> Rule:
        """The rule by which pairs of arms are judged, whichever arm was followed."""
        return rule_for(self.problem, design=self.design)

    def log_bar(self, claims: int | None = None, share: float = 1.0) -> float:
        """Return the log-evidence that each of several claims about pairs needs.

        The error probability is a share of delta; by default there is a claim for each other arm (T3, T4).
        """
        k = len(self.problem.arms) if claims is None else claims + 1
        return math.log(threshold(k, share * self.problem.delta, one_sided(self.pairs)))

    @property
    def implausible_arms(self) -> tuple[int, ...]:
        """The arms with more readings outside the plausible range than eps explains.

        If the assumption holds, an arm is ever listed with probability at most `FALSE_ALARM` (audit 2.C, Ville).
        """
        allowed = (self.problem.contamination or UNDECLARED).eps
        bar = math.log(len(self.samples) / FALSE_ALARM)
        return tuple(i for i, s in enumerate(self.samples) if s.outside and exceeds(s.outside, s.n, allowed, bar))

    def under(self, adversary: Adversary, share: float = 1.0, *, both: bool = True) -> "Judge":
        """Return the judge of pairs under another adversary (evidence T6).

        It uses pairs, because a leg of T5 may keep its evidence as contamination rises. `share` is that of the
        error probability; `both` is False for a statement that names the direction.
        """
        rule = rule_for(self.problem, adversary, design=self.design)
        earlier = {i: judge.under(adversary) for i, judge in self.earlier.items()} if rule == self.pairs else {}
        rule = rule if both else one_sided(rule)
        bar = log_threshold(self.problem, rule, share)
        return replace(self, rule=rule, log_threshold=bar, entries=(), earlier=earlier)

    @property
    def is_hopeless(self) -> bool:
        """Whether no number of readings can decide, whatever they are."""
        return self.target.is_hopeless(self.trust)

    def best_looking(self, among: Sequence[int]) -> int | None:
        """Return the arm that looks best by the readings, None if none of them has a value."""
        return next(iter(self.target.rank(self.samples, among)), None)

    def ranking(self) -> list[int]:
        """Return all arms, the best-looking first; arms without a single value come last."""
        found = self.target.rank(self.samples, range(len(self.samples)))
        return found + [i for i, sample in enumerate(self.samples) if not sample.size]

    def looks(self, arm: int) -> float:
        """Return how good an arm looks: what is compared, as observed; bigger is better."""
        return self.target.looks(self.samples[arm])

    def estimate(self, arm: int) -> float:
        """Return how an arm looks in the user's units."""
        return self.problem.sign * self.looks(arm)

    @property
    def _share(self) -> float:
        return self.problem.delta / len(self.problem.arms)

    def intervals(self, arm: int, contamination: Contamination) -> tuple[Interval, Interval]:
        """Return where an arm's true value lies, for all arms at once, and what contamination alone leaves of it.

        The second is an estimate. The contamination may differ from the declared one.
        """
        return self.target.intervals(self.samples[arm], contamination, self._share, self.design)

    def is_contradicted(self, arm: int) -> bool:
        """Return True if no true value fits an arm's readings and the contamination declared."""
        (low, high), _ = self.target.intervals(self.samples[arm], self.problem.declared, self._share, "sequential")
        return low > high

    def spread(self, arm: int, *, known: bool = True) -> tuple[float, float, float]:
        """Return an arm's median absolute deviation as observed, and an interval of the true one if `known`."""
        return self.target.spread(self.samples[arm], self._share if known else None, self.design)

    def quality(self) -> tuple[tuple[float, float], ...]:
        """Return values and shares of the leader's readings that are certainly as good, in the user's units."""
        return self.target.quality(self.samples[self.leader], self._share, self.design)

    def _stake(self, judged: int, *, closed: bool = False) -> Stake:
        return Stake(self.samples[self.leader], closed or self.leader > judged)

    def _evidence(self, judged: int, bets: Portfolio, trust: Trust | None = None, **how: Any) -> Evidence:  # noqa: ANN401
        """Return the evidence of some bets against an arm; `how` is for `Query`."""
        return self.target.evidence(self.samples[judged], bets, trust or self.trust, Query(self.design, **how))

    def rivals(self, judged: int, *, closed: bool = False) -> Portfolio:
        """Return the bets against an arm: the leader's and, by the pooled rule, those on all followed arms.

        The first listed of arms with the same quantile is the best: readings of a rival listed after the judged
        arm count as below the cut when they are at it (T3, lexicographic ties), with `closed` those of all.
        """
        whole = self._stake(judged, closed=closed)
        if self.rule != "pooled":
            return Portfolio(whole)
        legs = [
            Leg(e.before, self.samples[e.arm] if e.until is None else e.until, closed or e.arm > judged)
            for e in self.entries
            if e.arm != judged
        ]
        stake = None if judged == self.leader else whole
        return portfolio(len(self.samples), stake, legs, tolerant=bool(self.problem.tolerance))

    def against(
        self, judged: int, *, closed: bool = False, trust: Trust | None = None, enough: float | None = None
    ) -> Evidence:
        """Return the evidence that an arm is not the best, or with `closed` that it is strictly worse.

        It is computed at `trust` instead of the declared contamination; `enough` is as in `search.least`.
        """
        return self._evidence(judged, self.rivals(judged, closed=closed), trust, enough=enough)

    def least(self, judged: int, near: float = math.nan) -> Evidence:
        """Return the evidence against an arm and where it is least, approximate if it rejects nothing."""
        bets = self.rivals(judged)
        rough = self._evidence(judged, bets, near=near, rough=True)
        is_far = rough.log_value < self.log_threshold * (1 - 2 * ROUGH)
        return rough if is_far else self._evidence(judged, bets, near=rough.at)

    def least_of_pair(self, judged: int, near: float = math.nan) -> Evidence:
        """Return the approximate evidence of the leader's whole sample against an arm, and where it is least."""
        return self._evidence(judged, Portfolio(self._stake(judged)), near=near, rough=True)

    def evidence_at(self, judged: int, cut: float) -> float:
        """Return the log-evidence against an arm at one cut, an upper bound of the least."""
        return self.target.evidence_at(self.samples[judged], self.rivals(judged), self.trust, cut)

    def gains(self, judged: int, cut: float) -> tuple[float, float]:
        """Return the evidence in the readings of the leader and a rival at a cut, by divergence."""
        return self.target.gains(self.samples[judged], self._stake(judged), self.trust, cut)

    def within(self, judged: int) -> Evidence:
        """Return the evidence that an arm is not better than the leader by more than the tolerance.

        Only the bet on the leader's whole sample counts (evidence T5, tolerance).
        """
        bets = Portfolio(Stake(self.samples[self.leader]), self.rivals(judged).log_whole)
        return self._evidence(judged, bets, shift=Shift.of(self.problem.tolerance))

    def better(self, one: int, other: int, *, closed: bool = True, enough: float | None = None) -> Evidence:
        """Return the pair's evidence that one arm is strictly better than another or, unless closed, no worse."""
        return self._evidence(other, Portfolio(Stake(self.samples[one], closed)), enough=enough)

    def screen(self, log_bar: float) -> Callable[[int, int], bool]:
        """Return a cheap test of whether one arm's evidence against another may reach a bar, to skip searches."""
        terms = self.target.common_terms(self.samples, self.trust, self.design)
        if terms is None:
            return lambda one, other: True  # noqa: ARG005 - all pairs are searched
        needed = (fisher_sum(log_bar) if self.design == "fixed" else log_bar) - _ROUNDING
        own, rival = terms
        return lambda one, other: bool((rival[one] + own[other]).min(initial=math.inf) >= needed)

    def forecast(self, judged: int, most: float) -> float:
        """Estimate how many times the present readings would reject an arm, up to the tolerance."""
        bets, shift, bar = Portfolio(self._stake(judged)), Shift.of(self.problem.tolerance), self.log_threshold

        def holds(times: float) -> bool:
            return self._evidence(judged, bets, shift=shift, enough=bar, times=times).log_value >= bar

        head, rival = self.samples[self.leader], self.samples[judged]
        if self.is_hopeless or not self.target.is_decidable(head, rival, self.trust):
            return math.inf
        return first_multiple(holds, most)

    def is_too_small(self, judged: int) -> bool:
        """Return True if no values of this many readings of leader and rival could reject the arm."""
        most = self.target.ceiling(self.samples[judged], self.samples[self.leader], self.trust, self.design)
        return most < self.log_threshold

    def gate(self, baseline: int, *, shared: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the arms certainly worse than a baseline named in advance, and those certainly not worse (T10b).

        All comparisons together err with the problem's probability, or if `shared` each of them does.
        """
        others = [i for i, sample in enumerate(self.samples) if i != baseline and sample.n]
        if self.is_hopeless or not self.samples[baseline].n:
            return (), ()
        bar = self.log_bar(1, 1.0 if shared else 1 / len(self.samples))
        worse = (i for i in others if self.better(baseline, i, enough=bar).log_value >= bar)
        good = (i for i in others if self.better(i, baseline, closed=False, enough=bar).log_value >= bar)
        return tuple(worse), tuple(good)

    def is_futile(self, alive: Sequence[int]) -> bool:
        """Return True if unlimited pulls like these could not certify any arm that is alive."""
        return self.is_hopeless or self.target.is_futile(self.samples, alive, self.trust, self.problem.delta)

    def is_rejected(self, judged: int, bar: float, *, closed: bool = False, trust: Trust | None = None) -> bool:
        """Return True if all readings reject an arm, or those at the date of its claim did (evidence T6)."""
        judges = (self, self.earlier[judged]) if judged in self.earlier else (self,)
        return any(j.against(judged, closed=closed, trust=trust, enough=bar).log_value >= bar for j in judges)

    def breakdown(
        self, judged: Sequence[int], *, closed: bool = False, share: float = 1.0, accuracy: float = 1e-7
    ) -> Breakdown:
        """Return the largest eps at which all these arms are rejected, by adversary.

        The best arm is ever rejected at the one true eps with probability at most delta (evidence T6). With
        `closed` the arms are to be strictly worse, a statement that names the direction.
        """

        def point(adversary: Adversary) -> float | None:
            judge, certified = self.under(adversary, share, both=not closed), self.target.eps_limit(adversary)

            def holds(arm: int, eps: float) -> bool:
                return judge.is_rejected(arm, judge.log_threshold, closed=closed, trust=Trust(eps, adversary))

            for place, arm in enumerate(judged):
                if place and holds(arm, certified):
                    continue
                if not holds(arm, 0.0):
                    return None
                near = {"accuracy": 1e-3 * accuracy, "relative": accuracy}
                certified = last_true(partial(holds, arm), 0.0, certified, **near)
            return certified

        oblivious, prescient = point(Adversary.OBLIVIOUS), point(Adversary.PRESCIENT)
        if not closed and prescient is not None and self.target.is_symmetric:
            return Breakdown(oblivious, prescient, prescient / 2)  # T6: one threshold
        return Breakdown(oblivious, prescient, point(Adversary.MALICIOUS))

    def pair_breakdown(self, better: int, worse: int, share: float = 1.0, *, accuracy: float = 1e-4) -> Breakdown:
        """Return the largest contamination at which one arm rejects another, by adversary, as tables show it."""
        judge = replace(self, leader=better, earlier={})
        return judge.breakdown([worse], closed=True, share=share, accuracy=accuracy)

    def tolerance(self, outright: Sequence[int], *, relative: bool | None = None) -> float:
        """Return alpha*: how far the leader may be from the best, from pairs alone (evidence T7).

        `outright` are arms rejected without any tolerance. The distance is a ratio if the problem's tolerance is.
        """
        relative = self.problem.tolerance.relative if relative is None else relative
        bar = self.log_threshold if self.rule == "paired" else self.log_bar()
        head, bets, worst = self.samples[self.leader], Portfolio(Stake(self.samples[self.leader])), 0.0
        rivals = set(range(len(self.samples))) - {self.leader, *outright}
        for i in sorted(rivals, key=lambda i: -self.looks(i)):
            query = Query(self.design, Shift(worst, relative), enough=bar)
            if self.target.evidence(self.samples[i], bets, self.trust, query).log_value < bar:
                worst = self.target.least_tolerance(head, self.samples[i], bar, self.trust, query)
            if worst == math.inf:
                break
        return worst

    def lead(self, rival: int) -> Margin:
        """Return how much better the leader is than another arm, by the evidence that decided."""
        head, other = self.samples[self.leader], self.samples[rival]
        relative = self.target.is_ratio(head, other)
        observed = self.target.lead(head, other, relative=relative)
        # the paper's assumption is about the order alone: it gives no margins of true values
        margin = None if self.problem.contamination is None else self.margin(rival, relative=relative)
        if not relative:
            return Margin("difference", observed, margin or None)
        return Margin("ratio", observed, 1 + margin if margin else None)

    def margin(self, judged: int, *, relative: bool) -> float | None:
        """Return by how much an arm is certainly worse than the best: a distance, or a factor less 1; None if not.

        The arm is made better by the amount. Such claims are nested, so a claim beyond the true margin is
        only made if the evidence at the true margin is enough (evidence T10a).
        """
        if self.is_hopeless:
            return None
        head, error = self.samples[self.leader], math.exp(-self.log_threshold)
        query = Query(self.design, Shift(0.0, relative))
        found = self.target.exact_margin(head, self.samples[judged], error, query)
        if found is None:
            found = self._search_margin(judged, relative=relative)
        with np.errstate(over="ignore"):
            return None if found is None or found < 0 else float(np.expm1(found)) if relative else found

    def _search_margin(self, judged: int, *, relative: bool) -> float | None:
        head, sample = self.samples[self.leader], self.samples[judged].hide_censored()  # evidence T8c
        bar, bets = self.log_strict, self.rivals(judged, closed=True)
        if self.problem.target != "quantile":  # the legs of other targets may not give nested claims
            bets = Portfolio(Stake(head, closed=True))
            bar = self.log_threshold if self.rule == "paired" else self.log_bar(share=1 / len(self.samples))

        def holds(amount: float) -> bool:
            shift = Shift(-math.expm1(amount) if relative else -amount, relative)
            query = Query(self.design, shift, enough=bar)
            return self.target.evidence(sample, bets, self.trust, query).log_value >= bar

        if not holds(0.0):
            return None
        most, accuracy = self.target.margin_range(head, sample, relative=relative)
        return last_true(holds, 0.0, most, accuracy=accuracy)
