"""`policies.lucb`, compiled. Ranks of the limits come in tables by the number of readings."""

import math
from typing import NamedTuple

from truearm.lab.kernels import Floats, Ints, MixtureTable, at_rank, compiled, door, log_mixture, merge

RUNNING, SHORT, EXHAUSTED, DECIDED, TOLERABLE = range(5)


class Rules(NamedTuple):
    """What stays the same during a run."""

    growth: float
    tolerance: float
    accepts_ties: bool
    max_pulls: int
    worst: bool


class Desk(NamedTuple):
    """Everything a run writes to, and the tables of ranks."""

    tape: Floats
    values: Floats
    ints: Ints
    reals: Floats
    ranks: Ints
    """Lower ranks by the number of readings: those of the lower limit and those of the mirrored upper one."""
    run: Ints


FIRST, START, ROOM, N, SIZE, BATCH = range(6)  # as in compiled_toptwo
LOW, HIGH = range(2)
LEADER, LEADER_NEXT, DECISIONS = range(3)


@door
def advance(desk: Desk, rules: Rules, decisions: int) -> int:
    """Run until the end, until readings or ranks are short, or until so many more decisions are made."""
    for _ in range(decisions):
        total, short = 0, False
        for i in range(desk.ints.shape[1]):
            after = desk.ints[N, i] + desk.ints[BATCH, i]
            total += after
            short |= after > desk.ints[ROOM, i]
        if total > rules.max_pulls:
            return EXHAUSTED
        if short:
            return SHORT
        for i in range(desk.ints.shape[1]):
            if desk.ints[BATCH, i] > 0:
                take(desk, i, rules.worst)
        desk.run[DECISIONS] += 1
        status = decide(desk, rules)
        if status != RUNNING:
            return status
    return RUNNING


@door
def fill_ranks(ranks: Ints, tables: MixtureTable, bar: float) -> None:
    """Write for every n the last rank r with log M_n(r - 1) >= bar; from one n to the next it rises by 0 or 1.

    Because M_(n+1)(s) >= M_n(s) >= M_(n+1)(s+1) (audit 2.C).
    """
    ranks[0] = 0
    for n in range(1, ranks.size):
        ranks[n] = ranks[n - 1] + (log_mixture(tables, ranks[n - 1], n) >= bar)


@compiled
def take(desk: Desk, arm: int, worst: bool) -> None:
    """Merge an arm's readings of the batch and renew its limits."""
    first, start, room = desk.ints[FIRST, arm], desk.ints[START, arm], desk.ints[ROOM, arm]
    at, other = first + desk.ints[N, arm], 4 * first + room - start
    new = desk.tape[at : at + desk.ints[BATCH, arm]]
    desk.ints[SIZE, arm] = merge(desk.values, start, desk.ints[SIZE, arm], new, other)
    desk.ints[START, arm] = other
    desk.ints[N, arm] += desk.ints[BATCH, arm]
    desk.ints[BATCH, arm] = 0
    n = desk.ints[N, arm]
    missing = n - desk.ints[SIZE, arm]
    unknown = missing if worst else 0
    desk.reals[LOW, arm] = at_rank(
        desk.values, desk.ints[START, arm], desk.ints[SIZE, arm], desk.ranks[LOW, n] - unknown
    )
    desk.reals[HIGH, arm] = at_rank(
        desk.values, desk.ints[START, arm], desk.ints[SIZE, arm], n + 1 - desk.ranks[HIGH, n] - (missing - unknown)
    )


@compiled
def decide(desk: Desk, rules: Rules) -> int:
    """Choose the next batch or the end."""
    leader, rival = 0, -1
    for i in range(1, desk.ints.shape[1]):
        if desk.reals[LOW, i] > desk.reals[LOW, leader]:
            leader = i
    top = -math.inf
    for i in range(desk.ints.shape[1]):
        if i != leader and desk.reals[HIGH, i] > top:
            rival, top = i, desk.reals[HIGH, i]
    if rival < 0:
        rival = 0 if leader > 0 else 1
    desk.run[LEADER] = leader
    status = reached(desk.reals[LOW, leader], desk.reals[HIGH, rival], rules)
    if status != RUNNING:
        return status
    if rules.growth == 0:
        desk.ints[BATCH, leader if desk.run[LEADER_NEXT] else rival] = 1
    else:
        size = max(1, int(rules.growth * min(desk.ints[N, leader], desk.ints[N, rival])))
        desk.ints[BATCH, leader] = size
        desk.ints[BATCH, rival] = size
    desk.run[LEADER_NEXT] = 1 - desk.run[LEADER_NEXT]
    return RUNNING


@compiled
def reached(low: float, high: float, rules: Rules) -> int:
    """Return how the run ends if it does now."""
    if low == -math.inf:
        return RUNNING
    if low > high or (low == high and rules.accepts_ties):
        return DECIDED
    return TOLERABLE if rules.tolerance > 0 and low >= high - rules.tolerance else RUNNING
