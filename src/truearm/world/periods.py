"""When readings were taken: the time of each arm cut into stretches that hold about equally many, by an engine.

Nothing is sorted: the engine counts how many rows of each arm are before some times, and again between those that
are too far apart. Cuts need not be exact, because they do not depend on what was read (extensions 4.6).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument

MOST = 8  # periods of an arm: a load that comes and goes over a quarter of the time fills one of them
_LOOKS = 8  # at the times, of which a stray one takes most: one a billion times as far away as all others four
_POINTS = 64  # at which one look counts: 8 for each of 8 arms that were measured one after the other
_LEAST = 8  # of them where readings are dense
_ASKED = 256  # at most in one query
_ARMS = 64  # each row is compared with the cuts of its arm, which a query has to spell out


def cuts(rows: Any, run: Callable[[Any], Any], column: str) -> dict[str, list[Any]]:  # noqa: ANN401
    """Return at which times the periods of each arm begin, but for the first.

    Parameters
    ----------
    rows
        A lazy narwhals frame with the columns "arm" and "order".
    run
        Returns what a query gives.
    column
        What the user calls the order.
    """
    import narwhals as nw

    order = nw.col("order")
    known = run(rows.group_by("arm").agg(n=nw.len(), first=order.min(), last=order.max()))
    arms, sizes = known["arm"].to_list(), np.array(known["n"].to_list(), dtype=np.int64)
    if len(arms) > _ARMS:
        msg = (
            f"order={column!r} is looked at for up to {_ARMS} arms of so many rows, and there are {len(arms):,}; "
            "leave some arms out, or the order"
        )
        raise InvalidArgument(msg)
    try:
        first, last = min(known["first"].to_list()), max(known["last"].to_list())
    except OverflowError:  # PostgreSQL and DuckDB have an infinite time
        msg = f"order={column!r} must hold times that can be compared, but one is infinite; correct it"
        raise InvalidArgument(msg) from None
    _check_times(first, last, column)
    times, below = _counted(rows, run, arms, _between(first, last, _POINTS))
    for _ in range(_LOOKS - 1):
        held = np.diff(below, axis=1, prepend=0, append=sizes[:, None])
        heavy = np.flatnonzero((held > sizes[:, None] / MOST).any(axis=0)).tolist()
        ends, parts = [first, *times, last], max(_LEAST, _ASKED // max(1, len(heavy)))
        near = (time for i in heavy for time in _between(ends[i], ends[i + 1], parts))
        new = [time for time in near if time not in ends[1:-1]][:_ASKED]
        if not new:
            break
        more, counts = _counted(rows, run, arms, new)
        along = sorted(range(len(times) + len(more)), key=[*times, *more].__getitem__)
        times, below = [[*times, *more][i] for i in along], np.concatenate((below, counts), axis=1)[:, along]
    return {arm: _chosen(times, *told) for arm, *told in zip(arms, below, sizes.tolist(), strict=True)}


def number(begins: Mapping[str, Sequence[Any]]) -> Any:  # noqa: ANN401 - a narwhals expression
    """Return in which period of its arm a row is.

    Parameters
    ----------
    begins
        What `cuts` returned.
    """
    import narwhals as nw

    found = nw.lit(0)
    for arm, times in begins.items():
        if times:
            mine = reduce(add, (nw.when(nw.col("order") >= time).then(1).otherwise(0) for time in times))
            found = nw.when(nw.col("arm") == arm).then(mine).otherwise(found)
    return found


def _check_times(first: Any, last: Any, column: str) -> None:  # noqa: ANN401 - numbers or times
    """Raise if there is nothing in between."""
    try:
        _ = first + (last - first) / 2
        if isinstance(first, bool):
            raise TypeError
    except TypeError:
        msg = f"order={column!r} must hold numbers or times; convert it where the data are"
        raise InvalidArgument(msg) from None
    if isinstance(first, float) and not math.isfinite(last - first):
        msg = f"order={column!r} must hold times that can be compared, but goes from {first} to {last}; correct it"
        raise InvalidArgument(msg)


def _between(low: Any, high: Any, parts: int) -> list[Any]:  # noqa: ANN401 - numbers or times
    """Return times that cut a stretch into equal parts, as far as there are any, and its end."""
    if isinstance(low, int) and isinstance(high, int):
        inside = [low + (high - low) * i // parts for i in range(1, parts + 1)]
    else:
        inside = [low + (high - low) * i / parts for i in range(1, parts)] + [high]
    return list(dict.fromkeys(time for time in inside if low < time <= high))


def _counted(
    rows: Any,  # noqa: ANN401 - a lazy narwhals frame
    run: Callable[[Any], Any],
    arms: Sequence[str | None],
    times: list[Any],
) -> tuple[list[Any], NDArray[np.int64]]:
    """Return times, and how many rows of each arm are before each of them."""
    import narwhals as nw

    if not times:
        return [], np.zeros((len(arms), 0), dtype=np.int64)
    before = {f"n{i}": nw.when(nw.col("order") < time).then(1).otherwise(0) for i, time in enumerate(times)}
    sums = {name: nw.col(name).sum() for name in before}
    found = run(rows.select("arm", **before).group_by("arm").agg(**sums))
    place = {arm: i for i, arm in enumerate(found["arm"].to_list())}
    table = np.array([found[name].to_list() for name in before], dtype=np.int64).T
    return times, table[[place[arm] for arm in arms]]


def _chosen(times: Sequence[Any], below: NDArray[np.int64], n: int) -> list[Any]:
    """Return the times nearest to where an arm's readings are in equal parts."""
    inside = np.flatnonzero((below > 0) & (below < n))
    if not inside.size:
        return []
    aims = n * np.arange(1, MOST) / MOST
    near = inside[np.abs(below[inside][:, None] - aims).argmin(axis=0)]
    distinct = {int(below[i]): times[i] for i in near.tolist()}  # times with no reading of the arm between are one
    return list(distinct.values())
