"""Files into readings: CSV, TSV, Parquet, JSON lines, Arrow, Excel, and what hyperfine and pyperf export.

DuckDB reads what is tabular, only the columns asked for and never through an approximate aggregate. Text formats
are read as text and converted here, so that a cell that is no number can be named by its row.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument
from truearm.frames import check_column, gathered, not_a_number, tapes_of, unnamed, without_foot

Floats = NDArray[np.float64]

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
_PACKED = (".gz", ".zst")  # DuckDB unpacks these by itself
_ABSENT = ("", "na", "n/a", "nan", "null", "none", "<na>")  # what programs write for a missing number
_MANY = 1 << 20  # rows; from here on pyarrow saves more time than its import takes


def read(
    path: str | Path, *, arm: str | None = None, value: str | None = None, kind: str | None = None
) -> dict[str, Floats]:
    r"""Return the readings of each arm in a file, in the order of its rows; NaN where a cell is empty.

    Parameters
    ----------
    path
        A file, or "-" for standard input, which is CSV unless `kind` says otherwise.
    arm, value
        The columns that name the arm and hold the reading; without them every column is an arm. Files of
        hyperfine and pyperf need neither.
    kind
        "csv", "tsv", "parquet", "jsonl", "json", "arrow" or "excel"; None goes by the ending.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "times.csv")
    ...     _ = file.write_text("site,ms\nB,3\nA,\nB,5\n")
    ...     read(file, arm="site", value="ms")
    {'B': array([3., 5.]), 'A': array([nan])}
    """
    if (arm is None) != (value is None):
        return tapes_of({}, arm, value)  # says what is wrong
    with _located(path, kind) as (file, form):
        if form == "json":
            return _from_json(file, arm, value)
        if form == "excel":
            return tapes_of(_sheet(file), arm, value)
        with _duckdb().connect() as connection:
            table = _Table(connection, file, form)
            return table.wide() if arm is None or value is None else table.long(arm, value)


@contextmanager
def _located(path: str | Path, kind: str | None) -> Iterator[tuple[Path, str]]:
    if str(path) == "-":
        form = _form_of(Path("stdin"), kind or "csv")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, f"stdin.{form}")
            with file.open("wb") as spool:
                while block := sys.stdin.buffer.read(1 << 20):
                    spool.write(block)
            yield file, form
        return
    file = Path(path)
    if not file.is_file():
        msg = f"there is no file {str(path)!r}; give a path, or - for standard input"
        raise InvalidArgument(msg)
    yield file, _form_of(file, kind)


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
        msg = f"the ending {file.suffix!r} of {file.name!r} is unknown; say kind= one of {', '.join(known)}"
        raise InvalidArgument(msg)
    return form


def _duckdb() -> Any:  # noqa: ANN401 - duckdb has no types to speak of
    try:
        import duckdb
    except ImportError:
        msg = "reading this file needs DuckDB; install it with: pip install 'truearm[data]'"
        raise InvalidArgument(msg) from None
    return duckdb


class _Table:
    """A file as DuckDB sees it: its columns, and its cells as numbers and names."""

    def __init__(self, connection: Any, file: Path, form: str) -> None:  # noqa: ANN401
        self._run = connection.execute
        self._sql = connection.sql
        self._text = form in ("csv", "tsv", "jsonl")
        self._cells = _source(connection, file, form)
        try:
            described = self._run(f"DESCRIBE SELECT * FROM {self._cells}").fetchall()
        except _duckdb().Error as error:
            msg = f"{file.name!r} cannot be read as {form}: {str(error).splitlines()[0]}"
            raise InvalidArgument(msg) from None
        self.types = {row[0]: row[1] for row in described}

    def wide(self) -> dict[str, Floats]:
        """Return every column as an arm, without the empty cells at its foot."""
        table = self._chosen({name: self._number(name) for name in self.types})
        tapes = {}
        for name in self.types:
            cell = _quoted(name)
            self._check(name, table, cell)
            column = self._sql(f"SELECT {_filled(cell)} AS value FROM {table}").fetchnumpy()
            tapes[name] = without_foot(column["value"])
        return tapes

    def long(self, arm: str, value: str) -> dict[str, Floats]:
        """Return the readings of each arm in the order of the rows."""
        check_column(self.types, arm, "arm")
        check_column(self.types, value, "value")
        name = f"{_quoted(arm)}::VARCHAR"
        table = self._chosen({"arm": name, "value": self._number(value)})
        counts = dict(self._run(f"SELECT arm, count(*) FROM {table} GROUP BY arm").fetchall())
        if not counts:
            msg = "the file has no rows of data; check that its first line names the columns"
            raise InvalidArgument(msg)
        if None in counts or "" in counts:
            raise InvalidArgument(unnamed(self._row(f"coalesce({name}, '') = ''"), arm))
        self._check(value, table, "value")
        kinds = ", ".join(map(_literal, counts))
        code = f"enum_code(TRY_CAST(arm AS ENUM({kinds})))"  # measured: a sixth of the time of a join
        rows = self._sql(f"SELECT {code} AS code, {_filled('value')} AS value FROM {table}")
        return gathered(_batches(rows, sum(counts.values())), counts)

    def _chosen(self, columns: Mapping[str, str]) -> str:
        """Return a table of columns: text is parsed once, Parquet and Arrow are scanned where they are."""
        chosen = ", ".join(f"{cell} AS {_quoted(name)}" for name, cell in columns.items())
        query = f"SELECT {chosen} FROM {self._cells}"
        if not self._text:
            return f"({query})"
        self._run(f"CREATE TEMP TABLE kept AS {query}")
        return "kept"

    def _number(self, column: str) -> str:
        cell = _quoted(column)
        if self._text:
            return f"TRY_CAST(nullif({cell}, '') AS DOUBLE)"  # nullif: duckdb#23818, a bare TRY_CAST raises
        return f"{cell}::DOUBLE" if _is_numeric(self.types[column]) else "NULL::DOUBLE"  # `_check` speaks of it

    def _check(self, column: str, table: str, number: str) -> None:
        """Raise for the first cell that is neither a number nor one of the marks for a missing one."""
        cell = _quoted(column)
        if not self._text:
            kind = self.types[column]
            if not _is_numeric(kind):
                first = self._run(f"SELECT {cell} FROM {self._cells} LIMIT 1").fetchall()
                msg = not_a_number(first[0][0] if first else None, 1, column)
                raise InvalidArgument(f"{msg} (the column's type is {kind})")
            return
        [(complete,)] = self._run(f"SELECT count(*) = count({number}) FROM {table}").fetchall()
        if complete:
            return
        marks = ", ".join(f"'{mark}'" for mark in _ABSENT)
        wrong = f"{self._number(column)} IS NULL AND lower(trim({cell})) NOT IN ({marks})"
        first = self._run(f"SELECT {cell} FROM {self._cells} WHERE {wrong} LIMIT 1").fetchall()
        if first:
            raise InvalidArgument(not_a_number(first[0][0], self._row(wrong), column))

    def _row(self, condition: str) -> int:
        numbered = f"SELECT *, row_number() OVER () AS row_of_file FROM {self._cells}"
        found = self._run(f"SELECT min(row_of_file) FROM ({numbered}) WHERE {condition}").fetchall()
        return int(found[0][0])


def _batches(rows: Any, n: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:  # noqa: ANN401 - a relation
    """Return the codes and values of n rows: as DuckDB finds them, if there are many and pyarrow is there."""
    if n >= _MANY and find_spec("pyarrow") is not None:
        import pyarrow as pa  # type: ignore[import-untyped]

        for batch in pa.RecordBatchReader.from_stream(rows):
            codes, values = map(np.from_dlpack, batch.columns)  # `to_numpy` would import pandas
            yield codes, values
    else:
        columns = rows.fetchnumpy()
        yield columns["code"], columns["value"]


def _source(connection: Any, file: Path, form: str) -> str:  # noqa: ANN401
    """Return a table expression for a file; every cell of a text file is text."""
    name = _literal(str(file))
    match form:
        case "csv":
            return f"read_csv({name}, header = true, all_varchar = true)"
        case "tsv":
            return rf"read_csv({name}, header = true, all_varchar = true, delim = '\t')"
        case "jsonl":
            return _lines(connection, name)
        case "arrow":
            connection.register("arrow_file", _arrow(file))
            return "arrow_file"
    return f"read_parquet({name})"


def _lines(connection: Any, name: str) -> str:  # noqa: ANN401
    """Return JSON lines as text columns: the names come from all lines, the cells as they are written."""
    reader = f"read_json({name}, format = 'newline_delimited'"
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {reader}, sample_size = -1)").fetchall()
    except _duckdb().Error as error:
        msg = f"{name} cannot be read as JSON lines: {str(error).splitlines()[0]}"
        raise InvalidArgument(msg) from None
    columns = ", ".join(f"{_quoted(row[0])}: 'VARCHAR'" for row in described)
    return f"{reader}, columns = {{{columns}}})"


def _arrow(file: Path) -> Any:  # noqa: ANN401 - a pyarrow table
    try:
        from pyarrow import feather
    except ImportError:
        msg = f"reading {file.name!r} needs pyarrow; install it with: pip install 'truearm[data]'"
        raise InvalidArgument(msg) from None
    try:
        return feather.read_table(file, memory_map=True)
    except (OSError, ValueError) as error:
        msg = f"{file.name!r} cannot be read as arrow: {error}"
        raise InvalidArgument(msg) from None


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _filled(number: str) -> str:
    return f"coalesce({number}, 'nan'::DOUBLE)"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_numeric(kind: str) -> bool:
    whole = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
    return kind.removeprefix("U").startswith(whole)


def _sheet(file: Path) -> dict[str, list[Any]]:
    """Return the columns of the first sheet of a workbook, whose first row holds their names."""
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError:
        msg = f"reading {file.name!r} needs openpyxl; install it with: pip install openpyxl, or save it as CSV"
        raise InvalidArgument(msg) from None
    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    rows = book.worksheets[0].iter_rows(values_only=True)
    names = [str(cell) for cell in next(rows, ()) if cell is not None]
    cells = [row[: len(names)] for row in rows if any(cell is not None for cell in row)]
    book.close()
    return {name: [row[i] for row in cells] for i, name in enumerate(names)}


def _from_json(file: Path, arm: str | None, value: str | None) -> dict[str, Floats]:
    """Return what hyperfine or pyperf exported, a list of records, or columns by name."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        msg = f"{file.name!r} is not JSON: {error}; one record per line is kind='jsonl'"
        raise InvalidArgument(msg) from None
    if isinstance(data, Mapping):
        for known, reader in _EXPORTS.items():
            if known in data:
                return reader(data)
        return tapes_of(data, arm, value)
    if isinstance(data, Sequence) and data and all(isinstance(row, Mapping) for row in data):
        columns = list(dict.fromkeys(name for row in data for name in row))
        return tapes_of({name: [row.get(name) for row in data] for name in columns}, arm, value)
    msg = f"{file.name!r} must hold columns by name, a list of records, or an export of hyperfine or pyperf"
    raise InvalidArgument(msg)


def hyperfine(data: Mapping[str, Any]) -> dict[str, Floats]:
    """Return the times of each command in what `hyperfine --export-json` wrote; failed runs become NaN.

    Examples
    --------
    >>> run = {"command": "true", "times": [0.1, 0.2], "exit_codes": [0, 1]}
    >>> hyperfine({"results": [run]})
    {'true': array([0.1, nan])}
    """
    tapes: dict[str, Floats] = {}
    for run in data["results"]:
        times = np.array(run.get("times", ()), dtype=np.float64)
        codes = np.array([0 if code is None else code for code in run.get("exit_codes") or np.zeros(times.size)])
        name = str(run["command"])
        tapes[name] = np.append(tapes.get(name, np.empty(0)), np.where(codes == 0, times, np.nan))
    return tapes


def pyperf(data: Mapping[str, Any]) -> dict[str, Floats]:
    """Return the values of each benchmark in what pyperf wrote; warm-ups and calibration are no readings.

    Examples
    --------
    >>> pyperf({"benchmarks": [{"metadata": {"name": "join"}, "runs": [{"values": [0.5]}, {"warmups": []}]}]})
    {'join': array([0.5])}
    """
    common = data.get("metadata", {}).get("name", "benchmark")
    tapes: dict[str, Floats] = {}
    for bench in data["benchmarks"]:
        name = str(bench.get("metadata", {}).get("name", common))
        values = [x for run in bench["runs"] for x in run.get("values", ())]
        tapes[name] = np.append(tapes.get(name, np.empty(0)), np.array(values, dtype=np.float64))
    return tapes


_EXPORTS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Floats]]] = {
    "results": hyperfine,
    "benchmarks": pyperf,
}
