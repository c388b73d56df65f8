"""Roles of columns, how rows become the readings of each arm, and errors about columns."""

import re
from collections import Counter as Occurrences
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument
from truearm.evidence.units import Reduction, Suspect, Units, by_unit, looks_like_unit
from truearm.problem import refuse

if TYPE_CHECKING:
    from truearm.data.engines import Counter
    from truearm.evidence.counts import Counts

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

MAX_ARMS = 1_000  # comparing more takes minutes, and a column with more names is usually an id
_COUNTERS = re.compile(
    r"id|idx|index|i|n|no\.?|nr\.?|num|number|row|#|rep|repetition|trial|iteration|round|unnamed: 0"
)
_TIMES = "ns|us|µs|ms|msecs?|secs?|seconds?|minutes?|time|times|runtime|latency|duration|elapsed"


class Columns(NamedTuple):
    """The columns of a long table; a wide one has one column per arm, and may have a unit or a round."""

    arm: str | None = None
    value: str | None = None
    unit: str | None = None
    order: str | None = None
    round: str | None = None

    @property
    def group(self) -> str | None:
        """The column whose rows become one reading per arm: the unit, or the round unless that is each row."""
        return self.unit if self.round in (None, "rows") else self.round

    @property
    def group_kind(self) -> str:
        """What messages call a value of the group column."""
        return "unit" if self.round is None else "round"

    @property
    def by_argument(self) -> dict[str, str]:
        """The named columns by argument; "rows" as an order or a round is not a column."""
        rows = [name for name in ("order", "round") if getattr(self, name) == "rows"]
        named = ((name, column) for name, column in self._asdict().items() if name not in rows)
        return {name: column for name, column in named if column is not None}

    def check_in(self, columns: Sequence[str]) -> None:
        """Raise if columns do not go together or do not exist, and suggest the one that was meant."""
        name, other = ("arm", "value") if self.value is None else ("value", "arm")
        msg = f"{name}={getattr(self, name)!r} needs {other}='...' too; name both columns of a long table, or none"
        refuse((self.arm is None) != (self.value is None), f"{msg} of a wide one", name)
        for name in ("unit", "order"):
            column = getattr(self, name)
            msg = f"{name}={column!r} does not go with round={self.round!r}, which makes one reading per arm and "
            refuse(column is not None and self.round is not None, f"{msg}round; remove {name}", name, column)
        msg = "round='rows' is for a wide table, with a column for each arm; name the column of the rounds"
        refuse(self.round == "rows" and self.arm is not None, msg, "round", self.round)
        msg = f"order={self.order!r} needs a long table; name its columns too: arm='...', value='...'"
        refuse(self.arm is None and self.order not in (None, "rows"), msg, "order", self.order)
        for (name, column), (other, same) in combinations(self.by_argument.items(), 2):
            part = {"arm": "the arms", "value": "the readings"}.get(name, f"the {name}")
            is_twice = column == same and {name, other} != {"unit", "order"}
            refuse(is_twice, f"{other}={column!r} is the column of {part}; name another one", other, column)
        for name, column in self.by_argument.items():
            if column not in columns:
                near = [one for one in columns if one.casefold() == column.casefold()]
                near = near or get_close_matches(column, columns, 1)
                hint = f"; did you mean {near[0]!r}? Columns" if near else "; columns"
                shown = ", ".join(map(repr, columns[:20])) + (", ..." if len(columns) > 20 else "")
                # a title may be above the names
                shown += "; in a file the first line names them" * (len(columns) == 1)
                raise InvalidArgument(f"{name}={column!r} is not a column{hint} are {shown}", name, column)
        msg = "order='rows' is the order of the rows, but a column is called 'rows' too; rename the column"
        refuse(self.order == "rows" and "rows" in columns, msg, "order", "rows")

    def suspects(self, columns: Iterable[str]) -> list[str]:
        """Return the columns that are named like a unit, if no unit is declared."""
        if self.group is not None or self.arm is None:
            return []
        return [name for name in columns if name not in self.by_argument.values() and looks_like_unit(name)]


NO_COLUMNS = Columns()


class Dataset(NamedTuple):
    """Readings by arm, and what is known about how they were made.

    Arms keep the order in which they first appear, readings the order of their rows or that of a column.
    """

    tapes: dict[str, Floats]
    """Per arm one number per reading, or per unit or round if there is one; NaN where one is missing."""
    ordered: bool = False  # whether each tape is in order of pull; else its order says nothing
    units: Units | None = None  # what was reduced to one reading each; None if every row is a reading
    suspects: tuple[Suspect, ...] = ()  # columns named like a unit that was not declared
    timed: bool = False  # whether less is better, because the readings are times or those of a race that said so
    unit: str = ""  # "s" if the readings are known to be seconds
    options: Mapping[str, Any] = {}
    """Options of the problem that the data bring along: an export of a race says what was compared."""
    notes: tuple[str, ...] = ()  # what a reader should know about the data, one sentence each
    counter: "Counter | None" = None  # instead of tapes, where readings are counted by the engine that has them
    counted: "Counts | None" = None  # the same, for counts that are complete

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


def assemble(
    labels: tuple[Sequence[str], NDArray[Any]],
    values: Floats,
    columns: Columns,
    reduction: Reduction,
    *,
    groups: Codes | None = None,
    order: NDArray[Any] | None = None,
) -> Dataset:
    """Return the readings of each arm from rows; those of one unit become one (extensions 2).

    Labels are the names of the arms and the arm of each row, groups the unit or round of each row, numbered in
    order of first appearance. Rows are sorted by `order`.
    """
    arms, places = labels[1], _places(*labels, order)
    data = Dataset({}, columns.order is not None, notes=similar_names(places))
    if groups is None or columns.group is None:
        return data._replace(tapes={name: values[at] for name, at in places.items()})
    tapes = {name: by_unit(values[at], groups[at], reduction) for name, at in places.items()}
    total = int(groups.max(initial=0)) + 1
    pairs = np.unique(arms.astype(np.int64) * total + groups)
    units = Units(
        columns.group,
        {name: at.size for name, at in places.items()},
        {name: tape.size for name, tape in tapes.items()},
        int(np.count_nonzero(np.bincount(pairs % total) > 1)),  # have rows of more than one arm
    )
    check_several(units, columns.group_kind)
    if columns.round is not None:
        for name, at in places.items():
            found, first = np.unique(groups[at], return_index=True)
            tape = np.full(groups.max(initial=-1) + 1, np.nan)
            tape[found[np.argsort(first)]] = tapes[name]  # `by_unit` returns units in order of first appearance
            tapes[name] = tape
    return data._replace(tapes=tapes, units=units)


def assemble_wide(
    tapes: dict[str, Floats], groups: Codes | None, columns: Columns, reduction: Reduction, *, is_padded: bool
) -> Dataset:
    """Return the readings of a table with one column per arm, and perhaps one for a unit or a round.

    If `is_padded`, columns were rows, and empty cells at the end of one only mean that it is shorter.
    """
    for name, tape in tapes.items() if is_padded and len(tapes) > 1 else ():
        counts = tape.size > 2 and is_counter(name)
        if counts and any(np.array_equal(tape, np.arange(tape.size) + first) for first in (0, 1)):
            msg = f"column {name!r} counts the rows, so it is not an arm; remove it, or use round={name!r}"
            raise InvalidArgument(f"{msg} if arms were measured side by side in it", "round")
    if groups is not None and tapes:
        for name, tape in tapes.items():
            lengths = f"{columns.group!r} has {groups.size} rows and {name!r} {tape.size}"
            refuse(tape.size != groups.size, f"columns must have the same length, but {lengths}")
        arms = np.repeat(np.arange(len(tapes)), groups.size)
        values = np.concatenate(list(tapes.values()))
        return assemble((list(tapes), arms), values, columns, reduction, groups=np.tile(groups, len(tapes)))
    if is_padded and columns.round is None:
        tapes = {name: tape[: np.flatnonzero(~np.isnan(tape)).max(initial=-1) + 1] for name, tape in tapes.items()}
    data = Dataset(tapes, columns.order is not None, notes=similar_names(tapes))
    return data.align() if columns.round is not None else data


def check_several(units: Units, kind: str) -> None:
    """Raise if an arm has one unit only."""
    for name, n in units.counts.items():
        several = "1 reading is" if units.rows[name] == 1 else f"{units.rows[name]:,} readings are"
        msg = f"arm {name!r} has one {kind} only: its {several} of a single {units.name!r}, which cannot show how "
        msg += "they differ; measure more of them, or remove the arm"
        refuse(n == 1, msg, kind)


def _places(names: Sequence[str], arms: NDArray[Any], order: NDArray[Any] | None) -> dict[str, Codes]:
    """Return the rows of each arm in order, the arms as they first appear."""
    along = np.argsort(arms, kind="stable")
    if order is not None:
        by_order = np.argsort(order, kind="stable")
        along = by_order[np.argsort(arms[by_order], kind="stable")]
    ends = np.searchsorted(arms, np.arange(len(names), dtype=arms.dtype), "right", sorter=along)
    parts = [(name, part) for name, part in zip(names, np.split(along, ends[:-1]), strict=True) if part.size]
    return dict(sorted(parts, key=lambda part: int(part[1].min())))


def check_distinct(names: Iterable[str], kind: str = "columns", wanted: Collection[str] | None = None) -> None:
    """Raise if two names are equal; by default any two, else those wanted."""
    for name, times in Occurrences(names).items():
        is_twice = times > 1 and (wanted is None or name in wanted)
        refuse(is_twice, f"{times} {kind} are named {name!r}; give each its own name")


def check_case(columns: Iterable[str], wanted: Collection[str]) -> None:
    """Raise if two columns differ at most in case and one of them is wanted: DuckDB cannot tell them apart."""
    same = defaultdict(list)
    for name in columns:
        same[name.casefold()].append(name)
    for names in same.values():
        check_distinct(names, wanted=wanted)
        is_asked = len(names) > 1 and not set(names).isdisjoint(wanted)
        cased = f"columns {names[0]!r} and {names[-1]!r} differ only in case, which files do not tell apart"
        refuse(is_asked, f"{cased}; give each its own name")


def check_number_of_arms(n: int, arm: str | None = None, kind: str = "columns") -> None:
    """Raise if there are more arms than can be meant: the wrong column, or a table on its side."""
    named = f"there are {n:,} {kind}" if arm is None else f"arm={arm!r} names {n:,} arms or more"
    remedy = "choose fewer, another column, or transpose the table"
    refuse(n > MAX_ARMS, f"{named}, but at most {MAX_ARMS:,} arms can be compared; {remedy}", "arm", arm)


def similar_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return a note on arms whose names differ only in case or blanks, if any."""
    same = defaultdict(list)
    for name in names:
        same["".join(name.split()).casefold()].append(name)
    pairs = [" and ".join(map(repr, found)) for found in same.values() if len(found) > 1]
    remedy = "differ only in case or blanks and count as different arms: rename them if they are the same."
    return (f"{', '.join(pairs)} {remedy}",) if pairs else ()


def words_message(words: str, readings: Sequence[str]) -> str:
    """Return the error message for a wide table with a column of words: it is probably long, or names its rows."""
    named = [name for name in readings if name.casefold() == "value"]
    value = [*named, *(name for name in readings if not is_counter(name)), *readings, "COLUMN"][0]
    msg = f"column {words!r} holds words; name the columns: arm={words!r}, value={value!r}"
    beside = f"; or use round={words!r} if the others are arms measured side by side"
    return msg + (beside if len(readings) > 1 and not named else "")


def is_counter(name: str) -> bool:
    """Return True if a column of that name numbers the rows rather than holds readings."""
    return looks_like_unit(name) or _COUNTERS.fullmatch(name.casefold().strip()) is not None


def looks_like_time(column: str) -> bool:
    """Return True if a column is named like a time, where less is usually better."""
    return re.search(rf"(?:^|[^a-z])(?:{_TIMES})(?:$|[^a-z])", column.lower()) is not None
