"""Which column plays which part, and names and numbers of columns that must be a mistake."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np

from truearm.errors import InvalidArgument
from truearm.evidence.units import looks_like_unit
from truearm.world.by_arm import Floats
from truearm.world.cells import shown

MOST_ARMS = 10_000  # a minute of work, and a place in the list for everyone; more are an id taken for the arm
_RENAMED = re.compile(r"(.*)_\d+", re.DOTALL)  # what DuckDB makes of a name that it has seen before
_COUNTERS = re.compile(
    r"id|idx|index|i|n|no\.?|nr\.?|num|number|row|#|rep|repetition|trial|iteration|round|unnamed: 0"
)


class Roles(NamedTuple):
    """Which column of a long frame plays which part; of a wide one units and the order of rows may be known."""

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
                msg = f"{argument} must be the name of a column, a string, but got {shown(name)}"
                raise InvalidArgument(msg)
        if self.arm is not None and self.arm == self.value:
            msg = f"arm={self.arm!r}, value={self.value!r}: one column cannot be both; name two"
            raise InvalidArgument(msg)
        for argument, name in (("unit", self.unit), ("order", self.order)):
            if name is None or (argument, name) == ("order", "rows"):
                continue
            if self.arm is None and argument == "order":
                msg = (
                    f"{argument}={name!r} needs a long frame, with one column for the arm and one for the "
                    f"reading; name them too: arm='...', value='...'"
                )
                raise InvalidArgument(msg)
            if name in (self.arm, self.value):
                part = "arms" if name == self.arm else "readings"
                msg = f"{argument}={name!r} is the column of the {part}; name one of its own, or none"
                raise InvalidArgument(msg)
        return self

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise if a named column is not there."""
        for argument, name in self._asdict().items():
            if name is not None and (argument, name) != ("order", "rows"):
                check_column(columns, name, argument)
        if self.order == "rows" and "rows" in columns:
            said = "order='rows'"
            msg = f"{said} is the order of the rows, but a column is called 'rows' too; rename the column"
            raise InvalidArgument(msg)

    def suspects(self, columns: Iterable[str]) -> list[str]:
        """Return the columns that are named like a unit, if none is declared."""
        if self.unit is not None or self.arm is None:
            return []
        return [name for name in columns if name not in self.columns and looks_like_unit(name)]


def check_column(columns: Iterable[str], name: str, argument: str) -> str:
    """Return a column's name if the frame has it, or suggest the one that was meant."""
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
    msg = f"{argument}={name!r} is not a column{hint} are {shown}"
    raise InvalidArgument(msg)


def check_distinct(columns: Iterable[str]) -> None:
    """Raise if two columns have the same name."""
    [(name, times)] = Counter(columns).most_common(1) or [("", 0)]
    if times > 1:
        msg = f"{times} columns are named {name!r}; give each a name of its own"
        raise InvalidArgument(msg)


def check_names(columns: Collection[str], wanted: Collection[str], told: Callable[[], Collection[str]]) -> None:
    """Raise if a column that is wanted has the name of another, or one that differs in case only.

    Parameters
    ----------
    columns
        The names that DuckDB gave, which tell apart what the files do not.
    told
        Returns the names that the files have.
    """
    first = {name.casefold(): name for name in reversed(list(columns))}
    for name in columns:
        base = _RENAMED.fullmatch(name)
        twin = first.get(base[1].casefold()) if base else None
        if base and twin and {twin, base[1], name} & set(wanted) and name not in told():
            cased = f"columns {twin!r} and {base[1]!r} differ only in case, which is not told apart in files"
            msg = f"2 columns are named {twin!r}" if base[1] == twin else cased
            raise InvalidArgument(f"{msg}; give each a name of its own")


def check_number_of_arms(n: int, arm: str | None) -> None:
    """Raise if a column names so many arms, or a wide frame has so many columns, that it must be a mistake."""
    if n <= MOST_ARMS:
        return
    if arm is None:
        msg = (
            f"there are {n:,} columns, but at most {MOST_ARMS:,} arms can be compared; every column is an arm, so "
            "turn the frame on its side, or leave columns out"
        )
    else:
        msg = (
            f"arm={arm!r} names {n:,} arms, but at most {MOST_ARMS:,} can be compared; choose the column "
            "that names the groups, or leave arms out"
        )
    raise InvalidArgument(msg)


def check_no_counter(tapes: Mapping[str, Floats]) -> None:
    """Raise if a column of a wide frame only counts the rows: it would be compared as an arm."""
    for name, tape in tapes.items():
        counted = tape.size > 2 and tape[0] in (0.0, 1.0) and bool(np.all(np.diff(tape) == 1))
        if counted and len(tapes) > 1 and _counts(name):
            msg = (
                f"column {name!r} counts the rows, so it is not an arm; leave it out of the data, or say that "
                f"arms were measured side by side in it: round={name!r}"
            )
            raise InvalidArgument(msg)


def holds_words(words: str, readings: Sequence[str]) -> str:
    """Return what to say of a frame read as wide that seems to be long, or to name its rows."""
    named = [name for name in readings if name.casefold() == "value"]
    likely = [name for name in readings if not _counts(name)]
    value = [*named, *likely, *readings][0]
    told = f"column {words!r} holds words; name the columns: arm={words!r}, value={value!r}"
    aside = f"; or, if the others are arms measured side by side, round={words!r}"
    return told + (aside if len(readings) > 1 and not named else "")


def _counts(name: str) -> bool:
    """Tell whether a column of that name rather numbers the rows than holds readings."""
    return looks_like_unit(name) or _COUNTERS.fullmatch(name.casefold().strip()) is not None


def looks_like_time(column: str) -> bool:
    """Tell whether a column is named like a time, of which less is better as a rule."""
    words = "ns|us|µs|ms|msecs?|secs?|seconds?|minutes?|time|times|runtime|latency|duration|elapsed"
    return re.search(rf"(?:^|[^a-z])(?:{words})(?:$|[^a-z])", column.lower()) is not None
