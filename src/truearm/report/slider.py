"""What if more readings were bad? Which arms could be best, at every share of bad readings.

Nothing is decided here: intervals and thresholds are those of `truearm.claims`, at other contaminations. The page
shows the declared one; its script moves what is computed here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from truearm.claims.certificate import Status, Tapes, digest
from truearm.claims.certify import as_measured, judge_of, rejections
from truearm.claims.result import Result
from truearm.errors import InvalidArgument
from truearm.evidence import Judge
from truearm.problem import Adversary, Contamination, Interval
from truearm.report import svg
from truearm.report.numbers import ON_PAGES, interval, name_of, names, percent, plural, target_name, value
from truearm.report.tables import Rows, display_order, point_cell
from truearm.report.words import Voice, is_tie_by_handicap

_MAX_EPS = 0.49  # intervals exist below one half only
_POSITIONS = 56  # of the slider besides the special ones: a step of 1 % of the scale is seen as smooth
_MAX_CELLS = 1500  # arms times positions, so that a page of fifty arms stays small
_MAX_ROWS = 200  # arms in the table of points


@dataclass(frozen=True)
class Slider:
    """A result with its readings, per arm in order of pull, and what to call them."""

    result: Result
    tapes: Tapes
    voice: Voice

    def __post_init__(self) -> None:
        if digest(self.result.problem, self.tapes) != self.result.certificate.digest:
            msg = (
                "readings must be those the result was found from, but their digest differs from that in its "
                "certificate; pass them per arm in order of pull, in the same units, None for a pending pull"
            )
            raise InvalidArgument(msg)

    @property
    def leader(self) -> str | None:
        """The arm that evidence compares with the others; None where it says nothing of them.

        It says nothing if the readings contradict an assumption, or if another estimator decided.
        """
        result = self.result
        doubtful = result.status is Status.DOUBTFUL
        return None if doubtful or result.certificate.estimated else result.leader

    @property
    def declared(self) -> Contamination:
        """The contamination the result was found under; none at all where only the order is assumed."""
        return self.result.problem.declared

    @cached_property
    def judge(self) -> Judge:
        """The judge of all readings."""
        return judge_of(self.result.certificate, self.tapes)

    @cached_property
    def plain_judge(self) -> Judge:
        """The judge of the readings without a handicap."""
        return as_measured(self.judge, self.tapes)

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
        found = rejections(result.certificate, self.tapes, self.judge.samples, leader=leader)
        rivals = [i for i, arm in enumerate(arms) if i != leader and arm not in result.ties]
        points = {arms[i]: tuple(found.breakdown([i], accuracy=1e-5)) for i in rivals}
        return {
            adversary: {arm: _latest(own[i], least) for arm, own in points.items()}
            for i, (adversary, least) in enumerate(zip(Adversary, result.breakdown, strict=True))
        }

    def is_settled(self, arm: str, eps: float, adversary: Adversary) -> bool:
        """Return True if an arm is not better than the leader at this contamination."""
        point = self.points[adversary].get(arm)
        return point is not None and eps <= point

    def is_excluded(self, arm: str, eps: float, adversary: Adversary) -> bool:
        """Return True if an arm is worse than the leader at this contamination; one that may tie is not."""
        return arm not in self.result.may_tie and self.is_settled(arm, eps, adversary)

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
            self.plain_judge.intervals(i, Contamination(eps, adversary)) if sample.n else (endless, endless)
            for i, sample in enumerate(self.plain_judge.samples)
        ]

    @cached_property
    def window(self) -> Interval:
        """The stretch of readings that holds every interval up to the declared eps and the breakdown point."""
        adversary = self.declared.adversary
        point = getattr(self.result.breakdown, adversary.value) or 0.0
        ends = [
            end
            for eps in {self.declared.eps, min(point, self.eps[-1])}
            for whole, _ in self.intervals(eps, adversary)
            for end in whole
        ]
        return svg.window_of([*ends, *(arm.observed for arm in self.result.arms)])

    @property
    def what(self) -> str:
        """What an interval is about."""
        problem = self.result.problem
        return "observed median" if problem.rounds else f"true {target_name(problem)}"

    def opening(self, eps: float, adversary: Adversary) -> str:
        """Return the condition of a sentence."""
        if not eps:
            return f"If no {self.voice.reading} is bad: "
        return f"If each {self.voice.reading} has at most a {percent(eps)} chance of being bad ({adversary}): "

    def sentence(self, eps: float, adversary: Adversary) -> tuple[str, bool]:
        """Return which arms could be best at a contamination, and True if that is one arm, or arms that tie."""
        result, arms = self.result, self.result.problem.arms
        out = [arm for arm in arms if self.is_excluded(arm, eps, adversary)]
        left = [arm for arm in arms if arm not in out]
        ties = [] if is_tie_by_handicap(result) else [arm for arm in result.ties if arm != self.leader]
        may_tie = [arm for arm in result.may_tie if self.is_settled(arm, eps, adversary)]
        excluded = f"Excluded: {names(out)}." if out else "No arm is excluded."
        if not set(left) <= {self.leader, *ties, *may_tie}:
            return f"{plural(len(left), 'arm')} could be best: {names(left)}. {excluded}", False
        best = [self.leader or "", *ties]
        head = f"{names(best)} {'tie for best' if ties else 'is the best arm'}."
        tie = f" {names(may_tie)} may tie with {'them' if ties else name_of(best[0])}." if may_tie else ""
        return f"{head}{tie} {excluded}", True

    def states(self, arm: str, adversary: Adversary) -> tuple[str, str]:
        """Return the state of an arm while it could be best, and once that is settled."""
        result = self.result
        if arm in result.ties and not is_tie_by_handicap(result):
            return "tied", ""
        if arm == result.leader:
            return "looks best", "the best arm"
        point = self.points[adversary].get(arm)
        if point is None:
            return "could be best", ""
        up_to, may_tie = point_cell(point), arm in result.may_tie
        settled = f"{'not better' if may_tie else 'excluded'} up to {up_to}{', may tie' * may_tie}"
        return f"could be best beyond {up_to}", settled

    def cell(self, whole: Interval, core: Interval) -> list[Any]:
        """Return an arm's interval in words and as places on the board: all of it, then contamination's part."""
        problem, window, unit = self.result.problem, self.window, self.voice.unit
        if math.isnan(whole.low):  # in rounds an arm that only failed, or was not measured yet, has no place
            return [value(whole.low, problem, ON_PAGES), 0, 0, 0, 0]
        if whole.low == whole.high:
            seen = unit.attach(value(whole.low, problem, ON_PAGES, unit))
            return [seen, *(svg.at(whole.low, window),) * 4]
        said = interval(*whole, problem, ON_PAGES, unit)
        if whole.low > whole.high:
            return [said, 0, 0, 0, 0]
        inner = sorted(min(max(end, whole.low), whole.high) for end in core)
        said = said if said == ON_PAGES.none else unit.attach(said)
        return [said, *(svg.at(end, window) for end in (*whole, *inner))]

    # What the page shows

    def section(self) -> dict[str, Any]:
        """Return what the template shows, at the declared contamination."""
        eps, adversary = self.declared.eps, self.declared.adversary
        if self.leader is None:
            return {"slider": self}
        said, decided = self.sentence(eps, adversary)
        arms, ends = self.result.problem.arms, self.intervals(eps, adversary)
        order = map(arms.index, display_order(self.result))
        sign = f" {self.voice.unit.sign}".rstrip()
        return {
            "slider": self,
            "adversaries": [a.value for a in Adversary],
            "start": self.eps.index(eps),
            "sentence": self.opening(eps, adversary) + said,
            "rows": [self._row(i, self.cell(*ends[i]), decided=decided) for i in order],
            "ticks": svg.ticks(self.window, self.voice.unit.size, sign),
            "points": self._point_rows(),
        }

    def _row(self, i: int, cell: list[Any], *, decided: bool) -> dict[str, Any]:
        arm, eps, adversary = self.result.arms[i], self.declared.eps, self.declared.adversary
        where, low, high, *core = cell
        is_best = decided and arm.name == self.result.leader
        is_settled = self.is_settled(arm.name, eps, adversary)
        kinds = {
            "excluded": self.is_excluded(arm.name, eps, adversary),
            "best": is_best,
            "open-low": low < 0,
            "open-high": high > svg.WIDTH,
        }
        observed = svg.at(arm.observed, self.window) if arm.n else -1.0
        return {
            "name": name_of(arm.name),
            "bar": svg.bar((low, high), observed, core=(core[0], core[1])),
            "label": f"{self.what}: {where}",
            "where": where,
            "state": self.states(arm.name, adversary)[is_settled or is_best],
            "kind": " ".join(kind for kind, holds in kinds.items() if holds),
            "place": i,
        }

    def _point_rows(self) -> Rows:
        """Return up to which share of bad readings each rival is excluded, by adversary."""
        result, arms = self.result, self.result.problem.arms
        if not 1 < len(arms) <= _MAX_ROWS:
            return []
        points = {arm: [self.points[a].get(arm) for a in Adversary] for arm in arms if arm != self.leader}
        rows = [
            (name_of(arm), *("not certified" if p is None else point_cell(p) for p in own))
            for arm, own in points.items()
        ]
        estimates = (f"about {percent(e or 0.0, digits=2)}" for e in result.breakdown_estimate)
        return [("arm", *(a.value for a in Adversary)), *rows, ("all, with unlimited readings", *estimates)]

    def script_data(self) -> dict[str, Any]:
        """Return what the script draws: for each contamination every arm's interval, and which could be best."""
        problem, declared = self.result.problem, None
        if self.leader is None:
            return {}
        if problem.contamination is not None and not problem.is_blind:
            at = self.eps.index(self.declared.eps)
            declared = {"at": at, "text": f"declared {percent(self.declared.eps)}"}
        return {
            "eps": self.eps,
            "percent": [percent(eps) for eps in self.eps],
            "what": self.what,
            "leader": problem.arms.index(self.leader),
            "may_tie": [arm in self.result.may_tie for arm in problem.arms],
            "declared": declared,
            "intervals": {  # the oblivious and the prescient adversary leave the same interval (audit 2.A)
                a.value: [[self.cell(*ends) for ends in self.intervals(eps, a)] for eps in self.eps]
                for a in (Adversary.OBLIVIOUS, Adversary.MALICIOUS)
            },
            "adversaries": {a.value: self._script_data_under(a) for a in Adversary},
        }

    def _script_data_under(self, adversary: Adversary) -> dict[str, Any]:
        arms, points = self.result.problem.arms, self.points[adversary]
        sentences: dict[tuple[str, bool], int] = {}
        chosen = [sentences.setdefault(self.sentence(eps, adversary), len(sentences)) for eps in self.eps]
        return {
            "intervals": "malicious" if adversary is Adversary.MALICIOUS else "oblivious",
            "points": [points.get(arm) for arm in arms],
            "states": [self.states(arm, adversary) for arm in arms],
            "sentences": [{"text": said, "decided": decided} for said, decided in sentences],
            "sentence": chosen,
            "openings": [self.opening(eps, adversary) for eps in self.eps],
            "breakdown": self._breakdown_mark(list(points.values())),
        }

    def _breakdown_mark(self, points: list[float | None]) -> dict[str, Any] | None:
        known = [point for point in points if point is not None]
        if not points or len(known) < len(points):
            return {"at": 0, "text": "not certified at any share"} if points else None
        label = f"breakdown point {point_cell(min(known))}"
        if min(known) > self.eps[-1]:
            return {"at": len(self.eps) - 1, "text": f"{label}, beyond this scale"}
        return {"at": max(i for i, eps in enumerate(self.eps) if eps <= min(known)), "text": label}


def _latest(*points: float | None) -> float | None:
    return max((point for point in points if point is not None), default=None)
