"""From rows to one array of readings per arm, and what is known of how they came to be.

Arms keep the order in which they first appear, readings the order of their rows or that of a column. At the foot
of a wide column an empty cell is only the end of a shorter one. Readings of one unit become one (extensions 2).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument
from truearm.evidence.counts import Counts
from truearm.evidence.units import Codes, Reduction, Suspect, Units, by_unit
from truearm.world.by_arm import Batch, Floats, grouped
from truearm.world.cells import is_absent, ordering, unnamed
from truearm.world.roles import Roles, check_no_counter

MOST_SUSPECTED = 1 << 16  # first rows in which units that nobody declared are looked for


class Collected(NamedTuple):
    """Readings by arm, and what is known of how they came to be."""

    tapes: dict[str, Floats]
    """Per arm one number per reading, or per unit if a unit is known."""
    ordered: bool = False
    """Whether each tape is in order of pull; else its order says nothing."""
    units: Units | None = None
    """What was reduced to one reading each; None if every row is a reading of its own."""
    suspects: tuple[Suspect, ...] = ()
    """Columns named like a unit that was not declared."""
    labels: Mapping[str, Codes] = {}
    """Per arm which unit each reading is of, by a number that is the same in all arms; empty without units."""
    dropped: int = 0
    """How many rows named no arm and were left out."""
    timed: bool = False
    """Whether the readings are known to be times, of which less is better."""
    counts: Counts | None = None
    """Instead of tapes, where readings were counted and not read one by one."""

    def side_by_side(self) -> "Collected":
        """Return tapes of which place r is round r, a unit in which arms were measured together; NaN where not."""
        labels = self.labels or {name: np.arange(tape.size) for name, tape in self.tapes.items()}
        rounds = max((int(label.max()) + 1 for label in labels.values() if label.size), default=0)
        tapes = {name: np.full(rounds, np.nan) for name in self.tapes}
        for name, tape in self.tapes.items():
            tapes[name][labels[name]] = tape
        return self._replace(tapes=tapes, labels={}, ordered=False)


class Rows(NamedTuple):
    """A long frame told apart: what `assembled` makes readings of."""

    names: Sequence[str]
    """Of the arms, by code."""
    arms: NDArray[Any]
    values: Floats
    units: Sequence[object] | None = None
    """The unit's name or number in each row, None or "" where it has none."""
    order: Sequence[Any] | None = None
    """The cells of the column that rows are put in order by."""
    suspected: Mapping[str, Sequence[object]] = {}
    """Columns named like a unit, their first rows."""


def assembled(rows: Rows, roles: Roles, how: Reduction) -> Collected:
    """Return readings by arm from rows: in order if a column says so, one per unit if there are units."""
    suspicious = suspects(rows)
    ordered = roles.order is not None
    if rows.units is None and rows.order is None:
        return Collected(grouped([Batch(rows.arms, rows.values)], rows.names), ordered, None, suspicious)
    places = _by_arm(rows, roles.order)
    if rows.units is None or roles.unit is None:
        return Collected({name: rows.values[place] for name, place in places.items()}, ordered, None, suspicious)
    nameless = [rows.units.index(none) + 1 for none in (None, "") if none in rows.units]
    if nameless:
        raise InvalidArgument(unnamed(min(nameless), roles.unit, "unit"))
    codes = _codes(rows.units)
    tapes = {name: by_unit(rows.values[at], codes[at], **how._asdict())[0] for name, at in places.items()}
    labels = {
        name: np.array(list(dict.fromkeys(codes[at].tolist())), dtype=np.intp) for name, at in places.items()
    }
    units = Units(
        roles.unit,
        {name: at.size for name, at in places.items()},
        {name: tape.size for name, tape in tapes.items()},
        _shared(rows.arms, codes),
    )
    check_several(units)
    return Collected(tapes, ordered, units, labels=labels)


def check_several(units: Units, remedy: str = "measure more of them, or leave the arm out") -> None:
    """Raise if an arm has one unit only."""
    for name, n in units.counts.items():
        if n == 1:
            several = "1 reading is" if units.rows[name] == 1 else f"{units.rows[name]:,} readings are"
            msg = (
                f"arm {name!r} has one unit only: its {several} of a single {units.name!r}, and cannot "
                f"tell how one differs from another; every arm needs several, so {remedy}"
            )
            raise InvalidArgument(msg)


def _by_arm(rows: Rows, order: str | None) -> dict[str, Codes]:
    """Return the rows of each arm in order, the arms as they first appear."""
    along = np.arange(rows.values.size) if rows.order is None else ordering(rows.order, str(order))
    along = along[np.argsort(rows.arms[along], kind="stable")]
    ends = np.cumsum(np.bincount(rows.arms, minlength=len(rows.names)))
    parts = dict(zip(rows.names, np.split(along, ends[:-1]), strict=True))
    return dict(sorted(((name, part) for name, part in parts.items() if part.size), key=lambda it: it[1].min()))


def _codes(labels: Sequence[object]) -> Codes:
    codes = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    return np.fromiter(map(codes.__getitem__, labels), dtype=np.intp, count=len(labels))


def _shared(arms: NDArray[Any], units: Codes) -> int:
    """Return how many names of units occur in more than one arm."""
    total = int(units.max()) + 1
    pairs = np.sort(arms.astype(np.int64) * total + units)
    distinct = pairs[np.diff(pairs, prepend=-1) > 0]
    return int(np.count_nonzero(np.bincount(distinct % total) > 1))


def suspects(rows: Rows) -> tuple[Suspect, ...]:
    """Return the columns that are named like a unit beside the readings, where their cells are not empty."""
    return tuple(_suspect(column, cells, rows) for column, cells in rows.suspected.items())


def _suspect(column: str, cells: Sequence[object], rows: Rows) -> Suspect:
    told = np.array([not is_absent(cell) for cell in cells], dtype=bool)
    n, codes = told.size, _codes([str(cell) for cell in cells])
    return Suspect(column, rows.values[:n][told], rows.arms[:n][told].astype(np.intp), codes[told])


def wide(tapes: Mapping[str, Floats], units: Sequence[object] | None, roles: Roles, how: Reduction) -> Collected:
    """Return the readings of a table with one column per arm and an optional unit column."""
    if units is not None and tapes:
        return _by_row(tapes, units, roles, how)
    check_no_counter(tapes)
    return Collected({name: without_foot(tape) for name, tape in tapes.items()}, ordered=roles.order is not None)


def _by_row(tapes: Mapping[str, Floats], units: Sequence[object], roles: Roles, how: Reduction) -> Collected:
    """Return the readings of a wide frame, a column of which names the unit of each row."""
    for name, tape in tapes.items():
        if tape.size != len(units):
            lengths = f"{roles.unit!r} has {len(units)} rows and {name!r} {tape.size}"
            msg = f"columns must have the same length, but {lengths}"
            raise InvalidArgument(msg)
    arms = np.repeat(np.arange(len(tapes)), len(units))
    return assembled(
        Rows(list(tapes), arms, np.concatenate(list(tapes.values())), [*units] * len(tapes)), roles, how
    )


def without_foot(column: Floats) -> Floats:
    """Return a wide column without the empty cells at its foot."""
    told = np.flatnonzero(~np.isnan(column))
    return column[: told[-1] + 1] if told.size else column[:0]
