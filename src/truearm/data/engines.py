"""Readings counted by the engine that has them: DuckDB, Polars, PySpark or Ibis, through narwhals.

The engine returns how many readings of each arm are in each bucket, the lowest and the highest. A first pass
counts in buckets that a head of the data suggests; further passes count the few buckets on which a decision or a
figure depends again, in finer ones or value by value (extensions 4).
"""

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from truearm.data.columns import (
    MAX_ARMS,
    Columns,
    Dataset,
    assemble,
    check_number_of_arms,
    check_several,
    similar_names,
)
from truearm.errors import InvalidArgument
from truearm.evidence.counts import Counts, Made
from truearm.evidence.ruler import Ruler, Zone, zones_between
from truearm.evidence.units import Reduction, Units
from truearm.problem import refuse

MAX_ROWS = 1 << 24  # readings in memory; more are counted
MAX_GROUPS = 1 << 22  # units or rounds whose names are fetched
HEAD_ROWS = 1 << 16  # first rows: they show where readings are dense, undeclared units, and columns of words
_PARTS = 1 << 12  # buckets of a zone: with smooth laws each holds less than a thousandth of the readings
_TABLE_CELLS = 1 << 20  # arms times buckets of a table: 24 bytes each
_MAX_PASSES = 3  # over the data for other figures; the decision takes as many as it needs
_MAX_ZONES = 64  # buckets that one query counts again
_MISSING, _LOWEST, _HIGHEST = -1.0, -2.0, -3.0  # numbers of buckets that no ruler has


def fetch(lazy: Any) -> dict[str, NDArray[Any]]:  # noqa: ANN401 - a lazy narwhals frame
    """Return the columns that a query gives."""
    if lazy.implementation.is_duckdb():
        return {name: unmask(column) for name, column in lazy.to_native().fetchnumpy().items()}
    found = collect(lazy, **({"engine": "streaming"} if lazy.implementation.is_polars() else {}))
    cells = {name: one.to_numpy() if one.dtype.is_numeric() else one.to_list() for name, one in found.items()}
    return {name: np.array(one, dtype=object if isinstance(one, list) else None) for name, one in cells.items()}


def collect(lazy: Any, **options: str) -> dict[str, Any]:  # noqa: ANN401 - a lazy narwhals frame
    """Return the columns that a query gives, as series of narwhals."""
    backend = None if lazy.implementation.is_polars() else "pyarrow"
    try:
        return dict(lazy.collect(backend, **options).to_dict())
    except Exception as error:  # each engine has its own errors
        what = " ".join(f"{type(error).__name__}: {error}".split())
        msg = f"{lazy.implementation.value} failed: {what:.200}; analyze a copy of the rows, as Parquet"
        raise InvalidArgument(msg) from None


def unmask(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of DuckDB with None, or NaN among numbers, where a cell is missing."""
    if column.dtype.kind == "O":
        return np.array(column.tolist(), dtype=object)  # with None under a mask
    return np.ma.filled(column.astype(np.float64), np.nan) if np.ma.is_masked(column) else np.ma.getdata(column)


def prepare(table: Any, columns: Columns) -> Any:  # noqa: ANN401 - lazy narwhals frames
    """Return arms and groups as text and readings as floats, null where one is missing."""
    schema = table.collect_schema()
    for name in (columns.arm, columns.group):
        if name is not None and schema[name].is_nested():
            raise InvalidArgument(f"column {name!r} must hold names, but its type is {schema[name]}; convert it")
    kind = schema[str(columns.value)]
    if not (kind.is_numeric() or kind == nw.Boolean):
        msg = f"column {columns.value!r} must hold numbers, but its type is {kind}; convert it where the data are"
        raise InvalidArgument(f"{msg}, such as by CAST({columns.value} AS DOUBLE)", "value", columns.value)
    nans = _knows_nan(table)

    def text(name: str) -> Any:  # noqa: ANN401 - a narwhals expression
        cells, known = nw.col(name), nw.col(name).cast(nw.String)
        if schema[name].is_float() and nans:
            return nw.when(~cells.is_nan() & (known != "nan")).then(known)
        return nw.when(cells != "").then(cells) if schema[name] == nw.String else known

    number = nw.col(str(columns.value)).cast(nw.Float64)
    chosen = {"arm": text(str(columns.arm)), "value": number}
    if kind.is_float() and nans:
        chosen["value"] = nw.when(~number.is_nan()).then(number)
    if columns.group is not None:
        chosen["grp"] = text(columns.group)
    return table.select(**chosen)


def _knows_nan(table: Any) -> bool:  # noqa: ANN401 - a narwhals frame
    """Return True if a float of the engine may be NaN: some databases have no NaN."""
    native = table.to_native()
    if not type(native).__module__.startswith("ibis"):
        return True
    return bool(native.get_backend().has_operation(import_module("ibis.expr.operations").IsNan))


def load_rows(rows: Any, columns: Columns, reduction: Reduction, parts: Sequence[Any] = ()) -> Dataset:  # noqa: ANN401
    """Return the readings of more than `MAX_ROWS` prepared rows: one per unit or round, or counts.

    `parts` are the same rows, split so that they share no group: medians of all groups at once need much memory.
    """
    msg = f"order={columns.order!r} needs rows one by one, and there are more than {MAX_ROWS:,}; remove order"
    refuse(columns.order is not None, msg, "order", columns.order)
    named = {"arm": columns.arm, **({} if columns.group is None else {"grp": columns.group})}
    holes = {f"no_{name}": nw.when(nw.col(name).is_null()).then(1).otherwise(0) for name in named}
    arms = rows.with_columns(**holes).group_by("arm").agg(*(nw.col(name).sum() for name in holes))
    found = fetch(arms.head(MAX_ARMS + 1))
    for name, column in named.items():
        empty = int(found[f"no_{name}"].sum())
        refuse(empty, f"{empty:,} rows of column {column!r} are empty; fill them, or remove such rows")
    check_number_of_arms(found["arm"].size, columns.arm)
    if columns.group is not None:
        return _reduce_groups(rows, columns, reduction, parts or [rows])
    return Dataset({}, notes=similar_names(sorted(found["arm"].tolist())), counter=Counter(rows))


def _reduce_groups(rows: Any, columns: Columns, reduction: Reduction, parts: Sequence[Any]) -> Dataset:  # noqa: ANN401
    """Return one reading per arm and unit or round, made by the engine."""
    kind, name = columns.group_kind, str(columns.group)
    pairs = rows.group_by("arm", "grp").agg(rows=nw.len())
    counts = fetch(pairs.group_by("arm").agg(n=nw.col("rows").sum(), units=nw.len()))
    arms, by_arm = counts["arm"].tolist(), np.argsort(counts["arm"])
    total = int(counts["units"].sum())
    shared = pairs.group_by("grp").agg(arms=nw.len()).filter(nw.col("arms") > 1).select(n=nw.len())
    n, units = ({arms[i]: int(counts[key][i]) for i in by_arm} for key in ("n", "units"))
    known = Units(name, n, units, int(fetch(shared)["n"][0]))
    check_several(known, kind)
    if total > MAX_GROUPS:
        msg = f"{kind}={name!r} has {total:,} {kind}s, and {MAX_GROUPS:,} can be compared one by one"
        refuse(columns.round is not None, msg, kind, name)
        counter = Counter(_one_per_group(rows, reduction).select("arm", "value"))
        return Dataset({}, units=known, notes=similar_names(arms), counter=counter)
    wanted = ["arm", "value", *(["grp"] if columns.round is not None else [])]
    fetched = [fetch(_one_per_group(part, reduction).select(*wanted)) for part in parts]
    found = {name: np.concatenate([part[name] for part in fetched]) for name in wanted}
    values = found["value"].astype(np.float64)
    places = {arm: place for place, arm in enumerate(known.rows)}
    codes = np.fromiter(map(places.__getitem__, found["arm"]), dtype=np.intp, count=values.size)
    groups = np.unique(found["grp"], return_inverse=True)[1] if columns.round is not None else None
    along = np.lexsort((values if groups is None else groups, codes))  # an engine returns groups in any order
    groups = None if groups is None else groups[along]
    data = assemble((list(places), codes[along]), values[along], columns, Reduction(), groups=groups)
    return data._replace(units=known)


def _one_per_group(rows: Any, reduction: Reduction) -> Any:  # noqa: ANN401 - lazy narwhals frames
    """Return the median reading of each arm and group, missing where a missing reading could change it.

    For a share, a group succeeds if at least half of its readings do, and its reading is then the limit itself
    (extensions 1.8, 2).
    """
    value, known = nw.col("value"), nw.col("known")
    parts = {"low": value.median(), "high": value.median()}
    if rows.implementation.is_polars():  # its median of two may be rounded twice
        parts = {"low": value.quantile(0.5, "lower"), "high": value.quantile(0.5, "higher")}
    limit, upper = reduction.limit or 0.0, reduction.middle == "upper"
    flags = {"won": value >= limit if upper else value <= limit, "over": value == math.inf}
    flags["under"] = value == -math.inf
    groups = (
        rows.with_columns(**{name: nw.when(flag).then(1).otherwise(0) for name, flag in flags.items()})
        .group_by("arm", "grp")
        .agg(rows=nw.len(), known=value.count(), **parts, **{name: nw.col(name).sum() for name in flags})
    )
    if reduction.limit is not None:
        won, total = nw.col("won"), nw.col("rows")
        failure = float(np.nextafter(limit, -np.inf if upper else np.inf))
        lost = nw.when(2 * (won + total - known) < total).then(nw.lit(failure))
        return groups.with_columns(value=nw.when(2 * won >= total).then(nw.lit(limit)).otherwise(lost))
    low, high, over, under = (nw.col(name) for name in ("low", "high", "over", "under"))
    middle = nw.when(low == high).then(low).otherwise(low / 2 + high / 2)
    unclear = (known < nw.col("rows")) | ((over == under) & (over + under == known) & (over > 0))
    for end, number in ((math.inf, over), (-math.inf, under)):  # between a value and infinity (evidence T8)
        unclear = unclear | ((nw.col("value") == end) & (2 * number <= known))
    found = groups.with_columns(value=middle)
    return found.with_columns(value=nw.when(~unclear).then(nw.col("value")))


class Counter:
    """Readings that an engine counts: a table of counts, and a way to count some of its buckets again."""

    def __init__(self, rows: Any) -> None:  # noqa: ANN401 - a lazy narwhals frame with the columns arm and value
        self._rows, self._passes = rows, 0
        head = fetch(rows.head(HEAD_ROWS))
        values = head["value"].astype(np.float64) + 0.0
        finite = np.isfinite(values)
        values, arms = values[finite], np.unique(head["arm"][finite].astype(str), return_inverse=True)[1]
        ruler = Ruler((Zone(0.0, 1.0, 1),))
        if values.size:
            parts = max(256, min(_PARTS, _TABLE_CELLS // max(1, arms.max() + 1)))
            ruler = Ruler.of(values, 1 / np.bincount(arms)[arms], parts)
        x, number = nw.col("value"), nw.lit(float(ruler.last))
        number = nw.when(x < ruler.zones[0].low).then(nw.lit(0.0)).otherwise(number)
        number = nw.when(x == math.inf).then(nw.lit(_HIGHEST)).otherwise(number)
        number = nw.when(x == -math.inf).then(nw.lit(_LOWEST)).otherwise(number)
        number = nw.when(x.is_null()).then(nw.lit(_MISSING)).otherwise(number)
        self.counts = self._count(rows.with_columns(bucket=_number(ruler, number)))

    def refine(self, needed: set[int], wanted: set[int]) -> bool:
        """Count some buckets again, in finer ones or value by value; return False if there is nothing to do.

        Needed buckets always cause another pass; wanted ones are only added to the first passes.
        """
        lows, highs = self.counts.hull()
        held = np.sum([column.counts for column in self.counts.columns.values()], axis=0)
        chosen = needed | wanted if self._passes < _MAX_PASSES else needed
        split = [b for b in chosen if lows[b] < highs[b]]
        split = sorted(sorted(split, key=lambda b: -int(held[b]))[:_MAX_ZONES])
        if not split:
            return False
        stretches = [(float(lows[b]), float(highs[b])) for b in split]
        room = _TABLE_CELLS // len(self.counts.columns)
        is_many = int(held[split].sum()) > room
        parts = max(2, min(_PARTS, room) // len(stretches)) if is_many else 1
        ruler = Ruler(tuple(zone for low, high in stretches for zone in zones_between(low, high, parts)))
        rows = self._rows.with_columns(bucket=_number(ruler, nw.lit(None))).filter(~nw.col("bucket").is_null())
        rows = rows if is_many else rows.with_columns(bucket=nw.col("value"))
        table = self.counts.refine(split, self._count(rows))
        refuse(table.n != self.counts.n, "the data changed while they were counted; analyze a copy of them")
        self.counts = table
        return True

    def _count(self, rows: Any) -> Counts:  # noqa: ANN401 - a lazy narwhals frame
        """Return the count, the lowest and the highest reading of each arm in each numbered bucket."""
        self._passes += 1
        value = nw.col("value")
        found = fetch(rows.group_by("arm", "bucket").agg(n=nw.len(), low=value.min(), high=value.max()))
        lows, highs = (found[name].astype(np.float64) + 0.0 for name in ("low", "high"))
        numbers, places = np.unique(found["bucket"], return_inverse=True)
        edges = np.full(numbers.size, np.inf)
        np.fmin.at(edges, places, lows)  # no reading is between the buckets (extensions 4.5)
        sizes, is_missing, lumps = found["n"].astype(np.int64), np.isnan(lows), {}
        names, codes = np.unique(found["arm"], return_inverse=True)
        for i, name in enumerate(names.tolist()):
            here = (codes == i) & ~is_missing
            lumps[name] = lows[here], highs[here], sizes[here], int(sizes[(codes == i) & is_missing].sum())
        return Counts.from_lumps(edges, lumps, Made(str(rows.implementation.value)))


def _number(ruler: Ruler, otherwise: Any) -> Any:  # noqa: ANN401 - narwhals expressions
    """Return the number of the bucket of a reading; its zone is found by bisection."""
    x, zones, bases = nw.col("value"), ruler.zones, ruler.bases

    def number(first: int, end: int) -> Any:  # noqa: ANN401 - a narwhals expression
        if end - first > 1:
            middle = (first + end) // 2
            return nw.when(x < zones[middle].low).then(number(first, middle)).otherwise(number(middle, end))
        zone, base = zones[first], bases[first]
        part = ((x - zone.low) * zone.scale).floor() + float(base)
        return nw.when((x >= zone.low) & (x < zone.high)).then(part).otherwise(otherwise)

    return number(0, len(zones))
