"""The judge of wins: an order of arms is judged by who wins more than half of the rounds (extensions E1, E6)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.bounds import lower_rank
from truearm.bounds.search import last_true
from truearm.evidence.cuts import Evidence, Lift, fixed_term
from truearm.evidence.judge import NOBODY, Judge, Least, Margin
from truearm.evidence.levels import Levels, Strength, Trust, divergence
from truearm.evidence.moments import deviation
from truearm.evidence.sample import Sample
from truearm.evidence.shifts import worsened
from truearm.evidence.wins import (
    Score,
    Taped,
    ahead,
    at_least,
    cannot_win,
    leading,
    led,
    log_evidence,
    score,
    win_level,
    win_level_of,
)
from truearm.problem import Adversary, Contamination, Interval, Problem

Floats = NDArray[np.float64]

_ENDLESS = Interval(-math.inf, math.inf)
_LONGEST = 2.0**14  # times the rounds of now: what takes longer is not worth a forecast


def _first(test: Callable[[float], bool]) -> float:
    """Return about the least factor from 1 on that passes a test, by doubling and halving; or infinity."""
    low, high = 1.0, 1.0
    while not test(high):
        low, high = high, 2 * high
        if high > _LONGEST:
            return math.inf
    for _ in range(4):  # a forecast to a few percent
        middle = (low + high) / 2
        low, high = (low, middle) if test(middle) else (middle, high)
    return high


class Forecast(NamedTuple):
    """How many times the current rounds a comparison would take, and how it would end: an estimate."""

    times: float
    close: bool
    """Whether it ends because more rounds would not help."""


class Apart(NamedTuple):
    """How far one arm is ahead of another in the middle round: as observed, and an interval of the true median."""

    scale: Literal["ratio", "difference"]
    observed: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class WinsJudge(Judge):
    """The judge of rounds; its samples keep their tapes.

    Of each arm by itself nothing is claimed: a load that changes leaves it no law of its own.
    """

    samples: tuple[Taped, ...]
    levels: Levels

    @classmethod
    def declared(cls, problem: Problem) -> Levels:
        """Return the level of a round, the same for both sides, under the declared contamination."""
        level = win_level_of(problem.contamination)
        return Levels(level, level)

    def _level(self, levels: Strength | None = None) -> float:
        if levels is None:
            return self.levels.low
        return win_level(levels.eps, levels.adversary) if isinstance(levels, Trust) else levels.low

    @property
    def hopeless(self) -> bool:
        """Whether no number of rounds can decide: a level of 0 promises nothing."""
        return self._level() <= 0

    @property
    def log_strict(self) -> float:
        """How much log-evidence lets all pairs at once be told apart (extensions E1)."""
        return self._log_union(self._pairs)

    def _log_union(self, claims: int) -> float:
        """Return how much log-evidence each of several one-sided claims needs, so that none is ever false."""
        return math.log(claims / self.problem.delta)

    @property
    def symmetric(self) -> bool:
        """Whether a malicious adversary with half of eps is as bad as another one with all of it."""
        return True

    def best_looking(self, among: Sequence[int]) -> int | None:
        """Return the arm that does best against the one it does worst against."""
        return leading(self.samples, among)

    def ranked(self) -> list[int]:
        """Return all arms, the best-looking first; arms without a single value come last."""
        return led(self.samples)

    def looks(self, arm: int) -> float:
        """Return an arm's observed median: for showing, since arms are compared round by round."""
        return self.samples[arm].quantile(0.5)

    def identified(self, arm: int, contamination: Contamination) -> tuple[Interval, Interval]:  # noqa: ARG002
        """Return that nothing is claimed of an arm by itself."""
        return _ENDLESS, _ENDLESS

    def contradicted(self, arm: int) -> bool:  # noqa: ARG002
        """Return that no interval of an arm can be empty, because there is none."""
        return False

    def spread(self, arm: int, *, known: bool = True) -> tuple[float, float, float]:  # noqa: ARG002
        """Return an arm's observed median absolute deviation; of a true one nothing is claimed."""
        sample: Sample = self.samples[arm]
        return deviation(sample) if sample.n else math.nan, 0.0, math.inf

    def same(self, among: Sequence[int]) -> bool:
        """Tell whether arms read the same in every round."""
        first, *others = (self.samples[i].tape for i in among)
        known = first.size > 0 and bool((first > -np.inf).all())  # of time-outs nobody knows: extensions E6
        return known and bool(others) and all(np.array_equal(first, tape) for tape in others)

    def met(self, one: int, other: int, lift: Lift | None = None) -> Score:
        """Return how one arm did against another, side by side."""
        return score(self.samples[one], self.samples[other], lift)

    def _evidence(self, found: Score, levels: Strength | None = None) -> float:
        level = self._level(levels)
        if self.design == "fixed":
            return float(fixed_term(np.asarray(float(found.null)), found.rounds, level))
        return log_evidence(found, level)

    def against(
        self, judged: int, *, closed: bool = False, levels: Strength | None = None, enough: float | None = None
    ) -> Evidence:
        """Return the evidence that the leader wins more than half of the rounds against an arm; always strict."""
        del closed
        met = self.met(self.leader, judged)
        if enough is not None and enough > 0 and met.null >= self._level(levels) * met.rounds:
            return Evidence(-math.inf, 0)  # no evidence at all: M is at most 1 there
        return Evidence(self._evidence(met, levels), 0)

    def least(self, judged: int, near: float = math.nan) -> Least:
        """Return the same: there is one place only."""
        del near
        return Least(self.against(judged).log_value, math.nan)

    def paired(self, judged: int, near: float = math.nan) -> Least:
        """Return the same: arms are compared in pairs only."""
        return self.least(judged, near)

    def at_cut(self, judged: int, cut: float) -> float:
        """Return the same again."""
        del cut
        return self.against(judged).log_value

    def gains(self, judged: int, cut: float) -> tuple[float, float]:
        """Return what the rounds say, half of it by each of the two arms."""
        del cut
        found = self.met(self.leader, judged)
        half = found.rounds * divergence(found.null / max(1, found.rounds), self._level()) / 2
        return half, half

    @property
    def _tolerated(self) -> Lift:
        return partial(worsened, tolerance=self.problem.tolerance, sign=self.problem.sign)

    def within(self, judged: int, *, levels: Strength | None = None) -> Evidence:
        """Return the evidence that an arm is not better than the leader by more than the tolerance."""
        return Evidence(self._evidence(self.met(self.leader, judged, self._tolerated), levels), 0)

    def better(self, one: int, other: int, *, enough: float | None = None) -> Evidence:
        """Return the pair's evidence that one arm wins more than half of the rounds against another."""
        del enough
        return Evidence(self._evidence(self.met(one, other)), 0)

    def repeated(self, judged: int, times: float, enough: float) -> float:
        """Return the log-evidence within the tolerance if every round had come so many times: a forecast."""
        del enough
        return self._evidence(self._scaled(self.met(self.leader, judged, self._tolerated), times))

    def ceiling(self, judged: int) -> float:
        """Return the most log-evidence that so many rounds could give."""
        rounds = self.met(self.leader, judged).rounds
        return self._evidence(Score(rounds, rounds))

    def breakdown_estimate(self, judged: int, adversary: Adversary) -> float:
        """Return where the breakdown point would end with endless rounds like these: a plug-in estimate."""
        found = self.met(self.leader, judged)
        room = max(0.0, 0.5 - found.null / found.rounds) if found.rounds else 0.0  # extensions E1
        return room / 2 if adversary is Adversary.MALICIOUS else room

    def decidable(self, judged: int) -> bool:
        """Tell whether endless rounds like these would put an arm behind the leader, up to the tolerance."""
        found = self.met(self.leader, judged, self._tolerated)
        return not self.hopeless and found.null < self._level() * found.rounds

    def forecast(self, judged: int) -> Forecast:
        """Return when the leader and another arm are told apart, or known to be too close (extensions E1, E6)."""
        found = self.met(self.leader, judged, self._tolerated)

        def decided(times: float) -> bool:
            return self._evidence(self._scaled(found, times)) >= self.log_threshold

        def futile(times: float) -> bool:
            return cannot_win(self._scaled(found, times), self._level(), self.log_strict)

        ends = [_first(test) if found.rounds and not self.hopeless else math.inf for test in (decided, futile)]
        return Forecast(min(ends), close=ends[1] < ends[0])

    @staticmethod
    def _scaled(found: Score, times: float) -> Score:
        return Score(*(round(times * n) for n in found))

    def worse_than(self, baseline: int, *, shared: bool = False) -> tuple[int, ...]:
        """Return the arms that a baseline named in advance wins against in more than half of the rounds.

        Each comparison has one direction and a bar of its own (evidence T10b).
        """
        bar = self._log_union(1 if shared else len(self.samples))
        others = (i for i, sample in enumerate(self.samples) if i != baseline and sample.n)
        return tuple(i for i in others if self.better(baseline, i).log_value >= bar and not self.hopeless)

    def futile(self, alive: Sequence[int]) -> bool:
        """Tell whether endless rounds of this kind could not certify any arm that is alive (extensions E6)."""
        if self.hopeless:
            return True
        bar, level = self.log_strict, self._level()
        return all(any(self._cannot_win(i, j, level, bar) for j in alive if j != i) for i in alive)

    def given_up(self, baseline: int, judged: int) -> bool:
        """Return True if unlimited rounds like these could not show an arm to be worse (extensions E6)."""
        bar = self._log_union(len(self.samples) - 1)  # extensions E6, gates
        return self.hopeless or self._cannot_win(baseline, judged, self._level(), bar)

    def settled(self, baseline: int, judged: int) -> bool:
        """Tell whether it is known if an arm is worse than a baseline, or that rounds cannot show it."""
        bar = self._log_union(len(self.samples))  # evidence T10b
        shown = max(self.better(baseline, judged).log_value, self.better(judged, baseline).log_value) >= bar
        return shown or self.given_up(baseline, judged)

    def _cannot_win(self, one: int, other: int, level: float, bar: float) -> bool:
        mine, rival = self.samples[one], self.samples[other]
        n = min(mine.n, rival.n)
        out = int(np.count_nonzero(~(mine.told[:n] & rival.told[:n])))
        return cannot_win(self.met(one, other, self._tolerated), level, bar, out)

    def breakdown(
        self,
        judged: Sequence[int],
        adversary: Adversary,
        *,
        closed: bool = False,
        earlier: Mapping[int, Judge] = NOBODY,
        accuracy: float = 1e-7,
    ) -> float | None:
        """Return the largest eps up to which all these arms are rejected (extensions E1)."""
        rejections = self._rejections(judged, closed=closed, earlier=earlier)

        def hold(eps: float) -> bool:
            bar, trust = self.log_threshold, Trust(eps, adversary)
            return all(rejection(trust, enough=bar) >= bar for rejection in rejections)

        most = 0.25 if adversary is Adversary.MALICIOUS else 0.5  # the level vanishes there
        return last_true(hold, 0.0, most, accuracy=accuracy) if hold(0.0) else None

    @property
    def _pairs(self) -> int:
        return max(1, len(self.samples) * (len(self.samples) - 1))

    def tolerance(self, outright: Sequence[int], *, relative: bool | None = None) -> float:
        """Return how far the leader may be from the best: by the median of what is between them in a round."""
        relative = self.problem.tolerance.relative if relative is None else relative
        share = math.exp(-self.log_threshold)
        others = (i for i in range(len(self.samples)) if i not in (self.leader, *outright))
        apart = min((self.lead_at_least(self.leader, i, share, relative=relative) for i in others), default=0.0)
        if self.hopeless or apart == -math.inf:
            return math.inf
        return max(0.0, math.expm1(-apart) if relative else -apart)

    def lead_at_least(self, one: int, other: int, share: float, *, relative: bool) -> float:
        """Return a lower limit of the median of how far one arm is ahead in a round (extensions E1).

        As a difference, or as the logarithm of a factor.

        Parameters
        ----------
        share
            Error probability of the limit.
        """
        mine, rival = self.samples[one], self.samples[other]
        apart = ahead(mine, rival, relative=relative, sign=self.problem.sign, certain=True)
        rounds = min(mine.n, rival.n)
        if self.design == "fixed":
            rank = lower_rank(rounds, self._level(), share)
            return -math.inf if rank < 1 else math.inf if rank > apart.size else float(apart[rank - 1])
        return at_least(apart, rounds, self._level(), share)

    def lead(self, rival: int) -> Margin:
        """Return how much better the leader is than another arm in the middle round: a ratio where it can be.

        The limit is of the evidence that decides: where the leader rejected the arm itself, it is above nothing.
        """
        relative = self._relative(self.leader, rival)
        observed = self._middle(self.leader, rival, relative=relative)
        limit = self.lead_at_least(self.leader, rival, math.exp(-self.log_threshold), relative=relative)
        certain = self.problem.contamination is not None and limit > 0
        with np.errstate(over="ignore"):
            if relative:
                observed, limit = float(np.exp(observed)), float(np.exp(limit))
        return Margin("ratio" if relative else "difference", observed, limit if certain else None)

    def apart(self, one: int, other: int, *, share: float | None = None) -> Apart:
        """Return how far one arm is ahead of another in the middle round.

        Each limit errs with probability `share`; by default the limits of all pairs hold together.
        """
        relative = self._relative(one, other)
        share = self.problem.delta / self._pairs if share is None else share
        low = self.lead_at_least(one, other, share, relative=relative)
        high = -self.lead_at_least(other, one, share, relative=relative)
        middle = self._middle(one, other, relative=relative)
        if not relative:
            return Apart("difference", middle, low, high)
        with np.errstate(over="ignore"):
            return Apart("ratio", *(float(np.exp(x)) for x in (middle, low, high)))

    def _relative(self, one: int, other: int) -> bool:
        """Tell whether nearly all readings of two arms are positive, so that a ratio means something."""
        return all(np.count_nonzero(self._as_measured(i) <= 0) <= 0.1 * self.samples[i].size for i in (one, other))

    def _as_measured(self, arm: int) -> Floats:
        return self.problem.sign * self.samples[arm].values

    def _middle(self, one: int, other: int, *, relative: bool) -> float:
        mine, rival = self.samples[one], self.samples[other]
        n = min(mine.n, rival.n)
        both = ~(np.isnan(mine.tape[:n]) | np.isnan(rival.tape[:n]))
        met = (Taped.in_rounds(tape.tape[:n][both]) for tape in (mine, rival))
        known = ahead(*met, relative=relative, sign=self.problem.sign)
        return float(known[(known.size - 1) // 2]) if known.size else math.nan
