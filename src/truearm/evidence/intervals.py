"""What one arm's readings say about its true law: intervals, the quality curve, robust moments, bounds for eps.

Readings alone never bound eps from above: every law is a mixture of itself with itself, so all of it may be bad
(extensions E3). Checking some of them at the source does (extensions E5). Lower bounds are alarms (extensions E4).
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm import bounds
from truearm.errors import InvalidArgument
from truearm.evidence.levels import Trust
from truearm.evidence.sample import Floats, Sample, as_readings
from truearm.problem import (
    Adversary,
    Contamination,
    Design,
    Interval,
    check_adversary,
    check_count,
    check_delta,
    check_design,
    check_quantile,
)


class Identification(NamedTuple):
    """Where a true quantile lies, and what limits the precision."""

    estimate: float
    """The observed quantile."""
    interval: Interval
    """Contains the true quantile with probability at least 1 - delta."""
    contamination: Interval
    """What would remain of the interval with unlimited readings like these: an estimate, no sampling error."""

    @property
    def contamination_width(self) -> float:
        """The part of the width that no number of readings removes."""
        return min(self.contamination.width, self.interval.width)

    @property
    def sampling_width(self) -> float:
        """The part of the width that more readings remove."""
        return max(0.0, self.interval.width - self.contamination_width) if self.interval.width < np.inf else np.inf


def rank_pairs(
    n: int, quantile: float, delta: float, contamination: float | Contamination | None, design: Design
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the ranks around a true quantile, and those that contamination alone leaves (audit 2.A)."""
    trust = Trust.of(Contamination.of(contamination))
    low, high = trust.levels(check_quantile(quantile))
    inner = (math.ceil(low * n - 1e-9), n + 1 - math.ceil(high * n - 1e-9))
    return ranks_of(n, quantile, check_delta(delta), *trust, design=check_design(design)), inner


@lru_cache(maxsize=4096)  # many arms have equally many readings, and a page uses many contaminations
def ranks_of(
    n: int, quantile: float, delta: float, eps: float, adversary: Adversary, *, design: Design
) -> tuple[int, int]:
    """Return the ranks around a true quantile that `bounds` gives for a design."""
    ranks = bounds.quantile_ranks if design == "fixed" else bounds.sequential_quantile_ranks
    return ranks(n, quantile, delta, eps, adversary)


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
        Bound on the fraction of bad readings: a number, a `Contamination`, or None for clean readings.
    design
        "sequential" holds for all numbers of readings at once, however often you look; "fixed" is shorter
        and holds when the number of readings was chosen in advance.

    Examples
    --------
    >>> identification([1.0, 2.0, 3.0], contamination=None).interval
    Interval(low=-inf, high=inf)
    """
    sample = Sample.of(x)
    ranks, inner = rank_pairs(sample.n, quantile, delta, contamination, design)
    return Identification(sample.quantile(quantile), sample.between(ranks), sample.between(inner))


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

    >>> quantile_interval(np.arange(1, 101), delta=0.05, contamination=0.1)
    Interval(low=30.0, high=71.0)
    """
    return identification(x, quantile=quantile, delta=delta, contamination=contamination, design=design).interval


def median_interval(
    x: ArrayLike,
    *,
    delta: float = 0.05,
    contamination: float | Contamination | None = 0.05,
    quantile: float = 0.5,
    design: Design = "sequential",
) -> Interval:
    """Return an interval that contains the true median with probability at least 1 - delta.

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

    Half of delta is spent on the center, half on the spread around it (audit 2.D).

    >>> mad_interval(np.arange(1001), contamination=0.01)
    Interval(low=220.0, high=280.5)
    """
    sample = Sample.of(x)
    ranks, _ = rank_pairs(sample.n, 0.5, check_delta(delta) / 2, contamination, design)
    return spread(sample, ranks)


@dataclass(frozen=True, slots=True, eq=False)
class QualityCurve:
    """A lower bound on P(Y >= x) for the true readings Y, valid for all x at once."""

    sample: Sample
    radius: float
    eps: float
    adversary: Adversary

    @property
    def values(self) -> Floats:
        """The readings, sorted."""
        return self.sample.values

    @property
    def bounds(self) -> Floats:
        """The bound at a point with r readings below it, for each r."""
        return self._at(np.arange(self.values.size + 1))

    def __call__(self, x: float) -> float:
        """Return the bound at x."""
        return float(self._at(np.searchsorted(self.values, [x], side="left"))[0])

    def reached(self, share: float) -> float:
        """Return the largest x, among the readings, that at least `share` of the true readings reach."""
        [found] = self.values_at([share])
        return found

    def values_at(self, shares: Sequence[float]) -> list[float]:
        """Return `reached` for several shares."""
        values = self.values
        ranks = np.searchsorted(-self.bounds, -np.array(shares), "right") - 1  # the bounds fall
        return [float(values[min(r, values.size - 1)]) if values.size and r >= 0 else -np.inf for r in ranks]

    def _at(self, ranks: NDArray[np.intp]) -> Floats:
        n = self.sample.n
        if not n:
            return np.zeros(ranks.shape)
        below = (self.sample.before(ranks) + self.sample.unknown) / n
        floor: Floats = bounds.survival_floor(below, self.radius, self.eps, self.adversary)
        return np.clip(floor, 0.0, 1.0)


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
    error = check_delta(delta) / check_count("arms", arms)
    return quality_of(Sample.of(x), error, contamination=contamination, design=design)


def quality_of(
    sample: Sample, delta: float, *, contamination: float | Contamination | None, design: Design
) -> QualityCurve:
    """Return the quality curve of a sample; readings at their worst count as low (evidence T8)."""
    trust = Trust.of(Contamination.of(contamination))
    radius = bounds.sequential_dkw_radius if check_design(design) == "sequential" else bounds.dkw_radius
    return QualityCurve(sample, radius(max(1, sample.n), min(delta, 0.5)), *trust)


def spread(sample: Sample, ranks: tuple[int, int]) -> Interval:
    """Return the interval for the MAD whose center and spread use the same pair of median ranks."""
    low, high = ranks
    center = sample.between(ranks)
    return Interval(
        _least_distance(sample, low - sample.unknown, center),
        _largest_distance(sample, high - sample.outside, center),
    )


def _runs(sample: Sample, rank: int, center: Interval, *, wide: bool) -> tuple[Floats, Floats]:
    """Return both ends of runs of `rank` neighbors; `wide` runs of buckets contain at least that many readings."""
    if sample.buckets is None:
        return _windows(sample.values, rank, center)
    lows, (highs, ends, _, _) = sample.values, sample.buckets
    last = np.searchsorted(ends, np.concatenate(([0], ends[:-1])) + rank)
    first, last = np.flatnonzero(last < ends.size), last[last < ends.size]
    return (lows[first], highs[last]) if wide else (highs[first], np.maximum(lows[last], highs[first]))


def _windows(values: Floats, rank: int, center: Interval) -> tuple[Floats, Floats]:
    """Return both ends of runs of `rank` neighbors: |X - c|_(rank) = min_j max(c - a_j, b_j - c).

    The minimum for c is at a run whose middle is next to c, and middles rise with j, so only runs with middles
    in the center matter, and one more on each side. All runs would take a third of the time of an analysis.
    """
    a, b = values[: values.size - rank + 1], values[rank - 1 :]
    if not np.isfinite(values[0]) or not np.isfinite(values[-1]):
        return a, b
    low = bisect_left(range(a.size), center.low, key=lambda j: float(a[j] / 2 + b[j] / 2))
    high = bisect_right(range(a.size), center.high, key=lambda j: float(a[j] / 2 + b[j] / 2))
    near = slice(max(low - 1, 0), high + 1)
    return a[near], b[near]


def deviation(sample: Sample) -> float:
    """Return the median absolute deviation of a sample without another sort; for counts it is an estimate."""
    n, values = sample.size, sample.values
    if not n or (sample.buckets is None and not (np.isfinite(values[0]) and np.isfinite(values[-1]))):
        return moments(values).m2
    lower, upper = sample.at((n - 1) // 2 + 1), sample.at(n // 2 + 1)
    if not (np.isfinite(lower) and np.isfinite(upper)):
        return np.nan
    center = lower if lower == upper else lower / 2 + upper / 2
    ranks = (n - 1) // 2 + 1, n // 2 + 1
    low, high = (_largest_distance(sample, rank, Interval(center, center)) for rank in ranks)
    return low if low == high else low / 2 + high / 2


def _least_distance(sample: Sample, rank: int, center: Interval) -> float:
    """Return the minimum over c in the center of the rank-th smallest |X - c|."""
    if rank < 1:
        return 0.0
    if rank > sample.size or center.low > center.high:
        return np.inf
    a, b = _runs(sample, rank, center, wide=False)
    with np.errstate(invalid="ignore", over="ignore"):
        middle = np.clip(a / 2 + b / 2, center.low, center.high)  # audit 2.D
        farthest = np.maximum(middle - a, b - middle)
    return float(np.min(np.where(np.isnan(farthest), np.inf, farthest)))


def _largest_distance(sample: Sample, rank: int, center: Interval) -> float:
    """Return the maximum over c in the center of the rank-th smallest |X - c|."""
    if rank < 1 or center.low > center.high:
        return -np.inf
    if rank > sample.size or center.low == -np.inf or center.high == np.inf:
        return np.inf
    a, b = _runs(sample, rank, center, wide=True)
    with np.errstate(invalid="ignore", over="ignore"):
        ends = [float(np.min(np.maximum(c - a, b - c))) for c in center]
        turns = a[:-1] / 2 + b[1:] / 2  # audit 2.D: where the lines of two neighboring windows meet
        heights = (b[1:] / 2 - a[:-1] / 2)[(turns > center.low) & (turns < center.high)]
    return max(*ends, float(heights.max()) if heights.size else 0.0)


class Moments(NamedTuple):
    """The robust moments of readings: median, MAD, and the MAD of the distances to the median."""

    m1: float
    m2: float
    m4: float


def moments(x: ArrayLike) -> Moments:
    """Return the empirical m1, m2 and m4 of readings; with the paper's averaged median and without NaN.

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
        return np.where(x == center, 0.0, np.abs(x - center))  # inf - inf is NaN


def _middle(x: Floats) -> float:
    """Return the averaged median; when the middle pair is infinite on both sides, the lower one."""
    lower, upper = (x.size - 1) // 2, x.size // 2
    part = np.partition(x, (lower, upper))
    low, high = float(part[lower]), float(part[upper])
    return low if low in (high, -np.inf) else low / 2 + high / 2


def least_eps(x: ArrayLike, y: ArrayLike, *, delta: float = 0.001, adversary: str = "oblivious") -> float:
    """Return a lower bound for eps from two sets of readings that should be alike (extensions E4).

    Two periods of one arm, or two arms that are the same (an A/A pair): if their readings differ by more than
    chance allows, some are bad, or the arm changed. Sizes must be chosen in advance.

    Parameters
    ----------
    delta
        The chance that the bound is too high.

    Examples
    --------
    >>> same = np.arange(1000) % 100
    >>> least_eps(same, same), round(least_eps(same, np.where(np.arange(1000) % 4, same, 1000)), 3)
    (0.0, 0.121)
    """
    one, two = (np.sort(_numbers(values, name)) for values, name in ((x, "x"), (y, "y")))
    return _eps_apart(one, two, 4 / check_delta(delta), check_adversary(adversary))


def _eps_apart(one: Floats, two: Floats, odds: float, adversary: Adversary) -> float:
    """Return the least eps that explains the distance of two sorted sets of readings (extensions E4)."""
    radius = sum(math.sqrt(math.log(odds) / (2 * part.size)) for part in (one, two))
    return (0.5 if adversary is Adversary.MALICIOUS else 1.0) * max(0.0, distance(one, two) - radius)


def _numbers(values: ArrayLike, name: str) -> Floats:
    readings = as_readings(values, name)
    known = readings[~np.isnan(readings)]
    if not known.size:
        raise InvalidArgument(f"{name} must have at least one reading that is not nan")
    return known


def distance(one: Floats, two: Floats) -> float:
    """Return the largest distance between the distribution functions of two sorted sets of readings."""
    cuts = np.concatenate((one, two))
    shares = (part.searchsorted(cuts, "right") / part.size for part in (one, two))
    return float(np.abs(np.subtract(*shares)).max())


def eps_of_change(tape: Floats, delta: float, adversary: Adversary) -> float:
    """Return a lower bound for eps from one arm's readings in order, valid at any time (extensions E4).

    The first 2^j readings are compared with the next 2^j, for the largest possible j; the bound allows for all j
    together.
    """
    known = tape[~np.isnan(tape)]
    j = known.size.bit_length() - 2
    if j < 1:
        return 0.0
    half = 1 << j
    return _eps_apart(np.sort(known[:half]), np.sort(known[half : 2 * half]), 4 * j * (j + 1) / delta, adversary)
