"""What the service adds to its database, how long an ask takes, and how soon a large study is back. Loopback only.

1. One client asks and tells over HTTP; then the same rows go into an empty database of the same kind in the same
   transactions. The goal: at most 3 times the wall time. Blocks of both alternate, and each block's ratio counts.
2. 100 studies of 20 arms, 4 clients at once: the goal is that 99 of 100 asks take less than 50 ms.
3. Optuna's ask and tell on its SQLite storage, as many of them, one client and no network.
4. A study of a million readings: the time from opening the database to the answer of the first ask, with the
   snapshot that a server keeps; the goal is 2 s. Beside it without a snapshot, by replaying the whole log.

Bounded: about two minutes on a quiet machine. Linux only.
Run: python benchmarks/service.py [postgresql://... postgresql://...], the second for the bare one
"""

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from itertools import groupby
from pathlib import Path

import numpy as np
import optuna

from truearm.service.client import Client
from truearm.service.database import Database
from truearm.service.hosting import Host
from truearm.service.settings import Limits
from truearm.service.wire import NewStudy, Told

BLOCKS, CYCLES = 8, 40  # asks and tells of one block
STUDIES, ARMS, CLIENTS, ASKS = 100, 20, 4, 1500
TRIALS = 200
READINGS = 1_000_000


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


def cycles(client, draw, batch):
    """Ask and tell some times, and return the wall time."""
    began = time.perf_counter()
    for _ in range(CYCLES):
        pulls = client.ask(batch)
        client.tell_many([(pull, float(draw.normal())) for pull in pulls])
    return time.perf_counter() - began


def transactions(database, study, since):
    """Return the rows after a position, those of one transaction together."""
    rows = database.after(study, since)
    return [list(run) for _, run in groupby(rows, key=lambda row: (row.at, row.kind))]


def bare(database, study, blocks):
    """Insert rows in transactions, and return the wall time."""
    began = time.perf_counter()
    for rows in blocks:
        with database.writing(study) as transaction:
            transaction.append(rows)
    return time.perf_counter() - began


def added(url, other, batch):
    """Return the ratio of wall times, block by block, and readings a second."""
    database, copy = Database(url), Database(other)
    name, draw, ratios, walls, since = f"batch-{batch}", np.random.default_rng(1), [], [], 0
    with Server(url) as server, Client(server.url, name, ["A", "B"], contamination=0.0) as client:
        cycles(client, draw, batch)  # the first block warms up
        since = client.state["position"]
        for _ in range(BLOCKS):
            wall = cycles(client, draw, batch)
            blocks = transactions(database, name, since)
            since = blocks[-1][-1].position
            ratios.append(wall / bare(copy, name, blocks))
            walls.append(wall)
    database.close()
    copy.close()
    return ratios, BLOCKS * CYCLES * batch / sum(walls)


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
        began, spent = time.perf_counter(), server.cpu
        for _ in range(TRIALS):
            client.tell(client.ask()[0], float(draw.normal()))
        return TRIALS / (time.perf_counter() - began), (server.cpu - spent) / TRIALS


def large(url):
    """Make a study of many readings, ended as a server ends it, with its snapshot."""
    host, draw = Host(Database(url), Limits(batch=10_000)), np.random.default_rng(3)
    host.create(NewStudy(arms=["A", "B", "C"], id="large", contamination=0.0, max_pulls=10**8))
    for _ in range(READINGS // 10_000):
        pulls = host.ask("large", "w", 10_000).pulls
        host.tell(
            "large", [Told(p.ticket, float(v)) for p, v in zip(pulls, draw.normal(size=len(pulls)), strict=True)]
        )
    with host.looking("large") as hosted:
        pulls, done = hosted.study.pulls, hosted.study.done
    host.close()
    return pulls, done


def opened(url):
    began = time.perf_counter()
    host = Host(Database(url))
    host.ask("large", "w", 1)
    wall = time.perf_counter() - began
    host.database.close()
    return wall


def main():
    with tempfile.TemporaryDirectory(dir=".") as folder:
        kinds = {"SQLite": (f"{folder}/a.db", f"{folder}/b.db")}
        if len(sys.argv) > 1:
            kinds["PostgreSQL"] = (sys.argv[1], sys.argv[2])
        print("| database | readings in a request | times the bare database (least, most) | readings a second |")
        print("|---|---|---|---|")
        for kind, (url, other) in kinds.items():
            for batch in (1, 100):
                ratios, rate = added(url, other, batch)
                shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
                print(f"| {kind} | {batch} | {shown} | {rate:,.0f} |", flush=True)
        asks = 1000 * latencies(f"{folder}/c.db")
        told = ", ".join(f"{name} {np.quantile(asks, q):.1f} ms" for name, q in (("p50", 0.5), ("p99", 0.99)))
        print(f"\nAsks in {STUDIES} studies of {ARMS} arms, {CLIENTS} clients at once, {asks.size} asks: {told}.")
        (ours, cpu), theirs = alone(f"{folder}/d.db"), peer(folder)
        print(
            f"\nAsk and tell, a second: {ours:.0f} over HTTP ({1000 * cpu:.1f} ms of the server's CPU each); "
            f"Optuna {optuna.__version__}: {theirs:.0f}."
        )
        pulls, done = large(f"{folder}/e.db")
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
