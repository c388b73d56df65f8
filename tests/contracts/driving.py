"""Run a policy on tapes without a study: whole batches, told at once."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truearm.claims.certificate import Verdict
from truearm.policies import Told


@dataclass
class Run:
    """What happened: the verdict (None if the tapes ran out first), batches, states, and pulls of each arm."""

    verdict: Verdict | None
    counts: dict[str, int]
    batches: list[dict[str, int]] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)

    def used(self, tapes):
        return {arm: tapes[arm][:n] for arm, n in self.counts.items()}


def drive(policy, problem, tapes, *, shuffle=None, keep=False):
    """Answer pull number i of an arm with reading number i of its tape, until a verdict or the end of a tape."""
    state, run = policy.start(problem), Run(None, dict.fromkeys(problem.arms, 0))
    while True:
        if keep:
            run.states.append(state)
        batch = policy.ask(state)
        if isinstance(batch, Verdict):
            run.verdict = batch
            return run
        run.batches.append(dict(batch))
        if any(run.counts[arm] + n > len(tapes[arm]) for arm, n in batch.items()):
            return run
        state = policy.tell(state, *answers(problem, batch, tapes, counts=run.counts, shuffle=shuffle))


def answers(problem, batch, tapes, *, counts, shuffle=None):
    told = {}
    for arm, n in batch.items() if shuffle is None else reversed(batch.items()):
        places = np.arange(counts[arm], counts[arm] + n)
        if shuffle is not None:
            shuffle.shuffle(places)
        values = problem.sign * tapes[arm][places]
        places.flags.writeable = values.flags.writeable = False
        told[arm] = Told(places, values)
        counts[arm] += n
    return told, dict(counts)
