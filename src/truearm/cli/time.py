"""`truearm time`: which Python statement is fastest. What a user types, and how the answer is told."""

import math
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill

import click

from truearm.claims.ratios import ratios
from truearm.claims.result import Result
from truearm.cli import edge, gates, options
from truearm.commands.loops import BLOCK_S, BLOCKS
from truearm.commands.measure import machine
from truearm.commands.python import FreshTimer
from truearm.commands.signals import interruptible
from truearm.errors import ArmFailed, InvalidArgument
from truearm.problem import Contamination, Tolerance
from truearm.report import tables, words
from truearm.report.export import document, json_text
from truearm.report.numbers import Unit, count, name_of, plural, unit_for
from truearm.timing import RUNS_ALONE, run_timers

_NANOSECONDS = Unit("ns", "nanoseconds", 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The options, as typed."""

    statements: tuple[str, ...]
    setup: tuple[str, ...]
    names: tuple[str, ...]
    pythons: tuple[str, ...]
    delta: float
    contamination: Contamination | None
    tolerance: Tolerance
    runs: int | None
    max_time: float
    seed: int | None
    as_json: bool
    html: str | None
    quiet: bool
    verbose: bool


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
@options.delta_option
@options.contamination_option
@options.time_tolerance_option
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
@options.json_option
@options.export_html_option
@click.option("-q", "--quiet", is_flag=True, help="No progress on the terminal.")
@click.option("-v", "--verbose", is_flag=True, help="Also tell how it was measured.")
def time_command(**chosen: object) -> None:
    """Find out which Python statement is fastest; of one alone, how long it takes.

    \b
    truearm time 'sorted(x)' 'x.sort()' -s 'x = list(range(1000))'
    truearm time -n join '"".join(x)' -n loop $'s = ""\\nfor c in x: s += c' -s 'x = ["a"] * 500'
    truearm time 'json.dumps(x)' -s 'import json; x = list(range(100))'       one alone
    truearm time 'sum(range(1000))' --python python3.11 --python python3.13   two interpreters

    Each reading comes from a fresh process, with a hash seed and a place in memory of its own: the lower
    quartile of many short blocks of loops, because load only adds to a block. As in timeit, garbage is not
    collected meanwhile. A round times every statement once, in random order, until it is known which is fastest.

    Exit codes: 0 decided; 2 usage, or a statement failed; 3 not decided; 4 doubtful.
    """  # noqa: D301 - click wants the control character
    asked = _Asked(**chosen)  # type: ignore[arg-type]
    sources = _sources(asked)
    try:
        with interruptible():
            result = run_timers(
                {name: replace(source, timeout=asked.max_time).calibrate() for name, source in sources.items()},
                delta=asked.delta,
                contamination=asked.contamination,
                tolerance=asked.tolerance,
                runs=asked.runs,
                max_seconds=asked.max_time,
                progress=not asked.quiet,
                seed=asked.seed,
            )
    except ArmFailed as error:
        raise click.ClickException(str(error.__cause__)) from error
    result = replace(result, conditions={**(result.conditions or {}), **_conditions(sources)})
    tapes = result.readings or {}
    click.echo(
        json_text(document(result, tapes, metric="wall", machine=machine()))
        if asked.as_json
        else _told(result, asked)
    )
    exports = edge.Exports()
    if asked.html is not None:
        from truearm.report.pages import page

        with exports.writing(asked.html):
            edge.write(asked.html, page(result, tapes, unit=_unit(result), metric="wall"))
    sys.exit(exports.code(gates.exit_code(result)))


def _sources(asked: _Asked) -> dict[str, FreshTimer]:
    """Return what is to be timed, by name: every statement with every interpreter."""
    if len(asked.names) > len(asked.statements):
        many = plural(len(asked.statements), "statement")
        msg = f"there are {len(asked.names)} names for {many}; give one -n for each"
        raise click.UsageError(msg)
    setup = "\n".join(asked.setup) or "pass"
    found: dict[str, FreshTimer] = {}
    for python in asked.pythons or (sys.executable,):
        for i, statement in enumerate(asked.statements):
            name = asked.names[i] if i < len(asked.names) else statement
            if len(asked.pythons) > 1:
                name = python if len(asked.statements) == 1 else f"{name} ({python})"
            if name in found:
                msg = f"two statements are called {name!r}; give them different names with -n"
                raise click.UsageError(msg)
            found[name] = FreshTimer(text=statement, setup=setup, python=_located(python))
    return found


def _located(python: str) -> str:
    found = shutil.which(python)
    if found is None:
        where = "is not on the PATH" if "/" not in python else "is not a program"
        msg = f"--python {python!r} {where}; give the path of an interpreter"
        raise InvalidArgument(msg)
    return str(Path(found).absolute())


def _conditions(sources: dict[str, FreshTimer]) -> dict[str, object]:
    return {
        "statements": {name: source.text for name, source in sources.items()},
        "setup": next(iter(sources.values())).setup,
        "interpreters": {name: Path(source.python).name for name, source in sources.items()},
    }


def _unit(result: Result) -> Unit:
    unit = unit_for("wall", result.arms)
    below = all(arm.observed < unit.size for arm in result.arms)  # a microsecond
    return _NANOSECONDS if below else unit


def _told(result: Result, asked: _Asked) -> str:
    unit = _unit(result)
    columns = shutil.get_terminal_size((100, 24)).columns
    width, alone = min(100, columns), len(result.arms) == 1
    voice = words.voice_for(result, "wall", unit)._replace(options=True)
    lines = tables.arm_rows(result, voice, ratios(result))
    said = words.lines(result, voice=voice, verbose=asked.verbose)
    if alone and math.isinf(result.arms[0].high):
        said.append(f"-r {RUNS_ALONE} would bound the true median.")
    parts = [
        "\n".join(fill(line, width, break_on_hyphens=False) for line in said),
        "" if alone else tables.table(lines, columns if sys.stdout.isatty() else None),
        "\n".join(fill(line, width) for line in _notes(result)) if asked.verbose else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _notes(result: Result) -> Iterator[str]:
    known = result.conditions or {}
    for name, loops in known["loops"].items():
        yield f"{name_of(name)}: {count(loops)} loop{'s' * (loops > 1)} in a block, {known['interpreters'][name]}."
    yield (
        f"A reading is the lower quartile of {BLOCKS} blocks (fewer if slow) of {1000 * BLOCK_S:g} ms or "
        "more, in a process of its own, after one that does not count. Garbage is not collected inside a block."
    )
    yield from result.assumptions
