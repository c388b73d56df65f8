"""From whatever frame a user has to one array of readings per arm. Nothing is decided here, or read from disk.

A frame is long (one column names the arm, one holds the reading) or wide (one column of readings per arm).
Arms keep the order in which they first appear, readings the order of their rows. A cell without a value is a
missing reading and becomes NaN; at the foot of a wide column it is only the end of a shorter one. The columns of
a dict have lengths of their own, so that nothing at their foot is taken away.
"""

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument

Floats = NDArray[np.float64]

_BLOCK = 1 << 14  # rows told apart at a time: what is needed for them stays in a cache and in memory at hand
_SHARE = 256  # rows of a block per arm, at least: many arms need larger blocks

MOST_ARMS = 1000  # more are an id column taken for the arm: comparing all pairs of them would not end


def tapes_of(frame: Any, arm: str | None = None, value: str | None = None) -> dict[str, Floats]:  # noqa: ANN401
    """Return the readings of each arm in the order of their rows.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table, a DuckDB relation, or a dict of sequences.
    arm, value
        Names of the two columns of a long frame; without them every column is an arm.

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
    if (arm is None) != (value is None):
        given, other = ("arm", "value") if value is None else ("value", "arm")
        msg = f"{given} is given but {other} is not; name both columns of a long frame, or none of a wide one"
        raise InvalidArgument(msg)
    if isinstance(frame, Mapping):
        return _from_mapping(frame, arm, value)
    return _from_table(frame, arm, value)


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
    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    shown = ", ".join(map(repr, known[:20])) + (", ..." if len(known) > 20 else "")
    msg = f"{argument}={name!r} is not a column{hint} Columns are {shown}"
    raise InvalidArgument(msg)


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
    >>> check_number_of_arms(5000, "user_id")
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: arm='user_id' names 5,000 arms, but at most 1,000 can be compared; choose the
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
            f"arm={arm!r} names {n:,} arms, but at most {MOST_ARMS:,} can be compared; choose the column that "
            "names the groups, or leave arms out"
        )
    raise InvalidArgument(msg)


def grouped(codes: NDArray[Any], values: Floats, names: Sequence[str]) -> dict[str, Floats]:
    """Return values split by code, arms in the order of their first rows.

    Examples
    --------
    >>> grouped(np.array([1, 0, 1]), np.array([5.0, 6.0, 7.0]), ["A", "B"])
    {'B': array([5., 7.]), 'A': array([6.])}
    """
    return gathered(
        [(codes, values)], dict(zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True))
    )


def gathered(batches: Iterable[tuple[NDArray[Any], Floats]], counts: Mapping[str, int]) -> dict[str, Floats]:
    """Return values split by code, arms in the order of their first rows, from batches of rows.

    Parameters
    ----------
    batches
        Codes and values of rows, in order; each batch is left behind before the next one is asked for.
    counts
        How many rows each arm has; their order is that of the codes.

    Examples
    --------
    >>> gathered([(np.array([1, 0]), np.array([5.0, 6.0])), (np.array([1]), np.array([7.0]))], {"A": 1, "B": 2})
    {'B': array([5., 7.]), 'A': array([6.])}
    """
    names, tapes = list(counts), [np.empty(n) for n in counts.values()]
    ends, first = [0] * len(names), list[int]()
    for codes, values in _blocks(batches, max(_BLOCK, _SHARE * len(names))):
        order, start, new = np.argsort(codes, kind="stable"), 0, []
        ordered = values[order]
        for i, n in enumerate(np.bincount(codes).tolist()):
            if n and not ends[i]:
                new.append((order[start], i))
            tapes[i][ends[i] : ends[i] + n] = ordered[start : start + n]
            start, ends[i] = start + n, ends[i] + n
        first += [i for _, i in sorted(new)]
    return {names[i]: tapes[i] for i in first}


def _blocks(batches: Iterable[tuple[NDArray[Any], Floats]], size: int) -> Iterator[tuple[NDArray[Any], Floats]]:
    for codes, values in batches:
        for start in range(0, codes.size, size):
            yield codes[start : start + size], values[start : start + size]


def without_foot(column: Floats) -> Floats:
    """Return a wide column without the empty cells at its foot.

    Examples
    --------
    >>> without_foot(np.array([1.0, np.nan, 2.0, np.nan]))
    array([ 1., nan,  2.])
    """
    told = np.flatnonzero(~np.isnan(column))
    return column[: told[-1] + 1] if told.size else column[:0]


def _from_mapping(frame: Mapping[Any, Any], arm: str | None, value: str | None) -> dict[str, Floats]:
    check_distinct(map(str, frame))
    columns = {str(name): column for name, column in frame.items()}
    if arm is None or value is None:
        return _wide(columns, numbers)
    check_column(columns, arm, "arm")
    check_column(columns, value, "value")
    names: dict[str, int] = {}
    codes = [names.setdefault(_name(cell, row, arm), len(names)) for row, cell in enumerate(columns[arm], 1)]
    check_number_of_arms(len(names), arm)
    values = numbers(columns[value], value)
    if len(codes) != values.size:
        msg = f"columns must have the same length, but {arm!r} has {len(codes)} rows and {value!r} {values.size}"
        raise InvalidArgument(msg)
    return grouped(np.array(codes, dtype=np.intp), values, list(names))


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
        raise InvalidArgument(holds_words(words[0], next(iter(tapes))))
    if failed:
        raise next(iter(failed.values()))
    return tapes


def _are_words(column: Any) -> bool:  # noqa: ANN401 - any sequence
    """Return whether no cell is anything but a word: one word among numbers is a slip, not a column of names."""
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        return False
    cells = [cell for cell in column if cell is not None]
    return len(cells) > 1 and all(isinstance(cell, str) and not _is_date(cell) for cell in cells)


def holds_words(words: str, readings: str) -> str:
    """Return what to say of a frame read as wide that seems to be long.

    Examples
    --------
    >>> holds_words("variant", "ms")
    "column 'variant' holds words; name the columns: arm='variant', value='ms'"
    """
    return f"column {words!r} holds words; name the columns: arm={words!r}, value={readings!r}"


def _name(cell: object, row: int, column: str) -> str:
    text = str(cell)
    if not text or (not isinstance(cell, str) and text in ("None", "nan", "<NA>", "NaT")):
        raise InvalidArgument(unnamed(row, column))
    return text


def unnamed(row: int, column: str) -> str:
    """Return what to say of a row without an arm.

    Examples
    --------
    >>> unnamed(3, "site")
    "row 3 of column 'site' names no arm; give it a name, or leave such rows out"
    """
    return f"row {row} of column {column!r} names no arm; give it a name, or leave such rows out"


def numbers(column: Any, name: str) -> Floats:  # noqa: ANN401 - any sequence
    """Return a column as floats, empty cells as NaN, or name the row that is no number.

    Examples
    --------
    >>> numbers([1, None, True], "ms")
    array([ 1., nan,  1.])
    """
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        msg = f"column {name!r} must be a list of readings, but got {column!r}"
        raise InvalidArgument(msg)
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
    if not isinstance(cell, str | bytes) and not _is_date(cell) and hasattr(cell, "__float__"):
        try:
            return float(cell)
        except OverflowError:
            msg = f"row {row} of column {name!r} is beyond the largest number, 1.8e308; use inf for it"
            raise InvalidArgument(msg) from None
        except (TypeError, ValueError):  # an array in a cell
            pass
    raise InvalidArgument(not_a_number(cell, row, name))


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
    return f"{where} must be a number, but got {cell!r}; leave a cell empty for a reading that went wrong"


def _is_date(cell: object) -> bool:
    if isinstance(cell, str):
        try:
            datetime.datetime.fromisoformat(cell)
        except ValueError:
            return False
        return True
    return isinstance(cell, datetime.date | datetime.time | np.datetime64)


def _from_table(frame: Any, arm: str | None, value: str | None) -> dict[str, Floats]:  # noqa: ANN401
    import narwhals as nw

    try:
        table = nw.from_native(frame)
        columns = table.collect_schema().names()
    except nw.exceptions.DuplicateError as error:
        msg = f"columns need names of their own: {' '.join(str(error).split())}; rename them"
        raise InvalidArgument(msg) from None
    except TypeError:
        msg = (
            f"frame must be a pandas, polars or pyarrow table, a DuckDB relation, or a dict of sequences, but got "
            f"{type(frame).__name__}; read files with `truearm.world.files.read`"
        )
        raise InvalidArgument(msg) from None
    for name in columns:
        if not isinstance(name, str):
            msg = f"names of columns must be strings, but got {name!r}; use frame.rename(columns=str) first"
            raise InvalidArgument(msg)
    if arm is None or value is None:
        check_number_of_arms(len(columns), None)
        wide = table.collect() if isinstance(table, nw.LazyFrame) else table
        return _wide({name: wide[name] for name in columns}, lambda *column: without_foot(_series(*column)))
    check_column(columns, arm, "arm")
    check_column(columns, value, "value")
    chosen = table.select(arm, value)
    return _long(chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen, arm, value)


def _long(table: Any, arm: str, value: str) -> dict[str, Floats]:  # noqa: ANN401 - a narwhals frame
    import narwhals as nw

    if not len(table):
        return {}
    nameless = table[arm].is_null()
    if table[arm].dtype.is_float():
        nameless = nameless | table[arm].is_nan().fill_null(True)
    if nameless.any():
        raise InvalidArgument(unnamed(nameless.arg_max() + 1, arm))
    values = _series(table[value], value)
    names = table[arm].cast(nw.String)
    found = names.unique(maintain_order=True).to_list()
    if "" in found:
        raise InvalidArgument(unnamed(names.to_list().index("") + 1, arm))
    check_number_of_arms(len(found), arm)
    codes = names.replace_strict(found, list(range(len(found))), return_dtype=nw.Int32).to_numpy()
    return grouped(codes.astype(np.min_scalar_type(len(found))), values, found)


def _series(series: Any, name: str) -> Floats:  # noqa: ANN401 - a narwhals series
    import narwhals as nw

    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        floats = series.cast(nw.Float64)
        filled = floats.fill_null(float("nan")) if floats.null_count() else floats
        return np.asarray(filled.to_numpy(), dtype=np.float64)
    if series.dtype in (nw.String, nw.Object, nw.Unknown, nw.Categorical):
        return numbers(series.to_list(), name)
    if series.dtype.is_temporal():
        msg = f"column {name!r} holds dates or times ({series.dtype}); convert them to numbers"
        raise InvalidArgument(msg)
    msg = f"column {name!r} must hold numbers, but its type is {series.dtype}; convert it first"
    raise InvalidArgument(msg)
