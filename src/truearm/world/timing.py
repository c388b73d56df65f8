"""How long Python code takes: one number per fresh process, by loops that were calibrated once.

A process draws its hash seed and its place in memory anew, and both change how fast code runs; what is timed in
one process shares them. So a reading is what the blocks of loops in a process of its own say together. Code that
cannot be started again, such as a function made inside another one, is timed in this process, and the caller is
told so. Garbage is not collected while the clock runs, as in `timeit`.
"""

import builtins
import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from truearm.errors import CommandFailed, InvalidArgument
from truearm.world import loops as loops_of
from truearm.world.commands import neutralized

Code = str | Callable[[], object]

_FILE = "<truearm time>"
# What the code prints goes nowhere: the answer has a descriptor of its own.
_WORKER = """
import json, os, sys
asked = json.loads(sys.argv[1])
if asked["path"] is not None:
    sys.path[:] = asked["path"]
answer = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
try:
    names = {"__name__": "__main__"}
    exec(compile("def timed(_n, _clock):\\n" + asked["body"], asked["file"], "exec"), names)
    timed, loops = names["timed"], asked["loops"]
    said = {"number": measured(timed, loops) if loops else calibrated(timed)}
except BaseException as error:
    import traceback
    lines = [place[1] for place in traceback.extract_tb(error.__traceback__) if place[0] == asked["file"]]
    said = {"error": traceback.format_exception_only(type(error), error)[-1].strip(), "line": (lines or [0])[0]}
os.write(answer, json.dumps(said).encode())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Code that is timed in fresh processes, and how many loops make a block.

    Parameters
    ----------
    text
        A statement, or a call of an importable function.
    setup
        Statements to run before each block, outside of the clock.
    loops
        0 until `calibrated`.
    python
        The interpreter.
    path
        Where it looks for modules; None for where it does by itself, and in the folder it is started in.
    patience
        Seconds that one process may take; None for as long as it takes.
    """

    text: str
    setup: str = "pass"
    loops: int = 0
    python: str = sys.executable
    path: tuple[str, ...] | None = None
    patience: float | None = None

    def __post_init__(self) -> None:
        for name, code in (("setup", self.setup), ("statement", self.text)):
            try:
                compile(code, f"<{name}>", "exec")
            except (SyntaxError, ValueError) as error:
                where = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
                msg = f"{_named(name, code)} is not Python: {getattr(error, 'msg', error)}{where}"
                raise InvalidArgument(msg) from None

    def calibrated(self) -> "Timed":
        """Return it with so many loops that a block lasts `BLOCK` or longer."""
        return replace(self, loops=int(self._answer(0)))

    def within(self, patience: float | None) -> "Timed":
        """Return it such that a process which takes longer than this fails."""
        return replace(self, patience=patience)

    def __call__(self) -> float:
        """Return seconds per loop, measured in a process of its own."""
        return self._answer(self.loops)

    def _answer(self, loops: int) -> float:
        asked = {"path": self.path, "file": _FILE, "body": _body(self.text, self.setup), "loops": loops}
        try:
            done = subprocess.run(
                [self.python, "-c", _program(), json.dumps(asked)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # a pipe that fills up would have to be read meanwhile
                check=False,
                timeout=self.patience,
            )
        except subprocess.TimeoutExpired:
            late = f"did not end within {self.patience:g} s; allow more time, or time less"
            msg = f"{_named('statement', self.text)} {late}"
            raise CommandFailed(msg, command=self.text) from None
        except OSError as error:
            msg = f"python {self.python!r} cannot be started: {error.strerror}; name another one"
            raise InvalidArgument(msg) from None
        return self._number(done.stdout, done.returncode)

    def _number(self, answer: bytes, code: int) -> float:
        """Return the number that a process answered, or say what went wrong in it, and where."""
        if not answer and not code:
            msg = (
                f"{self.python!r} does not answer as Python does; name another interpreter, unless "
                f"{_named('statement', self.text)} ends its own process"
            )
            raise InvalidArgument(msg)
        said: dict[str, Any] = {"error": f"the process ended with exit code {code}"}
        if answer:
            said = json.loads(answer)
        if "number" in said:
            return float(said["number"])
        in_setup = 1 < said.get("line", 0) <= 1 + self.setup.count("\n") + 1
        what = _named("setup", self.setup) if in_setup else _named("statement", self.text)
        words = neutralized(said["error"])
        unknown = re.match(r"NameError: name '(\w+)' is not defined", words)
        remedy = f"; define it: setup='{unknown[1]} = ...'" if unknown and not in_setup else ""
        msg = f"{what} failed: {words:.500}{remedy}"
        raise CommandFailed(msg, command=self.text, exit_code=code, stderr_tail=words)


@cache
def _program() -> str:
    return inspect.getsource(loops_of) + _WORKER


def _named(what: str, code: str) -> str:
    return f"{what} {code!r:.80}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedHere:
    """A function that is timed in this process, where it shares hash seed and memory with all others."""

    function: Callable[[], object]
    loops: int = 0

    def calibrated(self) -> "TimedHere":
        """Return it with so many loops that a block lasts `BLOCK` or longer."""
        return replace(self, loops=loops_of.calibrated(self._timed))

    def __call__(self) -> float:
        """Return seconds per loop."""
        return loops_of.measured(self._timed, self.loops)

    def _timed(self, loops: int, clock: Callable[[], float]) -> float:
        function, begun = self.function, clock()
        for _ in range(loops):
            function()
        return clock() - begun


def timed(codes: Mapping[str, Code], setup: str | None = None) -> "Mapping[str, Timed | TimedHere]":
    """Return what measures each code, calibrated: all in fresh processes, or all in this one if one of them must.

    Parameters
    ----------
    codes
        By name, statements or functions without arguments.
    setup
        Statements to run before the statements, outside of the clock.
    """
    if setup is not None and any(callable(code) for code in codes.values()):
        msg = "setup goes with statements; a function brings its own"
        raise InvalidArgument(msg)
    calls = {name: code if isinstance(code, str) else _call_of(name, code) for name, code in codes.items()}
    path = tuple(sys.path)
    if all(call is not None for call in calls.values()):
        return {
            name: Timed(text=str(call), setup=setup or _imports(codes[name]), path=path).calibrated()
            for name, call in calls.items()
        }
    return {name: TimedHere(function=_function(name, code)).calibrated() for name, code in codes.items()}


def _function(name: str, code: Code) -> Callable[[], object]:
    if isinstance(code, str):
        msg = f"{name!r} is a statement, but another code is a function made here; give functions, or statements"
        raise InvalidArgument(msg)
    return code


def _call_of(name: str, code: Code) -> str | None:
    """Return the call of a function that a fresh process can import, or None."""
    if not callable(code):
        msg = f"{name!r} must be a statement or a function without arguments, but got {code!r:.80}"
        raise InvalidArgument(msg)
    return f"{getattr(code, '__qualname__', '')}()" if _imports(code) else None


def _imports(code: Code) -> str:
    """Return the statement that imports a function anew; "" if none does."""
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
    first = path.partition(".")[0]
    return "pass" if module == builtins.__name__ else f"from {module} import {first}"


def _body(text: str, setup: str) -> str:
    """Return the lines of a function that times loops: names are local to it, as in `timeit`."""
    indent = "\n    ".join
    lines = [
        "    " + indent(setup.split("\n")),
        "    _begun = _clock()",
        "    for _i in range(_n):",
        "        " + "\n        ".join(text.split("\n")),
        "    return _clock() - _begun",
    ]
    return "\n".join(lines) + "\n"
