"""Import scipy.special when a function is first called: the import takes longer than the start of a race.

Call functions as `special.betainc(...)`; importing one by name would import scipy at once.
"""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray


def __getattr__(name: str) -> Callable[..., NDArray[Any]]:
    """Return a function of scipy.special, and keep it here."""
    from scipy import special

    globals()[name] = found = getattr(special, name)
    return found  # type: ignore[no-any-return]
