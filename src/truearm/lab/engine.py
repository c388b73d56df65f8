"""Built-in policies on compiled code (extra `lab`): the same decisions, draw for draw, as the policy objects.

A run reads tapes, which grow when it is short of readings; where they come from is not its business.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from truearm.certificate import Status, Verdict
from truearm.lab import compiled_toptwo as toptwo
from truearm.lab.kernels import Floats, mixture
from truearm.lab.simulate import Run
from truearm.mixture import DEFAULT_PRIOR
from truearm.policies import Policy
from truearm.policies.toptwo import FUTILITY, GROWTH, SHARES, STALE, State, TopTwo
from truearm.problem import Problem

More = Callable[[int, int], Floats]
"""Asked for an arm and a number, gives all of its readings so far, at least that many."""

_LOG_SLACK = 1e-9  # as bounds.sequential_rank
_WITHOUT_END = 2**62


def supports(policy: object, problem: Problem) -> bool:
    """Tell whether there is compiled code for this policy and problem.

    Examples
    --------
    >>> supports(TopTwo(), Problem(arms=("A", "B"))), supports(TopTwo(), Problem(arms=("A", "B"), tolerance="2%"))
    (True, False)
    """
    return type(policy) is TopTwo and not problem.tolerance.relative


def run(policy: Policy[Any], problem: Problem, more: More, max_pulls: int) -> Run:
    """Run a policy to its end, or until the next batch would exceed `max_pulls`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tapes = rng.normal(size=(2, 4096)) + [[1.0], [0.0]]
    >>> run(TopTwo(), Problem(arms=("A", "B")), lambda arm, n: tapes[arm], 4096).status.value
    'certified'
    """
    return _Engine(policy, problem, more, max_pulls).run()


def batches(policy: Policy[Any], problem: Problem, more: More, max_pulls: int) -> Iterator[tuple[int, ...]]:
    """Give every batch of a run, pulls of each arm, for a comparison with the policy object.

    Examples
    --------
    >>> tapes = np.arange(2000.0).reshape(2, 1000)
    >>> list(batches(TopTwo(), Problem(arms=("A", "B")), lambda arm, n: tapes[arm], 100))
    [(16, 16), (0, 1), (1, 0)]
    """
    engine = _Engine(policy, problem, more, max_pulls)
    while engine.verdict is None:
        yield tuple(engine.desk.ints[toptwo.BATCH].tolist())
        if engine.step(1) != toptwo.RUNNING:
            return


class _Engine:
    """One run: the arrays, and their growth."""

    def __init__(self, policy: Policy[Any], problem: Problem, more: More, max_pulls: int) -> None:
        state = policy.start(problem)
        self.verdict = state.decision if isinstance(state.decision, Verdict) else None
        self.problem, self.more = problem, more
        self.desk = _desk(state)
        self.rules = _rules(state, max_pulls)
        self.levels: tuple[float, ...] = (*state.levels, 1 - state.levels.low, 1 - state.levels.high)
        if problem.contamination is None:
            self.levels = (*state.levels, *state.levels)  # futility is not checked

    def run(self) -> Run:
        if self.verdict is not None:
            arm = None if self.verdict.best is None else self.problem.arms.index(self.verdict.best)
            return Run(self.verdict.status, arm, (0,) * len(self.problem.arms), ())
        return self._ended(self.step(_WITHOUT_END))

    def step(self, decisions: int) -> int:
        """Make so many decisions, or fewer at the end; return the code of the compiled run."""
        while True:
            tables = _tables(self.levels, int(self.desk.ints[toptwo.ROOM].max()))
            code = toptwo.advance(self.desk, self.rules, tables, decisions)
            if code != toptwo.SHORT:
                return code
            need = self.desk.ints[toptwo.N] + self.desk.ints[toptwo.BATCH]
            for arm in np.flatnonzero(need > self.desk.ints[toptwo.ROOM]).tolist():
                self.desk = _grown(self.desk, arm, self.more(arm, int(need[arm])))

    def _ended(self, code: int) -> Run:
        alive = self.desk.ints[toptwo.ALIVE]
        decided = Status.SEPARATED if self.problem.contamination is None else Status.CERTIFIED
        status, answer = {
            toptwo.DECIDED: (decided, int(np.argmax(alive))),
            toptwo.TOLERABLE: (Status.TOLERABLE, int(self.desk.run[toptwo.LEADER])),
            toptwo.FUTILE: (Status.INDISTINGUISHABLE, None),
            toptwo.EXHAUSTED: (Status.EXHAUSTED, None),
        }[code]
        gone = np.flatnonzero(alive == 0)
        return Run(status, answer, tuple(self.desk.ints[toptwo.N].tolist()), tuple(gone.tolist()))


def _rules(state: State, max_pulls: int) -> toptwo.Rules:
    problem = state.problem
    return toptwo.Rules(
        pooled=state.rule == "pooled",
        certified=problem.contamination is not None,
        level=problem.level,
        log_threshold=state.log_threshold,
        tolerance=problem.tolerance.amount,
        log_bar=math.log(len(problem.arms) / problem.delta) + _LOG_SLACK,
        growth=GROWTH,
        share_low=SHARES[0],
        share_high=SHARES[1],
        stale=STALE,
        futility=FUTILITY,
        max_pulls=max_pulls,
    )


def _desk(state: State) -> toptwo.Desk:
    k = len(state.problem.arms)
    ints, reals = np.zeros((14, k), np.int64), np.zeros((8, k))
    ints[toptwo.ALIVE] = 1
    ints[toptwo.BATCH] = state.first
    ints[[toptwo.CARRY_LEADER, toptwo.RANKED_N]] = -1
    reals[[toptwo.CUT, toptwo.TOLERANT_CUT, toptwo.MINE_CUT]] = np.nan
    later = state.rule == "pooled" and k > 2
    return toptwo.Desk(
        tape=np.empty(0),
        values=np.empty(0),
        before=np.empty(0),
        ints=ints,
        reals=reals,
        bets=np.full((k, k, 4), np.nan),
        run=np.array([0, 0, 0, later], np.int64),
        next_futility=np.array([state.next_futility], np.float64),
    )


def _grown(desk: toptwo.Desk, arm: int, readings: Floats) -> toptwo.Desk:
    """Return the desk with a longer stretch for one arm, at the end of the long arrays."""
    first, room, start = desk.ints[toptwo.FIRST], desk.ints[toptwo.ROOM], desk.ints[toptwo.START]
    end = int((first + room).max())
    if end + readings.size > desk.tape.size:
        spare = np.empty(end + 2 * readings.size)
        desk = desk._replace(
            tape=np.concatenate([desk.tape, spare]),
            values=np.concatenate([desk.values, spare, spare]),
            before=np.concatenate([desk.before, spare]),
        )
    desk.tape[end : end + readings.size] = readings
    size, early = desk.ints[toptwo.SIZE, arm], desk.ints[toptwo.BEFORE_SIZE, arm]
    desk.values[2 * end : 2 * end + size] = desk.values[start[arm] : start[arm] + size]
    desk.before[end : end + early] = desk.before[first[arm] : first[arm] + early]
    first[arm], start[arm], room[arm] = end, 2 * end, readings.size
    return desk


def _tables(levels: tuple[float, ...], size: int) -> toptwo.Tables:
    rounded = 1 << max(10, size.bit_length())
    return toptwo.Tables(*(mixture(level, DEFAULT_PRIOR, rounded) for level in levels))
