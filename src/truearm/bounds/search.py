"""Where a condition that changes once changes: bisection, from the side on which it holds.

Nobody else bisects, compiled code aside. A condition over integers in a known range needs none of them:
`bisect.bisect_left(range(n), True, key=holds)` of the standard library is the first at which it holds.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.errors import OutOfReach

_ENDLESS = 1 << 500
_SECANTS = 8  # at most: a smooth value needs six
_PIECES = 16  # at most: two or three are enough
_TELLING = 1e-9  # numbers that differ by this share have values that differ by more than rounding
_COARSE = 60  # a range has fewer than 2^63 places; no float tells numbers apart that agree in 60 bits


def bracket(
    holds: Callable[[float], bool], inside: float, outside: float, *, accuracy: float = 0.0, relative: float = 0.0
) -> tuple[float, float]:
    """Return two near numbers between which a condition ends, first the one at which it holds.

    Parameters
    ----------
    inside, outside
        Two numbers in any order; the condition is taken to hold at the first and not at the second, and is
        evaluated at neither.
    accuracy, relative
        How near is near enough, the latter as a share of the second number. Zero both: the last bit.
    """
    while abs(outside - inside) > max(accuracy, relative * abs(outside)):
        middle = inside + (outside - inside) / 2
        if not min(inside, outside) < middle < max(inside, outside):
            break
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside, outside


def last_true(
    holds: Callable[[float], bool], inside: float, outside: float, *, accuracy: float = 0.0, relative: float = 0.0
) -> float:
    """Return the last number on the way from inside to outside at which a condition is known to hold.

    The arguments are those of `bracket`; with `inside` the higher one it is the first number from below.
    """
    return bracket(holds, inside, outside, accuracy=accuracy, relative=relative)[0]


def last_reached(
    value: Callable[[float], float], bar: float, outside: float, *, accuracy: float = 0.0, relative: float = 0.0
) -> float | None:
    """Return `last_true`, from 0 on, of "the value reaches a bar", asking less often; None if it does not at 0.

    Secants find two numbers close together, one on either side; all but the last digits of the bisection follow
    from them. Evidence grows with the square of a distance, so the secants are those of its square root.

    Parameters
    ----------
    value
        A continuous function that falls where it is above the bar.
    bar
        A positive number, which the value does not reach at `outside`.
    """
    known = value(0.0)
    if known < bar:
        return None
    good, bad = _crossing(value, bar, (0.0, known), 0.0, outside, accuracy=accuracy, relative=relative)

    def reached(x: float) -> bool:
        return x <= good or (x < bad and value(x) >= bar)

    return last_true(reached, 0.0, outside, accuracy=accuracy, relative=relative)


def last_reached_by_all(
    least: Callable[[float], tuple[float, Callable[[float], float]]],
    bar: float,
    outside: float,
    *,
    start: float = 0.0,
    accuracy: float = 0.0,
    relative: float = 0.0,
) -> float | None:
    """Return `last_reached` of the least of many values, which is dear to find where each of them is cheap.

    Where the one crosses the bar that is least somewhere, the least of all does not reach it any more. It is
    looked there which is least, until none is below the bar: two or three times where secants need eight.

    Parameters
    ----------
    least
        Gives the least value at a number, and the function that has it there.
    start
        Where to look first.
    """
    good, bad, x = -1.0, outside, start
    for _ in range(_PIECES):
        now, piece = least(x)
        if now >= bar:
            good = x
        elif x == 0 or piece(0.0) < bar:
            return None
        else:
            bad = x
        x, bad = _crossing(piece, bar, (x, now), max(good, 0.0), bad, accuracy=accuracy, relative=relative)
        if x == good:  # the piece that is least there is already below the bar just beyond
            break

    def reached(x: float) -> bool:
        return x <= good or (x < bad and least(x)[0] >= bar)

    if good < 0 and not reached(0.0):
        return None
    return last_true(reached, 0.0, outside, accuracy=accuracy, relative=relative)


def _crossing(
    value: Callable[[float], float],
    bar: float,
    known: tuple[float, float],
    good: float,
    bad: float,
    *,
    accuracy: float,
    relative: float,
) -> tuple[float, float]:
    """Return two numbers in a range, close together, between which a value falls below the bar.

    `known` is a number at an end of the range, and the value there. Only what was asked is one of the two, the
    ends of the range aside.
    """
    before, height = known[0], math.sqrt(max(0.0, known[1] + bar))
    step, target = (bad - good) / 1024, math.sqrt(2 * bar)  # a first step, for the slope
    x = before + step if known[1] >= bar else before - step
    for _ in range(_SECANTS):
        near = max(accuracy, relative * bad, _TELLING * bad) / 16
        if bad - good <= 4 * near:
            break
        now = value(x)
        good, bad = (x, bad) if now >= bar else (good, x)
        reached = math.sqrt(max(0.0, now + bar))
        slope = (reached - height) / (x - before)
        before, height = x, reached
        x += (target - reached) / slope if slope else math.inf
        x += near if before == good else -near  # lands on the other side
        if not good < x < bad:
            x = good + (bad - good) / 2
    return good, bad


def first_true(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the lowest float in [low, high] at which a condition holds that never ceases to; high if none."""
    return low if holds(low) else last_true(holds, high, low)


def last_true_each(
    holds: Callable[[NDArray[Any]], NDArray[np.bool_]],
    inside: NDArray[Any],
    outside: NDArray[Any],
    *,
    accuracy: float | NDArray[Any] = 0.0,
) -> NDArray[Any]:
    """Return `last_true` of many searches at once, among floats or, for arrays of integers, among integers.

    All ends are finite. Where a search is over the condition is still asked, and its answer ignored.
    """
    whole = np.issubdtype(inside.dtype, np.integer)
    while True:
        gap = outside - inside
        middle = inside + (gap // 2 if whole else gap / 2)
        between = (np.minimum(inside, outside) < middle) & (middle < np.maximum(inside, outside))
        going = between & (np.abs(gap) > accuracy)
        if not np.any(going):
            return inside
        good = holds(middle)
        inside, outside = np.where(going & good, middle, inside), np.where(going & ~good, middle, outside)


def first_count(holds: Callable[[int], bool]) -> int:
    """Return the first of 1, 2, 3, ... at which a condition holds that, once true, stays so.

    Beyond 2^60 it is exact up to the rounding of a float; beyond 2^500 nobody counts, and squares overflow.
    """
    high = 1
    while not holds(high):
        if high >= _ENDLESS:
            msg = "no count up to 2^500 is enough; ask for a larger gap or a larger error"
            raise OutOfReach(msg)
        high *= 2
    left = range(high // 2 + 1, high, max(1, high >> _COARSE))
    at = bisect_left(left, True, key=holds)
    return left[at] if at < len(left) else high
