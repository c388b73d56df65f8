"""Readings counted by the engine that has them: DuckDB, Polars, PySpark or Ibis, through narwhals.

The engine returns how many readings of each arm are in each bucket, the lowest and the highest. A first pass
counts in buckets that a head of the data suggests; further passes count again, or fetch, what is in the few
buckets on which a decision or a figure depends (extensions 4).
"""

import math
from collections.abc import Sequence
from functools import reduce
from importlib import import_module
from operator import or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.data.columns import (
    MAX_ARMS,
    Columns,
    Dataset,
    Floats,
    Rows,
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
_HEAD_ROWS = 1 << 18  # first rows, which show where readings are dense
_SAMPLED_ROWS = 1 << 16  # of them
_PARTS = 1 << 12  # buckets of a zone: of smooth laws each holds less than a thousandth of the readings
_TABLE_CELLS = 1 << 20  # arms times buckets of a table: 24 bytes each
_FETCHED_ROWS = 1 << 21  # readings fetched at once: some 100 MB
_FINER_PARTS = 256  # buckets that one bucket is cut into once its readings are fetched
_MAX_PASSES = 3  # over the data for figures beside the decision; the decision takes as many as it needs
_MAX_STRETCHES = 16  # stretches of readings that one query compares with
_MAX_ZONES = 64  # buckets that one query counts in finer ones
_MISSING, _LOWEST, _HIGHEST, _ELSEWHERE = -1.0, -2.0, -3.0, -4.0  # numbers of buckets that no ruler has


def fetch(lazy: Any) -> dict[str, NDArray[Any]]:  # noqa: ANN401 - a lazy narwhals frame
    """Return the columns that a query gives."""
    if lazy.implementation.is_duckdb():
        found = lazy.to_native().fetchnumpy()
        return {name: unmask(column) for name, column in found.items()}
    try:
        frame = lazy.collect(engine="streaming") if lazy.implementation.is_polars() else lazy.collect("pyarrow")
    except Exception as error:  # each engine has its own errors
        what = " ".join(f"{type(error).__name__}: {error}".split())
        msg = f"{lazy.implementation.value} does not answer: {what:.200}; analyze a copy of the rows, as Parquet"
        raise InvalidArgument(msg) from None
    return {name: _column(frame[name]) for name in frame.columns}


def unmask(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of DuckDB with None, or NaN among numbers, where a cell is missing."""
    if column.dtype.kind == "O":
        return np.array(column.tolist(), dtype=object)  # with None under a mask
    return np.ma.filled(column.astype(np.float64), np.nan) if np.ma.is_masked(column) else np.ma.getdata(column)


def _column(series: Any) -> NDArray[Any]:  # noqa: ANN401 - a narwhals series
    return np.asarray(series.to_numpy()) if series.dtype.is_numeric() else np.array(series.to_list(), dtype=object)


def prepare(table: Any, columns: Columns) -> Any:  # noqa: ANN401 - lazy narwhals frames
    """Return arms and groups as text and readings as floats, null where one is missing."""
    import narwhals as nw

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
    if columns.order not in (None, "rows"):
        chosen["ord"] = nw.col(str(columns.order))
    return table.select(**chosen)


def _knows_nan(table: Any) -> bool:  # noqa: ANN401 - a narwhals frame
    """Return True if a float of the engine may be NaN: some databases have no NaN."""
    native = table.to_native()
    if not type(native).__module__.startswith("ibis"):
        return True
    return bool(native.get_backend().has_operation(import_module("ibis.expr.operations").IsNan))


def load_rows(rows: Any, columns: Columns, reduction: Reduction, parts: Sequence[Any] = ()) -> Dataset:  # noqa: ANN401
    """Return the readings of more than `MAX_ROWS` rows: one per unit or round, or counts.

    Parameters
    ----------
    rows
        A lazy narwhals frame with the columns arm and value, and grp and ord if there are a group and an order.
    parts
        The same rows in parts that share no group: medians of all groups at once take much memory.
    """
    import narwhals as nw

    msg = f"order={columns.order!r} needs rows one by one, and there are more than {MAX_ROWS:,}; remove order"
    refuse(columns.order is not None and columns.group is None, msg, "order", columns.order)
    named = {"arm": columns.arm, "grp": columns.group, "ord": columns.order}
    named = {name: column for name, column in named.items() if name in rows.collect_schema().names()}
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
    import narwhals as nw

    kind, name = columns.group_kind, str(columns.group)
    pairs = rows.group_by("arm", "grp").agg(rows=nw.len())
    counts = fetch(pairs.group_by("arm").agg(n=nw.col("rows").sum(), units=nw.len()))
    arms, by_arm = counts["arm"].tolist(), np.argsort(counts["arm"])
    total = int(counts["units"].sum())
    shared = pairs.group_by("grp").agg(arms=nw.len()).filter(nw.col("arms") > 1).select(n=nw.len())
    known = Units(
        name,
        {arms[i]: int(counts["n"][i]) for i in by_arm},
        {arms[i]: int(counts["units"][i]) for i in by_arm},
        int(fetch(shared)["n"][0]),
    )
    check_several(known, kind)
    ordered = "ord" in rows.collect_schema().names()
    if total > MAX_GROUPS:
        msg = f"{kind}={name!r} has {total:,} {kind}s, and {MAX_GROUPS:,} can be compared one by one"
        refuse(columns.round is not None or ordered, msg, kind, name)
        units = _one_per_group(rows, reduction).select("arm", "value")
        return Dataset({}, units=known, notes=similar_names(arms), counter=Counter(units))
    wanted = ["arm", "value", *(["grp"] if columns.round is not None else []), *(["ord"] if ordered else [])]
    fetched = [fetch(_one_per_group(part, reduction).select(*wanted)) for part in parts]
    found = {name: np.concatenate([part[name] for part in fetched]) for name in wanted}
    values = found["value"].astype(np.float64)
    if columns.round is None:  # an engine returns groups in any order
        along = np.lexsort((values, found["ord"])) if ordered else np.argsort(values)
        places = {arm: along[found["arm"][along] == arm] for arm in sorted(arms)}
        tapes = {arm: values[place] for arm, place in places.items()}
        return Dataset(tapes, columns.order is not None, known, notes=similar_names(tapes))
    along = np.lexsort((found["grp"], found["arm"]))
    names, codes = np.unique(found["arm"][along], return_inverse=True)
    groups = np.unique(found["grp"][along], return_inverse=True)[1]
    single = Rows(names.tolist(), codes, values[along], groups)
    return assemble(single, columns, Reduction())._replace(units=known)


def _one_per_group(rows: Any, reduction: Reduction) -> Any:  # noqa: ANN401 - lazy narwhals frames
    """Return the median reading of each arm and group, missing where a missing reading could change it.

    For a share, a group succeeds if at least half of its readings do, and its reading is then the limit itself
    (extensions 1.8, 2).
    """
    import narwhals as nw

    value, known = nw.col("value"), nw.col("known")
    parts = {"low": value.median(), "high": value.median()}
    if rows.implementation.is_polars():  # its median of two may be rounded twice
        parts = {"low": value.quantile(0.5, "lower"), "high": value.quantile(0.5, "higher")}
    limit, upper = reduction.limit or 0.0, reduction.middle == "upper"
    order = [nw.col("ord").min().alias("ord")] if "ord" in rows.collect_schema().names() else []
    flags = {"won": value >= limit if upper else value <= limit, "over": value == math.inf}
    flags["under"] = value == -math.inf
    groups = (
        rows.with_columns(**{name: nw.when(flag).then(1).otherwise(0) for name, flag in flags.items()})
        .group_by("arm", "grp")
        .agg(*order, rows=nw.len(), known=value.count(), **parts, **{name: nw.col(name).sum() for name in flags})
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


class _Lumps(NamedTuple):
    """What a query counted, one row per arm and bucket, or single readings."""

    arms: NDArray[Any]
    counts: NDArray[np.int64]
    lows: Floats
    """NaN for missing readings."""
    highs: Floats

    def pick(self, which: NDArray[Any] | slice) -> "_Lumps":
        return _Lumps(self.arms[which], self.counts[which], self.lows[which], self.highs[which])

    def table(self, edges: Floats, made: Made) -> Counts:
        """Return the counts at these edges."""
        found = {}
        for name in sorted(set(self.arms.tolist())):
            mine = self.pick(self.arms == name)
            missing = np.isnan(mine.lows)
            part = mine.pick(~missing)
            found[name] = (part.lows, part.highs, part.counts, int(mine.counts[missing].sum()))
        return Counts.from_lumps(edges, found, made)


class Counter:
    """Readings that an engine counts: a table of counts, and a way to count some of its buckets again.

    Parameters
    ----------
    rows
        A lazy narwhals frame with the columns arm and value.
    """

    keep: object = None
    """What must not be closed while rows are read."""

    def __init__(self, rows: Any) -> None:  # noqa: ANN401 - a lazy narwhals frame
        import narwhals as nw

        self._rows, self._passes = rows, 0
        self._made = Made(str(rows.implementation.value))
        self._fetched: list[tuple[float, float, _Lumps]] = []
        head = fetch(rows.head(_HEAD_ROWS))
        every = max(1, head["value"].size // _SAMPLED_ROWS)
        values, names = head["value"][::every].astype(np.float64) + 0.0, head["arm"][::every]
        finite = np.isfinite(values)
        values, arms = values[finite], np.unique(names[finite].astype(str), return_inverse=True)[1]
        ruler = Ruler((Zone(0.0, 1.0, 1),))
        if values.size:
            parts = max(256, min(_PARTS, _TABLE_CELLS // max(1, arms.max() + 1)))
            ruler = Ruler.of(values, 1 / np.bincount(arms)[arms], parts)
        x, number = nw.col("value"), nw.lit(float(ruler.last))
        number = nw.when(x < ruler.zones[0].low).then(nw.lit(0.0)).otherwise(number)
        number = nw.when(x == math.inf).then(nw.lit(_HIGHEST)).otherwise(number)
        number = nw.when(x == -math.inf).then(nw.lit(_LOWEST)).otherwise(number)
        number = nw.when(x.is_null()).then(nw.lit(_MISSING)).otherwise(number)
        edges, found = self._count(rows, _number(ruler, number, values))
        self.counts = found.table(edges, self._made)

    def refine(self, needed: set[int], wanted: set[int]) -> bool:
        """Count some buckets again, in finer ones or value by value; return False if there is nothing to do.

        Parameters
        ----------
        needed
            Buckets for which another pass is made if it must be.
        wanted
            Buckets that come along, if readings were not fetched before.
        """
        lows, highs = self.counts.hull()
        split = [b for b in sorted(needed | wanted) if lows[b] < highs[b]]
        here = [b for b in split if self._find(lows[b], highs[b]) is not None]
        if here:
            self._cut(here)
            return True
        first = self._passes < _MAX_PASSES and not self._fetched
        sought = split if first else [b for b in split if b in needed]
        if sought:
            self._ask(sought)
        return bool(sought)

    def _count(self, rows: Any, number: Any) -> tuple[Floats, _Lumps]:  # noqa: ANN401 - narwhals frame, expression
        """Return where buckets begin, and of each arm the count, lowest and highest reading of each."""
        import narwhals as nw

        self._passes += 1
        value = nw.col("value")
        buckets = rows.with_columns(bucket=number).group_by("arm", "bucket")
        found = fetch(buckets.agg(n=nw.len(), low=value.min(), high=value.max()))
        kept = found["bucket"] > _ELSEWHERE
        lows, highs = (found[name][kept].astype(np.float64) + 0.0 for name in ("low", "high"))
        numbers, places = np.unique(found["bucket"][kept], return_inverse=True)
        edges = np.full(numbers.size, np.inf)
        np.fmin.at(edges, places, lows)  # no reading is between the buckets (extensions 4.5)
        return edges, _Lumps(found["arm"][kept], found["n"][kept].astype(np.int64), lows, highs)

    def _find(self, low: float, high: float) -> _Lumps | None:
        """Return the readings of a stretch that were fetched, None if they were not."""
        for first, last, lumps in self._fetched:
            if first <= low and high <= last:
                ends = lumps.lows.searchsorted(low), lumps.lows.searchsorted(high, "right")
                return lumps.pick(slice(*ends))
        return None

    def _cut(self, buckets: Sequence[int]) -> None:
        """Cut buckets whose readings were fetched into finer ones, down to single values."""
        edges, parts = [], []
        for low, high in np.stack(self.counts.hull())[:, list(buckets)].T.tolist():
            lumps = self._find(low, high)
            assert lumps is not None
            values = np.unique(lumps.lows)
            edges.append(values[:: max(1, -(-values.size // _FINER_PARTS))])
            parts.append(lumps)
        self._replace(buckets, np.concatenate(edges), _Lumps(*map(np.concatenate, zip(*parts, strict=True))))

    def _replace(self, buckets: Sequence[int], edges: Floats, lumps: _Lumps) -> None:
        table = self.counts.refine(buckets, edges, lumps.table(edges, self._made))
        refuse(table.n != self.counts.n, "the data changed while they were counted; analyze a copy of them")
        self.counts = table

    def _ask(self, split: Sequence[int]) -> None:
        """Fetch the readings of some buckets if they are few enough, else count them in finer buckets."""
        import narwhals as nw

        lows, highs = self.counts.hull()
        held = np.sum([column.counts for column in self.counts.columns.values()], axis=0)
        runs = _runs(split)
        if int(held[np.concatenate(runs)].sum()) > _FETCHED_ROWS:
            self._count_finer(sorted(sorted(split, key=lambda b: -int(held[b]))[:_MAX_ZONES]))
            return
        self._passes += 1
        stretches = [(float(lows[run].min()), float(highs[run].max())) for run in runs]
        found = fetch(self._rows.filter(_inside(stretches)).select("arm", low=nw.col("value")))
        along = np.argsort(found["low"])
        values = found["low"][along].astype(np.float64) + 0.0
        lumps = _Lumps(found["arm"][along], np.ones(values.size, dtype=np.int64), values, values)
        for low, high in stretches:
            ends = values.searchsorted(low), values.searchsorted(high, "right")
            self._fetched.append((low, high, lumps.pick(slice(*ends))))
        self._cut(np.concatenate(runs).tolist())

    def _count_finer(self, buckets: Sequence[int]) -> None:
        """Count the readings of some buckets in finer ones."""
        import narwhals as nw

        stretches = [(float(low), float(high)) for low, high in np.stack(self.counts.hull())[:, list(buckets)].T]
        parts = max(2, min(_PARTS, _TABLE_CELLS // len(self.counts.columns)) // len(stretches))
        ruler = Ruler(tuple(zone for low, high in stretches for zone in zones_between(low, high, parts)))
        rows = self._rows.filter(_inside(stretches))
        self._replace(buckets, *self._count(rows, _number(ruler, nw.lit(_ELSEWHERE), np.empty(0))))


def _number(ruler: Ruler, otherwise: Any, values: Floats) -> Any:  # noqa: ANN401 - narwhals expressions
    """Return the number of the bucket of a reading; the zone with most of these values is asked first."""
    import narwhals as nw

    x, found = nw.col("value"), otherwise
    zones = zip(ruler.zones, ruler.bases, strict=True)
    for zone, base in sorted(
        zones, key=lambda it: np.count_nonzero((values >= it[0].low) & (values < it[0].high))
    ):
        part = ((x - zone.low) * zone.scale).floor() + float(base)
        found = nw.when((x >= zone.low) & (x < zone.high)).then(part).otherwise(found)
    return found


def _inside(stretches: Sequence[tuple[float, float]]) -> Any:  # noqa: ANN401 - a narwhals expression
    import narwhals as nw

    return reduce(or_, ((nw.col("value") >= low) & (nw.col("value") <= high) for low, high in stretches))


def _runs(buckets: Sequence[int]) -> list[NDArray[np.intp]]:
    """Return buckets as a few runs of neighbors, the nearest joined where there are more."""
    places = np.array(buckets, dtype=np.intp)
    gaps = np.diff(places)
    least = int(np.sort(gaps)[-_MAX_STRETCHES + 1]) if gaps.size >= _MAX_STRETCHES else 1
    return [np.arange(run[0], run[-1] + 1) for run in np.split(places, np.flatnonzero(gaps > least) + 1)]
