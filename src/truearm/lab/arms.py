"""Instances: sets of arms whose truth is known, by name or by construction.

Bigger is better in the lab. An instance may have its own attack, as the constructions of the paper do.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from truearm import bounds, families
from truearm.bounds import Constants
from truearm.bounds.contamination import as_array
from truearm.bounds.lower import lifting
from truearm.families import Law
from truearm.lab.adversaries import Attack, Bad, Stationary
from truearm.problem import (
    Adversary,
    as_number,
    check_adversary,
    check_choice,
    check_count,
    check_eps,
    check_flag,
    check_kind,
    check_positive,
    check_quantile,
    require,
)


@dataclass(frozen=True)
class Instance:
    """Arms with known laws, the quantile by which they are ranked, and the attack that comes with them.

    Frozen `scipy.stats` laws are accepted too. If the quantile is not unique, its midpoint counts. With `at_least`
    the arms are ranked by their share of readings that are at least this.
    """

    name: str
    arms: tuple[Law, ...]
    quantile: float = 0.5
    attack: Attack | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        check_quantile(self.quantile)
        check_kind("arms", self.arms, Iterable, "use a list of laws")
        object.__setattr__(self, "arms", tuple(families.of(law) for law in self.arms))
        check_count("the number of arms", len(self.arms), 1)

    @property
    def values(self) -> tuple[float, ...]:
        """The true quantile of each arm, or its true share."""
        if self.at_least is not None:
            return tuple(1 - float(law.cdf_left(self.at_least)) for law in self.arms)
        ends = [(law.ppf_left(self.quantile), law.ppf_right(self.quantile)) for law in self.arms]
        return tuple(low + (high - low) / 2 for low, high in ends)

    @property
    def best(self) -> int:
        """The arm with the largest true quantile, the first of them if they tie."""
        return int(np.argmax(self.values))

    @property
    def gaps(self) -> tuple[float, ...]:
        """How far the true quantile of each arm is below the largest."""
        values = self.values
        return tuple(max(values) - value for value in values)

    def effective_gaps(self, eps: float, adversary: str) -> tuple[float, ...]:
        """Return how far every other arm is behind the best under the worst contamination (section 3)."""
        biases = [bounds.shift(law, eps, adversary) for law in self.arms]
        gaps = bounds.effective_gaps(self.values, biases).tolist()
        return tuple(gap for arm, gap in enumerate(gaps) if arm != self.best)

    def good(self, tolerance: float = 0.0) -> tuple[int, ...]:
        """Return the arms within the tolerance of the best."""
        return tuple(arm for arm, gap in enumerate(self.gaps) if gap <= tolerance)


def as_list(name: str, values: Sequence[float]) -> list[float]:
    """Return numbers as a list of floats."""
    array = as_array(name, values)
    require(array.ndim == 1, name, values, "be a list of numbers")
    return array.tolist()  # type: ignore[no-any-return]


def coins(shares: Sequence[float], *, name: str = "coins") -> Instance:
    """Return arms that succeed with these chances: their readings are at least 0 that often."""
    chances = [check_quantile(share, "share") for share in as_list("shares", shares)]
    laws = tuple(families.uniform(chance - 1, chance) for chance in chances)
    return Instance(name, laws, at_least=0.0)


def translations(law: Law, gaps: Sequence[float], *, name: str = "translations") -> Instance:
    """Return one law as the best arm and its translations by the gaps below it as the others."""
    check_kind("law", law, Law, "use one of truearm.families")
    return Instance(name, (law, *(law.affine(1.0, -gap) for gap in as_list("gaps", gaps))))


def confounded(eps: float) -> Instance:
    """Return two uniform arms 2U apart that contamination makes indistinguishable (audit 1.j).

    True readings are uniform on [-1, 1] plus c and minus c, c = eps/(1 - eps); all observed readings are
    uniform on [-1 - c, 1 + c].
    """
    c = check_eps(eps) / (1 - eps)
    return Instance(
        "confounded",
        (families.uniform(-1 + c, 1 + c), families.uniform(-1 - c, 1 - c)),
        attack=Stationary(eps, (families.uniform(-1 - c, -1 + c), families.uniform(1 - c, 1 + c))),
    )


def extreme_shift(eps: float, length: float = 1.0) -> Instance:
    """Return the uniform law whose contaminated median is off by exactly the bias U (Remark 11)."""
    high = check_positive("length", length) / (1 - check_eps(eps))
    attack = Stationary(eps, families.uniform(length, high)) if eps else None
    return Instance("extreme shift", (families.uniform(0.0, length),), attack=attack)


def malicious_extreme(eps: float, slack: float, value: float = 1.0) -> Instance:
    """Return the two-point law on which a malicious attack moves the sample median to `value` (Lemma 8).

    Readings equal to `value` have chance 1/2 + slack, so n readings have a median below it with chance at
    most exp(-2 n slack^2); slack is the a of audit 1.c, in [0, eps).
    """
    is_inside = 0 <= as_number("slack", slack, "use 0.01") < check_eps(eps)
    require(is_inside, "slack", slack, f"be in [0, eps) = [0, {eps!r})")
    law = families.discrete([0.0, value], [0.5 + eps - slack, 0.5 - eps + slack])  # audit 1.c
    attack = Stationary(eps, value, "bottom", Adversary.MALICIOUS)
    return Instance("malicious extreme", (law,), attack=attack)


def lifted(
    parameters: Sequence[float], eps: float, adversary: str = "oblivious", *, constants: Constants = "sharp"
) -> Instance:
    """Return the instance behind the paper's lower bounds: readings are smoothed Bernoulli, medians are not.

    `parameters` are those of the smoothed Bernoulli laws, the largest first; `constants` is "paper" for the
    lifting as printed, "sharp" for the repaired one (audit 1.h).
    """
    parameters = as_list("parameters", parameters)
    is_first_best = len(parameters) > 0 and max(parameters) == parameters[0]
    require(is_first_best, "parameters", parameters, "begin with the largest")
    power = check_adversary(adversary)
    lifts = [lifting(p, eps, adversary, best=arm == 0, constants=constants) for arm, p in enumerate(parameters)]
    laws = [
        families.piecewise(atoms=[(0.0, clean.zero), (1.0, clean.one)], bars=[(0.0, 1.0, clean.uniform)])
        for clean in (lift.clean for lift in lifts)
    ]
    bad: tuple[Bad, ...] = tuple(float(lift.target) for lift in lifts)
    spoils = tuple("top" if lift.target == 0 else "bottom" for lift in lifts)
    malicious = power is Adversary.MALICIOUS
    attack = Stationary(eps, bad, spoils if malicious else "any", power)  # type: ignore[arg-type]
    return Instance(f"lifted, {constants}", tuple(laws), attack=attack)


Kind = Literal["uniform", "cauchy", "normal_spread"]


def howard_ramdas(
    kind: Kind,
    quantile: float = 0.5,
    *,
    k: int = 10,
    slack: float = 0.025,
) -> Instance:
    """Return the arms of Howard and Ramdas's Figures 5 and 6.

    Arm 0 is moved up by twice the slack in quantile levels, or has twice the spread of the others; then it is
    the best only for quantiles above the median.
    """
    require(check_count("k", k, 2) <= 100_000, "k", k, "be at most 100,000")
    check_choice("kind", kind, get_args(Kind))
    p, slack = check_quantile(quantile), as_number("slack", slack, "use a quantile level such as 0.025")
    if kind == "uniform":
        first, rest = families.uniform(2 * slack, 1 + 2 * slack), families.uniform(0.0, 1.0)
    elif kind == "cauchy":
        rest = families.cauchy()
        first = rest.affine(1.0, 2 * (rest.ppf_left(p + slack) - rest.ppf_left(p)))
    else:
        first, rest = families.gaussian(0.0, 2.0), families.gaussian(0.0, 1.0)
    arms = (first, *[rest] * (k - 1))
    return Instance(f"Howard-Ramdas {kind} {p:g}", arms, p)


def schreuder(k: int, *, contaminated: bool = True) -> Instance:
    """Return the arms of Schreuder, Brunel and Dalalyan: normal, one tenth Cauchy when contaminated.

    The medians are 1 and 1 - (j/k)^0.3 for j = 1, ..., k - 1; the noise has standard deviation 1/2.
    """
    require(check_count("k", k, 2) <= 100_000, "k", k, "be at most 100,000")
    centers = [1.0, *(1 - (j / k) ** 0.3 for j in range(1, k))]
    arms = tuple(families.gaussian(center, 0.5) for center in centers)
    bad = tuple(families.cauchy(center) for center in centers)
    attack = Stationary(0.1, bad) if check_flag("contaminated", contaminated) else None
    return Instance(f"Schreuder {k}", arms, attack=attack)


def empirical(
    samples: Mapping[str, Sequence[float]], *, name: str = "empirical", quantile: float = 0.5
) -> Instance:
    """Return arms that draw from given readings with replacement."""
    check_kind("samples", samples, Mapping, "use a dict of readings by arm")
    return Instance(name, tuple(map(families.empirical, samples.values())), quantile)


def _binomial(p: float) -> Law:
    return families.discrete(range(5), [math.comb(4, s) * p**s * (1 - p) ** (4 - s) for s in range(5)])


def _gaps(first: float, last: float, count: int) -> list[float]:
    """Return places below 0, evenly from one gap to another."""
    return [-float(gap) for gap in np.linspace(first, last, count)]


# evidence section 5: G normal, C Cauchy, LN lognormal by location, D Binomial(4, p); arm 0 is best
_NAMED: dict[str, tuple[Callable[[float], Law], list[float]]] = {
    "G2": (families.gaussian, [0.0, -0.5]),
    "G2s": (families.gaussian, [0.0, -0.1]),
    "C2": (families.cauchy, [0.0, -0.6]),
    "LN2": (families.lognormal, [0.0, -0.5]),
    "D2": (_binomial, [0.75, 0.5]),
    "G5": (families.gaussian, [0.0, *[-0.5] * 4]),
    "G5s": (families.gaussian, [0.0, *[-0.2] * 4]),
    "G5w": (families.gaussian, [0.0, *[-1.0] * 4]),
    "C5": (families.cauchy, [0.0, *[-1.0] * 4]),
    "LN5": (families.lognormal, [0.0, *[-0.6] * 4]),
    "D5": (_binomial, [0.75, *[0.5] * 4]),
    "G10": (families.gaussian, [0.0, *[-0.7] * 9]),
    "G10lin": (families.gaussian, [0.0, *_gaps(0.5, 2.3, 9)]),
    "C10lin": (families.cauchy, [0.0, *_gaps(0.8, 4.0, 9)]),
    "LN10lin": (families.lognormal, [0.0, *_gaps(0.5, 2.3, 9)]),
    "D10lin": (_binomial, [0.75, *np.linspace(0.6, 0.2, 9).tolist()]),
    "G50": (families.gaussian, [0.0, *[-1.0] * 49]),
    "G50lin": (families.gaussian, [0.0, *_gaps(0.6, 4.0, 49)]),
    "C50": (families.cauchy, [0.0, *[-1.5] * 49]),
}
INSTANCES: tuple[str, ...] = tuple(_NAMED)


def instance(name: str) -> Instance:
    """Return an instance of the standard set by its name, one of `INSTANCES`."""
    is_known = isinstance(name, str) and name in _NAMED
    require(is_known, "instance", name, f"be one of {', '.join(INSTANCES)}")
    law, places = _NAMED[name]
    return Instance(name, tuple(map(law, places)))
