"""From a verdict and the readings to a result: intervals, margins, breakdown points, alarms, certificate.

Statements stand side by side, each with its own probability delta of being wrong (evidence section 11): the
decision, the margins over the other arms, the certified tolerance, all intervals of quantiles, all intervals of
MADs, and the quality curve of the best arm.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from truearm.claims import alarms
from truearm.claims.certificate import (
    Alarm,
    Certificate,
    Claim,
    Origin,
    Readings,
    Status,
    Verdict,
    digest,
    sample_of,
)
from truearm.claims.control import describe_control
from truearm.claims.result import Arm, Lead, Reach, Result
from truearm.evidence import Breakdown, Entry, Judge, Trust
from truearm.evidence.sample import EMPTY, Sample
from truearm.evidence.shares import deciding_limit, is_binary
from truearm.problem import Adversary, Design, Interval, Problem

_NOTHING = Breakdown(None, None, None)
_STRICT = (Status.CERTIFIED, Status.SEPARATED)


def certify(
    problem: Problem,
    tapes: Readings,
    verdict: Verdict,
    *,
    design: Design = "sequential",
    samples: Sequence[Sample] | None = None,
    mark: str | None = None,
    noticed: tuple[Alarm, ...] = (),
    origin: Origin | None = None,
) -> Result:
    """Return the result of a verdict on these readings.

    Parameters
    ----------
    samples, mark
        The tapes as oriented samples, and their digest, if the caller has them.
    noticed
        Alarms that the samples do not show, such as those about the order of pulls.
    """
    counts = {arm: len(tapes.get(arm, ())) for arm in problem.arms}
    if samples is None:
        samples = [sample_of(tapes.get(arm, ()), counts[arm], problem, arm) for arm in problem.arms]
    verdict = _apply_handicap(problem, _check_readings(problem, samples, verdict, design))
    certificate = Certificate(
        problem=problem,
        rule=verdict.rule,
        best=verdict.best,
        entries=verdict.entries,
        claims=verdict.claims,
        exclusions=verdict.exclusions,
        digest=digest(problem, tapes) if mark is None else mark,
        design=design,
        estimated=verdict.estimated,
        origin=origin,
        control=verdict.control,
    )
    leader = _leader(Judge.of(problem, samples), verdict)
    found = rejections(certificate, tapes, samples, leader=leader or 0)
    doubtful, judge = verdict.status is Status.DOUBTFUL, found[None].judge
    known = leader is not None and not doubtful
    compared = known and not verdict.estimated  # evidence says nothing about a user's estimator
    behind = _not_excluded(judge, found[None], verdict)
    ties = _ties(judge, verdict, behind)
    may_tie = tuple(arm for arm in behind if arm not in ties) if verdict.best else ()
    measured = as_measured(judge, tapes)
    open_ = ties if verdict.best else behind
    candidates = (*verdict.candidates, *(arm for arm in open_ if arm not in verdict.candidates))
    arms = tuple(_describe(measured, i, known=not doubtful) for i in range(len(problem.arms)))
    return Result(
        status=verdict.status,
        best=verdict.best,
        leader=None if leader is None else problem.arms[leader],
        ties=ties,
        may_tie=may_tie,
        candidates=candidates,
        pulls=counts,
        breakdown=_breakdown(found, verdict) if compared else _NOTHING,
        breakdown_estimate=_breakdown_estimate(judge) if compared else _NOTHING,
        tolerance=_tolerance(judge, verdict) if compared else math.inf,
        better_by=_leads(judge, verdict) if compared else (),
        arms=arms,
        quality=tuple(Reach(*point) for point in measured.quality()) if known else (),
        problem=problem,
        design=design,
        doubts=verdict.doubts,
        control=describe_control(Judge.of(problem, samples, design=design), verdict.control),
        alarms=(*noticed, *_alarms(measured, verdict, candidates)),
        certificate=certificate,
    )


def _apply_handicap(problem: Problem, verdict: Verdict) -> Verdict:
    """Return the verdict about the true arms: an arm that beats one with a handicap is good enough."""
    given = problem.handicap
    if given is None or verdict.best in (None, given.arm) or verdict.status not in _STRICT:
        return verdict
    candidates = tuple(arm for arm in problem.arms if arm in (verdict.best, given.arm))
    return replace(verdict, status=Status.TOLERABLE, candidates=candidates)


def _alarms(judge: Judge, verdict: Verdict, candidates: tuple[str, ...]) -> Iterator[Alarm]:
    """Return the alarms that are not among the doubts; those about ties name a share that would decide."""
    are_open = len(candidates) > 1 and not verdict.estimated
    found = [
        alarm
        for alarm in alarms.find(judge.problem, judge.samples)
        if (are_open and alarm.arm in candidates if alarm.kind == "ties" else alarm not in verdict.doubts)
    ]
    limit = deciding_limit(judge.problem, judge.samples) if any(a.kind == "ties" for a in found) else None
    name = "at_least" if judge.problem.goal == "max" else "at_most"
    detail = f"{name}={limit:.12g}" if limit is not None else "binary" if is_binary(judge.samples) else ""
    for alarm in found:
        yield replace(alarm, detail=detail) if alarm.kind == "ties" else alarm


def _check_readings(problem: Problem, samples: Sequence[Sample], verdict: Verdict, design: Design) -> Verdict:
    """Return the verdict, doubtful if the samples contradict an assumption, certified if they allow it."""
    if verdict.status is Status.DOUBTFUL:
        return verdict
    judge = Judge.of(problem, samples, design=design)
    judge = judge.after(leader=_leader(judge, verdict) or 0)
    if found := alarms.doubts(judge):
        return Verdict.doubtful(found, problem.arms)
    return _certify_by_evidence(judge, verdict)


def _certify_by_evidence(judge: Judge, verdict: Verdict) -> Verdict:
    """Return a certified verdict if a policy without evidence stopped on readings that certify its leader."""
    problem, samples = judge.problem, judge.samples
    is_final = verdict.estimated or verdict.rule is not None or verdict.status is Status.CERTIFIED
    if is_final or problem.contamination is None or not any(sample.size for sample in samples):
        return verdict
    counts, best = tuple(sample.n for sample in samples), problem.arms[judge.leader]
    found = {arm: judge.against(i).log_value for i, arm in enumerate(problem.arms) if arm != best}
    if min(found.values(), default=math.inf) < judge.log_threshold:
        return verdict
    claims = tuple(Claim(arm, best, counts, 0, value) for arm, value in found.items())
    certified = replace(verdict, status=Status.CERTIFIED, best=best, candidates=(best,))
    return replace(certified, rule=judge.rule, claims=claims)


def _leader(judge: Judge, verdict: Verdict) -> int | None:
    arms = judge.problem.arms
    if verdict.best is not None:
        return arms.index(verdict.best)
    if verdict.estimated:
        return None
    places = _places(arms)
    return judge.best_looking([places[arm] for arm in verdict.candidates])


def _places(arms: Sequence[str]) -> dict[str, int]:
    return {arm: i for i, arm in enumerate(arms)}


def as_measured(judge: Judge, tapes: Readings) -> Judge:
    """Return the judge of the readings without a handicap."""
    given = judge.problem.handicap
    if given is None:
        return judge
    plain, tape = replace(judge.problem, handicap=None), tapes.get(given.arm, ())
    found = {given.arm: sample_of(tape, len(tape), plain, given.arm)}
    by_arm = zip(judge.problem.arms, judge.samples, strict=True)
    return judge.after(tuple(found.get(arm, sample) for arm, sample in by_arm))


def describe(name: str, sample: Sample, problem: Problem, *, design: Design, known: bool = True) -> Arm:
    """Return what is known of one arm, for all arms at once; only what was observed unless `known`."""
    by_arm = [sample if arm == name else EMPTY for arm in problem.arms]
    return _describe(Judge.of(problem, by_arm, design=design), problem.arms.index(name), known=known)


def _describe(judge: Judge, i: int, *, known: bool) -> Arm:
    name, n, endless = judge.problem.arms[i], judge.samples[i].n, Interval(-math.inf, math.inf)
    true, core = endless, endless
    if n and known:
        true, core = judge.intervals(i, judge.problem.declared)
    return Arm(name, n, judge.estimate(i), *true, *core, *judge.spread(i, known=known))


class Rejections(NamedTuple):
    """The judges that reject the rivals of a leader under one adversary."""

    judge: Judge
    earlier: Mapping[int, Judge]
    """The judges of arms that were rejected before the end, as of then."""

    def against(
        self, judged: int, trust: Trust | None = None, *, closed: bool = False, enough: float | None = None
    ) -> float:
        """Return the log-evidence against an arm, now or when it was rejected; the rest as in `Judge.against`."""
        judges = [self.judge, *([self.earlier[judged]] if judged in self.earlier else [])]
        return max(judge.against(judged, closed=closed, trust=trust, enough=enough).log_value for judge in judges)


def rejections(
    certificate: Certificate, tapes: Readings, samples: Sequence[Sample], *, leader: int
) -> dict[Adversary | None, Rejections]:
    """Return per adversary, and under None for the declared one, the judges that reject the leader's rivals.

    A rival is rejected at eps if all readings reject it, or those at the date of its claim did: the best arm is
    ever rejected at the one true eps with probability at most delta (T6).
    """
    problem, arms = certificate.problem, certificate.problem.arms
    places, latest = _places(arms), tuple(s.n for s in samples)

    def head(arm: str, n: int) -> Sample:
        return sample_of(tapes[arm], n, problem, arm)

    entries = [Entry(places[e.arm], head(e.arm, e.since), head(e.arm, e.until)) for e in certificate.entries]
    now = Judge.of(
        problem, samples, leader=leader, entries=entries, design=certificate.design, ordered=bool(entries)
    )

    def judge_at(claim: Claim) -> Judge | None:
        """Return the judge of a claim at its date, None if that is the present one."""
        accuser = places[claim.leader]
        if accuser == leader and claim.counts in (None, latest):
            return None
        return now.after(leader=accuser) if claim.counts is None else certificate.judge(claim, tapes)

    strict = {places[claim.arm]: judge_at(claim) for claim in certificate.claims if not claim.tolerant}
    earlier = {i: judge for i, judge in strict.items() if judge is not None}
    return {
        adversary: Rejections(
            now if adversary is None else now.under(adversary),
            {
                i: judge if adversary is None else judge.under(adversary)
                for i, judge in earlier.items()
                if adversary is None or now.under(adversary).rule == now.pairs
            },
        )
        for adversary in (None, *Adversary)
    }


def judge_of(certificate: Certificate, tapes: Readings) -> Judge:
    """Return the judge of pairs on all readings."""
    problem = certificate.problem
    samples = [sample_of(tapes.get(arm, ()), len(tapes.get(arm, ())), problem, arm) for arm in problem.arms]
    return Judge.of(problem, samples, design=certificate.design)


def _ties(judge: Judge, verdict: Verdict, behind: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arms that tie with the best one: behind by order only, with the same estimate (T11).

    Without a best arm, these are the arms with the leader's readings in every round.
    """
    places = _places(judge.problem.arms)
    if verdict.best is not None and verdict.rule is None:
        return behind if verdict.status is Status.CERTIFIED else ()
    if verdict.best is not None:
        return tuple(arm for arm in behind if judge.looks(places[arm]) == judge.looks(judge.leader))
    if verdict.status is Status.DOUBTFUL:
        return ()
    leader = judge.problem.arms[judge.leader]
    alike = [arm for arm in verdict.candidates if judge.is_same([judge.leader, places[arm]])]
    return tuple(alike) if len(alike) > 1 and leader in alike else ()


def _not_excluded(judge: Judge, found: Rejections, verdict: Verdict) -> tuple[str, ...]:
    """Return the rejected arms that closed evidence does not put behind.

    Of a best arm these may tie with it (T11). If none is best, an arm is excluded only by evidence that is enough
    for all arms at once (T10a).
    """
    if verdict.rule is None:
        return tuple(e.arm for e in verdict.exclusions if e.upper.value == e.lower.value)
    arms, bar = judge.problem.arms, judge.log_strict if verdict.best is None else judge.log_threshold
    places = _places(arms)
    rejected = sorted(places[claim.arm] for claim in verdict.claims if not claim.tolerant)
    short = [i for i in rejected if found.judge.against(i, closed=True, enough=bar).log_value < bar]
    return tuple(arms[i] for i in short if found.against(i, closed=True, enough=bar) < bar)


def _leads(judge: Judge, verdict: Verdict) -> tuple[Lead, ...]:
    """Return how much better the best arm is than each other one, by the evidence that decided (T10a)."""
    if verdict.best is None or verdict.status not in _STRICT or judge.problem.handicap is not None:
        return ()
    others = [i for i, sample in enumerate(judge.samples) if i != judge.leader and sample.size]
    return tuple(
        Lead(judge.problem.arms[i], *margin) for i, margin in zip(others, judge.leads(others), strict=True)
    )


def _breakdown(found: Mapping[Adversary | None, Rejections], verdict: Verdict) -> Breakdown:
    """Return eps* per adversary (evidence T6): by pairs, and at least that of the decision."""
    judge = found[None].judge
    rivals = [i for i in range(len(judge.samples)) if i != judge.leader]
    closest = sorted(rivals, key=lambda i: -judge.looks(i))  # the closest rival decides: the others are quick

    def point(adversary: Adversary) -> float | None:
        judge, earlier = found[adversary]
        return judge.breakdown(closest, adversary, earlier=earlier)

    points = _by_adversary(found, point)
    return points.decided_at(judge.problem.contamination) if verdict.status is Status.CERTIFIED else points


def breakdown_of(found: Mapping[Adversary | None, Rejections], judged: int) -> Breakdown:
    """Return the largest eps at which one rival is still rejected, per adversary (evidence T6)."""

    def point(adversary: Adversary) -> float | None:
        judge, earlier = found[adversary]
        return judge.breakdown([judged], adversary, earlier=earlier, accuracy=1e-5)

    return _by_adversary(found, point)


def _by_adversary(
    found: Mapping[Adversary | None, Rejections], point: Callable[[Adversary], float | None]
) -> Breakdown:
    oblivious = point(Adversary.OBLIVIOUS)
    if oblivious is None and not any(under.earlier for under in found.values()):
        return _NOTHING  # no adversary needs less evidence than the weakest one
    prescient = point(Adversary.PRESCIENT)
    if prescient is not None and found[None].judge.is_symmetric:
        return Breakdown(oblivious, prescient, prescient / 2)  # T6: one threshold
    return Breakdown(oblivious, prescient, point(Adversary.MALICIOUS))


def _breakdown_estimate(judge: Judge) -> Breakdown:
    """Return where eps* would end with endless readings like these."""
    rivals = [i for i in range(len(judge.samples)) if i != judge.leader]

    def least(adversary: Adversary) -> float:
        return min((judge.breakdown_estimate(i, adversary) for i in rivals), default=1.0)

    others = least(Adversary.OBLIVIOUS)  # and prescient: endless readings leave nothing to foresee
    return Breakdown(others, others, least(Adversary.MALICIOUS))


def _tolerance(judge: Judge, verdict: Verdict) -> float:
    """Return alpha* of the leader over all arms (evidence T7): 0 when every rival is rejected outright."""
    given = judge.problem.handicap
    if given is not None:
        decided = 0.0 if verdict.status in _STRICT else math.inf
        return given.tolerance.amount if verdict.status is Status.TOLERABLE else decided
    places = _places(judge.problem.arms)
    worst = judge.tolerance([places[claim.arm] for claim in verdict.claims if not claim.tolerant])
    # the pooled rule needs less than pairs do: what it certified stands; bounds speak of effective gaps (E3)
    by_evidence = verdict.status is Status.TOLERABLE and verdict.rule is not None
    return min(worst, judge.problem.tolerance.amount) if by_evidence else worst
