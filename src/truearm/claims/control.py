"""Claims against a control: made from a judge, described for a result, recomputed for a certificate.

What the claims are is decided in `evidence.control`; here they get dates and names.
"""

import math
from collections.abc import Sequence
from typing import Literal

from truearm.claims.certificate import Certificate, Claim, ControlClaims, Readings, sample_of
from truearm.claims.result import Control, Variant
from truearm.errors import InvalidArgument, VerificationError
from truearm.evidence import Judge
from truearm.evidence.control import Method, against_control, check_method
from truearm.evidence.points import Breakdown
from truearm.evidence.sample import EMPTY, Sample
from truearm.problem import Problem

_SLACK = 1e-9  # of log-evidence: rounding may differ between machines


def check_control(control: str, arms: Sequence[str], name: str = "control") -> int:
    """Return which arm is the control, or say which arms there are."""
    if control not in arms:
        msg = f"{name} must name an arm, but got {control!r}; the arms are {', '.join(arms)}"
        raise InvalidArgument(msg, name, control)
    if len(arms) == 1:
        msg = f"{name}={control!r} is the only arm; there is nothing to compare it with"
        raise InvalidArgument(msg, name, control)
    return list(arms).index(control)


def check_ordered(problem: Problem, asked: str) -> None:
    """Refuse a target that does not put arms in one order: who wins more rounds may go in a circle."""
    if problem.target == "wins":
        msg = (
            f"{asked} needs arms in one order, which rounds do not give: A may beat B, B beat C, and C beat A; "
            f"remove rounds, or remove {asked}"
        )
        raise InvalidArgument(msg, asked)


def claims_of(judge: Judge, control: str, method: Method) -> ControlClaims:
    """Return which arms beat the control and which do not, by the readings at hand."""
    arms, at = judge.problem.arms, check_control(control, judge.problem.arms)
    found, reference = against_control(judge, at, method), judge.after(leader=at)
    return ControlClaims(
        control,
        method,
        tuple(Claim(control, arms[i], None, 0, found.log_evidence[i]) for i in found.better),
        tuple(Claim(arms[i], control, None, 0, reference.within(i).log_value, True) for i in found.not_better),
    )


def described(judge: Judge, claims: ControlClaims | None) -> Control | None:
    """Return how every arm stands to the control, with what its evidence withstands.

    Parameters
    ----------
    judge
        Of pairs, on all readings at hand.
    """
    if claims is None:
        return None
    arms = judge.problem.arms
    control = arms.index(claims.control)
    better, worse = {claim.leader for claim in claims.better}, {claim.arm for claim in claims.not_better}

    def variant(i: int) -> Variant:
        standing: Literal["better", "not better", "open"] = (
            "better" if arms[i] in better else "not better" if arms[i] in worse else "open"
        )
        if standing != "better":
            points = Breakdown(None, None, None)
        else:
            points = judge.pair_breakdown(i, control)
            if (
                claims.method == "holm"
            ):  # with false discoveries bounded, no claim stands by itself (extensions D1)
                points = points.decided_at(judge.problem.contamination)
        return Variant(arms[i], standing, judge.better(i, control).log_value, points)

    return Control(claims.control, claims.method, tuple(variant(i) for i in range(len(arms)) if i != control))


def check(certificate: Certificate, readings: Readings) -> None:
    """Recompute every claim against a control, as of its date; raise if one fails (extensions D1, D2)."""
    claims, problem = certificate.control, certificate.problem
    if claims is None:
        return
    check_method(problem, claims.method, certificate.design)
    control, bars = check_control(claims.control, problem.arms), Judge.of(problem, (), design=certificate.design)
    _check_form(claims)
    alone, together = bars.log_bar(), math.log(max(1, len(claims.better)))
    for place, claim in enumerate(claims.better):
        judge, arm = _judge(certificate, claim, readings), problem.arms.index(claim.leader)
        step = bars.log_bar(len(problem.arms) - 1 - place)
        needed = step if claims.method == "holm" else alone - together
        _check_enough(judge.better(arm, control).log_value, needed, claim.leader, "beats", claims.control)
    for claim in claims.not_better:
        judge, arm = _judge(certificate, claim, readings), problem.arms.index(claim.arm)
        found = judge.after(leader=control).within(arm).log_value
        _check_enough(found, alone, claim.arm, "does not beat", claims.control)


def _judge(certificate: Certificate, claim: Claim, readings: Readings) -> Judge:
    """Return the judge of pairs as of the date of a claim."""
    problem = certificate.problem
    samples: list[Sample] = [EMPTY] * len(problem.arms)
    for arm in (claim.arm, claim.leader):
        i, tape = problem.arms.index(arm), readings.get(arm, ())
        samples[i] = sample_of(tape, len(tape) if claim.counts is None else claim.counts[i], problem, arm)
    return Judge.of(problem, samples, design=certificate.design)


def _check_form(claims: ControlClaims) -> None:
    """Raise if an arm is claimed twice, or claims that are made together have different dates."""
    better = [claim.leader for claim in claims.better]
    if len({claims.control, *better}) != len(better) + 1:
        msg = f"an arm is claimed twice to beat {claims.control!r}, or is the control itself"
        raise VerificationError(msg)
    if claims.method == "fdr" and len({claim.counts for claim in claims.better}) > 1:
        msg = "claims with a false discovery rate are made together, but these have different dates"
        raise VerificationError(msg)


def _check_enough(found: float, needed: float, arm: str, verb: str, control: str) -> None:
    if found < needed - _SLACK:
        msg = f"the evidence that {arm!r} {verb} {control!r} is {found:.6g}, short of the {needed:.6g} it needs"
        raise VerificationError(msg)
