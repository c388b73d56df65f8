"""What a policy is: three pure functions over a frozen state. It decides what to pull next, and when to stop.

`ask` changes nothing and returns a batch or a verdict. `tell` accepts readings that came in and returns a new
state. Readings are oriented: bigger is better. Each policy has its own module; these never import each other.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar, cast, get_type_hints

import numpy as np
from numpy.typing import NDArray

from truearm.claims.certificate import Claim, Entered, Status, Verdict
from truearm.claims.plain import from_plain
from truearm.errors import InvalidArgument, OutOfReach
from truearm.problem import Problem, refuse, require

if TYPE_CHECKING:
    from truearm.evidence import Judge
    from truearm.evidence.sample import Sample

State = TypeVar("State")
T = TypeVar("T")
Batch = Mapping[str, int]
"""How many more pulls of each arm are wanted; every number is positive."""

START = 16  # pulls of every arm first: makes the first leader right; evidence section 4
GROWTH = 0.02  # a batch adds at most this fraction to either arm; evidence section 4
FUTILITY = 1.05  # growth of the pulls between two checks for futility, which hold at all times together
SHARES = (0.05, 0.95)  # limits of an arm's share of a batch of two arms; evidence section 4


class Told(NamedTuple):
    """Readings of one arm: the pulls they answer, counted from 0 in order of issue, and their values."""

    indices: NDArray[np.intp]
    values: NDArray[np.float64]


class Look(NamedTuple):
    """The evidence about an arm when it was last computed."""

    cut: float = math.nan
    """Where the evidence was least."""
    log_evidence: float = 0.0
    size: int = 0
    """Pulls of the arm and its rival then."""
    searched: int = 0
    """Pulls of the arm and its rival when the cut was found."""


class Eager:
    """A policy that decides when readings come in: the state has the next batch or the verdict."""

    __slots__ = ()

    def ask(self, state: Any) -> "Batch | Verdict":  # noqa: ANN401 - the state of the policy
        """Return the next batch or the verdict."""
        decision: Batch | Verdict = state.decision
        return decision


def put(values: tuple[T, ...], i: int, value: T) -> tuple[T, ...]:
    """Return a tuple with one value replaced."""
    return (*values[:i], value, *values[i + 1 :])


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The state that policies with a judge share."""

    judge: "Judge"
    alive: tuple[int, ...]
    """Arms that are neither rejected nor settled."""
    claims: tuple[Claim, ...] = ()
    first: int
    """Pulls of every arm before the first decision."""
    decision: "Batch | Verdict" = field(default_factory=dict)

    @property
    def problem(self) -> Problem:
        return self.judge.problem

    @property
    def samples(self) -> "tuple[Sample, ...]":
        return self.judge.samples

    @property
    def pulls(self) -> int:
        return sum(sample.n for sample in self.samples)

    @property
    def lacking(self) -> dict[str, int]:
        """How many of its first pulls each arm still lacks."""
        arms = zip(self.problem.arms, self.samples, strict=True)
        return {arm: self.first - sample.n for arm, sample in arms if sample.n < self.first}

    def after(self, readings: Mapping[str, Told], issued: Mapping[str, int]) -> Self:
        """Return the state after new readings; issued pulls without one are out."""
        arms = self.problem.arms
        by_arm = zip(arms, self.samples, strict=True)
        samples = (_add_readings(sample, readings.get(arm), issued.get(arm, sample.n)) for arm, sample in by_arm)
        # readings of pulls that were out when an entry began or ended belong to it
        entries = (
            entry._replace(
                before=_add_readings(entry.before, new, entry.before.n),
                until=entry.until and _add_readings(entry.until, new, entry.until.n),
            )
            for entry in self.judge.entries
            for new in (readings.get(arms[entry.arm]),)
        )
        return replace(self, judge=self.judge.after(tuple(samples), entries=tuple(entries)))

    def claim(self, arm: int, accuser: int, log_evidence: float, *, tolerant: bool = False) -> Claim:
        """Return the claim that an arm is not better than another, by the present readings."""
        arms, counts = self.problem.arms, tuple(s.n for s in self.samples)
        return Claim(arms[arm], arms[accuser], counts, len(self.judge.entries), log_evidence, tolerant)

    def tolerance_claims(self, others: Iterable[int]) -> tuple[Claim, ...]:
        """Return claims that no other arm beats the leader by more than the tolerance, or nothing if one might."""
        claims = []
        for i in others if self.problem.tolerance else ():
            found = self.judge.within(i).log_value
            if found < self.judge.log_threshold:
                return ()
            claims.append(self.claim(i, self.judge.leader, found, tolerant=True))
        return tuple(claims)

    def verdict(self, status: Status, best: int | None = None, alive: Iterable[int] | None = None) -> Verdict:
        """Return the verdict that leaves some arms, by default those alive."""
        arms = self.problem.arms
        ends = ((e.arm, e.before.n, (e.until or self.samples[e.arm]).n) for e in self.judge.entries)
        return Verdict(
            status=status,
            best=None if best is None else arms[best],
            candidates=tuple(arms[i] for i in (self.alive if alive is None else alive)),
            rule=self.judge.rule,
            entries=tuple(Entered(arms[i], start, end) for i, start, end in ends),
            claims=self.claims,
        )


def _add_readings(sample: "Sample", new: Told | None, n: int) -> "Sample":
    """Return the sample of the first n pulls, with those readings that answer one of them."""
    indices, values = new or Told(np.empty(0, dtype=np.intp), np.empty(0))
    early = indices < n
    indices, values = indices[early], values[early]
    if not values.size and n == sample.n:
        return sample
    if sample.tape is not None:
        return sample.place(indices, values, n)
    return sample.extend(values, pending=n - sample.answers - values.size)


class Policy(Protocol[State]):
    """The interface of every policy."""

    @property
    def patient(self) -> bool:
        """Whether `tell` needs exactly the batch of `ask`, complete and in order of issue.

        An impatient policy accepts readings in any order and counts pulls that are still out at their worst.
        """

    @property
    def alike(self) -> bool:
        """Whether all remaining arms are pulled side by side, so that changing conditions affect them equally."""

    def start(self, problem: Problem) -> State:
        """Return the state before the first pull; raise if the policy cannot serve the problem."""

    def ask(self, state: State) -> Batch | Verdict:
        """Return the next batch, or the verdict."""

    def tell(self, state: State, readings: Mapping[str, Told], issued: Mapping[str, int], /) -> State:
        """Return the state after more readings; `issued` counts the pulls handed out of each arm so far."""

    def standing(self, state: State) -> "Standing":
        """Return where the decision stands, for display."""


class Standing(NamedTuple):
    """Where a decision stands: the leader, the arms left, and the log-evidence against each arm."""

    leader: str | None
    alive: tuple[str, ...]
    against: Mapping[str, float]
    log_threshold: float
    so_far: Verdict | None = None
    """The verdict if it all ended now, with the claims made up to now."""
    times: float | None = None
    """How many times the present pulls a decision takes at this rate; None: estimate it from the evidence."""
    close: tuple[str, ...] = ()
    """Arms that would then be too close to the leader."""
    within: float = math.inf
    """How far the leader may be from the best, as a ratio, certified at all times together."""

    def share(self, arm: str) -> float:
        """Return how much of the evidence needed to reject an arm has been found, from 0 to 1."""
        if arm not in self.alive:
            return 1.0
        share = self.against.get(arm, 0.0) / self.log_threshold if self.log_threshold > 0 else 0.0
        return min(1.0, max(0.0, share))

    def pulls_left(self, pulls: Mapping[str, int], first: int) -> float:
        """Estimate how many more pulls a decision needs, if evidence keeps growing in proportion to them.

        `first` is the number of pulls of every arm before the first decision.
        """
        missing = sum(max(0, first - n) for n in pulls.values())
        if missing:
            return missing
        if self.times is not None:
            return (self.times - 1) * sum(pulls[arm] for arm in self.alive)
        against = {arm: self.against.get(arm, 0.0) for arm in self.alive if arm != self.leader}
        if min(against.values(), default=1.0) <= 0:
            return math.inf
        growth = {arm: max(0.0, self.log_threshold / evidence - 1) for arm, evidence in against.items()}
        leader = max((pulls[self.leader or arm] * more for arm, more in growth.items()), default=0.0)
        return leader + sum(pulls[arm] * more for arm, more in growth.items())


def check_compares(problem: Problem, policy: str) -> None:
    """Raise for what limits of quantiles cannot handle: other targets, a plausible range, a relative tolerance."""
    for is_wrong, what, name, value in (
        (problem.target != "quantile", "compares quantiles", "policy", problem.target),
        (problem.between is not None, "takes no plausible range", "between", problem.between),
        (problem.tolerance.relative, "takes no relative tolerance", "tolerance", str(problem.tolerance)),
    ):
        if is_wrong:
            given = policy if name == "policy" else value
            raise OutOfReach(f"policy {policy!r} {what}, but got {value}; use policy 'toptwo'", name, given)


def by_name(name: str, /, **options: Any) -> "Policy[Any]":  # noqa: ANN401 - each policy has its own
    """Return a policy, with its default options where none are given; every option is checked for its type."""
    names = ", ".join(repr(known) for known in _CLASSES if known not in _UNLISTED)
    is_known = isinstance(name, str) and name in _CLASSES
    require(is_known, "policy", name, f"be one of {names} or a policy object")
    module, _, title = _CLASSES[name].partition(".")
    kind: type[Policy[Any]] = getattr(import_module(f"truearm.policies.{module}"), title)
    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for key in options:
        require(key in known, "options", key, f"be those of policy {name!r}: {', '.join(known)}")
    return kind(**{key: from_plain(hints[key], value, f"options.{key}") for key, value in options.items()})


def definition_of(policy: "Policy[Any]") -> tuple[str, dict[str, Any]]:
    """Return the name and the options that `by_name` makes this policy from."""
    for name, kind in _CLASSES.items():
        if f"{type(policy).__module__}.{type(policy).__name__}" == f"truearm.policies.{kind}":
            return name, {field.name: getattr(policy, field.name) for field in fields(policy)}  # type: ignore[arg-type]
    msg = f"a policy of your own cannot be written as plain values, but got {policy!r}; pickle the study"
    raise InvalidArgument(msg)


def choose_policy(problem: Problem, policy: "str | Policy[Any]") -> "Policy[Any]":
    """Return the policy of a study; rounds have their own."""
    name = "paired" if problem.rounds and isinstance(policy, str) and policy == "toptwo" else policy
    made: Any = name if hasattr(name, "start") else by_name(name)
    is_wrong = problem.rounds and type(made).__name__ != "Paired"
    refuse(is_wrong, f"rounds=True has its own policy, but got policy={policy!r}; remove policy", "policy", policy)
    return cast("Policy[Any]", made)


_CLASSES = {
    "alone": "alone.Alone",
    "control": "control.AgainstControl",
    "elimination": "paper.Elimination",
    "lucb": "lucb.Lucb",
    "paired": "paired.Paired",
    "toptwo": "toptwo.TopTwo",
    "uniform": "paper.Uniform",
}
_UNLISTED = ("alone", "control", "paired")  # chosen for one arm, by `control=` and by `rounds=`
