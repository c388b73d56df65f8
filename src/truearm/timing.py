"""Which Python code is fastest: statements or functions, in rounds, in fresh processes where that can be."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Unpack

from truearm.analysis import analyze
from truearm.claims.result import Result
from truearm.errors import InvalidArgument
from truearm.policies.paired import Paired
from truearm.problem import ProblemOptions, check_count, check_names, check_positive, fix_options
from truearm.run import find_best
from truearm.world.timing import Timed, TimedHere, timed

ALONE = 30
"""Processes in which code without a rival is timed: what they take is about two seconds."""


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

    Every reading comes from a process of its own, with a hash seed and a place in memory of its own, if the codes
    are statements or functions that such a process can import. Else all are timed in this process, and the result
    says so: what they share there is then part of the answer. Of code without a rival the result has the median
    and where the true one lies.

    Parameters
    ----------
    codes
        By name, statements, or functions without arguments.
    setup
        Statements to run before each block of loops, outside of the clock.
    progress, seed, **options
        As in `find_best`; the goal is always "min", and arms are compared in rounds.
    runs
        Exactly so many readings of each; else until it is known which is fastest, and of code without a rival 30.
    max_seconds
        Budget of time; 3 minutes are as long as one waits without having said so.

    Examples
    --------
    >>> found = time({"join": "''.join(x)", "loop": "s = ''\nfor c in x: s += c"}, setup="x = ['a'] * 500")
    >>> found.best, found.problem.target
    ('join', 'wins')
    >>> alone = time({"join": "''.join(x)"}, setup="x = ['a'] * 500", runs=10)
    >>> alone.arms[0].low < alone.arms[0].observed < 0.001
    True
    """
    if not isinstance(codes, Mapping) or not codes:
        such = "such as {'join': \"''.join(x)\", 'loop': function}"
        msg = f"codes must map names to statements or functions, {such}, but got {codes!r:.80}"
        raise InvalidArgument(msg)
    check_names(options)
    return raced(timed(codes, setup), runs=runs, max_seconds=max_seconds, progress=progress, seed=seed, **options)


def raced(
    sources: Mapping[str, Timed | TimedHere],
    *,
    runs: int | None = None,
    max_seconds: float | None = 180.0,
    progress: bool = True,
    seed: int | None = None,
    **options: Unpack[ProblemOptions],
) -> Result:
    """Time code that is ready to be timed, as `time` does.

    Parameters
    ----------
    sources
        By name, calibrated.
    runs, max_seconds, progress, seed, **options
        As in `time`.
    """
    check_count("runs", 1 if runs is None else runs)
    options = fix_options(options, goal="min", rounds=True)
    here = any(isinstance(source, TimedHere) for source in sources.values())
    conditions = {
        "process": "shared" if here else "fresh",
        "loops": {name: source.loops for name, source in sources.items()},
    }
    if len(sources) == 1:
        [(name, source)] = sources.items()
        tapes = {name: [source() for _ in range(runs or _affordable(source, max_seconds))]}
        options.pop("rounds"), options.pop("tolerance", None)  # there is nothing to compare with
        found: Result = analyze(tapes, order="rows", design="fixed", **options)
        return replace(found, readings=tapes, conditions=conditions)
    found = find_best(
        dict(sources),
        policy="toptwo" if runs is None else Paired(first=runs),
        max_pulls=1_000_000 if runs is None else runs * len(sources),
        max_seconds=max_seconds,
        progress=progress,
        seed=seed,
        **options,
    )
    return replace(found, conditions=conditions)


def _affordable(source: Callable[[], float], max_seconds: float | None) -> int:
    """Return how many readings there is time for, by one that does not count: it is fixed in advance."""
    if max_seconds is None:
        return ALONE
    begun = perf_counter()
    source()
    return max(1, min(ALONE, int(check_positive("max_seconds", max_seconds) / (perf_counter() - begun))))
