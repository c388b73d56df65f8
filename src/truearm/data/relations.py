"""Tables that DuckDB reads: files, databases, and relations of the user. Only the columns asked for are read.

Cells of text files are converted by `truearm.data.cells`, and every cell that is not a number is found; no sample
decides a type.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.data import engines
from truearm.data.cells import (
    PLAIN,
    Form,
    bad_cell,
    cast,
    check_cast,
    is_absent,
    is_numeric,
    literal,
    number,
    quote,
    trim,
)
from truearm.data.columns import Columns, check_number_of_arms, is_counter, words_message
from truearm.data.dataset import Codes, Dataset, Floats, Rows, assemble, assemble_wide, trim_end
from truearm.errors import InvalidArgument
from truearm.evidence.units import Reduction

SUSPECT_ROWS = 1 << 16  # first rows in which an undeclared unit is looked for
NO_ROWS = "the data have no rows; check that the first line of a file names its columns"
_SOURCE, _CELLS, _ROWS = "truearm_source", "truearm_cells", "truearm_rows"
PART_ROWS = 1 << 21  # rows whose groups have their medians computed at once
REDUCED_ROWS = 1 << 20  # rows from which on DuckDB makes one reading of each unit
_TIMES = ("BIGINT", "DOUBLE", "TIMESTAMP", "TIMESTAMPTZ")  # what the text of an order may be
_NESTED = re.compile(r".*\[\d*\]|STRUCT.*|MAP.*|UNION.*", re.DOTALL)


@contextmanager
def explain_errors(name: str = "the data") -> Iterator[None]:
    """Turn errors of DuckDB in the body into one sentence."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise InvalidArgument(_explain(str(error), name)) from None


def _explain(error: str, name: str) -> str:
    file = re.search(r"^\s*file = (.*)$", error, re.MULTILINE)
    name = repr(file[1].rpartition("/")[2]) if file else name
    line = re.search(r"Error on Line: (\d+)", error)
    cells = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", error)
    if line and cells:
        found = "1 cell" if cells[2] == "1" else f"{cells[2]} cells"
        remedy = "check for a stray separator"
        return f"line {line[1]} of {name} has {found}, but the first line has {cells[1]}; {remedy}"
    if line and "not utf-8" in error:
        remedy = "convert it by: iconv -f cp1252 -t utf-8, or use encoding='cp1252'"
        return f"line {line[1]} of {name} is not UTF-8; {remedy}"
    if line and "quote" in error:
        return f"line {line[1]} of {name} has a quote that does not end; write a quote inside quotes as two"
    if "invalid state" in error:
        return f"{name} cannot be read: its lines end in different ways, or quotes do not close; save it again"
    first = error.split("\n\n", maxsplit=1)[0].splitlines()[0].partition("Error: ")[2] or error
    return f"{name} cannot be read: {first.rstrip('.'):.200}; correct it, or use query= for an unusual table"


class Relation:
    """A table of DuckDB."""

    def __init__(
        self,
        native: Any,  # noqa: ANN401 - a DuckDB relation
        form: Form = PLAIN,
        *,
        text: bool = False,
        small: bool = False,
        names: Sequence[str] | None = None,
        connection: Any = None,  # noqa: ANN401 - a connection of our own, kept open as long as the relation
    ) -> None:
        self._native, self._form, self._text, self._small = native, form, text, small
        self._connection = connection
        with explain_errors():
            self.types = dict(zip(native.columns, map(str, native.types), strict=True))
        self.names = list(self.types if names is None else names)

    def load(self, columns: Columns, reduction: Reduction) -> Dataset:
        """Return the readings of each arm, in the order of the rows unless a column says another one."""
        columns.check_in(self.names)
        with explain_errors():
            return self._wide(columns, reduction) if columns.arm is None else self._long(columns, reduction)

    def fetch(self, sql: str) -> dict[str, NDArray[Any]]:
        """Return the columns that a query over this table gives."""
        found: dict[str, NDArray[Any]] = self._native.query(_SOURCE, sql).fetchnumpy()
        return found

    def query(self, sql: str) -> "Relation":
        """Return what a query makes of this table, which it calls `data`."""
        with explain_errors("the query"):
            found = self._native.query("data", sql)
            return Relation(found, self._form, text=self._text, connection=self._connection)

    def _parse(self, sql: str) -> str:
        """Return the name of a table with what a query gives; text is parsed once."""
        if not self._text:
            return f"({sql})"
        self._connection.execute(f"DROP TABLE IF EXISTS {_CELLS}")
        self._native.query(_SOURCE, sql).create(_CELLS)
        return _CELLS

    def _long(self, columns: Columns, reduction: Reduction) -> Dataset:
        self._check_types(columns)
        total = 0 if self._small else int(self.fetch(f"SELECT count(*) AS n FROM {_SOURCE}")["n"][0])
        if total > engines.MAX_ROWS or (columns.group is not None and total > REDUCED_ROWS):
            return self._large(self._select(columns, self._name(str(columns.arm))), columns, reduction, total)
        rows = self._parse(self._select(columns, f"{quote(str(columns.arm))}::VARCHAR"))
        labels, notes = self._check_rows(rows, columns)
        parts = [f"enum_code(TRY_CAST(arm AS ENUM({', '.join(map(literal, labels))}))) AS arm", "value"]
        parts += ["grp"] if columns.group is not None else []
        parts += [f"{self._sortable(rows, columns)} AS ord"] if "order" in columns.named else []
        found = self.fetch(f"SELECT {', '.join(parts)} FROM {rows}")
        names = list(dict.fromkeys(labels.values()))  # trimming names takes longer than parsing rows
        codes = np.array([names.index(name) for name in labels.values()], dtype=np.min_scalar_type(len(names)))
        suspected = {name: self._head_codes(name) for name in columns.suspects(self.names)}
        known = Rows(
            names,
            codes[np.ma.getdata(found["arm"])],
            _floats(found["value"]),
            codes_of(found["grp"].tolist()) if "grp" in found else None,
            np.ma.getdata(found["ord"]) if "ord" in found else None,
        )
        data = assemble(known, columns, reduction, suspected)
        return data._replace(notes=(*notes, *data.notes))

    def _select(self, columns: Columns, arm: str) -> str:
        """Return the query for arm, value, whether the value is bad, group and order; casts are computed once."""
        value = str(columns.value)
        text = self._is_text(value)
        cells = {"grp": self._name(columns.group)} if columns.group is not None else {}
        cells |= {"ord": quote(str(columns.order))} if "order" in columns.named else {}
        names = ", ".join(["arm", *cells])
        cells |= {"arm": arm, "cell": quote(value)}
        cells["number"] = cast(quote(value), self._form) if text else self._number(value)
        query = f"SELECT {', '.join(f'{cell} AS {name}' for name, cell in cells.items())} FROM {_SOURCE}"
        checked = check_cast("cell", self._form, "number") if text else "number"
        query = f"SELECT {names}, cell, {checked} AS value FROM ({query})"
        bad = f"CASE WHEN value IS NULL THEN NOT {is_absent('cell')} ELSE false END"
        return f"SELECT {names}, value, {bad if text else self._is_bad(value, 'cell')} AS bad FROM ({query})"

    def _check_rows(self, rows: str, columns: Columns) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the names of the arms by what the cells hold, and a note on cells that are not numbers."""
        arm, value = str(columns.arm), str(columns.value)
        counts = f"SELECT arm, count(*) AS n, count_if(bad) AS bad FROM {rows} GROUP BY arm"
        found = self.fetch(f"SELECT *, count(*) OVER () AS arms FROM ({counts}) LIMIT 10001")
        cells = found["arm"].tolist()
        if not cells:
            raise InvalidArgument(NO_ROWS)
        check_number_of_arms(int(found["arms"][0]), arm)
        labels = {cell: self._label(cell, arm) for cell in cells}
        empty = sum(int(n) for cell, n in zip(cells, found["n"], strict=True) if not labels[cell])
        if empty:
            raise unnamed(self._first(f"{self._name(arm)} IS NULL", "0")[0], arm, "arm", empty - 1)
        if columns.group is not None:
            name = self._name(columns.group)
            empty = int(self.fetch(f"SELECT count(*) AS n FROM {rows} WHERE grp IS NULL")["n"][0])
            if empty:
                raise unnamed(self._first(f"{name} IS NULL", "0")[0], columns.group, columns.group_kind, empty - 1)
        bad = int(found["bad"].sum())
        if bad and self._form.unreadable == "error":
            row, cell = self._first(self._is_bad(value), quote(value))
            raise bad_cell(cell, row, value)
        return labels, (unreadable_note(bad, value),) if bad else ()

    def _large(self, chosen: str, columns: Columns, reduction: Reduction, total: int) -> Dataset:
        """Return readings that DuckDB counts, or those of units that it makes."""
        import narwhals as nw

        _, notes = self._check_rows(f"({chosen})", columns)
        if columns.order is not None and columns.group is None:
            raise engines.order_of_many(columns.order)
        wanted = ["arm", "value", *(["grp"] if columns.group else [])]
        if columns.order not in (None, "rows"):
            ordered = f"SELECT arm, value, grp, {self._sortable(f'({chosen})', columns)} AS ord FROM ({chosen})"
            lazy = nw.from_native(self._native.query(_SOURCE, ordered))
        else:
            lazy = nw.from_native(self._native.query(_SOURCE, f"SELECT {', '.join(wanted)} FROM ({chosen})"))
        if columns.group is not None:
            query, n = lazy.to_native(), -(-total // PART_ROWS)
            wheres = (f"SELECT * FROM {_ROWS} WHERE hash(grp) % {n} = {i}" for i in range(n))
            parts = [nw.from_native(query.query(_ROWS, where)) for where in wheres]
            return engines.reduce_groups(lazy, columns, reduction, parts)._replace(notes=notes)
        suspects = self._suspects_in_head(chosen, columns)
        return Dataset({}, suspects=suspects, notes=notes, counter=engines.Counter(lazy, keep=self))

    def _suspects_in_head(self, chosen: str, columns: Columns) -> Any:  # noqa: ANN401 - a tuple of suspects
        suspected = columns.suspects(self.names)
        if not suspected:
            return ()
        head = self.fetch(f"SELECT arm, value FROM ({chosen}) LIMIT {SUSPECT_ROWS}")
        arms = codes_of(head["arm"].tolist())
        names = list(dict.fromkeys(head["arm"].tolist()))
        codes = {name: self._head_codes(name) for name in suspected}
        return assemble(Rows(names, arms, _floats(head["value"])), columns, Reduction(), codes).suspects

    def _wide(self, columns: Columns, reduction: Reduction) -> Dataset:
        names = [name for name in self.names if name != columns.group]
        check_number_of_arms(len(names), None)
        if not names:
            raise InvalidArgument(NO_ROWS)
        source = self._parse(f"SELECT * FROM {_SOURCE}")
        tapes, wrong = self._read_cells(names, source)
        if not any(tape.size for tape in tapes.values()):
            raise InvalidArgument(NO_ROWS)
        readings = [name for name, tape in tapes.items() if not np.isnan(tape).all()]
        for name, n in wrong.items():
            if n > 1 and n == tapes[name].size - self._absent(name, source) and readings and self._are_words(name):
                raise InvalidArgument(words_message(name, readings), "arm")
            if self._form.unreadable == "error":
                row, cell = self._first(self._is_bad(name), quote(name))
                raise bad_cell(cell, row, name)
        group = None
        if columns.group is not None:
            cells = self.fetch(f"SELECT {self._name(columns.group)} AS grp FROM {source}")["grp"].tolist()
            if None in cells:
                raise unnamed(cells.index(None) + 1, columns.group, columns.group_kind, cells.count(None) - 1)
            group = codes_of(cells)
        data = wide_dataset(tapes, group, columns, reduction)
        note = (unreadable_note(sum(wrong.values()), ", ".join(wrong)),) if wrong else ()
        return data._replace(notes=(*note, *data.notes))

    def _read_cells(self, names: list[str], source: str) -> tuple[dict[str, Floats], dict[str, int]]:
        """Return the numbers in columns, and for columns with cells that are not numbers, how many."""
        if all(map(self._is_text, names)):  # one long expression instead of one per column, which are slow to plan
            value = number("cell", self._form)
            cells = f"SELECT unnest([{', '.join(map(quote, names))}]) AS cell FROM {source}"
            bad = f"{value} IS NULL AND NOT {is_absent('cell')}"
            found = self.fetch(f"SELECT {value} AS value, ({bad}) AS bad FROM ({cells})")
            columns = list(_floats(found["value"]).reshape(-1, len(names)).T)
            counts = found["bad"].reshape(-1, len(names)).sum(axis=0).tolist()
        else:
            found = self.fetch(f"SELECT {', '.join(map(self._number, names))} FROM {source}")
            columns = list(map(_floats, found.values()))
            bad = ", ".join(f"count_if({self._is_bad(name)})" for name in names)
            counts = [int(count[0]) for count in self.fetch(f"SELECT {bad} FROM {source}").values()]
        wrong = {name: n for name, n in zip(names, counts, strict=True) if n}
        return dict(zip(names, columns, strict=True)), wrong

    def _absent(self, column: str, source: str) -> int:
        return int(self.fetch(f"SELECT count_if({is_absent(quote(column))}) AS n FROM {source}")["n"][0])

    def _are_words(self, column: str) -> bool:
        """Return True if cells that are not numbers are names rather than numbers or dates written differently."""
        row = self._first(self._is_bad(column), quote(column))[1]
        return isinstance(row, str) and re.match(r"[-+(]?[^A-Za-z0-9]?\s*[0-9]", row.strip()) is None

    def _check_types(self, columns: Columns) -> None:
        for column in (columns.arm, columns.group):
            if column is not None and _NESTED.fullmatch(self.types[column]):
                msg = f"column {column!r} must hold names, but its type is {self.types[column]}; convert it first"
                raise InvalidArgument(msg)
        order = columns.order
        known = order in (None, "rows") or re.match(r"TIME|DATE|VARCHAR", self.types[str(order)])
        if not known and not is_numeric(self.types[str(order)]):
            raise no_order(str(order))

    def _is_text(self, column: str) -> bool:
        return self._text and self.types[column] == "VARCHAR"

    def _name(self, column: str) -> str:
        """Return the SQL of a column as names, NULL for empty cells."""
        cell = quote(column)
        if self._is_text(column):
            return f"nullif({trim(cell)}, '')"
        if self.types[column] in ("FLOAT", "DOUBLE"):
            return f"CASE WHEN NOT isnan({cell}) THEN {cell}::VARCHAR END"
        return f"nullif({cell}::VARCHAR, '')"

    def _label(self, cell: str | None, column: str) -> str:
        """Return the name in a cell of a column, empty if there is none."""
        if cell is None or (self.types[column] in ("FLOAT", "DOUBLE") and cell == "nan"):
            return ""
        return cell.strip() if self._is_text(column) else cell

    def _number(self, column: str) -> str:
        """Return the SQL of a column as numbers, NULL where a cell is missing or not a number."""
        cell = quote(column)
        if self._is_text(column):
            return number(cell, self._form)
        if not is_numeric(self.types[column]):
            return "NULL::DOUBLE"
        return f"CASE WHEN NOT isnan({cell}::DOUBLE) THEN {cell}::DOUBLE END"

    def _is_bad(self, column: str, cell: str | None = None) -> str:
        """Return the SQL of whether a cell is neither a number nor missing."""
        cell = cell or quote(column)
        if self._is_text(column):
            return f"({self._number(column)} IS NULL AND NOT {is_absent(cell)})"
        return "false" if is_numeric(self.types[column]) else f"({cell} IS NOT NULL)"

    def _first(self, condition: str, cell: str) -> tuple[int, Any]:
        """Return the first row for which a condition holds, and a cell of it."""
        rows = f"SELECT row_number() OVER () AS place, {cell} AS cell, {condition} AS hit FROM {_SOURCE}"
        query = f"SELECT place, cell FROM ({rows}) WHERE hit ORDER BY place LIMIT 1"
        [(place, found)] = self._native.query(_SOURCE, query).fetchall()
        return int(place), found

    def _sortable(self, rows: str, columns: Columns) -> str:
        """Return the SQL of the column of the order as numbers, or raise if a cell has no place in it."""
        column = str(columns.order)
        kind, cell = self.types[column], "ord"
        if kind == "VARCHAR":
            cell = f"nullif({trim('ord')}, '')"
            casts = ", ".join(f"count({_cast(cell, one)}) AS c{i}" for i, one in enumerate(_TIMES))
            found = self.fetch(f"SELECT count({cell}) AS n, {casts} FROM {rows}")
            kinds = [one for i, one in enumerate(_TIMES) if found[f"c{i}"][0] == found["n"][0]]
            if not kinds:
                raise no_order(column)
            kind = kinds[0]
            cell = _cast(cell, kind)
        blank = f"{cell} IS NULL" + (f" OR isnan({cell})" if kind in ("FLOAT", "DOUBLE") else "")
        if self.fetch(f"SELECT count(*) AS n FROM {rows} WHERE {blank}")["n"][0]:
            row = self._first(blank.replace("ord", quote(column)), quote(column))[0]
            msg = f"row {row} of column {column!r} is empty, so its place in the order is unknown; fill it, or "
            raise InvalidArgument(f"{msg}remove such rows", "order", column)
        if kind.startswith("TIME") or kind == "DATE":
            return f"epoch_ns({cell})" if kind == "TIMESTAMP_NS" else f"epoch_us({cell})"
        return f"{cell}::DOUBLE" if kind.startswith(("DECIMAL", "HUGEINT", "UHUGEINT")) else cell

    def _head_codes(self, column: str) -> Codes:
        head = self.fetch(f"SELECT {self._name(column)} AS cell FROM {_SOURCE} LIMIT {SUSPECT_ROWS}")
        return codes_of(head["cell"].tolist())


def _cast(cell: str, kind: str) -> str:
    """Return the SQL of text as a type; a number with decimals is not a whole one."""
    cast = f"TRY_CAST({cell} AS {kind})"
    return f"CASE WHEN regexp_full_match({cell}, '[-+]?[0-9]+') THEN {cast} END" if kind == "BIGINT" else cast


def wide_dataset(tapes: dict[str, Floats], group: Codes | None, columns: Columns, how: Reduction) -> Dataset:
    """Return the readings of a wide table; raise if a column only counts the rows."""
    for name, tape in tapes.items():
        counts = tape.size > 2 and tape[0] in (0.0, 1.0) and bool(np.all(np.diff(tape) == 1))
        if counts and len(tapes) > 1 and is_counter(name):
            msg = (
                f"column {name!r} counts the rows, so it is not an arm; remove it, or use round={name!r} if arms "
            )
            raise InvalidArgument(f"{msg}were measured side by side in it", "round")
    if group is None and columns.round is None:
        tapes = {name: trim_end(tape) for name, tape in tapes.items()}
    return assemble_wide(tapes, group, columns, how)


def codes_of(cells: Sequence[object]) -> Codes:
    """Return numbers for cells in order of first appearance, -1 for None."""
    known = dict.fromkeys(cells)
    known.pop(None, None)
    codes: dict[object, int] = {cell: i for i, cell in enumerate(known)}
    codes[None] = -1
    return np.fromiter(map(codes.__getitem__, cells), dtype=np.intp, count=len(cells))


def unnamed(row: int, column: str, kind: str, more: int = 0) -> InvalidArgument:
    """Return the error for rows without an arm, a unit or a round."""
    others = f", nor do{'es' * (more == 1)} {more:,} more" if more else ""
    msg = f"row {row} of column {column!r} names no {kind}{others}; give it a name, or remove such rows"
    return InvalidArgument(msg, kind, column)


def no_order(column: str) -> InvalidArgument:
    """Return the error for a column that rows cannot be put in order by."""
    msg = f"order={column!r} must hold numbers or times, all of one kind; convert it, or use order='rows'"
    return InvalidArgument(msg, "order", column)


def unreadable_note(n: int, column: str) -> str:
    """Return the note on cells that are not numbers."""
    cells = "1 cell is" if n == 1 else f"{n:,} cells are"
    return f"In {column}, {cells} not a number and counted as missing."


def _floats(column: NDArray[Any]) -> Floats:
    """Return a column as floats, NaN where it is masked."""
    found: Floats = np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan)
    return found
