"""Many runs of one setting: how often a policy errs, how many pulls it takes, how far that is from the limit.

A replication is a function of its number and the seed alone: the n-th pull of arm i in replication r shows the
n-th reading of one tape. So the table of runs is the same on every executor.
"""

import importlib.util
import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, Unpack, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from truearm.claims.certificate import Status, Verdict
from truearm.claims.plain import Backend, make_frame
from truearm.errors import InvalidArgument
from truearm.evidence.sample import Floats, orient
from truearm.evidence.shares import highest_level
from truearm.lab.adversaries import Attack, Stationary, check_instance
from truearm.lab.arms import Instance
from truearm.lab.limits import limit
from truearm.policies import Policy, Told, choose_policy
from truearm.policies.toptwo import TopTwo
from truearm.problem import (
    Adversary,
    Interval,
    Problem,
    ProblemOptions,
    check_choice,
    check_count,
    check_flag,
    fix_options,
    refuse,
    require,
)

Engine = Literal["auto", "compiled", "python"]

_FIRST = 512  # readings of an arm drawn at once at first, which takes microseconds; then the tape doubles
_BLOCK = 8  # least replications per task: short enough to balance, long enough to be worth sending
_TASKS = 64  # about this many tasks where there are more replications


class Run(NamedTuple):
    """How one run ended."""

    status: Status
    answer: int | None
    counts: tuple[int, ...]
    """Pulls of each arm."""
    rejected: tuple[int, ...] = ()
    """Arms that were rejected on the way."""

    @property
    def pulls(self) -> int:
        """All pulls of the run."""
        return sum(self.counts)


class Tapes:
    """The readings of every arm in one replication, drawn when they are needed.

    An attack that looks ahead sees whole tapes of `horizon` readings, all drawn at the start.
    """

    def __init__(self, instance: Instance, attack: Attack | None, rng: np.random.Generator, horizon: int) -> None:
        check_instance(instance, attack)
        self._laws, self._attack = instance.arms, attack
        if attack is None or attack.power is Adversary.OBLIVIOUS or isinstance(attack, Stationary):
            self._rngs = rng.spawn(len(instance.arms))
            self._readings: list[Floats] = [np.empty(0)] * len(instance.arms)
        else:
            self._readings = [tape.readings for tape in attack.tapes(rng, instance.arms, horizon)]

    def upto(self, arm: int, n: int) -> Floats:
        """Return all readings of an arm drawn so far, at least n."""
        while self._readings[arm].size < n:
            old = self._readings[arm]
            count = max(_FIRST, old.size)
            self._readings[arm] = np.concatenate([old, self._draw(arm, old.size, count)])
        return self._readings[arm]

    def _draw(self, arm: int, start: int, count: int) -> Floats:
        if self._attack is None:
            return self._laws[arm].sample(self._rngs[arm], count)
        return self._attack.tape(self._rngs[arm], self._laws[arm], arm, count, start=start).readings


@runtime_checkable
class Runner(Protocol):
    """Anything that plays a whole run."""

    def run(self, problem: Problem, tapes: Tapes, max_pulls: int) -> Run:
        """Return how the run ended."""


def play(policy: Policy[Any], problem: Problem, tapes: Tapes, max_pulls: int) -> Run:
    """Run any policy to its end, or until the next batch would exceed `max_pulls`."""
    arms = problem.arms
    issued = dict.fromkeys(arms, 0)
    state = policy.start(problem)
    while not isinstance(decision := policy.ask(state), Verdict):
        if sum(issued.values()) + sum(decision.values()) > max_pulls:
            decision = policy.standing(state).so_far or Verdict(status=Status.EXHAUSTED, candidates=arms)
            break
        readings = {}
        for arm, n in decision.items():
            first = issued[arm]
            issued[arm] += n
            values = tapes.upto(arms.index(arm), issued[arm])[first : issued[arm]]
            if problem.target == "share":  # tapes of quantiles are oriented as they are
                values = orient(values, problem, arm)
            readings[arm] = Told(np.arange(first, issued[arm]), values)
        state = policy.tell(state, readings, issued)
    answer = None if decision.best is None else arms.index(decision.best)
    rejected = tuple(i for i, arm in enumerate(arms) if arm in decision.rejected)
    return Run(decision.status, answer, tuple(issued.values()), rejected)


@dataclass(frozen=True)
class _Setting:
    """What a replication depends on besides its number."""

    policy: Policy[Any] | Runner
    problem: Problem
    instance: Instance
    attack: Attack | None
    seed: int
    max_pulls: int
    compiled: bool

    def run(self, replication: int) -> Run:
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(replication,)))
        tapes = Tapes(self.instance, self.attack, rng, self.max_pulls)
        if isinstance(self.policy, Runner):
            return self.policy.run(self.problem, tapes, self.max_pulls)
        if self.compiled:
            from truearm.lab import engine

            assert isinstance(self.policy, TopTwo)
            return engine.run(self.policy, self.problem, tapes.upto, self.max_pulls)
        return play(self.policy, self.problem, tapes, self.max_pulls)

    def run_block(self, numbers: range) -> list[tuple[Run, float]]:
        """Return some runs, with the time each took."""
        runs = []
        for number in numbers:
            begin = time.perf_counter()
            run = self.run(number)
            runs.append((run, time.perf_counter() - begin))
        return runs


@dataclass(frozen=True)
class Rate:
    """How often something happened, and the exact (Clopper-Pearson) 95 % interval of its probability."""

    count: int
    value: float
    interval: Interval

    @classmethod
    def of(cls, count: int, trials: int) -> "Rate":
        """Return the rate of `count` among `trials`."""
        most, rest = (highest_level(hits, trials, 0.025, "fixed") for hits in (count, trials - count))
        return cls(count, count / trials, Interval(1 - rest, most))


@dataclass(frozen=True)
class Summary:
    """What many runs of one setting say."""

    replications: int
    errors: Rate
    """Wrong answers; a run without an answer is not one."""
    lost: Rate
    """Runs in which the best arm was rejected at any time, whatever the answer."""
    answered: Rate
    pulls: float
    """Mean over all runs."""
    standard_error: float
    quantiles: dict[float, float]
    limit: float
    """The least mean of any method with the same guarantee; NaN if unknown."""
    ratio: float
    seconds: float
    """Mean time of a run."""


@dataclass(frozen=True)
class Simulation:
    """The runs of one setting, one entry per replication in every column, and what they were run on."""

    problem: Problem
    instance: Instance
    attack: Attack | None
    runs: dict[str, NDArray[Any]] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    """Pulls of each arm, one row per replication."""
    seconds: Floats = field(repr=False)
    """Time of each run, which is not part of the table: it differs from machine to machine."""

    @property
    def limit(self) -> float:
        """The least expected number of pulls of any method with the same guarantee; NaN if unknown."""
        if self.problem.between is not None or self.problem.rounds:
            return math.nan
        declared, tolerance = self.problem.contamination, self.problem.tolerance
        try:
            found = limit(self.instance, self.attack, contamination=declared, tolerance=tolerance)
        except InvalidArgument:  # the attack is not stationary, or the tolerance is relative
            return math.nan
        return found.pulls(self.problem.delta)

    @property
    def summary(self) -> Summary:
        """Rates, pulls and times."""
        total, pulls, answered = self.seconds.size, self.runs["pulls"], self.runs["answer"] >= 0
        mean, bound = float(pulls.mean()), self.limit
        return Summary(
            replications=total,
            errors=Rate.of(int(np.sum(answered & ~self.runs["correct"])), total),
            lost=Rate.of(int(self.runs["best_rejected"].sum()), total),
            answered=Rate.of(int(answered.sum()), total),
            pulls=mean,
            standard_error=float(pulls.std(ddof=1) / math.sqrt(total)) if total > 1 else math.nan,
            quantiles={q: float(np.quantile(pulls, q)) for q in (0.05, 0.25, 0.5, 0.75, 0.95)},
            limit=bound,
            ratio=mean / bound if 0 < bound < math.inf else math.nan,
            seconds=float(self.seconds.mean()),
        )

    def to_frame(self, backend: Backend = "pandas") -> Any:  # noqa: ANN401 - whichever library the caller has
        """Return the table of runs as a data frame of pandas, polars or pyarrow."""
        return make_frame(self.runs, backend)


def simulate(
    policy: str | Policy[Any] | Runner,
    instance: Instance,
    adversary: Attack | None = None,
    replications: int = 100,
    *,
    executor: Executor | None = None,
    seed: int = 0,
    max_pulls: int = 10**6,
    engine: Engine = "auto",
    progress: Callable[[int, int], None] | None = None,
    **options: Unpack[ProblemOptions],
) -> Simulation:
    """Run a policy many times against an instance whose truth is known.

    Parameters
    ----------
    policy
        A name, any policy object, or a `Runner`.
    adversary
        What spoils the readings; None uses the attack of the instance, if it has one.
    executor
        Where blocks of replications run: any `concurrent.futures` executor, also that of a Dask client.
    seed
        Decides every reading of every run: the table of runs is the same on all executors and engines.
    max_pulls
        A run that would need more ends as exhausted.
    engine
        "compiled" (`toptwo` that is not balanced, extra `lab`), "python", or "auto". The first compiled run on a
        machine compiles for about a minute and logs a warning.
    progress
        Called with the number of finished replications and of all, after every block.
    **options
        What the policy assumes: delta, contamination, tolerance, between, regularity and rounds, as in `Study`.
        The default contamination is None: the paper's assumption that the attack does not reverse the order, as
        in `limit`; in rounds it is "blind". With between and in rounds no lower bound is known.

    Examples
    --------
    >>> from truearm.lab import instance
    >>> simulate("toptwo", instance("G2"), replications=10, engine="python", seed=4).summary.answered.count
    10
    """
    check_instance(instance, adversary, "adversary")
    require(executor is None or hasattr(executor, "map"), "executor", executor, "be one of concurrent.futures")
    require(progress is None or callable(progress), "progress", progress, "be a function of two counts, or None")
    rounds = check_flag("rounds", options.get("rounds", False))
    given: ProblemOptions = {"contamination": "blind" if rounds else None, **options}
    given = fix_options(given, quantile=instance.quantile, at_least=instance.at_least, goal=None)
    problem = Problem.of((f"arm {i}" for i in range(len(instance.arms))), **given)
    chosen = policy if isinstance(policy, Runner) else choose_policy(problem, policy)
    attack = adversary if adversary is not None else instance.attack
    limit_of_pulls = check_count("max_pulls", max_pulls)
    compiled = _is_compiled(engine, chosen, problem)
    setting = _Setting(chosen, problem, instance, attack, check_count("seed", seed, 0), limit_of_pulls, compiled)
    size = max(_BLOCK, check_count("replications", replications) // _TASKS)
    parts = [range(at, min(at + size, replications)) for at in range(0, replications, size)]
    runs: list[tuple[Run, float]] = []
    for block in (map if executor is None else executor.map)(setting.run_block, parts):
        runs += block
        if progress is not None:
            progress(len(runs), replications)
    return _simulation(setting, runs)


def _is_compiled(engine: str, policy: Policy[Any] | Runner, problem: Problem) -> bool:
    check_choice("engine", engine, get_args(Engine))
    if engine == "python" or isinstance(policy, Runner):
        return False
    if importlib.util.find_spec("numba") is None:
        install = "install it with: pip install 'truearm[lab]', or use engine='python'"
        refuse(engine == "compiled", f"engine='compiled' needs numba; {install}", "engine", engine)
        return False
    from truearm.lab import engine as compiled

    supported = compiled.supports(policy, problem)
    msg = f"engine='compiled' has no code for {policy!r} on this problem; use engine='auto'"
    refuse(engine == "compiled" and not supported, msg, "engine", engine)
    if supported and not compiled.is_cached():
        logging.getLogger(__name__).warning("truearm: compiling the simulation engine; about a minute, once")
    return supported


def _simulation(setting: _Setting, runs: list[tuple[Run, float]]) -> Simulation:
    good = np.array(setting.instance.good(setting.problem.tolerance.amount))
    best = setting.instance.best
    answers = np.array([-1 if run.answer is None else run.answer for run, _ in runs])
    counts = np.array([run.counts for run, _ in runs], dtype=np.int64)
    columns: dict[str, NDArray[Any]] = {
        "replication": np.arange(len(runs)),
        "status": np.array([run.status.value for run, _ in runs]),
        "answer": answers,
        "correct": np.isin(answers, good),
        "best_rejected": np.array([best in run.rejected for run, _ in runs]),
        "pulls": counts.sum(axis=1),
    }
    seconds = np.array([spent for _, spent in runs])
    return Simulation(setting.problem, setting.instance, setting.attack, columns, counts, seconds)
