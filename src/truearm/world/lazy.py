"""Data of any size, counted where they are: lazy frames, folders and patterns of files, databases.

An engine is asked for one thing: how many readings of each arm are in each bucket, the lowest and the highest.
A first pass counts in buckets that a head of the data suggests; further passes count again, or fetch, what is in
the few buckets on which a decision or a figure depends. Small data are read as a whole. Nothing is decided here.
"""

import codecs
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from glob import glob
from importlib import import_module
from importlib.util import find_spec
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.claims.wording import counted as amount_of
from truearm.errors import InvalidArgument, given, word
from truearm.evidence.counts import Counts, Made
from truearm.evidence.ruler import Ruler, Zone, zones_between
from truearm.evidence.units import MEDIANS, Reduction, Units, check_clear
from truearm.world import files, frames, periods, tables
from truearm.world.frames import MOST_SUSPECTED, Collected, Roles, check_number_of_arms, check_several
from truearm.world.written import Written, remedy

Floats = NDArray[np.float64]
Limits = tuple[float | None, float | None]
"""What a reading must be at least, and at most, to be a success; of shares one of them."""

SMALL = 1 << 20  # rows: up to so many are read as a whole, which takes a second or two
_SAMPLED = 1 << 16  # of the first rows: they say where readings are dense
_COARSE = 64  # of an arm's readings one bucket may hold one part, where periods are compared
_PARTS = 1 << 12  # buckets of a zone: of smooth laws each holds less than a thousandth of the readings
_CELLS = 1 << 20  # arms times buckets of a table: 24 bytes each
_FETCHED = 1 << 21  # readings that are fetched at once: some 100 MB while they are
_FINER = 256  # buckets that one bucket is cut into where its readings were fetched
_PASSES = 3  # over the data for figures beside the decision; the decision itself takes as many as it needs
_RANGES = 8  # stretches of readings that one query compares with
_ZONES = 64  # buckets that one query counts in finer ones
_STEPS = 256  # stretches that it looks up by their number
_LARGE = {
    "parquet": 1 << 22,
    "csv": 1 << 28,
    "jsonl": 1 << 28,
    "gz": 1 << 26,
}  # bytes of a file, from which on it may be counted
_SMALL_TEXT = 1 << 26  # bytes of text files, up to which one thread reads them, in the order of their names
_WHOLE = 1 << 24  # rows of one file, up to which it is read: a third of the time of counting, and some 400 MB
_FEW = 64  # arms: of more, as many rows are read wherever they are, because a table has arms times buckets
_ROUNDS = 1 << 24  # readings by arm and round: these are needed one by one
_SCANNED = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv", ".gz"), "csv"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
}
_KINDS = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSON lines"}
_TIMES = ("BIGINT", "DOUBLE", "TIMESTAMP", "TIMESTAMPTZ")  # what the cells of an order may be
_NO_NUMBER = re.compile(r"column (.*) holds (.*), which is not a plain number", re.DOTALL)
_ELSEWHERE_FILES = ("s3", "s3a", "r2", "gs", "gcs", "az", "azure", "abfs", "abfss", "hf", "http", "https", "file")
_MISSING, _LOWEST, _HIGHEST, _ELSEWHERE = -1, -2, -3, -4  # numbers of buckets that no ruler has


class Form(NamedTuple):
    """How files are written, where that is not plain, and what of them is left out.

    Examples
    --------
    >>> Form.of({"decimal": ",", "drop_unnamed": True}).written.decimal
    ','
    """

    written: Written = Written()
    kind: str | None = None
    drop_unnamed: bool = False

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Form":
        """Return what somebody said by name, None where they said nothing."""
        told = {name: value for name, value in said.items() if value is not None}
        rest = {name: told.pop(name) for name in ("kind", "drop_unnamed") if name in told}
        return cls(Written(**told).checked(), **rest)

    @property
    def said(self) -> dict[str, Any]:
        """What is said about text, by name."""
        changed = {name: x for name, x in self.written._asdict().items() if x != Written._field_defaults[name]}
        return {**changed, **({"kind": self.kind} if self.kind else {})}


PLAIN = Form()


def opened(
    source: Any,  # noqa: ANN401 - a frame, a path, an address, counts
    roles: Roles,
    how: Reduction = MEDIANS,
    *,
    round: str | None = None,
    limits: Limits = (None, None),
    query: str | None = None,
    explain: bool = False,
    form: Form = PLAIN,
) -> Any:  # noqa: ANN401 - a `Source`, or what `frames.collect` takes
    """Return data that are to be counted as a `Source`; all else as it is, small lazy data read.

    Parameters
    ----------
    source
        What `analyze` takes.
    round
        The column of what arms were measured in side by side.
    limits
        Of a share, by which units succeed or fail.
    query
        With the address of a database, the rows to analyze.
    explain
        Whether to print what is sent to an engine.
    form
        How files are written.

    Examples
    --------
    >>> opened({"A": [1.0]}, Roles())
    {'A': [1.0]}
    """
    named = [name for name, given in (*roles._asdict().items(), ("round", round)) if given is not None]
    if query is not None and not isinstance(source, str | Path):
        msg = "query goes with the address of a database, such as duckdb://shop.db; leave it out for data at hand"
        raise InvalidArgument(msg)
    if isinstance(source, Source):
        return source
    if isinstance(source, str | Path) and query is None:
        source = tables.read(source) or source
    if form.said and not isinstance(source, str | Path):
        name, value = next(iter(form.said.items()))
        msg = f"{given(**{name: value})} says how a file is written; leave it out for data at hand"
        raise InvalidArgument(msg)
    if isinstance(source, Counts):
        if named:
            msg = f"{named[0]} is given, but these readings were counted before; leave it out, or give the data"
            raise InvalidArgument(msg)
        return source
    if isinstance(source, str | Path):
        unit = round if round not in (None, "rows") else roles.unit
        lazy = _scan(source, query, roles._replace(unit=unit), how, form)
    else:
        lazy = source
    if isinstance(lazy, Collected | Mapping):
        return lazy
    import narwhals as nw

    table = frames.native(lazy, pass_through=True)
    if limits != (None, None) and round == roles.unit == roles.order is None and _is_many(table):
        table = table.lazy()  # a share needs no reading: Polars counts them all in the time of telling arms apart
    if not isinstance(table, nw.LazyFrame) or roles.arm is None or roles.value is None:
        return lazy
    dropping = form.drop_unnamed
    return _small_or_counted(table, roles, how, round, limits=limits, explain=explain, drop_unnamed=dropping)


def count(
    source: Any,  # noqa: ANN401 - as for `analyze`
    *,
    arm: str,
    value: str,
    unit: str | None = None,
    like: Counts | None = None,
    query: str | None = None,
    explain: bool = False,
) -> Counts:
    """Count readings where they are, without an analysis: for shards, whose counts are added.

    Parameters
    ----------
    source, arm, value, unit, query, explain
        As for `analyze`.
    like
        Counts of another shard: this one is then counted at the same edges, so that both add without loss.

    Examples
    --------
    >>> import polars as pl
    >>> shard = pl.LazyFrame({"arm": ["A", "B"] * 50, "ms": range(100)})
    >>> first = count(shard, arm="arm", value="ms")
    >>> second = count(shard, arm="arm", value="ms", like=first)
    >>> (first + second).n, first.digest == second.digest
    ({'A': 100, 'B': 100}, True)
    """
    roles = Roles(arm, value, unit).checked()
    lazy = _scan(source, query, roles) if isinstance(source, str | Path) else source
    if isinstance(lazy, Mapping | Counts):
        msg = "source must be a frame, a path or an address; count readings at hand with Counts.of"
        raise InvalidArgument(msg)
    table = frames.native(lazy).lazy()
    roles.check_columns(table.collect_schema().names())
    frames.check_named(table.collect_schema(), roles, table.implementation.is_polars())
    head = _collected(table.select(*roles.columns).head(SMALL))
    if like is not None and like.ruler is None:
        msg = "like has edges of its own; give counts that an engine made, or read the readings into it with add"
        raise InvalidArgument(msg)
    return Source(table, roles, MEDIANS, head, ruler=None if like is None else like.ruler, explain=explain).counts


def _is_many(table: Any) -> bool:  # noqa: ANN401 - a narwhals frame, or anything
    import narwhals as nw

    return isinstance(table, nw.DataFrame) and table.implementation.is_polars() and len(table) > SMALL


def _small_or_counted(
    table: Any,  # noqa: ANN401 - a lazy narwhals frame
    roles: Roles,
    how: Reduction,
    round: str | None,
    *,
    limits: Limits,
    explain: bool,
    drop_unnamed: bool,
) -> Any:  # noqa: ANN401 - a native frame, or a `Source`
    """Return all rows if they are few, or few for so many arms, else what counts them."""
    import narwhals as nw

    roles = roles.checked()
    columns = table.collect_schema().names()
    roles.check_columns(columns)
    frames.check_named(table.collect_schema(), roles, table.implementation.is_polars())
    if round not in (None, "rows"):
        frames.check_column(columns, str(round), "round")
    suspects = roles.suspects(columns) if round is None else []
    wanted = [*roles.columns, *suspects, *([round] if round not in (None, "rows") else [])]
    rows = table.select(*dict.fromkeys(wanted))
    head = _collected(rows.head(SMALL + 1))
    if len(head) <= SMALL:
        return head.to_native()
    if drop_unnamed:
        table, rows = (part.filter(_has_name(part, str(roles.arm))) for part in (table, rows))
    if round is not None:
        return _by_round(rows, roles, str(round), how)
    if roles.order == "rows":
        msg = (
            f"order='rows' needs rows one by one, and there are more than {SMALL:,}; name a column that says when "
            "each was taken, or leave the order out"
        )
        raise InvalidArgument(msg)
    if head[roles.arm].n_unique() > _FEW and _collected(rows.select(n=nw.len()))["n"].to_list()[0] <= _WHOLE:
        return _collected(rows).to_native()
    return Source(table, roles, how, head, suspects=suspects, limits=limits, explain=explain)


def _has_name(rows: Any, column: str) -> Any:  # noqa: ANN401 - a narwhals frame and an expression
    """Return which rows name an arm."""
    import narwhals as nw

    kind, cells = rows.collect_schema()[column], nw.col(column)
    if kind == nw.String:
        return ~cells.is_null() & (cells != "")
    return ~_blank(rows, column)


def _by_round(rows: Any, roles: Roles, column: str, how: Reduction) -> Any:  # noqa: ANN401
    """Return one reading per arm and round, from an engine."""
    import narwhals as nw

    if column == "rows":
        msg = (
            f"round='rows' needs rows one by one, and there are more than {SMALL:,}; name the column of the rounds"
        )
        raise InvalidArgument(msg)
    found = _collected(_by_unit(_named(rows, roles._replace(unit=column)), how).head(_ROUNDS + 1))
    if len(found) > _ROUNDS:
        msg = f"round={column!r} has more than {_ROUNDS:,} rounds, which are compared one by one; leave rounds out"
        raise InvalidArgument(msg)
    names = {"arm": str(roles.arm), "value": str(roles.value), "unit": column}
    found = found.sort("arm", "unit")  # an engine returns groups in any order
    return found.rename(names).with_columns(nw.col(column).cast(nw.String)).to_native()


# Sources


def _scan(
    source: str | Path, query: str | None, roles: Roles, how: Reduction | None = None, form: Form = PLAIN
) -> Any:  # noqa: ANN401
    """Return a lazy frame of what a path or an address leads to; a small file is read, if one says how."""
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

    Examples
    --------
    >>> [is_scan(name) for name in ("data.csv", "logs/*.parquet", "postgres://host/shop", "-")]
    [False, True, True, False]
    """
    path = Path(source)
    if "://" in source or path.is_dir() or (not path.exists() and any(sign in source for sign in "*?[")):
        return True
    return _is_large(path, form)


def _is_large(path: Path, form: Form = PLAIN) -> bool:
    """Tell whether a file has too many rows to be read as a whole."""
    kind = _SCANNED.get(path.suffix)
    if form.written.encoding or form.kind or (kind == "csv" and files.is_marked(path)):
        return False
    if kind is None or not path.is_file() or path.stat().st_size < _LARGE["gz" if path.suffix == ".gz" else kind]:
        return False
    return kind != "parquet" or files.rows_in(path) > _WHOLE


def _files(text: str) -> list[str] | None:
    """Return the files of a folder or a pattern; None if it is neither."""
    path = Path(text)
    if path.is_dir():
        found = sorted(str(file) for file in path.rglob("*") if file.suffix in _SCANNED and file.is_file())
    elif not path.exists() and any(sign in text for sign in "*?["):
        names = glob(text, recursive=True)  # noqa: PTH207 - of Path it knows no absolute patterns
        found = sorted(name for name in names if Path(name).is_file())
    else:
        return None
    if not found:
        msg = f"{text!r} has no Parquet or CSV files, nor JSON lines; give a folder or a pattern of such files"
        raise InvalidArgument(msg)
    return found


def _relation(found: Sequence[str], text: str, roles: Roles, form: Form) -> Any:  # noqa: ANN401 - of DuckDB
    """Return files as one relation."""
    try:
        import duckdb
    except ModuleNotFoundError:
        msg = f"{text!r} is read by DuckDB; install it with: pip install 'truearm[data]'"
        raise InvalidArgument(msg) from None
    kinds = {_SCANNED.get(Path(name).suffix, "csv"): name for name in reversed(found)}
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
            cells, columns = files.lines_of(connection, found, roles)
        else:
            cells, columns = files.separated(found, roles, form.written.sep)
        roles.check_columns(columns)
        cells = f"(SELECT {files.text_as_sql(columns, roles, form.written)} FROM {cells})"
        return _timed(connection, cells, roles)
    except duckdb.Error as error:
        said = str(error).splitlines()[0].partition("Error: ")[2].rstrip(".") or str(error)
        msg = f"{text!r} cannot be read: {said}; give a pattern that fits tables only, such as 'logs/*.csv'"
        raise InvalidArgument(msg) from None


def _parquet(connection: Any, found: Sequence[str], roles: Roles) -> Any:  # noqa: ANN401 - a DuckDB relation
    paths = list(map(Path, found))
    options = f"union_by_name = {len(found) > 1}, {files.hive_options(paths, roles)}"
    if files.hive_keys(paths):
        inside = connection.sql(
            f"FROM read_parquet({files.addresses(paths)}, union_by_name = true, hive_partitioning = false) LIMIT 0"
        )
        files.check_hive(paths, inside.columns)
    table = connection.sql(f"FROM read_parquet({files.addresses(paths)}, {options})")
    files.check_names(table.columns, roles.columns, partial(files.names_told, connection, found))
    return table


def _timed(connection: Any, cells: str, roles: Roles) -> Any:  # noqa: ANN401 - a DuckDB relation
    """Return cells of text with times in the place of words, if all that are looked at are times of one kind."""
    table = connection.sql(f"FROM {cells}")
    if roles.order in (None, "rows") or str(table.select(_quoted(roles.order)).types[0]) != "VARCHAR":
        return table
    cell = f"nullif(trim({_quoted(roles.order)}), '')"
    looks = ", ".join(f"count(TRY_CAST({cell} AS {kind}))" for kind in _TIMES)
    head = f"(FROM {cells} LIMIT {_SAMPLED})"
    [(told, *read)] = connection.execute(f"SELECT count({cell}), {looks} FROM {head}").fetchall()
    kind = next((kind for kind, n in zip(_TIMES, read, strict=True) if n == told), "VARCHAR")
    return table.project(f"* REPLACE (CAST({cell} AS {kind}) AS {_quoted(roles.order)})")


def _quoted(column: str | None) -> str:
    return '"' + str(column).replace('"', '""') + '"'


def _check_no_file(address: str) -> None:
    """Raise if an address is one of files that are elsewhere."""
    scheme = address.partition("://")[0].lower()
    if scheme in _ELSEWHERE_FILES:
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


# Queries


def _collected(lazy: Any) -> Any:  # noqa: ANN401 - narwhals frames
    """Return what a query gives, by the engine that reads in pieces where there are two."""
    from narwhals import Implementation

    if lazy.implementation is Implementation.POLARS:
        return lazy.collect(engine="streaming")
    try:
        return lazy.collect("pyarrow")
    except Exception as error:
        if lazy.implementation is Implementation.IBIS:
            raise InvalidArgument(_unanswered(error)) from None
        if lazy.implementation is not Implementation.DUCKDB:
            raise
        if wrong := _NO_NUMBER.search(str(error)):
            known = remedy(wrong[2])
            what = f"to read such cells, say {known}" if known else "correct them, or leave such cells empty"
            msg = f"the data cannot be read: {wrong[0]}; {what}"
            raise InvalidArgument(msg) from None
        if "not utf-8" in str(error):
            line = f"line {str(error).splitlines()[0].split()[-1]}"
            say = f"iconv -f cp1252 -t utf-8, or give one file and {given(encoding='cp1252')}"
            msg = f"the data cannot be read: {line} of a file is not UTF-8; convert it, such as by {say}"
            raise InvalidArgument(msg) from None
        what = " ".join(str(error).split("\n\n")[0].split())
        msg = f"the data cannot be read: {what:.300}; correct them, or leave cells of missing readings empty"
        raise InvalidArgument(msg) from None


def _unanswered(error: Exception) -> str:
    """Return what to say of a query that a database does not answer."""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"the database does not answer: {what:.200}; count a copy of the rows, such as a Parquet file"


def _text(lazy: Any) -> str:  # noqa: ANN401 - a narwhals frame
    """Return a query as its engine reads it."""
    native = lazy.to_native()
    if hasattr(native, "sql_query"):  # DuckDB
        return str(native.sql_query())
    if type(native).__module__.startswith("ibis"):
        ibis: Any = import_module("ibis")
        try:
            return str(ibis.to_sql(native))
        except Exception as error:  # what a backend cannot do is found out here; each has errors of its own
            raise InvalidArgument(_unanswered(error)) from None
    if hasattr(native, "_jdf"):  # Spark
        return str(native._jdf.queryExecution().simpleString())
    return str(native.explain()) if hasattr(native, "explain") else repr(native)


def _named(table: Any, roles: Roles) -> Any:  # noqa: ANN401 - narwhals frames
    """Return arms as words and readings as numbers, under names of our own."""
    import narwhals as nw

    schema = table.collect_schema()
    kind = schema[str(roles.value)]
    if not (kind.is_numeric() or kind == nw.Boolean):
        msg = (
            f"column {roles.value!r} must hold numbers, but its type is {kind}; convert it where the data are, "
            f"such as by CAST({roles.value} AS DOUBLE)"
        )
        raise InvalidArgument(msg)
    value, arm, nans = nw.col(str(roles.value)), nw.col(str(roles.arm)), _knows_nan(table)
    words = schema[str(roles.arm)]
    named = arm if words == nw.String else arm.cast(nw.String)
    number = value if kind == nw.Float64 else value.cast(nw.Float64)
    chosen = {
        "arm": nw.when(~arm.is_nan() & (named != "nan")).then(named) if words.is_float() and nans else named,
        "value": nw.when(~number.is_nan()).then(number) if kind.is_float() and nans else number,  # in statistics
    }
    for role, name in (("unit", roles.unit), ("order", roles.order)):
        if name is not None:
            chosen[role] = _without_blanks(nw.col(name), schema[name], nans=nans)
    return table.select(**chosen)


def _knows_nan(table: Any) -> bool:  # noqa: ANN401 - a narwhals frame
    """Tell whether a float may be NaN where a table is: some databases have none, nor a word for it."""
    native = table.to_native()
    if not type(native).__module__.startswith("ibis"):
        return True
    operations: Any = import_module("ibis.expr.operations")
    return bool(native.get_backend().has_operation(operations.IsNan))


def _blank(rows: Any, name: str) -> Any:  # noqa: ANN401 - a narwhals frame and an expression
    """Return which cells say nothing; DuckDB takes a column for one without NaN if its statistics show none."""
    import narwhals as nw

    cells = nw.col(name)
    nans = rows.collect_schema()[name].is_float() and _knows_nan(rows)
    return cells.is_null() | cells.is_nan() if nans else cells.is_null()


def _without_blanks(cells: Any, kind: Any, *, nans: bool) -> Any:  # noqa: ANN401 - narwhals expressions
    """Return cells with null for what says nothing, by the names that engines have for it."""
    import narwhals as nw

    if kind.is_float():
        return nw.when(~cells.is_nan()).then(cells) if nans else cells
    return nw.when(cells != "").then(cells) if kind == nw.String else cells


def _by_unit(named: Any, how: Reduction, limits: Limits = (None, None)) -> Any:  # noqa: ANN401 - narwhals frames
    """Return one reading per arm and unit: the median, missing where missing readings could change it.

    Of shares a unit succeeds if at least half of its readings do, and its reading then is the limit itself.

    A unit with a missing reading is missing where missing readings count at their worst, and so is one whose
    median is between a value and infinity (extensions 2).
    """
    import narwhals as nw

    value, low, high = nw.col("value"), nw.col("low"), nw.col("high")
    parts = {"low": value.median(), "high": value.median()}
    if named.implementation.is_polars():  # its median of two is low + (high - low) / 2, which may be rounded twice
        parts = {"low": value.quantile(0.5, "lower"), "high": value.quantile(0.5, "higher")}
    order = [nw.col("order").min().alias("order")] if "order" in named.collect_schema().names() else []
    at_least, at_most = limits
    won = value >= at_least if at_least is not None else value <= (at_most or 0.0)
    units = (
        named.with_columns(
            value=nw.when(value.is_nan()).then(None).otherwise(value) if _knows_nan(named) else value
        )
        .with_columns(
            won=nw.when(won).then(1).otherwise(0),
            over=nw.when(value == float("inf")).then(1).otherwise(0),
            under=nw.when(value == float("-inf")).then(1).otherwise(0),
        )
        .group_by("arm", "unit")
        .agg(
            *order,
            rows=nw.len(),
            known=value.count(),
            **parts,
            won=nw.col("won").sum(),
            over=nw.col("over").sum(),
            under=nw.col("under").sum(),
        )
        .with_columns(value=nw.when(low == high).then(low).otherwise(low / 2 + high / 2))
    )
    if limits != (None, None):
        return _with_successes(units, how, limits)
    found, lost = units, nw.col("known") == 0
    if how.missing == "worst":
        lost = lost | (nw.col("known") < nw.col("rows"))
    ends = nw.col("over") + nw.col("under")
    unclear = (nw.col("over") == nw.col("under")) & (ends == nw.col("known")) & (ends > 0)
    for end, number in ((float("inf"), "over"), (float("-inf"), "under")):
        unclear = unclear | ((nw.col("value") == end) & (2 * nw.col(number) <= nw.col("known")))
    if how.missing == "independent":
        check_clear(int(_collected(units.filter(unclear).select(n=nw.len()))["n"].to_list()[0]))
    lost = lost | unclear
    return found.with_columns(value=nw.when(lost).then(None).otherwise(nw.col("value")))


def _with_successes(units: Any, how: Reduction, limits: Limits) -> Any:  # noqa: ANN401 - narwhals frames
    """Return units with a success, a failure or neither for their reading (extensions 1.8)."""
    import narwhals as nw

    at_least, at_most = limits
    success = at_least if at_least is not None else at_most or 0.0
    failure = float(np.nextafter(success, np.inf if at_least is None else -np.inf))
    won, known = nw.col("won"), nw.col("known")
    total = nw.col("rows") if how.missing == "worst" else known
    lost = 2 * (won + total - known) < total
    told = nw.when(lost).then(nw.lit(failure)).otherwise(None)
    reading = nw.when((2 * won >= total) & (known > 0)).then(nw.lit(success)).otherwise(told)
    return units.with_columns(value=reading)


def _numbered(ruler: Ruler, zones: Sequence[int], *, nans: bool) -> Any:  # noqa: ANN401 - a narwhals expression
    """Return the number of the bucket that a reading outside all other zones is in.

    Where statistics of a column leave NaN out, DuckDB takes the column for one without.
    """
    import narwhals as nw

    x = nw.col("value")
    found = nw.lit(float(ruler.last))
    for i in reversed(zones):
        zone = ruler.zones[i]
        found = nw.when(x < zone.high).then(_part(zone, ruler.bases[i])).otherwise(found)
    found = nw.when(x < ruler.zones[0].low).then(nw.lit(0.0)).otherwise(found)
    found = nw.when(x == float("inf")).then(nw.lit(float(_HIGHEST))).otherwise(found)
    found = nw.when(x == float("-inf")).then(nw.lit(float(_LOWEST))).otherwise(found)
    absent = x.is_null() | x.is_nan() if nans else x.is_null()
    return nw.when(absent).then(nw.lit(float(_MISSING))).otherwise(found)


def _part(zone: Zone, base: int) -> Any:  # noqa: ANN401 - a narwhals expression
    import narwhals as nw

    return ((nw.col("value") - zone.low) * zone.scale).floor() + float(base)


def _grouped(rows: Any, number: Any, keys: Sequence[str]) -> Any:  # noqa: ANN401 - narwhals frames
    import narwhals as nw

    value = nw.col("value")
    return (
        rows.with_columns(bucket=number)
        .group_by(*keys, "bucket")
        .agg(n=nw.len(), low=value.min(), high=value.max())
        .select(*keys, "bucket", "n", "low", "high")
    )


class _Lumps(NamedTuple):
    """What a query counted, one row per arm and bucket, or single readings."""

    names: tuple[str, ...]
    arms: NDArray[Any]
    """Which of the names."""
    counts: NDArray[np.int64]
    lows: Floats
    """NaN of what is missing."""
    highs: Floats
    """Of single readings `lows` itself."""
    periods: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, frame: Any, names: tuple[str, ...] | None = None) -> "_Lumps":  # noqa: ANN401 - a narwhals frame
        import narwhals as nw

        words = frame["arm"].fill_null("")
        known = tuple(sorted(words.unique().to_list())) if names is None else names
        codes = words.replace_strict(list(known), list(range(len(known))), return_dtype=nw.Int64)
        arms = np.array(codes.to_numpy(), dtype=np.min_scalar_type(len(known)))
        lows = np.array(frame["low"].to_numpy(), dtype=np.float64) + 0.0
        if "n" not in frame.columns:
            return cls(known, arms, np.broadcast_to(np.int64(1), lows.shape), lows, lows)
        told = np.array(frame["period"].to_numpy(), dtype=np.int64) if "period" in frame.columns else None
        highs = np.array(frame["high"].to_numpy(), dtype=np.float64) + 0.0
        return cls(known, arms, np.array(frame["n"].to_numpy(), dtype=np.int64), lows, highs, told)

    def picked(self, which: NDArray[Any] | slice) -> "_Lumps":
        told = None if self.periods is None else self.periods[which]
        lows = self.lows[which]
        highs = lows if self.highs is self.lows else self.highs[which]
        return _Lumps(self.names, self.arms[which], self.counts[which], lows, highs, told)

    def between(self, low: float, high: float) -> "_Lumps":
        """Return the single readings of a stretch, where they are sorted."""
        return self.picked(slice(self.lows.searchsorted(low), self.lows.searchsorted(high, "right")))

    def table(self, edges: Floats, made: Made) -> Counts:
        """Return the counts at these edges."""
        found = {}
        for i, name in enumerate(self.names):
            mine = self.picked(self.arms == i)
            missing = np.isnan(mine.lows)
            part = mine.picked(~missing) if missing.any() else mine
            found[name] = (part.lows, part.highs, part.counts, int(mine.counts[missing].sum()))
        return Counts.from_lumps(edges, found, made)


class Source:
    """Data that are counted where they are: a table of counts that knows how to count again.

    Examples
    --------
    >>> import narwhals as nw, polars as pl
    >>> rows = nw.from_native(pl.LazyFrame({"arm": ["A", "B"] * 50, "ms": range(100)}))
    >>> source = Source(rows, Roles("arm", "ms"), MEDIANS, rows.collect())
    >>> source.counts.n, source.passes
    ({'A': 50, 'B': 50}, 1)
    """

    def __init__(
        self,
        table: Any,  # noqa: ANN401 - a lazy narwhals frame
        roles: Roles,
        how: Reduction,
        head: Any,  # noqa: ANN401 - a narwhals frame of first rows
        *,
        suspects: Sequence[str] = (),
        limits: "Limits" = (None, None),
        ruler: Ruler | None = None,
        explain: bool = False,
    ) -> None:
        self.roles, self.how, self.explain = roles, how, explain
        self.queries: list[str] = []
        self.passes = 0
        self.engine = str(table.implementation.value)
        self.units: Units | None = None
        self._fetched: list[tuple[float, float, _Lumps]] = []
        self._limits, self._nans = limits, _knows_nan(table)
        self._rows = self._prepared(_named(table, roles))
        first = head.head(MOST_SUSPECTED).to_native()
        self.suspects = frames.collect(first, roles.arm, roles.value).suspects if suspects else ()
        if limits == (None, None) or roles.order is not None:  # periods are compared at all readings
            values, weights = _sampled(head, roles)
            self.counts = self._first(ruler or _ruler(values, weights), values)
            while self.roles.order is not None and self.passes < _PASSES and _is_coarse(self.counts):
                values, weights = _spread_out(self.counts)  # of drifting data the head shows the beginning only
                self.counts = self._first(_ruler(values, weights), values)
        else:
            self.counts = self._first(_split_at(limits), np.empty(0))

    def collected(self) -> Collected:
        """Return what is known so far."""
        return Collected({}, units=self.units, suspects=self.suspects, counts=self.counts)

    @property
    def made(self) -> Made:
        """By what the table was counted."""
        return Made(self.engine, tuple(self.queries))

    def refine(self, needed: set[int], wanted: set[int]) -> bool:
        """Count some buckets again, in finer ones or value by value; tell whether there was anything to do.

        Parameters
        ----------
        needed
            Buckets for which another pass is made if it must be.
        wanted
            Buckets that come along, if readings were not fetched before.
        """
        lows, highs = self.counts.hull()
        split = [b for b in sorted(needed | wanted) if lows[b] < highs[b]]
        here = [b for b in split if self._at_hand(lows[b], highs[b]) is not None]
        if here:
            self._cut(here)
            return True
        worth = self.passes < _PASSES and not self._fetched
        sought = split if worth else [b for b in split if b in needed]
        if sought:
            self._ask(sought)
        return bool(sought)

    def _prepared(self, rows: Any) -> Any:  # noqa: ANN401 - narwhals frames
        """Return one row per reading: of units their medians, with the period of its arm that it is from."""
        if self.roles.unit is not None:
            self._check_units(rows)
        period = None if self.roles.order is None else periods.number(self._cuts(rows))
        if self.roles.unit is not None:
            rows = _by_unit(rows, self.how, self._limits)
        if period is None:
            return rows.select("arm", "value")
        return rows.select("arm", "value", period=period)

    def _cuts(self, rows: Any) -> Mapping[str, Sequence[Any]]:  # noqa: ANN401 - a narwhals frame
        """Return where periods of each arm begin, or raise if the place of a row in the order is unknown."""
        import narwhals as nw

        empty = self._run(rows.filter(_blank(rows, "order")).select(n=nw.len()))["n"].to_list()[0]
        if empty:
            msg = (
                f"{amount_of(empty, 'row')} of column {self.roles.order!r} {'is' if empty == 1 else 'are'} empty, "
                "so their place in the order is unknown; fill them, or leave such rows out"
            )
            raise InvalidArgument(msg)
        return periods.cuts(rows, self._run, str(self.roles.order))

    def _check_units(self, rows: Any) -> None:  # noqa: ANN401 - a narwhals frame
        """Count rows and units by arm, and names of units that several arms have."""
        import narwhals as nw

        pairs = rows.group_by("arm", "unit").agg(rows=nw.len())
        unnamed = nw.when(_blank(rows, "unit")).then(nw.col("rows")).otherwise(0)
        counts = pairs.with_columns(unnamed=unnamed).group_by("arm")
        known = self._run(counts.agg(rows=nw.col("rows").sum(), units=nw.len(), unnamed=nw.col("unnamed").sum()))
        if empty := sum(known["unnamed"].to_list()):
            msg = (
                f"{amount_of(int(empty), 'row')} of column {self.roles.unit!r} name{'s' * (empty == 1)} no "
                f"{word('unit')}; give a name, or leave such rows out"
            )
            raise InvalidArgument(msg)
        shared = pairs.group_by("unit").agg(arms=nw.len()).filter(nw.col("arms") > 1)
        number = self._run(shared.select(n=nw.len()))["n"].to_list()[0]
        arms = known["arm"].to_list()
        self.units = Units(
            str(self.roles.unit),
            dict(sorted(zip(arms, known["rows"].to_list(), strict=True))),
            dict(sorted(zip(arms, known["units"].to_list(), strict=True))),
            int(number),
        )
        check_several(self.units)

    def _run(self, lazy: Any) -> Any:  # noqa: ANN401 - narwhals frames
        text = _text(lazy)
        self.queries.append(text)
        if self.explain:
            sys.stderr.write(
                f"-- query {len(self.queries)}, {self.engine}\n{text}\n\n"
            )  # beside what --json prints
        return _collected(lazy)

    def _first(self, ruler: Ruler, head: Floats) -> Counts:
        """Count all readings in one scan; of the zone in which most of the head are it is asked first."""
        import narwhals as nw

        zones = range(len(ruler.zones))
        main = max(
            zones, key=lambda i: np.count_nonzero((head >= ruler.zones[i].low) & (head < ruler.zones[i].high))
        )
        self._dense = zone = ruler.zones[main]
        value = nw.col("value")
        inside = (value >= zone.low) & (value < zone.high)
        others = _numbered(ruler, [i for i in zones if i != main], nans=self._nans)
        number = nw.when(inside).then(_part(zone, ruler.bases[main])).otherwise(others)
        keys = ["arm", "period"] if self.roles.order is not None else ["arm"]
        found = _Lumps.of(self._run(_grouped(self._rows, number, keys)))
        self.passes += 1
        self._check_arms(found)
        edges = np.concatenate((ruler.edges(), [np.inf]))
        table = found.table(edges, self.made)
        if found.periods is None:
            return replace(table, ruler=ruler)
        cells = edges.size * len(found.names) * periods.MOST
        coarser = edges[:: max(1, cells // _CELLS)]  # all periods together are no larger than the table may be
        parts = (found.picked(found.periods == i).table(coarser, self.made) for i in range(periods.MOST))
        return replace(table, ruler=ruler, periods=tuple(parts))

    def _check_arms(self, found: _Lumps) -> None:
        if "" in found.names:
            n = int(found.counts[found.arms == found.names.index("")].sum())
            say = f"leave such rows out with {given(drop_unnamed=True)}"
            rows = f"{amount_of(n, 'row')} of column {self.roles.arm!r} name{'s' * (n == 1)} no arm"
            msg = f"{rows}; give a name, or {say}"
            raise InvalidArgument(msg)
        check_number_of_arms(len(found.names), self.roles.arm)

    def _at_hand(self, low: float, high: float) -> _Lumps | None:
        """Return the readings of a stretch that were fetched, None if they were not."""
        for first, last, lumps in self._fetched:
            if first <= low and high <= last:
                return lumps.between(low, high)
        return None

    def _cut(self, buckets: Sequence[int]) -> None:
        """Cut buckets whose readings are at hand into finer ones, down to single values."""
        new, parts = [], []
        for low, high in np.stack(self.counts.hull())[:, buckets].T.tolist():
            lumps = self._at_hand(low, high)
            assert lumps is not None
            values = np.unique(lumps.lows)
            new.append(values[:: max(1, -(-values.size // _FINER))])
            parts.append(lumps)
        self._replace(buckets, np.concatenate(new), _joined(parts))

    def _replace(self, buckets: Sequence[int], new: Floats, lumps: _Lumps) -> None:
        finer = lumps.table(new, self.made)
        table = self.counts.refined(buckets, new, finer)
        if table.n != self.counts.n:
            msg = "the data changed while they were counted; count a copy, or when nobody writes to them"
            raise InvalidArgument(msg)
        self.counts = replace(table, made=self.made)

    def _ask(self, split: Sequence[int]) -> None:
        """Fetch the readings of some buckets if they are few enough, else count them in finer buckets."""
        lows, highs = self.counts.hull()
        dense = [b for b in split if self._dense.low <= lows[b] and highs[b] < self._dense.high]
        rest = [b for b in split if not (self._dense.low <= lows[b] and highs[b] < self._dense.high)]
        runs = [*_runs(dense, _STEPS), *_runs(rest, _RANGES)]
        if np.unique(np.concatenate(runs)).size < sum(run.size for run in runs):  # what was joined overlaps
            runs = _runs(split, _RANGES)
        buckets = np.concatenate(runs)
        self.passes += 1
        if sum(int(column.counts[buckets].sum()) for column in self.counts.columns.values()) <= _FETCHED:
            self._fetch([(float(lows[run].min()), float(highs[run].max())) for run in runs])
            self._cut(buckets.tolist())
        else:
            rows = np.sum([column.counts for column in self.counts.columns.values()], axis=0)
            self._count_finer(sorted(sorted(split, key=lambda b: -int(rows[b]))[:_ZONES]))

    def _fetch(self, stretches: Sequence[tuple[float, float]]) -> None:
        """Fetch readings, value by value."""
        import narwhals as nw

        rows = self._rows.filter(reduce(or_, self._chosen(stretches)))
        lumps = _Lumps.of(self._run(rows.select("arm", low=nw.col("value"))), self.counts.arms)
        lumps = lumps.picked(np.argsort(lumps.lows))
        self._fetched += [(low, high, lumps.between(low, high)) for low, high in stretches]

    def _chosen(self, stretches: Sequence[tuple[float, float]]) -> list[Any]:
        """Return expressions for readings in some stretches; of the dense zone all of their buckets."""
        import narwhals as nw

        zone, value = self._dense, nw.col("value")
        dense = [(low, high) for low, high in stretches if zone.low <= low and high < zone.high]
        chosen = [(value >= low) & (value <= high) for low, high in stretches if (low, high) not in dense]
        if dense:
            part = ((value - zone.low) * zone.scale).floor()  # measured: a fourth of comparing with 24 stretches
            ends = np.floor((np.array(dense) - zone.low) * zone.scale).astype(np.int64).tolist()
            parts = sorted({float(i) for first, last in ends for i in range(first, last + 1)})
            chosen.append((value >= dense[0][0]) & (value <= dense[-1][1]) & part.is_in(parts))
        return chosen

    def _count_finer(self, buckets: Sequence[int]) -> None:
        """Count the readings of some buckets in finer ones."""
        import narwhals as nw

        stretches = [(float(low), float(high)) for low, high in np.stack(self.counts.hull())[:, buckets].T]
        parts = max(2, min(_PARTS, _CELLS // len(self.counts.columns)) // len(stretches))
        ruler = Ruler(tuple(zone for low, high in stretches for zone in zones_between(low, high, parts)))
        x, number = nw.col("value"), nw.lit(float(_ELSEWHERE))
        for zone, base in zip(reversed(ruler.zones), reversed(ruler.bases), strict=True):
            number = nw.when((x >= zone.low) & (x < zone.high)).then(_part(zone, base)).otherwise(number)
        rows = self._rows.filter(reduce(or_, self._chosen(stretches)))
        found = self._run(_grouped(rows, number, ["arm"]).filter(nw.col("bucket") >= 0))
        new = np.unique(np.concatenate([Ruler((zone,)).edges() for zone in ruler.zones]))  # there are gaps between
        self._replace(buckets, new, _Lumps.of(found, self.counts.arms))


def _joined(parts: Sequence[_Lumps]) -> _Lumps:
    """Return single readings of several stretches."""
    arms, lows = (np.concatenate([getattr(part, name) for part in parts]) for name in ("arms", "lows"))
    return _Lumps(parts[0].names, arms, np.broadcast_to(np.int64(1), lows.shape), lows, lows)


def _sampled(head: Any, roles: Roles) -> tuple[Floats, Floats]:  # noqa: ANN401 - a narwhals frame
    """Return finite readings of first rows, and weights by which all arms count alike."""
    import narwhals as nw

    some = head.gather_every(max(1, len(head) // _SAMPLED))
    values = frames.floats_of(some[roles.value], str(roles.value)) + 0.0
    names = some[roles.arm].cast(nw.String).fill_null("").to_list()
    finite = np.isfinite(values)
    arms = np.unique(np.array(names), return_inverse=True)[1][finite]
    return values[finite], 1 / np.maximum(1, np.bincount(arms))[arms]


def _ruler(values: Floats, weights: Floats) -> Ruler:
    """Return a ruler for data of which these are some."""
    if not values.size:
        return Ruler((Zone(0.0, 1.0, 1),))
    arms = np.unique(weights).size
    return Ruler.of(values, weights, max(256, min(_PARTS, _CELLS // max(1, arms))))


def _is_coarse(counts: Counts) -> bool:
    """Tell whether a bucket of several values holds so much of an arm that a change inside it would not show."""
    for column in counts.columns.values():
        several = column.counts[np.isfinite(column.lows) & (column.lows < column.highs)]
        if several.max(initial=0) * _COARSE > column.counts.sum():
            return True
    return False


def _spread_out(counts: Counts) -> tuple[Floats, Floats]:
    """Return readings that a table may be of, a few for each bucket, and weights by which all arms count alike."""
    values, weights = [], []
    for counted, lows, highs, _ in counts.columns.values():
        full = np.flatnonzero((counted > 0) & np.isfinite(lows) & np.isfinite(highs))
        share = counted[full] / max(1, counted.sum())
        points = np.ceil(share * _SAMPLED / len(counts.columns)).astype(np.int64)
        along = np.concatenate([np.linspace(0, 1, n) for n in points.tolist()] or [np.empty(0)])
        low, high = (np.repeat(ends[full], points) for ends in (lows, highs))
        values.append(low * (1 - along) + high * along)
        weights.append(np.repeat(share / points, points))
    return np.concatenate(values), np.concatenate(weights)


def _split_at(limits: Limits) -> Ruler:
    """Return a ruler that tells successes from failures: below the first number that is different, it, above."""
    at_least, at_most = limits
    first = at_least if at_least is not None else math.nextafter(at_most or 0.0, math.inf)
    return Ruler((Zone(first, math.nextafter(first, math.inf), 1),))


def _runs(buckets: Sequence[int], most: int) -> list[NDArray[np.intp]]:
    """Return buckets as at most so many runs of neighbors, the nearest joined where there are more."""
    if not buckets:
        return []
    places = np.array(buckets, dtype=np.intp)
    gaps = np.diff(places)
    least = int(np.sort(gaps)[-most + 1]) if gaps.size >= most else 1
    runs = np.split(places, np.flatnonzero(gaps > least) + 1)
    return [np.arange(run[0], run[-1] + 1) for run in runs]
