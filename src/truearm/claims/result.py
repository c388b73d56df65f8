"""The answer of a study as data: the verdict with intervals, margins, breakdown points and a certificate."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, cast

from truearm.claims import show
from truearm.claims.certificate import DECIDED, Alarm, Certificate, Status
from truearm.claims.plain import Backend, from_plain, to_plain
from truearm.errors import InvalidArgument
from truearm.evidence import Breakdown
from truearm.evidence.comparison import Method
from truearm.evidence.counts import Counts, Made
from truearm.evidence.units import Units
from truearm.problem import Design, Problem, refuse

if TYPE_CHECKING:
    from _typeshed import StrPath

SCHEMA = 3  # of the dictionaries below; raised when a key changes its meaning
OF_PROBLEM = ("delta", "contamination", "tolerance", "quantile", "at_least", "at_most", "goal")


@dataclass(frozen=True, slots=True)
class Arm:
    """What is known about one arm."""

    name: str
    n: int
    observed: float
    """The observed quantile, of the readings that have a value."""
    low: float
    high: float
    """Contain the true quantile, for all arms at once."""
    contamination_low: float
    contamination_high: float
    """What contamination alone would leave of that interval: an estimate."""
    mad: float
    mad_low: float
    mad_high: float
    """Contain the true median absolute deviation, for all arms at once."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """An arm's quantile divided by another arm's: as observed, and an interval that contains the true ratio."""

    arm: str
    reference: str
    observed: float
    low: float
    high: float


class Reach(NamedTuple):
    """A point of the quality curve: at least `share` of the best arm's true readings are as good as x."""

    x: float
    share: float


@dataclass(frozen=True, slots=True)
class Lead:
    """How much better the best arm is than another one."""

    than: str
    scale: Literal["ratio", "difference"]
    """A ratio where both observed quantiles are positive."""
    observed: float
    at_least: float | None
    """Certain for all arms at once, with a separate error probability delta (evidence T10a); None: not yet."""


class Items(NamedTuple):
    """How many items of a list were scored."""

    scored: int
    all: int | None
    """None if the items are draws from a larger population."""


@dataclass(frozen=True, slots=True)
class Variant:
    """How an arm stands to the control."""

    arm: str
    standing: Literal["better", "not better", "open"]
    log_evidence: float
    """That it is better than the control, by all readings at hand."""
    breakdown: Breakdown
    """Largest contamination under which it is certified to be better, for all arms at once (extensions D1)."""


@dataclass(frozen=True, slots=True)
class Control:
    """Which arms beat a control, and which do not."""

    arm: str
    method: Method
    variants: tuple[Variant, ...]
    """All other arms, in their order."""

    def named(self, standing: str) -> tuple[str, ...]:
        """Return the arms with this standing."""
        return tuple(variant.arm for variant in self.variants if variant.standing == standing)

    @property
    def settled(self) -> bool:
        """Whether no arm is open."""
        return not self.named("open")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The answer of a study: the best arm, how sure that is, and up to which contamination it holds.

    `str(result)` is a paragraph for a person; `to_dict()` goes to JSON and comes back by `Result.from_dict`.
    """

    status: Status
    best: str | None
    leader: str | None
    """The arm that looks best, also when that is not certain."""
    ties: tuple[str, ...]
    """Arms that nothing shows to be worse than the best; if no arm is best, those with equal readings."""
    candidates: tuple[str, ...]
    pulls: Mapping[str, int]
    breakdown: Breakdown
    """Largest contamination at which the leader is certified to be best, by the readings at hand (T6)."""
    breakdown_estimate: Breakdown
    """Where that would end with endless readings like these: an estimate, not certified."""
    tolerance: float
    """How far the leader may be from the best, certified; relative if the problem's tolerance is."""
    better_by: tuple[Lead, ...]
    """How much better the best arm is than each other one; empty while no arm is certain to be best."""
    arms: tuple[Arm, ...]
    quality: tuple[Reach, ...] = field(repr=False)
    problem: Problem = field(repr=False)
    design: Design
    doubts: tuple[Alarm, ...]
    """Assumptions that the readings contradict; if there is one, nothing is certified."""
    alarms: tuple[Alarm, ...]
    certificate: Certificate = field(repr=False)
    may_tie: tuple[str, ...] = ()
    """Arms that measured worse than the best, though nothing shows that they are: readings repeat (T11)."""
    control: Control | None = None
    """Which arms beat a control, if that was asked, in addition to the best arm."""
    readings: Any = field(default=None, compare=False, repr=False)
    """`Tapes`: per arm the readings in order of pull, or of rows in an analysis; None for a pull without one."""
    conditions: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """How readings were taken, if that is known; `time` fills it in."""

    def __str__(self) -> str:
        return str(show("text", self))

    def _repr_html_(self) -> str:
        return str(show("fragment", self))

    @property
    def total(self) -> int:
        """Pulls of all arms together."""
        return sum(self.pulls.values())

    @property
    def items(self) -> Items | None:
        """How many items were scored, of how many; None where no mean of scores is compared."""
        if self.problem.target != "mean":
            return None
        return Items(max(self.pulls.values(), default=0), self.problem.items)

    @property
    def answered(self) -> bool:
        """Whether what was asked has an answer: a best arm; or arms that beat the control, or that none does."""
        if self.control is None:
            return self.status in DECIDED
        return bool(self.control.named("better")) or self.control.settled

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the result, one sentence each."""
        return tuple(show("assumptions", self))

    def plot(self, ax: Any = None) -> Any:  # noqa: ANN401 - matplotlib Axes
        """Draw where each arm's true quantile lies, on these matplotlib Axes or on new ones (extra `plot`)."""
        return show("plot", self, ax)

    def save_html(self, path: "StrPath") -> None:
        """Write a self-contained page, with a slider of the contamination."""
        show("save_page", self, path)

    def to_frame(self, backend: Backend = "pandas") -> Any:  # noqa: ANN401 - whichever library the caller has
        """Return what is known about each arm, a row each, as a data frame."""
        return show("frame", self, backend)

    def to_dict(self, *, readings: bool = False) -> dict[str, Any]:
        """Return plain values for JSON, optionally with the readings; infinities and NaN become None."""
        problem, separate = to_plain(self.problem), ("problem", "certificate", "doubts", "alarms")
        own = [field.name for field in fields(self) if field.compare and field.name not in separate]
        plain: dict[str, Any] = to_plain({name: getattr(self, name) for name in own}, null=True)
        for lead in plain["better_by"]:
            lead["as"] = lead.pop("scale")
        plain = {
            "schema": SCHEMA,
            **plain,
            "pulls": {"total": self.total, "arms": plain["pulls"]},
            "certified_tolerance": plain["tolerance"],
            "target": "estimate" if self.certificate.estimated else self.problem.target,
            **{key: problem[key] for key in OF_PROBLEM},
            **({"contamination": "blind"} if self.problem.is_blind else {}),
            **({} if self.items is None else {"items": self.items._asdict()}),
            **{
                name: [{**to_plain(alarm), "message": show("alarm", alarm, self.problem)} for alarm in some]
                for name, some in (("doubts", self.doubts), ("alarms", self.alarms))
            },
            "assumptions": list(self.assumptions),
            "certificate": {**to_plain(self.certificate), "log_threshold": self.certificate.log_threshold},
        }
        if self.conditions is not None:
            plain["conditions"] = dict(self.conditions)
        if readings:
            kept = self.readings
            plain["readings"] = None if kept is None else {arm: to_plain(list(tape)) for arm, tape in kept.items()}
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the result that `to_dict` described."""
        check_schema(data)
        try:
            fields = {
                **data,
                "pulls": data["pulls"]["arms"],
                "tolerance": _or(data["certified_tolerance"], math.inf),
                "better_by": [
                    {**lead, "scale": lead["as"], "observed": _or(lead["observed"], math.inf)}
                    for lead in data["better_by"]
                ],
                "arms": [{key: _or(x, _end(key)) for key, x in arm.items()} for arm in data["arms"]],
                "quality": [(_or(x, -math.inf), share) for x, share in data["quality"]],
                "problem": data["certificate"]["problem"],
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            msg = f"this is not a result of truearm: {type(error).__name__} {error}; give what --json printed"
            raise InvalidArgument(msg) from None
        return cast("Self", from_plain(cls, fields, "result"))


@dataclass(frozen=True, slots=True)
class Contest:
    """How much the readings say that one arm is better than another."""

    better: str
    worse: str
    log_evidence: float
    p_value: float
    """The p-value of "the worse one is the best arm, or ties", adjusted for the number of arms, for this pair."""
    breakdown: Breakdown | None
    """Largest contamination under which the worse one is excluded by the better one; with `pairs=True` only."""
    excluded: bool
    """Whether it is certainly worse, for all pairs at once (evidence T10a)."""


@dataclass(frozen=True, slots=True)
class Better:
    """A claim that one arm is better than another."""

    better: str
    worse: str
    log_evidence: float
    breakdown: Breakdown | None
    """Largest contamination under which all such claims hold; None with more than 100 arms."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an arm stands among all arms: the best and the worst place it may have (extensions D3)."""

    arm: str
    best: int
    worst: int


@dataclass(frozen=True, slots=True)
class Tiers:
    """All arms in order, as far as it is certain."""

    tiers: tuple[tuple[str, ...], ...]
    """Each arm of a tier is better than each of every later one; inside a tier arms stand as they look."""
    places: tuple[Place, ...]
    """The place of every arm, all at once, in the order of the tiers."""
    nearest: tuple[Better, ...]
    """For each arm the claims that say most: over the first arm listed below it, and by the last above it."""
    claimed: int
    """Pairs of arms whose order is certain."""
    pairs: int
    """Pairs of arms in all."""
    skipped: int
    """Pairs that were not looked at by themselves, because there were too many: they count as open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Result):
    """The result of an analysis of existing data."""

    ranking: tuple[str, ...] = ()
    """All arms by their observed quantiles, the best first."""
    excluded: Mapping[str, str]
    """For each arm that is certainly worse than another one, that other one (evidence T10a)."""
    contests: tuple[Contest, ...] = ()
    """The leader against every other arm, or with `pairs=True` every arm against every other."""
    needed: Mapping[str, int] | None
    """More readings per arm that would decide, if they look like these: an estimate. None: no number would."""
    missing: Mapping[str, int]
    """Cells without a value, per arm."""
    outside: Mapping[str, int]
    """Readings outside the plausible range, per arm."""
    few: Mapping[str, int]
    """Remaining arms with too few readings to decide, and how many they have."""
    coarse: Mapping[str, float] = field(default_factory=dict)
    """Arms left whose quantile may be anywhere in a bucket of a table of counts, and what share of their readings
    it holds. Which arm looks best, and at what value, is not known then."""
    units: Units | None = None
    """What was drawn independently, if rows were reduced to one reading per unit."""
    tiers: Tiers | None = None
    """All arms in order, as far as it is certain, if that was asked."""
    made: Made | None = None
    """By what engine and queries readings were counted, if they were not read one by one."""
    counts: Counts | None = field(default=None, compare=False, repr=False)
    """The table that everything here was computed from, if readings were counted."""
    about_data: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """What a reader should know about the data, one sentence each."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know besides the answer, one sentence each."""
        return (*self.about_data, *show("notes", self))

    def to_dict(self, *, readings: bool = False) -> dict[str, Any]:
        """Return plain values for JSON: those of a `Result`, and the rest of the analysis."""
        return {**Result.to_dict(self, readings=readings), "notes": list(self.notes)}


def check_schema(data: Mapping[str, Any]) -> None:
    """Raise unless this is the dictionary of a result, of this version."""
    is_result = isinstance(data, Mapping) and isinstance(data.get("certificate"), Mapping)
    msg = "this is not a result of truearm: it has no certificate; give what --json or to_dict() made"
    refuse(not is_result, msg)
    msg = f"the result has schema {data.get('schema')!r:.80}, but this truearm reads {SCHEMA}; make it again"
    refuse(data.get("schema") != SCHEMA, msg)


def _end(key: str) -> float:
    """Return the number that null stands for in the record of an arm."""
    return -math.inf if key.endswith("low") else math.inf if key.endswith("high") else math.nan


def _or(value: Any, otherwise: float) -> Any:  # noqa: ANN401 - whatever was written
    return otherwise if value is None else value
