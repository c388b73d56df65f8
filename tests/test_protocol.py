"""Whatever is done to a study in whatever order: a simple model of its tickets and its own log agree with it."""

import copy
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from truearm.errors import TruearmError
from truearm.events import Event, Noted, to_row
from truearm.policies.control import AgainstControl
from truearm.policies.lucb import Lucb
from truearm.policies.toptwo import TopTwo
from truearm.problem import Contamination, Problem, Regularity, Tolerance
from truearm.study import Study
from truearm.verification import verify

ARMS = ("A", "B", "C")
REGULAR = Regularity(B=3.0, m2=1.0, reach=0.25)
STUDIES = {
    "toptwo": ({}, "toptwo"),
    "balanced": ({}, TopTwo(balanced=True)),
    "patient": ({}, TopTwo(patient=True)),
    "small steps": ({"contamination": Contamination(0.02, "malicious")}, TopTwo(first=1)),
    "lucb": ({"tolerance": Tolerance.of(0.5)}, Lucb()),
    "elimination": ({"contamination": None, "regularity": REGULAR}, "elimination"),
    "uniform": ({"contamination": None, "regularity": REGULAR, "tolerance": Tolerance.of(2.0)}, "uniform"),
    "rounds": ({"rounds": True, "goal": "min"}, "toptwo"),
    "rounds, more bad": ({"rounds": True, "contamination": Contamination(0.1)}, "toptwo"),
    "control": ({}, AgainstControl("B")),
    "share": ({"at_least": 0.5}, "toptwo"),
    "in a range": ({"between": (-2.0, 6.0), "contamination": Contamination(0.2)}, "toptwo"),
    "no promise": ({"contamination": None, "goal": "min"}, "toptwo"),
}
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.floats(-5, 5),
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, 5e-324, True, False, 2**62]),
    st.builds(np.float32, st.floats(-2, 2, width=32)),
    st.builds(np.int64, st.integers(-3, 3)),
    st.builds(Decimal, st.integers(-3, 3)),
    st.builds(Fraction, st.integers(-3, 3), st.integers(1, 4)),
    st.builds(Noted, st.floats(-2, 2), st.just({"host": "here"})),
    st.just(np.array(1.5)),
)
NO_NUMBERS = st.sampled_from(["1", b"1", None, [], [1.0], {}, 10**400, 1j, np.array([1.0, 2.0]), object(), "nan"])
NO_TICKETS = st.sampled_from([-1, 10**9, True, 1.0, "0", None, 2**70])


def alike(one, other):
    return one == other or (math.isnan(one) and math.isnan(other))


def seen(study):
    """Return all that can be seen of a study, as text, where NaN equals NaN."""
    return repr(
        (
            study.readings,
            study.result and study.result.to_dict(),
            study.standing,
            (study.pulls, study.in_flight, study.done, study.in_round, study.round_left),
            study.out,
            study.to_dict(),
        )
    )


COPIES = {"pickle": lambda study: pickle.loads(pickle.dumps(study)), "copy": copy.copy, "deepcopy": copy.deepcopy}


class Full(Exception):
    """A disk that takes no more."""


class Machine(RuleBasedStateMachine):
    """A study, the log it writes, another one that follows the log, and a dictionary of tickets."""

    def __init__(self):
        super().__init__()
        self.tickets = {}  # ticket -> arm
        self.told, self.gone, self.result = {}, set(), None
        self.log, self.full, self.stopped = [], False, False
        self.followed = 0

    @initialize(
        name=st.sampled_from(sorted(STUDIES)),
        arms=st.sampled_from([3, 2, 1]),
        budget=st.sampled_from([0, 1, 2, 5, 31, 64, 200, 1000]),
        seed=st.sampled_from([None, 0, 7]),
    )
    def begin(self, name, arms, budget, seed):
        options, policy = STUDIES[name]
        problem = Problem(arms=ARMS[: max(arms, 2 if name == "control" else 1)], **options)
        self.study = Study(problem, policy=policy, max_pulls=budget, seed=seed)
        self.follower = Study(problem, policy=policy, max_pulls=budget, seed=seed)
        self.study.log_to(self.append)

    def append(self, events):
        if self.full:
            raise Full
        self.log += events

    @property
    def out(self):
        return [ticket for ticket in self.tickets if ticket not in self.told and ticket not in self.gone]

    def keep(self, pulls):
        for ticket, arm in pulls:
            assert ticket not in self.tickets  # no ticket goes out twice
            self.tickets[ticket] = arm

    @rule(n=st.sampled_from([None, 1, 2, 3, 7, 40, 200]))
    def ask(self, n):
        was_done = self.study.done
        pulls = self.study.ask() if n is None else self.study.ask(n)
        assert not (was_done and pulls)
        assert n is None or len(pulls) <= n
        self.keep(pulls)

    @rule()
    def ask_counts(self):
        counts = self.study.ask_counts()
        new = [pull for pull in self.study.out if pull.ticket not in self.tickets]
        assert {arm: sum(pull.arm == arm for pull in new) for arm in counts} == counts
        self.keep(new)

    @rule(data=st.data(), values=st.lists(NUMBERS, min_size=1, max_size=40), late=st.booleans())
    def tell(self, data, values, late):
        for value in values:
            if not self.out:
                return
            ticket = data.draw(st.sampled_from(self.out)) if late else self.out[0]
            self.study.tell(ticket, value)
            self.told[ticket] = float(value)

    @rule(values=st.lists(NUMBERS, min_size=1, max_size=4))
    def tell_all(self, values):
        for place, ticket in enumerate(self.out):
            shift = 3 * (self.tickets[ticket] == "A") + place % 5 / 4
            value = float(values[place % len(values)]) if place % 16 == 0 else shift
            self.study.tell(ticket, value)
            self.told[ticket] = value

    @rule(data=st.data(), part=st.sampled_from([0.0, 0.5, 1.0]))
    def tell_arrays(self, data, part):
        told, tickets = {}, []
        for arm in data.draw(st.permutations(self.study.problem.arms)):
            mine = sorted((self.study.draw(t), t) for t in self.out if self.tickets[t] == arm)
            mine = [ticket for _, ticket in mine[: math.ceil(part * len(mine))]]
            told[arm] = [2.0 * (arm == "B") + ticket % 3 for ticket in mine]
            tickets += zip(mine, told[arm], strict=True)
        self.study.tell_arrays(told)
        self.told.update(tickets)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def release(self, data):
        ticket = data.draw(st.sampled_from(self.out))
        self.study.release(ticket)
        self.gone.add(ticket)

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def tell_again(self, data):
        ticket = data.draw(st.sampled_from(list(self.told)))
        before = seen(self.study)
        self.study.tell(ticket, self.told[ticket])
        assert seen(self.study) == before
        with pytest.raises(TruearmError):
            self.study.tell(ticket, 77.25)
        with pytest.raises(TruearmError):
            self.study.release(ticket)
        assert seen(self.study) == before

    @rule(value=NO_NUMBERS, ticket=NO_TICKETS)
    def refuse(self, value, ticket):
        before, logged = seen(self.study), len(self.log)
        wrong = [lambda: self.study.tell(ticket, 1.0), lambda: self.study.release(ticket)]
        wrong += [lambda: self.study.tell(self.out[0], value)] if self.out else []
        wrong += [lambda gone=gone: self.study.tell(gone, 1.0) for gone in list(self.gone)[:1]]
        wrong += [lambda: self.study.tell_arrays({"A": [1.0] * (len(self.out) + 1)})]
        wrong += [lambda: self.study.tell_arrays({"nobody": [1.0]}), lambda: self.study.ask(0)]
        wrong += [lambda: self.study.tell_arrays({"A": [value]})]
        for call in wrong:
            with pytest.raises(TruearmError):
                call()
        assert (seen(self.study), len(self.log)) == (before, logged)

    @precondition(lambda self: self.out)
    @rule()
    def a_full_disk_leaves_a_tell_undone(self):
        self.full, before, ticket = True, seen(self.study), self.out[0]
        first = min((self.study.draw(t), t) for t in self.out if self.tickets[t] == self.tickets[ticket])[1]
        calls = [lambda: self.study.release(ticket), lambda: self.study.tell(ticket, 1.0)]
        calls += [lambda: self.study.tell_arrays({self.tickets[first]: [1.0]})]
        for call in calls:
            with pytest.raises(Full):
                call()
        self.full = False
        assert seen(self.study) == before

    @rule(n=st.sampled_from([None, 1, 5]))
    def a_full_disk_keeps_pulls_out(self, n):
        self.full = True
        try:
            self.keep(self.study.ask(n) if n else self.study.ask())
        except Full:
            self.keep([pull for pull in self.study.out if pull.ticket not in self.tickets])
        self.full = False

    @rule(how=st.sampled_from(["pickle", "copy", "deepcopy", "log"]))
    def go_on_as_another(self, how):
        self.study.log.write()  # pulls that a full disk kept out of the log
        before = seen(self.study)
        if how == "log":
            plain = json.loads(json.dumps(self.study.to_dict(), allow_nan=False))
            made = Study.from_dict(plain)
        else:
            made = COPIES[how](self.study)
        assert seen(made) == before
        other, self.study = self.study, made
        self.study.log_to(self.append)
        other.log_to(None)
        other.ask(3)  # what becomes of the other one is nothing to this one
        other.stop()
        assert seen(self.study) == before

    @precondition(lambda self: not self.stopped)
    @rule()
    def follow(self):
        self.study.log.write()
        new = self.log[self.followed :]
        self.followed = len(self.log)
        self.follower.follow([Event(*json.loads(json.dumps(to_row(event)))) for event in new])
        assert seen(self.follower) == seen(self.study)

    @rule(chance=st.integers(0, 9))
    def stop(self, chance):
        if chance == 0:
            self.stopped = self.stopped or not self.study.done  # no log knows of a stop by hand
            self.study.stop()

    @invariant()
    def the_model_agrees(self):
        if not hasattr(self, "study"):
            return
        assert {pull.ticket: pull.arm for pull in self.study.out} == {t: self.tickets[t] for t in self.out}
        assert self.study.pulls == len(self.tickets) - len(self.gone) <= self.study.max_pulls
        log = self.study.log
        arrivals = [event.ticket for event in log.events() if event.kind == "told"]
        assert len(arrivals) == len(set(arrivals)) == log.readings
        assert all(alike(self.told[t], log.values[t]) for t in arrivals)
        if self.study.done:
            found = repr(self.study.result.to_dict(readings=True))
            assert self.result in (None, found)
            self.result = found

    def teardown(self):
        if not hasattr(self, "study"):
            return
        if not self.study.done:
            self.study.stop()
        result = self.study.result
        data = json.loads(json.dumps(result.to_dict(readings=True), allow_nan=False))
        assert verify(data, self.study)
        assert data["certificate"]["origin"]["overlapping"] or verify(data)
        assert seen(Study.from_dict(self.study.to_dict())) == seen(self.study)


SETTINGS = {"suppress_health_check": list(HealthCheck), "phases": [Phase.generate]}  # making small takes minutes
TestProtocol = Machine.TestCase
TestProtocol.settings = settings(max_examples=60, stateful_step_count=25, **SETTINGS)


class Long(Machine):
    """The same for much longer."""


TestProtocolInFull = pytest.mark.slow(Long.TestCase)
TestProtocolInFull.settings = settings(max_examples=1000, stateful_step_count=40, **SETTINGS)
