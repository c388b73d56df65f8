"""scipy.special, imported when a function is first called: importing it takes longer than the start of a race.

Call functions as `special.betainc(...)`; importing one by name would import scipy at once.
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

    __all__ = ["bdtr", "betainc", "betaincc", "betaincinv", "betaln", "expit", "lambertw", "ndtr", "ndtri"]
    __all__ += ["xlog1py", "zeta"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function of scipy
    """Return a function of scipy.special, and keep it here."""
    from scipy import special

    globals()[name] = found = getattr(special, name)
    return found
