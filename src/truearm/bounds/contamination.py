"""What contamination alone can do to a median, however many readings there are, and checks that the bounds share.

Symbols: contamination eps, quantile level q, reach (the paper's t-bar), slope constant B, median absolute
deviation m2 or a bound on it. In every formula e is `rank_shift(eps, adversary)`, what contamination does to a
quantile level, and g is `clean_share(eps, adversary)`: 1 - eps, or 1 against a malicious adversary. `constants` is
"paper" for what the paper prints, errata corrected, and "sharp" for what audit section 2 proves.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar, cast, get_args, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.bounds.search import MAX_COUNT
from truearm.errors import InvalidArgument, OutOfReach
from truearm.problem import (
    Adversary,
    Interval,
    as_text,
    check_adversary,
    check_choice,
    check_count,
    check_eps,
    check_positive,
    check_quantile,
    check_reach,
    require,
)

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Numbers = float | NDArray[Any]
First = TypeVar("First", float, NDArray[Any])  # the result has the type of the first argument
Count = TypeVar("Count", int, Counts)
Constants = Literal["sharp", "paper"]

LEVEL_SLACK = 1e-12  # rounding allowed when a quantile level computed from n is compared with the reach


def check_each(check: Callable[[Any], object], value: Numbers) -> Any:  # noqa: ANN401 - the type that came in
    """Check a number, or the two extremes of an array: every domain here is an interval."""
    try:
        array = np.asarray(value)
    except (ValueError, MemoryError):  # rows of different lengths, range(10**12)
        return check(value)
    if not array.ndim or not array.size or array.dtype.kind not in "biuf":  # the check names what is not a number
        return check(value)
    for end in (array.min(), array.max()):
        check(end.item())
    return array


def as_array(name: str, values: ArrayLike) -> Any:  # noqa: ANN401 - numbers are computed with as they came
    """Return numbers as an array of floats."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, MemoryError):
        raise InvalidArgument(f"{name} must be numbers, but got {as_text(values)}", name, values) from None


def check_positives(name: str, value: Numbers) -> Any:  # noqa: ANN401
    """Check one positive number, or all of an array."""
    return check_each(lambda v: check_positive(name, v), value)


def check_counts(name: str, value: Numbers, least: int = 1) -> Any:  # noqa: ANN401
    """Check one count, or all of an array; the square of a count must be a float too."""

    def check(count: int) -> int:
        number = check_count(name, count, least)
        need(number <= MAX_COUNT, f"{name}={as_text(count)} is too large; use at most 2^500")
        return number

    return check_each(check, value)


def check_shapes(**values: ArrayLike) -> None:
    """Raise unless arrays have shapes that broadcast."""
    shapes = [np.shape(value) for value in values.values()]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        given = " and ".join(map(str, shapes))
        msg = f"{' and '.join(values)} must have equal shapes, but got {given}; use one value for each"
        raise InvalidArgument(msg) from None


def as_arrays(**values: ArrayLike) -> list[Any]:
    """Return arrays of floats, with shapes that broadcast."""
    arrays = {name: as_array(name, value) for name, value in values.items()}
    check_shapes(**arrays)
    return [*arrays.values()]


def plain(value: Any) -> First:  # type: ignore[type-var]  # noqa: ANN401 - the caller knows which
    """Return a scalar as a Python float, and an array as it is."""
    return cast(First, float(value) if np.ndim(value) == 0 else value)


def check_constants(constants: str) -> None:
    """Raise unless constants are "sharp" or "paper"."""
    check_choice("constants", constants, get_args(Constants))


def to_count(needed: Callable[[], float], **given: float) -> int:
    """Return a number of readings, rounded up."""
    try:
        return math.ceil(needed())
    except OverflowError:
        named = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise OutOfReach(f"{named} need too many readings; use a larger {next(iter(given))}") from None


def need(condition: object, message: str) -> None:
    """Raise unless a condition of a theorem holds."""
    if not condition:
        raise OutOfReach(message)


def is_malicious(adversary: str) -> bool:
    """Return True if the adversary also chooses which readings are bad; only this matters to the bounds."""
    return check_adversary(adversary) is Adversary.MALICIOUS


_ROUNDING = 1e-12  # of a mass


@runtime_checkable
class HasQuantiles(Protocol):
    """What `shift` needs from a law: its left and right quantiles and its median set."""

    @property
    def m1(self) -> Interval:
        """The whole median set."""

    def ppf_left(self, p: float, /) -> float:
        """Return inf{x: F(x) >= p}."""

    def ppf_right(self, p: float, /) -> float:
        """Return inf{x: F(x) > p}."""


def _check_law(law: HasQuantiles) -> None:
    remedy = "use one of truearm.families, such as gaussian(0, 1)"
    require(isinstance(law, HasQuantiles), "law", law, "be a law", remedy)


def rank_shift(eps: First, adversary: str) -> First:
    """Return how far, in quantile levels, contamination can move a median: e.

    >>> rank_shift(0.2, "prescient"), rank_shift(0.2, "malicious")
    (0.125, 0.2)
    """
    fraction = check_each(check_eps, eps)
    return plain(fraction if is_malicious(adversary) else fraction / (2 * (1 - fraction)))  # Lemmas 1 and 7


def max_contamination(reach: First, adversary: str) -> First:
    """Return the eps below which the median of a law known up to that reach can be bounded.

    >>> max_contamination(0.25, "oblivious")
    0.3333333333333333
    """
    t = check_each(check_reach, reach)
    return plain(t if is_malicious(adversary) else 2 * t / (1 + 2 * t))  # eps_max, section 4.1


def clean_share(eps: Numbers, adversary: str) -> Numbers:
    """Return the share of readings that only chance affects: g."""
    return 1.0 if is_malicious(adversary) else 1 - eps  # g of audit, notation


def room_for_chance(eps: float, reach: float, adversary: str) -> float:
    """Return reach - e, the quantile levels left for chance; raise OutOfReach if it is not positive."""
    check_reach(reach)
    e = rank_shift(check_eps(eps), adversary)
    need(
        reach > e,
        f"eps={eps!r} is too large for reach={reach!r}: eps < {max_contamination(reach, adversary):.6g} fails "
        f"against this adversary; lower eps, or show that the reach exceeds {e:.6g}",
    )
    return reach - e


def extreme_medians(law: HasQuantiles, eps: float, adversary: str) -> Interval:
    """Return the lowest and highest median that contamination can give to readings of a law.

    >>> from truearm import families
    >>> extreme_medians(families.uniform(0.0, 1.0), 0.2, "prescient")
    Interval(low=0.375, high=0.625)
    """
    _check_law(law)
    e = rank_shift(check_eps(eps), adversary)
    return Interval(float(law.ppf_left(0.5 - e)), float(law.ppf_right(0.5 + e)))  # Lemma 1; audit 2.B


def shift(law: HasQuantiles, eps: float, adversary: str) -> float:
    """Return exactly how far contamination can move the median of a law.

    If the law has several medians, the one farthest away counts.

    >>> from truearm import families
    >>> round(shift(families.gaussian(0.0, 1.0), 0.1, "malicious"), 6)
    0.253347
    """
    extreme = extreme_medians(law, eps, adversary)
    return max(extreme.high - law.m1.low, law.m1.high - extreme.low)  # Lemma 1, Cor. 5


def trusted_mass(q: float, eps: float, adversary: str) -> float:
    """Return the least chance that a reading is clean and at most the true q-quantile.

    >>> trusted_mass(0.5, 0.1, "oblivious"), trusted_mass(0.5, 0.1, "malicious")
    (0.45, 0.4)
    """
    check_quantile(q)
    check_eps(eps)
    return remaining_mass(q, eps) if is_malicious(adversary) else (1 - eps) * q  # audit 2.A


def remaining_mass(mass: float, eps: float) -> float:
    """Return what a malicious adversary leaves of a mass, 0 if only a rounding error is left."""
    left = mass - eps
    return left if abs(left) > _ROUNDING else 0.0  # a smaller level is valid too


def identified_interval(law: HasQuantiles, q: float, eps: float, adversary: str) -> Interval:
    """Return all true q-quantiles that explain an observed law, as unlimited readings would show it.

    >>> from truearm import families
    >>> identified_interval(families.uniform(-1.0, 1.0), 0.5, 0.1, "prescient")
    Interval(low=-0.09999999999999998, high=0.10000000000000009)
    """
    _check_law(law)
    low = trusted_mass(q, eps, adversary)
    high = 1 - trusted_mass(1 - q, eps, adversary)  # (1-eps) q + eps, or q + eps
    return Interval(
        float(law.ppf_left(low)) if low > 0 else -math.inf,
        float(law.ppf_right(high)) if high < 1 else math.inf,
    )  # audit 2.A


def bias(eps: First, B: Numbers, m2: Numbers, adversary: str) -> First:
    """Return U, the error of the median that no number of readings removes.

    >>> round(bias(0.1, 4, 0.25, "prescient"), 6), bias(0.1, 4, 0.25, "malicious")
    (0.055556, 0.1)
    """
    slope, deviation, e = check_positives("B", B), check_positives("m2", m2), rank_shift(eps, adversary)
    check_shapes(eps=e, B=slope, m2=deviation)
    return plain(slope * deviation * e)  # Cor. 10, Cor. 13
