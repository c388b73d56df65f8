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
from typing import Any, ClassVar

import numpy as np

from truearm import bounds
from truearm.bounds import Constants
from truearm.bounds.contamination import check_constants
from truearm.bounds.ranks import most_bad
from truearm.claims.certificate import Claim, Status, Verdict
from truearm.errors import OutOfReach
from truearm.evidence.sample import Floats, Sample
from truearm.policies import Batch, Eager, Standing, Told, check_compares
from truearm.problem import UNBOUNDED, Interval, Problem, as_number, check_kind, require

GROWTH = 1.3  # of counts between sharp looks: 1.2 to 1.5 need the same pulls within 3 %, see docs/policies.md


@dataclass(frozen=True, slots=True, eq=False)
class PaperState:
    """The state of the policy."""

    problem: Problem
    samples: tuple[Sample, ...]
    alive: tuple[int, ...]
    uppers: tuple[float, ...]
    """Per arm the least upper end of all rounds, less the tolerance."""
    lowers: tuple[float, ...]
    """Per arm the greatest lower end of all rounds."""
    estimated: bool = False
    """Whether the ends come from an estimator of the user's own."""
    round: int = 0
    leader: int | None = None
    claims: tuple[Claim, ...] = ()
    decision: Batch | Verdict = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Pulls of each arm left."""
        return self.samples[self.alive[0]].n


class _Rounds(Eager):
    """What the three algorithms have in common."""

    __slots__ = ()
    patient: ClassVar[bool] = True
    alike: ClassVar[bool] = True

    def standing(self, state: PaperState) -> Standing:
        arms = state.problem.arms
        alive = tuple(arms[i] for i in state.alive)
        so_far = Verdict(status=Status.EXHAUSTED, candidates=alive, claims=state.claims, estimated=state.estimated)
        return Standing(None if state.leader is None else arms[state.leader], alive, {}, math.inf, so_far)


@dataclass(frozen=True, slots=True)
class _Medians(_Rounds):
    """What the two algorithms with medians have in common."""

    constants: Constants = "sharp"

    def __post_init__(self) -> None:
        check_constants(self.constants)


@dataclass(frozen=True, slots=True)
class Uniform(_Medians):
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

    def start(self, problem: Problem) -> PaperState:
        regular = _regular(problem, "uniform")
        if not problem.tolerance:
            msg = "policy 'uniform' needs a tolerance above 0; add one, or use policy 'elimination' or 'toptwo'"
            raise OutOfReach(msg, "tolerance", 0)
        k, amount = len(problem.arms), problem.tolerance.amount
        n = bounds.uniform_sample_size(k, amount, problem.delta, constants=self.constants, **regular)
        state = _start(problem, n)
        return _tolerate(replace(state, leader=0)) or state  # the only arm

    def tell(self, state: PaperState, readings: Mapping[str, Told], issued: Mapping[str, int]) -> PaperState:  # noqa: ARG002
        problem, state = state.problem, _merge(state, readings)
        bad = most_bad(state.count, problem.delta / len(problem.arms) / 3, problem.declared.eps)  # evidence T8c
        state = _exclude(state, medians, problem.tolerance.amount / 2, bad)  # Thm 2, Thm 14
        exhausted = Verdict(status=Status.EXHAUSTED, candidates=problem.arms)
        return _tolerate(state) or replace(state, decision=exhausted)


@dataclass(frozen=True, slots=True)
class Elimination(_Medians):
    """Algorithm 3, with B squared (erratum E1): pull all arms left equally, exclude those too far behind.

    Ends as `separated` with the last arm, which is the best one with probability 1 - delta if all effective gaps
    are positive; with a tolerance also as `tolerable`, when the leader's effective gap is certainly within it.
    Valid against all three adversaries, also clairvoyant ones, and for dependent arms. Without a tolerance it may
    never end if the effective gap of another arm is not positive.

    With "paper" constants rounds, counts and radius are the printed ones. With "sharp" constants the radius comes
    from the number of readings (audit 1.k), and looks are geometric: the theorem needs only that the counts of all
    rounds are fixed in advance and large enough for the reach, and few looks spend little of delta.
    """

    def start(self, problem: Problem) -> PaperState:
        return _start(problem, self._total(problem, 1, 0))

    def tell(self, state: PaperState, readings: Mapping[str, Told], issued: Mapping[str, int]) -> PaperState:  # noqa: ARG002
        state = _merge(state, readings)
        problem, n, k = state.problem, state.count, len(state.problem.arms)
        share = bounds.round_delta(problem.delta, k, state.round) / 3
        bad = most_bad(n, share, problem.declared.eps)  # evidence T8c: a third of the round's error
        state = _exclude(state, medians, self._radius(problem, state.round, n), bad)
        return _go_on(state, self._total(problem, state.round + 1, n))

    def _total(self, problem: Problem, r: int, n: int) -> int:
        """Return the pulls of each arm left up to round r, given those up to the round before."""
        k, regular = len(problem.arms), _regular(problem, "elimination")
        if self.constants == "paper":
            declared = {name: regular[name] for name in ("eps", "reach", "adversary")}
            schedule = bounds.elimination_schedule(k, problem.delta, **declared)
            return (schedule.initial if r == 1 else n) + schedule.per_round(r)  # Alg. 3
        # the least count at which chance stays within the reach, whatever the required error: audit 1.k
        error = regular["B"] * regular["m2"]  # it needs no larger n than the reach does: reach < 1
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
        From all readings of an arm, sorted and NaN last, to a number; NaN means that nothing is known.
    radius
        From a number of readings and an error probability to a number; infinity while nothing can be said.
    biases
        Per arm the bias U_i. The rule does not use them; `selection_gap` does.
    growth
        The fraction by which counts grow from round to round; 0 is one pull of each arm, as printed.

    Examples
    --------
    >>> from truearm import find_best
    >>> policy = PartialIdentification(np.mean, lambda n, delta: math.sqrt(math.log(2 / delta) / (2 * n)))
    >>> find_best({"A": lambda: 1.0, "B": lambda: 0.0}, policy=policy, contamination=None).pulls
    {'A': 23, 'B': 23}
    """

    estimator: Callable[[Floats], float]
    radius: Callable[[int, float], float]
    biases: Mapping[str, float] | None = None
    growth: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        growth = as_number("growth", self.growth, "use a fraction such as 0.1")
        require(0 <= growth < math.inf, "growth", self.growth, "be a finite number >= 0")
        biases = {} if self.biases is None else self.biases
        check_kind("biases", biases, Mapping, "use a dict with a number for each arm")
        for bias in biases.values():
            require(as_number("biases", bias, "use 0.0 without bias") >= 0, "biases", bias, "be >= 0")

    def start(self, problem: Problem) -> PaperState:
        check_compares(problem, "partial")
        is_whole = self.biases is None or set(problem.arms) <= set(self.biases)
        require(is_whole, "biases", self.biases, "name every arm", "use 0.0 for an estimator without bias")
        return _start(problem, 1, estimated=True)

    def tell(self, state: PaperState, readings: Mapping[str, Told], issued: Mapping[str, int]) -> PaperState:  # noqa: ARG002
        state = _merge(state, readings)
        n, problem = state.count, state.problem
        share = bounds.round_delta(problem.delta, len(problem.arms), state.round)
        radius = float(self.radius(n, share))
        require(radius >= 0, "radius", radius, "return a number >= 0")
        state = _exclude(state, self._estimate, radius)  # Alg. 2
        return _go_on(state, max(n + 1, math.ceil((1 + self.growth) * n)))

    def selection_gap(self, problem: Problem, arm: str) -> float:
        """Return how far the true value of a chosen arm can be below the best: tolerance + U_best + U_arm.

        Which arm is best is not known, so the largest bias of another arm stands for U_best (erratum E3).
        """
        if self.biases is None:
            return math.inf
        others = max((bias for name, bias in self.biases.items() if name != arm), default=0.0)
        return bounds.selection_gap(problem.tolerance.amount, others, self.biases[arm])

    def _estimate(self, sample: Sample, _least: float) -> Interval:
        value = float(self.estimator(np.append(sample.values, np.full(sample.missing, np.nan))))
        if math.isnan(value) or value == -math.inf:  # an estimator has no upper end for censored readings
            return UNBOUNDED
        return Interval(value, value)


def _regular(problem: Problem, policy: str) -> dict[str, Any]:
    """Return the contamination and the regularity that the paper's own algorithms need, as arguments."""
    check_compares(problem, policy)
    if problem.quantile != 0.5:
        msg = f"policy {policy!r} compares medians, but quantile is {problem.quantile!r}; use policy 'toptwo'"
        raise OutOfReach(msg, "quantile", problem.quantile)
    if problem.regularity is None:
        msg = (
            f"policy {policy!r} needs regularity, which bounds how flat the arms' distributions may be around "
            "their medians; give Regularity(B=..., m2=..., reach=...), or use policy 'toptwo', which needs none"
        )
        raise OutOfReach(msg, "regularity")
    c, regularity = problem.declared, problem.regularity
    known = {"B": regularity.B, "m2": regularity.m2, "reach": regularity.reach}
    return {"eps": c.eps, "adversary": c.adversary, **known}


def medians(sample: Sample, least: float = -math.inf) -> Interval:
    """Return the averaged median with all missing readings at -inf, and with all at +inf (as `moments`).

    `least` is the best value that a censored reading may have had; only the upper end uses it in place of -inf.
    """

    def middle(bottom: int, floor: float) -> float:
        low, high = (max(sample.at(rank - bottom), floor) for rank in ((sample.n + 1) // 2, sample.n // 2 + 1))
        return low if low in (high, -math.inf) else low / 2 + high / 2

    return Interval(middle(sample.missing, -math.inf), middle(0, least))


def _start(problem: Problem, first: int, *, estimated: bool = False) -> PaperState:
    """Return the state before the first round, which has `first` pulls of every arm."""
    k = len(problem.arms)
    ends = (math.inf,) * k, (-math.inf,) * k
    return _go_on(PaperState(problem, (Sample(),) * k, tuple(range(k)), *ends, estimated=estimated), first)


def _merge(state: PaperState, readings: Mapping[str, Told]) -> PaperState:
    """Return the state with a round's readings."""
    pairs = zip(state.problem.arms, state.samples, strict=True)
    samples = tuple(sample.extend(readings[arm].values) if arm in readings else sample for arm, sample in pairs)
    return replace(state, round=state.round + 1, samples=samples)


def _exclude(
    state: PaperState, estimate: Callable[[Sample, float], Interval], radius: float, bad: int = 0
) -> PaperState:
    """Return the state without the arms whose intervals are below the leader's.

    Up to `bad` readings of an arm may be bad: that many do not show where the limit of time-outs is.
    """
    left = [state.samples[i] for i in state.alive]
    # if fewer are bad, a clean reading is not above this one, and all time-outs are beyond that (evidence T8c)
    limits = (s.at(s.time_outs + bad + 1) for s in left)
    least = min(limits) if any(s.time_outs for s in left) else -math.inf
    found = {i: estimate(state.samples[i], least) for i in state.alive}
    leader = max(state.alive, key=lambda i: found[i].low)
    uppers, lowers, less = list(state.uppers), list(state.lowers), radius - state.problem.tolerance.amount
    for i, (low, high) in found.items():
        uppers[i], lowers[i] = min(uppers[i], high + less), max(lowers[i], low - radius)
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


def _claim(
    state: PaperState, arm: int, leader: int, ends: tuple[float, float], *, tolerant: bool = False
) -> Claim:
    arms, counts = state.problem.arms, tuple(sample.n for sample in state.samples)
    return Claim(arms[arm], arms[leader], counts, tolerant=tolerant, bounds=ends)


def _go_on(state: PaperState, total: int) -> PaperState:
    """Return the state stopped, or with a batch that brings every arm left to `total` pulls."""
    if len(state.alive) == 1:
        return _end(state, Status.SEPARATED, state.alive[0])
    batch = {state.problem.arms[i]: total - state.samples[i].n for i in state.alive}
    return _tolerate(state) or replace(state, decision=batch)


def _tolerate(state: PaperState) -> PaperState | None:
    """Return the state stopped because no arm is better than the leader by more than the tolerance, or None.

    The effective gap of the leader is at most the largest upper end of another arm, excluded ones included, less
    the leader's lower end, whether or not gaps are positive (audit 1.l). Each tolerant claim of the verdict says
    that an upper end less the tolerance is not above that lower end.
    """
    leader, uppers = state.leader, state.uppers
    if not state.problem.tolerance or leader is None:
        return None
    lower = state.lowers[leader]
    if any(upper > lower for i, upper in enumerate(uppers) if i != leader):
        return None
    left = [_claim(state, i, leader, (uppers[i], lower), tolerant=True) for i in state.alive if i != leader]
    return _end(state, Status.TOLERABLE, leader, *left)


def _end(state: PaperState, status: Status, leader: int, *claims: Claim) -> PaperState:
    best, claims = state.problem.arms[leader], (*state.claims, *claims)
    verdict = Verdict(status=status, candidates=(best,), best=best, claims=claims, estimated=state.estimated)
    return replace(state, decision=verdict)
