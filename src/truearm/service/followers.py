"""Server-sent events: the events of a study as any process writes them."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import msgspec

from truearm.service import answers, problems
from truearm.service.studies import Studies
from truearm.store import Row, StoreError

_POLL_S = 0.5  # between looks at what other processes wrote
_KEEP_ALIVE_S = 15.0
_CHUNK_ROWS = 500


class Followers:
    """The clients of this process that wait for events, by study."""

    def __init__(self, studies: Studies) -> None:
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_ending: Callable[[], bool] = lambda: False
        studies.listeners.append(self._notify)

    @property
    def count(self) -> int:
        """The number of clients."""
        return sum(map(len, self._waiting.values()))

    def _notify(self, name: str) -> None:  # called in any thread
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, name)

    def _wake(self, name: str) -> None:
        for event in self._waiting.get(name, ()):
            event.set()

    async def follow(
        self, name: str, position: int, read: Callable[[str, int, int], Awaitable[list[Row]]]
    ) -> AsyncIterator[bytes]:
        """Iterate over the events after a position, without end; `read` returns rows, or refuses."""
        self._loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        self._waiting[name].add(changed)
        sent_at, digest = time.monotonic(), None  # digest: of the row at the position, once it is known
        try:
            yield b"retry: 1000\n\n"
            while not self.is_ending():
                changed.clear()
                found = await read(name, position - 1, _CHUNK_ROWS + 1)
                is_known = found and found[0].position == position and digest in (None, found[0].digest)
                if not is_known and (position or digest):
                    position, digest = 0, None  # the log was replaced, as by a backup
                    continue
                rows, digest = found[1:], found[-1].digest if found else None
                if rows:
                    position, sent_at = rows[-1].position, time.monotonic()
                    yield b"".join(map(_message, rows))
                elif time.monotonic() - sent_at >= _KEEP_ALIVE_S:
                    sent_at = time.monotonic()
                    yield b": keep-alive\n\n"
                if len(rows) < _CHUNK_ROWS:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(changed.wait(), _POLL_S)
        except (StoreError, problems.Refused) as error:
            yield b"event: problem\ndata: " + msgspec.json.encode(problems.from_error(error)) + b"\n\n"
        finally:
            self._waiting[name].discard(changed)
            if not self._waiting[name]:
                del self._waiting[name]


def _message(row: Row) -> bytes:
    body = msgspec.json.encode(answers.log_entry(row))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (row.position, row.kind.encode(), body)
