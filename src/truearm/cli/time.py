"""`truearm time`: which Python statement is fastest."""

import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from truearm.claims.certify import ratios
from truearm.claims.result import Result
from truearm.cli import edge, gates, options
from truearm.cli.outcome import html_page
from truearm.cli.screen import Screen
from truearm.commands.measure import machine
from truearm.commands.python import BLOCK_S, BLOCKS, FreshTimer
from truearm.commands.terminal import interruptible
from truearm.errors import ArmFailed, InvalidArgument
from truearm.report import tables, words
from truearm.report.export import document, json_text
from truearm.report.numbers import Unit, count, name_of, plural, unit_for
from truearm.timing import RUNS_ALONE, run_timers

_NANOSECONDS = Unit("ns", "nanoseconds", 1e-9)


@click.command("time", context_settings={"max_content_width": 100})
@click.argument("statements", nargs=-1, required=True, metavar="STATEMENT...")
@click.option(
    "-s",
    "--setup",
    multiple=True,
    metavar="STATEMENT",
    help="Run before each block of loops, outside of the clock; repeatable, one line each.",
)
@click.option("-n", "--name", "names", multiple=True, metavar="NAME", help="Name of a statement; repeatable.")
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="INTERPRETER",
    help="Time with this Python instead of the one that runs truearm; repeatable, then they are compared.",
)
@options.shared("delta", "race_contamination", "time_tolerance")
@click.option(
    "-r",
    "--runs",
    type=options.Whole(1),
    help=f"Exactly this many processes for each statement; {RUNS_ALONE} by default if there is only one.",
)
@click.option(
    "--max-time",
    type=options.DURATION,
    default="180",
    help="Stop after this many seconds (or 5m, 1h); 3 minutes by default.",
)
@click.option("--seed", type=options.Whole(0), help="Seed of the order inside each round.")
@options.shared("json", "export_html")
@click.option("-q", "--quiet", is_flag=True, help="No progress on the terminal.")
@click.option("-v", "--verbose", is_flag=True, help="Also print how it was measured.")
def time_command(*, as_json: bool, html: str | None, verbose: bool, quiet: bool, **chosen: Any) -> None:  # noqa: ANN401
    """Find out which Python statement is fastest; of one alone, how long it takes.

    \b
    truearm time 'sorted(x)' 'x.sort()' -s 'x = list(range(1000))'
    truearm time -n join '"".join(x)' -n loop $'s = ""\\nfor c in x: s += c' -s 'x = ["a"] * 500'
    truearm time 'json.dumps(x)' -s 'import json; x = list(range(100))'       one alone
    truearm time 'sum(range(1000))' --python python3.11 --python python3.13   two interpreters

    Each reading comes from a fresh process, with its own hash seed and place in memory: the lower quartile
    of many short blocks of loops, because load only adds to a block. As in timeit, garbage is not collected
    in a block. A round times every statement once, in random order, until it is known which is fastest.

    Exit codes: 0 decided; 2 usage, or a statement failed; 3 not decided; 4 doubtful.
    """  # noqa: D301 - click wants the control character
    if chosen["contamination"] == "auto":
        chosen["contamination"] = "blind"
    pythons, max_time = chosen.pop("pythons"), chosen.pop("max_time")
    timers = _make_timers(chosen.pop("statements"), chosen.pop("names"), chosen.pop("setup"), pythons)
    try:
        with interruptible():
            ready = {name: replace(timer, timeout=max_time).calibrate() for name, timer in timers.items()}
            result = run_timers(ready, max_seconds=max_time, progress=not quiet, **chosen)
    except ArmFailed as error:
        raise click.ClickException(str(error.__cause__)) from error
    conditions = {
        "statements": {name: timer.text for name, timer in timers.items()},
        "setup": next(iter(timers.values())).setup,
        "interpreters": {name: Path(timer.python).name for name, timer in timers.items()},
    }
    result = replace(result, conditions={**(result.conditions or {}), **conditions})
    readings = result.readings or {}
    if as_json:
        click.echo(json_text(document(result, readings, metric="wall", machine=machine())))
    else:
        click.echo(_text(result, verbose=verbose))
    exports = edge.Exports()
    if html is not None:
        with exports.writing(html):
            edge.write(html, html_page(result, readings, _unit(result), "wall"))
    sys.exit(exports.code(gates.exit_code(result)))


def _make_timers(
    statements: Sequence[str], names: Sequence[str], setup: Sequence[str], pythons: Sequence[str]
) -> dict[str, FreshTimer]:
    """Return a timer for every statement with every interpreter, by name."""
    if len(names) > len(statements):
        msg = f"there are {len(names)} names for {plural(len(statements), 'statement')}; give one -n for each"
        raise click.UsageError(msg)
    timers: dict[str, FreshTimer] = {}
    for python in pythons or (sys.executable,):
        for i, statement in enumerate(statements):
            name = names[i] if i < len(names) else statement
            if len(pythons) > 1:
                name = python if len(statements) == 1 else f"{name} ({python})"
            if name in timers:
                msg = f"two statements are called {name!r}; give them different names with -n"
                raise click.UsageError(msg)
            timers[name] = FreshTimer(text=statement, setup="\n".join(setup) or "pass", python=_locate(python))
    return timers


def _locate(python: str) -> str:
    found = shutil.which(python)
    if found is None:
        where = "is not on the PATH" if "/" not in python else "is not a program"
        msg = f"--python {python!r} {where}; give the path of an interpreter"
        raise InvalidArgument(msg)
    return str(Path(found).absolute())


def _unit(result: Result) -> Unit:
    unit = unit_for("wall", result.arms)
    below = all(arm.observed < unit.size for arm in result.arms)  # a microsecond
    return _NANOSECONDS if below else unit


def _text(result: Result, *, verbose: bool) -> str:
    screen, alone = Screen.here(), len(result.arms) == 1
    voice = words.voice_for(result, "wall", _unit(result))._replace(options=True)
    lines = words.lines(result, voice=voice, verbose=verbose)
    if alone and math.isinf(result.arms[0].high):
        lines.append(f"-r {RUNS_ALONE} would bound the true median.")
    rows = tables.arm_rows(result, voice, ratios(result))
    table = "" if alone else tables.table(rows, screen.width if screen.terminal else None)
    notes = "\n".join(map(screen.wrap, _notes(result))) if verbose else ""
    return screen.arrange(["\n".join(map(screen.wrap, lines))], [table, notes])


def _notes(result: Result) -> Iterator[str]:
    known = result.conditions or {}
    for name, loops in known["loops"].items():
        yield f"{name_of(name)}: {count(loops)} loop{'s' * (loops > 1)} in a block, {known['interpreters'][name]}."
    yield (
        f"A reading is the lower quartile of {BLOCKS} blocks (fewer if slow) of {1000 * BLOCK_S:g} ms or "
        "more, in a separate process, after one that does not count. Garbage is not collected inside a block."
    )
    yield from result.assumptions
