"""A study: which arms to pull next, their readings, and what they decide so far.

A study joins a policy, which is pure, to pulls that run at the same time and come back late. Decisions happen at
two moments only, so that replaying the events repeats them: in `tell` when no pull is out, and in `ask(n)` when
more pulls are wanted than the open batch has. Every event goes to the log before the study acts on it.
"""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from types import NoneType
from typing import Any, Self, Unpack

from numpy.typing import ArrayLike

from truearm import policies
from truearm.claims.certificate import Origin, Tapes, Verdict
from truearm.claims.certify import certify, check_support
from truearm.claims.plain import from_plain, to_plain
from truearm.claims.result import Result
from truearm.decision import Decision, OpenBatch, Order
from truearm.errors import InvalidArgument, OutOfReach, ProtocolError
from truearm.events import (
    COUNTED,
    ISSUED,
    LOG_MISMATCH,
    RELEASED,
    STOPPED,
    TOLD,
    Event,
    Log,
    Noted,
    Notes,
    Row,
    from_row,
    to_row,
)
from truearm.evidence.sample import as_readings
from truearm.policies import Policy, Standing
from truearm.problem import Problem, ProblemOptions, Pull, as_number, check_count, check_flag, check_kind, refuse

MAX_BATCH_PULLS = 2**25  # at 32 bytes each in memory; a log from elsewhere may ask for more


class Study:
    """A search for the best arm: ask which arms to pull and tell their readings, until the study is done.

    Use it from one thread at a time: threads that share a study hold a lock while they ask or tell, not while they
    measure.

    Parameters
    ----------
    arms
        Names of the arms, or a `Problem`. A single arm is the best without a pull, unless `policy="alone"`
        measures it. If arms tie exactly, the first listed is named and the others are ties.
    policy
        "toptwo", "elimination", "uniform", "lucb", or a policy object.
    max_pulls
        Budget of pulls in all; a million is minutes of work for the fastest arm and enough for gaps of 1%.
    seed
        Shuffle the pulls of a batch, reproducibly; None interleaves them evenly. Rounds are always shuffled.
    order
        A function that returns a shuffled list, with randomness from outside; the log records the order.
    **options
        What is asked and assumed, as in `truearm.problem.ProblemOptions`: delta, contamination, tolerance,
        quantile, goal, at_least, at_most, rounds, between, regularity, dependent_arms, score_range, items. In
        rounds `ask()` returns whole rounds: all remaining arms, once each.

    Examples
    --------
    >>> import random
    >>> draw = random.Random(1)
    >>> study = Study(["A", "B"], contamination=0.05)
    >>> while pulls := study.ask():
    ...     for pull in pulls:
    ...         study.tell(pull, draw.gauss(10 if pull.arm == "A" else 8, 1))
    >>> study.result.best, study.result.status.value
    ('A', 'certified')
    """

    def __init__(
        self,
        arms: Sequence[str] | Problem,
        *,
        policy: "str | Policy[Any]" = "toptwo",
        max_pulls: int = 1_000_000,
        seed: int | None = None,
        order: Order | None = None,
        **options: Unpack[ProblemOptions],
    ) -> None:
        if check_flag("rounds", options.get("rounds", False)):
            # truearm draws the order, so no eps is needed; scores are taken as given
            options.setdefault("contamination", "blind" if options.get("score_range") is None else 0.0)
        problem = arms if isinstance(arms, Problem) else Problem.of(arms, **options)
        self.problem = problem
        self.policy: Policy[Any] = policies.choose_policy(problem, policy)
        self.max_pulls = check_count("max_pulls", max_pulls, least=0)
        msg = f"order must be a function that shuffles a list, but got {order!r:.80}"
        refuse(order is not None and not callable(order), msg, "order", order)
        self.seed = None if seed is None else check_count("seed", seed, least=0)
        self.log = Log(problem.arms)
        shuffle = 0 if problem.rounds and seed is None else self.seed  # the first arm may have an advantage
        self._batch = OpenBatch(len(problem.arms), rounds=problem.rounds, seed=shuffle, order=order)
        self._is_drawn = order is not None  # so that a replay takes the order from the log
        self._is_parallel = False  # whether pulls of a round were out at the same time
        self._final: dict[str, list[float | None]] = {}  # readings as of the decision
        self._result: Result | None = None
        self._decision = Decision(problem, self.policy)
        self._act()

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        vars(made).update(vars(self))  # a policy, its state and a verdict never change
        made.log, made._decision = copy.copy(self.log), copy.copy(self._decision)
        made._batch = copy.deepcopy(self._batch)
        made._batch.order = self._batch.order
        return made

    def __repr__(self) -> str:
        return f"Study({list(self.problem.arms)!r}, pulls={self.pulls}, done={self.done})"

    @property
    def done(self) -> bool:
        """Whether the study has ended; pulls that are still out need no answer."""
        return self._decision.verdict is not None

    @property
    def pulls(self) -> int:
        """How many pulls were handed out."""
        return len(self.log) - self.log.released

    @property
    def in_flight(self) -> int:
        """How many pulls are out."""
        return self.log.out

    @property
    def round_left(self) -> tuple[str, ...]:
        """The arms not yet handed out in a round that has started."""
        return tuple(self.problem.arms[arm] for arm in self._batch.round_left)

    @property
    def in_round(self) -> bool:
        """Whether a round has started and is not complete."""
        return self.problem.rounds and (self.log.out > 0 or bool(self.round_left))

    @property
    def out(self) -> list[Pull]:
        """The pulls that are out, in order of issue."""
        return [Pull(ticket, self.log.name(ticket)) for ticket in self.log.waiting().tolist()]

    @property
    def standing(self) -> Standing:
        """Where the decision stands, for monitoring: it has no guarantee."""
        return self.policy.standing(self._decision.state)

    @property
    def readings(self) -> dict[str, list[float | None]]:
        """Readings by arm in order of pull, None for a pull without one; once done, as of the decision."""
        return {arm: [*tape] for arm, tape in (self._final or self.log.tapes()).items()}

    @property
    def result(self) -> Result | None:
        """The result once done, None before."""
        if self._result is None and (verdict := self._decision.verdict) is not None:
            by: str | None
            try:
                by, options = policies.definition_of(self.policy)
            except InvalidArgument:
                by, options = None, {}
            readings = self._final
            origin = Origin(by, options, self.max_pulls, self.seed, self._decision.overlapping)
            found = certify(self.problem, readings, verdict, noticed=self._decision.noticed, origin=origin)
            # where the order of rounds comes from: outside, a seed, or nowhere if pulls overlap (extensions R)
            basis = "parallel" if self._is_parallel else "drawn" if self._is_drawn else "seed"
            conditions = {"order": basis} if self.problem.is_blind else None
            self._result = replace(check_support(found, readings), readings=readings, conditions=conditions)
        return self._result

    def ask(self, n: int | None = None) -> list[Pull]:
        """Return new pulls: the open batch, or exactly n to keep n workers busy.

        Without n the list is empty when the study is done or while all wanted pulls are out. With n it is shorter
        only when the study is done or the budget of pulls is spent. No ticket is handed out twice.
        """
        log, first, position = self.log, len(self.log), self.log.position
        self._issue(math.inf if n is None else check_count("n", n), whole=n is None)
        if log.position > position:
            log.write_since(position)
        return [Pull(ticket, log.names[arm]) for ticket, arm in enumerate(log.arms[first:], first)]

    def _issue(self, n: float, *, whole: bool = False, order: Sequence[int] = ()) -> None:
        """Hand out n pulls, in the order of a log if there is one, or the whole open batch."""
        log, batch, was_done, first = self.log, self._batch, self.done, len(self.log)
        while not self.done and (left := n - len(log) + first) > 0 and (batch or (not whole and self._refill())):
            if len(batch) > MAX_BATCH_PULLS:
                if len(log) > first:
                    break
                msg = f"a batch of {len(batch):,} pulls is too large to hand out one by one; use ask_counts"
                raise OutOfReach(msg, "max_pulls", self.max_pulls)
            wanted = None if whole else int(left)
            taken = batch.take_next(order[len(log) - first :]) if order else batch.take(wanted)
            log.issue(taken)
            if whole or not taken:
                break
        self._is_parallel = self._is_parallel or (self.problem.rounds and log.out > 1)
        if self.done != was_done:
            log.stop()

    def ask_counts(self, most: Mapping[str, int] | None = None) -> dict[str, int]:
        """Return how many pulls of each arm are wanted, at most `most`; answer them with `tell_arrays`."""
        arms, first = self.problem.arms, self.log.position
        if most is not None:
            check_kind("most", most, Mapping, "use a dict of numbers of pulls by arm")
        wanted = [0] * len(arms) if self.done else self._batch.wanted
        limits = dict(zip(arms, wanted, strict=True)) if most is None else most
        counts = {arm: k for arm, n in zip(arms, wanted, strict=True) if (k := min(n, limits.get(arm, 0))) > 0}
        for arm, count in counts.items():
            self.log.issue([arms.index(arm)] * count, counted=True)
            self._batch.add(arms.index(arm), -count)
        if counts:
            self.log.write_since(first)
        return counts

    def tell(self, pull: Pull | int, value: float) -> None:
        """Record the reading of a pull: NaN if it failed, infinity on the bad side for a time-out.

        The notes of a `Noted` number are kept. The same value again is ignored; another one is an error.
        """
        ticket, log = self.log.find(pull), self.log
        what = f"value of ticket {ticket} ({log.name(ticket)!r})"
        number = as_number(what, value, "use nan for a reading that went wrong", boolean=True)
        if self.problem.score_range is not None:
            self.problem.check_score(number, log.name(ticket), log.draws[ticket])
        if log.has_arrived(ticket):
            known = log.values[ticket]
            if number != known and not (math.isnan(number) and math.isnan(known)):
                msg = f"{what} was told as {known!r} and now as {number!r}; the first value is kept"
                raise ProtocolError(msg, "value", number)
            return
        self._record([int(ticket)], [number], value.notes if isinstance(value, Noted) else None)

    def _record(self, tickets: Sequence[int], values: Sequence[float], notes: Notes | None = None) -> None:
        """Log readings, add them, and decide once no pull is out."""
        log = self.log
        if log.append is not None:
            pairs = zip(tickets, values, strict=True)
            log.write([Event(TOLD, ticket, log.name(ticket), None, value, notes) for ticket, value in pairs])
        log.record(tickets, values, notes)
        self._settle()

    def tell_arrays(self, readings: Mapping[str, ArrayLike]) -> None:
        """Record readings of several arms at once, each in order of issue, as `ask_counts` wanted them."""
        msg = f"readings must be a dict of readings by arm, but got {type(readings).__name__}"
        refuse(not isinstance(readings, Mapping), msg, "readings")
        log, answered, numbers = self.log, list[int](), list[float]()
        for arm, values in readings.items():
            msg = f"readings has the unknown arm {arm!r}; the arms are {', '.join(log.names)}"
            refuse(arm not in log.names, msg, "readings", arm)
            new, tickets = as_readings(values, arm), log.waiting(log.names.index(arm))
            if new.size > tickets.size:
                msg = f"{new.size} readings of {arm!r} were told, but only {tickets.size} pulls of it are out"
                raise ProtocolError(msg, "readings", arm)
            answered += tickets[: new.size].tolist()
            numbers += new.tolist()
        for ticket, number in zip(answered, numbers, strict=True) if self.problem.score_range else ():
            self.problem.check_score(number, log.name(ticket), log.draws[ticket])
        self._record(answered, numbers)

    def release(self, pull: Pull | int) -> None:
        """Take back a pull that never started; its draw is handed out again under a new ticket.

        In rounds it is not: the round counts for no arm. A pull that started and was lost, killed or timed out
        must be told as NaN or as an infinity instead: it may be lost because of its value.
        """
        ticket, log = int(self.log.find(pull)), self.log
        if log.has_arrived(ticket):
            msg = f"ticket {ticket} of {log.name(ticket)!r} has a reading; release only pulls that never started"
            raise ProtocolError(msg, "ticket", ticket)
        self.log.write([Event(RELEASED, ticket, log.name(ticket))])
        log.release(ticket, again=not self.problem.rounds)
        if not self.problem.rounds and not self.done:
            self._batch.add(log.arms[ticket])
        self._settle()

    def draw(self, pull: Pull | int) -> int:
        """Return which draw of its arm a pull is, counted from 0 in order of issue."""
        return self.log.draws[self.log.find(pull)]

    def stop(self) -> None:
        """End the study here with what is known so far: its result is `exhausted` unless it was done before.

        Only this object ends: nothing is written to its log, which can be continued.
        """
        if not self.done:
            self._decision.interrupt(self.log)
            self._end()
            self.log.stop()

    def events(self) -> Iterator[Event]:
        """Iterate over all events in order."""
        return self.log.events()

    def log_to(self, append: Callable[[list[Event]], object] | None) -> None:
        """Call `append` with every event before the study acts on it, and with pulls before they are returned.

        An append that raises leaves a tell or a release undone. The pulls of an ask that could not be logged stay
        out, and are appended before the next event. None stops appending.
        """
        self.log.append = append

    @property
    def definition(self) -> dict[str, Any]:
        """The definition from which `replay` makes the study, as plain values."""
        name, options = policies.definition_of(self.policy)
        how = {"policy": name, "options": options, "max_pulls": self.max_pulls, "seed": self.seed}
        return {"problem": to_plain(self.problem), **how, **({"order": "drawn"} if self._is_drawn else {})}

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain values: its definition and its events. `from_dict` replays them."""
        return {**self.definition, "events": [list(to_row(event)) for event in self.log.events()]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the study that `to_dict` described, by replaying its events."""
        events = data.get("events", ()) if isinstance(data, Mapping) else ()
        if not isinstance(events, list | tuple):
            raise ProtocolError(f"events must be a list, but got {events!r:.80}; use what to_dict returned")
        return cls.replay(data, map(from_row, events))

    @classmethod
    def replay(
        cls, definition: Mapping[str, Any], events: Iterable[Event] = (), *, order: Order | None = None
    ) -> Self:
        """Return the study of a definition after these events, with the same decisions at the same events.

        Other keys of the definition are ignored; `order` shuffles later pulls.
        """
        needed = ("problem", "policy", "options", "max_pulls", "seed")
        if events == () and isinstance(definition, Mapping) and definition.get("events"):
            raise ProtocolError("the definition holds events, which `replay` takes separately; use `from_dict`")
        if not isinstance(definition, Mapping) or not isinstance(definition.get("options", {}), Mapping):
            msg = f"the definition and its options must be dictionaries, but got {definition!r:.80}"
            raise ProtocolError(msg)
        if lacking := [key for key in needed if key not in definition]:
            msg = f"the definition of the study lacks {', '.join(lacking)}; it was written by another version"
            raise ProtocolError(msg)
        study = cls(
            from_plain(Problem, definition["problem"], "problem"),
            policy=policies.by_name(definition["policy"], **definition["options"]),
            max_pulls=definition["max_pulls"],
            seed=definition["seed"],
            order=order,
        )
        study._is_drawn = definition.get("order") == "drawn"
        study.follow(Event(*to_row(event)) for event in events)
        return study

    def follow(self, events: Iterable[Row]) -> None:
        """Repeat events of this study from elsewhere, such as another process that shares its log.

        Events may be plain tuples. Successive events of one kind are repeated together.
        """
        for kind, group in groupby(events, itemgetter(0)):
            run = [*group]
            _, tickets, arms, draws, values, notes = zip(*run, strict=True)
            is_plain = _types(tickets) == {int} and _types(arms) == {str} and _types(notes) == {NoneType}
            if is_plain and kind in (ISSUED, COUNTED) and _types(draws) == {int}:
                self._repeat_ask(tickets, arms, draws, counted=kind == COUNTED)
            elif not (is_plain and kind == TOLD and self._repeat_tells(tickets, arms, values)):
                for event in [from_row(one) for one in run]:
                    self._repeat(event)

    def _repeat(self, event: Event) -> None:
        if event.kind == STOPPED:
            self.stop()
            return
        ticket, value, notes = self.log.find(event.ticket), event.value, event.notes
        if self.log.name(ticket) != event.arm:
            raise ProtocolError(LOG_MISMATCH)
        if value is None:
            self.release(ticket)
        else:
            self.tell(ticket, value if notes is None else Noted(value, notes))

    def _repeat_tells(self, tickets: Sequence[int], arms: Sequence[str], values: Sequence[Any]) -> bool:
        """Record readings together if all their pulls are out: then there is no decision between them."""
        log = self.log
        if log.append is not None or self.problem.score_range is not None or not log.are_out(tickets, arms):
            return False
        try:
            numbers = [*map(float, values)]
        except (TypeError, ValueError):
            return False
        self._record(tickets, numbers)
        return True

    def _repeat_ask(
        self, tickets: Sequence[int], arms: Sequence[str], draws: Sequence[int], *, counted: bool
    ) -> None:
        """Hand out the pulls of one ask, or of several in a row, which count as one."""
        log, first = self.log, len(self.log)
        if not counted:
            places = {name: i for i, name in enumerate(log.names)}
            order = [places[arm] for arm in arms if arm in places] if self._is_drawn else ()
            self._issue(len(arms), order=order)
        elif len(self._batch) == len(arms):  # else it does not match, and may be more than memory holds
            self.ask_counts()
        names = [log.names[arm] for arm in log.arms[first:]]
        if (tickets, arms, draws) != (tuple(range(first, len(log))), tuple(names), tuple(log.draws[first:])):
            raise ProtocolError(LOG_MISMATCH)

    @classmethod
    def retrace(cls, problem: Problem, tapes: Tapes, **how: Any) -> Self:  # noqa: ANN401 - of a study
        """Return the study that took these tapes and stopped, if it never decided while pulls were out.

        Then the tapes show what it knew at each decision: whole batches, in the order in which it asked.
        """
        study, names = cls(problem, **how), problem.arms
        log, held = study.log, [tapes.get(arm, ()) for arm in names]
        while not study.done:
            first, left = len(log), [len(tape) - len(own) for tape, own in zip(held, log.tickets, strict=True)]
            if not study.ask_counts(dict(zip(names, left, strict=True))):
                if not (problem.rounds and log.out and any(n > 0 for n in left)):
                    break
                for pull in study.out:  # a round that others followed lacks pulls that never started
                    study.release(pull)
            for ticket in range(first, len(log)):
                if (value := held[log.arms[ticket]][log.draws[ticket]]) is not None:
                    study.tell(ticket, float(value))
        study.stop()
        return study

    def _refill(self) -> bool:
        """Open a new batch because workers are idle, also while pulls are out; return False if it stays empty.

        Pulls handed out by the same `ask` are out already, so that two asks in a row count as one.
        """
        if self.log.out == 0 or self.pulls >= self.max_pulls:
            return False  # tell has decided already, or will: an ask that hands out nothing decides nothing
        before = copy.copy(self._decision)
        self._decision.overlapping = True
        self._decide()
        if self.done:  # as a stop at this moment, which the readings repeat
            self._decision.overlapping = before.overlapping
        answer = self.policy.ask(self._decision.state)
        if not isinstance(answer, Verdict) and not self._batch:
            self._want(answer)  # the same batch again keeps workers busy
        if not self.done and not self._batch:
            self._decision = before  # the budget has no room for a round of the arms that are left
        return bool(self._batch)

    def _settle(self) -> None:
        """Decide if no pull is out or left to hand out."""
        if self.log.out == 0 and not self._batch:
            self._decide()

    def _decide(self) -> None:
        """Give the policy the new readings and act on its answer."""
        if not self.done:
            self._decision.inform(self.log)
            self._act()

    def _act(self) -> None:
        """Open the batch that the policy wants, or end."""
        wanted = self._decision.decide(self.log)
        if not self.done and (self.policy.patient or not self.log.out):  # else `_refill` opens the batch
            self._want(wanted)
            if self.log.out == 0 and not self._batch:
                self._decision.interrupt(self.log)
        if self.done:
            self._end()

    def _want(self, answer: Mapping[str, int]) -> None:
        self._batch.open([answer.get(arm, 0) for arm in self.problem.arms], self.max_pulls - self.pulls)

    def _end(self) -> None:
        self._final = self.log.tapes()
        self._batch.close()


def _types(values: Sequence[Any]) -> set[type]:
    return {*map(type, values)}
