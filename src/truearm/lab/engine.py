"""Built-in policies on compiled code (extra `lab`): the same decisions, draw for draw, as the policy objects.

A run reads tapes, which grow when it is short of readings; where they come from is not its business.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from truearm.certificate import Status, Verdict
from truearm.lab import compiled_toptwo as toptwo
from truearm.lab.kernels import Floats, Ints, Mixtures, mixtures
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
        yield tuple(engine.desk.batch.tolist())
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
            self.levels = self.levels[:2]  # futility is not checked

    def run(self) -> Run:
        if self.verdict is not None:
            arm = None if self.verdict.best is None else self.problem.arms.index(self.verdict.best)
            return Run(self.verdict.status, arm, (0,) * len(self.problem.arms), ())
        return self._ended(self.step(_WITHOUT_END))

    def step(self, decisions: int) -> int:
        """Make so many decisions, or fewer at the end; return the code of the compiled run."""
        while True:
            tables = _tables(self.levels, int(self.desk.room.max()))
            code = toptwo.advance(self.desk, self.rules, tables, decisions)
            if code != toptwo.SHORT:
                return code
            for arm in np.flatnonzero(self.desk.n + self.desk.batch > self.desk.room).tolist():
                need = int(self.desk.n[arm] + self.desk.batch[arm])
                self.desk = _grown(self.desk, arm, self.more(arm, need))

    def _ended(self, code: int) -> Run:
        alive = np.flatnonzero(self.desk.alive)
        decided = Status.SEPARATED if self.problem.contamination is None else Status.CERTIFIED
        status, answer = {
            toptwo.DECIDED: (decided, int(alive[0])),
            toptwo.TOLERABLE: (Status.TOLERABLE, int(self.desk.whole[toptwo.LEADER])),
            toptwo.FUTILE: (Status.INDISTINGUISHABLE, None),
            toptwo.EXHAUSTED: (Status.EXHAUSTED, None),
        }[code]
        gone = np.flatnonzero(self.desk.alive == 0)
        return Run(status, answer, tuple(self.desk.n.tolist()), tuple(gone.tolist()))


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
    whole = np.zeros(4, np.int64)
    whole[toptwo.LATER] = state.rule == "pooled" and k > 2
    return toptwo.Desk(
        start=_ints(k),
        room=_ints(k),
        tape=np.empty(0),
        values=np.empty(0),
        before=np.empty(0),
        n=_ints(k),
        size=_ints(k),
        before_n=_ints(k),
        before_size=_ints(k),
        alive=_ints(k) + 1,
        entered=_ints(k),
        cut=np.full(k, np.nan),
        evidence=np.zeros(k),
        minimized=np.zeros(k),
        carry_leader=_ints(k) - 1,
        carry=np.zeros(k),
        batch=_ints(k) + state.first,
        tolerant_cut=np.full(k, np.nan),
        mine=np.zeros(k),
        mine_at=np.full((k, 2), -1.0),
        bets=np.zeros((k, k, 2)),
        bets_at=np.full((k, k, 2), -1.0),
        ranks=np.zeros((k, 2), np.int64),
        ranks_n=np.full((k, 2), -1, np.int64),
        whole=whole,
        real=np.array([state.next_futility], dtype=np.float64),
    )


def _ints(k: int) -> Ints:
    return np.zeros(k, np.int64)


def _grown(desk: toptwo.Desk, arm: int, readings: Floats) -> toptwo.Desk:
    """Return the desk with a longer stretch for one arm, at the end of the long arrays."""
    end = int((desk.start + desk.room).max())
    if end + readings.size > desk.tape.size:
        spare = np.empty(end + 2 * readings.size)
        desk = desk._replace(
            tape=np.concatenate([desk.tape, spare]),
            values=np.concatenate([desk.values, spare]),
            before=np.concatenate([desk.before, spare]),
        )
    old, size = int(desk.start[arm]), int(desk.size[arm])
    desk.tape[end : end + readings.size] = readings
    desk.values[end : end + size] = desk.values[old : old + size]
    early = int(desk.before_size[arm])
    desk.before[end : end + early] = desk.before[old : old + early]
    desk.start[arm], desk.room[arm] = end, readings.size
    return desk


def _tables(levels: tuple[float, ...], size: int) -> Mixtures:
    return mixtures(levels, DEFAULT_PRIOR, 1 << max(10, size.bit_length()))
