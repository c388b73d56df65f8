"""Claims against a control: made from a judge, and described for a result.

What the claims are is decided in `evidence.control`; here they get dates and names.
"""

from collections.abc import Sequence
from typing import Literal

from truearm.claims.certificate import Claim, ControlClaims
from truearm.claims.result import Control, Variant
from truearm.errors import InvalidArgument
from truearm.evidence import Breakdown, Judge
from truearm.evidence.control import Method, against_control
from truearm.problem import Problem


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


def describe_control(judge: Judge, claims: ControlClaims | None) -> Control | None:
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
