"""Counts in place of readings: how many of each arm are in each bucket, and the lowest and highest of them.

A bucket begins at an edge and ends before the next one; minus and plus infinity have buckets of their own, and
missing readings are counted apart. Any edges are valid, even if chosen from the readings, because statements
about an order of arms hold at all cuts at once (extensions 4.1).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.errors import InvalidArgument
from truearm.evidence.sample import Buckets, Floats, Sample, is_success, orient, start_sample
from truearm.problem import Problem

Ints = NDArray[np.int64]

_COARSE = 1 / 64  # of an arm's readings: smooth ones have less than a thousandth in a bucket
_MAX_READINGS = 1 << 53  # of an arm: up to here counts are exact as floats
_ENDS = np.array([-np.inf, -np.finfo(np.float64).max, np.inf])
"""Edges that every table has: the first bucket has only minus infinity, the last only plus infinity."""


class Made(NamedTuple):
    """The program that counted a table, and its queries."""

    engine: str
    queries: tuple[str, ...] = ()


HERE = Made("truearm")


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """One arm of a table of counts, in place of its readings; an empty bucket goes from inf to -inf."""

    counts: Ints
    lows: Floats
    highs: Floats
    missing: int = 0
    notes: set[int] | None = None
    """Where to note the buckets to refine; None if they cannot be refined."""

    def at(self, edges: Floats) -> "Counted":
        """Return the counts at edges that no bucket crosses."""
        full = np.flatnonzero(self.counts)
        places = edges.searchsorted(self.lows[full], "right") - 1
        counts = np.zeros(edges.size, dtype=np.int64)
        lows, highs = np.full(edges.size, np.inf), np.full(edges.size, -np.inf)
        np.add.at(counts, places, self.counts[full])
        np.minimum.at(lows, places, self.lows[full])
        np.maximum.at(highs, places, self.highs[full])
        return Counted(counts, lows, highs, self.missing)

    def __len__(self) -> int:
        return int(self.counts.sum()) + self.missing

    def marks(self) -> Iterable[bytes]:
        """Return the bytes from which a digest of these readings is made."""
        full = np.flatnonzero(self.counts)
        yield b"counts"
        yield self.missing.to_bytes(8, "little")
        for part in (self.lows, self.highs):
            yield (part[full] + 0.0).astype("<f8").tobytes()  # no minus zero
        yield self.counts[full].astype("<i8").tobytes()

    def sample(self, problem: Problem, arm: str) -> Sample:
        """Return the sample by which a problem judges this arm; bigger is better."""
        if problem.rounds:
            raise InvalidArgument("counts do not say which readings were taken side by side; pass the readings")
        full = np.flatnonzero(self.counts)
        lows, highs, sizes = self.lows[full], self.highs[full], self.counts[full]
        if problem.target == "share":
            return self._successes(lows, highs, sizes, problem)
        lows, highs = orient(lows, problem, arm), orient(highs, problem, arm)
        if problem.sign < 0:
            lows, highs, sizes, full = highs[::-1], lows[::-1], sizes[::-1], full[::-1]
        outside, plausible = 0, start_sample(problem, arm).plausible
        if plausible is not None:  # extensions E2
            low, high = (
                ((ends >= plausible.low) & (ends <= plausible.high)) | (ends == -np.inf) for ends in (lows, highs)
            )
            split = (low != high) | ((lows < plausible.low) & (highs > plausible.high))
            self._note(lows, highs, full, split, "between")
            inside = low & high
            outside = int(sizes[~inside].sum())
            lows, highs, sizes, full = lows[inside], highs[inside], sizes[inside], full[inside]
        buckets = Buckets(highs, np.cumsum(sizes).astype(np.intp), full, self.notes)
        return Sample(lows, self.missing, outside=outside, plausible=plausible, buckets=buckets)

    def _successes(self, lows: Floats, highs: Floats, sizes: Ints, problem: Problem) -> Sample:
        """Return the counts of failures and successes (extensions 1.1)."""
        low, high = (is_success(ends, problem) for ends in (lows, highs))
        full = np.flatnonzero(self.counts)
        self._note(lows, highs, full, low != high, "at_least" if problem.at_least is not None else "at_most")
        won, total, values = int(sizes[low & high].sum()), int(sizes.sum()), np.array([0.0, 1.0])
        buckets = Buckets(values, np.array([total - won, total]), np.empty(0, dtype=np.intp))
        return Sample(values, self.missing, buckets=buckets)

    def _note(
        self, lows: Floats, highs: Floats, numbers: NDArray[np.intp], split: NDArray[np.bool_], name: str
    ) -> None:
        """Note buckets that a limit splits; raise if they cannot be counted more finely."""
        if self.notes is not None:
            self.notes.update(numbers[split & (lows < highs)].tolist())
        elif split.any():
            place = int(np.argmax(split))
            msg = (
                f"{name} splits the bucket of readings from {lows[place]:.6g} to {highs[place]:.6g}, and "
                "counts cannot tell how many are on either side; count again with an edge there"
            )
            raise InvalidArgument(msg)


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """A table of counts: arms by buckets."""

    edges: Floats
    """Where buckets begin, rising; the first is minus infinity."""
    columns: Mapping[str, Counted]
    made: Made = HERE

    @classmethod
    def from_lumps(
        cls, edges: ArrayLike, lumps: Mapping[str, tuple[Floats, Floats, Ints, int]], made: Made = HERE
    ) -> "Counts":
        """Return the table of counts at fixed edges.

        Lumps are, for each arm, the lowest, highest and number of readings of some buckets, and the missing ones.
        """
        table: Floats = np.union1d(np.asarray(edges, dtype=np.float64) + 0.0, _ENDS)
        columns = {}
        for arm, (lows, highs, counts, missing) in lumps.items():
            total = float(np.sum(counts, dtype=np.float64)) + missing
            if total > _MAX_READINGS:
                msg = f"arm {arm!r} has {total:.6g} readings, but at most {_MAX_READINGS:,} are allowed"
                raise InvalidArgument(msg)
            columns[arm] = Counted(np.asarray(counts), np.asarray(lows), np.asarray(highs), missing).at(table)
        return cls(table, columns, made)

    @property
    def n(self) -> dict[str, int]:
        """How many readings each arm has, including missing ones."""
        return {arm: len(column) for arm, column in self.columns.items()}

    def arms(self, notes: set[int] | None = None) -> dict[str, Counted]:
        """Return the arms, which add the buckets to refine to `notes`."""
        return {arm: replace(column, notes=notes) for arm, column in self.columns.items()}

    def refine(self, buckets: Sequence[int], finer: "Counts") -> "Counts":
        """Return the table with some of its buckets replaced by counts at more edges."""
        table: Floats = np.union1d(self.edges, finer.edges)
        columns = {}
        for arm, column in self.columns.items():
            counts = column.counts.copy()
            counts[list(buckets)] = 0
            rest = replace(column, counts=counts).at(table)
            if arm in finer.columns:
                new = finer.columns[arm].at(table)
                lows, highs = np.minimum(rest.lows, new.lows), np.maximum(rest.highs, new.highs)
                rest = Counted(rest.counts + new.counts, lows, highs, rest.missing)
            columns[arm] = rest
        return replace(self, edges=table, columns=columns)

    def hull(self) -> tuple[Floats, Floats]:
        """Return the lowest and the highest reading of any arm in each bucket."""
        columns = self.columns.values()
        lows = np.min([column.lows for column in columns], axis=0, initial=np.inf)
        return lows, np.max([column.highs for column in columns], axis=0, initial=-np.inf)


def coarse_arms(counts: Counts, level: float) -> dict[str, float]:
    """Return arms whose quantile is in a bucket of many readings, and that bucket's share of the readings."""
    found = {}
    for arm, column in counts.columns.items():
        total = int(column.counts.sum())
        place = int(np.searchsorted(np.cumsum(column.counts), max(1.0, level * total)))
        if total and column.lows[place] < column.highs[place] and column.counts[place] > _COARSE * total:
            found[arm] = float(column.counts[place] / total)
    return found
