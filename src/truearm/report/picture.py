"""What a page draws, as plain numbers: which arms could be best, and readings.

Nothing is decided here: intervals and thresholds are those of `truearm.claims`, at other contaminations.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.claims.alarms import FAR
from truearm.claims.certificate import Status, Tapes, digest, sample_of
from truearm.claims.certify import as_measured, rejections
from truearm.claims.result import Result
from truearm.errors import InvalidArgument
from truearm.evidence import Judge
from truearm.evidence.intervals import moments
from truearm.evidence.sample import Sample
from truearm.problem import Adversary, Contamination, Interval
from truearm.report.numbers import PLAIN_UNIT, Unit

Floats = NDArray[np.float64]
Points = Mapping[Adversary, Mapping[str, float | None]]
"""Per adversary and rival the largest eps at which the rival is rejected; None where it is at none."""

EPS_END = 0.49  # intervals exist below one half only
_GRID = 56  # positions of the slider beside the special ones: a step of 1 % of the scale is seen as smooth
_CELLS = 1500  # arms times positions, so that a page of fifty arms stays small
_DRAWN = 240  # readings drawn per arm, evenly spaced in order of pull
_FAR_DRAWN = 60  # and of those far from the median, which the even spacing would mostly skip
_MARKS = 6000  # readings drawn in all, so that a page of fifty arms stays small
VIEW = 5 * 1.4826  # MADs around each median that the readings are drawn in: five robust standard deviations


@dataclass(frozen=True)
class Picture:
    """A result with its readings, ready to be asked what a picture needs.

    Parameters
    ----------
    result
        What a study found.
    tapes
        The readings it was found from, per arm in order of pull, in the user's units.
    unit
        What readings are shown in.
    """

    result: Result
    tapes: Tapes
    unit: Unit = PLAIN_UNIT

    @classmethod
    def of(cls, result: Result, readings: Tapes, unit: Unit = PLAIN_UNIT) -> "Picture":
        """Return the picture, after a check that these are the readings of the result."""
        if digest(result.problem, readings) != result.certificate.digest:
            msg = (
                "readings must be those the result was found from, but their digest differs from that in its "
                "certificate; pass them per arm in order of pull, in the same units, None for a pending pull"
            )
            raise InvalidArgument(msg)
        unit = PLAIN_UNIT if result.problem.target == "share" else unit  # a share has none
        return cls(result, {arm: _compact(readings.get(arm, ())) for arm in result.problem.arms}, unit)

    @cached_property
    def samples(self) -> list[Sample]:
        """The tapes as oriented samples."""
        return [sample_of(tape, len(tape), self.result.problem, arm) for arm, tape in self.tapes.items()]

    @property
    def leader(self) -> str | None:
        """The arm that evidence about quantiles compares with the others; None where it says nothing of them.

        It says nothing if the readings contradict an assumption, or if another estimator decided.
        """
        result = self.result
        doubtful = result.status is Status.DOUBTFUL
        return None if doubtful or result.certificate.estimated else result.leader

    @cached_property
    def plain_judge(self) -> Judge:
        """The judge of the readings without a handicap."""
        return as_measured(Judge.of(self.result.problem, self.samples, design=self.result.design), self.tapes)

    @cached_property
    def points(self) -> Points:
        """Per adversary and rival of the leader, the largest eps at which the rival is rejected; None for ties.

        The least of them is `result.breakdown`, which is at least what was certified, by evidence or by bounds.
        Arms that tie with the best one are not rejected; one that may tie is not better up to its eps.
        """
        result = self.result
        if self.leader is None:
            return {adversary: {} for adversary in Adversary}
        arms = result.problem.arms
        leader = arms.index(self.leader)
        found = rejections(result.certificate, self.tapes, self.samples, leader=leader)
        ties = frozenset(result.ties)
        rivals = {arm: i for i, arm in enumerate(arms) if i != leader and arm not in ties}
        points = {arm: asdict(found.breakdown([i], accuracy=1e-5)) for arm, i in rivals.items()}
        return {
            adversary: {
                arm: _latest(points[arm][adversary.value], getattr(result.breakdown, adversary.value))
                for arm in rivals
            }
            for adversary in Adversary
        }

    def candidates(self, eps: float, adversary: Adversary) -> tuple[str, ...]:
        """Return the arms that may be best if at most eps of the readings are bad: the leader among them."""
        return tuple(arm for arm in self.result.problem.arms if not self.is_excluded(arm, eps, adversary))

    def is_excluded(self, arm: str, eps: float, adversary: Adversary) -> bool:
        """Return True if an arm is worse than the leader at this contamination; one that may tie is not."""
        return arm not in self.result.may_tie and self.is_settled(arm, eps, adversary)

    def is_settled(self, arm: str, eps: float, adversary: Adversary) -> bool:
        """Return True if an arm is not better than the leader at this contamination."""
        point = self.points[adversary].get(arm)
        return point is not None and eps <= point

    @cached_property
    def eps(self) -> tuple[float, ...]:
        """Contaminations from 0 on past every breakdown point, the declared one and those points among them."""
        declared = self.result.problem.contamination
        least = 2 * declared.eps if declared and declared.eps else 0.1
        points = [point for point in self.result.breakdown if point is not None]
        end = min(EPS_END, max(least, *(1.5 * point for point in points), 0.0))
        size = min(_GRID, max(20, _CELLS // len(self.result.problem.arms)))
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
    def contamination(self) -> Contamination:
        """The contamination the result was found under; none at all where only the order is assumed."""
        return self.result.problem.declared

    @cached_property
    def window(self) -> Interval:
        """The stretch of readings that holds every interval up to the declared eps and the breakdown point."""
        adversary = self.contamination.adversary
        point = getattr(self.result.breakdown, adversary.value) or 0.0
        ends = [
            end
            for eps in {self.contamination.eps, min(point, self.eps[-1])}
            for whole, _ in self.intervals(eps, adversary)
            for end in whole
        ]
        return span([*ends, *(arm.observed for arm in self.result.arms)])

    def strips(self) -> list["Strip"]:
        """Return per arm a few hundred readings that show all of them."""
        k = len(self.result.problem.arms)
        drawn = max(20, min(_DRAWN, _MARKS // k))
        return [_strip(tape, drawn, max(10, min(_FAR_DRAWN, drawn // 4))) for tape in self.tapes.values()]


def _compact(tape: Sequence[float | None] | Floats) -> Sequence[float | None] | Floats:
    """Return a tape as an array if no pull is pending."""
    if isinstance(tape, np.ndarray) or any(value is None for value in tape):
        return tape
    return np.array(tape, dtype=np.float64)


def _latest(*points: float | None) -> float | None:
    known = [point for point in points if point is not None]
    return max(known) if known else None


class Strip(NamedTuple):
    """Some of an arm's readings, and what is known of all of them."""

    n: int
    places: Floats
    """When each drawn reading was pulled: 0 for the first pull, 1 for the last."""
    values: Floats
    far: NDArray[np.bool_]
    """Which of the drawn readings lie more than ten robust standard deviations from the median."""
    view: Interval
    """Five robust standard deviations around the median, no wider than the readings."""
    distant: int
    """How many of all readings are far."""
    missing: int
    pending: int
    sorted: Floats
    """All readings that have a value, sorted."""


def _strip(tape: Sequence[float | None] | Floats, drawn: int, far_drawn: int) -> Strip:
    pending = sum(value is None for value in tape) if not isinstance(tape, np.ndarray) else 0
    values = np.array([np.nan if v is None else v for v in tape] if pending else tape, dtype=np.float64)
    known = np.sort(values[~np.isnan(values)])
    missing = values.size - known.size - pending
    center, mad, _ = moments(known)
    reach = FAR * mad if mad > 0 else math.inf
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.abs(values - center) > reach
    places = np.union1d(_evenly(np.flatnonzero(~np.isnan(values)), drawn), _evenly(np.flatnonzero(far), far_drawn))
    return Strip(
        values.size,
        places / max(1, values.size - 1),
        values[places],
        far[places],
        _view(known, center, mad),
        int(np.count_nonzero(far)),
        missing,
        pending,
        known,
    )


def _evenly(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    if places.size <= most:
        return places
    return places[np.linspace(0, places.size - 1, most).astype(np.intp)]


def _view(known: Floats, center: float, mad: float) -> Interval:
    finite = known[np.isfinite(known)]
    if not finite.size:
        return Interval(math.nan, math.nan)
    low, high = float(finite[0]), float(finite[-1])
    if not (math.isfinite(center) and 0 < mad < math.inf):
        return Interval(low, high)
    return Interval(max(low, center - VIEW * mad), min(high, center + VIEW * mad))


def span(values: Sequence[float]) -> Interval:
    """Return a stretch that holds all finite values with some room beside them."""
    finite = [x for x in values if math.isfinite(x)]
    if not finite:
        return Interval(0.0, 1.0)
    low, high = min(finite), max(finite)
    room = (high / 2 - low / 2) / 10 or abs(low) / 10 or 1.0  # halves, so that huge readings do not overflow
    huge = math.nextafter(math.inf, 0.0)
    return Interval(max(low - room, -huge), min(high + room, huge))
