"""What a result assumes, one sentence for each assumption."""

from decimal import ROUND_CEILING, ROUND_FLOOR

from truearm.claims.certificate import DECIDED, Status
from truearm.claims.result import Result
from truearm.problem import Adversary, Contamination
from truearm.report.numbers import amount, count, name_of, number, percent, span
from truearm.report.words import is_handed_on

Sentences = dict[str, object]  # each with what is true if it applies


def assumptions(result: Result) -> tuple[str, ...]:
    """Return the assumptions of a result, one sentence each."""
    by_target = {"wins": _assume_rounds, "mean": _assume_scores}.get(result.problem.target, _assume_draws)
    sentences = {**by_target(result), **_assume_decision(result)}
    return tuple(sentence for sentence, holds in sentences.items() if holds)


def _assume_draws(result: Result) -> Sentences:
    problem, declared = result.problem, result.problem.contamination
    is_ranged = problem.between is not None and declared is not None and problem.target != "share"
    between = "" if problem.between is None else span(problem.between)
    blind = " leaving the range does not depend on the true value, and"
    blind *= declared is not None and declared.adversary is not Adversary.MALICIOUS
    return {
        **_assume_contamination(declared),
        "The n-th pull of an arm is the n-th draw of that arm, whenever it is made: draws of an arm are "
        "independent and come from one distribution.": True,
        "Arms may move together: nothing is assumed about how draws of different arms depend on each "
        "other.": problem.dependent_arms,
        "Draws of different arms are independent of each other.": not problem.dependent_arms,
        "A missing reading counts at its worst: it may be missing because of its value.": True,
        f"True readings are in {between}, so one outside is bad;{blind} such readings are within the declared "
        "contamination.": is_ranged,
        "A time-out is a reading worse than every value; all arms have the same time limit.": True,
    }


def _assume_rounds(result: Result) -> Sentences:
    """Return what a comparison in rounds assumes (extensions E1)."""
    declared = result.problem.contamination
    unbounded = "Bad readings do not change which arm wins more rounds; their share is not bounded."
    return {
        **({unbounded: True} if declared is None else _assume_contamination(declared)),
        "A round measures all arms that are left once each, side by side: its conditions (load, person, item, "
        "day) affect all of them alike.": True,
        "Which of two arms wins more often does not change from round to round; how well they do may.": True,
        "The true readings do not react to earlier readings.": declared and declared.clairvoyant,
        "One of the arms wins at least half of the rounds against every other one.": is_handed_on(result),
        "A round with a missing reading counts against the arm that is to be shown to win.": True,
        "A reading that timed out loses to one that did not; all arms have the same time limit, and a round in "
        "which both time out is won by neither.": True,
    }


def _assume_scores(result: Result) -> Sentences:
    """Return what a comparison of mean scores assumes (extensions B)."""
    eps, items = result.problem.declared.eps, result.problem.items
    wrong = f": at most {percent(eps, ROUND_FLOOR)} of each arm's scores are wrong" if eps else ""
    drawn = "You say that the items were drawn" if result.certificate.is_analysis else "The items were drawn"
    listed = f"{drawn} in random order from a list of {count(items or 0)}"
    draws = "Items are independent draws; which of two arms has the higher mean does not change between them."
    return {
        f"Scores are compared as given{wrong}.": True,
        draws if items is None else f"{listed}; each score was fixed before the order was.": True,
        "A missing score counts at its worst.": True,
    }


_ADVERSARIES = {
    Adversary.MALICIOUS: "Which readings are bad, and their values, may depend on the true readings",
    Adversary.PRESCIENT: "Which readings are bad does not depend on the true readings; their values may",
    Adversary.OBLIVIOUS: "Which readings are bad, and their values, do not depend on the true readings",
}


def _assume_contamination(c: Contamination | None) -> Sentences:
    if c is None:
        return {
            "Bad readings do not reverse the true order: all effective gaps are positive. Their share is not "
            "bounded, and intervals are those of the observed readings.": True,
            "Bad readings do not depend on readings not yet taken (causal).": True,
        }
    if c.blind:
        unknown = "The order of each round was random and unknown before"
        return {f"{unknown}; disturbances and after-effects do not depend on which command runs.": True}
    if c.eps == 0:
        return {"No reading is bad.": True}
    value = "" if c.adversary is Adversary.MALICIOUS else "whatever its true value and "
    future = "may depend on readings not yet taken (clairvoyant)"
    future = future if c.clairvoyant else "do not depend on readings not yet taken (causal)"
    return {
        f"Each reading has at most a {percent(c.eps, ROUND_FLOOR)} chance of being bad, {value}whatever happened "
        "before; bad readings may have any value.": True,
        f"{_ADVERSARIES[c.adversary]} ({c.adversary}).": True,
        f"That bound comes from an audit and is wrong with probability at most {percent(c.error, ROUND_CEILING)}, "
        "which adds to every error probability; the readings to check were drawn at random after they were "
        "recorded, from each arm separately unless bad ones are equally common in all.": c.error,
        f"They {future}.": c.adversary is not Adversary.OBLIVIOUS,
    }


def _assume_decision(result: Result) -> Sentences:
    problem, handicap, r = result.problem, result.problem.handicap, result.problem.regularity
    decided = result.status in DECIDED and len(problem.arms) > 1 and problem.target != "wins"
    error, judged, slope = percent(problem.error, ROUND_CEILING), "", ""
    if handicap is not None:
        late = f", and as a time-out where that is beyond {number(handicap.limit)}" if handicap.limit else ""
        worse = f"worse by {amount(handicap.tolerance)} than it is"
        judged = f"{name_of(handicap.arm)} is judged as if it were {worse}{late}."
    if r is not None:
        slope = (
            f"Within {percent(r.reach)} of the median in quantile levels the distribution function of each arm "
            f"rises with slope at least 1/(B m2), B = {number(r.B)}, m2 = {number(r.m2)}."
        )
    return {
        "The number of readings of each arm was fixed before the first of them.": result.design == "fixed",
        judged: judged,
        slope: slope,
        "For every arm the estimator errs by no more than its bias and its radius.": result.certificate.estimated,
        "That more readings would not help assumes that future readings behave the same, bad ones included, and "
        f"has its own error probability of {error}.": result.status is Status.INDISTINGUISHABLE,
        "The best arm is one that no other arm beats; arms that tie with it, or may, are listed.": decided,
        f"Each of these is wrong with probability at most {error}, each on its own: {_statements(result)}.": True,
    }


_STATEMENTS = {
    "quantile": "the decision, its breakdown points, the margins over the other arms, the certified tolerance, "
    "all intervals of quantiles together, all intervals of MADs together, and the quality curve of the best arm",
    "share": "the decision, its breakdown points, the margins over the other arms, the certified tolerance, and "
    "all intervals of shares together",
    "wins": "the decision with the margins over the other arms, the certified tolerance, and all intervals of how "
    "far apart arms are together",
    "mean": "the decision with the margins over the other arms, its breakdown points, and the certified tolerance",
}


def _statements(result: Result) -> str:
    control = result.control
    parts = {  # with false discoveries the mean share of errors is bounded
        "all arms named better than the control": control is not None and control.method != "fdr",
        "all arms named not better": control is not None,
        "all places and tiers": getattr(result, "tiers", None),
        _STATEMENTS[result.problem.target]: True,
    }
    return ", ".join(part for part, holds in parts.items() if holds)
