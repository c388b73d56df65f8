"""Which arms could be best at each share of bad readings, for the slider of a page.

Everything is certified by the rules of `truearm.claims`, at other contaminations than the declared one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from truearm.claims.certificate import Status, Tapes
from truearm.claims.certify import judge_claims, judge_of
from truearm.claims.result import Result
from truearm.evidence import Judge
from truearm.problem import Adversary, Contamination, Interval
from truearm.report import svg
from truearm.report.numbers import breakdown_percent, interval, name_of, names, percent, plural, target_name, value
from truearm.report.tables import display_order
from truearm.report.words import Terms

_MAX_EPS = 0.49  # intervals exist below one half only
_POSITIONS = 56  # of the slider besides the special ones: a step of 1 % of the scale is seen as smooth
_MAX_CELLS = 1000  # arms times positions, so that a page of fifty arms stays small


class Frame(NamedTuple):
    """The view at one contamination: a sentence, and a row for each arm in the order of tables."""

    sentence: str
    rows: list[svg.Row]


@dataclass(frozen=True)
class Slider:
    """A result without a handicap, its readings per arm in order of pull, and the words for them."""

    result: Result
    tapes: Tapes
    terms: Terms

    @property
    def leader(self) -> str | None:
        """The arm that evidence compares with the others; None if it is doubtful, or another estimator decided."""
        is_compared = self.result.status is not Status.DOUBTFUL and not self.result.certificate.estimated
        return self.result.leader if is_compared else None

    @cached_property
    def judge(self) -> Judge:
        """The judge of all readings."""
        return judge_of(self.result.certificate, self.tapes)

    @cached_property
    def points(self) -> Mapping[Adversary, Mapping[str, float | None]]:
        """Per adversary and rival of the leader, the largest eps at which the rival is rejected; None at none.

        The least of them is `result.breakdown`, which is at least what was certified, by evidence or by bounds.
        Arms that tie with the best one are not rejected; one that may tie is not better up to its eps.
        """
        result, arms = self.result, self.result.problem.arms
        if self.leader is None:
            return {adversary: {} for adversary in Adversary}
        leader = arms.index(self.leader)
        found = judge_claims(result.certificate, self.tapes, self.judge.samples, leader=leader)
        rivals = [i for i, arm in enumerate(arms) if i != leader and arm not in result.ties]
        points = {arms[i]: tuple(found.breakdown([i], accuracy=1e-5)) for i in rivals}

        def latest(*known: float | None) -> float | None:
            return max((point for point in known if point is not None), default=None)

        return {
            adversary: {arm: latest(own[i], least) for arm, own in points.items()}
            for i, (adversary, least) in enumerate(zip(Adversary, result.breakdown, strict=True))
        }

    @cached_property
    def eps(self) -> tuple[float, ...]:
        """Contaminations from 0 on past every breakdown point, the declared one and those points among them."""
        declared = self.result.problem.contamination
        least = 2 * declared.eps if declared and declared.eps else 0.1
        points = [point for point in self.result.breakdown if point is not None]
        end = min(_MAX_EPS, max(least, *(1.5 * point for point in points), 0.0))
        size = min(_POSITIONS, max(20, _MAX_CELLS // len(self.result.problem.arms)))
        special = [point for point in points if point < end] + ([declared.eps] if declared else [])
        return tuple(sorted({*np.linspace(0.0, end, size).round(6).tolist(), *special, end}))

    def intervals(self, eps: float, adversary: Adversary) -> list[tuple[Interval, Interval]]:
        """Return per arm where its true quantile lies, and what contamination alone leaves of it (an estimate)."""
        endless = Interval(-math.inf, math.inf)
        if self.result.problem.rounds:  # rounds claim nothing about one arm: the observed value is shown
            return [(Interval(arm.observed, arm.observed),) * 2 for arm in self.result.arms]
        return [
            self.judge.intervals(i, Contamination(eps, adversary)) if sample.n else (endless, endless)
            for i, sample in enumerate(self.judge.samples)
        ]

    @cached_property
    def window(self) -> Interval:
        """The stretch of readings that holds every interval up to the declared eps and the breakdown point."""
        declared = self.result.problem.declared
        point = getattr(self.result.breakdown, declared.adversary.value) or 0.0
        ends = [
            end
            for eps in {declared.eps, min(point, self.eps[-1])}
            for whole, _ in self.intervals(eps, declared.adversary)
            for end in whole
        ]
        return svg.window_of([*ends, *(arm.observed for arm in self.result.arms)])

    @property
    def what(self) -> str:
        """What an interval contains, in words."""
        problem = self.result.problem
        return "observed median" if problem.rounds else f"true {target_name(problem)}"

    def frame(self, eps: float, adversary: Adversary) -> Frame:
        """Return what is shown at a contamination."""
        result, points, leader = self.result, self.points[adversary], self.leader or ""
        settled = [arm for arm, point in points.items() if point is not None and eps <= point]
        may_tie = [arm for arm in settled if arm in result.may_tie]
        out = [arm for arm in settled if arm not in result.may_tie]
        ties = [arm for arm in result.ties if arm != leader]
        left = [arm for arm in result.problem.arms if arm not in out]
        is_decided = {*left} <= {leader, *ties, *may_tie}
        tie = f" {names(may_tie)} may tie with {'them' if ties else name_of(leader)}." if may_tie else ""
        text = f"{plural(len(left), self.terms.arm)} could be best: {names(left)}."
        if is_decided:
            text = f"{names([leader, *ties])} {'tie for best' if ties else f'is the best {self.terms.arm}'}.{tie}"
        bad = f"each {self.terms.reading} has at most a {percent(eps)} chance of being bad ({adversary})"
        opening = f"If {bad if eps else f'no {self.terms.reading} is bad'}"
        excluded = f"Excluded: {names(out)}." if out else f"No {self.terms.arm} is excluded."
        kinds = dict.fromkeys(out, ("excluded", "excluded")) | dict.fromkeys(may_tie, ("", "may tie"))
        kinds |= dict.fromkeys(ties, ("", "tied"))
        kinds[leader] = ("best", f"the best {self.terms.arm}") if is_decided else ("", "looks best")
        by_arm = dict(zip(result.problem.arms, self.intervals(eps, adversary), strict=True))
        seen = {arm.name: arm.observed for arm in result.arms}

        def row(arm: str) -> svg.Row:
            (kind, state), point = kinds.get(arm, ("", "could be best")), points.get(arm)
            if point is not None:
                state = f"{state} {'up to' if arm in settled else 'beyond'} {breakdown_percent(point)}"
            whole, core = by_arm[arm]
            span = svg.Span(whole.low, seen[arm], whole.high)
            return svg.row(arm, span, self.window, self._where(whole), state, kind=kind, core=core)

        return Frame(f"{opening}: {text} {excluded}", [row(arm) for arm in display_order(result)])

    def _where(self, whole: Interval) -> str:
        problem, unit = self.result.problem, self.terms.unit
        is_point = problem.rounds or whole.low == whole.high
        text = value(whole.low, problem, unit) if is_point else interval(*whole, problem, unit)
        return text if text in ("-", "contradictory") else unit.attach(text)

    @property
    def ticks(self) -> list[svg.Tick]:
        """The labels of the scale of readings."""
        return svg.ticks(self.window, self.terms.unit.size, f" {self.terms.unit.sign}".rstrip())

    def script_data(self) -> dict[str, Any]:
        """Return what the script shows: a frame for each adversary and contamination, and marks of the scale."""
        problem = self.result.problem
        if self.leader is None:
            return {}

        def moving(frame: Frame) -> dict[str, Any]:
            rows = [(row.kind, row.where, row.state, row.line, row.core) for row in frame.rows]
            return {"sentence": frame.sentence, "rows": rows}

        is_declared = problem.contamination is not None and not problem.is_blind
        at, label = self.eps.index(problem.declared.eps), f"declared {percent(problem.declared.eps)}"
        return {
            "percent": [percent(eps) for eps in self.eps],
            "what": self.what,
            "declared": {"at": at, "text": label} if is_declared else None,
            "breakdown": {a.value: self._breakdown_mark(a) for a in Adversary},
            "frames": {a.value: [moving(self.frame(eps, a)) for eps in self.eps] for a in Adversary},
        }

    def _breakdown_mark(self, adversary: Adversary) -> dict[str, Any]:
        point = getattr(self.result.breakdown, adversary.value)
        if point is None:
            return {"at": 0, "text": "not certified at any share"}
        at = max(i for i, eps in enumerate(self.eps) if eps <= point)
        return {"at": at, "text": f"breakdown point {breakdown_percent(point)}"}
