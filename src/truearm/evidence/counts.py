"""Readings counted, not kept: how many of each arm are in each bucket, and the lowest and highest of them.

Counts of shards, days and machines add, and nothing about them is random. A bucket begins at an edge and ends
before the next one; minus and plus infinity have buckets of their own, and missing readings are counted apart. Any
edges are valid, also such as are chosen from the readings, because what is said of an order of arms holds at all
cuts at once (extensions 4.1).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.errors import InvalidArgument
from truearm.evidence.ruler import Ruler, Zone
from truearm.evidence.sample import Buckets, Sample, as_readings
from truearm.evidence.shifts import is_success, orient, start_sample
from truearm.problem import Problem, check_count

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

VERSION = 1
ROOM = (
    1 << 14
)  # buckets of a table that chooses its edges itself: after it is half as many, each 1/8,192 of the readings
_LEAST_ROOM = 16  # below, the edges that every table has leave none for readings
_COARSE = 1 / 64  # of an arm's readings: smooth ones have less than a thousandth in a bucket
_MOST = 1 << 53  # readings of an arm: so far counts are exact as numbers of any kind
_MOST_PARTS = 1 << 20  # of a ruler that somebody wrote: its edges are made one by one
_LOWEST = -np.finfo(np.float64).max
_ENDS = np.array([-np.inf, _LOWEST, np.inf])
"""Edges that every table has: between the first two is minus infinity alone, from the last on plus infinity."""


@dataclass(frozen=True, slots=True)
class Made:
    """By what a table was counted."""

    engine: str
    queries: tuple[str, ...] = ()


HERE = Made("truearm")
"""Readings that were at hand."""


class Column(NamedTuple):
    """One arm's counts, bucket by bucket; where there are none, `lows` is inf and `highs` -inf."""

    counts: Ints
    lows: Floats
    highs: Floats
    missing: int = 0

    @classmethod
    def empty(cls, size: int) -> "Column":
        """Return the column of an arm without readings."""
        return cls(np.zeros(size, dtype=np.int64), np.full(size, np.inf), np.full(size, -np.inf))

    def moved(self, places: NDArray[np.intp], size: int) -> "Column":
        """Return the column with each bucket added to a place among so many."""
        new = Column.empty(size)
        np.add.at(new.counts, places, self.counts)
        np.minimum.at(new.lows, places, self.lows)
        np.maximum.at(new.highs, places, self.highs)
        return new._replace(missing=self.missing)

    def plus(self, other: "Column") -> "Column":
        """Return both together."""
        return Column(
            self.counts + other.counts,
            np.minimum(self.lows, other.lows),
            np.maximum(self.highs, other.highs),
            self.missing + other.missing,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """One arm of a table of counts, as what stands for its readings wherever these are asked for."""

    column: Column
    asked: set[int] | None = None
    """Where to note the buckets that should be looked at more closely; None if nobody can."""

    def __len__(self) -> int:
        return int(self.column.counts.sum()) + self.column.missing

    @property
    def size(self) -> int:
        """How many readings there are, missing ones among them."""
        return len(self)

    def marks(self) -> Iterable[bytes]:
        """Return what a fingerprint of these readings is made from."""
        full = np.flatnonzero(self.column.counts)
        yield b"counts"
        yield self.column.missing.to_bytes(8, "little")
        for part in (self.column.lows, self.column.highs):
            yield (part[full] + 0.0).astype("<f8").tobytes()  # no minus zero
        yield self.column.counts[full].astype("<i8").tobytes()

    def sample(self, problem: Problem, arm: str) -> Sample:
        """Return the sample that a problem judges this arm by: bigger is better."""
        if problem.rounds:
            msg = "a table of counts does not say which readings were taken side by side; give the readings"
            raise InvalidArgument(msg)
        counts, lows, highs, missing = self.column
        full = np.flatnonzero(counts)
        if problem.target == "share":
            return self._successes(lows[full], highs[full], counts[full], problem)
        lows, highs, sizes = orient(lows[full], problem, arm), orient(highs[full], problem, arm), counts[full]
        if problem.sign < 0:
            lows, highs, sizes, full = highs[::-1], lows[::-1], sizes[::-1], full[::-1]
        outside, plausible = 0, start_sample(problem, arm).plausible
        if plausible is not None:  # extensions E2
            low, high = (
                ((ends >= plausible.low) & (ends <= plausible.high)) | (ends == -np.inf) for ends in (lows, highs)
            )
            split = (low != high) | ((lows < plausible.low) & (highs > plausible.high))
            self._settle(lows, highs, full, split, "between")
            inside = low & high
            outside = int(sizes[~inside].sum())
            lows, highs, sizes, full = lows[inside], highs[inside], sizes[inside], full[inside]
        buckets = Buckets(highs, np.cumsum(sizes).astype(np.intp), full, self.asked)
        return Sample(lows, missing, outside=outside, plausible=plausible, buckets=buckets)

    def _successes(self, lows: Floats, highs: Floats, sizes: Ints, problem: Problem) -> Sample:
        """Return the counts of failures and successes (extensions 1.1)."""
        low, high = (is_success(ends, problem) for ends in (lows, highs))
        full = np.flatnonzero(self.column.counts)
        self._settle(lows, highs, full, low != high, "at_least" if problem.at_least is not None else "at_most")
        won, total, values = int(sizes[low & high].sum()), int(sizes.sum()), np.array([0.0, 1.0])
        buckets = Buckets(values, np.array([total - won, total]), np.empty(0, dtype=np.intp))
        return Sample(values, self.column.missing, buckets=buckets)

    def _settle(
        self, lows: Floats, highs: Floats, numbers: NDArray[np.intp], split: NDArray[np.bool_], name: str
    ) -> None:
        """Note buckets that a limit splits; raise if they cannot be counted more finely."""
        if self.asked is None and split.any():
            place = int(np.argmax(split))
            msg = (
                f"{name} splits the bucket of readings from {lows[place]:.6g} to {highs[place]:.6g}, and "
                "a table cannot tell how many are on either side; count again with an edge there"
            )
            raise InvalidArgument(msg)
        if self.asked is not None:
            self.asked.update(numbers[split & (lows < highs)].tolist())


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """A table of counts: arms by buckets.

    Parameters
    ----------
    edges
        Where buckets begin, rising; the first is minus infinity.
    columns
        What was counted, by arm.
    room
        How many buckets there may be; None if edges are fixed.
    made
        By what it was counted.
    periods
        The same readings by when they came, each arm's in order and about equally many in each, if that is known.
        Tables add period by period: a sum shows drift inside shards, and between them only by chance.
    ruler
        What put readings into buckets, if an engine did: another one counts with it at the same edges.

    Examples
    --------
    >>> monday = Counts.of({"A": [1.0, 2.0], "B": [2.0]})
    >>> week = monday + Counts.of({"A": [5.0], "B": [2.0, float("nan")]})
    >>> week.n, Counts.from_dict(week.to_dict()).digest == week.digest
    ({'A': 3, 'B': 3}, True)
    """

    edges: Floats = field(default_factory=lambda: _ENDS)
    columns: Mapping[str, Column] = field(default_factory=dict)
    room: int | None = ROOM
    made: Made = HERE
    periods: "tuple[Counts, ...] | None" = field(default=None, repr=False)
    ruler: Ruler | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.room is not None:
            check_count("room", self.room, _LEAST_ROOM)

    @classmethod
    def of(cls, tapes: Mapping[str, ArrayLike], *, edges: ArrayLike | None = None, room: int = ROOM) -> "Counts":
        """Return the counts of readings by arm.

        Parameters
        ----------
        edges
            Where buckets begin; without them they are chosen from the readings, and refine themselves.
        room
            How many buckets there may be then.
        """
        if edges is None:
            return cls(room=room).add(tapes)
        return cls(edges=_checked_edges(edges), room=None).add(tapes)

    @classmethod
    def from_lumps(
        cls,
        edges: ArrayLike,
        lumps: "Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike, int]]",
        made: Made = HERE,
    ) -> "Counts":
        """Return the table of counts at fixed edges from what was counted elsewhere.

        Parameters
        ----------
        lumps
            Per arm the lowest, the highest and the number of readings of some buckets, and how many are missing.

        Examples
        --------
        >>> Counts.from_lumps([0.0, 5.0], {"A": ([0.5, 6.0], [4.0, 7.0], [10, 2], 1)}).n
        {'A': 13}
        """
        table = _checked_edges(edges)
        columns = {}
        for arm, (lows, highs, counts, missing) in lumps.items():
            missed = check_count(f"missing readings of {arm!r}", missing, 0)
            lump = Column(_whole(counts, arm), as_readings(lows, arm), as_readings(highs, arm), missed)
            places = _place(table, lump.lows)
            _check_lumps(lump, arm, places, places if highs is lows else _place(table, lump.highs))
            columns[arm] = lump.moved(places, table.size)
        return cls(table, _bounded(columns), None, made)

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms."""
        return tuple(self.columns)

    @property
    def n(self) -> dict[str, int]:
        """How many readings each arm has, missing ones among them."""
        return {arm: len(tape) for arm, tape in self.tapes.items()}

    @property
    def tapes(self) -> dict[str, Counted]:
        """What stands for the readings of each arm in an analysis."""
        return {arm: Counted(column) for arm, column in self.columns.items()}

    @property
    def digest(self) -> str:
        """The fingerprint of edges and counts, whoever counted, and in whatever order arms came."""
        mark = hashlib.sha256(f"counts {VERSION}".encode())
        mark.update((self.edges + 0.0).astype("<f8").tobytes())
        for arm in sorted(self.columns):
            for part in (arm.encode(), *Counted(self.columns[arm]).marks()):
                mark.update(len(part).to_bytes(8, "little"))
                mark.update(part)
        for period in self.periods or ():
            mark.update(period.digest.encode())
        return mark.hexdigest()

    def asking(self, asked: set[int]) -> dict[str, Counted]:
        """Return the same as `tapes`, which note what should be looked at more closely."""
        return {arm: Counted(column, asked) for arm, column in self.columns.items()}

    def add(self, tapes: Mapping[str, ArrayLike]) -> "Counts":
        """Return the table with more readings: by arm, as many at a time as there are at hand.

        Where a table chooses its edges itself, a reading outside the readings of every bucket begins a bucket of
        its own, or if there are many, every so many-th does; when there are too many buckets, neighbors are
        joined, so that all hold about equally many. A million at a time costs little more than sorting them.

        Examples
        --------
        >>> stream = Counts()
        >>> for start in range(0, 100_000, 10_000):
        ...     stream = stream.add({"A": np.arange(start, start + 10_000)})
        >>> stream.n, len(stream.edges) <= ROOM
        ({'A': 100000}, True)
        """
        if not isinstance(tapes, Mapping):
            msg = f"readings must be given by arm, such as {{'A': [1.5, 2]}}, but got {type(tapes).__name__}"
            raise InvalidArgument(msg)
        known = {str(arm): np.sort(as_readings(tape, str(arm)) + 0.0) for arm, tape in tapes.items()}
        if len(known) < len(tapes):
            msg = f"arms must have different names, but got {', '.join(map(repr, tapes)):.200}; rename one"
            raise InvalidArgument(msg)
        told = {arm: tape[: tape.searchsorted(np.nan)] for arm, tape in known.items()}  # NaN comes last
        table = self if self.room is None else self._with_edges(list(told.values()))
        columns = dict(table.columns)
        for arm, values in told.items():
            new = _counted(values, table.edges)._replace(missing=known[arm].size - values.size)
            columns[arm] = columns[arm].plus(new) if arm in columns else new
        table = replace(table, columns=_bounded(columns), periods=None)
        return table._joined() if self.room is not None and table.edges.size > self.room else table

    def __add__(self, other: "Counts") -> "Counts":
        """Return the counts of both together, at the edges that no bucket of either reaches across."""
        if not isinstance(other, Counts):
            return NotImplemented
        edges = self.edges
        if not np.array_equal(self.edges, other.edges):
            edges = np.union1d(self.edges, other.edges)
            edges = edges[self._whole_at(edges) & other._whole_at(edges)]
        one, two = self.at_edges(edges).columns, other.at_edges(edges).columns
        none = Column.empty(edges.size)
        columns = {arm: one.get(arm, none).plus(two.get(arm, none)) for arm in dict.fromkeys((*one, *two))}
        room = None if self.room is None or other.room is None else max(self.room, other.room)
        periods = None
        if self.periods is not None and other.periods is not None and len(self.periods) == len(other.periods):
            periods = tuple(mine + theirs for mine, theirs in zip(self.periods, other.periods, strict=True))
        made = self.made if self.made == other.made else Made("several")
        ruler = self.ruler if self.ruler == other.ruler else None
        table = Counts(edges, _bounded(columns), room, made, periods, ruler)
        return table._joined() if room is not None and edges.size > room else table

    def at_edges(self, edges: Floats) -> "Counts":
        """Return the table at edges that no bucket reaches across.

        Examples
        --------
        >>> Counts.of({"A": [1.0, 2.0]}).at_edges(_ENDS).columns["A"].counts.tolist()
        [0, 2, 0]
        """
        if edges is self.edges:
            return self
        columns = {}
        for arm, column in self.columns.items():
            full = np.flatnonzero(column.counts)
            kept = Column(column.counts[full], column.lows[full], column.highs[full], column.missing)
            columns[arm] = kept.moved(_place(edges, kept.lows), edges.size)
        return replace(self, edges=edges, columns=columns)

    def refined(self, buckets: Sequence[int], edges: ArrayLike, finer: "Counts") -> "Counts":
        """Return the table with some of its buckets counted anew, at more edges.

        Parameters
        ----------
        finer
            The counts of these buckets alone, at these edges.

        Examples
        --------
        >>> coarse = Counts.of({"A": [1.0, 1.5, 3.0]}, edges=[0.0, 2.0])
        >>> fine = coarse.refined([2], [1.5], Counts.of({"A": [1.0, 1.5]}, edges=[0.0, 1.5, 2.0]))
        >>> fine.columns["A"].counts.tolist()
        [0, 0, 1, 1, 1, 0]
        """
        left = {}
        for arm, column in self.columns.items():
            counts = column.counts.copy()
            counts[list(buckets)] = 0
            left[arm] = column._replace(
                counts=counts,
                lows=np.where(counts, column.lows, np.inf),
                highs=np.where(counts, column.highs, -np.inf),
            )
        table = _checked_edges(np.union1d(self.edges, edges))
        rest = replace(self, columns=left, periods=None).at_edges(table)
        new = replace(finer, periods=None).at_edges(table)
        columns = {
            arm: rest.columns[arm].plus(new.columns[arm]) if arm in new.columns else rest.columns[arm]
            for arm in left
        }
        return replace(self, edges=table, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; buckets without readings are left out."""
        arms = {}
        for arm, (counts, lows, highs, missing) in self.columns.items():
            full = np.flatnonzero(counts)
            arms[arm] = {
                "bucket": full.tolist(),
                "count": counts[full].tolist(),
                "low": _plain(lows[full]),
                "high": _plain(highs[full]),
                "missing": missing,
            }
        periods = None if self.periods is None else [period.to_dict() for period in self.periods]
        zones = None if self.ruler is None else [[*_plain(np.array(z[:2])), z.parts] for z in self.ruler.zones]
        return {
            "counts": VERSION,
            "edges": _plain(self.edges),
            "arms": arms,
            "room": self.room,
            "made": {"engine": self.made.engine, "queries": list(self.made.queries)},
            "periods": periods,
            "ruler": zones,
            "digest": self.digest,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Counts":
        """Return the table that `to_dict` described; raise if it was changed since."""
        if not isinstance(data, Mapping) or "counts" not in data:
            msg = "this is not a table of counts; give what Counts.to_dict() made"
            raise InvalidArgument(msg)
        if data["counts"] != VERSION:
            msg = (
                f"counts of version {data['counts']!r} are from another truearm; this one reads version {VERSION}"
            )
            raise InvalidArgument(msg)
        try:
            table = cls._read(data)
            changed = table.digest != data.get("digest")
        except InvalidArgument:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            msg = f"this is not a table of counts: {type(error).__name__} {error}"
            raise InvalidArgument(msg) from None
        if changed:
            msg = "the table of counts was changed since it was written: its digest differs"
            raise InvalidArgument(msg)
        return table

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> "Counts":
        """Return what somebody wrote, if `to_dict` writes it so too: other readers sum up what is there."""
        lumps = {}
        for arm, told in data["arms"].items():
            low, high = (np.array(told[end], dtype=np.float64) for end in ("low", "high"))
            lumps[arm] = (low, high, told["count"], told["missing"])
        table = cls.from_lumps(np.array(data["edges"], dtype=np.float64), lumps)
        written = table.to_dict()
        for key in ("edges", "arms"):
            if written[key] != data[key]:
                msg = f"the {key} of the table of counts are not as they were written: each bucket once, rising"
                raise InvalidArgument(msg)
        made = Made(str(data["made"]["engine"]), tuple(map(str, data["made"]["queries"])))
        zones = data.get("ruler")
        ruler = None if zones is None else _ruler(tuple(Zone(float(a), float(b), int(n)) for a, b, n in zones))
        found = replace(table, room=data["room"], made=made, ruler=ruler)
        told = data.get("periods", data.get("halves"))  # there were two of them, under that name
        return replace(found, periods=found._read_periods(told))

    def _read_periods(self, periods: Any) -> "tuple[Counts, ...] | None":  # noqa: ANN401 - whatever the file holds
        """Return the readings of periods that together are those of the table, as far as both tell."""
        if periods is None:
            return None
        if not periods:
            msg = "periods of a table of counts are null, or some; write the table again"
            raise InvalidArgument(msg)
        parts = tuple(Counts.from_dict({**period, "periods": None}) for period in periods)
        total = reduce(add, parts)
        edges = np.union1d(self.edges, total.edges)
        edges = edges[self._whole_at(edges) & total._whole_at(edges)]
        if self.at_edges(edges).digest != total.at_edges(edges).digest:
            msg = "the periods of the table of counts do not add up to it; count again"
            raise InvalidArgument(msg)
        return parts

    def hull(self) -> tuple[Floats, Floats]:
        """Return the lowest and the highest reading of any arm in each bucket."""
        none = Column.empty(self.edges.size)
        lows = np.min([none.lows, *(column.lows for column in self.columns.values())], axis=0)
        highs = np.max([none.highs, *(column.highs for column in self.columns.values())], axis=0)
        return lows, highs

    def _whole_at(self, edges: Floats) -> NDArray[np.bool_]:
        """Tell at which edges no bucket has readings on both sides."""
        lows, highs = self.hull()
        place = _place(self.edges, edges)
        return ~((lows[place] < edges) & (edges <= highs[place]))

    def _with_edges(self, batches: Sequence[Floats]) -> "Counts":
        """Return the table with edges at sorted readings that are outside those of every bucket."""
        values = batches[0] if len(batches) == 1 else np.sort(np.concatenate([[], *batches]), kind="stable")
        lows, highs = self.hull()
        full = np.flatnonzero(lows <= highs)
        starts = np.append(values.searchsorted(lows[full]), values.size)
        after = np.append(0, values.searchsorted(highs[full], "right"))
        new = _begun(values, after, starts - after, self.room or ROOM)
        place = _place(self.edges, new)
        new = new[(new < lows[place]) | (new > highs[place])]  # what is in a bucket cannot be cut afterwards
        if not new.size:
            return self
        return self.at_edges(np.unique(np.concatenate((self.edges, new, lows[full]))))

    def _joined(self) -> "Counts":
        """Return the table with neighbors joined: half of its room, about equally many readings in each."""
        arms = max(1, len(self.columns))
        share = np.zeros(self.edges.size)
        for column in self.columns.values():
            share += column.counts / max(1, int(column.counts.sum())) / arms
        groups = (self.room or ROOM) // 2 - 2 * _ENDS.size
        before = np.floor((np.cumsum(share) - share) * groups)
        large = share * groups > 1  # a value that is so frequent stays by itself
        keep = np.diff(before, prepend=-1) > 0
        keep |= large | np.concatenate(([False], large[:-1])) | np.isin(self.edges, _ENDS)
        return self.at_edges(self.edges[keep])


def _begun(values: Floats, first: NDArray[np.intp], sizes: NDArray[np.intp], room: int) -> Floats:
    """Return where buckets begin among the readings of some stretches: at about as many readings as there is room.

    A value that fills a bucket by itself has one to itself: the next larger one begins another.

    Parameters
    ----------
    first, sizes
        Where stretches of the sorted values begin, and how many values they have.
    """
    ends = np.cumsum(sizes)
    ranks = np.arange(0, int(ends[-1]), 1 + int(ends[-1]) // room)
    stretch = ends.searchsorted(ranks, "right")
    picked = values[(first + sizes - ends)[stretch] + ranks]
    repeated = np.unique(picked[1:][picked[1:] == picked[:-1]])
    beyond = values.searchsorted(repeated, "right")
    return np.concatenate((picked, values[beyond[beyond < values.size]]))


def _checked_edges(edges: ArrayLike) -> Floats:
    """Return edges, rising, with those that every table has."""
    given = as_readings(edges, "edges")
    if np.isnan(given).any():
        msg = "edges must be numbers, but one is NaN; missing readings are counted apart"
        raise InvalidArgument(msg)
    found: Floats = np.union1d(given + 0.0, _ENDS)
    return found


def _whole(counts: ArrayLike, arm: str) -> Ints:
    found = np.asarray(counts)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        msg = f"the counts of arm {arm!r} must be a list of whole numbers, but got {counts!r:.80}"
        raise InvalidArgument(msg)
    return found.astype(np.int64, copy=False)


def _check_lumps(lumps: Column, arm: str, first: NDArray[np.intp], last: NDArray[np.intp]) -> None:
    """Raise if counts that somebody wrote cannot be."""
    counts, lows, highs, _ = lumps
    right = counts.size == lows.size == highs.size and bool(((counts > 0) & (lows <= highs)).all())
    right = right and bool((first == last).all())
    if not right or (lows[counts == 1] != highs[counts == 1]).any():
        msg = f"the counts of arm {arm!r} cannot be: a bucket holds readings between its edges"
        raise InvalidArgument(msg)


def _bounded(columns: dict[str, Column]) -> dict[str, Column]:
    """Return columns, or raise if an arm has more readings than can be counted."""
    for arm, column in columns.items():
        total = float(column.counts.sum(dtype=np.float64)) + column.missing
        if total > _MOST:
            msg = f"arm {arm!r} has {total:.6g} readings, and {_MOST:,} can be counted; check what was added"
            raise InvalidArgument(msg)
    return columns


def _ruler(zones: tuple[Zone, ...]) -> Ruler:
    """Return a ruler that somebody wrote: zones that rise, in no more parts than can be made."""
    ends = [end for zone in zones for end in zone[:2]]
    right = bool(zones) and ends == sorted(ends) and all(zone.low < zone.high and zone.parts > 0 for zone in zones)
    if not right or not np.isfinite(ends[:-1]).all() or sum(zone.parts for zone in zones) > _MOST_PARTS:
        msg = "the ruler of the table of counts cannot be; leave it out, or count again"
        raise InvalidArgument(msg)
    return Ruler(zones)


def _place(edges: Floats, values: Floats) -> NDArray[np.intp]:
    """Return the buckets of values."""
    return edges.searchsorted(values, "right") - 1


def _counted(values: Floats, edges: Floats) -> Column:
    """Return the column of sorted readings."""
    column = Column.empty(edges.size)
    if values.size:
        first = values.searchsorted(edges)
        column.counts[:] = np.diff(first, append=values.size)
        full = np.flatnonzero(column.counts)
        column.lows[full], column.highs[full] = values[first[full]], values[first[full] + column.counts[full] - 1]
    return column


def _plain(values: Floats) -> list[float | str]:
    """Return numbers for JSON, which knows no infinity."""
    return [x if np.isfinite(x) else repr(x) for x in values.tolist()]


def coarse(counts: Counts, level: float) -> dict[str, float]:
    """Return arms whose quantile lies somewhere in a bucket of many readings, and which share of them it holds."""
    found = {}
    for arm, (counted, lows, highs, _) in counts.columns.items():
        total = int(counted.sum())
        place = int(np.searchsorted(np.cumsum(counted), max(1.0, level * total)))
        if total and lows[place] < highs[place] and counted[place] > _COARSE * total:
            found[arm] = float(counted[place] / total)
    return found


def drift(counts: Counts, arm: str, level: float) -> tuple[float, int]:
    """Return a lower bound for how far the laws of an arm's periods are apart, and from how many readings it is.

    Parameters
    ----------
    level
        The chance that the bound is wrong, if within a period readings are independent draws of one law.
    """
    told = (period.columns.get(arm) for period in counts.periods or ())
    columns = [column for column in told if column is not None and len(Counted(column))]
    if len(columns) < 2:
        return 0.0, 0
    edges = reduce(np.union1d, [period.edges for period in counts.periods or ()])
    lows, highs, total = [], [], 0
    for column in columns:
        known = Counted(column._replace(missing=0)).sample(Problem(arms=(arm,)), arm)
        n = len(Counted(column))
        slack = float(np.sqrt(np.log(2 * len(columns) / level) / (2 * n)))
        lows.append(known.count(edges) / n - slack)  # whatever is inside buckets, and missing
        highs.append((known.below(edges) + column.missing) / n + slack)
        total += n
    return max(0.0, float((np.max(lows, axis=0) - np.min(highs, axis=0)).max())), total  # extensions 4.6
