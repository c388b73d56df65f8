"""Exit codes, and the annotation of a GitHub job.

0  decided: certified, separated or good enough, or it is known which commands beat the control; no gate failed
1  a gate failed: the named command lost, or another one is worse than the baseline
2  wrong usage, or a command failed
3  not decided: indistinguishable, or the budget ended first
4  doubtful: the readings contradict an assumption; with --strict also after an alarm
"""

from collections.abc import Sequence

from truearm.claims.certificate import Status
from truearm.claims.gates import is_meaningless
from truearm.claims.result import Result
from truearm.claims.suites import SuiteResult
from truearm.errors import printable
from truearm.report.words import standing

GOOD, FAILED, USAGE, UNDECIDED, DOUBTFUL = range(5)
_TITLES = {FAILED: "A gate failed", UNDECIDED: "Not decided", DOUBTFUL: "Doubtful"}


def exit_code(
    result: Result, *, unless_best: str | None = None, worse: Sequence[str] = (), strict: bool = False
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
    if is_meaningless(result) or not result.answered or (unless_best is not None and result.best != unless_best):
        return UNDECIDED
    return GOOD


def suite_code(result: SuiteResult, *, strict: bool = False) -> int:
    """Return the exit code of a suite; with `strict`, metrics that could not be compared are doubtful too."""
    if result.status == "doubtful" or (strict and result.untold):
        return DOUBTFUL
    if result.failed:
        return FAILED
    return GOOD if result.status == "decided" else UNDECIDED


def annotation(code: int, message: str, *, notice: bool) -> str:
    """Return the workflow command that annotates a GitHub job; "" if all is good.

    Parameters
    ----------
    notice
        Whether an undecided gate is worth a notice only.
    """
    if code == GOOD:
        return ""
    level = "error" if code == FAILED else "notice" if notice else "warning"
    coded = printable(message, lines=True).replace("%", "%25").replace("\n", "%0A")
    return f"::{level} title={_TITLES[code]}::{coded}"
