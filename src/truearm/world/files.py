"""Files into readings: CSV, TSV, Parquet, JSON lines, Arrow, Excel, and what hyperfine and pyperf export.

DuckDB reads what is tabular, only the columns asked for and never through an approximate aggregate. Text formats
are read as text and converted here, so that a cell that is no number can be named by its row. An export knows what
was drawn independently: of pyperf a process, of hyperfine a run.
"""

import codecs
import csv
import gzip
import io
import json
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument, given
from truearm.evidence.units import MEDIANS, Reduction, Suspect, Units, by_unit
from truearm.world import frames, imports, parquet
from truearm.world.dialect import NO_ROWS, Dialect, raw
from truearm.world.duck import connected, duckdb, forget
from truearm.world.frames import (
    Batch,
    Collected,
    Roles,
    Rows,
    assembled,
    check_distinct,
    check_number_of_arms,
    check_several,
    gathered,
)
from truearm.world.json_shapes import columns_in
from truearm.world.written import ABSENT, Written, beside, remedy

Floats = NDArray[np.float64]
Export = Callable[[Mapping[str, Any], Reduction], Collected]

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".xlsx": "excel",
    ".xlsm": "excel",
}
_TEXT = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON lines"}
_PACKED = (".gz", ".zst")  # DuckDB unpacks these by itself, if there is text in them
_RENAMED = re.compile(r"(.*)_\d+", re.DOTALL)  # what DuckDB makes of a name that it has seen before
_DIGITS_FIRST = r"^[-+]?[^A-Za-z0-9]?\s*[0-9]"  # a number, however written, and no name
_PLAIN = r"U?(TINY|SMALL|BIG)INT|U?INTEGER|FLOAT|DOUBLE"  # types of numbers that pyarrow converts as DuckDB does
_GZIP = b"\x1f\x8b"
_BEGINNINGS = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "excel"}
_SUMMARY = {"command", "mean", "stddev", "median", "user", "system", "min", "max"}  # hyperfine's columns, and ours
_MARKS = {  # of byte order; those of UTF-32 begin with one of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_ABREAST = 64  # columns of numbers in one query: of thousands its plan alone takes half a minute
_MANY = 1 << 20  # rows; from here on pyarrow saves more time than its import takes
_LARGE = 1 << 24  # bytes of text; from here on a look at the first names saves a table of all of them


def read(
    path: str | Path,
    *,
    arm: str | None = None,
    value: str | None = None,
    unit: str | None = None,
    order: str | None = None,
    kind: str | None = None,
) -> dict[str, Floats]:
    r"""Return the readings of each arm in a file; `collect` also tells what is known of them.

    Parameters
    ----------
    path, arm, value, unit, order, kind
        As for `collect`.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "times.csv")
    ...     _ = file.write_text("site,ms\nB,3\nA,\nB,5\n")
    ...     read(file, arm="site", value="ms")
    {'B': array([3., 5.]), 'A': array([nan])}
    """
    return collect(path, arm=arm, value=value, unit=unit, order=order, kind=kind).tapes


def collect(
    path: str | Path,
    *,
    arm: str | None = None,
    value: str | None = None,
    unit: str | None = None,
    order: str | None = None,
    kind: str | None = None,
    how: Reduction = MEDIANS,
    drop_unnamed: bool = False,
    **form: Any,  # noqa: ANN401 - the fields of `Written`
) -> Collected:
    r"""Return the readings of each arm in a file, NaN where a cell is empty, and what is known of them.

    Parameters
    ----------
    path
        A file, or "-" for standard input, which is CSV unless its beginning or `kind` says otherwise.
    arm, value
        The columns that name the arm and hold the reading; without them every column is an arm. Files of
        hyperfine and pyperf need neither.
    unit
        The column of what was drawn independently: readings of one unit become one.
    order
        "rows" if rows are in order of pull, or the column to put them in order by.
    kind
        "csv", "tsv", "parquet", "jsonl", "json", "arrow" or "excel"; None goes by the ending.
    how
        How the readings of one unit become one.
    drop_unnamed
        Leave out rows that name no arm, and count them.
    **form
        How the file is written, if not plainly: the fields of `truearm.world.written.Written`.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "times.csv")
    ...     _ = file.write_text("site,user,ms\nB,1,3\nB,1,5\nB,2,8\n")
    ...     collect(file, arm="site", value="ms", unit="user").tapes
    {'B': array([4., 8.])}
    """
    if arm is None and (known := imports.criterion_files(Path(path))) is not None:
        return known
    roles, written = Roles(arm, value, unit, order).checked(), Written(**form).checked()
    with _located(path, kind) as found, _decoded(*found, written) as (file, kept):
        if kept == "json":
            return _from_json(file, roles, how, written, drop_unnamed=drop_unnamed)
        if kept == "excel":
            return _of_rows(_sheet(file, roles), roles, how, written, drop_unnamed=drop_unnamed)
        if kept in ("csv", "tsv") and find_spec("duckdb") is None:
            columns = _plainly_read(file, kept, written, roles)
            return _of_rows(columns, roles, how, written, drop_unnamed=drop_unnamed)
        broken = duckdb().Error
        try:
            with connected() as connection:
                table = _Table(connection, file, kept, written, roles)
                if roles.arm is None:
                    return table.wide(roles, how)
                return table.long(roles, how, drop_unnamed=drop_unnamed)
        except broken as error:
            raise InvalidArgument(_reason(str(error), file, kept, written.sep, roles)) from None


def rows_in(path: Path) -> int:
    """Return how many rows a Parquet file says that it has, 0 if it cannot be read.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "times.parquet")
    ...     _ = duckdb().sql("SELECT unnest(range(5))").write_parquet(str(file))
    ...     rows_in(file)
    5
    """
    with suppress(duckdb().Error), connected() as connection:
        told = connection.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({_address(path)})").fetchone()
        return int(told[0])
    return 0


@contextmanager
def _located(path: str | Path, kind: str | None) -> Iterator[tuple[Path, str]]:
    if str(path) == "-":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "stdin")
            with file.open("wb") as spool:
                while block := sys.stdin.buffer.read(1 << 20):
                    spool.write(block)
            _check_size(file, "standard input")
            if _begins(file)[:2] == _GZIP:
                file = _unpacked(file)
            form = _form_of(file, kind or _kind_by_bytes(file))
            yield file.rename(file.with_name(f"stdin.{form}")), form
        return
    file = Path(path)
    if not file.is_file():
        msg = f"there is no file {str(path)!r}; give a path, or - for standard input"
        raise InvalidArgument(msg)
    form = _form_of(file, kind)
    _check_size(file, repr(file.name))
    yield file, form


@contextmanager
def _decoded(file: Path, form: str, written: Written) -> Iterator[tuple[Path, str]]:
    """Give a file of text in UTF-8: another encoding is named, or begins with its mark."""
    start = _begins(file) if form in (*_TEXT, "json") else b""
    encoding = written.encoding or _encoding_by_bytes(start)
    if not start or encoding is None or codecs.lookup(encoding).name == "utf-8":
        yield file, form
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, file.name.removesuffix(".gz"))
        try:
            with _opened(file, encoding) as text, copy.open("w", encoding="utf-8", newline="") as spool:
                while block := text.read(1 << 20):
                    spool.write(block)
        except (UnicodeError, OSError, EOFError, zlib.error) as error:
            msg = f"{file.name!r} is not {encoding}: {_first_line(error)}; name another encoding"
            raise InvalidArgument(msg) from None
        yield copy, form


def _unpacked(file: Path) -> Path:
    copy = file.with_name("unpacked")
    try:
        with gzip.open(file) as packed, copy.open("wb") as spool:
            shutil.copyfileobj(packed, spool, 1 << 20)
    except (OSError, EOFError, zlib.error) as error:
        msg = f"standard input is packed, but cannot be unpacked: {_first_line(error)}; pack it anew"
        raise InvalidArgument(msg) from None
    return copy


def _kind_by_bytes(file: Path) -> str:
    """Return what a file without an ending is, by its beginning: CSV unless it says otherwise."""
    with file.open("rb") as opened:
        first = opened.readline(1 << 20)
        more = bool(opened.readline(1 << 20).strip())
    for mark, kind in _BEGINNINGS.items():
        if first.startswith(mark):
            return kind
    if first.lstrip()[:1] not in (b"{", b"["):
        return "csv"
    with suppress(ValueError):
        return "jsonl" if more and isinstance(json.loads(first), dict) else "json"
    return "json"


def _encoding_by_bytes(start: bytes) -> str | None:
    """Return the encoding that the first four bytes of a text show, None if that is UTF-8, as far as they tell."""
    marked = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
    if marked is not None or len(start) < 4:
        return marked
    even, odd = start[::2], start[1::2]
    if even == b"\0\0" and 0 not in odd:  # two letters of UTF-16 without a mark
        return "utf-16-be"
    return "utf-16-le" if odd == b"\0\0" and 0 not in even else None


def _begins(file: Path) -> bytes:
    """Return the first bytes of a file, unpacked if they can be."""
    with suppress(OSError, EOFError, zlib.error), raw(file) as opened:
        return opened.read(4)
    return b""


def _opened(file: Path, encoding: str = "utf-8-sig", errors: str = "strict") -> io.TextIOWrapper:
    return io.TextIOWrapper(raw(file), encoding=encoding, errors=errors, newline="")


def _check_size(file: Path, name: str) -> None:
    if not file.stat().st_size:
        msg = f"{name} is empty; check what was to write it"
        raise InvalidArgument(msg)


def _form_of(file: Path, kind: str | None) -> str:
    known = sorted(set(FORMATS.values()))
    if kind is not None:
        if kind not in known:
            msg = f"kind must be one of {', '.join(known)}, but got {kind!r}"
            raise InvalidArgument(msg)
        return kind
    bare = file.with_suffix("") if file.suffix.lower() in _PACKED else file
    form = FORMATS.get(bare.suffix.lower())
    if form is None:
        others = ", ".join(known)
        say = given(kind="csv")
        msg = f"the ending {file.suffix!r} of {file.name!r} is unknown; say {say} or another of {others}"
        raise InvalidArgument(msg)
    if bare != file and form not in _TEXT:
        msg = f"{file.name!r} is packed, and only text is unpacked here; unpack it first"
        raise InvalidArgument(msg)
    return form


class _Table:
    """A file as DuckDB sees it: its columns, and its cells as numbers and names."""

    def __init__(self, connection: Any, file: Path, form: str, written: Written, roles: Roles) -> None:  # noqa: ANN401
        self._run = connection.execute
        self._sql = connection.sql
        self._text, self._written = form in _TEXT, written
        self.types: dict[str, str]
        separated = form in ("csv", "tsv")
        dialect = Dialect.of(file, form, written.sep, roles.columns) if separated else Dialect()
        self._separated = _Separated.of(connection, file, dialect) if separated else None
        self._cells = self._separated.cells() if self._separated else _source(connection, file, form)
        self._file, self._form = file, form
        self._told: Callable[[], list[str]] = lambda: _names_told(connection, file, form, dialect)
        if self._separated:
            self.types = dict.fromkeys(self._separated.columns, "VARCHAR")
        else:
            described = self._run(f"DESCRIBE SELECT * FROM {self._cells}").fetchall()
            self.types = {name: kind for name, kind, *_ in described}
        _check_single(file, self.types)
        if (
            form == "csv"
            and len(self.types) == 1
            and re.search(r"[,;\t|]", next(iter(self.types)))
            and (msg := _ragged(file, dialect))
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
        return frames.wide(tapes, None if units is None else [cell for (cell,) in units], roles, how)

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
        cells = " UNION ".join(f"SELECT trim({_quoted(name)}) AS word FROM {self._cells}" for name in columns)
        found = self._run(f"SELECT DISTINCT word FROM ({cells}) WHERE lower(word) NOT IN ({_marks()}) ORDER BY 1")
        _check_true([word for (word,) in found.fetchall()], self._written.true, columns)

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
            raise InvalidArgument(frames.holds_words(word, readings))

    def _has_words(self, column: str) -> bool:
        cell = _quoted(column)
        if not self._text and self.types[column] != "VARCHAR":
            return False
        word = f"lower(trim({cell})) NOT IN ({_marks()}) AND TRY_CAST({cell} AS TIMESTAMP) IS NULL"
        word += f" AND NOT regexp_matches(trim({cell}), {_literal(_DIGITS_FIRST)})"
        return len(self._run(f"SELECT 1 FROM {self._cells} WHERE {word} LIMIT 2").fetchall()) > 1  # one is a slip

    def long(self, roles: Roles, how: Reduction, *, drop_unnamed: bool) -> Collected:
        """Return the readings of each arm, in the order of the rows unless another is asked for."""
        self._check_names(roles.columns)
        _check_separated(list(self.types), roles)
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
            raise InvalidArgument(_or_drop(frames.unnamed(row, arm, more=nameless - 1)))
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
        query = f"SELECT {', '.join(cells)} FROM {self._cells} LIMIT {frames.MOST_SUSPECTED}"
        head = self._run(query).fetchnumpy()
        codes = {name: i for i, name in enumerate(names)}
        arms = np.array([codes[name] for name in head["arm"].tolist()], dtype=np.intp)
        suspected = {name: head[f"cell{i}"].tolist() for i, name in enumerate(found)}
        return frames.suspects(Rows(names, arms, head["value"], suspected=suspected))

    def _word(self, column: str) -> str:
        """Return a column as words; NaN is none."""
        if self._text:  # what stands around a word is no part of it
            return f"trim({_quoted(column)}, {_BLANKS})"
        word = f"{_quoted(column)}::VARCHAR"
        return f"nullif({word}, 'nan')" if self.types[column] in ("FLOAT", "DOUBLE") else word

    def _unit(self, roles: Roles) -> str | None:
        """Return what tells units apart; numbers need no words."""
        if roles.unit is None:
            return None
        return _quoted(roles.unit) if self.types[roles.unit].endswith("INT") else self._word(roles.unit)

    def _place(self, roles: Roles) -> str | None:
        if roles.order in (None, "rows"):
            return None
        column = str(roles.order)
        if self.types[column].startswith("TIMESTAMP"):  # as whole numbers, which compare faster
            return f"epoch_{'ns' if self.types[column] == 'TIMESTAMP_NS' else 'us'}({_quoted(column)})"
        return _quoted(column) if _is_numeric(self.types[column]) else self._word(column)

    def _chosen(self, columns: Mapping[str, str], cells: str | None = None) -> str:
        """Return a table of columns: text is parsed once, Parquet and Arrow are scanned where they are."""
        chosen = ", ".join(f"{cell} AS {_quoted(name)}" for name, cell in columns.items())
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
            return self._chosen({**columns, "value": _quoted(value)}, cells)
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
        cell, head = _quoted(arm), f"(FROM {self._cells} LIMIT {frames.MOST_SUSPECTED})"
        names = [name for (name,) in self._run(f"SELECT DISTINCT {cell} FROM {head}").fetchall()]
        if not names or not all(name and name == name.strip() for name in names):
            return None
        check_number_of_arms(len(names), arm)
        code = f"enum_code(TRY_CAST({cell} AS {_enum(names)}))"
        query = f"SELECT {code} AS code, {_filled(_quoted(value))} AS value FROM {cells}"
        try:
            batches = list(_streamed(self._sql(query)))
        except (duckdb().Error, OSError, ValueError):  # a cell that is no number, or none of the names
            return None
        return frames.grouped(batches, names)

    def _number(self, column: str) -> str:
        cell = _quoted(column)
        if self._text:
            return self._written.sql(cell)
        return f"{cell}::DOUBLE" if _is_numeric(self.types[column]) else "NULL::DOUBLE"  # `_check` speaks of it

    def _is_complete(self, table: str) -> bool:
        return bool(self._run(f"SELECT count(*) = count(value) FROM {table}").fetchall()[0][0])

    def _wrong(self, column: str) -> str:
        """Return what is true of a cell of text that is neither a number nor the mark of a missing one."""
        return f"({self._number(column)} IS NULL AND lower(trim({_quoted(column)})) NOT IN ({_marks()}))"

    def _check(self, column: str) -> None:
        """Raise for the first cell that is neither a number nor one of the marks for a missing one."""
        cell = _quoted(column)
        if not self._text:
            kind = self.types[column]
            if not _is_numeric(kind):
                first = self._run(f"SELECT {cell} FROM {self._cells} LIMIT 1").fetchall()
                msg = frames.not_a_number(first[0][0] if first else None, 1, column)
                raise InvalidArgument(f"{msg} (the column's type is {kind})")
            return
        first = self._run(f"SELECT {cell} FROM {self._cells} WHERE {self._wrong(column)} LIMIT 1").fetchall()
        if first:
            raise InvalidArgument(_no_number(first[0][0], self._row(self._wrong(column)), column, self._written))

    def _row(self, condition: str) -> int:
        name = "row_of_file"
        while name.casefold() in map(str.casefold, self.types):
            name += "_"
        numbered = f"SELECT *, row_number() OVER () AS {name} FROM {self._cells}"
        found = self._run(f"SELECT min({name}) FROM ({numbered}) WHERE {condition}").fetchall()
        return int(found[0][0])


def check_names(columns: Collection[str], wanted: Collection[str], told: Callable[[], Collection[str]]) -> None:
    """Raise if a column that is wanted has the name of another, or one that differs in case only.

    Parameters
    ----------
    columns
        The names that DuckDB gave, which tell apart what the files do not.
    told
        Returns the names that the files have.

    Examples
    --------
    >>> check_names(["site", "ms", "ms_1"], ["ms"], lambda: ["site", "ms", "ms"])
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: 2 columns are named 'ms'; give each a name of its own
    """
    first = {name.casefold(): name for name in reversed(list(columns))}
    for name in columns:
        base = _RENAMED.fullmatch(name)
        twin = first.get(base[1].casefold()) if base else None
        if base and twin and {twin, base[1], name} & set(wanted) and name not in told():
            cased = f"columns {twin!r} and {base[1]!r} differ only in case, which is not told apart in files"
            msg = f"2 columns are named {twin!r}" if base[1] == twin else cased
            raise InvalidArgument(f"{msg}; give each a name of its own")


def names_told(
    connection: Any,  # noqa: ANN401
    names: Sequence[str],
    sep: str | None = None,
    wanted: Collection[str] = (),
) -> set[str]:
    r"""Return the names that columns have in some files.

    Parameters
    ----------
    sep, wanted
        As for `Dialect.of`.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("site,ms,ms\nA,1,2\n")
    ...     sorted(names_told(duckdb().connect(), [f"{folder}/a.csv"]))
    ['ms', 'site']
    """
    known = [(Path(name), FORMATS.get(Path(name).suffix, "csv")) for name in names]
    written = [(file, form, Dialect.of(file, form, sep, wanted)) for file, form in known]
    return {name for told in written for name in _names_told(connection.cursor(), *told)}


def lines_of(connection: Any, names: Sequence[str], roles: Roles) -> tuple[str, list[str]]:  # noqa: ANN401
    """Return a table expression of files of JSON lines, every cell text, and its columns.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.jsonl").write_text('{"site": "A", "ms": 1}')
    ...     lines_of(duckdb().connect(), [f"{folder}/a.jsonl"], Roles("site", "ms"))[1]
    ['site', 'ms']
    """
    files = list(map(Path, names))
    reader = f"read_json({addresses(files)}, format = 'newline_delimited', {hive_options(files, roles)}"
    described = connection.execute(f"DESCRIBE SELECT * FROM {reader}, union_by_name = true)").fetchall()
    keys = hive_keys(files)
    columns = [name for name, *_ in described]
    kinds = ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in columns if name not in keys)
    return f"(FROM {reader}, columns = {{{kinds}}}))", columns


def text_as_sql(columns: Collection[str], roles: Roles, written: Written) -> str:
    """Return what makes of cells of text what they are in a small file: names trimmed, readings numbers.

    A cell that is no number raises an error that says which it is. Without arms every column holds readings.

    Examples
    --------
    >>> text_as_sql(["site", "ms", "who"], Roles("site", "ms"), Written())[:30]
    '* REPLACE (trim("site") AS "si'
    """
    readings = [str(roles.value)] if roles.value else [name for name in columns if name != roles.unit]
    cells = {name: f"trim({_quoted(name)})" for name in (roles.arm, roles.unit) if name is not None}
    for name in readings:
        cell = _quoted(name)
        said = f"{_literal(f'column {name!r} holds ')} || {cell} || ', which is not a plain number'"
        number = f"coalesce({written.sql(cell)}, error({said}))"
        cells[name] = f"CASE WHEN NOT list_contains([{_marks()}], lower(trim({cell}))) THEN {number} END"
    made = ", ".join(f"{cell} AS {_quoted(name)}" for name, cell in cells.items())
    return f"* REPLACE ({made})"


def separated(names: Sequence[str], roles: Roles, sep: str | None) -> tuple[str, list[str]]:
    r"""Return a table expression of CSV and TSV files, every cell text, and its columns; raise if files differ.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("site,ms\nA,1\n")
    ...     separated([f"{folder}/a.csv"], Roles("site", "ms"), None)[1]
    ['site', 'ms']
    """
    alike: dict[Dialect, list[Path]] = {}
    for file in (Path(name) for name in names if Path(name).stat().st_size):
        _check_encoding(file)
        form = FORMATS.get(file.with_suffix("").suffix if file.suffix == ".gz" else file.suffix, "csv")
        alike.setdefault(Dialect.of(file, form, sep, roles.columns), []).append(file)
    columns = dict.fromkeys(name for dialect in alike for name in dialect.columns(named=True))
    columns |= dict.fromkeys(key for files in alike.values() for key in hive_keys(files))
    for dialect, files in alike.items():
        check_hive(files, dialect.columns())
        check_names(dialect.columns(), roles.columns, partial(tuple, dialect.names))
        _check_separated(dialect.columns(), roles)
        for name in roles.columns if len(alike) > 1 else ():
            if name not in (*dialect.columns(), *hive_keys(files)) and name in columns:
                lacks = f"{str(files[0])!r} has no column {name!r}, which other files here have"
                msg = f"{lacks}; give a pattern that fits tables of one kind, such as 'logs/*.csv'"
                raise InvalidArgument(msg)
    parts = []
    for dialect, files in alike.items():
        chosen = ", ".join(map(_quoted, dict.fromkeys((*dialect.columns(named=True), *hive_keys(files)))))
        parts.append(f"SELECT {chosen} FROM {_Separated.several(files, dialect, roles).cells()}")
    return f"({' UNION ALL BY NAME '.join(parts)})", list(columns)


def is_marked(file: Path) -> bool:
    """Tell whether a file begins with the mark of an encoding that is not UTF-8.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("site,ms", encoding="utf-16")
    ...     is_marked(Path(folder, "a.csv"))
    True
    """
    return _encoding_by_bytes(_begins(file)) is not None


def _check_encoding(file: Path) -> None:
    """Raise if a file is in an encoding that DuckDB would have to be told."""
    if (name := _encoding_by_bytes(_begins(file))) is not None:
        said = f"convert it, such as by: iconv -f {name} -t utf-8 {file.name}"
        msg = f"{str(file)!r} is {name.upper()}, and several files are read as UTF-8; {said}"
        raise InvalidArgument(msg)


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
    return f"read_parquet({_address(file)}, hive_partitioning = false)"


def _address(file: Path) -> str:
    """Return a path as DuckDB has to be told it: absolute, and with nothing that stands for other names."""
    return _literal(re.sub(r"([*?\[])", r"[\1]", file.absolute().as_posix()))


def addresses(files: Iterable[Path]) -> str:
    """Return several paths as DuckDB has to be told them.

    Examples
    --------
    >>> addresses([Path("/logs/a.csv"), Path("/logs/b*.csv")])
    "['/logs/a.csv', '/logs/b[*].csv']"
    """
    return f"[{', '.join(map(_address, files))}]"


def hive_keys(files: Sequence[Path]) -> list[str]:
    """Return the columns that folders name, as in variant=A/1.parquet; none unless those of all files do.

    Examples
    --------
    >>> hive_keys([Path("logs/site=A/1.csv"), Path("logs/site=B/1.csv")]), hive_keys([Path("a.csv")])
    (['site'], [])
    """
    keys = {tuple(part.partition("=")[0] for part in file.parent.parts if "=" in part) for file in files}
    return list(keys.pop()) if len(keys) == 1 else []


def check_hive(files: Sequence[Path], columns: Iterable[str]) -> None:
    """Raise if folders name a column that the files have too: one of the two would be overlooked.

    Examples
    --------
    >>> check_hive([Path("logs/site=A/1.csv")], ["site", "ms"])
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: the folders name a column 'site', and the files have one of that name too;
    rename the folders, or give the files by a pattern of their own
    """
    for key in hive_keys(files):
        if key in columns:
            both = f"the folders name a column {key!r}, and the files have one of that name too"
            msg = f"{both}; rename the folders, or give the files by a pattern of their own"
            raise InvalidArgument(msg)


def hive_options(files: Sequence[Path], roles: Roles) -> str:
    """Return options of DuckDB for columns that folders name: names stay words.

    Examples
    --------
    >>> hive_options([Path("logs/site=A/1.csv")], Roles("site", "ms"))
    "hive_partitioning = true, hive_types = {'site': VARCHAR}"
    """
    words = [f"{_literal(key)}: VARCHAR" for key in hive_keys(files) if key in (roles.arm, roles.unit)]
    types = f", hive_types = {{{', '.join(words)}}}" if words else ""
    return f"hive_partitioning = {'true' if hive_keys(files) else 'false'}{types}"


def _text_address(file: Path) -> str:
    """Return the path of a text file and how it is packed: DuckDB does not see the ending behind a ?."""
    packing = {".gz": "gzip", ".zst": "zstd"}.get(file.suffix.lower(), "uncompressed")
    return f"{_address(file)}, compression = '{packing}', hive_partitioning = false"


_BLANKS = "' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"  # what Python takes away too


class _Separated(NamedTuple):
    """A CSV or TSV file as DuckDB is to read it: to let it find that out takes as long as to read a small one."""

    address: str
    dialect: str
    columns: Sequence[str]

    @classmethod
    def of(cls, connection: Any, file: Path, dialect: Dialect) -> "_Separated":  # noqa: ANN401
        known, names = dialect, dialect.columns()
        if not names:
            options = f"header = true, all_varchar = true, {dialect.sql()}"
            told = f"SELECT Delimiter, Columns FROM sniff_csv({_text_address(file)}, {options})"
            delim, columns = connection.execute(told).fetchone()
            known, names = dialect._replace(sep=delim), [column["name"] for column in columns]
        return cls(_text_address(file), f"auto_detect = false, header = true, {known.sql()}", names)

    @classmethod
    def several(cls, files: Sequence[Path], dialect: Dialect, roles: Roles) -> "_Separated":
        """Return files that are written alike, with columns of the same names in the same order."""
        options = f"{addresses(files)}, {hive_options(files, roles)}"
        return cls(options, f"auto_detect = false, header = true, {dialect.sql()}", dialect.columns())

    def cells(self, number: str | None = None) -> str:
        """Return a table expression of text, perhaps with a column of numbers, which DuckDB reads as it parses."""
        kinds = (f"{_literal(name)}: '{'DOUBLE' if name == number else 'VARCHAR'}'" for name in self.columns)
        return f"read_csv({self.address}, {self.dialect}, columns = {{{', '.join(kinds)}}})"


def _lines(connection: Any, file: Path) -> str:  # noqa: ANN401
    """Return JSON lines as text columns: the names come from all lines, the cells as they are written."""
    reader = f"read_json({_text_address(file)}, format = 'newline_delimited'"
    described = connection.execute(f"DESCRIBE SELECT * FROM {reader}, sample_size = -1)").fetchall()
    columns = ", ".join(f"{_quoted(row[0])}: 'VARCHAR'" for row in described)
    return f"{reader}, columns = {{{columns}}})"


def _names_told(connection: Any, file: Path, form: str, dialect: Dialect) -> list[str]:  # noqa: ANN401
    """Return the names of the columns as the file has them; DuckDB renames those that it cannot tell apart."""
    match form:
        case "csv" | "tsv" if dialect.names:
            return list(dialect.names)
        case "csv" | "tsv":
            options = f"header = false, all_varchar = true, {dialect.sql()}"
            first = connection.execute(f"FROM read_csv({_text_address(file)}, {options}) LIMIT 1").fetchone()
            return [(cell or "").strip() for cell in first or ()]
        case "jsonl":
            lines = f"read_json_objects({_text_address(file)}, format = 'newline_delimited')"
            keys = connection.execute(f"SELECT DISTINCT unnest(json_keys(json)) FROM {lines}").fetchall()
            return [key for (key,) in keys]
        case "arrow":
            return list(_arrow(file).column_names)
    schema = f"SELECT name, coalesce(num_children, 0) FROM parquet_schema({_address(file)}) OFFSET 1"
    names, inner = [], 0  # a column is followed by those inside it
    for name, children in connection.execute(schema).fetchall():
        if not inner:
            names.append(name)
        inner += children - (inner > 0)
    return names


def _reason(error: str, file: Path, form: str, sep: str | None, roles: Roles) -> str:
    """Return why DuckDB cannot read a file: by its line, if DuckDB or a look at the cells tells it."""
    line = re.search(r"Error on Line: (\d+)", error)
    if line and "not utf-8" in error:
        return _not_utf8(file, int(line[1]))
    cells = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", error)
    if line and cells:
        return _uneven(file, int(line[1]), int(cells[2]), int(cells[1]))
    ragged = _ragged(file, Dialect.of(file, form, sep, roles.columns)) if form in ("csv", "tsv") else None
    return ragged or f"{file.name!r} cannot be read as {_TEXT.get(form, form)}: {error.splitlines()[0]}"


def _not_utf8(file: Path, line: int) -> str:
    return (
        f"line {line} of {file.name!r} is not UTF-8; save the file as UTF-8, or name what it is: "
        f"{given(encoding='cp1252')}"
    )


def _ragged(file: Path, dialect: Dialect) -> str | None:
    """Return which line of a file cannot be read, or has more or fewer cells than its first one."""
    if file.suffix.lower() == ".zst":
        return None
    try:
        with _opened(file, errors="replace") as text:
            for _ in _rows_of(file, text, dialect):
                pass
    except InvalidArgument as error:
        return str(error)
    except (OSError, EOFError, zlib.error):  # broken in another way, which DuckDB tells
        pass
    return None


def _rows_of(file: Path, text: Iterable[str], dialect: Dialect) -> Iterator[list[str]]:
    """Give the rows of a CSV or TSV file, first its names; each has as many cells as there are names."""
    rows = dialect.rows(text)
    try:
        names: list[str] = next(rows, [])
        yield names
        for row in rows:
            while len(row) > len(names) and not row[-1]:  # separators at the end of the line
                row.pop()
            if row and len(row) != len(names):
                raise InvalidArgument(_uneven(file, dialect.above + rows.line_num, len(row), len(names)))
            if row:
                yield row
    except csv.Error as error:
        line = dialect.above + rows.line_num
        msg = f"line {line} of {file.name!r} cannot be read: {error}; write a quote inside quotes as two"
        raise InvalidArgument(msg) from None


def _plainly_read(file: Path, form: str, written: Written, roles: Roles) -> dict[str, list[Any]]:
    """Return the columns of a CSV or TSV file without DuckDB: cells as text, None where they are empty."""
    if file.suffix.lower() == ".zst":
        duckdb()
    try:
        with _opened(file) as text:
            names, *rows = _rows_of(file, text, Dialect.of(file, form, written.sep, roles.columns))
    except UnicodeDecodeError:
        raise InvalidArgument(_not_utf8(file, _first_other(file))) from None
    except (OSError, EOFError, zlib.error) as error:
        msg = f"{file.name!r} cannot be read as {_TEXT[form]}: {_first_line(error)}; write it anew"
        raise InvalidArgument(msg) from None
    named = {i: name.strip() for i, name in enumerate(names) if name.strip()}
    _check_single(file, named.values())
    check_distinct(name for name in named.values() if roles.arm is None or name in roles.columns)
    _check_separated(list(named.values()), roles)
    if not rows:
        raise InvalidArgument(NO_ROWS)
    words = {roles.arm, roles.unit}
    return {
        name: [(row[i].strip() if name in words else row[i]) or None for row in rows] for i, name in named.items()
    }


def _check_single(file: Path, columns: Collection[str]) -> None:
    """Raise if a file holds what a benchmark tool made of its readings, and not the readings."""
    if set(columns) >= _SUMMARY:
        single = "no single times; export them with --export-json FILE"
        msg = f"{file.name!r} holds one line for each command, and {single}"
        raise InvalidArgument(msg)


def _first_other(file: Path) -> int:
    """Return the first line that is not UTF-8."""
    with raw(file) as opened:
        for line, text in enumerate(opened, 1):
            try:
                text.decode()
            except UnicodeDecodeError:
                return line
    return 1


def _check_separated(names: Sequence[str], roles: Roles) -> None:
    """Raise if all cells are in one column, and say what seems to separate them."""
    if len(names) == 1 and roles.arm is not None and roles.arm not in names:
        for mark in dict.fromkeys(names[0]):
            if roles.arm in names[0].split(mark):
                msg = f"all cells are in one column, {names[0]!r}; say what separates them: {given(sep=mark)}"
                raise InvalidArgument(msg)


def _no_number(cell: object, row: int, column: str, written: Written) -> str:
    """Return what to say of a cell that holds no plain number, and what would read it."""
    known = remedy(cell) if isinstance(cell, str) else None
    if known is not None and written.strip and beside(str(cell)) not in ("", written.strip):
        return (
            f"row {row} of column {column!r} is {cell!r}, but other cells have {written.strip!r} beside their "
            "number; write all of them in one unit"
        )
    if known is None and isinstance(cell, str) and re.fullmatch(r"\(.*[0-9].*\)", cell.strip()):
        return f"row {row} of column {column!r} is {cell!r}; write a number below zero with a minus before it"
    if known is None:
        return frames.not_a_number(cell, row, column)
    return (
        f"row {row} of column {column!r} is {cell!r}, which is not a plain number; to read such cells, say {known}"
    )


def _or_drop(text: str) -> str:
    return f"{text} with {given(drop_unnamed=True)}"


def _uneven(file: Path, line: int, found: int, width: int) -> str:
    cells = "1 cell" if found == 1 else f"{found} cells"
    return f"line {line} of {file.name!r} has {cells}, but the first line has {width}; check for a stray separator"


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
        msg = f"{file.name!r} cannot be read as arrow: {_first_line(error)}; write it anew"
        raise InvalidArgument(msg) from None
    return table


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _filled(number: str) -> str:
    return f"coalesce({number}, 'nan'::DOUBLE)"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _enum(names: Iterable[str]) -> str:
    return f"ENUM({', '.join(map(_literal, names))})"


def _marks() -> str:
    return ", ".join(map(_literal, ABSENT))


def _is_numeric(kind: str) -> bool:
    kinds = "BOOLEAN|U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL\\(.*\\)"
    return re.fullmatch(kinds, kind) is not None


def _sheet(file: Path, roles: Roles) -> dict[str, list[Any]]:
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
        msg = f"{file.name!r} is not an Excel workbook ({_first_line(error)}); save it as .xlsx or CSV"
        raise InvalidArgument(msg) from None


def _first_line(error: Exception) -> str:
    words = str(error).splitlines()
    return f"{words[0]:.200}" if words else type(error).__name__


def _of_rows(
    columns: Mapping[str, Any], roles: Roles, how: Reduction, written: Written, *, drop_unnamed: bool
) -> Collected:
    """Return tapes of columns that are equally long because they were rows: a shorter one ends at its foot."""
    found = _of_columns(columns, roles, how, written, drop_unnamed=drop_unnamed)
    return found if roles.columns else frames.wide(found.tapes, None, roles, how)


def _of_columns(
    columns: Mapping[str, Any], roles: Roles, how: Reduction, written: Written, *, drop_unnamed: bool
) -> Collected:
    wide = roles.arm is None
    wanted = [name for name in columns if name != roles.unit] if wide else [str(roles.value)]
    if written.true is not None:
        told = (cell for name in wanted for cell in columns.get(name, ()) if isinstance(cell, str))
        words = {cell.strip() for cell in told if cell.strip().lower() not in ABSENT}
        _check_true(sorted(words), written.true, wanted)
    cells = {name: _numbers(columns[name], name, written, names=wide) for name in wanted if name in columns}
    arm, value, unit, order = roles
    try:
        return frames.collect(
            {**columns, **cells}, arm, value, unit=unit, order=order, how=how, drop_unnamed=drop_unnamed
        )
    except frames.Unnamed as error:
        raise InvalidArgument(_or_drop(str(error))) from None


def _check_true(words: Sequence[str], true: str, columns: Sequence[str]) -> None:
    """Raise if the word that counts as 1 is none of several that stand there: then all would count as 0."""
    if len(words) > 1 and true.strip().lower() not in map(str.lower, words):
        shown = ", ".join(map(repr, words[:5])) + (", ..." if len(words) > 5 else "")
        where = f"column {columns[0]!r}" if len(columns) == 1 else "the file"
        msg = f"{given(true=true)} is in no cell of {where}, so that all would count as 0; its words are {shown}"
        raise InvalidArgument(msg)


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
    if names and len(wrong) > 1 and not any(re.match(_DIGITS_FIRST, column[i].strip()) for i in wrong):
        return column
    raise InvalidArgument(_no_number(column[wrong[0]], wrong[0] + 1, name, written))


def _from_json(file: Path, roles: Roles, how: Reduction, written: Written, *, drop_unnamed: bool) -> Collected:
    """Return what hyperfine or pyperf exported, or any of the shapes in which pandas writes a table."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_object)
    except InvalidArgument:
        raise
    except RecursionError:
        msg = f"{file.name!r} is nested too deeply to hold readings; save them as columns by name, or as records"
        raise InvalidArgument(msg) from None
    except ValueError as error:  # no JSON, not UTF-8, or a number with thousands of digits
        msg = f"{file.name!r} is not JSON: {_first_line(error)}; one record per line is {given(kind='jsonl')}"
        raise InvalidArgument(msg) from None
    if isinstance(data, Mapping) and "certificate" in data and isinstance(data.get("readings"), Mapping):
        return _exported(truearm, data, file, roles, how)
    if isinstance(data, Mapping) and {"iters", "times"} <= data.keys():
        return _exported(imports.criterion, {**data, "name": file.absolute().parent.parent.name}, file, roles, how)
    if isinstance(data, Mapping):
        for known, (marks, reader) in (*_EXPORTS.items(), *imports.EXPORTS):
            if _is_records(data.get(known)) and any(marks & record.keys() for record in data[known]):
                return _exported(reader, data, file, roles, how)
    columns = columns_in(data, roles.columns)
    if columns is not None:
        return _of_rows(columns, roles, how, written, drop_unnamed=drop_unnamed)
    if isinstance(data, Mapping):  # columns by name, with lengths of their own
        return _of_columns(data, roles, how, written, drop_unnamed=drop_unnamed)
    msg = f"{file.name!r} must hold columns by name, a list of records, or an export of hyperfine or pyperf"
    raise InvalidArgument(msg)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    check_distinct(name for name, _ in pairs)
    return dict(pairs)


def _is_records(data: object) -> bool:
    return isinstance(data, list) and bool(data) and all(isinstance(row, Mapping) for row in data)


def _exported(reader: Export, data: Mapping[str, Any], file: Path, roles: Roles, how: Reduction) -> Collected:
    tool = reader.__name__.replace("_", "-")
    for argument, name in (("unit", roles.unit), ("order", roles.order)):
        if name is not None and (argument, name) != ("order", "rows"):
            msg = f"{given(**{argument: name})} is given, but an export of {tool} knows its own; leave it out"
            raise InvalidArgument(msg)
    try:
        return reader(data, how)
    except InvalidArgument:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        msg = f"{file.name!r} looks like an export of {tool}, but is none: {error!r:.200}; export it again"
        raise InvalidArgument(msg) from None


def truearm(data: Mapping[str, Any], how: Reduction = MEDIANS) -> Collected:  # noqa: ARG001 - as all exports
    """Return the readings in what truearm itself exported as JSON, whatever was measured, in order of pull.

    Examples
    --------
    >>> truearm({"readings": {"A": [1.5, "inf", None]}}).tapes
    {'A': array([1.5, inf, nan])}
    """
    tapes = {
        str(arm): np.array([np.nan if value is None else float(value) for value in tape])
        for arm, tape in data["readings"].items()
    }
    return Collected(tapes, ordered=True, timed=data.get("goal") == "min")


def hyperfine(data: Mapping[str, Any], how: Reduction = MEDIANS) -> Collected:  # noqa: ARG001 - as all exports
    """Return the times of each command in what `hyperfine --export-json` wrote; failed runs become NaN.

    Every run is a process of its own, hence a unit of its own, and runs are written in order.

    Examples
    --------
    >>> run = {"command": "true", "times": [0.1, 0.2], "exit_codes": [0, 1]}
    >>> hyperfine({"results": [run]}).tapes
    {'true': array([0.1, nan])}
    """
    tapes: dict[str, Floats] = {}
    for run in data["results"]:
        name = str(run["command"])
        times = frames.numbers(run.get("times") or (), name)
        codes = np.array([0 if code is None else code for code in run.get("exit_codes") or np.zeros(times.size)])
        if not times.size or codes.size != times.size:
            msg = (
                f"this export holds no single times of {name!r}; write it anew with: hyperfine --export-json FILE"
            )
            raise InvalidArgument(msg)
        if name in tapes:
            msg = f"two results of this export are called {name!r}; name the commands with: hyperfine -n NAME"
            raise InvalidArgument(msg)
        tapes[name] = np.where(codes == 0, times, np.nan)
    return Collected(tapes, ordered=True, timed=True)


def pyperf(data: Mapping[str, Any], how: Reduction = MEDIANS) -> Collected:
    """Return the median of each process in what pyperf wrote; warm-ups and calibration are no readings.

    A run of pyperf is a process with several values. What differs from process to process (hashes, addresses)
    moves all of them, so that together they are one reading (extensions 2). Runs are written in order.

    Examples
    --------
    >>> runs = [{"values": [0.5, 0.7, 0.6]}, {"warmups": []}, {"values": [0.8]}]
    >>> found = pyperf({"benchmarks": [{"metadata": {"name": "join"}, "runs": runs}]})
    >>> found.tapes, found.units.rows
    ({'join': array([0.6, 0.8])}, {'join': 4})
    """
    common = data.get("metadata", {}).get("name", "benchmark")
    processes: dict[str, list[Floats]] = {}
    for bench in data["benchmarks"]:
        name = str(bench.get("metadata", {}).get("name", common))
        if "runs" not in bench:
            msg = f"this export holds no runs of {name!r}; write it anew with pyperf's option: -o FILE"
            raise InvalidArgument(msg)
        values = [frames.numbers(run.get("values") or (), name) for run in bench["runs"]]
        processes.setdefault(name, []).extend(run for run in values if run.size)
    tapes = {name: _one_each(runs, how) for name, runs in processes.items()}
    units = Units(
        "process",
        {name: sum(run.size for run in runs) for name, runs in processes.items()},
        {name: len(runs) for name, runs in processes.items()},
        shared=0,
    )
    check_several(units, "let pyperf start more processes: --processes 20")
    timed = data.get("metadata", {}).get("unit", "second") == "second"
    return Collected(tapes, ordered=True, units=units, timed=timed)


def _one_each(runs: Sequence[Floats], how: Reduction) -> Floats:
    codes = np.repeat(np.arange(len(runs)), [run.size for run in runs])
    return by_unit(np.concatenate([np.empty(0), *runs]), codes, **how._asdict())[0]


_EXPORTS: Mapping[str, tuple[set[str], Export]] = {
    "results": ({"command"}, hyperfine),
    "benchmarks": ({"metadata", "runs"}, pyperf),
}
