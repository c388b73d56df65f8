"""Many accept/reject decisions, one error rate (extensions L1, L2).

A ledger is a hash-chained file. A gate's level is on disk before its first reading and is spent in any case: a
process that dies leaves a gate that did not accept. Reading a ledger recomputes it, and refuses a forged one.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Unpack

from truearm import store
from truearm.claims.certify import judge_of
from truearm.claims.gates import BASE, Account, ErrorRate, LedgerGate
from truearm.claims.result import Result
from truearm.errors import ArmFailed, ProtocolError, VerificationError
from truearm.evaluation import check_items, check_limits, evaluate
from truearm.problem import (
    Contamination,
    Handicap,
    Problem,
    ProblemOptions,
    Tolerance,
    check_count,
    fix_options,
    refuse,
    require,
)
from truearm.run import OnError, Study, run
from truearm.store import LEDGER, Database, Row

_NAME = "ledger"  # the only chain in the file
_OPENED, _CLOSED = "opened", "closed"


@dataclass(kw_only=True)
class Book(Account):
    """The account that the rows up to a position describe; each row must follow from those before it."""

    path: str
    digests: list[bytes]
    """The digest of each row, which covers the rows before it."""

    @classmethod
    def open_file(cls, database: Database, path: str | Path) -> "Book":
        """Return the account of a file before its first gate."""
        first = database.first(_NAME)
        if first is None:
            raise VerificationError(f"{path}: the settings of the ledger were deleted; restore a copy")
        return cls(path=str(path), digests=[first.digest], **store.parse_json(first.notes))

    @property
    def position(self) -> int:
        """How many rows follow the settings."""
        return len(self.digests) - 1

    @property
    def head(self) -> str:
        """The digest of the last row, which covers all rows."""
        return self.digests[-1].hex()

    def read(self, database: Database) -> None:
        """Add the rows written since the last read."""
        while rows := database.rows(_NAME, self.position):
            store.check_chain(rows, self.position, self.digests[-1], self.path)
            for row in map(Row._make, rows):
                try:
                    is_right = (row.worker, row.at, row.draw) == (None, 0.0, None) and self._add(row)
                except (KeyError, IndexError, TypeError, ValueError, ProtocolError):
                    is_right = False
                if not is_right:
                    what = f"row {row.position} (gate {row.ticket}, {row.arm!r})"
                    msg = f"{self.path}: {what} does not follow from the rows before it; restore a copy"
                    raise VerificationError(msg)
                self.digests.append(row.digest)

    def _add(self, row: Row) -> bool:
        notes = store.parse_json(row.notes)
        if row.kind == _OPENED:
            gate = self.open(row.arm or "", notes.pop("base"), notes)
            self.gates.append(gate)
            return (row.ticket, row.value) == (gate.number, repr(gate.level))
        place = (row.ticket or 0) - 1
        opened = self.gates[place]
        closed = opened.close(float(row.value or "nan"), notes)
        self.gates[place] = closed
        self.accepted += closed.accepted
        expected = (_CLOSED, "open", opened.name, closed.verdict, opened.number)
        return (row.kind, opened.verdict, row.arm, notes["verdict"], row.ticket) == expected


class Ledger(AbstractContextManager["Ledger"]):
    """A file of decisions to accept or reject candidates, with one error rate for all of them.

    Parameters
    ----------
    path
        The file. A ledger that exists is continued; it must have been created with the same settings.
    delta
        The error rate.
    error_rate
        "fdr" bounds the expected share of accepted candidates that are not better than their base, "any" the
        chance that there is one.
    expected
        About how many gates there will be. They share half of delta; all gates after them share the rest.

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
        account = Account(delta=delta, error_rate=error_rate, expected=expected)
        self._database = Database(path, LEDGER)
        text = store.to_json("settings", account.settings)
        first = store.first_row(text)._replace(at=0.0)
        try:
            with self._database.write(_NAME):
                if self._database.last(_NAME) is None:
                    self._database.append(_NAME, [first])
            self._book = Book.open_file(self._database, path)
            known = ", ".join(f"{name}={value!r}" for name, value in self._book.settings.items())
            msg = f"{path} is a ledger with {known}; use the same settings, or another file"
            refuse(self._book.settings != account.settings, msg, "path")
        except BaseException:
            self.close()
            raise
        self._turn = threading.Lock()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def gates(self) -> list[LedgerGate]:
        """All gates in the order in which they opened."""
        return list(self._read().gates)

    @property
    def spent(self) -> float:
        """The part of delta that the weights of the opened gates use."""
        return self._read().spent

    def _read(self) -> Book:
        with self._turn:
            self._book.read(self._database)
        return self._book

    def open(self, name: str, base: str = BASE, details: Mapping[str, Any] | None = None) -> LedgerGate:
        """Open a gate: number it and spend its level, in one transaction."""
        store.check_text("name", name)
        require(isinstance(details, Mapping | None), "details", details, "be a dict of plain JSON values")
        with self._turn, self._database.write(_NAME):
            self._book.read(self._database)
            gate = self._book.open(name, base, {**(details or {}), "opened": _now()})
            notes = store.to_json("details", {"base": base, **gate.details})
            self._append([_OPENED, gate.number, name, None, repr(gate.level), notes])
        return gate

    def record(self, gate: LedgerGate, result: Result) -> LedgerGate:
        """Close a gate with the result of its measurements."""
        require(isinstance(gate, LedgerGate), "gate", gate, "be a gate that this ledger opened")
        arms = result.problem.arms if isinstance(result, Result) else ()
        must = f"compare {gate.name!r} with {gate.base!r}, and nothing else"
        require(len(arms) == 2 and gate.base in arms, "result", arms, must)
        base, candidate = arms.index(gate.base), 1 - arms.index(gate.base)
        judge = judge_of(result.certificate, result.readings or {})
        evidence, against = (judge.better(*pair).log_value for pair in ((candidate, base), (base, candidate)))
        notes = {
            "doubtful": bool(result.doubts),
            "log_against": against,
            "pulls": result.total,
            "readings": result.certificate.digest,
            "closed": _now(),
        }
        notes["verdict"] = gate.close(evidence, notes).verdict
        with self._turn, self._database.write(_NAME):
            self._book.read(self._database)
            if self._book.gates[gate.number - 1].verdict != "open":
                raise ProtocolError(f"gate {gate.number} ({gate.name!r}) is closed already; open a new one")
            self._append([_CLOSED, gate.number, gate.name, None, repr(evidence), store.to_json("notes", notes)])
        return replace(gate.close(evidence, notes), result=result)

    def _append(self, text: list[Any]) -> None:
        # the time is in the notes, where the chain covers it
        rows = [row._replace(at=0.0) for row in store.chain([text], self._book.position, self._book.digests[-1])]
        self._database.append(_NAME, rows)

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
    ) -> LedgerGate:
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
        _check_sources(candidate=candidate, base=base)
        problem = _gate_problem(name, goal=goal, tolerance=tolerance, contamination=contamination)
        sources, pulls = {name: candidate, BASE: base}, check_count("max_pulls", max_pulls)
        details = {"goal": goal, "tolerance": str(Tolerance.of(tolerance)), "max_pulls": pulls}

        def measure(level: float) -> Result:
            return run(Study(at_level(problem, level), max_pulls=pulls), sources.__getitem__)

        return self._decide(name, details, measure)

    def accept_scores(
        self,
        name: str,
        candidate: Callable[[Any], float],
        base: Callable[[Any], float],
        items: Iterable[Any],
        *,
        score_range: tuple[float, float] = (0, 1),
        goal: Literal["max", "min"] = "max",
        max_items: int | None = None,
        contamination: float | Contamination = 0.0,
        on_error: OnError = "missing",
        workers: int | None = None,
    ) -> LedgerGate:
        """Score a candidate and a base on items in random order and decide whether the candidate's mean is higher.

        The items are drawn in a new order for each gate; the claim is about their list (extensions B).

        Parameters
        ----------
        candidate, base
            Functions of one item that return its score.
        score_range, goal, max_items, contamination, on_error, workers
            As in `evaluate`.
        """
        _check_sources(candidate=candidate, base=base)
        known = check_items(items)
        check_limits(max_items=max_items, on_error=on_error, workers=workers)
        options: dict[str, Any] = {"goal": goal, "contamination": contamination, "score_range": score_range}
        how: dict[str, Any] = {"max_items": max_items, "on_error": on_error, "workers": workers, "progress": False}
        problem = _gate_problem(name, items=len(known), **options)
        details = {"goal": goal, "score_range": list(problem.score_range or ()), "items": len(known)}

        def measure(level: float) -> Result:
            delta = at_level(problem, level).delta
            return evaluate({name: candidate, BASE: base}, known, delta=delta, **options, **how)

        return self._decide(name, details, measure)

    def _decide(self, name: str, details: Mapping[str, Any], measure: Callable[[float], Result]) -> LedgerGate:
        """Open a gate, measure at its level and close it, even if the measurement fails."""
        gate = self.open(name, details=details)
        try:
            return self.record(gate, measure(gate.level))
        except ArmFailed as error:
            if isinstance(error.result, Result):
                self.record(gate, error.result)
            raise


def _check_sources(**sources: object) -> None:
    """Raise unless all are functions, before a gate opens and spends its level."""
    for name, source in sources.items():
        require(callable(source), name, source, "be a function that returns one reading")


def _gate_problem(candidate: str, **options: Unpack[ProblemOptions]) -> Problem:
    """Return the problem of a gate: the candidate must be better than the base by more than the tolerance."""
    is_name = isinstance(candidate, str) and candidate not in ("", BASE)
    require(is_name, "name", candidate, f"be text that names the candidate, and not {BASE!r}")
    allowed = Tolerance.of(options.pop("tolerance", 0.0))
    problem = Problem.of((candidate, BASE), **fix_options(options, rounds=True))
    return replace(problem, handicap=Handicap(candidate, allowed)) if allowed else problem


def at_level(problem: Problem, level: float) -> Problem:
    """Return a gate's problem, which accepts at evidence 1/level: two arms decide at 2/delta (extensions E1)."""
    return replace(problem, delta=2 * level)


def read_ledger(path: str | Path, head: str | None = None) -> Book:
    """Read a ledger and recompute its chain, every number, level and verdict.

    Parameters
    ----------
    head
        A digest noted earlier: it must be in the chain, because a forger can recompute all digests.

    Raises
    ------
    VerificationError
        If the file was changed, or a row does not follow from the rows before it.
    """
    with closing(Database(path, LEDGER)) as database:
        refuse(not database.exists(), f"{path} holds no ledger; `truearm race --ledger {path}` starts one", "path")
        book = Book.open_file(database, path)
        book.read(database)
    if head is not None:
        store.check_head(head, (digest.hex() for digest in book.digests), path)
    return book


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
