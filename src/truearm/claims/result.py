"""What a study found, as types: the verdict with intervals, margins, breakdown points and a certificate.

Nothing is computed here: `certify` computes, and `truearm.report` registers the words and pictures.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from truearm.claims.certificate import DECIDED, Alarm, Certificate, Status, Tapes
from truearm.claims.plain import Backend, from_plain, to_plain
from truearm.claims.views import show
from truearm.errors import InvalidArgument, TruearmError
from truearm.evidence import Breakdown
from truearm.evidence.control import Method
from truearm.problem import Design, Problem

_TOLD = ("delta", "contamination", "tolerance", "quantile", "at_least", "at_most", "goal")  # of the problem
SCHEMA = 2  # of the dictionaries below; raised when a key changes its meaning


class Named(Protocol):
    """A path of a file, as the standard library has it."""

    def __fspath__(self) -> str: ...


class Arm(NamedTuple):
    """What is known of one arm."""

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


class Reach(NamedTuple):
    """At least `share` of the true readings of the best arm are as good as x, for all points at once."""

    x: float
    share: float


class Lead(NamedTuple):
    """How much better the best arm is than another one."""

    than: str
    scale: Literal["ratio", "difference"]
    """A ratio where both observed quantiles are positive."""
    observed: float
    at_least: float | None
    """Certain for all arms at once, with an error probability delta of its own (evidence T10a); None: not yet."""


class Variant(NamedTuple):
    """How an arm stands to the control."""

    arm: str
    standing: Literal["better", "not better", "open"]
    log_evidence: float
    """That it is better than the control, by all readings at hand."""
    breakdown: Breakdown
    """Largest contamination under which it is certified to be better, for all arms at once (extensions D1)."""


class Control(NamedTuple):
    """Which arms beat a control, and which do not."""

    arm: str
    method: Method
    variants: tuple[Variant, ...]
    """All other arms, in their order."""

    def named(self, standing: str) -> tuple[str, ...]:
        """Return the arms that stand so."""
        return tuple(variant.arm for variant in self.variants if variant.standing == standing)

    @property
    def settled(self) -> bool:
        """Whether it is known of every arm whether it is better."""
        return not self.named("open")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a study found: who is best, how sure that is, and up to which contamination it holds.

    `str(result)` is a paragraph for a person; `to_dict()` goes to JSON and comes back by `Result.from_dict`.

    Examples
    --------
    >>> import numpy as np
    >>> from truearm.claims.certificate import Verdict
    >>> from truearm.claims.certify import certify
    >>> problem = Problem(arms=("A", "B"))
    >>> tapes = {"A": np.arange(50.0), "B": np.arange(50.0)}
    >>> verdict = Verdict(status=Status.EXHAUSTED, candidates=("A", "B"))
    >>> result = certify(problem, tapes, verdict)
    >>> result.status.value, result.best, result.candidates, result.total
    ('exhausted', None, ('A', 'B'), 100)
    >>> Result.from_dict(result.to_dict()) == result
    True
    """

    status: Status
    best: str | None
    leader: str | None
    """The arm that looks best, also when that is not certain."""
    ties: tuple[str, ...]
    """Arms that measured like the best: nothing shows that they are worse. Without one: who measured the same."""
    candidates: tuple[str, ...]
    pulls: Mapping[str, int]
    breakdown: Breakdown
    """Largest contamination at which the leader is certified to be best, by the readings at hand (T6)."""
    breakdown_estimate: Breakdown
    """Where that would end with endless readings like these: an estimate, not certified."""
    tolerance: float
    """How far the leader may be from the best, certified; relative if the problem's tolerance is."""
    better_by: tuple[Lead, ...]
    """How much better the best arm is than each other one; empty while none is certain to be best."""
    arms: tuple[Arm, ...]
    quality: tuple[Reach, ...]
    problem: Problem
    design: Design
    doubts: tuple[Alarm, ...]
    """Promises that the readings contradict; if there is one, nothing is certified."""
    alarms: tuple[Alarm, ...]
    certificate: Certificate
    may_tie: tuple[str, ...] = ()
    """Arms that measured worse than the best, though nothing shows that they are: readings repeat (T11)."""
    control: Control | None = None
    """Which arms beat a control, if that was asked; an answer beside the best arm."""
    readings: Tapes | None = field(default=None, compare=False, repr=False)
    """Per arm the readings in order of pull, or of rows in an analysis; None for a pull never told."""
    conditions: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """How readings were taken, where those who took them tell: `time` does."""

    def __str__(self) -> str:
        text: str = show("text", self)
        return text

    def _repr_html_(self) -> str:
        fragment: str = show("fragment", self)
        return fragment

    @property
    def total(self) -> int:
        """Pulls of all arms together."""
        return sum(self.pulls.values())

    @property
    def answered(self) -> bool:
        """Whether what was asked has an answer: a best arm; or arms that beat the control, or that none does."""
        if self.control is None:
            return self.status in DECIDED
        return bool(self.control.named("better")) or self.control.settled

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The promises the result rests on, one sentence each."""
        sentences: tuple[str, ...] = show("assumptions", self)
        return sentences

    def plot(self, ax: Any = None) -> Any:  # noqa: ANN401 - Axes of a guest
        """Draw where each arm's true quantile lies, on these matplotlib Axes or on new ones (extra `plot`)."""
        return show("plot", self, ax)

    def save_html(self, path: str | Named) -> None:
        """Write a self-contained page, with a slider of the contamination."""
        show("save_page", self, path)

    def to_frame(self, backend: Backend = "pandas") -> Any:  # noqa: ANN401 - whichever library the caller has
        """Return what is known of each arm, a row each, as a data frame."""
        return show("frame", self, backend)

    def to_dict(self, *, readings: bool = False) -> dict[str, Any]:
        """Return plain values for JSON, the readings too if asked for; infinities and NaN become None."""
        problem = to_plain(self.problem)
        plain = {
            "schema": SCHEMA,
            "status": self.status.value,
            "best": self.best,
            "leader": self.leader,
            "ties": list(self.ties),
            "may_tie": list(self.may_tie),
            "candidates": list(self.candidates),
            "pulls": {"total": self.total, "arms": dict(self.pulls)},
            "breakdown": self.breakdown._asdict(),
            "breakdown_estimate": self.breakdown_estimate._asdict(),
            "certified_tolerance": _finite(self.tolerance),
            "better_by": [
                {"than": x.than, "as": x.scale, "observed": _finite(x.observed), "at_least": x.at_least}
                for x in self.better_by
            ],
            "arms": [{key: _finite(value) for key, value in arm._asdict().items()} for arm in self.arms],
            "quality": [[_finite(point.x), point.share] for point in self.quality],
            "target": "estimate" if self.certificate.estimated else self.problem.target,
            **{key: problem[key] for key in _TOLD},
            "design": self.design,
            "doubts": [self._alarm(alarm) for alarm in self.doubts],
            "alarms": [self._alarm(alarm) for alarm in self.alarms],
            "control": to_plain(self.control),
            "assumptions": list(self.assumptions),
            "certificate": {**to_plain(self.certificate), "log_threshold": self.certificate.log_threshold},
        }
        if self.conditions is not None:
            plain["conditions"] = dict(self.conditions)
        if readings:
            plain["readings"] = None if self.readings is None else {a: _tape(t) for a, t in self.readings.items()}
        return plain

    def _alarm(self, alarm: Alarm) -> dict[str, Any]:
        return {**to_plain(alarm), "message": show("alarm", alarm, self.problem)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Result":
        """Return the result that `to_dict` described, or say what of it is none."""
        with described():
            return cls._read(data)

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> "Result":
        def told(key: str, kind: Any) -> Any:  # noqa: ANN401 - a type hint, and what is of that type
            return from_plain(kind, data[key], key)

        if data["schema"] != SCHEMA:
            msg = f"a result of schema {data['schema']!r:.80} is from another truearm; this one reads {SCHEMA}"
            raise InvalidArgument(msg)
        certificate: Certificate = told("certificate", Certificate)
        return cls(
            status=told("status", Status),
            best=told("best", str | None),
            leader=told("leader", str | None),
            ties=told("ties", tuple[str, ...]),
            may_tie=from_plain(tuple[str, ...], data.get("may_tie", []), "may_tie"),  # newer than the schema
            candidates=told("candidates", tuple[str, ...]),
            pulls=from_plain(Mapping[str, int], data["pulls"]["arms"], "pulls.arms"),
            breakdown=told("breakdown", Breakdown),
            breakdown_estimate=told("breakdown_estimate", Breakdown),
            tolerance=_number(data["certified_tolerance"], math.inf, "certified_tolerance"),
            better_by=tuple(_lead_from_dict(lead) for lead in data["better_by"]),
            arms=tuple(_arm_from_dict(arm) for arm in data["arms"]),
            quality=tuple(
                Reach(_number(x, -math.inf, "quality"), from_plain(float, share, "quality"))
                for x, share in data["quality"]
            ),
            problem=certificate.problem,
            design=told("design", Design),
            doubts=told("doubts", tuple[Alarm, ...]),
            alarms=told("alarms", tuple[Alarm, ...]),
            certificate=certificate,
            control=told("control", Control | None),
            readings=data.get("readings"),
            conditions=data.get("conditions"),
        )


@contextmanager
def described() -> Iterator[None]:
    """Say of what should describe a result that it does not."""
    try:
        yield
    except TruearmError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = (
            f"this is not a result of truearm: {type(error).__name__} {error}; give what --json or to_dict() made"
        )
        raise InvalidArgument(msg) from None


def _tape(tape: Any) -> list[Any]:  # noqa: ANN401 - a list or an array of readings
    return [None if value is None else to_plain(float(value)) for value in tape]


def _finite(value: Any) -> Any:  # noqa: ANN401 - names pass through
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any, otherwise: float, name: str) -> float:  # noqa: ANN401 - whatever was written
    found: float | None = from_plain(float | None, value, name)
    return otherwise if found is None else found


def _lead_from_dict(data: Mapping[str, Any]) -> Lead:
    scale = from_plain(Literal["ratio", "difference"], data["as"], "better_by.as")
    observed = _number(data["observed"], math.inf, "better_by.observed")
    least = from_plain(float | None, data["at_least"], "better_by.at_least")
    return Lead(from_plain(str, data["than"], "better_by.than"), scale, observed, least)


def _arm_from_dict(data: Mapping[str, Any]) -> Arm:
    otherwise = {"low": -math.inf, "high": math.inf}
    numbers = {
        key: _number(data[key], otherwise.get(key.rsplit("_", 1)[-1], math.nan), f"arms.{key}")
        for key in Arm._fields[2:]
    }
    name, n = from_plain(str, data["name"], "arms.name"), from_plain(int, data["n"], "arms.n")
    return Arm(name=name, n=n, **numbers)
