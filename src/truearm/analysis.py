"""Analyze existing data: which arm is best, which arms are excluded, and how much more data would decide.

The order of pulls is unknown, so arms are compared in pairs (evidence section 11). An arm is excluded when another
arm is better with log-evidence log((k-1)/delta); the only arm left is the best, with error probability delta
(evidence T3, T4; in the fixed design a p-value below delta/(k-1)).
"""

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from truearm.claims import alarms
from truearm.claims.certificate import Alarm, Certificate, Claim, Origin, Status, Verdict, digest
from truearm.claims.certify import certify, check_control, check_ordered, check_support, control_claims, tiers_of
from truearm.claims.plain import fields_of
from truearm.claims.result import Analysis, Contest, Result
from truearm.data.cells import Form
from truearm.data.columns import Columns, Dataset
from truearm.data.tables import load
from truearm.errors import InvalidArgument, OutOfReach
from truearm.evidence import Judge, p_value_of
from truearm.evidence.comparison import Method, check_method
from truearm.evidence.counts import Counted, Counts, coarse_arms
from truearm.evidence.sample import Sample, orient, start_sample
from truearm.evidence.serial import Serial
from truearm.evidence.shares import count_successes
from truearm.evidence.units import Reduction, Units
from truearm.problem import (
    Design,
    Problem,
    ProblemOptions,
    check_arms,
    check_count,
    check_design,
    check_flag,
    check_names,
    fix_options,
    refuse,
)

Floats = NDArray[np.float64]

_MAX_FORECAST = 1e12  # readings; no study can collect more


class AnalyzeOptions(ProblemOptions, total=False):
    """The options of a problem, and the format of a file."""

    sep: str | None
    encoding: str | None
    decimal: str | None
    thousands: str | None
    unreadable: Literal["error", "missing"] | None
    kind: str | None


def analyze(
    frame: Any,  # noqa: ANN401 - whatever narwhals understands
    *,
    arm: str | None = None,
    value: str | None = None,
    unit: str | None = None,
    order: str | None = None,
    round: str | None = None,
    design: Design = "sequential",
    pairs: bool = False,
    control: str | None = None,
    fdr: bool = False,
    tiers: bool = False,
    query: str | None = None,
    of: int | None = None,
    **options: Unpack[AnalyzeOptions],
) -> Analysis:
    """Find the best arm in existing data.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table, a dict of sequences, a lazy frame (Polars, DuckDB, PySpark, Ibis), the
        path of a file, a folder or a pattern of CSV, Parquet or JSON lines files, the address of a database, or a
        list of paths. More than 2^24 rows are counted where they are (docs/scale.md).
    arm, value
        The columns that name the arm and hold the reading; without them every column is an arm.
    unit
        The column that names the independent draws (process, user, item). The readings of a unit are
        replaced by their median; for shares, a unit succeeds if at least half of its readings do.
    order
        "rows" if rows are in order of pull, or the column to sort them by; by default the order is not used.
    round
        The column of the item, person or day for which arms were measured side by side, or "rows" if each row of
        a wide frame is a round. The better arm is then the one that wins more than half of the rounds
        (docs/rounds.md).
    design
        "sequential" is valid no matter how often you looked at the data as they grew; "fixed" has more power
        and holds only if the number of readings of every arm was chosen in advance.
    pairs
        Compare every arm with every other, not only with the leader.
    control
        The arm to compare the others with; `control` of the result says which of them are better.
    fdr
        Bound the expected share of false claims that an arm beats the control, not the chance of any.
    tiers
        Rank all arms as far as that is certain; `tiers` of the result has groups and places.
    query
        An SQL query for the rows to analyze; the table of a file is called `data`.
    of
        With `score_range`, the length of the whole list, if the data are its first items in random order.
    **options
        What is asked and assumed: delta, contamination, tolerance, quantile, goal, at_least, at_most, between and
        dependent_arms, as in `Study`. Cells without a value are missing readings and count at their worst.
        The format of a file: `sep`, `encoding`, `decimal`, `thousands`, `kind` such as "csv", and
        `unreadable="missing"`, which counts cells that are not numbers as missing.

    Examples
    --------
    >>> spread_out = np.arange(1000) * 0.618 % 1
    >>> found = analyze({"A": 10 + spread_out, "B": 9.5 + spread_out}, contamination=0.1)
    >>> found.status.value, found.best, round(found.breakdown.oblivious, 3)
    ('certified', 'A', 0.435)
    """
    check_names(options, AnalyzeOptions.__annotations__)
    form = {name: value for name, value in options.items() if name not in ProblemOptions.__annotations__}
    given = cast("ProblemOptions", {name: value for name, value in options.items() if name not in form})
    if of is not None:
        given["items"] = check_count("of", of)
    _check_design(design, dependent_arms=given.get("dependent_arms", False))
    at_least, at_most = given.get("at_least"), given.get("at_most")
    targets = {"quantile": given.get("quantile"), "at_least": at_least, "at_most": at_most}
    for name, value_of in targets.items():
        if round is not None and value_of is not None and (name, value_of) != ("quantile", 0.5):
            msg = f"round={round!r} compares arms side by side, but {name}={value_of!r} rates each arm alone"
            raise InvalidArgument(f"{msg}; remove one of them", name, value_of)
    columns = Columns(arm, value, unit, order, round)
    data = load(frame, columns, Reduction.of(at_least=at_least, at_most=at_most), Form.of(**form), query)
    tapes = _tapes(data)
    problem = Problem.of(tapes, default_goal="min" if data.timed else "max", **_options(given, data, round))
    is_blind = given.get("contamination") is not None and problem.is_blind  # an exported race may be blind
    msg = "contamination='blind' is for rounds whose order truearm draws itself; use a bound such as 0.05"
    refuse(is_blind, msg, "contamination", "blind")
    if problem.score_range is not None:
        _check_scores(problem, tapes)
    method: Method = "fdr" if check_flag("fdr", fdr) else "holm"
    questions = Questions(check_flag("pairs", pairs), control, method, check_flag("tiers", tiers))
    questions.check(problem, design)
    found = _analyze(problem, data, design, questions)
    return replace(found, conditions={"unit": data.unit}) if data.unit else found


def _check_scores(problem: Problem, tapes: Mapping[str, Any]) -> None:
    size = max(tape.size for tape in tapes.values())
    msg = f"of={problem.items} must be the length of the whole list, but there are {size:,} items already"
    refuse(problem.items is not None and problem.items < size, msg, "of", problem.items)
    for arm, tape in tapes.items():
        for item, score in enumerate(np.asarray(tape, dtype=np.float64).tolist(), 1):
            problem.check_score(score, arm, item)


def _options(given: ProblemOptions, data: Dataset, round: str | None) -> ProblemOptions:
    """Return the options of the problem; those of an exported race are the defaults."""
    defaults, targets = dict(data.options), {"quantile", "at_least", "at_most"}
    if not targets.isdisjoint(given):
        dropped = {*targets, "rounds", "goal", "score_range", "items"}
        defaults = {name: value for name, value in defaults.items() if name not in dropped}
    rounds = round is not None or bool(defaults.pop("rounds", False))
    if getattr(defaults.get("contamination"), "blind", False) and not rounds:
        del defaults["contamination"]
    options = {**defaults, **given}
    has_range = options.get("score_range") is not None
    if has_range:
        options.setdefault("contamination", 0.0)  # the claim is about the scores as given
    msg = "score_range is missing: not all scores are in [0, 1]; use the lowest and the highest possible one"
    refuse(not has_range and "score_range" in defaults, msg, "score_range")
    return fix_options(cast("ProblemOptions", options), rounds=rounds)


def repeat_analysis(
    certificate: Certificate, data: Dataset, *, units: Units | None = None, doubts: Sequence[Alarm] = ()
) -> Analysis:
    """Repeat the analysis of a certificate; `units` and `doubts` describe rows that are no longer available."""
    options = {} if certificate.origin is None else dict(certificate.origin.options)
    kinds = {"pairs": bool, "ordered": bool, "control": str | None, "method": str, "tiers": bool}
    wrong = set(options) != set(kinds) or not all(isinstance(options[key], kind) for key, kind in kinds.items())
    if wrong or options["method"] not in ("holm", "fdr"):  # a certificate is untrusted input
        raise InvalidArgument(f"the options of an analysis are {', '.join(kinds)}, but got {options!r:.80}")
    ordered = options.pop("ordered")
    questions = Questions(**options).check(certificate.problem, certificate.design)
    _check_design(certificate.design, dependent_arms=certificate.problem.dependent_arms)
    _tapes(data)
    msg = "a table of counts does not record the order of readings, but ordered is true"
    refuse(ordered and data.counts is not None, msg)
    known = data._replace(ordered=data.ordered or ordered, units=data.units or units)
    return _analyze(certificate.problem, known, certificate.design, questions, doubts)


def _check_design(design: str, *, dependent_arms: bool) -> None:
    if check_design(design) == "fixed" and dependent_arms:
        raise OutOfReach("design='fixed' needs independent arms; use design='sequential' for dependent_arms=True")


def _tapes(data: Dataset, notes: set[int] | None = None) -> dict[str, Floats | Counted]:
    """Return the readings or counts of each arm; raise if an arm has no readings."""
    tapes: dict[str, Floats | Counted] = dict(data.tapes)
    if data.counts is not None:
        tapes = dict(sorted(data.counts.arms(notes).items()))  # shards come in any order
    check_arms(tapes)
    for name, tape in tapes.items():
        msg = f"arm {name!r} has no readings; remove it, or check that its column holds numbers"
        refuse(not len(tape), msg)
    return tapes


def _sort_samples(problem: Problem, tapes: Mapping[str, Floats | Counted]) -> tuple[tuple[Sample, ...], str]:
    """Return the sample of each arm, and the digest of all readings."""

    def sample(arm: str) -> Sample:
        tape = tapes[arm]
        if isinstance(tape, Counted):
            return tape.sample(problem, arm)
        if problem.rounds:
            return Sample.in_order(orient(tape, problem, ""))
        if problem.target == "share":
            return count_successes(tape, problem)
        return start_sample(problem, "").extend(orient(tape, problem, ""))

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # numpy and hashlib release the interpreter lock
        mark = pool.submit(digest, problem, tapes)
        return tuple(pool.map(sample, tapes)), mark.result()


class Questions(NamedTuple):
    """The questions besides that for the best arm."""

    pairs: bool
    control: str | None
    method: Method
    tiers: bool

    def check(self, problem: Problem, design: Design) -> "Questions":
        """Raise if a question cannot be answered, before any work is done."""
        if self.control is not None or self.tiers:
            check_ordered(problem, "tiers" if self.control is None else "control")
        if self.control is not None:
            check_control(self.control, problem.arms)
            check_method(problem, self.method, design)
        elif self.method == "fdr":
            raise InvalidArgument("fdr=True needs the arm to compare with; add control='NAME'", "fdr")
        return self


def _analyze(
    problem: Problem, data: Dataset, design: Design, questions: Questions, given: Sequence[Alarm] = ()
) -> Analysis:
    """Analyze readings; refine counts where they do not decide or are coarse.

    Once the judge notes no bucket, counts decide as the readings would: every answer used is the same for all
    readings that fit the counts (extensions 4.1). A bucket is needed if the decision or an interval may depend on
    its contents, and wanted if another figure does.
    """
    needed, wanted = (None, None) if data.counter is None else (set[int](), set[int]())
    tapes = _tapes(data, needed)
    samples, mark = _sort_samples(problem, tapes)
    judge = Judge.of(problem, samples, design=design)
    ranking = judge.ranking()
    judge = judge.after(leader=ranking[0])
    accusers = ranking if questions.pairs else ranking[:1]
    known = {(i, j): _evidence(judge, i, j) for i in accusers for j in ranking if j != i}
    claims = _rejections(judge, ranking, known)
    noticed, alone = _dependence(problem, data), len(problem.arms) == 1  # one arm only gets a note
    clusters = alarms.clusters(data.suspects)
    doubts = (*given, *clusters, *(() if alone else noticed), *alarms.doubts(judge))
    verdict = Verdict.doubtful(doubts, problem.arms, design) if doubts else _verdict(judge, claims)
    if questions.control is not None and not doubts:
        verdict = replace(verdict, control=control_claims(judge, questions.control, questions.method))
    origin = Origin("analyze", {**questions._asdict(), "ordered": data.ordered})
    tiers = tiers_of(judge, ranking) if questions.tiers and verdict.status is not Status.DOUBTFUL else None
    for i in range(len(problem.arms)) if needed is not None else ():
        judge.intervals(i, problem.declared)  # notes the buckets at the ends of the interval
    judge = _note_in(judge, wanted)
    seen = noticed if alone else ()
    result = certify(problem, tapes, verdict, samples=judge.samples, mark=mark, noticed=seen, origin=origin)
    if data.ordered:
        result = check_support(result, data.tapes)
    doubtful = result.status is Status.DOUBTFUL
    judge = _note_in(judge, None)  # the rest are estimates
    excluded = {} if doubtful else _find_excluded(judge, ranking, claims)
    if result.best is None:
        result = replace(result, candidates=tuple(arm for arm in problem.arms if arm not in excluded))
    short = () if judge.is_hopeless else filter(judge.is_too_small, _rivals(judge, result))
    wide = {} if doubtful else _coarse_arms(result, data.counts)
    found = Analysis(
        **fields_of(replace(result, readings=data.tapes or None)),
        ranking=tuple(problem.arms[i] for i in ranking),
        excluded=excluded,
        contests=() if doubtful else _contests(judge, known, pairs=questions.pairs),
        needed={} if doubtful or wide else _forecast_need(judge, result),
        missing={arm: sample.missing for arm, sample in zip(problem.arms, judge.samples, strict=True)},
        outside={arm: sample.outside for arm, sample in zip(problem.arms, judge.samples, strict=True)},
        few={problem.arms[i]: judge.samples[i].n for i in short},
        coarse=wide,
        units=data.units,
        tiers=tiers,
        made=None if data.counts is None else data.counts.made,
        counts=data.counts,
        about_data=data.notes,
    )
    if data.counter is not None and data.counter.refine(needed or set(), wanted or set()):
        return _analyze(problem, data, design, questions, given)
    return found


def _note_in(judge: Judge, notes: set[int] | None) -> Judge:
    """Return a judge that adds the buckets to refine to `notes`."""
    return judge.after(tuple(sample.note_in(notes) for sample in judge.samples))


def _dependence(problem: Problem, data: Dataset) -> tuple[Alarm, ...]:
    """Return the arms whose rows depend on when they were taken, if the order is known (evidence T12)."""
    if data.counts is not None or not data.ordered:
        return ()
    return alarms.dependence(problem, [Serial(i).extend(tape) for i, tape in enumerate(data.tapes.values())])


def _evidence(judge: Judge, better: int, worse: int, enough: float | None = None) -> float:
    return judge.better(better, worse, closed=better > worse, enough=enough).log_value


def _rejections(judge: Judge, ranking: Sequence[int], known: Mapping[tuple[int, int], float]) -> tuple[Claim, ...]:
    """Return the claim of the highest-ranked arm whose evidence suffices against each rejected arm."""
    claims, bar = [], judge.log_threshold
    may_reject = judge.screen(bar)
    for place, judged in enumerate(ranking[1:], 1):
        for accuser in (i for i in ranking[:place] if may_reject(i, judged)):
            found = known.get((accuser, judged))
            if found is None and _evidence(judge, accuser, judged, enough=bar) >= bar:
                found = _evidence(judge, accuser, judged)
            if found is not None and found >= bar:
                claims.append(_claim(judge, accuser, judged, found))
                break
    return tuple(claims)


def _claim(judge: Judge, better: int, worse: int, log_evidence: float, *, tolerant: bool = False) -> Claim:
    arms = judge.problem.arms
    return Claim(arms[worse], arms[better], None, 0, log_evidence, tolerant)


def _find_excluded(judge: Judge, ranking: Sequence[int], claims: Sequence[Claim]) -> dict[str, str]:
    """Return the rejected arms that are strictly worse than another, and the first in rank that shows it (T10a).

    That need not be the arm that rejected it: a leader that ties with its rival rejects it by order of listing.
    """
    arms, bar = judge.problem.arms, judge.log_strict
    found, may_exclude = {}, judge.screen(bar)
    for claim in claims:
        worse = arms.index(claim.arm)
        earlier = (i for i in ranking[: ranking.index(worse)] if may_exclude(i, worse))
        better = next((i for i in earlier if judge.better(i, worse, enough=bar).log_value >= bar), None)
        if better is not None:
            found[claim.arm] = arms[better]
    return found


def _verdict(judge: Judge, claims: tuple[Claim, ...]) -> Verdict:
    problem, out = judge.problem, {claim.arm for claim in claims}
    alive = [i for i, name in enumerate(problem.arms) if name not in out]
    candidates = tuple(problem.arms[i] for i in alive)
    best = problem.arms[judge.leader]

    def end(status: Status, best: str | None = None, more: tuple[Claim, ...] = ()) -> Verdict:
        grounds: dict[str, Any] = {"rule": judge.rule, "claims": claims + more, "design": judge.design}
        return Verdict(status=status, candidates=candidates, best=best, **grounds)

    if len(alive) == 1:
        return end(Status.strict(problem), best)
    if not judge.is_hopeless and problem.tolerance and (more := _tolerance_claims(judge, alive)):
        return end(Status.TOLERABLE, best, more)
    if judge.is_futile(alive):
        return end(Status.INDISTINGUISHABLE)
    return end(Status.EXHAUSTED)


def _tolerance_claims(judge: Judge, alive: Sequence[int]) -> tuple[Claim, ...]:
    """Return claims that no remaining arm beats the leader by more than the tolerance; empty if one might."""
    claims = []
    for judged in (i for i in alive if i != judge.leader):
        found = judge.within(judged).log_value
        if found < judge.log_threshold:
            return ()
        claims.append(_claim(judge, judge.leader, judged, found, tolerant=True))
    return tuple(claims)


def _contests(judge: Judge, known: Mapping[tuple[int, int], float], *, pairs: bool) -> tuple[Contest, ...]:
    arms = judge.problem.arms
    rivals = math.log(max(1, len(arms) - 1))

    def contest(better: int, worse: int) -> Contest:
        # the order of listing does not break ties (evidence T11)
        log_evidence = known[better, worse] if better > worse else judge.better(better, worse).log_value
        return Contest(
            arms[better],
            arms[worse],
            log_evidence,
            p_value_of(log_evidence - rivals, judge.rule),
            judge.pair_breakdown(better, worse, 1 / len(arms)) if pairs else None,
            log_evidence >= judge.log_strict,
        )

    return tuple(contest(better, worse) for better, worse in known)


def _forecast_need(judge: Judge, result: Result) -> dict[str, int] | None:
    """Estimate how many more readings of the leader and each rival left would decide, None if no number would."""
    if result.best is not None:
        return {}
    more: dict[str, int] = {}
    for rival in _rivals(judge, result):
        size = judge.samples[judge.leader].n + judge.samples[rival].n
        times = judge.forecast(rival, _MAX_FORECAST / max(1, size))
        if times == math.inf:
            return None
        for i in (judge.leader, rival):
            name, extra = judge.problem.arms[i], math.ceil((times - 1) * judge.samples[i].n)
            more[name] = max(more.get(name, 0), extra)
    return more


def _rivals(judge: Judge, result: Result) -> list[int]:
    """Return the arms besides the leader that no claim rejects, in the order of the result."""
    left = [arm for arm in result.candidates if arm not in result.certificate.rejected]
    return [i for i in map(judge.problem.arms.index, left) if i != judge.leader]


def _coarse_arms(result: Result, counts: Counts | None) -> dict[str, float]:
    """Return the remaining arms whose quantile is in a bucket of many readings, if nothing is decided."""
    if counts is None or result.best is not None or result.problem.target != "quantile":
        return {}
    found = coarse_arms(counts, result.problem.quantile)
    return {arm: found[arm] for arm in result.candidates if arm in found}
