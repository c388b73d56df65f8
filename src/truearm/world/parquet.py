"""Large Parquet files, column by column: arms by the dictionary they are stored with, and then their readings.

Nothing is looked up row by row, and no row is decoded twice. What asks for a closer look is left to DuckDB.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.world.frames import MOST_ARMS, Floats, gathered

_ROWS = 1 << 17  # decoded at a time: a row group of DuckDB's, in memory that is at hand after the first


def tapes_in(file: Path, arm: str, value: str) -> dict[str, Floats] | None:
    """Return the readings of each arm, of a column of words and one of numbers; None if a row names no arm.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow
    >>> from pyarrow import parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "times.parquet")
    ...     parquet.write_table(pyarrow.table({"site": ["B", "A", "B"], "ms": [3, None, 5]}), file)
    ...     tapes_in(file, "site", "ms")
    {'B': array([3., 5.]), 'A': array([nan])}
    """
    from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]

    try:
        with parquet.ParquetFile(file, read_dictionary=[arm], pre_buffer=False) as opened:
            names: dict[str, int] = {}
            codes = np.concatenate(list(_codes(_cells(opened, arm), names)))
            counts = np.bincount(codes, minlength=len(names)).tolist()
            rows = _side_by_side(codes, _cells(opened, value))
            return gathered(rows, dict(zip(names, counts, strict=True)))
    except (ArrowException, OSError, ValueError):  # DuckDB may read it, or tells what is wrong
        return None


def _cells(opened: Any, column: str) -> Iterator[Any]:  # noqa: ANN401 - a file, and arrays of pyarrow
    for batch in opened.iter_batches(_ROWS, columns=[column], use_threads=False):
        [cells] = batch.columns
        yield cells


def _codes(words: Iterator[Any], names: dict[str, int]) -> Iterator[NDArray[Any]]:
    """Give the number of each row's name; raise a ValueError if one has none, or if there are too many."""
    from pyarrow import types

    known, codes = None, np.empty(0, np.uint8)
    for cells in words:
        if cells.null_count or not types.is_dictionary(cells.type):
            raise ValueError
        if known is None or not cells.dictionary.equals(known):
            known = cells.dictionary
            found = [names.setdefault(name, len(names)) for name in known.to_pylist()]
            codes = np.array(found, dtype=np.min_scalar_type(len(names)))
            if len(names) > MOST_ARMS or not all(isinstance(name, str) and name for name in names):
                raise ValueError
        places: NDArray[Any] = np.from_dlpack(cells.indices)
        yield codes.take(places)


def _side_by_side(codes: NDArray[Any], numbers: Iterator[Any]) -> Iterator[tuple[NDArray[Any], Floats]]:
    """Give codes and readings batch by batch; raise a ValueError if one column has more rows than the other."""
    start = 0
    for cells in numbers:
        values: NDArray[Any] = np.from_dlpack(cells.cast("float64", safe=False).fill_null(np.nan))
        yield codes[start : start + values.size], values
        start += values.size
    if start != codes.size:
        raise ValueError
