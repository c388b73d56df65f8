"""Blind rounds: random order instead of an eps (extensions R1 to R4)."""

import json
import random

import pytest
from scipy.stats import binom

import truearm as ta
from entry import truearm

EQUAL_RACES, MAX_ROUNDS = 50, 60


def race(reading, *, arms=("A", "B"), max_rounds=MAX_ROUNDS, seed=None, **options):
    """Run rounds one pull at a time; `reading(arm, slot, rng, past)` is what the machine shows."""
    rng = random.Random(seed)
    study = ta.Study(arms, rounds=True, goal="min", max_pulls=len(arms) * max_rounds, **options)
    past, slot = [], 0
    while pulls := study.ask(1):
        value = reading(pulls[0].arm, slot, rng, past)
        past.append((pulls[0].arm, value))
        study.tell(pulls[0], value)
        slot += 1
    return study.result


def adaptive_machine(_, slot, rng, past):
    """Slow first slots, a clock, spikes, and a load that reacts to past readings, but not to labels."""
    slow = 0.4 * (slot % 2 == 0) + 0.3 * (slot % 10 < 5) + 0.2 * (len(past) > 3 and past[-2][1] > past[-1][1])
    return 10 + slow + rng.gauss(0, 0.3) + 5 * (rng.random() < 0.1)


def after_effects(_, __, rng, past):
    """A run slows the next one by a part of its own length, whichever command it was."""
    return 10 + 0.2 * (past[-1][1] - 10 if past else 0) + rng.gauss(0, 0.5)


@pytest.mark.parametrize("races", [EQUAL_RACES, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("machine", [adaptive_machine, after_effects])
def test_equal_commands_on_a_machine_that_does_not_know_labels(machine, races):
    """Named in at most delta: the limit fails by chance in 0.1%, and 50 races notice 40% with a power of 99%."""
    named = sum(race(machine, seed=i).best is not None for i in range(races))
    assert named <= binom.isf(0.001, races, 0.05)


def test_a_slot_after_one_command_that_is_slower_is_not_covered():
    def heated(_, __, rng, past):
        return 10 + 0.3 * bool(past and past[-1][0] == "A") + rng.gauss(0, 0.3)

    assert sum(race(heated, seed=i, max_rounds=400).best == "A" for i in range(10)) >= 9


def test_the_default_of_rounds_is_blind_and_says_what_it_rests_on():
    result = race(lambda arm, _, rng, __: rng.gauss(10 if arm == "A" else 12, 1))
    assert result.status.value == "certified"
    assert result.problem.is_blind
    assert result.to_dict()["contamination"] == "blind"
    assert result.conditions["order"] == "drawn"
    assert "for any disturbance that treats the arms alike" in str(result)
    assert any("do not depend on which command runs" in line for line in result.assumptions)
    assert result.breakdown.oblivious > 0
    again = ta.Result.from_dict(json.loads(json.dumps(result.to_dict(readings=True))))
    assert again.problem.is_blind
    assert ta.verify(again)


def test_a_seed_or_parallel_pulls_make_it_the_users_assumption():
    def gap(arm, _, rng, __):
        return rng.gauss(10 if arm == "A" else 12, 1)

    assert race(gap, seed=1).conditions["order"] == "drawn"
    study = ta.Study(["A", "B"], rounds=True, goal="min", seed=3)
    draw = random.Random(1)
    while pulls := study.ask(1):
        study.tell(pulls[0], gap(pulls[0].arm, 0, draw, ()))
    assert study.result.conditions["order"] == "seed"
    assert "known seed" in str(study.result)
    study = ta.Study(["A", "B"], rounds=True, goal="min")
    while pulls := study.ask():
        for pull in pulls:
            study.tell(pull, gap(pull.arm, 0, draw, ()))
    assert study.result.conditions["order"] == "parallel"
    assert ta.Study.from_dict(study.to_dict()).result.conditions["order"] == "parallel"
    assert "at the same time" in str(study.result)


def test_the_order_of_rounds_differs_from_study_to_study():
    def order():
        study = ta.Study(["A", "B"], rounds=True, max_pulls=80)
        arms = []
        while pulls := study.ask(1):
            arms.append(pulls[0].arm)
            study.tell(pulls[0], 1.0)
        return tuple(arms)

    assert len({order() for _ in range(5)}) == 5


@pytest.mark.parametrize(
    "call",
    [
        lambda: ta.Study(["A", "B"], contamination="blind"),
        lambda: ta.analyze({"A": [1.0, 2.0] * 9, "B": [2.0, 3.0] * 9}, round="rows", contamination="blind"),
        lambda: ta.analyze({"A": [1.0, 2.0] * 9, "B": [2.0, 3.0] * 9}, contamination="blind"),
        lambda: ta.Contamination(0.05, blind=True),
    ],
)
def test_blind_is_refused_where_truearm_did_not_draw_the_order(call):
    with pytest.raises(ta.InvalidArgument, match=r"0\.05"):
        call()


def test_a_race_is_blind_unless_another_target_is_asked_for(tmp_path):
    def run(*words):
        return json.loads(truearm("race", "--json", "-r", "12", *words, "true", "sleep 0.02", cwd=tmp_path).stdout)

    assert run()["contamination"] == "blind"
    assert run("--quantile", "0.5")["contamination"]["eps"] == 0.05
    assert run("--contamination", "2%")["contamination"]["eps"] == 0.02
