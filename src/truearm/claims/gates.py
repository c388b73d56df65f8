"""Gates: whether arms are worse than a baseline; and ledgers of many gates with one error rate (extensions L)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from truearm.claims import show
from truearm.claims.certificate import DECIDED, Status
from truearm.claims.certify import judge_of
from truearm.claims.result import Result
from truearm.evidence import Judge
from truearm.evidence.sample import orient
from truearm.evidence.wins import may_reach
from truearm.problem import check_choice, check_count, check_delta

Outcome = Literal["PASS", "FAIL", "UNSURE"]


@dataclass(frozen=True, slots=True)
class Gate:
    """The verdict of a gate: PASS if every arm passes, FAIL if one fails, else UNSURE (evidence T10b)."""

    baseline: str
    verdict: Outcome
    failed: tuple[str, ...] = ()
    """Arms that are certified to be worse than the baseline by more than the tolerance."""
    undecided: tuple[str, ...] = ()
    """Arms that neither fail nor pass."""
    budget: int | None = None
    """Rounds that there may be, if neither verdict was likely within them and the gate ended early."""


def judge_gate(result: Result, baseline: str | None = None, *, budget: int | None = None) -> Gate | None:
    """Return the verdict of a gate; all its statements together err with probability delta.

    The baseline is by default the guard of the policy; without one there is no gate. The claims are all that is
    known of a result that does not contain its readings.
    """
    arms, certificate = result.problem.arms, result.certificate
    if baseline is None and certificate.origin is not None:
        baseline = certificate.origin.options.get("guard")
    if baseline is None:
        return None
    others = tuple(arm for arm in arms if arm != baseline)
    if result.status is Status.DOUBTFUL or is_meaningless(result):
        return Gate(baseline, "UNSURE", undecided=others)
    if result.readings is None:
        failed = {claim.arm for claim in certificate.claims if claim.leader == baseline and not claim.tolerant}
        passed = {claim.leader for claim in certificate.claims if claim.arm == baseline}
    else:  # other targets than wins are judged at the delta of one comparison already
        judge = judge_of(certificate, result.readings)
        found = judge.gate(arms.index(baseline), shared=not result.problem.rounds)
        failed, passed = ({arms[i] for i in some} for some in found)
    if failed:
        return Gate(baseline, "FAIL", failed=tuple(arm for arm in others if arm in failed))
    # the best arm is no worse than the baseline; by quantiles the decision may need less than a pair does
    best = {result.best} if result.status in DECIDED else set()
    undecided = tuple(arm for arm in others if arm not in {*best, *passed})
    return Gate(baseline, "UNSURE", undecided=undecided, budget=budget) if undecided else Gate(baseline, "PASS")


def is_out_of_reach(judge: Judge, baseline: int, rounds: int) -> bool:
    """Return True if a gate in rounds will likely neither pass nor fail within this many rounds: a forecast."""
    bar = judge.log_bar(1, 1 / len(judge.samples))
    others = [i for i in range(len(judge.samples)) if i != baseline]
    may_pass = all(may_reach(judge, i, baseline, rounds, bar) for i in others)
    return not may_pass and not any(may_reach(judge, baseline, i, rounds, bar) for i in others)


def is_meaningless(result: Result) -> bool:
    """Return True if a gate's tolerance is a percentage of a baseline that is not positive, so meaningless."""
    given = result.problem.handicap
    if given is None or not given.tolerance.relative:
        return False
    return any(arm.name == given.arm and arm.observed <= 0 for arm in result.arms)


def is_hidden(result: Result) -> bool:
    """Return True if runs time out before they can be worse than a gate's baseline by more than the tolerance."""
    given = result.problem.handicap
    if given is None or given.limit is None:
        return False
    seen = np.array([arm.observed for arm in result.arms if arm.name == given.arm])
    return bool(np.isinf(orient(seen, result.problem, given.arm)).any())


# Ledgers

ErrorRate = Literal["fdr", "any"]
GateVerdict = Literal["accepted", "not better", "undecided", "doubtful", "open"]
BASE = "base"  # what the function that a candidate is compared with is called
MAX_LEVEL = 0.49  # extensions L2: many acceptances raise levels; a study at delta = 2 level needs delta < 1


def weight(number: int, expected: int) -> float:
    """Return g_t of gate `number` (from 1 on); all weights together are at most 1 (extensions L)."""
    if number <= expected:
        return 1 / (2 * expected)  # extensions L
    n = number - expected + 1
    return 0.47 / (n * math.log(n) ** 2) / 2  # extensions L


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerGate:
    """One decision of a ledger: its level, the evidence it closed with, and the verdict."""

    number: int
    name: str
    level: float
    base: str = BASE
    verdict: GateVerdict = "open"
    log_evidence: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    """What was asked, when, and of what; digests of commands and readings."""
    result: Result | None = field(default=None, repr=False)
    """The measurements, for the gate that was just decided."""

    def __str__(self) -> str:
        return str(show("gate_text", self))

    @property
    def accepted(self) -> bool:
        """Whether the candidate was accepted."""
        return self.verdict == "accepted"

    @property
    def log_bar(self) -> float:
        """The log-evidence from which on the candidate is accepted."""
        return -math.log(self.level)

    def close(self, log_evidence: float, notes: Mapping[str, Any]) -> "LedgerGate":
        """Return the gate with its verdict on evidence for the candidate and for the base (extensions L)."""
        verdict: GateVerdict = "not better" if notes["log_against"] >= self.log_bar else "undecided"
        if notes["doubtful"]:
            verdict = "doubtful"
        elif log_evidence >= self.log_bar:
            verdict = "accepted"
        return replace(self, verdict=verdict, log_evidence=log_evidence, details={**self.details, **notes})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values without the measurements."""
        names = ("number", "name", "base", "level", "verdict", "accepted", "log_evidence", "details")
        return {name: getattr(self, name) for name in names}


@dataclass(slots=True, kw_only=True)
class Account:
    """A ledger: the settings fixed at its creation, and its gates in the order in which they opened."""

    delta: float = 0.05
    error_rate: ErrorRate = "fdr"
    expected: int = 100
    gates: list[LedgerGate] = field(default_factory=list)
    accepted: int = 0

    def __post_init__(self) -> None:
        check_choice("error_rate", self.error_rate, get_args(ErrorRate))
        self.delta = check_delta(self.delta)
        check_count("expected", self.expected)

    @property
    def settings(self) -> dict[str, Any]:
        """What is fixed."""
        return {"delta": self.delta, "error_rate": self.error_rate, "expected": self.expected}

    @property
    def spent(self) -> float:
        """The part of delta that the weights of the opened gates use."""
        return self.delta * math.fsum(weight(gate.number, self.expected) for gate in self.gates)

    @property
    def next_level(self) -> float:
        """The level of the next gate (extensions L1, L2)."""
        share = self.delta * weight(len(self.gates) + 1, self.expected)
        return min(share * (1 + self.accepted * (self.error_rate == "fdr")), MAX_LEVEL)

    def open(self, name: str, base: str, details: Mapping[str, Any]) -> LedgerGate:
        """Return the next gate, which is not added yet."""
        number = len(self.gates) + 1
        return LedgerGate(number=number, name=name, level=self.next_level, base=base, details=details)
