"""Small requests are answered at once: the loop itself waits for them, a moment, if nobody else has to wait."""

import asyncio
import json
import socket
import sqlite3
import subprocess
import threading
import time
from contextlib import closing, contextmanager
from functools import partial

import httpx
import pytest
import uvicorn
from starlette.responses import Response
from uvicorn.server import ServerState

from truearm.service import app, hosting, server, views
from truearm.service.app import Service
from truearm.service.client import Client
from truearm.service.database import Busy, Database, DatabaseError
from truearm.service.hosting import Host
from truearm.service.routes import Call, _live
from truearm.service.settings import Limits, Settings
from truearm.service.tokens import OPEN, make
from truearm.service.wire import NewStudy, Told

from .serving import Server


@pytest.fixture
def host(tmp_path):
    with closing(Host(Database(str(tmp_path / "s.db")))) as host:
        host.create(NewStudy(arms=["A", "B"], id="many"))
        host.ask("many", "ann", 1)  # it is in memory from here on
        yield host


def held(host):
    """Check that a worker cannot have a pull at once, and that the log is as it was."""
    before = host.database.after("many", 0)
    with pytest.raises(Busy):
        host.ask("many", "bob", 1, wait=False)
    assert host.database.after("many", 0) == before


def test_what_is_told_at_once_is_in_the_log(host, tmp_path):
    pulls = host.ask("many", "bob", 3, wait=False).pulls
    assert [pull.ticket for pull in pulls] == [1, 2, 3]
    told = host.tell("many", [Told(1, 2.5), Told(99, 1.0)], "bob", wait=False).outcomes
    assert [one.outcome for one in told] == ["told", "refused"]
    with closing(Host(Database(str(tmp_path / "s.db")))) as again, again.looking("many") as hosted:
        assert hosted.study.readings == {"A": [None, None], "B": [2.5, None]}
        assert hosted.digest == host._hosted("many").digest


@pytest.mark.usefixtures("host")
def test_a_study_that_is_not_in_memory_is_waited_for(tmp_path):
    with closing(Host(Database(str(tmp_path / "s.db")))) as again:
        held(again)
        assert again.ask("many", "bob", 1).pulls[0].ticket == 1


def test_a_study_in_use_is_waited_for(host):
    with host.looking("many"):
        other = threading.Thread(target=held, args=(host,))
        other.start()
        other.join()
        found = []
        other = threading.Thread(target=lambda: found.append(host.ask("many", "bob", 1)))
        other.start()
    other.join()
    assert found[0].pulls[0].ticket == 1


def test_changes_that_are_waited_for_come_first(host):
    host._hosted("many").wishes.append(None)
    held(host)
    host._hosted("many").wishes.clear()


def test_a_file_that_others_write_to_is_waited_for(host, tmp_path):
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        held(host)
        other.execute("ROLLBACK")
    assert host.ask("many", "bob", 1, wait=False).pulls[0].ticket == 1
    with host.database._turn:
        held(host)


def test_a_file_that_is_opened_anew_is_waited_for(host):
    host.database._drop(host.database._writer)
    held(host)
    assert host.ask("many", "bob", 1).pulls[0].ticket == 1


def test_much_is_waited_for(host, tmp_path):
    held_before = host.database.after("many", 0)
    with pytest.raises(Busy):
        host.ask("many", "bob", hosting._FEW + 1, wait=False)
    with pytest.raises(Busy):
        host.tell("many", [Told(0, 1.0)] * (hosting._FEW + 1), wait=False)
    assert host.database.after("many", 0) == held_before
    with closing(Host(Database(str(tmp_path / "s.db")))) as other:
        other.ask("many", "eve", hosting._FEW)
        assert host.ask("many", "bob", 1, wait=False).pulls[0].ticket == hosting._FEW + 1
        other.ask("many", "dan", hosting._FEW + 1)
    held(host)  # there is much to read
    assert host.ask("many", "eve", 1).pulls[0].ticket == 1
    assert host.ask("many", "eve", 1, wait=False).pulls[0].ticket == 1


def test_a_snapshot_that_is_due_is_waited_for(host, monkeypatch):
    monkeypatch.setattr(hosting, "_SNAPSHOT", 1)
    held(host)
    host.ask("many", "bob", 1)
    assert host.database.snapshot("many")[0] == 2


def test_a_back_up_that_is_put_into_the_file_is_gone_on_with_at_once(host, tmp_path):
    """It is the same file, and what is in memory is ahead of it: one request fails, and not all that follow."""
    with closing(sqlite3.connect(tmp_path / "s.db")) as live, closing(sqlite3.connect(":memory:")) as copy:
        live.backup(copy)
        assert host.ask("many", "bob", 2, wait=False).pulls[-1].ticket == 2
        copy.backup(live)
    with pytest.raises(DatabaseError, match="was replaced, such as by a back-up; send the request again"):
        host.ask("many", "bob", 1, wait=False)
    with pytest.raises(Busy):  # it is read again, which is waited for
        host.ask("many", "bob", 1, wait=False)
    assert host.ask("many", "bob", 1).pulls[0].ticket == 1


def test_what_is_asked_at_once_stays_in_memory(host, monkeypatch):
    monkeypatch.setattr(hosting, "_LOADED", 3)
    for i in range(4):
        host.create(NewStudy(arms=["A", "B"], id=f"other-{i}"))
        host.ask(f"other-{i}", "ann", 1)
        host.ask("many", "ann", 1, wait=False)


def test_postgresql_is_waited_for(postgresql):
    postgresql.psql("CREATE DATABASE awaited")
    with closing(Host(Database(postgresql.get_uri("awaited")))) as host:
        host.create(NewStudy(arms=["A", "B"], id="many"))
        host.ask("many", "ann", 1)
        held(host)


ASK = b'{"worker": "ann"}'


@pytest.fixture
def service(tmp_path, monkeypatch):
    monkeypatch.setattr(app, "_HELD", 20.0)  # a machine in use may be slow
    with closing(Service(Settings(database=str(tmp_path / "s.db"), limits=Limits(body=1000)))) as service:
        service.host.create(NewStudy(arms=["A", "B"], id="many"))
        service.host.ask("many", "ann", 1)
        len(service.tokens)  # reads them
        yield service


def offered(service, body=ASK, path="/studies/many/ask", who="one", *, only=False, **headers):
    """Return what a service answers at once."""
    given = {"host": "127.0.0.1", "content_type": "application/json", **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
    scope = {"method": "POST", "path": path, "headers": raw, "state": {}, "client": ("127.0.0.1", 1)}

    async def asked():
        answer = service.at_once(scope, body, who, only=only)
        service._requests.write()
        return answer

    return asyncio.run(asked())


@pytest.mark.parametrize(
    ("status", "more"),
    [
        (200, {}),
        (415, {"content_type": "text/plain"}),
        (400, {"body": b"{"}),
        (422, {"body": b'{"worker": "ann", "n": 0}'}),
        (422, {"path": "/studies/many/tell", "body": b'{"readings": [{"ticket": 0, "value": 1}], "n": 1}'}),
        (421, {"host": "evil.example"}),
        (431, {"padding": "x" * app.HEAD}),
    ],
)
def test_the_same_is_checked_and_answered_as_in_a_thread(service, status, more):
    answer = offered(service, **more)
    body, path = more.pop("body", ASK), more.pop("path", "/studies/many/ask")
    headers = {"content-type": "application/json", **{name.replace("_", "-"): v for name, v in more.items()}}

    async def asked():
        transport = httpx.ASGITransport(service.app())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return await http.post(path, content=body, headers=headers)

    usual = asyncio.run(asked())
    assert answer.status_code == usual.status_code == status
    assert bytes(answer.body) == usual.content
    assert {name for name, _ in answer.raw_headers} == {name for name, _ in usual.headers.raw}


def test_tokens_count_at_once_too(service):
    worker, viewer = (make(service.database, role) for role in ("worker", "viewer"))
    service.tokens.read()
    assert offered(service).status_code == 401
    assert offered(service, authorization=f"Bearer {viewer}").status_code == 403
    assert offered(service, authorization=f"Bearer {worker}").status_code == 200
    service.tokens._at = -1e9  # they were read long ago
    assert offered(service, authorization=f"Bearer {worker}") is None


def test_the_rate_counts_at_once_too(tmp_path):
    with closing(Service(Settings(database=str(tmp_path / "s.db"), limits=Limits(rate=0.001)))) as service:
        len(service.tokens)
        assert [offered(service).status_code for _ in range(3)][-1] == 429


def test_others_are_not_answered_at_once(service):
    assert offered(service, path="/studies/many/stop") is None
    assert offered(service, path="/nowhere") is None
    assert offered(service, body=b" " * 1001) is None


def test_who_is_not_alone_shares_transactions(service, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(app.time, "perf_counter", lambda: now[0])
    assert offered(service, who="one") is not None
    now[0] += app._APART / 2
    assert offered(service, who="two") is None
    assert offered(service, who="one") is None
    now[0] += app._APART
    assert offered(service, who="one") is not None
    assert offered(service, who="one") is not None


@pytest.fixture
def slow(service, monkeypatch):
    """Have a clock, and asks that take a tenth of a second of it while they are slow."""
    now, takes, ask = [1000.0], [0.1], service.host.ask
    monkeypatch.setattr(app.time, "perf_counter", lambda: now[0])

    def slow(*values, **named):
        now[0] += takes[0]
        return ask(*values, **named)

    monkeypatch.setattr(service.host, "ask", slow)
    return now, takes


def test_what_is_slow_twice_is_done_by_threads_for_a_while(service, slow):
    now, _ = slow
    assert offered(service) is not None
    assert offered(service) is not None
    now[0] += app._REST * 0.1 - 0.01
    assert offered(service) is None
    now[0] += 0.02
    assert offered(service) is not None
    assert offered(service) is None  # still slow


def test_what_is_slow_once_in_a_while_stays_on_the_loop(service, slow):
    _, takes = slow
    for _ in range(3):
        takes[0] = 0.1
        assert offered(service) is not None
        takes[0] = 0.0
        for _ in range(app._SELDOM):
            assert offered(service) is not None


def test_nothing_is_done_at_once_that_would_wait_for_the_imports_of_the_first_decision(tmp_path, monkeypatch):
    """One such ask took 140 ms on the loop, after which threads, twice as slow, did all for three seconds."""
    began, imported = threading.Event(), threading.Event()

    def rehearse():
        began.set()
        assert imported.wait(20)

    monkeypatch.setattr(app, "_HELD", 20.0)
    monkeypatch.setattr(app, "rehearse", rehearse)
    with closing(Service(Settings(database=str(tmp_path / "s.db")))) as service:
        service.host.create(NewStudy(arms=["A", "B"], id="many"))
        service.host.ask("many", "ann", 1)
        len(service.tokens)

        async def lived():
            async with service._lifespan(None):
                await asyncio.to_thread(began.wait, 20)
                early = await asyncio.to_thread(offered, service)
                imported.set()
                while not service._rehearsal.done():
                    await asyncio.sleep(0.01)
                return early, await asyncio.to_thread(offered, service)

        early, later = asyncio.run(lived())
        assert early is None
        assert later.status_code == 200


def test_what_takes_long_is_waited_for_elsewhere_and_done_once(service, monkeypatch):
    """The loop is free after a moment: a disk may hang, and one look at a large study takes seconds."""
    go_on, ask = threading.Event(), service.host.ask

    def slow(*values, **named):
        assert go_on.wait(20)
        return ask(*values, **named)

    async def asked():
        sent = []

        async def send(message):
            sent.append(message)

        raw = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/studies/many/ask", "headers": raw, "state": {}}
        assert service.at_once(scope, b'{"worker": "bob"}', "one") is None
        assert not go_on.is_set()
        waiting = asyncio.create_task(service.app()(scope, None, send))
        await asyncio.sleep(0)
        go_on.set()
        await waiting
        return sent

    monkeypatch.setattr(service.host, "ask", slow)
    monkeypatch.setattr(app, "_HELD", app._AT_ONCE)
    late = threading.Timer(10, go_on.set)  # for a loop that waits
    late.start()
    head, body = asyncio.run(asked())
    late.cancel()
    assert head["status"] == 200
    assert [pull["ticket"] for pull in json.loads(body["body"])["pulls"]] == [1]
    assert service.database.at("many", 3) is None


@pytest.mark.parametrize("only", [True, False])
def test_who_alone_is_connected_is_answered_without_a_hand_over(service, monkeypatch, only):
    threads, ask = [], service.host.ask

    def seen(*values, **named):
        threads.append(threading.current_thread())
        return ask(*values, **named)

    monkeypatch.setattr(service.host, "ask", seen)
    assert offered(service, only=only).status_code == 200
    assert (threads == [threading.main_thread()]) is only


@contextmanager
def drawing(monkeypatch):
    """Have pictures of studies, and reports, take until they are let go; give how many were begun."""
    begun, go_on, live = threading.Semaphore(0), threading.Event(), views.live
    begun.count = 0

    def slow(hosted):
        begun.count += 1
        begun.release()
        assert go_on.wait(20)
        return live(hosted)

    monkeypatch.setattr(views, "live", slow)
    try:
        yield begun, go_on
    finally:
        go_on.set()


def test_a_page_that_is_drawn_holds_up_nobody(host, monkeypatch):
    call, found = Call(host, OPEN, "many", None, {}, {}), []
    with drawing(monkeypatch) as (begun, go_on):
        watching = threading.Thread(target=lambda: found.append(json.loads(_live(call).body)))
        watching.start()
        assert begun.acquire(timeout=20)
        assert host.ask("many", "bob", 1, wait=False).pulls[0].ticket == 1
        assert host.tell("many", [Told(1, 2.5)], "bob", wait=False).outcomes[0].outcome == "told"
        go_on.set()
        watching.join()
    assert (found[0]["position"], len(found[0]["out"])) == (1, 1)  # as it was when it was looked at
    assert json.loads(_live(call).body)["position"] == 3


def test_many_pages_of_one_study_are_drawn_once(service, monkeypatch):
    """Whoever comes while one is drawn shares the next, which shows all that happened before it was asked for."""

    async def watched():
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(service.app()), base_url="http://127.0.0.1"
        ) as http:
            with drawing(monkeypatch) as (begun, go_on):
                first = asyncio.create_task(http.get("/studies/many/live"))
                await asyncio.to_thread(begun.acquire, timeout=20)
                service.host.ask("many", "bob", 1)
                more = [asyncio.create_task(http.get("/studies/many/live")) for _ in range(20)]
                await http.get("/studies/many")  # by then they have come
                go_on.set()
                answers = [task.result() for task in (await asyncio.wait([first, *more]))[0]]
                missing = await http.get("/studies/none/live")
            return begun.count, sorted(answer.json()["position"] for answer in answers), missing.status_code

    assert asyncio.run(watched()) == (2, [1] + [2] * 20, 404)


def test_while_a_file_is_locked_others_are_answered(tmp_path):
    """A request that has to wait does so in a thread, and is answered when the file is free."""
    with Server(tmp_path / "s.db") as server, Client(server.url, "many", ["A", "B"]) as study:
        study.ask(1)
        with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None, check_same_thread=False)) as other:
            other.execute("BEGIN IMMEDIATE")
            found = []
            waiting = threading.Thread(target=lambda: found.append(Client(server.url, "many").ask(1)))
            waiting.start()
            assert server.get("/healthz")["status"] == "ok"
            assert not found
            other.execute("ROLLBACK")
            waiting.join()
        assert found[0][0].ticket == 1


def sent(server, *pieces):
    """Send pieces, the next one when the server has answered or read the one before, and return all it says."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
            server.get("/healthz")  # by then it has read the piece
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def request(worker, *headers, path="/studies/many/ask"):
    body = b'{"worker": "%b"}' % worker
    lines = [b"POST %b HTTP/1.1" % path.encode(), b"Host: 127.0.0.1", b"Content-Type: application/json", *headers]
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])


def test_requests_in_pieces_and_in_a_row_are_all_answered(tmp_path):
    with Server(tmp_path / "s.db") as server, Client(server.url, "many", ["A", "B"]) as study:
        study.ask(1)
        whole = request(b"bob")
        row = whole + request(b"cid") + request(b"dan")
        answers = sent(server, row, whole[:30], whole[30:-5], whole[-5:], request(b"eve", b"Connection: close"))
        assert answers.count(b"HTTP/1.1 200 OK") == 5
        assert [answers.count(b'"worker":"%b"' % name) for name in (b"bob", b"cid", b"dan", b"eve")] == [
            2,
            1,
            1,
            1,
        ]
        assert answers.count(b"connection: close") == 1
        missing = sent(
            server, request(b"bob", path="/studies/none/ask"), request(b"bob", b"X-Forwarded-For: 1.2.3.4")
        )
        assert [missing.count(b"HTTP/1.1 %d" % status) for status in (404, 200)] == [1, 1]
        server.end()
        assert sum(line.get("path") == "/studies/many/ask" for line in server.log) == 7


HANGING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static int held(const char *name, int file) {
    while (access(getenv("HANGS"), F_OK) == 0) usleep(10000);
    return ((int (*)(int)) dlsym(RTLD_NEXT, name))(file);
}
int fsync(int file) { return held("fsync", file); }
int fdatasync(int file) { return held("fdatasync", file); }
"""


def test_while_a_disk_hangs_others_are_answered(tmp_path):
    """A disk that takes a write and does not say that it is done holds who wrote, and not the whole server."""
    (tmp_path / "hanging.c").write_text(HANGING)
    words = ["gcc", "-shared", "-fPIC", "-o", "hanging.so", "hanging.c", "-ldl"]
    subprocess.run(words, cwd=tmp_path, check=True)
    hangs = tmp_path / "hangs"
    environment = {"LD_PRELOAD": str(tmp_path / "hanging.so"), "HANGS": str(hangs)}
    with Server(tmp_path / "s.db", environment=environment) as server, Client(server.url, "many", ["A", "B"]) as s:
        for draw in range(3):  # not each request is one that is answered at once
            with httpx.Client(base_url=server.url, timeout=5) as other:
                other.get("/healthz")  # it is connected
                s.ask(draw + 1)
                hangs.touch()
                writing = threading.Thread(target=s.ask, args=(draw + 2,))
                time.sleep(2 * app._APART)
                writing.start()
                time.sleep(0.1)
                try:
                    assert other.get("/healthz").status_code == 200
                    assert other.get("/").status_code == 200
                finally:
                    hangs.unlink()
                    writing.join()
        assert [pull.ticket for pull in s.ask(4)] == [0, 1, 2, 3]


def test_what_a_disk_does_not_take_is_not_waited_for_without_end(service, monkeypatch):
    """Who waits for the one that writes is told so in time; what was sent happens once, whoever sends it again."""
    monkeypatch.setattr(app, "_PATIENCE", 0.2)
    hosted, began, go_on = service.host._hosted("many"), threading.Event(), threading.Event()

    def hangs():
        with hosted.lock:
            began.set()
            assert go_on.wait(20)

    async def asked():
        transport = httpx.ASGITransport(service.app())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            told = {"readings": [{"ticket": 0, "value": 1}]}
            asks = [http.post("/studies/many/tell", json=told), http.get("/studies/many"), http.get("/studies")]
            found = await asyncio.gather(*asks)
            go_on.set()
            return [*found, await http.post("/studies/many/tell", json=told)]

    writing = threading.Thread(target=hangs)
    writing.start()
    assert began.wait(20)
    late = threading.Timer(10, go_on.set)
    late.start()
    *found, last = asyncio.run(asked())
    late.cancel()
    writing.join()
    assert [answer.status_code for answer in found] == [503] * 3
    assert all("did not answer within 0.2 seconds" in answer.json()["detail"] for answer in found)
    assert last.json()["outcomes"][0]["outcome"] in ("told", "known")
    assert [row.kind for row in service.database.after("many", 0)] == ["issued", "told"]


def test_who_sends_many_in_a_row_does_not_have_the_loop_for_all_of_them(service):
    """One answer at once in what is read at a time: the others would wait for hundreds."""
    offered = []
    service.at_once = lambda *values, **_: offered.append(values) or Response(b"{}")

    async def sent():
        loop = asyncio.get_running_loop()
        config = uvicorn.Config(service.app(), http=server._Patient, log_config=None, lifespan="off")
        config.load()
        patient = type("Patient", (server._Patient,), {"service": service})
        made = partial(patient, config, ServerState(), app_state={})
        listening = await loop.create_server(made, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(request(b"bob") * 20)
        answers = b""
        while answers.count(b"HTTP/1.1 200") < 20:
            answers += await asyncio.wait_for(reader.read(65536), 20)
        writer.close()
        listening.close()

    asyncio.run(sent())
    assert len(offered) < 5
