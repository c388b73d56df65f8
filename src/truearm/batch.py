"""The open batch of a study: the pulls that its policy asked for and that are not handed out yet, in order."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Order = Callable[[Sequence[int]], Sequence[int]]
"""Returns arms in the order in which to pull them: those of one round, or of a batch."""


class OpenBatch:
    """Pulls wanted of each arm, handed out evenly interleaved, or shuffled.

    Parameters
    ----------
    rounds
        Whether each round has every arm of the batch once, in its own random order.
    seed
        Shuffle with this seed; None interleaves pulls evenly.
    order
        Shuffle with this instead.
    """

    def __init__(self, arms: int, *, rounds: bool, seed: int | None, order: Order | None = None) -> None:
        self.wanted = [0] * arms
        self.order = order
        self._rounds = rounds
        self._rng = None if seed is None else np.random.default_rng(seed)
        self._queue: list[int] = []  # last first; made when first needed
        self._sides = 0  # arms in each round
        self._recorded: Mapping[int, int] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "order": None}  # a function need not survive a copy

    def __len__(self) -> int:
        return len(self._queue) or sum(self.wanted)

    @property
    def round_left(self) -> list[int]:
        """The arms of a round that has started that are left, last first."""
        return (
            self._queue[len(self._queue) - len(self._queue) % self._sides :]
            if self._rounds and self._sides
            else []
        )

    def open(self, wanted: Sequence[int], budget: int) -> None:
        """Start a batch, cut to a number of pulls in all; in rounds, to whole rounds."""
        total, asked = sum(wanted), [i for i, n in enumerate(wanted) if n]
        self.wanted, self._queue = list(wanted), []
        if total > budget and self._rounds:
            self.wanted = [min(n, budget // len(asked)) for n in wanted]
        elif total > budget:
            self.wanted = [n * budget // total for n in wanted]
            for j in range(budget - sum(self.wanted)):
                self.wanted[asked[j % len(asked)]] += 1

    def close(self) -> None:
        """Drop what is left."""
        self.wanted, self._queue = [0] * len(self.wanted), []

    def add(self, arm: int, count: int = 1) -> None:
        """Want more pulls of an arm, or fewer, and put the batch in order again."""
        self.wanted[arm] += count
        self._queue = []

    def record(self, pulls: Mapping[int, int]) -> None:
        """Take the arms of these tickets in their order: a log has them."""
        self._recorded = pulls

    def take(self, n: int | None, ticket: int) -> list[int]:
        """Return the arms of up to n pulls, which leave the batch; the first will have this ticket."""
        if n == 0:
            return []
        if not self._queue:
            self._queue = [int(arm) for arm in self._arrange(ticket)][::-1]
        count = len(self._queue) if n is None else min(n, len(self._queue))
        taken = [self._queue.pop() for _ in range(count)]
        for arm in taken:
            self.wanted[arm] -= 1
        return taken

    def _arrange(self, ticket: int) -> Sequence[int]:
        """Return the pulls of the batch in order."""
        sides = np.flatnonzero(self.wanted).tolist()
        arms = np.repeat(np.arange(len(self.wanted)), self.wanted)
        self._sides = len(sides)
        if self.order is None and self._rng is None and not self._recorded:
            phase = np.concatenate([(np.arange(w) + 0.5) / w for w in self.wanted if w])
            return list(arms[np.argsort(phase, kind="stable")])
        if not self._rounds:
            return self._shuffle(arms.tolist(), ticket)
        found: list[int] = []
        for _ in range(max(self.wanted)):
            found += self._shuffle(sides, ticket + len(found))
        return found

    def _shuffle(self, arms: list[int], ticket: int) -> Sequence[int]:
        """Return arms in the order that is recorded from a ticket on, and the rest shuffled."""
        left, head = Counter(arms), list[int]()
        while (arm := self._recorded.get(ticket + len(head), -1)) >= 0 and left[arm]:
            left[arm] -= 1
            head.append(arm)
        rest = list(left.elements()) if head else arms
        if self.order is not None:
            return [*head, *self.order(rest)]
        return [*head, *(rest if self._rng is None else self._rng.permutation(rest))]
