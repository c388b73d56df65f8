"""The special functions of scipy, fetched when the first is called: fetching them takes longer than all else here.

A race has begun its first run by then. Call them as `special.betainc(...)`; importing one by name would fetch it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.special import (
        bdtr,
        betainc,
        betaincc,
        betaincinv,
        betaln,
        expit,
        lambertw,
        ndtr,
        ndtri,
        xlog1py,
        zeta,
    )

__all__ = [
    "bdtr",
    "betainc",
    "betaincc",
    "betaincinv",
    "betaln",
    "expit",
    "lambertw",
    "ndtr",
    "ndtri",
    "xlog1py",
    "zeta",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function of scipy
    """Fetch a function, and keep it here."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from scipy import special

    globals()[name] = found = getattr(special, name)
    return found
