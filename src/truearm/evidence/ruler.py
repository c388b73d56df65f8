"""Which bucket a reading is in, by arithmetic that every engine does alike: no logarithm and no search.

The line is cut into zones, each into parts of one width. A part is floor((x - low) * scale): operations that all
machines round in the same way and that never fall when x rises. So buckets are the same intervals wherever they
are counted, and their ends can be computed without an engine.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_HEAVY = 8  # times its share of the readings, from which on a part becomes a separate zone
_DEPTH = 6  # zones inside zones
_MOST = 24  # zones: an engine asks each reading in which it is
_SIDE = 8  # next to a zone with most of the readings, there are this many times fewer parts


class Zone(NamedTuple):
    """From `low` to below `high`, in `parts` parts of one width."""

    low: float
    high: float
    parts: int

    @property
    def scale(self) -> float:
        """How many parts there are to one; where that is no number, the zone is a single part."""
        scale = self.parts / (self.high - self.low)
        return scale if np.isfinite(scale) else 1.0


class Ruler(NamedTuple):
    """Zones side by side, rising; what is below or above all of them is two buckets more."""

    zones: tuple[Zone, ...]

    @classmethod
    def of(cls, values: Floats, weights: Floats, parts: int) -> "Ruler":
        """Return a ruler that is fine where readings are dense.

        Parameters
        ----------
        values, weights
            Some finite readings, and what each counts.
        """
        order = np.argsort(values)
        sorted_values, shares = values[order], weights[order] / weights.sum()
        whole = zones_between(float(sorted_values[0]), float(sorted_values[-1]), parts)
        return cls(tuple(part for zone in whole for part in _zones(zone, sorted_values, shares, _DEPTH)))

    @property
    def bases(self) -> tuple[int, ...]:
        """The number of the first bucket of each zone; the last of a zone is for what is rounded up to its end."""
        return tuple((1 + np.cumsum([0, *(zone.parts + 1 for zone in self.zones[:-1])])).tolist())

    @property
    def last(self) -> int:
        """The number of the bucket above all zones."""
        return 1 + sum(zone.parts + 1 for zone in self.zones)

    def place(self, x: Floats) -> NDArray[np.int64]:
        """Return the numbers of the buckets of readings."""
        found = np.where(x < self.zones[0].low, 0, self.last)
        for zone, base in zip(self.zones, self.bases, strict=True):
            inside = (x >= zone.low) & (x < zone.high)
            found[inside] = base + np.floor((x[inside] - zone.low) * zone.scale).astype(np.int64)
        return found

    def edges(self) -> Floats:
        """Return where buckets begin: the lowest number that is in each."""
        sought = np.arange(1, self.last + 1)
        low = np.full(sought.size, _to_ordered_int(np.array(-np.inf)))
        high = np.full(sought.size, _to_ordered_int(np.array(np.inf)))
        while (low + 1 < high).any():  # by halves of all numbers that a float can be
            middle = (low & high) + ((low ^ high) >> 1)
            above = self.place(_number(middle)) >= sought
            high, low = np.where(above, middle, high), np.where(above, low, middle)
        found: Floats = np.unique(_number(high))
        return found[np.isfinite(found)]


def zones_between(low: float, high: float, parts: int) -> list[Zone]:
    """Return zones from one reading up to another; several where one width would overflow."""
    end = math.nextafter(high, math.inf)
    if end == math.inf:  # nothing finite is beyond the largest number: it has a separate zone
        below = zones_between(low, math.nextafter(high, 0.0), parts) if low < high else []
        return [*below, Zone(high, end, 1)]
    if end - low == math.inf:
        return [Zone(low, 0.0, parts), Zone(0.0, end, parts)]
    if end - low > parts / np.finfo(np.float64).max:
        return [Zone(low, end, parts)]
    middle = max(low + (end - low) / 2, math.nextafter(low, math.inf))
    return [Zone(low, middle, 1), *([Zone(middle, end, 1)] if middle < end else [])]


def _zones(zone: Zone, values: Floats, shares: Floats, depth: int) -> list[Zone]:
    """Return a zone, or several where a part of it would hold too much."""
    inside = (values >= zone.low) & (values < zone.high)
    values, shares = values[inside], shares[inside]
    width = zone.high - zone.low
    if not values.size or depth == 0 or not 0 < zone.parts / width < np.inf:
        return [zone]
    place = np.minimum(np.floor((values - zone.low) * zone.scale), zone.parts - 1).astype(np.intp)
    held = np.bincount(place, shares, zone.parts)
    several = np.zeros(zone.parts, dtype=bool)
    several[place[1:][(place[1:] == place[:-1]) & (values[1:] > values[:-1])]] = True
    heavy = np.flatnonzero((held > _HEAVY / zone.parts) & several)
    if not heavy.size or heavy.size > zone.parts // 4:
        return [zone]
    runs = np.split(heavy, np.flatnonzero(np.diff(heavy) > 2) + 1)
    if len(runs) > _MOST // 4:
        runs = [heavy]
    found, start = [], zone.low
    for run in runs:
        low, high = (zone.low + float(end) * (width / zone.parts) for end in (run[0], run[-1] + 1))
        low, high = max(low, start), min(high, zone.high)
        if high <= low:
            continue
        found += [Zone(start, low, max(1, zone.parts // _SIDE))] if start < low else []
        found += _zones(Zone(low, high, zone.parts), values, shares, depth - 1)
        start = high
    found += [Zone(start, zone.high, max(1, zone.parts // _SIDE))] if start < zone.high else []
    return found if len(found) <= _MOST else [zone]


def _to_ordered_int(x: Floats) -> NDArray[np.int64]:
    """Return whole numbers in the order of floats."""
    bits = np.asarray(x, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _number(ordered: NDArray[np.int64]) -> Floats:
    return np.where(ordered < 0, np.int64(-(2**63)) - ordered, ordered).view(np.float64)
