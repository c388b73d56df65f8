"""Check that a result follows from its readings: recompute it and compare every field.

A result follows from the problem, the design, the origin (which policy decided, or `analyze`) and the readings, or
the log of the study. Nothing else in a document is trusted. Checking claims alone is not enough: with dates and
leaders chosen after the fact there is evidence for any arm (docs/certificate.md).
"""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from truearm import policies
from truearm.analysis import repeat_analysis
from truearm.claims.certificate import Certificate, Readings, Tapes, digest
from truearm.claims.certify import ratios
from truearm.claims.plain import from_plain, to_plain
from truearm.claims.result import Analysis, Result, check_schema
from truearm.claims.suite import Runs, Suite, judge_suite
from truearm.commands.measure import runs_of
from truearm.data.columns import Dataset
from truearm.errors import InvalidArgument, ProtocolError, VerificationError
from truearm.evidence.counts import Counts
from truearm.evidence.sample import as_readings
from truearm.evidence.units import Units
from truearm.policies import Policy
from truearm.problem import refuse, require
from truearm.study import Study

_ABSENT = object()  # stands for a missing part
_LARGEST = sys.float_info.max
RELATIVE_ACCURACY = 1e-6  # reports show four digits, and machines differ in the last of sixteen
_SENTENCES, _ALARMS = ("assumptions", "notes"), ("doubts", "alarms")  # another version may word these differently
_ABOUT_ROWS = ("clusters", "confounded")  # doubts about columns that the readings do not show

Source = Readings | Dataset | Counts | Study
Untrusted = Any  # what the user gave, or a part of a document


@dataclass(frozen=True, slots=True)
class Verified:
    """A result that follows from its readings; false as a truth value if a part of it was taken on trust."""

    trust: tuple[str, ...] = ()
    """What was not recomputed, and what would allow it."""
    beside: tuple[str, ...] = ()
    """Keys of a document that are not about the decision: a machine, commands, a unit."""

    def __bool__(self) -> bool:
        return not self.trust

    def __str__(self) -> str:
        return f"verified with trust in: {'; '.join(self.trust)}" if self.trust else "verified"


def verify(
    result: Result | Mapping[str, Any], readings: "Source | None" = None, *, policy: "Policy[Any] | None" = None
) -> Verified:
    """Repeat the decision from the readings, compare every field, and raise at the first that differs.

    Parameters
    ----------
    result
        The result of a study or an analysis, or the dictionary that its JSON holds.
    readings
        Per arm in order of pull, None for a pull without a reading; or a study, whose log is replayed. By default
        those in the result. If a study decided while pulls were out, its log is needed.
    policy
        The policy object, if it was one of your own.

    Raises
    ------
    VerificationError
        If a part of the result does not follow from the readings; the message names it.
    InvalidArgument
        If the dictionary is not that of a result, or the decision cannot be repeated without log or policy.

    Examples
    --------
    >>> import numpy as np
    >>> from truearm.analysis import analyze
    >>> tapes = {"A": np.arange(100.0, 300.0), "B": np.arange(200.0)}
    >>> verify(analyze(tapes), tapes)
    Verified(trust=(), beside=())
    """
    is_policy = policy is None or isinstance(policy, str) or hasattr(policy, "start")
    require(is_policy, "policy", policy, "be a policy, such as truearm.policies.by_name('toptwo')")
    source: Any = readings
    if isinstance(result, Mapping) and "suite" in result:
        return _verify_suite(result, source)
    if isinstance(result, Result):
        certificate, kept, given = result.certificate, result.readings, replace(result, conditions=None).to_dict()
        source = result.counts if source is None and isinstance(result, Analysis) else source
    else:
        certificate, given = certificate_of(result), dict(result)
        kept = from_plain(Mapping[str, tuple[float | None, ...]] | None, given.pop("readings", None), "readings")
    refuse(source is None and kept is None, "the result does not contain its readings; give them as well")
    if source is not None and kept is not None:
        tapes, _ = _read(certificate, kept)
        _check_digest(certificate, tapes, "the readings in the document are not those it is checked against")
    repeat, trust = _repeat(certificate, kept if source is None else source, given.get("units"), policy)
    expected = repeat.to_dict()
    expected.pop("conditions", None)  # how readings were taken does not follow from them
    if "ratios" in given:  # relative to the arm that the given ones are relative to
        first = given["ratios"][0] if isinstance(given["ratios"], list) and given["ratios"] else None
        named = first.get("reference") if isinstance(first, dict) else None
        found = ratios(repeat, named if named in repeat.problem.arms else None)
        expected["ratios"] = to_plain(found, null=True)
    return _compare(given, expected, trust)


def verify_certificate(certificate: Certificate, readings: Readings) -> Verified:
    """Repeat the decision from the readings and compare the certificate alone, as `verify` compares a result."""
    repeat, trust = _repeat(certificate, readings)
    return _compare({"certificate": to_plain(certificate)}, {"certificate": to_plain(repeat.certificate)}, trust)


def certificate_of(data: Mapping[str, Any]) -> Certificate:
    """Return the certificate in the dictionary of a result."""
    check_schema(data)
    return cast("Certificate", from_plain(Certificate, data["certificate"], "certificate"))


# Repeating the decision


def _repeat(
    certificate: Certificate, source: Untrusted, units: Untrusted = None, policy: "Policy[Any] | None" = None
) -> tuple[Result, tuple[str, ...]]:
    """Recompute the result, and list what was taken on trust."""
    tapes, table = _read(certificate, source)
    _check_digest(certificate, tapes, "the readings are not those of the certificate")
    origin, is_study = certificate.origin, isinstance(source, Study)
    msg = "the certificate names no policy of truearm, so the decision cannot be repeated; give policy="
    refuse(not is_study and (origin is None or (policy is None and origin.by is None)), msg)
    msg = "the study decided while pulls were out, so its readings do not show what it knew; give its log"
    refuse(not is_study and origin is not None and origin.overlapping, msg)
    try:
        if is_study:
            study = Study.replay(source.definition, source.events())
        elif certificate.is_analysis:
            return _analyze(certificate, table, units, has_rows=isinstance(source, Dataset) and bool(table.tapes))
        else:
            assert origin is not None
            chosen = policies.by_name(origin.by or "", **origin.options) if policy is None else policy
            how: dict[str, Any] = {"policy": chosen, "max_pulls": origin.max_pulls or 0, "seed": origin.seed}
            study = Study.retrace(certificate.problem, cast("Tapes", tapes), **how)
        study.stop()  # here, if it is not done
    except (TypeError, ValueError, ArithmeticError, ProtocolError) as error:
        raise VerificationError(f"certificate.origin does not lead to these readings: {error}") from None
    assert study.result is not None
    return study.result, ()


def _read(certificate: Certificate, source: Untrusted) -> tuple[Readings, Dataset]:
    """Return the readings behind the decision, and the table for an analysis."""
    if isinstance(source, Study):
        return source.readings, Dataset({})
    if isinstance(source, Mapping) and not certificate.is_analysis:
        return source, Dataset({})
    if isinstance(source, Mapping):  # None is a missing reading
        for arm, tape in source.items():
            is_list = isinstance(tape, Iterable) and not isinstance(tape, str | bytes | Mapping)
            require(is_list, f"readings[{arm!r}]", tape, "be a list of numbers")
        tapes = {arm: [math.nan if x is None else x for x in tape] for arm, tape in source.items()}
        table = Dataset({arm: as_readings(tape, arm) for arm, tape in tapes.items()})
    else:
        table = Dataset({}, counted=source) if isinstance(source, Counts) else source
    kinds = "a dict of readings by arm, a table that was loaded, a study, or the counts of a result"
    refuse(not isinstance(table, Dataset), f"readings must be {kinds}, but got {type(source).__name__}")
    if certificate.is_analysis and certificate.problem.rounds and table.counts is None:
        table = table.align()
    if certificate.is_analysis and table.counter is not None:
        repeat_analysis(certificate, table)  # counts become as fine as the decision needs
    return table.tapes if table.counts is None else table.counts.arms(), table


def _check_digest(certificate: Certificate, tapes: Readings, otherwise: str) -> None:
    """Raise unless these are the readings of the certificate."""
    problem = certificate.problem
    if unknown := [arm for arm in tapes if arm not in problem.arms]:
        msg = f"the readings have arms that the certificate does not know: {', '.join(map(repr, unknown)):.200}"
        raise VerificationError(msg)
    try:
        is_same = digest(problem, tapes) == certificate.digest
    except (TypeError, ValueError, OverflowError):
        msg = "readings must be numbers by arm, None for a pull never told and nan for a reading that went wrong"
        raise InvalidArgument(msg) from None
    if not is_same:
        hint = "give the same ones, in the same order and by the same options (such as round)"
        raise VerificationError(f"{otherwise}: their digest differs; {hint}")


def _analyze(
    certificate: Certificate, table: Dataset, units: Untrusted, *, has_rows: bool
) -> tuple[Result, tuple[str, ...]]:
    """Repeat an analysis; what its columns showed is taken on trust unless the rows are given."""
    if table.tapes:
        table = table._replace(tapes={arm: table.tapes[arm] for arm in certificate.problem.arms})
    if has_rows:
        return repeat_analysis(certificate, table), ()
    known: Units | None = from_plain(Units | None, units, "units")
    doubts = tuple(doubt for doubt in certificate.doubts if doubt.kind in _ABOUT_ROWS)
    columns = (f", of the column {doubt.detail!r}" if doubt.detail else "" for doubt in doubts)
    trust = [f"one reading per {known.name!r}; give the table of rows"] if known is not None else []
    trust += [f"a doubt about the rows{column}; give their table" for column in columns]
    return repeat_analysis(certificate, table, units=known, doubts=doubts), tuple(trust)


def _verify_suite(data: Mapping[str, Any], source: Source | None) -> Verified:
    """Recompute a suite from its runs, or from those of its log."""
    if "certificate" in data:
        raise VerificationError("the document has a suite and a certificate: only one of them is allowed")
    suite: Suite = from_plain(Suite, data["suite"], "suite")
    has_runs = "runs" in data
    msg = "the runs of a suite are in its log, or in the document that --json printed; give one of them"
    refuse(not isinstance(source, Study) and (source is not None or not has_runs), msg)
    kind = Mapping[str, tuple[Mapping[str, float | None] | None, ...]]
    runs: Runs = runs_of(source.log) if isinstance(source, Study) else from_plain(kind, data["runs"], "runs")
    if set(runs) != set(suite.problem.arms):
        raise VerificationError(f"the runs are those of {', '.join(runs)}, not of the suite")
    return _compare(data, judge_suite(suite, runs).to_dict(runs=has_runs))


# Comparing


def _compare(given: Mapping[str, Any], expected: Mapping[str, Any], trust: tuple[str, ...] = ()) -> Verified:
    """Raise at the first part that differs, except in wording; ignore keys that are not about the decision."""
    worded, beside = [], tuple(key for key in given if key not in expected)
    for path, one, other in _differences({key: given[key] for key in given if key in expected}, expected):
        name = ".".join(map(str, path)).replace(".[", "[")
        if path[0] in _SENTENCES or (path[0] in _ALARMS and path[-1] == "message"):
            worded.append(f"the wording of {name}, which differs in this version")
            continue
        shown = "is not there" if one is _ABSENT else f"is {one!r:.80}"
        msg = f"{name} {shown}, but the readings give {'nothing' if other is _ABSENT else f'{other!r:.80}'}"
        raise VerificationError(msg)
    return Verified((*trust, *worded), beside)


def _differences(
    given: Untrusted, expected: Untrusted, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Iterate over the parts that differ, in the order of what was expected."""
    if isinstance(expected, Mapping) and isinstance(given, Mapping):
        for key in [*expected, *(key for key in given if key not in expected)]:
            yield from _differences(given.get(key, _ABSENT), expected.get(key, _ABSENT), (*path, key))
    elif isinstance(expected, list) and isinstance(given, Sequence) and not isinstance(given, str):
        for place in range(max(len(expected), len(given))):
            one, other = ((part[place] if place < len(part) else _ABSENT) for part in (given, expected))
            yield from _differences(one, other, (*path, f"[{place}]"))
    elif not _is_same(given, expected):
        yield path, given, expected


def _is_same(given: Untrusted, expected: Untrusted) -> bool:
    """Return True if two parts mean the same: fractions up to rounding, all else exactly."""
    if {type(given), type(expected)} <= {int, float}:
        # counts are exact; isclose raises for an integer beyond all floats
        is_close = type(expected) is float and abs(given) <= _LARGEST
        return given == expected or (is_close and math.isclose(given, expected, rel_tol=RELATIVE_ACCURACY))
    return type(given) is type(expected) and bool(given == expected)
