"""An audit: a valid eps from readings that were checked at the source, as a value that can be given on."""

from collections.abc import Sequence
from dataclasses import dataclass

from truearm.errors import InvalidArgument
from truearm.evidence.audit import most_eps
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
    """What checked readings say of eps; may be given as `contamination=`.

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
    """At most so many readings are bad."""
    delta: float
    """The chance that more are, over all arms."""
    checked: tuple[int, ...]
    bad: tuple[int, ...]
    """Checked readings, and bad ones among them; one number per arm if they differ."""
    arms: int
    design: Design
    adversary: Adversary = Adversary.OBLIVIOUS

    @property
    def contamination(self) -> Contamination:
        """The bound as a promise, or an error that says what to do if it bounds nothing."""
        if self.eps >= 0.5:
            msg = (
                f"the audit bounds eps by {self.eps:.2g} only, and from 0.5 on nothing can be certified; "
                "check more readings, or correct their source"
            )
            raise InvalidArgument(msg)
        return Contamination(self.eps, self.adversary, error=self.delta)

    def __str__(self) -> str:
        from truearm.claims.answers import audited

        return audited(self)


def audit(
    checked: int | Sequence[int],
    bad: int | Sequence[int],
    *,
    arms: int | None = None,
    delta: float = 0.05,
    design: Design = "sequential",
    adversary: str = "oblivious",
) -> Audit:
    """Return a valid bound for eps from readings that were checked at the source.

    Which readings are checked must have been drawn at random after they were recorded, and the chance of a bad
    reading must be the same at every pull. What is certified with this eps is then wrong with probability at most
    the study's delta plus this one.

    Parameters
    ----------
    checked, bad
        How many readings of each arm were checked, and how many of them were bad; a list if arms differ.
    arms
        How many arms were checked so; each has its share of delta, and the worst bound counts.
    delta
        The chance that the bound is wrong.
    design
        "fixed" if the number of checks was chosen in advance; "sequential" holds also if you stop when you like.
    adversary
        Who makes bad readings, as in `Contamination`.

    Examples
    --------
    >>> [round(audit(100, bad).eps, 3) for bad in (0, 1)], round(audit(100, 0, arms=5).eps, 3)
    ([0.043, 0.07], 0.065)
    """
    checks, wrong = _counts("checked", checked), _counts("bad", bad)
    lengths = {len(checks), len(wrong)} - {1}
    k = check_count("arms", max(lengths, default=1) if arms is None else arms)
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
    eps = max(most_eps(n, b, share, kind) for n, b in zip(checks, wrong, strict=True))
    return Audit(eps, delta, checks, wrong, k, kind, check_adversary(adversary))


def _counts(name: str, given: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(given, Sequence) and not isinstance(given, str) and given:
        return tuple(check_count(f"{name}[{i}]", n, least=0) for i, n in enumerate(given))
    return (check_count(name, given, least=0),)  # type: ignore[arg-type]
