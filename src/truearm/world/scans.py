"""Folders, patterns, large files and databases as one lazy table, small files as their readings."""

import codecs
from collections.abc import Collection, Sequence
from functools import partial
from glob import glob
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from truearm.errors import InvalidArgument
from truearm.evidence.units import Reduction
from truearm.world import files
from truearm.world.dialect import Dialect
from truearm.world.duck_files import names_in, rows_in
from truearm.world.formats import FORMATS, begins, encoding_in, is_marked
from truearm.world.roles import Roles, check_names
from truearm.world.separated import Separated, check_separated
from truearm.world.sql import addresses, check_hive, hive_keys, hive_options, literal, marks, quoted
from truearm.world.written import PLAIN, Form, Written, trimmed

_LARGE = {
    "csv": 1 << 28,
    "jsonl": 1 << 28,
    "gz": 1 << 26,
}  # bytes of a file, from which on it may be counted
_SMALL_TEXT = 1 << 26  # bytes of text files, up to which one thread reads them, in the order of their names
WHOLE = 1 << 24  # rows of one file, up to which it is read: a third of the time of counting, and some 400 MB
_SCANNED = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
}
_PACKED = (".zst", ".bz2", ".xz", ".zip")  # in ways that are not unpacked where there are several files
_KINDS = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSON lines"}
_HEAD = 1 << 16  # rows that are looked at for what the cells of an order are
_TIMES = ("BIGINT", "DOUBLE", "TIMESTAMP", "TIMESTAMPTZ")  # what the cells of an order may be
_ELSEWHERE = ("s3", "s3a", "r2", "gs", "gcs", "az", "azure", "abfs", "abfss", "hf", "http", "https", "file")


def scan(
    source: str | Path, query: str | None, roles: Roles, how: Reduction | None = None, form: Form = PLAIN
) -> Any:  # noqa: ANN401
    r"""Return a lazy frame of what a path or an address leads to; a small file is read, if one says how."""
    text = str(source)
    if "://" in text:
        _check_no_file(text)
        return _database(text, query)
    if query is not None:
        msg = "query goes with the address of a database, such as duckdb://shop.db; leave it out for files"
        raise InvalidArgument(msg)
    found = _files(text)
    if found is None:
        path = Path(text)
        if how is not None and (roles.arm is None or not _is_large(path, form)):
            more = {**form.said, "drop_unnamed": form.drop_unnamed}
            return files.collect(path, **roles._asdict(), how=how, **more)
        found = [text]
    return _relation(found, text, roles, form)


def is_scan(source: str, form: Form = PLAIN) -> bool:
    """Tell whether a path or an address is one of data that an engine reads: a folder, a pattern, a database.

    Parameters
    ----------
    form
        How files are written: one in an encoding of its own is read as a whole.
    """
    path = Path(source)
    if "://" in source or path.is_dir() or (not path.exists() and any(sign in source for sign in "*?[")):
        return True
    return _is_large(path, form)


def _is_large(path: Path, form: Form = PLAIN) -> bool:
    """Tell whether a file has too many rows to be read as a whole."""
    kind = _kind(path)
    if form.written.encoding or form.kind or (kind == "csv" and is_marked(path)):
        return False
    if kind is None or not path.is_file():
        return False
    if kind == "parquet":  # a megabyte may hold a hundred million equal rows
        return rows_in(path) > WHOLE
    return path.stat().st_size >= _LARGE["gz" if path.suffix.lower() == ".gz" else kind]


def _kind(path: Path) -> str | None:
    """Return what kind of table a file is, by its ending, None if it is none."""
    if path.suffix.lower() == ".gz":
        return _kind(path.with_suffix("")) or "csv"
    return _SCANNED.get(path.suffix.lower())


def _files(text: str) -> list[str] | None:
    """Return the files of a folder or a pattern; None if it is neither."""
    path = Path(text)
    if path.is_dir():
        found = sorted(str(file) for file in path.rglob("*") if _is_table(file) and file.is_file())
    elif not path.exists() and any(sign in text for sign in "*?["):
        names = glob(text, recursive=True)  # noqa: PTH207 - of Path it knows no absolute patterns
        found = sorted(name for name in names if Path(name).is_file())
    else:
        return None
    if not found:
        msg = f"{text!r} has no Parquet or CSV files, nor JSON lines; give a folder or a pattern of such files"
        raise InvalidArgument(msg)
    return found


def _is_table(path: Path) -> bool:
    """Tell whether a file of a folder is to be read, or to be unpacked first."""
    bare = path.with_suffix("") if path.suffix.lower() in _PACKED else path
    return _kind(bare) is not None


def _check_unpacked(name: str) -> None:
    """Raise if a file is packed in a way that is not unpacked where there are several."""
    path = Path(name)
    if path.suffix.lower() in _PACKED or (path.suffix.lower() == ".gz" and _kind(path) == "parquet"):
        msg = f"{name!r} is packed, and of several files only text in .gz is unpacked; unpack it first"
        raise InvalidArgument(msg)


def _relation(found: Sequence[str], text: str, roles: Roles, form: Form) -> Any:  # noqa: ANN401 - of DuckDB
    """Return files as one relation."""
    try:
        import duckdb
    except ModuleNotFoundError:
        msg = f"{text!r} is read by DuckDB; install it with: pip install 'truearm[data]'"
        raise InvalidArgument(msg) from None
    for name in found:
        _check_unpacked(name)
    kinds = {_kind(Path(name)) or "csv": name for name in reversed(found)}
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        both = f"{text!r} has both {_KINDS[one]} and {_KINDS[other]} files, such as {first!r} and {second!r}"
        msg = f"{both}; give a pattern that fits one kind, such as '*.csv'"
        raise InvalidArgument(msg)
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    if sum(Path(name).stat().st_size for name in found) < _SMALL_TEXT and "parquet" not in kinds:
        connection.execute("SET threads = 1")  # several read several text files in an order of their own
    try:
        if "parquet" in kinds:
            return _parquet(connection, found, roles)
        if form.written.encoding is not None and codecs.lookup(form.written.encoding).name != "utf-8":
            said = f"iconv -f {form.written.encoding} -t utf-8"
            msg = f"{text!r} is read as UTF-8; convert its files, such as by {said}, or give one file"
            raise InvalidArgument(msg)
        if "jsonl" in kinds:
            cells, columns = _lines(connection, found, roles)
        else:
            cells, columns = _separated(found, roles, form.written.sep)
        roles.check_columns(columns)
        cells = f"(SELECT {_text_as_sql(columns, roles, form.written)} FROM {cells})"
        return _timed(connection, cells, roles)
    except duckdb.Error as error:
        said = str(error).splitlines()[0].partition("Error: ")[2].rstrip(".") or str(error)
        msg = f"{text!r} cannot be read: {said}; give a pattern that fits tables only, such as 'logs/*.csv'"
        raise InvalidArgument(msg) from None


def _parquet(connection: Any, found: Sequence[str], roles: Roles) -> Any:  # noqa: ANN401 - a DuckDB relation
    paths = list(map(Path, found))
    options = f"union_by_name = {len(found) > 1}, {hive_options(paths, roles)}"
    if hive_keys(paths):
        inside = connection.sql(
            f"FROM read_parquet({addresses(paths)}, union_by_name = true, hive_partitioning = false) LIMIT 0"
        )
        check_hive(paths, inside.columns)
    table = connection.sql(f"FROM read_parquet({addresses(paths)}, {options})")
    for name in set(roles.columns) & set(table.columns) - set(hive_keys(paths)):
        having = f"HAVING count(*) FILTER (lower(name) = lower({literal(name)})) = 0"
        told = f"SELECT file_name FROM parquet_schema({addresses(paths)}) GROUP BY file_name {having} ORDER BY 1"
        if (lacking := connection.execute(told).fetchone()) is not None:
            raise InvalidArgument(_lacks(lacking[0], name, "parquet"))
    check_names(table.columns, roles.columns, partial(_names_told, connection, found))
    return table


def _timed(connection: Any, cells: str, roles: Roles) -> Any:  # noqa: ANN401 - a DuckDB relation
    """Return cells of text with times in the place of words, if all that are looked at are times of one kind."""
    table = connection.sql(f"FROM {cells}")
    if roles.order in (None, "rows") or str(table.select(quoted(roles.order)).types[0]) != "VARCHAR":
        return table
    cell = f"nullif({trimmed(quoted(roles.order))}, '')"
    looks = ", ".join(f"count(TRY_CAST({cell} AS {kind}))" for kind in _TIMES)
    head = f"(FROM {cells} LIMIT {_HEAD})"
    [(told, *read)] = connection.execute(f"SELECT count({cell}), {looks} FROM {head}").fetchall()
    kind = next((kind for kind, n in zip(_TIMES, read, strict=True) if n == told), "VARCHAR")
    return table.project(f"* REPLACE (CAST({cell} AS {kind}) AS {quoted(roles.order)})")


def _separated(names: Sequence[str], roles: Roles, sep: str | None) -> tuple[str, list[str]]:
    """Return a table expression of CSV and TSV files, every cell text, and its columns; raise if files differ."""
    alike: dict[Dialect, list[Path]] = {}
    for file in (Path(name) for name in names if Path(name).stat().st_size):
        _check_encoding(file)
        bare = file.with_suffix("") if file.suffix.lower() == ".gz" else file
        form = FORMATS.get(bare.suffix.lower(), "csv")
        alike.setdefault(Dialect.of(file, form, sep, roles.columns), []).append(file)
    columns = dict.fromkeys(name for dialect in alike for name in dialect.columns(named=True))
    columns |= dict.fromkeys(key for group in alike.values() for key in hive_keys(group))
    for dialect, group in alike.items():
        check_hive(group, dialect.columns())
        check_names(dialect.columns(), roles.columns, partial(tuple, dialect.names))
        check_separated(dialect.columns(), roles)
        for name in roles.columns if len(alike) > 1 else ():
            if name not in (*dialect.columns(), *hive_keys(group)) and name in columns:
                raise InvalidArgument(_lacks(str(group[0]), name, "csv"))
    parts = []
    for dialect, group in alike.items():
        chosen = ", ".join(map(quoted, dict.fromkeys((*dialect.columns(named=True), *hive_keys(group)))))
        parts.append(f"SELECT {chosen} FROM {Separated.several(group, dialect, roles).cells()}")
    return f"({' UNION ALL BY NAME '.join(parts)})", list(columns)


def _lacks(file: str, column: str, kind: str) -> str:
    lacks = f"{file!r} has no column {column!r}, which other files here have"
    return f"{lacks}; give a pattern that fits tables of one kind, such as 'logs/*.{kind}'"


def _lines(connection: Any, names: Sequence[str], roles: Roles) -> tuple[str, list[str]]:  # noqa: ANN401
    """Return a table expression of files of JSON lines, every cell text, and its columns."""
    files = list(map(Path, names))
    reader = f"read_json({addresses(files)}, format = 'newline_delimited', {hive_options(files, roles)}"
    described = connection.execute(f"DESCRIBE SELECT * FROM {reader}, union_by_name = true)").fetchall()
    keys = hive_keys(files)
    columns = [name for name, *_ in described]
    kinds = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in columns if name not in keys)
    return f"(FROM {reader}, columns = {{{kinds}}}))", columns


def _text_as_sql(columns: Collection[str], roles: Roles, written: Written) -> str:
    """Return what makes of cells of text what they are in a small file: names trimmed, readings numbers.

    A cell that is no number raises an error that says which it is. Without arms every column holds readings.
    """
    readings = [str(roles.value)] if roles.value else [name for name in columns if name != roles.unit]
    cells = {name: trimmed(quoted(name)) for name in (roles.arm, roles.unit) if name is not None}
    named = f" AND coalesce({trimmed(quoted(roles.arm))}, '') <> ''" if roles.arm else ""  # others are left out
    for name in readings:
        cell = quoted(name)
        said = f"{literal(f'column {name!r} holds ')} || {cell} || ', which is not a plain number'"
        number = f"coalesce({written.sql(cell)}, error({said}))"
        cells[name] = f"CASE WHEN NOT list_contains([{marks()}], lower({trimmed(cell)})){named} THEN {number} END"
    made = ", ".join(f"{cell} AS {quoted(name)}" for name, cell in cells.items())
    return f"* REPLACE ({made})"


def _names_told(
    connection: Any,  # noqa: ANN401
    names: Sequence[str],
    sep: str | None = None,
    wanted: Collection[str] = (),
) -> set[str]:
    """Return the names that columns have in some files.

    Parameters
    ----------
    sep, wanted
        As for `Dialect.of`.
    """
    known = [(Path(name), FORMATS.get(Path(name).suffix.lower(), "csv")) for name in names]
    written = [(file, form, Dialect.of(file, form, sep, wanted)) for file, form in known]
    return {name for told in written for name in names_in(connection.cursor(), *told)}


def _check_encoding(file: Path) -> None:
    """Raise if a file is in an encoding that DuckDB would have to be told."""
    if (name := encoding_in(begins(file))) is not None:
        said = f"convert it, such as by: iconv -f {name} -t utf-8 {file.name}"
        msg = f"{str(file)!r} is {name.upper()}, and several files are read as UTF-8; {said}"
        raise InvalidArgument(msg)


def _check_no_file(address: str) -> None:
    """Raise if an address is one of files that are elsewhere."""
    scheme = address.partition("://")[0].lower()
    if scheme in _ELSEWHERE:
        reader = "read_parquet" if address.endswith((".parquet", ".pq")) else "read_csv"
        msg = (
            f"{address!r} is a file that is elsewhere; copy it to here, or give what an engine makes of it, "
            f"such as duckdb.{reader}({address!r})"
        )
        raise InvalidArgument(msg)


def _database(address: str, query: str | None) -> Any:  # noqa: ANN401 - an Ibis table
    if query is None:
        msg = f"{address!r} is a database; say which rows: query='select variant, ms from visits'"
        raise InvalidArgument(msg)
    scheme, _, path = address.partition("://")
    if scheme == "duckdb" and find_spec("duckdb"):
        return _in_duckdb(address, path, query)
    try:
        ibis: Any = import_module("ibis")
    except ModuleNotFoundError:
        msg = (
            "a database is read through Ibis; install it with: pip install 'ibis-framework[duckdb]', or your own's"
        )
        raise InvalidArgument(msg) from None
    try:
        return ibis.connect(address).sql(query)
    except Exception as error:  # each backend has a tree of errors of its own
        msg = f"{address!r} does not answer: {' '.join(str(error).split())[:200]}; check the address and the query"
        raise InvalidArgument(msg) from None


def _in_duckdb(address: str, path: str, query: str) -> Any:  # noqa: ANN401 - a DuckDB relation
    import duckdb

    try:
        return duckdb.connect(path, read_only=True).sql(query)
    except duckdb.Error as error:
        msg = f"{address!r} does not answer: {str(error).splitlines()[0]}; check the address and the query"
        raise InvalidArgument(msg) from None
