"""Requests to end, such as Ctrl-C, wait for a good moment: half a drawing or half a told reading is none."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

REQUESTS = tuple(  # to end; Windows knows no SIGHUP and no SIGQUIT
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT") if hasattr(signal, name)
)
Given = ParamSpec("Given")
Answer = TypeVar("Answer")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep requests to end out of the body; the first of them is obeyed right after it.

    Handlers are exchanged, because blocking signals would only hand them to another thread.
    """
    if threading.current_thread() is not threading.main_thread():  # where no signal is handled
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda n, _: came.append(n)) for number in REQUESTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextmanager
def terminable() -> Iterator[None]:
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


class Patient:
    """The same for many short steps of a loop: handlers are exchanged once, when it is entered.

    A request that would end the process at once, or is ignored, is left alone.
    """

    def __init__(self) -> None:
        self._before: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._busy = False
        self._came: list[int] = []

    def __enter__(self) -> "Patient":
        if threading.current_thread() is threading.main_thread():
            for number in REQUESTS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._arrived)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def do(self, step: Callable[Given, Answer], *args: Given.args, **options: Given.kwargs) -> Answer:
        """Return what a step returns; a request that comes meanwhile is obeyed after it."""
        self._busy = True
        try:
            return step(*args, **options)
        finally:
            self._busy = False
            if self._came:
                number = self._came[0]
                self._came.clear()
                self._before[number](number, None)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self._busy:
            self._came.append(number)
        else:
            self._before[number](number, frame)
