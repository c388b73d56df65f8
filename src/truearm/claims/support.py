"""Is a decision supported? What the readings show of eps, against the contamination that it withstands."""

from dataclasses import replace

import numpy as np

from truearm.claims.certificate import Alarm, Tape, Tapes
from truearm.claims.result import Result
from truearm.evidence.audit import eps_of_change
from truearm.evidence.judge import FALSE_ALARM


def check_support(result: Result, tapes: Tapes) -> Result:
    """Return the result with an alarm if its readings show more contamination than its decision withstands.

    Over all arms, and whenever the study stopped, that is a false alarm with probability at most `FALSE_ALARM`, if
    each arm has one true law and its bad readings follow one as well (extensions E4).
    """
    told = any(alarm.kind == "dependence" for alarm in result.alarms)  # it says the same, and more
    alone = len(result.problem.arms) == 1  # nothing is decided
    if result.best is None or result.certificate.estimated or told or alone:
        return result
    adversary = result.problem.declared.adversary
    withstands = getattr(result.breakdown, adversary.value) or 0.0
    found = []
    for arm in result.problem.arms:
        readings = _numbers(tapes.get(arm, ()))
        n, bound = readings.size, eps_of_change(readings, FALSE_ALARM / len(result.problem.arms), adversary)
        if bound > withstands:
            found.append((bound, Alarm("unsupported", arm, int(bound * n), n, detail=f"{withstands:.6g}")))
    return replace(result, alarms=(max(found, key=lambda one: one[0])[1], *result.alarms)) if found else result


def _numbers(tape: Tape) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if isinstance(tape, np.ndarray):
        return np.asarray(tape, dtype=np.float64)
    return np.array([np.nan if value is None else value for value in tape], dtype=np.float64)
