"""One server, asked over HTTP: what each route answers, and what it says when a request is wrong."""

import csv
import io
import json
import math
import re
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from truearm.service import answers
from truearm.service.models import ArmReading, NewStudy, PullReading, Refused
from truearm.study import Study

from .serving import hosting


def begun(http, name, **more):
    body = {"arms": ["A", "B"], "id": name, **more}
    answer = http.post("/studies", json=body)
    assert answer.status_code in (200, 201), answer.text
    return f"/studies/{name}"


def asked(http, place, worker="ann", n=1):
    return http.post(f"{place}/ask", json={"worker": worker, "n": n}).json()["pulls"]


def told(http, place, *readings):
    body = {"readings": [{"ticket": ticket, "value": value} for ticket, value in readings]}
    return http.post(f"{place}/tell", json=body).json()["outcomes"]


def test_a_study_is_begun_once(http):
    body = {"arms": ["A", "B"], "id": "once"}
    first, again = http.post("/studies", json=body), http.post("/studies", json=body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.headers["location"] == "/studies/once"
    other = http.post("/studies", json={**body, "goal": "min"})
    assert other.status_code == 409
    assert "'once' is the name of another study" in other.json()["detail"]


def test_asking_again_gives_the_same_pulls(http):
    place = begun(http, "again")
    first = asked(http, place, n=2)
    assert asked(http, place, n=2) == first
    assert {pull["ticket"] for pull in asked(http, place, "bob")} == {2}
    assert told(http, place, (0, 1.0))[0]["outcome"] == "told"
    assert [pull["ticket"] for pull in asked(http, place, n=2)] == [1, 3]


def test_a_lease_that_ends_frees_the_worker_and_not_the_pull(http):
    place = begun(http, "leased", lease=0.001)
    assert [asked(http, place)[0]["ticket"] for _ in range(3)] == [0, 1, 2]
    assert [pull["ticket"] for pull in http.get(place).json()["out"]] == [0, 1, 2]
    assert told(http, place, (0, 1.0))[0]["outcome"] == "told"


def release(http, place, *tickets, **worker):
    found = http.post(f"{place}/release", json={"tickets": tickets, **worker}).json()["outcomes"]
    return [item["outcome"] for item in found]


def test_only_a_pull_that_never_started_goes_out_again(http):
    place = begun(http, "released")
    asked(http, place, n=2)
    told(http, place, (0, 1.0))
    assert release(http, place, 0, 1, 7) == ["refused", "released", "refused"]
    assert release(http, place, 1) == ["known"]
    assert asked(http, place)[0] | {"until": 0} == {"ticket": 2, "arm": "B", "worker": "ann", "until": 0}


def test_a_pull_that_another_worker_has_is_not_released(http):
    """Otherwise the reading that worker is about to send would be lost."""
    place = begun(http, "held")
    asked(http, place)
    assert release(http, place, 0, worker="bob") == ["refused"]
    assert told(http, place, (0, 1.0))[0]["outcome"] == "told"
    asked(http, place)
    assert release(http, place, 1, worker="ann") == ["released"]
    short = begun(http, "short", lease=0.001)
    asked(http, short)
    assert release(http, short, 0, worker="bob") == ["released"]


def test_each_reading_has_an_outcome_of_its_own(http):
    place = begun(http, "outcomes")
    asked(http, place, n=4)
    found = told(http, place, (0, 1.5), (0, 1.5), (0, 2.5), (99, 1.0), (1, "inf"), (2, None))
    assert [item["outcome"] for item in found] == ["told", "known", "refused", "refused", "told", "told"]
    assert "was told as 1.5 and now as 2.5" in found[2]["detail"]
    assert [arm["told"] for arm in http.get(place).json()["arms"]] == [2, 1]


def test_a_round_goes_to_one_worker(http):
    place = begun(http, "rounds", rounds=True, arms=["A", "B", "C"])
    first, other = asked(http, place), asked(http, place, "bob")
    assert sorted(pull["arm"] for pull in first) == sorted(pull["arm"] for pull in other) == ["A", "B", "C"]
    told(http, place, (first[0]["ticket"], 1.0))
    assert asked(http, place) == first[1:]


def run(http, place):
    while pulls := asked(http, place, n=8):
        told(http, place, *((p["ticket"], math.sin(p["ticket"]) + (3 if p["arm"] == "A" else 0)) for p in pulls))


def test_a_study_is_decided_as_its_replay_is(http):
    place = begun(http, "decided", title="Which tastes better?")
    run(http, place)
    state = http.get(place).json()
    assert (state["done"], state["result"]["status"], state["result"]["best"]) == (True, "certified", "A")
    log = http.get(f"{place}/log").json()
    rows = [[e["kind"], e["ticket"], e["arm"], e["draw"], e["value"], e["notes"]] for e in log["events"]]
    replayed = Study.from_dict({**json.loads(log["definition"]), "events": rows})
    assert replayed.result.to_dict() == {key: state["result"][key] for key in replayed.result.to_dict()}
    assert asked(http, place) == []


def test_an_unchanged_study_is_not_sent_again(http):
    place = begun(http, "tagged")
    tag = http.get(place).headers["etag"]
    for known in (tag, f"W/{tag}"):
        assert http.get(place, headers={"If-None-Match": known}).status_code == 304
    asked(http, place)
    assert http.get(place, headers={"If-None-Match": tag}).status_code == 200


def test_a_stopped_study_hands_out_nothing(http):
    place = begun(http, "stopped")
    asked(http, place)
    assert http.post(f"{place}/stop").json()["done"]
    assert http.post(f"{place}/stop").json()["done"]
    assert asked(http, place) == []
    assert told(http, place, (0, 1.0))[0]["outcome"] == "told"
    assert http.get(place).json()["result"]["status"] == "exhausted"


def test_a_spent_budget_is_no_end_while_a_pull_is_lost(http):
    """As docs/service.md says, with the two ways out of it."""
    for name, end in (("spent", "tell"), ("ended", "stop")):
        place = begun(http, name, max_pulls=30, contamination=0.4)
        lost = asked(http, place, "crashed", 5)
        while pulls := asked(http, place):
            told(http, place, *((pull["ticket"], pull["ticket"] % 7) for pull in pulls))
        state = http.get(place).json()
        assert (state["done"], state["result"], state["out"]) == (False, None, lost)
        if end == "tell":
            told(http, place, *((pull["ticket"], None) for pull in lost))
        else:
            http.post(f"{place}/stop")
        assert http.get(place).json()["result"]["status"] == "exhausted"


def test_readings_come_as_tables(http):
    place = begun(http, "tables", arms=["=A", "B"])
    asked(http, place, n=3)
    told(http, place, (1, "nan"), (0, 1.5))
    rows = list(csv.DictReader(io.StringIO(http.get(f"{place}/readings.csv").text)))
    assert [(row["ticket"], row["arm"], row["draw"], row["value"]) for row in rows] == [
        ("0", "'=A", "0", "1.5"),
        ("1", "B", "0", "nan"),
    ]
    table = pq.read_table(io.BytesIO(http.get(f"{place}/readings.parquet").content))
    assert table["arm"].to_pylist() == ["=A", "B"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_come_in_parts(tmp_path, monkeypatch, kind):
    """A table has the readings that existed when it was requested, in order, whatever the size of a part."""
    monkeypatch.setattr(answers, "_PART_ROWS", 7)
    write = answers.as_csv if kind == "csv" else answers.as_parquet
    with hosting(tmp_path / "s.db") as host:
        host.create(NewStudy(arms=["A", "B"], id="parts"))
        host.ask("parts", "ann", 100)
        tickets = [ticket for ticket in reversed(range(100)) if ticket != 51]
        host.tell("parts", [PullReading(ticket, float(ticket)) for ticket in tickets], "bob")
        host.create(NewStudy(arms=["A", "B"], id="still", passive=True))
        host.give("still", "k", [ArmReading(arm, value) for value in range(20) for arm in "BA"])
        found = {}
        for name in ("parts", "still"):
            with host.read(name) as hosted:
                upto = hosted.position
            answer = write(answers.readings(host.database, name, upto, passive=name == "still"))
            first = next(answer)
            host.tell("parts", [PullReading(51, 1.0)], "bob")
            found[name] = b"".join([first, *answer])
    read = pq.read_table if kind == "parquet" else pa.csv.read_csv
    parts, still = (read(io.BytesIO(found[name])) for name in ("parts", "still"))
    assert parts["ticket"].to_pylist() == parts["value"].to_pylist() == sorted(tickets)
    assert set(parts["worker"].to_pylist()) == {"bob"}
    assert still["arm"].to_pylist() == ["B", "A"] * 20
    assert still["value"].to_pylist() == [value for value in range(20) for _ in "BA"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_of_nothing_have_their_columns(http, kind):
    place = begun(http, "empty")
    assert "".join(http.head(f"{place}/readings.{kind}").iter_text()) == ""
    body = http.get(f"{place}/readings.{kind}").content
    found = pq.read_table(io.BytesIO(body)) if kind == "parquet" else pa.csv.read_csv(io.BytesIO(body))
    assert (found.num_rows, found.column_names) == (0, ["ticket", "arm", "draw", "value", "worker", "at"])


def test_parquet_without_pyarrow_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Refused, match="install pyarrow") as caught:
        next(answers.as_parquet([]))
    assert caught.value.problem.status == 501


def test_the_report_runs_no_script_but_its_own(http):
    place = begun(http, "report")
    run(http, place)
    answer = http.get(f"{place}/report")
    assert "<!DOCTYPE html>" in answer.text
    policy = answer.headers["content-security-policy"]
    assert "script-src 'sha256-" in policy
    assert "sandbox" in policy
    as_json = http.get(f"{place}/report", headers={"Accept": "application/json"}).json()
    assert as_json["best"] == "A"
    assert len(as_json["readings"]["A"]) > 10


def test_passive_readings_are_taken_once_for_each_key(http):
    place = begun(http, "passive", passive=True)
    body = {
        "key": "monday",
        "readings": [{"arm": arm, "value": v + 9 * (arm == "A")} for v in range(200) for arm in "AB"],
    }
    assert http.post(f"{place}/readings", json=body).json() == {"added": 400, "position": 401}
    assert http.post(f"{place}/readings", json=body).json() == {"added": 0, "position": 401}
    assert http.get(place).json()["result"]["pulls"]["total"] == 400
    wrong = http.post(f"{place}/readings", json={"key": "t", "readings": [{"arm": "C", "value": 1}]})
    assert wrong.json()["detail"] == "readings[0].arm must be A or B, but got 'C'"
    other = http.post(f"{place}/readings", json={**body, "readings": body["readings"][:-1]})
    assert (other.status_code, other.json()["field"], other.json()["value"]) == (409, "key", "monday")
    more = [{"key": f"{day}", "readings": [{"arm": "A", "value": v} for v in (None, day)]} for day in range(2)]
    for each in [*more, *more]:
        assert http.post(f"{place}/readings", json=each).status_code == 200
    assert http.post(f"{place}/readings", json={**more[1], "readings": more[0]["readings"]}).status_code == 409
    assert http.post(f"{place}/ask", json={"worker": "ann"}).status_code == 409
    assert http.post(f"{begun(http, 'active')}/readings", json=body).status_code == 409


def test_studies_are_listed_the_newest_first_and_in_pages(http):
    for i in range(51):
        begun(http, f"listed-{i}")
    first = http.get("/studies").json()
    assert [study["id"] for study in first["studies"][:2]] == ["listed-50", "listed-49"]
    names = [study["id"] for study in first["studies"]]
    while first["next"]:
        first = http.get(first["next"]).json()
        names += [study["id"] for study in first["studies"]]
    assert len(names) == len(set(names)) >= 51


def test_the_head_of_events_ends(http):
    place = begun(http, "head")
    answer = http.head(f"{place}/events")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert http.head("/studies/nowhere/events").status_code == 404


def test_events_go_on_after_the_last_one_known(http):
    place = begun(http, "events")
    asked(http, place, n=3)
    told(http, place, (0, 1.0))
    with http.stream("GET", f"{place}/events", headers={"Last-Event-ID": "2"}) as stream:
        lines = stream.iter_lines()
        found = [next(line for line in lines if line.startswith("id:")) for _ in range(2)]
        told(http, place, (1, 2.0))  # while it is being followed
        found.append(next(line for line in lines if line.startswith("id:")))
    assert found == ["id: 3", "id: 4", "id: 5"]


NEW = {"arms": ["A", "B"]}
PYTHON = re.compile(r"\w=\S|\b(True|False|None)\b|Interval\(|\bdict|\btuple|\bta\.|\bStudy\(|\[\.\.\.\]")
WRONG = [  # a request, its status, the field and the value that are wrong, and a word of what to do
    ("POST /studies", {}, 422, "arms", None, "arms is missing"),
    ("POST /studies", {"arms": ["A", "A"]}, 422, "arms", "A", "different names"),
    ("POST /studies", {"arms": ["A\0", "B"]}, 422, "arms", "A\0", "NUL"),
    ("POST /studies", {"arms": ["x" * 300]}, 422, "arms[0]", f"{'x' * 200}...", "text of length <= 200"),
    ("POST /studies", {"arms": [f"{i}" for i in range(501)]}, 422, "arms", 501, "500 at most"),
    ("POST /studies", NEW | {"title": "\0"}, 422, "title", "\0", "remove them"),
    ("POST /studies", NEW | {"id": "../x"}, 422, "id", "../x", "lower-case letters, digits and hyphens, but"),
    ("POST /studies", NEW | {"id": "abc\n"}, 422, "id", "abc\n", "lower-case letters, digits and hyphens"),
    ("POST /studies", NEW | {"id": "wrong", "delta": 0.2}, 409, "id", "wrong", "repeat its arms and options"),
    ("POST /studies", NEW | {"colour": 1}, 422, "colour", 1, "colour is not a field, but got 1; see"),
    ("POST /studies", NEW | {"delta": 7}, 422, "delta", 7, "delta must be a number < 1"),
    ("POST /studies", NEW | {"contamination": {"eps": 0.7}}, 422, "contamination.eps", 0.7, "in [0, 0.5)"),
    ("POST /studies", NEW | {"tolerance": -1}, 422, "tolerance", -1, ">= 0"),
    ("POST /studies", NEW | {"tolerance": "2%", "at_least": 1}, 422, "tolerance", "2%", "write 0.02"),
    ("POST /studies", NEW | {"quantile": 0.9, "at_most": 1}, 422, "quantile", 0.9, "remove quantile or at_most"),
    ("POST /studies", NEW | {"goal": "most"}, 422, "goal", "most", 'goal as text must be one of "max", "min"'),
    ("POST /studies", NEW | {"at_least": 1, "at_most": 2}, 422, "at_most", 2, "remove at_most or at_least"),
    ("POST /studies", NEW | {"between": [1, 3], "contamination": None}, 422, "between", [1, 3], "needs a bound"),
    ("POST /studies", NEW | {"missing": "independent"}, 422, "missing", "independent", "is not a field"),
    ("POST /studies", NEW | {"rounds": True, "quantile": 0.9}, 422, "quantile", 0.9, "remove quantile"),
    ("POST /studies", NEW | {"rounds": True, "passive": True}, 422, "passive", True, "remove one of the two"),
    ("POST /studies", NEW | {"at_least": 1, "policy": "lucb"}, 422, "policy", "lucb", "use policy 'toptwo'"),
    ("POST /studies", NEW | {"tolerance": "2%", "policy": "lucb"}, 422, "tolerance", "2%", "use policy 'toptwo'"),
    ("POST /studies/wrong/ask", {"worker": "ann", "n": 1001}, 422, "n", 1001, "1000 at most"),
    ("POST /studies/wrong/ask", {"worker": "a\0"}, 422, "worker", "a\0", "remove them"),
    ("POST /studies/wrong/tell", {"readings": [{"ticket": 0}]}, 422, "readings[0].value", None, "is missing"),
    ("POST /studies", NEW | {"contamination": "5%"}, 422, "contamination", "5%", 'one of "auto", "blind"'),
    ("POST /studies", NEW | {"between": ["0", 1]}, 422, "between[0]", "0", 'one of "inf", "-inf"'),
    ("POST /studies/still/ask", {"worker": "ann"}, 409, "study", "still", "send its readings to /readings"),
    ("POST /studies/nowhere/ask", {"worker": "ann"}, 404, "study", "nowhere", "see GET /studies"),
    ("GET /studies/nowhere", None, 404, "study", "nowhere", "see GET /studies"),
    ("GET /studies/still/report", None, 409, "study", "still", "arms without a reading"),
    ("GET /studies?before=x", None, 422, "before", "x", "take it from `next`"),
    ("GET /studies/wrong/log?since=-1", None, 422, "since", "-1", "the last position you know"),
    ("GET /nowhere", None, 404, "path", "/nowhere", "/openapi.json"),
    ("PUT /studies", None, 405, "path", "/studies", "/openapi.json"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: f"{case[0]} {case[3]}")
def test_what_is_wrong_is_named(http, case):
    request, body, *expected, remedy = case
    begun(http, "wrong")
    begun(http, "still", passive=True)
    answer = http.request(*request.split(), json=body)
    found = answer.json()
    assert [answer.status_code, found.get("field"), found.get("value")] == expected, found
    assert answer.headers["content-type"] == "application/problem+json"
    assert remedy in found["detail"], found
    assert not PYTHON.search(found["detail"]), found


DEEP = b"[" * 5000 + b"]" * 5000
BODIES = [  # a body, its status, the field that is wrong, and part of the message
    (DEEP, 422, None, "the body must be an object; see"),
    (b'{"worker": %b}' % DEEP, 422, "worker", "worker must be text; see"),
    (b'{"worker": "a", "n": %b}' % DEEP, 422, "n", "n must be an integer; see"),
    (b'{"worker": "\\ud800"}', 400, None, "without lone surrogates"),
    (b'{"worker": "a', 400, None, "truncated"),
    (b'{"worker": NaN}', 400, None, "invalid character"),
]


@pytest.mark.parametrize(("body", "status", "field", "words"), BODIES, ids=lambda value: str(value)[:30])
def test_an_unreadable_body_is_refused_with_its_reason(http, body, status, field, words):
    http.post("/studies", json={"arms": ["A", "B"], "id": "unreadable"})
    answer = http.post("/studies/unreadable/ask", content=body, headers={"Content-Type": "application/json"})
    found = answer.json()
    assert (answer.status_code, found.get("field"), found.get("value")) == (status, field, None)
    assert words in found["detail"]


NUMBERS = [("1e400", "1e400"), ("9" * 400, f"{'9' * 200}..."), ("-1e999", "-1e999")]


@pytest.mark.parametrize(("written", "shown"), NUMBERS, ids=["float", "integer", "negative"])
def test_a_number_that_no_machine_holds_is_shown_as_it_was_written(http, written, shown):
    place = begun(http, "huge")
    body = '{"readings": [{"ticket": 0, "value": HUGE}]}'.replace("HUGE", written)
    found = http.post(f"{place}/tell", content=body, headers={"Content-Type": "application/json"}).json()
    assert (found["field"], found["value"]) == ("readings[0].value", shown)
    assert "at most 1.8e308 in size" in found["detail"]


def test_every_answer_has_the_headers_that_protect_a_page(http):
    for path in ("/studies", "/nowhere", "/healthz"):
        headers = http.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_pages_of_other_sites_are_kept_out_while_nobody_needs_a_token(http):
    place = begun(http, "foreign")
    assert http.get(place, headers={"Host": "evil.example:80"}).status_code == 421
    assert http.post(f"{place}/stop", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    for body in (b'{"worker": "x"}', b""):
        assert http.post(f"{place}/ask", content=body, headers={"Content-Type": "text/plain"}).status_code == 415


def test_an_estimate_without_end_is_none(http):
    body = {"arms": 2, "gap": 1e-5, "share": 0.999999, "contamination": 0.49, "delta": 0.999}
    assert http.post("/estimate", json=body).json()["pulls"] is None


def test_an_only_arm_without_readings_is_not_called_best(http):
    begun(http, "lonely", arms=["A"])
    [line] = [one for one in http.get("/studies").json()["studies"] if one["id"] == "lonely"]
    assert (line["pulls"], line["status"], line["best"], line["leader"]) == (0, None, None, None)


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(("path", "page"), [("/studies/100%25 sure", "/s/100%25%20sure"), ("/studies", "/")])
def test_a_browser_is_redirected_to_the_page_and_a_program_gets_json(http, path, page):
    answer = http.get(path, headers={"Accept": BROWSER})
    assert (answer.status_code, answer.headers["location"]) == (303, page)
    for accept in ("*/*", "application/json", "application/json, text/html"):
        assert "json" in http.get(path, headers={"Accept": accept}).headers["content-type"]


def test_the_answer_of_a_study_in_words(http):
    place = begun(http, "words", max_pulls=4)
    shown = [http.get(f"{place}/live").json()["answer"]]
    for ticket in range(4):
        asked(http, place)
        told(http, place, (ticket, ticket % 2))
        shown.append(http.get(f"{place}/live").json()["answer"])
    assert shown[:2] == ["No reading yet", "Too early to tell"]
    assert shown[-1] == "Ended without a decision"
