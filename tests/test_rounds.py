"""Studies in rounds: what is asked, what counts, what is certified, and what is refused."""

import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import loads
import truearm as ta
from truearm import Contamination, Study, find_best
from truearm.claims.certificate import Certificate, Status
from truearm.claims.plain import from_plain
from truearm.claims.result import Analysis
from truearm.cli.race import race_command
from truearm.cli.race_options import RaceOptions
from truearm.errors import InvalidArgument, VerificationError
from truearm.policies.paired import Paired
from truearm.run import resume_study
from truearm.store import Store
from truearm.verification import verify


def answered(study, tapes):
    """Tell every pull the reading of its round, until the study is done."""
    while pulls := study.ask():
        for pull in pulls:
            study.tell(pull, float(tapes[pull.arm][study.draw(pull)]))
    return study


def apart(gap, rounds=600, seed=1, load=loads.wander):
    """Return run times of A, and of B that takes longer by a share."""
    quick, slow = loads.side_by_side(load, (1.0, 1.0 + gap), rounds, np.random.default_rng(seed))
    return {"A": quick, "B": slow}


def test_ask_returns_rounds_in_shuffled_order():
    study, orders = Study(["A", "B", "C"], rounds=True), set()
    for _ in range(20):
        pulls = study.ask()
        assert sorted(pull.arm for pull in pulls) == ["A", "B", "C"]
        assert len({study.draw(pull) for pull in pulls}) == 1
        orders.add(tuple(pull.arm for pull in pulls))
        for pull in pulls:
            study.tell(pull, math.sin(pull.ticket**2))
    assert len(orders) > 3
    pulls = study.ask(4)  # single pulls belong to rounds too
    assert ([study.draw(pull) for pull in pulls], study.in_round) == ([20, 20, 20, 21], True)
    first, again, other = (Study(list("ABCDEF"), rounds=True, seed=seed).ask() for seed in (5, 5, 6))
    assert first == again != other


def test_an_arm_that_is_rejected_is_in_no_later_round():
    tapes = {
        "A": np.arange(200.0),
        "B": np.arange(200.0) - 0.5 * (np.arange(200) % 5 > 0),
        "C": np.arange(200.0) - 9,
    }
    found = answered(Study(["A", "B", "C"], rounds=True), tapes).result
    assert found.best == "A"
    assert found.pulls["C"] < found.pulls["B"] == found.pulls["A"]


@pytest.mark.parametrize(
    ("gap", "load", "setting", "status"),
    [
        (0.05, loads.wander, {}, "certified"),
        (0.05, loads.ramp, {}, "certified"),
        (0.05, loads.wander, {"contamination": None}, "separated"),
        (0.005, loads.wander, {"tolerance": "3%"}, "tolerable"),
        (0.0, loads.wander, {"contamination": 0.05}, "indistinguishable"),
        (0.0, loads.wander, {"max_pulls": 21}, "exhausted"),
        (0.05, loads.wander, {"contamination": Contamination(0.02, "malicious")}, "certified"),
    ],
)
def test_a_study_ends_as_it_should_in_whole_rounds_and_verifies(gap, load, setting, status):
    study = answered(Study(["A", "B"], rounds=True, goal="min", **setting), apart(gap, rounds=4000, load=load))
    found = study.result
    assert found.status.value == status
    assert found.pulls["A"] == found.pulls["B"]
    assert not [alarm for alarm in found.alarms if alarm.kind == "dependence"]
    assert found.certificate.verify(found.readings)
    assert ta.Result.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert found.to_dict()["target"] == "wins"


def test_a_certificate_needs_the_rounds_as_they_were():
    found = answered(Study(["A", "B"], rounds=True, goal="min"), apart(0.05)).result
    swapped = {**found.readings, "B": found.readings["B"][::-1]}
    with pytest.raises(VerificationError, match="digest"):
        found.certificate.verify(swapped)
    plain = found.to_dict()["certificate"]
    plain["digest"] = ta.Result.from_dict(found.to_dict()).certificate.digest
    forged = {**plain, "claims": [{**plain["claims"][0], "arm": "A", "leader": "B"}], "best": "B"}
    with pytest.raises(VerificationError, match="best is 'B', but the readings give 'A'"):
        from_plain(Certificate, forged).verify(found.readings)


def test_a_log_replays(tmp_path):
    tapes = apart(0.05)
    study = Study(["A", "B"], rounds=True, goal="min", seed=3)
    for _ in range(7):
        for pull in study.ask():
            study.tell(pull, float(tapes[pull.arm][study.draw(pull)]))
    half = study.ask(1)
    again = Study.from_dict(json.loads(json.dumps(study.to_dict())))
    assert again.out == half
    for one in (study, again, pickle.loads(pickle.dumps(study))):
        one.tell(half[0], float(tapes[half[0].arm][7]))
        answered(one, tapes)
    assert again.result == study.result
    with Store(tmp_path / "run.db") as store:
        store.create(study.definition)
        store.append(list(study.events()))
        assert resume_study(store).result == study.result


def test_a_pending_pull_counts_for_no_arm():
    study = Study(["A", "B"], rounds=True, contamination=None)
    late = study.ask()
    for _ in range(7):
        for pull in study.ask(2):
            study.tell(pull, 2.0 if pull.arm == "A" else 1.0)
    before = study.standing.against["B"]
    for pull in late:
        study.tell(pull, 2.0 if pull.arm == "A" else 1.0)
    study.ask(2)
    assert study.standing.against["B"] > before


def test_a_pull_that_never_began_is_not_taken_up_later():
    study = Study(["A", "B"], rounds=True)
    first, second = study.ask()
    study.tell(first, 1.0)
    study.release(second)
    assert {study.draw(pull) for pull in study.ask()} == {1}
    assert study.readings[second.arm] == [None, None]
    assert Study.from_dict(study.to_dict()).readings == study.readings


def test_threads_may_work_on_rounds(tmp_path):
    arms, log = {"A": lambda: 2.0, "B": lambda: 1.0}, tmp_path / "run.db"
    found = find_best(arms, rounds=True, progress=False, executor=ThreadPoolExecutor(3), store=log)
    assert found.best == "A"
    with Store(log) as store:
        assert ta.verify(found, resume_study(store))


def test_rounds_have_a_policy_of_their_own():
    with pytest.raises(InvalidArgument, match="remove policy"):
        Study(["A", "B"], rounds=True, policy="lucb")
    with pytest.raises(InvalidArgument, match="set rounds=True"):
        Study(["A", "B"], policy="paired")
    assert Study(["A", "B"], rounds=True, policy=Paired(first=3)).ask_counts() == {"A": 3, "B": 3}


def test_missing_and_timed_out_readings_never_win():
    tapes = {"A": np.where(np.arange(300) % 2 > 0, 5.0, np.nan), "B": np.ones(300)}
    assert answered(Study(["A", "B"], rounds=True, max_pulls=600), tapes).result.best is None
    late = {"A": np.full(300, math.inf), "B": np.full(300, math.inf)}
    found = answered(Study(["A", "B"], rounds=True, goal="min"), late).result
    assert found.status is Status.INDISTINGUISHABLE
    beaten = {"A": np.ones(300), "B": np.full(300, math.inf)}
    assert answered(Study(["A", "B"], rounds=True, goal="min"), beaten).result.best == "A"


def test_the_breakdown_point_is_where_the_decision_ends():
    asked = {"frame": apart(0.08, rounds=60), "round": "rows", "goal": "min"}
    points = ta.analyze(**asked, contamination=0.01).breakdown
    near = [ta.analyze(**asked, contamination=points.oblivious + e).best for e in (-1e-4, 1e-4)]
    assert near == ["A", None]
    assert points.malicious == pytest.approx(points.prescient / 2)


ITEMS = np.random.default_rng(2).normal(0, 5, 150)
SCORES = {
    name: ITEMS + np.random.default_rng(seed).normal(gain, 1, 150)
    for seed, (name, gain) in enumerate((("A", 1.5), ("B", 0.0), ("C", -0.5)))
}


def rows(**columns):
    long = [(arm, f"q{i}", x) for arm, tape in SCORES.items() for i, x in enumerate(tape)]
    long = [long[i] for i in np.random.default_rng(1).permutation(len(long))]
    return {"model": [r[0] for r in long], "item": [r[1] for r in long], "score": [r[2] for r in long], **columns}


def test_blocked_data_are_compared_inside_blocks():
    found = ta.analyze(rows(), arm="model", value="score", round="item")
    assert (found.status, found.best) == (Status.CERTIFIED, "A")
    assert ta.analyze(rows(), arm="model", value="score", unit="item").best is None
    wide = ta.analyze(SCORES, round="rows")
    assert (wide.best, dict(wide.pulls)) == ("A", {"A": 150, "B": 150, "C": 150})
    assert wide.better_by == tuple(sorted(found.better_by, key=lambda lead: lead.than))
    assert Analysis.from_dict(found.to_dict()) == found
    few = {name: tape[:32] for name, tape in SCORES.items()}
    fixed, sequential = (ta.analyze(few, round="rows", design=design) for design in ("fixed", "sequential"))
    assert fixed.breakdown.oblivious > (sequential.breakdown.oblivious or 0)
    assert "compare arms inside" not in str(found)
    scores = {**SCORES, "A": np.where(np.arange(150) % 2 > 0, SCORES["A"], np.nan)}  # each counts for the null
    lost = ta.analyze(scores, round="rows")
    assert (lost.best, lost.missing) == (None, {"A": 75, "B": 0, "C": 0})


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"round": "itme"}, "round='itme' is not a column; did you mean 'item'"),
        ({"round": "item", "unit": "item"}, "remove unit"),
        ({"round": "item", "order": "rows"}, "remove order"),
        ({"round": "rows"}, "wide table"),
        ({"round": "item", "quantile": 0.9}, "remove one of them"),
        ({"round": "item", "at_least": 1}, "remove one of them"),
    ],
)
def test_what_does_not_go_with_a_round_is_refused(asked, says):
    with pytest.raises(InvalidArgument, match=says):
        ta.analyze(rows(), arm="model", value="score", **asked)


@pytest.mark.parametrize(
    ("words", "limit"), [([], 180), (["--max-time", "5m"], 300), (["-M", "9"], None), (["-r", "9"], None)]
)
def test_a_race_without_limits_ends_all_the_same(words, limit):
    assert RaceOptions(**race_command.make_context("race", ["a", "b", *words]).params).limit == limit


def test_a_doubt_in_rounds_does_not_advise_rounds():
    rng, steps = np.random.default_rng(2), []
    for _ in range(300):
        steps.append(0.9 * (steps[-1] if steps else 0.0) + rng.normal())
    study = Study(["A", "B"], rounds=True)
    while counts := study.ask_counts():
        done = study.pulls // 2 - counts["A"]
        if done + counts["A"] > 300:
            study.stop()
            break
        study.tell_arrays({"A": steps[done : done + counts["A"]], "B": rng.normal(size=counts["B"])})
    found = study.result
    assert found.status is Status.DOUBTFUL
    assert "Leave more time between rounds" in str(found)
    assert "rounds=True" not in str(found)


@pytest.mark.parametrize("seed", range(8))
def test_rounds_that_lost_a_pull_before_it_began_are_verified(seed):
    """A place that was let go stays empty, and the tapes alone say so: others came after it."""
    rng, study = np.random.default_rng(seed), Study(["A", "B", "C"], rounds=True, max_pulls=600)
    released = 0
    while pulls := study.ask():
        for pull in pulls:
            if rng.random() < 0.1:
                study.release(pull)
                released += 1
            else:
                study.tell(pull, float(rng.normal(2 * (pull.arm == "B"))))
    data = json.loads(json.dumps(study.result.to_dict(readings=True)))
    assert released > 0
    assert not data["certificate"]["origin"]["overlapping"]
    assert verify(data)
    data["readings"]["B"][data["readings"]["B"].index(max(x for x in data["readings"]["B"] if x))] = None
    with pytest.raises(VerificationError):
        verify(data)
