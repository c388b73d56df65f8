"""Assign readings to buckets by arithmetic that is the same in every engine: no logarithm and no search.

The line is cut into zones, each into parts of one width. A part is floor((x - low) * scale): operations that all
machines round in the same way and that are monotone in x, so every bucket is an interval (extensions 4.5).
"""

import math
from typing import NamedTuple

import numpy as np

from truearm.evidence.sample import Floats

# shares of the readings at which zones end; only eight zones, because an engine tests each reading for each
_ENDS = np.array([0, 1 / 64, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 7 / 8, 63 / 64, 1])


class Zone(NamedTuple):
    """The numbers from `low` to below `high`, in `parts` parts of one width."""

    low: float
    high: float
    parts: int

    @property
    def scale(self) -> float:
        """Parts per unit; 1 where that is not finite."""
        scale = self.parts / (self.high - self.low)
        return scale if np.isfinite(scale) else 1.0


class Ruler(NamedTuple):
    """Adjacent zones, rising; two more buckets are below and above all of them."""

    zones: tuple[Zone, ...]

    @classmethod
    def of(cls, values: Floats, weights: Floats, parts: int) -> "Ruler":
        """Return a ruler that is fine where readings are dense: zones end at quantiles of finite readings."""
        order = np.argsort(values)
        held = np.cumsum(weights[order])
        places = np.minimum(held.searchsorted(_ENDS * held[-1]), values.size - 1)
        ends, times = np.unique(values[order[places]], return_counts=True)
        common = {math.nextafter(x, math.inf) for x in ends[times > 1].tolist()}  # each alone in its zone
        ends = np.array(sorted({*ends.tolist(), *common} - {math.inf}))
        tops = np.append(np.nextafter(ends[1:], -np.inf), ends[-1])
        zones = (
            zones_between(*pair, parts // _ENDS.size) for pair in zip(ends.tolist(), tops.tolist(), strict=True)
        )
        return cls(tuple(part for zone in zones for part in zone))

    @property
    def bases(self) -> tuple[int, ...]:
        """The number of the first bucket of each zone; the last of a zone has what is rounded up to its end."""
        return tuple((1 + np.cumsum([0, *(zone.parts + 1 for zone in self.zones[:-1])])).tolist())

    @property
    def last(self) -> int:
        """The number of the bucket above all zones."""
        return 1 + sum(zone.parts + 1 for zone in self.zones)


def zones_between(low: float, high: float, parts: int) -> list[Zone]:
    """Return zones from one reading up to another; several where one width would overflow."""
    end = math.nextafter(high, math.inf)
    if end == math.inf:  # no finite number is above the largest float, so it has its own zone
        below = zones_between(low, math.nextafter(high, 0.0), parts) if low < high else []
        return [*below, Zone(high, end, 1)]
    if end - low == math.inf:
        return [Zone(low, 0.0, parts), Zone(0.0, end, parts)]
    if end - low > parts / np.finfo(np.float64).max:
        return [Zone(low, end, parts)]
    middle = max(low + (end - low) / 2, math.nextafter(low, math.inf))
    return [Zone(low, middle, 1), *([Zone(middle, end, 1)] if middle < end else [])]
