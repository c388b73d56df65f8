"""Data already there: which arm is best, who is excluded by whom, and what more data would decide.

The order of pulls is unknown, so arms are compared in pairs (evidence section 11). An arm is excluded when some
other arm is better with log-evidence log((k-1)/delta); what is left when all others are excluded is the best arm,
with error probability delta (evidence T3, T4; in the fixed design a p-value below delta/(k-1)).
"""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truearm.claims import alarms, wording
from truearm.claims.certificate import Claim, Status, Verdict
from truearm.claims.result import Result, certify
from truearm.errors import InvalidArgument, OutOfReach
from truearm.evidence import (
    Breakdown,
    Levels,
    Rule,
    against,
    best_looking,
    breakdown_estimate,
    breakdown_point,
    fixed_against,
    fixed_pair,
    fixed_term,
    indistinguishable,
    mixture_term,
    p_value_of,
    pair,
    pair_rule,
    positive,
    shifted,
    threshold,
    within_tolerance,
)
from truearm.evidence.sample import Design, Sample, check_design
from truearm.problem import Adversary, Contamination, Problem, Tolerance, check_arms
from truearm.world.frames import collect

Floats = NDArray[np.float64]
Missing = Literal["contaminated", "drop"]

_MANY = 1 << 20  # readings; from here on threads sort faster than one
_MOST = 1e12  # readings; what would take more of them is never going to be decided


class Contest(NamedTuple):
    """How much the readings say that one arm is better than another.

    Examples
    --------
    >>> Contest("A", "B", 9.2, 0.0001, Breakdown(0.2, 0.17, 0.08), True).better
    'A'
    """

    better: str
    worse: str
    log_evidence: float
    p_value: float
    """Of "the worse one is the best arm", adjusted for the number of arms: below delta it is excluded."""
    breakdown: Breakdown | None
    """Largest contamination under which the worse one is excluded by the better one; with `pairs=True` only."""
    excluded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Result):
    """A result from data already there, with all that can be asked of such data.

    Examples
    --------
    >>> found = analyze({"A": range(100, 300), "B": range(200), "C": range(90, 290)})
    >>> found.ranking, dict(found.excluded), found.candidates
    (('A', 'C', 'B'), {'B': 'A'}, ('A', 'C'))
    >>> Analysis.from_dict(found.to_dict()) == found
    True
    """

    ranking: tuple[str, ...] = ()
    """All arms by their observed quantiles, the best first."""
    excluded: Mapping[str, str]
    """For each excluded arm an arm that is certainly better."""
    contests: tuple[Contest, ...] = ()
    """The leader against every other arm, or with `pairs=True` every arm against every other."""
    needed: Mapping[str, int] | None
    """More readings per arm that would decide, if they look like these: an estimate. None: no number would."""
    missing: Mapping[str, int]
    """Cells without a value, per arm."""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((wording.summary(self), *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: those of a `Result`, and the rest of the analysis."""
        contests = [{**c._asdict(), "breakdown": c.breakdown and c.breakdown._asdict()} for c in self.contests]
        return {
            **Result.to_dict(self),
            "ranking": list(self.ranking),
            "excluded": dict(self.excluded),
            "contests": contests,
            "needed": None if self.needed is None else dict(self.needed),
            "missing": dict(self.missing),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Analysis":
        """Return the analysis that `to_dict` described."""
        contests = (
            Contest(**{**c, "breakdown": c["breakdown"] and Breakdown(**c["breakdown"])}) for c in data["contests"]
        )
        return cls._around(
            Result.from_dict(data),
            ranking=tuple(data["ranking"]),
            excluded=dict(data["excluded"]),
            contests=tuple(contests),
            needed=data["needed"],
            missing=dict(data["missing"]),
            notes=tuple(data["notes"]),
        )

    @classmethod
    def _around(cls, result: Result, **rest: Any) -> "Analysis":  # noqa: ANN401 - the fields above
        return cls(**{field.name: getattr(result, field.name) for field in fields(Result)}, **rest)


def analyze(
    frame: Any,  # noqa: ANN401 - whatever narwhals understands
    *,
    arm: str | None = None,
    value: str | None = None,
    unit: str | None = None,
    order: str | None = None,
    delta: float = 0.05,
    contamination: float | Contamination | None = 0.05,
    tolerance: float | str | Tolerance = 0.0,
    quantile: float = 0.5,
    goal: Literal["max", "min"] = "max",
    design: Design = "sequential",
    missing: Missing = "contaminated",
    dependent_arms: bool = False,
    pairs: bool = False,
) -> Analysis:
    """Find the best arm in data already there.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table, a DuckDB relation, a dict of sequences, or what `collect` of
        `truearm.world.frames` or `truearm.world.files` returned.
    arm, value
        The columns that name the arm and hold the reading; without them every column is an arm.
    unit
        The column of what was drawn independently (process, user, item): readings of one unit become one, their
        median.
    order
        "rows" if rows are in order of pull, or the column to put them in order by; else their order says nothing.
    design
        "sequential" is valid however often the data were looked at while they grew; "fixed" has more power
        and holds only if the number of readings of every arm was chosen in advance.
    missing
        Cells without a value count as bad readings, which eps must cover ("contaminated"), or are left out
        ("drop"). Leave them out only if they are missing for reasons that have nothing to do with their value.
    dependent_arms
        Set when readings of different arms move together; sequential design only.
    pairs
        Compare every arm with every other, not only with the leader.

    Examples
    --------
    >>> spread_out = np.arange(1000) * 0.618 % 1
    >>> found = analyze({"A": 10 + spread_out, "B": 9.5 + spread_out}, contamination=0.1)
    >>> found.status.value, found.best, round(found.breakdown.oblivious, 3)
    ('certified', 'A', 0.435)
    """
    check_design(design)
    if missing not in ("contaminated", "drop"):
        msg = f"missing must be 'contaminated' or 'drop', but got {missing!r}"
        raise InvalidArgument(msg)
    if design == "fixed" and dependent_arms:
        msg = "design='fixed' needs independent arms; use design='sequential' for dependent_arms=True"
        raise OutOfReach(msg)
    collected = collect(
        frame, arm, value, unit=unit, order=order, missing="independent" if missing == "drop" else "worst"
    )
    tapes = _checked(collected.tapes)
    holes = {name: int(np.count_nonzero(np.isnan(tape))) for name, tape in tapes.items()}
    if missing == "drop":
        tapes = _checked(without_missing(tapes))
    problem = Problem(
        arms=tuple(tapes),
        delta=delta,
        contamination=Contamination.of(contamination),
        tolerance=Tolerance.of(tolerance),
        quantile=quantile,
        goal=goal,
        dependent_arms=dependent_arms,
    )
    return _analyzed(problem, tapes, design, holes=holes, missing=missing, pairs=pairs)


def without_missing(tapes: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the readings that `missing="drop"` keeps, which are those its certificate speaks of.

    Examples
    --------
    >>> without_missing({"A": np.array([1.0, np.nan, 2.0])})
    {'A': array([1., 2.])}
    """
    return {name: tape[~np.isnan(tape)] for name, tape in tapes.items()}


def _checked(tapes: Mapping[str, Floats]) -> dict[str, Floats]:
    check_arms(tapes)
    for name, tape in tapes.items():
        if not tape.size:
            msg = f"arm {name!r} has no readings; leave it out, or check that its column holds numbers"
            raise InvalidArgument(msg)
    return dict(tapes)


@dataclass(frozen=True, slots=True)
class _Court:
    """The samples of all arms and the rule by which one accuses another."""

    problem: Problem
    samples: tuple[Sample, ...]
    design: Design
    rule: Rule
    levels: Levels
    log_threshold: float

    @classmethod
    def of(cls, problem: Problem, tapes: Mapping[str, Floats], design: Design) -> "_Court":
        pairwise = pair_rule(problem.contamination, dependent_arms=problem.dependent_arms)
        rule: Rule = "causal" if design == "fixed" else pairwise  # evidence section 11
        return cls(
            problem,
            tuple(_trusted(problem, sample) for sample in _sorted(list(tapes.values()), problem.sign)),
            design,
            rule,
            Levels.of(problem.level, problem.contamination),
            math.log(threshold(len(tapes), problem.delta, rule)),
        )

    def evidence(
        self, better: int, worse: int, levels: Levels | None = None, enough: float | None = None
    ) -> float:
        """Return the log-evidence that one arm is better, less that for the opposite if readings are missing.

        More missing readings than eps allows support both orders; less evidence than measured is valid.
        """
        if not (self.samples[better].missing or self.samples[worse].missing):
            return self._plain(better, worse, levels or self.levels, enough)
        found = self._plain(better, worse, levels or self.levels)
        return found if found <= 0 else found - max(0.0, self._plain(worse, better, levels or self.levels))

    def _plain(self, better: int, worse: int, levels: Levels, enough: float | None = None) -> float:
        if self.design == "fixed":
            return fixed_against(worse, self.samples, leader=better, levels=levels, enough=enough).log_value
        return against(
            worse, self.samples, self.rule, leader=better, entries=(), levels=levels, enough=enough
        ).log_value

    def within(self, better: int, worse: int) -> float:
        """Return the log-evidence that one arm is worse than another by no more than the tolerance."""
        problem = self.problem
        if self.design == "fixed":
            found = fixed_against(
                worse,
                self.samples,
                leader=better,
                levels=self.levels,
                tolerance=problem.tolerance,
                sign=problem.sign,
            )
            return found.log_value
        return within_tolerance(
            worse,
            self.samples,
            self.rule,
            leader=better,
            entries=(),
            levels=self.levels,
            tolerance=problem.tolerance,
            sign=problem.sign,
        ).log_value

    def claim(self, better: int, worse: int, log_evidence: float, *, tolerant: bool = False) -> Claim:
        arms, counts = self.problem.arms, tuple(s.n for s in self.samples)
        return Claim(arms[worse], arms[better], counts, 0, log_evidence, tolerant)


def _trusted(problem: Problem, sample: Sample) -> Sample:
    """Return a sample in which missing readings hurt instead of help, if eps cannot explain how many there are.

    Bad readings may be replaced by what helps (audit 2.G) as far as eps covers them. Beyond, the readings refute
    eps, and whatever follows from it would be certified.
    """
    if not alarms.too_many_missing(problem, sample):
        return sample
    return Sample(sample.values, 0, sample.pending + sample.missing)


def _sorted(tapes: Sequence[Floats], sign: float) -> tuple[Sample, ...]:
    def sample(tape: Floats) -> Sample:
        values = sign * tape
        values.sort()
        known = values[: values.searchsorted(np.nan)]  # NaN comes last
        known.flags.writeable = False
        return Sample(known, tape.size - known.size)

    if sum(tape.size for tape in tapes) < _MANY:
        return tuple(map(sample, tapes))
    with ThreadPoolExecutor() as pool:  # numpy sorts without holding the interpreter
        return tuple(pool.map(sample, tapes))


def _analyzed(
    problem: Problem,
    tapes: Mapping[str, Floats],
    design: Design,
    *,
    holes: Mapping[str, int],
    missing: Missing,
    pairs: bool,
) -> Analysis:
    court = _Court.of(problem, tapes, design)
    ranking = _ranked(court)
    accusers = ranking if pairs else ranking[:1]
    known = {(i, j): court.evidence(i, j) for i in accusers for j in ranking if i != j}
    claims = _exclusions(court, ranking, known)
    verdict = _verdict(court, ranking[0], claims)
    result = certify(problem, tapes, verdict, design=design, samples=court.samples)
    if any(sample.pending for sample in court.samples):  # missing readings that hurt are missing all the same
        result = replace(result, alarms=alarms.find(problem, tapes))
    leader = ranking[0] if result.leader is None else problem.arms.index(result.leader)
    needed = _needed(court, leader, verdict)
    return Analysis._around(
        result,
        ranking=tuple(problem.arms[i] for i in ranking),
        excluded={claim.arm: claim.leader for claim in claims},
        contests=_contests(court, known, pairs=pairs),
        needed=needed,
        missing=dict(holes),
        notes=(
            *_on_missing(holes, missing),
            *_on_few(court, leader, verdict),
            *_on_needed(verdict, needed),
            _on_design(design),
        ),
    )


def _ranked(court: _Court) -> list[int]:
    """Return the arms by observed quantile, the best first; arms without a single value come last."""
    left = [i for i, sample in enumerate(court.samples) if sample.values.size]
    ranking = []
    while left:
        best = best_looking(court.samples, left, court.problem.level)
        ranking.append(left.pop(left.index(best)) if best is not None else left.pop())
    return ranking + [i for i, sample in enumerate(court.samples) if not sample.values.size]


def _exclusions(
    court: _Court, ranking: Sequence[int], known: Mapping[tuple[int, int], float]
) -> tuple[Claim, ...]:
    """Return for every excluded arm the first accuser, from the leader down, whose evidence suffices."""
    claims = []
    for place, judged in enumerate(ranking):
        for accuser in ranking[:place]:
            found = known.get((accuser, judged))
            if (
                found is None
                and court.evidence(accuser, judged, enough=court.log_threshold) >= court.log_threshold
            ):
                found = court.evidence(accuser, judged)
            if found is not None and found >= court.log_threshold:
                claims.append(court.claim(accuser, judged, found))
                break
    return tuple(claims)


def _verdict(court: _Court, leader: int, claims: tuple[Claim, ...]) -> Verdict:
    problem, out = court.problem, {claim.arm for claim in claims}
    alive = [i for i, name in enumerate(problem.arms) if name not in out]
    candidates = tuple(problem.arms[i] for i in alive)
    best = problem.arms[leader]

    def ended(status: Status, best: str | None = None, more: tuple[Claim, ...] = ()) -> Verdict:
        return Verdict(status=status, candidates=candidates, best=best, rule=court.rule, claims=claims + more)

    if len(alive) == 1:
        return ended(Status.SEPARATED if problem.contamination is None else Status.CERTIFIED, best)
    if min(court.levels) > 0 and problem.tolerance and (more := _tolerable(court, leader, alive)):
        return ended(Status.TOLERABLE, best, more)
    if problem.contamination is not None and indistinguishable(
        court.samples,
        court.levels,
        problem.delta,
        alive=alive,
        tolerance=problem.tolerance,
        sign=problem.sign,
    ):
        return ended(Status.INDISTINGUISHABLE)
    return ended(Status.EXHAUSTED)


def _tolerable(court: _Court, leader: int, alive: Sequence[int]) -> tuple[Claim, ...]:
    """Return claims that no arm left is better than the leader by more than the tolerance, or nothing."""
    claims = []
    for judged in alive:
        if judged == leader:
            continue
        found = court.within(leader, judged)
        if found < court.log_threshold:
            return ()
        claims.append(court.claim(leader, judged, found, tolerant=True))
    return tuple(claims)


def _contests(court: _Court, known: Mapping[tuple[int, int], float], *, pairs: bool) -> tuple[Contest, ...]:
    arms = court.problem.arms
    rivals = math.log(max(1, len(arms) - 1))
    return tuple(
        Contest(
            arms[better],
            arms[worse],
            log_evidence,
            p_value_of(log_evidence - rivals, court.rule),
            _breakdown(court, better, worse) if pairs else None,
            log_evidence >= court.log_threshold,
        )
        for (better, worse), log_evidence in known.items()
    )


def _breakdown(court: _Court, better: int, worse: int) -> Breakdown:
    """Return up to which contamination one arm excludes another, by adversary."""
    declared = court.problem.contamination
    points = []
    for adversary in Adversary:
        causal = declared.causal if declared is not None and adversary is not Adversary.OBLIVIOUS else None
        promise = Contamination(0.0, adversary, causal)
        pairwise = pair_rule(promise, dependent_arms=court.problem.dependent_arms)
        rule: Rule = "causal" if court.design == "fixed" else pairwise
        enough = math.log(threshold(len(court.samples), court.problem.delta, rule))
        points.append(
            breakdown_point(
                [lambda levels, enough=enough: court.evidence(better, worse, levels, enough)],  # type: ignore[misc]
                enough,
                quantile=court.problem.level,
                adversary=adversary,
                accuracy=1e-4,  # a table shows three digits
            )
        )
    return Breakdown(*points)


def _needed(court: _Court, leader: int, verdict: Verdict) -> dict[str, int] | None:
    """Return how many more readings of the leader and of each rival left would decide, None if none would.

    An estimate: the readings at hand, repeated, stand for those to come.
    """
    if verdict.best is not None:
        return {}
    more: dict[str, int] = {}
    for rival in (court.problem.arms.index(name) for name in verdict.candidates):
        if rival == leader:
            continue
        times = _times(court, leader, rival)
        if times is None:
            return None
        for i in (leader, rival):
            name, extra = court.problem.arms[i], math.ceil((times - 1) * court.samples[i].n)
            more[name] = max(more.get(name, 0), extra)
    return more


def _times(court: _Court, leader: int, rival: int) -> float | None:
    """Return how many times the readings at hand would have to come to exclude the rival."""
    problem = court.problem
    head, other = court.samples[leader], court.samples[rival]
    if problem.tolerance:
        head = positive(head, problem.sign) if problem.tolerance.relative else head
        other = shifted(other, problem.tolerance, problem.sign)
    declared = problem.contamination or Contamination(0.0)
    if min(court.levels) <= 0 or (
        breakdown_estimate(head, other, problem.level, declared.adversary) <= declared.eps
    ):
        return None  # at some cut the plug-in laws allow the opposite order: evidence section 8
    measure = fixed_pair if court.design == "fixed" else pair

    def decided(times: float) -> bool:
        found = measure(head, other, court.levels, closed=leader > rival, times=times, enough=court.log_threshold)
        return found.log_value >= court.log_threshold

    low, high = 1.0, 2.0
    while not decided(high):
        low, high = high, 2 * high
        if high * (head.n + other.n) > _MOST:
            return None
    while high / low > 1.01:  # an estimate needs no more digits
        middle = math.sqrt(low * high)
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high


def _on_missing(holes: Mapping[str, int], missing: Missing) -> list[str]:
    total = sum(holes.values())
    if not total:
        return []
    if missing == "contaminated":
        fate = "counts as a bad reading" if total == 1 else "count as bad readings"
    else:
        fate = "was left out" if total == 1 else "were left out"
    cells = "cell" if total == 1 else "cells"
    where = ", ".join(f"{wording.name_of(name)} {wording.count(n)}" for name, n in list(holes.items())[:5] if n)
    return [f"{wording.count(total)} {cells} without a value {fate} ({where})."]


def _on_few(court: _Court, leader: int, verdict: Verdict) -> list[str]:
    """Return which arms left have so few readings that no values of theirs could decide."""
    term = fixed_term if court.design == "fixed" else mixture_term()
    own = float(term(np.asarray(0.0), court.samples[leader].n, court.levels.low))
    notes = []
    for name in verdict.candidates:
        rival = court.problem.arms.index(name)
        n = court.samples[rival].n
        most = own + float(term(np.asarray(0.0), n, court.levels.high))
        if rival != leader and min(court.levels) > 0 and most < court.log_threshold:
            few = f"{wording.count(n)} reading{'s' * (n != 1)}"
            notes.append(f"{wording.name_of(name)} has {few}: too few to exclude it, whatever they say.")
    return notes[:3]


def _on_needed(verdict: Verdict, needed: Mapping[str, int] | None) -> list[str]:
    if verdict.best is not None:
        return []
    if needed is None:
        return ["Readings that look like these would not decide, however many there are (an estimate)."]
    total = sum(needed.values())
    return [f"About {wording.count(total)} more readings that look like these would decide (an estimate)."]


def _on_design(design: Design) -> str:
    if design == "fixed":
        return "Design: fixed, valid if the number of readings of every arm was chosen in advance."
    return "Design: sequential, valid however often the readings were looked at."
