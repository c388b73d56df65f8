"""Several processes on one database, and processes that are killed: no ticket twice, nothing acknowledged lost.

What workers were handed and what was acknowledged to them is noted on their side, and compared with the log.
"""

import contextlib
import json
import math
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter

import httpx
import pytest

from truearm.service.client import Client
from truearm.service.models import NewStudy
from truearm.study import Study

from . import killing
from .serving import SOURCE, Server, hosting


class Worker(threading.Thread):
    """A worker that notes what it was handed and what was acknowledged."""

    def __init__(self, url, name, seed, *, most=10**9, patience=600, gap=1.0):
        super().__init__()
        self.gap = gap
        self.client = Client(url, name, worker=f"worker-{seed}", patience=patience)
        self.draw, self.most = random.Random(seed), most
        self.handed, self.acknowledged = [], {}
        self.ending = False
        self.error = None

    def run(self):
        try:
            while not self.ending and len(self.acknowledged) < self.most:
                pulls = self.client.ask(self.draw.choice((1, 1, 3)))
                if not pulls:
                    return
                self.handed += [pull.ticket for pull in pulls]
                values = [
                    math.floor(1000 * self.draw.gauss(self.gap * (pull.arm == "A"), 1)) / 1000 for pull in pulls
                ]
                self.client.tell_many(list(zip(pulls, values, strict=True)))
                self.acknowledged |= {pull.ticket: value for pull, value in zip(pulls, values, strict=True)}
        except Exception as error:  # for the test to see
            self.error = error
        finally:
            self.client.close()


def finished(workers):
    for worker in workers:
        worker.join(1200)
        assert worker.error is None, worker.error


def log_of(url, name):
    """Return the definition of a study and all events of its log."""
    events, since = [], 0
    while since is not None:
        page = httpx.get(f"{url}/studies/{name}/log", params={"since": since}).json()
        events, since = events + page["events"], page["next"]
    return json.loads(page["definition"]), events


def check_nothing_lost_or_twice(url, name, workers):
    definition, events = log_of(url, name)
    told = Counter(event["ticket"] for event in events if event["kind"] == "told")
    issued = Counter(event["ticket"] for event in events if event["kind"] == "issued")
    assert not [ticket for ticket, times in (told + issued).items() if max(told[ticket], issued[ticket]) > 1]
    values = {event["ticket"]: float(event["value"]) for event in events if event["kind"] == "told"}
    acknowledged = {}
    for worker in workers:
        assert not acknowledged.keys() & worker.acknowledged.keys()
        acknowledged |= worker.acknowledged
    lost = {ticket: value for ticket, value in acknowledged.items() if values.get(ticket) != value}
    assert not lost
    rows = [[e["kind"], e["ticket"], e["arm"], e["draw"], e["value"], e["notes"]] for e in events]
    return Study.from_dict({**definition, "events": rows}), len(acknowledged)


def test_two_servers_and_eight_workers_make_one_study(database):
    """Every ticket has one owner; both servers and the replay give the same verdict."""
    with Server(database, "--rate", "100000") as one, Server(database, "--rate", "100000") as two:
        Client(one.url, "many", ["A", "B", "C"], contamination=0.15).close()
        workers = [Worker((one, two)[seed % 2].url, "many", seed) for seed in range(8)]
        for worker in workers:
            worker.start()
        finished(workers)
        replayed, told = check_nothing_lost_or_twice(one.url, "many", workers)
        results = [server.get("/studies/many")["result"] for server in (one, two)]
    handed = Counter(ticket for worker in workers for ticket in worker.handed)
    assert set(handed.values()) == {1}
    assert told > 100
    assert results[0] == results[1]
    assert results[0]["best"] == "A"
    assert replayed.result.to_dict() == {key: results[0][key] for key in replayed.result.to_dict()}


class Cutting:
    """A network that cuts connections: in the middle of a head, a body or an answer, or after it was sent."""

    def __init__(self, url, chance):
        self._to, self._chance, self._draw = int(url.rpartition(":")[2]), chance, random.Random(5)
        self.cuts = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self._listening.accept()[0]
                far = socket.create_connection(("127.0.0.1", self._to))
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source, sink):
        with contextlib.suppress(OSError), source, sink:
            while data := source.recv(65536):
                cut = self._draw.random() < self._chance
                sink.sendall(data[: self._draw.randrange(len(data) + 1)] if cut else data)
                self.cuts += cut
                if cut:
                    break
            source.shutdown(socket.SHUT_RDWR)
            sink.shutdown(socket.SHUT_RDWR)


def test_a_network_that_cuts_connections_loses_and_doubles_nothing(database):
    with Server(database, "--rate", "100000") as server, contextlib.closing(Cutting(server.url, 0.1)) as network:
        Client(server.url, "cut", ["A", "B", "C"], contamination=0.0).close()
        workers = [Worker(network.url, "cut", seed, most=40, gap=0.0) for seed in range(4)]
        for worker in workers:
            worker.start()
        finished(workers)
        _, told = check_nothing_lost_or_twice(server.url, "cut", workers)
        out = server.get("/studies/cut")["out"]
    assert told >= 160
    assert not out  # an ask whose answer was lost left nothing behind
    assert network.cuts > 10


def killed(database, points, seed=0):
    """Kill a server at random moments under load, and begin it again each time; return how much was told."""
    moments = random.Random(seed)
    options = ("--rate", "100000")
    server = Server(database, *options)
    port = int(server.url.rpartition(":")[2])
    Client(server.url, "killed", ["A", "B"], contamination=0.0).close()
    # a server lives for moments only, so that one who is unlucky waits for long
    workers = [Worker(server.url, "killed", seed, patience=3600, gap=0.0) for seed in range(4)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(points):
            before = sum(len(worker.acknowledged) for worker in workers)
            while sum(len(worker.acknowledged) for worker in workers) <= before and all(
                map(Worker.is_alive, workers)
            ):
                time.sleep(0.005)
            time.sleep(moments.random() * 0.2)
            server.__exit__()  # kill -9
            server = Server(database, *options, port=port)
        for worker in workers:
            worker.ending = True
        finished(workers)
        return check_nothing_lost_or_twice(server.url, "killed", workers)[1]
    finally:
        server.__exit__()


@pytest.mark.parametrize("points", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_a_server_that_is_killed_loses_nothing(database, points):
    assert killed(database, points) > 3 * points


@pytest.mark.parametrize("points", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_a_process_that_is_killed_at_many_points_loses_nothing(database, points):
    """What lies below HTTP, where processes come and go quickly."""
    with hosting(database) as host:
        host.create(NewStudy(arms=["A", "B"], id="killed", contamination=0.0))
    words = [sys.executable, killing.__file__, database, str(points)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    tickets = [int(line) for line in done.stdout.split()]
    with hosting(database) as host, host.read("killed") as hosted:
        told = [event for event in hosted.study.events() if event.kind == "told"]
    values = {event.ticket: event.value for event in told}
    assert len(values) == len(told) >= len(tickets) == len(set(tickets)) >= 3 * points
    assert [values.get(ticket) for ticket in tickets] == [killing.value_of(ticket) for ticket in tickets]
