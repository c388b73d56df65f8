"""The minimum over cuts: how much evidence a product of counts holds, whatever the cut.

A cut splits the line into a lower set L and an upper set U. If arm j is at least as good as arm i, there is a
cut at which L holds at least p- of arm i and U at least p+ of arm j, at every pull and whatever the adversary
does (evidence T2). The product of the two arms' e-values at that cut is then a supermartingale (T1), and its
minimum over all cuts, which needs no knowledge of the cut, is evidence that j is worse. Everything here is
that minimum, for one rival (`pair`) or for a portfolio that follows the leader (`pooled`), in one design or the
other.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.bounds import special
from truearm.bounds.mixture import DEFAULT_PRIOR, Prior, log_mixture, log_mixture_once
from truearm.bounds.search import last_true_each
from truearm.evidence.binned import Binned
from truearm.evidence.levels import Levels
from truearm.evidence.sample import Sample

Floats = NDArray[np.float64]

_FANOUT = 8  # pieces an open stretch of ranks is cut into; 4 to 16 cost the same within 20 %
_COARSE = 32  # first pieces of the whole range of ranks
_UNIFORM = 0.05  # share of the capital on the leader's whole sample; evidence T5
_STRIDE = 64  # buckets of which it is asked at once whether any of them matters
_MANY = 4096  # cuts between ranks that are looked at one by one
_TANGENTS = 8  # at most: three or four are enough, and bisection does the rest
_FLAT = 1e-9  # a slope so small leads nowhere
_MATTERS = 100.0  # nats of evidence: no threshold of anybody is higher, so that above it bounds will do
_LARGEST = np.finfo(np.float64).max
_TOLERANT = 0.5  # the same where that share alone may end a study, within a tolerance


class Stake(NamedTuple):
    """A bet that one rival is better, on its whole sample."""

    sample: Sample
    closed: bool = False
    """Whether readings at the cut count as below it: for rivals without priority over the arm (T3, ties)."""


class Leg(NamedTuple):
    """The gain of the bet on an arm while it led: its e-value at the end over the one at the start."""

    start: Sample
    end: Sample
    """The readings of `start` and those pulled since."""
    closed: bool = False
    known: dict[tuple[float, float, bool], float] | None = None
    """Where it is over: what it said, by cut, level and whether closed, as it was asked."""


class Portfolio(NamedTuple):
    """Who bets against an arm: a share of the capital on one rival's whole sample, the rest from leg to leg."""

    whole: Stake | None
    log_whole: float = 0.0
    legs: tuple[Leg, ...] = ()
    log_legs: float = -math.inf


class Evidence(NamedTuple):
    """The least log-evidence over all cuts, the cut, and how many readings of the judged arm are below it."""

    log_value: float
    rank: int
    cut: float = math.nan


Term = Callable[
    [Floats, "float | NDArray[Any]", float], Floats
]  # (count in the null's favor, n, level) -> log-evidence


Lift = Callable[[Floats], Floats]
"""A nondecreasing map of the judged arm's readings, so that an order is judged up to a shift (evidence T7)."""


def mixture_term(prior: Prior = DEFAULT_PRIOR) -> Term:
    """Return one arm's log-evidence for data that may have been looked at (audit 2.C)."""
    return partial(log_mixture, prior=prior)


def fixed_term(count: Floats, n: float | NDArray[Any], level: float) -> Floats:
    """Return one arm's -log p for a number of readings fixed in advance (evidence section 11)."""
    if level <= 0:
        return np.zeros(np.shape(count))
    tail = special.bdtr(np.asarray(count, dtype=np.float64), n, level)
    return -np.log(np.maximum(tail, 1e-300))  # a floor on p is a floor on the evidence: conservative


@dataclass(frozen=True, slots=True)
class _Cuts:
    """The product as a function of the cut.

    Its parts at some cuts are the rows of one array, as logarithms: what the judged arm's own readings say, what
    the bet on a whole sample says and, where there are legs, what these said at their ends and at their starts.
    The higher the cut, the higher the first part and the lower all others; the last divides.
    """

    own: Sample
    rivals: Portfolio
    levels: Levels
    term: Term
    lift: Lift | None = None
    """What is done to the judged arm's readings, at the cuts that are looked at only."""

    @classmethod
    def of(cls, own: Sample, rivals: Portfolio, levels: Levels, term: Term, lift: Lift | None) -> "_Cuts":
        if lift is not None and (rivals.legs or isinstance(own, Binned)):  # these need all readings changed
            return cls(own.mapped(lift), rivals, levels, term)
        return cls(own.settled(), rivals, levels, term, lift)

    def at_ranks(self, ranks: NDArray[np.intp]) -> Floats:
        """Return the parts at the cuts just below the judged arm's X_(r+1), or below its bucket r."""
        values = self.own.values
        beyond = ranks >= values.size
        cuts = values[np.minimum(ranks, values.size - 1)] if values.size else np.full(ranks.shape, np.inf)
        return self._parts(self.own.size - self.own.passed(ranks) + self.own.unknown, self.lifted(cuts), beyond)

    def lifted(self, cuts: Floats) -> Floats:
        """Return readings of the judged arm as they are compared."""
        return cuts if self.lift is None else self.lift(cuts)

    def at(self, cuts: Floats) -> Floats:
        """Return the parts at any cuts."""
        return self._parts(self.own.above(cuts), cuts, np.zeros(cuts.shape, dtype=bool))

    def _parts(self, above: NDArray[np.intp], cuts: Floats, beyond: NDArray[np.bool_]) -> Floats:
        whole, _, legs, _ = self.rivals
        bets = [(whole.sample, whole.closed, 0)] if whole else []
        bets += [(leg.end, leg.closed, 0) for leg in legs]
        bets += [(leg.start, leg.closed, leg.start.pending) for leg in legs]  # what is out hurts nowhere: T5
        counts, sizes = [above], [[self.own.n]]
        for sample, closed, out in bets:
            counts.append(np.where(beyond, _all_below(sample), sample.below(cuts, closed=closed)) - out)
            sizes.append([sample.n])
        terms = self._terms(np.array(counts, dtype=np.float64), np.array(sizes))
        if whole and not legs:
            return terms
        ends, starts = terms[len(terms) - 2 * len(legs) : len(terms) - len(legs)], terms[len(terms) - len(legs) :]
        bet = terms[1] if whole else np.zeros(cuts.shape)
        return np.array([terms[0], bet, ends.sum(axis=0), starts.sum(axis=0)])

    def _terms(self, counts: Floats, sizes: NDArray[Any]) -> Floats:
        """Return the evidence of the first row at one level and that of the others at the other."""
        low, high = self.levels
        if low == high:
            return self.term(counts, sizes, low)
        return np.concatenate((self.term(counts[:1], sizes[:1], high), self.term(counts[1:], sizes[1:], low)))

    def bounded(self, low: Floats, high: Floats) -> Floats:
        """Return what the product is at least, at all cuts from a low to a high one; at one cut, what it is."""
        rivals = self.rivals
        others: Floats | float
        if not rivals.legs and rivals.log_legs == -math.inf:
            others = high[1] + rivals.log_whole  # spare the sum, and its rounding
        else:
            others = high[2] - low[3] + rivals.log_legs if len(low) > 2 else rivals.log_legs  # evidence T5
            if rivals.whole is not None:
                others = np.logaddexp(others, high[1] + rivals.log_whole)
        found: Floats = low[0] + others
        return found

    def inside(self, ranks: NDArray[np.intp]) -> Floats:
        """Return the cuts to be looked at between X_(r) and X_(r+1), for each of these ranks r.

        Passing a reading raises the evidence only if a leg starts with it: the cut at it, before it is passed. If
        it counts as below the cut that is at it, the cut before is just below (evidence section 11).
        """
        found = [np.empty(0)]
        for start, _, closed, _ in self.rivals.legs:
            early = start.values[start.censored :]  # censored readings are below every cut
            early = np.nextafter(early, -np.inf) if closed else early
            found.append(early[np.isin(self.own.count(early), ranks)])
        return np.unique(np.concatenate(found))


def _all_below(sample: Sample) -> int:
    return sample.size + sample.unknown


def _least(cuts: _Cuts, guess: int | None, enough: float | None = None) -> Evidence:
    """Return the minimum over all cuts: exact, or of counts in buckets a lower bound (extensions 4.1)."""
    own, whole = cuts.own, cuts.rivals.whole
    if not isinstance(own, Binned) or whole is None or not isinstance(whole.sample, Binned):
        return _searched(cuts, guess, enough)

    def bound(judged: Binned, rival: Binned) -> Evidence:
        rivals = cuts.rivals._replace(whole=whole._replace(sample=rival))
        found = _searched(_Cuts(judged, rivals, cuts.levels, cuts.term), None, enough)
        return found._replace(rank=int(judged.passed(np.array(found.rank))))

    low = bound(own.at_best(), whole.sample.at_worst())
    if own.asked is None or (own.exact and whole.sample.exact):
        return low
    bar = _MATTERS if enough is None else enough
    if low.log_value < bar:
        high = bound(own.at_worst(), whole.sample.at_best())
        if high.log_value >= (0 if enough is None else enough):
            _note_open(cuts, own, whole.sample, bar if enough is not None else min(bar, high.log_value))
    return low


def _note_open(cuts: _Cuts, own: Binned, rival: Binned, bar: float) -> None:
    """Note the buckets in which the evidence may be below a bar that it is not below at their ends."""
    at_best = _Cuts(own.at_best(), cuts.rivals, cuts.levels, cuts.term)
    places = np.arange(own.body.size)
    edges = np.append(places[::_STRIDE], own.body.size)
    parts = at_best.at_ranks(edges)
    ruled_out = at_best.bounded(parts[:, :-1], parts[:, 1:]) >= bar
    places = places[~np.repeat(ruled_out, np.diff(edges))]
    parts = at_best.at_ranks(places)
    below = places[at_best.bounded(parts, parts) < bar]
    own.note(below)
    # a rival's bucket matters if a cut in such a bucket of the judged arm may split it
    first, last = rival.highs.searchsorted(own.body[below]), rival.body.searchsorted(own.highs[below], "right")
    steps = np.zeros(rival.body.size + 1, dtype=np.intp)
    np.add.at(steps, first, 1)
    np.subtract.at(steps, np.maximum(first, last), 1)
    rival.note(np.flatnonzero(np.cumsum(steps[:-1]) > 0))


def _searched(cuts: _Cuts, guess: int | None, enough: float | None) -> Evidence:
    """Return the exact minimum over all cuts by branch and bound.

    Between two cuts the product is at least the rising side at the low one times the falling sides at the high
    one, over what divides at the low one; stretches where that already exceeds the best value found are never
    looked into. Ranks inside a tie are no cuts of their own, but they only overstate: the first rank of the tie
    has the same portfolio and less own evidence. Who only asks whether the minimum is `enough` is answered sooner,
    by a value that lies on the same side of it.
    """
    values = cuts.own.values
    size = values.size
    grid = _edges(0, size) if guess is None else np.sort(np.append(_edges(0, size), min(guess, size)))
    parts = cuts.at_ranks(grid)
    best, rank = _smallest(cuts, parts, grid)
    steps = np.arange(_FANOUT + 1)
    gaps = [np.zeros(1, dtype=np.intp)]  # below the lowest reading
    while enough is None or best >= enough:
        left, right, low, high = grid[..., :-1], grid[..., 1:], parts[..., :-1], parts[..., 1:]
        still = cuts.bounded(low, high) < (best if enough is None else enough)
        gaps.append(right[still & (right - left == 1)])
        still &= right - left > 1
        if not still.any():
            break
        left, right, low, high = left[still, None], right[still, None], low[:, still, None], high[:, still, None]
        grid = left + (right - left) * steps // _FANOUT
        inner = cuts.at_ranks(grid[:, 1:-1].ravel())
        value, place = _smallest(cuts, inner, grid[:, 1:-1].ravel())
        best, rank = (value, place) if value < best else (best, rank)
        parts = np.concatenate((low, inner.reshape(len(low), -1, _FANOUT - 1), high), axis=2)
    least = Evidence(best, rank, float(cuts.lifted(values[rank : rank + 1])[0]) if rank < size else math.inf)
    if not cuts.rivals.legs or (enough is not None and best < enough):
        return least
    return _between(cuts, np.concatenate(gaps), least)


def _edges(first: int, last: int) -> NDArray[np.intp]:
    """Return the ranks to look at before all others between them."""
    pieces = max(1, min(last - first, _COARSE))
    return first + np.arange(pieces + 1) * (last - first) // pieces


def _smallest(cuts: _Cuts, parts: Floats, ranks: NDArray[np.intp]) -> tuple[float, int]:
    """Return the least value at some ranks, and the first rank that has it."""
    logs = cuts.bounded(parts, parts)
    at = int(np.argmin(logs))
    return float(logs[at]), int(ranks[at])


def _between(cuts: _Cuts, ranks: NDArray[np.intp], least: Evidence) -> Evidence:
    """Return the least of a value and of what cuts between two readings of the judged arm give (T5)."""
    inside = cuts.inside(ranks)
    while inside.size > _MANY:
        inside, least = _promising(cuts, inside, least)
    return _lower(cuts, inside, cuts.at(inside), least) if inside.size else least


def _lower(cuts: _Cuts, places: Floats, parts: Floats, least: Evidence) -> Evidence:
    """Return the least of a value and of those at some cuts."""
    logs = cuts.bounded(parts, parts)
    at = int(np.argmin(logs))
    if logs[at] >= least.log_value:
        return least
    return Evidence(float(logs[at]), int(cuts.own.count(places[at])), float(places[at]))


def _promising(cuts: _Cuts, inside: Floats, least: Evidence) -> tuple[Floats, Evidence]:
    """Return those of many rising cuts at which the product may be below the least known, after looking at some.

    Between two of them it is at least the rising part at the low one times the falling ones at the high one, over
    what divides at the low one, as between ranks. What was looked at is left out, so that fewer are left.
    """
    edges = np.append(np.arange(0, inside.size - 1, max(2, inside.size // _MANY)), inside.size - 1)
    parts = cuts.at(inside[edges])
    least = _lower(cuts, inside[edges], parts, least)
    below = cuts.bounded(parts[:, :-1], parts[:, 1:]) < least.log_value
    keep = np.append(np.repeat(below, np.diff(edges)), False)
    keep[edges] = False
    return inside[keep], least


def pair(
    better: Sample,
    worse: Sample,
    levels: Levels,
    *,
    closed: bool = False,
    prior: Prior = DEFAULT_PRIOR,
    guess: int | None = None,
    times: float = 1.0,
    enough: float | None = None,
    lift: Lift | None = None,
) -> Evidence:
    """Return the evidence that one arm is better than another: E_ij of evidence section 2, the least of all cuts.

    Parameters
    ----------
    closed
        Whether equal quantiles belong to the null too: `worse` has priority over `better` (T3, ties).
    guess
        A rank of `worse` near the minimum, if one is known: saves time, never changes the value.
    times
        As if every reading had come so many times: a forecast, not evidence, unless it is 1.
    enough
        For callers who only ask whether the evidence reaches this: the value returned is then on the right side
        of it, found sooner, and need not be the minimum.
    lift
        Changes the readings of `worse`: up to which shift the order is judged.
    """
    term = _repeated(mixture_term(prior), times)
    return _least(_Cuts.of(worse, Portfolio(Stake(better, closed)), levels, term, lift), guess, enough)


def _repeated(term: Term, times: float) -> Term:
    if times == 1:
        return term
    return lambda count, n, level: term(np.floor(times * count), (times * np.asarray(n)).astype(np.int64), level)


def fixed_pair(
    better: Sample,
    worse: Sample,
    levels: Levels,
    *,
    closed: bool = False,
    times: float = 1.0,
    enough: float | None = None,
    lift: Lift | None = None,
) -> Evidence:
    """Return -log of a p-value against "worse is at least as good", for sizes fixed in advance.

    The product w of the two arms' tail probabilities has p-value w(1 - ln w), its supremum over cuts is a
    p-value (Fisher's product, evidence section 11). Compare with log((k - 1)/delta). Parameters as in `pair`.
    """
    term = _repeated(fixed_term, times)
    enough = None if enough is None else fisher_sum(enough)
    least = _least(_Cuts.of(worse, Portfolio(Stake(better, closed)), levels, term, lift), None, enough)
    return Evidence(float(fisher(least.log_value)), least.rank, least.cut)


class Leasts(NamedTuple):
    """Of each arm the least log-evidence, at which rank it was found, and where it may not be enough."""

    log_values: Floats
    ranks: NDArray[np.intp]
    spans: NDArray[np.intp]
    """The first and the last rank between which all ranks are where it is not, also if an arm is lifted less."""


def least_each(
    better: Sample,
    worse: Sequence[Sample],
    levels: Levels,
    *,
    closed: NDArray[np.bool_],
    term: Term,
    lift: Callable[[Floats, NDArray[np.intp]], Floats] | None = None,
    spans: NDArray[np.intp] | None = None,
    enough: float | None = None,
) -> Leasts:
    """Return the evidence of one rival against each of many arms: `pair`, searched in step.

    Parameters
    ----------
    closed
        By arm, as in `pair`.
    term
        `mixture_term()` or `fixed_term`; with the latter all evidence is a sum, as `fisher_sum` gives it.
    lift
        Changes readings, given those and of which arm each is.
    spans
        The first and the last rank of each arm to look at; all of them if None.
    """
    best, places = np.full(len(worse), np.inf), np.zeros(len(worse), dtype=np.intp)
    sizes, unknown = np.array([s.size for s in worse]), np.array([s.unknown for s in worse])
    drawn = np.array([[s.n for s in worse], [better.n] * len(worse)])

    def at(arms: NDArray[np.intp], ranks: NDArray[np.intp]) -> Floats:
        """Return what arms, in rising order, and their rivals say at some ranks, and remember the least."""
        cuts, beyond = np.full(ranks.size, np.inf), ranks >= sizes[arms]
        starts = np.searchsorted(arms, np.unique(arms))
        for first, end in zip(starts.tolist(), [*starts[1:].tolist(), ranks.size], strict=True):
            values = worse[arms[first]].values
            if values.size:
                cuts[first:end] = values.take(ranks[first:end], mode="clip")
        cuts = cuts if lift is None else lift(cuts, arms)
        below = better.below(cuts, closed=True) if closed.any() else better.below(cuts)
        if closed.any() and not closed.all():
            below = np.where(closed[arms], below, better.below(cuts))
        counts = np.array([(sizes + unknown)[arms] - ranks, np.where(beyond, _all_below(better), below)])
        counts = counts.astype(np.float64)
        if levels.low == levels.high:
            said = term(counts, drawn[:, arms], levels.low)
        else:
            said = np.array([term(c, n[arms], p) for c, n, p in zip(counts, drawn, levels[::-1], strict=True)])
        found = said.sum(axis=0)
        least = np.lexsort((found, arms))[starts]  # the first of each arm
        least = least[found[least] < best[arms[least]]]
        best[arms[least]], places[arms[least]] = found[least], ranks[least]
        return said

    spans = np.column_stack((np.zeros_like(sizes), sizes)) if spans is None else spans
    edges = [_edges(*span) for span in spans.tolist()]
    arms, ranks = np.repeat(np.arange(len(worse)), [e.size for e in edges]), np.concatenate(edges)
    said = at(arms, ranks)
    inside = arms[1:] == arms[:-1]
    arms, left, right = arms[1:][inside], ranks[:-1][inside], ranks[1:][inside]
    own, whole = said[0, :-1][inside], said[1, 1:][inside]
    still = own + whole < (best[arms] if enough is None else enough)
    open_spans = np.column_stack((sizes, np.zeros_like(sizes)))
    np.minimum.at(open_spans[:, 0], arms[still], left[still])
    np.maximum.at(open_spans[:, 1], arms[still], right[still])
    steps = np.arange(1, _FANOUT)
    while True:
        bar = best if enough is None else np.where(best < enough, -np.inf, enough)
        still = (own + whole < bar[arms]) & (right - left > 1)
        if not still.any():
            return Leasts(best, places, open_spans)
        arms, left, right, own, whole = (part[still] for part in (arms, left, right, own, whole))
        inner = left[:, None] + (right - left)[:, None] * steps // _FANOUT
        said = at(np.repeat(arms, steps.size), inner.ravel()).reshape(2, *inner.shape)
        arms = np.repeat(arms, _FANOUT)
        left, right = np.column_stack((left, inner)).ravel(), np.column_stack((inner, right)).ravel()
        own = np.column_stack((own, said[0])).ravel()
        whole = np.column_stack((said[1], whole)).ravel()


def most_below(n: int, level: float, own: Floats, enough: float, *, term: Term) -> NDArray[np.intp]:
    """Return how many of a rival's n readings may be below a cut, so that the evidence is enough; -1 if none.

    Tangents find it: what the rival says falls and is convex in the count, as the logarithm of a sum of powers
    is, and minus that of a binomial distribution function.

    Parameters
    ----------
    own
        What each of several judged arms says at the cut.
    """
    spread, missing = n * max(0.0, level * (1 - level)), np.maximum(enough - own, 0.0)
    count = np.floor(level * n - np.sqrt(2 * missing * spread))  # a guess
    for _ in range(_TANGENTS):
        here, after = own + term(np.maximum(0.0, (count, count + 1)), n, level)
        if ((here >= enough) & (after < enough)).all():
            return count.astype(np.intp)
        steps = np.floor((enough - here) / np.minimum(after - here, -_FLAT))
        count = np.clip(count + steps, 0, n - 1)

    def holds(count: NDArray[np.intp]) -> NDArray[np.bool_]:
        return own + term(np.maximum(count, 0.0), n, level) >= enough  # none is -1 but where a search is over

    return last_true_each(holds, np.full(own.shape, -1), np.full(own.shape, n + 1))


def at_rank(bet: Stake, worse: Sample, rank: int, *, term: Term) -> Callable[[Levels], float]:
    """Return what one rival and an arm say at the cut just below a reading, by levels: at least their evidence."""
    cut, rival = worse.at(rank + 1), bet.sample
    below = _all_below(rival) if rank >= worse.size else int(rival.below(cut, closed=bet.closed))
    counts = np.array([worse.size - rank + worse.unknown, below], dtype=np.float64)
    sizes = np.array([worse.n, rival.n])

    def said(levels: Levels) -> float:
        low, high = levels
        if low == high:
            return float(term(counts, sizes, low).sum())
        return float(term(counts[0], sizes[0], high) + term(counts[1], sizes[1], low))

    return said


def fisher(log_product: float | Floats) -> Floats:
    """Return -log of the p-value of a product of two tail probabilities, from -log of the product."""
    total: Floats = np.maximum(0.0, log_product)
    return total - np.log1p(np.minimum(total, _LARGEST))  # -log(w (1 - ln w)), w = e^-total: evidence section 11


def fisher_sum(log_evidence: float) -> float:
    """Return the t >= 0 with t - log(1 + t) = log_evidence, the sum of two -log p needed (`fixed_pair`)."""
    return -float(special.lambertw(-math.exp(-log_evidence - 1), -1).real) - 1 if log_evidence > 0 else 0.0


def uniform_share(*, tolerant: bool) -> float:
    """Return the share of the capital that is on the leader's whole sample (evidence T5)."""
    return _TOLERANT if tolerant else _UNIFORM


def portfolio(k: int, whole: Stake | None, legs: Sequence[Leg], *, tolerant: bool = False) -> Portfolio:
    """Return the portfolio of evidence T5 against one arm.

    Parameters
    ----------
    k
        Number of arms, the judged one included.
    whole
        The present leader; None if that is the judged arm, whose share is then forgone (conservative).
    legs
        What was won and lost with rivals of the judged arm while they led, one after the other.
    tolerant
        Whether the study may end within a tolerance, by the bet on whole samples alone, which then gets more.
    """
    if k <= 2:
        return Portfolio(whole)
    uniform = uniform_share(tolerant=tolerant)
    return Portfolio(whole, math.log(uniform / (k - 1)), tuple(legs), math.log1p(-uniform))


def pooled(
    judged: Sample,
    rivals: Portfolio,
    levels: Levels,
    *,
    prior: Prior = DEFAULT_PRIOR,
    guess: int | None = None,
    enough: float | None = None,
    lift: Lift | None = None,
) -> Evidence:
    """Return log W_i, the evidence that the judged arm is not the best, minimized over all cuts (evidence T5)."""
    return _least(_Cuts.of(judged, rivals, levels, mixture_term(prior), lift), guess, enough)


def pooled_at(
    judged: Sample, rivals: Portfolio, levels: Levels, *, cut: float, prior: Prior = DEFAULT_PRIOR
) -> float:
    """Return log W_i at one cut: an upper bound of the evidence, cheap."""
    whole, log_whole, legs, log_legs = rivals
    own = log_mixture_once(int(judged.above(cut)), judged.n, levels.high, prior)
    bet = -math.inf if whole is None else log_whole + _said(whole.sample, whole.closed, cut, levels.low, prior)
    if not legs and log_legs == -math.inf:
        return own + bet
    followed = log_legs + sum(_leg_at(leg, cut, levels.low, prior) for leg in legs)
    return own + float(np.logaddexp(followed, bet))  # evidence T5


def _leg_at(leg: Leg, cut: float, level: float, prior: Prior) -> float:
    """Return what a leg says at a cut; one that is over knows it once it was asked."""
    known, key = leg.known, (cut, level, leg.closed)
    if known is not None and key in known:
        return known[key]
    start = log_mixture_once(  # what is out hurts nowhere: T5
        int(leg.start.below(cut, closed=leg.closed)) - leg.start.pending, leg.start.n, level, prior
    )
    value = _said(leg.end, leg.closed, cut, level, prior) - start
    if known is not None:
        known[key] = value
    return value


def _said(sample: Sample, closed: bool, cut: float, level: float, prior: Prior) -> float:
    return log_mixture_once(int(sample.below(cut, closed=closed)), sample.n, level, prior)
