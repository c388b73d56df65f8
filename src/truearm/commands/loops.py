"""Time loops of code; this file is also sent as text to fresh processes, so it imports little.

Load only adds to a block, and most to a long one. So blocks are short, and a reading is their lower quartile: a
quarter of them undisturbed is enough. (The least block, which `timeit` shows, would favor code with more blocks.)
"""

import gc
import time

TYPE_CHECKING = False  # but true to type checkers
if TYPE_CHECKING:
    from collections.abc import Callable

    Timed = Callable[[int, Callable[[], float]], float]  # loops and clock to seconds

BLOCK_S = 0.0003
"""Least length of a block of loops: 10^4 ticks of the clock, and a tenth of a slice of the CPU."""
BLOCKS = 80
"""Blocks of a reading: together they take as long as starting Python does."""
MAX_READING_S = 0.05
"""After this time no further block is started."""


def calibrate(timed: "Timed") -> int:
    """Return how many loops make a block, by the best of a few tries."""
    loops = 1
    while (took := min(_blocks(timed, loops, 5))) < BLOCK_S:
        loops *= min(10, max(2, int(1.2 * BLOCK_S / max(took, 1e-9))))
    return loops


def measure(timed: "Timed", loops: int) -> float:
    """Return seconds per loop: the lower quartile of blocks, after one that warms up."""
    took = _blocks(timed, loops, BLOCKS + 1)
    warm = sorted(took[1:] or took)
    return warm[len(warm) // 4] / loops


def _blocks(timed: "Timed", loops: int, most: int) -> "list[float]":
    took: list[float] = []
    started, collecting = time.perf_counter(), gc.isenabled()
    while len(took) < most and (not took or time.perf_counter() - started < MAX_READING_S):
        gc.disable()
        try:
            took.append(timed(loops, time.perf_counter))
        finally:
            if collecting:
                gc.enable()
    return took
