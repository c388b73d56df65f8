"""Certificates: dated claims about arms, which anyone can recompute from the readings.

A policy stops with a `Verdict`: the best arm and the claims for it. A claim is dated by the pulls it rests on.
Tapes are in the user's units; samples are oriented.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truearm.claims.views import show
from truearm.evidence import Entry, Judge, Rule
from truearm.evidence.control import Method
from truearm.evidence.counts import Counted
from truearm.evidence.sample import EMPTY, Sample
from truearm.evidence.shifts import orient, start_sample
from truearm.problem import Design, Problem

Floats = NDArray[np.float64]
Tape = Sequence[float | None] | Floats
"""The readings of an arm in order of pull, None for a pull never told."""
Tapes = Mapping[str, Tape]
Readings = Mapping[str, Tape | Counted]
"""Tapes, or how many readings there are in which bucket."""


class Status(StrEnum):
    """How a study ended; docs/policies.md says when."""

    CERTIFIED = "certified"
    TOLERABLE = "tolerable"
    SEPARATED = "separated"
    INDISTINGUISHABLE = "indistinguishable"
    EXHAUSTED = "exhausted"
    DOUBTFUL = "doubtful"

    @classmethod
    def strict(cls, problem: Problem) -> "Status":
        """Return the status when one arm remains.

        Examples
        --------
        >>> [Status.strict(Problem(arms=("A", "B"), contamination=c)).value for c in (0.05, None)]
        ['certified', 'separated']
        """
        return cls.SEPARATED if problem.contamination is None else cls.CERTIFIED


SIDE_BY_SIDE = "side by side"
"""The detail of "dependence" if all arms were pulled alike: then it is an alarm, not a doubt."""
DECIDED = (Status.CERTIFIED, Status.TOLERABLE, Status.SEPARATED)


@dataclass(frozen=True, slots=True)
class Alarm:
    """A sign in the readings that an assumption does not hold."""

    kind: str
    """One of "dependence", "missing", "outside", "contradiction", "clusters", "confounded", "outliers", "units",
    "unsupported", "ties"."""
    arm: str
    """The arm it is about; empty when it is about all of them together."""
    found: int = 0
    """How many of `n` readings show it."""
    n: int = 0
    values: tuple[float, ...] = ()
    """Readings that belong to it, in the user's unit."""
    detail: str = ""
    """What else the message needs: a factor between units, a column, how arms were pulled, what would decide."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An arm is rejected by evidence, as of the first `counts` pulls of each arm."""

    arm: str
    leader: str
    counts: tuple[int, ...] | None
    """Pulls issued to each arm when the claim was made; None: it rests on all of them."""
    entered: int
    """How many entries of the pooled rule had begun by then; the last of them had not ended."""
    log_evidence: float
    tolerant: bool = False
    """Whether the claim is only that the arm is not better than the leader by more than the tolerance."""


@dataclass(frozen=True, slots=True)
class ControlClaims:
    """Which arms beat a control, claim by claim in the order they were made (extensions D1, D2)."""

    control: str
    method: Method
    better: tuple[Claim, ...] = ()
    """Claims that reject the control by an arm that beats it."""
    not_better: tuple[Claim, ...] = ()
    """Claims that reject an arm by the control, up to the tolerance; with an error probability of their own."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an arm stands among all arms: the best and the worst place it may have (extensions D3)."""

    arm: str
    best: int
    worst: int


@dataclass(frozen=True, slots=True)
class Bound:
    """A confidence bound from an arm's first n readings: an order statistic, or a median plus a radius."""

    arm: str
    n: int
    value: float
    rank: int | None = None
    radius: float = 0.0
    """Added to the order statistic, or to the averaged median when there is no rank."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """An arm is excluded because its upper bound lies below another arm's lower bound."""

    arm: str
    upper: Bound
    lower: Bound


@dataclass(frozen=True, slots=True)
class Origin:
    """How the decision was made: with problem, design and readings, all that repeating it takes."""

    by: str | None
    """The name of a policy, "analyze", or None for a policy of the user's own."""
    options: Mapping[str, Any]
    max_pulls: int | None = None
    """The budget of pulls of a study."""
    seed: int | None = None
    overlapping: bool = False
    """Whether a study decided while pulls were out, so that only its log can tell what it knew by then."""


@dataclass(frozen=True, slots=True)
class Entered:
    """An arm led from its pull number `since` until it had `until` pulls (evidence T5)."""

    arm: str
    since: int
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How and why a policy stopped."""

    status: Status
    candidates: tuple[str, ...]
    best: str | None = None
    rule: Rule | None = None
    entries: tuple[Entered, ...] = ()
    claims: tuple[Claim, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    doubts: tuple[Alarm, ...] = ()
    """The assumptions that the readings contradict; if any, nothing is certified."""
    estimated: bool = False
    """Whether arms were compared by a user's estimator."""
    control: ControlClaims | None = None
    """Which arms beat a control, if that was asked."""
    design: Design = "sequential"
    """"fixed" if the policy had fixed all numbers of pulls in advance, and they were made."""

    @classmethod
    def doubtful(cls, doubts: tuple[Alarm, ...], arms: tuple[str, ...]) -> "Verdict":
        """Return the verdict on readings that contradict an assumption: every arm may be the best."""
        return cls(status=Status.DOUBTFUL, candidates=arms, doubts=doubts)


def digest(problem: Problem, tapes: Readings) -> str:
    """Return the fingerprint of all readings in order of pull; None stands for a pull never told."""
    mark = hashlib.sha256()
    for arm in problem.arms:
        for part in (arm.encode(), *_marks(tapes.get(arm, ()))):
            mark.update(memoryview(part).nbytes.to_bytes(8, "little"))
            mark.update(part)
    return mark.hexdigest()


def _marks(tape: Tape | Counted) -> Iterable[bytes | memoryview]:
    if isinstance(tape, Counted):
        return tape.marks()
    told, values = _told(tape)
    if values.size and (not values.all() or np.isnan(values.min())):
        values = values + 0.0  # no minus zero
        values[np.isnan(values)] = np.nan  # one bit pattern for all NaN
    return told.data, np.ascontiguousarray(values).data


def _told(tape: Tape) -> tuple[NDArray[np.uint8], Floats]:
    """Return which pulls were told, and what they said."""
    if isinstance(tape, np.ndarray):
        return np.ones(tape.size, dtype=np.uint8), tape.astype("<f8", copy=False)
    told = np.array([value is not None for value in tape], dtype=np.uint8)
    return told, np.array([0.0 if value is None else value for value in tape], dtype="<f8")


def sample_of(tape: Tape | Counted, n: int, problem: Problem, arm: str = "") -> Sample:
    """Return the first n pulls of an arm's tape as an oriented sample; a pull never told is pending."""
    if isinstance(tape, Counted):
        return tape.sample(problem, arm)  # of all readings: counts have no order
    head = tape[:n]
    if problem.rounds:
        return _taped(head, n, problem, arm)
    told = head if isinstance(head, np.ndarray) else np.array([v for v in head if v is not None], dtype=np.float64)
    return start_sample(problem, arm).extend(orient(told, problem, arm), pending=n - told.size)


def _taped(head: Tape, n: int, problem: Problem, arm: str) -> Sample:
    """Return the first n pulls with their places, each of which is a round (extensions E1)."""
    values, known = np.full(n, np.nan), np.zeros(n, dtype=bool)
    told, numbers = _told(head)
    values[: len(head)], known[: len(head)] = numbers, told.astype(bool)
    return Sample.in_order(orient(values, problem, arm), known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A decision with its dated claims, and the inputs from which it can be repeated.

    Examples
    --------
    >>> problem = Problem(arms=("A", "B"), contamination=None)
    >>> tapes = {"A": np.arange(40.0, 80.0), "B": np.arange(0.0, 40.0)}
    >>> claim = Claim("B", "A", (40, 40), 1, 14.1)
    >>> certificate = Certificate(
    ...     problem=problem, rule="pooled", best="A", entries=(Entered("A", 16, 40),), claims=(claim,),
    ...     digest=digest(problem, tapes),
    ... )
    >>> round(certificate.judge(claim, tapes).against(1).log_value, 1)
    14.1
    >>> certificate.verify({"A": tapes["A"], "B": tapes["B"] + 1})
    Traceback (most recent call last):
        ...
    truearm.errors.VerificationError: the readings are not those of the certificate: their digest differs
    """

    problem: Problem
    rule: Rule | None
    best: str | None
    entries: tuple[Entered, ...] = ()
    claims: tuple[Claim, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    digest: str
    design: Design = "sequential"
    """With "fixed" a claim rests on a p-value for sizes chosen in advance, not on an e-value."""
    estimated: bool = False
    """Whether the decision is about a user's estimator, not about a quantile."""
    origin: Origin | None = None
    """Which policy decided, or "analyze"; None for a verdict from elsewhere, which cannot be repeated."""
    control: ControlClaims | None = None
    """Which arms beat a control, if that was asked."""
    places: tuple[Place, ...] = ()
    """The place of every arm, all at once, if that was asked."""

    @property
    def analyzed(self) -> bool:
        """Whether it is that of an analysis."""
        return self.origin is not None and self.origin.by == "analyze"

    @property
    def rejected(self) -> tuple[str, ...]:
        """The arms that a claim rejects outright."""
        return tuple(claim.arm for claim in self.claims if not claim.tolerant)

    @property
    def log_threshold(self) -> float | None:
        """How much log-evidence each claim must reach; None when the decision rests on bounds alone."""
        if self.rule is None:
            return None
        return Judge.of(self.problem, (), design=self.design, ordered=self.rule == "pooled").log_threshold

    def verify(self, readings: Readings) -> Any:  # noqa: ANN401 - `verification.Verified`
        """Decide again from the raw readings, per arm in order of pull, and compare; raise if a part differs.

        A pull that was never told is None in its place. `truearm.verify` does the same for a whole result.
        """
        return show("verify_certificate", self, readings)

    def judge(self, claim: Claim, readings: Readings) -> Judge:
        """Return the judge of a claim as of its date."""
        arms = self.problem.arms
        entered = self.entries[: claim.entered]
        places = {arm: arms.index(arm) for arm in (claim.arm, claim.leader, *(e.arm for e in entered))}

        def head(arm: str, n: int) -> Sample:
            return sample_of(readings.get(arm, ()), n, self.problem, arm)

        counts = {
            arm: len(readings.get(arm, ())) if claim.counts is None else claim.counts[i]
            for arm, i in places.items()
        }
        samples: list[Sample] = [EMPTY] * len(arms)
        for arm, i in places.items():
            samples[i] = head(arm, counts[arm])
        return Judge.of(
            self.problem,
            samples,
            leader=places[claim.leader],
            entries=[
                Entry(places[e.arm], head(e.arm, e.since), head(e.arm, min(e.until, counts[e.arm])))
                for e in entered
            ],
            design=self.design,
            ordered=self.rule == "pooled",
        )
