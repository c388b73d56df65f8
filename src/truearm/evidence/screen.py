"""Which pairs of many arms may decide at all, told cheaply: bounds of their evidence at a few cuts common to all.

Evidence is the least over all cuts, so that its value at any one cut is an upper bound of it. At common cuts the
counts of every arm are found once, and a pair is two rows added. Nothing is decided here: who is left is asked
the judge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from truearm.evidence.cuts import Term, fisher_sum, fixed_term, mixture_term
from truearm.evidence.grid import against_itself, against_others, common_cuts
from truearm.evidence.judge import Judge
from truearm.evidence.quantiles import QuantileJudge

Floats = NDArray[np.float64]

_CUTS = 48  # quantiles of all readings at which pairs are tried: 24 let a tenth more pairs through
_ROUNDING = 1e-9  # sums of the same numbers in another order differ by less


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """Bounds of the evidence of arms against those that rank behind them; rows are in order of rank.

    Examples
    --------
    >>> from truearm.evidence.sample import Sample
    >>> from truearm.problem import Problem
    >>> arms = [Sample.of(np.arange(20.0, 60.0)), Sample.of(np.arange(0.0, 40.0)), Sample.of(np.arange(40.0))]
    >>> judge = Judge.of(Problem(arms=("A", "B", "C")), arms)
    >>> [Screen.of(judge, [0, 1, 2]).accusers(place, judge.log_threshold) for place in range(3)]
    [[], [0], [0]]
    """

    ranking: NDArray[np.intp]
    own: Floats
    """By arm and cut: what an arm's own readings say against it."""
    below: Floats
    """By arm and cut: what it says against others, where readings at the cut are above it."""
    closed: Floats
    """The same where readings at the cut are below it."""
    most: Floats
    """By arm and cut: the largest of `below` among those that rank as high or higher."""
    fixed: bool

    @classmethod
    def of(cls, judge: QuantileJudge, ranking: Sequence[int]) -> "Screen":
        """Return the bounds for the samples of a judge, at its levels."""
        samples = [judge.samples[i] for i in ranking]
        fixed, cuts, (low, high) = judge.design == "fixed", common_cuts(samples, _CUTS), judge.levels
        term: Term = fixed_term if fixed else mixture_term()
        below = against_others(samples, cuts, low, term, closed=False, least=False)
        return cls(
            ranking=np.array(ranking),
            own=against_itself(samples, cuts, high, term, least=False),
            below=below,
            closed=against_others(samples, cuts, low, term, closed=True, least=False),
            most=np.maximum.accumulate(below, axis=0),
            fixed=fixed,
        )

    def accusers(self, place: int, bar: float, *, closed: bool = False) -> list[int]:
        """Return the arms of higher rank whose evidence against the one at a place may reach the bar.

        Parameters
        ----------
        closed
            Whether readings at the cut count as below it for all rivals, and not only for those listed after the
            judged arm (evidence T3, ties).

        Notes
        -----
        At a cut c let v be the judged arm's first reading that is not below c. The cut at v has as many of the
        judged arm's readings above it and no fewer of a rival's below, so that its evidence is at most the sum
        here; the least over all cuts is at most that.
        """
        own, needed = self.own[place], (fisher_sum(bar) if self.fixed else bar) - _ROUNDING
        if not place or (self.most[place - 1] + own).min() < needed:
            return []
        rivals = self.ranking[:place]
        told = self.closed[:place] if closed else self.below[:place]
        if not closed and (after := rivals > self.ranking[place]).any():
            told = np.where(after[:, None], self.closed[:place], told)
        left: list[int] = rivals[(told + own).min(axis=1) >= needed].tolist()
        return left


class Accusers(Protocol):
    """Who may have evidence against the arm at a place of a ranking, as `Screen.accusers`."""

    def __call__(self, place: int, bar: float, *, closed: bool = False) -> list[int]:
        """Return higher-ranking arms, in order of rank."""
        ...


def screened(judge: Judge, ranking: Sequence[int]) -> Accusers:
    """Return who is to be asked against whom: where an arm is not judged by cuts, all that rank higher.

    Examples
    --------
    >>> from truearm.evidence.sample import Sample
    >>> from truearm.problem import Problem
    >>> arms = [Sample.of(np.arange(20.0, 60.0)), Sample.of(np.arange(0.0, 40.0))]
    >>> screened(Judge.of(Problem(arms=("A", "B")), arms), [0, 1])(1, 3.0)
    [0]
    """
    if isinstance(judge, QuantileJudge):
        return Screen.of(judge, ranking).accusers

    def everyone(place: int, bar: float, *, closed: bool = False) -> list[int]:  # noqa: ARG001
        return list(ranking[:place])

    return everyone
