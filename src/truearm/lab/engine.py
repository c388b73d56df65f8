"""Built-in policies on compiled code (extra `lab`): the same decisions, draw for draw, as the policy objects.

A run reads tapes, which grow when it is short of readings; where they come from is not its business. The compiled
steps are in the `compiled_*` files beside this one; here are their arrays, and what happens between the steps.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, cast

import numpy as np

from truearm import bounds
from truearm.bounds.mixture import DEFAULT_PRIOR, Prior
from truearm.bounds.ranks import most_bad
from truearm.claims.certificate import Status, Verdict
from truearm.errors import InvalidArgument
from truearm.evidence.cuts import portfolio
from truearm.evidence.quantiles import QuantileJudge
from truearm.lab import compiled_elimination as elimination
from truearm.lab import compiled_lucb as lucb
from truearm.lab import compiled_toptwo as toptwo
from truearm.lab.kernels import Floats, Ints, mixture
from truearm.lab.simulate import Run
from truearm.policies import Policy, rounds
from truearm.policies import lucb as lucb_policy
from truearm.policies import toptwo as toptwo_policy
from truearm.policies.elimination import Elimination
from truearm.policies.lucb import Lucb
from truearm.policies.toptwo import TopTwo
from truearm.problem import Contamination, Problem

More = Callable[[int, int], Floats]
"""Asked for an arm and a number, gives all of its readings so far, at least that many."""

_LOG_SLACK = 1e-9  # as bounds.sequential_rank
_WITHOUT_END = 2**62
_RUNNING, _SHORT, _EXHAUSTED = range(3)  # codes that all compiled runs share


def supports(policy: object, problem: Problem) -> bool:
    """Tell whether there is compiled code for this policy and problem."""
    known = problem.target == "quantile" and problem.between is None and not problem.tolerance.relative
    return type(policy) in _ENGINES and known


def run(policy: Policy[Any], problem: Problem, more: More, max_pulls: int) -> Run:
    """Run a policy to its end, or until the next batch would exceed `max_pulls`."""
    return _engine(policy, problem, more, max_pulls).run()


def batches(policy: Policy[Any], problem: Problem, more: More, max_pulls: int) -> Iterator[tuple[int, ...]]:
    """Give every batch of a run, pulls of each arm, for a comparison with the policy object."""
    engine = _engine(policy, problem, more, max_pulls)
    while engine.verdict is None:
        yield engine.batch
        if engine.step(1) != _RUNNING:
            return


def _engine(policy: Policy[Any], problem: Problem, more: More, max_pulls: int) -> "_Engine":
    if not supports(policy, problem):
        msg = f"there is no compiled code for {policy!r} on this problem; use truearm.lab.play"
        raise InvalidArgument(msg)
    return _ENGINES[type(policy)](policy, problem, more, max_pulls)


@lru_cache(maxsize=16)
def _start(policy: Policy[Any], problem: Problem) -> Any:  # noqa: ANN401 - each policy has a state of its own
    """Return the state before the first pull, which all runs of a setting share."""
    return policy.start(problem)


class _Engine(ABC):
    """One run: the arrays of a compiled run, and what it asks for."""

    statuses: dict[int, Status]
    """How codes of the end read, besides being exhausted and having decided."""
    decided: int

    def __init__(self, policy: Any, problem: Problem, more: More, max_pulls: int) -> None:  # noqa: ANN401
        self.policy, self.problem, self.more, self.max_pulls = policy, problem, more, max_pulls
        self.state = _start(policy, problem)
        first = policy.ask(self.state)
        self.verdict = first if isinstance(first, Verdict) else None
        self.first = 0 if isinstance(first, Verdict) else first[problem.arms[0]]

    def run(self) -> Run:
        """Run to the end."""
        if self.verdict is None:
            return self._ended(self.step(_WITHOUT_END))
        arm = None if self.verdict.best is None else self.problem.arms.index(self.verdict.best)
        return Run(self.verdict.status, arm, (0,) * len(self.problem.arms))

    def step(self, decisions: int) -> int:
        """Make so many decisions, or fewer at the end; return the code of the compiled run."""
        while True:
            code = self._advance(decisions)
            if code in (_RUNNING, _EXHAUSTED, self.decided) or code in self.statuses:
                return code
            self._serve(code)

    def _at_least(self, arm: int, n: int) -> Floats:
        readings = self.more(arm, n)
        if readings.size < n:
            msg = (
                f"arm {arm} has {readings.size} readings, but the run needs {n}; give more, or a smaller max_pulls"
            )
            raise InvalidArgument(msg)
        return readings

    def _ended(self, code: int) -> Run:
        counts = tuple(self.counts.tolist())
        if code == _EXHAUSTED:
            return Run(Status.EXHAUSTED, None, counts, self.rejected)
        status = self.status if code == self.decided else self.statuses[code]
        if status is Status.INDISTINGUISHABLE:
            return Run(status, None, counts, self.rejected)
        answer, rejected = self.answer, self.rejected
        if status is not Status.TOLERABLE:
            rejected = tuple(i for i in range(len(counts)) if i != answer)
        return Run(status, answer, counts, rejected)

    @property
    def status(self) -> Status:
        """What a decision is called."""
        return Status.strict(self.problem)

    @property
    @abstractmethod
    def batch(self) -> tuple[int, ...]:
        """What to pull next, of each arm."""

    @property
    @abstractmethod
    def counts(self) -> Ints:
        """Pulls of each arm so far."""

    @property
    @abstractmethod
    def answer(self) -> int:
        """The arm that a decision names."""

    @property
    @abstractmethod
    def rejected(self) -> tuple[int, ...]:
        """Arms rejected so far."""

    @abstractmethod
    def _advance(self, decisions: int) -> int:
        """Run compiled code."""

    @abstractmethod
    def _serve(self, code: int) -> None:
        """Give the compiled code what it asks for."""


class _Sorted(_Engine):
    """A run on sorted readings of every arm, in two halves of a stretch in turn."""

    desk: Any

    @property
    def batch(self) -> tuple[int, ...]:
        """What to pull next, of each arm."""
        return tuple(self.desk.ints[self._batch_row].tolist())

    @property
    def counts(self) -> Ints:
        """Pulls of each arm so far."""
        return cast(Ints, self.desk.ints[toptwo.N])

    @property
    @abstractmethod
    def _batch_row(self) -> int:
        """Where the batch is."""

    def _serve(self, code: int) -> None:  # noqa: ARG002 - it can only be short
        need = self.counts + self.desk.ints[self._batch_row]
        for arm in np.flatnonzero(need > self.desk.ints[toptwo.ROOM]).tolist():
            self.desk = _lengthened(self.desk, arm, self._at_least(arm, int(need[arm])))


class _TopTwo(_Sorted):
    decided = toptwo.DECIDED
    statuses = {toptwo.TOLERABLE: Status.TOLERABLE, toptwo.FUTILE: Status.INDISTINGUISHABLE}  # noqa: RUF012
    _batch_row = toptwo.BATCH

    def __init__(self, policy: TopTwo, problem: Problem, more: More, max_pulls: int) -> None:
        super().__init__(policy, problem, more, max_pulls)
        assert isinstance(self.state.judge, QuantileJudge)  # no other target is compiled
        low, high = self.state.judge.levels
        complements = (1 - low, 1 - high)  # futility
        self.levels = (low, high, *complements)
        self.rules = _toptwo_rules(self.state, max_pulls)
        self.desk = _toptwo_desk(self.state)

    def _serve(self, code: int) -> None:
        super()._serve(code)
        desk, total = self.desk, int((self.counts + self.desk.ints[toptwo.BATCH]).sum())
        if desk.run[toptwo.USED] + total > desk.past.size:
            self.desk = desk = desk._replace(
                past=np.concatenate([desk.past, np.empty(desk.past.size + 2 * total)])
            )
        if desk.run[toptwo.FOLLOWED] == desk.legs.shape[0]:
            self.desk = desk._replace(legs=np.concatenate([desk.legs, np.zeros_like(desk.legs)]))

    @property
    def answer(self) -> int:
        alive = self.desk.ints[toptwo.ALIVE]
        return int(np.argmax(alive) if alive.sum() == 1 else self.desk.run[toptwo.LEADER])

    @property
    def rejected(self) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.desk.ints[toptwo.ALIVE] == 0).tolist())

    def _advance(self, decisions: int) -> int:
        rounded = 1 << max(10, int(self.desk.ints[toptwo.ROOM].max()).bit_length())
        tables = toptwo.Tables(*(mixture(level, DEFAULT_PRIOR, rounded) for level in self.levels))
        return toptwo.advance(self.desk, self.rules, tables, decisions)


def _toptwo_rules(state: toptwo_policy.State, max_pulls: int) -> toptwo.Rules:
    problem = state.problem
    shares = portfolio(len(problem.arms), None, (), tolerant=bool(problem.tolerance))
    return toptwo.Rules(
        pooled=state.judge.rule == "pooled" and len(problem.arms) > 2,
        log_whole=shares.log_whole,
        log_legs=shares.log_legs,
        certified=problem.contamination is not None,
        balanced=state.balanced,
        level=problem.level,
        log_threshold=state.judge.log_threshold,
        tolerance=problem.tolerance.amount,
        log_bar=math.log(len(problem.arms) / problem.delta) + _LOG_SLACK,
        stale=toptwo_policy.STALE,
        futility=toptwo_policy.FUTILITY,
        max_pulls=max_pulls,
        worst=True,
        refuted=1 << 60,  # missing readings count at their worst, so that no number of them refutes eps
    )


def _toptwo_desk(state: toptwo_policy.State) -> toptwo.Desk:
    k = len(state.problem.arms)
    ints, reals = np.zeros((toptwo.INTS, k), np.int64), np.zeros((toptwo.REALS, k))
    ints[toptwo.ALIVE] = 1
    ints[toptwo.BATCH] = state.first
    ints[[toptwo.CARRY_LEADER, toptwo.RANKED_N]] = -1
    reals[[toptwo.CUT, toptwo.TOLERANT_CUT, toptwo.MINE_CUT, toptwo.PAST_CUT]] = np.nan
    return toptwo.Desk(
        tape=np.empty(0),
        values=np.empty(0),
        past=np.empty(0),
        legs=np.zeros((16, 7), np.int64),
        ints=ints,
        reals=reals,
        bets=np.full((k, k, 3), np.nan),
        run=np.zeros(4, np.int64),
        due=np.array([state.next_futility, state.next_switch], np.float64),
        sides=np.zeros(3),
        edges=np.empty(toptwo.COARSE + 2, np.int64),
        stack=np.empty((toptwo.STACK, 5), np.int64),
        bounds=np.empty((toptwo.STACK, 4)),
    )


def _lengthened(desk: Any, arm: int, readings: Floats) -> Any:  # noqa: ANN401 - a desk with sorted readings
    """Return the desk with a longer stretch for one arm, at the end of the long arrays."""
    first, room, start = desk.ints[toptwo.FIRST], desk.ints[toptwo.ROOM], desk.ints[toptwo.START]
    end, size = int((first + room).max()), desk.ints[toptwo.SIZE, arm]
    if end + readings.size > desk.tape.size:
        spare = np.empty(end + 2 * readings.size)
        tape, values = np.concatenate([desk.tape, spare]), np.concatenate([desk.values, spare, spare])
        desk = desk._replace(tape=tape, values=values)
    desk.tape[end : end + readings.size] = readings
    desk.values[2 * end : 2 * end + size] = desk.values[start[arm] : start[arm] + size]
    first[arm], start[arm], room[arm] = end, 2 * end, readings.size
    return desk


class _Lucb(_Sorted):
    decided = lucb.DECIDED
    statuses = {lucb.TOLERABLE: Status.TOLERABLE}  # noqa: RUF012
    _batch_row = lucb.BATCH

    def __init__(self, policy: Lucb, problem: Problem, more: More, max_pulls: int) -> None:
        super().__init__(policy, problem, more, max_pulls)
        k = len(problem.arms)
        ints, reals = np.zeros((6, k), np.int64), np.zeros((2, k))
        ints[lucb.BATCH] = self.first
        reals[lucb.LOW], reals[lucb.HIGH] = -np.inf, np.inf
        empty = np.empty(0)
        self.desk = lucb.Desk(empty, empty, ints, reals, np.zeros((2, 1), np.int64), np.zeros(3, np.int64))
        ties = self.status is not Status.SEPARATED
        self.rules = lucb.Rules(policy.growth, problem.tolerance.amount, ties, max_pulls, worst=True)

    @property
    def status(self) -> Status:
        return Status.TOLERABLE if self.policy.slack else super().status

    @property
    def answer(self) -> int:
        return int(self.desk.run[lucb.LEADER])

    @property
    def rejected(self) -> tuple[int, ...]:
        return ()

    def _advance(self, decisions: int) -> int:
        size = int(self.desk.ints[lucb.ROOM].max()) + 1
        if self.desk.ranks.shape[1] < size:
            share = self.problem.delta / len(self.problem.arms)
            rows = [_rank_table(self.policy, p0, share, 1 << size.bit_length()) for p0 in self.state.levels]
            self.desk = self.desk._replace(ranks=np.stack(rows))
        return lucb.advance(self.desk, self.rules, decisions)


@lru_cache(maxsize=64)
def _rank_table(policy: Lucb, p0: float, share: float, size: int) -> Ints:
    """Return the lower ranks at every number of readings below `size`."""
    if policy.radius != "beta-binomial":
        counts = np.arange(size)
        return np.asarray(lucb_policy.limit_rank(counts, p0, share, form=policy.radius, t_opt=policy.t_opt))
    ranks = np.zeros(size, np.int64)
    prior = Prior((lucb_policy.concentration(share, policy.t_opt),), (1.0,))
    lucb.fill_ranks(ranks, mixture(p0, prior, size), math.log(1 / share) + _LOG_SLACK)
    return ranks


class _Elimination(_Engine):
    decided = elimination.DECIDED
    statuses = {elimination.TOLERABLE: Status.TOLERABLE}  # noqa: RUF012

    def __init__(self, policy: Elimination, problem: Problem, more: More, max_pulls: int) -> None:
        super().__init__(policy, problem, more, max_pulls)
        k = len(problem.arms)
        ints, reals = np.zeros((7, k), np.int64), np.zeros((8, k))
        ints[elimination.ALIVE], ints[elimination.WIDTH] = 1, -1
        reals[elimination.UPPER], reals[elimination.LOWER] = np.inf, -np.inf
        run = np.array([0, 0, k, 0], np.int64)
        schedule = _schedule(policy, problem, 32)
        self.desk = elimination.Desk(np.empty((k, 0)), np.empty((k, 256)), ints, reals, *schedule, run)

    @property
    def worst(self) -> bool:
        return True

    @property
    def status(self) -> Status:
        return Status.SEPARATED

    @property
    def batch(self) -> tuple[int, ...]:
        done = int(self.desk.run[elimination.ROUND])
        self._schedule_to(done + 1)
        size = self.desk.totals[done + 1] - self.desk.totals[done]
        return tuple((self.desk.ints[elimination.ALIVE] * size).tolist())

    @property
    def counts(self) -> Ints:
        return cast(Ints, self.desk.ints[elimination.N])

    @property
    def answer(self) -> int:
        alive = self.desk.ints[elimination.ALIVE]
        return int(np.argmax(alive) if alive.sum() == 1 else self.desk.run[elimination.LEADER])

    @property
    def rejected(self) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.desk.ints[elimination.ALIVE] == 0).tolist())

    def _advance(self, decisions: int) -> int:
        amount = self.problem.tolerance.amount
        return elimination.advance(self.desk, amount, self.max_pulls, decisions, self.worst)

    def _serve(self, code: int) -> None:
        if code == elimination.STRAY:
            self._center()
            return
        done = int(self.desk.run[elimination.ROUND])
        self._schedule_to(done + 1)
        total = int(self.desk.totals[done + 1])
        alive, room = self.desk.ints[elimination.ALIVE], self.desk.ints[elimination.ROOM]
        longer = {i: self._at_least(i, total) for i in np.flatnonzero((alive > 0) & (room < total)).tolist()}
        width = max((readings.size for readings in longer.values()), default=0)
        if width > self.desk.tape.shape[1]:
            wider = np.empty((room.size, width))
            for arm in set(range(room.size)).difference(longer):
                wider[arm, : room[arm]] = self.desk.tape[arm, : room[arm]]
            self.desk = self.desk._replace(tape=wider)
        for arm, readings in longer.items():
            self.desk.tape[arm, : readings.size] = readings
            room[arm] = readings.size

    def _schedule_to(self, round_: int) -> None:
        if round_ >= self.desk.totals.size:
            totals, radii, bad = _schedule(self.policy, self.problem, 2 * self.desk.totals.size)
            self.desk = self.desk._replace(totals=totals, radii=radii, bad=bad)

    def _stray(self) -> list[int]:
        ints = self.desk.ints
        known, below, width = ints[elimination.KNOWN], ints[elimination.BELOW], ints[elimination.WIDTH]
        bottom = ints[elimination.N] - known if self.worst else np.zeros_like(known)
        n = known + bottom
        first, last = np.maximum((n - 1) // 2 - bottom, 0), np.minimum(n // 2, known - 1)
        held = (width >= 0) & ((known == 0) | ((first >= below) & (last - below < width)))
        return np.flatnonzero((ints[elimination.ALIVE] > 0) & ~held).tolist()

    def _center(self) -> None:
        """Put windows around the medians of the arms whose windows do not hold them."""
        ints, reals = self.desk.ints, self.desk.reals
        for arm in self._stray():
            known = self.desk.tape[arm, : ints[elimination.N, arm]]
            holes = np.isnan(known)
            known = known[~holes] if holes.any() else known
            below, window = _window(known, int(holes.sum()) if self.worst else 0)
            while 2 * window.size > self.desk.window.shape[1]:
                wider = np.concatenate([self.desk.window, np.empty_like(self.desk.window)], axis=1)
                self.desk = self.desk._replace(window=wider)
            self.desk.window[arm, : window.size] = window
            reals[elimination.LOW, arm] = window[0] if window.size else np.inf
            reals[elimination.HIGH, arm] = window[-1] if window.size else -np.inf
            ints[elimination.KNOWN, arm] = known.size
            ints[elimination.BELOW, arm] = below
            ints[elimination.WIDTH, arm] = window.size


def _window(known: Floats, bottom: int) -> tuple[int, Floats]:
    """Return how many readings lie below a window around the medians, and the sorted window.

    There are two medians if `bottom` readings are missing: with those at the bottom and at the top.
    """
    if not known.size:
        return 0, known
    # a wider window moves less often, but to sort readings into it takes longer
    n, half = known.size + bottom, int(0.9 * math.sqrt(known.size)) + 6
    ranks = max(0, (n - 1) // 2 - bottom - half), min(known.size - 1, n // 2 + half)
    ranks = min(ranks), ranks[1]
    middle = np.partition(known, ranks)[ranks[0] : ranks[1] + 1]  # of ties at an end some may stay outside
    return ranks[0], np.sort(middle)


@lru_cache(maxsize=16)
def _schedule(policy: Elimination, problem: Problem, size: int) -> tuple[Ints, Floats, Ints]:
    """Return the pulls of each arm up to the end of every round, the radii, and how many readings may be bad.

    Entry 0 is before the first.
    """
    if policy.constants == "sharp":
        totals, widths = [0], [math.inf]
        for number in range(1, size):
            totals.append(policy._total(problem, number, totals[-1]))
            widths.append(policy._radius(problem, number, totals[-1]))
        bad = [policy._bad(problem, number, n) for number, n in enumerate(totals) if number]
        return np.array(totals), np.array(widths), np.array([0, *bad])
    k, c = len(problem.arms), problem.contamination or Contamination(0.0)
    regularity = rounds.check_problem(problem, "elimination")
    schedule = bounds.elimination_schedule(k, problem.delta, c.eps, regularity.reach, c.adversary)
    r = np.arange(1, size)
    pulls = 1 + np.ceil(2 * schedule.N * np.log1p(1 / r)).astype(np.int64)  # Alg. 3, as Schedule.per_round
    radius = bounds.elimination_radius(r, k, problem.delta, regularity.B, regularity.m2)
    pulls[0] += schedule.initial
    counts = np.cumsum(pulls)
    most = most_bad(counts, bounds.round_delta(problem.delta, k, r) / 3, c.eps)
    return np.concatenate([[0], counts]), np.concatenate([[math.inf], radius]), np.concatenate([[0], most])


_ENGINES: dict[type, type[_Engine]] = {TopTwo: _TopTwo, Elimination: _Elimination, Lucb: _Lucb}
