"""A valid eps from readings that were checked at the source, to pass as `contamination=`."""

from collections.abc import Sequence
from dataclasses import dataclass

from truearm.claims.result import Result
from truearm.claims.views import show
from truearm.errors import InvalidArgument
from truearm.evidence.intervals import most_eps
from truearm.problem import (
    Adversary,
    Contamination,
    Design,
    check_adversary,
    check_count,
    check_delta,
    check_design,
)


@dataclass(frozen=True, slots=True)
class Audit:
    """An upper bound for eps from checked readings; pass it as `contamination=`.

    Examples
    --------
    >>> found = audit(59, 0, design="fixed")
    >>> round(found.eps, 4), found.contamination.error
    (0.0495, 0.05)
    >>> print(found)
    At most 4.96% of the readings are bad (95% sure): 0 of 59 checked readings were. What is certified with this
    bound is wrong with a chance of at most delta + 5%.
    """

    eps: float
    """The share of bad readings is at most this."""
    delta: float
    """The chance that it is more, over all arms."""
    checked: tuple[int, ...]
    bad: tuple[int, ...]
    """Checked readings, and bad ones among them; one number per arm if they differ."""
    arms: int
    design: Design
    adversary: Adversary = Adversary.OBLIVIOUS

    @property
    def contamination(self) -> Contamination:
        """The bound as an assumption; an error if it bounds nothing."""
        if self.eps >= 0.5:
            msg = (
                f"the audit bounds eps by {self.eps:.2g} only, and from 0.5 on nothing can be certified; "
                "check more readings, or fix their source"
            )
            raise InvalidArgument(msg)
        return Contamination(self.eps, self.adversary, error=self.delta)

    def __str__(self) -> str:
        text: str = show("audit_text", self)
        return text


def audit(
    checked: int | Sequence[int],
    bad: int | Sequence[int],
    *,
    arms: int | None = None,
    of: Result | None = None,
    delta: float = 0.05,
    design: Design = "sequential",
    adversary: str = "oblivious",
) -> Audit:
    """Return a valid upper bound for eps from readings that were checked at the source.

    The chance of a bad reading must be the same at every pull. What is certified with this eps is wrong with
    probability at most the study's delta plus this one. How the readings to check are chosen matters (extensions
    E5): from a file or pilot whose size was fixed in advance, draw them at random. From a study, which stops in
    view of its readings, flip a coin for each pull when it is issued, and check the chosen pulls in that order.

    Parameters
    ----------
    checked, bad
        The number of checked readings of each arm, and of bad ones among them; a list if arms differ.
    arms
        The number of arms; each has an equal share of delta, and the worst bound counts.
    of
        The result whose readings were checked, if there is one. It gives the number of arms, and refuses
        `design="fixed"` unless the number of its readings was fixed in advance too.
    delta
        The chance that the bound is wrong.
    design
        "fixed" if the size of the file or pilot and the number of checks were both chosen in advance;
        "sequential" is valid no matter when you stop checking.
    adversary
        What makes bad readings, as in `Contamination`.

    Examples
    --------
    >>> [round(audit(100, bad).eps, 3) for bad in (0, 1)], round(audit(100, 0, arms=5).eps, 3)
    ([0.043, 0.07], 0.065)
    """
    checks, wrong = _counts("checked", checked), _counts("bad", bad)
    lengths = {len(checks), len(wrong)} - {1}
    if arms is None:
        arms = max(lengths, default=1) if of is None else len(of.arms)
    k = check_count("arms", arms)
    if lengths - {k}:
        msg = f"checked and bad must be one number, or one for each of {k} arms, but got {checked!r} and {bad!r}"
        raise InvalidArgument(msg)
    if lengths:
        checks, wrong = (counts * (k // len(counts)) for counts in (checks, wrong))
    for n, b in zip(checks, wrong, strict=True):
        if b > n:
            msg = f"bad must not be more than checked, but got {b} of {n}"
            raise InvalidArgument(msg)
    kind, share = check_design(design), check_delta(delta) / k
    if kind == "fixed" and of is not None and of.design != "fixed":
        msg = (
            "design must be 'sequential' for readings of a study, which stops in view of them, but got 'fixed'; "
            "choose the pulls to check by a coin when they are issued, or check a file of fixed size"
        )
        raise InvalidArgument(msg)
    eps = max(most_eps(n, b, share, kind) for n, b in zip(checks, wrong, strict=True))
    return Audit(eps, delta, checks, wrong, k, kind, check_adversary(adversary))


def _counts(name: str, given: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(given, Sequence) and not isinstance(given, str) and given:
        return tuple(check_count(f"{name}[{i}]", n, least=0) for i, n in enumerate(given))
    return (check_count(name, given, least=0),)  # type: ignore[arg-type]
