"""Results for other programs: a frame, and a JSON document and a CSV table that hyperfine's scripts can read.

The document has the keys of `Result.to_dict` and `results`, the list that hyperfine writes; the table begins with
hyperfine's columns. JSON is strict: infinities and NaN are null, or strings as readings.
"""

import csv
import io
import json
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from truearm.claims.certificate import Tapes
from truearm.claims.certify import ratios
from truearm.claims.gates import Account
from truearm.claims.plain import Backend, make_frame, to_plain
from truearm.claims.result import Arm, Result
from truearm.claims.suite import SuiteResult
from truearm.errors import printable
from truearm.report.summaries import ledger_guarantee, suite_summary
from truearm.report.tables import hyperfine_statistics, suite_order, suite_point
from truearm.report.words import standing

_UNIT_NAMES = {"wall": "second", "cpu": "second", "memory": "byte"}
_INVISIBLE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROL = re.compile(f"[\x00-\x1f{_INVISIBLE.pattern[1:]}")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_MAX_TIME_S = 1e300  # a longer one is not the time of a run
_ARM_COLUMNS = ("runs", "timed_out", "quantile", "low", "high", "standing")
_COLUMNS = ("command", "mean", "stddev", "median", "user", "system", "min", "max")


def document(
    result: Result, tapes: Tapes, *, reference: str | None = None, metric: str | None = None, **more: object
) -> dict[str, Any]:
    """Return a result with its readings in order of pull, and more keys, as one document for JSON.

    Ratios are relative to the reference, or else to the leader; the metric gives readings their unit.
    """
    return {
        **result.to_dict(),
        "metric": metric,
        "unit": _UNIT_NAMES.get(metric or ""),
        "ratios": to_plain(ratios(result, reference), null=True),
        "readings": {arm: to_plain(list(tape)) for arm, tape in tapes.items()},
        **more,
    }


def hyperfine_results(commands: Sequence[Any], runs: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the list that hyperfine writes under `results`: wall times in seconds, as measured.

    A run that timed out has the time until it was killed, and `timed_out` is true. A statistic that the true
    time would change is null. Commands have a name and parameters, runs an arm and notes.
    """
    by_arm: dict[str, list[Mapping[str, Any]]] = {command.name: [] for command in commands}
    for run in runs:
        if run.arm in by_arm and run.notes and _is_timed(run.notes):
            by_arm[run.arm].append(run.notes)
    return [_hyperfine_result(command, by_arm[command.name]) for command in commands]


def _is_timed(notes: Mapping[str, Any]) -> bool:
    """Return True if notes are those of a timed run: other sources may note anything."""
    times = [notes.get(key) for key in ("wall", "user", "system")]
    numbers = all(isinstance(time, int | float) and 0 <= time <= _MAX_TIME_S for time in times)
    return numbers and isinstance(notes.get("exit_code"), int)


def _hyperfine_result(command: Any, details: Sequence[Mapping[str, Any]]) -> dict[str, Any]:  # noqa: ANN401
    times = [float(d["wall"]) for d in details]
    late = [bool(d.get("timed_out")) for d in details]
    memory = [d.get("peak_memory") for d in details]
    found: dict[str, Any] = {
        "command": command.name,
        **hyperfine_statistics([math.inf if killed else time for time, killed in zip(times, late, strict=True)]),
        "user": statistics.fmean(d["user"] for d in details) if times else None,
        "system": statistics.fmean(d["system"] for d in details) if times else None,
        "times": times,
        "exit_codes": [d["exit_code"] if d["exit_code"] >= 0 else None for d in details],
        "timed_out": late,
    }
    if memory and None not in memory:
        found["memory_usage_byte"] = memory
    if command.parameters:
        found["parameters"] = dict(command.parameters)
    return found


def frame(result: Result, backend: Backend = "pandas") -> Any:  # noqa: ANN401 - whichever library the caller has
    """Return what is known about each arm, a row each, as a data frame."""
    columns = {field.name: [getattr(arm, field.name) for arm in result.arms] for field in fields(Arm)}
    columns["standing"] = [standing(result, arm.name) for arm in result.arms]
    return make_frame(columns, backend)


def json_text(value: Mapping[str, Any]) -> str:
    """Return strict JSON, indented for people, without characters that control a terminal."""
    text = json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False)
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def csv_text(result: Result, results: Sequence[Mapping[str, Any]]) -> str:
    """Return hyperfine's columns and what is known about each arm.

    `timed_out` counts the runs that were killed; a quantile without bound is an empty cell.
    """
    names = sorted({name for row in results for name in row.get("parameters", ())})
    known = {row["command"]: row for row in results}

    def cells(arm: Arm) -> list[Any]:
        row = known.get(arm.name, {})
        given = [row.get("parameters", {}).get(name) for name in names]
        late = sum(row.get("timed_out", ())) if row else None
        mine = (arm.n, late, arm.observed, arm.low, arm.high, standing(result, arm.name))
        return [arm.name, *(row.get(key) for key in _COLUMNS[1:]), *given, *mine]

    return _csv([(*_COLUMNS, *(f"parameter_{n}" for n in names), *_ARM_COLUMNS), *map(cells, result.arms)])


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV; numbers that are not finite are empty cells."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(cell, to_plain(row, null=True)) for row in rows)
    return text.getvalue()


def cell(value: object) -> object:
    r"""Return a CSV cell on one line, without terminal control codes or spreadsheet formulas.

    Control characters are shown by their numbers. Text that begins like a formula and is not a number gets
    a leading apostrophe, which tells spreadsheets that it is text.
    """
    if not isinstance(value, str):
        return value
    text = _CONTROL.sub(lambda found: printable(found[0]), value)
    begins = text.lstrip()[:1]  # some spreadsheets skip spaces
    is_formula = begins and begins in "=+-@\uff1d\uff0b\uff0d\uff20" and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


_SUITE_COLUMNS = (
    *("metric", "arm", "goal", "standing", "reference_median", "median"),
    *("scale", "observed", "low", "high"),
)


def suite_document(result: SuiteResult) -> dict[str, Any]:
    """Return a suite and its runs for JSON: everything needed to recompute it."""
    return {**result.to_dict(runs=True), "summary": suite_summary(result, "command")}


def suite_csv(result: SuiteResult) -> str:
    """Return a line for each metric and arm."""
    rows = (
        [*(getattr(one, name) for name in _SUITE_COLUMNS), suite_point(result, one)] for one in suite_order(result)
    )
    return _csv([(*_SUITE_COLUMNS, "up_to"), *rows])


def ledger_document(account: Account) -> dict[str, Any]:
    """Return a ledger for JSON."""
    return {
        **account.settings,
        "spent": account.spent,
        "next_level": account.next_level,
        "guarantee": ledger_guarantee(account),
        "gates": [gate.to_dict() for gate in account.gates],
    }
