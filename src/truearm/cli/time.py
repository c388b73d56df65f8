"""`truearm time`: which Python statement is fastest."""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from truearm.claims.certificate import Status
from truearm.claims.certify import ratios
from truearm.claims.result import Result
from truearm.cli.answer import answer_with, show
from truearm.cli.options import TIMES, declare
from truearm.commands.measure import machine
from truearm.commands.python import FreshTimer
from truearm.commands.terminal import interruptible
from truearm.errors import ArmFailed
from truearm.problem import refuse
from truearm.report import words
from truearm.report.export import document
from truearm.report.numbers import count, name_of, plural, unit_for
from truearm.timing import RUNS_ALONE, run_timers

_OPTIONS = f"""
-s, --setup STATEMENT...  Run before each block of loops, not timed; repeatable, one line each.
-n, --name NAME...  Name of a statement; repeatable.
--python INTERPRETER...  Time with this Python instead of the one that runs truearm; repeat it to compare
    several.
+ delta
{TIMES.strip()}
-r, --runs N  Exactly this many processes for each statement; {RUNS_ALONE} by default if there is only one.
--max-time SECONDS  Stop after this many seconds (or 5m, 1h). [default: 180]
+ seed json export-html quiet verbose
"""


@click.command("time")
@click.argument("statements", nargs=-1, required=True, metavar="STATEMENT...")
@declare(_OPTIONS, contamination={"default": "blind"})
@click.pass_context
def time_command(ctx: click.Context, /, *, statements: tuple[str, ...], **chosen: Any) -> None:  # noqa: ANN401
    """Find the fastest Python statement, or measure how long one takes.

    \b
    truearm time 'sorted(x)' 'x.sort()' -s 'x = list(range(1000))'
    truearm time -n a '"".join(x)' -n b $'s = ""\\nfor c in x: s+=c' -s 'x = "abc"'
    truearm time 'json.dumps(x)' -s 'import json; x = [*range(100)]'   one alone
    truearm time 'sum(range(1000))' --python python3.11 --python python3.13

    Each reading comes from a fresh process, with its own hash seed and place in memory: the lower quartile
    of many short blocks of loops, because load only adds to a block. As in timeit, garbage is not collected
    in a block. A round times every statement once, in random order, until it is known which is fastest.

    Exit codes: 0 decided; 2 usage, or a statement failed; 3 not decided; 4 doubtful.
    """  # noqa: D301 - click wants the control character
    timers = _make_timers(statements, chosen["name"], chosen["setup"], chosen["python"])
    limits = {name: chosen[name] for name in ("delta", "contamination", "tolerance", "runs", "seed")}
    max_time = chosen["max_time"]
    try:
        with interruptible():
            ready = {name: replace(timer, timeout=max_time).calibrate() for name, timer in timers.items()}
            started = time.monotonic()
            result = run_timers(ready, max_seconds=max_time, progress=not chosen["quiet"], **limits)
    except ArmFailed as error:
        raise click.ClickException(str(error.__cause__)) from error
    elapsed = time.monotonic() - started
    is_late = result.status is Status.EXHAUSTED and elapsed >= max_time
    conditions = {
        "statements": {name: timer.text for name, timer in timers.items()},
        "setup": next(iter(timers.values())).setup,
        "interpreters": {name: Path(timer.python).name for name, timer in timers.items()},
    }
    result = replace(result, conditions={**(result.conditions or {}), **conditions})
    terms = words.terms_for(result, "wall", unit_for("wall", result.arms))
    terms = terms._replace(options=True, elapsed=elapsed, time_limit=max_time if is_late else None)
    answer = answer_with(
        result,
        terms,
        ratios=ratios(result),
        verbose=chosen["verbose"],
        notes=list(_notes(result, verbose=chosen["verbose"])),
        document=partial(document, result, result.readings or {}, metric="wall", machine=machine()),
    )
    ctx.exit(show(ctx, answer))


def _make_timers(
    statements: Sequence[str], names: Sequence[str], setup: Sequence[str], pythons: Sequence[str]
) -> dict[str, FreshTimer]:
    """Return a timer for every statement with every interpreter, by name."""
    msg = f"there are {len(names)} names for {plural(len(statements), 'statement')}; give one -n for each"
    refuse(len(names) > len(statements), msg)
    timers: dict[str, FreshTimer] = {}
    for python in pythons or (sys.executable,):
        for i, statement in enumerate(statements):
            name = names[i] if i < len(names) else statement
            if len(pythons) > 1:
                name = python if len(statements) == 1 else f"{name} ({python})"
            refuse(name in timers, f"two statements are called {name!r}; give them different names with -n")
            timers[name] = FreshTimer(text=statement, setup="\n".join(setup) or "pass", python=python)
    return timers


def _notes(result: Result, *, verbose: bool) -> Iterator[str]:
    if len(result.arms) == 1 and math.isinf(result.arms[0].high):
        yield f"-r {RUNS_ALONE} would bound the true median."
    known = (result.conditions or {}) if verbose else {}
    for name, loops in known.get("loops", {}).items():
        yield f"{name_of(name)}: {count(loops)} loop{'s' * (loops > 1)} in a block, {known['interpreters'][name]}."
