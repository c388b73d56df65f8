"""What one arm's readings say about its true law: intervals of quantiles and MADs, and the quality curve."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm import bounds
from truearm.evidence.moments import spread
from truearm.evidence.sample import Sample
from truearm.problem import (
    Adversary,
    Contamination,
    Design,
    Interval,
    check_count,
    check_delta,
    check_design,
    check_quantile,
)

Floats = NDArray[np.float64]


class Identification(NamedTuple):
    """Where a true quantile lies, and why it is not known better."""

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


def _ranks(
    n: int, quantile: float, delta: float, *, contamination: float | Contamination | None, design: str
) -> tuple[int, int]:
    return ranks_of(n, quantile, delta, *_eps_of(contamination), design=check_design(design))


@lru_cache(maxsize=4096)  # many arms have the same number of readings, and a page asks at many contaminations
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
        Bound on the fraction of bad readings: a number, a `Contamination`, or None for none.
    design
        "sequential" holds for all numbers of readings at once, however often one looks; "fixed" is shorter
        and holds when the number of readings was chosen in advance.

    Examples
    --------
    >>> identification([1.0, 2.0, 3.0], contamination=None).interval
    Interval(low=-inf, high=inf)
    """
    check_quantile(quantile)
    check_delta(delta)
    sample, (eps, adversary) = Sample.of(x), _eps_of(contamination)
    n = sample.n
    ranks = _ranks(n, quantile, delta, contamination=contamination, design=design)
    mass_low = bounds.trusted_mass(quantile, eps, adversary)  # audit 2.A: the identified set
    mass_high = bounds.trusted_mass(1 - quantile, eps, adversary)
    inner = (int(np.ceil(mass_low * n - 1e-9)), n + 1 - int(np.ceil(mass_high * n - 1e-9)))
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

    Examples
    --------
    >>> quantile_interval(np.arange(1, 101), delta=0.05, contamination=0.1, design="fixed")
    Interval(low=35.0, high=66.0)
    >>> quantile_interval(np.arange(1, 101), delta=0.05, contamination=0.1)
    Interval(low=30.0, high=71.0)
    """
    check_quantile(quantile)
    check_delta(delta)
    sample = Sample.of(x)
    return sample.between(_ranks(sample.n, quantile, delta, contamination=contamination, design=design))


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
        [found] = self.reached_each([share])
        return found

    def reached_each(self, shares: Sequence[float]) -> list[float]:
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
    check_delta(delta)
    check_count("arms", arms)
    sample = Sample.of(x)
    return quality_of(sample, delta / arms, contamination=contamination, design=design)


def quality_of(
    sample: Sample, delta: float, *, contamination: float | Contamination | None, design: Design
) -> QualityCurve:
    """Return the quality curve of a sample; readings at their worst count as low (evidence T8)."""
    eps, adversary = _eps_of(contamination)
    check_design(design)
    radius = bounds.sequential_dkw_radius if design == "sequential" else bounds.dkw_radius
    return QualityCurve(sample, radius(max(1, sample.n), min(delta, 0.5)), eps, adversary)
