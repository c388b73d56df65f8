import json
import math
import random
from decimal import Decimal

import numpy as np
import pytest

from truearm.claims.certificate import Status
from truearm.claims.result import Result
from truearm.errors import InvalidArgument, OutOfReach, ProtocolError
from truearm.policies.toptwo import TopTwo
from truearm.problem import Handicap, Problem, Tolerance
from truearm.study import Study
from truearm.verification import verify


def drive(study, draw, limit=100_000):
    while pulls := study.ask():
        for pull in pulls:
            study.tell(pull, draw(pull.arm))
        assert study.pulls < limit
    return study.result


def gauss(seed, **means):
    rng = random.Random(seed)
    return lambda arm: rng.gauss(means[arm], 1)


def test_an_arm_that_always_fails_is_not_the_best_nor_known_to_be_worse():
    study = Study(["broken", "works"], max_pulls=3000)
    result = drive(study, lambda arm: math.nan if arm == "broken" else 1.0)
    assert (result.status, result.best) == (Status.INDISTINGUISHABLE, None)
    assert [alarm.kind for alarm in (*result.doubts, *result.alarms)][:1] == ["missing"]


def test_readings_that_follow_their_time_are_doubtful_unless_all_arms_are_pulled_alike():
    def drifting(study):
        place = iter(range(10_000))
        return drive(study, lambda arm: 50.0 * (arm == "A") + next(place))

    adaptive = drifting(Study(["A", "B"], max_pulls=400))
    assert (adaptive.status, adaptive.best, adaptive.candidates) == (Status.DOUBTFUL, None, ("A", "B"))
    assert {doubt.kind for doubt in adaptive.doubts} == {"dependence"}
    assert tuple(adaptive.breakdown) == (None, None, None)
    assert adaptive.better_by == ()
    beside = drifting(Study(["A", "B"], max_pulls=400, policy=TopTwo(balanced=True)))
    assert beside.status is not Status.DOUBTFUL
    assert "dependence" in {alarm.kind for alarm in beside.alarms}


def test_a_released_pull_goes_out_again_at_its_place():
    study = Study(["A", "B"])
    first, *rest = study.ask()
    study.release(first)
    with pytest.raises(ProtocolError, match="released"):
        study.tell(first, 1.0)
    for pull in rest:
        study.tell(pull, 1.0)
    (again,) = study.ask()
    assert again.arm == first.arm
    assert again.ticket != first.ticket
    study.tell(again, 5.0)
    assert study.readings[first.arm][0] == 5.0


def test_ask_hands_out_a_batch_or_as_many_pulls_as_workers():
    study = Study(["A", "B"])
    pulls = study.ask()
    assert len(pulls) == 32
    study.tell(pulls[0], 1.0)
    assert study.ask() == []  # the others are out
    study = Study(["A", "B"], max_pulls=1000)
    assert [len(study.ask(n)) for n in (500, 600, 1)] == [500, 500, 0]


@pytest.mark.parametrize("rounds", [False, True])
def test_a_batch_beyond_all_memory_is_refused_and_may_be_taken_as_a_number(rounds):
    """A log or a document that anybody wrote may say so: it must not take the machine down."""
    study, plain = Study(["A", "B"], max_pulls=10**17, rounds=rounds), Study(["A", "B"], rounds=rounds)
    definition = {**study.definition, "options": {**study.definition["options"], "first": 10**16}}
    study = Study.replay(definition, [])
    for n in (None, 1, 5):
        with pytest.raises(OutOfReach, match="too large to hand out one by one"):
            study.ask() if n is None else study.ask(n)
    assert (study.pulls, list(study.events())) == (0, [])
    plain.ask(1)
    with pytest.raises(OutOfReach):
        Study.replay(definition, plain.events())


def test_a_pull_of_another_study_is_refused():
    """Tickets of all studies begin at 0: by them alone, what one measured counted for an arm of the other."""
    study, other = Study(["A", "B"], seed=1), Study(["B", "A"], seed=1)
    mine, foreign = study.ask(2), other.ask(2)
    assert [pull.ticket for pull in mine] == [pull.ticket for pull in foreign]
    strange = next(pull for pull in foreign if pull not in mine)
    for use in (lambda: study.tell(strange, 1.0), lambda: study.release(strange)):
        with pytest.raises(ProtocolError, match=r"ticket \d is a pull of '.' here, not of '.'"):
            use()
    assert study.in_flight == 2
    for pull in mine:
        study.tell(pull, 1.0)


@pytest.mark.parametrize("value", [Decimal("1e999"), -Decimal("1e400"), np.longdouble("1e4000")])
def test_what_is_beyond_the_largest_number_is_no_time_out(value):
    study = Study(["A", "B"], seed=1)
    with pytest.raises(InvalidArgument, match="beyond the largest number"):
        study.tell(study.ask(1)[0], value)


def test_a_seed_shuffles_reproducibly():
    orders = [[p.arm for p in Study(["A", "B", "C"], seed=s).ask()] for s in (1, 1, 2, None)]
    assert orders[0] == orders[1] != orders[2]
    assert orders[3][:6] == ["A", "B", "C", "A", "B", "C"]


@pytest.mark.parametrize("seed", range(6))
def test_an_ask_for_a_round_that_the_budget_does_not_hold_decides_nothing(seed):
    """No event tells of such an ask, so that a study which learned by it could not be verified by its log."""
    rng, log, out = np.random.default_rng(seed), [], []
    study = Study(["A", "B", "C"], rounds=True, contamination=0.05, max_pulls=3 * 40 + 2)
    study.log_to(log.extend)
    while not study.done:
        out += study.ask(int(rng.integers(1, 6)))
        if study.pulls == 120 and out:
            before = repr((study.readings, study.standing, study.to_dict()))
            assert study.ask(4) == []
            assert repr((study.readings, study.standing, study.to_dict())) == before
        for _ in range(int(rng.integers(0, 5))):
            if out:
                pull = out.pop(int(rng.integers(len(out))))
                study.tell(pull, float(rng.normal(pull.arm == "B")))
    data = json.loads(json.dumps(study.result.to_dict(readings=True)))
    assert study.pulls == 120
    assert verify(data, Study.replay(study.definition, log))


def test_a_spent_budget_says_so_if_more_could_not_help():
    def twins(**options):
        return drive(Study(["A", "B"], contamination=0.2, **options), gauss(4, A=0.0, B=0.0))

    enough = twins().total
    assert twins(max_pulls=int(0.985 * enough)).status is Status.INDISTINGUISHABLE
    assert twins(max_pulls=enough // 2).status is Status.EXHAUSTED


@pytest.mark.parametrize(("new", "best"), [(103.0, "old"), (101.0, "new"), (95.0, "new")])
def test_a_handicap_is_judged_and_neither_logged_nor_shown(new, best):
    problem = Problem(arms=("old", "new"), goal="min", handicap=Handicap("old", Tolerance.of("2%")))
    study = Study(problem)
    result = drive(study, lambda arm: 100.0 if arm == "old" else new)
    good = Status.CERTIFIED if best == "old" else Status.TOLERABLE  # within 2% of the best
    assert (result.status, result.best) == (good, best)
    assert [arm.observed for arm in result.arms] == [100.0, new]
    assert set(study.readings["old"]) == {100.0}
    assert result.certificate.verify(result.readings)
    assert (Study.from_dict(study.to_dict()).result, Result.from_dict(result.to_dict())) == (result, result)
    with pytest.raises(ProtocolError, match="use `from_dict`"):
        Study.replay(study.to_dict())


def test_a_lost_pull_does_not_hide_a_doubt():
    """Equal arms under a common load, the first pull of each arm lost: in doubt in 20 of 20."""
    for seed in range(20):
        rng, lost = np.random.default_rng(seed), set()
        study = Study(["A", "B"], contamination=None, max_pulls=1500)
        place = 0
        while not study.done and (pulls := study.ask(4)):
            for pull in pulls:
                place += 1
                if pull.arm not in lost:
                    lost.add(pull.arm)
                    continue
                study.tell(pull, float(np.sin(place / 40) + 0.2 * rng.normal()))
        if not study.done:
            study.stop()
        assert study.result.status is Status.DOUBTFUL


def test_arms_that_drift_by_themselves_are_doubtful_also_side_by_side():
    rng, last = np.random.default_rng(5), {"A": 0.0, "B": 0.0}

    def wandering(arm):
        last[arm] = 0.97 * last[arm] + rng.normal()
        return last[arm]

    result = drive(Study(["A", "B"], policy=TopTwo(first=300, balanced=True), max_pulls=800), wandering)
    assert result.status is Status.DOUBTFUL
