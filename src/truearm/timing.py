"""Find which Python code is fastest: statements or functions, in rounds, in fresh processes where possible."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, Unpack

from truearm.analysis import analyze
from truearm.claims.result import Result
from truearm.commands.python import FreshTimer, LocalTimer, make_timers
from truearm.policies.alone import Alone
from truearm.policies.paired import Paired
from truearm.problem import ProblemOptions, Tolerance, check_count, check_positive, fix_options, refuse, require
from truearm.run import find_best

RUNS_ALONE = 30
"""Processes that time one code alone: they take about two seconds."""


def time(
    codes: Mapping[str, str | Callable[[], object]],
    *,
    setup: str | None = None,
    runs: int | None = None,
    max_seconds: float | None = 180.0,
    progress: bool = True,
    seed: int | None = None,
    **options: Unpack[ProblemOptions],
) -> Result:
    r"""Time Python code side by side until it is known which is fastest; readings are seconds per loop.

    Every reading comes from a fresh process, with its own hash seed and place in memory, if all codes are
    statements or functions that such a process can import. Otherwise all are timed in this process, and the result
    notes that. For a single code the result has its median and an interval for the true median.

    Parameters
    ----------
    codes
        By name, statements, or functions without arguments.
    setup
        Statements to run before each block of loops, not timed.
    runs
        The exact number of readings of each; by default as many as it takes, or 30 for a single code.
    max_seconds
        Time limit; 3 minutes by default.
    progress, seed, **options
        As in `find_best`: delta, contamination ("blind" by default) and tolerance. A single code with a tolerance
        is timed until its median is known that precisely.

    Examples
    --------
    >>> found = time({"join": "''.join(x)", "loop": "s = ''\nfor c in x: s += c"}, setup="x = ['a'] * 500")
    >>> found.best, found.problem.target
    ('join', 'wins')
    """
    such = "such as {'join': \"''.join(x)\", 'loop': function}"
    msg = f"codes must map names to statements or functions, {such}, but got {type(codes).__name__}"
    refuse(not isinstance(codes, Mapping) or not codes, msg, "codes")
    require(isinstance(setup, str | None), "setup", setup, "be statements as text")
    timers = make_timers(codes, setup)
    return run_timers(timers, runs=runs, max_seconds=max_seconds, progress=progress, seed=seed, **options)


def run_timers(
    timers: Mapping[str, FreshTimer | LocalTimer],
    *,
    runs: int | None,
    max_seconds: float | None,
    progress: bool,
    seed: int | None,
    **options: Unpack[ProblemOptions],
) -> Result:
    """Run `time` with calibrated timers."""
    several = len(timers) > 1
    options = fix_options({"contamination": "blind", **options}, goal="min", rounds=several)
    check_count("runs", 1 if runs is None else runs)
    check_positive("max_seconds", 1.0 if max_seconds is None else max_seconds)
    shared = any(isinstance(timer, LocalTimer) for timer in timers.values())
    conditions = {
        "process": "shared" if shared else "fresh",
        "loops": {name: timer.loops for name, timer in timers.items()},
    }
    how: dict[str, Any] = {"policy": "toptwo"}
    if runs is not None:
        how = {"policy": Paired(first=runs), "max_pulls": runs * len(timers)}
    if not several:
        [(name, timer)] = timers.items()
        if options["contamination"] == "blind":  # it needs a comparison
            options["contamination"] = 0.05
        tolerance = Tolerance.of(options.get("tolerance", 0.0))
        if not tolerance:
            readings = {name: [timer() for _ in range(runs or _affordable_runs(timer, max_seconds))]}
            alone = analyze(readings, order="rows", design="fixed", **options)
            return replace(alone, readings=readings, conditions=conditions)
        msg = (
            f"tolerance='{tolerance}' takes as many runs as it needs, but runs={runs} is given; remove one of them"
        )
        refuse(runs is not None, msg, "tolerance", str(tolerance))
        how = {"policy": Alone()}
    result = find_best(dict(timers), max_seconds=max_seconds, progress=progress, seed=seed, **how, **options)
    return replace(result, conditions={**(result.conditions or {}), **conditions})


def _affordable_runs(timer: Callable[[], float], max_seconds: float | None) -> int:
    """Return how many readings there is time for, from a trial reading: the number must be fixed in advance."""
    if max_seconds is None:
        return RUNS_ALONE
    started = perf_counter()
    timer()
    return max(1, min(RUNS_ALONE, int(max_seconds / (perf_counter() - started))))
