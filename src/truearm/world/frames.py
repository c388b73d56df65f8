"""From whatever frame a user has to one array of readings per arm. Nothing is decided here, or read from disk.

A frame is long (one column names the arm, one holds the reading) or wide (one column of readings per arm). A cell
without a value is a missing reading and becomes NaN. The columns of a dict have lengths of their own, so that
nothing at their foot is taken away.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument
from truearm.evidence.units import MEDIANS, Reduction
from truearm.world.by_arm import _BLOCK, Floats
from truearm.world.cells import Unnamed, is_absent, is_date, name_in, numbers, shown, unnamed
from truearm.world.roles import Roles, check_distinct, check_number_of_arms, holds_words
from truearm.world.tapes import MOST_SUSPECTED, Collected, Rows, assembled, wide


def tapes_of(
    frame: Any,  # noqa: ANN401 - whatever narwhals understands
    arm: str | None = None,
    value: str | None = None,
    *,
    unit: str | None = None,
    order: str | None = None,
) -> dict[str, Floats]:
    """Return the readings of each arm; `collect` also tells what is known of them.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table, a DuckDB relation, or a dict of sequences.
    arm, value
        Names of the two columns of a long frame; without them every column is an arm.
    unit
        Name of the column of what was drawn independently: its readings become one.
    order
        "rows" if rows are in order of pull, or the name of a column to put them in order by.
    """
    return collect(frame, arm, value, unit=unit, order=order).tapes


def collect(
    frame: Any,  # noqa: ANN401 - whatever narwhals understands
    arm: str | None = None,
    value: str | None = None,
    *,
    unit: str | None = None,
    order: str | None = None,
    how: Reduction = MEDIANS,
    drop_unnamed: bool = False,
) -> Collected:
    """Return the readings of each arm and what is known of how they came to be.

    Parameters
    ----------
    frame
        As for `tapes_of`, or what was collected before.
    arm, value, unit, order
        As for `tapes_of`.
    how
        How the readings of one unit become one.
    drop_unnamed
        Leave out rows that name no arm, and count them.
    """
    roles = Roles(arm, value, unit, order).checked()
    if isinstance(frame, Collected):
        if any(name is not None for name in roles):
            given = next(argument for argument, name in roles._asdict().items() if name is not None)
            msg = f"{given} is given, but these readings were collected before; leave it out, or give the frame"
            raise InvalidArgument(msg)
        return frame
    read = _from_mapping if isinstance(frame, Mapping) else _from_table
    found = read(frame, roles, how, drop_unnamed=drop_unnamed)
    if roles.arm is not None and not found.tapes:
        msg = "the data have no rows; check what was to fill them"
        raise InvalidArgument(msg)
    return found


def _from_mapping(frame: Mapping[Any, Any], roles: Roles, how: Reduction, *, drop_unnamed: bool) -> Collected:
    check_distinct(map(str, frame))
    columns = {str(name): column for name, column in frame.items()}
    if roles.arm is None or roles.value is None:
        roles.check_columns(list(columns))
        named = columns.pop(roles.unit, ()) if roles.unit is not None else ()
        tapes = _wide(columns, numbers)
        if roles.unit is None or not tapes:
            return Collected(tapes, ordered=roles.order is not None)
        told = enumerate(_cells(named, roles.unit), 1)
        return wide(tapes, [name_in(cell, row, roles.unit, "unit") for row, cell in told], roles, how)
    roles.check_columns(list(columns))
    names: dict[str, int] = {}
    cells_of_arm = _cells(columns[roles.arm], roles.arm)
    nameless = [i for i, cell in enumerate(cells_of_arm) if is_absent(cell)]
    if nameless and drop_unnamed:
        kept = {name: _without(columns[name], nameless, len(cells_of_arm)) for name in columns}
        found = _from_mapping(kept, roles, how, drop_unnamed=False)
        return found._replace(dropped=len(nameless))
    if nameless:
        raise Unnamed(unnamed(nameless[0] + 1, roles.arm, more=len(nameless) - 1))
    codes = [names.setdefault(str(cell), len(names)) for cell in cells_of_arm]
    check_number_of_arms(len(names), roles.arm)
    values = numbers(columns[roles.value], roles.value)
    cells = {name: _cells(columns[name], name) for name in roles.columns[2:]}
    for name, n in ((roles.value, values.size), *((name, len(column)) for name, column in cells.items())):
        if len(codes) != n:
            msg = f"columns must have the same length, but {roles.arm!r} has {len(codes)} rows and {name!r} {n}"
            raise InvalidArgument(msg)
    units = roles.unit and [
        name_in(cell, row, roles.unit, "unit") for row, cell in enumerate(cells[roles.unit], 1)
    ]
    return assembled(
        Rows(
            list(names),
            np.array(codes, dtype=np.intp),
            values,
            units or None,
            cells.get(roles.order) if roles.order else None,
            _suspected(columns, roles, len(codes)),
        ),
        roles,
        how,
    )


def _cells(column: Any, name: str) -> Sequence[Any]:  # noqa: ANN401 - any sequence
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        msg = f"column {name!r} must be a list of cells, but got {shown(column)}"
        raise InvalidArgument(msg)
    return list(column)


def _without(column: Any, places: Sequence[int], n: int) -> Any:  # noqa: ANN401 - any sequence
    """Return a column without the cells at some places, if it is one of n rows."""
    if isinstance(column, str | bytes) or getattr(column, "__len__", int)() != n:
        return column
    out = set(places)
    return [cell for i, cell in enumerate(column) if i not in out]


def _suspected(columns: Mapping[str, Any], roles: Roles, n: int) -> dict[str, list[Any]]:
    """Return the first rows of the columns named like a unit; one of another length is no column of these rows."""
    fitting = [name for name in roles.suspects(columns) if getattr(columns[name], "__len__", int)() == n]
    return {name: list(islice(columns[name], MOST_SUSPECTED)) for name in fitting}


def _wide(columns: Mapping[str, Any], reader: Callable[[Any, str], Floats]) -> dict[str, Floats]:
    """Return every column as floats; one of words beside one of numbers says that the frame is long."""
    check_number_of_arms(len(columns), None)
    tapes: dict[str, Floats] = {}
    failed: dict[str, InvalidArgument] = {}
    for name, column in columns.items():
        try:
            tapes[name] = reader(column, name)
        except InvalidArgument as error:
            failed[name] = error
    words = [name for name in failed if _are_words(columns[name])]
    if words and tapes:
        raise InvalidArgument(holds_words(words[0], list(tapes)))
    if failed:
        raise next(iter(failed.values()))
    return tapes


def _are_words(column: Any) -> bool:  # noqa: ANN401 - any sequence
    """Return whether no cell is anything but a word: one word among numbers is a slip, not a column of names."""
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        return False
    cells = [cell for cell in column if cell is not None]
    return len(cells) > 1 and all(isinstance(cell, str) and not is_date(cell) for cell in cells)


def _from_table(frame: Any, roles: Roles, how: Reduction, *, drop_unnamed: bool) -> Collected:  # noqa: ANN401
    import narwhals as nw

    try:
        table = native(frame)
        columns = table.collect_schema().names()
    except TypeError:
        msg = (
            f"frame must be a pandas, polars or pyarrow table, a DuckDB relation, or a dict of sequences, but got "
            f"{type(frame).__name__}; write {{'A': [1, 2], 'B': [3, 4]}}, or the path of a file"
        )
        raise InvalidArgument(msg) from None
    for name in columns:
        if not isinstance(name, str):
            msg = f"names of columns must be strings, but got {name!r}; use frame.rename(columns=str) first"
            raise InvalidArgument(msg)
    if roles.arm is None or roles.value is None:
        check_number_of_arms(len(columns), None)
        roles.check_columns(columns)
        rows = table.collect() if isinstance(table, nw.LazyFrame) else table
        tapes = _wide({name: rows[name] for name in columns if name != roles.unit}, floats_of)
        return wide(tapes, None if roles.unit is None else _labels(rows, roles.unit), roles, how)
    roles.check_columns(columns)
    check_named(table.collect_schema(), roles, table.implementation.is_polars())
    suspects = roles.suspects(columns)
    chosen = table.select(*roles.columns, *suspects)
    long = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    if len(long) and long[roles.arm].dtype == nw.String and not long[roles.arm].null_count():
        rows = _rows(long, roles, suspects)
        if "" not in rows.names:  # each name is looked at once, not each row
            return assembled(rows, roles, how)
    nameless = _nameless(long[roles.arm])
    if nameless is not None and drop_unnamed:
        dropped = int(nameless.sum())
        found = assembled(_rows(long.filter(~nameless), roles, suspects), roles, how)
        return found._replace(dropped=dropped)
    if nameless is not None:
        row, more = nameless.arg_max() + 1, int(nameless.sum()) - 1
        raise Unnamed(unnamed(row, roles.arm, more=more))
    if not len(long):
        return Collected({}, ordered=roles.order is not None)
    return assembled(_rows(long, roles, suspects), roles, how)


def native(frame: Any, **how: Any) -> Any:  # noqa: ANN401 - what narwhals takes and gives
    """Return a frame as narwhals sees it, or say that two of its columns have one name."""
    import narwhals as nw

    try:
        return nw.from_native(frame, **how)
    except nw.exceptions.DuplicateError as error:
        msg = f"columns need names of their own: {' '.join(str(error).split())}; rename them"
        raise InvalidArgument(msg) from None


def check_named(schema: Mapping[str, Any], roles: Roles, polars: bool) -> None:
    """Raise if what should name arms or units are lists, records, or objects that Polars cannot read."""
    import narwhals as nw

    for column in (roles.arm, roles.unit):
        kind = schema.get(column) if column is not None else None
        if kind is not None and (kind.is_nested() or (polars and kind == nw.Object)):
            msg = f"column {column!r} must hold names, but its type is {kind}; convert it first"
            raise InvalidArgument(msg)


def _nameless(series: Any) -> Any:  # noqa: ANN401 - narwhals series
    """Return which cells hold no name, None if all do."""
    import narwhals as nw

    found = [series.is_null()] if series.null_count() else []
    if series.dtype.is_float():
        found.append(series.is_nan().fill_null(True))
    elif not series.dtype.is_numeric():
        found.append((series.cast(nw.String) == "").fill_null(True))
    nameless = found[0] if found else None
    for more in found[1:]:
        nameless = nameless | more
    return nameless if nameless is not None and nameless.any() else None


def _rows(table: Any, roles: Roles, suspects: Sequence[str]) -> Rows:  # noqa: ANN401 - a narwhals frame
    import narwhals as nw

    arm, value, unit, order = roles
    values = floats_of(table[value], str(value))
    names = table[arm] if table[arm].dtype == nw.String else table[arm].cast(nw.String)
    if table[arm].dtype.is_float() and table.implementation.is_pyarrow():  # which alone writes 1.0 as 1
        names = names.str.replace_all(r"^(-?\d+)$", r"\1.0")
    found, codes = _factorized(names, str(arm))
    return Rows(
        found,
        codes.astype(np.min_scalar_type(len(found))),
        values,
        None if unit is None else _labels(table, unit),
        None if order in (None, "rows") else _places(table[order]),
        {name: table[name].head(MOST_SUSPECTED).to_list() for name in suspects},
    )


def _factorized(names: Any, arm: str) -> tuple[list[str], NDArray[Any]]:  # noqa: ANN401 - a narwhals series
    """Return the different names, as they first appear, and the number of each row's among them."""
    import narwhals as nw

    kind, cells = names.implementation, names.to_native()
    if kind.is_pandas():
        codes, uniques = names.__native_namespace__().factorize(cells)
        check_number_of_arms(len(uniques), arm)
        return [str(name) for name in uniques], codes
    if kind.is_polars():  # measured: less than half of the time of `replace_strict`
        polars = names.__native_namespace__()
        for some in (names.head(MOST_SUSPECTED), names):  # the first rows name all arms, as a rule
            found = some.unique(maintain_order=True).to_list()
            check_number_of_arms(len(found), arm)
            kind_of_name = polars.Enum(found)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                parts = (cells.slice(start, _BLOCK) for start in range(0, len(cells), _BLOCK))
                cast = pool.map(lambda part, to=kind_of_name: part.cast(to, strict=False).to_physical(), parts)
                codes = polars.concat(cast)
            if not codes.null_count():
                break
        return found, codes.to_numpy()
    if kind.is_pyarrow() and str(cells.type) == "string_view":  # most of Arrow does not know it
        names = nw.from_native(cells.cast("string"), series_only=True)
    found = names.unique(maintain_order=True).to_list()
    check_number_of_arms(len(found), arm)
    return found, names.replace_strict(found, list(range(len(found))), return_dtype=nw.Int32).to_numpy()


def _places(series: Any) -> list[Any]:  # noqa: ANN401 - a narwhals series
    """Return cells to put rows in order by; times as whole numbers, which compare faster."""
    import narwhals as nw

    if series.dtype == nw.Datetime:
        series = series.dt.timestamp("ns" if series.dtype.time_unit == "ns" else "us")
    cells: list[Any] = series.to_list()
    return cells


def _labels(table: Any, unit: str) -> list[object]:  # noqa: ANN401 - a narwhals frame
    """Return what tells units apart; numbers need no words."""
    import narwhals as nw

    series = table[unit]
    if (nameless := _nameless(series)) is not None:
        raise InvalidArgument(unnamed(nameless.arg_max() + 1, unit, "unit", more=int(nameless.sum()) - 1))
    labels: list[object] = (series if series.dtype.is_integer() else series.cast(nw.String)).to_list()
    return labels


def floats_of(series: Any, name: str) -> Floats:  # noqa: ANN401 - a narwhals series
    """Return a series as floats, empty cells as NaN, or say what it holds instead of numbers."""
    import narwhals as nw

    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        try:
            floats = series.cast(nw.Float64)
        except ValueError:  # of Arrow: whole numbers that floats have to round
            return numbers(series.to_list(), name)
        filled = floats.fill_null(float("nan")) if floats.null_count() else floats
        return np.asarray(filled.to_numpy(), dtype=np.float64)
    if series.dtype in (nw.String, nw.Object, nw.Unknown, nw.Categorical):
        return numbers(series.to_list(), name)
    if series.dtype.is_temporal():
        msg = f"column {name!r} holds dates or times ({series.dtype}); convert them to numbers"
        raise InvalidArgument(msg)
    msg = f"column {name!r} must hold numbers, but its type is {series.dtype}; convert it first"
    raise InvalidArgument(msg)
