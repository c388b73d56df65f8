"""Handle requests to end (Ctrl-C, SIGTERM, SIGHUP, SIGQUIT) at moments when nothing is left half done."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

REQUESTS = tuple(  # Windows has no SIGHUP and no SIGQUIT
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT") if hasattr(signal, name)
)
Given = ParamSpec("Given")
Answer = TypeVar("Answer")


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn every request to end into KeyboardInterrupt, so that cursor, processes and results are taken care of.

    A signal that is ignored, such as SIGHUP under nohup, stays ignored.
    """
    before = {number: signal.getsignal(number) for number in REQUESTS}
    changed = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in changed:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in changed.items():
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold requests to end until the body is done, then obey the first of them.

    Handlers are exchanged, because blocked signals would go to another thread.
    """
    if threading.current_thread() is not threading.main_thread():  # where no signal is handled
        yield
        return
    arrived: list[int] = []
    before = {number: signal.signal(number, lambda n, _: arrived.append(n)) for number in REQUESTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])


class Uninterrupted:
    """The same for many short steps of a loop: handlers are exchanged once, when it is entered.

    A request that would end the process at once, or is ignored, is left alone.
    """

    def __init__(self) -> None:
        self._before: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._is_busy = False
        self._arrived: list[int] = []

    def __enter__(self) -> "Uninterrupted":
        if threading.current_thread() is threading.main_thread():
            for number in REQUESTS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def do(self, step: Callable[Given, Answer], *args: Given.args, **options: Given.kwargs) -> Answer:
        """Return what a step returns; a request that arrives during it is obeyed after it."""
        self._is_busy = True
        try:
            return step(*args, **options)
        finally:
            self._is_busy = False
            if self._arrived:
                number = self._arrived[0]
                self._arrived.clear()
                self._before[number](number, None)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._is_busy:
            self._arrived.append(number)
        else:
            self._before[number](number, frame)
