"""Words for suites: how all metrics stand, how sure that is, and which could not be compared.

A friend of `wording`, from which the parts of sentences come. Nothing is computed here.
"""

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR

from truearm.claims.suites import Compared, Seen, Standing, SuiteResult
from truearm.report.wording import amount, bad, count, name_of, names, number, percent

ORDER: tuple[Standing, ...] = ("worse", "doubtful", "open", "indistinguishable", "better", "not worse")
"""What a person wants to see first."""


def headline(result: SuiteResult) -> str:
    """Return what was found in a few words."""
    reference = name_of(result.suite.reference)
    if not result.compared:
        return "No metric was compared"
    if worse := result.named("worse"):
        return f"{_of(result, worse)} worse than {_those(worse)} of {reference}{_much(result)}"
    if doubtful := result.named("doubtful"):
        return f"{_of(result, doubtful)} doubtful"
    left = [*result.named("open"), *result.named("indistinguishable")]
    if left:
        return f"No metric is shown to be worse than that of {reference}{_much(result)}; {count(len(left))} open"
    return f"No metric is worse than that of {reference}{_much(result)}"


def _of(result: SuiteResult, some: Sequence[Compared]) -> str:
    return f"{count(len(some))} of {_all(result)} {_are(some)}"


def _all(result: SuiteResult) -> str:
    n = len(result.compared)
    return f"{count(n)} {'comparison' if len(result.suite.others) > 1 else 'metric'}{'s' * (n > 1)}"


def _are(some: Sequence[Compared]) -> str:
    return "is" if len(some) == 1 else "are"


def _those(some: Sequence[Compared]) -> str:
    return "that" if len(some) == 1 else "those"


def _much(result: SuiteResult) -> str:
    tolerance = result.suite.problem.tolerance
    return f" by more than {amount(tolerance)}" if tolerance else ""


def paragraph(result: SuiteResult, arm: str = "arm") -> str:
    """Return what was found, how sure that is, and what it took.

    Parameters
    ----------
    arm
        What people call an arm.
    """
    return " ".join(filter(None, (*_found(result, arm), _sure(result), _effort(result, arm), *about(result))))


def _found(result: SuiteResult, arm: str) -> Iterator[str]:
    if not result.compared:
        yield f"No metric was compared: there was no round in which every {arm} has some."
        return
    yield f"Of {_all(result)} {'; '.join(_counted(result))}."
    if result.named("doubtful"):
        yield (
            f"Nothing is claimed of what is doubtful: there one {arm} depends on when it was measured, in ways "
            "that the other does not share."
        )


def _counted(result: SuiteResult) -> Iterator[str]:
    reference, much = name_of(result.suite.reference), _much(result)
    worse = result.named("worse")
    said = {
        "worse": f"worse than {_those(worse)} of {reference}{much}",
        "not worse": f"not worse{'' if worse else f' than that of {reference}'}{much}",
        "indistinguishable": "not to be told by more rounds like these",
    }
    for standing in ORDER:
        if some := result.named(standing):
            listed = "" if standing == "not worse" else f": {_listed(result, some)}"
            yield f"{count(len(some))} {_are(some)} {said.get(standing, standing)}{listed}"


def _listed(result: SuiteResult, some: Sequence[Compared]) -> str:
    """Return metrics with how much they are apart, the farthest first."""
    first = sorted(some, key=lambda one: -max(one.log_evidence))
    return names([f"{_named(result, one)} ({_apart(one)})" for one in first])


def _apart(one: Compared) -> str:
    if math.isnan(one.observed):
        return "no number"
    if one.scale == "ratio":
        return f"{number(one.observed, 0.01)}x"
    return f"{'+' * (one.observed > 0)}{number(one.observed)}"


def _named(result: SuiteResult, one: Compared) -> str:
    return f"{one.metric} of {one.arm}" if len(result.suite.others) > 1 else one.metric


def _sure(result: SuiteResult) -> str:
    problem = result.suite.problem
    if not any(result.named(standing) for standing in ("worse", "better", "not worse")):
        return ""
    promise = (
        "as long as bad runs do not reverse who wins more rounds"
        if problem.contamination is None
        else bad(problem.contamination, "run")
    )
    if result.suite.fdr:
        mean = percent(problem.error, ROUND_CEILING)
        return f"On average over suites at most {mean} of the metrics named worse or better are not, {promise}."
    # that more rounds would not tell is a statement of its own (extensions D4)
    it = "what is worse, better or not worse" if result.named("indistinguishable") else "all of it"
    return f"{percent(1 - problem.error, ROUND_FLOOR, 4)} sure of {it}, {promise}."


def _effort(result: SuiteResult, arm: str) -> str:
    rounds, arms = result.rounds + result.uncounted, len(result.suite.problem.arms)
    spent = f"{count(rounds)} round{'s' * (rounds != 1)} of {count(arms)} {arm}s"
    if not result.compared:
        return f"{spent}."
    first = "the first" if result.uncounted == 1 else f"the first {count(result.uncounted)}"
    return f"{spent}; {first} only told which metrics there are."


def about(result: SuiteResult) -> Iterator[str]:
    """Return what could not be compared, in sentences."""
    by_arms: dict[tuple[str, ...], list[str]] = {}
    for one in result.only:
        by_arms.setdefault(one.arms, []).append(one.metric)
    for arms, metrics in by_arms.items():
        yield f"Only in {names(arms)}: {names(metrics)}."
    if result.late:
        it = "it was" if len(result.late) == 1 else "they were"
        yield f"Not compared, because {it} not in the first round: {names([_seen(one) for one in result.late])}."
    relative = result.suite.problem.tolerance.relative
    if below := [_named(result, one) for one in result.compared if relative and one.reference_median < 0]:
        yield f"Percent of negative readings say nothing; give a tolerance in their unit for {names(below)}."
    if lacking := [one for one in result.compared if one.missing]:
        told = [f"{_named(result, one)} ({count(one.missing)} of {count(result.rounds)})" for one in lacking]
        yield f"Missing in some rounds, which count against any claim: {names(told)}."


def _seen(one: Seen) -> str:
    return f"{one.metric} ({names(one.arms)})"
