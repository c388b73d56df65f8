"""What true readings of the selected arm will be like, from its median and deviation. Numbers in, numbers out.

Symbols: t a quantile level above or below 1/2, n readings of each of k arms, contamination eps, error probability
delta, reach (the paper's t-bar), slope constant B, median absolute deviation m2 or a bound on it, kappa. Levels
that readings exceed live here, in the families of Definitions 2 and 3; those for any law are in `curves`.
"""

from typing import NamedTuple

from truearm.bounds.arguments import Constants, check_constants
from truearm.bounds.contamination import bias, room_for_chance
from truearm.bounds.mad import check_mad_family, mad_room
from truearm.bounds.median import median_radius
from truearm.errors import OutOfReach
from truearm.problem import check_count, check_delta, check_positive, check_reach


class Quality(NamedTuple):
    """A level the selected arm's true readings exceed, and how often at least.

    `probability` holds for the pulls of either choice of constants; `printed` is the paper's
    1/2 + t - 3 delta/k, which holds for the printed number of pulls only (erratum E12).

    Examples
    --------
    >>> Quality(9.6, 0.55, 0.66).threshold
    9.6
    """

    threshold: float
    probability: float
    printed: float


def median_quantile_floor(
    t: float, *, median: float, B: float, m2: float, reach: float, mad_family: bool = False
) -> float:
    """Return a level that true readings reach with probability at least 1/2 + t, from true moments.

    Parameters
    ----------
    mad_family
        Whether the law is also in the family of Definition 3, which allows t up to 2/B.

    Examples
    --------
    >>> median_quantile_floor(0.25, median=0.5, B=4, m2=0.25, reach=0.3)
    0.25
    """
    _check_level(t, B, reach, mad_family=mad_family)
    return median - t * B * check_positive("m2", m2)  # Lemma 21


def _check_level(t: float, B: float, reach: float, *, mad_family: bool) -> None:
    check_reach(reach)
    highest = max(reach, 2 / check_positive("B", B)) if mad_family else reach
    if not 0 <= t <= highest:
        msg = f"t={t!r} must be in [0, {highest:.6g}]: beyond it the family promises nothing of the law"
        raise OutOfReach(msg)


def quality_bound(
    t: float,
    median: float,
    mad: float,
    *,
    tolerance: float,
    k: int,
    delta: float,
    eps: float,
    B: float,
    m2: float,
    reach: float,
    adversary: str,
    kappa: float | None = None,
    constants: Constants = "sharp",
) -> Quality:
    """Return what Algorithm 1 promises of its answer from that arm's empirical median and deviation.

    `kappa` is needed for the paper's constants only.

    Examples
    --------
    >>> run = dict(tolerance=0.1, k=4, delta=0.05, eps=0.05, B=4, m2=0.3, reach=0.4, adversary="prescient")
    >>> round(quality_bound(0.2, 10, 0.27, **run).threshold, 6)
    9.637158
    >>> round(quality_bound(0.2, 10, 0.27, **run, kappa=2, constants="paper").threshold, 6)
    9.256105
    """
    check_constants(constants)
    check_mad_family(B, kappa, constants)
    _check_level(t, B, reach, mad_family=False)
    room_for_chance(eps, reach, adversary)
    mad_room(eps, B, reach, adversary, "paper")  # eps < 1/B also carries the kappa-free proof: audit 1.e
    unavoidable, half = bias(eps, B, m2, adversary), check_positive("tolerance", tolerance) / 2
    loss = (1 + t * B) * (unavoidable + half)  # audit 1.e (3)
    if constants == "paper" and kappa is not None:
        loss = (1 + 4 * kappa * t * B) * half + (1 + (1 + 2 * kappa) * B * t) * unavoidable  # Thm 22
    spent = 3 * check_delta(delta)
    return Quality((median - t * B * mad) - loss, 0.5 + t - spent, 0.5 + t - spent / check_count("k", k))


def quality_threshold(
    t: float,
    median: float,
    mad: float,
    *,
    n: int,
    k: int,
    delta: float,
    eps: float,
    B: float,
    m2: float,
    reach: float,
    adversary: str,
) -> float:
    """Return a level exceeded by true readings with probability 1/2 + t, for all k arms and all t at once.

    n readings per arm, n fixed in advance; the statement as a whole fails with probability at most delta.

    Examples
    --------
    >>> run = dict(n=500, k=4, delta=0.05, eps=0.05, B=4, m2=0.3, reach=0.4, adversary="prescient")
    >>> round(quality_threshold(0.2, 10, 0.27, **run), 6)
    9.554473
    """
    check_mad_family(B, None, "sharp")
    _check_level(t, B, reach, mad_family=True)
    share = check_delta(delta) / (2 * check_count("k", k))  # log(2/share) = log(4k/delta)
    radius = median_radius(n, share, eps, adversary, reach=reach)
    return (median - t * B * mad) - (1 + t * B) * B * check_positive("m2", m2) * radius  # audit 1.e, best form
