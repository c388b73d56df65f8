"""Files into readings: CSV, TSV, Parquet, JSON lines, Arrow, Excel, and what hyperfine and pyperf export.

DuckDB reads what is tabular, only the columns asked for and never through an approximate aggregate. Text formats
are read as text and converted here, so that a cell that is no number can be named by its row.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument
from truearm.frames import check_column, grouped, not_a_number, tapes_of, unnamed, without_foot

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
        connection = _duckdb().connect()
        try:
            table = _Table(connection, file, form)
            return table.wide() if arm is None or value is None else table.long(arm, value)
        finally:
            connection.close()


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
        self._form = form
        self._text = form in ("csv", "tsv", "jsonl")
        self._from = _source(connection, file, form)
        try:
            described = self._run(f"DESCRIBE SELECT * FROM {self._from}").fetchall()
        except _duckdb().Error as error:
            msg = f"{file.name!r} cannot be read as {form}: {str(error).splitlines()[0]}"
            raise InvalidArgument(msg) from None
        self.types = {row[0]: row[1] for row in described}

    def wide(self) -> dict[str, Floats]:
        """Return every column as an arm, without the empty cells at its foot."""
        self._keep(list(self.types))
        return {name: without_foot(self._numbers(name)) for name in self.types}

    def long(self, arm: str, value: str) -> dict[str, Floats]:
        """Return the readings of each arm in the order of the rows."""
        check_column(self.types, arm, "arm")
        check_column(self.types, value, "value")
        self._keep([arm, value])
        name = f"{_quoted(arm)}::VARCHAR"
        found = self._run(f"SELECT DISTINCT {name} FROM {self._from}").fetchall()
        if not found:
            msg = "the file has no rows of data; check that its first line names the columns"
            raise InvalidArgument(msg)
        names = sorted(row[0] for row in found if row[0])
        if len(names) < len(found):
            raise InvalidArgument(unnamed(self._row(f"coalesce({name}, '') = ''"), arm))
        self._check(value)
        kinds = ", ".join(map(_literal, names))
        code = f"enum_code(TRY_CAST({name} AS ENUM({kinds})))"  # measured: a sixth of the time of a join
        codes = self._run(f"SELECT {code} AS c FROM {self._from}").fetchnumpy()[
            "c"
        ]  # faster than both columns at once
        return grouped(np.asarray(codes), self._column(value), names)

    def _keep(self, columns: Sequence[str]) -> None:
        """Parse text once, the columns in use only; Parquet and Arrow are scanned where they are."""
        if self._text:
            chosen = ", ".join(map(_quoted, columns))
            self._run(f"CREATE TEMP TABLE kept AS SELECT {chosen} FROM {self._from}")
            self._from = "kept"

    def _number(self, column: str) -> str:
        cell = _quoted(column)
        return f"TRY_CAST({cell} AS DOUBLE)" if self._text else f"{cell}::DOUBLE"

    def _numbers(self, column: str) -> Floats:
        self._check(column)
        return self._column(column)

    def _column(self, column: str) -> Floats:
        return _array(self._run(f"SELECT {self._number(column)} AS v FROM {self._from}").fetchnumpy()["v"])

    def _check(self, column: str) -> None:
        """Raise for the first cell that is neither a number nor one of the marks for a missing one."""
        if not self._text:
            kind = self.types[column]
            if not _is_numeric(kind):
                first = self._run(f"SELECT {_quoted(column)} FROM {self._from} LIMIT 1").fetchall()
                cell = first[0][0] if first else None
                msg = not_a_number(cell, 1, column)
                raise InvalidArgument(f"{msg} (the column's type is {kind})")
            return
        cell = _quoted(column)
        marks = ", ".join(f"'{mark}'" for mark in _ABSENT)
        wrong = f"TRY_CAST({cell} AS DOUBLE) IS NULL AND lower(trim({cell})) NOT IN ({marks})"
        bad = self._run(f"SELECT count(*) FROM {self._from} WHERE {wrong}").fetchall()[0][0]
        if bad:
            row = self._row(wrong)
            [(found,)] = self._run(f"SELECT {cell} FROM {self._from} WHERE {wrong} LIMIT 1").fetchall()
            raise InvalidArgument(not_a_number(found, row, column))

    def _row(self, condition: str) -> int:
        numbered = f"SELECT *, row_number() OVER () AS row_of_file FROM {self._from}"
        found = self._run(f"SELECT min(row_of_file) FROM ({numbered}) WHERE {condition}").fetchall()
        return int(found[0][0])


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
        from pyarrow import feather  # type: ignore[import-untyped]
    except ImportError:
        msg = f"reading {file.name!r} needs pyarrow; install it with: pip install pyarrow"
        raise InvalidArgument(msg) from None
    try:
        return feather.read_table(file, memory_map=True)
    except (OSError, ValueError) as error:
        msg = f"{file.name!r} cannot be read as arrow: {error}"
        raise InvalidArgument(msg) from None


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_numeric(kind: str) -> bool:
    whole = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
    return kind.removeprefix("U").startswith(whole)


def _array(column: Any) -> Floats:  # noqa: ANN401 - DuckDB masks empty cells
    if isinstance(column, np.ma.MaskedArray):
        return np.asarray(column.filled(np.nan), dtype=np.float64)
    return np.asarray(column, dtype=np.float64)


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
