"""A file as DuckDB sees it: only the columns asked for are read, and never through an approximate aggregate.

Text formats are read as text and converted here, so that a cell that is no number can be named by its row.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np

from truearm.errors import InvalidArgument, first_line
from truearm.evidence.units import Reduction, Suspect
from truearm.world import parquet
from truearm.world.by_arm import Batch, Floats, gathered, grouped
from truearm.world.cells import not_a_number, or_drop, unnamed
from truearm.world.dialect import NO_ROWS, Dialect
from truearm.world.duck import connected, duckdb, forget
from truearm.world.formats import TEXT
from truearm.world.roles import Roles, check_names, check_number_of_arms, holds_words
from truearm.world.separated import Separated, check_separated, check_single, not_utf8, ragged, uneven
from truearm.world.sql import address, literal, marks, quoted, text_address
from truearm.world.tapes import MOST_SUSPECTED, Collected, Rows, assembled, suspects, wide
from truearm.world.written import DIGITS_FIRST, Written, check_true, no_number, trimmed

_PLAIN = r"U?(TINY|SMALL|BIG)INT|U?INTEGER|FLOAT|DOUBLE"  # types of numbers that pyarrow converts as DuckDB does
_ABREAST = 64  # columns of numbers in one query: of thousands its plan alone takes half a minute
_MANY = 1 << 20  # rows; from here on pyarrow saves more time than its import takes
_LARGE = 1 << 24  # bytes of text; from here on a look at the first names saves a table of all of them


def rows_in(path: Path) -> int:
    """Return how many rows a Parquet file says that it has, 0 if it cannot be read."""
    with suppress(duckdb().Error), connected() as connection:
        told = connection.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({address(path)})").fetchone()
        return int(told[0])
    return 0


class Table:
    """A file as DuckDB sees it: its columns, and its cells as numbers and names."""

    def __init__(self, connection: Any, file: Path, form: str, written: Written, roles: Roles) -> None:  # noqa: ANN401
        self._run = connection.execute
        self._sql = connection.sql
        self._text, self._written = form in TEXT, written
        self.types: dict[str, str]
        text_in = form in ("csv", "tsv")
        dialect = Dialect.of(file, form, written.sep, roles.columns) if text_in else Dialect()
        self._separated = Separated.of(connection, file, dialect) if text_in else None
        self._cells = self._separated.cells() if self._separated else _source(connection, file, form)
        self._file, self._form = file, form
        self._told: Callable[[], list[str]] = lambda: names_in(connection, file, form, dialect)
        if self._separated:
            self.types = dict.fromkeys(self._separated.columns, "VARCHAR")
        else:
            described = self._run(f"DESCRIBE SELECT * FROM {self._cells}").fetchall()
            self.types = {name: kind for name, kind, *_ in described}
        check_single(file, self.types)
        if (
            form == "csv"
            and len(self.types) == 1
            and re.search(r"[,;\t|]", next(iter(self.types)))
            and (msg := ragged(file, dialect))
        ):
            raise InvalidArgument(msg)

    def wide(self, roles: Roles, how: Reduction) -> Collected:
        """Return every column as an arm, without the empty cells at its foot; one may name the units instead."""
        self._check_names(self.types)
        roles.check_columns(list(self.types))
        names = [name for name in self._named() if name != roles.unit]
        check_number_of_arms(len(names), None)
        if not names:
            raise InvalidArgument(NO_ROWS)
        if self._text:  # parsed once
            self._run(f"CREATE OR REPLACE TEMP TABLE words AS FROM {self._cells}")
            self._cells = "words"
        cells = self._abreast(names)
        self._check_shape(cells)
        for name in names if not self._text else self._with_words([n for n in names if np.ma.is_masked(cells[n])]):
            self._check(name)
        tapes = {name: np.ma.filled(column, np.nan) for name, column in cells.items()}
        self._check_met(names)
        units = self._run(f"SELECT {self._unit(roles)} FROM {self._cells}").fetchall() if roles.unit else None
        return wide(tapes, None if units is None else [cell for (cell,) in units], roles, how)

    def _abreast(self, names: Sequence[str]) -> dict[str, Any]:
        """Return columns of numbers, masked where there is none: as many in a query as it can plan."""
        found: dict[str, Any] = {}
        for start in range(0, len(names), _ABREAST):
            some = names[start : start + _ABREAST]
            cells = ", ".join(f"{self._number(name)} AS c{i}" for i, name in enumerate(some))
            columns = self._run(f"SELECT {cells} FROM {self._cells}").fetchnumpy()
            found |= {name: columns[f"c{i}"] for i, name in enumerate(some)}
        return found

    def _with_words(self, names: Sequence[str]) -> list[str]:
        """Return the columns in which a cell is neither a number nor the mark of a missing one."""
        found = []
        for start in range(0, len(names), _ABREAST):
            some = names[start : start + _ABREAST]
            cells = ", ".join(f"coalesce(bool_or({self._wrong(name)}), false)" for name in some)
            [told] = self._run(f"SELECT {cells} FROM {self._cells}").fetchall()
            found += [name for name, has in zip(some, told, strict=True) if has]
        return found

    def _check_met(self, columns: Sequence[str]) -> None:
        """Raise if no cell is the word that counts as 1, and there are several others."""
        if self._written.true is None or not self._text:
            return
        cells = " UNION ".join(f"SELECT {trimmed(quoted(name))} AS word FROM {self._cells}" for name in columns)
        found = self._run(f"SELECT DISTINCT word FROM ({cells}) WHERE lower(word) NOT IN ({marks()}) ORDER BY 1")
        check_true([word for (word,) in found.fetchall()], self._written.true, columns)

    def _named(self) -> list[str]:
        """Return the columns with a name: programs write the number of a row into one without."""
        if not self._text or not any(re.fullmatch(r"column\d+", name) for name in self.types):
            return list(self.types)
        told = self._told()
        return [name for i, name in enumerate(self.types) if len(told) != len(self.types) or told[i]]

    def _check_names(self, wanted: Collection[str]) -> None:
        check_names(self.types, wanted, self._told)

    def _check_shape(self, cells: Mapping[str, Any]) -> None:
        """Raise if there are no rows, or if words stand beside numbers, as in a long file."""
        if not any(len(column) for column in cells.values()):
            raise InvalidArgument(NO_ROWS)
        readings = [name for name, column in cells.items() if np.ma.count(column)]
        words = (name for name in cells if name not in set(readings) and self._has_words(name))
        if readings and (word := next(words, None)) is not None:
            raise InvalidArgument(holds_words(word, readings))

    def _has_words(self, column: str) -> bool:
        cell = quoted(column)
        if not self._text and self.types[column] != "VARCHAR":
            return False
        word = f"lower({trimmed(cell)}) NOT IN ({marks()}) AND TRY_CAST({cell} AS TIMESTAMP) IS NULL"
        word += f" AND NOT regexp_matches({trimmed(cell)}, {literal(DIGITS_FIRST)})"
        return len(self._run(f"SELECT 1 FROM {self._cells} WHERE {word} LIMIT 2").fetchall()) > 1  # one is a slip

    def long(self, roles: Roles, how: Reduction, *, drop_unnamed: bool) -> Collected:
        """Return the readings of each arm, in the order of the rows unless another is asked for."""
        self._check_names(roles.columns)
        check_separated(list(self.types), roles)
        roles.check_columns(list(self.types))
        arm, value = str(roles.arm), str(roles.value)
        name = self._word(arm)
        parts = {"unit": self._unit(roles), "place": self._place(roles)}
        extra = {part: cell for part, cell in parts.items() if cell}
        if not extra and (tapes := self._by_column(arm, value) or self._at_once(arm, value)):
            return Collected(tapes, roles.order is not None, None, self._suspects(roles, list(tapes)))
        cells = {"arm": name, "value": self._number(value), **extra}
        table = self._plain(cells, value) or self._chosen(cells)
        counts = dict(self._run(f"SELECT arm, count(*) FROM {table} GROUP BY arm").fetchall())
        if not counts:
            raise InvalidArgument(NO_ROWS)
        check_number_of_arms(len(counts), arm)
        nameless = counts.pop(None, 0) + counts.pop("", 0)
        if nameless and not drop_unnamed:
            row = self._row(f"coalesce({name}, '') = ''")
            raise InvalidArgument(or_drop(unnamed(row, arm, more=nameless - 1)))
        if nameless:
            table, self._cells = (
                f"(SELECT * FROM {part} WHERE coalesce({cell}, '') <> '')"
                for part, cell in ((table, "arm"), (self._cells, name))
            )
        if not self._text or not self._is_complete(table):
            self._check(value)
        self._check_met([value])
        code = f"enum_code(TRY_CAST(arm AS {_enum(counts)}))"  # measured: a sixth of the time of a join
        query = ", ".join([f"{code} AS code", f"{_filled('value')} AS value", *extra])
        suspects = self._suspects(roles, list(counts))
        if extra:
            told = self._run(f"SELECT {query} FROM {table}").fetchnumpy()
            unit, place = (told[part].tolist() if part in told else None for part in ("unit", "place"))
            found = assembled(Rows(list(counts), told["code"], told["value"], unit, place), roles, how)
            return found._replace(suspects=suspects, dropped=nameless)
        rows = self._sql(f"SELECT {query} FROM {table}")
        tapes = gathered(_batches(rows, sum(counts.values())), counts)
        return Collected(tapes, roles.order is not None, None, suspects, dropped=nameless)

    def _suspects(self, roles: Roles, names: list[str]) -> tuple[Suspect, ...]:
        """Return columns that are named like a unit which was not declared, their first rows."""
        found = roles.suspects(self.types)
        if not found:
            return ()
        cells = [f"{self._word(str(roles.arm))} AS arm", f"{_filled(self._number(str(roles.value)))} AS value"]
        cells += [f"{self._word(name)} AS cell{i}" for i, name in enumerate(found)]
        query = f"SELECT {', '.join(cells)} FROM {self._cells} LIMIT {MOST_SUSPECTED}"
        head = self._run(query).fetchnumpy()
        codes = {name: i for i, name in enumerate(names)}
        arms = np.array([codes[name] for name in head["arm"].tolist()], dtype=np.intp)
        suspected = {name: head[f"cell{i}"].tolist() for i, name in enumerate(found)}
        return suspects(Rows(names, arms, head["value"], suspected=suspected))

    def _word(self, column: str) -> str:
        """Return a column as words; NaN is none."""
        if self._text:  # what stands around a word is no part of it
            return trimmed(quoted(column))
        word = f"{quoted(column)}::VARCHAR"
        return f"nullif({word}, 'nan')" if self.types[column] in ("FLOAT", "DOUBLE") else word

    def _unit(self, roles: Roles) -> str | None:
        """Return what tells units apart; numbers need no words."""
        if roles.unit is None:
            return None
        return quoted(roles.unit) if self.types[roles.unit].endswith("INT") else self._word(roles.unit)

    def _place(self, roles: Roles) -> str | None:
        if roles.order in (None, "rows"):
            return None
        column = str(roles.order)
        if self.types[column].startswith("TIMESTAMP"):  # as whole numbers, which compare faster
            return f"epoch_{'ns' if self.types[column] == 'TIMESTAMP_NS' else 'us'}({quoted(column)})"
        return quoted(column) if _is_numeric(self.types[column]) else self._word(column)

    def _chosen(self, columns: Mapping[str, str], cells: str | None = None) -> str:
        """Return a table of columns: text is parsed once, Parquet and Arrow are scanned where they are."""
        chosen = ", ".join(f"{cell} AS {quoted(name)}" for name, cell in columns.items())
        query = f"SELECT {chosen} FROM {cells or self._cells}"
        if not self._text:
            return f"({query})"
        self._run(f"CREATE OR REPLACE TEMP TABLE kept AS {query}")
        return "kept"

    def _plain(self, columns: Mapping[str, str], value: str) -> str | None:
        """Return the same table of a CSV file, if all of its readings are plain numbers."""
        if (cells := self._with_numbers(value)) is None:
            return None
        try:
            return self._chosen({**columns, "value": quoted(value)}, cells)
        except duckdb().ConversionException:
            return None

    def _with_numbers(self, value: str) -> str | None:
        """Return a CSV file with numbers for readings, if they may be plain: DuckDB reads them as it parses."""
        return self._separated.cells(value) if self._separated and self._written.plain else None

    def _by_column(self, arm: str, value: str) -> dict[str, Floats] | None:
        """Return the readings of a large Parquet file with a column of words and one of plain numbers."""
        plain = self.types[arm] == "VARCHAR" and re.fullmatch(_PLAIN, self.types[value])
        if self._form != "parquet" or not plain or find_spec("pyarrow") is None or rows_in(self._file) < _MANY:
            return None
        return parquet.tapes_in(self._file, arm, value)

    def _at_once(self, arm: str, value: str) -> dict[str, Floats] | None:
        """Return the readings of a large CSV file in one pass, if all are plain and first rows name all arms."""
        large = self._file.stat().st_size >= _LARGE and find_spec("pyarrow") is not None
        if not large or (cells := self._with_numbers(value)) is None:
            return None
        cell, head = quoted(arm), f"(FROM {self._cells} LIMIT {MOST_SUSPECTED})"
        names = [name for (name,) in self._run(f"SELECT DISTINCT {cell} FROM {head}").fetchall()]
        if not names or not all(name and name == name.strip() for name in names):
            return None
        check_number_of_arms(len(names), arm)
        code = f"enum_code(TRY_CAST({cell} AS {_enum(names)}))"
        query = f"SELECT {code} AS code, {_filled(quoted(value))} AS value FROM {cells}"
        try:
            batches = list(_streamed(self._sql(query)))
        except (duckdb().Error, OSError, ValueError):  # a cell that is no number, or none of the names
            return None
        return grouped(batches, names)

    def _number(self, column: str) -> str:
        cell = quoted(column)
        if self._text:
            return self._written.sql(cell)
        return f"{cell}::DOUBLE" if _is_numeric(self.types[column]) else "NULL::DOUBLE"  # `_check` speaks of it

    def _is_complete(self, table: str) -> bool:
        return bool(self._run(f"SELECT count(*) = count(value) FROM {table}").fetchall()[0][0])

    def _wrong(self, column: str) -> str:
        """Return what is true of a cell of text that is neither a number nor the mark of a missing one."""
        return f"({self._number(column)} IS NULL AND lower({trimmed(quoted(column))}) NOT IN ({marks()}))"

    def _check(self, column: str) -> None:
        """Raise for the first cell that is neither a number nor one of the marks for a missing one."""
        cell = quoted(column)
        if not self._text:
            kind = self.types[column]
            if not _is_numeric(kind):
                first = self._run(f"SELECT {cell} FROM {self._cells} LIMIT 1").fetchall()
                msg = not_a_number(first[0][0] if first else None, 1, column)
                raise InvalidArgument(f"{msg} (the column's type is {kind})")
            return
        first = self._run(f"SELECT {cell} FROM {self._cells} WHERE {self._wrong(column)} LIMIT 1").fetchall()
        if first:
            raise InvalidArgument(no_number(first[0][0], self._row(self._wrong(column)), column, self._written))

    def _row(self, condition: str) -> int:
        name = "row_of_file"
        while name.casefold() in map(str.casefold, self.types):
            name += "_"
        numbered = f"SELECT *, row_number() OVER () AS {name} FROM {self._cells}"
        found = self._run(f"SELECT min({name}) FROM ({numbered}) WHERE {condition}").fetchall()
        return int(found[0][0])


def _batches(rows: Any, n: int) -> Iterator[Batch]:  # noqa: ANN401 - a relation
    """Return the codes and values of n rows: as DuckDB finds them, if there are many and pyarrow is there."""
    if n >= _MANY and find_spec("pyarrow") is not None:
        yield from _streamed(rows)
    else:
        columns = rows.fetchnumpy()
        yield Batch(columns["code"], columns["value"])


def _streamed(rows: Any) -> Iterator[Batch]:  # noqa: ANN401 - a relation
    """Return codes and values batch by batch, or raise a ValueError where one is NULL."""
    import pyarrow as pa  # type: ignore[import-untyped]

    forget()  # so many rows leave much memory behind
    for batch in pa.RecordBatchReader.from_stream(rows):
        if any(column.null_count for column in batch.columns):
            raise ValueError
        codes, values = map(np.from_dlpack, batch.columns)  # `to_numpy` would import pandas
        yield Batch(codes, cast("Floats", values))


def _source(connection: Any, file: Path, form: str) -> str:  # noqa: ANN401
    """Return a table expression for a file; every cell of JSON lines is text."""
    match form:
        case "jsonl":
            return _lines(connection, file)
        case "arrow":
            connection.register("arrow_file", _arrow(file))
            return "arrow_file"
    return f"read_parquet({address(file)}, hive_partitioning = false)"


def _lines(connection: Any, file: Path) -> str:  # noqa: ANN401
    """Return JSON lines as text columns: the names come from all lines, the cells as they are written."""
    reader = f"read_json({text_address(file)}, format = 'newline_delimited'"
    described = connection.execute(f"DESCRIBE SELECT * FROM {reader}, sample_size = -1)").fetchall()
    columns = ", ".join(f"{quoted(row[0])}: 'VARCHAR'" for row in described)
    return f"{reader}, columns = {{{columns}}})"


def _arrow(file: Path) -> Any:  # noqa: ANN401 - a pyarrow table
    try:
        from pyarrow import feather
    except ImportError:
        msg = f"reading {file.name!r} needs pyarrow; install it with: pip install 'truearm[data]'"
        raise InvalidArgument(msg) from None
    try:
        table = feather.read_table(file, memory_map=False)  # beyond the end of a mapped file lies the end of us
        table.validate(full=True)  # a wrong offset would be followed to anywhere
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError) as error:
        msg = f"{file.name!r} cannot be read as arrow: {first_line(error)}; write it anew"
        raise InvalidArgument(msg) from None
    return table


def names_in(connection: Any, file: Path, form: str, dialect: Dialect) -> list[str]:  # noqa: ANN401
    """Return the names of the columns as the file has them; DuckDB renames those that it cannot tell apart."""
    match form:
        case "csv" | "tsv" if dialect.names:
            return list(dialect.names)
        case "csv" | "tsv":
            options = f"header = false, all_varchar = true, {dialect.sql()}"
            first = connection.execute(f"FROM read_csv({text_address(file)}, {options}) LIMIT 1").fetchone()
            return [(cell or "").strip() for cell in first or ()]
        case "jsonl":
            lines = f"read_json_objects({text_address(file)}, format = 'newline_delimited')"
            keys = connection.execute(f"SELECT DISTINCT unnest(json_keys(json)) FROM {lines}").fetchall()
            return [key for (key,) in keys]
        case "arrow":
            return list(_arrow(file).column_names)
    schema = f"SELECT name, coalesce(num_children, 0) FROM parquet_schema({address(file)}) OFFSET 1"
    names, inner = [], 0  # a column is followed by those inside it
    for name, children in connection.execute(schema).fetchall():
        if not inner:
            names.append(name)
        inner += children - (inner > 0)
    return names


def reason(error: str, file: Path, form: str, sep: str | None, roles: Roles) -> str:
    r"""Return why DuckDB cannot read a file: by its line, if DuckDB or a look at the cells tells it."""
    line = re.search(r"Error on Line: (\d+)", error)
    if line and "not utf-8" in error:
        return not_utf8(file, int(line[1]))
    cells = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", error)
    if line and cells:
        return uneven(file, int(line[1]), int(cells[2]), int(cells[1]))
    uneven_line = ragged(file, Dialect.of(file, form, sep, roles.columns)) if form in ("csv", "tsv") else None
    return uneven_line or f"{file.name!r} cannot be read as {TEXT.get(form, form)}: {error.splitlines()[0]}"


def _filled(number: str) -> str:
    return f"coalesce({number}, 'nan'::DOUBLE)"


def _enum(names: Iterable[str]) -> str:
    return f"ENUM({', '.join(map(literal, names))})"


def _is_numeric(kind: str) -> bool:
    kinds = "BOOLEAN|U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL\\(.*\\)"
    return re.fullmatch(kinds, kind) is not None
