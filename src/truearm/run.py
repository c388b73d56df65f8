"""Run a study: ask, pull, log and tell until it is done or a budget is spent.

Pulls may run on any `concurrent.futures.Executor`. Readings that come back first are not a fair sample, because
large readings may take longer. Therefore a study counts pulls that are out at their worst, and nothing here drops,
retries or reorders a pull (docs/scale.md).
"""

import math
import multiprocessing
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import ExitStack, closing, contextmanager
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from random import SystemRandom
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

from truearm.claims.result import Result
from truearm.commands.terminal import bar, hold_signals
from truearm.errors import ArmFailed, InvalidArgument, ProtocolError
from truearm.events import Event, Noted
from truearm.policies import Policy
from truearm.problem import (
    Problem,
    ProblemOptions,
    Pull,
    check_choice,
    check_count,
    check_flag,
    check_positive,
    refuse,
    require,
)
from truearm.study import Study as PureStudy

if TYPE_CHECKING:
    from truearm.store import Store

OnError = Literal["stop", "missing"]
Sources = Callable[[str], Callable[[], float]]
"""For each arm a function that returns one reading."""
# asyncio and concurrent.futures raise TimeoutError
_TIME_OUTS = (TimeoutError, TimeoutExpired, multiprocessing.TimeoutError)


def shuffle(arms: Sequence[int]) -> list[int]:
    """Shuffle arms with the operating system's randomness, so that the order cannot be predicted."""
    return SystemRandom().sample(arms, len(arms))


class Study(PureStudy):  # noqa: D101 - its docstring is that of the pure study
    __doc__ = PureStudy.__doc__

    if not TYPE_CHECKING:  # the arguments are those of the pure study

        @wraps(PureStudy.__init__)
        def __init__(self, arms: Sequence[str] | Problem, **how: Any) -> None:  # noqa: ANN401
            rounds = arms.rounds if isinstance(arms, Problem) else check_flag("rounds", how.get("rounds", False))
            if rounds and how.get("seed") is None and how.get("order") is None:
                how["order"] = shuffle
            super().__init__(arms, **how)


def find_best(
    arms: Mapping[str, Callable[[], float]],
    *,
    policy: "str | Policy[Any]" = "toptwo",
    max_pulls: int = 1_000_000,
    max_seconds: float | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    store: "str | Path | Store | None" = None,
    progress: bool = True,
    on_error: OnError = "stop",
    seed: int | None = None,
    **options: Unpack[ProblemOptions],
) -> Result:
    """Pull arms until it is known which one is best, and return the result.

    Parameters
    ----------
    arms
        For each arm a function without arguments that returns one reading. Successive calls must be fresh,
        independent draws of that arm (docs/assumptions.md).
    policy, max_pulls, seed, **options
        As in `Study`.
    max_seconds
        Time limit, after which the result is `exhausted`. Pulls in progress are not interrupted.
    executor, workers
        Where pulls run, and how many at once; by default the executor's own number of workers.
    store
        A file (or `Store`) in which every reading is logged before it is used. A log that exists is
        continued; pulls that were out when it ended are missing readings and count at their worst.
    progress
        Show a bar on a terminal; nothing is shown in a pipe.
    on_error
        What an exception in an arm does: "stop" raises `ArmFailed` with the result so far; "missing" records
        a missing reading (NaN), which counts at its worst. A time-out (`TimeoutError`, those of `subprocess` and
        `multiprocessing`) is a censored reading, worse than any other: plus infinity if smaller is better, else
        minus infinity. An `EOFError` means that an arm has no more data, and ends the study.

    Examples
    --------
    >>> import random
    >>> draw = random.Random(3)
    >>> result = find_best({"A": lambda: draw.gauss(0, 1), "B": lambda: draw.gauss(2, 1)})
    >>> result.best, result.status.value
    ('B', 'certified')
    """
    sources = check_functions(arms, "without arguments", "use truearm.analyze for readings that you have already")
    study = Study(list(sources), policy=policy, max_pulls=max_pulls, seed=seed, **options)
    with open_store(store) as log:
        return run(
            study if log is None else resume_or_start(study, log),
            sources.__getitem__,
            max_seconds=max_seconds,
            executor=executor,
            workers=workers,
            progress=progress,
            on_error=on_error,
        )


def check_functions(arms: object, takes: str, otherwise: str) -> dict[str, Callable[..., float]]:
    """Return arms as a dictionary of functions, or raise."""
    if not isinstance(arms, Mapping):
        example = "such as {'A': pull_a, 'B': pull_b}"
        msg = f"arms must be a dictionary from names to functions, {example}, but got {type(arms).__name__}"
        raise InvalidArgument(msg, "arms", type(arms).__name__)
    for name, source in arms.items():
        what = f"arms[{name!r}] must be a function {takes}, but got {type(source).__name__}"
        refuse(not callable(source), f"{what}; {otherwise}", "arms", name)
    return dict(arms)


def run(
    study: PureStudy,
    source: Sources,
    *,
    max_seconds: float | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: bool = False,
    on_error: OnError = "stop",
    watch: Callable[[], bool] | None = None,
) -> Result:
    """Drive a study to its end with `source(arm)`, a function per arm, and return its result.

    An interrupt from the keyboard, or a true value from `watch`, called as readings come in, ends the study with
    what is known so far. Other parameters are those of `find_best`.
    """
    check_choice("on_error", on_error, get_args(OnError))
    deadline = math.inf if max_seconds is None else time.monotonic() + check_positive("max_seconds", max_seconds)
    pull: Callable[[PureStudy, Sources, OnError], Generator[None]] = _pull_in_turn
    if workers is not None:
        check_count("workers", workers)
    if executor is not None:
        pull = partial(_pull_in_parallel, executor=executor, workers=workers, deadline=deadline)
    with bar(study, shown=progress) as show:
        try:
            with closing(pull(study, source, on_error)) as steps:
                for _ in steps:
                    show()
                    if (watch is not None and watch()) or time.monotonic() >= deadline:
                        study.stop()
        except KeyboardInterrupt:
            study.stop()
    result = study.result
    assert result is not None
    return result


def _pull_in_turn(study: PureStudy, source: Sources, on_error: OnError) -> Generator[None]:
    """Pull one by one until the study is done."""
    while not study.done:
        for pull in _ask(study, 1):
            _take(pull, source(pull.arm), study, on_error)
        yield


def _pull_in_parallel(
    study: PureStudy,
    source: Sources,
    on_error: OnError,
    *,
    executor: Executor,
    workers: int | None,
    deadline: float,
) -> Generator[None]:
    """Keep workers busy until the study is done or the time is up."""
    is_executor = callable(getattr(executor, "submit", None))
    require(is_executor, "executor", executor, "be one of concurrent.futures, such as ThreadPoolExecutor(4)")
    threads = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
    places = workers or int(threads)
    import_module("scipy.special")  # before pulls run, because importing would slow them down
    out: dict[Future[float], Pull] = {}
    try:
        while not study.done:
            for pull in _ask(study, places - len(out)) if len(out) < places else ():
                # the ticket makes each call unique for executors that cache equal ones (Dask)
                out[executor.submit(_call, source(pull.arm), pull.ticket)] = pull
            left = deadline - time.monotonic()
            arrived, _ = wait(out, timeout=None if left == math.inf else max(left, 0), return_when=FIRST_COMPLETED)
            for future in sorted(arrived, key=lambda f: out[f].ticket):
                _take(out.pop(future), future.result, study, on_error)
            yield
    finally:
        for future in out:
            future.cancel()


def _ask(study: PureStudy, most: int) -> list[Pull]:
    with hold_signals():  # the log must not have pulls that the study lacks
        return study.ask(most)


def _call(pull: Callable[[], float], _ticket: int) -> float:
    return _as_reading(pull())


def _as_reading(value: float) -> float:
    try:
        return value if isinstance(value, Noted) else float(value)
    except (TypeError, ValueError):
        msg = f"a pull must return a number, but got {value!r:.80}; return the reading, or nan if it went wrong"
        raise InvalidArgument(msg) from None


def _take(pull: Pull, read: Callable[[], float], study: PureStudy, on_error: OnError) -> None:
    """Take one reading and record it: a time-out is censored, another failure stops or is missing."""
    try:
        value = _as_reading(read())
    except _TIME_OUTS:
        value = study.problem.time_out
    except EOFError:  # this arm has no more data: the pull never started
        with hold_signals():
            study.release(pull)
        study.stop()
        return
    except Exception as error:
        if on_error != "missing":
            study.stop()
            why = error if isinstance(error, InvalidArgument) else repr(error)
            remedy = "Return nan, or use find_best(on_error='missing'), to count such readings at their worst"
            msg = f"arm {pull.arm!r} failed: {why}; the result so far is in this error's `result`. {remedy}"
            raise ArmFailed(msg, arm=pull.arm, result=study.result) from error
        value = math.nan
    with hold_signals():
        study.tell(pull, value)


@contextmanager
def open_store(store: "str | Path | Store | None") -> "Iterator[Store | None]":
    """Open and lock a log, if there is one."""
    if store is None:
        yield None
        return
    from truearm.store import Store, lock

    require(isinstance(store, str | Path | Store), "store", store, "be the path of a file, or a Store")
    with ExitStack() as stack:
        stack.enter_context(lock(store.path if isinstance(store, Store) else store))
        yield store if isinstance(store, Store) else stack.enter_context(Store(store))


def resume_or_start(study: PureStudy, store: "Store", **facts: str) -> PureStudy:
    """Return the study after the events of its log, or start a log for it; `facts` must not change either."""
    definition = study.definition | facts
    if not store.created:
        store.create(definition)
        return log_to(study, store)
    known, inner = store.definition, ("problem", "options")
    parts = [(definition, known), *((definition[name], known[name]) for name in inner)]
    if other := [key for new, old in parts for key in new if key not in inner and new[key] != old.get(key)]:
        budget = f"; its budget stays max_pulls={known.get('max_pulls')}" if "max_pulls" in other else ""
        msg = f"the log {store.path} belongs to another study: it differs in {', '.join(other)}{budget}; "
        raise ProtocolError(f"{msg}use another file, or the same arguments as before")
    return resume_study(store)


def log_to(study: PureStudy, store: "Store", position: int = 0) -> PureStudy:
    """Log a study to a store from a position on, as its only writer, and return it."""

    def append(events: list[Event]) -> None:
        nonlocal position
        position = store.append(events, after=position)

    study.log_to(append)
    return study


def resume_study(store: "Store", *, broke_off: bool = True) -> PureStudy:
    """Return the study of a log, which continues to log there.

    If it broke off, pulls that are out become missing readings; otherwise `tell` still accepts theirs.
    """
    study = Study.replay(store.definition)
    study.follow(store.rows())
    log_to(study, store, study.log.position)
    for pull in study.out if broke_off else ():
        study.tell(pull, math.nan)
    return study
