"""The events of a study as they happen (server-sent events), from any process that shares the database."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import msgspec

from truearm.service import problems, views
from truearm.service.database import DatabaseError, Row
from truearm.service.hosting import Host

_PATIENCE = 0.5  # seconds between looks at what other processes wrote
_ALIVE = 15.0  # seconds of silence after which a line says that the connection lives
_CHUNK = 500


class Followers:
    """Who waits for events of which study in this process."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closing = False
        host.listeners.append(self._changed)

    @property
    def count(self) -> int:
        """How many follow."""
        return sum(map(len, self._waiting.values()))

    def close(self) -> None:
        """Let all followers go."""
        self.closing = True
        for name in list(self._waiting):
            self._wake(name)

    def _changed(self, name: str) -> None:  # called in any thread
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, name)

    def _wake(self, name: str) -> None:
        for event in self._waiting.get(name, ()):
            event.set()

    async def follow(
        self, name: str, position: int, read: Callable[[str, int, int], "asyncio.Future[list[Row]]"]
    ) -> AsyncIterator[bytes]:
        """Iterate over the events after a position, without end; `read` reads the log in another thread."""
        self._loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        self._waiting[name].add(changed)
        said, digest = time.monotonic(), None  # digest: at the position, once it is known
        try:
            yield b"retry: 1000\n\n"
            while not self.closing:
                changed.clear()
                found = await read(name, position - 1, _CHUNK + 1)
                known = found and found[0].position == position and digest in (None, found[0].digest)
                if not known and (position or digest):
                    position, digest = 0, None  # the log was replaced, such as by a back-up: begin anew
                    continue
                rows, digest = found[1:], found[-1].digest if found else None
                if rows:
                    position, said = rows[-1].position, time.monotonic()
                    yield b"".join(map(_message, rows))
                elif time.monotonic() - said >= _ALIVE:
                    said = time.monotonic()
                    yield b": still here\n\n"
                if len(rows) < _CHUNK:
                    await _either(changed)
        except DatabaseError as error:
            yield b"event: problem\ndata: " + msgspec.json.encode(problems.of(error)) + b"\n\n"
        finally:
            self._waiting[name].discard(changed)
            if not self._waiting[name]:
                del self._waiting[name]


async def _either(changed: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(changed.wait(), _PATIENCE)


def _message(row: Row) -> bytes:
    body = msgspec.json.encode(views.logged(row))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (row.position, row.kind.encode(), body)
