"""One arm's readings: order statistics, counts at a cut, and what they say about the true law.

Three kinds of readings have no value to sort by. A NaN is a contaminated reading (audit 2.G): it may be
replaced by anything, so it takes the side that helps. A pending pull is asked and not yet told: it takes the
side that hurts, because what it will say may be why it is late. Infinities are ordinary readings.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm import bounds
from truearm.errors import InvalidArgument
from truearm.problem import Adversary, Contamination, Interval, check_count, check_delta, check_quantile

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Design = Literal["sequential", "fixed"]

_NONE = np.empty(0)
_LONG, _TAILS = 4096, 8  # a body so long is rewritten only when the tail is an eighth of it: copying costs most


def as_readings(readings: ArrayLike, name: str = "x") -> Floats:
    """Return readings as a one-dimensional float array, or name the first that is not a number.

    Examples
    --------
    >>> as_readings([1, 2.5])
    array([1. , 2.5])
    >>> as_readings([1, "two"])
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: x[1] must be a number, but got 'two'; use nan for a reading
    that went wrong
    """
    if isinstance(readings, np.ndarray) and readings.dtype == np.float64:
        array = readings
    else:
        array = _converted(readings, name)
    if array.ndim != 1:
        msg = f"{name} must be one-dimensional, but has shape {array.shape}; pass one arm's readings at a time"
        raise InvalidArgument(msg)
    return array


def _converted(readings: ArrayLike, name: str) -> Floats:
    try:
        items = np.asarray(readings)
    except ValueError:  # rows of different lengths
        items = np.empty(0, dtype=object)
    if items.dtype.kind in "biuf":
        return items.astype(np.float64)
    if not isinstance(readings, Iterable):
        msg = f"{name} must be a list of readings, but got {readings!r}"
        raise InvalidArgument(msg)
    return np.array([_as_reading(f"{name}[{i}]", value) for i, value in enumerate(readings)])


def _as_reading(name: str, value: object) -> float:
    if not isinstance(value, str | bytes) and hasattr(value, "__float__"):
        try:
            return float(value)
        except TypeError:  # a date, or an array inside the list
            pass
    msg = f"{name} must be a number, but got {value!r}; use nan for a reading that went wrong"
    raise InvalidArgument(msg)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """All readings of one arm, sorted.

    Parameters
    ----------
    body
        Sorted readings without NaN.
    missing
        How many readings were NaN.
    pending
        How many pulls are asked and not yet told.
    tail
        More such readings, sorted and few, that wait to be merged into a long body.

    Examples
    --------
    >>> sample = Sample.of([3.0, 1.0, float("nan"), 2.0])
    >>> sample.n, sample.values, sample.at(2)
    (4, array([1., 2., 3.]), 2.0)
    >>> sample.merged([0.5]).at(1)
    0.5
    """

    body: Floats
    missing: int = 0
    pending: int = 0
    tail: Floats = field(default_factory=lambda: _NONE, repr=False)

    @classmethod
    def of(cls, readings: ArrayLike, name: str = "x") -> "Sample":
        """Sort readings into a sample."""
        return EMPTY.merged(as_readings(readings, name))

    @property
    def values(self) -> Floats:
        """All readings that have a value, sorted."""
        return _merged(self.body, self.tail) if self.tail.size else self.body

    @property
    def size(self) -> int:
        """How many readings have a value."""
        return self.body.size + self.tail.size

    @property
    def n(self) -> int:
        """How many pulls the sample stands for."""
        return self.body.size + self.tail.size + self.missing + self.pending

    def merged(self, readings: ArrayLike, pending: int = 0) -> "Sample":
        """Return the sample with more readings, and with `pending` pulls still out."""
        new = np.asarray(readings, dtype=np.float64)
        holes = np.isnan(new)
        known = np.sort(new[~holes] if holes.any() else new)
        missing = self.missing + new.size - known.size
        tail = _merged(self.tail, known) if self.tail.size else known
        if self.body.size < _LONG or self.body.size < _TAILS * tail.size:
            return Sample(_merged(self.body, tail) if tail.size else self.body, missing, pending)
        return Sample(self.body, missing, pending, tail)

    def settled(self) -> "Sample":
        """Return the same sample without a tail, for who needs `values` more than once."""
        return Sample(self.values, self.missing, self.pending) if self.tail.size else self

    def mapped(self, change: Callable[[Floats], Floats]) -> "Sample":
        """Return the sample after a nondecreasing change of its values."""
        return Sample(change(self.values), self.missing, self.pending)

    def at(self, rank: int) -> float:
        """Return the value at a rank among the readings that have one; ranks outside are infinities."""
        if rank < 1:
            return -np.inf
        if rank > self.size:
            return np.inf
        return _at_rank(self.body, self.tail, rank) if self.tail.size else float(self.body[rank - 1])

    def between(self, ranks: tuple[int, int]) -> Interval:
        """Return the readings at a lower and an upper rank, NaN helping and pending pulls hurting."""
        low, high = ranks
        return Interval(self.at(low - self.pending), self.at(high - self.missing))

    def quantile(self, level: float) -> float:
        """Return the empirical quantile X_(ceil(q n)) of the readings that have a value, NaN if none has."""
        if not self.size:
            return np.nan
        return self.at(max(1, math.ceil(level * self.size - 1e-9)))

    def below(self, cuts: ArrayLike, *, closed: bool = False) -> Ints:
        """Return how many readings lie below each cut, at it too when closed; pending pulls count."""
        side: Literal["left", "right"] = "right" if closed else "left"
        count = self.body.searchsorted(cuts, side) + self.pending
        return count + self.tail.searchsorted(cuts, side) if self.tail.size else count

    def above(self, cuts: ArrayLike) -> Ints:
        """Return how many readings lie at or above each cut; pending pulls count."""
        return self.size + 2 * self.pending - self.below(cuts)


def _merged(body: Floats, tail: Floats) -> Floats:
    """Merge two sorted arrays in linear time."""
    merged = tail
    if body.size:
        places = body.searchsorted(tail) + np.arange(tail.size)
        merged, old = np.empty(body.size + tail.size), np.ones(body.size + tail.size, dtype=bool)
        merged[places], old[places] = tail, False
        merged[old] = body
    merged.flags.writeable = False
    return merged


def _at_rank(body: Floats, tail: Floats, rank: int) -> float:
    """Return the value at a rank of two sorted arrays together."""
    least = max(0, rank - body.size)
    most = min(rank, tail.size)
    taken = least + _first(lambda i: bool(body[rank - least - i - 1] <= tail[least + i]), most - least)
    return max(
        float(tail[taken - 1]) if taken else -np.inf, float(body[rank - taken - 1]) if rank > taken else -np.inf
    )


EMPTY = Sample(_NONE)


class Identification(NamedTuple):
    """Where a true quantile lies, and why it is not known better.

    Examples
    --------
    >>> found = identification(np.arange(1000.0), contamination=0.1)
    >>> found.interval
    Interval(low=399.0, high=600.0)
    >>> found.contamination
    Interval(low=449.0, high=550.0)
    """

    estimate: float
    """The observed quantile."""
    interval: Interval
    """Contains the true quantile with the promised probability."""
    contamination: Interval
    """What would remain of the interval with endless readings like these: an estimate, no sampling error."""

    @property
    def contamination_width(self) -> float:
        """The part of the width that no number of readings removes."""
        return min(self.contamination.width, self.interval.width)

    @property
    def sampling_width(self) -> float:
        """The part of the width that more readings remove."""
        return max(0.0, self.interval.width - self.contamination_width) if self.interval.width < np.inf else np.inf


def _eps_of(contamination: float | Contamination | None) -> tuple[float, Adversary]:
    declared = Contamination.of(contamination)
    return (0.0, Adversary.OBLIVIOUS) if declared is None else (declared.eps, declared.adversary)


def check_design(design: str) -> Design:
    """Return the design of that name.

    Examples
    --------
    >>> check_design("fixed")
    'fixed'
    """
    if design == "sequential":
        return "sequential"
    if design == "fixed":
        return "fixed"
    msg = (
        f"design must be 'sequential' or 'fixed', but got {design!r}; "
        "'fixed' is for a number of readings that was chosen before the first of them"
    )
    raise InvalidArgument(msg)


def _ranks(
    n: int, quantile: float, delta: float, *, contamination: float | Contamination | None, design: str
) -> tuple[int, int]:
    eps, adversary = _eps_of(contamination)
    if check_design(design) == "fixed":
        return bounds.quantile_ranks(n, quantile, delta, eps, adversary)
    return bounds.sequential_quantile_ranks(n, quantile, delta, eps, adversary)


def _partly_sorted(readings: Floats, ranks: list[int]) -> Sample:
    """Return a sample that is right at these ranks only, for the price of a partition."""
    missing = int(np.count_nonzero(np.isnan(readings)))
    known = readings[~np.isnan(readings)] if missing else readings
    inside = sorted({r - shift - 1 for r in ranks for shift in (0, missing) if 0 < r - shift <= known.size})
    return Sample(np.partition(known, inside) if inside else known, missing)


def identification(
    x: ArrayLike,
    *,
    quantile: float = 0.5,
    delta: float = 0.05,
    contamination: float | Contamination | None = 0.05,
    design: Design = "sequential",
) -> Identification:
    """Return the interval for a true quantile, split into contamination and sampling.

    Parameters
    ----------
    x
        Readings of one arm.
    quantile, delta
        Level of the quantile, and the probability that the interval misses it.
    contamination
        Bound on the fraction of bad readings: a number, a `Contamination`, or None for none.
    design
        "sequential" holds for all numbers of readings at once, however often one looks; "fixed" is shorter
        and holds when the number of readings was chosen in advance.

    Examples
    --------
    >>> identification([1.0, 2.0, 3.0], contamination=None).interval
    Interval(low=-inf, high=inf)
    """
    readings = as_readings(x)
    check_quantile(quantile)
    check_delta(delta)
    eps, adversary = _eps_of(contamination)
    n = readings.size
    low, high = _ranks(n, quantile, delta, contamination=contamination, design=design)
    mass_low = bounds.trusted_mass(quantile, eps, adversary)  # audit 2.A: the identified set
    mass_high = bounds.trusted_mass(1 - quantile, eps, adversary)
    inner = (int(np.ceil(mass_low * n - 1e-9)), n + 1 - int(np.ceil(mass_high * n - 1e-9)))
    middle = max(1, int(np.ceil(quantile * n - 1e-9)))
    sample = _partly_sorted(readings, [low, high, middle, *inner])
    estimate = sample.quantile(quantile) if sample.missing == 0 else Sample.of(readings).quantile(quantile)
    return Identification(estimate, sample.between((low, high)), sample.between(inner))


def quantile_interval(
    x: ArrayLike,
    *,
    quantile: float = 0.5,
    delta: float = 0.05,
    contamination: float | Contamination | None = 0.05,
    design: Design = "sequential",
) -> Interval:
    """Return an interval that contains the true quantile with probability at least 1 - delta.

    It contains the whole set of q-quantiles of the law of the true readings, for every law, with ties or
    without, whatever the contaminated readings are. Parameters as in `identification`.

    Examples
    --------
    >>> quantile_interval(np.arange(1, 101), delta=0.05, contamination=0.1, design="fixed")
    Interval(low=35.0, high=66.0)
    >>> quantile_interval(np.arange(1, 101), delta=0.05, contamination=0.1)
    Interval(low=30.0, high=71.0)
    """
    readings = as_readings(x)
    check_quantile(quantile)
    check_delta(delta)
    ranks = _ranks(readings.size, quantile, delta, contamination=contamination, design=design)
    return _partly_sorted(readings, list(ranks)).between(ranks)


def median_interval(
    x: ArrayLike,
    *,
    delta: float = 0.05,
    contamination: float | Contamination | None = 0.05,
    quantile: float = 0.5,
    design: Design = "sequential",
) -> Interval:
    """Return an interval that contains the true median with probability at least 1 - delta.

    Examples
    --------
    >>> median_interval(np.arange(1, 101), contamination=Contamination(0.1, "malicious"), design="fixed")
    Interval(low=31.0, high=70.0)
    """
    return quantile_interval(x, quantile=quantile, delta=delta, contamination=contamination, design=design)


def mad_interval(
    x: ArrayLike,
    *,
    delta: float = 0.05,
    contamination: float | Contamination | None = 0.05,
    design: Design = "sequential",
) -> Interval:
    """Return an interval that contains the true median absolute deviation with probability >= 1 - delta.

    Half of delta pays for the center, half for the spread around it (audit 2.D).

    Examples
    --------
    >>> mad_interval(np.arange(1001), contamination=0.01)
    Interval(low=220.0, high=280.5)
    """
    check_delta(delta)
    sample = Sample.of(x)
    ranks = _ranks(sample.n, 0.5, delta / 2, contamination=contamination, design=design)
    return spread(sample, ranks)


def spread(sample: Sample, ranks: tuple[int, int]) -> Interval:
    """Return the interval for the MAD whose center and spread use the same pair of median ranks.

    Examples
    --------
    >>> spread(Sample.of([0.0, 1.0, 2.0, 3.0, 4.0]), (2, 4))
    Interval(low=0.5, high=2.0)
    """
    low, high = ranks
    center = sample.between(ranks)
    return Interval(
        _least_distance(sample.values, low - sample.pending, center),
        _largest_distance(sample.values, high - sample.missing, center),
    )


def _windows(values: Floats, rank: int, center: Interval) -> tuple[Floats, Floats]:
    """Return both ends of runs of `rank` neighbors: |X - c|_(rank) = min_j max(c - a_j, b_j - c).

    The minimum for c is at a run whose middle is next to c, and middles rise with j: of all runs those suffice
    whose middles are in the center, and one more on each side.
    """
    a, b = values[: values.size - rank + 1], values[rank - 1 :]
    if not np.isfinite(values[0]) or not np.isfinite(values[-1]):
        return a, b
    low = _first(lambda j: float(a[j] / 2 + b[j] / 2) >= center.low, a.size)
    high = _first(lambda j: float(a[j] / 2 + b[j] / 2) > center.high, a.size)
    near = slice(max(low - 1, 0), high + 1)
    return a[near], b[near]


def _first(holds: Callable[[int], bool], size: int) -> int:
    """Return the first of `size` places at which a condition holds that, once true, stays so; else `size`."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def deviation(values: Floats) -> float:
    """Return the median absolute deviation of sorted values, `moments(values).m2`, without another sort.

    Examples
    --------
    >>> deviation(np.array([-2.0, 1.0, 3.0, 4.0, 10.0]))
    2.0
    """
    n = values.size
    if not n or not np.isfinite(values[0]) or not np.isfinite(values[-1]):
        return moments(values).m2
    lower, upper = float(values[(n - 1) // 2]), float(values[n // 2])
    center = lower if lower == upper else lower / 2 + upper / 2
    low, high = (_distance_at(values, rank, center) for rank in ((n - 1) // 2 + 1, n // 2 + 1))
    return low if low == high else low / 2 + high / 2


def _distance_at(values: Floats, rank: int, center: float) -> float:
    """Return the rank-th smallest distance of sorted values to a center."""
    a, b = _windows(values, rank, Interval(center, center))
    with np.errstate(over="ignore"):
        return float(np.min(np.maximum(center - a, b - center)))


def _least_distance(values: Floats, rank: int, center: Interval) -> float:
    """Return the minimum over c in the center of the rank-th smallest |X - c|."""
    if rank < 1:
        return 0.0
    if rank > values.size or center.low > center.high:
        return np.inf
    a, b = _windows(values, rank, center)
    with np.errstate(invalid="ignore", over="ignore"):
        middle = np.clip(a / 2 + b / 2, center.low, center.high)  # audit 2.D
        farthest = np.maximum(middle - a, b - middle)
    return float(np.min(np.where(np.isnan(farthest), np.inf, farthest)))


def _largest_distance(values: Floats, rank: int, center: Interval) -> float:
    """Return the maximum over c in the center of the rank-th smallest |X - c|."""
    if rank < 1 or center.low > center.high:
        return -np.inf
    if rank > values.size or center.low == -np.inf or center.high == np.inf:
        return np.inf
    a, b = _windows(values, rank, center)
    with np.errstate(invalid="ignore", over="ignore"):
        ends = [float(np.min(np.maximum(c - a, b - c))) for c in center]
        turns = a[:-1] / 2 + b[1:] / 2  # audit 2.D: where the arms of two neighboring windows meet
        heights = (b[1:] / 2 - a[:-1] / 2)[(turns > center.low) & (turns < center.high)]
    return max(*ends, float(heights.max()) if heights.size else 0.0)


class Moments(NamedTuple):
    """The robust moments of readings: median, MAD, and the MAD of the distances to the median.

    Examples
    --------
    >>> moments([3, 1, 10, 4, -2])
    Moments(m1=3.0, m2=2.0, m4=2.0)
    """

    m1: float
    m2: float
    m4: float


def moments(x: ArrayLike) -> Moments:
    """Return the empirical m1, m2 and m4 of readings; the paper's averaged median, NaN left out.

    Examples
    --------
    >>> moments([3, 1, 10, 4])
    Moments(m1=3.5, m2=1.5, m4=1.0)
    """
    readings = as_readings(x)
    known = readings[~np.isnan(readings)]
    if not known.size:
        return Moments(np.nan, np.nan, np.nan)
    m1 = _middle(known)
    distances = _distances(known, m1)
    m2 = _middle(distances)
    return Moments(m1, m2, _middle(_distances(distances, m2)))


def _distances(x: Floats, center: float) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(x == center, 0.0, np.abs(x - center))  # an infinity is at no distance from itself


def _middle(x: Floats) -> float:
    """Return the averaged median; when the middle pair is infinite on both sides, the lower one."""
    lower, upper = (x.size - 1) // 2, x.size // 2
    part = np.partition(x, (lower, upper))
    low, high = float(part[lower]), float(part[upper])
    return low if low in (high, -np.inf) else low / 2 + high / 2


@dataclass(frozen=True, slots=True, eq=False)
class QualityCurve:
    """A lower bound on P(Y >= x) for the true readings Y, valid for all x at once.

    Examples
    --------
    >>> curve = quality_curve(np.arange(1000.0), contamination=0.05, design="fixed")
    >>> round(curve(200.0), 3)
    0.749
    >>> round(curve.reached(0.5), 3)
    436.0
    """

    values: Floats
    bounds: Floats
    """bounds[r] is the bound at a point with r readings below it."""

    def __call__(self, x: float) -> float:
        """Return the bound at x."""
        return float(self.bounds[np.searchsorted(self.values, x, side="left")])

    def reached(self, share: float) -> float:
        """Return the largest x, among the readings, that at least `share` of the true readings reach."""
        rank = _first(lambda r: bool(self.bounds[r] < share), self.bounds.size) - 1  # the bounds fall
        if rank < 0:
            return -np.inf
        return float(self.values[min(rank, self.values.size - 1)]) if self.values.size else -np.inf


def quality_curve(
    x: ArrayLike,
    *,
    delta: float = 0.05,
    contamination: float | Contamination | None = 0.05,
    arms: int = 1,
    design: Design = "sequential",
) -> QualityCurve:
    """Return a lower bound on the share of true readings that reach x, for all x at once.

    Parameters
    ----------
    arms
        How many arms there were when this one was chosen; delta is split over them (audit 2.E).

    Examples
    --------
    >>> curve = quality_curve(range(500), delta=0.05, contamination=0.1, arms=10, design="fixed")
    >>> round(curve(100), 10)
    0.6969005093
    """
    check_delta(delta)
    check_count("arms", arms)
    return quality_of(Sample.of(x), delta / arms, contamination=contamination, design=design)


def quality_of(
    sample: Sample, delta: float, *, contamination: float | Contamination | None, design: Design
) -> QualityCurve:
    """Return the quality curve of a sample; NaN counts as high, a pending pull as low.

    Examples
    --------
    >>> float(quality_of(Sample.of([]), 0.05, contamination=None, design="fixed").bounds[0])
    0.0
    """
    eps, adversary = _eps_of(contamination)
    check_design(design)
    if not sample.n:
        return QualityCurve(sample.values, np.zeros(1))
    radius = (bounds.sequential_dkw_radius if design == "sequential" else bounds.dkw_radius)(
        sample.n, min(delta, 0.5)
    )
    below = (np.arange(sample.values.size + 1) + sample.pending) / sample.n
    return QualityCurve(sample.values, np.clip(bounds.survival_floor(below, radius, eps, adversary), 0.0, 1.0))
