"""Large Parquet files, a group of rows at a time: arms by the dictionary they are stored with, and their readings.

Nothing is looked up row by row, and no row is decoded twice. What asks for a closer look is left to DuckDB.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.world.by_arm import Batch, Floats, gathered
from truearm.world.roles import MOST_ARMS


def tapes_in(file: Path, arm: str, value: str) -> dict[str, Floats] | None:
    """Return the readings of each arm, of a column of words and one of numbers; None if a row names no arm."""
    from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]

    try:
        about = parquet.read_metadata(file)

        def cells(column: str, group: int) -> Any:  # noqa: ANN401 - an array of pyarrow
            with parquet.ParquetFile(file, metadata=about, read_dictionary=[arm], pre_buffer=False) as opened:
                return opened.read_row_group(group, columns=[column], use_threads=False).column(0)

        groups = range(about.num_row_groups)
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # pyarrow does not hold the interpreter meanwhile
            found = list(pool.map(lambda group: _coded(cells(arm, group)), groups))
        counts: dict[str, int] = {}
        for known, _, sizes in found:
            for name, n in zip(known, sizes, strict=True):
                counts[name] = counts.get(name, 0) + n
        if len(counts) > MOST_ARMS:
            return None
        numbers = {name: i for i, name in enumerate(counts)}
        rows = [_renumbered(*coded, numbers) for coded in found]
        readings = (partial(lambda group: _floats(cells(value, group)), group) for group in groups)
        return gathered(
            (Batch(codes, read, sizes) for (codes, sizes), read in zip(rows, readings, strict=True)), counts
        )
    except (ArrowException, OSError, ValueError):  # DuckDB may read it, or tells what is wrong
        return None


def _coded(words: Any) -> tuple[list[str], NDArray[Any], list[int]]:  # noqa: ANN401 - an array of pyarrow
    """Return the names in a column, the number of each row's, and how many rows have each name.

    Raise a ValueError if a row has none, or if there are too many.
    """
    from pyarrow import types

    if words.null_count or not types.is_dictionary(words.type):
        raise ValueError
    whole = _in_one(words.unify_dictionaries())
    names = whole.dictionary.to_pylist() if len(whole.dictionary) <= MOST_ARMS else []
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError
    places: NDArray[Any] = np.from_dlpack(whole.indices)
    codes = places.astype(np.min_scalar_type(len(names)))
    return names, codes, np.bincount(places, minlength=len(names)).tolist()


def _renumbered(
    known: Sequence[str], codes: NDArray[Any], sizes: Sequence[int], numbers: Mapping[str, int]
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the codes of a group of rows as those of the whole file, and how many rows each arm has there."""
    there, all_sizes = [numbers[name] for name in known], np.zeros(len(numbers), dtype=np.intp)
    all_sizes[there] = sizes
    if there == list(range(len(known))):
        return codes, all_sizes
    return np.array(there, dtype=np.min_scalar_type(len(numbers))).take(codes), all_sizes


def _floats(cells: Any) -> Floats:  # noqa: ANN401 - an array of pyarrow
    floats = cells.cast("float64", safe=False)
    whole: NDArray[Any] = np.from_dlpack(_in_one(floats.fill_null(np.nan) if floats.null_count else floats))
    return whole


def _in_one(cells: Any) -> Any:  # noqa: ANN401 - arrays of pyarrow
    """Return a column in one piece, without a copy where it is one."""
    return cells.chunk(0) if cells.num_chunks == 1 else cells.combine_chunks()
