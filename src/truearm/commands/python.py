"""Time Python code: one number per fresh process, by loops that were calibrated once.

Every process has its own hash seed and place in memory, and both change how fast code runs. Code that cannot be
imported elsewhere, such as a nested function, is timed in this process, and the result notes it.

Load only adds to a block of loops, and most to a long one. So blocks are short, and a reading is their lower
quartile: a quarter of them undisturbed is enough. (The minimum, which `timeit` shows, would favor code with more
blocks.)
"""

import builtins
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from truearm.commands.measure import draw_padding
from truearm.commands.terminal import hold_signals
from truearm.errors import CommandFailed, InvalidArgument, printable
from truearm.problem import refuse

Code = str | Callable[[], object]
TimedLoops = Callable[[int], float]  # returns the seconds that some loops take

BLOCK_S = 0.0003  # least length of a block of loops: 10^4 ticks of the clock, and a tenth of a slice of the CPU
BLOCKS = 80  # blocks of a reading: together they take as long as starting Python does
MAX_READING_S = 0.05  # after this time no further block is started
# What the code prints goes nowhere: the reply has another descriptor.
_WORKER = """
import json, os, sys
asked = json.loads(sys.argv[1])
if asked["path"] is not None:
    sys.path[:] = asked["path"]
reply = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
try:
    for compiled in ("setup", "statement"):
        compile(asked[compiled], compiled, "exec")
    compiled = None
    timed = timeit.Timer(asked["statement"], asked["setup"], globals={"__name__": "__main__"}).timeit
    found = {"number": measure(timed, asked["loops"]) if asked["loops"] else calibrate(timed)}
except BaseException as error:
    import traceback
    lines = [place[1] for place in traceback.extract_tb(error.__traceback__) if place[0] == "<timeit-src>"]
    text = str(error) if compiled else traceback.format_exception_only(type(error), error)[-1].strip()
    found = {"error": text, "line": (lines or [0])[0], "compiled": compiled}
os.write(reply, json.dumps(found).encode())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshTimer:
    """Time code in fresh processes."""

    text: str  # a statement, or a call of an importable function
    setup: str = "pass"  # statements to run before each block, outside of the clock
    loops: int = 0  # per block; 0 before `calibrate`
    python: str = sys.executable
    path: tuple[str, ...] | None = None
    """`sys.path` of the process; None for the interpreter's own, and the folder it is started in."""
    timeout: float | None = None  # seconds that one process may take

    def calibrate(self) -> "FreshTimer":
        """Return a timer with enough loops for a block."""
        return replace(self, loops=int(self._run(0)))

    def __call__(self) -> float:
        """Return seconds per loop, measured in a new process."""
        return self._run(self.loops)

    def _run(self, loops: int) -> float:
        asked = {"path": self.path, "statement": self.text, "setup": self.setup, "loops": loops}
        process = None
        try:
            with hold_signals():  # an interrupt inside Popen would lose a child that has started
                process = subprocess.Popen(  # on every system, unlike `process.run`
                    [self.python, "-c", _program(), json.dumps(asked)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, **draw_padding()},
                )
            reply, _ = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            msg = f"statement {_shorten(self.text)} did not end within {self.timeout:g} s; allow more time"
            raise CommandFailed(msg, command=self.text) from None
        except OSError as error:
            msg = f"python {self.python!r} cannot be started: {error.strerror}; name another one"
            raise InvalidArgument(msg, "python", self.python) from None
        finally:
            if process is not None:
                with process:  # closes the pipe and waits for the end
                    if process.poll() is None:
                        process.kill()
        return self._read_reply(reply.decode(errors="replace"), process.returncode)

    def _read_reply(self, reply: str, exit_code: int) -> float:
        if not reply and not exit_code:
            what = f"name another interpreter, unless statement {_shorten(self.text)} ends its own process"
            raise InvalidArgument(f"{self.python!r} does not answer as Python does; {what}", "python", self.python)
        where = "" if self.python == sys.executable else f" in {self.python}"
        ended = f"the process ended with exit code {exit_code}"
        failed = {"error": f"{ended}{where}, which must be Python 3.8 or later" if where else ended}
        found: dict[str, Any] = json.loads(reply) if reply else failed
        if "number" in found:
            return float(found["number"])
        if name := found.get("compiled"):
            code = self.setup if name == "setup" else self.text
            msg = f"{name} {_shorten(code)} is not Python{where}: {printable(found['error']):.200}"
            raise InvalidArgument(msg, name, code)
        in_setup = 3 <= found.get("line", 0) <= 3 + self.setup.count("\n")  # where timeit puts it
        what = f"setup {_shorten(self.setup)}" if in_setup else f"statement {_shorten(self.text)}"
        words = printable(found["error"])
        unknown = not in_setup and re.match(r"NameError: name '(\w+)' is not defined", words)
        remedy = f"; define it: setup='{unknown[1]} = ...' or 'import {unknown[1]}'" if unknown else ""
        msg = f"{what} failed: {words:.500}{remedy}"
        raise CommandFailed(msg, command=self.text, exit_code=exit_code, stderr_tail=words)


@cache
def _program() -> str:
    """Return what a fresh process runs: the functions below, which import little."""
    known = "from __future__ import annotations\nimport time, timeit\n"
    known += f"BLOCK_S, BLOCKS, MAX_READING_S = {BLOCK_S}, {BLOCKS}, {MAX_READING_S}\n"
    return known + "\n".join(inspect.getsource(part) for part in (calibrate, measure, _blocks)) + _WORKER


def calibrate(timed: "TimedLoops") -> int:
    """Return how many loops make a block, by the best of a few tries."""
    loops = 1
    while (took := min(_blocks(timed, loops, 5))) < BLOCK_S:
        loops *= min(10, max(2, int(1.2 * BLOCK_S / max(took, 1e-9))))
    return loops


def measure(timed: "TimedLoops", loops: int) -> float:
    """Return seconds per loop: the lower quartile of blocks, after one that warms up."""
    took = _blocks(timed, loops, BLOCKS + 1)
    warm = sorted(took[1:] or took)
    return warm[len(warm) // 4] / loops


def _blocks(timed: "TimedLoops", loops: int, most: int) -> list[float]:
    started, took = time.perf_counter(), [timed(loops)]
    while len(took) < most and time.perf_counter() - started < MAX_READING_S:
        took.append(timed(loops))
    return took


def _shorten(code: str) -> str:
    return repr(code if len(code) <= 70 else f"{code[:67]}...")


class LocalTimer:
    """Time a function in this process, where it shares hash seed and memory with all others."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._timed = timeit.Timer(function).timeit
        self.loops = calibrate(self._timed)

    def __call__(self) -> float:
        """Return seconds per loop."""
        return measure(self._timed, self.loops)


def make_timers(codes: Mapping[str, Code], setup: str | None = None) -> "Mapping[str, FreshTimer | LocalTimer]":
    """Return a calibrated timer per code: all in fresh processes, or all in this one if one of them must be."""
    is_function = any(callable(code) for code in codes.values())
    msg = "setup goes with statements; a function brings its own"
    refuse(setup is not None and is_function, msg, "setup", setup)
    for name, code in codes.items():
        msg = f"{name!r} must be a statement or a function without arguments, but got {type(code).__name__}"
        refuse(not (isinstance(code, str) or callable(code)), msg, "codes", name)
    imports = {name: _import_statement(code) for name, code in codes.items()}
    if all(imports.values()):
        return {
            name: FreshTimer(
                text=code if isinstance(code, str) else f"{code.__qualname__}()",
                setup=setup or imports[name],
                path=tuple(sys.path),
            ).calibrate()
            for name, code in codes.items()
        }
    statement = next((name for name, code in codes.items() if isinstance(code, str)), None)
    msg = f"{statement!r} is a statement, but another code is a function made here; use the one or the other"
    refuse(statement is not None, msg, "codes", statement)
    return {name: LocalTimer(code) for name, code in codes.items() if not isinstance(code, str)}


def _import_statement(code: Code) -> str:
    """Return the statement that imports a function in another process; "" if none does."""
    if isinstance(code, str):
        return "pass"
    module, path = getattr(code, "__module__", None), getattr(code, "__qualname__", "<")
    if module in (None, "__main__") or "<" in path:
        return ""
    found: object = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    if found is not code:
        return ""
    return "pass" if module == builtins.__name__ else f"from {module} import {path.partition('.')[0]}"
