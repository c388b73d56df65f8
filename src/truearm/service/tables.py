"""Readings as CSV or Parquet, in parts, so that few are in memory."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from truearm.report.export import cell
from truearm.service.models import Problem
from truearm.service.problems import Refused
from truearm.service.studies import GIVEN
from truearm.store import Database

_COLUMNS = ("ticket", "arm", "draw", "value", "worker", "at")
_PART_ROWS = 5000
Reading = tuple[int | None, str | None, int | None, float, str | None, float]
"""Ticket, arm, draw, value, worker and time."""


def readings(database: Database, study: str, upto: int, *, passive: bool) -> Iterator[list[Reading]]:
    """Iterate over parts of the readings up to a position in the log, in order of issue.

    In order of arrival the quick ones would come first, and no order of readings may depend on their values.
    """
    for part in _passive(database, study, upto) if passive else _active(database, study, upto):
        yield [(ticket, arm, draw, float(value or "nan"), *rest) for ticket, arm, draw, value, *rest in part]


def _active(database: Database, study: str, upto: int) -> Iterator[list[Any]]:
    ticket = -1
    while rows := database.readings(study, ticket, upto, _PART_ROWS):
        yield rows
        ticket = rows[-1][0]


def _passive(database: Database, study: str, upto: int) -> Iterator[list[Any]]:
    position = 0
    while rows := [row for row in database.rows(study, position, _PART_ROWS) if row.position <= upto]:
        yield [(*row[2:6], row.worker, row.at) for row in rows if row.kind == GIVEN]
        position = rows[-1].position


def as_csv(parts: Iterable[list[Reading]]) -> Iterator[bytes]:
    """Iterate over parts of a CSV in which no cell starts a formula."""
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
        msg = "Parquet needs pyarrow; install pyarrow on the server, or request readings.csv"
        raise Refused(Problem(501, "Not implemented", msg)) from None
    kinds = (pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.string(), pa.float64())
    schema = pa.schema(list(zip(_COLUMNS, kinds, strict=True)))
    sink = _Sink()
    with pq.ParquetWriter(sink, schema) as writer:
        for part in parts:
            columns: Any = zip(*part, strict=True) if part else [()] * len(_COLUMNS)
            writer.write_table(pa.table([list(column) for column in columns], schema=schema))
            yield sink.take()
    yield sink.take()


class _Sink(io.RawIOBase):
    """A file whose content is taken while it is written."""

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

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)
