"""Sentences about suites, audits, ledgers and plans. Nothing is computed here."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

from truearm.claims.alarms import Audit
from truearm.claims.gates import Account, GateVerdict, LedgerGate
from truearm.claims.suite import Compared, Standing, SuiteResult
from truearm.problem import Tolerance
from truearm.report.numbers import (
    amount,
    count,
    evidence,
    is_or_are,
    name_of,
    names,
    number,
    percent,
    plural,
    quantile_name,
    seconds,
)
from truearm.report.words import assuming, confidence, scope

_SMALL_PILOT = 100  # readings of an arm below which a share near one half has a standard error above 5 %

# Suites

SUITE_ORDER: tuple[Standing, ...] = ("worse", "doubtful", "open", "indistinguishable", "better", "not worse")
"""The most important first."""


def suite_headline(result: SuiteResult) -> str:
    """Return the answer in a few words; of a gate it begins with PASS, FAIL or UNSURE."""
    than = f"worse than in {name_of(result.suite.reference)}{_suite_tolerance(result)}"
    doubtful, worse = result.named("doubtful"), result.named("worse")
    left = len(result.named("open")) + len(result.named("indistinguishable"))
    head = f"No metric is shown to be {than}; {count(left)} open" if left else f"No metric is {than}"
    if not result.compared:
        head = "No metric was compared"
    elif some := doubtful or worse:
        head = f"{count(len(some))} of {_comparisons(result)} {is_or_are(some)} {'doubtful' if doubtful else than}"
    return f"{suite_verdict(result)}: {head[0].lower()}{head[1:]}" if result.suite.gate else head


def suite_verdict(result: SuiteResult) -> str:
    """Return the verdict of a suite that is a gate."""
    if result.status != "doubtful" and result.failed:
        return "FAIL"
    return "PASS" if result.status == "decided" else "UNSURE"


def _comparisons(result: SuiteResult) -> str:
    return plural(len(result.compared), "comparison" if len(result.suite.others) > 1 else "metric")


def _suite_tolerance(result: SuiteResult) -> str:
    tolerance = result.suite.problem.tolerance
    return f" by more than {amount(tolerance)}" * bool(tolerance) + scope(result.conditions)


def suite_summary(result: SuiteResult, arm: str = "arm", elapsed: float | None = None) -> str:
    """Return the result, how sure it is, and the effort, in seconds too if known; `arm` is the word for an arm."""
    verdict = f"{suite_headline(result)}." if result.suite.gate else ""
    parts = (verdict, _suite_answer(result, arm), _suite_support(result, arm), _suite_effort(result, arm, elapsed))
    return "\n".join(filter(None, (*parts, " ".join(_suite_notes(result)))))


def _suite_answer(result: SuiteResult, arm: str) -> str:
    if not result.compared:
        return f"No metric was compared: there was no round in which every {arm} printed one."
    reference, much = name_of(result.suite.reference), _suite_tolerance(result)
    phrases = {
        "worse": f"worse than in {reference}{much}",
        "not worse": f"not worse{f' than in {reference}' * (not result.named('worse'))}{much}",
        "indistinguishable": "too close for more rounds like these to tell",
    }
    counts = []
    for kind in SUITE_ORDER:
        some = sorted(result.named(kind), key=lambda one: -max(one.log_evidence))
        listed = names([f"{metric_name(result, one)} ({metric_apart(one)})" for one in some])
        shown = f": {listed}" * (kind != "not worse")
        counts += [f"{count(len(some))} {is_or_are(some)} {phrases.get(kind, kind)}{shown}"] * bool(some)
    doubtful = (
        f" Nothing is claimed about doubtful metrics: there one {arm} depends on when it was measured, in ways "
        "that the other does not share."
    )
    return f"{_comparisons(result)}: {'; '.join(counts)}.{doubtful * bool(result.named('doubtful'))}"


def metric_apart(one: Compared) -> str:
    """Return how far an arm is from the reference, as observed: a factor, or a signed difference."""
    if math.isnan(one.observed):
        return "no number"
    difference = f"{'+' * (one.observed > 0)}{number(one.observed)}"
    return f"{number(one.observed, 0.01)}x" if one.scale == "ratio" else difference


def metric_name(result: SuiteResult, one: Compared) -> str:
    """Return the name of a metric, with the arm if there are several."""
    return f"{one.metric} of {one.arm}" if len(result.suite.others) > 1 else one.metric


def _suite_support(result: SuiteResult, arm: str) -> str:
    problem = result.suite.problem
    if not any(result.named(kind) for kind in ("worse", "better", "not worse")):
        return ""
    basis = f"for any load that treats the {arm}s alike: runs were side by side in random order"
    if problem.contamination is None:
        basis = f"assuming bad runs do not change which {arm} wins more rounds"
    elif not problem.is_blind:
        basis = f"assuming {assuming(problem.contamination, 'run')}"
    if result.suite.fdr:
        mean = percent(problem.error, ROUND_CEILING)
        return f"On average at most {mean} of the metrics named worse or better are not, {basis}."
    # that more rounds would not decide is a separate statement (extensions D4)
    what = "what is worse, better or not worse" if result.named("indistinguishable") else "all of it"
    what += " for these builds" * ((result.conditions or {}).get("builds") == "one")
    return f"{confidence(problem)} sure of {what}, {basis}."


def _suite_effort(result: SuiteResult, arm: str, elapsed: float | None) -> str:
    arms, conditions = len(result.suite.problem.arms), result.conditions or {}
    builds = f", with a new build of each and {plural(conditions.get('runs_per_build', 1), 'run')} of it"
    first = "the first" if result.uncounted == 1 else f"the first {count(result.uncounted)}"
    spent = f"{plural(result.rounds + result.uncounted, 'round')} of {plural(arms, arm)}"
    spent += builds * bool(scope(conditions))
    spent += "" if elapsed is None else f", {seconds(elapsed)}"
    return f"{spent}{f'; {first} only showed which metrics there are' * bool(result.compared)}."


def _suite_notes(result: SuiteResult) -> Iterator[str]:
    """Return what could not be compared, in sentences."""
    by_arms: dict[tuple[str, ...], list[str]] = {}
    for one in result.only:
        by_arms.setdefault(one.arms, []).append(one.metric)
    for arms, metrics in by_arms.items():
        yield f"Only in {names(arms)}: {names(metrics)}."
    if late := [f"{one.metric} ({names(one.arms)})" for one in result.late]:
        were = "it was" if len(late) == 1 else "they were"
        yield f"Not compared, because {were} not in the first round: {names(late)}."
    relative = result.suite.problem.tolerance.relative
    if below := [metric_name(result, one) for one in result.compared if relative and one.reference_median < 0]:
        yield f"Percentages of negative readings mean nothing; pass a tolerance in their unit for {names(below)}."
    rounds = count(result.rounds)
    if lacking := [(metric_name(result, one), count(one.missing)) for one in result.compared if one.missing]:
        some = names([f"{metric} ({n} of {rounds})" for metric, n in lacking])
        yield f"Missing in some rounds, which count against any claim: {some}."


# Audits and ledgers


def audit(found: Audit) -> str:
    """Return what an audit shows about the share of bad readings."""
    each, bad = " of each arm" * (found.arms > 1), sum(found.bad)
    seen = f"{count(bad)} of {count(sum(found.checked))} checked readings{each * (len(found.checked) == 1)}"
    sure = f"{percent(1 - found.delta, ROUND_FLOOR, 4)} sure"
    bound = f"At most {percent(found.eps, ROUND_CEILING)} of the readings{each} are bad ({sure})"
    then = "From 50% on nothing can be certified: check more readings, or correct their source."
    if found.eps < 0.5:
        wrong = f"wrong with a chance of at most delta + {percent(found.delta, ROUND_CEILING)}"
        then = f"What is certified with this bound is {wrong}."
    return f"{bound}: {seen} {'was' if bad == 1 else 'were'}. {then}"


_VERDICTS: Mapping[GateVerdict, str] = {
    "accepted": "Accepted: {0} is better than {1}",
    "not better": "Not accepted: {0} is certified not to be better than {1}",
    "undecided": "Not accepted: {0} was not shown to be better than {1}",
    "doubtful": "Not accepted: the readings contradict an assumption, so nothing is known about {0} and {1}",
    "open": "Not accepted: the gate of {0} against {1} is open, or its process ended",
}


def ledger_gate(gate: LedgerGate) -> str:
    """Return the verdict of a gate of a ledger, and what it rests on."""
    verdict = _VERDICTS[gate.verdict].format(name_of(gate.name), name_of(gate.base))
    allowed = Tolerance.of(gate.details.get("tolerance") or 0.0)
    much = f" by more than {amount(allowed)}" * (bool(allowed) and gate.verdict != "doubtful")
    found = f"evidence {evidence(gate.log_evidence)} of the {evidence(gate.log_bar)} needed"
    return f"{verdict}{much}. Gate {count(gate.number)}: {found}."


def ledger_headline(account: Account) -> str:
    """Return how many gates there are and how they ended."""
    verdicts = Counter(gate.verdict for gate in account.gates)
    counts = (f"{count(verdicts[verdict])} {verdict}" for verdict in _VERDICTS if verdicts[verdict])
    return f"{plural(len(account.gates), 'gate')}: {', '.join(counts)}" if account.gates else "No gate was opened"


def ledger_guarantee(account: Account) -> str:
    """Return what a ledger bounds."""
    limit = percent(account.delta)
    if account.error_rate == "any":
        return f"The chance that any accepted candidate is not better than its base is at most {limit}."
    return (
        f"Of the accepted candidates, the expected share that is not better than its base is at most {limit}, "
        "whenever the loop stops."
    )


def ledger(account: Account) -> list[str]:
    """Return what a ledger shows, one paragraph each: the gates, what is guaranteed, and what is spent."""
    more = f"{percent(account.spent)} of {percent(account.delta)} is spent"
    following = f"the next gate needs evidence of {evidence(-math.log(account.next_level))}"
    late = len(account.gates) >= account.expected
    planned = f"; {count(account.expected)} gates were expected, so weights shrink from here" if late else ""
    return [
        f"{ledger_headline(account)}.",
        f"{ledger_guarantee(account)} This covers each acceptance here, not what was measured elsewhere, and not "
        "that the last base beats the first.",
        f"{more}; {following}{planned}.",
    ]


# Plans: a `Plan` is defined above this layer


def plan_sentences(plan: Any) -> Iterator[str]:  # noqa: ANN401 - a Plan
    """Yield how many pulls a plan forecasts, and up to which contamination."""
    clean, worst, eps = plan.clean, plan.worst, percent(plan.contamination.eps)
    up_to = [percent(outlook.largest_eps, ROUND_FLOOR) for outlook in (clean, worst)]
    if not clean.decidable:
        at = f" at {eps} contamination" * bool(clean.largest_eps)
        yield f"{plan.arms} arms cannot be told apart{at}, however many pulls are made."
    elif plan.wins is not None:
        total, rounds = (count(math.ceil(x)) for x in (clean.expected, clean.expected / plan.arms))
        basis = "in random order" if plan.contamination.blind else f"at {eps} contamination"
        yield (
            f"About {total} pulls in {rounds} rounds or more tell {plan.arms} arms apart side by side, {basis} "
            f"(an estimate): the best arm wins {percent(min(plan.wins), ROUND_FLOOR, 2)} of the rounds or more."
        )
    else:
        forecasts = (clean.expected, clean.lower_bound, worst.expected, worst.lower_bound)
        pulls = [count(math.ceil(x)) if math.isfinite(x) else "" for x in forecasts]
        also = f"about {pulls[2]}" if worst.decidable else "but none do"
        yield (
            f"About {pulls[0]} pulls tell {plan.arms} arms apart at {eps} contamination if the readings turn out "
            f"clean, {also} if the bad ones do their worst (estimates from simulations)."
        )
        if not plan.tolerance:
            second = f", {pulls[3]} in the second" if worst.decidable else ""
            yield f"No method needs fewer than {pulls[1]} in the first case{second}."
    if clean.largest_eps:
        second = "" if plan.wins is not None else f" if the readings turn out clean, {up_to[1]} if not"
        yield f"They can be told apart up to {up_to[0]} contamination{second}."


def plan_notes(plan: Any) -> Iterator[str]:  # noqa: ANN401 - a Plan
    """Yield what a reader should know besides the numbers of a plan."""
    is_quantile = plan.shares is None and plan.wins is None
    if is_quantile and not plan.tolerance and min(plan.gaps) <= 0:
        yield f"The best arm and another have the same {quantile_name(plan.quantile)}: neither is better."
    if plan.pilot_size is not None and plan.pilot_size < _SMALL_PILOT:
        off = percent(0.5 / math.sqrt(max(1, plan.pilot_size)), digits=2)
        yield (
            f"The pilot is small: an arm has {count(plan.pilot_size)} readings, from which a share near one half "
            f"is known only to about {off}; take this plan as a rough guess."
        )
    if plan.applicable and plan.within is not None:
        yield (
            "The paper's algorithms keep the effective gap within the tolerance, so the arm returned may be "
            f"{number(plan.within)} behind the best: the tolerance and what contamination can shift two "
            f"medians by.{' Algorithm 3 promises nothing here.' * (not any(plan.algorithm3))}"
        )
    elif plan.applicable and not any((*plan.algorithm1, *plan.algorithm3)):
        yield "The paper's Algorithms 1 and 3 cannot decide: an effective gap is not positive for this family."
    if plan.tolerance:
        yield "With a tolerance several answers are right, and no lower bound is claimed."
