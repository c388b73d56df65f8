"""How much the paper's algorithms pull, and how good the selected arm is.

Symbols: k arms, n readings of each, round r, contamination eps, error probability delta, reach (the paper's
t-bar), slope constant B, median absolute deviation m2 or a bound on it; U is `contamination.bias`, p a median.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from truearm.bounds.contamination import (
    Constants,
    First,
    Floats,
    as_array,
    as_arrays,
    bias,
    check_constants,
    check_counts,
    need,
    plain,
    room_for_chance,
    to_count,
)
from truearm.bounds.median import (
    check_mad_family,
    mad_room,
    median_chance,
    median_error,
    median_radius,
    median_sample_size,
)
from truearm.bounds.search import first_count
from truearm.problem import (
    as_number,
    check_choice,
    check_count,
    check_delta,
    check_flag,
    check_positive,
    check_reach,
    require,
)


def uniform_sample_size(
    k: int,
    tolerance: float,
    delta: float,
    *,
    eps: float,
    B: float,
    m2: float,
    reach: float,
    adversary: str,
    constants: Constants = "sharp",
) -> int:
    """Return the pulls of each arm after which the best empirical median is good enough (Algorithm 1).

    With probability 1 - delta the arm with the largest empirical median has an effective gap of at most
    `tolerance`; its true median is then within `selection_gap` of the best one.

    >>> uniform_sample_size(5, 0.2, 0.1, eps=0.1, B=4, m2=0.5, reach=0.3, adversary="prescient")
    1138
    """
    half, share = check_positive("tolerance", tolerance) / 2, check_delta(delta) / check_count("k", k)
    promise = {"eps": eps, "B": B, "m2": m2, "reach": reach}
    return median_sample_size(half, share, **promise, adversary=adversary, constants=constants)  # Thm 2, Thm 14


def round_delta(delta: float, k: int, r: First) -> First:
    """Return the error probability spent on one arm in round r; over k arms and all rounds it sums to delta.

    >>> round(round_delta(0.1, 5, 1), 6)
    0.012159
    """
    spent = 6 * check_delta(delta) / (math.pi**2 * check_count("k", k))
    return plain(spent / check_counts("r", r) ** 2.0)  # Alg. 3


def elimination_constant(eps: float, reach: float, adversary: str) -> float:
    """Return the constant N of Algorithm 3, which depends on the reach.

    >>> round(elimination_constant(0.1, 0.4, "malicious"), 6)
    22.222222
    """
    return 2 / room_for_chance(eps, reach, adversary) ** 2  # Alg. 3


@dataclass(frozen=True, slots=True)
class Schedule:
    """How many pulls of each surviving arm Algorithm 3 makes."""

    k: int
    delta: float
    N: float
    constants: Constants

    @property
    def initial(self) -> int:
        """Pulls before the first round."""
        if self.constants == "sharp":
            return 0
        return math.ceil(self.N * math.log(math.pi**2 * self.k / (2 * self.delta)))  # Alg. 3

    def per_round(self, r: int) -> int:
        """Return the pulls of round r = 1, 2, ..."""
        if self.constants == "sharp":
            return self.total(r) - (self.total(r - 1) if r > 1 else 0)
        return 1 + math.ceil(2 * self.N * math.log1p(1 / check_count("r", r)))  # Alg. 3

    def total(self, r: int) -> int:
        """Return all pulls up to the end of round r."""
        if self.constants == "sharp":
            chance = self.N * math.log(3 / round_delta(self.delta, self.k, r))
            return math.ceil(max(r, chance))  # audit 1.k
        settled = math.ceil(2 * self.N) + 1  # from here on 2 N log(1 + 1/r) < 1: two pulls in each round
        rounds = np.arange(1, min(check_count("r", r), settled) + 1)
        first = self.initial + int(np.sum(1 + np.ceil(2 * self.N * np.log1p(1 / rounds))))  # Alg. 3
        return first + 2 * max(0, r - settled)


def elimination_schedule(
    k: int, delta: float, eps: float, reach: float, adversary: str, *, constants: Constants = "paper"
) -> Schedule:
    """Return the pulls of Algorithm 3, initial and per round.

    Either choice of constants justifies `elimination_radius`. The default is the algorithm as printed.

    >>> schedule = elimination_schedule(5, 0.1, 0.1, 0.4, "prescient")
    >>> schedule.initial, [schedule.per_round(r) for r in range(1, 7)], schedule.total(6)
    (93, [25, 15, 11, 9, 8, 7], 168)
    """
    check_constants(constants)
    N = elimination_constant(eps, reach, adversary)
    return Schedule(check_count("k", k), check_delta(delta), N, constants)


def elimination_radius(r: First, k: int, delta: float, B: float, m2: float) -> First:
    """Return alpha_r of Algorithm 3: in round r every surviving median is within U + alpha_r.

    B is squared, as the proof needs and the caption omits (erratum E1).

    >>> round(elimination_radius(1, 5, 0.1, 4, 0.25), 6)
    3.319137
    """
    slope, share = check_positive("B", B) * check_positive("m2", m2), round_delta(delta, k, r)
    need(np.all(np.asarray(share) > 0), f"delta={delta!r} leaves nothing for so late a round; use a larger delta")
    return plain(slope * np.sqrt(2 * np.log(3 / share) / r))  # Alg. 3, erratum E1


def counted_elimination_radius(
    r: int, n: int, k: int, *, delta: float, eps: float, B: float, m2: float, reach: float, adversary: str
) -> float:
    """Return alpha_r from the actual number n of readings of each arm in round r.

    >>> given = dict(delta=0.1, eps=0.1, B=4, m2=0.25, reach=0.4, adversary="prescient")
    >>> round(counted_elimination_radius(6, 168, 5, **given), 6)
    0.178652
    """
    error = median_error(n, round_delta(delta, k, r), eps=eps, B=B, m2=m2, reach=reach, adversary=adversary)
    return error - bias(eps, B, m2, adversary)  # audit 1.k


def early_stop_round(
    tolerance: float, k: int, delta: float, B: float, m2: float, *, survivor: Literal["argmax", "any"] = "argmax"
) -> int:
    """Return the first round of Algorithm 3 whose answer has an effective gap of at most `tolerance`.

    The answer is the survivor with the largest median ("argmax") or "any" of them; the latter is also the round by
    which an arm with an effective gap above `tolerance` has been eliminated.

    >>> early_stop_round(0.5, 5, 0.1, 4, 0.25), early_stop_round(0.5, 5, 0.1, 4, 0.25, survivor="any")
    (584, 2731)
    """
    check_choice("survivor", survivor, ("argmax", "any"))
    check_count("k", k, least=2)  # with one arm alpha_r need not fall, and nothing is to be decided
    radius = check_positive("tolerance", tolerance) / (2 if survivor == "argmax" else 4)  # audit 1.l
    return first_count(lambda r: elimination_radius(r, k, delta, B, m2) <= radius)


def elimination_sample_size(
    gap: float, k: int, delta: float, *, eps: float, B: float, m2: float, reach: float, adversary: str
) -> int:
    """Return the readings per arm after which `elimination_ranks` exclude an arm with that effective gap.

    >>> elimination_sample_size(0.5, 5, 0.1, eps=0.1, B=4, m2=0.25, reach=0.4, adversary="prescient")
    182
    """
    share = check_delta(delta) / check_count("k", k)
    room = room_for_chance(eps, reach, adversary)
    chance = 4 * float(median_chance(share, eps, adversary, "sharp"))  # (2a/g)^2 n, a at delta/k
    slope = check_positive("B", B) * check_positive("m2", m2)
    check_positive("gap", gap)
    least = chance / room**2
    # audit 2.B (iv): strictly above the first
    return to_count(lambda: max(math.floor(chance * (2 * slope / gap) ** 2) + 1, least), gap=gap, B=B, m2=m2)


def effective_gaps(medians: ArrayLike, biases: ArrayLike) -> Floats:
    """Return (p* - U*) - (p_i + U_i) for every arm; the best arm's own entry is -2 U*.

    >>> effective_gaps([1.0, 0.5], [0.125, 0.125])
    array([-0.25,  0.25])
    """
    p, u = np.broadcast_arrays(*as_arrays(medians=medians, biases=biases))
    is_right = p.ndim == 1 and p.size > 0 and np.all(np.isfinite(p)) and np.all(u >= 0)
    require(is_right, "medians and biases", (medians, biases), "be finite medians and biases >= 0, one per arm")
    best = int(np.argmax(p))
    return np.asarray((p[best] - u[best]) - (p + u))  # section 3


def selection_gap(tolerance: float, bias_best: float, bias_selected: float) -> float:
    """Return how far the selected true median can be below the best when its effective gap is in tolerance.

    The paper's definition allows one bias; two are needed (erratum E3).

    >>> selection_gap(0.25, 0.125, 0.125)
    0.5
    """
    terms = {"tolerance": tolerance, "bias_best": bias_best, "bias_selected": bias_selected}
    amount, best, selected = (as_number(name, value, "use a number") for name, value in terms.items())
    return amount + best + selected  # erratum E3, audit 1.j


class Quality(NamedTuple):
    """A level the selected arm's true readings exceed, and how often at least.

    `probability` holds for the pulls of either choice of constants; `printed` is the paper's
    1/2 + t - 3 delta/k, which holds for the printed number of pulls only (erratum E12).
    """

    threshold: float
    probability: float
    printed: float


def median_quantile_floor(
    t: float, *, median: float, B: float, m2: float, reach: float, mad_family: bool = False
) -> float:
    """Return a level that true readings reach with probability at least 1/2 + t, from true moments.

    With `mad_family` the law is also in the family of Definition 3, which allows t up to 2/B.

    >>> median_quantile_floor(0.25, median=0.5, B=4, m2=0.25, reach=0.3)
    0.25
    """
    _check_level(t, B, reach, mad_family=mad_family)
    return plain(as_array("median", median) - t * B * check_positive("m2", m2))  # Lemma 21


def _check_level(t: float, B: float, reach: float, *, mad_family: bool) -> None:
    as_number("t", t, "use a quantile level above the median, such as 0.1")
    check_reach(reach)
    slope = check_positive("B", B)
    highest = max(reach, 2 / slope) if check_flag("mad_family", mad_family) else reach
    need(0 <= t <= highest, f"t={t!r} must be in [0, {highest:.6g}]: the family has no bound beyond it")


def quality_bound(
    t: float,
    median: float,
    mad: float,
    *,
    tolerance: float,
    k: int,
    delta: float,
    eps: float,
    B: float,
    m2: float,
    reach: float,
    adversary: str,
    kappa: float | None = None,
    constants: Constants = "sharp",
) -> Quality:
    """Return what Algorithm 1 guarantees for its answer, from that arm's empirical median and deviation.

    `kappa` is needed for the paper's constants only.

    >>> run = dict(tolerance=0.1, k=4, delta=0.05, eps=0.05, B=4, m2=0.3, reach=0.4, adversary="prescient")
    >>> round(quality_bound(0.2, 10, 0.27, **run).threshold, 6)
    9.637158
    """
    check_mad_family(B, kappa, constants)
    median, mad = as_arrays(median=median, mad=mad)
    _check_level(t, B, reach, mad_family=False)
    room_for_chance(eps, reach, adversary)
    mad_room(eps, B, reach, adversary, "paper")  # the kappa-free proof also needs eps < 1/B: audit 1.e
    unavoidable, half = bias(eps, B, m2, adversary), check_positive("tolerance", tolerance) / 2
    loss = (1 + t * B) * (unavoidable + half)  # audit 1.e (3)
    if constants == "paper" and kappa is not None:
        loss = (1 + 4 * kappa * t * B) * half + (1 + (1 + 2 * kappa) * B * t) * unavoidable  # Thm 22
    spent = 3 * check_delta(delta)
    return Quality(plain((median - t * B * mad) - loss), 0.5 + t - spent, 0.5 + t - spent / check_count("k", k))


def quality_threshold(
    t: float,
    median: float,
    mad: float,
    *,
    n: int,
    k: int,
    delta: float,
    eps: float,
    B: float,
    m2: float,
    reach: float,
    adversary: str,
) -> float:
    """Return a level exceeded by true readings with probability 1/2 + t, for all k arms and all t at once.

    n readings per arm, n fixed in advance; the statement as a whole fails with probability at most delta.

    >>> run = dict(n=500, k=4, delta=0.05, eps=0.05, B=4, m2=0.3, reach=0.4, adversary="prescient")
    >>> round(quality_threshold(0.2, 10, 0.27, **run), 6)
    9.554473
    """
    check_mad_family(B, None, "sharp")
    median, mad = as_arrays(median=median, mad=mad)
    _check_level(t, B, reach, mad_family=True)
    share = check_delta(delta) / (2 * check_count("k", k))  # log(2/share) = log(4k/delta)
    radius = median_radius(n, share, eps, adversary, reach=reach)
    loss = (1 + t * B) * B * check_positive("m2", m2) * radius  # audit 1.e, best form
    return plain((median - t * B * mad) - loss)
