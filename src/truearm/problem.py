"""The vocabulary: what a user promises, asks for and receives. Standard library only, checked at birth.

Inside the house bigger is better; `goal="min"` is a sign flip and q -> 1-q where readings enter a study.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from numbers import Complex, Real
from typing import Literal, NamedTuple, Protocol, TypedDict, Unpack, cast

from truearm.errors import InvalidArgument, UnknownArgument

Design = Literal["sequential", "fixed"]
"""Whether readings may have been looked at while they grew, or their number was chosen in advance."""
Target = Literal["quantile", "share", "wins"]
"""What arms are compared by: a quantile, the share of readings in a set, or who wins more rounds."""
LEAST_LEVEL = 1e-9  # of a quantile: one that a billion readings show


class Adversary(StrEnum):
    """How much the source of the bad readings knows and controls.

    Oblivious and prescient contamination strikes independently of the true reading; the prescient one
    also sees every true reading, past and future. The malicious one chooses which readings to spoil.

    Examples
    --------
    >>> Adversary("malicious") is Adversary.MALICIOUS
    True
    """

    OBLIVIOUS = "oblivious"
    PRESCIENT = "prescient"
    MALICIOUS = "malicious"


def check_arms(arms: Iterable[str]) -> tuple[str, ...]:
    """Return the arm names as a tuple of different, non-empty strings."""
    if isinstance(arms, str):
        msg = f"arms must be a list of names, but got the single string {arms!r}; write [{arms!r}]"
        raise InvalidArgument(msg, "arms", arms)
    if not isinstance(arms, Iterable):
        msg = f"arms must be a list of names, but got {arms!r}"
        raise InvalidArgument(msg, "arms", arms)
    names = tuple(arms)
    if not names:
        msg = "arms must name at least one arm, but got none"
        raise InvalidArgument(msg, "arms", names)
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            msg = f"arms must be non-empty strings, but got {name!r}; use str(name)"
            raise InvalidArgument(msg, "arms", name)
        if any("\ud800" <= char <= "\udfff" for char in name):
            msg = (
                f"names of arms must be text that can be written, but {name!r} holds a byte or half of a letter "
                "that is none; give it another name (of a race: -n NAME)"
            )
            raise InvalidArgument(msg, "arms", name)
        if name in seen:
            msg = f"arms must have different names, but {name!r} appears twice"
            raise InvalidArgument(msg, "arms", name)
        seen.add(name)
    return names


def as_number(name: str, value: object, remedy: str, *, boolean: bool = False) -> float:
    """Return anything that is a number as a float, or say what it is: the one reader of single numbers.

    Parameters
    ----------
    boolean
        Whether True and False are numbers: readings are, arguments are not.
    """
    # numpy scalars are numbers too, without importing numpy here
    if (
        not isinstance(value, str | bytes)
        and (isinstance(value, Real) or not isinstance(value, Complex))  # numpy would drop the imaginary part
        and (boolean or not isinstance(value, bool))
        and hasattr(value, "__float__")
    ):
        try:
            number = float(value)
            if not (math.isinf(number) and value != number):  # of 10**400 in other types than int
                return number
            raise OverflowError
        except (TypeError, ValueError):  # an array of several numbers, or a date
            pass
        except OverflowError:
            msg = f"{name} is beyond the largest number, 1.8e308; {remedy}"
            raise InvalidArgument(msg, name, value) from None
    msg = f"{name} must be a number, but got {value!r:.80}; {remedy}"
    raise InvalidArgument(msg, name, value)


def check_eps(eps: float, name: str = "eps") -> float:
    """Return eps as a float in [0, 1/2)."""
    number = as_number(name, eps, "use the largest fraction of bad readings, such as 0.05")
    if not 0 <= number < 0.5:
        reason = (
            "from one half on, bad readings can move the observed median anywhere"
            if number >= 0.5
            else "it is a fraction of the readings"
        )
        percent = f"; for {number:g} percent write {number / 100:g}" if 1 <= number < 50 else ""
        msg = f"{name} must be in [0, 0.5), but got {eps!r}; {reason}{percent}"
        raise InvalidArgument(msg, name, eps)
    return number


def check_adversary(adversary: str) -> Adversary:
    """Return the adversary of that name."""
    try:
        return Adversary(adversary)
    except ValueError:
        msg = f"adversary must be 'oblivious', 'prescient' or 'malicious', but got {adversary!r}"
        raise InvalidArgument(msg, "adversary", adversary) from None


def check_delta(delta: float, name: str = "delta") -> float:
    """Return delta as a float in (0, 1)."""
    number = as_number(name, delta, "give an error probability, such as 0.05")
    if not 0 < number < 1:
        msg = f"{name} must be in (0, 1), but got {delta!r}; it is an error probability, such as 0.05"
        raise InvalidArgument(msg, name, delta)
    return number


def check_quantile(quantile: float, name: str = "quantile") -> float:
    """Return the quantile level as a float in (0, 1)."""
    number = as_number(name, quantile, "0.5 is the median")
    if not 0 < number < 1:
        msg = f"{name} must be in (0, 1), but got {quantile!r}; 0.5 is the median, 0.95 the 95th percentile"
        raise InvalidArgument(msg, name, quantile)
    if not LEAST_LEVEL <= number <= 1 - LEAST_LEVEL:
        msg = (
            f"{name} must be at least {LEAST_LEVEL:g} and at most 1 - {LEAST_LEVEL:g}, but got {quantile!r}; no "
            "number of readings shows more"
        )
        raise InvalidArgument(msg, name, quantile)
    return number


def check_reach(reach: float) -> float:
    """Return the reach (the paper's t-bar) as a float in (0, 1/2)."""
    number = as_number("reach", reach, "give quantile levels, such as 0.25")
    if not 0 < number < 0.5:
        msg = (
            f"reach must be in (0, 0.5), but got {reach!r}; it is how far from the median, in quantile "
            "levels, the distribution function is known to rise"
        )
        raise InvalidArgument(msg, "reach", reach)
    return number


def check_positive(name: str, value: float) -> float:
    """Return a finite positive float."""
    number = as_number(name, value, "give a positive number")
    if not 0 < number < math.inf:
        msg = f"{name} must be positive and finite, but got {value!r}"
        raise InvalidArgument(msg, name, value)
    return number


def check_count(name: str, value: int, least: int = 1) -> int:
    """Return an integer not below `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < least:
        msg = f"{name} must be an integer not less than {least}, but got {value!r}"
        raise InvalidArgument(msg, name, value)
    return value.__index__()


def check_design(design: str) -> Design:
    """Return the design of that name."""
    if design == "sequential":
        return "sequential"
    if design == "fixed":
        return "fixed"
    msg = (
        f"design must be 'sequential' or 'fixed', but got {design!r}; "
        "'fixed' is for a number of readings that was chosen before the first of them"
    )
    raise InvalidArgument(msg, "design", design)


def check_between(between: "tuple[float, float] | Interval | None") -> "Interval | None":
    """Return the plausible range as an interval."""
    if between is None:
        return None
    remedy = "use the lowest and the highest plausible reading, such as (0, 1000)"
    ends = tuple(between) if isinstance(between, list | tuple) else ()
    if len(ends) != 2:
        msg = f"between must be two numbers, but got {between!r:.80}; {remedy}"
        raise InvalidArgument(msg, "between", between)
    low, high = (as_number("between", end, remedy) for end in ends)
    if not low < high:
        msg = f"between must be two increasing numbers, but got ({low:g}, {high:g}); {remedy}"
        raise InvalidArgument(msg, "between", between)
    return Interval(low, high)


class Interval(NamedTuple):
    """A closed interval; an infinite end says that the readings bound nothing on that side.

    `low > high` happens only when the readings contradict the declared contamination, for instance when
    more readings are missing than eps allows.

    Examples
    --------
    >>> Interval(1.0, 2.5).width
    1.5
    """

    low: float
    high: float

    @property
    def width(self) -> float:
        """The distance from low to high, 0 for two equal infinities."""
        return 0.0 if self.low == self.high else self.high - self.low


class Pull(NamedTuple):
    """A request for one reading of one arm.

    Examples
    --------
    >>> Pull(ticket=17, arm="B").arm
    'B'
    """

    ticket: int
    arm: str


@dataclass(frozen=True, slots=True)
class Contamination:
    """An upper bound on the fraction of bad readings, and who makes them.

    Parameters
    ----------
    eps
        Largest fraction of contaminated readings that is allowed for, in [0, 1/2).
    adversary
        ``"oblivious"``, ``"prescient"`` or ``"malicious"``.
    causal
        Whether the adversary is blind to the future. None follows the paper: the oblivious adversary is
        causal, the prescient and the malicious one are not. An attacker in life is causal, which lowers
        the evidence needed (evidence T1, T4).
    error
        How likely the bound itself is wrong, where it comes from an audit: it adds to every delta.

    Examples
    --------
    >>> Contamination(0.05)
    Contamination(eps=0.05, adversary=<Adversary.OBLIVIOUS: 'oblivious'>, causal=None)
    >>> Contamination(0.02, "malicious").clairvoyant
    True
    >>> Contamination(0.02, "malicious", causal=True).clairvoyant
    False
    >>> Contamination(0.5)
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: eps must be in [0, 0.5), but got 0.5; from one half on, bad readings can
    move the observed median anywhere
    """

    eps: float
    adversary: Adversary = Adversary.OBLIVIOUS
    causal: bool | None = None
    error: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", check_eps(self.eps))
        if self.error:
            check_delta(self.error, "error")
        object.__setattr__(self, "adversary", check_adversary(self.adversary))
        if self.causal not in (None, True, False):
            msg = f"causal must be True, False or None, but got {self.causal!r}"
            raise InvalidArgument(msg, "causal", self.causal)
        object.__setattr__(self, "causal", None if self.causal is None else bool(self.causal))
        if self.adversary is Adversary.OBLIVIOUS and self.causal is False:
            msg = (
                "causal=False contradicts adversary='oblivious', whose choices are made in advance; "
                "use adversary='prescient' for one that sees the future"
            )
            raise InvalidArgument(msg, "causal", self.causal)

    @property
    def clairvoyant(self) -> bool:
        """Whether the bad readings may depend on true readings not yet taken."""
        if self.causal is None:
            return self.adversary is not Adversary.OBLIVIOUS
        return not self.causal

    @classmethod
    def of(cls, value: "float | Contamination | Bounded | None") -> "Contamination | None":
        """Read what every `contamination=` argument takes: None, a fraction, a Contamination, or an audit.

        Examples
        --------
        >>> Contamination.of(0.1).eps
        0.1
        >>> Contamination.of(None) is None
        True
        """
        if value is None or isinstance(value, Contamination):
            return value
        found = getattr(value, "contamination", None)  # an audit
        if isinstance(found, Contamination):
            return found
        return cls(check_eps(value, "contamination"))  # type: ignore[arg-type]


class Bounded(Protocol):
    """What an audit returns: it holds a bound on the bad readings."""

    @property
    def contamination(self) -> Contamination:
        """The bound."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much worse than the best an arm may be and still be a good answer.

    Absolute tolerances are in units of the readings; a relative one compares positive readings by ratio.

    Examples
    --------
    >>> Tolerance.of("2%")
    Tolerance(amount=0.02, relative=True)
    >>> Tolerance.of(0.1)
    Tolerance(amount=0.1, relative=False)
    """

    amount: float = 0.0
    relative: bool = False

    def __post_init__(self) -> None:
        number = as_number("tolerance", self.amount, "give a number such as 0.1, or use Tolerance.of('2%')")
        if not 0 <= number < math.inf:
            msg = f"tolerance must be a finite number >= 0 or a text like '2%', but got {self.amount!r}"
            raise InvalidArgument(msg, "tolerance", self.amount)
        object.__setattr__(self, "amount", number)

    @classmethod
    def of(cls, value: "float | str | Tolerance") -> "Tolerance":
        """Read what every `tolerance=` argument takes: a number, a string like '2%', or a Tolerance."""
        if isinstance(value, Tolerance):
            return value
        if not isinstance(value, str):
            return cls(value)
        try:
            number = float(value.strip().removesuffix("%"))
        except ValueError:
            msg = f"tolerance must be a number or a text like '2%', but got {value!r:.80}"
            raise InvalidArgument(msg, "tolerance", value) from None
        return cls(number / 100, relative=True) if value.strip().endswith("%") else cls(number)

    def __bool__(self) -> bool:
        return self.amount > 0


@dataclass(frozen=True, slots=True)
class Handicap:
    """An arm that is judged as if it were worse by a tolerance: only who is worse by more than that loses to it.

    Parameters
    ----------
    limit
        Where readings end, if those beyond are told as infinities: made worse beyond it, the arm's own are so too.
    """

    arm: str
    tolerance: Tolerance
    limit: float | None = None

    def __post_init__(self) -> None:
        if self.limit is not None:
            object.__setattr__(self, "limit", check_positive("limit", self.limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Regularity:
    """What the paper's own algorithms must be told of every arm (Definition 2).

    Within `reach` of the median in quantile levels, the distribution function rises with slope at least
    1/(B m2), and m2 bounds the median absolute deviation of every arm.

    Examples
    --------
    >>> Regularity(B=4.7, m2=0.7, reach=0.25).B
    4.7
    """

    B: float
    m2: float
    reach: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "B", check_positive("B", self.B))
        object.__setattr__(self, "m2", check_positive("m2", self.m2))
        object.__setattr__(self, "reach", check_reach(self.reach))


class ProblemOptions(TypedDict, total=False):
    """The arguments that say what is asked and what is assumed; every entry point takes them.

    Parameters
    ----------
    delta
        Error probability of the decision.
    contamination
        Bound on the fraction of bad readings: a number, a `Contamination`, an audit, or None for the paper's
        assumption that the contamination does not reverse the order of the arms.
    tolerance
        Also accept an arm within this distance of the best: a number, or a ratio such as "2%".
    quantile
        What is compared; 0.5 is the median.
    goal
        "max" (the default) if larger readings are better, "min" if smaller ones are.
    at_least, at_most
        Compare the share of readings that are at least, or at most, this instead; the largest share is best.
    rounds
        Measure the arms side by side and compare which arm wins more than half of the rounds (docs/rounds.md).
    between
        The lowest and the highest plausible reading. Readings outside are bad ones that eps covers, if they left
        the range for reasons unrelated to their true value (extensions E2).
    regularity
        What the paper's own policies need to know about the distributions.
    dependent_arms
        Set when readings of different arms move together.
    """

    delta: float
    contamination: "float | Contamination | Bounded | None"
    tolerance: float | str | Tolerance
    quantile: float
    goal: Literal["max", "min"] | None
    at_least: float | None
    at_most: float | None
    rounds: bool
    between: tuple[float, float] | None
    regularity: Regularity | None
    dependent_arms: bool


def check_names(options: Iterable[str], known: Iterable[str] = ProblemOptions.__annotations__) -> None:
    """Raise if an option has a name that is not known."""
    known = list(known)
    for name in options:
        if name == "missing":
            msg = "missing is no longer an argument: missing readings always count at their worst; remove it"
            raise UnknownArgument(msg, name)
        if name not in known:
            near = get_close_matches(name, known, 1)
            remedy = f"did you mean {near[0]}?" if near else f"the arguments are {', '.join(sorted(known))}"
            msg = f"{name} is an unexpected keyword argument; {remedy}"
            raise UnknownArgument(msg, name)


def fix_options(options: ProblemOptions, **fixed: object) -> ProblemOptions:
    """Return the options with some that an entry point fixes, or raise if one of them was given."""
    for name, value in fixed.items():
        if options.get(name, value) != value:
            msg = f"{name} is always {value!r} here; remove {name}={options.get(name)!r}"
            raise InvalidArgument(msg, name, options.get(name))
    return cast("ProblemOptions", {**options, **fixed})


def _goal_with_share(goal: object, name: str, limit: object) -> InvalidArgument:
    msg = f"goal={goal!r} cannot be combined with {name}={_plain(limit)}: the largest share is best; remove goal"
    return InvalidArgument(msg, "goal", goal)


def _plain(value: object) -> str:
    """Return a value as short text for a message."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_plain, value))})"
    return f"{value:g}" if isinstance(value, float) else repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is to be decided, and under which promises."""

    arms: tuple[str, ...]
    delta: float = 0.05  # the error probability of a conventional 95 % statement
    contamination: Contamination | None = Contamination(0.05)  # docs/assumptions.md, bad readings
    tolerance: Tolerance = Tolerance()
    quantile: float = 0.5
    goal: str = "max"
    regularity: Regularity | None = None
    dependent_arms: bool = False
    handicap: Handicap | None = None
    between: Interval | None = None
    """Where readings may lie; those outside are bad, for reasons unrelated to their true value (extensions E2)."""
    at_least: float | None = None
    """Compare arms by the share of readings that are at least this."""
    at_most: float | None = None
    """Compare arms by the share of readings that are at most this."""
    rounds: bool = False
    """Compare arms by who wins more than half of the rounds, in which they are measured side by side."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", check_arms(self.arms))
        object.__setattr__(self, "delta", check_delta(self.delta))
        object.__setattr__(self, "contamination", Contamination.of(self.contamination))
        object.__setattr__(self, "tolerance", Tolerance.of(self.tolerance))
        object.__setattr__(self, "quantile", check_quantile(self.quantile))
        if self.goal not in ("max", "min"):
            msg = f"goal must be 'max' or 'min', but got {self.goal!r}"
            raise InvalidArgument(msg, "goal", self.goal)
        if self.handicap is not None and self.handicap.arm not in self.arms:
            msg = f"handicap must name an arm, but got {self.handicap.arm!r}; the arms are {', '.join(self.arms)}"
            raise InvalidArgument(msg, "handicap", self.handicap.arm)
        object.__setattr__(self, "between", check_between(self.between))
        if self.between is not None and self.contamination is None:
            msg = "between needs a bound on the bad readings; use contamination=0.05, or remove between"
            raise InvalidArgument(msg, "between", tuple(self.between))
        self._check_rounds()
        self._check_share()

    def _check_rounds(self) -> None:
        if self.rounds not in (True, False):
            msg = f"rounds must be True or False, but got {self.rounds!r}"
            raise InvalidArgument(msg, "rounds", self.rounds)
        object.__setattr__(self, "rounds", bool(self.rounds))
        others = {
            "quantile": None if self.quantile == 0.5 else self.quantile,
            "at_least": self.at_least,
            "at_most": self.at_most,
            "between": self.between,
        }
        other = next((name for name, value in others.items() if value is not None), None)
        if self.rounds and other is not None:
            msg = (
                f"{other}={_plain(others[other])} cannot be combined with rounds, which compare the arms side by "
                f"side; remove {other} or rounds"
            )
            raise InvalidArgument(msg, other, others[other])
        if self.rounds and self.regularity is not None:
            msg = (
                "rounds=True needs no regularity, which is for policies 'elimination' and 'uniform'; leave it out"
            )
            raise InvalidArgument(msg, "regularity", self.regularity)

    def _check_share(self) -> None:
        for name in ("at_least", "at_most"):
            limit = getattr(self, name)
            if limit is not None:
                number = as_number(name, limit, "give the reading from which on it is a success, such as 1")
                if not math.isfinite(number):
                    msg = f"{name} must be finite, but got {limit!r}"
                    raise InvalidArgument(msg, name, limit)
                object.__setattr__(self, name, number)
        if self.target != "share":
            return
        if self.at_least is not None and self.at_most is not None:
            msg = (
                f"at_least={_plain(self.at_least)} and at_most={_plain(self.at_most)} are two targets; remove one "
                "of them"
            )
            raise InvalidArgument(msg, "at_most", self.at_most)
        name, limit = ("at_least", self.at_least) if self.at_most is None else ("at_most", self.at_most)
        if self.goal != "max":
            raise _goal_with_share(self.goal, name, limit)
        if self.quantile != 0.5:
            msg = f"quantile={self.quantile:g} and {name}={_plain(limit)} are two targets; remove one of them"
            raise InvalidArgument(msg, "quantile", self.quantile)
        if self.tolerance.relative or self.tolerance.amount >= 1:
            got = f"{100 * self.tolerance.amount:g}%" if self.tolerance.relative else f"{self.tolerance.amount:g}"
            msg = f"tolerance of a share is in points, but got {got}; write 0.02 for two points of a hundred"
            raise InvalidArgument(msg, "tolerance", got)
        if self.handicap is not None:
            msg = f"handicap is an amount of the readings, but {name}={limit:g} compares shares; use tolerance"
            raise InvalidArgument(msg, "handicap", self.handicap.arm)

    @classmethod
    def of(cls, arms: Iterable[str], *, default_goal: str = "max", **options: Unpack[ProblemOptions]) -> "Problem":
        """Return the problem that an entry point's arguments describe.

        Parameters
        ----------
        default_goal
            The goal where none is given and no share is compared.
        **options
            As in `ProblemOptions`.
        """
        check_names(options)
        share = next((name for name in ("at_least", "at_most") if options.get(name) is not None), None)
        if options.get("goal") is None:
            options["goal"] = "min" if default_goal == "min" and share is None else "max"
        elif share is not None:
            raise _goal_with_share(options["goal"], share, options.get(share))
        return cls(arms=check_arms(arms), **options)  # type: ignore[arg-type]

    @property
    def target(self) -> Target:
        """What arms are compared by."""
        if self.rounds:
            return "wins"
        return "quantile" if self.at_least is None and self.at_most is None else "share"

    @property
    def declared(self) -> Contamination:
        """The contamination, that of clean readings where it is None."""
        return self.contamination or Contamination(0.0)

    @property
    def error(self) -> float:
        """How likely what is certified is wrong: delta, and what an audit of eps adds (extensions E5)."""
        return self.delta if self.contamination is None else min(1.0, self.delta + self.contamination.error)

    @property
    def censored(self) -> float:
        """The reading of a pull that timed out: worse than every value (evidence T8)."""
        return math.inf if self.at_most is not None else -self.sign * math.inf

    @property
    def sign(self) -> float:
        """Factor that turns readings into bigger-is-better values."""
        return 1.0 if self.goal == "max" else -1.0

    @property
    def level(self) -> float:
        """The quantile level after the sign flip of `goal="min"`."""
        return self.quantile if self.goal == "max" else 1 - self.quantile
