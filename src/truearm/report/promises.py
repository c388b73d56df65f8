"""What a result rests on, and what in the readings contradicts it, in words: assumptions, doubts and alarms.

Nothing is computed.
"""

from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR

from truearm.claims.certificate import DECIDED, SIDE_BY_SIDE, Alarm, Status
from truearm.claims.result import Result
from truearm.evidence.judge import UNDECLARED
from truearm.problem import Adversary, Problem
from truearm.report.wording import amount, count, name_of, number, percent, span, target_name

_ALONE = (
    "At another time the true value may lie outside of this interval; to compare it with another arm, measure "
    "both side by side."
)


_REMEDIES = {
    False: "Measure the arms side by side (`truearm race`, or rounds=True), keep conditions "
    "the same, or give one reading per independent unit.",
    True: "All arms were measured side by side, so what conditions do to all of them does little harm; still, "
    "keep them the same.",
}


def alarm(one: Alarm, problem: Problem) -> str:
    """Return what in the readings does not fit the promises, and what to do about it."""
    arm, name = name_of(one.arm), target_name(problem)
    some = f"{count(one.found)} of {count(one.n)} readings of {arm} ({percent(one.found / max(1, one.n))})"
    declared = _declaration(problem)
    said = {
        "dependence": "How far arms are apart depends on when they were measured: what one of them does by itself "
        "lasts for several rounds. Leave more time between rounds, or start every arm anew in each."
        if problem.rounds
        else f"{f'The readings of {arm} depend' if one.arm else 'Readings depend'} on when they were "
        "taken: conditions drift, come and go, or readings repeat. "
        + (_REMEDIES[one.detail == SIDE_BY_SIDE] if len(problem.arms) > 1 else _ALONE),
        "missing": f"{some} are missing, more than chance explains when {declared}: "
        "they count at their worst, so find out why they fail.",
        "outside": f"{some} are outside the plausible range{_range(problem)}"
        f", more than chance explains when {declared}: find out why, name a wider range "
        f"(between), or raise eps.",
        "contradiction": f"No true {name} of {arm} fits its readings when {declared}, because {count(one.found)} "
        f"of {count(one.n)} are "
        + (
            "missing: find out why they fail, or raise eps."
            if problem.between is None
            else f"missing or outside the plausible range{_range(problem)}: widen it (between), or raise eps."
        ),
        "outliers": f"{some} lie more than ten robust standard deviations from its median, and {declared}: look "
        "at them, and raise eps unless they are true readings with very heavy tails.",
        "units": f"{count(one.found)} readings of {arm} ({percent(one.found / max(1, one.n))}) lie near "
        f"{one.detail} its median and hardly any beside them: if this is a mistake of units, correct it at the "
        "source; nothing was changed here.",
        "clusters": f"Rows with the same {name_of(one.detail)!r} are alike, so they are not independent readings: "
        f"name that column as the unit (unit={one.detail!r}) and they count as one.",
        "confounded": f"Each arm has a single {name_of(one.detail)!r} of its own, so nothing tells a difference "
        f"of arms from one of {name_of(one.detail)!r}: measure every arm in several.",
        "unsupported": f"The readings of {arm} changed while they were taken: {count(one.found)} or more of "
        f"{count(one.n)} are bad, or it did not stay what it was; but the decision holds only for a share of up "
        f"to {one.detail} bad readings, so it is not supported. Find out what changed.",
        "ties": f"{some} equal its {name}{''.join(f' {number(x)}' for x in one.values)}: arms that share this "
        f"value cannot be told apart{_by_share(one.detail)}.",
    }
    return said[one.kind]


def _range(problem: Problem) -> str:
    return "" if problem.between is None else f" {span(problem.between)}"


def _by_share(decides: str) -> str:
    """Return what to do about a tie: compare shares if that decides, else measure more finely."""
    if not decides:
        return ", so record more digits if the instrument has them"
    if decides == "binary":
        return " by it: the readings are 0 or 1, so compare the share of ones with at_least=1"
    name, _, limit = decides.partition("=")
    said = f"{name}={limit}"
    return f" by it, but the share of readings {name.replace('_', ' ')} {limit} decides: {said}"


def _declaration(problem: Problem) -> str:
    if problem.contamination is None:
        return f"no share of bad readings is declared (judged by {percent(UNDECLARED.eps)})"
    if problem.contamination.eps == 0:
        return "no reading is bad"
    share = percent(problem.contamination.eps)
    if problem.contamination.adversary is Adversary.MALICIOUS:
        return f"at most {share} of the readings are bad"
    return f"each reading is bad with a chance of at most {share}"


def assumptions(result: Result) -> tuple[str, ...]:
    """Return the promises a result rests on, one sentence each."""
    problem = result.problem
    if problem.target == "wins":
        return (*_on_rounds(result), *_on_status(result), _on_delta(result))
    return (
        *_on_contamination(problem),
        "The n-th pull of an arm is the n-th draw of that arm, whenever it is made: draws of an arm are "
        "independent and follow one law.",
        _on_dependence(problem),
        _ON_MISSING,
        *_on_range(problem),
        "A time-out is a reading worse than every value; all arms have the same time limit.",
        *_on_sizes(result),
        *_on_status(result),
        _on_delta(result),
    )


def handed_on(result: Result) -> bool:
    """Tell whether an arm was rejected by another one than the best, which then says nothing by itself (E1)."""
    return any(claim.leader != result.best and not claim.tolerant for claim in result.certificate.claims)


def _on_rounds(result: Result) -> Iterable[str]:
    """Return what a comparison in rounds rests on (extensions E1)."""
    problem = result.problem
    if problem.contamination is None:
        yield "Bad readings do not reverse who wins more rounds; their share is not bounded."
    else:
        yield from _on_contamination(problem)
    yield (
        "A round measures all arms that are left once each, side by side: what it does to one of them (load, "
        "person, item, day) it does to all alike."
    )
    yield "Which of two arms wins more often does not change from round to round; how well they do may."
    if problem.contamination is not None and problem.contamination.clairvoyant:
        yield "What arms would truly read does not react to what was read before."
    if handed_on(result):
        yield "One of the arms wins at least half of the rounds against each other one."
    yield "A round with a missing reading counts against whichever arm is to be shown to win."
    yield (
        "A reading that timed out loses to one that did not; all arms have the same time limit, and a round in "
        "which both time out is won by neither."
    )
    yield from _on_sizes(result)


def _on_contamination(problem: Problem) -> Iterable[str]:
    c = problem.contamination
    if c is None:
        yield (
            "Bad readings do not reverse the true order: all effective gaps are positive. Their share is not "
            "bounded, and intervals are those of the observed readings."
        )
        yield "Whoever makes bad readings does not see readings not yet taken (causal)."
        return
    if c.eps == 0:
        yield "No reading is bad."
        return
    most = f"Each reading is bad with a chance of at most {percent(c.eps, ROUND_FLOOR)}"
    if c.adversary is Adversary.MALICIOUS:
        yield f"{most}, whatever happened before; bad readings may be anything."
        yield "Which readings are bad, and what they say, may depend on the true readings (malicious)."
    else:
        yield f"{most}, whatever its true value and whatever happened before; bad readings may be anything."
        yield (
            "Which readings are bad, and what they say, does not depend on the true readings (oblivious)."
            if c.adversary is Adversary.OBLIVIOUS
            else "Which readings are bad does not depend on the true readings; what they say may (prescient)."
        )
    if c.error:
        yield (
            "That bound comes from an audit and is wrong with probability at most "
            f"{percent(c.error, ROUND_CEILING)}, which adds to every error probability; readings to check were "
            "drawn at random after they were recorded, from each arm by itself unless bad ones are equally common "
            "in all."
        )
    if c.adversary is not Adversary.OBLIVIOUS:
        yield (
            "They may depend on readings not yet taken (clairvoyant)."
            if c.clairvoyant
            else "They do not depend on readings not yet taken (causal)."
        )


def _on_dependence(problem: Problem) -> str:
    if problem.dependent_arms:
        return "Arms may move together: nothing is assumed about how draws of different arms depend on each other."
    return "Draws of different arms are independent of each other."


_ON_MISSING = "A missing reading counts at its worst: it may be missing because of what it would have said."


def _on_range(problem: Problem) -> Iterable[str]:
    if problem.between is None or problem.contamination is None or problem.target == "share":
        return  # of shares every reading counts as what it says
    where = f"True readings lie in {span(problem.between)}, so that one outside is bad"
    if problem.contamination.adversary is Adversary.MALICIOUS:
        yield f"{where}; such readings are within the declared contamination."
    else:
        yield (
            f"{where}; that it left the range has nothing to do with its true value, and such readings are within "
            "the declared contamination."
        )


def _on_sizes(result: Result) -> Iterable[str]:
    if result.design == "fixed":
        yield "The number of readings of each arm was fixed before the first of them."


def _on_status(result: Result) -> Iterable[str]:
    problem = result.problem
    if problem.handicap is not None:
        given = problem.handicap
        late = "" if given.limit is None else f", and as a time-out where that is beyond {number(given.limit)}"
        yield f"{name_of(given.arm)} is judged as if it were worse by {amount(given.tolerance)} than it is{late}."
    if problem.regularity is not None:
        r = problem.regularity
        yield (
            f"Within {percent(r.reach)} of the median in quantile levels the distribution function of each "
            f"arm rises with slope at least 1/(B m2), B = {number(r.B)}, m2 = {number(r.m2)}."
        )
    if result.certificate.estimated:
        yield "For every arm the estimator errs by no more than its bias and its radius."
    if result.status is Status.INDISTINGUISHABLE:
        yield (
            "That more readings would not help assumes that future readings behave the same, bad ones included, "
            f"and has its own error probability of {percent(problem.error, ROUND_CEILING)}."
        )
    if result.status in DECIDED and len(problem.arms) > 1 and problem.target != "wins":
        yield "The best arm is one that no other arm beats; arms that tie with it, or may, are listed."


def _on_delta(result: Result) -> str:
    problem, asked = result.problem, result.control
    parts = []
    if asked is not None and asked.method != "fdr":  # there the mean share of errors is bounded
        parts.append("all arms said to beat the control")
    if asked is not None:
        parts.append("all arms said not to")
    if result.certificate.places:
        parts.append("all places and tiers")
    error = percent(problem.error, ROUND_CEILING)
    return (
        f"Each of these is wrong with probability at most {error}, each on its own: "
        f"{', '.join([*parts, _STATEMENTS[problem.target]])}."
    )


_STATEMENTS = {
    "quantile": "the decision, its breakdown points, the margins over the other arms, the certified tolerance, "
    "all intervals of quantiles together, all intervals of MADs together, and the quality curve of the best arm",
    "share": "the decision, its breakdown points, the margins over the other arms, the certified tolerance, and "
    "all intervals of shares together",
    "wins": "the decision with the margins over the other arms, the certified tolerance, and all intervals of how "
    "far arms are apart together",
}
