"""Score models on a list of items until it is known which has the best mean score (extensions B)."""

import asyncio
import inspect
import math
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from truearm.analysis import Questions, analyze
from truearm.claims.result import Result
from truearm.commands.terminal import bar, hold_signals
from truearm.errors import ArmFailed, InvalidArgument, TruearmError
from truearm.events import Noted
from truearm.policies.paired import Paired
from truearm.problem import (
    Bounded,
    Contamination,
    Problem,
    ProblemOptions,
    as_number,
    check_choice,
    check_count,
    check_flag,
    fix_options,
    refuse,
    require,
)
from truearm.run import OnError, Study, check_functions, open_store, resume_or_start
from truearm.study import Study as PureStudy

_FAILURE = "failure"  # the note of a score that is missing because the arm raised
_LOST = "no score, or lost when the evaluation was killed"
_WAIT_S = 0.2  # a signal that arrives right before a wait does not end it
_MAX_ITEMS = 1 << 24
_MAX_MESSAGE = 200  # characters of an exception


def evaluate(
    arms: Mapping[str, Callable[[Any], float]],
    items: Iterable[Any],
    *,
    score_range: tuple[float, float] = (0, 1),
    goal: Literal["max", "min"] = "max",
    delta: float = 0.05,
    contamination: float | Contamination | Bounded = 0.0,
    tolerance: float = 0.0,
    control: str | None = None,
    tiers: bool = False,
    max_items: int | None = None,
    on_error: OnError = "missing",
    seed: int | None = None,
    workers: int | Executor | None = None,
    store: str | Path | None = None,
    progress: bool = True,
) -> Result:
    """Score arms on items in random order until one is known to have the best mean score on the whole list.

    Every arm is scored on the same items, each item once, and arms that lost are dropped. The claim is about the
    scores as given; `contamination=` allows for a share of wrong ones (docs/extensions.md B).

    Parameters
    ----------
    arms
        For each arm a function of one item that returns its score; async functions are accepted.
    items
        The list of items.
    score_range
        The lowest and the highest possible score. A score outside of it is an error.
    goal, delta, tolerance
        As in `Study`.
    contamination
        The largest share of each arm's scores on the list that may be wrong, or an audit of them.
    control, tiers
        As in `analyze`; every arm is then scored on all items that are drawn.
    max_items
        Stop after this many items.
    on_error
        What an exception in an arm does: "missing" counts the score at its worst, "stop" raises `ArmFailed`.
    seed
        Fixes the order of the items. By default it comes from the operating system.
    workers
        How many scores to compute at once, or an executor; by default one thread for each arm. More than that
        draws several items at a time.
    store
        A file in which every score is logged. A file that exists is continued, and no item is scored twice.
    progress
        Show a bar on a terminal.

    Examples
    --------
    >>> right = {"A": lambda item: item % 10 != 0, "B": lambda item: item % 4 != 0}
    >>> result = evaluate(right, range(1000), seed=1, progress=False)
    >>> result.best, result.items.scored < result.items.all == 1000
    ('A', True)
    """
    known = check_items(items)
    functions = check_functions(arms, "of one item", "use truearm.analyze for scores that you have already")
    require(len(functions) > 1, "arms", list(functions), "name two or more")
    check_limits(max_items=max_items, on_error=on_error, workers=workers)
    options: ProblemOptions = {
        "score_range": score_range,
        "items": len(known),
        "goal": goal,
        "delta": delta,
        "contamination": contamination,
        "tolerance": tolerance,
    }
    problem = Problem.of(list(arms), **fix_options(options, rounds=True))
    Questions(False, control, "holm", check_flag("tiers", tiers)).check(problem, "sequential")
    limit = len(known) if max_items is None else min(len(known), max_items)
    keep_all = control is not None or tiers
    pool, places = _pool(workers, len(arms))
    with open_store(store) as log, pool as executor:
        batch = max(1, places // len(arms))
        if log is not None and log.created:  # continue with its own settings
            seed = log.definition["seed"] if seed is None else seed
            batch = log.definition["options"].get("batch", batch)
        seed = secrets.randbits(53) if seed is None else seed
        policy = Paired(endless=keep_all, batch=batch, limit=limit)
        study: PureStudy = Study(problem, policy=policy, max_pulls=limit * len(arms), seed=seed)
        if log is not None:
            study = resume_or_start(study, log, **_digest(known))
        order = np.random.default_rng(seed).permutation(len(known)).tolist()

        def score(arm: str, place: int) -> Future[Any]:
            return executor.submit(_call, functions[arm], known[place])

        with bar(study, shown=progress) as show:
            try:
                while not study.done:
                    _score_batch(study, score, order, on_error)
                    show()
            except KeyboardInterrupt:
                study.stop()
    result = study.result
    assert result is not None
    if keep_all:
        result = analyze(result.readings, round="rows", control=control, tiers=tiers, **options)
    failures = _count_failures(study)
    return replace(result, conditions={"failures": failures}) if failures else result


def check_limits(*, max_items: int | None, on_error: OnError, workers: int | Executor | None) -> None:
    """Raise if an argument about how items are scored is wrong."""
    check_choice("on_error", on_error, get_args(OnError))
    if max_items is not None:
        check_count("max_items", max_items)
    if workers is not None and not isinstance(workers, Executor):
        check_count("workers", workers)


def check_items(items: Iterable[Any]) -> list[Any]:
    """Return items as a list that is not empty, or raise."""
    is_list = isinstance(items, Iterable) and not isinstance(items, str | bytes | Mapping)
    if not is_list or hasattr(items, "columns"):  # a frame yields its columns, not its rows
        remedy = "for rows of a frame use frame.to_dict('records')"
        raise InvalidArgument(f"items must be a list, but got {type(items).__name__}; {remedy}", "items", items)
    known = list(islice(items, _MAX_ITEMS + 1))  # also of an endless iterator, or range(2**70)
    msg = f"items must be at most {_MAX_ITEMS:,}, but are more; pass a random sample of them"
    refuse(len(known) > _MAX_ITEMS, msg, "items")
    require(known, "items", known, "hold at least one item")
    return known


def _pool(workers: int | Executor | None, arms: int) -> tuple[AbstractContextManager[Executor], int]:
    """Return the executor as a context, and how many scores it computes at once."""
    if isinstance(workers, Executor):
        return nullcontext(workers), int(getattr(workers, "_max_workers", arms))
    return ThreadPoolExecutor(workers or arms), workers or arms


def _digest(items: list[Any]) -> dict[str, str]:
    """Return a digest of the items for the log; empty if they are not plain values."""
    with suppress(TypeError, ValueError):
        return {"items": sha256(msgspec.json.encode(items, order="deterministic")).hexdigest()}
    return {}


def _score_batch(
    study: PureStudy, score: Callable[[str, int], Future[Any]], order: Sequence[int], on_error: OnError
) -> None:
    """Score one batch: the n-th pull of an arm scores the n-th item drawn.

    No pull is out when the study decides, so that its readings are enough to repeat the decision.
    """
    errors = list[Exception]()
    with hold_signals():
        pulls = study.ask()
    places = [order[study.draw(pull)] for pull in pulls]
    jobs = [score(pull.arm, place) for pull, place in zip(pulls, places, strict=True)]
    try:
        for pull, place, job in zip(pulls, places, jobs, strict=True):
            try:
                number = _read(job, pull.arm, place, on_error)
                study.problem.check_score(number, pull.arm, place)
                with hold_signals():
                    study.tell(pull, number)
            except (ArmFailed, InvalidArgument) as error:
                errors.append(error)  # the other scores of the batch are kept
    finally:
        for job in jobs:
            job.cancel()
    if errors:
        study.stop()
        if isinstance(errors[0], ArmFailed):
            errors[0].result = study.result
        raise errors[0]


def _read(job: Future[Any], arm: str, place: int, on_error: OnError) -> float:
    """Return a score, or NaN with a note if the arm raised and `on_error` is "missing"."""
    while not job.done():
        wait([job], _WAIT_S)
    try:
        score = job.result()
    except InvalidArgument:
        raise
    except Exception as error:
        why = str(error) if isinstance(error, TruearmError) else f"{type(error).__name__}: {error}".rstrip(": ")
        if on_error == "stop":
            msg = f"arm {arm!r} failed on item {place}: {why}; use on_error='missing' to go on"
            raise ArmFailed(msg, arm=arm) from error
        return Noted(math.nan, {_FAILURE: why[:_MAX_MESSAGE]})
    return as_number(f"score of {arm!r} on item {place}", score, "return nan for one that failed", boolean=True)


def _count_failures(study: PureStudy) -> dict[str, dict[str, int]]:
    """Count the missing scores of each arm by reason, from the log, because it survives a crash."""
    found: dict[str, Counter[str]] = {}
    for event in study.events():
        if event.value is not None and math.isnan(event.value):
            found.setdefault(event.arm, Counter())[(event.notes or {}).get(_FAILURE, _LOST)] += 1
    return {arm: dict(kinds) for arm, kinds in found.items()}


def _call(function: Callable[[Any], Any], item: Any) -> Any:  # noqa: ANN401 - the user's
    found = function(item)
    if not inspect.isawaitable(found):
        return found

    async def wait() -> Any:  # noqa: ANN401 - the user's
        return await found

    return asyncio.run_coroutine_threadsafe(wait(), _loop(os.getpid())).result()


@cache
def _loop(_process: int) -> asyncio.AbstractEventLoop:
    """Return the event loop of this process; clients shared by async functions must stay in one loop."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop
