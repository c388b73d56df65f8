"""The loops that time code: the same ones here and in fresh processes, which are given this file as text.

Only what any Python of the last years has, and nothing that takes long to import: a process is started for every
reading. Load only adds to a block, and most to a long one, which is more likely to be interrupted. So blocks are
short, and a reading is their lower quartile: a quarter of them undisturbed is enough. (The least of them, which
`timeit` shows, would favor code that has more blocks.)
"""

import gc
import time

TYPE_CHECKING = False  # but true to type checkers
if TYPE_CHECKING:
    from collections.abc import Callable

    Timed = Callable[[int, Callable[[], float]], float]  # of so many loops, by that clock, the seconds

BLOCK = 0.0003
"""Seconds that a block of loops takes at least: 10^4 ticks of the clock, and a tenth of a slice of the CPU."""

BLOCKS = 80
"""Blocks of a reading: together they take as long as starting Python does."""

LONG = 0.05
"""Seconds after which no further block is begun."""


def calibrated(timed: "Timed") -> int:
    """Return how many loops make a block of `BLOCK` seconds or longer, by the best of a few tries."""
    loops = 1
    while (took := min(_blocks(timed, loops, 5))) < BLOCK:
        loops *= min(10, max(2, int(1.2 * BLOCK / max(took, 1e-9))))
    return loops


def measured(timed: "Timed", loops: int) -> float:
    """Return seconds per loop: the lower quartile of some blocks, after one that warms up."""
    took = _blocks(timed, loops, BLOCKS + 1)
    warm = sorted(took[1:] or took)
    return warm[len(warm) // 4] / loops


def _blocks(timed: "Timed", loops: int, most: int) -> "list[float]":
    """Time blocks until there are enough, or until they took long; garbage is collected between them only."""
    took: list[float] = []
    begun, collecting = time.perf_counter(), gc.isenabled()
    while len(took) < most and (not took or time.perf_counter() - begun < LONG):
        gc.disable()
        try:
            took.append(timed(loops, time.perf_counter))
        finally:
            if collecting:
                gc.enable()
    return took
