import json
import math
import pickle
import random
from copy import copy as copied
from decimal import Decimal

import numpy as np
import pytest

from truearm.claims.certificate import Status
from truearm.claims.result import Result
from truearm.errors import InvalidArgument, OutOfReach, ProtocolError, VerificationError
from truearm.policies.toptwo import TopTwo
from truearm.problem import Contamination, Handicap, Problem, Pull, Regularity, Tolerance
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


def tapes(seed, means, n=4000):
    rng = np.random.default_rng(seed)
    return {arm: rng.normal(mean, 1, n).tolist() for arm, mean in means.items()}


def from_tapes(study, data):
    """Answer pull number i of an arm with reading number i of its tape."""
    seen = dict.fromkeys(data, 0)

    def draw(arm):
        seen[arm] += 1
        return data[arm][seen[arm] - 1]

    return drive(study, draw)


def test_certified_is_the_default_promise():
    result = drive(Study(["A", "B"]), gauss(1, A=1.5, B=0.0))
    assert (result.status, result.best, result.candidates) == (Status.CERTIFIED, "A", ("A",))
    assert result.breakdown.oblivious >= 0.05


def test_separated_without_contamination():
    result = drive(Study(["A", "B"], contamination=None), gauss(2, A=1.0, B=0.0))
    assert (result.status, result.best) == (Status.SEPARATED, "A")


def test_tolerable_within_a_tolerance():
    result = drive(Study(["A", "B"], contamination=0.02, tolerance=0.8), gauss(3, A=0.0, B=0.0))
    assert result.status is Status.TOLERABLE
    assert result.tolerance <= 0.8


def test_tolerable_within_a_ratio():
    rng = random.Random(4)
    study = Study(["A", "B"], contamination=0.02, tolerance="50%", goal="min")
    result = drive(study, lambda _: rng.lognormvariate(0, 0.3))
    assert result.status is Status.TOLERABLE
    assert result.certificate.verify(study.readings)


def test_indistinguishable_when_contamination_hides_the_order():
    study = Study(["A", "B"], contamination=0.1)
    result = drive(study, gauss(5, A=0.0, B=0.0))
    assert (result.status, result.best) == (Status.INDISTINGUISHABLE, None)
    assert result.candidates == ("A", "B")


def test_no_level_is_indistinguishable_at_once_without_a_pull():
    study = Study(["A", "B"], quantile=0.1, contamination=Contamination(0.2, "malicious"))
    assert study.done
    assert study.result.status is Status.INDISTINGUISHABLE
    assert study.result.total == 0


def test_exhausted_keeps_what_is_known():
    study = Study(["A", "B", "C"], max_pulls=140)
    result = drive(study, gauss(6, A=0.3, B=0.0, C=-9.0))
    assert (result.status, result.best, result.total) == (Status.EXHAUSTED, None, 140)
    assert result.candidates[:2] == ("A", "B")


def test_one_arm_is_the_best_without_a_pull():
    study = Study(["only"])
    assert study.ask() == []
    assert (study.result.best, study.result.total) == ("only", 0)


def test_one_arm_in_rounds_has_a_standing_like_any_other():
    study = Study(["A"], rounds=True)
    assert (study.done, study.standing.alive, study.standing.against) == (True, ("A",), {"A": 0.0})


def test_one_arm_alone_is_measured_if_asked_for():
    study = Study(["only"], policy="alone", tolerance=0.8)
    result = drive(study, gauss(6, only=3.0))
    assert (result.best, result.status) == ("only", Status.CERTIFIED)
    assert result.total > 16
    assert Study.replay(study.definition, study.events()).result.total == result.total


def test_no_budget_no_pull():
    study = Study(["A", "B"], max_pulls=0)
    assert study.done
    assert study.result.status is Status.EXHAUSTED


@pytest.mark.parametrize("value", [0.0, math.inf])
def test_of_equal_arms_the_first_listed_is_as_good_as_any_and_the_others_tie(value):
    result = drive(Study(["A", "B", "C"], max_pulls=3000), lambda _: value)
    assert (result.status, result.best, result.ties) == (Status.CERTIFIED, "A", ("B", "C"))
    assert json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("contamination", [None, 0.05])
def test_arms_that_always_time_out_are_no_tie_and_end_soon(goal, contamination):
    study = Study(["A", "B", "C"], goal=goal, contamination=contamination, max_pulls=3000)
    result = drive(study, lambda _: study.problem.censored)
    assert (result.status, result.best, result.ties) == (Status.INDISTINGUISHABLE, None, ())
    assert result.total < 300


def test_nothing_but_missing_readings_decide_nothing():
    result = drive(Study(["A", "B"], max_pulls=300), lambda _: math.nan)
    assert (result.status, result.best) == (Status.INDISTINGUISHABLE, None)
    assert result.total < 300
    assert any(alarm.kind == "missing" for alarm in result.alarms)


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


def test_goal_min_is_the_mirror_image():
    data = tapes(7, {"A": 0.0, "B": 1.0})
    low = from_tapes(Study(["A", "B"], goal="min"), data)
    high = from_tapes(Study(["A", "B"]), {arm: [-x for x in tape] for arm, tape in data.items()})
    assert (low.best, low.total) == (high.best, high.total) == ("A", high.total)
    assert low.arms[0].observed == -high.arms[0].observed


def test_a_minimized_p95_is_decided_by_the_tail():
    rng = np.random.default_rng(8)
    study = Study(["steady", "spiky"], quantile=0.95, goal="min", contamination=0.005)
    result = drive(study, lambda arm: rng.normal(10, 0.1) if arm == "steady" else rng.exponential(6))
    assert result.best == "steady"


def test_the_certificate_verifies_and_a_changed_reading_breaks_it():
    study = Study(["A", "B", "C"])
    result = drive(study, gauss(9, A=1.5, B=0.0, C=0.2))
    readings = study.readings
    assert result.certificate.verify(readings)
    readings["B"][3] += 1e-9
    with pytest.raises(VerificationError, match="digest"):
        result.certificate.verify(readings)


def test_results_round_trip_through_json():
    result = drive(Study(["A", "B", "C"]), gauss(10, A=1.5, B=0.0, C=0.2))
    again = Result.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert again == result


def test_tickets_are_never_handed_out_twice():
    study = Study(["A", "B"])
    tickets = [pull.ticket for _ in range(10) for pull in study.ask(7)]
    assert len(tickets) == len(set(tickets)) == 70


def test_ask_is_empty_while_all_wanted_pulls_are_out():
    study = Study(["A", "B"])
    pulls = study.ask()
    assert len(pulls) == 32
    assert study.ask() == []
    study.tell(pulls[0], 1.0)
    assert study.ask() == []


def test_a_duplicate_tell_is_ignored_and_a_contradiction_changes_nothing():
    study = Study(["A", "B"])
    first, second, *_ = study.ask()
    study.tell(first, 1.0)
    study.tell(first, 1.0)
    study.tell(second, math.nan)
    study.tell(second, math.nan)
    before = study.to_dict()
    with pytest.raises(ProtocolError, match="first value is kept"):
        study.tell(first, 2.0)
    assert study.to_dict() == before


@pytest.mark.parametrize(
    ("ticket", "value", "error", "words"),
    [
        (99, 1.0, ProtocolError, "never handed out"),
        ("A", 1.0, ProtocolError, "never handed out"),
        (0, "fast", InvalidArgument, "must be a number"),
        (0, None, InvalidArgument, "must be a number"),
    ],
)
def test_a_bad_tell_names_the_remedy_and_changes_nothing(ticket, value, error, words):
    study = Study(["A", "B"])
    study.ask()
    before = study.to_dict()
    with pytest.raises(error, match=words):
        study.tell(ticket, value)
    assert study.to_dict() == before


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


def test_arrival_order_inside_a_batch_does_not_matter():
    data = tapes(11, {"A": 0.8, "B": 0.0, "C": 0.1})

    def finish(shuffle):
        study, seen, rng = Study(list(data)), dict.fromkeys(data, 0), random.Random(shuffle)
        while pulls := study.ask():
            answers = []
            for pull in pulls:
                answers.append((pull, data[pull.arm][seen[pull.arm]]))
                seen[pull.arm] += 1
            rng.shuffle(answers)
            for pull, value in answers:
                study.tell(pull, value)
        return study.result.to_dict()

    assert finish(1) == finish(2)


def scramble(study, data, seed, workers=6):
    """Keep several pulls out and answer them in random order."""
    rng, out, seen = random.Random(seed), [], dict.fromkeys(data, 0)
    while not study.done:
        for pull in study.ask(workers - len(out)) if len(out) < workers else ():
            out.append((pull, data[pull.arm][seen[pull.arm]]))
            seen[pull.arm] += 1
        if out:
            study.tell(*out.pop(rng.randrange(len(out))))
    return study


def test_many_workers_and_late_tells_end_in_a_valid_certificate():
    study = scramble(Study(["A", "B", "C"]), tapes(12, {"A": 1.2, "B": 0.0, "C": 0.1}), seed=1)
    assert study.result.best == "A"
    assert verify(study.result, study)
    with pytest.raises(InvalidArgument, match="give its log"):  # it decided while pulls were out
        verify(study.result)


def test_a_pull_that_never_comes_back_does_not_block():
    data = tapes(13, {"A": 1.5, "B": 0.0})
    study, seen = Study(["A", "B"]), {"A": 0, "B": 0}
    lost = study.ask(1)
    while not study.done:
        for pull in study.ask(1):
            study.tell(pull, data[pull.arm][seen[pull.arm]])
            seen[pull.arm] += 1
    assert study.result.best == "A"
    assert study.readings[lost[0].arm][0] is None
    assert verify(study.result, study)


def test_a_tell_after_the_end_is_kept_out_of_the_decision():
    study = Study(["A", "B"])
    late = study.ask(1)[0]
    draw = gauss(14, A=2.0, B=0.0)
    while not study.done:
        for pull in study.ask(1):
            study.tell(pull, draw(pull.arm))
    study.tell(late, 3.0)
    assert verify(study.result, study)


def test_ask_for_n_keeps_n_workers_busy():
    study = Study(["A", "B"], max_pulls=1000)
    assert len(study.ask(500)) == 500
    assert len(study.ask(600)) == 500
    assert study.ask(1) == []


def test_the_budget_is_never_exceeded():
    study = Study(["A", "B", "C"], contamination=None, max_pulls=77)
    result = drive(study, gauss(15, A=0.0, B=0.0, C=0.0))
    assert result.total == 77


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


def test_counts_and_arrays_decide_as_single_pulls_do():
    data = tapes(16, {"A": 0.6, "B": 0.0, "C": 0.1})
    single = from_tapes(Study(list(data)), data)
    study, seen = Study(list(data)), dict.fromkeys(data, 0)
    while counts := study.ask_counts():
        study.tell_arrays({arm: data[arm][seen[arm] : seen[arm] + n] for arm, n in counts.items()})
        seen = {arm: seen[arm] + counts.get(arm, 0) for arm in seen}
    assert study.result.to_dict() == single.to_dict()


def test_too_many_readings_in_an_array_change_nothing():
    study = Study(["A", "B"])
    study.ask_counts()
    before = study.to_dict()
    for bad in ({"A": [1.0] * 16, "B": [1.0] * 17}, {"X": [1.0]}, {"A": ["x"]}):
        with pytest.raises((ProtocolError, InvalidArgument)):
            study.tell_arrays(bad)
    assert study.to_dict() == before


@pytest.mark.parametrize("seed", [None, 3])
def test_replaying_the_log_repeats_the_study(seed):
    study = scramble(Study(["A", "B", "C"], seed=seed), tapes(17, {"A": 0.9, "B": 0.0, "C": 0.1}), seed=2)
    again = Study.from_dict(json.loads(json.dumps(study.to_dict())))
    assert again.result.to_dict() == study.result.to_dict()
    assert again.readings == study.readings


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


def test_copies_of_a_study_share_nothing():
    study = Study(["A", "B"], seed=1)
    drive_some(study, 20)
    kept, before = copied(study), {arm: list(tape) for arm, tape in study.readings.items()}
    drive_some(study, 40)
    assert kept.readings == before
    assert verify(drive(kept, gauss(2, A=3, B=0)).to_dict(readings=True), kept)
    assert verify(drive(study, gauss(3, A=3, B=0)).to_dict(readings=True), study)


def drive_some(study, n):
    draw = gauss(1, A=3, B=0)
    for pull in study.ask(n):
        study.tell(pull, draw(pull.arm))


@pytest.mark.parametrize("value", [Decimal("1e999"), -Decimal("1e400"), np.longdouble("1e4000")])
def test_what_is_beyond_the_largest_number_is_no_time_out(value):
    study = Study(["A", "B"], seed=1)
    with pytest.raises(InvalidArgument, match="beyond the largest number"):
        study.tell(study.ask(1)[0], value)


def test_a_half_finished_study_goes_on_from_its_log_or_its_pickle():
    data = tapes(18, {"A": 0.9, "B": 0.0})
    study = Study(["A", "B"])
    for pull in study.ask(21)[:20]:
        study.tell(pull, data[pull.arm][0])
    study.release(20)
    for copy in (Study.from_dict(study.to_dict()), pickle.loads(pickle.dumps(study))):
        assert copy.to_dict() == study.to_dict()
        assert copy.ask(30) == pickle.loads(pickle.dumps(study)).ask(30)


def test_a_seed_shuffles_reproducibly():
    orders = [[p.arm for p in Study(["A", "B", "C"], seed=s).ask()] for s in (1, 1, 2, None)]
    assert orders[0] == orders[1] != orders[2]
    assert orders[3][:6] == ["A", "B", "C", "A", "B", "C"]


def test_stop_ends_with_what_is_known():
    study = Study(["A", "B"])
    for pull in study.ask(20):
        study.tell(pull, 1.0)
    study.stop()
    assert (study.result.status, study.ask()) == (Status.EXHAUSTED, [])


def test_clairvoyant_and_dependent_arms_need_more_evidence():
    data = tapes(19, {"A": 1.5, "B": 0.0})
    causal = Contamination(0.05, "prescient", causal=True)
    totals = [
        from_tapes(Study(["A", "B"], contamination=c, dependent_arms=d), data).total
        for c, d in ((causal, False), (Contamination(0.05, "prescient"), False), (0.05, True))
    ]
    assert totals[0] < totals[1] < totals[2]


def test_standing_names_the_leader_and_the_evidence():
    study = Study(["A", "B"])
    for pull in study.ask():
        study.tell(pull, 1.0 if pull.arm == "A" else 0.0)
    standing = study.standing
    assert standing.leader == "A"
    assert set(standing.alive) <= {"A", "B"}
    assert standing.log_threshold == pytest.approx(math.log(20))


def test_repr_is_plain():
    assert repr(Study(["A", "B"])) == "Study(['A', 'B'], pulls=0, done=False)"


def test_a_pull_is_a_plain_tuple():
    assert Study(["A", "B"]).ask(1) == [Pull(0, "A")]


def test_a_policy_of_the_paper_is_certified_when_its_readings_certify_it():
    regularity = Regularity(B=4.3, m2=0.7, reach=0.2)
    study = Study(["A", "B"], policy="elimination", regularity=regularity, contamination=0.05)
    result = drive(study, gauss(20, A=3.0, B=0.0), limit=10**6)
    assert (result.status, result.best) == (Status.CERTIFIED, "A")
    assert result.breakdown.oblivious >= 0.05
    assert result.certificate.verify(study.readings)


@pytest.mark.parametrize("seed", range(5))
def test_two_asks_in_a_row_are_one(seed):
    values = np.random.default_rng(seed).normal(size=(3, 500)) + np.array([[0.3], [0.0], [0.0]])
    split, whole = (Study(["A", "B", "C"], contamination=None) for _ in range(2))
    for _ in range(12):
        first = split.ask(5) + split.ask(3) + split.ask(1)
        assert first == whole.ask(9)
        for pull in first[::2]:
            for study in (split, whole):
                study.tell(pull, values["ABC".index(pull.arm), study.draw(pull)])


def test_an_ask_that_hands_out_nothing_decides_nothing():
    study = Study(["A", "B"], contamination=None, max_pulls=40)
    pulls = study.ask(40)
    for i, pull in enumerate(pulls[:-1]):
        study.tell(pull, 100.0 * (pull.arm == "A") + i)
        assert study.ask(3) == []
    assert not study.done
    assert Study.from_dict(study.to_dict()).to_dict() == study.to_dict()


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


def test_a_study_that_was_stopped_and_so_decided_comes_back_decided():
    study = Study(["A", "B"], contamination=None)
    for i, pull in enumerate(study.ask(60)[:-1]):
        study.tell(pull, 100.0 * (pull.arm == "A") + 37 * i % 61)
    study.stop()
    assert study.result.status.value == "separated"
    assert Study.from_dict(study.to_dict()).result.best == "A"


def twins(seed, **options):
    draw, study = random.Random(seed), Study(["A", "B"], contamination=0.2, **options)
    while pulls := study.ask():
        for pull in pulls:
            study.tell(pull, draw.gauss(0, 1))
    return study


def test_a_spent_budget_says_so_if_more_could_not_help():
    enough = twins(4).pulls
    assert twins(4, max_pulls=int(0.985 * enough)).result.status.value == "indistinguishable"
    assert twins(4, max_pulls=enough // 2).result.status.value == "exhausted"


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
    assert Study.from_dict(study.to_dict()).result == result
    assert Result.from_dict(result.to_dict()) == result


def test_a_pull_that_is_never_told_does_not_blind_the_study():
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


def pulled_on(study, times, seed):
    draw = random.Random(seed)
    for _ in range(times):
        pulls = study.ask(5)
        for pull in pulls[:3]:
            study.tell(pull, draw.gauss(3 if pull.arm == "A" else 0, 1))
        for pull in pulls[3:4]:
            study.release(pull)


@pytest.mark.parametrize("options", [{}, {"rounds": True}, {"policy": "lucb"}, {"seed": 3}], ids=str)
def test_a_copy_goes_its_own_way(options):
    study = Study(["A", "B", "C"], **options)
    pulled_on(study, 30, 1)
    before, kept = study.to_dict(), pickle.loads(pickle.dumps(study))
    copy = copied(study)
    pulled_on(copy, 60, 2)
    copy.stop()
    assert study.to_dict() == before
    pulled_on(study, 60, 3)
    pulled_on(kept, 60, 3)
    assert study.to_dict() == kept.to_dict()
    pulled_on(again := Study.from_dict(before), 60, 2)
    again.stop()
    assert (copy.to_dict(), copy.result.to_dict()) == (again.to_dict(), again.result.to_dict())
