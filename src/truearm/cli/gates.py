"""Exit codes: what a script learns from a race without reading a word.

0  the best command is certified, separated or good enough, or it is known who beats the control; no gate failed
1  a gate failed: the named command lost, or another one is worse than the baseline
2  wrong usage, or a command failed
3  not decided: indistinguishable, or the budget ended first
4  doubtful: the readings contradict a promise, and nothing is certified; with --strict also after an alarm
"""

from collections.abc import Sequence
from typing import cast

import numpy as np

from truearm.claims.certificate import Status, Tapes
from truearm.claims.certify import judge_of
from truearm.claims.result import Result
from truearm.claims.suites import SuiteResult
from truearm.claims.wording import name_of
from truearm.evidence.shifts import oriented
from truearm.evidence.wins_judge import WinsJudge
from truearm.report.text import standing_of

GOOD, FAILED, USAGE, UNDECIDED, DOUBTFUL = range(5)


def worse_than(result: Result, tapes: Tapes, baseline: str, *, shared: bool = False) -> tuple[str, ...]:
    """Return the arms that are certified to be worse than the baseline.

    Each is judged against it by the strict evidence of the pair, which errs over all arms and at any time with
    probability at most delta; arms that tie with the baseline are not worse (evidence T10b).

    Parameters
    ----------
    shared
        Whether the problem's delta is already that of one comparison, because the race began with this gate.

    Examples
    --------
    >>> from truearm.analysis import analyze
    >>> tapes = {"old": [1.0] * 40, "new": [2.0] * 40}
    >>> result = analyze(tapes, goal="min")
    >>> worse_than(result, tapes, "old"), worse_than(result, tapes, "new")
    (('new',), ())
    """
    arms = result.problem.arms
    if result.status is Status.DOUBTFUL or meaningless(result):
        return ()
    found = judge_of(result.certificate, tapes).worse_than(arms.index(baseline), shared=shared)
    return tuple(arms[i] for i in found)


def given_up(result: Result, tapes: Tapes, baseline: str | None) -> bool:
    """Tell whether a gate in rounds ended because no arm left can be shown to be worse (extensions E6).

    Examples
    --------
    >>> from truearm.study import Study
    >>> given_up(Study(["A", "B"], rounds=True, max_pulls=0).result, {}, "A")
    False
    """
    if baseline is None or result.status is not Status.EXHAUSTED or not result.problem.rounds or not result.total:
        return False
    judge, arms = cast("WinsJudge", judge_of(result.certificate, tapes)), result.problem.arms
    return all(
        judge.given_up(arms.index(baseline), arms.index(arm)) for arm in result.candidates if arm != baseline
    )


def meaningless(result: Result) -> bool:
    """Tell whether a gate's tolerance in percent is of a baseline that is not positive, and so says nothing.

    Examples
    --------
    >>> from truearm.study import Study
    >>> meaningless(Study(["A", "B"], max_pulls=0).result)
    False
    """
    given = result.problem.handicap
    return (
        given is not None
        and given.tolerance.relative
        and any(arm.name == given.arm and arm.observed <= 0 for arm in result.arms)
    )


def hidden(result: Result) -> bool:
    """Tell whether runs time out before they can be worse than a gate's baseline by more than the tolerance.

    Examples
    --------
    >>> from truearm.study import Study
    >>> hidden(Study(["A", "B"], max_pulls=0).result)
    False
    """
    given = result.problem.handicap
    if given is None or given.limit is None:
        return False
    seen = np.array([arm.observed for arm in result.arms if arm.name == given.arm])
    return bool(np.isinf(oriented(seen, result.problem, given.arm)).any())


def exit_code(
    result: Result,
    *,
    unless_best: str | None = None,
    worse: Sequence[str] = (),
    strict: bool = False,
) -> int:
    """Return the exit code of a race.

    Parameters
    ----------
    unless_best
        The command that has to be best.
    worse
        Commands that are worse than the baseline.
    strict
        Let an alarm fail the race.

    Examples
    --------
    >>> from truearm.study import Study
    >>> exit_code(Study(["A", "B"], max_pulls=0).result)
    3
    """
    if result.status is Status.DOUBTFUL or (strict and result.alarms):
        return DOUBTFUL
    if worse or (unless_best is not None and standing_of(result, unless_best) == "excluded"):
        return FAILED
    if meaningless(result) or not result.answered or (unless_best is not None and result.best != unless_best):
        return UNDECIDED
    return GOOD


def suite_code(result: SuiteResult, *, strict: bool = False) -> int:
    """Return the exit code of a suite; with `strict` metrics that could not be compared are no good end either.

    Examples
    --------
    >>> from truearm.claims.suites import Suite, judged
    >>> from truearm.problem import Problem
    >>> suite = Suite(problem=Problem(arms=("A", "B"), rounds=True), reference="A")
    >>> suite_code(judged(suite, {"A": [], "B": []}))
    3
    """
    if result.status == "doubtful" or (strict and result.untold):
        return DOUBTFUL
    if result.failed:
        return FAILED
    return GOOD if result.status == "decided" else UNDECIDED


def about_baseline(result: Result, baseline: str) -> str:
    """Return whether anything is better than what there is, in a sentence.

    Examples
    --------
    >>> from truearm.study import Study
    >>> about_baseline(Study(["A", "B"], max_pulls=0).result, "A")
    'Whether anything is better than A is open.'
    """
    name = name_of(baseline)
    if result.best == baseline:
        much = " by more than the tolerance" if result.status is Status.TOLERABLE else ""
        return f"Nothing is better than {name}{much}."
    if standing_of(result, baseline) != "excluded":
        return f"Whether anything is better than {name} is open."
    if result.best is not None:
        return f"{name_of(result.best)} is better than {name}."
    return f"Something is better than {name}, but which is best is open."
