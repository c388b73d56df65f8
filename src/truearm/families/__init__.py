"""Laws of readings with all that the theorems ask of them: quantiles, regularity constants, shapes."""

from truearm.families.laws import (
    Law,
    Located,
    Numbers,
    Piecewise,
    cauchy,
    discrete,
    empirical,
    gaussian,
    laplace,
    logistic,
    lognormal,
    of,
    piecewise,
    smoothed_bernoulli,
    uniform,
)

__all__ = [
    "Law",
    "Located",
    "Numbers",
    "Piecewise",
    "cauchy",
    "discrete",
    "empirical",
    "gaussian",
    "laplace",
    "logistic",
    "lognormal",
    "of",
    "piecewise",
    "smoothed_bernoulli",
    "uniform",
]
