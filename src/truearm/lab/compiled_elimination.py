"""`policies.elimination`, compiled: medians of all arms in every round, at a few times the price of drawing.

Of an arm only a window of sorted readings around its median is kept, about 1.8 sqrt(n) of them, and how many
readings lie below it. Most new readings fall outside and only move a counter. When the median leaves the window,
or the window is full, the caller centers it anew from the tape.
"""
# ruff: noqa: SIM110 - compiled functions take no generators

import math
from typing import NamedTuple

from truearm.lab.kernels import Floats, Ints, compiled, door

RUNNING, SHORT, EXHAUSTED, DECIDED, TOLERABLE, STRAY = range(6)  # STRAY: a window must be centered


class Desk(NamedTuple):
    """Everything a run writes to, and its schedule."""

    tape: Floats
    """Readings in order of pull, one row per arm."""
    window: Floats
    """One row per arm."""
    ints: Ints
    reals: Floats
    totals: Ints
    """Pulls of each arm left up to the end of every round, a 0 for the start included."""
    radii: Floats
    bad: Ints
    """How many readings of an arm may be bad, by round."""
    run: Ints


ROOM, N, KNOWN, BELOW, WIDTH, ALIVE, LATE = range(7)  # WIDTH: readings in the window, -1 where it must be centered
LOW, HIGH, ESTIMATE, UPPER, UPPER_RADIUS, LOWER, LOWER_RADIUS, ESTIMATE_HIGH = range(8)
ROUND, LEADER, LEFT, PULLS = range(4)


@door
def advance(desk: Desk, tolerance: float, max_pulls: int, rounds: int, worst: bool) -> int:
    """Run until the end, until readings are short, a window is astray, or so many more rounds are done."""
    last = desk.run[ROUND] + rounds
    while desk.run[ROUND] < last:
        done = desk.run[ROUND]
        if done + 1 == desk.totals.size:
            return SHORT
        if desk.run[PULLS] + desk.run[LEFT] * (desk.totals[done + 1] - desk.totals[done]) > max_pulls:
            return EXHAUSTED
        if is_short(desk, desk.totals[done + 1]):
            return SHORT
        for i in range(desk.ints.shape[1]):
            if desk.ints[ALIVE, i]:
                take(desk, i, desk.totals[done + 1])
        if not estimate(desk, desk.bad[done + 1], worst):
            return STRAY
        desk.run[PULLS] += desk.run[LEFT] * (desk.totals[done + 1] - desk.totals[done])
        desk.run[ROUND] = done + 1
        judge(desk, desk.radii[done + 1])
        if desk.run[LEFT] == 1 or (tolerance > 0 and tolerable(desk, tolerance)):
            return DECIDED if desk.run[LEFT] == 1 else TOLERABLE
    return RUNNING


@compiled
def is_short(desk: Desk, total: int) -> bool:
    """Tell whether a tape is too short for the round."""
    for i in range(desk.ints.shape[1]):
        if desk.ints[ALIVE, i] and desk.ints[ROOM, i] < total:
            return True
    return False


@compiled
def take(desk: Desk, arm: int, total: int) -> None:
    """Read an arm's tape up to `total`: count what lies below its window, sort what lies in it."""
    low, high = desk.reals[LOW, arm], desk.reals[HIGH, arm]
    known, under, width = desk.ints[KNOWN, arm], desk.ints[BELOW, arm], desk.ints[WIDTH, arm]
    late = 0
    for at in range(desk.ints[N, arm], total):
        x = desk.tape[arm, at]
        if x == -math.inf:
            late += 1
        if x < low:
            under += 1
        elif x <= high and width >= 0:
            width = insert(desk.window[arm], width, x)
        elif math.isnan(x):
            known -= 1
        known += 1
    desk.ints[KNOWN, arm], desk.ints[BELOW, arm], desk.ints[WIDTH, arm] = known, under, width
    desk.ints[N, arm] = total
    desk.ints[LATE, arm] += late


@compiled
def insert(window: Floats, width: int, x: float) -> int:
    """Put a reading into a sorted window; return its new width, -1 if it was full."""
    if width == window.size:
        return -1
    i = width - 1
    while i >= 0 and window[i] > x:
        window[i + 1] = window[i]
        i -= 1
    window[i + 1] = x
    return width + 1


@compiled
def estimate(desk: Desk, bad: int, worst: bool) -> bool:
    """Write the medians of all arms left, missing readings low and high; say no if a window does not hold one."""
    late = 0
    for i in range(desk.ints.shape[1]):
        late += desk.ints[LATE, i] if desk.ints[ALIVE, i] else 0
    for i in range(desk.ints.shape[1]):
        if not desk.ints[ALIVE, i]:
            continue
        if desk.ints[WIDTH, i] < 0:
            return False
        missing = desk.ints[N, i] - desk.ints[KNOWN, i] if worst else 0
        n = desk.ints[KNOWN, i] + missing
        for end in range(2):
            bottom = missing if end == 0 else 0
            low, high = place(desk, i, (n - 1) // 2 - bottom), place(desk, i, n // 2 - bottom)
            if math.isnan(low) or math.isnan(high):
                return False
            if end == 1 and n > 0 and late > 0 and (n - 1) // 2 - desk.ints[LATE, i] < bad:  # else it is above
                least = floor(desk, bad)
                low, high = max(low, least), max(high, least)
            middle = low if low == high or low == -math.inf else low / 2 + high / 2  # noqa: PLR1714 - as rounds
            desk.reals[ESTIMATE if end == 0 else ESTIMATE_HIGH, i] = -math.inf if n == 0 else middle
    return True


@compiled
def floor(desk: Desk, bad: int) -> float:
    """Return what no time-out is better than, as `rounds.judged`: so many readings of an arm may be bad."""
    least = math.inf
    for i in range(desk.ints.shape[1]):
        if desk.ints[ALIVE, i]:
            least = min(least, finite_at(desk.tape[i], desk.ints[N, i], bad))
    return least


@compiled
def finite_at(tape: Floats, n: int, place: int) -> float:
    """Return the reading at a place of those that did not time out, by halving what lies between two of them."""
    low, high = -math.inf, math.inf
    while True:
        pivot = high
        for at in range(n):
            if low < tape[at] < high:
                pivot = tape[at]
                break
        if pivot == high:
            return high
        count = 0
        for at in range(n):
            if -math.inf < tape[at] <= pivot:
                count += 1
        if count > place:
            high = pivot
        else:
            low = pivot


@compiled
def place(desk: Desk, arm: int, rank: int) -> float:
    """Return the value at a rank from 0 on; ranks outside are infinities, NaN if the window does not hold it."""
    if rank < 0:
        return -math.inf
    if rank >= desk.ints[KNOWN, arm]:
        return math.inf
    at = rank - desk.ints[BELOW, arm]
    return desk.window[arm, at] if 0 <= at < desk.ints[WIDTH, arm] else math.nan


@compiled
def judge(desk: Desk, radius: float) -> None:
    """Exclude arms whose intervals lie below the leader's, as `rounds.judged`."""
    leader = -1
    for i in range(desk.ints.shape[1]):
        if desk.ints[ALIVE, i] and (leader < 0 or desk.reals[ESTIMATE, i] > desk.reals[ESTIMATE, leader]):
            leader = i
    desk.run[LEADER] = leader
    best = desk.reals[ESTIMATE, leader] + -radius
    for i in range(desk.ints.shape[1]):
        if not desk.ints[ALIVE, i]:
            continue
        low, high = desk.reals[ESTIMATE, i], desk.reals[ESTIMATE_HIGH, i]
        if high + radius < desk.reals[UPPER, i] + desk.reals[UPPER_RADIUS, i]:
            desk.reals[UPPER, i], desk.reals[UPPER_RADIUS, i] = high, radius
        if low - radius > desk.reals[LOWER, i] + desk.reals[LOWER_RADIUS, i]:
            desk.reals[LOWER, i], desk.reals[LOWER_RADIUS, i] = low, -radius
        if high + radius < best:
            desk.ints[ALIVE, i] = 0
            desk.run[LEFT] -= 1


@compiled
def tolerable(desk: Desk, tolerance: float) -> bool:
    """Tell whether no arm can have the leader behind it by more than the tolerance, as `rounds.tolerable`."""
    leader = desk.run[LEADER]
    if desk.reals[ESTIMATE, leader] == -math.inf:
        return False
    lower = desk.reals[LOWER, leader] + desk.reals[LOWER_RADIUS, leader]
    for i in range(desk.ints.shape[1]):
        if i != leader and desk.reals[UPPER, i] + (desk.reals[UPPER_RADIUS, i] - tolerance) > lower:
            return False
    return True
