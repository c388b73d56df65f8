"""Measure a command: run it once and read one number from it, or a JSON object of them.

A pull that goes wrong is never retried and never dropped, because both would be contamination of our own making:
a time-out counts as worse than any reading; a failure ends the race or is a missing reading (NaN), as the user
chose. Nothing is subtracted from the clock. In a JSON object, a metric without a number (null, NaN, an infinity, a
number beyond all floats) is a missing reading, None here.
"""

import itertools
import json
import math
import os
import platform
import re
import secrets
import shutil
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from truearm import __version__
from truearm.claims import suite
from truearm.commands import process
from truearm.commands.command import Command
from truearm.errors import CommandFailed, InvalidArgument, printable
from truearm.events import Log
from truearm.problem import check_positive, require

Run = tuple[float, Mapping[str, Any]]  # a reading, and what the log notes about it

METRICS = ("wall", "cpu", "memory", "stdout")
SUITE = "json"  # many metrics at once: one JSON object of numbers on standard output; the reading is the wall time
ITERATION = "TRUEARM_ITERATION"  # the variable that holds the number of a run of its command, from 0 on
NOTE = "metrics"  # the key of a run's metrics in the notes of its reading
PADDING = "TRUEARM_PAD"
"""The variable whose random length moves the stack of every run, so that no command keeps a lucky place."""
_MAX_PADDING = 4096  # bytes: a page

_NUMBER = re.compile(
    r"(?<![\w.,])[-+]?(?:[0-9]+\.?[0-9]*(?:e[-+]?[0-9]+)?|\.[0-9]+(?:e[-+]?[0-9]+)?|nan|inf)(?!\w|[.,]\w)",
    re.IGNORECASE,
)
_SUITE_BYTES = 1 << 20  # kept of an output that is one JSON object
_SHELL_TIMEOUT_S = 1.0  # for an empty command
_SHELL_RUNS = 11  # take about 20 ms and give the median within a tenth
MAX_METRICS = 1000  # of a run: more are a mistake, such as a list of raw samples with a name each
_MAX_NAME = 200  # characters of a metric
_MEASURED = ("wall", "user", "system", "peak_memory")
_NOT_RUN = {126: "could not run a program", 127: "did not find a program"}  # POSIX, Shell Command Language 2.8.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How commands are measured, the same for all arms."""

    timeout: float | None = None  # seconds after which a run and all its processes are killed; None waits
    ignore_failure: bool = False
    """Count a failed command as a missing reading (NaN) instead of raising `CommandFailed`."""
    accepted: tuple[int, ...] = ()  # exit codes besides 0 that are not failures
    input: str = "null"  # standard input: `"null"` or the path of a file
    output: str = "null"  # standard output: `"null"`, `"pipe"`, `"inherit"` or the path of a file

    def __post_init__(self) -> None:
        if self.timeout is not None:
            check_positive("timeout", self.timeout)
        is_file = self.input == "null" or (Path(self.input).exists() and not Path(self.input).is_fifo())
        require(is_file, "input", self.input, "be 'null' or an existing file", "for a pipe, save its output first")
        file = Path(self.output)
        is_place = self.output in ("null", "pipe", "inherit") or (file.parent.is_dir() and not file.is_fifo())
        require(is_place, "output", self.output, "be null, pipe, inherit or a file in an existing directory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One run of a command: the reading, NaN if the run failed or timed out, and how it came about."""

    value: float
    run: process.Run
    metrics: Mapping[str, float | None] | None = None
    """What it printed, for the metric ``"json"``; None if that failed."""

    def details(self) -> dict[str, Any]:
        """Return what the log notes about a run besides the reading."""
        details = {name: getattr(self.run, name) for name in (*_MEASURED, "exit_code", "timed_out")}
        if self.run.left_behind:
            details["left_behind"] = True
        return details if self.metrics is None else {**details, NOTE: self.metrics}


def measure(command: Command, metric: str = "wall", conditions: Conditions | None = None) -> Measurement:
    """Run a command once and read one number from it.

    Metrics are ``"wall"`` seconds, ``"cpu"`` seconds (user and system together), ``"memory"`` (bytes at the peak),
    ``"stdout"`` (the number on the last line printed) and ``"json"`` (an object of them). Raise CommandFailed if
    it fails or prints no number when one is wanted, unless `conditions.ignore_failure`. Exit codes 126 and 127
    mean that nothing was run at all, and raise unless they are `conditions.accepted`.
    """
    rules = conditions or Conditions()
    rules = replace(rules, input=command.input or rules.input, output=command.output or rules.output)
    require(metric in (*METRICS, SUITE), "metric", metric, f"be one of {', '.join((*METRICS, SUITE))}")
    is_read = metric not in ("stdout", SUITE) or rules.output in ("null", "pipe")
    require(is_read, "output", rules.output, "be null or pipe to read numbers from it")
    with ExitStack() as stack:
        streams = _open_streams(stack, metric, rules)
        run = _start(command, streams, timeout=rules.timeout, metric=metric)
    value = _read_value(command, metric, run, rules)
    if metric != SUITE or math.isnan(value):
        return Measurement(value=value, run=run)
    metrics = _read_metrics(command, run, ignore_failure=rules.ignore_failure)
    return Measurement(value=math.nan if metrics is None else value, run=run, metrics=metrics)


def draw_padding() -> dict[str, str]:
    """Return a variable of random length, by the operating system's randomness."""
    return {PADDING: "x" * secrets.randbelow(_MAX_PADDING)}


def _start(command: Command, streams: Mapping[str, Any], *, timeout: float | None, metric: str) -> process.Run:
    env, words = {**os.environ, **command.env}, command.argv
    program = words[0] if "/" in words[0] else shutil.which(words[0], path=env.get("PATH"))
    try:
        if program is None:
            raise FileNotFoundError(0, f"{words[0]!r} is not on the PATH")
        return process.run(
            words,
            program if "/" in words[0] else str(Path(program).absolute()),
            streams=streams,
            env=env,
            cwd=command.cwd,
            timeout=timeout,
            max_output=_SUITE_BYTES if metric == SUITE else process.TAIL_BYTES,
            through_launcher=metric == "memory",
        )
    except OSError as error:
        remedy = f" {words[0]!r} and the directory {command.cwd or '.'!r}"
        if program is None and command.text == words[0]:  # truearm race sleep 1
            remedy = ", and put each command in quotes"
        msg = f"{_describe(command)} cannot be started: {error.strerror}; check the program{remedy}"
        raise InvalidArgument(msg) from error


def _describe(command: Command) -> str:
    name = "" if command.name == command.text else f" ({printable(command.name)})"
    return f"command {printable(command.text)!r}{name}"


def _open_streams(stack: ExitStack, metric: str, rules: Conditions) -> dict[str, Any]:
    def open_file(path: str, mode: str) -> Any:  # noqa: ANN401 - a stream for Popen
        return subprocess.DEVNULL if path == "null" else stack.enter_context(open(path, mode))  # noqa: PTH123

    try:
        stdin = open_file(rules.input, "rb")
        if rules.output == "inherit":
            return {"stdin": stdin, "stdout": None, "stderr": None}
        is_piped = metric in ("stdout", SUITE) or rules.output == "pipe"
        stdout = subprocess.PIPE if is_piped else open_file(rules.output, "wb")
    except OSError as error:
        msg = f"{error.filename} cannot be opened for the commands: {error.strerror}; choose another file"
        raise InvalidArgument(msg) from error
    return {"stdin": stdin, "stdout": stdout, "stderr": subprocess.PIPE}


def _read_value(command: Command, metric: str, run: process.Run, rules: Conditions) -> float:
    if run.timed_out:
        return math.nan  # the goal says on which side it is censored
    values = {"wall": run.wall, "cpu": run.user + run.system, SUITE: run.wall, "memory": run.peak_memory}
    numbers = _NUMBER.findall(run.stdout.last_line) if run.stdout.has_whole_line else []
    value = values[metric] if metric != "stdout" else float(numbers[0]) if len(numbers) == 1 else None
    failed = run.exit_code not in (0, *rules.accepted)
    if not failed and value is not None:
        return float(value)
    if rules.ignore_failure and not (failed and run.exit_code in _NOT_RUN):
        return math.nan
    if failed:
        printed = None if rules.output == "inherit" else run.stderr.text
        raise _failure(_describe(command), command, run.exit_code, printed)
    printed = f"{printable(run.stdout.last_line[-80:])!r}; print it alone, or let failures count as missing"
    msg = f"{_describe(command)} must print one number on its last line, but printed {printed}"
    raise CommandFailed(msg, command=command.text, exit_code=0, stderr_tail=run.stderr.text)


def _read_metrics(command: Command, run: process.Run, *, ignore_failure: bool) -> dict[str, float | None] | None:
    try:
        return _parse_metrics(run.stdout.text.strip())
    except InvalidArgument as error:
        if ignore_failure:
            return None
        msg = (
            f"{_describe(command)} must print one flat JSON object of at most {MAX_METRICS:,} "
            f'numbers, such as {{"parse": 1.5}}, alone or on its last line, but '
            f"{printable(str(error))}; print it so, or let failures count as missing"
        )
        raise CommandFailed(msg, command=command.text, exit_code=0, stderr_tail=run.stderr.text) from None


def _parse_metrics(text: str) -> dict[str, float | None]:
    """Return the metrics in a run's output: all of it is one JSON object of numbers, or its last line is."""
    found, last = None, text.rpartition("\n")[2]
    for part in (last, text):
        with suppress(ValueError, RecursionError):
            found = json.loads(part, object_pairs_hook=tuple)  # lists stay lists
    if not isinstance(found, tuple):
        raise InvalidArgument(f"printed {last[-80:]!r}")
    if len(found) > MAX_METRICS or len(dict(found)) < len(found):
        raise InvalidArgument(f"printed {len(found):,} metrics under {len(dict(found)):,} names")
    return {name: _number(name, value) for name, value in found}


def _number(name: str, value: Any) -> float | None:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise InvalidArgument(f"{name!r:.80} is not a number")
    if not name.isprintable() or not 0 < len(name) <= _MAX_NAME:
        raise InvalidArgument(f"{name!r:.80} is empty, long, or has characters that do not print")
    with suppress(OverflowError):
        return float(value) if value is not None and math.isfinite(value) else None
    return None


def _failure(
    what: str, command: Command, code: int, stderr: str | None, *, stage: str = "command"
) -> CommandFailed:
    how = f"signal {-code} ({signal.strsignal(-code) or 'unknown'})" if code < 0 else f"exit code {code}"
    how += f": the shell {_NOT_RUN[code]}" if stage == "command" and code in _NOT_RUN else ""
    printed = "(see above)" if stderr is None else printable(stderr.strip(), lines=True)
    return CommandFailed(
        f"{what} ended with {how}; fix it\n{printed or '(it printed nothing to standard error)'}",
        command=command.text,
        exit_code=code,
        stderr_tail=stderr or "",
        stage=stage,
    )


def shell_cost(command: Command, metric: str = "wall") -> float | None:
    """Return the seconds that a command's shell adds to each reading, or None; no reading is corrected."""
    if command.shell is None or metric not in ("wall", "cpu"):
        return None
    empty, rules = replace(command, text=":"), Conditions(timeout=_SHELL_TIMEOUT_S)
    with suppress(CommandFailed, InvalidArgument):
        costs = [measure(empty, metric, rules).value for _ in range(_SHELL_RUNS)]
        return None if any(map(math.isnan, costs)) else statistics.median(costs)
    return None


def run_hook(command: Command, stage: str, timeout: float | None = None, *, of: str = "") -> None:
    """Run a setup, prepare, conclude, cleanup or build command (`of` a revision) to its end, not measured.

    It may leave processes running, such as a server that the arms talk to.
    """
    what = f"{stage} {printable(command.text)!r}{of}"
    with tempfile.TemporaryFile() as output:  # not a pipe: what stays running may go on writing to it
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
        run = _start(command, streams, timeout=timeout, metric="wall")
        if run.timed_out:
            remedy = "give it more time, or run it before the race"
            msg = f"{what} was killed after the time-out of {timeout:g} s; {remedy}"
            raise CommandFailed(msg, command=command.text, exit_code=run.exit_code, stage=stage)
        if run.exit_code != 0:
            output.seek(max(0, output.seek(0, os.SEEK_END) - process.TAIL_BYTES))
            raise _failure(
                what, command, run.exit_code, output.read().decode(errors="backslashreplace"), stage=stage
            )


def runs_of(log: Log) -> dict[str, list[suite.Run]]:
    """Return the metrics of all runs in a log, per arm in order of round, None for a run without them."""
    runs: dict[str, list[suite.Run]] = {
        arm: [None] * len(tickets) for arm, tickets in zip(log.names, log.tickets, strict=True)
    }
    for ticket, notes in log.notes.items():
        if isinstance(noted := notes.get(NOTE), Mapping):  # another program may have written it
            metrics = {name: _number(name, value) for name, value in noted.items()}
            runs[log.name(ticket)][log.draws[ticket]] = metrics
    return runs


def join_runs(runs: Sequence[Run], best: Callable[..., Run] | None) -> Run:
    """Return the best of the runs of a round (by `min` or `max`) or their median, and what the log notes about it.

    The reading is missing if that of one run is.
    """
    values, notes = [value for value, _ in runs], [details for _, details in runs]
    if best is not None:
        reading, details = best(runs, key=lambda run: run[0])
    else:
        reading, details = statistics.median(values), {name: _median(notes, name) for name in _MEASURED}
        details["exit_code"] = next((note["exit_code"] for note in notes if note.get("exit_code")), 0)
        details |= {name: True for name in ("timed_out", "left_behind") if any(note.get(name) for note in notes)}
        if all(NOTE in note for note in notes):
            metrics = [note[NOTE] for note in notes]
            details[NOTE] = {name: _median(metrics, name) for name in dict.fromkeys(itertools.chain(*metrics))}
    noted = {**details, "runs": [value if math.isfinite(value) else None for value in values]}
    return math.nan if any(map(math.isnan, values)) else reading, noted


def _median(notes: Iterable[Mapping[str, Any]], name: str) -> float | None:
    known: list[Any] = [note.get(name) for note in notes]
    return None if None in known else statistics.median(known)


def machine() -> dict[str, str | int]:
    """Describe the machine for the reader of an export, without naming its owner."""
    processor = platform.processor()
    with suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        processor = printable(found[1]) if found else processor
    return {
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "processor": processor,
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "python": platform.python_version(),
        "truearm": __version__,
    }
