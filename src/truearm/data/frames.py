"""Tables in memory: dicts of sequences, and whatever frame narwhals understands. A missing cell is NaN."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.data import engines
from truearm.data.cells import ABSENT, PLAIN, Form, bad_cell, number, show
from truearm.data.columns import Columns, check_distinct, check_number_of_arms, words_message
from truearm.data.dataset import Codes, Dataset, Floats, Rows, assemble, assemble_wide
from truearm.data.relations import (
    NO_ROWS,
    SUSPECT_ROWS,
    Relation,
    codes_of,
    no_order,
    unnamed,
    unreadable_note,
    wide_dataset,
)
from truearm.errors import InvalidArgument
from truearm.evidence.units import Reduction
from truearm.problem import as_number


class Frame:
    """A table whose cells are in memory.

    Parameters
    ----------
    cells
        The columns: sequences, or series of narwhals.
    text
        Whether numbers may be written as text: in JSON and Excel they may, in a frame that is a mistake.
    rows
        Whether columns were rows, so that empty cells at the end of one say only that it is shorter.
    """

    def __init__(
        self, cells: Mapping[Any, Any], form: Form = PLAIN, *, text: bool = False, rows: bool = True
    ) -> None:
        check_distinct(map(str, cells))
        self._cells = {str(name): column for name, column in cells.items()}
        self._form, self._text, self._rows, self._bad = form, text, rows, dict[str, int]()
        self.names = list(self._cells)

    def load(self, columns: Columns, reduction: Reduction) -> Dataset:
        """Return the readings of each arm, in the order of the rows unless a column says another one."""
        columns.check_in(self.names)
        data = self._wide(columns, reduction) if columns.arm is None else self._long(columns, reduction)
        notes = [unreadable_note(n, name) for name, n in self._bad.items()]
        return data._replace(notes=(*notes, *data.notes))

    def _long(self, columns: Columns, reduction: Reduction) -> Dataset:
        arm, value = str(columns.arm), str(columns.value)
        names, codes = self._labels(arm, "arm")
        if not codes.size:
            raise InvalidArgument(NO_ROWS)
        check_number_of_arms(len(names), arm)
        values = self._floats(value)
        group = None if columns.group is None else self._labels(columns.group, columns.group_kind)[1]
        order = None if columns.order in (None, "rows") else self._sortable(str(columns.order))
        for name, column in ((value, values), (columns.group, group), (columns.order, order)):
            if column is not None and column.size != codes.size:
                lengths = f"{arm!r} has {codes.size} rows and {name!r} {column.size}"
                raise InvalidArgument(f"columns must have the same length, but {lengths}")
        suspected = {name: self._head_codes(name, codes.size) for name in columns.suspects(self.names)}
        known = {name: head for name, head in suspected.items() if head is not None}
        return assemble(Rows(names, codes, values, group, order), columns, reduction, known)

    def _wide(self, columns: Columns, reduction: Reduction) -> Dataset:
        names = [name for name in self.names if name != columns.group]
        check_number_of_arms(len(names), None)
        tapes: dict[str, Floats] = {}
        failed: dict[str, InvalidArgument] = {}
        for name in names:
            try:
                tapes[name] = self._floats(name)
            except InvalidArgument as error:
                failed[name] = error
        words = [name for name in [*failed, *self._bad] if self._are_words(name)]
        readings = [name for name, tape in tapes.items() if name not in words]
        if words and readings:
            raise InvalidArgument(words_message(words[0], readings), "arm")
        if failed:
            raise next(iter(failed.values()))
        group = None if columns.group is None else self._labels(columns.group, columns.group_kind)[1]
        if self._rows:
            return wide_dataset(tapes, group, columns, reduction)
        return assemble_wide(tapes, group, columns, reduction)

    def _list(self, name: str) -> Any:  # noqa: ANN401 - a list, a tuple or an array
        column = self._cells[name]
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
            raise InvalidArgument(f"column {name!r} must be a list of readings, but got {show(column)}")
        if isinstance(column, np.ma.MaskedArray):  # any number may be under its mask
            hidden = np.ma.getmaskarray(column)
            return [None if hides else cell for cell, hides in zip(column.data, hidden, strict=True)]
        return column if isinstance(column, np.ndarray | list | tuple) else list(column)

    def _floats(self, name: str) -> Floats:
        """Return a column as floats, missing cells as NaN, or name the first row that is not a number."""
        column = self._cells[name]
        if _is_series(column):
            import narwhals as nw

            if column.dtype.is_numeric() or column.dtype == nw.Boolean:
                return _numeric(column)
            if column.dtype.is_temporal():
                msg = f"column {name!r} holds dates or times ({column.dtype}); convert them to numbers"
                raise InvalidArgument(msg, "value", name)
            if column.dtype not in (nw.String, nw.Object, nw.Unknown, nw.Categorical):
                msg = f"column {name!r} must hold numbers, but its type is {column.dtype}; convert it first"
                raise InvalidArgument(msg, "value", name)
            column = column.to_list()
        else:
            column = self._list(name)
        items = _as_array(column)
        if items.ndim == 1 and items.dtype.kind in "biuf":
            return items.astype(np.float64, copy=False)
        parsed = self._parse(column) if self._text else {}
        found, bad = np.empty(len(column)), 0
        for row, cell in enumerate(column, 1):
            try:
                found[row - 1] = (
                    parsed[cell] if isinstance(cell, str) and cell in parsed else _number(cell, row, name)
                )
            except InvalidArgument:
                if self._form.unreadable == "error":
                    raise
                found[row - 1] = np.nan
                bad += 1
        if bad:
            self._bad[name] = bad
        return found

    def _parse(self, column: Sequence[Any]) -> dict[str, float]:
        """Return the numbers in cells of text, by cell; cells that are not numbers are left out."""
        import duckdb

        words = sorted({cell for cell in column if isinstance(cell, str)})
        query = f"SELECT {number('c', self._form)} AS x FROM (SELECT unnest(?::VARCHAR[]) AS c)"
        with duckdb.connect() as connection:
            numbers = [x for (x,) in connection.execute(query, [words]).fetchall()] if words else []
        known = dict(zip(words, numbers, strict=True))
        return {
            word: np.nan if x is None else x
            for word, x in known.items()
            if x is not None or word.strip().lower() in ABSENT
        }

    def _are_words(self, name: str) -> bool:
        """Return True if every cell is a word: one word among numbers is a slip, not a column of names."""
        column = self._cells[name]
        cells = column.to_list() if _is_series(column) else column
        if isinstance(cells, str | bytes | Mapping) or not isinstance(cells, Iterable):
            return False
        known = [cell for cell in cells if cell is not None and cell != ""]
        return len(known) > 1 and all(isinstance(cell, str) and not cell.strip()[:1].isdigit() for cell in known)

    def _labels(self, name: str, kind: str) -> tuple[list[str], Codes]:
        """Return the different names in a column, and which of them each row has."""
        column = self._cells[name]
        if _is_series(column):
            return _series_labels(column, name, kind)
        cells = [None if _is_empty(cell) else str(cell) for cell in self._list(name)]
        if None in cells:
            raise unnamed(cells.index(None) + 1, name, kind, cells.count(None) - 1)
        return [str(cell) for cell in dict.fromkeys(cells)], codes_of(cells)

    def _head_codes(self, name: str, n: int) -> Codes | None:
        """Return numbers for the first cells of a column, -1 where one is empty; None if it has another length."""
        column = self._cells[name]
        if not hasattr(column, "__len__") or len(column) != n:
            return None
        head = column[:SUSPECT_ROWS].to_list() if _is_series(column) else list(column[:SUSPECT_ROWS])
        return codes_of([None if _is_empty(cell) else str(cell) for cell in head])

    def _sortable(self, name: str) -> NDArray[Any]:
        """Return a column as numbers that rows are put in order by."""
        column = self._cells[name]
        if _is_series(column) and type(column.dtype).__name__ == "Datetime":  # whole numbers lose no nanoseconds
            column = column.dt.timestamp("ns" if column.dtype.time_unit == "ns" else "us")
        cells = column.to_list() if _is_series(column) else self._list(name)
        numbers = _as_array(cells)
        if numbers.ndim == 1 and numbers.dtype.kind in "biuf" and not np.isnan(numbers).any():
            return numbers
        for row, cell in enumerate(cells, 1):
            if _is_empty(cell):
                msg = f"row {row} of column {name!r} is empty, so its place in the order is unknown; fill it, or "
                raise InvalidArgument(f"{msg}remove such rows", "order", name)
        words = any(isinstance(cell, str | bytes) for cell in cells)
        for read in (float, datetime.datetime.fromisoformat) if words else (lambda cell: cell,):
            try:
                keys = [read(cell) for cell in cells]
                along = sorted(range(len(keys)), key=keys.__getitem__)
            except (TypeError, ValueError):  # words that are neither, or times with a zone beside times without
                continue
            places = np.empty(len(keys), dtype=np.intp)
            places[along] = np.arange(len(keys))
            return places
        raise no_order(name)


def load_frame(frame: Any, columns: Columns, reduction: Reduction, form: Form = PLAIN) -> Dataset:  # noqa: ANN401
    """Return the readings in a dict, or in a frame that narwhals understands: eager, or lazy and of any size."""
    if isinstance(frame, Mapping):
        return Frame(frame, form, rows=False).load(columns, reduction)
    import narwhals as nw

    try:
        table = nw.from_native(frame)
        schema = table.collect_schema()
    except nw.exceptions.DuplicateError as error:
        msg = f"columns need different names: {' '.join(str(error).split())}; rename them"
        raise InvalidArgument(msg) from None
    except TypeError:
        msg = (
            "frame must be a pandas, polars or pyarrow table, a DuckDB relation, a dict of sequences or a path, "
            f"but got {type(frame).__name__}; write {{'A': [1, 2], 'B': [3, 4]}}, or the path of a file"
        )
        raise InvalidArgument(msg, "frame") from None
    for name in schema.names():
        if not isinstance(name, str):
            msg = f"names of columns must be strings, but got {name!r}; use frame.rename(columns=str) first"
            raise InvalidArgument(msg)
    if not isinstance(table, nw.LazyFrame):
        return frame_of(table, form).load(columns, reduction)
    if table.implementation.is_duckdb():
        return Relation(table.to_native(), form).load(columns, reduction)
    columns.check_in(schema.names())
    suspected = columns.suspects(schema.names())
    wanted = [*columns.named.values(), *suspected] if columns.arm else schema.names()
    chosen = table.select(*dict.fromkeys(wanted))
    rows = int(engines.fetch(table.select(n=nw.len()))["n"][0])
    if rows <= engines.MAX_ROWS or columns.arm is None:
        return _collect(chosen, form).load(columns, reduction)
    data = engines.load_lazy(table, columns, reduction)
    if suspected:
        head = _collect(chosen.head(SUSPECT_ROWS), form).load(columns._replace(order=None), reduction)
        data = data._replace(suspects=head.suspects)
    return data


def _collect(lazy: Any, form: Form) -> Frame:  # noqa: ANN401 - a lazy narwhals frame
    return frame_of(lazy.collect() if lazy.implementation.is_polars() else lazy.collect("pyarrow"), form)


def frame_of(table: Any, form: Form) -> Frame:  # noqa: ANN401 - a narwhals frame
    """Return a frame of narwhals as a table."""
    return Frame({name: table[name] for name in table.columns}, form)


def _is_series(column: object) -> bool:
    return type(column).__module__.startswith("narwhals")


def _as_array(column: Any) -> NDArray[Any]:  # noqa: ANN401 - any sequence
    try:
        return np.asarray(column)
    except ValueError:  # cells of different lengths
        return np.empty(0, dtype=object)


def _numeric(series: Any) -> Floats:  # noqa: ANN401 - a narwhals series
    import narwhals as nw

    try:
        floats = series.cast(nw.Float64)
    except ValueError:  # Arrow refuses to round whole numbers
        return np.array([np.nan if x is None else float(x) for x in series.to_list()])
    filled = floats.fill_null(float("nan")) if floats.null_count() else floats
    return np.asarray(filled.to_numpy(), dtype=np.float64)


def _series_labels(series: Any, name: str, kind: str) -> tuple[list[str], Codes]:  # noqa: ANN401
    import narwhals as nw

    if series.dtype.is_nested() or (series.implementation.is_polars() and series.dtype == nw.Object):
        raise InvalidArgument(f"column {name!r} must hold names, but its type is {series.dtype}; convert it first")
    empty = series.is_null()
    if series.dtype.is_float():
        empty = empty | series.is_nan().fill_null(True)
    elif not series.dtype.is_numeric():
        empty = empty | (series.cast(nw.String) == "").fill_null(True)
    if empty.any():
        raise unnamed(empty.arg_max() + 1, name, kind, int(empty.sum()) - 1)
    words = series if series.dtype == nw.String else series.cast(nw.String)
    if series.dtype.is_float() and series.implementation.is_pyarrow():  # which alone writes 1.0 as 1
        words = words.str.replace_all(r"^(-?\d+)$", r"\1.0")
    if words.implementation.is_pandas():
        codes, known = words.__native_namespace__().factorize(words.to_native())
        return [str(one) for one in known], np.asarray(codes, dtype=np.intp)
    if words.implementation.is_pyarrow() and str(words.to_native().type) == "string_view":
        words = nw.from_native(words.to_native().cast("string"), series_only=True)
    known = words.unique(maintain_order=True).to_list()
    if kind == "arm":
        check_number_of_arms(len(known), name)
    found = words.replace_strict(known, list(range(len(known))), return_dtype=nw.Int32) if known else words
    return known, np.asarray(found.to_numpy(), dtype=np.intp)


def _number(cell: Any, row: int, name: str) -> float:  # noqa: ANN401
    if cell is None or type(cell).__name__ == "NAType":  # pandas.NA
        return np.nan
    if isinstance(cell, datetime.date | datetime.time | np.datetime64):
        raise InvalidArgument(f"row {row} of column {name!r} is a date, {str(cell)!r}; convert it to a number")
    if isinstance(cell, str | bytes) or np.ndim(cell):
        raise bad_cell(cell, row, name)
    return as_number(f"row {row} of column {name!r}", cell, "use inf for what is beyond all numbers", boolean=True)


def _is_empty(cell: object) -> bool:
    """Return True if a cell is empty, by any of the names that programs have for it."""
    text = str(cell)
    return (
        not text or cell is np.ma.masked or (not isinstance(cell, str) and text in ("None", "nan", "<NA>", "NaT"))
    )
