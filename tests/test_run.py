import concurrent.futures
import contextlib
import heapq
import io
import math
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from scipy.stats import binomtest

from entry import received
from truearm.claims.certificate import Status
from truearm.errors import ArmFailed, ProtocolError
from truearm.events import Noted
from truearm.run import find_best, log_to, resume_study, run
from truearm.store import Store
from truearm.study import Study


def arms(seed=1, **means):
    rng = random.Random(seed)
    return {arm: partial(rng.gauss, mean, 1.0) for arm, mean in means.items()}


def noisy(mean):
    return Noted(random.gauss(mean, 1.0), {"host": "here"})


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_pulls_run_on_any_executor(pool, tmp_path):
    sources = {"A": partial(noisy, 0.0), "B": partial(noisy, 3.0)}
    with pool(2) as executor:
        result = find_best(sources, executor=executor, store=tmp_path / "r.db")
    assert result.best == "B"
    with Store(tmp_path / "r.db") as store:
        assert {event.notes["host"] for event in store.events() if event.kind == "told"} == {"here"}


def test_a_dask_cluster_gives_a_fresh_reading_per_pull():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        study = Study(["A", "B"])
        sources = {"A": partial(noisy, 0.0), "B": partial(noisy, 3.0)}
        result = run(study, sources.__getitem__, executor=client.get_executor(), workers=2)
    values = [value for tape in study.readings.values() for value in tape if value is not None]
    assert result.best == "B"
    assert len(set(values)) == len(values)


def test_a_slow_arm_does_not_block_the_others():
    draw = random.Random(8)

    def slow():
        time.sleep(0.2)
        return -5.0 + draw.random()

    with ThreadPoolExecutor(8) as executor:
        sources = {"slow": slow, **arms(A=0.0, B=3.0)}
        result = find_best(sources, executor=executor, max_seconds=60)
    assert result.best == "B"
    assert result.pulls["slow"] < result.total / 2  # the others went on while it was out


def simulate(seed, workers, means, horizon):
    """Run pulls on a simulated clock where a reading takes as long as it is large."""
    rng = np.random.default_rng(seed)
    study = Study(list(means), contamination=None, delta=0.1, max_pulls=horizon, goal="min")
    clock, out = 0.0, []
    while not study.done:
        for pull in study.ask(workers - len(out)) if len(out) < workers else ():
            value = float(rng.exponential(means[pull.arm]))
            heapq.heappush(out, (clock + value, pull.ticket, value))
        if out:
            clock, ticket, value = heapq.heappop(out)
            study.tell(ticket, value)
    return study


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("runs", "workers", "horizon"), [(40, 12, 400), pytest.param(1000, 16, 2000, marks=pytest.mark.slow)]
)
def test_delays_equal_to_the_value_do_not_break_the_guarantee(runs, workers, horizon):
    # two equal arms: the first listed is the best, and is ever rejected with chance <= 0.1; false alarm 1e-4
    found = (simulate(seed, workers, {"A": 1.0, "B": 1.0}, horizon) for seed in range(runs))
    wrong = sum(any(claim.arm == "A" for claim in study.result.certificate.claims) for study in found)
    assert binomtest(wrong, runs, 0.1, alternative="greater").pvalue > 1e-4


def test_a_failing_arm_stops_with_what_was_known():
    count = iter(range(1000))

    def fails():
        if next(count) == 9:
            raise OSError("no such device")
        return 1.0

    with pytest.raises(ArmFailed, match="no such device") as caught:
        find_best({"A": fails, "B": lambda: 0.0})
    assert caught.value.arm == "A"
    assert caught.value.result.pulls["A"] == 10
    assert isinstance(caught.value.__cause__, OSError)


def test_a_failing_arm_may_count_as_missing():
    rng = random.Random(2)

    def sometimes():
        if rng.random() < 0.02:
            raise OSError
        return rng.gauss(3, 1)

    result = find_best({"A": sometimes, "B": lambda: rng.gauss(0, 1)}, on_error="missing")
    assert result.best == "A"


def raises(error):
    raise error


@pytest.mark.parametrize(("goal", "value"), [("min", math.inf), ("max", -math.inf)])
@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        concurrent.futures.TimeoutError(),
        multiprocessing.TimeoutError(),
        subprocess.TimeoutExpired("sleep", 1),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_a_time_out_is_recorded_on_the_bad_side(error, goal, value):
    for pool in (None, ThreadPoolExecutor(2)):
        study = Study(["A", "B"], goal=goal, max_pulls=2)
        run(study, lambda _: lambda: raises(error), executor=pool)
        assert study.readings == {"A": [value], "B": [value]}


def test_an_arm_that_mostly_times_out_is_not_the_highest():
    """Wrong in 100 of 100 runs while a time-out was plus infinity for every goal."""
    wrong = 0
    for seed in range(20):
        rng = random.Random(seed)
        late = {"late": lambda: raises(TimeoutError()) if rng.random() < 0.7 else rng.gauss(0, 1)}  # noqa: B023
        wrong += find_best({**late, "prompt": partial(rng.gauss, 0, 1)}, max_pulls=500).best == "late"
    assert wrong == 0


def test_data_that_end_exhaust_the_study():
    data = {arm: iter([37 * i % 41 for i in range(n)]) for arm, n in (("A", 40), ("B", 18))}

    def from_data(arm):
        for value in data[arm]:
            return float(value)
        raise EOFError

    result = find_best({arm: partial(from_data, arm) for arm in data}, contamination=0.2)
    assert (result.status, result.pulls["B"]) == (Status.EXHAUSTED, 18)


def test_a_budget_of_seconds_ends_with_what_is_known():
    result = find_best(
        {"A": lambda: time.sleep(0.01) or 0.0, "B": lambda: 0.0}, max_seconds=0.15, contamination=0.1
    )
    assert result.status is Status.EXHAUSTED
    assert 0 < result.total < 60


def test_an_interrupt_from_the_keyboard_keeps_everything():
    count = iter(range(100))

    def interrupts():
        if next(count) == 7:
            raise KeyboardInterrupt
        return 1.0

    result = find_best({"A": interrupts, "B": lambda: 1.0})
    assert result.status is Status.EXHAUSTED
    assert result.pulls["A"] == 8


class Interrupted(Store):
    """A log during whose write Ctrl-C is pressed, once."""

    def append(self, events, after=None):
        at = super().append(events, after)
        if at >= self.moment:
            self.moment = math.inf
            signal.raise_signal(signal.SIGINT)
        return at


@pytest.mark.parametrize("moment", range(40, 52))
@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor])
def test_an_interrupt_while_the_log_is_written_leaves_no_reading_out(tmp_path, moment, pool):
    with contextlib.nullcontext() if pool is None else pool(2) as executor:
        store = Interrupted(tmp_path / "r.db")
        store.moment = moment
        with store:
            result = find_best(arms(A=0.0, B=0.1), rounds=True, store=store, executor=executor)
            study = Study.replay(store.definition, list(store.events()))
    study.stop()
    assert result.status is Status.EXHAUSTED
    assert study.result.to_dict() == result.to_dict()


def test_a_log_is_continued_where_it_broke_off(tmp_path):
    path, count = tmp_path / "run.db", iter(range(1000))

    def dies():
        if next(count) == 10:
            raise SystemExit
        return random.gauss(0, 1)

    with pytest.raises(SystemExit):
        find_best({"A": dies, "B": partial(noisy, 2.0)}, store=path)
    result = find_best({"A": partial(noisy, 0.0), "B": partial(noisy, 2.0)}, store=path)
    with Store(path) as store:
        told = [e.value for e in store.events() if e.kind == "told"]
    assert result.best == "B"
    assert len(told) == result.total
    assert sum(math.isnan(value) for value in told) == 1


def test_what_an_ask_decided_while_pulls_were_out_is_decided_in_the_log(tmp_path):
    study = Study(["A", "B"], contamination=None)
    with Store(tmp_path / "r.db") as store:
        store.create(study.definition)
        log_to(study, store)
        for i, pull in enumerate(study.ask(64)[:-1]):
            study.tell(pull, 100.0 * (pull.arm == "A") + i)
        assert study.ask(1) == []
        assert study.done
        assert study.in_flight == 1
        again = resume_study(store)
    assert again.result.to_dict() == study.result.to_dict()


def test_a_finished_log_gives_the_same_result_without_a_pull(tmp_path):
    path = tmp_path / "run.db"
    first = find_best(arms(seed=8, A=0.0, B=2.0), store=path)

    def never():
        raise AssertionError

    again = find_best({"A": never, "B": never}, store=path)
    assert again.to_dict() == first.to_dict()


def test_a_log_of_another_study_is_refused(tmp_path):
    find_best(arms(A=0.0, B=2.0), store=tmp_path / "run.db")
    for change, words in (({"delta": 0.01}, "differs in delta;"), ({"max_pulls": 9}, "differs in max_pulls")):
        with pytest.raises(ProtocolError, match=words):
            find_best(arms(A=0.0, B=2.0), store=tmp_path / "run.db", **change)


def test_progress_is_drawn_on_a_terminal():
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    program = (
        "import random, time, truearm as ta\n"
        "draw = random.Random(1)\n"
        "slow = lambda typical: lambda: time.sleep(0.002) or draw.gauss(typical, 1)\n"
        "ta.find_best({'A': slow(0), 'B': slow(0.5)}, contamination=None, max_pulls=300, progress=True)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stderr=theirs, stdout=subprocess.PIPE) as running:
        os.close(theirs)
        assert "leads" in received(ours)
        assert running.wait(timeout=60) == 0
        assert running.stdout.read() == b""


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("gap", "is_warned"), [(0.0, True), (3.0, False)])
def test_a_budget_that_will_not_decide_is_announced_before_it_is_spent(gap, is_warned, monkeypatch):
    """Votes of judges, 0 or 1, took 20,000 pulls without a word."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("truearm.commands.terminal._REDRAW_S", 0.0)
    draw = random.Random(1)
    arms = {"A": lambda: float(draw.random() < 0.6) + gap, "B": lambda: float(draw.random() < 0.55)}
    find_best(arms, max_pulls=600)
    assert ("600 will probably not decide" in sys.stderr.getvalue()) == is_warned
