"""The paper's algorithms: uniform sampling (1), partial identification (2) and successive elimination (3).

In round r every arm left has an estimate whose error is at most its bias plus a radius, except with the
probability spent on that round. An arm whose upper end, estimate plus radius, is below the lower end of the
best-looking arm is excluded. If all effective gaps are positive the best arm stays (Theorem 3).

A missing reading (NaN) counts at its worst for either end: the median with all of them at -inf is below, that with
all at +inf above (evidence T8).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm import bounds
from truearm.bounds import Constants
from truearm.bounds.contamination import check_constants
from truearm.bounds.ranks import most_bad
from truearm.claims.certificate import Claim, Status, Verdict
from truearm.errors import InvalidArgument, OutOfReach
from truearm.policies import Batch, Eager, Standing, Told, check_absolute, check_compares
from truearm.problem import Interval, Problem

Floats = NDArray[np.float64]

GROWTH = 1.3  # of counts between sharp looks: 1.2 to 1.5 need the same pulls within 3 %, see docs/policies.md


class Limit(NamedTuple):
    """One end of an interval; a tolerance is taken off the radius, so that equal numbers stay equal."""

    estimate: float
    radius: float
    """Added to the estimate; negative for a lower end."""

    @property
    def value(self) -> float:
        """The end itself."""
        return self.estimate + self.radius


@dataclass(frozen=True, slots=True, eq=False)
class PaperState:
    """What the next round needs."""

    problem: Problem
    round: int
    readings: tuple[Floats, ...]
    """Per arm, sorted, NaN last."""
    alive: tuple[int, ...]
    uppers: tuple[Limit, ...]
    """Per arm the least upper end of all rounds."""
    lowers: tuple[Limit, ...]
    """Per arm the greatest lower end of all rounds."""
    leader: int | None
    claims: tuple[Claim, ...]
    decision: Batch | Verdict

    @property
    def count(self) -> int:
        """Pulls of each arm left."""
        return self.readings[self.alive[0]].size


class _Rounds(Eager):
    """What the three algorithms share."""

    __slots__ = ()
    patient: ClassVar[bool] = True
    alike: ClassVar[bool] = True

    def standing(self, state: PaperState) -> Standing:
        arms = state.problem.arms
        alive = tuple(arms[i] for i in state.alive)
        so_far = Verdict(status=Status.EXHAUSTED, candidates=alive, claims=state.claims)
        return Standing(None if state.leader is None else arms[state.leader], alive, {}, math.inf, so_far)


@dataclass(frozen=True, slots=True)
class Uniform(_Rounds):
    """Algorithm 1: one batch whose size is known in advance, then the arm with the largest median.

    Ends as `tolerable`: with probability 1 - delta the effective gap of the answer is at most the tolerance, so
    that its true median is within tolerance + U_best + U_selected of the best one (erratum E3; the biases U are
    `bounds.bias`). No gap needs to be positive. Valid against all three adversaries and for dependent arms.
    Where no reading has a value above -inf it ends as `exhausted`.

    Parameters
    ----------
    constants
        "sharp" as audit section 2 proves them, or "paper" as printed.
    """

    constants: Constants = "sharp"

    def __post_init__(self) -> None:
        check_constants(self.constants)

    def start(self, problem: Problem) -> PaperState:
        regular = _regular(problem, "uniform")
        if not problem.tolerance:
            msg = "policy 'uniform' needs a tolerance above 0; add one, or use policy 'elimination' or 'toptwo'"
            raise OutOfReach(msg, "tolerance", 0)
        k, amount = len(problem.arms), problem.tolerance.amount
        n = bounds.uniform_sample_size(k, amount, problem.delta, constants=self.constants, **regular)
        state = _start(problem, n)
        return _stop(replace(state, leader=0)) if len(problem.arms) == 1 else state

    def tell(self, state: PaperState, told: Mapping[str, Told], issued: Mapping[str, int]) -> PaperState:  # noqa: ARG002
        problem, state = state.problem, _merge(state, told)
        bad = most_bad(state.count, problem.delta / len(problem.arms) / 3, problem.declared.eps)  # evidence T8c
        return _stop(_exclude(state, medians, problem.tolerance.amount / 2, bad))  # Thm 2, Thm 14


@dataclass(frozen=True, slots=True)
class Elimination(_Rounds):
    """Algorithm 3, with B squared (erratum E1): pull all arms left equally, exclude those too far behind.

    Ends as `separated` with the last arm, which is the best one with probability 1 - delta if all effective gaps
    are positive; with a tolerance also as `tolerable`, when the leader's effective gap is certainly within it.
    Valid against all three adversaries, also clairvoyant ones, and for dependent arms. Without tolerance it goes
    on forever when two effective gaps are not positive.

    With "paper" constants rounds, counts and radius are the printed ones. With "sharp" constants the radius comes
    from the number of readings (audit 1.k), and looks are geometric: the theorem needs only that the counts of all
    rounds are fixed in advance and large enough for the reach, and few looks spend little of delta.
    """

    constants: Constants = "sharp"

    def __post_init__(self) -> None:
        check_constants(self.constants)

    def start(self, problem: Problem) -> PaperState:
        state = _start(problem, self._total(problem, 1, 0))
        return _separate(state) if len(problem.arms) == 1 else state

    def tell(self, state: PaperState, told: Mapping[str, Told], issued: Mapping[str, int]) -> PaperState:  # noqa: ARG002
        state = _merge(state, told)
        problem, n, k = state.problem, state.count, len(state.problem.arms)
        share = bounds.round_delta(problem.delta, k, state.round) / 3
        bad = most_bad(n, share, problem.declared.eps)  # evidence T8c: a third of the round's error
        state = _exclude(state, medians, self._radius(problem, state.round, n), bad)
        if len(state.alive) == 1:
            return _separate(state)
        return _tolerate(state) or _continue(state, self._total(problem, state.round + 1, n))

    def _total(self, problem: Problem, r: int, n: int) -> int:
        """Return the pulls of each arm left up to round r, given those up to the round before."""
        k, regular = len(problem.arms), _regular(problem, "elimination")
        if self.constants == "paper":
            declared = {name: regular[name] for name in ("eps", "reach", "adversary")}
            schedule = bounds.elimination_schedule(k, problem.delta, **declared)
            return (schedule.initial if r == 1 else n) + schedule.per_round(r)  # Alg. 3
        # the least count at which chance stays within the reach, whatever error is asked for: audit 1.k
        error = regular["B"] * regular["m2"]  # it asks no more of n than the reach does: reach < 1
        least = bounds.median_sample_size(error, bounds.round_delta(problem.delta, k, r), **regular)
        return max(math.ceil(GROWTH * n), least)

    def _radius(self, problem: Problem, r: int, n: int) -> float:
        k, regular = len(problem.arms), _regular(problem, "elimination")
        if self.constants == "paper":
            return bounds.elimination_radius(r, k, problem.delta, regular["B"], regular["m2"])
        return bounds.counted_elimination_radius(r, n, k, delta=problem.delta, **regular)


@dataclass(frozen=True, slots=True)
class PartialIdentification(_Rounds):
    """Algorithm 2: pull all arms left equally, exclude those whose estimates are too far behind.

    For n fixed in advance the error of the estimator from n readings of arm i must be at most U_i + radius(n,
    delta) with probability 1 - delta, for every arm and whatever the adversary does. Then the last arm is the
    best one with probability 1 - delta if all effective gaps are positive (Theorem 3), and with a tolerance the
    answer's effective gap is within it. The certificate has the ends of the intervals; without the estimator only
    their order can be checked.

    Parameters
    ----------
    estimator
        From all readings of an arm, sorted and NaN last, to a number; NaN says that nothing is known.
    radius
        From a number of readings and an error probability to a number; infinity while nothing can be said.
    biases
        Per arm the bias U_i. The rule does not use them; `selection_gap` does.
    growth
        By which fraction counts grow from round to round; 0 is one pull of each arm, as printed.

    Examples
    --------
    >>> policy = PartialIdentification(np.mean, lambda n, delta: math.sqrt(math.log(2 / delta) / (2 * n)))
    >>> problem = Problem(arms=("A", "B"), contamination=None)
    >>> state = policy.start(problem)
    >>> n = 0
    >>> while not isinstance(batch := policy.ask(state), Verdict):
    ...     n += 1
    ...     told = {arm: Told(np.array([n - 1]), np.array([float(arm == "A")])) for arm in batch}
    ...     state = policy.tell(state, told, {"A": n, "B": n})
    >>> batch.best, n
    ('A', 23)
    """

    estimator: Callable[[Floats], float]
    radius: Callable[[int, float], float]
    biases: Mapping[str, float] | None = None
    growth: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        if not 0 <= self.growth < math.inf:
            msg = f"growth must be a finite number >= 0, but got {self.growth!r}"
            raise InvalidArgument(msg, "growth", self.growth)
        for arm, bias in (self.biases or {}).items():
            if not bias >= 0:
                raise InvalidArgument(f"biases must be >= 0, but got {bias!r} for arm {arm!r}", "biases", bias)

    def start(self, problem: Problem) -> PaperState:
        check_compares(problem, "partial")
        check_absolute(problem, "partial")
        if lacking := [arm for arm in problem.arms if self.biases is not None and arm not in self.biases]:
            msg = f"biases must name every arm, but lacks {lacking[0]!r}; use 0.0 for an estimator without bias"
            raise InvalidArgument(msg, "biases", lacking[0])
        state = _start(problem, 1)
        return _separate(state) if len(problem.arms) == 1 else state

    def ask(self, state: PaperState) -> Batch | Verdict:
        decision = state.decision
        return replace(decision, estimated=True) if isinstance(decision, Verdict) else decision

    def tell(self, state: PaperState, told: Mapping[str, Told], issued: Mapping[str, int]) -> PaperState:  # noqa: ARG002
        state = _merge(state, told)
        n, problem = state.count, state.problem
        share = bounds.round_delta(problem.delta, len(problem.arms), state.round)
        radius = float(self.radius(n, share))
        if not radius >= 0:
            msg = f"radius must return a number >= 0, but radius({n}, {share:.3g}) is {radius!r}"
            raise InvalidArgument(msg, "radius", radius)
        state = _exclude(state, self._estimate, radius)  # Alg. 2
        if len(state.alive) == 1:
            return _separate(state)
        return _tolerate(state) or _continue(state, max(n + 1, math.ceil((1 + self.growth) * n)))

    def standing(self, state: PaperState) -> Standing:
        found = _Rounds.standing(self, state)
        return found._replace(so_far=found.so_far and replace(found.so_far, estimated=True))

    def selection_gap(self, problem: Problem, arm: str) -> float:
        """Return how far the true value of a chosen arm can be below the best: tolerance + U_best + U_arm.

        Which arm is best is not known, so the largest bias of another arm stands for U_best (erratum E3).
        """
        if self.biases is None:
            return math.inf
        others = max((bias for name, bias in self.biases.items() if name != arm), default=0.0)
        return bounds.selection_gap(problem.tolerance.amount, others, self.biases[arm])

    def _estimate(self, readings: Floats, _least: float) -> Interval:
        value = float(self.estimator(readings))
        if math.isnan(value) or value == -math.inf:  # of censored readings an estimator knows no upper end
            return Interval(-math.inf, math.inf)
        return Interval(value, value)


def _regular(problem: Problem, policy: str) -> dict[str, Any]:
    """Return the contamination and the regularity that the paper's own algorithms need, as arguments."""
    check_compares(problem, policy)
    if problem.quantile != 0.5:
        msg = (
            f"policy {policy!r} compares medians, but quantile is {problem.quantile!r}; "
            "use policy 'toptwo' or 'lucb' for other quantiles"
        )
        raise OutOfReach(msg, "quantile", problem.quantile)
    check_absolute(problem, policy)
    if problem.regularity is None:
        msg = (
            f"policy {policy!r} needs regularity, which bounds how flat the arms' distributions may be around "
            "their medians; give Regularity(B=..., m2=..., reach=...), or use policy 'toptwo', which needs none"
        )
        raise OutOfReach(msg, "regularity")
    c, regularity = problem.declared, problem.regularity
    known = {"B": regularity.B, "m2": regularity.m2, "reach": regularity.reach}
    return {"eps": c.eps, "adversary": c.adversary, **known}


def medians(values: Floats, least: float = -math.inf) -> Interval:
    """Return the averaged median of sorted readings, NaN last, with the NaN at -inf and at +inf.

    Parameters
    ----------
    least
        The best value that a censored reading may have had; only the upper end takes it for -inf.
    """
    known = int(values.searchsorted(np.nan))
    missing = values.size - known
    return Interval(_middle(values, known, missing, -math.inf), _middle(values, known, 0, least))


def _middle(values: Floats, known: int, bottom: int, least: float) -> float:
    """Return the averaged median of readings: `bottom` of them at -inf, then the known, the rest at +inf."""
    n = values.size
    if n == 0:
        return -math.inf
    low, high = (max(_at(values, known, rank - bottom), least) for rank in ((n - 1) // 2, n // 2))
    return low if low in (high, -math.inf) else low / 2 + high / 2  # as moments.moments


def _at(values: Floats, known: int, place: int) -> float:
    return -math.inf if place < 0 else math.inf if place >= known else float(values[place])


def _start(problem: Problem, first: int) -> PaperState:
    """Return the state before the first round, which takes `first` pulls of every arm."""
    k = len(problem.arms)
    return PaperState(
        problem=problem,
        round=0,
        readings=(np.empty(0),) * k,
        alive=tuple(range(k)),
        uppers=(Limit(math.inf, 0.0),) * k,
        lowers=(Limit(-math.inf, 0.0),) * k,
        leader=None,
        claims=(),
        decision=dict.fromkeys(problem.arms, first),
    )


def _merge(state: PaperState, told: Mapping[str, Told]) -> PaperState:
    """Return the state with a round's readings sorted in."""
    readings = list(state.readings)
    for i, arm in enumerate(state.problem.arms):
        if arm in told:
            both = np.concatenate((readings[i], np.sort(told[arm].values)))
            both.sort(kind="stable")  # merges two sorted runs in linear time
            both.flags.writeable = False
            readings[i] = both
    return replace(state, round=state.round + 1, readings=tuple(readings))


def _exclude(
    state: PaperState, estimate: Callable[[Floats, float], Interval], radius: float, bad: int = 0
) -> PaperState:
    """Return the state without the arms whose intervals are below the leader's.

    Parameters
    ----------
    bad
        How many readings of an arm may be bad: that many do not show where the limit of time-outs is.
    """
    left = [state.readings[i] for i in state.alive]
    late = any(readings.size and readings[0] == -math.inf for readings in left)
    least = min(_finite_at(readings, bad) for readings in left) if late else -math.inf
    found = {i: estimate(state.readings[i], least) for i in state.alive}
    leader = max(state.alive, key=lambda i: found[i].low)
    uppers, lowers = list(state.uppers), list(state.lowers)
    for i, (low, high) in found.items():
        uppers[i] = min(uppers[i], Limit(high, radius), key=lambda end: end.value)
        lowers[i] = max(lowers[i], Limit(low, -radius), key=lambda end: end.value)
    best = found[leader].low - radius
    gone = [i for i in state.alive if found[i].high + radius < best]  # Alg. 2, Alg. 3
    new = [_claim(state, i, leader, (found[i].high + radius, best)) for i in gone]
    return replace(
        state,
        alive=tuple(i for i in state.alive if i not in gone),
        uppers=tuple(uppers),
        lowers=tuple(lowers),
        leader=leader if found[leader].low > -math.inf else None,
        claims=(*state.claims, *new),
    )


def _finite_at(values: Floats, place: int) -> float:
    """Return the reading at a place, from 0 on, of those that did not time out; infinity beyond the last.

    If fewer than that are bad, a clean one is not above it, and all time-outs are beyond that one (evidence T8c).
    """
    at = int(values.searchsorted(-np.inf, "right")) + place
    return float(values[at]) if at < values.size and not math.isnan(values[at]) else math.inf


def _claim(
    state: PaperState, arm: int, leader: int, bounds: tuple[float, float], *, tolerant: bool = False
) -> Claim:
    arms, counts = state.problem.arms, tuple(readings.size for readings in state.readings)
    return Claim(arms[arm], arms[leader], counts, tolerant=tolerant, bounds=bounds)


def _separate(state: PaperState) -> PaperState:
    """Return the state stopped with the one arm left."""
    best = state.problem.arms[state.alive[0]]
    verdict = Verdict(status=Status.SEPARATED, best=best, candidates=(best,), claims=state.claims)
    return replace(state, decision=verdict)


def _tolerate(state: PaperState) -> PaperState | None:
    """Return the state stopped because no arm is better than the leader by more than the tolerance, or None.

    The effective gap of the leader is at most the largest upper end of another arm, excluded ones included, less
    the leader's lower end, whether or not gaps are positive (audit 1.l). Each tolerant claim of the verdict says
    that an upper end less the tolerance is not above that lower end.
    """
    amount, leader = state.problem.tolerance.amount, state.leader
    if not amount or leader is None:
        return None
    lower = state.lowers[leader].value
    uppers = [end._replace(radius=end.radius - amount).value for end in state.uppers]
    if any(upper > lower for i, upper in enumerate(uppers) if i != leader):
        return None
    best = state.problem.arms[leader]
    left = [_claim(state, i, leader, (uppers[i], lower), tolerant=True) for i in state.alive if i != leader]
    verdict = Verdict(status=Status.TOLERABLE, best=best, candidates=(best,), claims=(*state.claims, *left))
    return replace(state, decision=verdict)


def _continue(state: PaperState, total: int) -> PaperState:
    """Return the state with a batch that brings every arm left to `total` pulls."""
    arms = state.problem.arms
    return replace(state, decision={arms[i]: total - state.readings[i].size for i in state.alive})


def _stop(state: PaperState) -> PaperState:
    """Return the state after the one batch of uniform sampling."""
    exhausted = Verdict(status=Status.EXHAUSTED, candidates=state.problem.arms)
    return _tolerate(state) or replace(state, decision=exhausted)
