"""Words for what is asked besides the best arm: who beats a control, and which tiers there are.

A friend of `wording`, from which the parts of sentences come. Nothing is computed here.
"""

from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR

from truearm.claims.audit import Audit
from truearm.claims.result import Control, Result
from truearm.claims.tiers import Tiers
from truearm.problem import Interval
from truearm.report.wording import PLAIN, Voice, amount, bad, count, name_of, names, percent, span

_NAMED = 8  # tiers and arms told one by one in a sentence; more are counted


def control(result: Result, voice: Voice = PLAIN) -> list[str]:
    """Return which arms beat the control, how sure that is, and what is open; nothing if that was not asked."""
    asked = result.control
    if asked is None:
        return []
    reference, better = name_of(asked.arm), asked.named("better")
    said = voice.better or "better"
    told = [
        f"{names(better)} {_are(better)} {said} than {reference}."
        if better
        else f"No {voice.arm} is shown to be {said} than {reference}.",
        *(_sure(result, asked, voice) if better else ()),
    ]
    if beaten := asked.named("not better"):
        much = (
            f" by more than {voice.measured(amount(result.problem.tolerance))}" if result.problem.tolerance else ""
        )
        told.append(f"{names(beaten)} {_are(beaten)} not {said}{much} ({_share(result)} sure, by itself).")
    if left := asked.named("open"):
        told.append(f"Whether {names(left, 'or')} {_are(left[:1])} {said} than {reference} is open.")
    return told


def _are(arms: tuple[str, ...]) -> str:
    return "is" if len(arms) == 1 else "are"


def _share(result: Result) -> str:
    return percent(1 - result.problem.error, ROUND_FLOOR, 4)


def _sure(result: Result, asked: Control, voice: Voice) -> Iterator[str]:
    promise = (
        "as long as bad readings do not reverse the true order and whoever makes them does not see the future"
        if result.problem.contamination is None
        else bad(result.problem.contamination, voice.reading)
    )
    all_of_it = " of all of it" if len(asked.named("better")) > 1 else ""
    if asked.method == "fdr":
        mean, said = percent(result.problem.error, ROUND_CEILING), voice.better or "better"
        yield f"On average over studies at most {mean} of the {voice.arm}s named {said} are not, {promise}."
    else:
        yield f"{_share(result)} sure{all_of_it}, {promise}."
    declared = result.problem.declared
    points = [
        getattr(variant.breakdown, declared.adversary.value)
        for variant in asked.variants
        if variant.standing == "better"
    ]
    least = None if None in points else min(points)
    if least is not None and least >= declared.eps:  # the step-down rule may need less at eps than this does
        what = f"{voice.reading}s"
        yield f"These {what} support it for up to {percent(min(least, 0.5), ROUND_FLOOR)} bad {what}."


def tiers(found: Tiers | None, error: float) -> list[str]:
    """Return the tiers and how much of the order of all arms is certain; nothing if that was not asked."""
    if found is None:
        return []
    named = [names(tier) for tier in found.tiers]
    shown = named if len(named) <= _NAMED else [*named[: _NAMED - 1], f"{count(len(named) - _NAMED + 1)} more"]
    certain = f"{count(found.claimed)} of {count(found.pairs)} pairs of arms are in certain order"
    sure = f"{percent(1 - error, ROUND_FLOOR, 4)} sure of all of it"
    head = (
        f"{count(len(named))} tiers: {'; then '.join(shown)}. Each arm of a tier is better than each of every "
        f"later one; {certain} ({sure})."
        if len(named) > 1
        else f"One tier: no group of arms is certainly better than all others; {certain} ({sure})."
    )
    skipped = (
        [f"{count(found.skipped)} close pairs were not looked at by themselves and count as open."]
        if found.skipped
        else []
    )
    return [head, *skipped]


def outside(found: Mapping[str, int], between: Interval | None) -> list[str]:
    """Return how many readings lie outside the plausible range, and of whom."""
    total = sum(found.values())
    if between is None or not total:
        return []
    where = [f"{name_of(arm)} {count(n)}" for arm, n in found.items() if n]
    more = [f"{count(len(where) - _NAMED)} other arms"] if len(where) > _NAMED else []
    some = f"{count(total)} reading{'s' * (total > 1)} outside {span(between)}"
    fate = "count as bad ones" if total > 1 else "counts as a bad one"
    return [f"{some} {fate} ({', '.join([*where[:_NAMED], *more])})."]


def audited(found: Audit) -> str:
    """Return what an audit says of the share of bad readings."""
    each = " of each arm" * (found.arms > 1)
    seen = f"{count(sum(found.bad))} of {count(sum(found.checked))} checked readings"
    seen += each * (len(found.checked) == 1)
    were = "was" if sum(found.bad) == 1 else "were"
    bound = (
        f"At most {percent(found.eps, ROUND_CEILING)} of the readings{each} are bad "
        f"({percent(1 - found.delta, ROUND_FLOOR, 4)} sure): {seen} {were}."
    )
    if found.eps >= 0.5:
        return f"{bound} From 50% on nothing can be certified: check more readings, or correct their source."
    wrong = f"wrong with a chance of at most delta + {percent(found.delta, ROUND_CEILING)}"
    return f"{bound} What is certified with this bound is {wrong}."
