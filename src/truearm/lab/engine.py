"""The default policy on compiled code (extra `lab`): the same decisions, draw for draw, as the policy object."""

import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np

from truearm.bounds.mixture import DEFAULT_PRIOR
from truearm.claims.certificate import Status, Verdict
from truearm.evidence import Levels, portfolio
from truearm.lab import compiled_toptwo as toptwo
from truearm.lab.kernels import Floats, mixture
from truearm.lab.simulate import Run
from truearm.policies import FUTILITY
from truearm.policies import toptwo as policy_module
from truearm.policies.toptwo import TopTwo
from truearm.problem import Problem

Readings = Callable[[int, int], Floats]
"""Called with an arm and a number n; returns the arm's readings so far, at least n of them."""

_LOG_SLACK = 1e-9  # as bounds.sequential_rank


def supports(policy: object, problem: Problem) -> bool:
    """Return True if there is compiled code for this policy and problem."""
    simple = problem.target == "quantile" and problem.between is None and not problem.tolerance.relative
    return type(policy) is TopTwo and not policy.balanced and simple


def is_cached() -> bool:
    """Return True if the code is compiled already, in this process or on disk."""
    return bool(toptwo.advance.signatures) or any(Path(toptwo.advance.stats.cache_path).glob("*.advance-*.nbi"))  # type: ignore[attr-defined]


@lru_cache(maxsize=16)
def _start(policy: TopTwo, problem: Problem) -> policy_module.TopTwoState:
    """Return the state before the first pull, which all runs of a setting share."""
    return policy.start(problem)


def run(policy: TopTwo, problem: Problem, readings: Readings, max_pulls: int) -> Run:
    """Run the policy to its end, or until the next batch would exceed `max_pulls`."""
    state = _start(policy, problem)
    if isinstance(end := policy.ask(state), Verdict):
        answer = None if end.best is None else problem.arms.index(end.best)
        return Run(end.status, answer, (0,) * len(problem.arms))
    low, high = Levels.of(problem.level, problem.contamination)
    rules, work, code = _rules(state, max_pulls), _work(state), toptwo.SHORT
    while code == toptwo.SHORT:
        work = _lengthen(work, readings)
        room = 1 << max(10, int(work.ints[toptwo.ROOM].max()).bit_length())
        levels = (low, high, 1 - low, 1 - high)  # the complements are for futility
        tables = toptwo.Tables(*(mixture(level, DEFAULT_PRIOR, room) for level in levels))
        code = toptwo.advance(work, rules, tables)
    alive, counts = work.ints[toptwo.ALIVE], tuple(work.ints[toptwo.N].tolist())
    rejected = tuple(np.flatnonzero(alive == 0).tolist())
    if code in (toptwo.EXHAUSTED, toptwo.FUTILE):
        status = Status.EXHAUSTED if code == toptwo.EXHAUSTED else Status.INDISTINGUISHABLE
        return Run(status, None, counts, rejected)
    best = int(np.argmax(alive) if alive.sum() == 1 else work.run[toptwo.LEADER])
    if code == toptwo.TOLERABLE:
        return Run(Status.TOLERABLE, best, counts, rejected)
    return Run(Status.strict(problem), best, counts, tuple(i for i in range(len(counts)) if i != best))


def _lengthen(work: toptwo.Work, readings: Readings) -> toptwo.Work:
    """Return the work with room for the next batch."""
    need = work.ints[toptwo.N] + work.ints[toptwo.BATCH]
    for arm in np.flatnonzero(need > work.ints[toptwo.ROOM]).tolist():
        drawn, room = readings(arm, int(need[arm])), work.tape.shape[1]
        if drawn.size > room:  # pages that are never written take no memory
            tape, values = (np.empty((*part.shape[:-1], 2 * drawn.size)) for part in (work.tape, work.values))
            tape[:, :room], values[..., :room] = work.tape, work.values
            work = work._replace(tape=tape, values=values)
        work.tape[arm, : drawn.size] = drawn
        work.ints[toptwo.ROOM, arm] = drawn.size
    total = int(need.sum())
    if work.run[toptwo.USED] + total > work.past.size:
        work = work._replace(past=np.concatenate([work.past, np.empty(work.past.size + 2 * total)]))
    if work.run[toptwo.FOLLOWED] == work.legs.shape[0]:
        work = work._replace(legs=np.concatenate([work.legs, np.zeros_like(work.legs)]))
    return work


def _rules(state: policy_module.TopTwoState, max_pulls: int) -> toptwo.Rules:
    problem = state.problem
    shares = portfolio(len(problem.arms), None, (), tolerant=bool(problem.tolerance))
    return toptwo.Rules(
        pooled=state.judge.rule == "pooled" and len(problem.arms) > 2,
        log_whole=shares.log_whole,
        log_legs=shares.log_legs,
        certified=problem.contamination is not None,
        level=problem.level,
        log_threshold=state.judge.log_threshold,
        tolerance=problem.tolerance.amount,
        log_bar=math.log(len(problem.arms) / problem.delta) + _LOG_SLACK,
        stale=policy_module.STALE,
        futility=FUTILITY,
        max_pulls=max_pulls,
    )


def _work(state: policy_module.TopTwoState) -> toptwo.Work:
    k = len(state.problem.arms)
    ints, reals = np.zeros((toptwo.INTS, k), np.int64), np.zeros((toptwo.REALS, k))
    ints[toptwo.ALIVE] = 1
    ints[toptwo.BATCH] = state.first
    ints[toptwo.CARRY_LEADER] = -1
    reals[[toptwo.CUT, toptwo.TOLERANT_CUT, toptwo.PAST_CUT]] = np.nan
    return toptwo.Work(
        tape=np.empty((k, 0)),
        values=np.empty((2, k, 0)),
        past=np.empty(0),
        legs=np.zeros((16, 7), np.int64),
        ints=ints,
        reals=reals,
        run=np.zeros(3, np.int64),
        due=np.array([state.next_futility, state.next_switch], np.float64),
        stack=np.empty((toptwo.STACK, 2), np.int64),
        bounds=np.empty((toptwo.STACK, 2, 4)),
    )
