"""The readings of each arm, and what is known about how they were made.

Arms keep the order in which they first appear, readings the order of their rows or that of a column. Readings of
one unit become one (extensions 2).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.data.columns import Columns, similar_names
from truearm.errors import InvalidArgument
from truearm.evidence.units import Reduction, Suspect, Units, by_unit

if TYPE_CHECKING:
    from truearm.data.engines import Counter
    from truearm.evidence.counts import Counts

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


class Dataset(NamedTuple):
    """Readings by arm, and what is known about how they were made."""

    tapes: dict[str, Floats]
    """Per arm one number per reading, or per unit or round if there is one; NaN where one is missing."""
    ordered: bool = False
    """Whether each tape is in order of pull; else its order says nothing."""
    units: Units | None = None
    """What was reduced to one reading each; None if every row is a reading."""
    suspects: tuple[Suspect, ...] = ()
    """Columns named like a unit that was not declared."""
    timed: bool = False
    """Whether less is better, because the readings are times or those of a race that said so."""
    unit: str = ""
    """"s" if the readings are known to be seconds."""
    options: Mapping[str, Any] = {}
    """Options of the problem that the data bring along: an export of a race says what was compared."""
    notes: tuple[str, ...] = ()
    """What a reader should know about the data, one sentence each."""
    counter: "Counter | None" = None
    """Instead of tapes, where readings are counted by the engine that has them."""
    counted: "Counts | None" = None
    """The same, for counts that are complete."""

    @property
    def counts(self) -> "Counts | None":
        """How many readings of each arm are in each bucket, if they are counted."""
        return self.counted if self.counter is None else self.counter.counts

    def align(self) -> "Dataset":
        """Return tapes of one length, so that place r of each is round r."""
        rounds = max((tape.size for tape in self.tapes.values()), default=0)
        tapes = {
            name: np.concatenate((tape, np.full(rounds - tape.size, np.nan))) for name, tape in self.tapes.items()
        }
        return self._replace(tapes=tapes, ordered=False)


class Rows(NamedTuple):
    """The rows of a long table."""

    names: list[str]
    """The names of the arms."""
    arms: NDArray[Any]
    """Which of them each row is of."""
    values: Floats
    groups: Codes | None = None
    """Which unit or round each row is of, numbered in order of first appearance."""
    order: NDArray[Any] | None = None
    """What rows are put in order by."""


def assemble(
    rows: Rows, columns: Columns, reduction: Reduction, suspected: Mapping[str, Codes] | None = None
) -> Dataset:
    """Return the readings of each arm from rows.

    Parameters
    ----------
    suspected
        Columns named like a unit: codes of their first rows, negative where a cell is empty.
    """
    places = _places(rows)
    suspects = tuple(_suspect(column, codes, rows) for column, codes in (suspected or {}).items())
    known = Dataset({}, columns.order is not None, suspects=suspects, notes=similar_names(places))
    if rows.groups is None or columns.group is None:
        return known._replace(tapes={name: rows.values[at] for name, at in places.items()})
    groups = rows.groups
    tapes = {name: by_unit(rows.values[at], groups[at], **reduction._asdict())[0] for name, at in places.items()}
    units = Units(
        columns.group,
        {name: at.size for name, at in places.items()},
        {name: tape.size for name, tape in tapes.items()},
        _count_shared(rows.arms, groups),
    )
    check_several(units, kind=columns.group_kind)
    if columns.round is not None:
        total = int(groups.max(initial=-1)) + 1
        for name, at in places.items():
            tape, labels = tapes[name], _first_of_each(groups[at])
            tapes[name] = np.full(total, np.nan)
            tapes[name][labels] = tape
    return known._replace(tapes=tapes, units=units)


def assemble_wide(tapes: Mapping[str, Floats], groups: Codes | None, columns: Columns, how: Reduction) -> Dataset:
    """Return the readings of a table with one column per arm, and perhaps one for a unit or a round."""
    if groups is not None and tapes:
        for name, tape in tapes.items():
            if tape.size != groups.size:
                lengths = f"{columns.group!r} has {groups.size} rows and {name!r} {tape.size}"
                raise InvalidArgument(f"columns must have the same length, but {lengths}")
        arms = np.repeat(np.arange(len(tapes)), groups.size)
        values = np.concatenate(list(tapes.values()))
        return assemble(Rows(list(tapes), arms, values, np.tile(groups, len(tapes))), columns, how)
    found = Dataset(dict(tapes), columns.order is not None, notes=similar_names(tapes))
    return found.align() if columns.round is not None else found


def trim_end(column: Floats) -> Floats:
    """Return a column of a wide table without the empty cells at its end: it is only shorter than the others."""
    known = np.flatnonzero(~np.isnan(column))
    return column[: known[-1] + 1] if known.size else column[:0]


def check_several(
    units: Units, remedy: str = "measure more of them, or remove the arm", *, kind: str = "unit"
) -> None:
    """Raise if an arm has one unit only."""
    for name, n in units.counts.items():
        if n == 1:
            several = "1 reading is" if units.rows[name] == 1 else f"{units.rows[name]:,} readings are"
            msg = (
                f"arm {name!r} has one {kind} only: its {several} of a single {units.name!r}, and cannot "
                f"tell how one differs from another; every arm needs several, so {remedy}"
            )
            raise InvalidArgument(msg, kind)


def _places(rows: Rows) -> dict[str, Codes]:
    """Return the rows of each arm in order, the arms as they first appear."""
    along = np.argsort(rows.arms, kind="stable")
    if rows.order is not None:
        by_order = np.argsort(rows.order, kind="stable")
        along = by_order[np.argsort(rows.arms[by_order], kind="stable")]
    ends = np.cumsum(np.bincount(rows.arms, minlength=len(rows.names)))
    parts = [(name, part) for name, part in zip(rows.names, np.split(along, ends[:-1]), strict=True) if part.size]
    return dict(sorted(parts, key=lambda part: int(part[1].min())))


def _first_of_each(codes: Codes) -> Codes:
    """Return different codes in order of first appearance, as `by_unit` returns units."""
    found, first = np.unique(codes, return_index=True)
    return found[np.argsort(first)]


def _count_shared(arms: NDArray[Any], groups: Codes) -> int:
    """Return how many units have rows of more than one arm."""
    total = int(groups.max(initial=0)) + 1
    pairs = np.unique(arms.astype(np.int64) * total + groups)
    return int(np.count_nonzero(np.bincount(pairs % total) > 1))


def _suspect(column: str, codes: Codes, rows: Rows) -> Suspect:
    filled, n = codes >= 0, codes.size
    return Suspect(column, rows.values[:n][filled], rows.arms[:n][filled].astype(np.intp), codes[filled])
