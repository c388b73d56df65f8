"""What an engine is asked: arms as words, readings as numbers, one per unit, and how many are in each bucket."""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from truearm.errors import InvalidArgument
from truearm.evidence.ruler import Ruler, Zone
from truearm.world.roles import Roles
from truearm.world.written import remedy

Limits = tuple[float | None, float | None]
"""What a reading must be at least, and at most, to be a success; of shares one of them."""
_NO_NUMBER = re.compile(r"column (.*) holds (.*), which is not a plain number", re.DOTALL)
_MISSING, _LOWEST, _HIGHEST, ELSEWHERE = -1, -2, -3, -4  # numbers of buckets that no ruler has


def collected(lazy: Any) -> Any:  # noqa: ANN401 - narwhals frames
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
            say = "iconv -f cp1252 -t utf-8, or give one file and encoding='cp1252'"
            msg = f"the data cannot be read: {line} of a file is not UTF-8; convert it, such as by {say}"
            raise InvalidArgument(msg) from None
        what = " ".join(str(error).split("\n\n")[0].split())
        msg = f"the data cannot be read: {what:.300}; correct them, or leave cells of missing readings empty"
        raise InvalidArgument(msg) from None


def _unanswered(error: Exception) -> str:
    """Return what to say of a query that a database does not answer."""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"the database does not answer: {what:.200}; count a copy of the rows, such as a Parquet file"


def query_text(lazy: Any) -> str:  # noqa: ANN401 - a narwhals frame
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


def renamed(table: Any, roles: Roles) -> Any:  # noqa: ANN401 - narwhals frames
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
    value, arm, nans = nw.col(str(roles.value)), nw.col(str(roles.arm)), knows_nan(table)
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


def knows_nan(table: Any) -> bool:  # noqa: ANN401 - a narwhals frame
    """Tell whether a float may be NaN where a table is: some databases have none, nor a word for it."""
    native = table.to_native()
    if not type(native).__module__.startswith("ibis"):
        return True
    operations: Any = import_module("ibis.expr.operations")
    return bool(native.get_backend().has_operation(operations.IsNan))


def blank(rows: Any, name: str) -> Any:  # noqa: ANN401 - a narwhals frame and an expression
    """Return which cells say nothing; DuckDB takes a column for one without NaN if its statistics show none."""
    import narwhals as nw

    cells = nw.col(name)
    nans = rows.collect_schema()[name].is_float() and knows_nan(rows)
    return cells.is_null() | cells.is_nan() if nans else cells.is_null()


def _without_blanks(cells: Any, kind: Any, *, nans: bool) -> Any:  # noqa: ANN401 - narwhals expressions
    """Return cells with null for what says nothing, by the names that engines have for it."""
    import narwhals as nw

    if kind.is_float():
        return nw.when(~cells.is_nan()).then(cells) if nans else cells
    return nw.when(cells != "").then(cells) if kind == nw.String else cells


def one_per_unit(named: Any, limits: Limits = (None, None)) -> Any:  # noqa: ANN401 - narwhals frames
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
            value=nw.when(value.is_nan()).then(None).otherwise(value) if knows_nan(named) else value
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
        return _with_successes(units, limits)
    found, lost = units, (nw.col("known") == 0) | (nw.col("known") < nw.col("rows"))
    ends = nw.col("over") + nw.col("under")
    unclear = (nw.col("over") == nw.col("under")) & (ends == nw.col("known")) & (ends > 0)
    for end, number in ((float("inf"), "over"), (float("-inf"), "under")):
        unclear = unclear | ((nw.col("value") == end) & (2 * nw.col(number) <= nw.col("known")))
    lost = lost | unclear
    return found.with_columns(value=nw.when(lost).then(None).otherwise(nw.col("value")))


def _with_successes(units: Any, limits: Limits) -> Any:  # noqa: ANN401 - narwhals frames
    """Return units with a success, a failure or neither for their reading (extensions 1.8)."""
    import narwhals as nw

    at_least, at_most = limits
    success = at_least if at_least is not None else at_most or 0.0
    failure = float(np.nextafter(success, np.inf if at_least is None else -np.inf))
    won, known = nw.col("won"), nw.col("known")
    total = nw.col("rows")
    lost = 2 * (won + total - known) < total
    told = nw.when(lost).then(nw.lit(failure)).otherwise(None)
    reading = nw.when((2 * won >= total) & (known > 0)).then(nw.lit(success)).otherwise(told)
    return units.with_columns(value=reading)


def numbered(ruler: Ruler, zones: Sequence[int], *, nans: bool) -> Any:  # noqa: ANN401 - a narwhals expression
    """Return the number of the bucket that a reading outside all other zones is in.

    Where statistics of a column leave NaN out, DuckDB takes the column for one without.
    """
    import narwhals as nw

    x = nw.col("value")
    found = nw.lit(float(ruler.last))
    for i in reversed(zones):
        zone = ruler.zones[i]
        found = nw.when(x < zone.high).then(part_of(zone, ruler.bases[i])).otherwise(found)
    found = nw.when(x < ruler.zones[0].low).then(nw.lit(0.0)).otherwise(found)
    found = nw.when(x == float("inf")).then(nw.lit(float(_HIGHEST))).otherwise(found)
    found = nw.when(x == float("-inf")).then(nw.lit(float(_LOWEST))).otherwise(found)
    absent = x.is_null() | x.is_nan() if nans else x.is_null()
    return nw.when(absent).then(nw.lit(float(_MISSING))).otherwise(found)


def part_of(zone: Zone, base: int) -> Any:  # noqa: ANN401 - a narwhals expression
    """Return the number of the bucket that a reading of a zone is in."""
    import narwhals as nw

    return ((nw.col("value") - zone.low) * zone.scale).floor() + float(base)


def in_buckets(rows: Any, number: Any, keys: Sequence[str]) -> Any:  # noqa: ANN401 - narwhals frames
    """Return how many readings are in each bucket, the lowest and the highest."""
    import narwhals as nw

    value = nw.col("value")
    return (
        rows.with_columns(bucket=number)
        .group_by(*keys, "bucket")
        .agg(n=nw.len(), low=value.min(), high=value.max())
        .select(*keys, "bucket", "n", "low", "high")
    )
