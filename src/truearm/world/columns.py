"""Readings drawn from columns of numbers, made into `arm -> float`: to try a study on data that are there."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from truearm.errors import InvalidArgument

Source = Callable[[str], float]


def frame_source(
    frame: Mapping[str, Sequence[float]],
    arms: Sequence[str],
    rng: np.random.Generator | None = None,
) -> Source:
    """Return the source that reads from columns of numbers, one per arm.

    With a generator it draws with replacement. Each arm has a stream of its own, so the n-th pull of an arm
    is the same draw however the arms are interleaved (audit 1.m). Without one it reads every column once in
    order, and raises EOFError when a column has ended. It may be called from several threads; it cannot be
    pickled, because copies in several processes would repeat the same readings.

    Parameters
    ----------
    frame
        Anything with ``frame[arm]``: a dict of lists, a pandas or polars frame.
    arms
        The columns to read.
    rng
        Where the draws come from; None reads in order.

    Examples
    --------
    >>> source = frame_source({"A": [1, 2], "B": [5, 6]}, ["A", "B"])
    >>> source("A"), source("B"), source("A")
    (1.0, 5.0, 2.0)
    """
    columns = {arm: _column(frame, arm) for arm in arms}
    streams = dict(zip(arms, rng.spawn(len(arms)), strict=True)) if rng else {}
    places = {arm: iter(range(column.size)) for arm, column in columns.items()}
    lock = threading.Lock()

    def source(arm: str) -> float:
        column = columns[arm]
        with lock:
            place = streams[arm].integers(column.size) if streams else next(places[arm], None)
        if place is None:
            msg = f"frame has no more than {column.size} readings of arm {arm!r}; stop there, or pass rng"
            raise EOFError(msg)
        return float(column[place])

    return source


def _column(frame: Mapping[str, Sequence[float]], arm: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    values = list(frame[arm])
    for row, value in enumerate(values):
        if isinstance(value, str | bytes):
            msg = f"frame must hold numbers, but row {row} of column {arm!r} is {value!r}"
            raise InvalidArgument(msg)
    if not values:
        msg = f"frame must hold at least one reading of arm {arm!r}, but column {arm!r} is empty"
        raise InvalidArgument(msg)
    return np.asarray(values, dtype=np.float64)
