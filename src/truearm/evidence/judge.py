"""The one judge: who is rejected by whose evidence, when it is enough, and how far a judgment reaches.

A judge holds the problem, the samples, the rule with its levels and threshold, who leads and who led. Policies,
analyses, certificates, gates and pages only ask it. What depends on the target is asked of one class per target:
`quantiles`, `shares` and `wins_judge`; here is what they share. Bigger is better here.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, Self

import numpy as np

from truearm.bounds.mixture import log_mixture
from truearm.evidence.cuts import (
    Evidence,
)
from truearm.evidence.grid import Floats
from truearm.evidence.levels import Rule, Strength, log_threshold, one_sided, rule_for, threshold
from truearm.evidence.points import Breakdown, Rejection
from truearm.evidence.sample import Sample
from truearm.problem import Adversary, Contamination, Design, Interval, Problem

NOBODY: Mapping[int, "Judge"] = {}
FALSE_ALARM = 0.001  # one study in a thousand: rare enough that a reader still looks when it happens
UNDECLARED = Contamination(0.05)  # contamination=None declares no share: what is missing is judged by the default


def exceeds(bad: int, n: int, allowed: float, log_bar: float) -> bool:
    """Tell whether so many bad among n readings contradict a chance of at most `allowed` for each (audit 2.C)."""
    if 1 - allowed >= 1:  # no chance that a number can hold
        return bad > 0
    return bool(log_mixture(n - bad, n, 1 - allowed) >= log_bar)


class Entry(NamedTuple):
    """An arm that was followed, its readings from before and those up to when it no longer was (evidence T5)."""

    arm: int
    before: Sample
    until: Sample | None = None
    """None while it is followed: all its readings up to now."""
    known: dict[tuple[float, float, bool], float] | None = None
    """What it said at cuts that were asked for, as `Leg.known`: none while readings may still come."""


def _most_against(
    judges: Sequence["Judge"], judged: int, closed: bool, levels: Strength, *, enough: float | None = None
) -> float:
    """Return the log-evidence of that judge who has most."""
    return max(judge.against(judged, closed=closed, levels=levels, enough=enough).log_value for judge in judges)


class Least(NamedTuple):
    """The least log-evidence against an arm, and where it is found: a cut, a share, NaN if there is no choice."""

    log_value: float
    at: float


class Margin(NamedTuple):
    """How much better the leader is than another arm: on which scale, as observed, and what is certain of it."""

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
        return log_threshold(self.problem, one_sided(self.rule), 1 / len(self.problem.arms))

    @property
    def pairs(self) -> Rule:
        """By which rule pairs of arms are judged, whoever was followed."""
        return rule_for(self.problem, design=self.design)

    def log_bar(self, claims: int | None = None, share: float = 1.0) -> float:
        """Return how much log-evidence a pair needs, so that none of several claims is ever false.

        Parameters
        ----------
        claims
            How many may be false: by default one less than there are arms, all against the best one (T3, T4).
        share
            Of the error probability.
        """
        k = len(self.problem.arms) if claims is None else claims + 1
        return math.log(threshold(k, share * self.problem.delta, one_sided(self.pairs)))

    @property
    def refuted(self) -> tuple[int, ...]:
        """The arms with more readings than eps explains that are bad by promise: missing, or outside the range.

        Although the promise holds an arm is ever listed with probability at most `FALSE_ALARM` (audit 2.C, Ville).
        """
        allowed = (self.problem.contamination or UNDECLARED).eps
        bar = math.log(len(self.samples) / FALSE_ALARM)
        return tuple(i for i, s in enumerate(self.samples) if s.idle and exceeds(s.idle, s.n, allowed, bar))

    def under(self, adversary: Adversary, share: float = 1.0, *, both: bool = True) -> Self:
        """Return the judge of pairs under another adversary; levels say what it is asked at (evidence T6).

        Pairs, because a leg of T5 need not lose evidence where contamination rises. `share` is that of the error
        probability; `both` is False for a statement that names the direction.
        """
        rule = rule_for(self.problem, adversary, design=self.design)
        rule = rule if both else one_sided(rule)
        return replace(self, rule=rule, log_threshold=log_threshold(self.problem, rule, share), entries=())

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

    def against_each(
        self, judged: Sequence[int], *, closed: bool = False, enough: float | None = None
    ) -> list[float]:
        """Return the log-evidence against each of several arms; parameters as in `against`."""
        return [self.against(i, closed=closed, enough=enough).log_value for i in judged]

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

    def worse_than(self, baseline: int, *, shared: bool = False) -> tuple[int, ...]:
        """Return the arms that are certainly worse than a baseline named in advance (evidence T10b).

        Parameters
        ----------
        shared
            Whether the problem's error probability is that of each comparison already, and not of all of them.
        """
        others = [i for i, sample in enumerate(self.samples) if i != baseline and sample.n]
        if self.hopeless or not self.samples[baseline].n:
            return ()
        bar = self.log_bar(1, 1.0 if shared else 1 / len(self.samples))
        return tuple(i for i in others if self.better(baseline, i, enough=bar).log_value >= bar)

    @abstractmethod
    def futile(self, alive: Sequence[int]) -> bool:
        """Tell whether endless pulls of this kind could not certify any arm that is alive."""

    @abstractmethod
    def breakdown(
        self,
        judged: Sequence[int],
        adversary: Adversary,
        *,
        closed: bool = False,
        earlier: Mapping[int, "Judge"] = NOBODY,
        accuracy: float = 1e-7,
    ) -> float | None:
        """Return the largest eps of this judge's adversary up to which all these arms are rejected (evidence T6).

        Parameters
        ----------
        closed
            Whether they are to be strictly worse.
        earlier
            The judges of some of them as of earlier, whose evidence counts if it is more.
        """

    def _rejections(
        self, judged: Sequence[int], *, closed: bool, earlier: Mapping[int, "Judge"]
    ) -> list[Rejection]:
        """Return the evidence against each of several arms, now or earlier, by what it is computed at."""
        judges = ([self, *([earlier[i]] if i in earlier else [])] for i in judged)
        return [partial(_most_against, known, i, closed) for i, known in zip(judged, judges, strict=True)]

    def pair_breakdown(self, better: int, worse: int, share: float = 1.0) -> Breakdown:
        """Return up to which contamination one arm rejects another, by adversary; to the digits a table shows."""
        judges = {a: replace(self, leader=better).under(a, share, both=False) for a in Adversary}
        # closed cuts: two equal arms do not exclude each other
        return Breakdown(*(j.breakdown([worse], a, closed=True, accuracy=1e-4) for a, j in judges.items()))

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
        from truearm.evidence.quantiles import QuantileJudge

        return QuantileJudge
    from truearm.evidence.shares import ShareJudge
    from truearm.evidence.wins_judge import WinsJudge

    return ShareJudge if problem.target == "share" else WinsJudge
