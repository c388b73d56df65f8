"""`policies.toptwo`, compiled: the same decisions from the same readings, function by function.

Read it beside the policy, which says why. Differences are of speed alone: sorted readings are merged in place,
values at remembered cuts are kept until a count changes, and the search for the least cut visits few ranks.
"""
# ruff: noqa: PLR0917, SIM110 - compiled functions take no keyword-only arguments and no generators

import math
from typing import NamedTuple

from truearm.evidence import levels
from truearm.lab.kernels import (
    Floats,
    Ints,
    MixtureTable,
    at_rank,
    below,
    compiled,
    door,
    log_mixture,
    merge,
    rank_at_least,
    up_to,
)
from truearm.policies import toptwo as policy
from truearm.policies.toptwo import GROWTH, TIE

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
    before: Floats
    """In the same stretches the sorted readings from before the arm became leader."""
    ints: Ints
    """Rows as named below, one column per arm."""
    reals: Floats
    """Rows as named below, one column per arm."""
    bets: Floats
    """[entered arm, judged arm]: evidence of whole and of later readings, the count and the cut they belong to."""
    run: Ints
    """Leader, arms entered, decisions made, and whether bets on later readings count (evidence T5)."""
    next_futility: Floats
    offers: Floats
    """Of each entered arm the evidence of whole and of later readings at the cut that is looked at."""
    edges: Ints
    """The coarse ranks of a search."""
    stack: Ints
    """Stretches that a search has yet to look into: ends among the points of a layer, the layer, where it lies."""
    bounds: Floats
    """What each stretch holds at least: of own evidence and of the rivals'."""


(
    FIRST,  # where the stretch of the tape begins; that of sorted readings is twice as long and as far
    START,  # where the sorted readings begin, in one half of their stretch or in the other
    ROOM,  # how many readings are on the tape
    N,
    SIZE,  # readings that are not NaN
    BEFORE_N,
    BEFORE_SIZE,
    ALIVE,
    ENTERED,  # arms in the order in which they became leader
    CARRY_LEADER,
    BATCH,
    UPPER,  # ranks of the futility check and the count they belong to
    LOWER,
    RANKED_N,
    LOOKED,  # whether the evidence is of this decision
) = range(15)
CUT, EVIDENCE, WEIGHED, MINIMIZED, CARRY, TOLERANT_CUT, MINE, MINE_N, MINE_CUT = range(9)
LEADER, ENTERED_COUNT, DECISIONS, LATER = range(4)
WHOLE_BET, LATER_BET, BET_N, BET_CUT = range(4)


@door
def advance(desk: Desk, rules: Rules, tables: Tables, decisions: int) -> int:
    """Run until the end, until readings are short, or until so many more decisions are made."""
    for _ in range(decisions):
        total = after_batch(desk)
        if total > rules.max_pulls:
            if desk.run[ENTERED_COUNT] > 0:
                test(desk, rules, tables, everyone=True)
                if tried(desk, rules) and futile(desk, rules, tables):
                    return FUTILE
            return EXHAUSTED
        if is_short(desk):
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
def is_short(desk: Desk) -> bool:
    """Tell whether a tape is too short for the batch."""
    for i in range(desk.ints.shape[1]):
        if desk.ints[N, i] + desk.ints[BATCH, i] > desk.ints[ROOM, i]:
            return True
    return False


@compiled
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
    due = enter(desk, leader) or rules.balanced or leader != desk.run[LEADER]
    desk.run[LEADER] = leader
    test(desk, rules, tables, due)
    rival = challenger(desk)
    if rival < 0:
        return DECIDED
    if desk.ints[N, leader] + desk.ints[N, rival] >= rules.stale * desk.reals[MINIMIZED, rival]:
        remember(desk, rules, tables, rival)
    if rules.tolerance > 0 and tolerable(desk, rules, tables, rival):
        return TOLERABLE
    if pulls >= desk.next_futility[0]:
        desk.next_futility[0] = rules.futility * pulls
        if tried(desk, rules) and futile(desk, rules, tables):
            return FUTILE
    choose_batch(desk, rules, tables, rival)
    return RUNNING


@compiled
def best_looking(desk: Desk, rules: Rules) -> int:
    """Return the arm with the best empirical quantile, ties by fewest readings below it, then by order."""
    best, top, middle = -1, -math.inf, 0.0
    for i in range(desk.ints.shape[1]):
        size = desk.ints[SIZE, i]
        if desk.ints[ALIVE, i] == 0 or size == 0:
            continue
        bottom = desk.ints[N, i] - size if rules.worst else 0
        rank = max(1, math.ceil(rules.level * (size + bottom) - 1e-9)) - bottom
        x = order_statistic(desk, i, rank)
        if best >= 0 and x < top:
            continue
        both = below(desk.values, desk.ints[START, i], size, x)
        both += up_to(desk.values, desk.ints[START, i], size, x)
        if best < 0 or x > top or both / size < middle:
            best, top, middle = i, x, both / size
    return best


@compiled
def enter(desk: Desk, leader: int) -> bool:
    """Note an arm that leads for the first time, with its readings up to now."""
    entered = desk.run[ENTERED_COUNT]
    for m in range(entered):
        if desk.ints[ENTERED, m] == leader:
            return False
    desk.ints[ENTERED, entered] = leader
    desk.run[ENTERED_COUNT] += 1
    first, start, size = desk.ints[FIRST, leader], desk.ints[START, leader], desk.ints[SIZE, leader]
    for i in range(size):
        desk.before[first + i] = desk.values[start + i]
    desk.ints[BEFORE_SIZE, leader] = size
    desk.ints[BEFORE_N, leader] = desk.ints[N, leader]
    return True


@compiled
def test(desk: Desk, rules: Rules, tables: Tables, everyone: bool) -> None:
    """Reject arms the evidence against which suffices at all cuts, until the strongest challenger is known."""
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


@compiled
def look(desk: Desk, rules: Rules, tables: Tables, judged: int) -> None:
    """Weigh the evidence against one arm: at its cut, and at all if that may reject it."""
    desk.ints[LOOKED, judged] = 1
    desk.reals[WEIGHED, judged] = desk.ints[N, desk.run[LEADER]] + desk.ints[N, judged]
    if not math.isnan(desk.reals[CUT, judged]):
        desk.reals[EVIDENCE, judged] = at_cut(desk, rules, tables, judged)
        if desk.reals[EVIDENCE, judged] < rules.log_threshold:
            return
    remember(desk, rules, tables, judged)
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
    if not rules.pooled:
        leader = desk.run[LEADER]
        bet(desk, rules, tables, leader, judged, x)
        return float(desk.reals[MINE, judged] + desk.bets[leader, judged, WHOLE_BET])
    for m in range(desk.run[ENTERED_COUNT]):
        if desk.ints[ENTERED, m] != judged:
            bet(desk, rules, tables, desk.ints[ENTERED, m], judged, x)
    return float(desk.reals[MINE, judged] + portfolio(desk, judged, desk.bets[:, judged]))


@compiled
def lost(desk: Desk, rules: Rules, arm: int) -> int:
    """Return how many readings of an arm are missing and count on the side that hurts."""
    return desk.ints[N, arm] - desk.ints[SIZE, arm] if rules.worst else 0


@compiled
def bet(desk: Desk, rules: Rules, tables: Tables, arm: int, judged: int, x: float) -> None:
    """Refresh what an entered arm's readings say at the cut of the judged arm."""
    n, kept = desk.ints[N, arm], desk.bets[arm, judged]
    if kept[BET_N] != n or kept[BET_CUT] != x:
        kept[BET_N], kept[BET_CUT] = n, x
        measure(desk, rules, tables, arm, x, kept, judged)


@compiled
def measure(desk: Desk, rules: Rules, tables: Tables, arm: int, x: float, out: Floats, judged: int) -> None:
    """Write the log-evidence of an arm's readings at a cut; it is closed for arms listed after the judged one."""
    first, early_size = desk.ints[FIRST, arm], desk.ints[BEFORE_SIZE, arm]
    start, size = desk.ints[START, arm], desk.ints[SIZE, arm]
    if arm > judged:
        count, early = up_to(desk.values, start, size, x), up_to(desk.before, first, early_size, x)
    else:
        count, early = below(desk.values, start, size, x), below(desk.before, first, early_size, x)
    if size > 0 and desk.values[start] == -math.inf:  # censored readings are below every cut (evidence T8)
        count = max(count, up_to(desk.values, start, size, -math.inf))
        early = max(early, up_to(desk.before, first, early_size, -math.inf))
    write(desk, rules, tables, arm, count, early, out)


@compiled
def write(desk: Desk, rules: Rules, tables: Tables, arm: int, count: int, early: int, out: Floats) -> None:
    """Write the log-evidence of an arm's whole and later counts."""
    n, since = desk.ints[N, arm], desk.ints[N, arm] - desk.ints[BEFORE_N, arm]
    if rules.worst:
        count += n - desk.ints[SIZE, arm]
        early += desk.ints[BEFORE_N, arm] - desk.ints[BEFORE_SIZE, arm]
    out[0] = log_mixture(tables.low, count, n)
    out[1] = log_mixture(tables.low, count - early, since) if desk.run[LATER] > 0 else 0.0


@compiled
def portfolio(desk: Desk, judged: int, bets: Floats) -> float:
    """Return the log of the rivals' portfolio from the log-evidence of each entered arm (evidence T5)."""
    k = desk.ints.shape[1]
    if k == 2:
        return float(bets[1 - judged, 0])
    uniform, m, top = 2 / k, 0, 0.0
    for e in range(desk.run[ENTERED_COUNT]):
        arm = desk.ints[ENTERED, e]
        if arm != judged:
            top = max(top, bets[arm, 0], bets[arm, 1])
    total = 0.0
    for e in range(desk.run[ENTERED_COUNT]):
        arm = desk.ints[ENTERED, e]
        if arm != judged:
            m += 1
            total += uniform / (k - 1) * math.exp(bets[arm, 0] - top)
            total += (1 - uniform) / (m * (m + 1)) * math.exp(bets[arm, 1] - top)
    return top + math.log(total + (1 - uniform) / (m + 1) * math.exp(-top))


@compiled
def remember(desk: Desk, rules: Rules, tables: Tables, judged: int) -> None:
    """Find the least evidence against an arm, and remember it and its cut."""
    first, size = desk.ints[START, judged], desk.ints[SIZE, judged]
    guess = -1
    if not math.isnan(desk.reals[CUT, judged]):
        guess = below(desk.values, first, size, desk.reals[CUT, judged])
    value, rank = least(desk, rules, tables, judged, guess, 0.0)
    desk.reals[EVIDENCE, judged] = value
    desk.reals[CUT, judged] = desk.values[first + rank] if rank < size else math.inf
    desk.reals[MINIMIZED, judged] = desk.ints[N, desk.run[LEADER]] + desk.ints[N, judged]


@compiled
def leading(
    desk: Desk, rules: Rules, tables: Tables, judged: int, rank: int, out: Floats, tolerance: float
) -> float:
    """Return the log of the leader's own bets, and of the cash, at a rank of the judged arm.

    With a tolerance, by which the judged arm is made worse, only the bets count; without it there are others'
    (`falling`), and this is a lower bound.
    """
    first, size, leader, k = (
        desk.ints[START, judged],
        desk.ints[SIZE, judged],
        desk.run[LEADER],
        desk.ints.shape[1],
    )
    if rank >= size:
        write(desk, rules, tables, leader, desk.ints[SIZE, leader], desk.ints[BEFORE_SIZE, leader], out[leader])
    elif tolerance > 0:
        measure(
            desk, rules, tables, leader, desk.values[first + rank] - tolerance, out[leader], k
        )  # open for all arms
    else:
        measure(desk, rules, tables, leader, desk.values[first + rank], out[leader], judged)
    if not rules.pooled or k == 2:
        return float(out[leader, 0])
    m, entered = 0, 0
    for e in range(desk.run[ENTERED_COUNT]):
        entered += desk.ints[ENTERED, e] != judged
        if desk.ints[ENTERED, e] == leader:
            m = entered
    uniform, top = 2 / k, max(0.0, out[leader, 0], out[leader, 1])
    total = uniform / (k - 1) * math.exp(out[leader, 0] - top)
    total += (1 - uniform) / (m * (m + 1)) * math.exp(out[leader, 1] - top)
    if tolerance == 0:
        total += (1 - uniform) / (entered + 1) * math.exp(-top)
    return float(top) + math.log(total)


@compiled
def falling(desk: Desk, rules: Rules, tables: Tables, judged: int, rank: int, out: Floats) -> float:
    """Return the log of the rivals' portfolio at a rank of the judged arm, after `leading` at the same rank."""
    leader, size = desk.run[LEADER], desk.ints[SIZE, judged]
    if not rules.pooled:
        return float(out[leader, 0])
    for e in range(desk.run[ENTERED_COUNT]):
        arm = desk.ints[ENTERED, e]
        if arm in (judged, leader):
            continue
        if rank >= size:
            write(desk, rules, tables, arm, desk.ints[SIZE, arm], desk.ints[BEFORE_SIZE, arm], out[arm])
        else:
            measure(desk, rules, tables, arm, desk.values[desk.ints[START, judged] + rank], out[arm], judged)
    return portfolio(desk, judged, out)


@compiled
def fall(desk: Desk, rules: Rules, tables: Tables, judged: int, rank: int, out: Floats, tolerance: float) -> float:
    """Return the rivals' side of the product, with or without tolerance."""
    value = leading(desk, rules, tables, judged, rank, out, tolerance)
    return value if tolerance > 0 else falling(desk, rules, tables, judged, rank, out)


@compiled
def least(
    desk: Desk, rules: Rules, tables: Tables, judged: int, guess: int, tolerance: float
) -> tuple[float, int]:
    """Return the least evidence over all cuts and its rank, as `cuts._least`.

    Of equal minima that function takes the one first met in its tree of ranks: all coarse edges, then layers of
    stretches cut in eight. Here stretches are halved along the points of a layer, so that few are visited; the
    layer of each point is known, and equal minima are ordered by layer, then by rank.
    """
    n, size = desk.ints[N, judged], desk.ints[SIZE, judged]
    top = size + lost(desk, rules, judged)
    out, edges, stack, bounds = desk.offers, desk.edges, desk.stack, desk.bounds
    last = coarse(edges, size, guess) - 1
    best, layer_of_best, rank_of_best = math.inf, 0, 0
    if guess >= 0:
        rank_of_best = min(guess, size)
        best = log_mixture(tables.high, top - rank_of_best, n)
        best += fall(desk, rules, tables, judged, rank_of_best, out, tolerance)
    for end in range(2):
        rank = edges[last * end]
        up = log_mixture(tables.high, top - rank, n)
        down = leading(desk, rules, tables, judged, rank, out, tolerance)
        if tolerance == 0 and up + down <= best:
            down = falling(desk, rules, tables, judged, rank, out)
        if up + down < best or (up + down == best and rank < rank_of_best):
            best, rank_of_best = up + down, rank
        bounds[0, end] = up if end == 0 else down
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3], stack[0, 4] = 0, last, 0, 0, size
    depth = 1 if last > 0 else 0
    while depth > 0:
        depth -= 1
        up, down = bounds[depth, 0], bounds[depth, 1]
        low, high, layer = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        left, right = stack[depth, 3], stack[depth, 4]
        if up + down >= best:
            continue
        if high - low == 1:
            first, second = point(edges, layer, left, right, low), point(edges, layer, left, right, high)
            if second - first > 1:
                low, high, layer, left, right = 0, _FANOUT, layer + 1, first, second
            else:
                continue
        middle = (low + high) // 2
        rank = point(edges, layer, left, right, middle)
        inner_up = log_mixture(tables.high, top - rank, n)
        inner_down = leading(desk, rules, tables, judged, rank, out, tolerance)
        if tolerance == 0 and inner_up + inner_down <= best:
            inner_down = falling(desk, rules, tables, judged, rank, out)
        value = inner_up + inner_down
        if value < best or (
            value == best and (layer < layer_of_best or (layer == layer_of_best and rank < rank_of_best))
        ):
            best, layer_of_best, rank_of_best = value, layer, rank
        for half in range(2):
            ends = (low, middle) if half == 0 else (middle, high)
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = ends[0], ends[1], layer
            stack[depth, 3], stack[depth, 4] = left, right
            bounds[depth, 0] = up if half == 0 else inner_up
            bounds[depth, 1] = inner_down if half == 0 else down
            depth += 1
    return best, rank_of_best


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
    """Return the rival of least evidence plus log of its pulls, the first of equal ones; -1 when none is left."""
    least_score = math.inf
    for i in range(desk.ints.shape[1]):
        if desk.ints[ALIVE, i] and i != desk.run[LEADER]:
            least_score = min(least_score, desk.reals[EVIDENCE, i] + math.log(desk.ints[N, i]))
    for i in range(desk.ints.shape[1]):
        rival = desk.ints[ALIVE, i] and i != desk.run[LEADER]
        if rival and desk.reals[EVIDENCE, i] + math.log(desk.ints[N, i]) <= least_score + TIE:
            return i
    return -1


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
    guess = -1
    if not math.isnan(desk.reals[TOLERANT_CUT, judged]):
        guess = below(desk.values, first, size, desk.reals[TOLERANT_CUT, judged])
        value = log_mixture(tables.high, size + lost(desk, rules, judged) - guess, desk.ints[N, judged])
        value += leading(desk, rules, tables, judged, guess, desk.offers, rules.tolerance)
        if value < rules.log_threshold:
            return False
    value, rank = least(desk, rules, tables, judged, guess, rules.tolerance)
    desk.reals[TOLERANT_CUT, judged] = desk.values[first + rank] if rank < size else math.inf
    return value >= rules.log_threshold


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


@compiled
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
    pulls, for_leader, owed = split(head, tail, gain, other, owed)
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
