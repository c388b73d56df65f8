"""CSV and TSV files: how DuckDB reads one, Python's own reader, and which line neither can read."""

import csv
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from truearm.errors import InvalidArgument, first_line
from truearm.world.dialect import NO_ROWS, Dialect, raw
from truearm.world.duck import duckdb
from truearm.world.formats import TEXT, opened_text
from truearm.world.roles import Roles, check_names
from truearm.world.sql import addresses, hive_options, literal, text_address
from truearm.world.written import Written

_SUMMARY = {"command", "mean", "stddev", "median", "user", "system", "min", "max"}  # hyperfine's columns, and ours


class Separated(NamedTuple):
    """A CSV or TSV file as DuckDB is to read it: to let it find that out takes as long as to read a small one."""

    address: str
    dialect: str
    columns: Sequence[str]

    @classmethod
    def of(cls, connection: Any, file: Path, dialect: Dialect) -> "Separated":  # noqa: ANN401
        """Return a file, the names of whose columns DuckDB finds out if nobody else can."""
        known, names = dialect, dialect.columns()
        if not names:
            options = f"header = true, all_varchar = true, {dialect.sql()}"
            told = f"SELECT Delimiter, Columns FROM sniff_csv({text_address(file)}, {options})"
            delim, columns = connection.execute(told).fetchone()
            known, names = dialect._replace(sep=delim), [column["name"] for column in columns]
        return cls(text_address(file), f"auto_detect = false, header = true, {known.sql()}", names)

    @classmethod
    def several(cls, files: Sequence[Path], dialect: Dialect, roles: Roles) -> "Separated":
        """Return files that are written alike, with columns of the same names in the same order."""
        options = f"{addresses(files)}, {hive_options(files, roles)}"
        return cls(options, f"auto_detect = false, header = true, {dialect.sql()}", dialect.columns())

    def cells(self, number: str | None = None) -> str:
        """Return a table expression of text, perhaps with a column of numbers, which DuckDB reads as it parses."""
        kinds = (f"{literal(name)}: '{'DOUBLE' if name == number else 'VARCHAR'}'" for name in self.columns)
        return f"read_csv({self.address}, {self.dialect}, columns = {{{', '.join(kinds)}}})"


def plainly_read(file: Path, form: str, written: Written, roles: Roles) -> dict[str, list[Any]]:
    r"""Return the columns of a CSV or TSV file without DuckDB: cells as text, None where they are empty."""
    if file.suffix.lower() == ".zst":
        duckdb()
    try:
        with opened_text(file) as text:
            dialect = Dialect.of(file, form, written.sep, roles.columns)
            names, *rows = _rows_of(file, text, dialect)
    except UnicodeDecodeError:
        raise InvalidArgument(not_utf8(file, _first_other(file))) from None
    except (OSError, EOFError, zlib.error) as error:
        msg = f"{file.name!r} cannot be read as {TEXT[form]}: {first_line(error)}; write it anew"
        raise InvalidArgument(msg) from None
    dialect = dialect._replace(names=tuple(name.strip() for name in names))
    named = {i: name for i, name in enumerate(dialect.names) if name}
    check_single(file, named.values())
    check_names(
        dialect.columns(), dialect.columns() if roles.arm is None else roles.columns, lambda: dialect.names
    )
    check_separated(list(named.values()), roles)
    if not rows:
        raise InvalidArgument(NO_ROWS)
    return {name: [row[i].strip() or None for row in rows] for i, name in named.items()}


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
                raise InvalidArgument(uneven(file, dialect.above + rows.line_num, len(row), len(names)))
            if row:
                yield row
    except csv.Error as error:
        line = dialect.above + rows.line_num
        msg = f"line {line} of {file.name!r} cannot be read: {error}; write a quote inside quotes as two"
        raise InvalidArgument(msg) from None


def ragged(file: Path, dialect: Dialect) -> str | None:
    r"""Return which line of a file cannot be read, or has more or fewer cells than its first one."""
    if file.suffix.lower() == ".zst":
        return None
    try:
        with opened_text(file, errors="replace") as text:
            for _ in _rows_of(file, text, dialect):
                pass
    except InvalidArgument as error:
        return str(error)
    except (OSError, EOFError, zlib.error):  # broken in another way, which DuckDB tells
        pass
    return None


def uneven(file: Path, line: int, found: int, width: int) -> str:
    """Return what to say of a line with more or fewer cells than there are names."""
    cells = "1 cell" if found == 1 else f"{found} cells"
    return f"line {line} of {file.name!r} has {cells}, but the first line has {width}; check for a stray separator"


def not_utf8(file: Path, line: int) -> str:
    """Return what to say of a line in another encoding."""
    return (
        f"line {line} of {file.name!r} is not UTF-8; save the file as UTF-8, or name what it is: encoding='cp1252'"
    )


def _first_other(file: Path) -> int:
    """Return the first line that is not UTF-8."""
    with raw(file) as opened:
        for line, text in enumerate(opened, 1):
            try:
                text.decode()
            except UnicodeDecodeError:
                return line
    return 1


def check_single(file: Path, columns: Collection[str]) -> None:
    """Raise if a file holds what a benchmark tool made of its readings, and not the readings."""
    if set(columns) >= _SUMMARY:
        single = "no single times; export them with --export-json FILE"
        msg = f"{file.name!r} holds one line for each command, and {single}"
        raise InvalidArgument(msg)


def check_separated(names: Sequence[str], roles: Roles) -> None:
    """Raise if all cells are in one column, and say what seems to separate them."""
    if len(names) == 1 and roles.arm is not None and roles.arm not in names:
        for mark in dict.fromkeys(names[0]):
            if roles.arm in names[0].split(mark):
                msg = f"all cells are in one column, {names[0]!r}; say what separates them: sep={mark!r}"
                raise InvalidArgument(msg)
