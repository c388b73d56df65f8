"""Rounds of estimates with a radius: what Algorithms 1, 2 and 3 of the paper share.

In round r every arm left has an estimate whose error is at most its bias plus a radius, except with the
probability spent on that round. An arm whose upper end, estimate plus radius, is below the lower end of the
best-looking arm is excluded. If all effective gaps are positive the best arm stays (Theorem 3). This is no
policy of its own: it knows neither where estimates and radii come from nor how many pulls a round takes.

A missing reading (NaN) counts at its worst for either end: the median with all of them at -inf stands below, that
with all at +inf above (evidence T8).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.claims.certificate import Bound, Exclusion, Status, Verdict
from truearm.errors import OutOfReach
from truearm.policies import Batch, Standing, Told, check_absolute, check_compares
from truearm.problem import Interval, Problem, Regularity

Floats = NDArray[np.float64]


class Dated(NamedTuple):
    """One end of an interval, and the pulls it rests on."""

    estimate: float
    radius: float
    """Added to the estimate; negative for a lower end."""
    n: int

    @property
    def value(self) -> float:
        """The end itself."""
        return self.estimate + self.radius


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What the next round needs."""

    problem: Problem
    round: int
    readings: tuple[Floats, ...]
    """Per arm, sorted, NaN last."""
    alive: tuple[int, ...]
    uppers: tuple[Dated, ...]
    """Per arm the least upper end of all rounds."""
    lowers: tuple[Dated, ...]
    """Per arm the greatest lower end of all rounds."""
    leader: int | None
    exclusions: tuple[Exclusion, ...]
    decision: Batch | Verdict


def check_problem(problem: Problem, policy: str) -> Regularity:
    """Return the regularity that the paper's own algorithms need, or say what is missing."""
    check_compares(problem, policy)
    if problem.quantile != 0.5:
        msg = (
            f"policy {policy!r} compares medians, but quantile is {problem.quantile!r}; "
            "use policy 'toptwo' or 'lucb' for other quantiles"
        )
        raise OutOfReach(msg)
    check_absolute(problem, policy)
    if problem.regularity is None:
        msg = (
            f"policy {policy!r} needs regularity, which bounds how flat the arms' distributions may be around "
            "their medians; give Regularity(B=..., m2=..., reach=...), or use policy 'toptwo', which needs none"
        )
        raise OutOfReach(msg)
    return problem.regularity


def medians(values: Floats, floor: float = -math.inf) -> Interval:
    """Return the averaged median of sorted readings, NaN last, with the NaN at -inf and at +inf.

    Parameters
    ----------
    floor
        The best value that a censored reading may have had; only the upper end takes it for -inf.
    """
    known = int(values.searchsorted(np.nan))
    missing = values.size - known
    n = values.size
    return Interval(_middle(values, known, n, missing, -math.inf), _middle(values, known, n, 0, floor))


def _middle(values: Floats, known: int, n: int, bottom: int, floor: float) -> float:
    """Return the averaged median of n readings: `bottom` of them at -inf, then the known, the rest at +inf."""
    if n == 0:
        return -math.inf
    low, high = (max(_at(values, known, rank - bottom), floor) for rank in ((n - 1) // 2, n // 2))
    return low if low in (high, -math.inf) else low / 2 + high / 2  # as moments.moments


def _at(values: Floats, known: int, place: int) -> float:
    return -math.inf if place < 0 else math.inf if place >= known else float(values[place])


def opened(problem: Problem, first: int) -> State:
    """Return the state before the first round, which takes `first` pulls of every arm."""
    k = len(problem.arms)
    return State(
        problem=problem,
        round=0,
        readings=(np.empty(0),) * k,
        alive=tuple(range(k)),
        uppers=(Dated(math.inf, 0.0, 0),) * k,
        lowers=(Dated(-math.inf, 0.0, 0),) * k,
        leader=None,
        exclusions=(),
        decision=dict.fromkeys(problem.arms, first),
    )


def merged(state: State, told: Mapping[str, Told]) -> State:
    """Return the state with a round's readings sorted in."""
    readings = list(state.readings)
    for i, arm in enumerate(state.problem.arms):
        if arm in told:
            both = np.concatenate((readings[i], np.sort(told[arm].values)))
            both.sort(kind="stable")  # merges two sorted runs in linear time
            both.flags.writeable = False
            readings[i] = both
    return replace(state, round=state.round + 1, readings=tuple(readings))


def judged(state: State, estimator: Callable[[Floats, float], Interval], radius: float, bad: int = 0) -> State:
    """Return the state after a round is judged: arms are excluded whose intervals lie below the leader's.

    Parameters
    ----------
    bad
        How many readings of an arm may be bad: so many do not tell where the limit of time-outs is.
    """
    left = [state.readings[i] for i in state.alive]
    late = any(readings.size and readings[0] == -math.inf for readings in left)
    floor = min(_finite_at(readings, bad) for readings in left) if late else -math.inf
    found = {i: estimator(state.readings[i], floor) for i in state.alive}
    leader = max(state.alive, key=lambda i: found[i].low)
    n = state.readings[leader].size
    uppers, lowers = list(state.uppers), list(state.lowers)
    for i, (low, high) in found.items():
        uppers[i] = min(uppers[i], Dated(high, radius, n), key=lambda end: end.value)
        lowers[i] = max(lowers[i], Dated(low, -radius, n), key=lambda end: end.value)
    best = Dated(found[leader].low, -radius, n)
    gone = [i for i in state.alive if found[i].high + radius < best.value]  # Alg. 2, Alg. 3
    exclusions = [
        Exclusion(
            state.problem.arms[i],
            _bound(state, i, Dated(found[i].high, radius, n)),
            _bound(state, leader, best),
        )
        for i in gone
    ]
    return replace(
        state,
        alive=tuple(i for i in state.alive if i not in gone),
        uppers=tuple(uppers),
        lowers=tuple(lowers),
        leader=leader if found[leader].low > -math.inf else None,
        exclusions=state.exclusions + tuple(exclusions),
    )


def _finite_at(values: Floats, place: int) -> float:
    """Return the reading at a place, from 0 on, of those that did not time out; infinity beyond the last.

    If fewer than that are bad, a clean one is not above it, and all time-outs are beyond that one (evidence T8c).
    """
    at = int(values.searchsorted(-np.inf, "right")) + place
    return float(values[at]) if at < values.size and not math.isnan(values[at]) else math.inf


def _bound(state: State, arm: int, end: Dated) -> Bound:
    return Bound(state.problem.arms[arm], end.n, end.value, radius=end.radius)


def separated(state: State) -> State:
    """Return the state stopped with the one arm left."""
    best = state.problem.arms[state.alive[0]]
    verdict = Verdict(status=Status.SEPARATED, best=best, candidates=(best,), exclusions=state.exclusions)
    return replace(state, decision=verdict)


def tolerable(state: State) -> State | None:
    """Return the state stopped because no arm can have the leader behind it by more than the tolerance, or None.

    The effective gap of the leader is at most the largest upper end of another arm, excluded ones included, less
    the leader's lower end, whether or not gaps are positive (audit 1.l). Each exclusion of the verdict says that
    an upper end less the tolerance is not above that lower end.
    """
    amount, leader = state.problem.tolerance.amount, state.leader
    if not amount or leader is None:
        return None
    lower = state.lowers[leader]
    rivals = [(i, end._replace(radius=end.radius - amount)) for i, end in enumerate(state.uppers) if i != leader]
    if any(upper.value > lower.value for _, upper in rivals):
        return None
    best = state.problem.arms[leader]
    exclusions = tuple(
        Exclusion(
            state.problem.arms[i],
            _bound(state, i, upper),
            _bound(state, leader, lower),
        )
        for i, upper in rivals
    )
    verdict = Verdict(status=Status.TOLERABLE, best=best, candidates=(best,), exclusions=exclusions)
    return replace(state, decision=verdict)


def continued(state: State, total: int) -> State:
    """Return the state with a batch that brings every arm left to `total` pulls."""
    arms = state.problem.arms
    return replace(state, decision={arms[i]: total - state.readings[i].size for i in state.alive})


def standing(state: State) -> Standing:
    """Return the leader and the arms left; bounds decide here, so there is no evidence to show."""
    arms = state.problem.arms
    alive = tuple(arms[i] for i in state.alive)
    so_far = Verdict(status=Status.EXHAUSTED, candidates=alive, exclusions=state.exclusions)
    return Standing(None if state.leader is None else arms[state.leader], alive, {}, math.inf, so_far)
