"""Bisection: find where a condition that changes once changes."""

from bisect import bisect_left
from collections.abc import Callable

from truearm.errors import OutOfReach

MAX_COUNT = 1 << 500
_COARSE = 60  # a range has fewer than 2^63 places; numbers that agree in 60 bits are the same float


def bracket(
    holds: Callable[[float], bool], inside: float, outside: float, *, accuracy: float = 0.0, relative: float = 0.0
) -> tuple[float, float]:
    """Return two near numbers between which a condition ends, first the one at which it holds.

    The condition is assumed to hold at `inside` and not at `outside`, in any order, and is evaluated at neither.
    `accuracy` and `relative`, a share of the second number, set how near; by default to the last bit.
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


def first_true(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the lowest float in [low, high] at which a monotone condition holds; high if it never does."""
    return low if holds(low) else last_true(holds, high, low)


def first_count(holds: Callable[[int], bool]) -> int:
    """Return the first of 1, 2, 3, ... at which a monotone condition holds.

    Beyond 2^60 it is exact up to the rounding of a float; beyond 2^500 it raises, as squares overflow.
    """
    high = 1
    while not holds(high):
        if high >= MAX_COUNT:
            raise OutOfReach("no count up to 2^500 is enough; use a larger gap or a larger error")
        high *= 2
    left = range(high // 2 + 1, high, max(1, high >> _COARSE))
    at = bisect_left(left, True, key=holds)
    return left[at] if at < len(left) else high
