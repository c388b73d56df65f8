"""What is asked and what is assumed: arms, target, goal, tolerance; delta, contamination. Standard library only.

Inside the package bigger is better: `goal="min"` is a sign flip and q -> 1-q where readings enter.
"""

import math
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from enum import StrEnum
from numbers import Complex, Real
from operator import index
from typing import Literal, NamedTuple, Protocol, TypedDict, Unpack, cast, get_args

from truearm.errors import InvalidArgument, UnknownArgument

Design = Literal["sequential", "fixed"]
"""Whether readings may have been looked at while they grew, or their number was chosen in advance."""
Target = Literal["quantile", "share", "wins", "mean"]
"""What arms are compared by: a quantile, a share of readings, wins in rounds, or the mean of bounded scores."""
LEAST_DELTA = 1e-100  # its square does not underflow
_LEAST_SHARE = 1e-300  # of an error probability, split over arms and looks: its inverse does not overflow
LEAST_LEVEL = 1e-9  # of a quantile: a billion readings are needed to see it


class Adversary(StrEnum):
    """How much the source of the bad readings knows and controls.

    Oblivious and prescient contamination strikes independently of the true reading; the prescient one
    also sees every true reading, past and future. The malicious one chooses which readings to spoil.
    """

    OBLIVIOUS = "oblivious"
    PRESCIENT = "prescient"
    MALICIOUS = "malicious"


class Interval(NamedTuple):
    """A closed interval; an infinite end means that the readings give no bound on that side.

    `low > high` happens only when the readings contradict the declared contamination.
    """

    low: float
    high: float

    @property
    def width(self) -> float:
        """The distance from low to high, 0 for two equal infinities."""
        return 0.0 if self.low == self.high else self.high - self.low


UNBOUNDED = Interval(-math.inf, math.inf)


class Pull(NamedTuple):
    """A request for one reading of one arm."""

    ticket: int
    arm: str


def as_text(value: object) -> str:
    """Return the start of a value's representation in one line."""
    return f"{value!r}".replace("\n", "")[:80]


def require(is_right: object, name: str, value: object, must: str, remedy: str = "") -> None:
    """Raise unless an argument is right; the message says what it must be."""
    if not is_right:
        msg = f"{name} must {must}, but got {as_text(value)}{'; ' * bool(remedy)}{remedy}"
        raise InvalidArgument(msg, name, value)


def refuse(is_wrong: object, message: str, name: str | None = None, value: object = None) -> None:
    """Raise if an argument contradicts others."""
    if is_wrong:
        raise InvalidArgument(message, name, value)


def check_choice(name: str, value: object, choices: Iterable[object], remedy: str = "") -> None:
    """Raise unless a value is one of these; arrays, which compare element by element, are not hashable."""
    known = list(choices)
    is_known = isinstance(value, Hashable) and value in known
    *rest, last = (f"'{choice}'" if isinstance(choice, str) else str(choice) for choice in known)
    require(is_known, name, value, f"be {', '.join(rest)} or {last}", remedy)


def check_flag(name: str, value: object) -> bool:
    """Return True or False, which may be those of numpy."""
    check_choice(name, value, (True, False))
    return bool(value)


def check_kind(name: str, value: object, kind: type, remedy: str) -> None:
    """Raise unless a value is of a class."""
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    require(isinstance(value, kind), name, value, f"be {article} {kind.__name__}", remedy)


def check_arms(arms: Iterable[str]) -> tuple[str, ...]:
    """Return the arm names as a tuple of different, non-empty strings."""
    is_list = isinstance(arms, Iterable) and not isinstance(arms, str)
    require(is_list, "arms", arms, "be a list of names", f"write [{arms!r:.80}]" if isinstance(arms, str) else "")
    names = tuple(arms)
    require(names, "arms", [], "name at least one arm")
    for place, name in enumerate(names):
        require(isinstance(name, str) and name, "arms", name, "be non-empty strings", "use str(name)")
        is_text = not any("\ud800" <= char <= "\udfff" for char in name)
        require(is_text, "arms", name, "be valid Unicode", "use another name")
        require(place == names.index(name), "arms", name, "have different names", f"{name!r} appears twice")
    return names


def as_number(name: str, value: object, remedy: str, *, boolean: bool = False) -> float:
    """Return any single number as a float; True and False are numbers only as readings (`boolean`)."""
    # numpy scalars are numbers too, without importing numpy here; float() drops the imaginary part of complex ones
    is_number = isinstance(value, Real) or (hasattr(value, "__float__") and not isinstance(value, Complex))
    try:
        if not is_number or (isinstance(value, bool) and not boolean):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
        is_beyond = math.isinf(number) and value != number  # such as 10**400 in types other than int
    except (TypeError, ValueError):  # an array of several numbers, or a date
        msg = f"{name} must be a number, but got {as_text(value)}; {remedy}"
        raise InvalidArgument(msg, name, value) from None
    except OverflowError:
        is_beyond = True
    refuse(is_beyond, f"{name} is beyond the largest number, 1.8e308; {remedy}", name, value)
    return number


def check_eps(eps: float, name: str = "eps") -> float:
    """Return eps as a float in [0, 1/2)."""
    remedy = "use the largest fraction of bad readings, such as 0.05"
    number = as_number(name, eps, remedy)
    if 1 <= number < 50:
        remedy = f"for {number:g} percent write {number / 100:g}"
    require(0 <= number < 0.5, name, eps, "be in [0, 0.5)", remedy)
    return number


def check_adversary(adversary: str) -> Adversary:
    """Return the adversary of that name."""
    check_choice("adversary", adversary, Adversary)
    return Adversary(adversary)


def check_inside(name: str, value: float, end: float, remedy: str, least: float = 0.0) -> float:
    """Return a float strictly between 0 and an end, not below `least`."""
    number = as_number(name, value, remedy)
    must = "be positive and finite" if end == math.inf else f"be in (0, {end:g})"
    require(0 < number < end, name, value, must, remedy)
    require(number >= least, name, value, f"be at least {least:g}", remedy)
    return number


def check_delta(delta: float, name: str = "delta") -> float:
    """Return delta as a float in (0, 1)."""
    return check_inside(name, delta, 1, "use an error probability, such as 0.05", _LEAST_SHARE)


def check_quantile(quantile: float, name: str = "quantile") -> float:
    """Return the quantile level as a float in (0, 1)."""
    number = check_inside(name, quantile, 1, "0.5 is the median, 0.95 the 95th percentile")
    is_inside = LEAST_LEVEL <= number <= 1 - LEAST_LEVEL
    limits = f"be at least {LEAST_LEVEL:g} and at most 1 - {LEAST_LEVEL:g}"
    require(is_inside, name, quantile, limits, "no number of readings shows more")
    return number


def check_reach(reach: float) -> float:
    """Return the reach (the paper's t-bar), how far from the median the distribution function is known to rise."""
    return check_inside("reach", reach, 0.5, "use quantile levels, such as 0.25", LEAST_LEVEL)


def check_positive(name: str, value: float) -> float:
    """Return a finite positive float."""
    return check_inside(name, value, math.inf, "use a number such as 1")


def check_count(name: str, value: int, least: int = 1) -> int:
    """Return an integer not below `least`."""
    number = None
    with suppress(TypeError):  # an array of several numbers has `__index__` too
        number = None if isinstance(value, bool) else index(value)
    require(number is not None and number >= least, name, value, f"be an integer not less than {least}")
    as_number(name, number, "use a smaller number")
    return cast("int", number)


def check_design(design: str) -> Design:
    """Return the design of that name."""
    what = "'fixed' is for a number of readings that was chosen before the first of them"
    check_choice("design", design, get_args(Design), what)
    return cast("Design", design)


def check_between(between: tuple[float, float] | Interval | None, name: str = "between") -> Interval | None:
    """Return a range as an interval."""
    if between is None:
        return None
    remedy = "use the lowest and the highest possible value, such as (0, 1000)"
    is_pair = isinstance(between, list | tuple) and len(between) == 2
    require(is_pair, name, between, "be two numbers", remedy)
    low, high = (as_number(name, end, remedy) for end in between)
    require(low < high, name, tuple(between), "be two increasing numbers", remedy)
    return Interval(low, high)


@dataclass(frozen=True, slots=True)
class Contamination:
    """An upper bound eps < 1/2 on the fraction of bad readings, and what makes them.

    A causal adversary cannot see the future. None follows the paper: the oblivious adversary is causal, the
    prescient and the malicious one are not. A real attacker is causal, and needs less evidence (evidence T1, T4).
    `error` is how likely the bound itself is wrong, if it comes from an audit: it adds to every delta. `blind` is
    for rounds in random order, which need no eps (extensions R).

    >>> Contamination(0.02, "malicious").clairvoyant, Contamination(0.02, "malicious", causal=True).clairvoyant
    (True, False)
    """

    eps: float
    adversary: Adversary = Adversary.OBLIVIOUS
    causal: bool | None = None
    error: float = field(default=0.0, repr=False)
    blind: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", check_eps(self.eps))
        both = f"blind rounds need no eps, but got {self.eps:g}; remove one of the two"
        is_sure = as_number("error", self.error, "use an error probability, such as 0.05") == 0
        refuse(check_flag("blind", self.blind) and (self.eps or self.error), both, "contamination", self.eps)
        if not is_sure:
            check_delta(self.error, "error")
        object.__setattr__(self, "adversary", check_adversary(self.adversary))
        check_choice("causal", self.causal, (True, False, None))
        object.__setattr__(self, "causal", None if self.causal is None else bool(self.causal))
        msg = "causal=False contradicts adversary='oblivious', which chooses in advance; use 'prescient'"
        refuse(self.adversary is Adversary.OBLIVIOUS and self.causal is False, msg, "causal", self.causal)

    @property
    def clairvoyant(self) -> bool:
        """Whether the bad readings may depend on true readings not yet taken."""
        return self.adversary is not Adversary.OBLIVIOUS if self.causal is None else not self.causal

    @classmethod
    def of(cls, value: "float | str | Contamination | Bounded | None") -> "Contamination | None":
        """Read a `contamination=` argument: None, a fraction, "blind", a Contamination, or an audit."""
        if value is None or isinstance(value, Contamination):
            return value
        if isinstance(value, str) and value == "blind":
            return cls(0.0, blind=True)
        bound = getattr(value, "contamination", None)  # of an audit
        return bound if isinstance(bound, Contamination) else cls(check_eps(value, "contamination"))  # type: ignore[arg-type]


class Bounded(Protocol):
    """What an audit returns: it has a bound on the bad readings."""

    @property
    def contamination(self) -> Contamination:
        """The bound."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much worse than the best an arm may be and still be a good answer.

    Absolute tolerances are in units of the readings; a relative one compares positive readings by ratio.

    >>> Tolerance.of("2%")
    Tolerance(amount=0.02, relative=True)
    >>> Tolerance.of(0.1)
    Tolerance(amount=0.1, relative=False)
    """

    amount: float = 0.0
    relative: bool = False

    def __post_init__(self) -> None:
        number = as_number("tolerance", self.amount, "use a number such as 0.1, or Tolerance.of('2%')")
        is_right = 0 <= number < math.inf
        require(is_right, "tolerance", self.amount, "be a finite number >= 0 or a text like '2%'")
        object.__setattr__(self, "amount", number)

    @classmethod
    def of(cls, value: "float | str | Tolerance") -> "Tolerance":
        """Read a `tolerance=` argument: a number, a string like '2%', or a Tolerance."""
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

    def __str__(self) -> str:
        return f"{100 * self.amount:g}%" if self.relative else f"{self.amount:g}"


@dataclass(frozen=True, slots=True)
class Handicap:
    """An arm that is judged as if it were worse by a tolerance: others lose to it only if worse by more."""

    arm: str
    tolerance: Tolerance
    limit: float | None = None
    """The limit beyond which readings are infinite; those that the handicap moves past it become infinite too."""

    def __post_init__(self) -> None:
        if self.limit is not None:
            object.__setattr__(self, "limit", check_positive("limit", self.limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Regularity:
    """What the paper's own algorithms need to know about every arm (Definition 2).

    Within `reach` of the median in quantile levels, the distribution function rises with slope at least
    1/(B m2), and m2 bounds the median absolute deviation of every arm.
    """

    B: float
    m2: float
    reach: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "B", check_positive("B", self.B))
        object.__setattr__(self, "m2", check_positive("m2", self.m2))
        object.__setattr__(self, "reach", check_reach(self.reach))


class ProblemOptions(TypedDict, total=False):
    """The arguments that say what is asked and what is assumed; every entry point accepts them.

    Parameters
    ----------
    delta
        Error probability of the decision.
    contamination
        Bound on the fraction of bad readings: a number, a `Contamination`, an audit, "blind" (rounds in random
        order: disturbances do not know which arm runs), or None for the paper's assumption that the contamination
        does not reverse the order of the arms.
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
    score_range
        Compare the mean of scores in this range, side by side on the same items, which are the rounds
        (docs/extensions.md B).
    items
        The length of the list from which items are drawn without replacement; without it they count as draws from
        a larger population.
    """

    delta: float
    contamination: float | str | Contamination | Bounded | None
    tolerance: float | str | Tolerance
    quantile: float
    goal: Literal["max", "min"] | None
    at_least: float | None
    at_most: float | None
    rounds: bool
    between: tuple[float, float] | None
    regularity: Regularity | None
    dependent_arms: bool
    score_range: tuple[float, float] | None
    items: int | None


def check_names(options: Iterable[str], known: Iterable[str] = ProblemOptions.__annotations__) -> None:
    """Raise if an option is unknown."""
    names = sorted(known)
    for name in options:
        if name in names:
            continue
        near = get_close_matches(name, [*names, "max_pulls", "max_seconds", "on_error", "progress", "workers"], 1)
        others = f"see help() of the function; the arguments of a problem are {', '.join(names)}"
        remedy = f"did you mean {near[0]}?" if near else others
        if name == "missing":
            remedy = "missing readings always count at their worst; remove it"
        raise UnknownArgument(f"{name} is an unexpected keyword argument; {remedy}", name)


def fix_options(options: ProblemOptions, **fixed: object) -> ProblemOptions:
    """Add the options that an entry point fixes, or raise if one of them was given."""
    for name, value in fixed.items():
        given = options.get(name, value)
        is_same = isinstance(given, Hashable) and given == value
        refuse(not is_same, f"{name} is always {value!r} here; remove {name}={given!r:.80}", name, given)
    return cast("ProblemOptions", {**options, **fixed})


def _shorten(value: object) -> str:
    """Return a value as short text for a message."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_shorten, value))})"
    return f"{value:g}" if isinstance(value, float) else repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is to be decided, and under which assumptions; `ProblemOptions` documents the fields."""

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
    at_least: float | None = None
    at_most: float | None = None
    rounds: bool = False
    score_range: Interval | None = None
    items: int | None = None

    def __post_init__(self) -> None:
        check_choice("goal", self.goal, ("max", "min"))
        is_known = isinstance(self.regularity, Regularity | None)
        require(is_known, "regularity", self.regularity, "be a Regularity", "use Regularity(B=4, m2=1, reach=0.2)")
        limits = {name: getattr(self, name) for name in ("at_least", "at_most")}
        remedy = "use the limit of a success, such as 1"
        checked = {
            "arms": check_arms(self.arms),
            "delta": check_inside("delta", self.delta, 1, "use an error probability, such as 0.05", LEAST_DELTA),
            "contamination": Contamination.of(self.contamination),
            "tolerance": Tolerance.of(self.tolerance),
            "quantile": check_quantile(self.quantile),
            "between": check_between(self.between),
            "score_range": check_between(self.score_range, "score_range"),
            "items": None if self.items is None else check_count("items", self.items),
            "rounds": check_flag("rounds", self.rounds),
            "dependent_arms": check_flag("dependent_arms", self.dependent_arms),
            **{name: None if x is None else as_number(name, x, remedy) for name, x in limits.items()},
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.handicap is not None:
            known = f"the arms are {', '.join(self.arms)}"
            require(self.handicap.arm in self.arms, "handicap", self.handicap.arm, "name an arm", known)
        msg = "between needs a bound on the bad readings; use contamination=0.05, or remove between"
        refuse(self.between is not None and self.contamination is None, msg, "between", self.between)
        need = "contamination='blind' needs rounds whose order truearm draws"
        msg = f"{need}; use rounds=True in a study, or a bound such as 0.05"
        refuse(self.is_blind and self.target != "wins", msg, "contamination", "blind")
        msg = f"a list of {self.items} items needs the range of its scores, such as score_range=(0, 1)"
        refuse(self.items is not None and self.score_range is None, msg, "items", self.items)
        if self.score_range is not None:
            self._check_scores()
        if self.rounds:
            self._refuse_with("rounds", "at_least", "at_most", "between", "regularity", "quantile")
        elif self.target == "share":
            self._check_share()

    def _refuse_with(self, chosen: str, *others: str) -> None:
        """Raise if a field is set that means nothing together with `chosen`."""
        for known in (known for known in fields(self) if known.name in others):
            name, value = known.name, getattr(self, known.name)
            msg = f"{name}={_shorten(value)} cannot be combined with {chosen}; remove {name} or {chosen}"
            refuse(value != known.default, msg, name, value)

    def _check_scores(self) -> None:
        ends = tuple(self.score_range or (0.0, 1.0))
        remedy = "use the lowest and the highest possible score"
        require(math.isfinite(ends[1] - ends[0]), "score_range", ends, "have a finite width", remedy)
        require((self.items or 0) <= 2**53, "items", self.items, "be at most 2^53", "remove it for a population")
        msg = "score_range compares arms on the same items; name their column, as in round='item', or use "
        msg += "round='rows' if each row of a wide table is an item"
        refuse(not self.rounds, msg, "score_range", self.score_range)
        msg = "tolerance of a mean score must be a number of points, such as 0.01, not a ratio"
        refuse(self.tolerance.relative or self.handicap, msg, "tolerance", self.tolerance.amount)
        msg = "score_range needs a bound on the wrong scores; use contamination=0"
        refuse(self.contamination is None, msg, "contamination")

    def _check_share(self) -> None:
        name, other = ("at_most", "at_least") if self.at_least is None else ("at_least", "at_most")
        limit = getattr(self, name)
        require(math.isfinite(limit), name, limit, "be finite")
        self._refuse_with(name, other, "quantile", "goal", "dependent_arms", "handicap")
        amount, relative = self.tolerance.amount, self.tolerance.relative
        points = f"{100 * amount:g}%" if relative else f"{amount:g}"
        msg = f"tolerance of a share is in points, but got {points}; write 0.02 for two points of a hundred"
        refuse(relative or amount >= 1, msg, "tolerance", points)

    @classmethod
    def of(cls, arms: Iterable[str], *, default_goal: str = "max", **options: Unpack[ProblemOptions]) -> "Problem":
        """Return the problem that an entry point's arguments describe; a share has no `default_goal`."""
        check_names(options)
        goal = options.get("goal")
        shares = [name for name in ("at_least", "at_most") if options.get(name) is not None]
        if shares and goal is not None:
            share = f"{shares[0]}={options[shares[0]]!r}"  # type: ignore[literal-required]
            msg = f"goal={goal!r} cannot be combined with {share}: the largest share is best; remove goal"
            raise InvalidArgument(msg, "goal", goal)
        if goal is None:
            options["goal"] = "min" if default_goal == "min" and not shares else "max"
        return cls(arms=check_arms(arms), **options)  # type: ignore[arg-type]

    def check_score(self, score: float, arm: str, item: int) -> None:
        """Raise if a score is outside the range; NaN is a missing score, and `time_out` one that ran too long."""
        if self.score_range is None:
            return
        low, high = self.score_range
        if not (low <= score <= high or math.isnan(score) or score == self.time_out):
            where = f"of {arm!r} on item {item} is outside of score_range=({low:g}, {high:g})"
            msg = f"the score {score:g} {where}; give the range of all scores"
            raise InvalidArgument(msg, "score_range", score)

    @property
    def target(self) -> Target:
        """What arms are compared by."""
        if self.rounds:
            return "wins" if self.score_range is None else "mean"
        return "quantile" if self.at_least is None and self.at_most is None else "share"

    @property
    def is_blind(self) -> bool:
        """Whether disturbances are assumed not to know which arm runs (extensions R)."""
        return self.contamination is not None and self.contamination.blind

    @property
    def declared(self) -> Contamination:
        """The contamination, with eps 0 if it is None."""
        return self.contamination or Contamination(0.0)

    @property
    def error(self) -> float:
        """The error probability of a claim: delta, and what an audit of eps adds (extensions E5)."""
        return self.delta if self.contamination is None else min(1.0, self.delta + self.contamination.error)

    @property
    def time_out(self) -> float:
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
