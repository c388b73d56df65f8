"""Tables as the readings of each arm: cells in memory, or in DuckDB. A missing cell is NaN."""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from truearm.data import engines
from truearm.data.cells import PLAIN, Form, as_float, bad_cell, is_numeric, literal, quote, select_numbers, trim
from truearm.data.columns import (
    MAX_ARMS,
    NO_COLUMNS,
    Codes,
    Columns,
    Dataset,
    Floats,
    assemble,
    assemble_wide,
    check_distinct,
    check_number_of_arms,
    is_counter,
    words_message,
)
from truearm.data.engines import HEAD_ROWS
from truearm.errors import InvalidArgument
from truearm.evidence.counts import Counts
from truearm.evidence.units import MEDIANS, Reduction, Suspect
from truearm.problem import refuse, require

NO_ROWS = "the data have no rows; check that the first line of a file names its columns"
PART_ROWS = 1 << 21  # rows whose groups have their medians computed at once
REDUCED_ROWS = 1 << 20  # rows from which on DuckDB makes one reading of each unit
_SOURCE, _CELLS = "truearm_source", "truearm_cells"
_FLOATS = ("FLOAT", "DOUBLE")
_NESTED = re.compile(r".*\[\d*\]|STRUCT.*|MAP.*|UNION.*", re.DOTALL)
_NUMBER_START = re.compile(r"[-+(]?[^A-Za-z0-9]?\s*[0-9]")

Bad = dict[str, NDArray[np.bool_]]  # for columns with cells that are not numbers, which cells these are


def load(
    source: Any,  # noqa: ANN401 - a frame, a path, or several paths
    columns: Columns = NO_COLUMNS,
    reduction: Reduction = MEDIANS,
    form: Form = PLAIN,
    query: str | None = None,
) -> Dataset:
    """Return the readings of each arm in a frame, or in a file, several files or a database.

    A path may be a pattern, a folder, the address of a database, or "-" for standard input.
    """
    for name, column in columns._asdict().items():
        shown = " ".join(repr(column).split())
        msg = f"{name} must be the name of a column, a string, but got {shown:.80}"
        refuse(column is not None and not isinstance(column, str), msg, name, column)
    is_text = query is None or (isinstance(query, str) and not re.search("[\ud800-\udfff]", query))
    require(is_text, "query", query, "be SQL, such as 'select arm, ms from data'")
    if isinstance(source, Counts):
        return Dataset({}, counted=source)
    paths = [source] if isinstance(source, str | Path) else source
    if isinstance(paths, Sequence) and paths and all(isinstance(path, str | Path) for path in paths):
        from truearm.data.files import load_files

        return load_files(list(map(str, paths)), columns, reduction, form, query)
    refuse(query is not None, "query is for files and databases; remove it for data in memory", "query")
    for name, value in form._replace(unreadable=PLAIN.unreadable)._asdict().items():
        msg = f"{name}={value!r} says how a file is written; remove it for data in memory"
        refuse(value != getattr(PLAIN, name), msg, name, value)
    return load_frame(source, columns, reduction, form)


def load_frame(frame: Any, columns: Columns, reduction: Reduction, form: Form) -> Dataset:  # noqa: ANN401
    """Return the readings in a dict, or in a frame that narwhals understands: eager, or lazy and of any size."""
    if isinstance(frame, Mapping):
        return Table(frame, form, is_padded=False).load(columns, reduction)
    try:
        table = nw.from_native(frame)
        names = table.collect_schema().names()
    except nw.exceptions.DuplicateError as error:
        msg = f"columns need different names: {' '.join(str(error).split())}; rename them"
        raise InvalidArgument(msg) from None
    except TypeError:
        msg = (
            "frame must be a pandas, polars or pyarrow table, a DuckDB relation, a dict of sequences or a path, "
            f"but got {type(frame).__name__}; write {{'A': [1, 2], 'B': [3, 4]}}, or the path of a file"
        )
        raise InvalidArgument(msg, "frame") from None
    for name in names:
        msg = f"names of columns must be strings, but got {name!r}; use frame.rename(columns=str) first"
        refuse(not isinstance(name, str), msg, "frame")
    if not isinstance(table, nw.LazyFrame):
        return Table(table.to_dict(), form).load(columns, reduction)
    if table.implementation.is_duckdb():
        return Relation(table.to_native(), form).load(columns, reduction)
    columns.check_in(names)
    suspected = columns.suspects(names)
    chosen = table.select(*dict.fromkeys([*columns.by_argument.values(), *suspected])) if columns.arm else table
    if columns.arm is None:
        Table(engines.collect(table.head(HEAD_ROWS)), form).check_head(columns)
    rows = int(engines.fetch(table.select(n=nw.len()))["n"][0])
    if rows <= engines.MAX_ROWS or columns.arm is None:
        return Table(engines.collect(chosen), form).load(columns, reduction)
    data = engines.load_rows(engines.prepare(table, columns), columns, reduction)
    if suspected:
        head = Table(engines.collect(chosen.head(HEAD_ROWS)), form)
        data = data._replace(suspects=head.load(columns, reduction).suspects)
    return data


class Table:
    """Columns that become the readings of each arm; cells are sequences in memory."""

    is_padded = True
    """Whether empty cells at the end of a wide column mean that it is shorter, not that readings are missing."""

    def __init__(self, cells: Mapping[Any, Any], form: Form, *, is_padded: bool = True) -> None:
        check_distinct(map(str, cells))
        self._cells: dict[str, Any] = {
            str(name): list(column) if isinstance(column, Iterator) else column for name, column in cells.items()
        }
        self.names, self.form, self.is_padded = list(self._cells), form, is_padded

    def load(self, columns: Columns, reduction: Reduction) -> Dataset:
        """Return the readings of each arm, in the order of the rows unless a column gives another one."""
        columns.check_in(self.names)
        self.check_head(columns)
        return self._load(columns, reduction)

    def check_head(self, columns: Columns) -> None:
        """Raise for a cell that is not a number in the first rows, before all rows are read."""
        names = [name for name in self.names if name != columns.group]
        names = names if columns.value is None else [columns.value]
        if self.form.unreadable == "error" and len(names) <= MAX_ARMS:
            self._check_cells(*self._numbers(names, HEAD_ROWS), is_wide=columns.value is None)

    def _load(self, columns: Columns, reduction: Reduction) -> Dataset:
        return self._load_wide(columns, reduction) if columns.arm is None else self._load_long(columns, reduction)

    def _load_long(self, columns: Columns, reduction: Reduction) -> Dataset:
        arm, value = str(columns.arm), str(columns.value)
        names, arms = self._label_rows(arm, "arm")
        refuse(not arms.size, NO_ROWS, "frame")
        tapes, notes = self._read_numbers([value])
        group = None if columns.group is None else self._label_rows(columns.group, columns.group_kind)[1]
        along = columns.by_argument.get("order")
        order = None if along is None else _order_keys(self._array(along), along)
        for name, column in ((value, tapes[value]), (columns.group, group), (columns.order, order)):
            if column is not None and column.size != arms.size:
                lengths = f"{arm!r} has {arms.size} rows and {name!r} {column.size}"
                raise InvalidArgument(f"columns must have the same length, but {lengths}")
        suspects = []
        for name in columns.suspects(self.names):
            codes = self._labels(name, HEAD_ROWS)[1]
            named = np.flatnonzero(codes[: arms.size] >= 0)
            suspects.append(Suspect(name, tapes[value][named], arms[named].astype(np.intp), codes[named]))
        data = assemble((names, arms), tapes[value], columns, reduction, groups=group, order=order)
        return data._replace(suspects=tuple(suspects), notes=(*notes, *data.notes))

    def _load_wide(self, columns: Columns, reduction: Reduction) -> Dataset:
        names = [name for name in self.names if name != columns.group]
        check_number_of_arms(len(names))
        tapes, notes = self._read_numbers(names, is_wide=True)
        refuse(self.is_padded and not any(tape.size for tape in tapes.values()), NO_ROWS, "frame")
        group = None if columns.group is None else self._label_rows(columns.group, columns.group_kind)[1]
        data = assemble_wide(tapes, group, columns, reduction, is_padded=self.is_padded)
        return data._replace(notes=(*notes, *data.notes))

    def _label_rows(self, name: str, kind: str) -> tuple[list[str], Codes]:
        names, codes = self._labels(name)
        empty = codes < 0
        if empty.any():
            row, more = int(np.argmax(empty)) + 1, int(empty.sum()) - 1
            others = f", nor do{'es' * (more == 1)} {more:,} more" if more else ""
            msg = f"row {row} of column {name!r} names no {kind}{others}; give it a name, or remove such rows"
            raise InvalidArgument(msg, kind, name)
        if kind == "arm":
            check_number_of_arms(len(names), name)
        return names, codes

    def _read_numbers(self, names: list[str], *, is_wide: bool = False) -> tuple[dict[str, Floats], list[str]]:
        """Return columns as floats, and a note on cells that are not numbers where these are not an error."""
        tapes, bad = self._numbers(names)
        self._check_cells(tapes, bad, is_wide=is_wide)
        n = sum(int(mask.sum()) for mask in bad.values())
        return tapes, _note_unreadable(n, ", ".join(bad))

    def _check_cells(self, tapes: Mapping[str, Floats], bad: Bad, *, is_wide: bool) -> None:
        """Raise for cells that are not numbers, unless they count as missing, and for columns of words."""
        first = {name: int(np.argmax(mask)) for name, mask in bad.items()}
        if is_wide and bad:
            readings = [name for name, tape in tapes.items() if not np.isnan(tape).all()]
            for name, mask in sorted(bad.items(), key=lambda item: is_counter(item[0])):
                words = name not in readings and np.count_nonzero(mask) > 1  # a single word is a typo
                cell = self._cell(name, first[name]) if words else None
                if isinstance(cell, str) and not _NUMBER_START.match(cell.strip()):  # nor a date
                    raise InvalidArgument(words_message(name, readings), "arm")
        for name, row in first.items():
            if self.form.unreadable == "error":
                raise bad_cell(self._cell(name, row), row + 1, name)

    def _labels(self, name: str, rows: int | None = None) -> tuple[list[str], Codes]:
        """Return the distinct names in the first rows of a column, and the index of each row's name, or -1."""
        series = self._cells[name]
        # a series of narwhals, of which no cell becomes an object
        if rows is None and str(getattr(series, "dtype", "")) == "String":
            names = series.unique(maintain_order=True).to_list()
            if len(names) <= MAX_ARMS and all(isinstance(one, str) and one for one in names):
                return names, series.replace_strict(names, [*range(len(names))]).to_numpy().astype(np.intp)
        column = self._array(name)[:rows]
        if column.dtype.kind == "M":  # `tolist` would return nanoseconds as numbers
            column = np.where(np.isnat(column), "", column.astype(str))
        kinds = set(map(type, column)) & {list, dict, tuple, np.ndarray} if rows is None else ()
        msg = f"column {name!r} must hold names, but its type is {', '.join(kind.__name__ for kind in kinds)}"
        refuse(kinds, f"{msg}; convert it first")
        return _label_cells(column.tolist())

    def _numbers(self, names: Sequence[str], rows: int | None = None) -> tuple[dict[str, Floats], Bad]:
        """Return columns, or their first rows, as floats: NaN where a cell is missing or not a number."""
        tapes: dict[str, Floats] = {}
        bad: Bad = {}
        for name in names:
            column = self._array(name)[:rows]
            if column.dtype.kind in "biuf":
                tapes[name] = column.astype(np.float64, copy=False)
                continue
            found = list(map(as_float, column))
            tapes[name] = np.array([np.nan if x is None else x for x in found], dtype=np.float64)
            if None in found:
                bad[name] = np.array([x is None for x in found])
        return tapes, bad

    def _cell(self, name: str, row: int) -> Any:  # noqa: ANN401 - whatever a cell holds
        return self._array(name)[row]

    def _array(self, name: str) -> NDArray[Any]:
        """Return a column as an array, of objects unless all cells are numbers or times."""
        column = nw.from_native(self._cells[name], pass_through=True, series_only=True)
        if isinstance(column, nw.Series):
            column = column.to_list() if column.dtype.is_nested() else column.to_numpy()
        if isinstance(column, np.ma.MaskedArray):  # any number may be under its mask
            column = column.tolist()
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
            raise InvalidArgument(f"column {name!r} must be a list of readings, but got {column!r:.60}")
        cells = column if isinstance(column, np.ndarray) else list(column)
        with suppress(ValueError, OverflowError):  # of cells of different lengths
            found = np.asarray(cells)
            if found.ndim == 1 and found.dtype.kind in "biufcM":
                return found
        cells = cells.tolist() if isinstance(cells, np.ndarray) else cells
        return np.fromiter(cells, dtype=object, count=len(cells))


class Relation(Table):
    """A table of DuckDB: files, databases, and relations of the user. Only the requested columns are read."""

    def __init__(self, native: Any, form: Form, text_in: Any = None) -> None:  # noqa: ANN401 - of DuckDB
        """Take a relation, and the connection that reads it if cells are text."""
        self.native, self.form, self._text_in = native, form, text_in
        self._arm: str | None = None
        with explain_errors():
            self._types = dict(zip(native.columns, map(str, native.types), strict=True))
        self.names = list(self._types)

    def load(self, columns: Columns, reduction: Reduction) -> Dataset:
        """Return the readings of each arm; many rows are counted, or reduced to their units, by DuckDB."""
        with explain_errors():
            return super().load(columns, reduction)

    def _load(self, columns: Columns, reduction: Reduction) -> Dataset:
        self._arm = columns.arm
        if columns.arm is not None:
            n = int(self._fetch(f"SELECT count(*) AS n FROM {_SOURCE}")["n"][0])
            is_reduced = columns.group is not None and columns.order is None and n > REDUCED_ROWS
            if n > engines.MAX_ROWS or is_reduced:
                return self._load_large(columns, reduction, n)
        if self._text_in is not None:  # it is parsed once
            needed = {*columns.by_argument.values(), *columns.suspects(self.names)}
            chosen = [name for name in self.names if name in needed or columns.arm is None]
            self.native.select(*map(quote, chosen)).create(_CELLS)
            self.native = self._text_in.table(_CELLS)
        return super()._load(columns, reduction)

    def _labels(self, name: str, rows: int | None = None) -> tuple[list[str], Codes]:
        msg = f"column {name!r} must hold names, but its type is {self._types[name]}; convert it first"
        refuse(rows is None and _NESTED.fullmatch(self._types[name]), msg)
        cell = self._name(name)
        if rows is not None or name != self._arm:
            limit = "" if rows is None else f"LIMIT {rows}"
            return _label_cells(self._fetch(f"SELECT {cell} AS cell FROM {_SOURCE} {limit}")["cell"].tolist())
        # trimming the names of all rows takes longer than parsing them, so each distinct name is trimmed once
        cell = cell if self._types[name] in _FLOATS else f"{quote(name)}::VARCHAR"
        distinct = f"SELECT DISTINCT {cell} AS cell FROM {_SOURCE}"
        found = self._fetch(f"SELECT cell, count(*) OVER () AS n FROM ({distinct}) LIMIT {MAX_ARMS + 1}")
        check_number_of_arms(int(found["n"].max(initial=0)), name)
        cells = list(dict.fromkeys(["", *filter(None, found["cell"].tolist())]))
        names, codes = _label_cells([cell.strip() if self._is_text_column(name) else cell for cell in cells])
        enum = f"ENUM({', '.join(map(literal, cells))})"
        place = f"coalesce(enum_code(TRY_CAST({cell} AS {enum})), 0)"
        return names, codes.astype(np.int16)[self._fetch(f"SELECT {place} AS place FROM {_SOURCE}")["place"]]

    def _numbers(self, names: Sequence[str], rows: int | None = None) -> tuple[dict[str, Floats], Bad]:
        source = _SOURCE if rows is None else f"(FROM {_SOURCE} LIMIT {rows})"
        plain = [name for name in names if is_numeric(self._types[name])]
        texts = [name for name in names if name not in plain]
        values: dict[str, Floats] = {}
        bad: Bad = {}
        if plain:
            cells = ", ".join(f"{quote(name)}::DOUBLE AS v{i}" for i, name in enumerate(plain))
            values |= zip(plain, self._fetch(f"SELECT {cells} FROM {source}").values(), strict=True)
        if texts:  # one query for each column would be slow to plan
            cells = ", ".join(map(self._text, texts))
            cells = f"unnest([{cells}])" if len(texts) > 1 else cells
            found = self._fetch(select_numbers({}, cells, source, self.form))
            values |= zip(texts, found["value"].reshape(-1, len(texts)).T, strict=True)
            masks = zip(texts, found["bad"].reshape(-1, len(texts)).T, strict=True)
            bad = {name: mask for name, mask in masks if mask.any()}
        return {name: np.asarray(values[name], dtype=np.float64) for name in names}, bad

    def _cell(self, name: str, row: int) -> Any:  # noqa: ANN401 - whatever a cell holds
        query = f"SELECT {quote(name)} FROM {_SOURCE} LIMIT 1 OFFSET {row}"
        return self.native.query(_SOURCE, query).fetchall()[0][0]

    def _array(self, name: str) -> NDArray[Any]:
        kind, cell = self._types[name], quote(name)
        if kind.startswith("TIME") or kind == "DATE":
            cell = f"epoch_{'ns' if kind.endswith('_NS') else 'us'}({cell})"
        cell = self._name(name) if kind == "VARCHAR" else cell
        return self._fetch(f"SELECT {cell} AS place FROM {_SOURCE}")["place"]

    def _load_large(self, columns: Columns, reduction: Reduction, n: int) -> Dataset:
        """Return counts of readings, or one reading per unit, both computed by DuckDB."""
        value = str(columns.value)
        cells = {"arm": self._name(str(columns.arm))}
        cells |= {"grp": self._name(columns.group)} if columns.group is not None else {}
        names = ", ".join([*cells, "value"])
        if is_numeric(self._types[value]):
            number = f"{quote(value)}::DOUBLE"
            cells |= {"value": f"CASE WHEN NOT isnan({number}) THEN {number} END", "bad": "false"}
            chosen = f"SELECT {', '.join(f'{cell} AS {name}' for name, cell in cells.items())} FROM {_SOURCE}"
        else:
            chosen = select_numbers(cells, self._text(value), _SOURCE, self.form)
        bad = int(self._fetch(f"SELECT count_if(bad) AS n FROM ({chosen})")["n"][0])
        if bad and self.form.unreadable == "error":
            rows = f"SELECT row_number() OVER () AS row, bad FROM ({chosen})"
            row = int(self._fetch(f"SELECT min(row) AS row FROM ({rows}) WHERE bad")["row"][0])
            raise bad_cell(self._cell(value, row - 1), row, value)
        rows = self.native.query(_SOURCE, f"SELECT {names} FROM ({chosen})")
        total = -(-n // PART_ROWS) if columns.group is not None else 0
        parts = [nw.from_native(rows.filter(f"hash(grp) % {total} = {i}")) for i in range(total)]
        data = engines.load_rows(nw.from_native(rows), columns, reduction, parts)
        if columns.suspects(self.names):
            head = Relation(self.native.limit(HEAD_ROWS), self.form, self._text_in)
            data = data._replace(suspects=Table._load(head, columns, reduction).suspects)
        return data._replace(notes=(*_note_unreadable(bad, value), *data.notes))

    def _fetch(self, sql: str) -> dict[str, NDArray[Any]]:
        return engines.fetch(nw.from_native(self.native.query(_SOURCE, sql)))

    def _is_text_column(self, column: str) -> bool:
        return self._text_in is not None and self._types[column] == "VARCHAR"

    def _name(self, column: str) -> str:
        """Return the SQL of a column as names, NULL for empty cells."""
        cell = quote(column)
        if self._is_text_column(column):
            return f"nullif({trim(cell)}, '')"
        if self._types[column] in _FLOATS:
            return f"CASE WHEN NOT isnan({cell}) THEN {cell}::VARCHAR END"
        return f"nullif({cell}::VARCHAR, '')"

    def _text(self, column: str) -> str:
        """Return the SQL of a column that is not of numbers; text in a typed table is never read as a number."""
        cell = f"{quote(column)}::VARCHAR"
        return cell if self._is_text_column(column) else f"CASE WHEN {cell} IS NOT NULL THEN 'text' END"


@contextmanager
def explain_errors(name: str = "the data") -> Iterator[None]:
    """Turn errors of DuckDB in the body into one sentence."""
    import duckdb

    try:
        yield
    except duckdb.Error as failure:
        error = str(failure)
        file = re.search(r"^\s*file = (.*)$", error, re.MULTILINE)
        line = re.search(r"Error on Line: (\d+)", error)
        cells = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", error)
        name = repr(file[1].rpartition("/")[2]) if file else name
        where = f"line {line[1]} of {name}" if line else ""
        if where and cells:
            found = "1 cell" if cells[2] == "1" else f"{cells[2]} cells"
            msg = f"{where} has {found}, but the first line has {cells[1]}; check for a stray separator"
        elif where and "not utf-8" in error:
            msg = f"{where} is not UTF-8; convert it by: iconv -f cp1252 -t utf-8, or use encoding='cp1252'"
        elif where and "quote" in error:
            msg = f"{where} has a quote that does not end; write a quote inside quotes as two"
        elif "state machine" in error:
            msg = f"{name} cannot be read, perhaps because its lines end in different ways; run dos2unix on it"
        elif decimals := re.search("column .* holds numbers with decimals.*", error):
            msg = decimals[0]
        else:
            first = error.split("\n\n", maxsplit=1)[0].splitlines()[0].partition("Error: ")[2] or error
            ours = ": a file is called data, and its columns are text except in Parquet (write age::int)"
            remedy = ours if name == "the query" else ", or use a query='...' that reads it"
            msg = f"{name} cannot be read: {first.rstrip('. !'):.200}; correct it{remedy}"
        raise InvalidArgument(msg) from None


def _note_unreadable(n: int, column: str) -> list[str]:
    cells = "1 cell is not a number and counts" if n == 1 else f"{n:,} cells are not numbers and count"
    return [f"In {column}, {cells} as missing."] if n else []


def _order_keys(cells: NDArray[Any], column: str) -> NDArray[Any]:
    """Return the keys to sort rows by: text is read as whole numbers, numbers or times."""
    empty = [_is_empty(cell) for cell in cells] if cells.dtype.kind == "O" else cells != cells  # noqa: PLR0124
    msg = f"row {np.argmax(empty) + 1} of column {column!r} is empty, so its place in the order is unknown"
    refuse(np.any(empty), f"{msg}; fill it, or remove such rows", "order", column)
    if cells.dtype.kind in "biufM":
        return cells
    keys = cells.tolist()
    if isinstance(keys[0], str):
        for kind in (int, float):
            with suppress(TypeError, ValueError, OverflowError):
                numbers = np.fromiter(map(kind, keys), dtype=kind, count=len(keys))
                if not np.isnan(numbers).any():
                    return numbers
    try:
        if isinstance(keys[0], str):
            keys = [datetime.datetime.fromisoformat(key.replace("/", "-")) for key in keys]
        return np.argsort(sorted(range(len(keys)), key=keys.__getitem__))
    except (AttributeError, TypeError, ValueError):  # such as times with a zone beside times without
        msg = f"order={column!r} must hold numbers or times such as 2024-01-31 12:00, all of one kind; "
        msg += "convert it, or use order='rows'"
        raise InvalidArgument(msg, "order", column) from None


def _is_empty(cell: object) -> bool:
    """Return True if a cell is empty or contains a word that stands for that."""
    text = str(cell)
    return not text or (not isinstance(cell, str) and text in ("None", "nan", "<NA>", "NaT"))


def _label_cells(cells: Sequence[object]) -> tuple[list[str], Codes]:
    """Return the distinct names in cells, in order of first appearance, and the index of each cell's, or -1."""
    labels = cells
    if not set(map(type, cells)) <= {str}:  # 1 and 1.0 are equal, but written differently
        labels = ["" if _is_empty(cell) else str(cell) for cell in cells]
    names = [str(label) for label in dict.fromkeys(labels) if label]
    codes: dict[object, int] = {"": -1, **{name: i for i, name in enumerate(names)}}
    return names, np.fromiter(map(codes.__getitem__, labels), dtype=np.intp, count=len(labels))
