"""Which pairs of many arms may decide at all, told cheaply: bounds of their evidence at a few common places.

Evidence is the least over all cuts, or over all shares, so that its value at any one of them is an upper bound of
it. At common places every arm is counted once, and a pair is two rows added. Over a group of arms stands the
largest of their rows: a group that cannot reach the bar is passed by as a whole, so that the first accuser of an
arm is found in as many steps as there are levels. Nothing is decided here: who is left is asked the judge.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from truearm.evidence import shares
from truearm.evidence.cuts import Term, fisher_sum, fixed_term, mixture_term
from truearm.evidence.grid import against_itself, against_others, common_cuts
from truearm.evidence.judge import Judge
from truearm.evidence.quantiles import QuantileJudge
from truearm.evidence.sample import Sample

Floats = NDArray[np.float64]

_CUTS = 48  # quantiles of all readings at which pairs are tried: 24 let a tenth more pairs through
_GROUP = 16  # rows under one: two levels hold 256 arms, four hold 65,536
_ROUNDING = 1e-9  # sums of the same numbers in another order differ by less


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """Bounds of the evidence of arms against those that rank behind them; rows are in order of rank."""

    ranking: NDArray[np.intp]
    own: Floats
    """By arm and place: what an arm's own readings say against it."""
    closed: Floats
    """What it says against others, where readings at a cut are below it."""
    groups: tuple[Floats, ...]
    """The same where readings at a cut are above it; then the largest of each group of rows; and so on."""
    most: Floats
    """The largest of it among those that rank as high or higher."""
    fixed: bool

    @classmethod
    def of(cls, judge: "QuantileJudge | shares.ShareJudge", ranking: Sequence[int]) -> "Screen":
        """Return the bounds for the samples of a judge, at its levels."""
        if isinstance(judge, shares.ShareJudge):
            own, below = judge.terms(ranking, _CUTS)
            closed = below
        else:
            own, below, closed = _at_cuts(judge, [judge.samples[i] for i in ranking])
        groups = [below]
        while len(groups[-1]) > _GROUP:
            groups.append(np.maximum.reduceat(groups[-1], np.arange(0, len(groups[-1]), _GROUP), axis=0))
        most = np.maximum.accumulate(below, axis=0)
        return cls(np.array(ranking), own, closed, tuple(groups), most, judge.design == "fixed")

    def accusers(self, place: int, bar: float, *, closed: bool = False) -> Iterator[int]:
        """Iterate over the arms of higher rank whose evidence against the one at a place may reach the bar.

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
        if not place or not _may(self.most[place - 1 : place], own, needed).any():
            return
        for row in self._rows(len(self.groups) - 1, 0, place, own, needed):
            rival = int(self.ranking[row])
            strict = closed or rival > self.ranking[place]
            if not strict or _may(self.closed[row : row + 1], own, needed).any():
                yield rival

    def _rows(self, level: int, first: int, place: int, own: Floats, needed: float) -> Iterator[int]:
        """Iterate over the rows before a place that may reach the bar, in a stretch of so many at a level."""
        size = _GROUP**level
        last = min(first + _GROUP, -(-place // size))
        for found in np.flatnonzero(_may(self.groups[level][first:last], own, needed)).tolist():
            if level:
                yield from self._rows(level - 1, (first + found) * _GROUP, place, own, needed)
            else:
                yield first + found


def _may(rows: Floats, own: Floats, needed: float) -> NDArray[np.bool_]:
    """Tell which rows reach the bar together with what the judged arm's own readings say."""
    found: NDArray[np.bool_] = (rows + own).min(axis=1) >= needed
    return found


def _at_cuts(judge: QuantileJudge, samples: Sequence[Sample]) -> tuple[Floats, Floats, Floats]:
    """Return what arms say at common cuts: against themselves, and against others at open and at closed cuts."""
    cuts, (low, high) = common_cuts(samples, _CUTS), judge.levels
    term: Term = fixed_term if judge.design == "fixed" else mixture_term()
    own = against_itself(samples, cuts, high, term, least=False)
    below, closed = (
        against_others(samples, cuts, low, term, closed=closed, least=False) for closed in (False, True)
    )
    return own, below, closed


class Accusers(Protocol):
    """Who may have evidence against the arm at a place of a ranking, as `Screen.accusers`."""

    def __call__(self, place: int, bar: float, *, closed: bool = False) -> Iterator[int]:
        """Iterate over higher-ranking arms, in order of rank."""
        ...


def screened(judge: Judge, ranking: Sequence[int]) -> Accusers:
    """Return who is to be asked against whom: where arms are judged round by round, all that rank higher."""
    if isinstance(judge, QuantileJudge | shares.ShareJudge):
        screen = cache(partial(Screen.of, judge, ranking))  # where the leader rejects all nobody needs it

        def likely(place: int, bar: float, *, closed: bool = False) -> Iterator[int]:
            return screen().accusers(place, bar, closed=closed) if place > 1 else iter(ranking[:place])

        return likely

    def everyone(place: int, bar: float, *, closed: bool = False) -> Iterator[int]:  # noqa: ARG001
        return iter(ranking[:place])

    return everyone
