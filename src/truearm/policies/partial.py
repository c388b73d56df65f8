"""Exclude arms by any estimator of the user's that comes with a radius: Algorithm 2, partial identification.

The estimator may be wrong by an unavoidable bias U_i however many readings there are; the radius bounds the rest.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from truearm import bounds
from truearm.claims.certificate import Verdict
from truearm.errors import InvalidArgument
from truearm.policies import Batch, Standing, Told, check_absolute, check_compares, rounds
from truearm.policies.rounds import State
from truearm.problem import Interval, Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PartialIdentification:
    """Algorithm 2: pull all arms left equally, exclude those whose estimates are too far behind.

    For n fixed in advance the error of the estimator from n readings of arm i must be at most U_i + radius(n,
    delta) with probability 1 - delta, for every arm and whatever the adversary does. Then the last arm is the
    best one with probability 1 - delta if all effective gaps are positive (Theorem 3), and with a tolerance the
    answer's effective gap is within it. The certificate carries the ends of the intervals; a stranger without
    the estimator can check their order only.

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
    patient: ClassVar[bool] = True
    alike: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.growth < math.inf:
            msg = f"growth must be a finite number >= 0, but got {self.growth!r}"
            raise InvalidArgument(msg)
        for arm, bias in (self.biases or {}).items():
            if not bias >= 0:
                msg = f"biases must be >= 0, but got {bias!r} for arm {arm!r}"
                raise InvalidArgument(msg)

    def start(self, problem: Problem) -> State:
        """Return the state before the first round."""
        check_compares(problem, "partial")
        check_absolute(problem, "partial")
        missing = [] if self.biases is None else [arm for arm in problem.arms if arm not in self.biases]
        if missing:
            msg = f"biases must name every arm, but lacks {missing[0]!r}; write 0.0 for an estimator without bias"
            raise InvalidArgument(msg)
        state = rounds.opened(problem, 1)
        return rounds.separated(state) if len(problem.arms) == 1 else state

    def ask(self, state: State) -> Batch | Verdict:
        """Return the next batch or the verdict; it was decided when the last readings came in."""
        decision = state.decision
        return replace(decision, estimated=True) if isinstance(decision, Verdict) else decision

    def tell(self, state: State, told: Mapping[str, Told], issued: Mapping[str, int]) -> State:  # noqa: ARG002
        """Return the state after a round, with the next decision made."""
        state = rounds.merged(state, told)
        n, problem = state.readings[state.alive[0]].size, state.problem
        share = bounds.round_delta(problem.delta, len(problem.arms), state.round)
        state = rounds.judged(state, self._estimated, self._checked_radius(n, share))  # Alg. 2
        if len(state.alive) == 1:
            return rounds.separated(state)
        total = max(n + 1, math.ceil((1 + self.growth) * n))
        return rounds.tolerable(state) or rounds.continued(state, total)

    def standing(self, state: State) -> Standing:
        """Return the leader and the arms left."""
        found = rounds.standing(state)
        so_far = found.so_far and replace(found.so_far, estimated=True)
        return found._replace(so_far=so_far)

    def selection_gap(self, problem: Problem, arm: str) -> float:
        """Return how far the true value of a chosen arm can be below the best: tolerance + U_best + U_arm.

        Which arm is best is not known, so the largest bias of another arm stands for U_best (erratum E3).

        Examples
        --------
        >>> policy = PartialIdentification(np.mean, lambda n, delta: 1.0, {"A": 0.5, "B": 0.25})
        >>> policy.selection_gap(Problem(arms=("A", "B"), tolerance=1.0), "A")
        1.75
        """
        if self.biases is None:
            return math.inf
        others = max((bias for name, bias in self.biases.items() if name != arm), default=0.0)
        return bounds.selection_gap(problem.tolerance.amount, others, self.biases[arm])

    def _estimated(self, readings: Floats, _floor: float) -> Interval:
        found = float(self.estimator(readings))
        if math.isnan(found) or found == -math.inf:  # of censored readings an estimator knows no upper end
            return Interval(-math.inf, math.inf)
        return Interval(found, found)

    def _checked_radius(self, n: int, share: float) -> float:
        found = float(self.radius(n, share))
        if not found >= 0:
            msg = f"radius must return a number >= 0, but radius({n}, {share:.3g}) is {found!r}"
            raise InvalidArgument(msg)
        return found
