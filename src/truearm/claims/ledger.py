"""Many gates with one error rate: levels and verdicts (extensions L1, L2)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from truearm.claims.result import Result
from truearm.problem import check_count, check_delta, require

ErrorRate = Literal["fdr", "any"]
Verdict = Literal["accepted", "not better", "undecided", "doubtful", "open"]
VERDICTS: tuple[Verdict, ...] = ("accepted", "not better", "undecided", "doubtful", "open")
BASE = "base"  # what the function that a candidate is compared with is called


def weight(number: int, expected: int) -> float:
    """Return g_t of gate `number` (from 1 on); all weights together are at most 1 (extensions L)."""
    if number <= expected:
        return 1 / (2 * expected)  # extensions L
    n = number - expected + 1
    return 0.47 / (n * math.log(n) ** 2) / 2  # extensions L


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is fixed when a ledger is created."""

    delta: float = 0.05
    error_rate: ErrorRate = "fdr"
    expected: int = 100

    def __post_init__(self) -> None:
        require(self.error_rate in ("fdr", "any"), "error_rate", self.error_rate, "be 'fdr' or 'any'")
        object.__setattr__(self, "delta", check_delta(self.delta))
        check_count("expected", self.expected)

    def __str__(self) -> str:
        return f"delta={self.delta:g}, error_rate={self.error_rate!r}, expected={self.expected}"

    def level(self, number: int, accepted: int) -> float:
        """Return the level of a gate that opens after this many were accepted (extensions L1, L2)."""
        return self.delta * weight(number, self.expected) * (1 + accepted * (self.error_rate == "fdr"))

    def spent(self, gates: int) -> float:
        """Return the part of delta that the weights of this many gates use."""
        return self.delta * math.fsum(weight(number, self.expected) for number in range(1, gates + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One decision of a ledger: its level, the evidence it closed with, and the verdict."""

    number: int
    name: str
    level: float
    base: str = BASE
    verdict: Verdict = "open"
    log_evidence: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    """What was asked, when, and of what; digests of commands and readings."""
    result: Result | None = None
    """The measurements, for the gate that was just decided."""

    @property
    def accepted(self) -> bool:
        """Whether the candidate was accepted."""
        return self.verdict == "accepted"

    @property
    def log_bar(self) -> float:
        """The log-evidence from which on the candidate is accepted."""
        return -math.log(self.level)

    def judge(self, log_evidence: float, log_against: float, *, doubtful: bool) -> Verdict:
        """Return the verdict on evidence for the candidate and for the base (extensions L)."""
        if doubtful:
            return "doubtful"
        if log_evidence >= self.log_bar:
            return "accepted"
        return "not better" if log_against >= self.log_bar else "undecided"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values without the measurements."""
        plain = {name: getattr(self, name) for name in ("number", "name", "base", "level", "verdict", "accepted")}
        return {**plain, "log_evidence": self.log_evidence, "details": dict(self.details)}


@dataclass(frozen=True, slots=True)
class Account:
    """A ledger as it is shown: its settings and all gates."""

    settings: Settings
    gates: Sequence[Gate]

    @property
    def spent(self) -> float:
        """The part of delta that the weights of the opened gates use."""
        return self.settings.spent(len(self.gates))

    @property
    def next_level(self) -> float:
        """The level of the next gate."""
        return self.settings.level(len(self.gates) + 1, sum(gate.accepted for gate in self.gates))

    def count(self, verdict: Verdict) -> int:
        """Return how many gates have a verdict."""
        return sum(gate.verdict == verdict for gate in self.gates)
