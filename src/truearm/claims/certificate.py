"""Claims about arms, and what a stranger needs to recompute them from the readings.

A policy stops with a `Verdict`: who is best and by which claims. A claim is dated by the pulls it rests on,
so that it can be recomputed at any later time. Tapes are in the user's units; samples are oriented.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.errors import VerificationError
from truearm.evidence import Entry, Judge, Rule, Strength
from truearm.evidence.levels import log_threshold
from truearm.evidence.moments import moments
from truearm.evidence.sample import EMPTY, Sample
from truearm.evidence.shifts import oriented
from truearm.evidence.wins import Taped
from truearm.problem import Design, Problem

Floats = NDArray[np.float64]
Tape = Sequence[float | None] | Floats
"""The readings of an arm in order of pull, None for a pull never told."""
Tapes = Mapping[str, Tape]


class Status(StrEnum):
    """How a study ended; docs/policies.md says when."""

    CERTIFIED = "certified"
    TOLERABLE = "tolerable"
    SEPARATED = "separated"
    INDISTINGUISHABLE = "indistinguishable"
    EXHAUSTED = "exhausted"
    DOUBTFUL = "doubtful"


SIDE_BY_SIDE = "side by side"
"""The detail of "dependence" where all arms were pulled alike: it is then told beside a result, not a doubt."""
DECIDED = (Status.CERTIFIED, Status.TOLERABLE, Status.SEPARATED)


class Alarm(NamedTuple):
    """Something in the readings that does not fit the promises; `wording.alarm` says it with what to do.

    Examples
    --------
    >>> Alarm("ties", "A", 50, 100, (3.0,)).kind
    'ties'
    """

    kind: str
    """One of "dependence", "missing", "contradiction", "clusters", "confounded", "outliers", "units", "ties"."""
    arm: str
    """The arm it is about; empty when it is about all of them together."""
    found: int = 0
    """How many readings show it."""
    n: int = 0
    """Of how many."""
    values: tuple[float, ...] = ()
    """Readings that belong to it, in the user's unit."""
    detail: str = ""
    """What else is needed to say it: a factor between units, a column, how arms were pulled, what would decide."""


class Claim(NamedTuple):
    """An arm is rejected by evidence, as of the first `counts` pulls of each arm.

    Examples
    --------
    >>> Claim("B", "A", (30, 25), 1, 3.4).arm
    'B'
    """

    arm: str
    leader: str
    counts: tuple[int, ...]
    """Pulls issued to each arm when the claim was made."""
    entered: int
    """How many arms had been leader by then: the stakes of the pooled rule."""
    log_evidence: float
    tolerant: bool = False
    """Whether the claim is only that the arm is not better than the leader by more than the tolerance."""


class Bound(NamedTuple):
    """A confidence bound from an arm's first n readings: an order statistic, or a median plus a radius.

    Examples
    --------
    >>> Bound("A", 50, 1.5, rank=20).value
    1.5
    """

    arm: str
    n: int
    value: float
    rank: int | None = None
    radius: float = 0.0
    """Added to the order statistic, or to the averaged median when there is no rank."""
    recomputable: bool = True
    """False for an estimator of the user's own: `verify` then takes the value on trust."""


class Exclusion(NamedTuple):
    """An arm is excluded because its upper bound lies below another arm's lower bound."""

    arm: str
    upper: Bound
    lower: Bound


class Entered(NamedTuple):
    """An arm became leader for the first time after this many of its pulls (evidence T5)."""

    arm: str
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How and why a policy stopped.

    Examples
    --------
    >>> Verdict(status=Status.EXHAUSTED, candidates=("A", "B")).best is None
    True
    """

    status: Status
    candidates: tuple[str, ...]
    best: str | None = None
    rule: Rule | None = None
    entries: tuple[Entered, ...] = ()
    claims: tuple[Claim, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    doubts: tuple[Alarm, ...] = ()
    """Which promises the readings contradict; if any, nothing is certified."""
    estimated: bool = False
    """Whether arms were compared by an estimator of the user's own, of which quantiles say nothing."""

    @classmethod
    def doubtful(cls, doubts: tuple[Alarm, ...], arms: tuple[str, ...]) -> "Verdict":
        """Return the verdict on readings that contradict a promise: every arm may be the best.

        Examples
        --------
        >>> Verdict.doubtful((Alarm("dependence", "A"),), ("A", "B")).candidates
        ('A', 'B')
        """
        return cls(status=Status.DOUBTFUL, candidates=arms, doubts=doubts)


def digest(problem: Problem, tapes: Tapes) -> str:
    """Return the fingerprint of all readings in order of pull; None stands for a pull never told.

    Examples
    --------
    >>> digest(Problem(arms=("A",)), {"A": [1.0, None]})[:16]
    'b399994a9df77b15'
    """
    mark = hashlib.sha256()
    for arm in problem.arms:
        told, values = _told(tapes.get(arm, ()))
        values += 0.0  # no minus zero
        values[np.isnan(values)] = np.nan  # one bit pattern for all NaN
        for part in (arm.encode(), told.data, values.data):
            mark.update(memoryview(part).nbytes.to_bytes(8, "little"))
            mark.update(part)
    return mark.hexdigest()


def _told(tape: Tape) -> tuple[NDArray[np.uint8], Floats]:
    """Return which pulls were told, and what they said."""
    if isinstance(tape, np.ndarray):
        return np.ones(tape.size, dtype=np.uint8), tape.astype("<f8")
    told = np.array([value is not None for value in tape], dtype=np.uint8)
    return told, np.array([0.0 if value is None else value for value in tape], dtype="<f8")


def sample_of(tape: Tape, n: int, problem: Problem, arm: str = "") -> Sample:
    """Return the first n pulls of an arm's tape as an oriented sample; a pull never told is pending.

    Examples
    --------
    >>> sample_of([3.0, None, 1.0, 9.0], 3, Problem(arms=("A",), goal="min"))
    Sample(body=array([-3., -1.]), missing=0, pending=1, worst=True)
    """
    head = tape[:n]
    if problem.rounds:
        return _taped(head, n, problem, arm)
    told = head if isinstance(head, np.ndarray) else np.array([v for v in head if v is not None], dtype=np.float64)
    worst = problem.missing == "worst"
    return Sample.of(oriented(told, problem, arm), worst=worst).merged([], pending=n - told.size)


def _taped(head: Tape, n: int, problem: Problem, arm: str) -> Taped:
    """Return the first n pulls with their places, each of which is a round (extensions E1)."""
    values, known = np.full(n, np.nan), np.zeros(n, dtype=bool)
    told, numbers = _told(head)
    values[: len(head)], known[: len(head)] = numbers, told.astype(bool)
    return Taped.in_rounds(oriented(values, problem, arm), known, worst=problem.missing == "worst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A decision with all that is needed to check it: promises, thresholds, dates, and a digest.

    Examples
    --------
    >>> problem = Problem(arms=("A", "B"), contamination=None)
    >>> tapes = {"A": np.arange(40.0, 80.0), "B": np.arange(0.0, 40.0)}
    >>> claim = Claim("B", "A", (40, 40), 1, 13.0)
    >>> certificate = Certificate(
    ...     problem=problem, rule="pooled", best="A", entries=(Entered("A", 16),), claims=(claim,),
    ...     digest=digest(problem, tapes),
    ... )
    >>> certificate.verify(tapes)
    True
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
    """Whether the decision is about an estimator of the user's own, not about a quantile."""

    @property
    def log_threshold(self) -> float | None:
        """How much log-evidence each claim must reach; None when the decision rests on bounds alone."""
        return None if self.rule is None else log_threshold(self.problem, self.rule)

    def verify(self, readings: Tapes) -> bool:
        """Recompute every claim from the raw readings, per arm in order of pull; raise if one fails.

        A pull that was never told is None in its place.
        """
        if digest(self.problem, readings) != self.digest:
            msg = "the readings are not those of the certificate: their digest differs"
            raise VerificationError(msg)
        self._check_form()
        needed = math.inf if self.log_threshold is None else self.log_threshold  # no rule, no claim
        for claim in self.claims:
            found = self.evidence(claim, readings)(None)
            if found < needed - 1e-9:
                msg = f"the evidence against {claim.arm!r} is {found:.6g}, short of the {needed:.6g} it needs"
                raise VerificationError(msg)
        for exclusion in self.exclusions:
            self._check_exclusion(exclusion, readings)
        return True

    def _check_form(self) -> None:
        """Raise if an arm other than the best is not judged, or a stake is older than the readings it bets on."""
        judged = {claim.arm for claim in self.claims} | {exclusion.arm for exclusion in self.exclusions}
        if self.best is not None and (self.rule is not None or not self.problem.tolerance):
            for arm in self.problem.arms:
                if arm != self.best and arm not in judged:
                    msg = f"the certificate says nothing against {arm!r}, so {self.best!r} need not be the best"
                    raise VerificationError(msg)
        for claim in self.claims:
            counts = dict(zip(self.problem.arms, claim.counts, strict=True))
            for entry in self.entries[: claim.entered]:
                if not 0 <= entry.since <= counts[entry.arm]:
                    msg = f"{entry.arm!r} cannot lead since pull {entry.since} of {counts[entry.arm]}"
                    raise VerificationError(msg)

    def evidence(self, claim: Claim, readings: Tapes) -> Callable[[Strength | None], float]:
        """Return the log-evidence of a claim, recomputed from the readings, as a function of the levels."""
        judge, judged = self.judge(claim, readings), self.problem.arms.index(claim.arm)

        def at(levels: Strength | None) -> float:
            found = judge.within(judged, levels=levels) if claim.tolerant else judge.against(judged, levels=levels)
            return found.log_value

        return at

    def judge(self, claim: Claim, readings: Tapes) -> Judge:
        """Return the judge of a claim as of its date."""
        arms = self.problem.arms
        entered = self.entries[: claim.entered]
        involved = {claim.arm, claim.leader, *(e.arm for e in entered)}

        def head(arm: str, n: int) -> Sample:
            return sample_of(readings.get(arm, ()), n, self.problem, arm) if arm in involved else EMPTY

        return Judge.of(
            self.problem,
            [head(arm, n) for arm, n in zip(arms, claim.counts, strict=True)],
            leader=arms.index(claim.leader),
            entries=[Entry(arms.index(e.arm), head(e.arm, e.since)) for e in entered],
            design=self.design,
            ordered=self.rule == "pooled",
        )

    def _floor(self, readings: Tapes, n: int) -> float:
        """Return the best value that a censored reading of the first n pulls may have had."""
        heads = (
            oriented(np.asarray(readings[arm][:n], dtype=np.float64), self.problem, arm)
            for arm in self.problem.arms
        )
        least = (float(head[np.isfinite(head)].min()) for head in heads if np.isfinite(head).any())
        return min(least, default=-math.inf)

    def _check_exclusion(self, exclusion: Exclusion, readings: Tapes) -> None:
        for bound, lost in ((exclusion.upper, math.inf), (exclusion.lower, -math.inf)):
            tape = oriented(np.asarray(readings[bound.arm][: bound.n], dtype=np.float64), self.problem, bound.arm)
            if bound.rank is None and self.problem.missing == "worst":
                tape = np.where(np.isnan(tape), lost, tape)  # evidence T8: at its worst for either end
            if bound.rank is None and lost > 0 and np.isneginf(tape).any():
                tape = np.maximum(tape, self._floor(readings, bound.n))
            value = _middle(tape) if bound.rank is None else Sample.of(tape).at(bound.rank)
            value = value + bound.radius if bound.recomputable else bound.value
            if value != bound.value and not math.isclose(value, bound.value, rel_tol=1e-9):
                msg = f"a bound of {bound.arm!r} is {value:.6g}, but the certificate says {bound.value:.6g}"
                raise VerificationError(msg)
        if not exclusion.upper.value <= exclusion.lower.value:
            msg = f"the bounds given do not exclude {exclusion.arm!r}"
            raise VerificationError(msg)


def _middle(tape: Floats) -> float:
    middle = moments(tape).m1
    return -math.inf if math.isnan(middle) else middle  # an arm without a single value looks worst
