"""Wins in rounds: which arm wins more than half of the rounds against another, side by side (extensions E1, E6).

A round measures several arms once each, under the same load, by the same person, on the same item or day. Only the
sign of a round counts, so that effects that both arms share do not matter. Symbols: S rounds of n in
which one arm does not win, each with a chance of at least p0 if it truly wins no more than half of them.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from truearm.bounds import lower_rank, sequential_rank
from truearm.bounds.mixture import Prior, log_mixture
from truearm.bounds.search import first_count
from truearm.evidence.intervals import deviation
from truearm.evidence.levels import Trust
from truearm.evidence.sample import Floats, Sample, Shift, align
from truearm.evidence.search import Evidence, Portfolio, first_multiple, tail_term
from truearm.evidence.targets import PLAIN, Query, Target
from truearm.problem import Adversary, Contamination, Design

if TYPE_CHECKING:
    from truearm.evidence.judge import Judge

# one stream instead of two cuts: more weight on large wins than the default prior has (benchmarks/rounds.py)
PRIOR = Prior((6.0, 100.0), (0.5, 0.5))
_MAX_MULTIPLE = 2.0**14  # times the present rounds; longer forecasts are not useful


def win_level(eps: float, adversary: Adversary) -> float:
    """Return p0, the least chance of a round that an arm does not win if it truly wins at most half of them.

    Two readings of a round may be bad, each with a chance of eps. A level of 0 or less gives no evidence.
    """
    return 0.5 - 2 * eps if adversary is Adversary.MALICIOUS else (1 - 2 * eps) / 2  # extensions E1


def win_level_of(contamination: Contamination | None) -> float:
    """Return p0 under a declared contamination; None trusts all rounds."""
    return win_level(*Trust.of(contamination))


class Score(NamedTuple):
    """How two arms did in the rounds that both were in."""

    rounds: int
    wins: int
    """Rounds that the first one won."""

    @property
    def null(self) -> int:
        """Rounds that the first did not win: lost ones, ties, and those with a reading missing or pending."""
        return self.rounds - self.wins

    def times(self, factor: float) -> "Score":
        """Return the score as if every round had come this many times."""
        return Score(round(factor * self.rounds), round(factor * self.wins))


def score(one: Sample, other: Sample, lift: Callable[[Floats], Floats] | None = None) -> Score:
    """Return how one arm did against another.

    A reading that timed out loses to one that did not; two that timed out are for the null (extensions E6). `lift`
    changes the readings of the other one first, as by a tolerance.
    """
    mine, theirs = align(one, other)
    rival = theirs if lift is None else lift(theirs)
    return Score(mine.size, int(np.count_nonzero(mine > rival)))  # a comparison with NaN is never won


def log_evidence(found: Score, p0: float, prior: Prior = PRIOR, design: Design = "sequential") -> float:
    """Return the log-evidence that the first of two arms wins more than half of the rounds."""
    if design == "fixed":
        return float(tail_term(np.asarray(float(found.null)), found.rounds, p0))
    return float(log_mixture(found.null, found.rounds, p0, prior))  # extensions E1


def least_rounds(p0: float, log_bar: float) -> int:
    """Return the number of rounds after which an arm that wins all of them is shown to win; 0 if it never is."""
    return first_count(lambda n: log_evidence(Score(n, n), p0) >= log_bar) if p0 > 0 else 0


def cannot_win(found: Score, p0: float, log_bar: float, pending: int = 0) -> bool:
    """Return True if the first arm could not be shown to win, however many rounds like these there were."""
    won = found.wins + pending  # pending pulls may turn out as wins
    return bool(log_mixture(min(won, found.rounds), found.rounds, 1 - p0, PRIOR) >= log_bar)  # extensions E6


def leads_by_round(one: Sample, other: Sample, *, relative: bool, sign: float, certain: bool = False) -> Floats:
    """Return the least lead of one arm over another in each round, lowest first.

    As a difference, or as the logarithm of a factor. A round that supports the null is minus infinity. If
    `certain`, the lead over an arm that timed out is 0, because its true size is unknown.
    """
    mine, rival = align(one, other)
    if certain:
        rival = np.where(np.isneginf(rival), mine, rival)  # extensions E1
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if relative:
            mine, rival = (sign * np.log(sign * x) for x in (mine, rival))  # NaN where a ratio means nothing
        leads = mine - rival
    leads[np.isnan(leads)] = -np.inf
    return np.sort(leads)


class Wins(Target):
    """Wins in more than half of the rounds. One arm alone has no law under a changing load, so no claim."""

    __slots__ = ()

    def evidence(self, judged: Sample, bets: Portfolio, trust: Trust, query: Query = PLAIN) -> Evidence:
        assert bets.whole is not None  # the rule of rounds has no legs
        lift = query.shift.lift(self.problem.sign) if query.shift else None
        found = score(bets.whole.sample, judged, lift).times(query.times)
        level = win_level(*trust)
        if query.enough is not None and query.enough > 0 and found.null >= level * found.rounds:
            return Evidence(-math.inf)  # M is at most 1 there
        return Evidence(log_evidence(found, level, design=query.design))

    def ceiling(self, judged: Sample, rival: Sample, trust: Trust, design: Design) -> float:
        rounds = min(judged.n, rival.n)
        return log_evidence(Score(rounds, rounds), win_level(*trust), design=design)

    def eps_limit(self, adversary: Adversary) -> float:
        return 0.25 if adversary is Adversary.MALICIOUS else 0.5  # the level vanishes there

    def looks(self, sample: Sample) -> float:
        """Return an arm's observed median, for display: arms are compared round by round."""
        return sample.quantile(0.5)

    def rank(self, samples: Sequence[Sample], among: Sequence[int]) -> list[int]:
        """Return arms by their worst score against the arms left, best first; ties go by median, then by order."""
        left = [i for i in among if samples[i].size]
        if not left:
            return []
        tapes = [samples[i].in_rounds[0] for i in left]
        sizes = np.array([tape.size for tape in tapes], dtype=np.intp)
        rows = np.full((len(left), sizes.max()), np.nan)
        for row, tape in zip(rows, tapes, strict=True):
            row[: tape.size] = tape
        leads = np.array([(one > rows).sum(axis=1) - (rows > one).sum(axis=1) for one in rows], dtype=np.float64)
        leads /= np.maximum(1, np.minimum(sizes[:, None], sizes))
        np.fill_diagonal(leads, np.inf)
        medians = np.array([self.looks(samples[i]) for i in left])
        ranking = []
        while left:
            best = int(np.lexsort((-np.arange(len(left)), medians, leads.min(axis=1)))[-1])
            ranking.append(left.pop(best))
            medians = np.delete(medians, best)
            leads = np.delete(np.delete(leads, best, axis=0), best, axis=1)
        return ranking

    def is_same(self, one: Sample, other: Sample) -> bool:
        (mine, _), (theirs, _) = one.in_rounds, other.in_rounds
        known = mine.size > 0 and bool((mine > -np.inf).all())  # two time-outs may differ: extensions E6
        return known and np.array_equal(mine, theirs)

    def spread(self, sample: Sample, error: float | None, design: Design) -> tuple[float, float, float]:  # noqa: ARG002
        return deviation(sample) if sample.n else math.nan, 0.0, math.inf

    def breakdown_estimate(self, better: Sample, worse: Sample, adversary: Adversary) -> float:
        found = score(better, worse)
        room = max(0.0, 0.5 - found.null / found.rounds) if found.rounds else 0.0  # extensions E1
        return room / 2 if adversary is Adversary.MALICIOUS else room

    def is_futile(self, samples: Sequence[Sample], alive: Sequence[int], trust: Trust, error: float) -> bool:
        """Return True if each arm has a rival that rounds like these could not show to lose (extensions E6)."""
        bar = math.log(max(1, len(samples) * (len(samples) - 1)) / error)
        level, lift = win_level(*trust), Shift.of(self.problem.tolerance).lift(self.problem.sign)

        def is_stuck(one: Sample, other: Sample) -> bool:
            (_, mine), (_, theirs) = one.in_rounds, other.in_rounds
            n = min(mine.size, theirs.size)
            pending = int(np.count_nonzero(~(mine[:n] & theirs[:n])))
            return cannot_win(score(one, other, lift), level, bar, pending)

        return all(any(is_stuck(samples[i], samples[j]) for j in alive if j != i) for i in alive)

    def lead_at_least(
        self, one: Sample, other: Sample, trust: Trust, error: float, design: Design, *, relative: bool
    ) -> float:
        """Return a lower limit of the median lead: a difference or the log of a factor (extensions E1)."""
        leads = leads_by_round(one, other, relative=relative, sign=self.problem.sign, certain=True)
        level, rounds = win_level(*trust), min(one.n, other.n)
        fixed = design == "fixed"
        rank = lower_rank(rounds, level, error) if fixed else sequential_rank(rounds, level, error, PRIOR)
        return -math.inf if rank < 1 else math.inf if rank > leads.size else float(leads[int(rank) - 1])

    def least_tolerance(self, better: Sample, worse: Sample, log_bar: float, trust: Trust, query: Query) -> float:
        amount, relative = query.shift or Shift(0.0)
        lead = self.lead_at_least(better, worse, trust, math.exp(-log_bar), query.design, relative=relative)
        if lead == -math.inf or self.is_hopeless(trust):
            return math.inf
        return max(amount, math.expm1(-lead) if relative else -lead)

    def exact_margin(self, better: Sample, worse: Sample, error: float, query: Query) -> float | None:
        trust, relative = Trust.of(self.problem.contamination), query.shift is not None and query.shift.relative
        return self.lead_at_least(better, worse, trust, error, query.design, relative=relative)

    def lead(self, one: Sample, other: Sample, *, relative: bool) -> float:
        """Return the lead of one arm in the middle round."""
        met = np.array(align(one, other))
        known = (Sample.in_order(tape) for tape in met[:, ~np.isnan(met).any(axis=0)])
        leads = leads_by_round(*known, relative=relative, sign=self.problem.sign)
        middle = float(leads[(leads.size - 1) // 2]) if leads.size else math.nan
        with np.errstate(over="ignore"):
            return float(np.exp(middle)) if relative else middle


class Apart(NamedTuple):
    """How far one arm is ahead of another in the middle round: as observed, and an interval of the true median."""

    scale: Literal["ratio", "difference"]
    observed: float
    low: float
    high: float


def apart(judge: "Judge", one: int, other: int, error: float | None = None) -> Apart:
    """Return how far one arm is ahead of another; by default the limits hold for all pairs at once."""
    target, (mine, rival) = Wins(judge.problem), (judge.samples[i] for i in (one, other))
    relative, k = target.is_ratio(mine, rival), len(judge.samples)
    limit = partial(
        target.lead_at_least,
        trust=judge.trust,
        error=judge.problem.delta / max(1, k * (k - 1)) if error is None else error,
        design=judge.design,
        relative=relative,
    )
    observed = target.lead(mine, rival, relative=relative)
    ends = limit(mine, rival), -limit(rival, mine)
    with np.errstate(over="ignore"):
        low, high = (float(np.exp(end)) if relative else end for end in ends)
    return Apart("ratio" if relative else "difference", observed, low, high)


class Forecast(NamedTuple):
    """How many times the present rounds a comparison would take, and how it would end: an estimate."""

    times: float
    close: bool
    """Whether it ends because more rounds would not help."""


def forecast(judge: "Judge", judged: int) -> Forecast:
    """Forecast when the leader and another arm are decided or known to be too close (extensions E1, E6)."""
    lift = Shift.of(judge.problem.tolerance).lift(judge.problem.sign)
    found = score(judge.samples[judge.leader], judge.samples[judged], lift)

    def is_futile(times: float) -> bool:
        return cannot_win(found.times(times), win_level(*judge.trust), judge.log_strict)

    if not found.rounds or judge.is_hopeless:
        return Forecast(math.inf, close=False)
    decided, futile = judge.forecast(judged, _MAX_MULTIPLE), first_multiple(is_futile, _MAX_MULTIPLE)
    return Forecast(min(decided, futile), close=futile < decided)


def may_reach(judge: "Judge", one: int, other: int, rounds: int, log_bar: float) -> bool:
    """Return True if one arm's evidence over another may reach a bar within this many rounds: a forecast.

    It assumes a share of wins six standard errors above that of past rounds: the share drifts as the load does,
    and with three standard errors half of the gates that would have passed gave up.
    """
    found = score(judge.samples[one], judge.samples[other])
    if not found.rounds:
        return True
    left = max(0, rounds - found.rounds)
    share = min(1.0, found.wins / found.rounds + 3 / math.sqrt(found.rounds))
    hoped = Score(found.rounds + left, found.wins + math.ceil(left * share))
    return log_evidence(hoped, win_level(*judge.trust)) >= log_bar
