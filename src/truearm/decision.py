"""What a policy decides from the readings of a log, and whether their order gives reason to doubt it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from truearm.claims import alarms
from truearm.claims.certificate import SIDE_BY_SIDE, Alarm, Status, Verdict
from truearm.events import Log
from truearm.evidence.serial import Serial, is_due
from truearm.evidence.shifts import orient
from truearm.policies import Policy, Told
from truearm.problem import Problem

LATE_PULLS = 64  # an older pull that is still out is skipped when the order of pulls is checked


class Decision:
    """The state of a policy after the readings that it has seen.

    Every field is replaced, never changed, so that a shallow copy keeps an earlier state.
    """

    def __init__(self, problem: Problem, policy: Policy[Any]) -> None:
        k = len(problem.arms)
        self.problem, self.policy = problem, policy
        self.state = policy.start(problem)
        self.verdict: Verdict | None = None
        self.noticed: tuple[Alarm, ...] = ()
        self.overlapping = False  # whether a decision was made while pulls were out
        self._looked = 0  # readings that an impatient policy has seen
        self._fed = (0,) * k  # draws of each arm that a patient policy has seen
        self._serials = tuple(Serial(i) for i in range(k))
        self._checked = (0,) * k  # draws of each arm whose order was checked
        self._watched = 0  # readings there were then

    def inform(self, log: Log) -> None:
        """Give the policy new readings: all that came in, or if it is patient exactly the batch it asked for."""
        while True:
            if not self.policy.patient:
                new, self._looked = log.arrivals_since(self._looked), len(log.arrivals)
            else:
                batch = self.policy.ask(self.state)
                wanted = {} if isinstance(batch, Verdict) else batch
                counts = [wanted.get(arm, 0) for arm in log.names]
                new = log.whole(self._fed, counts)
                self._fed = tuple(fed + count * bool(new) for fed, count in zip(self._fed, counts, strict=True))
            if not new:
                return
            told = {arm: Told(draws, orient(values, self.problem, arm)) for arm, (draws, values) in new.items()}
            issued = {arm: log.length(i) for i, arm in enumerate(log.names)}
            self.state = self.policy.tell(self.state, told, issued)
            if isinstance(self.policy.ask(self.state), Verdict) or not self.policy.patient:
                return

    def decide(self, log: Log) -> Mapping[str, int]:
        """Return the pulls that the policy wants now, or end with its verdict."""
        answer = self.policy.ask(self.state)
        if isinstance(answer, Verdict):
            self.end(log, answer)
            return {}
        is_time = not self._is_alike and is_due(self._watched, len(log.arrivals))
        if is_time and self._find_dependence(log, LATE_PULLS):
            self.end(log, Verdict(status=Status.EXHAUSTED, candidates=log.names))
            return {}
        if not self.policy.patient:
            return answer
        issued = zip(log.names, self._fed, log.tickets, strict=True)
        return {arm: max(0, fed + answer.get(arm, 0) - len(tickets)) for arm, fed, tickets in issued}

    def interrupt(self, log: Log) -> None:
        """End now, with the verdict that an ask at this moment would find."""
        self.inform(log)
        answer = self.policy.ask(self.state)
        if not isinstance(answer, Verdict):
            standing = self.policy.standing(self.state)
            answer = standing.so_far or Verdict(status=Status.EXHAUSTED, candidates=standing.alive)
        self.end(log, answer)

    def end(self, log: Log, verdict: Verdict) -> None:
        """End with a verdict, or in doubt if readings depend on their time and not all arms alike."""
        k, rounds = len(log.names), self.problem.rounds
        tapes = [log.tape(i)[0] for i in range(k)]
        # drift meets all arms of a round alike: only what they do not share is checked
        found = alarms.find_unshared_drift(tapes) if rounds else self._find_dependence(log)
        if found and self._is_alike and not rounds and k > 1:
            self.noticed = tuple(replace(alarm, detail=SIDE_BY_SIDE) for alarm in found)
            found = alarms.find_unshared_drift(tapes)
        if k == 1:  # nothing is compared: the median is reported with a note
            self.noticed, found = found, ()
        self.verdict = Verdict.doubtful(found, log.names) if found else verdict

    @property
    def _is_alike(self) -> bool:
        return getattr(self.policy, "alike", False)  # a user's policy need not have it

    def _find_dependence(self, log: Log, late: int = 0) -> tuple[Alarm, ...]:
        """Return the arms whose readings depend on when they were taken, by the order of pulls (evidence T12)."""
        self._watched = len(log.arrivals)
        seen = enumerate(self._checked)
        checked = tuple(max(first, log.prefix(i), len(log.tickets[i]) - late) for i, first in seen)
        new = [log.tape(i, *ends) for i, ends in enumerate(zip(self._checked, checked, strict=True))]
        pairs = zip(self._serials, new, strict=True)
        self._serials = tuple(serial.extend(values[arrived]) for serial, (values, arrived) in pairs)
        self._checked = checked
        return alarms.dependence(self.problem, self._serials)
