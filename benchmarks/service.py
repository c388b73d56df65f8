"""Measure asks and tells per second of 8 clients, compared with Optuna, and the time to open a large study.

1. 8 clients in one study over HTTP; each asks for one pull and records its reading. Goal: 5 times Optuna's ask and
   tell on its SQLite storage with 8 threads in one process, without a network.
2. A study of a million readings is opened from its log. Goal: 8 s.

Loopback only, about two minutes on a quiet machine.

Run: python benchmarks/service.py [READINGS]
"""

import random
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import optuna

from truearm.service.access import Settings
from truearm.service.client import Client
from truearm.service.models import NewStudy, PullReading
from truearm.service.studies import Studies
from truearm.store import Database

CLIENTS, CYCLES, TRIALS = 8, 60, 25  # cycles of each client, and trials of each thread of Optuna
BATCH = 1000


def run_threads(work):
    """Return the seconds that all threads take together."""
    threads = [threading.Thread(target=work, args=(i,)) for i in range(CLIENTS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started


def measure_service(folder):
    """Return asks and tells per second over HTTP."""
    words = [sys.executable, "-m", "truearm", "serve", "--database", f"{folder}/s.db", "--port", "0"]
    with subprocess.Popen([*words, "--rate", "1000000"], stderr=subprocess.PIPE, text=True) as server:
        url = next(line.split('"url": "')[1].split('"')[0] for line in server.stderr if '"url"' in line)
        threading.Thread(target=lambda: [None for _ in server.stderr], daemon=True).start()
        clients = [Client(url, "speed", ["A", "B", "C"], contamination=0.0) for _ in range(CLIENTS)]
        draw = random.Random(1)

        def work(i):
            for _ in range(CYCLES):
                for pull in clients[i].ask():
                    clients[i].tell(pull, draw.gauss(0, 1))

        work(0)  # imports of the first requests
        seconds = run_threads(work)
        server.terminate()
    return CLIENTS * CYCLES / seconds


def measure_optuna(folder):
    """Return asks and tells per second of Optuna."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=f"sqlite:///{folder}/optuna.db")

    def work(_):
        for _ in range(TRIALS):
            trial = study.ask()
            study.tell(trial, trial.suggest_float("x", 0, 1))

    return CLIENTS * TRIALS / run_threads(work)


def measure_replay(folder, readings):
    """Return the wall and CPU seconds to open a study with this many readings."""
    database = Database(f"{folder}/large.db")
    studies, draw = Studies(database, Settings(max_batch=BATCH)), np.random.default_rng(1)
    studies.create(NewStudy(arms=["A", "B", "C"], id="large", contamination=0.0, max_pulls=10**8))
    for _ in range(readings // BATCH):
        pulls = studies.ask("large", "w", BATCH).pulls
        values = draw.normal(size=len(pulls)).tolist()
        batch = [PullReading(pull.ticket, value) for pull, value in zip(pulls, values, strict=True)]
        studies.tell("large", batch)
    wall, cpu = time.perf_counter(), time.process_time()
    with Studies(database).read("large") as hosted:
        assert hosted.study.pulls == len(pulls) * (readings // BATCH)
    database.close()
    return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as place:
        ours, theirs = measure_service(place), measure_optuna(place)
        print(f"8 clients: {ours:.0f} asks and tells per second, Optuna {theirs:.0f}: {ours / theirs:.1f} times")
        wall, cpu = measure_replay(place, count)
        print(f"{count:,} readings are back after {wall:.1f} s ({cpu:.1f} s of CPU time)")
