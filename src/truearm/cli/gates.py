"""Exit codes: what a script learns from a race without reading a word.

0  the best command is certified, separated or good enough, or it is known who beats the control; no gate failed
1  a gate failed: the named command lost, or another one is worse than the baseline
2  wrong usage, or a command failed
3  not decided: indistinguishable, or the budget ended first
4  doubtful: the readings contradict a promise, and nothing is certified; with --strict also after an alarm
"""

from collections.abc import Sequence

from truearm.claims.certificate import Status
from truearm.claims.gates import meaningless
from truearm.claims.result import Result
from truearm.claims.suites import SuiteResult
from truearm.report.words import standing

GOOD, FAILED, USAGE, UNDECIDED, DOUBTFUL = range(5)


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
    """
    if result.status is Status.DOUBTFUL or (strict and result.alarms):
        return DOUBTFUL
    if worse or (unless_best is not None and standing(result, unless_best) == "excluded"):
        return FAILED
    if meaningless(result) or not result.answered or (unless_best is not None and result.best != unless_best):
        return UNDECIDED
    return GOOD


def suite_code(result: SuiteResult, *, strict: bool = False) -> int:
    """Return the exit code of a suite; with `strict` metrics that could not be compared are no good end either."""
    if result.status == "doubtful" or (strict and result.untold):
        return DOUBTFUL
    if result.failed:
        return FAILED
    return GOOD if result.status == "decided" else UNDECIDED
