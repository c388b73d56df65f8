"""`policies.toptwo`, compiled: the same decisions from the same readings, function by function.

Read it beside the policy, which says why. Differences are of speed alone: sorted readings are merged in place,
values at remembered cuts are kept until a count changes, and the search for the least cut visits few ranks.
"""
# ruff: noqa: PLR0912, PLR0915, PLR0917, SIM110 - one search is one function; compiled functions take no keyword-only arguments and no generators

import math
from typing import NamedTuple

import numpy as np

from truearm.evidence import levels
from truearm.lab.kernels import (
    Floats,
    Ints,
    MixtureTable,
    at_rank,
    below,
    compiled,
    copied,
    door,
    log_mixture,
    merge,
    once,
    rank_at_least,
    up_to,
)
from truearm.policies import toptwo as policy
from truearm.policies.toptwo import GROWTH, SWITCH, TIE

divergence, split = compiled(levels.divergence), compiled(policy.split)

RUNNING, SHORT, EXHAUSTED, DECIDED, TOLERABLE, FUTILE = range(6)

COARSE, _FANOUT = 32, 8  # the tree of ranks of cuts._least, so that equal minima are told apart alike
STACK = 1024


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
    """Share of the capital that is on the leader's whole sample."""
    log_legs: float
    """Share that follows the leader."""
    certified: bool
    balanced: bool
    level: float
    log_threshold: float
    tolerance: float
    log_bar: float
    """Of `bounds.sequential_rank`, for the check that more pulls could help at all."""
    stale: float
    futility: float
    max_pulls: int
    worst: bool
    """Whether missing readings count at their worst (evidence T8)."""
    refuted: int
    """How many readings of an arm, all of them missing, refute that they are independent of their values."""


class Desk(NamedTuple):
    """Everything a run writes to."""

    tape: Floats
    """Readings of all arms in order of pull, a stretch for each arm."""
    values: Floats
    """The sorted readings."""
    past: Floats
    """Sorted readings of arms as of when they were first followed and no longer followed, one after the other."""
    legs: Ints
    """Columns as named below, one row for each time that an arm was followed."""
    ints: Ints
    """Rows as named below, one column per arm."""
    reals: Floats
    """Rows as named below, one column per arm."""
    bets: Floats
    """[arm, judged arm]: evidence of the arm's whole sample, the count and the cut it belongs to."""
    run: Ints
    """Leader, how often an arm was followed, decisions made, how much of `past` is used."""
    due: Floats
    """From how many pulls on to ask whether more of them could help, and to follow another arm."""
    sides: Floats
    """What was found at the cut that is looked at; places as named below."""
    edges: Ints
    """The coarse ranks of a search."""
    stack: Ints
    """Stretches that a search has yet to look into: ends among the points of a layer, the layer, where it lies."""
    bounds: Floats
    """What each stretch holds: own evidence and starts at its low end, whole samples and ends at its high one."""


(
    FIRST,  # where the stretch of the tape begins; that of sorted readings is twice as long and as far
    START,  # where the sorted readings begin, in one half of their stretch or in the other
    ROOM,  # how many readings are on the tape
    N,
    SIZE,  # readings that are not NaN
    ALIVE,
    CARRY_LEADER,
    BATCH,
    UPPER,  # ranks of the futility check and the count they belong to
    LOWER,
    RANKED_N,
    LOOKED,  # whether the evidence is of this decision
) = range(12)
INTS = 12
(
    CUT,
    EVIDENCE,
    WEIGHED,
    MINIMIZED,
    CARRY,
    TOLERANT_CUT,
    MINE,
    MINE_N,
    MINE_CUT,
    PAST,  # what was won and lost at the cut, but for the last end, and what it belongs to
    PAST_CUT,
    PAST_COUNT,
    LOG_N,
) = range(13)
REALS = 13
LEADER, FOLLOWED, DECISIONS, USED = range(4)
BET, BET_N, BET_CUT = range(3)
NEXT_FUTILITY, NEXT_SWITCH = range(2)
WHOLE, ENDS, STARTS = range(3)
ARM, FROM, FROM_SIZE, FROM_N, TO, TO_SIZE, TO_N = range(7)


@door
def advance(desk: Desk, rules: Rules, tables: Tables, decisions: int) -> int:
    """Run until the end, until readings are short, or until so many more decisions are made."""
    for _ in range(decisions):
        total = after_batch(desk)
        if total > rules.max_pulls:
            if desk.run[FOLLOWED] > 0:
                test(desk, rules, tables, everyone=True)
                if tried(desk, rules) and futile(desk, rules, tables):
                    return FUTILE
            return EXHAUSTED
        if is_short(desk, total):
            return SHORT
        take(desk)
        desk.run[DECISIONS] += 1
        status = decide(desk, rules, tables, total)
        if status != RUNNING:
            return status
    return RUNNING


@compiled
def after_batch(desk: Desk) -> int:
    """Return all pulls, the batch included."""
    total = 0
    for i in range(desk.ints.shape[1]):
        total += desk.ints[N, i] + desk.ints[BATCH, i]
    return total


@compiled
def is_short(desk: Desk, total: int) -> bool:
    """Tell whether a tape is too short for the batch, or there is no room for what an arm may leave behind."""
    if desk.run[USED] + total > desk.past.size or desk.run[FOLLOWED] == desk.legs.shape[0]:
        return True
    for i in range(desk.ints.shape[1]):
        if desk.ints[N, i] + desk.ints[BATCH, i] > desk.ints[ROOM, i]:
            return True
    return False


@once
def take(desk: Desk) -> None:
    """Merge the readings of the batch."""
    for i in range(desk.ints.shape[1]):
        if desk.ints[BATCH, i] > 0:
            first, room = desk.ints[FIRST, i], desk.ints[ROOM, i]
            at = first + desk.ints[N, i]
            other = 4 * first + room - desk.ints[START, i]
            new = desk.tape[at : at + desk.ints[BATCH, i]]
            desk.ints[SIZE, i] = merge(desk.values, desk.ints[START, i], desk.ints[SIZE, i], new, other)
            desk.ints[START, i] = other
            desk.ints[N, i] += desk.ints[BATCH, i]
            desk.reals[LOG_N, i] = math.log(desk.ints[N, i])
            desk.ints[BATCH, i] = 0


@compiled
def decide(desk: Desk, rules: Rules, tables: Tables, pulls: int) -> int:
    """Choose the next batch or the end."""
    leader = best_looking(desk, rules)
    if leader < 0:
        for i in range(desk.ints.shape[1]):
            if desk.ints[N, i] >= rules.refuted:
                return FUTILE
            desk.ints[BATCH, i] = desk.ints[ALIVE, i]
        return FUTILE if futile(desk, rules, tables) else RUNNING
    due = follow(desk, leader, pulls) or rules.balanced or leader != desk.run[LEADER]
    desk.run[LEADER] = leader
    rival = test(desk, rules, tables, due)
    if rival < 0:
        return DECIDED
    if rules.tolerance > 0 and tolerable(desk, rules, tables, rival):
        return TOLERABLE
    if pulls >= desk.due[NEXT_FUTILITY]:
        desk.due[NEXT_FUTILITY] = rules.futility * pulls
        if tried(desk, rules) and futile(desk, rules, tables):
            return FUTILE
    choose_batch(desk, rules, tables, rival)
    return RUNNING


@once
def best_looking(desk: Desk, rules: Rules) -> int:
    """Return the arm with the best empirical quantile, ties by fewest readings below it, then by order."""
    best, top = -1, -math.inf
    for i in range(desk.ints.shape[1]):
        size = desk.ints[SIZE, i]
        if desk.ints[ALIVE, i] == 0 or size == 0:
            continue
        bottom = desk.ints[N, i] - size if rules.worst else 0
        rank = max(1, math.ceil(rules.level * (size + bottom) - 1e-9)) - bottom
        x = order_statistic(desk, i, rank)
        if (
            best < 0
            or x > top
            or (x == top and middle(desk.values, desk.ints, i, x) < middle(desk.values, desk.ints, best, x))
        ):
            best, top = i, x
    return best


@compiled
def middle(values: Floats, ints: Ints, arm: int, x: float) -> float:
    """Return twice the share of an arm's readings below x, those at x counted half."""
    first, size = ints[START, arm], ints[SIZE, arm]
    return float((below(values, first, size, x) + up_to(values, first, size, x)) / size)


@once
def follow(desk: Desk, leader: int, pulls: int) -> bool:
    """Follow the leader from here on, with all its readings up to now behind it, if it is time to."""
    m = desk.run[FOLLOWED]
    last = desk.legs[m - 1, ARM] if m > 0 else -1
    if leader == last or (last >= 0 and desk.ints[ALIVE, last] and pulls < desk.due[NEXT_SWITCH]):
        return False
    if last >= 0:
        keep(desk, last, m - 1, TO)
    desk.legs[m, ARM] = leader
    keep(desk, leader, m, FROM)
    desk.run[FOLLOWED] += 1
    desk.due[NEXT_SWITCH] = SWITCH * pulls
    return True


@compiled
def keep(desk: Desk, arm: int, m: int, where: int) -> None:
    """Keep the readings of an arm as they are now, as one end of a leg."""
    used, size = desk.run[USED], desk.ints[SIZE, arm]
    copied(desk.values, desk.ints[START, arm], size, desk.past, used)
    desk.legs[m, where], desk.legs[m, where + 1], desk.legs[m, where + 2] = used, size, desk.ints[N, arm]
    desk.run[USED] += size


@compiled
def test(desk: Desk, rules: Rules, tables: Tables, everyone: bool) -> int:
    """Reject arms the evidence against which suffices at all cuts; return the strongest challenger, -1 if none."""
    leader = desk.run[LEADER]
    for i in range(desk.ints.shape[1]):
        desk.ints[LOOKED, i] = 0
    for i in range(desk.ints.shape[1]):
        if desk.ints[ALIVE, i] and i != leader:
            pair = desk.ints[N, leader] + desk.ints[N, i]
            if everyone or pair >= rules.stale * desk.reals[WEIGHED, i]:
                look(desk, rules, tables, i)
    rival = challenger(desk)
    while rival >= 0 and not desk.ints[LOOKED, rival]:
        look(desk, rules, tables, rival)
        rival = challenger(desk)
    return rival


@compiled
def look(desk: Desk, rules: Rules, tables: Tables, judged: int) -> None:
    """Weigh the evidence against one arm: at its cut, and at all if that may reject it."""
    desk.ints[LOOKED, judged] = 1
    pair = desk.ints[N, desk.run[LEADER]] + desk.ints[N, judged]
    desk.reals[WEIGHED, judged] = pair
    if pair >= rules.stale * desk.reals[MINIMIZED, judged]:
        renew(desk, rules, tables, judged)
    else:
        desk.reals[EVIDENCE, judged] = at_cut(desk, rules, tables, judged)
    if desk.reals[EVIDENCE, judged] >= rules.log_threshold:
        find(desk, rules, tables, judged, rules.pooled)
        if desk.reals[EVIDENCE, judged] >= rules.log_threshold:
            desk.ints[ALIVE, judged] = 0


@compiled
def at_cut(desk: Desk, rules: Rules, tables: Tables, judged: int) -> float:
    """Return the evidence against an arm at its remembered cut."""
    x, n, first = desk.reals[CUT, judged], desk.ints[N, judged], desk.ints[START, judged]
    if desk.reals[MINE_N, judged] != n or desk.reals[MINE_CUT, judged] != x:
        above = desk.ints[SIZE, judged] - below(desk.values, first, desk.ints[SIZE, judged], x)
        desk.reals[MINE, judged] = log_mixture(tables.high, above + lost(desk, rules, judged), n)
        desk.reals[MINE_N, judged], desk.reals[MINE_CUT, judged] = n, x
    leader = desk.run[LEADER]
    bet(desk, rules, tables, leader, judged, x)
    if not rules.pooled:
        return float(desk.reals[MINE, judged] + desk.bets[leader, judged, BET])
    if desk.reals[PAST_COUNT, judged] != desk.run[FOLLOWED] or desk.reals[PAST_CUT, judged] != x:
        legs(desk, rules, tables, judged, x, False)
        desk.reals[PAST, judged] = desk.sides[ENDS] - desk.sides[STARTS]
        desk.reals[PAST_COUNT, judged], desk.reals[PAST_CUT, judged] = desk.run[FOLLOWED], x
    followed, last = desk.reals[PAST, judged], desk.legs[desk.run[FOLLOWED] - 1, ARM]
    if last != judged:
        bet(desk, rules, tables, last, judged, x)
        followed += desk.bets[last, judged, BET]
    return float(desk.reals[MINE, judged] + mixed(rules, followed, desk.bets[leader, judged, BET]))


@compiled
def lost(desk: Desk, rules: Rules, arm: int) -> int:
    """Return how many readings of an arm are missing and count on the side that hurts."""
    return desk.ints[N, arm] - desk.ints[SIZE, arm] if rules.worst else 0


@compiled
def bet(desk: Desk, rules: Rules, tables: Tables, arm: int, judged: int, x: float) -> None:
    """Refresh what an arm's whole sample says at the cut of the judged arm."""
    n, kept = desk.ints[N, arm], desk.bets[arm, judged]
    if kept[BET_N] != n or kept[BET_CUT] != x:
        kept[BET_N], kept[BET_CUT] = n, x
        kept[BET] = whole(desk, rules, tables, arm, x, arm > judged, False)


@compiled
def whole(desk: Desk, rules: Rules, tables: Tables, arm: int, x: float, closed: bool, beyond: bool) -> float:
    """Return the log-evidence of an arm's whole sample at a cut, or at the one beyond all readings."""
    size, n = desk.ints[SIZE, arm], desk.ints[N, arm]
    return weighed(rules, tables, desk.values, desk.ints[START, arm], size, n, x, closed, beyond)


@compiled
def weighed(
    rules: Rules,
    tables: Tables,
    values: Floats,
    start: int,
    size: int,
    n: int,
    x: float,
    closed: bool,
    beyond: bool,
) -> float:
    """Return the log-evidence of n pulls with these sorted readings at a cut."""
    if beyond:
        count = size
    else:
        count = up_to(values, start, size, x) if closed else below(values, start, size, x)
        if size > 0 and values[start] == -math.inf:  # censored readings are below every cut (evidence T8)
            count = max(count, up_to(values, start, size, -math.inf))
    if rules.worst:
        count += n - size
    return log_mixture(tables.low, count, n)


@compiled
def legs(desk: Desk, rules: Rules, tables: Tables, judged: int, x: float, beyond: bool) -> None:
    """Write what the ends and the starts of all legs but the last end say against an arm at a cut."""
    ends, starts, last = 0.0, 0.0, desk.run[FOLLOWED] - 1
    for m in range(last + 1):
        row = desk.legs[m]
        arm = row[ARM]
        if arm != judged:
            closed = arm > judged
            starts += weighed(rules, tables, desk.past, row[FROM], row[FROM_SIZE], row[FROM_N], x, closed, beyond)
            if m < last:
                ends += weighed(rules, tables, desk.past, row[TO], row[TO_SIZE], row[TO_N], x, closed, beyond)
    desk.sides[ENDS], desk.sides[STARTS] = ends, starts


@compiled
def mixed(rules: Rules, followed: float, bet_on_whole: float) -> float:
    """Return the log of the rivals' portfolio (evidence T5)."""
    one, other = followed + rules.log_legs, bet_on_whole + rules.log_whole
    top = max(one, other)
    return top + math.log1p(math.exp(min(one, other) - top))


@compiled
def look_at(desk: Desk, rules: Rules, tables: Tables, judged: int, x: float, beyond: bool, followed: bool) -> None:
    """Write what the leader says against an arm at a cut, and all that were followed."""
    leader = desk.run[LEADER]
    desk.sides[WHOLE] = whole(desk, rules, tables, leader, x, leader > judged, beyond)
    if followed:
        last = desk.legs[desk.run[FOLLOWED] - 1, ARM]
        legs(desk, rules, tables, judged, x, beyond)
        if last == leader:
            desk.sides[ENDS] += desk.sides[WHOLE]
        elif last != judged:
            desk.sides[ENDS] += whole(desk, rules, tables, last, x, last > judged, beyond)


@compiled
def look_at_rank(
    desk: Desk, rules: Rules, tables: Tables, judged: int, rank: int, tolerance: float, followed: bool
) -> None:
    """Write what rivals say at the cut just below a reading of the judged arm.

    With a tolerance, by which the judged arm is made worse, only the leader's whole sample counts, open for all.
    """
    beyond = rank >= desk.ints[SIZE, judged]
    x = math.inf if beyond else desk.values[desk.ints[START, judged] + rank]
    if tolerance > 0:
        desk.sides[WHOLE] = whole(desk, rules, tables, desk.run[LEADER], x - tolerance, False, beyond)
    else:
        look_at(desk, rules, tables, judged, x, beyond, followed)


@compiled
def bound(rules: Rules, own: float, starts: float, whole_: float, ends: float, followed: bool) -> float:
    """Return what the product is at least between two cuts; at one cut, what it is."""
    return own + mixed(rules, ends - starts, whole_) if followed else own + whole_


@once
def renew(desk: Desk, rules: Rules, tables: Tables, judged: int) -> None:
    """Seek the cut anew at which leader and arm are told apart least, as a pair."""
    find(desk, rules, tables, judged, False)
    if rules.pooled:
        desk.reals[EVIDENCE, judged] = at_cut(desk, rules, tables, judged)


@compiled
def find(desk: Desk, rules: Rules, tables: Tables, judged: int, follow_: bool) -> None:
    """Find the least evidence against an arm, of the leader or of all followed, and remember it and its cut."""
    guess = -1
    if not math.isnan(desk.reals[CUT, judged]):
        guess = below(desk.values, desk.ints[START, judged], desk.ints[SIZE, judged], desk.reals[CUT, judged])
    value, cut = least(desk, rules, tables, judged, guess, 0.0, follow_)
    desk.reals[EVIDENCE, judged], desk.reals[CUT, judged] = value, cut
    desk.reals[MINIMIZED, judged] = desk.ints[N, desk.run[LEADER]] + desk.ints[N, judged]


@compiled
def least(
    desk: Desk, rules: Rules, tables: Tables, judged: int, guess: int, tolerance: float, followed: bool
) -> tuple[float, float]:
    """Return the least evidence over all cuts and its cut, as `cuts._least`: of the leader, or of all followed.

    Of equal minima that function takes the one first met in its tree of ranks: all coarse edges, then layers of
    stretches cut in eight. Here stretches are halved along the points of a layer, so that few are visited; the
    layer of each point is known, and equal minima are ordered by layer, then by rank.
    """
    n, size = desk.ints[N, judged], desk.ints[SIZE, judged]
    top, first = size + lost(desk, rules, judged), desk.ints[START, judged]
    sides, edges, stack, bounds = desk.sides, desk.edges, desk.stack, desk.bounds
    last = coarse(edges, size, guess) - 1
    best, layer_of_best, rank_of_best = math.inf, 0, 0
    if guess >= 0:
        rank_of_best = min(guess, size)
        own = log_mixture(tables.high, top - rank_of_best, n)
        look_at_rank(desk, rules, tables, judged, rank_of_best, tolerance, followed)
        best = bound(rules, own, sides[STARTS], sides[WHOLE], sides[ENDS], followed)
    for end in range(2):
        rank = edges[last * end]
        own = log_mixture(tables.high, top - rank, n)
        look_at_rank(desk, rules, tables, judged, rank, tolerance, followed)
        value = bound(rules, own, sides[STARTS], sides[WHOLE], sides[ENDS], followed)
        if value < best or (value == best and rank < rank_of_best):
            best, rank_of_best = value, rank
        bounds[0, 2 * end] = own if end == 0 else sides[WHOLE]
        bounds[0, 2 * end + 1] = sides[STARTS] if end == 0 else sides[ENDS]
    inner, cut = math.inf, math.inf
    if followed:
        inner, cut = between(desk, rules, tables, judged, 0, inner, cut)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3], stack[0, 4] = 0, last, 0, 0, size
    depth = 1 if last > 0 else 0
    while depth > 0:
        depth -= 1
        low_own, low_starts, high_whole, high_ends = bounds[depth]
        low, high, layer = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        left, right = stack[depth, 3], stack[depth, 4]
        if bound(rules, low_own, low_starts, high_whole, high_ends, followed) >= best:
            continue
        if high - low == 1:
            lower, upper = point(edges, layer, left, right, low), point(edges, layer, left, right, high)
            if upper - lower > 1:
                low, high, layer, left, right = 0, _FANOUT, layer + 1, lower, upper
            else:
                own = log_mixture(tables.high, top - upper, n)
                if (
                    followed
                    and upper > lower
                    and bound(rules, own, low_starts, high_whole, high_ends, True) < best
                ):
                    inner, cut = between(desk, rules, tables, judged, upper, inner, cut)
                continue
        half = (low + high) // 2
        rank = point(edges, layer, left, right, half)
        own = log_mixture(tables.high, top - rank, n)
        look_at_rank(desk, rules, tables, judged, rank, tolerance, followed)
        value = bound(rules, own, sides[STARTS], sides[WHOLE], sides[ENDS], followed)
        if value < best or (
            value == best and (layer < layer_of_best or (layer == layer_of_best and rank < rank_of_best))
        ):
            best, layer_of_best, rank_of_best = value, layer, rank
        for side in range(2):
            ends = (low, half) if side == 0 else (half, high)
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = ends[0], ends[1], layer
            stack[depth, 3], stack[depth, 4] = left, right
            bounds[depth, 0] = low_own if side == 0 else own
            bounds[depth, 1] = low_starts if side == 0 else sides[STARTS]
            bounds[depth, 2] = sides[WHOLE] if side == 0 else high_whole
            bounds[depth, 3] = sides[ENDS] if side == 0 else high_ends
            depth += 1
    if inner < best:
        return inner, cut
    return best, desk.values[first + rank_of_best] if rank_of_best < size else math.inf


@compiled
def between(
    desk: Desk, rules: Rules, tables: Tables, judged: int, rank: int, best: float, cut: float
) -> tuple[float, float]:
    """Return the least of a value and of what cuts between X_(r) and X_(r+1) give, with its cut."""
    n, size, first = desk.ints[N, judged], desk.ints[SIZE, judged], desk.ints[START, judged]
    own = log_mixture(tables.high, size + lost(desk, rules, judged) - rank, n)
    low = desk.values[first + rank - 1] if rank > 0 else -math.inf
    for m in range(desk.run[FOLLOWED]):
        arm = desk.legs[m, ARM]
        if arm == judged or later(desk, m):
            continue
        start, end = desk.legs[m, FROM], desk.legs[m, FROM] + desk.legs[m, FROM_SIZE]
        for i in range(start + up_to(desk.past, start, desk.legs[m, FROM_SIZE], low), end):
            x = desk.past[i]
            if rank < size and (
                x > desk.values[first + rank] or (x == desk.values[first + rank] and arm < judged)
            ):
                break
            if i > start and x == desk.past[i - 1]:
                continue
            x = np.nextafter(x, -math.inf) if arm > judged else x
            if x == low and rank > 0:
                continue
            look_at(desk, rules, tables, judged, x, False, True)
            value = bound(rules, own, desk.sides[STARTS], desk.sides[WHOLE], desk.sides[ENDS], True)
            if value < best or (value == best and x < cut):
                best, cut = value, x
    return best, cut


@compiled
def later(desk: Desk, m: int) -> bool:
    """Tell whether the arm of a leg was followed again: what came before that holds what came before this."""
    for other in range(m + 1, desk.run[FOLLOWED]):
        if desk.legs[other, ARM] == desk.legs[m, ARM]:
            return True
    return False


@compiled
def coarse(edges: Ints, size: int, guess: int) -> int:
    """Write the first ranks that `cuts._least` looks at, and return how many."""
    pieces = min(size, COARSE)
    count = 0
    extra = min(guess, size)
    for i in range(pieces + 1):
        edge = size if i == pieces else int(i * (size / pieces))
        if 0 <= extra < edge and (count == 0 or edges[count - 1] < extra):
            edges[count] = extra
            count += 1
        if count == 0 or edges[count - 1] < edge:
            edges[count] = edge
            count += 1
    return count


@compiled
def point(edges: Ints, layer: int, left: int, right: int, i: int) -> int:
    """Return the i-th rank of a layer: a coarse edge, or an eighth of a stretch."""
    return edges[i] if layer == 0 else left + (right - left) * i // _FANOUT


@compiled
def challenger(desk: Desk) -> int:
    """Return the rival of least score, the first of equal ones; -1 when none is left."""
    least_score = math.inf
    for i in range(desk.ints.shape[1]):
        if desk.ints[ALIVE, i] and i != desk.run[LEADER]:
            least_score = min(least_score, score(desk, i))
    for i in range(desk.ints.shape[1]):
        rival = desk.ints[ALIVE, i] and i != desk.run[LEADER]
        if rival and score(desk, i) <= least_score + TIE:
            return i
    return -1


@compiled
def score(desk: Desk, i: int) -> float:
    """Return the evidence against a rival plus the log of its pulls; what speaks for it does not count."""
    return float(max(desk.reals[EVIDENCE, i], 0.0) + desk.reals[LOG_N, i])


@compiled
def tolerable(desk: Desk, rules: Rules, tables: Tables, rival: int) -> bool:
    """Tell whether no arm left is better than the leader by more than the tolerance."""
    if not tolerates(desk, rules, tables, rival):
        return False
    for i in range(desk.ints.shape[1]):
        left = desk.ints[ALIVE, i] and i not in (rival, desk.run[LEADER])
        if left and not tolerates(desk, rules, tables, i):
            return False
    return True


@compiled
def tolerates(desk: Desk, rules: Rules, tables: Tables, judged: int) -> bool:
    """Tell whether an arm is not better than the leader by more than the tolerance; its last cut often says no."""
    first, size = desk.ints[START, judged], desk.ints[SIZE, judged]
    share = rules.log_whole if rules.pooled else 0.0
    guess = -1
    if not math.isnan(desk.reals[TOLERANT_CUT, judged]):
        guess = below(desk.values, first, size, desk.reals[TOLERANT_CUT, judged])
        own = log_mixture(tables.high, size + lost(desk, rules, judged) - guess, desk.ints[N, judged])
        look_at_rank(desk, rules, tables, judged, guess, rules.tolerance, False)
        if own + (desk.sides[WHOLE] + share) < rules.log_threshold:
            return False
    value, desk.reals[TOLERANT_CUT, judged] = least(desk, rules, tables, judged, guess, rules.tolerance, False)
    return value + share >= rules.log_threshold


@compiled
def tried(desk: Desk, rules: Rules) -> bool:
    """Tell whether more pulls may be unable to help: without a declared contamination only by censored arms."""
    if rules.certified:
        return True
    for i in range(desk.ints.shape[1]):
        if desk.ints[SIZE, i] < desk.ints[N, i]:
            return True
        if desk.ints[SIZE, i] > 0 and desk.values[desk.ints[START, i]] == -math.inf:
            return True
    return False


@compiled
def futile(desk: Desk, rules: Rules, tables: Tables) -> bool:
    """Tell whether endless pulls of this kind could not certify any arm left, as `evidence.indistinguishable`."""
    k = desk.ints.shape[1]
    for i in range(k):  # no rank exceeds these, and most often they already say no
        n = desk.ints[N, i]
        if desk.ints[RANKED_N, i] != n:
            desk.ints[UPPER, i] = min(math.ceil(n * tables.not_low.p0), n)
            desk.ints[LOWER, i] = min(math.ceil(n * tables.not_high.p0), n)
    for i in range(k):
        if desk.ints[ALIVE, i] and not overlapped(desk, rules, i):
            return False
    for i in range(k):
        n = desk.ints[N, i]
        if desk.ints[RANKED_N, i] != n:
            desk.ints[RANKED_N, i] = n
            desk.ints[UPPER, i] = rank_at_least(tables.not_low, n, rules.log_bar)
            desk.ints[LOWER, i] = rank_at_least(tables.not_high, n, rules.log_bar)
    for i in range(k):
        if desk.ints[ALIVE, i] and not overlapped(desk, rules, i):
            return False
    return True


@compiled
def overlapped(desk: Desk, rules: Rules, arm: int) -> bool:
    """Tell whether an arm is censored, or another arm's lower end is above its upper end."""
    upper = order_statistic(desk, arm, desk.ints[N, arm] + 1 - desk.ints[UPPER, arm] - lost(desk, rules, arm))
    if upper == -math.inf:
        return True
    for j in range(desk.ints.shape[1]):
        if j != arm:
            idle = 0 if rules.worst else desk.ints[N, j] - desk.ints[SIZE, j]
            if upper < order_statistic(desk, j, desk.ints[LOWER, j] - idle) - rules.tolerance:
                return True
    return False


@compiled
def order_statistic(desk: Desk, arm: int, rank: int) -> float:
    """Return an arm's reading at a rank; ranks outside are infinities."""
    return at_rank(desk.values, desk.ints[START, arm], desk.ints[SIZE, arm], rank)


@once
def choose_batch(desk: Desk, rules: Rules, tables: Tables, rival: int) -> None:
    """Write the next batch, split by what each arm's pulls add at the least convincing cut."""
    if rules.balanced:
        share_alike(desk)
        return
    leader, x = desk.run[LEADER], desk.reals[CUT, rival]
    head, tail = float(desk.ints[N, leader]), float(desk.ints[N, rival])
    first, size = desk.ints[START, leader], desk.ints[SIZE, leader]
    counted = up_to(desk.values, first, size, x) if leader > rival else below(desk.values, first, size, x)
    if size > 0 and desk.values[first] == -math.inf:
        counted = max(counted, up_to(desk.values, first, size, -math.inf))
    counted += lost(desk, rules, leader)
    over = desk.ints[SIZE, rival] - below(desk.values, desk.ints[START, rival], desk.ints[SIZE, rival], x)
    over = (over + lost(desk, rules, rival)) / tail
    gain = head * divergence(counted / head, tables.low.p0)
    other = tail * divergence(over, tables.high.p0)
    owed = desk.reals[CARRY, rival] if desk.ints[CARRY_LEADER, rival] == leader else 0.0
    pulls, for_leader, owed = split(head, tail, gain, other, owed, desk.ints.shape[1])
    desk.ints[CARRY_LEADER, rival] = leader
    desk.reals[CARRY, rival] = owed
    desk.ints[BATCH, leader] = for_leader
    desk.ints[BATCH, rival] = pulls - for_leader


@compiled
def share_alike(desk: Desk) -> None:
    """Write a batch that pulls all arms left alike."""
    fewest = -1
    for i in range(desk.ints.shape[1]):
        if desk.ints[ALIVE, i] and (fewest < 0 or desk.ints[N, i] < fewest):
            fewest = desk.ints[N, i]
    for i in range(desk.ints.shape[1]):
        if desk.ints[ALIVE, i]:
            desk.ints[BATCH, i] = max(1, int(GROWTH * fewest))
