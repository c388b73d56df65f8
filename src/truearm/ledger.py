"""Many accept/reject decisions, one error rate (extensions L1, L2).

A ledger is a hash-chained file. A gate's level is on disk before its first reading and is spent whatever happens
then: a process that dies leaves a gate that did not accept.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Unpack

from truearm.claims.certify import judge_of
from truearm.claims.result import Result
from truearm.errors import InvalidArgument, ProtocolError, VerificationError
from truearm.problem import (
    Contamination,
    Handicap,
    Problem,
    ProblemOptions,
    Tolerance,
    check_count,
    check_delta,
    fix_options,
)
from truearm.run import Study, run
from truearm.store import LEDGER, Database, Row, chain, check_chain, first_digest, parse_json, to_json

ErrorRate = Literal["fdr", "any"]
Verdict = Literal["accepted", "not better", "undecided", "doubtful", "open"]
_NAME = "ledger"  # of the only chain in the file
_OPENED, _CLOSED = "opened", "closed"


def weight(number: int, expected: int) -> float:
    """Return g_t of gate `number` (from 1 on); all weights together are at most 1 (extensions L)."""
    if number <= expected:
        return 1 / (2 * expected)  # extensions L
    n = number - expected + 1
    return 0.47 / (n * math.log(n) ** 2) / 2  # extensions L


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One decision of a ledger: its level, the evidence it closed with, and the verdict."""

    number: int
    name: str
    level: float
    verdict: Verdict
    log_evidence: float
    details: Mapping[str, Any]
    result: Result | None = None
    """The measurements, for the gate that was just decided."""

    @property
    def accepted(self) -> bool:
        """Whether the candidate was accepted."""
        return self.verdict == "accepted"


class Ledger:
    """Accept or reject many candidates with one error rate for all decisions.

    Parameters
    ----------
    path
        The file. A ledger that exists is continued; it must have been created with the same settings.
    delta
        The error rate.
    error_rate
        "fdr" bounds the expected share of false ones among the accepted candidates, "any" the chance that any
        accepted candidate is not better than its base.
    expected
        About how many gates there will be. More are allowed, at smaller levels.

    Examples
    --------
    >>> import random, tempfile
    >>> draw = random.Random(1)
    >>> with tempfile.TemporaryDirectory() as folder, Ledger(f"{folder}/loop.db", expected=10) as ledger:
    ...     gate = ledger.accept("try-1", lambda: draw.gauss(9, 1), lambda: draw.gauss(10, 1), goal="min")
    >>> gate.number, gate.accepted, round(gate.level, 6)
    (1, True, 0.0025)
    """

    def __init__(
        self, path: str | Path, *, delta: float = 0.05, error_rate: ErrorRate = "fdr", expected: int = 100
    ) -> None:
        if error_rate not in ("fdr", "any"):
            msg = f"error_rate must be 'fdr' or 'any', but got {error_rate!r}"
            raise InvalidArgument(msg, "error_rate", error_rate)
        self.delta = check_delta(delta)
        self.error_rate = error_rate
        self.expected = check_count("expected", expected, least=1)
        self._database = Database(path, LEDGER)
        self._database.prepare()
        settings = {"delta": self.delta, "error_rate": error_rate, "expected": self.expected}
        text = to_json("settings", settings)
        with self._database.write(_NAME) as transaction:
            if transaction.last() is None:
                transaction.append([_first_row(text)])
        known = read_settings(self._database)
        if known != settings:
            here = ", ".join(f"{key}={value!r}" for key, value in known.items())
            self.close()
            msg = f"{path} is a ledger with {here}; use the same settings, or choose another file"
            raise InvalidArgument(msg, "path")

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def gates(self) -> list[Gate]:
        """All gates in the order in which they opened."""
        return list(_gates(self._database.rows(_NAME, 0)).values())

    @property
    def spent(self) -> float:
        """The part of delta that the weights of the opened gates use."""
        return sum(self.delta * weight(gate.number, self.expected) for gate in self.gates)

    def open(self, name: str, details: Mapping[str, Any]) -> Gate:
        """Open a gate: number it and spend its level, in one transaction."""
        with self._database.write(_NAME) as transaction:
            gates = list(_gates(transaction.rows(0)).values())
            gate = Gate(
                number=len(gates) + 1,
                name=name,
                level=gate_level(gates, len(gates) + 1, self.delta, self.error_rate, self.expected),
                verdict="open",
                log_evidence=0.0,
                details=details,
            )
            last = transaction.last()
            text = [_OPENED, gate.number, name, None, repr(gate.level), to_json("details", details)]
            assert last is not None  # the settings
            transaction.append(chain([text], last.position, last.digest))
        return gate

    def record(self, gate: Gate, result: Result) -> Gate:
        """Close a gate with the result of its measurements."""
        candidate, base = result.problem.arms
        evidence = judge_of(result.certificate, result.readings or {}).better(0, 1).log_value
        verdict: Verdict = "undecided"
        if result.doubts:
            verdict = "doubtful"
        elif result.best == candidate and evidence >= -math.log(gate.level):
            verdict = "accepted"
        elif result.best == base:
            verdict = "not better"
        notes = {"verdict": verdict, "digest": result.certificate.digest, "pulls": result.total}
        with self._database.write(_NAME) as transaction:
            if _gates(transaction.rows(0))[gate.number].verdict != "open":
                msg = f"gate {gate.number} ({gate.name!r}) is closed already; open a new one"
                raise ProtocolError(msg)
            last = transaction.last()
            assert last is not None
            text = [_CLOSED, gate.number, gate.name, None, repr(evidence), to_json("notes", notes)]
            transaction.append(chain([text], last.position, last.digest))
        return replace(gate, verdict=verdict, log_evidence=evidence, result=result)

    def accept(
        self,
        name: str,
        candidate: Callable[[], float],
        base: Callable[[], float],
        *,
        goal: Literal["max", "min"] = "max",
        tolerance: float | str | Tolerance = 0.0,
        max_pulls: int = 1000,
        contamination: float | str | Contamination | None = "blind",
    ) -> Gate:
        """Measure a candidate and a base side by side in rounds and decide whether the candidate is better.

        Parameters
        ----------
        candidate, base
            Functions that return one reading.
        tolerance
            The candidate is accepted only if it is better by more than this.
        max_pulls
            The budget of readings; a gate that ends undecided does not accept.
        """
        problem = gate_problem((name, "base"), goal=goal, tolerance=tolerance, contamination=contamination)
        gate = self.open(name, {"goal": goal, "tolerance": str(tolerance), "max_pulls": max_pulls})
        sources = dict(zip(problem.arms, (candidate, base), strict=True))
        study = Study.of(at_level(problem, gate.level), max_pulls=max_pulls)
        return self.record(gate, run(study, lambda arm: sources[arm]))


def gate_problem(arms: tuple[str, str], **options: Unpack[ProblemOptions]) -> Problem:
    """Return the problem of a gate: a candidate, which must be better by more than the tolerance, and a base."""
    allowed = Tolerance.of(options.pop("tolerance", 0.0))
    problem = Problem.of(arms, **fix_options(options, rounds=True))
    return replace(problem, handicap=Handicap(arms[0], allowed)) if allowed else problem


def at_level(problem: Problem, level: float) -> Problem:
    """Return the problem of a gate that accepts at evidence 1/level: rounds of two arms decide at 2/delta (E1)."""
    return replace(problem, delta=2 * level)


def gate_level(gates: Sequence[Gate], number: int, delta: float, error_rate: ErrorRate, expected: int) -> float:
    """Return the level of a gate that opens after these (extensions L1, L2)."""
    accepted = sum(gate.accepted for gate in gates) if error_rate == "fdr" else 0
    return delta * weight(number, expected) * (1 + accepted)


def verify_ledger(path: str | Path) -> list[Gate]:
    """Recompute the chain, every level and every verdict of a ledger, and return its gates.

    Raises
    ------
    VerificationError
        If the file was changed, or a level or a verdict does not follow from the rows before it.
    """
    database = Database(path, LEDGER)
    try:
        settings, first = read_settings(database), database.row(_NAME, 0)
        assert first is not None
        rows = database.rows(_NAME, 0)
        check_chain(rows, 0, first.digest, str(path))
    finally:
        database.close()
    known: list[Row] = []
    for row in rows:
        known.append(row)
        gate = _gates(known)[row.ticket or 0]
        if row.kind == _OPENED:
            before = list(_gates(known[:-1]).values())
            level = gate_level(before, len(before) + 1, **settings)
            is_right = gate.number == len(before) + 1 and gate.level == level
        else:
            is_right = not gate.accepted or gate.log_evidence >= -math.log(gate.level)
        if not is_right:
            msg = f"{path}: gate {gate.number} ({gate.name!r}) does not follow from the gates before it"
            raise VerificationError(msg)
    return list(_gates(rows).values())


def read_settings(database: Database) -> dict[str, Any]:
    """Return delta, error rate and expected number of gates of a ledger."""
    row = database.row(_NAME, 0)
    if row is None or row.digest != first_digest(row.notes or ""):
        msg = f"{database.name}: the settings of the ledger were changed after they were written; restore a copy"
        raise VerificationError(msg)
    settings: dict[str, Any] = parse_json(row.notes or "")
    return settings


def _first_row(text: str) -> Row:
    return Row(0, "begun", None, None, None, None, text, first_digest(text), None, 0.0)


def _gates(rows: Iterable[Row]) -> dict[int, Gate]:
    """Return the gates that rows describe, by number."""
    gates: dict[int, Gate] = {}
    for row in rows:
        notes, number = parse_json(row.notes or "{}"), row.ticket or 0
        if row.kind == _OPENED:
            gates[number] = Gate(
                number=number,
                name=row.arm or "",
                level=float(row.value or "nan"),
                verdict="open",
                log_evidence=0.0,
                details=notes,
            )
        elif number in gates and gates[number].verdict == "open":
            gates[number] = replace(
                gates[number], verdict=notes["verdict"], log_evidence=float(row.value or "nan")
            )
    return gates
