"""Whether a result follows from its readings: the decision is made again by the same code, and all parts compared.

A certificate names who decided (`Origin`). From that, the problem, the design and the readings everything else
follows, so nothing a certificate says of itself is believed: rule, levels, thresholds, ranks, radii, who led when,
claims and intervals are recomputed, and the first part that differs is named. Where the decision cannot be made
again (a policy or an estimator of the user's own, decisions made while pulls were out and no log of them), claims
are recomputed as of their dates, all else is computed from the verdict, and what is left is said to be on trust.
docs/certificate.md says what counts as different.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from truearm import policies
from truearm.analysis import repeated
from truearm.claims import control, tiers
from truearm.claims.analysis import Analysis
from truearm.claims.certificate import (
    DECIDED,
    Alarm,
    Certificate,
    Claim,
    Floats,
    Readings,
    Status,
    Tape,
    Tapes,
    Verdict,
    digest,
)
from truearm.claims.certify import certify
from truearm.claims.plain import from_plain, to_plain
from truearm.claims.ratios import ratios
from truearm.claims.result import Result
from truearm.claims.suites import Runs, Suite, judged
from truearm.errors import InvalidArgument, ProtocolError, VerificationError
from truearm.evidence import Judge
from truearm.evidence.counts import Counted, Counts
from truearm.evidence.sample import as_readings
from truearm.evidence.units import Units
from truearm.policies import Policy
from truearm.study import Study
from truearm.world.metrics import runs_of
from truearm.world.tables import read_counts
from truearm.world.tapes import Collected

ACCURACY = 1e-6  # relative; reports show four digits, and other machines round the last of sixteen differently
_SENTENCES, _ALARMS = ("assumptions", "notes"), ("doubts", "alarms")  # keys whose words another version may choose
_ROWS = ("clusters", "confounded")  # doubts about columns that readings do not show


@dataclass(frozen=True, slots=True)
class Verified:
    """A result that follows from its readings; false as a truth value if a part of it was taken on trust."""

    trust: tuple[str, ...] = ()
    """What was not recomputed, and what would allow it."""
    beside: tuple[str, ...] = ()
    """Keys of a document that say nothing about the decision: a machine, commands, a unit."""

    def __bool__(self) -> bool:
        return not self.trust

    def __str__(self) -> str:
        return f"verified with trust in: {'; '.join(self.trust)}" if self.trust else "verified"


def verify(
    result: Result | Mapping[str, Any],
    readings: "Readings | Collected | Counts | Study | str | Path | None" = None,
    *,
    policy: "Policy[Any] | None" = None,
) -> Verified:
    """Decide again from the readings, compare every field, and raise an error at the first that differs.

    Parameters
    ----------
    result
        What a study or an analysis found, or the dictionary that its JSON holds.
    readings
        Per arm in order of pull, None for a pull never told; what `collect` read from a table; the table of counts
        that an analysis was made from, or a file of it; or a study, whose log is replayed. Those that the result
        carries if None.
    policy
        The policy object, if it was one of your own.

    Raises
    ------
    VerificationError
        If a part of the result does not follow from the readings; the message names it.
    InvalidArgument
        If the dictionary is not that of a result.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from truearm.analysis import analyze
    >>> tapes = {"A": np.arange(100.0, 300.0), "B": np.arange(200.0)}
    >>> found = analyze(tapes)
    >>> verify(found, tapes)
    Verified(trust=(), beside=())
    >>> verify(replace(found, best="B"), tapes)
    Traceback (most recent call last):
        ...
    truearm.errors.VerificationError: best is 'B', but the readings give 'A'
    """
    if isinstance(readings, str | Path):
        readings = read_counts(readings)
    elif readings is not None:
        _check_kind(readings)
    if isinstance(result, Mapping) and "suite" in result:
        return _verified_suite(result, readings)
    case = _Case.of(result, readings)
    again, trust = _again(case, policy)
    assert again is not None  # there is a verdict to begin with
    beside: tuple[str, ...] = ()
    if isinstance(result, Result):
        given, found = _record(result), _record(again)
    else:
        given, found = {**_NEWER, **case.data}, again.to_dict()
        if "coarse" not in found:
            given.pop("coarse")
        given.pop("readings", None)
        if "ratios" in given:
            found["ratios"] = _ratios(again, given["ratios"])
        beside = tuple(key for key in given if key not in found)
    for key in beside:
        del given[key]
    worded = _compared(given, found)
    return Verified((*trust, *worded), beside)


def _verified_suite(data: Mapping[str, Any], readings: "Readings | Collected | Counts | Study | None") -> Verified:
    """Judge a suite again by its runs, or by those of its log."""
    both = "certificate" in data
    _checked(not both, "the document has a suite and a certificate, which are two: it is the one or the other")
    suite: Suite = from_plain(Suite, data["suite"], "suite")
    runs: Runs
    if isinstance(readings, Study):
        runs = runs_of(readings.problem.arms, readings.events())
        if "runs" in data:
            _compared({"runs": data["runs"]}, {"runs": to_plain(runs)})
    elif readings is None and "runs" in data:
        runs = from_plain(Mapping[str, tuple[Mapping[str, float | None] | None, ...]], data["runs"], "runs")
    else:
        msg = "the runs of a suite are in its log, or in the document that --json printed; give one of them"
        raise InvalidArgument(msg)
    _checked(set(runs) == set(suite.problem.arms), f"the runs are those of {', '.join(runs)}, not of the suite")
    again = judged(suite, runs).to_dict()
    _compared({key: data.get(key, _Absent) for key in again}, again)
    return Verified(beside=tuple(key for key in data if key not in again and key != "runs"))


def verify_certificate(certificate: Certificate, readings: Readings) -> Verified:
    """Decide again from the readings and compare the certificate alone, as `verify` compares a whole result."""
    _check_kind(readings)
    again, trust = _again(_Case(certificate, *_taken(certificate, readings)), None)
    if again is not None:
        _compared({"certificate": to_plain(certificate)}, {"certificate": to_plain(again.certificate)})
    return Verified(trust)


def _check_kind(readings: object) -> None:
    if not isinstance(readings, Mapping | Collected | Counts | Study):
        kinds = "a dict of readings by arm, what collect read, a table of counts or a study"
        msg = f"readings must be {kinds}, but got {type(readings).__name__}"
        raise InvalidArgument(msg)


class _Case(NamedTuple):
    """What is to be verified, and by what."""

    certificate: Certificate
    collected: Collected
    tapes: Readings
    study: Study | None = None
    given: Callable[[], Result] | None = None
    """The whole result, read when it is needed; None where there is a certificate alone."""
    data: Mapping[str, Any] = {}

    @classmethod
    def of(
        cls, result: Result | Mapping[str, Any], readings: "Readings | Collected | Counts | Study | None"
    ) -> "_Case":
        data: Mapping[str, Any] = {} if isinstance(result, Result) else result
        if isinstance(result, Result):
            certificate, kept = result.certificate, result.readings
        else:
            certificate, kept = certificate_of(data), _tapes_of(data)

        def given() -> Result:
            return result if isinstance(result, Result) else _result_of(data)

        if readings is None and isinstance(result, Analysis):
            readings = result.counts
        if readings is None and kept is None:
            msg = "the result does not carry its readings; give them beside it"
            raise InvalidArgument(msg)
        taken = _taken(certificate, readings if readings is not None else kept or {})
        case = cls(certificate, *taken, given, data)
        if readings is not None and kept is not None:
            case._check_kept(kept)
        return case

    def _check_kept(self, kept: Readings) -> None:
        """Raise if what the result carries is other than what was given to verify it by."""
        tapes = _columns(kept, rounds=self.certificate.problem.rounds) if self.certificate.analyzed else kept
        right = _digest(self.certificate, tapes) == self.certificate.digest
        _checked(right, "the readings in the document are not those that it is verified by: their digest differs")


def _taken(
    certificate: Certificate, readings: "Readings | Collected | Counts | Study"
) -> tuple[Collected, Readings, Study | None]:
    """Return readings as a table and as tapes, and the study that they are of, if its log is at hand."""
    study = readings if isinstance(readings, Study) else None
    if isinstance(readings, Counts):
        readings = Collected({}, counts=readings)
    readings = _as_decided(certificate, readings)
    tapes: Readings = readings if isinstance(readings, Mapping) else _tapes_in(readings)
    if more := [arm for arm in tapes if arm not in certificate.problem.arms]:
        msg = f"the readings have arms that the certificate does not know: {', '.join(map(repr, more)):.200}"
        raise VerificationError(msg)
    if _digest(certificate, tapes) != certificate.digest:
        msg = "the readings are not those of the certificate: their digest differs"
        if isinstance(readings, Collected) and readings.counts is not None:
            msg += ". A table of counts verifies what was found from it (truearm analyze TABLE --json); what was "
            msg += "found from readings one by one is verified by these"
        elif certificate.problem.rounds and not isinstance(readings, Study):
            msg += ". Arms were compared in rounds: place r of every tape is round r, so say what made a round"
            msg += " (round, as in analyze)"
        raise VerificationError(msg)
    if isinstance(readings, Collected) and readings.counts is not None:
        return readings, tapes, study
    if isinstance(readings, Collected):
        columns = {arm: readings.tapes[arm] for arm in certificate.problem.arms}
        return readings._replace(tapes=columns), tapes, study
    return Collected({}), tapes, study


def _digest(certificate: Certificate, tapes: Readings) -> str:
    try:
        return digest(certificate.problem, tapes)
    except (TypeError, ValueError, OverflowError):
        msg = "readings must be numbers by arm, None for a pull never told and nan for a reading that went wrong"
        raise InvalidArgument(msg) from None


def _as_decided(
    certificate: Certificate, readings: "Readings | Collected | Study"
) -> "Readings | Collected | Study":
    """Return readings as an analysis takes them: None is a missing one, and rounds go on to the last of all."""
    rounds = certificate.problem.rounds
    if isinstance(readings, Study) or not certificate.analyzed:
        return readings
    if isinstance(readings, Collected):
        return readings.side_by_side() if rounds and readings.counts is None else readings
    return _columns(readings, rounds=rounds)


def _columns(readings: Readings, *, rounds: bool) -> Readings:
    counted = {arm: tape for arm, tape in readings.items() if isinstance(tape, Counted)}
    tapes = {arm: _missing(tape, arm) for arm, tape in readings.items() if not isinstance(tape, Counted)}
    return {**counted, **(Collected(tapes).side_by_side().tapes if rounds else tapes)}


def _missing(tape: Tape, arm: str) -> Floats:
    if isinstance(tape, np.ndarray) and tape.dtype.kind != "O":
        return as_readings(tape, arm)
    return as_readings([math.nan if x is None else x for x in tape], arm)


def _tapes_in(readings: Collected | Study) -> Readings:
    if isinstance(readings, Study):
        return readings.readings
    return readings.tapes if readings.counts is None else readings.counts.tapes


def certificate_of(data: Mapping[str, Any]) -> Certificate:
    """Return the certificate in the dictionary of a result, or say that there is none."""
    if not isinstance(data, Mapping) or not isinstance(data.get("certificate"), Mapping):
        msg = "this is not a result of truearm: it has no certificate; give what --json or to_dict() made"
        raise InvalidArgument(msg)
    certificate: Certificate = from_plain(Certificate, data["certificate"], "certificate")
    return certificate


def _tapes_of(data: Mapping[str, Any]) -> Tapes | None:
    kept = data.get("readings")
    if kept is None:
        return None
    tapes: Tapes = from_plain(Mapping[str, tuple[float | None, ...]], kept, "readings")
    return tapes


def _result_of(data: Mapping[str, Any]) -> Result:
    return Analysis.from_dict(data) if "contests" in data else Result.from_dict(data)


def _record(result: Result) -> dict[str, Any]:
    bare: dict[str, Any] = {"readings": None, "conditions": None}
    bare |= {"counts": None} if isinstance(result, Analysis) else {}
    plain: dict[str, Any] = to_plain(replace(result, **bare))
    for key in bare:
        del plain[key]
    return plain


def _ratios(again: Result, given: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - whatever the file holds
    """Return the ratios to the arm that the given ones are relative to."""
    named = given[0].get("reference") if isinstance(given, list) and given and isinstance(given[0], dict) else None
    found = ratios(again, named if named in again.problem.arms else None)
    return [
        {key: None if isinstance(x, float) and not math.isfinite(x) else x for key, x in ratio._asdict().items()}
        for ratio in found
    ]


# Deciding again


def _again(case: _Case, policy: "Policy[Any] | None") -> tuple[Result | None, tuple[str, ...]]:
    """Return the result made again, if there is enough to make it from, and what was taken on trust for it."""
    origin, problem = case.certificate.origin, case.certificate.problem
    if case.study is not None:
        return _ended(Study.replay(case.study.definition, case.study.events())), ()
    if case.certificate.analyzed:
        return _reanalyzed(case)
    if origin is None or (policy is None and origin.by is None):
        return _witnessed(case, "who decided: the certificate names no policy of ours")
    if origin.overlapping:
        return _witnessed(case, "what was known at each decision: pulls were out; give the log of the study")
    try:
        chosen = policies.by_name(origin.by or "", **origin.options) if policy is None else policy
        budget = origin.max_pulls or 0
        tapes = {arm: tape for arm, tape in case.tapes.items() if not isinstance(tape, Counted)}
        study = Study.retraced(problem, tapes, policy=chosen, max_pulls=budget, seed=origin.seed)
    except (TypeError, ValueError, ArithmeticError, ProtocolError) as error:
        msg = f"certificate.origin does not lead to these readings: {error}"
        raise VerificationError(msg) from None
    for arm, tape in study.readings.items():
        if len(tape) != len(case.tapes.get(arm, ())):
            msg = (
                f"certificate.origin does not lead to these readings: it would have pulled {arm!r} {len(tape)} "
                f"times, not {len(case.tapes.get(arm, ()))}"
            )
            raise VerificationError(msg)
    return _ended(study), ()


def _ended(study: Study) -> Result:
    """Return the result of a study, stopped where it is if it was not done."""
    study.stop()
    result = study.result
    assert result is not None
    return result


def _reanalyzed(case: _Case) -> tuple[Result, tuple[str, ...]]:
    """Return an analysis made again; what columns said of its rows is known only where they are at hand."""
    collected, more = case.collected, _OfRows()
    if collected.counts is not None:
        more = _OfRows.told(case)
    elif not collected.tapes:
        arms = case.certificate.problem.arms
        collected = Collected({arm: np.asarray(case.tapes[arm], dtype=np.float64) for arm in arms})
        more = _OfRows.told(case)
    try:
        return repeated(case.certificate, collected, units=more.units, doubts=more.doubts), more.trust
    except InvalidArgument as error:
        msg = f"certificate.origin does not lead to these readings: {error}"
        raise VerificationError(msg) from None


class _OfRows(NamedTuple):
    """What an analysis knew of its rows from columns that its readings do not show."""

    units: Units | None = None
    doubts: tuple[Alarm, ...] = ()

    @classmethod
    def told(cls, case: _Case) -> "_OfRows":
        if case.given is None:  # a certificate does not say of what it is a doubt
            return cls(doubts=(Alarm(_ROWS[0], ""),) if case.certificate.rule is None else ())
        given = case.given()
        doubts = tuple(doubt for doubt in given.doubts if doubt.kind in _ROWS)
        return cls(given.units if isinstance(given, Analysis) else None, doubts)

    @property
    def trust(self) -> tuple[str, ...]:
        of_units = () if self.units is None else (f"one reading per {self.units.name!r}; give the table of rows",)
        columns = (f", of the column {doubt.detail!r}" if doubt.detail else "" for doubt in self.doubts)
        return (*of_units, *(f"a doubt about the rows{column}; give their table" for column in columns))


# What can be said without deciding again


def _witnessed(case: _Case, why: str) -> tuple[Result | None, tuple[str, ...]]:
    """Return what follows from the verdict, its claims recomputed as of their dates, and what is left to trust."""
    certificate, tapes = case.certificate, case.tapes
    _check_claims(certificate, tapes)
    control.check(certificate, tapes)
    tiers.check(certificate, tapes)
    trust = (why, *(("the bounds that exclude arms",) if certificate.exclusions else ()))
    if case.given is None:
        return None, trust
    given = case.given()
    _check_status(given)
    verdict = Verdict(
        status=given.status,
        candidates=tuple(arm for arm in given.candidates if given.best is None or arm not in given.ties),
        best=given.best,
        rule=certificate.rule,
        entries=certificate.entries,
        claims=certificate.claims,
        exclusions=certificate.exclusions,
        doubts=given.doubts,
        estimated=certificate.estimated,
        control=certificate.control,
    )
    noticed = tuple(alarm for alarm in given.alarms if alarm.kind == "dependence")
    trust += ("what the order of pulls showed",) if noticed or given.doubts else ()
    found = certify(
        certificate.problem, tapes, verdict, design=certificate.design, noticed=noticed, origin=certificate.origin
    )
    return found, trust


def _check_status(given: Result) -> None:
    """Raise if a verdict does not fit its own claims."""
    status, best, arms, certificate = given.status, given.best, given.problem.arms, given.certificate
    declared, tolerated = (
        given.problem.contamination is not None,
        given.problem.tolerance or given.problem.handicap,
    )
    _checked(set(given.candidates) <= set(arms), f"candidates names an arm that is none of {', '.join(arms)}")
    _checked(best is None or best in arms, f"best is {best!r}, which is not an arm")
    _checked((best is not None) == (status in DECIDED), f"status is {status.value!r}, but best is {best!r}")
    _checked(bool(given.doubts) == (status is Status.DOUBTFUL), f"status is {status.value!r} with such doubts")
    allowed = {
        Status.CERTIFIED: declared and not any(claim.tolerant for claim in certificate.claims),
        Status.SEPARATED: not (declared and certificate.rule),
        Status.TOLERABLE: bool(tolerated),
    }
    _checked(allowed.get(status, True), f"status is {status.value!r}, which problem and claims do not give")


def _checked(right: bool, wrong: str) -> None:
    if not right:
        raise VerificationError(wrong)


def _check_claims(certificate: Certificate, tapes: Readings) -> None:
    """Raise unless every claim holds as of its date, by the rule that follows from problem and design."""
    problem, rule = certificate.problem, certificate.rule
    derived = Judge.of(problem, (), design=certificate.design, ordered=rule == "pooled").rule
    _checked(rule in (None, derived), f"certificate.rule is {rule!r}, but the problem asks for {derived!r}")
    _checked(rule is not None or not certificate.claims, "certificate.claims rest on no rule")
    _check_followed(certificate, tapes)
    judged = {claim.arm for claim in certificate.claims} | {e.arm for e in certificate.exclusions}
    silent = [arm for arm in problem.arms if arm != certificate.best and arm not in judged]
    _checked(certificate.best is None or not silent, f"the certificate says nothing against {silent}")
    before: tuple[int, ...] = (0,) * len(problem.arms)
    for place, claim in enumerate(certificate.claims):
        where = f"certificate.claims[{place}]"
        before = _check_dates(certificate, claim, tapes, before, where)
        found, needed = certificate.evidence(claim, tapes)(None), certificate.log_threshold or 0.0
        short = f"the evidence against {claim.arm!r} is {found:.6g}, short of the {needed:.6g} it needs"
        _checked(found >= needed, short)
        # pulls that were out on that date counted at their worst, so that evidence may have grown since
        right = needed <= claim.log_evidence <= found or _same(claim.log_evidence, found)
        _checked(right, f"{where}.log_evidence is {claim.log_evidence!r}, not {found!r}")
    for exclusion in certificate.exclusions:
        upper, lower = exclusion.upper, exclusion.lower
        _checked(upper.arm == exclusion.arm, f"the bound that excludes {exclusion.arm!r} is one of {upper.arm!r}")
        _checked(lower.arm in problem.arms and lower.arm != exclusion.arm, f"{lower.arm!r} excludes no other arm")
        _checked(upper.value <= lower.value, f"the bounds given do not exclude {exclusion.arm!r}")


def _check_followed(certificate: Certificate, tapes: Readings) -> None:
    """Raise if a reading would be bet on twice, or before it was taken (evidence T5)."""
    followed = dict.fromkeys(certificate.problem.arms, 0)
    for arm, since, until in certificate.entries:
        _checked(arm in followed, "certificate.entries names no arm of the problem")
        right = followed[arm] <= since <= until <= len(tapes.get(arm, ()))
        _checked(right, f"{arm!r} cannot be followed from pull {since} to pull {until}")
        followed[arm] = until


def _check_dates(
    certificate: Certificate, claim: Claim, tapes: Readings, before: tuple[int, ...], where: str
) -> tuple[int, ...]:
    """Return the date of a claim; raise if its study cannot have had such counts."""
    arms, entries = certificate.problem.arms, certificate.entries
    _checked({claim.arm, claim.leader} <= set(arms) and claim.arm != claim.leader, f"{where} names no two arms")
    counts = _counts_of(certificate, claim, tapes, before, where)
    _checked(0 <= claim.entered <= len(entries), f"{where}.entered is {claim.entered} of {len(entries)}")
    for arm, since, _ in entries[: claim.entered]:
        _checked(since <= counts[arm], f"{arm!r} cannot be followed from pull {since} of {counts[arm]}")
    _checked(not claim.tolerant or bool(certificate.problem.tolerance), f"{where} is tolerant without a tolerance")
    return tuple(counts.values())


def _counts_of(
    certificate: Certificate, claim: Claim, tapes: Readings, before: tuple[int, ...], where: str
) -> Mapping[str, int]:
    most = {arm: len(tapes.get(arm, ())) for arm in certificate.problem.arms}
    if claim.counts is None:
        return most
    _checked(len(claim.counts) == len(most), f"{where}.counts has not one count per arm")
    counts = dict(zip(most, claim.counts, strict=True))
    for arm, early in zip(most, before, strict=True):
        wrong = f"{where}.counts has {counts[arm]} of {arm!r}, not {early} to {most[arm]}"
        _checked(early <= counts[arm] <= most[arm], wrong)
    return counts


# Comparing


def _compared(given: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[str, ...]:
    """Raise at the first part that differs; return the places where only words do."""
    worded = []
    for path, one, other in _differences(given, found):
        name = ".".join(map(str, path)).replace(".[", "[")
        if path[0] in _SENTENCES or (path[0] in _ALARMS and path[-1] == "message"):
            worded.append(f"the words of {name}, which this version would choose otherwise")
            continue
        said = "is not there" if one is _Absent else f"is {one!r:.80}"
        msg = f"{name} {said}, but the readings give {'nothing' if other is _Absent else f'{other!r:.80}'}"
        raise VerificationError(msg)
    return tuple(worded)


_NEWER: Mapping[str, Any] = {"may_tie": [], "coarse": {}}  # what documents of the same schema did not always tell


class _Absent:
    """What stands for a part that is not there."""


_Path = tuple[str, ...]


def _differences(given: Any, found: Any, path: _Path = ()) -> Iterator[tuple[_Path, Any, Any]]:  # noqa: ANN401
    """Iterate over the parts that differ, in the order of what was found."""
    if isinstance(found, Mapping) and isinstance(given, Mapping):
        for key in [*found, *(key for key in given if key not in found)]:
            yield from _differences(given.get(key, _Absent), found.get(key, _Absent), (*path, key))
    elif isinstance(found, list) and isinstance(given, Sequence) and not isinstance(given, str):
        for place in range(max(len(found), len(given))):
            one, other = ((part[place] if place < len(part) else _Absent) for part in (given, found))
            yield from _differences(one, other, (*path, f"[{place}]"))
    elif not _same(given, found):
        yield path, given, found


def _same(given: Any, found: Any) -> bool:  # noqa: ANN401
    """Tell whether two parts mean the same: fractions up to rounding, all else exactly."""
    if _is_number(given) and _is_number(found):
        try:
            if isinstance(found, int):  # a number of things is not rounded
                return bool(given == found)
            return bool(given == found) or math.isclose(given, found, rel_tol=ACCURACY)
        except OverflowError:  # a whole number beyond all floats
            return False
    return type(given) is type(found) and bool(given == found)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
