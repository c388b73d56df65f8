"""Which column plays which part, and the mistakes that can be made with columns."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from truearm.errors import InvalidArgument
from truearm.evidence.units import looks_like_unit

MAX_ARMS = 10_000  # a column with more names is an id
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
    def named(self) -> dict[str, str]:
        """The named columns by argument."""
        given = {name: column for name, column in self._asdict().items() if column is not None}
        return {name: column for name, column in given.items() if (name, column) not in _ROWS}

    def check(self) -> "Columns":
        """Return the columns if they go together."""
        for name, column in self._asdict().items():
            if column is not None and not isinstance(column, str):
                msg = (
                    f"{name} must be the name of a column, a string, but got {' '.join(repr(column).split()):.80}"
                )
                raise InvalidArgument(msg, name, column)
        if (self.arm is None) != (self.value is None):
            name, other = ("arm", "value") if self.value is None else ("value", "arm")
            msg = f"{name}={getattr(self, name)!r} needs {other}='...' too; name both columns of a long table, or "
            raise InvalidArgument(f"{msg}none of a wide one", name)
        for name in ("unit", "order"):
            column = getattr(self, name)
            if column is not None and self.round is not None:
                msg = f"{name}={column!r} does not go with round={self.round!r}, which makes one reading per arm "
                raise InvalidArgument(f"{msg}and round; remove {name}", name, column)
        if self.round == "rows" and self.arm is not None:
            msg = "round='rows' is for a wide table, with a column for each arm; name the column of the rounds"
            raise InvalidArgument(msg, "round", self.round)
        if self.arm is None and self.order not in (None, "rows"):
            msg = f"order={self.order!r} needs a long table; name its columns too: arm='...', value='...'"
            raise InvalidArgument(msg, "order", self.order)
        for (name, column), (other, same) in _pairs(list(self.named.items())):
            if column == same and {name, other} != {"unit", "order"}:
                part = {"arm": "the arms", "value": "the readings"}.get(name, f"the {name}")
                msg = f"{other}={column!r} is the column of {part}; name another one"
                raise InvalidArgument(msg, other, column)
        return self

    def check_in(self, columns: Sequence[str]) -> None:
        """Raise if columns do not go together or do not exist, and suggest the one that was meant."""
        self.check()
        for name, column in self.named.items():
            if column in columns:
                continue
            near = [one for one in columns if one.casefold() == column.casefold()]
            near = near or get_close_matches(column, columns, 1)
            hint = f"; did you mean {near[0]!r}? Columns" if near else "; columns"
            shown = ", ".join(map(repr, columns[:20])) + (", ..." if len(columns) > 20 else "")
            msg = f"{name}={column!r} is not a column{hint} are {shown}"
            raise InvalidArgument(msg, name, column)
        if self.order == "rows" and "rows" in columns:
            msg = "order='rows' is the order of the rows, but a column is called 'rows' too; rename the column"
            raise InvalidArgument(msg, "order", "rows")

    def suspects(self, columns: Iterable[str]) -> list[str]:
        """Return the columns that are named like a unit, if no unit is declared."""
        if self.group is not None or self.arm is None:
            return []
        return [name for name in columns if name not in self.named.values() and looks_like_unit(name)]


NO_COLUMNS = Columns()
_ROWS = (("order", "rows"), ("round", "rows"))


def _pairs(items: Sequence[tuple[str, str]]) -> Iterable[tuple[tuple[str, str], tuple[str, str]]]:
    return ((one, other) for i, one in enumerate(items) for other in items[i + 1 :])


def check_distinct(columns: Iterable[str], wanted: Collection[str] | None = None) -> None:
    """Raise if two columns have one name, or of those wanted names that differ only in case."""
    names = list(columns)
    for name, times in Counter(names).items():
        if times > 1 and (wanted is None or name in wanted):
            msg = f"{times} columns are named {name!r}; give each its own name"
            raise InvalidArgument(msg)


def check_case(columns: Iterable[str], wanted: Collection[str]) -> None:
    """Raise if two columns differ only in case and one of them is wanted: DuckDB cannot tell them apart."""
    same = defaultdict(list)
    for name in columns:
        same[name.casefold()].append(name)
    for names in same.values():
        if len(names) > 1 and not set(names).isdisjoint(wanted):
            twice = f"{len(names)} columns are named {names[0]!r}"
            cased = f"columns {names[0]!r} and {names[1]!r} differ only in case, which files do not tell apart"
            raise InvalidArgument(f"{twice if names[0] == names[1] else cased}; give each its own name")


def check_number_of_arms(n: int, arm: str | None) -> None:
    """Raise if there are more arms than can be meant: the wrong column, or a table on its side."""
    if n <= MAX_ARMS:
        return
    if arm is None:
        msg = f"there are {n:,} columns, but at most {MAX_ARMS:,} arms can be compared; transpose the table"
    else:
        msg = f"arm={arm!r} names {n:,} arms, but at most {MAX_ARMS:,} can be compared; choose the column that "
        msg += "names the groups"
    raise InvalidArgument(msg, "arm", arm)


def similar_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return a note for each pair of arms whose names differ only in case or blanks."""
    same = defaultdict(list)
    for name in names:
        same["".join(name.split()).casefold()].append(name)
    pairs = [found[:2] for found in same.values() if len(found) > 1]
    return tuple(
        f"{one!r} and {other!r} are different arms, though they differ only in case or blanks: rename one if they "
        "are the same."
        for one, other in pairs
    )


def words_message(words: str, readings: Sequence[str]) -> str:
    """Return the message for a wide table with a column of words: it seems to be long, or to name its rows."""
    named = [name for name in readings if name.casefold() == "value"]
    value = [*named, *(name for name in readings if not is_counter(name)), *readings][0]
    msg = f"column {words!r} holds words; name the columns: arm={words!r}, value={value!r}"
    beside = f"; or, if the others are arms measured side by side, round={words!r}"
    return msg + (beside if len(readings) > 1 and not named else "")


def is_counter(name: str) -> bool:
    """Return True if a column of that name numbers the rows rather than holds readings."""
    return looks_like_unit(name) or _COUNTERS.fullmatch(name.casefold().strip()) is not None


def looks_like_time(column: str) -> bool:
    """Return True if a column is named like a time, of which less is usually better."""
    return re.search(rf"(?:^|[^a-z])(?:{_TIMES})(?:$|[^a-z])", column.lower()) is not None
