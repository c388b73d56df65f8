"""Requests to end (Ctrl-C, SIGTERM, SIGHUP, SIGQUIT), and a progress bar."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:  # `truearm --help` starts without them
    from truearm.policies import Standing
    from truearm.study import Study

REQUESTS = tuple(  # Windows has no SIGHUP and no SIGQUIT
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT") if hasattr(signal, name)
)
_HELD = (*REQUESTS, *([signal.SIGALRM] if hasattr(signal, "SIGALRM") else []))
ECHO_COLUMNS = 3  # free columns after a drawing: a terminal prints ^C there, and would wrap a full line
_REDRAW_S = 0.1
MIN_FORECAST_PULLS = 100  # pulls of each arm before a forecast: fewer say little
Draw = Callable[[float, str], None]


def is_terminal(stream: TextIO | None) -> bool:
    """Return True if a stream is a terminal; None stands for one that was closed before the start."""
    return stream is not None and stream.isatty()


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn every request to end into KeyboardInterrupt, so that cursor, processes and results are cleaned up.

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
def hold_signals() -> Iterator[None]:
    """Hold requests to end, and the alarm of a time limit, until the body is done; then obey them.

    Handlers are replaced, because blocked signals would go to another thread and to a child. A signal that would
    end the process at once, or is ignored, keeps its handler.
    """
    arrived: list[int] = []
    before, is_held = {}, True
    if threading.current_thread() is threading.main_thread():  # no other handles signals
        before = {number: handler for number in _HELD if callable(handler := signal.getsignal(number))}

    def hold(number: int, frame: FrameType | None) -> None:
        if is_held:
            arrived.append(number)
        else:  # one that arrived while handlers were being restored
            before[number](number, frame)

    try:
        for number in before:
            signal.signal(number, hold)
        yield
    finally:
        is_held = False
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in arrived:
            signal.raise_signal(number)


def complete(step: Callable[[], object]) -> None:
    """Run a step to its end; a request to end that arrives just before it is obeyed after it."""
    try:
        with hold_signals():
            step()
    except KeyboardInterrupt:
        with hold_signals():
            step()
        raise


def load(*modules: str) -> None:
    """Import modules with signals held back: Python loses some that arrive during an import."""
    with hold_signals():
        for name in modules:
            import_module(name)


@contextmanager
def bar(study: "Study", *, shown: bool) -> Iterator[Callable[[], None]]:
    """Yield a function that redraws a progress bar on a terminal or in a notebook, and does nothing elsewhere."""
    notebook = _notebook()
    if not shown or not (notebook or is_terminal(sys.stderr)):
        yield lambda: None
        return
    with _notebook_bar(notebook) if notebook else _terminal_bar() as draw:
        draw(0.0, "starting")
        last = 0.0

        def show() -> None:
            nonlocal last
            if time.monotonic() - last < _REDRAW_S:
                return
            last = time.monotonic()
            standing = study.standing
            least = min((standing.share(arm) for arm in standing.alive if arm != standing.leader), default=0.0)
            leader = f"{standing.leader} leads" if standing.leader else "no leader yet"
            draw(least, f"{leader}, {len(standing.alive)} left, {_effort(study, standing)}")

        yield show


def _effort(study: "Study", standing: "Standing") -> str:
    """Return what was done, with a note if the budget will probably not decide, from the evidence so far."""
    counts = {arm: pulls for arm, (pulls, _) in study.log.counts().items()}
    if (items := study.problem.items) is not None:
        return f"{items - max(counts.values()):,} of {items:,} items left"
    done = f"{study.pulls:,} pulls"
    if study.pulls < MIN_FORECAST_PULLS * len(counts):
        return done
    is_short = standing.pulls_left(counts, 0) > study.max_pulls - study.pulls
    return f"{done}; {study.max_pulls:,} will probably not decide" if is_short else done


def _notebook() -> ModuleType | None:
    """Return IPython if this process is the kernel of a notebook; nothing is imported to find out."""
    found = sys.modules.get("IPython")
    return found if found is not None and hasattr(found.get_ipython(), "kernel") else None


@contextmanager
def _notebook_bar(ipython: ModuleType) -> Iterator[Draw]:
    from html import escape

    def drawing(share: float, words: str) -> dict[str, str]:
        bar = f'<progress value="{min(share, 1.0):.3f}"></progress> {escape(words)}' if words else ""
        return {"text/plain": words, "text/html": bar}

    handle = ipython.display.display(drawing(0.0, ""), raw=True, display_id=True)
    try:
        yield lambda share, words: handle.update(drawing(share, words), raw=True)
    finally:
        handle.update(drawing(0.0, ""), raw=True)


@contextmanager
def _terminal_bar() -> Iterator[Draw]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    console.width -= ECHO_COLUMNS
    texts = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    # no refresh thread: it would draw while a pull is being measured
    with Progress(*texts, TimeElapsedColumn(), console=console, transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share, words: bar.update(task, completed=share, description=escape(words), refresh=True)
