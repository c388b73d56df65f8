import json
import math
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from entry import issued, released, told
from truearm.errors import InvalidArgument, ProtocolError
from truearm.events import Event
from truearm.store import RACE, VERSIONS, Store, StoreError

DEFINITION = {"arms": ["A", "B"], "delta": 0.05, "nested": {"goal": "min", "none": None}}

# Appends batches of changing size and prints, after each, the last position acknowledged and a check value.
WRITER = """
import sys
from truearm.events import Event
from truearm.store import Store
print(0, flush=True)
with Store(sys.argv[1]) as store:
    store.create({"arms": ["A"]})
    at = store.append([])
    while True:
        size = 1 + at % 3
        store.append([Event("told", at + i, "A", None, (at + i) / 7) for i in range(1, size + 1)])
        at += size
        print(at, flush=True)
"""

# One of several writers at once: its own tickets, nothing printed but errors.
RIVAL = """
import sys
from truearm.events import Event
from truearm.store import Store
path, number, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with Store(path) as store:
    store.create({"arms": ["A"]})
    for i in range(count):
        store.append([Event("told", number * count + i, "A", None, i)])
"""


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "run.db") as made:
        made.create(DEFINITION)
        yield made


def events(store):
    return list(store.events())


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def start(code, *words):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_study_comes_back_as_it_was_written(store):
    noted = told(0, "A", 0.1, {"wall": 0.1, "é": [1, None]})
    written = [issued(0, "A", 0), noted, issued(1, "B", 0, counted=True), released(1, "B"), Event("stopped")]
    assert store.append(written) == 5
    store.close()
    with Store(store.path) as again:
        assert events(again) == written
        assert again.definition == DEFINITION


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@example([math.inf, -math.inf, -0.0, 5e-324, math.nan])
@given(values=st.lists(st.floats(), min_size=1, max_size=20))
def test_every_float_comes_back_exactly(store, values):
    at = store.append([])
    store.append([told(at + i, "A", value) for i, value in enumerate(values, start=1)])
    found = [event.value for event in events(store)[at:]]
    for value, back in zip(values, found, strict=True):
        assert struct.pack(">d", value) == struct.pack(">d", back) or (math.isnan(value) and math.isnan(back))


def test_a_long_log_is_read_in_pieces_with_later_events(store):
    assert store.append([]) == 0
    assert store.append([told(i, "A", i) for i in range(25_000)]) == 25_000
    reader = store.events()
    next(reader)
    assert store.append([told(25_000, "A", 0.5)]) == 25_001
    assert [event.ticket for event in reader] == list(range(1, 25_001))


def test_a_batch_is_written_whole_or_not_at_all(store):
    store.append([told(1, "A", 1.0)])
    with pytest.raises(StoreError, match="issued once and told once"):
        store.append([issued(2, "A", 1), told(2, "A", 2.0), told(1, "A", 9.0)])
    assert events(store) == [told(1, "A", 1.0)]
    assert store.append([told(2, "A", 2.0)]) == 2


@pytest.mark.parametrize(
    "event",
    [
        told(1, "a\0b", 1.0),
        issued(1, "\0", 0),
        released(1, "a\udc80"),
        told(1, "A", 1.0, {"k": ["a\0"]}),
        told(1, "A", 1.0, {"a\0": 1}),
        told(1, "A", 1.0, {"k": math.nan}),
        told(1, "A", 1.0, {"k": {1, 2}}),
        told(1, "A", 1.0).value,
    ],
)
def test_what_cannot_be_kept_is_refused_and_changes_nothing(store, event):
    with pytest.raises(InvalidArgument):
        store.append([issued(0, "A", 0), event])
    assert events(store) == []


def test_nothing_is_on_the_disk_before_create(tmp_path):
    with Store(tmp_path / "run.db") as store:
        assert not store.created
        for use in (lambda: store.append([]), lambda: store.definition, lambda: list(store.events())):
            with pytest.raises(ProtocolError, match="create"):
                use()
    assert list(tmp_path.iterdir()) == []


def test_create_finds_the_same_study_and_refuses_another(store):
    store.append([Event("stopped")])
    store.create(json.loads(json.dumps(DEFINITION)))
    with pytest.raises(ProtocolError, match="another study"):
        store.create({"arms": ["C"]})
    assert store.definition == DEFINITION
    assert len(events(store)) == 1


def foreign_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE mine (x)")
    connection.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("arm,value\nA,1\n"),
        lambda path: path.write_bytes(b"SQLite format 3\0"),
        lambda path: path.write_bytes(os.urandom(5000)),
        foreign_database,
    ],
)
def test_a_file_of_others_is_refused_and_left_alone(tmp_path, make):
    make(tmp_path / "run.db")
    before = snapshot(tmp_path)
    with pytest.raises(InvalidArgument, match="not a truearm log"):
        Store(tmp_path / "run.db")
    assert snapshot(tmp_path) == before


def test_a_foreign_file_created_later_is_left_alone(tmp_path):
    store = Store(tmp_path / "run.db")
    foreign_database(store.path)
    before = snapshot(tmp_path)
    with pytest.raises(InvalidArgument, match="not a truearm log"):
        store.create(DEFINITION)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("schema", "said"),
    [(VERSIONS[RACE] + 1, "a newer truearm"), (3, r"an earlier truearm \(version 3\)")],
)
def test_a_log_of_another_version_is_refused_and_left_alone(store, schema, said):
    store.close()
    connection = sqlite3.connect(store.path)
    connection.execute(f"PRAGMA user_version = {schema}")
    connection.close()
    before = snapshot(store.path.parent)
    with pytest.raises(InvalidArgument, match=said):
        Store(store.path)
    assert snapshot(store.path.parent) == before


def test_a_writer_that_does_not_know_the_end_is_refused(store):
    assert store.append([issued(0, "A", 0)], after=0) == 1
    with Store(store.path) as other, pytest.raises(ProtocolError, match="another process has written"):
        other.append([issued(1, "A", 1)], after=0)
    assert store.append([issued(1, "A", 1)], after=1) == 2


def test_a_folder_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(InvalidArgument, match="directory"):
        Store(tmp_path / "no" / "run.db")
    with pytest.raises(InvalidArgument, match="cannot be a file"):
        Store(tmp_path)


def test_the_log_is_written_ahead_and_synchronized_at_every_commit(store):
    with store._database._connection() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


@pytest.mark.parametrize("statement", ["UPDATE truearm_event SET value = '1'", "DELETE FROM truearm_event"])
def test_the_log_only_grows(store, statement):
    store.append([told(1, "A", 0.5)])
    with closing(sqlite3.connect(store.path)) as other, pytest.raises(sqlite3.IntegrityError, match="only grows"):
        other.execute(statement)


def test_four_processes_write_one_fresh_file(tmp_path):
    count = 10
    writers = [start(RIVAL, tmp_path / "run.db", number, count) for number in range(4)]
    complaints = [writer.communicate(timeout=120)[1] for writer in writers]
    assert complaints == [""] * 4
    with Store(tmp_path / "run.db") as store:
        assert sorted(event.ticket for event in events(store)) == list(range(4 * count))


def test_looking_at_a_file_does_not_drop_the_locks_of_a_store_that_has_it_open(tmp_path):
    # the locks of a process end when it closes any descriptor of the file; another process would then remove
    # the write-ahead log of a store that still writes to it
    path = tmp_path / "run.db"
    with Store(path) as first:
        first.create({"arms": ["A"]})
        first.create({"arms": ["A"]})
        with Store(path) as second:
            second.create({"arms": ["A"]})
        assert start(RIVAL, path, 1, 5).communicate(timeout=120)[1] == ""
        first.append([told(0, "A", 1.0)])
        assert (tmp_path / "run.db-wal").exists()
    with Store(path) as store:
        assert sorted(event.ticket for event in events(store)) == [0, 5, 6, 7, 8, 9]


def kill_while_writing(path, delay):
    """Kill a writer some time after it is about to open the file; return the last position it acknowledged."""
    with path.with_suffix(".said").open("w+") as said:  # a pipe may be read ahead
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=said)
        while not path.with_suffix(".said").read_text():
            time.sleep(0.01)
        time.sleep(delay)
        writer.kill()
        assert writer.wait(60) == -signal.SIGKILL
    return int(path.with_suffix(".said").read_text().rpartition("\n")[0].splitlines()[-1])


@pytest.mark.parametrize("times", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_kills_lose_nothing_acknowledged(tmp_path, times):
    path, rng, safe, known = tmp_path / "run.db", random.Random(1), 0, 0
    for _ in range(times):
        safe = max(safe, kill_while_writing(path, rng.uniform(0, 0.1)))
        with Store(path) as store:
            if not store.created:
                assert safe == 0
                continue
            readings = events(store)
            store.check_file_content()
        assert safe <= len(readings) <= max(safe, known) + 3  # each writer may leave a batch of 3 unsaid
        known = len(readings)
        assert readings == [told(n, "A", n / 7) for n in range(1, len(readings) + 1)]
    assert safe > times - 3  # a busy machine writes little


@pytest.mark.slow
def test_kills_during_creation_leave_a_file_that_can_be_used(tmp_path):
    rng = random.Random(3)
    for number in range(40):
        kill_while_writing(tmp_path / f"{number}.db", rng.uniform(0, 0.02))
        with Store(tmp_path / f"{number}.db") as store:
            store.create({"arms": ["A"]})
            at = store.append([])
            assert store.append([Event("stopped")]) == at + 1


def test_the_log_survives_a_torn_end(store, tmp_path):
    store.append([told(1, "A", 1.0), told(2, "A", 2.0)])
    torn = tmp_path / "torn.db"
    shutil.copy(store.path, torn)
    ahead = store.path.with_name("run.db-wal").read_bytes()
    for extra in (b"", os.urandom(100), ahead[32:3000], os.urandom(9000)):
        torn.with_name("torn.db-wal").write_bytes(ahead + extra)
        with Store(torn) as found:
            assert events(found) == [told(1, "A", 1.0), told(2, "A", 2.0)]
        shutil.copy(store.path, torn)
