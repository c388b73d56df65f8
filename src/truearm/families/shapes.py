"""Five laws in standard position, from scipy.special: a call of scipy.stats takes fifty times as long.

They have the functions of a frozen law of scipy.stats, so that `truearm.families.Located` takes either.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from truearm.bounds import special

Array: TypeAlias = NDArray[np.float64]
Side = Literal["left", "right"]


class _Functions(NamedTuple):
    cdf: Callable[[Array], Array]
    ppf: Callable[[Array], Array]
    logpdf: Callable[[Array], Array]
    draw: str  # of numpy's generator


_STANDARD = {
    "gaussian": _Functions(
        special.ndtr, special.ndtri, lambda z: -z * z / 2 - math.log(2 * math.pi) / 2, "standard_normal"
    ),
    "cauchy": _Functions(
        lambda z: np.arctan2(1.0, -z) / math.pi,
        lambda p: np.where(p == 0.5, 0.0, np.sign(p - 0.5) / np.tan(math.pi * np.minimum(p, 1 - p))),
        lambda z: -np.log(math.pi * (1 + z * z)),
        "standard_cauchy",
    ),
    "laplace": _Functions(
        lambda z: np.where(z < 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2),
        lambda p: np.where(p < 0.5, np.log(2 * p), -np.log(2 - 2 * p)),
        lambda z: -np.abs(z) - math.log(2),
        "laplace",
    ),
    "logistic": _Functions(
        special.expit, special.logit, lambda z: -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z))), "logistic"
    ),
}


@dataclass(frozen=True)
class Shape:
    """The law of Z, which is "gaussian", "cauchy", "laplace" or "logistic", or with a sigma that of exp(sigma Z).

    Its density rises to one mode and then falls. It is known by name, so that it can be pickled.
    """

    name: str
    sigma: float | None = None

    def cdf(self, z: Array) -> Array:
        """Return the distribution function."""
        with np.errstate(divide="ignore"):
            return _STANDARD[self.name].cdf(z if self.sigma is None else np.log(np.maximum(z, 0.0)) / self.sigma)

    def ppf(self, p: Array) -> Array:
        """Return the quantiles at levels in [0, 1]."""
        with np.errstate(divide="ignore"):
            found = _STANDARD[self.name].ppf(p)
        return found if self.sigma is None else np.exp(self.sigma * found)

    def logpdf(self, z: Array) -> Array:
        """Return the logarithm of the density."""
        if self.sigma is None:
            return _STANDARD[self.name].logpdf(z)
        logs = np.log(np.where(z > 0, z, 1.0))
        density = _STANDARD[self.name].logpdf(logs / self.sigma) - math.log(self.sigma) - logs
        return np.where(z > 0, density, -math.inf)

    def pdf(self, z: Array) -> Array:
        """Return the density."""
        return np.exp(self.logpdf(z))

    def rvs(self, size: int, random_state: np.random.Generator) -> Array:
        """Return independent values."""
        values: Array = getattr(random_state, _STANDARD[self.name].draw)(size=size)
        return values if self.sigma is None else np.exp(self.sigma * values)
