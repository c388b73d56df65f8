"""A connection to PostgreSQL on which no statement takes longer than it may, even if the server hangs.

The server ends what takes too long by itself. One that hangs, or a machine that is cut off, ends nothing: then the
socket is shut down under the driver, which says so. Its time-outs do not help, for a kernel answers while its
processes hang.
"""

import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

_GRACE = 5.0  # seconds beyond those the server is told of
_EVERY = 0.25  # seconds between looks at what runs
_TCP = {  # a machine that is gone is noticed within a minute, or when nothing sent is confirmed for 20 s
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}


class Bounded:
    """A connection by what its address says, for statements of at most so many seconds."""

    def __init__(self, server: dict[str, Any], patience: float) -> None:
        import psycopg

        self._connection = psycopg.connect(**{**_TCP, **server}, autocommit=True)
        self._patience = patience
        limits = ("lock_timeout", "statement_timeout")
        words = ["SET synchronous_commit = on", *(f"SET {name} = {int(1000 * patience)}" for name in limits)]
        self.execute("; ".join(words))

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - a cursor
        """Run a statement."""
        with self._in_time():
            return self._connection.execute(statement, values or None)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each row."""
        with self._in_time(), self._connection.cursor() as cursor:
            cursor.executemany(statement, rows)

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        _WATCH.begin(self, self._connection.fileno(), self._patience + _GRACE)
        try:
            yield
        finally:
            _WATCH.end(self)


class _Watch:
    """What runs on which socket, and until when it may."""

    def __init__(self) -> None:
        self._running: dict[Bounded, tuple[int, float]] = {}
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, who: Bounded, number: int, seconds: float) -> None:
        with self._guard:
            self._running[who] = number, time.monotonic() + seconds
            if self._thread is None or not self._thread.is_alive():  # none runs in a process that was forked
                self._thread = threading.Thread(target=self._look, name="truearm-watch", daemon=True)
                self._thread.start()

    def end(self, who: Bounded) -> None:
        with self._guard:  # from here on the number may be another socket's
            self._running.pop(who, None)

    def _look(self) -> None:
        while True:
            time.sleep(_EVERY)
            with self._guard:
                now = time.monotonic()
                for who, (number, until) in list(self._running.items()):
                    if now > until:
                        del self._running[who]
                        _cut(number)


_WATCH = _Watch()


def _cut(number: int) -> None:
    with suppress(OSError), socket.socket(fileno=os.dup(number)) as ours:
        ours.shutdown(socket.SHUT_RDWR)
