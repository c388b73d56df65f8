"""Readings as a table, in parts: however many there are, few are in memory."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from truearm.report.export import cell
from truearm.service.database import Database
from truearm.service.hosted import GIVEN
from truearm.service.problems import Problem, Refused

_COLUMNS = ("ticket", "arm", "draw", "value", "worker", "at")
_PART = 5000  # readings
Reading = tuple[int | None, str | None, int | None, float, str | None, float]
"""Ticket, arm, draw, value, worker and time."""


def readings(database: Database, study: str, upto: int, *, passive: bool) -> Iterator[list[Reading]]:
    """Iterate over parts of the readings that a log has up to a position, in order of pull.

    They come in as they are told, the quick ones first, and no order of readings may depend on what they say.
    """
    for part in _given(database, study, upto) if passive else _told(database, study, upto):
        yield [(ticket, arm, draw, float(value or "nan"), *rest) for ticket, arm, draw, value, *rest in part]


def _told(database: Database, study: str, upto: int) -> Iterator[list[Any]]:
    ticket = -1
    while rows := database.told(study, ticket, upto, _PART):
        yield rows
        ticket = rows[-1][0]


def _given(database: Database, study: str, upto: int) -> Iterator[list[Any]]:
    position = 0
    while rows := [row for row in database.after(study, position, _PART) if row.position <= upto]:
        yield [(*row[2:6], row.worker, row.at) for row in rows if row.kind == GIVEN]
        position = rows[-1].position


def as_csv(parts: Iterable[list[Reading]]) -> Iterator[bytes]:
    r"""Iterate over parts of a CSV in which no cell starts a formula."""
    yield (",".join(_COLUMNS) + "\n").encode()
    for part in parts:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([cell(one) for one in row] for row in part)
        yield text.getvalue().encode()


def as_parquet(parts: Iterable[list[Reading]]) -> Iterator[bytes]:
    """Iterate over parts of a Parquet file."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        msg = "Parquet needs pyarrow; install truearm[data] on the server, or ask for readings.csv"
        raise Refused(Problem(501, "Not implemented", msg)) from None
    kinds = (pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.string(), pa.float64())
    schema = pa.schema(list(zip(_COLUMNS, kinds, strict=True)))
    sink = _Sink()
    with pq.ParquetWriter(sink, schema) as writer:
        for part in parts:
            columns: Any = zip(*part, strict=True) if part else [()] * len(_COLUMNS)
            writer.write_table(pa.table([list(column) for column in columns], schema=schema))
            yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """A file that is taken away as it is written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:  # noqa: ANN401 - whatever has bytes
        self._parts.append(bytes(data))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)
