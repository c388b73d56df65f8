"""What a study found, in the user's units: the verdict with intervals, breakdown points and a certificate.

Four statements stand side by side, each with its own probability delta of being wrong (evidence section 11):
the decision, all intervals of quantiles, all intervals of MADs, and the quality curve of the best arm.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from truearm import bounds
from truearm.claims import alarms, wording
from truearm.claims.alarms import Alarm
from truearm.claims.certificate import (
    Bound,
    Certificate,
    Claim,
    Entered,
    Exclusion,
    Status,
    Tapes,
    Verdict,
    digest,
    sample_of,
)
from truearm.evidence import (
    Breakdown,
    Entry,
    Levels,
    Rule,
    against,
    best_looking,
    breakdown_estimate,
    breakdown_point,
    certified_tolerance,
    fixed_against,
    fixed_pair,
    pair,
    pair_rule,
    shifted,
    threshold,
)
from truearm.evidence.sample import Design, Sample, deviation, quality_of, spread
from truearm.problem import Adversary, Contamination, Interval, Problem, Regularity, Tolerance

SCHEMA = 1  # of the dictionaries below; raised when a key changes its meaning


class Arm(NamedTuple):
    """What is known of one arm.

    Examples
    --------
    >>> Arm("A", 10, 1.0, 0.5, 1.5, 0.9, 1.1, 0.2, 0.1, 0.4).median
    1.0
    """

    name: str
    n: int
    median: float
    """The observed quantile: the median unless the study asks for another."""
    low: float
    high: float
    """Contain the true quantile, for all arms at once."""
    contamination_low: float
    contamination_high: float
    """What contamination alone would leave of that interval: an estimate."""
    mad: float
    mad_low: float
    mad_high: float
    """Contain the true median absolute deviation, for all arms at once."""


class Quality(NamedTuple):
    """At least `share` of the true readings of the best arm are as good as x, for all points at once.

    Examples
    --------
    >>> Quality(12.5, 0.9).share
    0.9
    """

    x: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a study found: who is best, how sure that is, and up to which contamination it holds.

    `str(result)` is a paragraph for a person; `to_dict()` goes to JSON and comes back by `Result.from_dict`.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(arms=("A", "B"))
    >>> tapes = {"A": np.arange(50.0), "B": np.arange(50.0)}
    >>> verdict = Verdict(status=Status.EXHAUSTED, candidates=("A", "B"))
    >>> result = certify(problem, tapes, verdict)
    >>> result.status.value, result.best, result.candidates, result.total
    ('exhausted', None, ('A', 'B'), 100)
    >>> Result.from_dict(result.to_dict()) == result
    True
    """

    status: Status
    best: str | None
    leader: str | None
    """The arm that looks best, also when that is not certain."""
    candidates: tuple[str, ...]
    pulls: Mapping[str, int]
    breakdown: Breakdown
    """Largest contamination at which the leader is certified to be best, by the readings at hand (T6)."""
    breakdown_estimate: Breakdown
    """Where that would end with endless readings like these: an estimate, not certified."""
    tolerance: float
    """How far the leader may be from the best, certified; relative if the problem's tolerance is."""
    arms: tuple[Arm, ...]
    quality: tuple[Quality, ...]
    problem: Problem
    design: Design
    alarms: tuple[Alarm, ...]
    assumptions: tuple[str, ...]
    certificate: Certificate

    def __str__(self) -> str:
        return wording.summary(self)

    def _repr_html_(self) -> str:
        return wording.html(self)

    @property
    def total(self) -> int:
        """Pulls of all arms together."""
        return sum(self.pulls.values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; infinities and NaN become None."""
        problem = problem_to_dict(self.problem)
        return {
            "schema": SCHEMA,
            "status": self.status.value,
            "best": self.best,
            "leader": self.leader,
            "candidates": list(self.candidates),
            "pulls": {"total": self.total, "arms": dict(self.pulls)},
            "breakdown": self.breakdown._asdict(),
            "breakdown_estimate": self.breakdown_estimate._asdict(),
            "certified_tolerance": _finite(self.tolerance),
            "arms": [{key: _finite(value) for key, value in arm._asdict().items()} for arm in self.arms],
            "quality": [[_finite(point.x), point.share] for point in self.quality],
            **{key: problem[key] for key in ("delta", "contamination", "tolerance", "quantile", "goal")},
            "design": self.design,
            "alarms": [alarm._asdict() for alarm in self.alarms],
            "assumptions": list(self.assumptions),
            "certificate": certificate_to_dict(self.certificate),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Result":
        """Return the result that `to_dict` described."""
        certificate = certificate_from_dict(data["certificate"])
        return cls(
            status=Status(data["status"]),
            best=data["best"],
            leader=data["leader"],
            candidates=tuple(data["candidates"]),
            pulls=dict(data["pulls"]["arms"]),
            breakdown=Breakdown(**data["breakdown"]),
            breakdown_estimate=Breakdown(**data["breakdown_estimate"]),
            tolerance=_number(data["certified_tolerance"], math.inf),
            arms=tuple(_arm_from_dict(arm) for arm in data["arms"]),
            quality=tuple(Quality(_number(x, -math.inf), share) for x, share in data["quality"]),
            problem=certificate.problem,
            design=data["design"],
            alarms=tuple(Alarm(**alarm) for alarm in data["alarms"]),
            assumptions=tuple(data["assumptions"]),
            certificate=certificate,
        )


def _finite(value: Any) -> Any:  # noqa: ANN401 - names pass through
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _arm_from_dict(data: Mapping[str, Any]) -> Arm:
    otherwise = {"low": -math.inf, "high": math.inf}
    numbers = {key: _number(data[key], otherwise.get(key.rsplit("_", 1)[-1], math.nan)) for key in Arm._fields[2:]}
    return Arm(name=data["name"], n=data["n"], **numbers)


def problem_to_dict(problem: Problem) -> dict[str, Any]:
    """Return a problem as plain values.

    Examples
    --------
    >>> problem_to_dict(Problem(arms=("A",)))["contamination"]
    {'eps': 0.05, 'adversary': 'oblivious', 'causal': None}
    """
    c, regularity = problem.contamination, problem.regularity
    return {
        "arms": list(problem.arms),
        "delta": problem.delta,
        "contamination": c and {"eps": c.eps, "adversary": c.adversary.value, "causal": c.causal},
        "tolerance": {"amount": problem.tolerance.amount, "relative": problem.tolerance.relative},
        "quantile": problem.quantile,
        "goal": problem.goal,
        "regularity": regularity and {"B": regularity.B, "m2": regularity.m2, "reach": regularity.reach},
        "dependent_arms": problem.dependent_arms,
    }


def problem_from_dict(data: Mapping[str, Any]) -> Problem:
    """Return the problem that `problem_to_dict` described.

    Examples
    --------
    >>> problem_from_dict(problem_to_dict(Problem(arms=("A",)))) == Problem(arms=("A",))
    True
    """
    return Problem(
        arms=tuple(data["arms"]),
        delta=data["delta"],
        contamination=data["contamination"] and Contamination(**data["contamination"]),
        tolerance=Tolerance(**data["tolerance"]),
        quantile=data["quantile"],
        goal=data["goal"],
        regularity=data["regularity"] and Regularity(**data["regularity"]),
        dependent_arms=data["dependent_arms"],
    )


def certificate_to_dict(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as plain values.

    Examples
    --------
    >>> plain = Certificate(problem=Problem(arms=("A",)), rule=None, best="A", digest="")
    >>> certificate_from_dict(certificate_to_dict(plain)) == plain
    True
    """
    return {
        "problem": problem_to_dict(certificate.problem),
        "rule": certificate.rule,
        "log_threshold": certificate.log_threshold,
        "best": certificate.best,
        "entries": [entry._asdict() for entry in certificate.entries],
        "claims": [{**claim._asdict(), "counts": list(claim.counts)} for claim in certificate.claims],
        "exclusions": [
            {"arm": e.arm, "upper": _bound_to_dict(e.upper), "lower": _bound_to_dict(e.lower)}
            for e in certificate.exclusions
        ],
        "digest": certificate.digest,
        "design": certificate.design,
    }


def _bound_to_dict(bound: Bound) -> dict[str, Any]:
    """Return a bound as plain values; its infinities become strings, because they decide and JSON has none."""
    return {
        key: repr(value) if isinstance(value, float) and math.isinf(value) else value
        for key, value in bound._asdict().items()
    }


def _bound_from_dict(data: Mapping[str, Any]) -> Bound:
    return Bound(**{**data, "value": float(data["value"]), "radius": float(data["radius"])})


def certificate_from_dict(data: Mapping[str, Any]) -> Certificate:
    """Return the certificate that `certificate_to_dict` described, ready to verify readings.

    Examples
    --------
    >>> plain = Certificate(problem=Problem(arms=("A",)), rule="pooled", best="A", digest="")
    >>> certificate_from_dict(certificate_to_dict(plain)).rule
    'pooled'
    """
    return Certificate(
        problem=problem_from_dict(data["problem"]),
        rule=data["rule"],
        best=data["best"],
        entries=tuple(Entered(**entry) for entry in data["entries"]),
        claims=tuple(Claim(**{**claim, "counts": tuple(claim["counts"])}) for claim in data["claims"]),
        exclusions=tuple(
            Exclusion(e["arm"], _bound_from_dict(e["upper"]), _bound_from_dict(e["lower"]))
            for e in data["exclusions"]
        ),
        digest=data["digest"],
        design=data.get("design", "sequential"),
    )


def certify(
    problem: Problem,
    tapes: Tapes,
    verdict: Verdict,
    *,
    design: Design = "sequential",
    samples: Sequence[Sample] | None = None,
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

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(arms=("A", "B"), contamination=0.1)
    >>> tapes = {"A": np.arange(50.0, 150.0), "B": np.arange(0.0, 100.0)}
    >>> verdict = Verdict(status=Status.CERTIFIED, best="A", candidates=("A",))
    >>> result = certify(problem, tapes, verdict)
    >>> round(result.breakdown.oblivious, 3), result.arms[0].median
    (0.295, 99.0)
    """
    counts = {arm: len(tapes.get(arm, ())) for arm in problem.arms}
    if samples is None:
        samples = [sample_of(tapes.get(arm, ()), counts[arm], problem.sign) for arm in problem.arms]
    verdict = _strengthened(problem, samples, verdict)
    certificate = Certificate(
        problem=problem,
        rule=verdict.rule,
        best=verdict.best,
        entries=verdict.entries,
        claims=verdict.claims,
        exclusions=verdict.exclusions,
        digest=digest(problem, tapes),
        design=design,
    )
    leader = _leader(problem, samples, verdict)
    certified, estimate = _breakdowns(problem, samples, tapes, certificate, leader=leader)
    return Result(
        status=verdict.status,
        best=verdict.best,
        leader=None if leader is None else problem.arms[leader],
        candidates=verdict.candidates,
        pulls=counts,
        breakdown=certified,
        breakdown_estimate=estimate,
        tolerance=_tolerance(problem, samples, verdict, leader=leader, design=design),
        arms=tuple(
            describe(name, sample, problem, design=design)
            for name, sample in zip(problem.arms, samples, strict=True)
        ),
        quality=() if leader is None else _quality(samples[leader], problem, design),
        problem=problem,
        design=design,
        alarms=alarms.find(problem, tapes, samples),
        assumptions=wording.assumptions(problem, verdict, design),
        certificate=certificate,
    )


def _strengthened(problem: Problem, samples: Sequence[Sample], verdict: Verdict) -> Verdict:
    """Return a certified verdict where a policy that weighs no evidence stopped on readings that certify it."""
    leader = _leader(problem, samples, verdict)
    weighed = verdict.rule is not None or verdict.status is Status.CERTIFIED or problem.contamination is None
    if weighed or leader is None:
        return verdict
    rule = pair_rule(problem.contamination, dependent_arms=problem.dependent_arms)
    levels, counts = Levels.of(problem.level, problem.contamination), tuple(sample.n for sample in samples)
    best, claims = problem.arms[leader], []
    for i, arm in enumerate(problem.arms):
        if i != leader:
            found = against(i, samples, rule, leader=leader, entries=(), levels=levels)
            if found.log_value < math.log(threshold(len(samples), problem.delta, rule)):
                return verdict
            claims.append(Claim(arm, best, counts, 0, found.log_value))
    return Verdict(
        status=Status.CERTIFIED,
        best=best,
        candidates=(best,),
        rule=rule,
        claims=tuple(claims),
        exclusions=verdict.exclusions,
    )


def _leader(problem: Problem, samples: Sequence[Sample], verdict: Verdict) -> int | None:
    if verdict.best is not None:
        return problem.arms.index(verdict.best)
    return best_looking(samples, [problem.arms.index(arm) for arm in verdict.candidates], problem.level)


def describe(name: str, sample: Sample, problem: Problem, *, design: Design) -> Arm:
    """Return what is known of one arm, at a level that holds for all arms at once.

    Examples
    --------
    >>> describe("A", Sample.of(range(100)), Problem(arms=("A", "B")), design="fixed").low
    35.0
    """
    c = problem.contamination or Contamination(0.0)
    ranks = bounds.quantile_ranks if design == "fixed" else bounds.sequential_quantile_ranks
    n, share = sample.n, problem.delta / len(problem.arms)
    if not n:
        return Arm(name, 0, math.nan, -math.inf, math.inf, -math.inf, math.inf, math.nan, 0.0, math.inf)
    quantile, core = identified(sample, problem, c, design=design)
    mad = spread(sample, ranks(n, 0.5, share / 2, c.eps, c.adversary))
    estimate = problem.sign * sample.quantile(problem.level)
    return Arm(name, n, estimate, *quantile, *core, deviation(sample.values), *mad)


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
    return interval if sign > 0 else Interval(-interval.high, -interval.low)


def _quality(sample: Sample, problem: Problem, design: Design) -> tuple[Quality, ...]:
    """Return the quality curve at the shares 1 % to 99 %, valid after selection among arms (audit 2.E)."""
    share = problem.delta / len(problem.arms)
    curve = quality_of(sample, share, contamination=problem.contamination, design=design)
    points = (Quality(problem.sign * curve.reached(percent / 100), percent / 100) for percent in range(1, 100))
    return tuple(point for point in points if math.isfinite(point.x))


def _breakdowns(
    problem: Problem,
    samples: Sequence[Sample],
    tapes: Tapes,
    certificate: Certificate,
    *,
    leader: int | None,
) -> tuple[Breakdown, Breakdown]:
    """Return eps* per adversary, certified and estimated."""
    if leader is None:
        return Breakdown(None, None, None), Breakdown(None, None, None)
    rivals = [i for i in range(len(samples)) if i != leader]
    estimates = {
        adversary: min(
            (breakdown_estimate(samples[leader], samples[i], problem.level, adversary) for i in rivals),
            default=1.0,
        )
        for adversary in Adversary
    }
    closest = sorted(rivals, key=lambda i: -samples[i].quantile(problem.level))  # decides it: the others are quick
    found = rejections(certificate, tapes, samples, leader=leader, exact=False)

    def point(adversary: Adversary) -> float | None:
        return breakdown_point(
            [found[adversary].evidence[problem.arms[i]] for i in closest],
            found[adversary].log_threshold,
            quantile=problem.level,
            adversary=adversary,
            accuracy=1e-7,
        )

    estimate = Breakdown(*map(estimates.get, Adversary))
    oblivious, prescient = point(Adversary.OBLIVIOUS), point(Adversary.PRESCIENT)
    if prescient is not None and problem.level == 0.5:
        return Breakdown(oblivious, prescient, prescient / 2), estimate  # T6: (1-e)/2 = 1/2 - e/2, one threshold
    return Breakdown(oblivious, prescient, point(Adversary.MALICIOUS)), estimate


class Rejections(NamedTuple):
    """What rejects the rivals of a leader under one adversary, whatever the contamination.

    Examples
    --------
    >>> Rejections(3.0, {"B": lambda levels: 10 * levels.low}).evidence["B"](Levels(0.5, 0.5))
    5.0
    """

    log_threshold: float
    evidence: Mapping[str, Callable[[Levels], float]]
    """Per rival its log-evidence as a function of the levels; it falls as the contamination grows."""


def rejections(
    certificate: Certificate, tapes: Tapes, samples: Sequence[Sample], *, leader: int, exact: bool = True
) -> dict[Adversary, Rejections]:
    """Return per adversary what rejects the rivals of the leader.

    A rival counts as rejected at eps if it is so by all readings, or was so when the study rejected it: the
    best arm is ever rejected at the one true eps with probability at most delta (T6).

    Parameters
    ----------
    samples
        The tapes as oriented samples.
    exact
        False if the values are only compared with the threshold: they are then found sooner, and only on which
        side of it they lie is right.

    Examples
    --------
    >>> import numpy as np
    >>> tapes = {"A": np.arange(50.0, 150.0), "B": np.arange(0.0, 100.0)}
    >>> verdict = Verdict(status=Status.EXHAUSTED, candidates=("A", "B"))
    >>> certificate = certify(Problem(arms=("A", "B")), tapes, verdict).certificate
    >>> samples = [Sample.of(tape) for tape in tapes.values()]
    >>> found = rejections(certificate, tapes, samples, leader=0)[Adversary.OBLIVIOUS]
    >>> found.evidence["B"](Levels(0.5, 0.5)) > found.log_threshold
    True
    """
    problem, design = certificate.problem, certificate.design
    latest = (problem.arms[leader], tuple(s.n for s in samples))
    earlier = {
        claim.arm: certificate.evidence(claim, tapes)
        for claim in certificate.claims
        if not claim.tolerant and (claim.leader, claim.counts) != latest  # those `_rejection` finds itself
    }
    entries = [
        Entry(problem.arms.index(e.arm), sample_of(tapes[e.arm], e.since, problem.sign))
        for e in certificate.entries
    ]

    def under(adversary: Adversary) -> Rejections:
        rule = _rule_for(adversary, problem, certificate, design)
        dated = earlier if rule == certificate.rule else {}
        log_threshold = math.log(threshold(len(samples), problem.delta, rule))
        evidence = {
            name: _rejection(
                i,
                samples,
                rule,
                leader=leader,
                entries=entries,
                design=design,
                earlier=dated.get(name),
                enough=None if exact else log_threshold,
            )
            for i, name in enumerate(problem.arms)
            if i != leader
        }
        return Rejections(log_threshold, evidence)

    return {adversary: under(adversary) for adversary in Adversary}


def _rule_for(adversary: Adversary, problem: Problem, certificate: Certificate, design: Design) -> Rule:
    if design == "fixed":
        return "causal"  # evidence section 11: valid for clairvoyant adversaries too
    declared = problem.contamination
    causal = declared.causal if declared is not None and adversary is not Adversary.OBLIVIOUS else None
    rule = pair_rule(Contamination(0.0, adversary, causal), dependent_arms=problem.dependent_arms)
    return "pooled" if rule == "causal" and certificate.entries else rule


def _rejection(
    judged: int,
    samples: Sequence[Sample],
    rule: Rule,
    *,
    leader: int,
    entries: Sequence[Entry],
    design: Design,
    earlier: Callable[[Levels | None], float] | None,
    enough: float | None,
) -> Callable[[Levels], float]:
    """Return the evidence against an arm as a function of the levels, now or when it was rejected."""

    def now(levels: Levels) -> float:
        if design == "fixed":
            return fixed_against(judged, samples, leader=leader, levels=levels, enough=enough).log_value
        return against(
            judged, samples, rule, leader=leader, entries=entries, levels=levels, enough=enough
        ).log_value

    return now if earlier is None else lambda levels: max(now(levels), earlier(levels))


def _tolerance(
    problem: Problem, samples: Sequence[Sample], verdict: Verdict, *, leader: int | None, design: Design
) -> float:
    """Return alpha* of the leader over all arms (evidence T7): 0 when every rival is rejected outright."""
    if leader is None:
        return math.inf
    outright = {claim.arm for claim in verdict.claims if not claim.tolerant}
    rule = (
        "causal" if design == "fixed" else pair_rule(problem.contamination, dependent_arms=problem.dependent_arms)
    )
    log_threshold = math.log(threshold(len(samples), problem.delta, rule))
    levels = Levels.of(problem.level, problem.contamination)
    measure = fixed_pair if design == "fixed" else pair
    worst = 0.0
    for i in sorted(range(len(samples)), key=lambda i: -samples[i].quantile(problem.level)):  # the widest first
        if i == leader or problem.arms[i] in outright:
            continue
        within = shifted(samples[i], Tolerance(worst, relative=problem.tolerance.relative), problem.sign)
        if (
            math.isfinite(worst)
            and measure(samples[leader], within, levels, enough=log_threshold).log_value >= log_threshold
        ):
            continue
        worst = certified_tolerance(
            samples[leader],
            samples[i],
            log_threshold,
            levels=levels,
            relative=problem.tolerance.relative,
            sign=problem.sign,
            evidence=measure,
        )
        if worst == math.inf:
            break
    # the pooled rule needs less than pairs do: what it certified stands; bounds speak of effective gaps (E3)
    by_evidence = verdict.status is Status.TOLERABLE and verdict.rule is not None
    return min(worst, problem.tolerance.amount) if by_evidence else worst
