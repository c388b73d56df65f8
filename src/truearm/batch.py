"""The open batch of a study: the pulls that its policy asked for and that are not handed out yet, in order."""

from collections import Counter
from collections.abc import Callable, Sequence
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
        self._next: list[int] = []  # arms of the next pulls, if a log has them

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

    def follow(self, arms: Sequence[int]) -> None:
        """Take the next pulls in this order, which a log has; in a batch that has them, that is any order."""
        self._next = list(arms)[::-1]

    def take(self, n: int | None) -> list[int]:
        """Return the arms of up to n pulls, which leave the batch."""
        if n == 0:
            return []
        if not self._queue:
            self._queue = self._arrange()[::-1]
        count = len(self._queue) if n is None else min(n, len(self._queue))
        if self._next:
            taken = [self._pop() for _ in range(count)]
        else:
            taken, self._queue = self._queue[: -count - 1 : -1], self._queue[:-count]
        for arm, number in Counter(taken).items():
            self.wanted[arm] -= number
        return taken

    def _pop(self) -> int:
        """Remove the next pull: the one that a log has, if it is in the round that has started, or the first."""
        if self._next:
            arm, size = self._next.pop(), len(self._queue)
            left = (size - 1) % self._sides + 1 if self._rounds else size
            for place in range(size - 1, size - left - 1, -1):
                if self._queue[place] == arm:
                    return self._queue.pop(place)
        return self._queue.pop()

    def _arrange(self) -> list[int]:
        """Return the pulls of the batch in order."""
        sides = np.flatnonzero(self.wanted).tolist()
        arms = np.repeat(np.arange(len(self.wanted)), self.wanted)
        self._sides = len(sides)
        if self.order is None and self._rng is None:
            phase = np.concatenate([(np.arange(w) + 0.5) / w for w in self.wanted if w])
            return list(arms[np.argsort(phase, kind="stable")].tolist())
        batches = [sides] * max(self.wanted) if self._rounds else [arms.tolist()]
        return [arm for some in batches for arm in (self.order or self._permute)(some)]

    def _permute(self, arms: Sequence[int]) -> list[int]:
        assert self._rng is not None
        return [int(arm) for arm in self._rng.permutation(arms)]
