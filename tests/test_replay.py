"""One replay: whatever was done to a study, its events bring it back, with every decision at the same moment."""

import copy
import json
import random

import pytest

import forging
from truearm.cli.race_log import open_log
from truearm.errors import InvalidArgument, ProtocolError, TruearmError
from truearm.events import Event
from truearm.policies.toptwo import TopTwo
from truearm.problem import Problem
from truearm.store import Store
from truearm.study import Study


def test_the_command_line_reads_every_log(tmp_path):
    """Of 120 valid logs 11 were refused, because their budget was ignored."""
    for seed, name in enumerate(("late", "late and stopped", "pending", "rounds", "lucb", "against a control")):
        study = forging.STUDIES[name]()
        events = [event for event in study.events() if event.kind != "stopped"]
        with Store(tmp_path / f"{seed}.db") as store:
            store.create(study.definition)
            store.append(events)
        with open_log(tmp_path / f"{seed}.db") as found:
            assert found.study.to_dict() == Study.replay(study.definition, events).to_dict()


def test_stopping_a_study_is_not_logged_so_that_its_log_can_be_continued():
    study, log = Study(["A", "B"]), []
    study.log_to(log.extend)
    study.ask(1)
    study.stop()
    assert log == [Event("issued", 0, "A", 0)]
    assert list(study.events()) == [*log, Event("stopped")]


def test_a_user_defined_policy_cannot_be_serialized():
    class Mine(TopTwo):
        pass

    with pytest.raises(InvalidArgument, match="of your own"):
        Study(["A", "B"], policy=Mine()).to_dict()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.pop("max_pulls"), "lacks max_pulls"),
        (lambda data: data["options"].update(speed=3), "must be those of policy 'toptwo'.*'speed'"),
        (lambda data: data["events"].append(["told", 0, "A", None, "fast"]), "invalid event"),
        (lambda data: data["events"].append(["told", 1, "A", None, 1.0]), "does not match"),
        (lambda data: data["events"].append(["told", 9, "A", None, 1.0]), "never handed out"),
        (lambda data: data["events"].append(["moved", 0, "A"]), "invalid event"),
        (lambda data: data["events"].append(None), "invalid event"),
        (lambda data: data["events"].append(["issued", 2, "B", 0]), "does not match"),
        (lambda data: data["events"].append(["counted", 2, "A", 1]), "does not match"),
        (lambda data: data["events"].append(["released", -1, "A"]), "invalid event"),
    ],
)
def test_impossible_events_are_refused(change, words):
    study = Study(["A", "B"])
    study.ask(2)
    data = study.to_dict()
    change(data)
    with pytest.raises((ProtocolError, InvalidArgument), match=words):
        Study.from_dict(data)


ODD = [
    *json.loads(
        '[null, true, false, -1, 0, 1, 2, 0.5, -0.0, 1e-300, 1e308, "nan", "inf", "", "x", "A", "stopped"]'
    ),
    *json.loads('["stopped", "toptwo", [], {}, [1], [null], ["A", "B"], {"a": 1}, [[]], {"eps": {}}]'),
    *(2**63, -(2**70), 10**30, 10**400, "\ud800", "5" * 50),
]


def tampered(data, rng):
    """Return a copy of a study's plain values in which one thing is changed, gone, doubled or new."""
    data = copy.deepcopy(data)
    path = rng.choice([(), *forging.places(data)])
    if not path:
        return rng.choice(ODD)
    whole, key, way = forging.part(data, path[:-1]), path[-1], rng.choice(["set", "set", "drop", "double"])
    if way == "drop":
        del whole[key]
    elif way == "double" and isinstance(whole, list):
        whole.insert(key, whole[key])
    else:
        whole[key] = rng.choice(ODD)
    return data


def foreign(numbers):
    """Return which tampered studies raise anything but an error of ours, when they come back or when used."""
    asked = ({}, {"rounds": True}, {"goal": "min", "contamination": None, "regularity": forging.REGULAR})
    problems = [Problem(arms=("A", "B", "C"), **options) for options in asked]
    found, stories = [], [forging.late(problem, (2, 0, 1), stop=6).to_dict() for problem in problems]
    for number in numbers:
        rng = random.Random(number)
        try:
            study = Study.from_dict(tampered(rng.choice(stories), rng))
            study.ask(3)
            study.stop()
            repr((study.readings, study.standing, study.out, study.result.to_dict(), study.to_dict()))
        except TruearmError:
            pass
        except Exception as error:
            found.append((number, repr(error)))
    return found


@pytest.mark.parametrize(
    "numbers", [range(800), pytest.param(range(800, 10_000), marks=pytest.mark.slow)], ids=len
)
def test_tampered_plain_values_raise_errors_of_ours_only(numbers):
    """Of 2,500 tampered dictionaries 1,013 raised other exceptions."""
    assert foreign(numbers) == []


def test_an_invalid_seed_is_refused():
    for seed in (-1, 1.5, "x", [1]):
        with pytest.raises(InvalidArgument, match="seed must be an integer not less than 0"):
            Study(["A", "B"], seed=seed)
