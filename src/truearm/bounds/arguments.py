"""What every bound asks of its arguments, one number or an array of them, and the types the bounds share.

Symbols: `constants` is "paper" for what the paper prints, errata corrected, and "sharp" for what audit section 2
proves. Only checks and conversions that several of the bounds need may live here, and no formula.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truearm.errors import InvalidArgument
from truearm.problem import Adversary, check_adversary, check_count, check_positive

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Numbers = float | NDArray[Any]
Constants = Literal["sharp", "paper"]

LEVEL_SLACK = 1e-12  # rounding allowed when a quantile level computed from n is compared with the reach


def check_each(check: Callable[[Any], object], value: Numbers) -> Any:  # noqa: ANN401 - what came in goes out
    """Check a number, or the two extremes of an array: every domain here is an interval."""
    if np.ndim(value) == 0:
        return check(value)
    array = np.asarray(value)
    if array.size:
        check(array.min().item())
        check(array.max().item())
    return array


def check_positives(name: str, value: Numbers) -> Any:  # noqa: ANN401
    """Check one positive number, or all of an array."""
    return check_each(lambda v: check_positive(name, v), value)


def check_counts(name: str, value: Numbers, least: int = 1) -> Any:  # noqa: ANN401
    """Check one count, or all of an array."""
    return check_each(lambda v: check_count(name, v, least), value)


def plain(value: Numbers) -> Numbers:
    """Return a number as a float of Python's own, and an array as it is."""
    return float(value) if np.ndim(value) == 0 else value


def check_constants(constants: str) -> None:
    """Refuse constants other than the paper's and the sharp ones."""
    if constants not in ("sharp", "paper"):
        msg = f"constants must be 'sharp' or 'paper', but got {constants!r}"
        raise InvalidArgument(msg)


def is_malicious(adversary: str) -> bool:
    """Tell whether the adversary also chooses which readings it spoils; the bounds know only this difference."""
    return check_adversary(adversary) is Adversary.MALICIOUS
