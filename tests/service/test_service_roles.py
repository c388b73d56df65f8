"""Every route with every role, and what a server reveals to an unknown client."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from truearm.errors import InvalidArgument
from truearm.service.access import ROLES, create_token, remove_token
from truearm.service.app import openapi_schema
from truearm.store import Database, StoreError

from .serving import SOURCE, Server

BODIES = {
    "/studies": {"arms": ["A", "B"], "id": "mine"},
    "ask": {"worker": "ann"},
    "tell": {"readings": [{"ticket": 0, "value": 1.0}]},
    "release": {"tickets": [0]},
    "readings": {"key": "k", "readings": [{"arm": "A", "value": 1}]},
    "stop": None,
    "/estimate": {"arms": 2, "gap": 0.5},
}
NEEDED = {  # as the service promises it, not as the code has it
    ("POST", "/studies"): "admin",
    ("GET", "/studies"): "viewer",
    ("GET", "/studies/{study}"): "viewer",
    ("POST", "/studies/{study}/ask"): "worker",
    ("POST", "/studies/{study}/tell"): "worker",
    ("POST", "/studies/{study}/release"): "worker",
    ("POST", "/studies/{study}/readings"): "worker",
    ("POST", "/studies/{study}/stop"): "admin",
    ("GET", "/studies/{study}/log"): "viewer",
    ("GET", "/studies/{study}/readings.csv"): "viewer",
    ("GET", "/studies/{study}/readings.parquet"): "viewer",
    ("GET", "/studies/{study}/report"): "viewer",
    ("GET", "/studies/{study}/events"): "viewer",
    ("GET", "/studies/{study}/live"): "viewer",
    ("POST", "/estimate"): "viewer",
    ("GET", "/healthz"): None,
    ("GET", "/openapi.json"): None,
}
BEARERS = ("nobody", "forged", *(f"{role}{of}" for of in ("", " of mine", " of other") for role in ROLES))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    path = tmp_path_factory.mktemp("guarded") / "studies.db"
    database = Database(str(path))
    tokens = {"nobody": None, "forged": create_token(database, "admin")[:-1] + "!"}
    for bearer in BEARERS[2:]:
        role, _, study = bearer.partition(" of ")
        tokens[bearer] = create_token(database, role, study or None)
    database.close()
    with Server(path, "--rate", "100000") as server:
        with server.client(tokens["admin"]) as http:
            for name in ("mine", "other"):
                assert http.post("/studies", json={"arms": ["A", "B"], "id": name}).status_code == 201
        yield server, tokens


def status(server, token, method, path):
    place = path.replace("{study}", "mine")
    body = BODIES.get(place, BODIES.get(place.rpartition("/")[2]))
    more = {"json": body} if method == "POST" and body is not None else {}
    with server.client(token) as http, http.stream(method, place, **more) as answer:
        return answer.status_code


def expected(bearer, method, path):
    needed = NEEDED[method, path]
    if needed is None:
        return True
    if bearer in ("nobody", "forged"):
        return False
    role, _, study = bearer.partition(" of ")
    if ROLES.index(role) < ROLES.index(needed):
        return False
    return (method, path) in (("GET", "/studies"), ("POST", "/estimate")) or study in ("", "mine")


@pytest.mark.parametrize("bearer", BEARERS)
def test_every_route_lets_in_whom_it_should(guarded, bearer):
    server, tokens = guarded
    for method, path in NEEDED:
        found = status(server, tokens[bearer], method, path)
        allowed = found not in (401, 403)
        assert allowed == expected(bearer, method, path), (bearer, method, path, found)
        assert found < 500


def test_the_matrix_has_every_route():
    paths, types = openapi_schema()["paths"], openapi_schema()["components"]["schemas"]
    assert "NewStudy" in types
    assert "Struct" not in types  # the base class of all
    known = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert set(NEEDED) - known == {("GET", "/openapi.json")}
    assert known <= set(NEEDED)


def test_a_token_of_one_study_lists_that_study_alone(guarded):
    server, tokens = guarded
    with server.client(tokens["viewer of other"]) as http:
        assert [study["id"] for study in http.get("/studies").json()["studies"]] == ["other"]


def test_only_an_admin_releases_what_a_worker_has_without_saying_who(guarded):
    server, tokens = guarded
    found = []
    with server.client(tokens["admin"]) as http:
        http.post("/studies", json={"arms": ["A", "B"], "id": "released"})
        http.post("/studies/released/ask", json={"worker": "ann"})
    for bearer in ("worker", "admin"):
        with server.client(tokens[bearer]) as http:
            found += http.post("/studies/released/release", json={"tickets": [0]}).json()["outcomes"]
    assert [one["outcome"] for one in found] == ["refused", "released"]


def test_who_follows_is_let_go_when_the_token_is_removed(guarded):
    server, tokens = guarded
    database = Database(server.process.args[server.process.args.index("--database") + 1])
    token = create_token(database, "viewer", "mine")
    time.sleep(2.1)  # until it is known
    with server.client(tokens["worker"]) as worker, server.client(token) as http:
        with http.stream("GET", "/studies/mine/events") as stream:
            lines = stream.iter_lines()
            next(lines)
            assert remove_token(database, token.split("_")[1])
            time.sleep(2.1)
            worker.post("/studies/mine/ask", json={"worker": "eve"})
            rest = [line for line in lines if line]  # it ends
        assert http.get("/studies/mine").status_code == 401
    database.close()
    assert rest[-2] == "event: problem"
    assert json.loads(rest[-1].removeprefix("data: "))["status"] == 401
    assert not any('"eve"' in line for line in rest)


def test_no_log_line_and_no_database_holds_a_secret(guarded):
    server, tokens = guarded
    status(server, tokens["admin"], "GET", "/studies")
    with server.client() as http:
        http.get(f"/studies?token={tokens['worker']}")
    lines = "".join(server.lines)
    assert '"status": 200' in lines
    path = server.process.args[server.process.args.index("--database") + 1]
    kept = b"".join(Path(f"{path}{end}").read_bytes() for end in ("", "-wal"))
    for token in filter(None, tokens.values()):
        secret = token.split("_", 2)[2]
        assert secret not in lines
        assert secret.encode() not in kept


def truearm(*words, **environment):
    command = [sys.executable, "-m", "truearm", "serve", *words]
    environment = {"PYTHONPATH": SOURCE, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_other_machines_are_not_served_without_a_token(tmp_path):
    place = ("--database", str(tmp_path / "s.db"), "--port", "0")
    assert truearm(*place, TRUEARM_RATE="nan").returncode == 2  # click reads a variable as it reads its option
    refused = truearm(*place, "--host", "0.0.0.0")
    assert refused.returncode == 2
    assert "create one first with --new-token admin" in refused.stderr
    made = truearm("--database", str(tmp_path / "s.db"), "--new-token", "admin")
    token = made.stdout.strip()
    listed = truearm("--database", str(tmp_path / "s.db"), "--tokens").stdout
    name = listed.split("\t")[0]
    assert name in token
    assert token not in listed
    with Server(tmp_path / "s.db", "--host", "0.0.0.0") as server:
        port = server.url.rpartition(":")[2]
        with server.client(token) as http:
            place = f"http://127.0.0.1:{port}/studies"
            assert http.get(place).status_code == 200
            assert http.get(place, headers={"Authorization": ""}).status_code == 401
            assert truearm("--database", str(tmp_path / "s.db"), "--remove-token", name).returncode == 0
            deadline = time.monotonic() + 30
            while (found := http.get(place).status_code) != 401 and time.monotonic() < deadline:
                time.sleep(0.1)
            assert found == 401  # and not open to everybody, though there is no token left
    assert json.loads(server.lines[0])["tokens"] == 1


@pytest.mark.parametrize("study", ["", "Taste", "a/b"])
def test_a_token_for_no_study_is_not_one_for_all(tmp_path, study):
    """Such as when the name in a script is empty."""
    made = truearm("--database", str(tmp_path / "s.db"), "--new-token", f"worker:{study}")
    assert made.returncode == 2
    assert "for all studies, omit it" in made.stderr
    assert made.stdout == ""


def test_tokens_are_changed_one_at_a_time(tmp_path):
    """Who makes a new one and removes the old one in one line must not believe that both were done."""
    place = ("--database", str(tmp_path / "s.db"))
    name = truearm(*place, "--new-token", "admin").stdout.split("_")[1]
    refused = truearm(*place, "--new-token", "admin", "--remove-token", name)
    assert refused.returncode == 2
    assert "--new-token and --remove-token" in refused.stderr
    assert refused.stdout == ""
    assert truearm(*place, "--tokens", "--remove-token", name).returncode == 2
    assert truearm(*place, "--tokens").stdout.split("\t")[0] == name


AWAY = "127.0.0.1:1/x"
UNREADABLE = [
    f"postgresql://me:S3CRET%zz@{AWAY}",
    f"postgresql://me:S3/CRET@{AWAY}",
    f"postgresql://me:S3@CRET@{AWAY}",
    f"postgresql://{AWAY}?passwrod=S3CRET",
    f"postgresql://me:S3CRET@{AWAY}?port=CRET",
    f"Postgresql://me:S3CRET@{AWAY}",
    f"mysql://me:S3CRET@{AWAY}",
    "host=127.0.0.1 port=1 password=S3CRET",
]
FAILING = [
    f"postgresql://me:S3[CRET@{AWAY}",
    f"postgresql://me:S3CRET@{AWAY}",
    f"postgresql://{AWAY}?password=S3CRET",
]


@pytest.mark.parametrize("url", UNREADABLE)
def test_no_part_of_a_password_is_in_what_is_said_of_a_url(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgument, match="postgresql://user:password@host/name") as caught:
        Database(url)
    assert "S3" not in str(caught.value)
    assert "CRET" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", FAILING)
def test_no_part_of_a_password_is_in_what_is_said_of_a_failure(url):
    with pytest.raises(StoreError, match=r"the database postgresql://127.0.0.1/x failed: ") as caught:
        Database(url)
    assert "S3" not in str(caught.value)


def test_a_driver_that_repeats_the_password_is_not_repeated(monkeypatch):
    import psycopg

    def failing(*_, **given):
        raise psycopg.OperationalError(f"no entry for {given}")

    monkeypatch.setattr(psycopg, "connect", failing)
    with pytest.raises(StoreError, match="failed: no entry for") as caught:
        Database(f"postgresql://me:S3%20CRET@{AWAY}")
    assert "S3" not in str(caught.value)
