"""Exit codes: what a script learns from a race without reading a word.

0  the best command is certified, separated or good enough, and no gate failed
1  a gate failed: the named command lost, or another one is worse than the baseline
2  wrong usage, or a command failed
3  not decided: indistinguishable, or the budget ended first
4  with --strict: the readings contradict the assumptions
"""

import math
from collections.abc import Sequence

from truearm.claims.certificate import Status, Tapes, sample_of
from truearm.claims.result import Result
from truearm.claims.wording import name_of
from truearm.evidence import Levels, pair, pair_rule, threshold
from truearm.report.text import standing_of

GOOD, FAILED, USAGE, UNDECIDED, ALARMED = range(5)
_DECIDED = (Status.CERTIFIED, Status.TOLERABLE, Status.SEPARATED)


def worse_than(result: Result, tapes: Tapes, baseline: str) -> tuple[str, ...]:
    """Return the arms that are certified to be worse than the baseline.

    If the baseline is certified to be best, all others are. Otherwise each is judged against it by the evidence
    of the pair (evidence T3), which errs over all arms and at any time with probability at most delta.

    Examples
    --------
    >>> from truearm.study import Study
    >>> study = Study(["old", "new"], goal="min")
    >>> while counts := study.ask_counts():
    ...     study.tell_arrays({arm: [1.0 if arm == "old" else 2.0] * n for arm, n in counts.items()})
    >>> worse_than(study.result, study.readings, "old"), worse_than(study.result, study.readings, "new")
    (('new',), ())
    """
    problem = result.problem
    others = tuple(arm for arm in problem.arms if arm != baseline)
    if result.best == baseline and result.status in (Status.CERTIFIED, Status.SEPARATED):
        return others
    samples = {arm: sample_of(tapes[arm], len(tapes[arm]), problem.sign) for arm in problem.arms}
    levels = Levels.of(problem.level, problem.contamination)
    rule = pair_rule(problem.contamination, dependent_arms=problem.dependent_arms)
    bar = math.log(threshold(len(problem.arms), problem.delta, rule))
    if min(levels) <= 0 or not all(sample.n for sample in samples.values()):
        return ()
    return tuple(
        arm for arm in others if pair(samples[baseline], samples[arm], levels, closed=True).log_value >= bar
    )


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
    if strict and result.alarms:
        return ALARMED
    if worse or (unless_best is not None and standing_of(result, unless_best) == "excluded"):
        return FAILED
    if result.status not in _DECIDED or (unless_best is not None and result.best != unless_best):
        return UNDECIDED
    return GOOD


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
