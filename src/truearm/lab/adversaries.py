"""Attacks: what makes readings bad, with what power, and what bad readings look like.

Readings come on tapes: the n-th pull of arm i shows X_{i,n}, whatever else was pulled before (audit 1.m). A
tape joins the true readings Y, the marks D of the bad ones and their values Z: X = Y where D = 0, Z where
D = 1. Oblivious and prescient attacks strike independently of Y; a prescient one chooses Z after seeing all
of Y and D; a malicious one also chooses which readings to strike. Each attack here keeps its contract.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.bounds.contamination import as_array
from truearm.errors import InvalidArgument
from truearm.families import Array, Law, Numbers, as_given, gaussian
from truearm.problem import (
    Adversary,
    Contamination,
    check_adversary,
    check_choice,
    check_count,
    check_eps,
    check_kind,
    require,
)

if TYPE_CHECKING:
    from truearm.lab.arms import Instance

Marks: TypeAlias = NDArray[np.bool_]
Bad: TypeAlias = float | Law  # a bad reading: always this value, or drawn from this law
Spoils: TypeAlias = Literal["any", "top", "bottom"]


class Tape(NamedTuple):
    """What the pulls of one arm show, and the truth behind it."""

    readings: Array
    truth: Array
    bad: Marks


@dataclass(frozen=True)
class Observed:
    """The law of the readings of an arm under a stationary attack.

    A fraction eps of the true readings, which follow `clean`, is replaced: any, or the highest, or the lowest.
    `bad` is the value, possibly infinite, or the law of what replaces them.
    """

    clean: Law
    eps: float = 0.0
    bad: Bad = math.inf
    spoils: Spoils = "any"

    def cdf(self, x: Numbers) -> Numbers:
        """Return P(X <= x)."""
        bad = self.bad.cdf(x) if isinstance(self.bad, Law) else as_given(x, np.greater_equal(x, self.bad))
        return self._keep(self.clean.cdf(x)) + self.eps * bad

    def cdf_left(self, x: Numbers) -> Numbers:
        """Return P(X < x)."""
        bad = self.bad.cdf_left(x) if isinstance(self.bad, Law) else as_given(x, np.greater(x, self.bad))
        return self._keep(self.clean.cdf_left(x)) + self.eps * bad

    def _keep(self, level: Numbers) -> Numbers:
        if self.spoils == "any":
            return (1 - self.eps) * level
        top = self.spoils == "top"
        return as_given(level, np.minimum(level, 1 - self.eps) if top else np.maximum(level - self.eps, 0.0))


class Attack(ABC):
    """A source of bad readings; subclass it, or pass a function to `Drifting` or `Prescient`.

    An attack keeps the contract of its `power`: every reading is bad with chance eps, independently of the
    other places of its tape, and independently of the true reading unless the attack is malicious.
    """

    eps: float
    power: Adversary

    def __post_init__(self) -> None:
        check_eps(self.eps)

    @abstractmethod
    def tape(self, rng: np.random.Generator, law: Law, arm: int, n: int, *, start: int = 0) -> Tape:
        """Return the next n readings of one arm, places start to start + n - 1 of its tape.

        The true readings and the marks come from rng itself, all else from children of it, so two attacks
        with the same eps and seed spoil the same true readings.
        """

    def tapes(self, rng: np.random.Generator, laws: Sequence[Law], n: int) -> tuple[Tape, ...]:
        """Return a tape for each arm; an attack that sees all arms at once overrides this."""
        return tuple(self.tape(child, law, arm, n) for arm, (law, child) in _by_arm(laws, rng))

    def observed(self, law: Law, arm: int) -> Observed:
        """Return the law of the readings of an arm, which only stationary attacks have."""
        kind = type(self).__name__
        msg = f"{kind} is not stationary: the readings of arm {arm}, truly {law!r}, have no single law"
        raise InvalidArgument(msg)

    @property
    def contamination(self) -> Contamination:
        """The contamination to declare against this attack."""
        return Contamination(self.eps, self.power)


def _by_arm(laws: Sequence[Law], rng: np.random.Generator) -> enumerate[tuple[Law, np.random.Generator]]:
    return enumerate(zip(laws, rng.spawn(len(laws)), strict=True))


def _strike(rng: np.random.Generator, law: Law, n: int, eps: float) -> tuple[Array, Marks]:
    """Return true readings and marks that are independent of them."""
    return law.sample(rng, n), rng.random(n) < eps


def _join(truth: Array, bad: Marks, values: ArrayLike) -> Tape:
    return Tape(np.where(bad, values, truth), truth, bad)


def inner_levels(rng: np.random.Generator, law: Law, truth: Array) -> Array:
    """Return uniform levels of true readings, nondecreasing in them; atoms are split at random.

    With it a malicious attack marks exactly the fraction of readings that it may.
    """
    below, upto = law.cdf_left(truth), law.cdf(truth)
    return below + rng.random(truth.size) * (upto - below)


@dataclass(frozen=True)
class Stationary(Attack):
    """An attack that is the same at every pull.

    `bad` is a value, a law, or a tuple with one of these for each arm. `spoils` says which true readings are
    struck: "any", or if the attack is malicious "top" or "bottom"; it may be a tuple too.
    """

    eps: float
    bad: Bad | tuple[Bad, ...]
    spoils: Spoils | tuple[Spoils, ...] = "any"
    power: Adversary = Adversary.OBLIVIOUS

    def __post_init__(self) -> None:
        super().__post_init__()
        sides = self.spoils if isinstance(self.spoils, tuple) else (self.spoils,)
        for side in sides:
            check_choice("spoils", side, get_args(Spoils))
        is_blind = self.power is Adversary.MALICIOUS or all(side == "any" for side in sides)
        require(is_blind, "spoils", self.spoils, "be 'any'", "a side needs power='malicious'")

    def observed(self, law: Law, arm: int) -> Observed:
        bad = self.bad[arm] if isinstance(self.bad, tuple) else self.bad
        spoils: Spoils = self.spoils[arm] if isinstance(self.spoils, tuple) else self.spoils
        return Observed(law, self.eps, bad, spoils)

    def tape(self, rng: np.random.Generator, law: Law, arm: int, n: int, *, start: int = 0) -> Tape:  # noqa: ARG002
        seen = self.observed(law, arm)
        truth, bad = _strike(rng, law, n, self.eps)
        if seen.spoils == "top":
            bad = inner_levels(rng.spawn(1)[0], law, truth) > 1 - self.eps
        elif seen.spoils == "bottom":
            bad = inner_levels(rng.spawn(1)[0], law, truth) < self.eps
        values = seen.bad.sample(rng.spawn(1)[0], n) if isinstance(seen.bad, Law) else seen.bad
        return _join(truth, bad, values)


@dataclass(frozen=True)
class Mixture(Attack):
    """An oblivious attack whose bad readings come from one of several laws, chosen at random each time."""

    eps: float
    laws: tuple[Law, ...]
    weights: tuple[float, ...]
    power: Adversary = Adversary.OBLIVIOUS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kind("laws", self.laws, Sequence, "use a list of laws")
        weights = as_array("weights", self.weights)
        is_right = weights.shape == (len(self.laws),) and math.isclose(weights.sum(), 1) and min(weights) >= 0
        require(is_right, "weights", self.weights, f"sum to 1, one for each of {len(self.laws)} laws")

    def tape(self, rng: np.random.Generator, law: Law, arm: int, n: int, *, start: int = 0) -> Tape:  # noqa: ARG002
        for_choice, *for_values = rng.spawn(1 + len(self.laws))
        choice = for_choice.choice(len(self.laws), size=n, p=self.weights)
        values = np.stack([law.sample(child, n) for law, child in zip(self.laws, for_values, strict=True)])
        return _join(*_strike(rng, law, n, self.eps), values[choice, np.arange(n)])


@dataclass(frozen=True)
class Drifting(Attack):
    """An oblivious attack that changes with time but sees no readings.

    `path` gets the places on the tape, counted from 0, and the arm, and returns the values of bad readings.
    """

    eps: float
    path: Callable[[NDArray[np.int64], int], ArrayLike]
    power: Adversary = Adversary.OBLIVIOUS

    def tape(self, rng: np.random.Generator, law: Law, arm: int, n: int, *, start: int = 0) -> Tape:
        values = self.path(np.arange(start, start + n), arm)
        return _join(*_strike(rng, law, n, self.eps), values)


@dataclass(frozen=True)
class Prescient(Attack):
    """An attack that sees the whole tape, past and future, before it chooses the bad values.

    `choose` gets the law, the true readings, the marks and the arm, and returns a value for every place.
    """

    eps: float
    choose: Callable[[Law, Array, Marks, int], ArrayLike]
    power: Adversary = Adversary.PRESCIENT

    def tape(self, rng: np.random.Generator, law: Law, arm: int, n: int, *, start: int = 0) -> Tape:  # noqa: ARG002
        """Return the next n readings of one arm; the attack sees these n and no more."""
        truth, bad = _strike(rng, law, n, self.eps)
        return _join(truth, bad, self.choose(law, truth, bad, arm))


def amplified(law: Law, truth: Array, bad: Marks, arm: int) -> Array:  # noqa: ARG001
    """Push every bad reading to the side where chance has already put most of the good ones.

    It makes two-sided intervals miss nearly twice as often as a constant attack can (audit 2.A).
    """
    good = truth[~bad]
    above = np.count_nonzero(good > law.median) >= np.count_nonzero(good < law.median)
    return np.full(truth.size, math.inf if above else -math.inf)


@dataclass(frozen=True)
class Steering(Attack):
    """A clairvoyant attack that sees the tapes of all arms and exploits adaptive sampling.

    The rival that can look best at some place has high bad readings up to there and low ones after it, so that
    a sampler that turns away from bad arms leaves it at its peak (evidence T4). All bad readings of the other
    arms are low.
    """

    eps: float
    best: int
    power: Adversary = Adversary.PRESCIENT

    def tape(self, rng: np.random.Generator, law: Law, arm: int, n: int, *, start: int = 0) -> Tape:  # noqa: ARG002
        """Return the next n readings of one arm, as if no other rival had a higher peak."""
        tape = _join(*_strike(rng, law, n, self.eps), -math.inf)
        return tape if arm == self.best else _raise_bad(tape, _peak(tape, law)[1])

    def tapes(self, rng: np.random.Generator, laws: Sequence[Law], n: int) -> tuple[Tape, ...]:
        """Return the tapes of all arms; the attack sees all n places in advance."""
        drawn = [_join(*_strike(child, law, n, self.eps), -math.inf) for _, (law, child) in _by_arm(laws, rng)]
        peaks = {arm: _peak(drawn[arm], laws[arm]) for arm in range(len(laws)) if arm != self.best}
        champion = max(peaks, key=lambda arm: peaks[arm][0], default=self.best)
        if champion != self.best:
            drawn[champion] = _raise_bad(drawn[champion], peaks[champion][1])
        return tuple(drawn)


def _peak(tape: Tape, law: Law) -> tuple[float, int]:
    """Return how far, and up to which place, good readings and high bad ones can lift a tape above its median."""
    place = np.arange(1, tape.truth.size + 1)
    lift = (np.cumsum(tape.bad | (tape.truth >= law.median)) - place / 2) / np.sqrt(place)
    top = int(np.argmax(lift)) if place.size else -1
    return (float(lift[top]), top + 1) if place.size else (0.0, 0)


def _raise_bad(tape: Tape, until: int) -> Tape:
    values = np.where(np.arange(tape.truth.size) < until, math.inf, -math.inf)
    return _join(tape.truth, tape.bad, values)


def oblivious(eps: float, bad: Bad | tuple[Bad, ...]) -> Stationary:
    """Return the oblivious attack with these bad readings: a value, a law, or one of them for each arm."""
    return Stationary(eps, bad)


def malicious(eps: float, spoils: Spoils | tuple[Spoils, ...], bad: Bad | tuple[Bad, ...]) -> Stationary:
    """Return the malicious attack that replaces the highest or the lowest true readings."""
    return Stationary(eps, bad, spoils, Adversary.MALICIOUS)


def check_instance(instance: "Instance", attack: Attack | None = None, name: str = "attack") -> None:
    """Raise unless this is an instance, whose class is above this module, and an attack, if there is one."""
    is_instance = hasattr(instance, "effective_gaps")
    require(is_instance, "instance", instance, "be an Instance", "use one such as lab.instance('G2')")
    if attack is not None:
        check_kind(name, attack, Attack, "use one such as lab.worst(instance, 0.05)")


def benign(instance: "Instance", eps: float) -> Stationary:
    """Return the oblivious attack whose bad readings are normal around each median, ten units wide."""
    check_instance(instance)
    return oblivious(eps, tuple(gaussian(law.median, 10.0) for law in instance.arms))  # evidence section 5


def worst(instance: "Instance", eps: float, adversary: str = "oblivious") -> Stationary:
    """Return the attack that makes an instance hardest: the best arm is pushed down, all others up.

    It moves each median as far as contamination can (audit 2.A).
    """
    check_instance(instance)
    power = check_adversary(adversary)
    is_best = [arm == instance.best for arm in range(len(instance.arms))]
    bad = tuple(-math.inf if best else math.inf for best in is_best)
    if power is not Adversary.MALICIOUS:
        return Stationary(eps, bad, "any", power)
    sides: tuple[Spoils, ...] = tuple("top" if best else "bottom" for best in is_best)
    return Stationary(eps, bad, sides, power)


def steered_by_parity(rng: np.random.Generator, law: Law, eps: float, steps: int) -> Tape:
    """Return what arm 1 of 2 shows when readings are indexed by global time instead of by tapes.

    The policy pulls next the arm that the parity of its last reading names. At a bad step the attack names
    arm 1 only if the next step is bad there or the next true reading is above the median. The share of
    readings at or below the median then falls under (1 - eps)/2, and no bound holds (audit 1.m).
    """
    check_count("steps", steps)
    check_kind("law", law, Law, "use one of truearm.families")
    check_kind("rng", rng, np.random.Generator, "use numpy.random.default_rng(seed)")
    truth, bad = _strike(rng, law, steps, check_eps(eps))  # one mark per time, shared by the arms
    fair = rng.random(steps - 1) < 0.5
    named = np.where(bad[:-1], bad[1:] | (truth[1:] > law.median), fair)
    shown = np.flatnonzero(named) + 1
    return _join(truth[shown], bad[shown], math.inf)
