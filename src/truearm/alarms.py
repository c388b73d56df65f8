"""Signs in the readings that the promises do not hold."""

from typing import NamedTuple

from truearm.certificate import Tapes
from truearm.problem import Problem


class Alarm(NamedTuple):
    """Something in the readings that does not fit the promises.

    Examples
    --------
    >>> Alarm("ties", "A", "half of the readings of A are 3").kind
    'ties'
    """

    kind: str
    arm: str
    message: str


def find(problem: Problem, tapes: Tapes) -> tuple[Alarm, ...]:
    """Return the alarms."""
    return ()
