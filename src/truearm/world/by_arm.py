"""Rows told apart by arm: codes and values in, one array of values per arm out, in threads and bounded memory."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Reader = Callable[[], Floats]
_BLOCK = 1 << 17  # rows told apart at a time: what is needed for them stays in a cache and in memory at hand
_KEPT = 31 << 20  # bytes: having freed so many at once, glibc keeps what is smaller, and its pages are used again
_SHARE = 256  # rows of a block per arm, at least: many arms need larger blocks
_AHEAD = 8  # blocks that may wait: memory is bounded wherever they come from


class Batch(NamedTuple):
    """Some rows."""

    codes: NDArray[Any]
    """The number of each row's arm."""
    values: Floats | Reader
    """Their readings, or what reads them in a thread."""
    sizes: NDArray[np.intp] | None = None
    """How many rows each arm has, if that is known."""


def grouped(batches: Iterable[Batch], names: Sequence[str]) -> dict[str, Floats]:
    """Return values split by code, arms in the order of their first rows."""
    counts, blocks = np.zeros(len(names), dtype=np.intp), list[Batch]()
    for codes, values, _ in _blocks(batches, len(names)):
        sizes = np.bincount(codes, minlength=len(names))
        blocks.append(Batch(codes, values, sizes))
        counts += sizes
    return gathered(blocks, dict(zip(names, counts.tolist(), strict=True)))


def gathered(batches: Iterable[Batch], counts: Mapping[str, int]) -> dict[str, Floats]:
    """Return values split by code, arms in the order of their first rows, from batches of rows.

    Parameters
    ----------
    batches
        Rows, in order; each batch is left behind before the next but a few is asked for.
    counts
        How many rows each arm has; their order is that of the codes.
    """
    np.empty(_KEPT, dtype=np.uint8)
    names, tapes = list(counts), [np.empty(n) for n in counts.values()]
    ends, first = np.zeros(len(names), dtype=np.intp), list[int]()
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # numpy does not hold the interpreter meanwhile
        pending = deque[Future[None]]()
        for codes, values, known in _blocks(batches, len(names)):
            sizes = np.bincount(codes, minlength=len(names)) if known is None else known
            if ((sizes > 0) & (ends == 0)).any():
                found, at = np.unique(codes, return_index=True)
                first += [i for i in found[np.argsort(at)].tolist() if not ends[i]]
            places = [
                tape[end : end + n] for tape, end, n in zip(tapes, ends.tolist(), sizes.tolist(), strict=True)
            ]
            pending.append(pool.submit(_told_apart, codes, values, places))
            ends += sizes
            if len(pending) > _AHEAD:
                pending.popleft().result()
        for work in pending:
            work.result()
    return {names[i]: tapes[i] for i in first}


def _told_apart(codes: NDArray[Any], values: Floats | Reader, places: Sequence[Floats]) -> None:
    """Write values to the places of their codes; raise a ValueError if there are not as many of them."""
    known = values if isinstance(values, np.ndarray) else values()
    if known.size != codes.size:
        msg = f"{codes.size} rows have {known.size} values"
        raise ValueError(msg)
    order, start = np.argsort(codes, kind="stable"), 0
    for place in places:
        known.take(order[start : start + place.size], out=place, mode="clip")  # other modes write a copy first
        start += place.size


def _blocks(batches: Iterable[Batch], arms: int) -> Iterator[Batch]:
    """Cut batches to what stays near the processor, but for those of which more is known."""
    size = max(_BLOCK, _SHARE * arms)
    for batch in batches:
        codes, values, sizes = batch
        if sizes is not None or not isinstance(values, np.ndarray):
            yield batch
            continue
        for start in range(0, codes.size, size):
            yield Batch(codes[start : start + size], values[start : start + size])
