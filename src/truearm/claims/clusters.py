"""The alarm for units that nobody declared: columns beside the readings that say they are not independent.

It rests on chance like those in `alarms`, and is a false alarm, over all columns together, with probability at
most `alarms.FALSE_ALARM` (extensions 2). That an arm is one unit is a plain fact.
"""

from collections.abc import Sequence

from truearm.claims.alarms import FALSE_ALARM, Alarm
from truearm.evidence.units import Suspect

CLUSTERING = "clustering"


def find(suspects: Sequence[Suspect]) -> tuple[Alarm, ...]:
    """Return an alarm for every column whose units are more alike inside than readings of one arm should be.

    Its arm is "": a column speaks of all arms.

    Examples
    --------
    >>> import numpy as np
    >>> pid = np.repeat(np.arange(10), 30)
    >>> for alarm in find([Suspect("pid", pid + np.arange(300) * 0.618 % 1, pid // 5, pid)]):
    ...     print(alarm.kind, "|", alarm.message)
    clustering | Readings with the same 'pid' are more alike than others of their arm, so they are not independent:
    say unit='pid' to count them as one.
    """
    level = FALSE_ALARM / max(1, len(suspects))
    messages = (_message(suspect, level) for suspect in suspects)
    return tuple(Alarm(CLUSTERING, "", message) for message in messages if message)


def _message(suspect: Suspect, level: float) -> str | None:
    column = suspect.column
    if suspect.confounded:
        return (
            f"Each arm has a single {column!r} of its own, so nothing tells a difference of arms from one of "
            f"{column!r}: measure every arm in several."
        )
    if suspect.p_value(level) > level:
        return None
    return (
        f"Readings with the same {column!r} are more alike than others of their arm, so they are not independent: "
        f"say unit={column!r} to count them as one."
    )
