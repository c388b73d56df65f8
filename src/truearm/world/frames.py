"""From whatever frame a user has to one array of readings per arm. Nothing is decided here, or read from disk.

A frame is long (one column names the arm, one holds the reading) or wide (one column of readings per arm).
Arms keep the order in which they first appear, readings the order of their rows or that of a column. A cell
without a value is a missing reading and becomes NaN; at the foot of a wide column it is only the end of a shorter
one. The columns of a dict have lengths of their own, so that nothing at their foot is taken away. Readings of one
unit become one (extensions 2).
"""

import datetime
import math
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument, given, word
from truearm.evidence.counts import Counts
from truearm.evidence.units import MEDIANS, Codes, Reduction, Suspect, Units, by_unit, looks_like_unit
from truearm.problem import as_number

Floats = NDArray[np.float64]
Reader = Callable[[], Floats]

_BLOCK = 1 << 17  # rows told apart at a time: what is needed for them stays in a cache and in memory at hand
_KEPT = 31 << 20  # bytes: having freed so many at once, glibc keeps what is smaller, and its pages are used again
_SHARE = 256  # rows of a block per arm, at least: many arms need larger blocks
_AHEAD = 8  # blocks that may wait: memory is bounded wherever they come from

MOST_ARMS = 10_000  # a minute of work, and a place in the list for everyone; more are an id taken for the arm
MOST_SUSPECTED = 1 << 16  # first rows in which units that nobody declared are looked for
_COUNTERS = re.compile(
    r"id|idx|index|i|n|no\.?|nr\.?|num|number|row|#|rep|repetition|trial|iteration|round|unnamed: 0"
)
_SHOWN = 60  # letters of a cell in a message: what is wrong shows at its beginning


class Collected(NamedTuple):
    """Readings by arm, and what is known of how they came to be.

    Examples
    --------
    >>> Collected({"A": np.array([1.0])}).ordered
    False
    """

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
        """Return tapes of which place r is round r, a unit in which arms were measured together; NaN where not.

        Examples
        --------
        >>> Collected({"A": np.array([1.0, 3.0]), "B": np.array([2.0])}, labels={
        ...     "A": np.array([0, 1]), "B": np.array([1])
        ... }).side_by_side().tapes
        {'A': array([1., 3.]), 'B': array([nan,  2.])}
        """
        labels = self.labels or {name: np.arange(tape.size) for name, tape in self.tapes.items()}
        rounds = max((int(label.max()) + 1 for label in labels.values() if label.size), default=0)
        tapes = {name: np.full(rounds, np.nan) for name in self.tapes}
        for name, tape in self.tapes.items():
            tapes[name][labels[name]] = tape
        return self._replace(tapes=tapes, labels={}, ordered=False)


class Roles(NamedTuple):
    """Which column of a long frame plays which part; of a wide one units and the order of rows may be known.

    Examples
    --------
    >>> Roles("site", "ms", unit="user", order="rows").columns
    ('site', 'ms', 'user')
    """

    arm: str | None = None
    value: str | None = None
    unit: str | None = None
    order: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are named, each once."""
        named = (self.arm, self.value, self.unit, self.order if self.order != "rows" else None)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def checked(self) -> "Roles":
        """Return the roles if they go together."""
        if (self.arm is None) != (self.value is None):
            named, other = ("arm", "value") if self.value is None else ("value", "arm")
            msg = f"{named} is given but {other} is not; name both columns of a long frame, or none of a wide one"
            raise InvalidArgument(msg)
        for argument, name in self._asdict().items():
            if name is not None and not isinstance(name, str):
                msg = f"{argument} must be the name of a column, a string, but got {_shown(name)}"
                raise InvalidArgument(msg)
        if self.arm is not None and self.arm == self.value:
            msg = f"{given(arm=self.arm, value=self.value)}: one column cannot be both; name two"
            raise InvalidArgument(msg)
        for argument, name in (("unit", self.unit), ("order", self.order)):
            if name is None or (argument, name) == ("order", "rows"):
                continue
            if self.arm is None and argument == "order":
                msg = (
                    f"{given(**{argument: name})} needs a long frame, with one column for the arm and one for the "
                    f"reading; name them too: {given(arm='...', value='...')}"
                )
                raise InvalidArgument(msg)
            if name in (self.arm, self.value):
                part = "arms" if name == self.arm else "readings"
                msg = f"{given(**{argument: name})} is the column of the {part}; name one of its own, or none"
                raise InvalidArgument(msg)
        return self

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise if a named column is not there."""
        for argument, name in self._asdict().items():
            if name is not None and (argument, name) != ("order", "rows"):
                check_column(columns, name, argument)
        if self.order == "rows" and "rows" in columns:
            said = given(order="rows")
            msg = f"{said} is the order of the rows, but a column is called 'rows' too; rename the column"
            raise InvalidArgument(msg)

    def suspects(self, columns: Iterable[str]) -> list[str]:
        """Return the columns that are named like a unit, if none is declared."""
        if self.unit is not None or self.arm is None:
            return []
        return [name for name in columns if name not in self.columns and looks_like_unit(name)]


def tapes_of(
    frame: Any,  # noqa: ANN401 - whatever narwhals understands
    arm: str | None = None,
    value: str | None = None,
    *,
    unit: str | None = None,
    order: str | None = None,
) -> dict[str, Floats]:
    """Return the readings of each arm; `collect` also tells what is known of them.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table, a DuckDB relation, or a dict of sequences.
    arm, value
        Names of the two columns of a long frame; without them every column is an arm.
    unit
        Name of the column of what was drawn independently: its readings become one.
    order
        "rows" if rows are in order of pull, or the name of a column to put them in order by.

    Examples
    --------
    >>> tapes_of({"A": [1, 2], "B": [3.5]})
    {'A': array([1., 2.]), 'B': array([3.5])}
    >>> tapes_of({"site": ["B", "A", "B"], "ms": [3, None, 5]}, "site", "ms")
    {'B': array([3., 5.]), 'A': array([nan])}
    >>> tapes_of({"site": ["A"], "ms": ["fast"]}, "site", "ms")
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: row 1 of column 'ms' must be a number, but got 'fast'; leave a cell empty
    for a reading that went wrong
    """
    return collect(frame, arm, value, unit=unit, order=order).tapes


def collect(
    frame: Any,  # noqa: ANN401 - whatever narwhals understands
    arm: str | None = None,
    value: str | None = None,
    *,
    unit: str | None = None,
    order: str | None = None,
    how: Reduction = MEDIANS,
    drop_unnamed: bool = False,
) -> Collected:
    """Return the readings of each arm and what is known of how they came to be.

    Parameters
    ----------
    frame
        As for `tapes_of`, or what was collected before.
    arm, value, unit, order
        As for `tapes_of`.
    how
        How the readings of one unit become one.
    drop_unnamed
        Leave out rows that name no arm, and count them.

    Examples
    --------
    >>> rows = {"site": ["B", "A", "B", "A", "B"], "user": [1, 2, 1, 3, 4], "ms": [3, 1, 5, 2, 8]}
    >>> found = collect(rows, "site", "ms", unit="user")
    >>> found.tapes, found.units.counts
    ({'B': array([4., 8.]), 'A': array([1., 2.])}, {'B': 2, 'A': 2})
    >>> collect(rows, "site", "ms").suspects[0].column
    'user'
    """
    roles = Roles(arm, value, unit, order).checked()
    if isinstance(frame, Collected):
        if any(name is not None for name in roles):
            given = next(argument for argument, name in roles._asdict().items() if name is not None)
            msg = f"{given} is given, but these readings were collected before; leave it out, or give the frame"
            raise InvalidArgument(msg)
        return frame
    read = _from_mapping if isinstance(frame, Mapping) else _from_table
    found = read(frame, roles, how, drop_unnamed=drop_unnamed)
    if roles.arm is not None and not found.tapes:
        msg = "the data have no rows; check what was to fill them"
        raise InvalidArgument(msg)
    return found


class Rows(NamedTuple):
    """A long frame told apart: what `assembled` makes readings of.

    Examples
    --------
    >>> Rows(["A"], np.array([0, 0]), np.array([1.0, 2.0])).units is None
    True
    """

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
    """Return readings by arm from rows: in order if a column says so, one per unit if there are units.

    Examples
    --------
    >>> rows = Rows(["A"], np.array([0, 0, 0]), np.array([1.0, 2.0, 3.0]), ["x", "y", "x"], [3, 2, 1])
    >>> assembled(rows, Roles("arm", "ms", "user", "time"), MEDIANS).tapes
    {'A': array([2., 2.])}
    """
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
    """Raise if an arm has one unit only.

    Examples
    --------
    >>> check_several(Units("process", {"A": 300, "B": 60}, {"A": 1, "B": 3}, shared=0))
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: arm 'A' has one unit only: its 300 readings are of a single 'process', and
    cannot tell how one differs from another; every arm needs several, so measure more of them, or leave the arm
    out
    """
    for name, n in units.counts.items():
        if n == 1:
            several = "1 reading is" if units.rows[name] == 1 else f"{units.rows[name]:,} readings are"
            msg = (
                f"arm {name!r} has one {word('unit')} only: its {several} of a single {units.name!r}, and cannot "
                f"tell how one differs from another; every arm needs several, so {remedy}"
            )
            raise InvalidArgument(msg)


def _by_arm(rows: Rows, order: str | None) -> dict[str, Codes]:
    """Return the rows of each arm in order, the arms as they first appear."""
    along = np.arange(rows.values.size) if rows.order is None else _ordering(rows.order, str(order))
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
    """Return the columns that are named like a unit beside the readings, where their cells are not empty.

    Examples
    --------
    >>> rows = Rows(["A"], np.array([0, 0]), np.array([1.0, 2.0]), suspected={"user": ["x", None]})
    >>> suspects(rows)[0].units
    array([0])
    """
    return tuple(_suspect(column, cells, rows) for column, cells in rows.suspected.items())


def _suspect(column: str, cells: Sequence[object], rows: Rows) -> Suspect:
    told = np.array([not _is_absent(cell) for cell in cells], dtype=bool)
    n, codes = told.size, _codes([str(cell) for cell in cells])
    return Suspect(column, rows.values[:n][told], rows.arms[:n][told].astype(np.intp), codes[told])


def _ordering(cells: Sequence[Any], column: str) -> Codes:
    """Return the rows in the order of a column, equal ones as they stand."""
    plain = np.asarray(cells) if all(isinstance(cell, int | float) for cell in cells) else None
    if plain is not None and plain.dtype.kind in "biuf" and not np.isnan(plain).any():
        return np.argsort(plain, kind="stable")
    for row, cell in enumerate(cells, 1):
        if _is_absent(cell):
            msg = f"row {row} of column {column!r} is empty, so its place in the order is unknown; fill it, or "
            raise InvalidArgument(msg + "leave such rows out")
    keys = _numbers_or_times(cells)
    try:
        found = None if keys is None else sorted(range(len(keys)), key=keys.__getitem__)
    except TypeError:  # numbers beside times, or times with a zone beside times without
        found = None
    if found is None:
        said, rows = given(order=column), given(order="rows")
        msg = f"{said} must hold numbers or times, all of one kind; convert it, or say {rows}"
        raise InvalidArgument(msg)
    return np.array(found, dtype=np.intp)


def _numbers_or_times(cells: Sequence[Any]) -> Sequence[Any] | None:
    """Return cells to compare: words become numbers if all can, else times."""
    if not any(isinstance(cell, str | bytes) for cell in cells):
        return cells
    for reader in (float, datetime.datetime.fromisoformat):
        try:
            return [reader(cell) for cell in cells]
        except (TypeError, ValueError):
            continue
    return None


def _is_absent(cell: object) -> bool:
    text = str(cell)
    return (
        not text or cell is np.ma.masked or (not isinstance(cell, str) and text in ("None", "nan", "<NA>", "NaT"))
    )


def check_column(columns: Iterable[str], name: str, argument: str) -> str:
    """Return a column's name if the frame has it, or suggest the one that was meant.

    Examples
    --------
    >>> check_column(["variant", "ms"], "varient", "arm")
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: arm='varient' is not a column; did you mean 'variant'? Columns are
    'variant', 'ms'
    """
    known = [str(column) for column in columns]
    if not isinstance(name, str):
        msg = f"{argument} must be the name of a column, a string, but got {name!r}"
        raise InvalidArgument(msg)
    if name in known:
        return name
    near = [column for column in known if column.casefold() == name.casefold()] or get_close_matches(
        name, known, 1
    )
    hint = f"; did you mean {near[0]!r}? Columns" if near else "; columns"
    shown = ", ".join(map(repr, known[:20])) + (", ..." if len(known) > 20 else "")
    msg = f"{given(**{argument: name})} is not a column{hint} are {shown}"
    raise InvalidArgument(msg)


def looks_like_time(column: str) -> bool:
    """Tell whether a column is named like a time, of which less is better as a rule.

    Examples
    --------
    >>> [looks_like_time(name) for name in ("latency_ms", "Elapsed", "runtime", "items", "sometimes")]
    [True, True, True, False, False]
    """
    words = "ns|us|µs|ms|msecs?|secs?|seconds?|minutes?|time|times|runtime|latency|duration|elapsed"
    return re.search(rf"(?:^|[^a-z])(?:{words})(?:$|[^a-z])", column.lower()) is not None


def check_distinct(columns: Iterable[str]) -> None:
    """Raise if two columns have the same name.

    Examples
    --------
    >>> check_distinct(["A", "B", "A"])
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: 2 columns are named 'A'; give each a name of its own
    """
    [(name, times)] = Counter(columns).most_common(1) or [("", 0)]
    if times > 1:
        msg = f"{times} columns are named {name!r}; give each a name of its own"
        raise InvalidArgument(msg)


def check_number_of_arms(n: int, arm: str | None) -> None:
    """Raise if a column names so many arms, or a wide frame has so many columns, that it must be a mistake.

    Examples
    --------
    >>> check_number_of_arms(50_000, "user_id")
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: arm='user_id' names 50,000 arms, but at most 10,000 can be compared; choose the
    column that names the groups, or leave arms out
    """
    if n <= MOST_ARMS:
        return
    if arm is None:
        msg = (
            f"there are {n:,} columns, but at most {MOST_ARMS:,} arms can be compared; every column is an arm, so "
            "turn the frame on its side, or leave columns out"
        )
    else:
        msg = (
            f"{given(arm=arm)} names {n:,} arms, but at most {MOST_ARMS:,} can be compared; choose the column "
            "that names the groups, or leave arms out"
        )
    raise InvalidArgument(msg)


class Batch(NamedTuple):
    """Some rows."""

    codes: NDArray[Any]
    """The number of each row's arm."""
    values: Floats | Reader
    """Their readings, or what reads them in a thread."""
    sizes: NDArray[np.intp] | None = None
    """How many rows each arm has, if that is known."""


def grouped(batches: Iterable[Batch], names: Sequence[str]) -> dict[str, Floats]:
    """Return values split by code, arms in the order of their first rows; how many each arm has is counted first.

    Examples
    --------
    >>> grouped([Batch(np.array([1, 0, 1]), np.array([5.0, 6.0, 7.0]))], ["A", "B"])
    {'B': array([5., 7.]), 'A': array([6.])}
    """
    counts, blocks = np.zeros(len(names), dtype=np.intp), list[Batch]()
    for codes, values, _ in _blocks(batches, len(names)):
        sizes = np.bincount(codes, minlength=len(names))
        blocks.append(Batch(codes, values, sizes))
        counts += sizes
    return gathered(blocks, dict(zip(names, counts.tolist(), strict=True)))


def gathered(batches: Iterable[Batch], counts: Mapping[str, int]) -> dict[str, Floats]:
    """Return values split by code, arms in the order of their first rows, from batches of rows.

    Parameters
    ----------
    batches
        Rows, in order; each batch is left behind before the next but a few is asked for.
    counts
        How many rows each arm has; their order is that of the codes.

    Examples
    --------
    >>> batches = Batch(np.array([1, 0]), np.array([5.0, 6.0])), Batch(np.array([1]), np.array([7.0]))
    >>> gathered(batches, {"A": 1, "B": 2})
    {'B': array([5., 7.]), 'A': array([6.])}
    """
    np.empty(_KEPT, dtype=np.uint8)
    names, tapes = list(counts), [np.empty(n) for n in counts.values()]
    ends, first = np.zeros(len(names), dtype=np.intp), list[int]()
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # numpy does not hold the interpreter meanwhile
        pending = deque[Future[None]]()
        for codes, values, known in _blocks(batches, len(names)):
            sizes = np.bincount(codes, minlength=len(names)) if known is None else known
            if ((sizes > 0) & (ends == 0)).any():
                found, at = np.unique(codes, return_index=True)
                first += [i for i in found[np.argsort(at)].tolist() if not ends[i]]
            places = [
                tape[end : end + n] for tape, end, n in zip(tapes, ends.tolist(), sizes.tolist(), strict=True)
            ]
            pending.append(pool.submit(_told_apart, codes, values, places))
            ends += sizes
            if len(pending) > _AHEAD:
                pending.popleft().result()
        for work in pending:
            work.result()
    return {names[i]: tapes[i] for i in first}


def _told_apart(codes: NDArray[Any], values: Floats | Reader, places: Sequence[Floats]) -> None:
    """Write values to the places of their codes; raise a ValueError if there are not as many of them."""
    known = values if isinstance(values, np.ndarray) else values()
    if known.size != codes.size:
        msg = f"{codes.size} rows have {known.size} values"
        raise ValueError(msg)
    order, start = np.argsort(codes, kind="stable"), 0
    for place in places:
        known.take(order[start : start + place.size], out=place, mode="clip")  # other modes write a copy first
        start += place.size


def _blocks(batches: Iterable[Batch], arms: int) -> Iterator[Batch]:
    """Cut batches to what stays near the processor, but for those of which more is known."""
    size = max(_BLOCK, _SHARE * arms)
    for batch in batches:
        codes, values, sizes = batch
        if sizes is not None or not isinstance(values, np.ndarray):
            yield batch
            continue
        for start in range(0, codes.size, size):
            yield Batch(codes[start : start + size], values[start : start + size])


def without_foot(column: Floats) -> Floats:
    """Return a wide column without the empty cells at its foot.

    Examples
    --------
    >>> without_foot(np.array([1.0, np.nan, 2.0, np.nan]))
    array([ 1., nan,  2.])
    """
    told = np.flatnonzero(~np.isnan(column))
    return column[: told[-1] + 1] if told.size else column[:0]


def check_no_counter(tapes: Mapping[str, Floats]) -> None:
    """Raise if a column of a wide frame only counts the rows: it would be compared as an arm.

    Examples
    --------
    >>> check_no_counter({"id": np.arange(3.0), "A": np.array([3.0, 5.0, 4.0])})
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: column 'id' counts the rows, so it is not an arm; leave it out of the data, or
    say that arms were measured side by side in it: round='id'
    """
    for name, tape in tapes.items():
        counted = tape.size > 2 and tape[0] in (0.0, 1.0) and bool(np.all(np.diff(tape) == 1))
        if counted and len(tapes) > 1 and _counts(name):
            msg = (
                f"column {name!r} counts the rows, so it is not an arm; leave it out of the data, or say that "
                f"arms were measured side by side in it: {given(round=name)}"
            )
            raise InvalidArgument(msg)


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


def wide(tapes: Mapping[str, Floats], units: Sequence[object] | None, roles: Roles, how: Reduction) -> Collected:
    """Return the readings of a table with a column for each arm, and perhaps one that names the unit of each row.

    Examples
    --------
    >>> wide({"A": np.array([1.0, np.nan])}, None, Roles(), MEDIANS).tapes
    {'A': array([1.])}
    >>> wide({"A": np.array([1.0, 3.0, 8.0])}, ["x", "x", "y"], Roles(unit="user"), MEDIANS).tapes
    {'A': array([2., 8.])}
    """
    if units is not None and tapes:
        return _by_row(tapes, units, roles, how)
    check_no_counter(tapes)
    return Collected({name: without_foot(tape) for name, tape in tapes.items()}, ordered=roles.order is not None)


def _from_mapping(frame: Mapping[Any, Any], roles: Roles, how: Reduction, *, drop_unnamed: bool) -> Collected:
    check_distinct(map(str, frame))
    columns = {str(name): column for name, column in frame.items()}
    if roles.arm is None or roles.value is None:
        roles.check_columns(list(columns))
        named = columns.pop(roles.unit, ()) if roles.unit is not None else ()
        tapes = _wide(columns, numbers)
        if roles.unit is None or not tapes:
            return Collected(tapes, ordered=roles.order is not None)
        told = enumerate(_cells(named, roles.unit), 1)
        return _by_row(tapes, [_name(cell, row, roles.unit, "unit") for row, cell in told], roles, how)
    roles.check_columns(list(columns))
    names: dict[str, int] = {}
    cells_of_arm = _cells(columns[roles.arm], roles.arm)
    nameless = [i for i, cell in enumerate(cells_of_arm) if _is_absent(cell)]
    if nameless and drop_unnamed:
        kept = {name: _without(columns[name], nameless, len(cells_of_arm)) for name in columns}
        found = _from_mapping(kept, roles, how, drop_unnamed=False)
        return found._replace(dropped=len(nameless))
    if nameless:
        raise Unnamed(unnamed(nameless[0] + 1, roles.arm, more=len(nameless) - 1))
    codes = [names.setdefault(str(cell), len(names)) for cell in cells_of_arm]
    check_number_of_arms(len(names), roles.arm)
    values = numbers(columns[roles.value], roles.value)
    cells = {name: _cells(columns[name], name) for name in roles.columns[2:]}
    for name, n in ((roles.value, values.size), *((name, len(column)) for name, column in cells.items())):
        if len(codes) != n:
            msg = f"columns must have the same length, but {roles.arm!r} has {len(codes)} rows and {name!r} {n}"
            raise InvalidArgument(msg)
    units = roles.unit and [_name(cell, row, roles.unit, "unit") for row, cell in enumerate(cells[roles.unit], 1)]
    return assembled(
        Rows(
            list(names),
            np.array(codes, dtype=np.intp),
            values,
            units or None,
            cells.get(roles.order) if roles.order else None,
            _suspected(columns, roles, len(codes)),
        ),
        roles,
        how,
    )


def _cells(column: Any, name: str) -> Sequence[Any]:  # noqa: ANN401 - any sequence
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        msg = f"column {name!r} must be a list of cells, but got {_shown(column)}"
        raise InvalidArgument(msg)
    return list(column)


def _without(column: Any, places: Sequence[int], n: int) -> Any:  # noqa: ANN401 - any sequence
    """Return a column without the cells at some places, if it is one of n rows."""
    if isinstance(column, str | bytes) or getattr(column, "__len__", int)() != n:
        return column
    out = set(places)
    return [cell for i, cell in enumerate(column) if i not in out]


def _suspected(columns: Mapping[str, Any], roles: Roles, n: int) -> dict[str, list[Any]]:
    """Return the first rows of the columns named like a unit; one of another length is no column of these rows."""
    fitting = [name for name in roles.suspects(columns) if getattr(columns[name], "__len__", int)() == n]
    return {name: list(islice(columns[name], MOST_SUSPECTED)) for name in fitting}


def _wide(columns: Mapping[str, Any], reader: Callable[[Any, str], Floats]) -> dict[str, Floats]:
    """Return every column as floats; one of words beside one of numbers says that the frame is long."""
    check_number_of_arms(len(columns), None)
    tapes: dict[str, Floats] = {}
    failed: dict[str, InvalidArgument] = {}
    for name, column in columns.items():
        try:
            tapes[name] = reader(column, name)
        except InvalidArgument as error:
            failed[name] = error
    words = [name for name in failed if _are_words(columns[name])]
    if words and tapes:
        raise InvalidArgument(holds_words(words[0], list(tapes)))
    if failed:
        raise next(iter(failed.values()))
    return tapes


def _are_words(column: Any) -> bool:  # noqa: ANN401 - any sequence
    """Return whether no cell is anything but a word: one word among numbers is a slip, not a column of names."""
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        return False
    cells = [cell for cell in column if cell is not None]
    return len(cells) > 1 and all(isinstance(cell, str) and not _is_date(cell) for cell in cells)


def holds_words(words: str, readings: Sequence[str]) -> str:
    """Return what to say of a frame read as wide that seems to be long, or to name its rows.

    Examples
    --------
    >>> holds_words("variant", ["ms"])
    "column 'variant' holds words; name the columns: arm='variant', value='ms'"
    >>> print(holds_words("item", ["A", "B"]))
    column 'item' holds words; name the columns: arm='item', value='A'; or, if the others are arms measured side by
    side, round='item'
    >>> holds_words("arm", ["ticket", "value", "at"])
    "column 'arm' holds words; name the columns: arm='arm', value='value'"
    """
    named = [name for name in readings if name.casefold() == "value"]
    likely = [name for name in readings if not _counts(name)]
    value = [*named, *likely, *readings][0]
    told = f"column {words!r} holds words; name the columns: {given(arm=words, value=value)}"
    aside = f"; or, if the others are arms measured side by side, {given(round=words)}"
    return told + (aside if len(readings) > 1 and not named else "")


def _counts(name: str) -> bool:
    """Tell whether a column of that name rather numbers the rows than holds readings."""
    return looks_like_unit(name) or _COUNTERS.fullmatch(name.casefold().strip()) is not None


def _name(cell: object, row: int, column: str, part: str = "arm") -> str:
    if _is_absent(cell):
        raise InvalidArgument(unnamed(row, column, part))
    return str(cell)


class Unnamed(InvalidArgument):
    """A row names no arm, and was not to be left out.

    Examples
    --------
    >>> str(Unnamed(unnamed(3, "site")))
    "row 3 of column 'site' names no arm; give it a name, or leave such rows out"
    """


def unnamed(row: int, column: str, part: str = "arm", more: int = 0) -> str:
    """Return what to say of a row without an arm or a unit, and of as many more.

    Examples
    --------
    >>> unnamed(3, "site", more=40)
    "row 3 of column 'site' names no arm, nor do 40 more; give it a name, or leave such rows out"
    """
    others = f", nor do{'es' * (more == 1)} {more:,} more" if more else ""
    return f"row {row} of column {column!r} names no {word(part)}{others}; give it a name, or leave such rows out"


def numbers(column: Any, name: str) -> Floats:  # noqa: ANN401 - any sequence
    """Return a column as floats, empty cells as NaN, or name the row that is no number.

    Examples
    --------
    >>> numbers([1, None, True], "ms")
    array([ 1., nan,  1.])
    """
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        msg = f"column {name!r} must be a list of readings, but got {_shown(column)}"
        raise InvalidArgument(msg)
    if isinstance(column, np.ma.MaskedArray):  # under its mask any number may stand
        hidden = np.ma.getmaskarray(column)
        column = [None if hides else cell for cell, hides in zip(column.data, hidden, strict=True)]
    try:
        items = np.asarray(column)
    except ValueError:  # cells of different lengths
        items = np.empty(0, dtype=object)
    if items.ndim == 1 and items.dtype.kind in "biuf":
        return items.astype(np.float64, copy=False)
    return np.array([_number(cell, row, name) for row, cell in enumerate(column, 1)], dtype=np.float64)


def _number(cell: Any, row: int, name: str) -> float:  # noqa: ANN401
    if cell is None or type(cell).__name__ == "NAType":  # pandas.NA
        return np.nan
    if _is_date(cell) or isinstance(cell, str | bytes) or np.ndim(cell):
        raise InvalidArgument(not_a_number(cell, row, name))
    return as_number(f"row {row} of column {name!r}", cell, "use inf for what is beyond all numbers", boolean=True)


def not_a_number(cell: object, row: int, name: str) -> str:
    """Return what to say of a cell that holds no number.

    Examples
    --------
    >>> not_a_number("fast", 3, "ms")
    "row 3 of column 'ms' must be a number, but got 'fast'; leave a cell empty for a reading that went wrong"
    """
    where = f"row {row} of column {name!r}"
    if _is_date(cell):
        return f"{where} is a date, {str(cell)!r}; convert it to a number"
    remedy = "leave a cell empty for a reading that went wrong"
    with suppress(ValueError):
        if isinstance(cell, str) and math.isfinite(float(cell)):
            remedy = "it is text: convert the column to numbers first"
    return f"{where} must be a number, but got {_shown(cell)}; {remedy}"


def _shown(cell: object) -> str:
    text = " ".join(repr(cell).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _is_date(cell: object) -> bool:
    if isinstance(cell, str):
        try:
            datetime.datetime.fromisoformat(cell)
        except ValueError:
            return False
        return True
    return isinstance(cell, datetime.date | datetime.time | np.datetime64)


def _from_table(frame: Any, roles: Roles, how: Reduction, *, drop_unnamed: bool) -> Collected:  # noqa: ANN401
    import narwhals as nw

    try:
        table = native(frame)
        columns = table.collect_schema().names()
    except TypeError:
        msg = (
            f"frame must be a pandas, polars or pyarrow table, a DuckDB relation, or a dict of sequences, but got "
            f"{type(frame).__name__}; write {{'A': [1, 2], 'B': [3, 4]}}, or the path of a file"
        )
        raise InvalidArgument(msg) from None
    for name in columns:
        if not isinstance(name, str):
            msg = f"names of columns must be strings, but got {name!r}; use frame.rename(columns=str) first"
            raise InvalidArgument(msg)
    if roles.arm is None or roles.value is None:
        check_number_of_arms(len(columns), None)
        roles.check_columns(columns)
        rows = table.collect() if isinstance(table, nw.LazyFrame) else table
        tapes = _wide({name: rows[name] for name in columns if name != roles.unit}, floats_of)
        return wide(tapes, None if roles.unit is None else _labels(rows, roles.unit), roles, how)
    roles.check_columns(columns)
    check_named(table.collect_schema(), roles, table.implementation.is_polars())
    suspects = roles.suspects(columns)
    chosen = table.select(*roles.columns, *suspects)
    long = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    if len(long) and long[roles.arm].dtype == nw.String and not long[roles.arm].null_count():
        rows = _rows(long, roles, suspects)
        if "" not in rows.names:  # each name is looked at once, not each row
            return assembled(rows, roles, how)
    nameless = _nameless(long[roles.arm])
    if nameless is not None and drop_unnamed:
        dropped = int(nameless.sum())
        found = assembled(_rows(long.filter(~nameless), roles, suspects), roles, how)
        return found._replace(dropped=dropped)
    if nameless is not None:
        row, more = nameless.arg_max() + 1, int(nameless.sum()) - 1
        raise Unnamed(unnamed(row, roles.arm, more=more))
    if not len(long):
        return Collected({}, ordered=roles.order is not None)
    return assembled(_rows(long, roles, suspects), roles, how)


def native(frame: Any, **how: Any) -> Any:  # noqa: ANN401 - what narwhals takes and gives
    """Return a frame as narwhals sees it, or say that two of its columns have one name.

    Examples
    --------
    >>> import pandas as pd
    >>> native(pd.DataFrame([[1, 2]], columns=["ms", "ms"]))
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: columns need names of their own: Expected unique column names, got: - 'ms' 2
    times; rename them
    """
    import narwhals as nw

    try:
        return nw.from_native(frame, **how)
    except nw.exceptions.DuplicateError as error:
        msg = f"columns need names of their own: {' '.join(str(error).split())}; rename them"
        raise InvalidArgument(msg) from None


def check_named(schema: Mapping[str, Any], roles: Roles, polars: bool) -> None:
    """Raise if what should name arms or units are lists, records, or objects that Polars cannot read.

    Examples
    --------
    >>> import narwhals as nw
    >>> check_named({"site": nw.List(nw.String)}, Roles("site", "ms"), True)
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: column 'site' must hold names, but its type is List(String); convert it first
    """
    import narwhals as nw

    for column in (roles.arm, roles.unit):
        kind = schema.get(column) if column is not None else None
        if kind is not None and (kind.is_nested() or (polars and kind == nw.Object)):
            msg = f"column {column!r} must hold names, but its type is {kind}; convert it first"
            raise InvalidArgument(msg)


def _nameless(series: Any) -> Any:  # noqa: ANN401 - narwhals series
    """Return which cells hold no name, None if all do."""
    import narwhals as nw

    found = [series.is_null()] if series.null_count() else []
    if series.dtype.is_float():
        found.append(series.is_nan().fill_null(True))
    elif not series.dtype.is_numeric():
        found.append((series.cast(nw.String) == "").fill_null(True))
    nameless = found[0] if found else None
    for more in found[1:]:
        nameless = nameless | more
    return nameless if nameless is not None and nameless.any() else None


def _rows(table: Any, roles: Roles, suspects: Sequence[str]) -> Rows:  # noqa: ANN401 - a narwhals frame
    import narwhals as nw

    arm, value, unit, order = roles
    values = floats_of(table[value], str(value))
    names = table[arm] if table[arm].dtype == nw.String else table[arm].cast(nw.String)
    found, codes = _factorized(names, str(arm))
    return Rows(
        found,
        codes.astype(np.min_scalar_type(len(found))),
        values,
        None if unit is None else _labels(table, unit),
        None if order in (None, "rows") else _places(table[order]),
        {name: table[name].head(MOST_SUSPECTED).to_list() for name in suspects},
    )


def _factorized(names: Any, arm: str) -> tuple[list[str], NDArray[Any]]:  # noqa: ANN401 - a narwhals series
    """Return the different names, as they first appear, and the number of each row's among them."""
    import narwhals as nw

    kind, cells = names.implementation, names.to_native()
    if kind.is_pandas():
        codes, uniques = names.__native_namespace__().factorize(cells)
        check_number_of_arms(len(uniques), arm)
        return [str(name) for name in uniques], codes
    if kind.is_polars():  # measured: less than half of the time of `replace_strict`
        polars = names.__native_namespace__()
        for some in (names.head(MOST_SUSPECTED), names):  # the first rows name all arms, as a rule
            found = some.unique(maintain_order=True).to_list()
            check_number_of_arms(len(found), arm)
            kind_of_name = polars.Enum(found)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                parts = (cells.slice(start, _BLOCK) for start in range(0, len(cells), _BLOCK))
                cast = pool.map(lambda part, to=kind_of_name: part.cast(to, strict=False).to_physical(), parts)
                codes = polars.concat(cast)
            if not codes.null_count():
                break
        return found, codes.to_numpy()
    if kind.is_pyarrow() and str(cells.type) == "string_view":  # most of Arrow does not know it
        names = nw.from_native(cells.cast("string"), series_only=True)
    found = names.unique(maintain_order=True).to_list()
    check_number_of_arms(len(found), arm)
    return found, names.replace_strict(found, list(range(len(found))), return_dtype=nw.Int32).to_numpy()


def _places(series: Any) -> list[Any]:  # noqa: ANN401 - a narwhals series
    """Return cells to put rows in order by; times as whole numbers, which compare faster."""
    import narwhals as nw

    if series.dtype == nw.Datetime:
        series = series.dt.timestamp("ns" if series.dtype.time_unit == "ns" else "us")
    cells: list[Any] = series.to_list()
    return cells


def _labels(table: Any, unit: str) -> list[object]:  # noqa: ANN401 - a narwhals frame
    """Return what tells units apart; numbers need no words."""
    import narwhals as nw

    series = table[unit]
    if (nameless := _nameless(series)) is not None:
        raise InvalidArgument(unnamed(nameless.arg_max() + 1, unit, "unit", more=int(nameless.sum()) - 1))
    labels: list[object] = (series if series.dtype.is_integer() else series.cast(nw.String)).to_list()
    return labels


def floats_of(series: Any, name: str) -> Floats:  # noqa: ANN401 - a narwhals series
    """Return a series as floats, empty cells as NaN, or say what it holds instead of numbers.

    Examples
    --------
    >>> import narwhals as nw, pyarrow as pa
    >>> floats_of(nw.from_native(pa.chunked_array([[2**60 + 1, None]]), series_only=True), "ms").tolist()
    [1.152921504606847e+18, nan]
    """
    import narwhals as nw

    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        try:
            floats = series.cast(nw.Float64)
        except ValueError:  # of Arrow: whole numbers that floats have to round
            return numbers(series.to_list(), name)
        filled = floats.fill_null(float("nan")) if floats.null_count() else floats
        return np.asarray(filled.to_numpy(), dtype=np.float64)
    if series.dtype in (nw.String, nw.Object, nw.Unknown, nw.Categorical):
        return numbers(series.to_list(), name)
    if series.dtype.is_temporal():
        msg = f"column {name!r} holds dates or times ({series.dtype}); convert them to numbers"
        raise InvalidArgument(msg)
    msg = f"column {name!r} must hold numbers, but its type is {series.dtype}; convert it first"
    raise InvalidArgument(msg)
