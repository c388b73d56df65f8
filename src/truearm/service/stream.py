"""What many watch: events as they happen (server-sent events), and what is made once for all who wait for it.

Events come from any process that shares the database.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from truearm.service import problems, views
from truearm.service.database import DatabaseError, Row
from truearm.service.hosting import Host

_PATIENCE = 0.5  # seconds between looks at what other processes wrote
_ALIVE = 15.0  # seconds of silence after which a line says that the connection lives
_CHUNK = 500
_REST = 2  # times as long as it took to make, so that pages have a third of the server's time at most


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
        self, name: str, position: int, read: Callable[[str, int, int], Awaitable[list[Row]]]
    ) -> AsyncIterator[bytes]:
        """Iterate over the events after a position, without end; `read` reads the log, or refuses to."""
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
        except (DatabaseError, problems.Refused) as error:
            yield b"event: problem\ndata: " + msgspec.json.encode(problems.of(error)) + b"\n\n"
        finally:
            self._waiting[name].discard(changed)
            if not self._waiting[name]:
                del self._waiting[name]


class Shared:
    """What takes long to make, made for all who wait for it, and then not again for a while.

    Whoever comes while one is made waits for the next: nobody gets what is older than the request.
    """

    def __init__(self) -> None:
        self._waited_for: dict[str, asyncio.Task[Any]] = {}  # those that are not begun
        self._turns: dict[str, asyncio.Lock] = {}

    async def get(self, name: str, make: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 - what is made
        """Return what is made next under a name."""
        if name not in self._waited_for:
            self._waited_for[name] = asyncio.create_task(self._made(name, make))
            self._waited_for[name].add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._waited_for[name])

    async def _made(self, name: str, make: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401
        await self._turns.setdefault(name, asyncio.Lock()).acquire()
        del self._waited_for[name]
        began = time.monotonic()
        try:
            return await make()
        finally:
            asyncio.get_running_loop().call_later(_REST * (time.monotonic() - began), self._end, name)

    def _end(self, name: str) -> None:
        self._turns[name].release()
        if name not in self._waited_for:
            del self._turns[name]


async def _either(changed: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(changed.wait(), _PATIENCE)


def _message(row: Row) -> bytes:
    body = msgspec.json.encode(views.logged(row))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (row.position, row.kind.encode(), body)
