"""Which Python code is fastest: statements or functions, in rounds, in fresh processes where that can be."""

import warnings
from collections.abc import Callable, Mapping

from truearm.claims.result import Result
from truearm.errors import InvalidArgument
from truearm.problem import Contamination, Tolerance
from truearm.run import find_best
from truearm.world.timing import TimedHere, timed


def time(
    codes: Mapping[str, str | Callable[[], object]],
    *,
    setup: str | None = None,
    delta: float = 0.05,
    contamination: float | Contamination | None = 0.05,
    tolerance: float | str | Tolerance = 0.0,
    max_seconds: float | None = 180.0,
    progress: bool = True,
    seed: int | None = None,
) -> Result:
    r"""Time Python code side by side until it is known which is fastest; readings are seconds per loop.

    Every reading comes from a process of its own, with a hash seed and a place in memory of its own, if the codes
    are statements or functions that such a process can import. Else all are timed in this process, with a warning:
    what they share there is then part of the answer.

    Parameters
    ----------
    codes
        By name, statements, or functions without arguments.
    setup
        Statements to run before each block of loops, outside of the clock.
    delta, contamination, tolerance, progress, seed
        As in `find_best`.
    max_seconds
        Budget of time; 3 minutes are as long as one waits without having said so.

    Examples
    --------
    >>> found = time({"join": "''.join(x)", "loop": "s = ''\nfor c in x: s += c"}, setup="x = ['a'] * 500")
    >>> found.best, found.problem.target
    ('join', 'wins')
    """
    if not isinstance(codes, Mapping) or len(codes) < 2:
        msg = f"codes must map two names or more to statements or functions, but got {codes!r:.80}"
        raise InvalidArgument(msg)
    sources = timed(codes, setup)
    if any(isinstance(source, TimedHere) for source in sources.values()):
        msg = "timed in this process, because a function cannot be imported by another one: give statements"
        warnings.warn(msg, stacklevel=2)
    return find_best(
        dict(sources),
        delta=delta,
        contamination=contamination,
        tolerance=tolerance,
        goal="min",
        rounds=True,
        max_seconds=max_seconds,
        progress=progress,
        seed=seed,
    )
