"""What a policy decides from the readings of a log: the pulls wanted next, or a verdict."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from truearm.claims import alarms
from truearm.claims.certificate import SIDE_BY_SIDE, Alarm, Status, Verdict
from truearm.events import Log
from truearm.evidence.sample import orient
from truearm.evidence.serial import Serial, is_due
from truearm.policies import Policy, Told
from truearm.problem import Problem

# when the order of pulls is checked, a pull still out after this many others is skipped; few executors run more
LATE_PULLS = 64
Order = Callable[[Sequence[int]], Sequence[int]]
"""Returns arms in the order in which to pull them: those of one round, or of a batch."""


class Decision:
    """The state of a policy after some readings; fields are never mutated, so a shallow copy is a snapshot."""

    def __init__(self, problem: Problem, policy: Policy[Any]) -> None:
        k = len(problem.arms)
        self.problem, self.policy = problem, policy
        self.state = policy.start(problem)
        self.verdict: Verdict | None = None
        self.noticed: tuple[Alarm, ...] = ()
        self.overlapping = False  # whether a decision was made while pulls were out
        self._events_seen = 0  # events that an impatient policy has seen
        self._draws_seen = (0,) * k  # draws of each arm that a patient policy has seen
        self._serials = tuple(Serial(i) for i in range(k))
        self._draws_checked = (0,) * k  # draws of each arm whose order was checked
        self._readings_checked = 0  # readings at that check

    def inform(self, log: Log) -> None:
        """Give the policy new readings: all that came in, or exactly its batch if it is patient."""
        while True:
            if not self.policy.patient:
                new, self._events_seen = log.arrivals_since(self._events_seen), log.position
            else:
                batch = self.policy.ask(self.state)
                wanted = {} if isinstance(batch, Verdict) else batch
                counts = [wanted.get(arm, 0) for arm in log.names]
                new = log.whole(self._draws_seen, counts)
                pairs = zip(self._draws_seen, counts, strict=True)
                self._draws_seen = tuple(seen + count * bool(new) for seen, count in pairs)
            if not new:
                return
            readings = {arm: Told(at, orient(values, self.problem, arm)) for arm, (at, values) in new.items()}
            issued = {arm: log.length(i) for i, arm in enumerate(log.names)}
            self.state = self.policy.tell(self.state, readings, issued)
            if isinstance(self.policy.ask(self.state), Verdict) or not self.policy.patient:
                return

    def decide(self, log: Log) -> Mapping[str, int]:
        """Return the pulls that the policy wants now, or end with its verdict."""
        answer = self.policy.ask(self.state)
        if isinstance(answer, Verdict):
            self.end(log, answer)
            return {}
        is_time = not self._is_alike and is_due(self._readings_checked, log.readings)
        if is_time and self._find_dependence(log, LATE_PULLS):
            self.end(log, Verdict(status=Status.EXHAUSTED, candidates=log.names))
            return {}
        if not self.policy.patient:
            return answer
        issued = zip(log.names, self._draws_seen, log.tickets, strict=True)
        return {arm: max(0, seen + answer.get(arm, 0) - len(tickets)) for arm, seen, tickets in issued}

    def interrupt(self, log: Log) -> None:
        """End now with the verdict that the next `ask` would have."""
        self.inform(log)
        answer = self.policy.ask(self.state)
        if not isinstance(answer, Verdict):
            standing = self.policy.standing(self.state)
            answer = standing.so_far or Verdict(status=Status.EXHAUSTED, candidates=standing.alive)
        self.end(log, answer)

    def end(self, log: Log, verdict: Verdict) -> None:
        """End with a verdict, or as doubtful if readings depend on time in ways that the arms do not share."""
        k, rounds = len(log.names), self.problem.rounds
        tapes = [log.tape(i)[0] for i in range(k)]
        # drift that all arms of a round share does not matter
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
        self._readings_checked = log.readings
        seen = enumerate(self._draws_checked)
        checked = tuple(max(first, log.prefix(i), len(log.tickets[i]) - late) for i, first in seen)
        new = [log.tape(i, *ends) for i, ends in enumerate(zip(self._draws_checked, checked, strict=True))]
        pairs = zip(self._serials, new, strict=True)
        self._serials = tuple(serial.extend(values[arrived]) for serial, (values, arrived) in pairs)
        self._draws_checked = checked
        return alarms.dependence(self.problem, self._serials)


class OpenBatch:
    """The pulls wanted from each arm, handed out evenly interleaved, or shuffled by a seed or by `order`.

    In rounds every arm of the batch comes once in each, in its own random order.
    """

    def __init__(self, arms: int, *, rounds: bool, seed: int | None, order: Order | None = None) -> None:
        self.wanted = [0] * arms
        self.order = order
        self._rounds = rounds
        self._rng = None if seed is None else np.random.default_rng(seed)
        self._queue: list[int] = []  # last first; made when first needed
        self._sides = 0  # arms in each round

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "order": None}  # a function may not be picklable

    def __len__(self) -> int:
        return len(self._queue) or sum(self.wanted)

    @property
    def round_left(self) -> list[int]:
        """The arms that are left in a round that has started."""
        due = self._due() if self._rounds else []
        return due if len(due) < self._sides else []

    def _due(self) -> list[int]:
        """Return the arms with the most pulls left; in rounds, those left in this round."""
        most = max(self.wanted)
        return [arm for arm, number in enumerate(self.wanted) if number == most > 0]

    def open(self, wanted: Sequence[int], budget: int) -> None:
        """Start a batch of at most `budget` pulls; in rounds, of whole rounds."""
        total, asked = sum(wanted), [i for i, n in enumerate(wanted) if n]
        self.wanted, self._queue, self._sides = list(wanted), [], len(asked)
        if total > budget and self._rounds:
            self.wanted = [min(n, budget // len(asked)) for n in wanted]
        elif total > budget:
            self.wanted = [n * budget // total for n in wanted]
            for j in range(budget - sum(self.wanted)):
                self.wanted[asked[j % len(asked)]] += 1

    def close(self) -> None:
        """Drop the remaining pulls."""
        self.wanted, self._queue = [0] * len(self.wanted), []

    def add(self, arm: int, count: int = 1) -> None:
        """Add to the wanted pulls of an arm, and reorder the batch."""
        self.wanted[arm] += count
        self._queue = []

    def take(self, n: int | None) -> list[int]:
        """Remove up to n pulls from the batch and return their arms."""
        if n == 0:
            return []
        if not self._queue:
            self._queue = self._arrange()[::-1]
        count = len(self._queue) if n is None else min(n, len(self._queue))
        taken, self._queue = self._queue[: -count - 1 : -1], self._queue[:-count]
        for arm, number in Counter(taken).items():
            self.wanted[arm] -= number
        return taken

    def take_next(self, arms: Sequence[int]) -> list[int]:
        """Take the pulls that a log lists next, up to the first that the batch does not have."""
        self._queue, due = [], set[int]()
        for place, arm in enumerate(arms):
            due = due or {*(self._due() if self._rounds else arms)}
            if arm not in due or not self.wanted[arm]:
                return list(arms[:place])
            self.wanted[arm] -= 1
            if self._rounds:
                due.discard(arm)
        return list(arms)

    def _arrange(self) -> list[int]:
        """Return the pulls of the batch in order."""
        arms = np.repeat(np.arange(len(self.wanted)), self.wanted)
        shuffle: Callable[..., Any] | None = self.order or (None if self._rng is None else self._rng.permutation)
        if shuffle is None:
            phase = np.concatenate([(np.arange(w) + 0.5) / w for w in self.wanted if w])
            return list(arms[np.argsort(phase, kind="stable")].tolist())
        batches = [arms.tolist()]
        if self._rounds:
            rounds = range(max(self.wanted), 0, -1)
            batches = [[arm for arm, number in enumerate(self.wanted) if number >= left] for left in rounds]
        return [int(arm) for some in batches for arm in shuffle(some)]
