"""Files into readings: CSV, TSV, Parquet, JSON lines, Arrow, Excel, and what benchmark tools export.

This is the door: a file is found, unpacked and decoded, then given to who reads its kind.
"""

import codecs
import gzip
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from truearm.errors import InvalidArgument, first_line
from truearm.evidence.units import MEDIANS, Reduction
from truearm.world import imports
from truearm.world.by_arm import Floats
from truearm.world.documents import from_json, of_rows, sheet
from truearm.world.duck import connected, duckdb
from truearm.world.duck_files import Table, reason
from truearm.world.formats import GZIP, TEXT, begins, encoding_in, form_of, kind_by_bytes, opened_text
from truearm.world.roles import Roles
from truearm.world.separated import plainly_read
from truearm.world.tapes import Collected
from truearm.world.written import Written


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
    """
    if arm is None and (known := imports.criterion_files(Path(path))) is not None:
        return known
    roles, written = Roles(arm, value, unit, order).checked(), Written(**form).checked()
    with _located(path, kind) as found, _decoded(*found, written) as (file, kept):
        if kept == "json":
            return from_json(file, roles, how, written, drop_unnamed=drop_unnamed)
        if kept == "excel":
            return of_rows(sheet(file, roles), roles, how, written, drop_unnamed=drop_unnamed)
        if kept in ("csv", "tsv") and find_spec("duckdb") is None:
            columns = plainly_read(file, kept, written, roles)
            return of_rows(columns, roles, how, written, drop_unnamed=drop_unnamed)
        broken = duckdb().Error
        try:
            with connected() as connection:
                table = Table(connection, file, kept, written, roles)
                if roles.arm is None:
                    return table.wide(roles, how)
                return table.long(roles, how, drop_unnamed=drop_unnamed)
        except broken as error:
            raise InvalidArgument(reason(str(error), file, kept, written.sep, roles)) from None


@contextmanager
def _located(path: str | Path, kind: str | None) -> Iterator[tuple[Path, str]]:
    if str(path) == "-":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "stdin")
            with file.open("wb") as spool:
                while block := sys.stdin.buffer.read(1 << 20):
                    spool.write(block)
            _check_size(file, "standard input")
            if begins(file)[:2] == GZIP:
                file = _unpacked(file)
            form = form_of(file, kind or kind_by_bytes(file))
            yield file.rename(file.with_name(f"stdin.{form}")), form
        return
    file = Path(path)
    if not file.is_file():
        msg = f"there is no file {str(path)!r}; give a path, or - for standard input"
        raise InvalidArgument(msg)
    form = form_of(file, kind)
    _check_size(file, repr(file.name))
    yield file, form


@contextmanager
def _decoded(file: Path, form: str, written: Written) -> Iterator[tuple[Path, str]]:
    """Give a file of text in UTF-8: another encoding is named, or begins with its mark."""
    start = begins(file) if form in (*TEXT, "json") else b""
    encoding = written.encoding or encoding_in(start)
    if not start or encoding is None or codecs.lookup(encoding).name == "utf-8":
        yield file, form
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, file.name.removesuffix(".gz"))
        try:
            with opened_text(file, encoding) as text, copy.open("w", encoding="utf-8", newline="") as spool:
                while block := text.read(1 << 20):
                    spool.write(block)
        except (UnicodeError, OSError, EOFError, zlib.error) as error:
            msg = f"{file.name!r} is not {encoding}: {first_line(error)}; name another encoding"
            raise InvalidArgument(msg) from None
        yield copy, form


def _unpacked(file: Path) -> Path:
    copy = file.with_name("unpacked")
    try:
        with gzip.open(file) as packed, copy.open("wb") as spool:
            shutil.copyfileobj(packed, spool, 1 << 20)
    except (OSError, EOFError, zlib.error) as error:
        msg = f"standard input is packed, but cannot be unpacked: {first_line(error)}; pack it anew"
        raise InvalidArgument(msg) from None
    return copy


def _check_size(file: Path, name: str) -> None:
    if not file.stat().st_size:
        msg = f"{name} is empty; check what was to write it"
        raise InvalidArgument(msg)
