"""Run one process to its end, or kill it and its descendants when its time is up.

The clock starts right before the process and stops right after it; everything else is done before or after. Every
run has a mark in its environment, by which a time-out on Linux also finds children in other sessions.
"""

import ast
import math
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from truearm.commands.terminal import complete, hold_signals
from truearm.problem import refuse

try:
    import resource  # here, because os.wait4 would load it while the clock runs
except ImportError:  # Windows, where no command is measured
    resource = None  # type: ignore[assignment]

TAIL_BYTES = 8192  # kept of an output stream: a screenful for a person, a last line for the stdout metric
_PIPE_READS = 16  # of 64 KiB each: the largest pipe Linux gives an ordinary user
_MARK = "TRUEARM_RUN"  # the variable whose value no other run has
_MAX_POLL_S = 1.0  # a signal that arrives right before a poll is handled after it
_running: dict[int, str] = {}  # the mark of every process that is waited for
_ends = threading.Event()  # set while all runs are being killed, also one that was just started
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes per unit of ru_maxrss

# A child of this interpreter never shows less peak memory than the interpreter, because Linux counts what it held
# before exec; a small launcher in between shows 5 MB at least. `_signal`, because `signal` would add a megabyte;
# SIGPIPE goes back to what a shell gives.
_LAUNCHER = """
import os, sys, time, _signal
report = int(sys.argv[1])
os.set_inheritable(report, False)
started = time.perf_counter()
child = os.fork()
if child == 0:
    try:
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
        os.execv(sys.argv[2], sys.argv[3:])
    finally:
        os._exit(127)
status, usage = os.wait4(child, 0)[1:]
wall = time.perf_counter() - started
code = os.waitstatus_to_exitcode(status)
os.write(report, repr((wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss, code)).encode())
"""


class Tail:
    """The last bytes of a stream."""

    def __init__(self, max_bytes: int = TAIL_BYTES) -> None:
        self.kept = bytearray()
        self.max_bytes = max_bytes
        self.is_cut = False

    def read_from(self, descriptor: int) -> bool:
        """Read once; return False if there is nothing, or the stream has ended."""
        try:
            piece = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return False
        self.kept += piece
        if len(self.kept) > self.max_bytes:
            del self.kept[: -self.max_bytes]
            self.is_cut = True
        return bool(piece)

    @property
    def text(self) -> str:
        """What was kept."""
        return self.kept.decode(errors="backslashreplace")

    @property
    def last_line(self) -> str:
        """The last line that is not blank."""
        return self.text.rstrip().rpartition("\n")[2]

    @property
    def has_whole_line(self) -> bool:
        """Whether the beginning of the last line was kept."""
        return not self.is_cut or "\n" in self.text.rstrip()


class Run(NamedTuple):
    """How one process ran; times in seconds, `peak_memory` in bytes or None where it is hidden by our own."""

    wall: float
    user: float
    system: float
    peak_memory: int | None
    exit_code: int
    timed_out: bool
    stdout: Tail
    stderr: Tail
    left_behind: bool


def run(
    argv: Sequence[str],
    program: str | None = None,
    *,
    streams: Mapping[str, Any],
    env: Mapping[str, str],
    cwd: str | None = None,
    timeout: float | None = None,
    max_output: int = TAIL_BYTES,
    through_launcher: bool = False,
) -> Run:
    """Run a program and return how it ended; raise OSError if it cannot be started.

    `streams` are ``stdin``, ``stdout`` and ``stderr`` as for `subprocess.Popen`; pipes are read. After `timeout`
    seconds the process, its group and its descendants are killed. The peak memory of a small launcher does not
    hide that of the program.
    """
    check_posix()
    stdout, stderr, mark = Tail(max_output), Tail(), secrets.token_hex(8)
    report = os.pipe() if through_launcher else None
    options: dict[str, Any] = {
        "args": argv,
        "executable": program,
        "env": {**env, _MARK: mark},
        "cwd": cwd,
        "bufsize": 0,
        # a new group, so that a time-out reaches grandchildren, and no terminal: a program that asked the terminal
        # from a background group would be stopped forever
        "start_new_session": True,
        **streams,
    }
    if report:
        launcher = (sys.executable, "-I", "-S", "-c", _LAUNCHER, str(report[1]), program or argv[0], *argv)
        options.update(args=launcher, executable=None, pass_fds=(report[1],))
    try:
        process, wall, timed_out, usage = _run_to_end(options, mark, (stdout, stderr), timeout)
        is_own = usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak = usage.ru_maxrss * _RSS_UNIT if is_own else None
        measured = (wall, usage.ru_utime, usage.ru_stime, peak, process.returncode)
        if report and not timed_out:
            measured = _read_report(report[0], measured)
    finally:
        for descriptor in report or ():
            os.close(descriptor)
    left_behind = not timed_out and (_has_group(process.pid) or bool(_find_marked(mark, after=process.pid)))
    return Run(*measured, timed_out, stdout, stderr, left_behind)


_Measured = tuple[float, float, float, int | None, int]


def _read_report(descriptor: int, otherwise: _Measured) -> _Measured:
    os.set_blocking(descriptor, False)
    try:
        wall, user, system, peak, code = ast.literal_eval(os.read(descriptor, 4096).decode())
    except BlockingIOError:  # the launcher itself was killed, by the command or by the system
        return (*otherwise[:3], None, otherwise[4] or 1)
    return wall, user, system, peak * _RSS_UNIT, code


def check_posix() -> None:
    """Raise where commands cannot be run in process groups."""
    msg = "commands are run and measured on Linux and macOS only; on Windows, run truearm inside WSL"
    refuse(resource is None or not hasattr(os, "wait4") or not hasattr(os, "killpg"), msg)


def _run_to_end(
    options: Mapping[str, Any], mark: str, tails: tuple[Tail, Tail], timeout: float | None
) -> "tuple[subprocess.Popen[bytes], float, bool, resource.struct_rusage]":
    """Run a child to its end, or kill it when its time is up or this is interrupted, and reap it."""
    reap, is_over = None, False
    try:
        with hold_signals():  # an interrupt inside Popen would lose a child that has started
            started = time.perf_counter()
            process = subprocess.Popen(**options)
            _running[process.pid] = mark
            ended, reap = _watch_end(process.pid)
        streams = (process.stdout, process.stderr)
        pipes = {stream.fileno(): tail for stream, tail in zip(streams, tails, strict=True) if stream}
        is_over = not _ends.is_set() and _watch(ended, pipes, math.inf if timeout is None else started + timeout)
        wall = time.perf_counter() - started
    finally:
        if reap is not None:
            try:
                if not is_over:
                    complete(partial(_kill, process.pid, mark))
            finally:
                _, status, usage = reap()
                del _running[process.pid]
                os.close(ended)
                process.returncode = os.waitstatus_to_exitcode(status)
                for stream in filter(None, (process.stdout, process.stderr)):
                    stream.close()
    return process, wall, not is_over, usage


def _watch_end(pid: int) -> tuple[int, Callable[[], tuple[int, int, "resource.struct_rusage"]]]:
    """Return a descriptor that becomes readable when a child ends, and a function that reaps the child."""
    try:
        return os.pidfd_open(pid), lambda: os.wait4(pid, 0)
    except (AttributeError, OSError):  # not Linux, or a sandbox without the call
        ended, write = os.pipe()

    def wait() -> tuple[int, int, "resource.struct_rusage"]:
        try:
            return os.wait4(pid, 0)
        finally:
            os.close(write)

    return ended, ThreadPoolExecutor(1).submit(wait).result


def _watch(ended: int, pipes: Mapping[int, Tail], deadline: float) -> bool:
    """Read the pipes until the child has ended (True) or the deadline has passed (False)."""
    poller = select.poll()
    poller.register(ended, select.POLLIN)
    for pipe in pipes:
        os.set_blocking(pipe, False)
        poller.register(pipe, select.POLLIN)
    while True:
        left = deadline - time.perf_counter()
        ready = [descriptor for descriptor, _ in poller.poll(1000 * min(max(left, 0.0), _MAX_POLL_S))]
        for pipe in set(ready) & pipes.keys():
            if not pipes[pipe].read_from(pipe):
                poller.unregister(pipe)
        if ended in ready:
            for pipe, tail in pipes.items():  # what the child left; others may still be writing
                for _ in range(_PIPE_READS):
                    if not tail.read_from(pipe):
                        break
            return True
        if left <= 0:
            return False


def _has_group(pid: int) -> bool:
    """Return True if a group still has a process after its leader ended."""
    with suppress(PermissionError):  # it exists and belongs to another user
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            return False
    return True


def end_runs(pool: ThreadPoolExecutor) -> None:
    """Kill what the threads of a pool run or are about to run, and end the pool: threads get no interrupts."""
    _ends.set()
    for pid, mark in list(_running.items()):
        _kill(pid, mark)
    pool.shutdown(cancel_futures=True)
    _ends.clear()


def _kill(pid: int, mark: str) -> None:
    """Kill a run: its process group, its descendants and all processes with its mark, in any session."""
    killed: set[int] = set()
    for pause in (0.0, 0.02):  # a process that starts a program has no environment for a moment
        time.sleep(pause)
        while new := _find_tree(pid, mark) - killed:  # one may start another while it is being killed
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            for one in new:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(one, signal.SIGKILL)
            killed |= new


def _find_tree(pid: int, mark: str) -> set[int]:
    """Return a process, its descendants and those with a mark; itself only where there is no /proc."""
    tree = {pid, *_find_marked(mark)}
    parents = {one: int(stat.rpartition(b")")[2].split()[1]) for one, stat in _read_proc("stat").items()}
    while children := {one for one, parent in parents.items() if parent in tree} - tree:
        tree |= children
    return tree


def _find_marked(mark: str, after: int = 0) -> set[int]:
    """Return the processes with a mark whose number is above `after`: those of a run usually are."""
    marked = f"{_MARK}={mark}\0".encode()
    return {pid for pid, environment in _read_proc("environ", after).items() if marked in environment}


def _read_proc(file: str, after: int = 0) -> dict[int, bytes]:
    """Return what a file of /proc says about each process; nothing where there is no /proc."""
    found = {}
    with suppress(FileNotFoundError):
        for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - a glob fails if a process ends
            with suppress(OSError):
                if int(name) > after:
                    found[int(name)] = Path("/proc", name, file).read_bytes()
    return found
