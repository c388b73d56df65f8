"""Data of any size: what is small is read as a whole, all else is counted where it is.

Lazy frames, folders and patterns of files, databases: see `truearm.world.scans` for how they are reached, and
`truearm.world.counting` for how they are counted. Nothing is decided here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truearm.errors import InvalidArgument
from truearm.evidence.counts import Counts
from truearm.evidence.units import MEDIANS, Reduction
from truearm.world import tables
from truearm.world.counting import Source
from truearm.world.engines import Limits, blank, collected, one_per_unit, renamed
from truearm.world.frames import check_named, native
from truearm.world.roles import Roles, check_column
from truearm.world.scans import WHOLE, scan
from truearm.world.tapes import Collected
from truearm.world.written import PLAIN, Form

SMALL = 1 << 20  # rows: up to so many are read as a whole, which takes a second or two
_FEW = 64  # arms: of more, as many rows are read wherever they are, because a table has arms times buckets
_ROUNDS = 1 << 24  # readings by arm and round: these are needed one by one


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
        msg = f"{name}={value!r} says how a file is written; leave it out for data at hand"
        raise InvalidArgument(msg)
    if isinstance(source, Counts):
        if named:
            msg = f"{named[0]} is given, but these readings were counted before; leave it out, or give the data"
            raise InvalidArgument(msg)
        return source
    if isinstance(source, str | Path):
        unit = round if round not in (None, "rows") else roles.unit
        lazy = scan(source, query, roles._replace(unit=unit), how, form)
    else:
        lazy = source
    if isinstance(lazy, Collected | Mapping):
        return lazy
    import narwhals as nw

    table = native(lazy, pass_through=True)
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
    lazy = scan(source, query, roles) if isinstance(source, str | Path) else source
    if isinstance(lazy, Mapping | Counts):
        msg = "source must be a frame, a path or an address; count readings at hand with Counts.of"
        raise InvalidArgument(msg)
    table = native(lazy).lazy()
    roles.check_columns(table.collect_schema().names())
    check_named(table.collect_schema(), roles, table.implementation.is_polars())
    head = collected(table.select(*roles.columns).head(SMALL))
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
    check_named(table.collect_schema(), roles, table.implementation.is_polars())
    if round not in (None, "rows"):
        check_column(columns, str(round), "round")
    suspects = roles.suspects(columns) if round is None else []
    wanted = [*roles.columns, *suspects, *([round] if round not in (None, "rows") else [])]
    rows = table.select(*dict.fromkeys(wanted))
    head = collected(rows.head(SMALL + 1))
    if len(head) <= SMALL:
        return head.to_native()
    whole, dropped = rows, 0
    if drop_unnamed:
        nameless = rows.filter(~_has_name(rows, str(roles.arm)))
        dropped = int(collected(nameless.select(n=nw.len()))["n"].to_list()[0])
        table, rows, head = (part.filter(_has_name(part, str(roles.arm))) for part in (table, rows, head))
    if round is not None:
        return _by_round(rows, roles, str(round))
    if roles.order == "rows":
        msg = (
            f"order='rows' needs rows one by one, and there are more than {SMALL:,}; name a column that says when "
            "each was taken, or leave the order out"
        )
        raise InvalidArgument(msg)
    if head[roles.arm].n_unique() > _FEW and collected(rows.select(n=nw.len()))["n"].to_list()[0] <= WHOLE:
        return collected(whole).to_native()
    return Source(table, roles, how, head, suspects=suspects, limits=limits, explain=explain, dropped=dropped)


def _has_name(rows: Any, column: str) -> Any:  # noqa: ANN401 - a narwhals frame and an expression
    """Return which rows name an arm."""
    import narwhals as nw

    kind, cells = rows.collect_schema()[column], nw.col(column)
    if kind == nw.String:
        return ~cells.is_null() & (cells != "")
    return ~blank(rows, column)


def _by_round(rows: Any, roles: Roles, column: str) -> Any:  # noqa: ANN401
    """Return one reading per arm and round, from an engine."""
    import narwhals as nw

    if column == "rows":
        msg = (
            f"round='rows' needs rows one by one, and there are more than {SMALL:,}; name the column of the rounds"
        )
        raise InvalidArgument(msg)
    found = collected(one_per_unit(renamed(rows, roles._replace(unit=column))).head(_ROUNDS + 1))
    if len(found) > _ROUNDS:
        msg = f"round={column!r} has more than {_ROUNDS:,} rounds, which are compared one by one; leave rounds out"
        raise InvalidArgument(msg)
    names = {"arm": str(roles.arm), "value": str(roles.value), "unit": column}
    found = found.sort("arm", "unit")  # an engine returns groups in any order
    return found.rename(names).with_columns(nw.col(column).cast(nw.String)).to_native()
