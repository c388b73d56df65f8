"""From a verdict and the readings to a result: intervals, margins, breakdown points, alarms, certificate.

Statements stand side by side, each with its own probability delta of being wrong (evidence section 11): the
decision, the margins over the other arms, the certified tolerance, all intervals of quantiles, all intervals of
MADs, and the quality curve of the best arm.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from truearm import bounds
from truearm.claims import alarms
from truearm.claims.certificate import Alarm, Certificate, Claim, Status, Tapes, Verdict, digest, sample_of
from truearm.claims.result import Arm, Lead, Reach, Result
from truearm.evidence import Breakdown, Entry, Judge, Levels, best_looking, breakdown_estimate, rule_for
from truearm.evidence.intervals import quality_of
from truearm.evidence.moments import deviation, spread
from truearm.evidence.sample import Sample
from truearm.evidence.shifts import as_measured
from truearm.problem import Adversary, Contamination, Design, Interval, Problem

_NOTHING = Breakdown(None, None, None)
_STRICT = (Status.CERTIFIED, Status.SEPARATED)


def certify(
    problem: Problem,
    tapes: Tapes,
    verdict: Verdict,
    *,
    design: Design = "sequential",
    samples: Sequence[Sample] | None = None,
    noticed: tuple[Alarm, ...] = (),
) -> Result:
    """Return the result of a study that ended with this verdict on these readings.

    Parameters
    ----------
    tapes
        Per arm the readings in order of pull, in the user's units; None for a pull never told.
    design
        "fixed" only if all numbers of readings were chosen in advance.
    samples
        The tapes as oriented samples, if the caller has them: saves sorting again.
    noticed
        Alarms that the samples do not show, such as those about the order of pulls.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(arms=("A", "B"), contamination=0.1)
    >>> tapes = {"A": np.arange(50.0, 150.0), "B": np.arange(0.0, 100.0)}
    >>> verdict = Verdict(status=Status.CERTIFIED, best="A", candidates=("A",))
    >>> result = certify(problem, tapes, verdict)
    >>> round(result.breakdown.oblivious, 3), result.arms[0].observed, round(result.better_by[0].at_least, 2)
    (0.295, 99.0, 1.24)
    """
    counts = {arm: len(tapes.get(arm, ())) for arm in problem.arms}
    if samples is None:
        samples = [sample_of(tapes.get(arm, ()), counts[arm], problem, arm) for arm in problem.arms]
    verdict = _named(problem, _believed(problem, samples, verdict, design))
    certificate = Certificate(
        problem=problem,
        rule=verdict.rule,
        best=verdict.best,
        entries=verdict.entries,
        claims=verdict.claims,
        exclusions=verdict.exclusions,
        digest=digest(problem, tapes),
        design=design,
        estimated=verdict.estimated,
    )
    leader = _leader(problem, samples, verdict)
    found = rejections(certificate, tapes, samples, leader=leader or 0)
    doubtful, judge = verdict.status is Status.DOUBTFUL, found[None].judge
    known = leader is not None and not doubtful
    compared = known and not verdict.estimated  # by quantiles: of another estimator the evidence says nothing
    ties = _ties(judge, found[None], verdict)
    measured = [as_measured(sample, problem, arm) for arm, sample in zip(problem.arms, samples, strict=True)]
    candidates = (*verdict.candidates, *(arm for arm in ties if arm not in verdict.candidates))
    arms = tuple(
        describe(name, sample, problem, design=design, known=not doubtful)
        for name, sample in zip(problem.arms, samples, strict=True)
    )
    return Result(
        status=verdict.status,
        best=verdict.best,
        leader=None if leader is None else problem.arms[leader],
        ties=ties,
        candidates=candidates,
        pulls=counts,
        breakdown=_breakdown(found, verdict) if compared else _NOTHING,
        breakdown_estimate=_breakdown_estimate(judge) if compared else _NOTHING,
        tolerance=_tolerance(judge, verdict) if compared else math.inf,
        better_by=_leads(judge, verdict) if compared else (),
        arms=arms,
        quality=_quality(judge) if known else (),
        problem=problem,
        design=design,
        doubts=verdict.doubts,
        alarms=(*noticed, *(a for a in alarms.find(problem, measured) if _matters(a, verdict, candidates))),
        certificate=certificate,
    )


def _named(problem: Problem, verdict: Verdict) -> Verdict:
    """Return what a verdict says of the true arms: who wins only because another has a handicap is good enough."""
    given = problem.handicap
    if given is None or verdict.best in (None, given.arm) or verdict.status not in _STRICT:
        return verdict
    candidates = tuple(arm for arm in problem.arms if arm in (verdict.best, given.arm))
    return replace(verdict, status=Status.TOLERABLE, candidates=candidates)


def _matters(alarm: Alarm, verdict: Verdict, candidates: tuple[str, ...]) -> bool:
    """Tell whether an alarm says more than the doubts; equal readings only matter between arms that are left."""
    if alarm.kind == "ties":
        return len(candidates) > 1 and alarm.arm in candidates and not verdict.estimated
    return alarm not in verdict.doubts


def _believed(problem: Problem, samples: Sequence[Sample], verdict: Verdict, design: Design) -> Verdict:
    """Return the verdict, doubtful where the samples contradict a promise, certified where they bear it out."""
    if verdict.status is Status.DOUBTFUL:
        return verdict
    judge = Judge.of(problem, samples, leader=_leader(problem, samples, verdict) or 0, design=design)
    if found := alarms.doubts(judge):
        return Verdict.doubtful(found, problem.arms)
    return _strengthened(judge, verdict)


def _strengthened(judge: Judge, verdict: Verdict) -> Verdict:
    """Return a certified verdict where a policy that weighs no evidence stopped on readings that certify it."""
    problem, samples = judge.problem, judge.samples
    weighed = (
        verdict.estimated
        or verdict.rule is not None
        or verdict.status is Status.CERTIFIED
        or problem.contamination is None
    )
    if weighed or not any(sample.size for sample in samples):
        return verdict
    counts = tuple(sample.n for sample in samples)
    best, claims = problem.arms[judge.leader], []
    for i, arm in enumerate(problem.arms):
        if i != judge.leader:
            found = judge.against(i)
            if found.log_value < judge.log_threshold:
                return verdict
            claims.append(Claim(arm, best, counts, 0, found.log_value))
    return Verdict(
        status=Status.CERTIFIED,
        best=best,
        candidates=(best,),
        rule=judge.rule,
        claims=tuple(claims),
        exclusions=verdict.exclusions,
    )


def _leader(problem: Problem, samples: Sequence[Sample], verdict: Verdict) -> int | None:
    if verdict.best is not None:
        return problem.arms.index(verdict.best)
    if verdict.estimated:
        return None
    return best_looking(samples, [problem.arms.index(arm) for arm in verdict.candidates], problem.level)


def describe(name: str, sample: Sample, problem: Problem, *, design: Design, known: bool = True) -> Arm:
    """Return what is known of one arm, at a level that holds for all arms at once.

    Parameters
    ----------
    known
        False if the readings contradict a promise: then nothing is known but what was observed.

    Examples
    --------
    >>> describe("A", Sample.of(range(100)), Problem(arms=("A", "B")), design="fixed").low
    35.0
    """
    c = problem.contamination or Contamination(0.0)
    sample = as_measured(sample, problem, name)
    n, share = sample.n, problem.delta / len(problem.arms)
    observed, nothing = problem.sign * sample.quantile(problem.level), Interval(-math.inf, math.inf)
    quantile, core, mad = nothing, nothing, Interval(0.0, math.inf)
    if n and known:
        ranks = bounds.quantile_ranks if design == "fixed" else bounds.sequential_quantile_ranks
        quantile, core = identified(sample, problem, c, design=design)
        mad = spread(sample.hidden(), ranks(n, 0.5, share / 2, c.eps, c.adversary))
    return Arm(name, n, observed, *quantile, *core, deviation(sample.values) if n else math.nan, *mad)


def identified(
    sample: Sample, problem: Problem, contamination: Contamination, *, design: Design
) -> tuple[Interval, Interval]:
    """Return where one arm's true quantile lies, for all arms at once, and what contamination alone leaves of it.

    The second is an estimate. The contamination may differ from the declared one: a reader may ask "what if".

    Examples
    --------
    >>> identified(Sample.of(range(100)), Problem(arms=("A", "B")), Contamination(0.1), design="fixed")
    (Interval(low=33.0, high=66.0), Interval(low=44.0, high=55.0))
    """
    c, n = contamination, sample.n
    ranks = bounds.quantile_ranks if design == "fixed" else bounds.sequential_quantile_ranks
    share = problem.delta / len(problem.arms)
    masses = Levels.of(problem.level, c)
    inner = (math.ceil(masses.low * n - 1e-9), n + 1 - math.ceil(masses.high * n - 1e-9))  # audit 2.A
    whole = sample.between(ranks(n, problem.level, share, c.eps, c.adversary))
    return _in_units(whole, problem.sign), _in_units(sample.between(inner), problem.sign)


def _in_units(interval: Interval, sign: float) -> Interval:
    low, high = interval
    if high == -math.inf:  # censored: worse than a limit nobody told, so that no reading bounds it (evidence T8)
        high = math.inf
    return Interval(low, high) if sign > 0 else Interval(-high, -low)


def _quality(judge: Judge) -> tuple[Reach, ...]:
    """Return the leader's quality curve at shares of 1% to 99%, valid after selection among arms (audit 2.E)."""
    problem, share = judge.problem, judge.problem.delta / len(judge.samples)
    sample = as_measured(judge.samples[judge.leader], problem, problem.arms[judge.leader])
    curve = quality_of(sample, share, contamination=problem.contamination, design=judge.design)
    points = (Reach(problem.sign * curve.reached(percent / 100), percent / 100) for percent in range(1, 100))
    return tuple(point for point in points if math.isfinite(point.x))


class Rejections(NamedTuple):
    """What rejects the rivals of a leader under one adversary, whatever the contamination.

    Examples
    --------
    >>> judge = Judge.of(Problem(arms=("A", "B")), [Sample.of([2.0]), Sample.of([1.0])])
    >>> Rejections(judge, {}).against(1)(Levels(0.5, 0.5)) == judge.against(1, levels=Levels(0.5, 0.5)).log_value
    True
    """

    judge: Judge
    earlier: Mapping[int, Judge]
    """The judges of arms that were rejected before the end, as of then."""

    def against(
        self, judged: int, *, closed: bool = False, enough: float | None = None
    ) -> Callable[[Levels | None], float]:
        """Return the log-evidence against an arm as a function of the levels, now or when it was rejected."""
        judges = [self.judge, *([self.earlier[judged]] if judged in self.earlier else [])]
        return lambda levels: max(
            judge.against(judged, closed=closed, levels=levels, enough=enough).log_value for judge in judges
        )


def rejections(
    certificate: Certificate, tapes: Tapes, samples: Sequence[Sample], *, leader: int
) -> dict[Adversary | None, Rejections]:
    """Return per adversary, and under None for the declared one, what rejects the rivals of the leader.

    A rival counts as rejected at eps if it is so by all readings, or was so when the study rejected it: the
    best arm is ever rejected at the one true eps with probability at most delta (T6).

    Parameters
    ----------
    samples
        The tapes as oriented samples.

    Examples
    --------
    >>> import numpy as np
    >>> tapes = {"A": np.arange(50.0, 150.0), "B": np.arange(0.0, 100.0)}
    >>> verdict = Verdict(status=Status.EXHAUSTED, candidates=("A", "B"))
    >>> certificate = certify(Problem(arms=("A", "B")), tapes, verdict).certificate
    >>> samples = [Sample.of(tape) for tape in tapes.values()]
    >>> found = rejections(certificate, tapes, samples, leader=0)[Adversary.OBLIVIOUS]
    >>> found.against(1)(Levels(0.5, 0.5)) > found.judge.log_threshold
    True
    """
    problem, arms = certificate.problem, certificate.problem.arms
    latest = (arms[leader], tuple(s.n for s in samples))
    entries = [
        Entry(arms.index(arm), *(sample_of(tapes[arm], n, problem, arm) for n in (since, until)))
        for arm, since, until in certificate.entries
    ]
    now = Judge.of(
        problem, samples, leader=leader, entries=entries, design=certificate.design, ordered=bool(entries)
    )
    pairs = rule_for(problem, design=certificate.design)
    earlier = {
        arms.index(claim.arm): certificate.judge(claim, tapes)
        for claim in certificate.claims
        if not claim.tolerant and (claim.leader, claim.counts) != latest  # the present judge knows those
    }
    return {
        adversary: Rejections(
            now if adversary is None else now.under(adversary),
            {
                i: judge if adversary is None else judge.under(adversary)
                for i, judge in earlier.items()
                if adversary is None or now.under(adversary).rule == pairs
            },
        )
        for adversary in (None, *Adversary)
    }


def judge_of(certificate: Certificate, tapes: Tapes) -> Judge:
    """Return the judge of a certificate's problem on all readings, for questions beside the decision.

    Examples
    --------
    >>> tapes = {"A": [3.0] * 80, "B": [1.0] * 80}
    >>> result = certify(Problem(arms=("A", "B")), tapes, Verdict(status=Status.EXHAUSTED, candidates=("A", "B")))
    >>> judge_of(result.certificate, tapes).worse_than(0)
    (1,)
    """
    problem = certificate.problem
    samples = [sample_of(tapes.get(arm, ()), len(tapes.get(arm, ())), problem, arm) for arm in problem.arms]
    return Judge.of(problem, samples, design=certificate.design)


def _ties(judge: Judge, found: Rejections, verdict: Verdict) -> tuple[str, ...]:
    """Return the rejected arms that only the order of listing puts behind: closed evidence does not (T11).

    Their observed quantiles are equal; where readings merely overlap in some value nobody speaks of a tie.
    """
    if verdict.best is None or verdict.rule is None:
        tolerated = verdict.best is None or verdict.status is not Status.CERTIFIED
        return () if tolerated else tuple(e.arm for e in verdict.exclusions if e.upper.value == e.lower.value)
    arms, bar = judge.problem.arms, judge.log_threshold
    rejected = sorted(arms.index(claim.arm) for claim in verdict.claims if not claim.tolerant)
    observed = [sample.quantile(judge.problem.level) for sample in judge.samples]
    equal = [i for i in rejected if judge.leader < i and observed[i] == observed[judge.leader]]
    return tuple(arms[i] for i in equal if found.against(i, closed=True, enough=bar)(None) < bar)


def _leads(judge: Judge, verdict: Verdict) -> tuple[Lead, ...]:
    """Return how much better the best arm is than each other one, by the evidence that decided (T10a)."""
    if verdict.best is None or verdict.status not in _STRICT or judge.problem.handicap is not None:
        return ()
    observed = [judge.problem.sign * sample.quantile(judge.problem.level) for sample in judge.samples]
    return tuple(
        _lead(judge, i, observed[judge.leader], observed[i])
        for i, sample in enumerate(judge.samples)
        if i != judge.leader and sample.size
    )


def _lead(judge: Judge, rival: int, best: float, other: float) -> Lead:
    name = judge.problem.arms[rival]
    relative = 0 < best < math.inf and 0 < other < math.inf and _mostly_positive(judge, rival)
    # the paper's promise is about the order alone: margins of true quantiles are not among what it gives
    margin = None if judge.problem.contamination is None else judge.margin(rival, relative=relative)
    if not relative:
        distance = 0.0 if best == other else judge.problem.sign * (best - other)  # no inf - inf
        return Lead(name, "difference", distance, margin or None)
    ratio = best / other if judge.problem.goal == "max" else other / best
    return Lead(name, "ratio", ratio, 1 + margin if margin else None)


def _mostly_positive(judge: Judge, rival: int) -> bool:
    """Tell whether ratios mean something: hardly a reading of either arm is zero or less."""
    values = (judge.problem.sign * judge.samples[i].values for i in (judge.leader, rival))
    return all(np.count_nonzero(x <= 0) <= 0.1 * x.size for x in values)


def _breakdown(found: Mapping[Adversary | None, Rejections], verdict: Verdict) -> Breakdown:
    """Return eps* per adversary, certified (evidence T6): by pairs, and at least what was decided."""
    judge = found[None].judge
    problem, samples = judge.problem, judge.samples
    rivals = [i for i in range(len(samples)) if i != judge.leader]
    closest = sorted(rivals, key=lambda i: -samples[i].quantile(problem.level))  # decides it: the others are quick

    def point(adversary: Adversary) -> float | None:
        under = found[adversary]
        bar = under.judge.log_threshold
        return under.judge.breakdown([under.against(i, enough=bar) for i in closest], adversary)

    oblivious, prescient = point(Adversary.OBLIVIOUS), point(Adversary.PRESCIENT)
    if prescient is not None and problem.level == 0.5:
        malicious: float | None = prescient / 2  # T6: (1-e)/2 = 1/2 - e/2, one threshold
    else:
        malicious = point(Adversary.MALICIOUS)
    points = oblivious, prescient, malicious
    declared = problem.contamination
    if declared is None or verdict.rule != "pooled" or verdict.status is not Status.CERTIFIED:
        return Breakdown(*points)
    order = list(Adversary)  # each is a special case of the next
    decided = order.index(declared.adversary)
    return Breakdown(*(max(p or 0.0, declared.eps) if i <= decided else p for i, p in enumerate(points)))


def _breakdown_estimate(judge: Judge) -> Breakdown:
    """Return where eps* would end with endless readings like these."""
    head, level = judge.samples[judge.leader], judge.problem.level
    rivals = [sample for i, sample in enumerate(judge.samples) if i != judge.leader]
    return Breakdown(
        *(min((breakdown_estimate(head, s, level, a) for s in rivals), default=1.0) for a in Adversary)
    )


def _tolerance(judge: Judge, verdict: Verdict) -> float:
    """Return alpha* of the leader over all arms (evidence T7): 0 when every rival is rejected outright."""
    arms = judge.problem.arms
    given = judge.problem.handicap
    if given is not None:
        return given.tolerance.amount if verdict.status is Status.TOLERABLE else 0.0
    worst = judge.tolerance([arms.index(claim.arm) for claim in verdict.claims if not claim.tolerant])
    # the pooled rule needs less than pairs do: what it certified stands; bounds speak of effective gaps (E3)
    by_evidence = verdict.status is Status.TOLERABLE and verdict.rule is not None
    return min(worst, judge.problem.tolerance.amount) if by_evidence else worst
