"""Files as tables: CSV, TSV, Parquet, JSON lines, compressed or not, folders and patterns of them, through DuckDB.

JSON, Excel and Arrow files are read whole.
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
import weakref
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from glob import glob
from importlib import import_module
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw

from truearm.data import importers
from truearm.data.cells import KINDS, Form, addresses, literal, quote
from truearm.data.columns import NO_COLUMNS, Columns, Dataset, check_case, check_distinct
from truearm.data.tables import NO_ROWS, Relation, Table, explain_errors, load_frame
from truearm.errors import InvalidArgument, first_line
from truearm.evidence.units import Reduction
from truearm.problem import refuse

_TABLES = ("csv", "tsv", "parquet", "jsonl")  # a folder may have several files of these kinds
_TEXTS = ("csv", "tsv", "jsonl", "json")
_PACKED = {".gz": "gzip", ".zst": "zstd"}
_DATABASES = (".duckdb", ".ddb", ".db", ".sqlite", ".sqlite3")
_SEPARATORS = ",;\t|"
_HEAD_LINES = 64  # lines of a file in which its header is looked for
_MAX_SHEET_CELLS = 1 << 25  # of an Excel sheet: empty cells are allocated too
_SUMMARY = {"command", "mean", "stddev", "median", "user", "system", "min", "max"}  # one line per command
_MARKS = {"utf-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff"), "utf-16": (b"\xff\xfe", b"\xfe\xff")}
_BINARIES = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\x03\x04": ".xlsx"}  # by their first bytes
_DECIMALS = "column {!r} holds numbers with decimals, whose digits are not kept; write names as strings"
_CELL = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Z]{1,3})([0-9]+)"|<(?:\w+:)?row\b[^>]*?\br="([0-9]+)"')


def load_files(paths: list[str], columns: Columns, reduction: Reduction, form: Form, query: str | None) -> Dataset:
    """Return the readings in files; several are one table, or exports of a benchmark to be compared."""
    address = paths[0] if len(paths) == 1 else ""
    if Path(address).suffix.lower() in _DATABASES and Path(address).is_file():
        address = f"duckdb://{address}"
    if "://" in address:
        return load_frame(_open_database(address, query), columns, reduction, form)
    folder = tempfile.TemporaryDirectory()
    data: Dataset | None = None
    try:
        files, kind = _locate(paths, form, Path(folder.name))
        if kind in ("csv", "json", "jsonl", "folder"):
            data = importers.read(files, columns, reduction)
        if data is None:
            data = _open(files, kind, columns, form, Path(folder.name), query=query).load(columns, reduction)
        return data
    finally:
        if data is None or data.counter is None:
            folder.cleanup()
        else:  # it reads the files again
            weakref.finalize(data.counter, folder.cleanup)


def _locate(paths: Sequence[str], form: Form, folder: Path) -> tuple[list[Path], str]:
    """Return the files that paths, patterns and folders stand for, in UTF-8, and their kind."""
    files = [file for path in paths for file in ([_spool(folder)] if path == "-" else _find_files(path))]
    kinds = {form.kind or ("folder" if file.is_dir() else _kind(file)): file for file in reversed(files)}
    if len(kinds) > 1 and not set(kinds) <= {"csv", "tsv"}:
        (one, first), (other, second) = list(kinds.items())[:2]
        names = f"{first.name!r} is {one} and {second.name!r} is {other}"
        raise InvalidArgument(f"{names}; give files of one kind, such as by a pattern '*.{one}'", "file")
    kind = next(iter(kinds))
    is_empty = len(files) == 1 and files[0].is_file() and not files[0].stat().st_size
    name = "standard input" if paths[0] == "-" else repr(files[0].name)
    refuse(is_empty, f"{name} is empty; check the program that writes it", "file")
    return [_decode(file, i, folder, kind, form) for i, file in enumerate(files)], kind


def _find_files(path: str) -> list[Path]:
    """Return the file of that name, those in a folder, or those that a pattern matches."""
    file = Path(path)
    with suppress(OSError, ValueError):  # not a valid file name
        if path and file.is_dir():
            found = sorted(one for one in file.rglob("*") if one.is_file() and _plain_kind(one) in _TABLES)
            samples = next(file.rglob("new/sample.json"), None)  # of criterion
            return found if found and samples is None else [file]
        named = [file] if file.exists() else sorted(map(Path, glob(path, recursive=True)))  # noqa: PTH207
        if found := [one for one in named if one.is_file()]:
            return found
    msg = f"there is no file {path!r:.200}; give a path, a folder, a pattern of files, or - for standard input"
    raise InvalidArgument(msg, "file", path)


def _plain_kind(file: Path) -> str | None:
    return KINDS.get((file.with_suffix("") if file.suffix.lower() in _PACKED else file).suffix.lower())


def _kind(file: Path) -> str:
    ending, kind = file.suffix.lower(), _plain_kind(file)
    if kind is None or (ending in _PACKED and kind not in _TEXTS):
        known = ", ".join(sorted(set(KINDS.values())))
        msg = f"the ending {ending!r} of {file.name!r} is unknown; use kind='csv' or another of {known}"
        raise InvalidArgument(f"{msg}, or unpack it first", "kind")
    return kind


def _spool(folder: Path) -> Path:
    """Return a file with the content of standard input, its name by the kind that its first bytes show."""
    spool, raw = folder / "stdin", io.BufferedReader(sys.stdin.buffer)  # type: ignore[type-var]
    is_packed = raw.peek(2).startswith(b"\x1f\x8b")
    try:
        with spool.open("wb") as out:
            shutil.copyfileobj(gzip.GzipFile(fileobj=raw) if is_packed else raw, out, 1 << 20)
    except (OSError, EOFError, zlib.error) as error:
        msg = f"standard input is compressed, but cannot be unpacked: {first_line(error)}; compress it again"
        raise InvalidArgument(msg, "file") from None
    with spool.open("rb") as opened:
        first, _, rest = opened.read(1 << 16).partition(b"\n")
    ending = _binary_ending(first) or ".csv"
    if first.lstrip()[:1] in (b"{", b"["):
        ending = ".jsonl" if first.rstrip()[-1:] == b"}" and rest.strip()[:1] == b"{" else ".json"
    return spool.rename(folder / f"stdin{ending}")


def _binary_ending(start: bytes) -> str | None:
    """Return the usual ending of a file that begins with these bytes, if it is not text."""
    return next((ending for mark, ending in _BINARIES.items() if start.startswith(mark)), None)


def _decode(file: Path, place: int, folder: Path, kind: str, form: Form) -> Path:
    """Return a text file in UTF-8; another encoding must be named, or the file has a byte order mark."""
    if kind not in _TEXTS or file.suffix.lower() == ".zst" or file.is_dir():
        return file
    try:
        with importers.unpack(file) as opened:
            start = opened.read(6)
        if ending := _binary_ending(start):
            kind = KINDS[ending]
            raise InvalidArgument(f"{file.name!r} is not text but {kind}; use kind={kind!r}", "kind")
        encoding = form.encoding or next((name for name, marks in _MARKS.items() if start.startswith(marks)), None)
        if encoding is None and kind == "jsonl" and start.startswith(codecs.BOM_UTF8):  # DuckDB skips it in a CSV
            encoding = "utf-8-sig"
        if encoding is None and start[1:2] == b"\0" == start[3:4]:
            encoding = "utf-16-le"  # two letters of ASCII without a mark
        if encoding is None:
            return file
        copy = folder / str(place) / file.name.removesuffix(".gz")
        copy.parent.mkdir()
        text = io.TextIOWrapper(importers.unpack(file), encoding, newline="")
        with text, copy.open("w", encoding="utf-8") as out:
            shutil.copyfileobj(text, out, 1 << 20)
    except (UnicodeError, OSError, EOFError, zlib.error) as error:
        reason = f"is not {encoding}" if isinstance(error, UnicodeError) else "cannot be read"
        raise InvalidArgument(f"{file.name!r} {reason}: {first_line(error)}; check the file", "encoding") from None
    return copy


def _open(
    files: Sequence[Path], kind: str, columns: Columns, form: Form, folder: Path, *, query: str | None
) -> Table:
    """Return files of one kind as a table; sheets and records are copied as lines, which DuckDB reads."""
    file = files[0]
    refuse(kind == "folder", f"{str(file)!r} has no CSV, Parquet or JSON lines files; give another folder", "file")
    msg = f"several files must be CSV, Parquet or JSON lines, but {file.name!r} is {kind}"
    refuse(len(files) > 1 and kind not in _TABLES, msg, "file")
    if kind not in _TABLES:
        readers: dict[str, Any] = {"arrow": _read_arrow, "excel": _read_sheet, "json": _read_json}
        rows = readers[kind](file, columns if query is None else NO_COLUMNS, form)  # a query names its own
        if isinstance(rows, dict):
            msg = "query reads databases, CSV, Parquet and JSON records; convert the file"
            refuse(query is not None, msg, "query")
            return Table(rows, form, is_padded=kind == "arrow")
        files = [folder / "copy" / file.name.removesuffix(".gz")]  # errors name it
        files[0].parent.mkdir()
        with files[0].open("w", encoding="utf-8", newline="") as out:
            if kind == "excel":
                csv.writer(out, delimiter="\t").writerows(rows)
            else:
                out.writelines(f"{json.dumps(row)}\n" for row in rows)
        kind = "tsv" if kind == "excel" else "jsonl"
    return _Reader(files, kind, columns, form).relation(query)


def _check_alike(known: Mapping[str, Sequence[str]], wanted: Collection[str]) -> None:
    """Raise if some files lack a column that others have: its cells would be missing."""
    for column in wanted:
        lacking = [file for file, names in known.items() if column not in names]
        if lacking and len(lacking) < len(known):
            msg = f"{Path(lacking[0]).name!r} has no column {column!r}, which other files have; give a pattern"
            raise InvalidArgument(f"{msg} that matches tables of one kind, such as 'logs/*.csv'", "file")


def _packing(files: Sequence[Path]) -> str:
    """Return the compression of files: DuckDB reads a ? in a name as the end of an address."""
    kinds = {_PACKED.get(file.suffix.lower(), "uncompressed") for file in files}
    return f"compression = '{kinds.pop() if len(kinds) == 1 else 'auto'}'"


class _Reader:
    """Files of one kind, which methods turn into a query and the names of its columns."""

    def __init__(self, files: Sequence[Path], kind: str, columns: Columns, form: Form) -> None:
        self.files, self.kind, self.columns, self.form = files, kind, columns, form
        self.connection = duckdb.connect()
        self.fetch("SET enable_progress_bar = false")  # it would be printed into the answer
        self.fetch("SET disabled_optimizers = 'statistics_propagation'")  # statistics of Parquet ignore NaN

    def relation(self, query: str | None) -> Relation:
        """Return the rows that a query selects from the files, by default all."""
        with explain_errors(repr(self.files[0].name) if len(self.files) == 1 else "one of the files"):
            read = {"parquet": self.parquet, "jsonl": self.json_lines}.get(self.kind, self.csv_lines)
            source, names = read()
            both = ", ".join(map(repr, set(self.keys).intersection(names)))
            refuse(both, f"folders and files name a column {both}; rename the folders, or move the files", "file")
            is_all = query is not None or self.columns.arm is None
            check_case([*names, *self.keys], names if is_all else self.columns.by_argument.values())
            native: Any = self.connection.sql(source)
        with explain_errors("the query"):
            native = native if query is None else native.query("data", query)
        return Relation(native, self.form, None if self.kind == "parquet" else self.connection)

    @property
    def keys(self) -> list[str]:
        """The columns that folders name, as in variant=A/1.parquet, if those of several files all do."""
        keys = {tuple(part.partition("=")[0] for part in file.parent.parts if "=" in part) for file in self.files}
        return list(keys.pop()) if len(keys) == 1 and len(self.files) > 1 else []

    @property
    def options(self) -> str:
        """The option by which columns that folders name are read as text."""
        types = ", ".join(f"{literal(key)}: VARCHAR" for key in self.keys)
        return f"hive_partitioning = true, hive_types = {{{types}}}" if types else "hive_partitioning = false"

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.connection.execute(query).fetchall()
        return rows

    def parquet(self) -> tuple[str, list[str]]:
        """Return a query over Parquet files, and the names of the columns."""
        wanted, paths = self.columns.by_argument.values(), addresses(self.files)
        known: dict[str, list[str]] = {}
        inner: dict[str, int] = {}
        schema = f"SELECT file_name, name, coalesce(num_children, 0) FROM parquet_schema({paths})"
        for file, name, children in self.fetch(schema):
            if file not in known:  # the root of the schema
                known[file], inner[file] = [], 0
            elif inner[file]:  # a column is followed by those inside it
                inner[file] += children - 1
            else:
                known[file].append(name)
                inner[file] = children
        for names in known.values():
            check_distinct(names, wanted=wanted if self.columns.arm else None)
        _check_alike(known, wanted)
        names = list(dict.fromkeys(name for names in known.values() for name in names))
        return f"FROM read_parquet({paths}, union_by_name = {len(self.files) > 1}, {self.options})", names

    def json_lines(self) -> tuple[str, list[str]]:
        """Return a query over JSON lines, every cell as text, and the names of the columns."""
        how = f"format = 'newline_delimited', {_packing(self.files)}, {self.options}"
        lines = f"read_json_objects({addresses(self.files)}, {how})"
        first = self.fetch(f"SELECT json_keys(json) FROM {lines} LIMIT 1")
        others = self.fetch(f"SELECT DISTINCT json_keys(json) FROM {lines}")
        for (keys,) in others:
            check_distinct(keys or ())
        rest = sorted({key for (keys,) in others for key in keys or ()})
        names = list(dict.fromkeys([key for (keys,) in first for key in keys or ()] + rest))
        cells = [quote(key) for key in self.keys]
        for name in names:
            path = literal('$."' + name.replace('"', '\\"') + '"')
            cell = f"json_extract_string(json, {path})"
            if name in (self.columns.arm, self.columns.group):  # DuckDB drops the trailing zero of 1.10
                error = literal(_DECIMALS.format(name))
                cell = f"CASE WHEN json_type(json, {path}) = 'DOUBLE' THEN error({error}) ELSE {cell} END"
            elif self.form.decimal != ".":  # marks are of text, and a number has none
                text = f"replace({cell}, '.', {literal(self.form.decimal)})"
                cell = f"CASE WHEN json_type(json, {path}) = 'DOUBLE' THEN {text} ELSE {cell} END"
            cells.append(f"{cell} AS {quote(name)}")
        return f"SELECT {', '.join(cells)} FROM {lines}", names

    def csv_lines(self) -> tuple[str, list[str]]:
        """Return a query over CSV and TSV files, every cell as text, and the names of the columns."""
        filled = [file for file in self.files if file.stat().st_size or len(self.files) == 1]
        headers = [(self.header(file), file) for file in filled]
        alike = [(header, [file for _, file in group]) for header, group in groupby(headers, key=itemgetter(0))]
        keys, wanted, parts = self.keys, self.columns.by_argument.values(), []
        _check_alike({str(group[0]): (*names, *keys) for (_, _, names), group in alike}, wanted)
        for (sep, above, names), group in alike:
            check_distinct(filter(None, names), wanted=wanted if self.columns.arm else None)
            labels = [name or f"\x01{i}" for i, name in enumerate(names)]  # a column without a name is not read
            labels = [name if labels.index(name) == i else f"{name}\x01{i}" for i, name in enumerate(labels)]
            types = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in labels)
            how = f"auto_detect = false, header = false, skip = {above + 1}, delim = {literal(sep)}, quote = '\"'"
            how += f", escape = '\"', comment = '', nullstr = '', {_packing(group)}, {self.options}"
            if any("\n" in name for name in names):  # or DuckDB reads its line break as the end of a row
                with importers.unpack(group[0]) as opened:
                    how += ", new_line = '\\r\\n'" * (b"\r\n" in opened.read(1 << 16))
            chosen = ", ".join(map(quote, [*filter(None, dict.fromkeys(names)), *keys])) or "*"
            parts.append(f"SELECT {chosen} FROM read_csv({addresses(group)}, columns = {{{types}}}, {how})")
        found = list(dict.fromkeys(name for (_, _, names), _ in alike for name in names if name))
        msg = f"{self.files[0].name!r} holds one line for each command, and no single times; export them with "
        refuse(set(found) >= _SUMMARY, f"{msg}--export-json FILE", "file")
        return " UNION ALL BY NAME ".join(parts), found

    def header(self, file: Path) -> tuple[str, int, tuple[str, ...]]:
        """Return what separates the cells of a file, how many lines are above its header, and the names in it."""
        how = "columns = {'line': 'VARCHAR'}, auto_detect = false, header = false, delim = '\x01', quote = '', "
        how += f"escape = '', comment = '', strict_mode = false, hive_partitioning = false, {_packing([file])}"
        with explain_errors(repr(file.name)):
            lines = self.fetch(f"FROM read_csv({addresses([file])}, {how}) LIMIT {_HEAD_LINES}")
        sep = self.form.sep or ("\t" if self.kind == "tsv" or ".tsv" in file.suffixes else None)
        texts = [cell or "" for (cell,) in lines]
        for above, line in enumerate(texts):
            declared = re.fullmatch(r'"?sep=(.)"?', line.strip("\r\n\ufeff"))
            if declared and not above:
                sep = sep or declared[1]
                continue
            bare = re.sub(r'"[^"]*"', "", line)
            mark = sep or max(_SEPARATORS, key=bare.count)
            following = (f"{text}\n" for text in texts[above:])  # a quoted name may have a line break
            cells = next(csv.reader(following, delimiter=mark), [])
            names = tuple(cell.strip(" \t\r\n\ufeff") for cell in cells)
            if line.strip() and (not line.startswith("#") or set(self.columns.by_argument.values()) & set(names)):
                _check_header(names, file, self.columns)
                return mark, above, names
        raise InvalidArgument(NO_ROWS, "file")


def _check_header(names: Sequence[str], file: Path, columns: Columns) -> None:
    """Raise if the first line holds numbers or is one cell: then it does not name the columns."""
    if columns.arm is not None and columns.arm not in names and len(names) == 1:
        marks = [mark for mark in dict.fromkeys(names[0]) if columns.arm in names[0].split(mark)]
        if marks:
            msg = f"all cells are in one column, {names[0]!r}; name the separator: sep={marks[0]!r}"
            raise InvalidArgument(msg, "sep")
    numbers = [name for name in names if re.fullmatch(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?", name)]
    whole = [int(name) for name in numbers if name.isdecimal()]
    is_count = len(whole) == len(numbers) and all(b - a == 1 for a, b in pairwise(whole))
    if len(numbers) == len([*filter(None, names)]) > 0 and not is_count and columns.arm not in names:
        msg = f"the first line of {file.name!r} holds numbers ({', '.join(numbers[:3])}), so its columns have no "
        raise InvalidArgument(f"{msg}names; add a line above it that names them", "file")


def _read_json(file: Path, columns: Columns, _: Form) -> Any:  # noqa: ANN401 - a dict of columns, or a list of records
    """Return a JSON document as columns by name or as records; what pandas writes by default becomes records."""
    data = importers.read_json(file)
    if isinstance(data, dict) and data and all(isinstance(part, dict) for part in data.values()):
        rows = dict.fromkeys(row for part in data.values() for row in part)
        return [{name: part.get(row) for name, part in data.items()} for row in rows]
    is_records = isinstance(data, list) and data and all(isinstance(row, dict) for row in data)
    msg = f"{file.name!r} must hold columns by name, a list of records, or an export of a benchmark tool"
    refuse(not isinstance(data, dict) and not is_records, msg, "file")
    for name in (columns.arm, columns.group) if isinstance(data, dict) else ():
        if isinstance(data.get(name), list) and any(isinstance(cell, float) for cell in data[name]):
            raise InvalidArgument(_DECIMALS.format(name), "arm", name)
    return data


def _import(module: str, source: str, package: str) -> Any:  # noqa: ANN401 - a module
    try:
        return import_module(module)
    except ImportError:
        msg = f"reading {source!r} needs {module.partition('.')[0]}: pip install {package}"
        raise InvalidArgument(msg, "file") from None


def _read_sheet(file: Path, columns: Columns, form: Form) -> list[list[Any]]:
    """Return the rows of the first sheet of a workbook that are not empty."""
    calamine = _import("python_calamine", file.name, "'truearm[excel]', or save it as CSV")
    try:
        _check_sheets(file)
        book = calamine.CalamineWorkbook.from_path(str(file))
        cells = book.get_sheet_by_index(0).to_python(skip_empty_area=False)
    except InvalidArgument:
        raise
    except Exception as error:  # broken bytes raise anything in the reader of the archive or of the markup
        msg = f"{file.name!r} is not an Excel workbook ({first_line(error)}); save it as .xlsx or CSV"
        raise InvalidArgument(msg, "file") from None

    def plain(cell: Any) -> Any:  # noqa: ANN401 - whole numbers are floats in a workbook
        whole = isinstance(cell, float) and cell.is_integer()
        return int(cell) if whole else str(cell).replace(".", form.decimal) if isinstance(cell, float) else cell

    rows = [list(map(plain, row)) for row in cells if any(cell != "" for cell in row)]
    first, *others = map(repr, book.sheet_names)
    names = {str(cell).strip() for row in rows[:_HEAD_LINES] for cell in row}
    msg = f"the first sheet of {file.name!r}, {first}, has no column {columns.arm!r}; move the right one"
    is_other = others and columns.arm is not None and columns.arm not in names
    refuse(is_other, f"{msg} to the front ({', '.join(others):.200}), or save it as CSV", "file")
    return rows


def _check_sheets(file: Path) -> None:
    """Raise if a cell is so far from the first that the cells in between would fill the memory."""
    with zipfile.ZipFile(file) as book:
        for sheet in (name for name in book.namelist() if re.fullmatch(r"xl/worksheets/[^/]*\.xml", name)):
            row, column, rest = 1, 1, b""
            with book.open(sheet) as opened:
                while block := opened.read(1 << 20):
                    for letters, place, alone in _CELL.findall(rest + block):
                        row = max(row, int(place or alone))
                        column = max(column, reduce(lambda n, letter: 26 * n + letter - 64, letters, 0))
                    rest = block[-256:]
            msg = f"{file.name!r} has a cell in row {row:,} and column {column:,}, which no workbook fills"
            is_far = row > 1 << 20 or row * column > _MAX_SHEET_CELLS
            refuse(is_far, f"{msg}; save the table as CSV", "file")


def _read_arrow(file: Path, *_: object) -> dict[str, Any]:
    feather = _import("pyarrow.feather", file.name, "pyarrow, or save it as Parquet")
    try:
        table = feather.read_table(file, memory_map=False)  # a truncated mapped file ends the process
        table.validate(full=True)  # a wrong offset would be followed to anywhere
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError) as error:
        msg = f"{file.name!r} cannot be read as arrow: {first_line(error)}; write it again"
        raise InvalidArgument(msg, "file") from None
    check_case(table.column_names, table.column_names)
    return dict(nw.from_native(table).to_dict())


def _open_database(address: str, query: str | None) -> Any:  # noqa: ANN401 - a relation of DuckDB, or an Ibis table
    """Return the rows that a query gives from a database."""
    scheme, _, path = address.partition("://")
    reader = "read_parquet" if address.endswith((".parquet", ".pq")) else "read_csv"
    msg = f"{address!r} is not on this computer; copy it here, or pass duckdb.{reader}({address!r}) in Python"
    refuse(scheme in ("s3", "gs", "gcs", "az", "abfs", "hf", "http", "https", "file"), msg, "file", address)
    if query is None:
        msg = f"{address!r} is a database; say which rows to analyze: query='select variant, ms from visits'"
        raise InvalidArgument(msg, "query")
    if scheme == "duckdb":
        with explain_errors(repr(path)):
            return duckdb.connect(path, read_only=True).sql(query)
    ibis = _import("ibis", address, "'ibis-framework[postgres]', or that of another database")
    try:
        return ibis.connect(address).sql(query)
    except Exception as error:  # each backend has its own errors
        msg = f"{address!r} does not answer: {' '.join(str(error).split())[:200]}; check the address and the query"
        raise InvalidArgument(msg, "query") from None
