"""From a verdict and the readings to a result: intervals, margins, breakdown points, alarms, certificate.

Statements stand side by side, each with its own probability delta of being wrong (evidence section 11): the
decision, the margins over the other arms, the certified tolerance, all intervals of quantiles, all intervals of
MADs, and the quality curve of the best arm.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from truearm.claims import alarms
from truearm.claims.certificate import (
    Alarm,
    Certificate,
    Claim,
    ControlClaims,
    Origin,
    Readings,
    Status,
    Tapes,
    Verdict,
    digest,
    sample_of,
    samples_of,
)
from truearm.claims.plain import fields_of
from truearm.claims.result import Arm, Better, Control, Lead, Place, Ratio, Reach, Result, Tiers, Variant
from truearm.evidence import Breakdown, Judge
from truearm.evidence.comparison import Method, check_method, false_discovery, not_better, order, step_down
from truearm.evidence.intervals import eps_of_change
from truearm.evidence.judge import FALSE_ALARM
from truearm.evidence.sample import Sample
from truearm.evidence.shares import deciding_limit, is_binary
from truearm.evidence.wins import apart
from truearm.problem import UNBOUNDED, Adversary, Problem, refuse, require

NOTHING = Breakdown(None, None, None)
_STRICT = (Status.CERTIFIED, Status.SEPARATED)
_MAX_CLAIM_BREAKDOWNS = 100  # arms; tables of more do not show how much contamination each claim withstands


def certify(
    problem: Problem,
    tapes: Readings,
    verdict: Verdict,
    *,
    samples: Sequence[Sample] | None = None,
    mark: str | None = None,
    noticed: tuple[Alarm, ...] = (),
    origin: Origin | None = None,
) -> Result:
    """Return the result of a verdict on these readings.

    Callers may pass the tapes as oriented samples and their digest (`mark`), and alarms that samples do not show.
    """
    pairs = Judge.of(problem, samples_of(problem, tapes) if samples is None else samples, design=verdict.design)
    verdict = _apply_handicap(problem, _check_readings(pairs, verdict))
    mark = digest(problem, tapes) if mark is None else mark
    certificate = Certificate(**fields_of(verdict), problem=problem, digest=mark, origin=origin)
    leader = _leader(pairs, verdict)
    judge = judge_claims(certificate, tapes, pairs.samples, leader=leader or 0)
    doubtful = verdict.status is Status.DOUBTFUL
    known = leader is not None and not doubtful
    compared = known and not verdict.estimated  # evidence says nothing about a user's estimator
    behind = _not_excluded(judge, verdict)
    ties = _ties(judge, verdict, behind)
    measured = as_measured(judge, tapes)
    open_ = ties if verdict.best else behind
    candidates = (*verdict.candidates, *(arm for arm in open_ if arm not in verdict.candidates))
    return Result(
        status=verdict.status,
        best=verdict.best,
        leader=None if leader is None else problem.arms[leader],
        ties=ties,
        may_tie=tuple(arm for arm in behind if arm not in ties) if verdict.best else (),
        candidates=candidates,
        pulls={arm: len(tapes.get(arm, ())) for arm in problem.arms},
        breakdown=_breakdown(judge, verdict) if compared else NOTHING,
        breakdown_estimate=_breakdown_estimate(judge) if compared else NOTHING,
        tolerance=_tolerance(judge, verdict) if compared else math.inf,
        better_by=_leads(judge, verdict) if compared else (),
        arms=tuple(describe(measured, i, known=not doubtful) for i in range(len(problem.arms))),
        quality=tuple(Reach(*point) for point in measured.quality()) if known else (),
        problem=problem,
        design=verdict.design,
        doubts=verdict.doubts,
        control=_describe_control(pairs, verdict.control),
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
    """Iterate over the alarms that are not among the doubts; those about ties name a share that would decide."""
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


def _check_readings(judge: Judge, verdict: Verdict) -> Verdict:
    """Return the verdict, doubtful if the samples contradict an assumption.

    It is certified if a policy without evidence stopped on readings that certify its leader.
    """
    if verdict.status is Status.DOUBTFUL:
        return verdict
    problem, samples = judge.problem, judge.samples
    judge = judge.after(leader=_leader(judge, verdict) or 0)
    if found := alarms.doubts(judge):
        return Verdict.doubtful(found, problem.arms, verdict.design)
    is_final = verdict.estimated or verdict.rule is not None or verdict.status is Status.CERTIFIED
    if is_final or problem.contamination is None or not any(sample.size for sample in samples):
        return verdict
    counts, best = tuple(sample.n for sample in samples), problem.arms[judge.leader]
    against = {arm: judge.against(i).log_value for i, arm in enumerate(problem.arms) if arm != best}
    if min(against.values(), default=math.inf) < judge.log_threshold:
        return verdict
    claims = tuple(Claim(arm, best, counts, 0, value) for arm, value in against.items())
    certified = replace(verdict, status=Status.CERTIFIED, best=best, candidates=(best,))
    return replace(certified, rule=judge.rule, claims=claims)


def _leader(judge: Judge, verdict: Verdict) -> int | None:
    arms = judge.problem.arms
    if verdict.best is not None:
        return arms.index(verdict.best)
    if verdict.estimated:
        return None
    return judge.best_looking([arms.index(arm) for arm in verdict.candidates])


def as_measured(judge: Judge, tapes: Readings) -> Judge:
    """Return the judge of the readings without a handicap."""
    given = judge.problem.handicap
    if given is None:
        return judge
    samples, tape = list(judge.samples), tapes.get(given.arm, ())
    plain = replace(judge.problem, handicap=None)
    samples[judge.problem.arms.index(given.arm)] = sample_of(tape, len(tape), plain, given.arm)
    return judge.after(tuple(samples))


def describe(judge: Judge, i: int, *, known: bool = True) -> Arm:
    """Return what is known about one arm, for all arms at once; only what was observed unless `known`."""
    name, n, true, core = judge.problem.arms[i], judge.samples[i].n, UNBOUNDED, UNBOUNDED
    if n and known:
        true, core = judge.intervals(i, judge.problem.declared)
    return Arm(name, n, judge.estimate(i), *true, *core, *judge.spread(i, known=known))


def judge_claims(certificate: Certificate, tapes: Readings, samples: Sequence[Sample], *, leader: int) -> Judge:
    """Return the judge that rejects the leader's rivals, now and at the dates of their claims."""
    arms, latest = certificate.problem.arms, tuple(sample.n for sample in samples)
    last = Claim("", arms[leader], None, len(certificate.entries))
    now, earlier = certificate.judge(last, tapes, samples), {}
    for claim in certificate.claims if certificate.rule else ():  # not by bounds
        accuser = arms.index(claim.leader)
        if not claim.tolerant and (accuser != leader or claim.counts not in (None, latest)):
            is_last = claim.counts is None
            judge = now.after(leader=accuser) if is_last else certificate.judge(claim, tapes)
            earlier[arms.index(claim.arm)] = judge
    return now.after(earlier=earlier)


def judge_of(certificate: Certificate, tapes: Readings) -> Judge:
    """Return the judge of pairs on all readings."""
    return Judge.of(certificate.problem, samples_of(certificate.problem, tapes), design=certificate.design)


def _ties(judge: Judge, verdict: Verdict, behind: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arms that tie with the best one: behind by order only, with the same estimate (T11).

    Without a best arm, these are the arms with the leader's readings in every round.
    """
    place, leader = judge.problem.arms.index, judge.leader
    if verdict.best is not None and verdict.rule is None:
        return behind if verdict.status is Status.CERTIFIED else ()
    if verdict.best is not None:
        return tuple(arm for arm in behind if judge.looks(place(arm)) == judge.looks(leader))
    if verdict.status is Status.DOUBTFUL:
        return ()
    head, samples = judge.samples[leader], judge.samples
    alike = tuple(arm for arm in verdict.candidates if judge.target.is_same(head, samples[place(arm)]))
    return alike if len(alike) > 1 and judge.problem.arms[leader] in alike else ()


def _not_excluded(judge: Judge, verdict: Verdict) -> tuple[str, ...]:
    """Return the rejected arms that closed evidence does not put behind.

    Those of a best arm may tie with it (T11). If no arm is best, an arm is excluded only by evidence that is
    enough for all arms at once (T10a).
    """
    if verdict.rule is None:
        return tuple(c.arm for c in verdict.claims if c.bounds and c.bounds[0] == c.bounds[1])
    bar = judge.log_strict if verdict.best is None else judge.log_threshold
    rejected = ((i, arm) for i, arm in enumerate(judge.problem.arms) if arm in verdict.rejected)
    return tuple(arm for i, arm in rejected if not judge.is_rejected(i, bar, closed=True))


def _leads(judge: Judge, verdict: Verdict) -> tuple[Lead, ...]:
    """Return how much better the best arm is than each other one, by the evidence that decided (T10a)."""
    if verdict.best is None or verdict.status not in _STRICT or judge.problem.handicap is not None:
        return ()
    others = [i for i, sample in enumerate(judge.samples) if i != judge.leader and sample.size]
    return tuple(Lead(judge.problem.arms[i], *judge.lead(i)) for i in others)


def _breakdown(judge: Judge, verdict: Verdict) -> Breakdown:
    """Return eps* per adversary (evidence T6): by pairs, and at least that of the decision."""
    rivals = [i for i in range(len(judge.samples)) if i != judge.leader]
    closest = sorted(rivals, key=lambda i: -judge.looks(i))  # the closest rival decides: the others are quick
    points = judge.breakdown(closest)
    return points.at_least(judge.problem.contamination) if verdict.status is Status.CERTIFIED else points


def _breakdown_estimate(judge: Judge) -> Breakdown:
    """Return where eps* would end with endless readings like these."""
    rivals = [i for i in range(len(judge.samples)) if i != judge.leader]
    head, estimate = judge.samples[judge.leader], judge.target.breakdown_estimate

    def least(adversary: Adversary) -> float:
        return min((estimate(head, judge.samples[i], adversary) for i in rivals), default=1.0)

    return Breakdown(*map(least, Adversary))


def _tolerance(judge: Judge, verdict: Verdict) -> float:
    """Return alpha* of the leader over all arms (evidence T7): 0 when every rival is rejected outright."""
    given = judge.problem.handicap
    if given is not None:
        decided = 0.0 if verdict.status in _STRICT else math.inf
        return given.tolerance.amount if verdict.status is Status.TOLERABLE else decided
    arms = judge.problem.arms
    worst = judge.tolerance([arms.index(arm) for arm in verdict.rejected if verdict.rule is not None])
    # the pooled rule needs less than pairs do: what it certified stands; bounds use effective gaps (erratum E3)
    by_evidence = verdict.status is Status.TOLERABLE and verdict.rule is not None
    return min(worst, judge.problem.tolerance.amount) if by_evidence else worst


# Other parts of a result


def check_support(result: Result, tapes: Tapes) -> Result:
    """Return the result with an alarm if its readings show more contamination than its decision withstands.

    Over all arms, and whenever the study stopped, that is a false alarm with probability at most `FALSE_ALARM`, if
    each arm has one true law and its bad readings follow one as well (extensions E4).
    """
    is_known = any(alarm.kind == "dependence" for alarm in result.alarms)  # it says the same, and more
    arms, adversary = result.problem.arms, result.problem.declared.adversary
    if result.best is None or result.certificate.estimated or is_known or len(arms) == 1:
        return result
    withstands = getattr(result.breakdown, adversary.value) or 0.0
    readings = {arm: np.array(tapes.get(arm, ()), dtype=np.float64) for arm in arms}  # None becomes NaN
    bounds = {arm: eps_of_change(tape, FALSE_ALARM / len(arms), adversary) for arm, tape in readings.items()}
    worst = max(arms, key=bounds.__getitem__)
    if bounds[worst] <= withstands:
        return result
    n = readings[worst].size
    alarm = Alarm("unsupported", worst, int(bounds[worst] * n), n, detail=f"{withstands:.6g}")
    return replace(result, alarms=(alarm, *result.alarms))


def check_control(control: str, arms: Sequence[str], name: str = "control") -> int:
    """Return the index of the control; raise if it is not an arm, or the only one."""
    is_arm = isinstance(control, str) and control in arms
    require(is_arm, name, control, "name an arm", f"the arms are {', '.join(arms)}")
    msg = f"{name}={control!r} is the only arm; there is nothing to compare it with"
    refuse(len(arms) == 1, msg, name, control)
    return list(arms).index(control)


def check_ordered(problem: Problem, asked: str) -> None:
    """Refuse a target that does not put arms in one order: A may win more rounds than B, B than C, C than A."""
    msg = f"{asked} needs arms in one order, which rounds do not give: A may beat B, B beat C, and C beat A; "
    refuse(problem.target == "wins", f"{msg}remove rounds, or remove {asked}", asked)


def control_claims(judge: Judge, control: str, method: Method) -> ControlClaims:
    """Return which arms beat the control and which do not, by the present readings (extensions D1, D2)."""
    arms, at = judge.problem.arms, check_control(control, judge.problem.arms)
    check_method(judge.problem, method, judge.design)
    if judge.is_hopeless:
        return ControlClaims(control, method)
    found = {i: judge.better(i, at).log_value for i in range(len(arms)) if i != at}
    better = step_down(found, judge.log_bar) if method == "holm" else false_discovery(found, judge.log_bar())
    rest = not_better(judge, at, [i for i in found if i not in better])
    return ControlClaims(
        control,
        method,
        tuple(Claim(control, arms[i], None, 0, found[i]) for i in better),
        tuple(Claim(arms[i], control, None, 0, value, True) for i, value in rest.items()),
    )


def _describe_control(judge: Judge, claims: ControlClaims | None) -> Control | None:
    """Return how every arm stands to the control, with what its evidence withstands."""
    if claims is None:
        return None
    arms, declared = judge.problem.arms, judge.problem.contamination
    control = arms.index(claims.control)
    better, worse = {claim.leader for claim in claims.better}, {claim.arm for claim in claims.not_better}

    def variant(i: int) -> Variant:
        standing: Literal["better", "not better", "open"] = (
            "better" if arms[i] in better else "not better" if arms[i] in worse else "open"
        )
        points = judge.pair_breakdown(i, control) if standing == "better" else NOTHING
        if standing == "better" and claims.method == "holm":  # with fdr no claim stands alone (extensions D1)
            points = points.at_least(declared)
        return Variant(arms[i], standing, judge.better(i, control).log_value, points)

    return Control(claims.control, claims.method, tuple(variant(i) for i in range(len(arms)) if i != control))


def tiers_of(judge: Judge, ranking: Sequence[int]) -> Tiers:
    """Return the tiers of a judge's arms (extensions D3); `ranking` has all arms as they look, the best first."""
    arms, found = judge.problem.arms, order(judge, tuple(ranking))
    k, places = len(arms), found.places

    def better(i: int, j: int) -> Better:
        # k(k-1)/delta for all pairs: extensions D3
        points = judge.pair_breakdown(i, j, 1 / k) if k <= _MAX_CLAIM_BREAKDOWNS else None
        return Better(arms[i], arms[j], judge.better(i, j).log_value, points)

    return Tiers(
        tiers=tuple(tuple(arms[i] for i in tier) for tier in found.tiers),
        places=tuple(Place(arms[i], *places[i]) for i in found.listed),
        nearest=tuple(better(i, j) for i, j in found.nearest),
        claimed=int(found.better.sum()),
        pairs=k * (k - 1) // 2,
        skipped=found.skipped,
    )


def ratios(result: Result, reference: str | None = None) -> tuple[Ratio, ...]:
    """Return the ratios of all other arms to the reference, or to the leader if none is named.

    Only positive readings have ratios. In rounds the whole table errs with probability at most delta (extensions
    E1); its readings are needed. For quantiles a ratio uses the ends of both intervals, which hold together with
    probability 1 - delta; relative to the best arm, the near end is the margin (`Result.better_by`) if that is
    sharper: a second statement, with an error probability delta.
    """
    name = reference or result.leader
    if result.problem.target == "wins":
        return () if result.readings is None or name is None else tuple(_ratios_in_rounds(result, name))
    base = next((arm for arm in result.arms if arm.name == name), None)
    if base is None or not 0 < base.observed < math.inf or base.low > base.high:
        return ()
    leads = result.better_by if result.best == base.name else ()  # a difference is no factor
    certain = {lead.than: lead.at_least for lead in leads if lead.scale == "ratio"}

    def ratio(arm: Arm) -> Ratio:
        low = max(arm.low, 0.0) / base.high if 0 < base.high < math.inf else 0.0
        high, factor = arm.high / base.low if base.low > 0 else math.inf, certain.get(arm.name) or 0.0
        if factor >= 1:
            low, high = (max(low, factor), high) if result.problem.goal == "min" else (low, min(high, 1 / factor))
        return Ratio(arm.name, base.name, arm.observed / base.observed, low, high)

    others = (arm for arm in result.arms if arm.name != base.name)
    return tuple(ratio(arm) for arm in others if arm.observed > 0 and arm.low <= arm.high)


def _ratios_in_rounds(result: Result, reference: str) -> Iterator[Ratio]:
    """Iterate over the ratios in the middle round, with limits that hold together with probability 1 - delta.

    Limits relative to the best arm use the level of the decision, those relative to another arm that of all pairs
    (extensions E1).
    """
    judge = as_measured(judge_of(result.certificate, result.readings), result.readings)
    arms = result.problem.arms
    base = arms.index(reference)
    share = math.exp(-judge.log_threshold) if reference == result.best else None
    for i, arm in enumerate(arms):
        ahead = apart(judge, *((base, i) if result.problem.goal == "min" else (i, base)), error=share)
        if i != base and ahead.scale == "ratio":
            yield Ratio(arm, reference, *ahead[1:])
