"""Score models on a list of items until it is known which has the highest mean score (extensions B)."""

import asyncio
import inspect
import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from truearm.analysis import analyze
from truearm.claims.result import Result
from truearm.commands.progress import bar
from truearm.errors import ArmFailed, InvalidArgument
from truearm.policies.paired import Paired
from truearm.problem import Contamination, Interval, Problem, ProblemOptions, as_number, check_count, fix_options
from truearm.run import OnError, Study, open_store, resume_or_start
from truearm.study import Study as PureStudy


def evaluate(
    arms: Mapping[str, Callable[[Any], float]],
    items: Iterable[Any],
    *,
    score_range: tuple[float, float] = (0, 1),
    goal: Literal["max", "min"] = "max",
    delta: float = 0.05,
    contamination: float | Contamination = 0.0,
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
    """Score arms on items in random order until one is known to have the highest mean score on the whole list.

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
        The largest share of each arm's scores that may be wrong.
    control, tiers
        As in `analyze`; every arm is then scored on all items that are drawn.
    max_items
        Stop after this many items.
    on_error
        What an exception in an arm does: "missing" counts the score at its worst, "stop" raises `ArmFailed`.
    seed
        Fixes the order of the items. By default it comes from the operating system.
    workers
        How many scores to compute at once, or an executor; by default one thread for each arm.
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
    known = list(items)
    if not known:
        msg = "items is empty; give the items to score"
        raise InvalidArgument(msg, "items")
    options: ProblemOptions = {
        "score_range": score_range,
        "items": len(known),
        "goal": goal,
        "delta": delta,
        "contamination": contamination,
        "tolerance": tolerance,
    }
    problem = Problem.of(list(arms), **fix_options(options, rounds=True))
    budget = len(known) if max_items is None else min(len(known), check_count("max_items", max_items))
    keep_all = control is not None or tiers
    with open_store(store) as log:
        if seed is None:
            seed = log.definition["seed"] if log is not None and log.created else secrets.randbits(53)
        study: PureStudy = Study.of(
            problem, policy=Paired(endless=keep_all), max_pulls=budget * len(arms), seed=seed
        )
        if log is not None:
            study = resume_or_start(study, log)
        scores = _Scores(arms, known, seed, study)
        pool = (
            ThreadPoolExecutor(workers or len(arms)) if not isinstance(workers, Executor) else nullcontext(workers)
        )
        with pool as executor, bar(study, shown=progress) as show:
            try:
                while not study.done:
                    scores.score_batch(study, executor, on_error)
                    show()
            except KeyboardInterrupt:
                study.stop()
    result = study.result
    assert result is not None
    if scores.failures:
        failed = {arm: dict(kinds) for arm, kinds in scores.failures.items()}
        result = replace(result, conditions={"failures": failed})
    if not keep_all:
        return result
    return analyze(result.readings, round="rows", control=control, tiers=tiers, **options)


class _Scores:
    """The scores of arms on items in random order; the n-th pull of an arm is about the n-th item drawn."""

    def __init__(
        self, arms: Mapping[str, Callable[[Any], float]], items: list[Any], seed: int, study: PureStudy
    ) -> None:
        self._arms, self._items, self._range = arms, items, study.problem.score_range or Interval(0.0, 1.0)
        self._order = np.random.default_rng(seed).permutation(len(items))
        self._next = {arm: len(tape) for arm, tape in study.readings.items()}
        self.failures: dict[str, Counter[str]] = {}

    def score_batch(self, study: PureStudy, executor: Executor, on_error: OnError) -> None:
        """Score what the study asks for. Nothing is out when it decides, so its readings alone repeat it."""
        pulls = study.ask()
        places = [self._draw(pull.arm) for pull in pulls]
        jobs = [
            executor.submit(_call, self._arms[p.arm], self._items[at]) for p, at in zip(pulls, places, strict=True)
        ]
        for pull, place, job in zip(pulls, places, jobs, strict=True):
            try:
                score = self._check(job.result(), pull.arm, place)
            except InvalidArgument:
                raise
            except Exception as error:
                self.failures.setdefault(pull.arm, Counter())[f"{type(error).__name__}: {error}"[:200]] += 1
                if on_error == "stop":
                    study.stop()
                    msg = f"arm {pull.arm!r} failed on item {place}: {error!r}; use on_error='missing' to go on"
                    raise ArmFailed(msg, arm=pull.arm, result=study.result) from error
                score = math.nan
            study.tell(pull, score)

    def _draw(self, arm: str) -> int:
        self._next[arm] += 1
        return int(self._order[self._next[arm] - 1])

    def _check(self, score: object, arm: str, place: int) -> float:
        number = as_number(
            f"score of {arm!r} on item {place}", score, "return nan for one that failed", boolean=True
        )
        low, high = self._range
        if not (low <= number <= high or math.isnan(number)):
            msg = f"the score {number:g} of {arm!r} on item {place} is outside of score_range ({low:g}, {high:g})"
            raise InvalidArgument(msg, "score_range", number)
        return number


def _call(function: Callable[[Any], Any], item: Any) -> Any:  # noqa: ANN401 - the user's
    found = function(item)
    return asyncio.run(found) if inspect.iscoroutine(found) else found
