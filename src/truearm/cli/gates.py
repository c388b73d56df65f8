"""Exit codes, and the annotation of a GitHub job.

0  decided: certified, separated or good enough, or it is known which commands beat the control; no gate failed
1  a gate failed: the named command lost, or another one is worse than the baseline
2  wrong usage, or a command failed
3  not decided: indistinguishable, a gate that is UNSURE, or the budget ended first
4  doubtful: the readings contradict an assumption; with --strict also after an alarm
"""

from truearm.claims.certificate import Status
from truearm.claims.gates import Gate
from truearm.claims.result import Result
from truearm.claims.suite import SuiteResult
from truearm.errors import printable
from truearm.report.words import standing

GOOD, FAILED, USAGE, UNDECIDED, DOUBTFUL = range(5)
VERDICT_CODES = {"accepted": GOOD, "not better": FAILED, "undecided": UNDECIDED, "doubtful": DOUBTFUL}
_TITLES = {FAILED: "A gate failed", UNDECIDED: "Not decided", DOUBTFUL: "Doubtful"}


def exit_code(
    result: Result, *, unless_best: str | None = None, gate: Gate | None = None, strict: bool = False
) -> int:
    """Return the exit code of a race.

    Parameters
    ----------
    unless_best
        The command that has to be best.
    gate
        The verdict about commands that must not be worse than a baseline.
    strict
        Let an alarm fail the race.
    """
    if result.status is Status.DOUBTFUL or (strict and result.alarms):
        return DOUBTFUL
    passed = result.answered if gate is None else gate.verdict == "PASS"
    failed = gate is not None and gate.verdict == "FAIL"
    if failed or (unless_best is not None and standing(result, unless_best) == "excluded"):
        return FAILED
    return GOOD if passed and unless_best in (None, result.best) else UNDECIDED


def suite_code(result: SuiteResult, *, strict: bool = False) -> int:
    """Return the exit code of a suite; with `strict`, metrics that could not be compared are doubtful too."""
    if result.status == "doubtful" or (strict and result.is_incomplete):
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
