"""Cells as numbers, as names and as places in an order, and what to say of one that is none."""

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from truearm.errors import InvalidArgument
from truearm.evidence.units import Codes
from truearm.problem import as_number
from truearm.world.by_arm import Floats

_SHOWN = 60  # letters of a cell in a message: what is wrong shows at its beginning


def numbers(column: Any, name: str) -> Floats:  # noqa: ANN401 - any sequence
    """Return a column as floats, empty cells as NaN, or name the row that is no number."""
    if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
        msg = f"column {name!r} must be a list of readings, but got {shown(column)}"
        raise InvalidArgument(msg)
    if isinstance(column, np.ma.MaskedArray):  # under its mask any number may stand
        hidden = np.ma.getmaskarray(column)
        column = [None if hides else cell for cell, hides in zip(column.data, hidden, strict=True)]
    try:
        items = np.asarray(column)
    except ValueError:  # cells of different lengths
        items = np.empty(0, dtype=object)
    if items.ndim == 1 and items.dtype.kind in "biuf":
        return items.astype(np.float64, copy=False)
    return np.array([_number(cell, row, name) for row, cell in enumerate(column, 1)], dtype=np.float64)


def _number(cell: Any, row: int, name: str) -> float:  # noqa: ANN401
    if cell is None or type(cell).__name__ == "NAType":  # pandas.NA
        return np.nan
    if is_date(cell) or isinstance(cell, str | bytes) or np.ndim(cell):
        raise InvalidArgument(not_a_number(cell, row, name))
    return as_number(f"row {row} of column {name!r}", cell, "use inf for what is beyond all numbers", boolean=True)


def not_a_number(cell: object, row: int, name: str) -> str:
    """Return what to say of a cell that holds no number."""
    where = f"row {row} of column {name!r}"
    if is_date(cell):
        return f"{where} is a date, {str(cell)!r}; convert it to a number"
    remedy = "leave a cell empty for a reading that went wrong"
    with suppress(ValueError):
        if isinstance(cell, str) and math.isfinite(float(cell)):
            remedy = "it is text: convert the column to numbers first"
    return f"{where} must be a number, but got {shown(cell)}; {remedy}"


def shown(cell: object) -> str:
    """Return a cell as a message shows it."""
    text = " ".join(repr(cell).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def is_date(cell: object) -> bool:
    """Tell whether a cell is a date or a time, or says one."""
    if isinstance(cell, str):
        try:
            datetime.datetime.fromisoformat(cell)
        except ValueError:
            return False
        return True
    return isinstance(cell, datetime.date | datetime.time | np.datetime64)


def is_absent(cell: object) -> bool:
    """Tell whether a cell is empty, by any of the names that programs have for it."""
    text = str(cell)
    return (
        not text or cell is np.ma.masked or (not isinstance(cell, str) and text in ("None", "nan", "<NA>", "NaT"))
    )


def name_in(cell: object, row: int, column: str, part: str = "arm") -> str:
    """Return a cell as the name of an arm or a unit, or raise if it has none."""
    if is_absent(cell):
        raise InvalidArgument(unnamed(row, column, part))
    return str(cell)


class Unnamed(InvalidArgument):
    """A row names no arm, and was not to be left out."""


def unnamed(row: int, column: str, part: str = "arm", more: int = 0) -> str:
    """Return what to say of a row without an arm or a unit, and of as many more."""
    others = f", nor do{'es' * (more == 1)} {more:,} more" if more else ""
    return f"row {row} of column {column!r} names no {part}{others}; give it a name, or leave such rows out"


def or_drop(text: str) -> str:
    """Return what to say of a row without an arm where files are read: it names the option."""
    return f"{text} with drop_unnamed=True"


def ordering(cells: Sequence[Any], column: str) -> Codes:
    """Return the rows in the order of a column, equal ones as they stand."""
    plain = np.asarray(cells) if all(isinstance(cell, int | float) for cell in cells) else None
    if plain is not None and plain.dtype.kind in "biuf" and not np.isnan(plain).any():
        return np.argsort(plain, kind="stable")
    for row, cell in enumerate(cells, 1):
        if is_absent(cell):
            msg = f"row {row} of column {column!r} is empty, so its place in the order is unknown; fill it, or "
            raise InvalidArgument(msg + "leave such rows out")
    keys = _numbers_or_times(cells)
    try:
        found = None if keys is None else sorted(range(len(keys)), key=keys.__getitem__)
    except TypeError:  # numbers beside times, or times with a zone beside times without
        found = None
    if found is None:
        said, rows = f"order={column!r}", "order='rows'"
        msg = f"{said} must hold numbers or times, all of one kind; convert it, or say {rows}"
        raise InvalidArgument(msg)
    return np.array(found, dtype=np.intp)


def _numbers_or_times(cells: Sequence[Any]) -> Sequence[Any] | None:
    """Return cells to compare: words become numbers if all can, else times."""
    if not any(isinstance(cell, str | bytes) for cell in cells):
        return cells
    for reader in (float, datetime.datetime.fromisoformat):
        try:
            return [reader(cell) for cell in cells]
        except (TypeError, ValueError):
            continue
    return None
