"""The client and the worker against a real server: a loop moves from one machine to many by changing one line."""

import math
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import truearm as ta
from truearm.events import Noted
from truearm.service.access import create_token
from truearm.service.client import Client, ServiceError
from truearm.store import Database

from .serving import SOURCE, Server


def loop(study, seed=1):
    draw = random.Random(seed)
    while pulls := study.ask():
        for pull in pulls:
            study.tell(pull, draw.gauss(10 if pull.arm == "A" else 8, 1))
    return study.result


def test_one_line_moves_a_loop_to_a_server(server):
    here = loop(ta.Study(["A", "B"], goal="max"))
    with Client(server.url, "moved", ["A", "B"], goal="max") as study:
        there = loop(study)
        assert (there.best, there.status) == (here.best, here.status) == ("A", ta.Status.CERTIFIED)
        assert study.done
        assert "moved" in repr(study)
        there.certificate.verify(there.readings)


def test_readings_travel_as_they_are(server):
    with Client(server.url, "values", ["A", "B"]) as study:
        pulls = study.ask(4)
        study.tell_many(
            list(zip(pulls, [math.nan, math.inf, -0.0, Noted(0.1, {"host": "ü", "n": 10**30})], strict=True))
        )
        study.release(study.ask(1)[0])
        replayed = study.replayed()
        assert repr(replayed.readings) == "{'A': [nan, -0.0], 'B': [inf, 0.1]}"
        assert list(replayed.events())[-3].notes == {"host": "ü", "n": 10**30}
        with pytest.raises(ta.ProtocolError, match=r"told as 0[.]1 and now as 7"):
            study.tell(pulls[3], 7.0)
        study.stop()
        assert study.result.status is ta.Status.EXHAUSTED


def test_what_cannot_be_is_said(server):
    for given, says in (
        ({"url": "localhost:8000"}, r"url must be such as.* but got 'localhost:8000'; write http:// or https://"),
        ({"url": "file:///x"}, r"but got 'file:///x'; write"),
        ({"url": "http://[x"}, "url must be such as"),
        ({"url": 5}, "url must be such as"),
        ({"goal": "min"}, "goal define a new study"),
        ({"arms": "AB"}, "arms must be a list of names"),
        ({"study": ""}, "study must be the name of one, but got ''"),
        *(({name: 5}, f"{name} must be text, but got 5") for name in ("study", "worker", "token")),
    ):
        with pytest.raises(ta.InvalidArgument, match=says):
            Client(**{"url": server.url, "study": "x", **given})
    with pytest.raises(ServiceError, match="there is no study 'nowhere'") as caught:
        Client(server.url, "nowhere").ask()
    assert caught.value.status == 404
    with pytest.raises(ServiceError, match="arms may be 500 at most"):
        Client(server.url, "y", [str(i) for i in range(501)])


def test_a_server_that_is_away_for_a_while_is_waited_for(tmp_path):
    with Server(tmp_path / "s.db") as first, Client(first.url, "away", ["A", "B"]) as study:
        port = int(first.url.rpartition(":")[2])
        first.end()
        back = []
        starting = threading.Thread(target=lambda: back.append(Server(tmp_path / "s.db", port=port)))
        starting.start()
        assert study.ask()[0].ticket == 0
        starting.join()
        back[0].end()


def work(server, name, *words, check=True):
    command = [sys.executable, "-m", "truearm", "work", server.url, name, *words]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=check, timeout=120)


def test_a_worker_measures_until_the_study_is_decided(server):
    for other, answer in (("5.0", "5 and 5.0 tie"), ("1", "5 is best")):
        study = Client(server.url, f"beside-{other[0]}", ["5", other], contamination=0.02)
        done = work(server, study.name, "-q", "--", "echo", "{arm}")
        assert done.stdout.endswith(f"The study is done: certified, {answer}.\n")
    notes = list(study.replayed().events())[-1].notes
    assert (notes["exit_code"], "host" in notes) == (0, True)


def test_a_program_that_is_not_there_is_told_before_a_pull_is_lost(server):
    study = Client(server.url, "nothing", ["1", "5"])
    done = work(server, "nothing", "--", "./no-such-program", "{arm}", check=False)
    assert done.returncode == 2
    assert "there is no program './no-such-program' here" in done.stderr
    assert study.state["pulls"] == 0


def test_a_run_that_failed_is_told_before_the_work_ends(server):
    study = Client(server.url, "failing", ["0", "1"], rounds=True)
    done = work(server, "failing", "--", "sh", "-c", "exit 3 # {arm}", check=False)
    assert done.returncode == 2
    assert "ended with exit code 3" in done.stderr
    assert [str(value) for tape in study.readings.values() for value in tape] == ["nan"]
    assert study.state["out"] == []


def test_a_run_that_takes_too_long_is_the_worst(server):
    study = Client(server.url, "late", ["5", "6"])
    work(server, "late", "--timeout", "0.05", "-M", "1", "--", "sleep", "{arm}")
    assert study.readings["5"] == [-math.inf]


ODD = [
    *((("sh", "-c", "{arm}"), name) for name in ("$(touch {0}/a)", "a b")),
    (("echo", "{arm}"), "--help"),
    *(((*before, "{arm}"), "{0}/run") for before in (["nice"], ["env", "X=1"], ["sh"])),
    (("nice {arm}",), "./run"),
]


@pytest.mark.parametrize(("words", "odd"), ODD, ids=str)
def test_a_name_from_the_server_is_used_only_if_it_is_plain(server, tmp_path, words, odd):
    """The author of a study chooses the names, and commands such as ssh and nice run their arguments."""
    arm = odd.format(tmp_path)
    study = Client(server.url, f"odd-{ODD.index((words, odd))}", ["Süß", arm])
    done = work(server, study.name, "-i", "-M", "3", "--", *words, check=False)
    assert done.returncode == 2
    assert f"arm {arm!r} is not a plain name" in done.stderr
    assert "--any-name" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert study.state["pulls"] == 0


CODE = [
    (("sh", "-c", "echo 1; : {arm}"), "would become code"),
    (("python3 -c 'print(len(\"{arm}\"))'",), "would become code"),
    (("sh", "-c", 'echo 1; : "$1"', "sh", "{arm}"), ""),
    (("echo 1; : {arm} | cat",), ""),
    (("echo", "1", "--of={arm}"), ""),
]


@pytest.mark.parametrize(("words", "message"), CODE, ids=str)
def test_any_name_is_still_never_written_into_code(server, tmp_path, words, message):
    name = f"code-{CODE.index((words, message))}"
    arms = [f"$(touch {tmp_path}/a)", f"; touch {tmp_path}/b", f"'; touch {tmp_path}/c '"]
    Client(server.url, name, arms)
    done = work(server, name, "--any-name", "-i", "-M", "3", "--", *words, check=False)
    assert done.returncode == (2 if message else 0), done.stderr
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("{arm}",), ("./{arm}", "x"), ("X=1 {arm}",), ("VAR={arm} env",)], ids=str)
@pytest.mark.parametrize("more", [(), ("--any-name",)])
def test_the_arm_is_never_the_program_and_no_shell_is_used(server, words, more):
    Client(server.url, "program", ["true", "false"])
    done = work(server, "program", *more, "--", *words, check=False)
    assert done.returncode == 2
    assert ("{arm} cannot be the program" in done.stderr) == ("{arm}" in " ".join(words).split()[0])
    assert Client(server.url, "program").state["pulls"] == 0


def test_a_reading_of_another_arm_is_refused(server):
    """A restored log may issue a ticket again for another arm than the one that a worker still holds."""
    with Client(server.url, "restored", ["A", "B"]) as study:
        pull = study.ask()[0]
        with pytest.raises(ta.ProtocolError, match="ticket 0 is of arm 'A', but got arm 'B'; ask again"):
            study.tell(pull._replace(arm="B"), 1.0)
        study.tell(pull, 1.0)
        study.tell(0, 1.0)


def test_an_answer_that_was_lost_changes_nothing(server):
    """Each request is sent again, as a client does that has not heard the answer."""
    with Client(server.url, "heard", ["A", "B"]) as study:
        once = study._call
        study._call = lambda *request: (once(*request), once(*request))[1]
        pulls = study.ask(3)
        study.tell(pulls[0], math.nan)
        study.release(pulls[1])
        study.stop()
        kinds = [event[0] for event in map(ta.events.to_row, study.replayed().events())]
        assert kinds == ["issued"] * 3 + ["told", "released", "stopped"]


def test_a_passive_study_is_not_replayed(server):
    study = Client(server.url, "unasked", ["A", "B"], passive=True)
    with pytest.raises(ta.ProtocolError, match="is passive and has no pulls to replay; its report has result"):
        study.readings  # noqa: B018


def test_a_worker_says_that_it_waits_for_a_server():
    command = [sys.executable, "-m", "truearm", "work", "http://127.0.0.1:1", "late", "--", "echo", "{arm}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline() == (
            "http://127.0.0.1:1 does not answer; trying for a minute (Ctrl-C to stop).\n"
        )
        process.kill()


OPTIONS = [
    {"contamination": ta.Contamination(0.1, "malicious")},
    {"contamination": ta.Contamination(0.1, "prescient", causal=True, error=0.01)},
    {"contamination": ta.audit(200, 0)},
    {"contamination": None},
    {"contamination": np.float32(0.1)},
    {"tolerance": ta.Tolerance(0.07, relative=True)},
    {"tolerance": "2%"},
    {"tolerance": np.float64(0.5), "delta": np.float32(0.01), "quantile": np.float32(0.75)},
    {"between": (0, math.inf)},
    {"at_most": np.int64(200)},
    {"max_pulls": np.int64(50), "seed": np.int32(3)},
    {"policy": "lucb"},
    {"rounds": True, "contamination": "blind"},
    {"rounds": True, "contamination": 0.05},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_client_takes_what_a_study_takes(server, options):
    here = ta.Study(("A", "B"), **options).definition
    with Client(server.url, f"takes-{OPTIONS.index(options)}", ("A", "B"), **options) as study:
        there = study.replayed().definition
    for one in (here, there):  # it travels in percent
        one["problem"]["tolerance"]["amount"] = pytest.approx(one["problem"]["tolerance"]["amount"], rel=1e-14)
    assert there == here


WRONG = [
    ({"delta": 7}, "delta must be in"),
    ({"goal": "up"}, "goal must be 'max' or 'min'"),
    ({"regularity": ta.Regularity(B=4.7, m2=0.7, reach=0.25)}, "regularity is an unexpected keyword"),
    ({"rounds": True, "score_range": (0, 1)}, "score_range is an unexpected keyword argument"),
    ({"policy": "uniform"}, "policy must be 'toptwo' or 'lucb' on a server, but got 'uniform'"),
    ({"policy": ta.policies.by_name("elimination", constants="paper")}, "policy must be 'toptwo' or 'lucb'"),
    ({"gaol": "max"}, "gaol is an unexpected keyword argument; did you mean goal"),
    ({"lease": -1}, "lease must be a number > 0"),
    ({"passive": "no"}, 'passive must be true or false, but got "no"'),
]


@pytest.mark.parametrize(("options", "said"), WRONG, ids=str)
def test_what_a_study_refuses_a_client_refuses_in_the_same_words(server, options, said):
    with pytest.raises(ta.InvalidArgument, match=said):
        Client(server.url, "refused", ["A", "B"], **options)


@pytest.mark.parametrize(
    "value",
    [None, "abc", pytest.param(10**400, id="huge"), [1, 2, 3], Noted(1.0, {"x": math.nan}), Noted(1, {"x": {1}})],
)
def test_what_is_no_reading_is_an_invalid_argument(server, value):
    with Client(server.url, "readings", ["A", "B"]) as study:
        pull = study.ask()[0]
        with pytest.raises(ta.InvalidArgument, match="notes must be" if isinstance(value, Noted) else "value of"):
            study.tell(pull, value)
        with pytest.raises(ta.InvalidArgument, match="readings must be pairs of a pull and its value"):
            study.tell_many([value])
        assert pull.ticket in {out["ticket"] for out in study.state["out"]}


def test_more_readings_than_a_batch_go_in_several(server):
    with Client(server.url, "batches", ["A", "B"], delta=1e-9) as study:
        pulls = study.ask(2300)
        assert [pull.ticket for pull in pulls] == list(range(1000))
        assert study.ask(2300) == pulls
        with Client(server.url, "batches", worker="other") as other:
            pulls += other.ask(5)
        study.tell_many([(pull, 1.0) for pull in pulls[:1001]])
        with pytest.raises(ta.ProtocolError, match=r"ticket 0 .*\n.*ticket 1000 "):
            study.tell_many([(pull, 2.0 if pull.ticket in (0, 1000) else 1.0) for pull in pulls])
        assert study.state["out"] == []


def test_served_rounds_are_blind_by_the_users_word(server):
    """A worker gets a whole round at once, so truearm does not know in which order it runs."""
    with Client(server.url, "blind", ["A", "B"], rounds=True) as study:
        while pulls := study.ask(2):
            study.tell_many([(pull, 1.0 if pull.arm == "A" else 0.0) for pull in pulls])
        found = study.result
        assert (found.best, found.problem.is_blind, found.conditions["order"]) == ("A", True, "parallel")
        assert ta.verify(found, study.replayed())


def test_workers_join_by_the_line_that_began_the_study(tmp_path):
    """docs/service.md: whoever comes first begins the study, all others join it."""
    path = tmp_path / "studies.db"
    database = Database(str(path))
    owner, worker, viewer = (create_token(database, role, "taste") for role in ("admin", "worker", "viewer"))
    stranger, anybody = create_token(database, "worker", "other"), create_token(database, "worker")
    database.close()
    arms = ["a", "b"]
    options = {"tolerance": ta.Tolerance(0.07, relative=True), "goal": "min", "lease": 60, "title": "Tea"}
    with Server(path) as server:
        for token in (worker, anybody):
            with pytest.raises(ServiceError, match="there is no study 'taste' yet, and this needs the role admin"):
                Client(server.url, "taste", arms, token=token, **options)
        with pytest.raises(ServiceError, match="the token is for study 'taste' only; create that one") as caught:
            Client(server.url, "another", arms, token=owner)
        assert caught.value.status == 403
        for token in (owner, worker, viewer, anybody):
            assert Client(server.url, "taste", arms, token=token, **options).state["title"] == "Tea"
        assert Client(server.url, "taste", arms, token=worker, **options).ask()[0].arm == "a"
        with pytest.raises(ServiceError, match=r"another definition: it differs in goal; remove") as caught:
            Client(server.url, "taste", arms, token=worker, **{**options, "goal": "max"})
        assert caught.value.status == 409
        with pytest.raises(ServiceError, match=r"differs in arms; remove arms and options to join it"):
            Client(server.url, "taste", ["a", "c"], token=worker, **options)
        with pytest.raises(ServiceError, match=r"differs in lease; "):
            Client(server.url, "taste", arms, token=worker, **{**options, "lease": 3600})
        with pytest.raises(ServiceError, match="the token is for worker of study 'other'"):
            Client(server.url, "taste", arms, token=stranger, **options)


def test_a_worker_without_a_token_is_told_how_to_pass_one(tmp_path):
    database = Database(str(tmp_path / "s.db"))
    create_token(database, "admin")
    database.close()
    with Server(tmp_path / "s.db") as server:
        done = work(server, "any", "--", "echo", "{arm}", check=False)
    assert done.returncode == 2
    assert "set TRUEARM_TOKEN" in done.stderr
