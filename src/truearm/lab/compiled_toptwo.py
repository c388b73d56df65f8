"""`policies.toptwo`, compiled: the same decisions from the same readings, function by function.

Read it next to the policy, which gives the reasons. For speed, sorted readings are merged in place, the evidence
of past legs at a remembered cut is cached, and the search for the least cut halves ranges of ranks.
"""
# ruff: noqa: PLR0917, SIM110 - compiled functions take no keyword-only arguments and no generators

import math
from typing import NamedTuple

import numpy as np

from truearm.evidence import levels
from truearm.lab.kernels import (
    Floats,
    Ints,
    MixtureTable,
    at_rank,
    copy,
    count,
    entry,
    inline,
    jit,
    log_mixture,
    merge,
    rank_at_least,
    view,
)
from truearm.policies import toptwo as policy
from truearm.policies.toptwo import SWITCH, TIE

divergence, split = jit(levels.divergence), jit(policy.split)

RUNNING, SHORT, EXHAUSTED, DECIDED, TOLERABLE, FUTILE = range(6)

STACK = 128  # ranges open at a time: a range of ranks can be halved 63 times


class Tables(NamedTuple):
    """The e-values at the levels of the evidence, and at their complements for the futility check."""

    low: MixtureTable
    high: MixtureTable
    not_low: MixtureTable
    not_high: MixtureTable


class Rules(NamedTuple):
    """What stays the same during a run."""

    pooled: bool
    """Whether one portfolio bets against each arm; two arms are a pair in any case (evidence T5)."""
    log_whole: float
    """Share of the capital bet on the leader's whole sample."""
    log_legs: float
    """Share that follows the leader."""
    certified: bool
    level: float
    log_threshold: float
    tolerance: float
    log_bar: float
    """Of `bounds.sequential_rank`, for the futility check."""
    stale: float
    futility: float
    max_pulls: int


class Work(NamedTuple):
    """Everything a run writes to."""

    tape: Floats
    """[arm, pull]: the readings of each arm, as many as were drawn."""
    values: Floats
    """[side, arm, rank]: the readings pulled, sorted; merging moves them from one side to the other."""
    past: Floats
    """Sorted readings of arms at the start and at the end of each time they were followed, one after the other."""
    legs: Ints
    """Columns as named below, one row for each time that an arm was followed."""
    ints: Ints
    """Rows as named below, one column per arm."""
    reals: Floats
    """Rows as named below, one column per arm."""
    run: Ints
    """Leader, how often an arm was followed, how much of `past` is used."""
    due: Floats
    """The numbers of pulls at which to check futility, and to follow another arm."""
    stack: Ints
    """Ends of the ranges of ranks still to search."""
    bounds: Floats
    """[range, end]: the parts of the evidence at the ends of each range."""


(
    SIDE,  # where the sorted readings are
    ROOM,  # how many readings are on the tape
    N,
    SIZE,  # readings that are not NaN
    ALIVE,
    CARRY_LEADER,
    BATCH,
    UPPER,  # ranks of the futility check
    LOWER,
    LOOKED,  # whether the evidence is from this decision
) = range(10)
INTS = 10
(
    CUT,
    EVIDENCE,
    WEIGHED,
    MINIMIZED,
    CARRY,
    TOLERANT_CUT,
    PAST,  # what was won and lost at the cut, but for the last end, and what it belongs to
    PAST_CUT,
    PAST_COUNT,
    LOG_N,
) = range(10)
REALS = 10
LEADER, FOLLOWED, USED = range(3)
NEXT_FUTILITY, NEXT_SWITCH = range(2)
ARM, FROM, FROM_SIZE, FROM_N, TO, TO_SIZE, TO_N = range(7)


@entry
def advance(work: Work, rules: Rules, tables: Tables) -> int:
    """Run until the end, or until readings run out; return one of the codes above."""
    while True:
        total = after_batch(work)
        if total > rules.max_pulls:
            if work.run[FOLLOWED] > 0:
                test(work, rules, tables, everyone=True)
                if may_be_futile(work, rules) and is_futile(work, rules, tables):
                    return FUTILE
            return EXHAUSTED
        if is_short(work, total):
            return SHORT
        take(work)
        status = decide(work, rules, tables, total)
        if status != RUNNING:
            return status


@jit
def after_batch(work: Work) -> int:
    """Return all pulls, the batch included."""
    total = 0
    for i in range(work.ints.shape[1]):
        total += work.ints[N, i] + work.ints[BATCH, i]
    return total


@jit
def is_short(work: Work, total: int) -> bool:
    """Return True if a tape is too short for the batch, or there is no room for the readings of a leg."""
    if work.run[USED] + total > work.past.size or work.run[FOLLOWED] == work.legs.shape[0]:
        return True
    for i in range(work.ints.shape[1]):
        if work.ints[N, i] + work.ints[BATCH, i] > work.ints[ROOM, i]:
            return True
    return False


@view
def readings(work: Work, arm: int) -> Floats:
    """Return the sorted readings of an arm."""
    return work.values[work.ints[SIDE, arm], arm, : work.ints[SIZE, arm]]


@inline
def take(work: Work) -> None:
    """Merge the readings of the batch."""
    for i in range(work.ints.shape[1]):
        if work.ints[BATCH, i] > 0:
            new = work.tape[i, work.ints[N, i] : work.ints[N, i] + work.ints[BATCH, i]]
            side = 1 - work.ints[SIDE, i]
            work.ints[SIZE, i] = merge(readings(work, i), new, work.values[side, i])
            work.ints[SIDE, i] = side
            work.ints[N, i] += work.ints[BATCH, i]
            work.reals[LOG_N, i] = math.log(work.ints[N, i])
            work.ints[BATCH, i] = 0


@jit
def decide(work: Work, rules: Rules, tables: Tables, pulls: int) -> int:
    """Choose the next batch or the end."""
    leader = best_looking(work, rules)
    if leader < 0:
        for i in range(work.ints.shape[1]):
            work.ints[BATCH, i] = work.ints[ALIVE, i]
        return FUTILE if is_futile(work, rules, tables) else RUNNING
    due = follow(work, leader, pulls) or leader != work.run[LEADER]
    work.run[LEADER] = leader
    rival = test(work, rules, tables, due)
    if rival < 0:
        return DECIDED
    if rules.tolerance > 0 and is_tolerable(work, rules, tables, rival):
        return TOLERABLE
    if pulls >= work.due[NEXT_FUTILITY]:
        work.due[NEXT_FUTILITY] = rules.futility * pulls
        if may_be_futile(work, rules) and is_futile(work, rules, tables):
            return FUTILE
    choose_batch(work, tables, rival)
    return RUNNING


@inline
def best_looking(work: Work, rules: Rules) -> int:
    """Return the arm with the best empirical quantile, ties by fewest readings below it, then by order."""
    best, top = -1, -math.inf
    for i in range(work.ints.shape[1]):
        size = work.ints[SIZE, i]
        if work.ints[ALIVE, i] == 0 or size == 0:
            continue
        rank = max(1, math.ceil(rules.level * work.ints[N, i] - 1e-9)) - missing(work, i)
        x = order_statistic(work, i, rank)
        if best < 0 or x > top or (x == top and middle(readings(work, i), x) < middle(readings(work, best), x)):
            best, top = i, x
    return best


@jit
def middle(values: Floats, x: float) -> float:
    """Return twice the share of readings below x, those at x counted half."""
    return float((count(values, x, False) + count(values, x, True)) / values.size)


@inline
def follow(work: Work, leader: int, pulls: int) -> bool:
    """Follow the leader from here on, with all its readings up to now behind it, if it is time to."""
    m = work.run[FOLLOWED]
    last = work.legs[m - 1, ARM] if m > 0 else -1
    if leader == last or (last >= 0 and work.ints[ALIVE, last] and pulls < work.due[NEXT_SWITCH]):
        return False
    if last >= 0:
        keep(work, last, m - 1, TO)
    work.legs[m, ARM] = leader
    keep(work, leader, m, FROM)
    work.run[FOLLOWED] += 1
    work.due[NEXT_SWITCH] = SWITCH * pulls
    return True


@jit
def keep(work: Work, arm: int, m: int, where: int) -> None:
    """Keep the readings of an arm as they are now, as one end of a leg."""
    used, size = work.run[USED], work.ints[SIZE, arm]
    copy(readings(work, arm), work.past[used:])
    work.legs[m, where], work.legs[m, where + 1], work.legs[m, where + 2] = used, size, work.ints[N, arm]
    work.run[USED] += size


@jit
def test(work: Work, rules: Rules, tables: Tables, everyone: bool) -> int:
    """Reject arms with enough evidence against them at all cuts; return the strongest challenger, -1 if none."""
    leader = work.run[LEADER]
    for i in range(work.ints.shape[1]):
        work.ints[LOOKED, i] = 0
    for i in range(work.ints.shape[1]):
        if work.ints[ALIVE, i] and i != leader:
            pair = work.ints[N, leader] + work.ints[N, i]
            if everyone or pair >= rules.stale * work.reals[WEIGHED, i]:
                update_evidence(work, rules, tables, i)
    rival = challenger(work)
    while rival >= 0 and not work.ints[LOOKED, rival]:
        update_evidence(work, rules, tables, rival)
        rival = challenger(work)
    return rival


@jit
def update_evidence(work: Work, rules: Rules, tables: Tables, judged: int) -> None:
    """Recompute the evidence against one arm at its cut, and at all cuts if that may reject it."""
    work.ints[LOOKED, judged] = 1
    pair = work.ints[N, work.run[LEADER]] + work.ints[N, judged]
    work.reals[WEIGHED, judged] = pair
    if pair >= rules.stale * work.reals[MINIMIZED, judged]:
        refresh_cut(work, rules, tables, judged)
    else:
        work.reals[EVIDENCE, judged] = at_cut(work, rules, tables, judged)
    if work.reals[EVIDENCE, judged] >= rules.log_threshold:
        minimize(work, rules, tables, judged, rules.pooled)
        if work.reals[EVIDENCE, judged] >= rules.log_threshold:
            work.ints[ALIVE, judged] = 0


@jit
def at_cut(work: Work, rules: Rules, tables: Tables, judged: int) -> float:
    """Return the evidence against an arm at its remembered cut."""
    x, n, leader = work.reals[CUT, judged], work.ints[N, judged], work.run[LEADER]
    own = log_mixture(tables.high, n - below(work, judged, x), n)
    bet = whole(work, tables, leader, x, leader > judged, False)
    if not rules.pooled:
        return own + bet
    if work.reals[PAST_COUNT, judged] != work.run[FOLLOWED] or work.reals[PAST_CUT, judged] != x:
        starts, ends = legs(work, tables, judged, x, False)
        work.reals[PAST, judged] = ends - starts
        work.reals[PAST_COUNT, judged], work.reals[PAST_CUT, judged] = work.run[FOLLOWED], x
    return own + mix(rules, work.reals[PAST, judged] + last_end(work, tables, judged, x, False, bet), bet)


@jit
def below(work: Work, arm: int, x: float) -> int:
    """Return how many readings of an arm are below a cut; the others and the missing ones are above it."""
    return count(readings(work, arm), x, False)


@jit
def last_end(work: Work, tables: Tables, judged: int, x: float, beyond: bool, bet: float) -> float:
    """Return the evidence of the arm followed now against an arm at a cut; `bet` is that of the leader."""
    last = work.legs[work.run[FOLLOWED] - 1, ARM]
    if last == work.run[LEADER]:
        return bet
    return whole(work, tables, last, x, last > judged, beyond) if last != judged else 0.0


@jit
def missing(work: Work, arm: int) -> int:
    """Return how many readings of an arm are missing; they count on the side that hurts (evidence T8)."""
    return int(work.ints[N, arm] - work.ints[SIZE, arm])


@jit
def whole(work: Work, tables: Tables, arm: int, x: float, closed: bool, beyond: bool) -> float:
    """Return the log-evidence of an arm's whole sample at a cut, or at the one beyond all readings."""
    return weigh(tables, readings(work, arm), work.ints[N, arm], x, closed, beyond)


@jit
def weigh(tables: Tables, values: Floats, n: int, x: float, closed: bool, beyond: bool) -> float:
    """Return the log-evidence of n pulls with these sorted readings at a cut."""
    counted = values.size if beyond else count_below(values, x, closed)
    return log_mixture(tables.low, counted + n - values.size, n)


@jit
def count_below(values: Floats, x: float, closed: bool) -> int:
    """Return how many readings are below a cut; censored ones are below every cut (evidence T8)."""
    counted = count(values, x, closed)
    if values.size > 0 and values[0] == -math.inf:
        counted = max(counted, count(values, -math.inf, True))
    return counted


@jit
def legs(work: Work, tables: Tables, judged: int, x: float, beyond: bool) -> tuple[float, float]:
    """Return the evidence of the starts and ends of all legs, except the last end, against an arm at a cut."""
    ends, starts, last = 0.0, 0.0, work.run[FOLLOWED] - 1
    for m in range(last + 1):
        row = work.legs[m]
        arm = row[ARM]
        if arm != judged:
            closed = arm > judged
            start = work.past[row[FROM] : row[FROM] + row[FROM_SIZE]]
            starts += weigh(tables, start, row[FROM_N], x, closed, beyond)
            if m < last:
                end = work.past[row[TO] : row[TO] + row[TO_SIZE]]
                ends += weigh(tables, end, row[TO_N], x, closed, beyond)
    return starts, ends


@jit
def mix(rules: Rules, followed: float, bet_on_whole: float) -> float:
    """Return the log of the rivals' portfolio (evidence T5)."""
    one, other = followed + rules.log_legs, bet_on_whole + rules.log_whole
    top = max(one, other)
    return top + math.log1p(math.exp(min(one, other) - top))


class Parts(NamedTuple):
    """The evidence against an arm at a cut: its own readings, the starts of legs, the leader, the ends of legs."""

    own: float
    starts: float
    whole: float
    ends: float


@jit
def look_at(work: Work, tables: Tables, judged: int, own: float, x: float, beyond: bool, followed: bool) -> Parts:
    """Return the evidence of the leader, and of all arms that were followed, against an arm at a cut."""
    leader = work.run[LEADER]
    bet = whole(work, tables, leader, x, leader > judged, beyond)
    if not followed:
        return Parts(own, 0.0, bet, 0.0)
    starts, ends = legs(work, tables, judged, x, beyond)
    return Parts(own, starts, bet, ends + last_end(work, tables, judged, x, beyond, bet))


@jit
def at_reading(work: Work, tables: Tables, judged: int, rank: int, tolerance: float, followed: bool) -> Parts:
    """Return the evidence against an arm at the cut just below one of its readings.

    With a tolerance, by which the judged arm is made worse, only the leader's whole sample counts, open for all.
    """
    n, beyond = work.ints[N, judged], rank >= work.ints[SIZE, judged]
    x = math.inf if beyond else readings(work, judged)[rank]
    own = log_mixture(tables.high, n - rank, n)
    if tolerance > 0:
        return Parts(own, 0.0, whole(work, tables, work.run[LEADER], x - tolerance, False, beyond), 0.0)
    return look_at(work, tables, judged, own, x, beyond, followed)


@jit
def bound(rules: Rules, low: Parts, high: Parts, followed: bool) -> float:
    """Return a lower bound of the product between two cuts; at one cut, its value."""
    return low.own + (mix(rules, high.ends - low.starts, high.whole) if followed else high.whole)


@inline
def refresh_cut(work: Work, rules: Rules, tables: Tables, judged: int) -> None:
    """Search again for the cut with the least evidence of the pair of leader and arm.

    It is a function of its own because numba makes slower code without it: a pull takes a quarter longer.
    """
    minimize(work, rules, tables, judged, False)
    if rules.pooled:
        work.reals[EVIDENCE, judged] = at_cut(work, rules, tables, judged)


@jit
def minimize(work: Work, rules: Rules, tables: Tables, judged: int, follow_: bool) -> None:
    """Find the least evidence against an arm, of the leader or of all followed, and remember it and its cut."""
    guess = -1
    if not math.isnan(work.reals[CUT, judged]):
        guess = below(work, judged, work.reals[CUT, judged])
    value, cut = least(work, rules, tables, judged, guess, 0.0, follow_)
    work.reals[EVIDENCE, judged], work.reals[CUT, judged] = value, cut
    work.reals[MINIMIZED, judged] = work.ints[N, work.run[LEADER]] + work.ints[N, judged]


@jit
def least(
    work: Work, rules: Rules, tables: Tables, judged: int, guess: int, tolerance: float, followed: bool
) -> tuple[float, float]:
    """Return the least evidence over all cuts and its cut, as `search.least`: of the leader, or of all followed.

    Ranges of ranks are halved, first at the guess. The lowest rank of equal minima counts.
    """
    n, size, stack, bounds = work.ints[N, judged], work.ints[SIZE, judged], work.stack, work.bounds
    best, rank_of_best, inner, cut = math.inf, 0, math.inf, math.inf
    for end in range(2):
        parts = at_reading(work, tables, judged, size * end, tolerance, followed)
        value = bound(rules, parts, parts, followed)
        if value < best:
            best, rank_of_best = value, size * end
        store(bounds[0, end], parts)
    if followed:
        inner, cut = between(work, rules, tables, judged, 0, inner, cut)
    stack[0, 0], stack[0, 1] = 0, size
    depth = 1 if size > 0 else 0
    while depth > 0:
        depth -= 1
        low, high = stack[depth]
        lower, upper = load(bounds[depth, 0]), load(bounds[depth, 1])
        if bound(rules, lower, upper, followed) >= best:
            continue
        if high - low == 1:
            lower = Parts(log_mixture(tables.high, n - high, n), lower.starts, lower.whole, lower.ends)
            if followed and bound(rules, lower, upper, True) < best:
                inner, cut = between(work, rules, tables, judged, high, inner, cut)
            continue
        half = guess if low < guess < high else (low + high) // 2
        parts = at_reading(work, tables, judged, half, tolerance, followed)
        value = bound(rules, parts, parts, followed)
        if value < best or (value == best and half < rank_of_best):
            best, rank_of_best = value, half
        stack[depth, 1], stack[depth + 1, 0], stack[depth + 1, 1] = half, half, high
        store(bounds[depth, 1], parts)
        store(bounds[depth + 1, 0], parts)
        store(bounds[depth + 1, 1], upper)
        depth += 2
    if inner < best:
        return inner, cut
    return best, readings(work, judged)[rank_of_best] if rank_of_best < size else math.inf


@jit
def store(row: Floats, parts: Parts) -> None:
    """Write the parts at one end of a range."""
    row[0], row[1], row[2], row[3] = parts


@jit
def load(row: Floats) -> Parts:
    """Return the parts at one end of a range."""
    return Parts(row[0], row[1], row[2], row[3])


@jit
def between(
    work: Work, rules: Rules, tables: Tables, judged: int, rank: int, best: float, cut: float
) -> tuple[float, float]:
    """Return the least of a value and of what cuts between X_(r) and X_(r+1) give, with its cut."""
    values, n = readings(work, judged), work.ints[N, judged]
    own = log_mixture(tables.high, n - rank, n)
    low, high = at_rank(values, rank), at_rank(values, rank + 1)
    for m in range(work.run[FOLLOWED]):
        arm = work.legs[m, ARM]
        if arm == judged:
            continue
        past = work.past[work.legs[m, FROM] : work.legs[m, FROM] + work.legs[m, FROM_SIZE]]
        for i in range(count(past, low, True), past.size):
            x = past[i]
            if rank < values.size and (x > high or (x == high and arm < judged)):
                break
            if i > 0 and x == past[i - 1]:
                continue
            x = np.nextafter(x, -math.inf) if arm > judged else x
            if x == low and rank > 0:
                continue
            parts = look_at(work, tables, judged, own, x, False, True)
            value = bound(rules, parts, parts, True)
            if value < best or (value == best and x < cut):
                best, cut = value, x
    return best, cut


@jit
def challenger(work: Work) -> int:
    """Return the rival with the least score, the first if several tie; -1 if none is left."""
    least_score = math.inf
    for i in range(work.ints.shape[1]):
        if work.ints[ALIVE, i] and i != work.run[LEADER]:
            least_score = min(least_score, score(work, i))
    for i in range(work.ints.shape[1]):
        rival = work.ints[ALIVE, i] and i != work.run[LEADER]
        if rival and score(work, i) <= least_score + TIE:
            return i
    return -1


@jit
def score(work: Work, i: int) -> float:
    """Return the positive evidence against a rival plus the log of its pulls."""
    return float(max(work.reals[EVIDENCE, i], 0.0) + work.reals[LOG_N, i])


@jit
def is_tolerable(work: Work, rules: Rules, tables: Tables, rival: int) -> bool:
    """Return True if no remaining arm is better than the leader by more than the tolerance."""
    if not tolerates(work, rules, tables, rival):
        return False
    for i in range(work.ints.shape[1]):
        left = work.ints[ALIVE, i] and i not in (rival, work.run[LEADER])
        if left and not tolerates(work, rules, tables, i):
            return False
    return True


@jit
def tolerates(work: Work, rules: Rules, tables: Tables, judged: int) -> bool:
    """Return True if an arm is not better than the leader by more than the tolerance; try its last cut first."""
    share = rules.log_whole if rules.pooled else 0.0
    guess = -1
    if not math.isnan(work.reals[TOLERANT_CUT, judged]):
        guess = below(work, judged, work.reals[TOLERANT_CUT, judged])
        parts = at_reading(work, tables, judged, guess, rules.tolerance, False)
        if bound(rules, parts, parts, False) + share < rules.log_threshold:
            return False
    value, work.reals[TOLERANT_CUT, judged] = least(work, rules, tables, judged, guess, rules.tolerance, False)
    return value + share >= rules.log_threshold


@jit
def may_be_futile(work: Work, rules: Rules) -> bool:
    """Return True if more pulls may be futile: without a declared contamination only because of censored arms."""
    if rules.certified:
        return True
    for i in range(work.ints.shape[1]):
        if work.ints[SIZE, i] < work.ints[N, i]:
            return True
        if work.ints[SIZE, i] > 0 and readings(work, i)[0] == -math.inf:
            return True
    return False


@jit
def is_futile(work: Work, rules: Rules, tables: Tables) -> bool:
    """Return True if unlimited pulls like these could certify no remaining arm, as `Judge.is_futile`."""
    k = work.ints.shape[1]
    for i in range(k):
        work.ints[UPPER, i] = rank_at_least(tables.not_low, work.ints[N, i], rules.log_bar)
        work.ints[LOWER, i] = rank_at_least(tables.not_high, work.ints[N, i], rules.log_bar)
    for i in range(k):
        if work.ints[ALIVE, i] and not is_overlapped(work, rules, i):
            return False
    return True


@jit
def is_overlapped(work: Work, rules: Rules, arm: int) -> bool:
    """Return True if an arm is censored, or another arm's lower end is above its upper end."""
    upper = order_statistic(work, arm, work.ints[SIZE, arm] + 1 - work.ints[UPPER, arm])
    if upper == -math.inf:
        return True
    for j in range(work.ints.shape[1]):
        if j != arm and upper < order_statistic(work, j, work.ints[LOWER, j]) - rules.tolerance:
            return True
    return False


@jit
def order_statistic(work: Work, arm: int, rank: int) -> float:
    """Return an arm's reading at a rank; ranks outside are infinities."""
    return at_rank(readings(work, arm), rank)


@inline
def choose_batch(work: Work, tables: Tables, rival: int) -> None:
    """Write the next batch, split by what each arm's pulls add at the least convincing cut."""
    leader, x = work.run[LEADER], work.reals[CUT, rival]
    head, tail = float(work.ints[N, leader]), float(work.ints[N, rival])
    counted = count_below(readings(work, leader), x, leader > rival) + missing(work, leader)
    gain = head * divergence(counted / head, tables.low.p0)
    other = tail * divergence((tail - below(work, rival, x)) / tail, tables.high.p0)
    owed = work.reals[CARRY, rival] if work.ints[CARRY_LEADER, rival] == leader else 0.0
    pulls, for_leader, owed = split(head, tail, gain, other, owed, work.ints.shape[1])
    work.ints[CARRY_LEADER, rival] = leader
    work.reals[CARRY, rival] = owed
    work.ints[BATCH, leader] = for_leader
    work.ints[BATCH, rival] = pulls - for_leader
