"""Readings counted where they are: a table of counts that knows how to count again.

An engine is asked for one thing: how many readings of each arm are in each bucket, the lowest and the highest.
A first pass counts in buckets that a head of the data suggests; further passes count again, or fetch, what is in
the few buckets on which a decision or a figure depends. Nothing is decided here.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument
from truearm.evidence.counts import Counts, Made
from truearm.evidence.ruler import Ruler, Zone, zones_between
from truearm.evidence.units import Reduction, Units
from truearm.report.numbers import plural as amount_of
from truearm.world import frames, periods
from truearm.world.by_arm import Floats
from truearm.world.engines import (
    ELSEWHERE,
    Limits,
    blank,
    collected,
    in_buckets,
    knows_nan,
    numbered,
    one_per_unit,
    part_of,
    query_text,
    renamed,
)
from truearm.world.roles import Roles, check_number_of_arms
from truearm.world.tapes import MOST_SUSPECTED, Collected, check_several

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
    """Data that are counted where they are: a table of counts that knows how to count again."""

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
        dropped: int = 0,
    ) -> None:
        self.roles, self.how, self.explain, self.dropped = roles, how, explain, dropped
        self.queries: list[str] = []
        self.passes = 0
        self.engine = str(table.implementation.value)
        self.units: Units | None = None
        self._fetched: list[tuple[float, float, _Lumps]] = []
        self._limits, self._nans = limits, knows_nan(table)
        self._rows = self._prepared(renamed(table, roles))
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
        return Collected({}, units=self.units, suspects=self.suspects, dropped=self.dropped, counts=self.counts)

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
            rows = one_per_unit(rows, self._limits)
        if period is None:
            return rows.select("arm", "value")
        return rows.select("arm", "value", period=period)

    def _cuts(self, rows: Any) -> Mapping[str, Sequence[Any]]:  # noqa: ANN401 - a narwhals frame
        """Return where periods of each arm begin, or raise if the place of a row in the order is unknown."""
        import narwhals as nw

        empty = self._run(rows.filter(blank(rows, "order")).select(n=nw.len()))["n"].to_list()[0]
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
        unnamed = nw.when(blank(rows, "unit")).then(nw.col("rows")).otherwise(0)
        counts = pairs.with_columns(unnamed=unnamed).group_by("arm")
        known = self._run(counts.agg(rows=nw.col("rows").sum(), units=nw.len(), unnamed=nw.col("unnamed").sum()))
        if empty := sum(known["unnamed"].to_list()):
            msg = (
                f"{amount_of(int(empty), 'row')} of column {self.roles.unit!r} name{'s' * (empty == 1)} no "
                f"unit; give a name, or leave such rows out"
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
        text = query_text(lazy)
        self.queries.append(text)
        if self.explain:
            sys.stderr.write(
                f"-- query {len(self.queries)}, {self.engine}\n{text}\n\n"
            )  # beside what --json prints
        return collected(lazy)

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
        others = numbered(ruler, [i for i in zones if i != main], nans=self._nans)
        number = nw.when(inside).then(part_of(zone, ruler.bases[main])).otherwise(others)
        keys = ["arm", "period"] if self.roles.order is not None else ["arm"]
        found = _Lumps.of(self._run(in_buckets(self._rows, number, keys)))
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
            say = "leave such rows out with drop_unnamed=True"
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
        x, number = nw.col("value"), nw.lit(float(ELSEWHERE))
        for zone, base in zip(reversed(ruler.zones), reversed(ruler.bases), strict=True):
            number = nw.when((x >= zone.low) & (x < zone.high)).then(part_of(zone, base)).otherwise(number)
        rows = self._rows.filter(reduce(or_, self._chosen(stretches)))
        found = self._run(in_buckets(rows, number, ["arm"]).filter(nw.col("bucket") >= 0))
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
