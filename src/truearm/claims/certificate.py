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

from truearm.claims import show
from truearm.evidence import Entry, Judge, Rule
from truearm.evidence.comparison import Method
from truearm.evidence.counts import Counted
from truearm.evidence.sample import Floats, Sample, orient, start_sample
from truearm.problem import Design, Problem

Tape = Sequence[float | None] | Floats
"""The readings of an arm in order of pull, None for a pull without one."""
Tapes = Mapping[str, Tape]
Readings = Mapping[str, Tape | Counted]
"""Tapes, or how many readings there are in which bucket."""


class Status(StrEnum):
    """How a study ended; docs/why.md says when."""

    CERTIFIED = "certified"
    TOLERABLE = "tolerable"
    SEPARATED = "separated"
    INDISTINGUISHABLE = "indistinguishable"
    EXHAUSTED = "exhausted"
    DOUBTFUL = "doubtful"

    @classmethod
    def strict(cls, problem: Problem) -> "Status":
        """Return the status when one arm remains."""
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
    """The rejection of an arm as of the first `counts` pulls of each arm: by evidence, or by confidence bounds."""

    arm: str
    leader: str
    counts: tuple[int, ...] | None
    """Pulls issued to each arm when the claim was made; None: it rests on all of them."""
    entered: int = 0
    """How many entries of the pooled rule had begun by then; the last of them had not ended."""
    log_evidence: float = 0.0
    tolerant: bool = False
    """Whether the claim is only that the arm is not better than the leader by more than the tolerance."""
    bounds: tuple[float, float] | None = None
    """Instead of evidence, the arm's upper bound, less the tolerance if tolerant, and the leader's lower one."""


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
class Origin:
    """How the decision was made; with problem, design and readings this is enough to repeat it."""

    by: str | None
    """The name of a policy, "analyze", or None for a policy of the user's own."""
    options: Mapping[str, Any]
    max_pulls: int | None = None
    """The budget of pulls of a study."""
    seed: int | None = None
    overlapping: bool = False
    """Whether a study decided while pulls were out, so that only its log has what it knew by then."""


@dataclass(frozen=True, slots=True)
class Entered:
    """A period in which an arm led, from its pull number `since` until it had `until` pulls (evidence T5)."""

    arm: str
    since: int
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How and why a policy stopped."""

    status: Status
    candidates: tuple[str, ...]
    """The arms that no claim rejects."""
    best: str | None = None
    rule: Rule | None = None
    """What evidence must reach; None if bounds decided, or nothing did."""
    entries: tuple[Entered, ...] = ()
    claims: tuple[Claim, ...] = ()
    design: Design = "sequential"
    """With "fixed" a claim rests on a p-value for sizes chosen in advance, not on an e-value."""
    estimated: bool = False
    """Whether arms were compared by a user's estimator, not by a quantile."""
    control: ControlClaims | None = None
    """Which arms beat a control, if that was asked."""
    doubts: tuple[Alarm, ...] = ()
    """The assumptions that the readings contradict; if any, nothing is certified."""

    @property
    def rejected(self) -> tuple[str, ...]:
        """The arms that a claim rejects outright."""
        return tuple(claim.arm for claim in self.claims if not claim.tolerant)

    @classmethod
    def doubtful(
        cls, doubts: tuple[Alarm, ...], arms: tuple[str, ...], design: Design = "sequential"
    ) -> "Verdict":
        """Return the verdict on readings that contradict an assumption: every arm may be the best."""
        return cls(status=Status.DOUBTFUL, candidates=arms, doubts=doubts, design=design)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate(Verdict):
    """A verdict with its dated claims, and the inputs from which it can be repeated."""

    problem: Problem
    digest: str
    origin: Origin | None = None
    """Which policy decided, or "analyze"; None for a verdict from elsewhere, which cannot be repeated."""

    @property
    def is_analysis(self) -> bool:
        """Whether it is the certificate of an analysis."""
        return self.origin is not None and self.origin.by == "analyze"

    @property
    def log_threshold(self) -> float | None:
        """The log-evidence that each claim must reach; None when the decision rests on bounds alone."""
        if self.rule is None:
            return None
        return Judge.of(self.problem, (), design=self.design, ordered=self.rule == "pooled").log_threshold

    def verify(self, readings: Readings) -> Any:  # noqa: ANN401 - `verification.Verified`
        """Repeat the decision from the raw readings, per arm in order of pull; raise if a part differs.

        None stands for a pull without a reading. `truearm.verify` does the same for a whole result.
        """
        return show("verify_certificate", self, readings)

    def judge(self, claim: Claim, readings: Readings, samples: Sequence[Sample] | None = None) -> Judge:
        """Return the judge of a claim as of its date, or on samples of the readings; entries end where they do."""
        problem, place, entered = self.problem, self.problem.arms.index, self.entries[: claim.entered]
        if samples is None:
            needed = {claim.arm, claim.leader, *(entry.arm for entry in entered)}
            dates = zip(problem.arms, claim.counts or (), strict=True)
            samples = [sample_of(readings.get(arm, ()), n * (arm in needed), problem, arm) for arm, n in dates]
        ends = [sample.n for sample in samples]

        def head(arm: str, n: int) -> Sample:
            return sample_of(readings[arm], min(n, ends[place(arm)]), problem, arm)

        entries = [Entry(place(e.arm), head(e.arm, e.since), head(e.arm, e.until)) for e in entered]
        leader, ordered = place(claim.leader), bool(entries)
        return Judge.of(problem, samples, leader=leader, entries=entries, design=self.design, ordered=ordered)


def digest(problem: Problem, tapes: Readings) -> str:
    """Return the fingerprint of all readings in order of pull; None stands for a pull without a reading."""
    mark = hashlib.sha256()
    for arm in problem.arms:
        for part in (arm.encode(), *_marks(tapes.get(arm, ()))):
            mark.update(memoryview(part).nbytes.to_bytes(8, "little"))
            mark.update(part)
    return mark.hexdigest()


def _marks(tape: Tape | Counted) -> Iterable[bytes | memoryview]:
    if isinstance(tape, Counted):
        return tape.marks()
    arrived, values = _split(tape)
    if values.size and (not values.all() or np.isnan(values.min())):
        values = values + 0.0  # no minus zero
        values[np.isnan(values)] = np.nan  # one bit pattern for all NaN
    return arrived.data, np.ascontiguousarray(values).data


def _split(tape: Tape) -> tuple[NDArray[np.uint8], Floats]:
    """Return which pulls have a reading, and the readings, 0 for a pull without one."""
    if isinstance(tape, np.ndarray):
        return np.ones(tape.size, dtype=np.uint8), tape.astype("<f8", copy=False)
    arrived = np.array([value is not None for value in tape], dtype=np.uint8)
    return arrived, np.array([0.0 if value is None else value for value in tape], dtype="<f8")


def sample_of(tape: Tape | Counted, n: int, problem: Problem, arm: str = "") -> Sample:
    """Return the first n pulls of an arm's tape as an oriented sample; a pull without a reading is pending."""
    if isinstance(tape, Counted):
        return tape.sample(problem, arm)  # of all readings: counts have no order
    arrived, values = _split(tape[:n])
    known = arrived.astype(bool)
    readings = orient(values[known], problem, arm)
    if problem.rounds:  # the place of a pull is its round (extensions E1)
        return Sample().place(np.flatnonzero(known), readings, n)
    return start_sample(problem, arm).extend(readings, pending=n - readings.size)


def samples_of(problem: Problem, tapes: Readings) -> list[Sample]:
    """Return all pulls of each arm as oriented samples."""
    return [sample_of(tape := tapes.get(arm, ()), len(tape), problem, arm) for arm in problem.arms]
