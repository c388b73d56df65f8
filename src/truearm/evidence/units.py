"""Reduce the readings of each unit to one number, and test columns that look like units.

A unit is what was drawn independently: a process, a user, an item, a day. Its readings share its effect, so
thirty of them say little more than one (extensions 2).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.evidence.sample import Floats

Codes = NDArray[np.intp]

_ROUNDING = 1 - 1e-12  # two orders of the same sum must not differ

_NAMES = re.compile(
    "(account|batch|block|client|cluster|customer|date|day|device|host|household|item|machine|night|participant|"
    "patient|person|pid|process|prompt|question|respondent|run|seed|session|student|subject|task|uid|unit|user|"
    "visitor|worker)s?(id|no|nr|number|index|name)?"
)


@dataclass(frozen=True, slots=True)
class Units:
    """How many rows and units of each arm became readings."""

    name: str
    """What a unit is called: the column's name, or what an import knows ("process")."""
    rows: Mapping[str, int]
    counts: Mapping[str, int]
    """Units per arm, each of which is one reading."""
    shared: int
    """Names of units that occur in more than one arm; they count as different units there."""


class Suspect(NamedTuple):
    """A column that is named like a unit but not declared as one, in the first rows of a frame."""

    column: str
    values: Floats
    arms: Codes
    units: Codes

    @property
    def is_confounded(self) -> bool:
        """Whether each arm has its own single unit with several readings, so that arm and unit are the same."""
        pairs = np.unique(self.arms * (1 + self.units.max(initial=0)) + self.units)
        sizes = np.unique(self.arms, return_counts=True)[1]
        return 1 < sizes.size == pairs.size == np.unique(self.units).size and bool(sizes.max() > 1)

    def p_value(self, level: float, seed: int = 2) -> float:
        """Return a p-value of "readings of one unit are no more alike than readings of different units".

        The statistic is the sum over units of (sum of ranks)^2/size, ranks centered inside each arm and divided by
        the arm's number of readings. The p-value is 1/b if the b-th permutation is the first to reach it
        (extensions 2). The search ends at `level`. Missing readings, units with one reading and arms with one unit
        do not count.
        """
        parts = _rank_by_arm(self.values, self.units, self.arms)
        if not parts:
            return 1.0
        rng, draws = np.random.default_rng(seed), int(np.ceil(1 / level * _ROUNDING))
        observed = _between(parts) * _ROUNDING
        for draw in range(1, draws):
            for ranks, _, _ in parts:
                rng.shuffle(ranks)
            if _between(parts) >= observed:
                return 1 / draw
        return 1 / draws


class Reduction(NamedTuple):
    """How to reduce the readings of one unit to one."""

    middle: Literal["mean", "upper", "lower"] = "mean"
    """The median of an even number of readings: the mean of the middle two, or one of them."""
    limit: float | None = None
    """For a share, the limit of a success; whether a unit succeeds is all that counts."""

    @classmethod
    def of(cls, *, at_least: float | None = None, at_most: float | None = None) -> "Reduction":
        """Return the reduction of a target: a unit succeeds if half of its readings do (extensions 1.8)."""
        if at_least is not None:
            return cls("upper", at_least)
        return cls() if at_most is None else cls("lower", at_most)


MEDIANS = Reduction()


def by_unit(values: Floats, units: NDArray[np.generic], reduction: Reduction = MEDIANS) -> Floats:
    """Return the median reading of each unit in order of first appearance, NaN where missing readings matter.

    Whether a large or a small reading is the worst depends on which arm is judged, so no single number is the
    worst case of a unit. A missing unit is: every later step counts it on the side that hurts (evidence T8).
    Half -inf and half inf have no median; such a unit is missing too. For a share, a unit is missing only if its
    success depends on its missing readings (extensions 1.8).
    """
    middle, limit = reduction
    codes, total = _codes(np.asarray(units))
    ordered = values[np.lexsort((values, codes))]  # NaN comes last
    sizes = np.bincount(codes, minlength=total)
    known = sizes - np.bincount(codes[np.isnan(values)], minlength=total)
    starts = np.cumsum(sizes) - sizes

    def find_middle(lost: Codes | int) -> Floats:
        """Return medians where the `lost` smallest readings are -inf and those beyond the known ones inf."""

        def at(rank: Codes) -> Floats:
            inside = np.clip(rank - lost, 0, np.maximum(known - 1, 0))
            return np.select([rank < lost, rank - lost >= known], [-np.inf, np.inf], ordered[starts + inside])

        low, high = at((sizes - 1) // 2), at(sizes // 2)
        if middle != "mean":
            return low if middle == "lower" else high
        with np.errstate(invalid="ignore"):
            mean = np.where(low == high, low, low / 2 + high / 2)
        # between a value and an infinity, which may be a time-out, the middle is unknown (evidence T8)
        return np.where(np.isfinite(low) == np.isfinite(high), mean, np.nan)

    low, high = find_middle(sizes - known), find_middle(0)  # missing readings are smallest, or largest
    if limit is None:
        return np.where(low == high, low, np.nan)
    is_clear = (low >= limit) == (high >= limit) if middle == "upper" else (low <= limit) == (high <= limit)
    return np.where(is_clear, np.where(np.isfinite(low), low, high), np.nan)


def _codes(labels: NDArray[np.generic]) -> tuple[Codes, int]:
    """Return codes that count up in order of first appearance, and how many there are."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    place = np.empty(first.size, dtype=np.intp)
    place[np.argsort(first)] = np.arange(first.size)
    return place[codes], first.size


def looks_like_unit(column: str) -> bool:
    """Return True if a column has a typical name of a unit."""
    bare = "".join(letter for letter in column.casefold() if letter.isalpha())
    return _NAMES.fullmatch(bare) is not None


_Part = tuple[Floats, Codes, Codes]
"""The scaled ranks of an arm's readings by unit, where units start, and their sizes."""


def _between(parts: list[_Part]) -> float:
    return float(sum(np.sum(np.add.reduceat(ranks, starts) ** 2 / sizes) for ranks, starts, sizes in parts))


def _rank_by_arm(values: Floats, units: NDArray[np.generic], arms: NDArray[np.generic]) -> list[_Part]:
    known = ~np.isnan(values)
    values, (arm, _), (unit, total) = values[known], _codes(arms[known]), _codes(units[known])
    group, _ = _codes(arm * max(total, 1) + unit)
    order = np.lexsort((group, arm))
    order = order[np.bincount(group)[group[order]] > 1] if order.size else order
    by_arm = np.split(order, np.flatnonzero(np.diff(arm[order])) + 1)
    parts = []
    for rows in by_arm:
        starts = np.flatnonzero(np.diff(group[rows], prepend=-1))
        if starts.size > 1:
            parts.append((_center_ranks(values[rows]), starts, np.diff(np.append(starts, rows.size))))
    return parts


def _center_ranks(values: Floats) -> Floats:
    """Return the ranks of values, ties at their mean, centered and divided by how many there are."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - (counts - 1) / 2
    ranks: Floats = (middles[inverse] - (values.size + 1) / 2) / values.size
    return ranks
