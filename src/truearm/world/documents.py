"""Files that are read as a whole, cell by cell: Excel, JSON, and CSV where DuckDB is not installed."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from truearm.errors import InvalidArgument, first_line
from truearm.evidence.units import Reduction
from truearm.world import frames
from truearm.world.cells import Unnamed, is_absent, or_drop
from truearm.world.dialect import NO_ROWS
from truearm.world.imports import exported
from truearm.world.json_shapes import columns_in
from truearm.world.roles import Roles, check_distinct
from truearm.world.tapes import Collected, wide
from truearm.world.written import ABSENT, DIGITS_FIRST, Written, check_true, no_number


def sheet(file: Path, roles: Roles) -> dict[str, list[Any]]:
    """Return the named columns of the first sheet of a workbook, whose first row holds their names."""
    names, *cells = _sheet_rows(file)
    named = {i: str(name) for i, name in enumerate(names) if name is not None and str(name).strip()}
    check_distinct(name for name in named.values() if roles.arm is None or name in roles.columns)
    if not cells:
        raise InvalidArgument(NO_ROWS)
    return {name: [row[i] if i < len(row) else None for row in cells] for i, name in named.items()}


def _sheet_rows(file: Path) -> list[Sequence[Any]]:
    """Return the first row of a workbook, and those below in which something stands."""
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError:
        msg = f"reading {file.name!r} needs openpyxl; install it with: pip install openpyxl, or save it as CSV"
        raise InvalidArgument(msg) from None
    try:
        with file.open("rb") as opened:  # a file may have any name, a path must end in .xlsx
            book = openpyxl.load_workbook(opened, read_only=True, data_only=True)
            rows = book.worksheets[0].iter_rows(values_only=True)
            return [next(rows, ()), *(row for row in rows if any(cell is not None for cell in row))]
    except Exception as error:  # whatever broken bytes make of the packing, the markup and their reader
        if isinstance(error, MemoryError):
            raise
        msg = f"{file.name!r} is not an Excel workbook ({first_line(error)}); save it as .xlsx or CSV"
        raise InvalidArgument(msg) from None


def of_rows(
    columns: Mapping[str, Any], roles: Roles, how: Reduction, written: Written, *, drop_unnamed: bool
) -> Collected:
    """Return tapes of columns that are equally long because they were rows: a shorter one ends at its foot."""
    found = _of_columns(columns, roles, how, written, drop_unnamed=drop_unnamed)
    return found if roles.columns else wide(found.tapes, None, roles, how)


def _of_columns(
    columns: Mapping[str, Any], roles: Roles, how: Reduction, written: Written, *, drop_unnamed: bool
) -> Collected:
    wide = roles.arm is None
    if (
        roles.arm and roles.value and {roles.arm, roles.value} <= columns.keys()
    ):  # what rows hold that name no arm does not matter
        columns = {**columns, roles.value: _of_named(columns[roles.value], columns[roles.arm])}
    wanted = [name for name in columns if name != roles.unit] if wide else [str(roles.value)]
    if written.true is not None:
        told = (cell for name in wanted for cell in columns.get(name, ()) if isinstance(cell, str))
        words = {cell.strip() for cell in told if cell.strip().lower() not in ABSENT}
        check_true(sorted(words), written.true, wanted)
    cells = {name: _numbers(columns[name], name, written, names=wide) for name in wanted if name in columns}
    arm, value, unit, order = roles
    try:
        return frames.collect(
            {**columns, **cells}, arm, value, unit=unit, order=order, how=how, drop_unnamed=drop_unnamed
        )
    except Unnamed as error:
        raise InvalidArgument(or_drop(str(error))) from None


def _of_named(cells: Any, names: Any) -> Any:  # noqa: ANN401 - any sequences
    """Return cells with none beside a row without a name, if both are columns of the same rows."""
    if not isinstance(cells, list) or not isinstance(names, list) or len(cells) != len(names):
        return cells
    return [None if is_absent(name) else cell for cell, name in zip(cells, names, strict=True)]


def _numbers(column: Any, name: str, written: Written, *, names: bool) -> Any:  # noqa: ANN401 - any sequence
    """Return a column with numbers in the place of text; where it may be one of `names`, words stay words."""
    if not isinstance(column, list) or not any(isinstance(cell, str) for cell in column):
        return column
    read = [written.number(cell) if isinstance(cell, str) else cell for cell in column]
    wrong = [
        i for i, (cell, found) in enumerate(zip(column, read, strict=True)) if found is None and cell is not None
    ]
    if not wrong:
        return read
    if names and len(wrong) > 1 and not any(re.match(DIGITS_FIRST, column[i].strip()) for i in wrong):
        return column
    raise InvalidArgument(no_number(column[wrong[0]], wrong[0] + 1, name, written))


def from_json(file: Path, roles: Roles, how: Reduction, written: Written, *, drop_unnamed: bool) -> Collected:
    """Return what hyperfine or pyperf exported, or any of the shapes in which pandas writes a table."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_object)
    except InvalidArgument:
        raise
    except RecursionError:
        msg = f"{file.name!r} is nested too deeply to hold readings; save them as columns by name, or as records"
        raise InvalidArgument(msg) from None
    except ValueError as error:  # no JSON, not UTF-8, or a number with thousands of digits
        msg = f"{file.name!r} is not JSON: {first_line(error)}; one record per line is kind='jsonl'"
        raise InvalidArgument(msg) from None
    if isinstance(data, Mapping) and (known := exported(data, file, roles, how)) is not None:
        return known
    columns = columns_in(data, roles.columns)
    if columns is not None:
        return of_rows(columns, roles, how, written, drop_unnamed=drop_unnamed)
    if isinstance(data, Mapping):  # columns by name, with lengths of their own
        return _of_columns(data, roles, how, written, drop_unnamed=drop_unnamed)
    msg = f"{file.name!r} must hold columns by name, a list of records, or an export of hyperfine or pyperf"
    raise InvalidArgument(msg)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    check_distinct(name for name, _ in pairs)
    return dict(pairs)
