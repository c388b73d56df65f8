"""Where readings come from: a user's command, made into `arm -> float`.

What touches processes and the clock lives here; nothing here decides, remembers or prints. A pull that goes
wrong is never retried and never dropped, because both would be contamination of our own making: a time-out
raises TimeoutError, which the run counts as worse than any reading; a failure ends the run or is a missing reading
(NaN), as the user chose.

Commands of one source are started alike, and nothing is subtracted from what the clock said. What a shell takes of
a reading it takes of all, and `shell_cost` tells how much that is.

Peak memory has a trap. Linux counts what a process held before it became the command, which is a copy of
the process that started it, so a child of this interpreter never shows less than the interpreter itself. Memory
is therefore measured through a small launcher, whose own floor of about 5 MB is the least it can show.
"""

import ast
import math
import os
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from truearm.errors import CommandFailed, InvalidArgument
from truearm.problem import check_count, check_positive
from truearm.world.commands import Command, alike, neutralized
from truearm.world.metrics import NOTE, parsed

try:
    import resource  # here, because os.wait4 would load it while the clock runs
except ImportError:  # Windows, where no command is measured
    resource = None  # type: ignore[assignment]

Source = Callable[[str], float]
_Times = tuple[float, float, float]  # wall, user, system

METRICS = ("wall", "cpu", "memory", "stdout")
SUITE = "json"
"""Many metrics at once: one JSON object of numbers on standard output; the reading is the wall time."""

_NUMBER = re.compile(
    r"(?<![\w.,])[-+]?(?:[0-9]+\.?[0-9]*(?:e[-+]?[0-9]+)?|\.[0-9]+(?:e[-+]?[0-9]+)?|nan|inf)(?!\w|[.,]\w)",
    re.IGNORECASE,
)
_TAIL = 8192  # bytes kept of an output stream: a screenful for a person, a last line for the stdout metric
_WHOLE = 1 << 20  # bytes kept of an output that is read as a whole
_PIPE_READS = 16  # of 64 KiB each: the largest pipe Linux gives an ordinary user
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_KILL_ROUNDS = 100
_PATIENCE = 1.0  # seconds that an empty command may take; what takes longer is no shell
_NOT_RUN = {126: "could not run a program", 127: "did not find a program"}  # POSIX, Shell Command Language 2.8.2
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes per unit of ru_maxrss

# `_signal`, because `signal` would raise the floor by a megabyte; SIGPIPE goes back to what a shell gives.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Under which conditions commands are measured, the same for all arms.

    Parameters
    ----------
    timeout
        Seconds after which a run and its process group are killed; None waits.
    ignore_failure
        Let a failed command count as a missing reading (NaN) instead of raising `CommandFailed`.
    accepted
        Exit codes beside 0 that are no failure: such a run counts as it was measured.
    input
        ``"null"`` or the path of a file for standard input.
    output
        ``"null"``, ``"pipe"``, ``"inherit"`` or the path of a file for standard output.
    """

    timeout: float | None = None
    ignore_failure: bool = False
    accepted: tuple[int, ...] = ()
    input: str = "null"
    output: str = "null"

    def __post_init__(self) -> None:
        if self.timeout is not None:
            check_positive("timeout", self.timeout)
        if self.input != "null" and Path(self.input).is_fifo():
            msg = f"input must be a file that every run can read anew, but {self.input!r} is a pipe; save it first"
            raise InvalidArgument(msg)
        if self.input != "null" and not Path(self.input).exists():
            msg = f"input must be 'null' or an existing file, but got {self.input!r}"
            raise InvalidArgument(msg)
        if self.output not in ("null", "pipe", "inherit") and not Path(self.output).parent.is_dir():
            msg = f"output must be null, pipe, inherit or a file in an existing directory, got {self.output!r}"
            raise InvalidArgument(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One run of a command: the reading and how it came about.

    Times are in seconds, as the clock told them. `value` is NaN if the run failed or timed out. `peak_memory` is
    in bytes, and None where it cannot be told from this process's own; ask for the metric ``"memory"`` to have it
    always.
    """

    value: float
    wall: float
    user: float
    system: float
    peak_memory: int | None
    exit_code: int
    timed_out: bool
    stdout_tail: str
    stderr_tail: str
    left_behind: bool = False
    """Whether processes that the command started were still there when it had ended."""
    metrics: Mapping[str, float | None] | None = None
    """What it printed, for the metric ``"json"``; None if that failed."""

    def details(self) -> dict[str, Any]:
        """Return what beside the reading is worth a note in the log, ready for JSON."""
        names = ("wall", "user", "system", "peak_memory", "exit_code", "timed_out")
        more = {"left_behind": self.left_behind or None, NOTE: self.metrics}
        known = {name: getattr(self, name) for name in names}
        return {**known, **{name: value for name, value in more.items() if value is not None}}


def measure(command: Command, metric: str = "wall", conditions: Conditions | None = None) -> Measurement:
    """Run a command once and read one number off it.

    Parameters
    ----------
    command
        What to run.
    metric
        ``"wall"`` seconds, ``"cpu"`` seconds (user and system together), ``"memory"`` (bytes at the peak),
        ``"stdout"`` (the number on the last line printed) or ``"json"`` (an object of them).
    conditions
        Time-out, failures, input and output.

    Raises
    ------
    CommandFailed
        If it ends with an exit code other than 0, or prints no number when one is wanted, unless
        `conditions.ignore_failure`. Exit codes 126 and 127 say that nothing was run at all, and raise in any case
        but `conditions.accepted`.
    """
    rules = conditions or Conditions()
    rules = replace(rules, input=command.input or rules.input, output=command.output or rules.output)
    if metric not in (*METRICS, SUITE):
        msg = f"metric must be one of {', '.join((*METRICS, SUITE))}, but got {metric!r}"
        raise InvalidArgument(msg)
    if metric in ("stdout", SUITE) and rules.output not in ("null", "pipe"):
        msg = f"output must be left alone to read a number from it, but got output={rules.output!r}"
        raise InvalidArgument(msg)
    run = _execute(command, metric, rules)
    wall, user, system = run.times
    value = _reading(command, metric, run, rules)
    metrics = None
    if metric == SUITE and not math.isnan(value):
        metrics = _metrics(command, run, ignore_failure=rules.ignore_failure)
        value = math.nan if metrics is None else value
    return Measurement(
        value=value,
        wall=wall,
        user=user,
        system=system,
        peak_memory=run.peak_memory,
        exit_code=run.exit_code,
        timed_out=run.timed_out,
        stdout_tail=run.stdout.text,
        stderr_tail=run.stderr.text,
        left_behind=run.left_behind,
        metrics=metrics,
    )


class _Tail:
    """The last bytes of a stream."""

    def __init__(self, most: int = _TAIL) -> None:
        self.kept = bytearray()
        self.most = most
        self.cut = False

    def take(self, descriptor: int) -> bool:
        """Read what is there; False if nothing is, or nothing more will be."""
        try:
            piece = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return False
        self.kept += piece
        if len(self.kept) > self.most:
            del self.kept[: -self.most]
            self.cut = True
        return bool(piece)

    @property
    def text(self) -> str:
        return self.kept.decode(errors="replace")

    @property
    def last_line(self) -> str:
        return self.text.rstrip().rpartition("\n")[2]

    def number(self) -> float | None:
        """Return the only number on the last line, or None if there is none, or several."""
        if self.cut and "\n" not in self.text.rstrip():
            return None
        numbers = _NUMBER.findall(self.last_line)
        return float(numbers[0]) if len(numbers) == 1 else None


class _Run(NamedTuple):
    times: _Times
    peak_memory: int | None
    exit_code: int
    timed_out: bool
    stdout: _Tail
    stderr: _Tail
    left_behind: bool


def _reading(command: Command, metric: str, run: _Run, rules: Conditions) -> float:
    if run.timed_out:
        return math.nan  # only the goal says on which side it is censored
    wall, user, system = run.times
    times = {"wall": wall, "cpu": user + system, SUITE: wall}
    value = run.stdout.number() if metric == "stdout" else times.get(metric, run.peak_memory)
    failed = run.exit_code not in (0, *rules.accepted)
    if not failed and value is not None:
        return float(value)
    if rules.ignore_failure and not (failed and run.exit_code in _NOT_RUN):
        return math.nan
    if failed:
        raise _failure(command, "command", run.exit_code, None if rules.output == "inherit" else run.stderr.text)
    msg = (
        f"command {neutralized(command.text)!r} must print one number on its last line, but printed "
        f"{neutralized(run.stdout.last_line[-80:])!r}; print it alone, or let failures count as missing"
    )
    raise CommandFailed(msg, command=command.text, exit_code=0, stderr_tail=run.stderr.text)


def _metrics(command: Command, run: _Run, *, ignore_failure: bool) -> dict[str, float | None] | None:
    try:
        if run.stdout.cut and "\n" not in run.stdout.text.rstrip():
            msg = f"printed a line of more than {_WHOLE >> 20} MiB"
            raise InvalidArgument(msg)
        return parsed(run.stdout.text)
    except InvalidArgument as error:
        if ignore_failure:
            return None
        msg = (
            f"command {neutralized(command.text)!r} must print one flat JSON object of numbers, such as "
            f"{{'parse': 1.5}} in double quotes, alone or on its last line: {neutralized(str(error))}; print it "
            "so, or let failures count as missing"
        )
        raise CommandFailed(msg, command=command.text, exit_code=0, stderr_tail=run.stderr.text) from None


def _failure(
    command: Command, stage: str, exit_code: int, stderr: str | None, *, late: float | None = None
) -> CommandFailed:
    how = f"exit code {exit_code}"
    if exit_code < 0:
        how = f"signal {-exit_code} ({signal.strsignal(-exit_code) or 'unknown'})"
    remedy = "fix it" if stage != "command" else "fix it, or let failures count as missing"
    if stage == "command" and exit_code in _NOT_RUN:
        how, remedy = f"{how}: the shell {_NOT_RUN[exit_code]}", "fix it"
    if late is not None:
        how = f"a kill, because it took longer than the time-out of {late:g} seconds"
        remedy = "give it more time, or run it before the race"
    words = "(see above)" if stderr is None else neutralized(stderr.strip(), lines=True)
    msg = f"{stage} {neutralized(command.text)!r} ended with {how}; {remedy}\n"
    return CommandFailed(
        msg + (words or "(it printed nothing to standard error)"),
        command=command.text,
        exit_code=exit_code,
        stderr_tail=stderr or "",
        stage=stage,
    )


def _execute(command: Command, metric: str, rules: Conditions) -> _Run:
    stdout, stderr = _Tail(_WHOLE if metric == SUITE else _TAIL), _Tail()
    with ExitStack() as stack:
        streams = _streams(stack, metric, rules)
        launcher = stack.enter_context(_Launcher()) if metric == "memory" else None
        options = _prepared(command, streams, launcher)
        started = time.perf_counter()
        process = _started(command, options)
        deadline = math.inf if rules.timeout is None else started + rules.timeout
        timed_out, usage = _attend(process, (stdout, stderr), deadline)
        wall = time.perf_counter() - started
        times, peak, code = (wall, usage.ru_utime, usage.ru_stime), _own_peak(usage), process.returncode
        adopted = _adopt()
        left_behind = not timed_out and (adopted or _is_group(process.pid))
        if launcher and not timed_out:
            times, peak, code = launcher.report(times, code)
    return _Run(times, peak, code, timed_out, stdout, stderr, left_behind)


def _streams(stack: ExitStack, metric: str, rules: Conditions) -> dict[str, Any]:
    null: Any = subprocess.DEVNULL
    stdin = null if rules.input == "null" else _opened(stack, rules.input, os.O_RDONLY)
    if rules.output == "inherit":
        return {"stdin": stdin, "stdout": None, "stderr": None}
    stdout = null
    if metric in ("stdout", SUITE) or rules.output == "pipe":
        stdout = subprocess.PIPE
    elif rules.output != "null":
        stdout = _opened(stack, rules.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    return {"stdin": stdin, "stdout": stdout, "stderr": subprocess.PIPE}


def _opened(stack: ExitStack, path: str, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)  # a pipe that nobody reads is not waited for
    except OSError as error:
        msg = f"{path} cannot be opened for the commands: {error.strerror}; choose another file"
        raise InvalidArgument(msg) from error
    stack.callback(os.close, descriptor)
    os.set_blocking(descriptor, True)
    return descriptor


def _prepared(command: Command, streams: Mapping[str, Any], launcher: "_Launcher | None" = None) -> dict[str, Any]:
    """Return the arguments of Popen: all that can be done before the clock runs."""
    check_posix()
    _become_subreaper()
    _foreign.clear()
    _foreign.update(_children() - _adopted)
    # None lets the child inherit: copying the environment for every run would take longer than starting it
    env = {**os.environ, **command.env} if command.env else None
    words = command.argv
    program = _program(words[0], command, (env or os.environ).get("PATH"))
    return {
        "args": launcher.argv(program, words) if launcher else words,
        "executable": None if launcher else program,
        "env": env,
        "cwd": command.cwd,
        "bufsize": 0,
        # A group of its own, so that a time-out reaches the children's children, and no terminal, because
        # a program that asked the terminal from a group in the background would be stopped for good.
        "start_new_session": True,
        "pass_fds": launcher.inherited if launcher else (),
        **streams,
    }


def _started(command: Command, options: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(**options)
    except OSError as error:
        msg = (
            f"command {neutralized(command.text)!r} cannot be started: {error.strerror}; "
            f"check the program and the directory {command.cwd or '.'!r}"
        )
        raise InvalidArgument(msg) from error


def _program(word: str, command: Command, path: str | None) -> str:
    if "/" in word:
        return word
    try:
        return _located(word, path)
    except LookupError:
        msg = f"command {neutralized(command.text)!r} needs the program {word!r}, which is not on the PATH"
        raise InvalidArgument(msg) from None


@lru_cache(maxsize=256)  # what is not found raises, and so is looked for again
def _located(word: str, path: str | None) -> str:
    found = shutil.which(word, path=path)
    if found is None:
        raise LookupError(word)
    return str(Path(found).absolute())


class _Launcher:
    """A small process between this one and a command, whose peak memory does not hide the command's."""

    def __enter__(self) -> "_Launcher":
        self._read, self._write = os.pipe()
        self.inherited = (self._write,)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._read)
        os.close(self._write)

    def argv(self, program: str, words: Sequence[str]) -> tuple[str, ...]:
        return (sys.executable, "-I", "-S", "-c", _LAUNCHER, str(self._write), program, *words)

    def report(self, times: _Times, exit_code: int) -> tuple[_Times, int | None, int]:
        os.set_blocking(self._read, False)
        try:
            wall, user, system, peak, code = ast.literal_eval(os.read(self._read, 4096).decode())
        except BlockingIOError:  # the launcher itself was killed, by the command or by the system
            return times, None, exit_code or 1
        return (wall, user, system), peak * _RSS_UNIT, code


def _own_peak(usage: "resource.struct_rusage") -> int | None:
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage.ru_maxrss * _RSS_UNIT if usage.ru_maxrss > own else None


def _attend(
    process: subprocess.Popen[bytes], tails: tuple[_Tail, _Tail], deadline: float
) -> tuple[bool, "resource.struct_rusage"]:
    """Wait for a child until the deadline, kill its group past it, and reap it whatever happens."""
    streams = (process.stdout, process.stderr)
    pipes = {stream.fileno(): tail for stream, tail in zip(streams, tails, strict=True) if stream}
    end = _End(process.pid)
    try:
        timed_out = not _watch(end.descriptor, pipes, deadline)
        if timed_out:
            _kill_all(process.pid)
    except BaseException:
        _kill_all(process.pid)
        raise
    finally:
        status, usage = end.reap()
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in streams:
            if stream:
                stream.close()
    return timed_out, usage


@lru_cache(maxsize=1)
def _become_subreaper() -> None:
    """Let orphans of commands become children of this process, so that a time-out finds them (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


_adopted: set[int] = set()  # orphans that earlier runs and hooks left running: they are not killed
_foreign: set[int] = set()  # children that this process had before the present run, started by other code


def _children() -> set[int]:
    """Return the children of this process, orphans of commands among them."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # the usual case, without a look into /proc
        return set()
    return {pid for pid, parent in _parents().items() if parent == os.getpid()}


def _adopt() -> bool:
    """Reap orphans that have ended and return True if a run left a new one running."""
    new = _children() - _adopted - _foreign
    _adopted.update(new)
    for pid in tuple(_adopted):
        _reap_orphan(pid)
    return not _adopted.isdisjoint(new)


def _reap_orphan(pid: int) -> None:
    try:
        ended, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        ended = pid
    if ended:
        _adopted.discard(pid)


def _parents() -> dict[int, int]:
    """Return the parent of every process; nothing where there is no /proc."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            found[int(path.parent.name)] = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
    return found


def _kill_all(pid: int) -> None:
    """Kill a run: its process group, its descendants, and its orphans, in whatever session they are."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    killed = {pid}
    for _ in range(_KILL_ROUNDS):  # one may start another while it is being killed
        parents, roots = _parents(), {pid}
        roots |= {one for one, parent in parents.items() if parent == os.getpid()} - _adopted - _foreign
        tree = {one for one in parents if _has_ancestor(one, roots, parents)} - killed
        if not tree:
            break
        for one in tree:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        killed |= tree
    for one in killed - {pid}:
        with suppress(ChildProcessError):
            os.waitpid(one, 0)


def _has_ancestor(pid: int, roots: set[int], parents: Mapping[int, int]) -> bool:
    seen: set[int] = set()
    while pid not in roots and pid in parents and pid not in seen:
        seen.add(pid)
        pid = parents[pid]
    return pid in roots


def _is_group(pid: int) -> bool:
    """Tell whether some process of a group is there, whose leader has ended."""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # there, and another user's
        pass
    return True


def _watch(ended: int, pipes: Mapping[int, _Tail], deadline: float) -> bool:
    """Read the pipes until the child has ended (True) or the deadline has passed (False)."""
    poller = select.poll()
    poller.register(ended, select.POLLIN)
    for pipe in pipes:
        os.set_blocking(pipe, False)
        poller.register(pipe, select.POLLIN)
    while True:
        left = deadline - time.perf_counter()
        ready = [descriptor for descriptor, _ in poller.poll(_milliseconds(left))]
        for pipe in set(ready) & pipes.keys():
            if not pipes[pipe].take(pipe):
                poller.unregister(pipe)
        if ended in ready:
            _drain(pipes)
            return True
        if left <= 0:
            return False


def _milliseconds(seconds: float) -> int | None:
    # A day at most, because poll counts milliseconds in 32 bits; the caller asks again.
    return None if seconds == math.inf else math.ceil(min(max(seconds, 0.0), 86_400.0) * 1000)


def _drain(pipes: Mapping[int, _Tail]) -> None:
    """Take what the child left in the pipes: a pipe's capacity at most, whoever else still writes."""
    for pipe, tail in pipes.items():
        for _ in range(_PIPE_READS):
            if not tail.take(pipe):
                break


class _End:
    """The end of a child: a descriptor that becomes readable then, and what the child leaves behind."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._thread: threading.Thread | None = None
        try:
            self.descriptor = os.pidfd_open(pid)
        except (AttributeError, OSError):  # not Linux, or a sandbox without the call
            self.descriptor, write = os.pipe()
            self._thread = threading.Thread(target=self._wait, args=(write,), daemon=True)
            self._thread.start()

    def _wait(self, write: int) -> None:
        self._left = os.wait4(self._pid, 0)[1:]
        os.close(write)

    def reap(self) -> tuple[int, "resource.struct_rusage"]:
        if self._thread is None:
            left = os.wait4(self._pid, 0)[1:]
        else:
            self._thread.join()
            left = self._left
        os.close(self.descriptor)
        return left


def check_posix() -> None:
    """Raise where commands cannot be run as a race runs them: in groups, and with what each one used."""
    if resource is None or not hasattr(os, "wait4") or not hasattr(os, "killpg"):
        msg = "commands are run and measured on Linux and macOS only; on Windows, run truearm inside WSL"
        raise InvalidArgument(msg)


def shell_cost(command: Command, metric: str = "wall", runs: int = 11) -> float | None:
    """Measure what the shell of a command takes of each reading, as the median over several empty commands.

    It is there to be told; no reading is corrected by it.

    Parameters
    ----------
    command
        One that runs through the shell, for its environment and directory.
    metric
        ``"wall"`` or ``"cpu"``; for others there is nothing to tell.
    runs
        How many; 11 take some 20 ms and give the median to a tenth.

    Returns
    -------
    float | None
        Seconds; None without a shell, or if the shell cannot run an empty command.
    """
    check_count("runs", runs)
    if command.shell is None or metric not in ("wall", "cpu"):
        return None
    empty = replace(command, text=":")
    with suppress(CommandFailed, InvalidArgument, TimeoutError):
        source = command_source([empty], metric, conditions=Conditions(timeout=_PATIENCE))
        return statistics.median(source(empty.name) for _ in range(runs))
    return None


def run_hook(command: Command, stage: str, timeout: float | None = None) -> None:
    """Run a setup, prepare, conclude or cleanup command to its end, outside all measurement.

    It may leave processes behind, such as a server that the arms talk to.

    Parameters
    ----------
    timeout
        Seconds after which it and its process group are killed, and counted as failed; None waits.
    """
    null = subprocess.DEVNULL
    # A file and not a pipe: what stays behind may go on writing to it without harm.
    with tempfile.TemporaryFile() as errors:
        options = _prepared(command, {"stdin": null, "stdout": null, "stderr": errors})
        process = _started(command, options)
        deadline = math.inf if timeout is None else time.perf_counter() + timeout
        timed_out, _ = _attend(process, (_Tail(), _Tail()), deadline)
        _adopt()
        if timed_out or process.returncode != 0:
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _TAIL))
            late = timeout if timed_out else None
            raise _failure(command, stage, process.returncode, errors.read().decode(errors="replace"), late=late)


def command_source(
    commands: Sequence[Command],
    metric: str = "wall",
    *,
    conditions: Conditions | None = None,
    prepare: Mapping[str, Command] | None = None,
    conclude: Mapping[str, Command] | None = None,
    listen: Callable[[str, Measurement], None] | None = None,
) -> Source:
    """Return the source that runs the command named like the arm, all commands started `alike`.

    Parameters
    ----------
    commands, metric, conditions
        As for `measure`; the arms are the commands' names.
    prepare, conclude
        By arm, what to run before and after each measured run.
    listen
        Called with the arm and the measurement before the reading is returned.

    Raises
    ------
    TimeoutError
        By the source, if a run timed out; `truearm.run.run` counts it as worse than any reading.
    """
    by_name = {command.name: command for command in alike(commands)}
    before, after = prepare or {}, conclude or {}
    limit = conditions.timeout if conditions else None

    def source(arm: str) -> float:
        if arm in before:
            run_hook(before[arm], "prepare", limit)
        measurement = measure(by_name[arm], metric, conditions)
        if arm in after:
            run_hook(after[arm], "conclude", limit)
        if listen:
            listen(arm, measurement)
        if measurement.timed_out:
            msg = f"command {neutralized(by_name[arm].text)!r} was killed after {limit:g} seconds"
            raise TimeoutError(msg)
        return measurement.value

    return source


def warm_up(source: Source, arms: Sequence[str], runs: int) -> None:
    """Pull every arm some times in turn and forget the readings, so that caches are warm."""
    for _ in range(check_count("runs", runs, least=0)):
        for arm in arms:
            with suppress(TimeoutError):
                source(arm)
