"""Changes of one study that come at the same time share a transaction; each gets what it would have got alone."""

import sqlite3
import threading
import time
from contextlib import contextmanager

import pytest

from truearm.errors import InvalidArgument
from truearm.service.database import Database, DatabaseError
from truearm.service.hosting import Host
from truearm.service.wire import NewStudy, Told


@pytest.fixture
def host(database):
    host = Host(Database(str(database)))
    host.create(NewStudy(arms=["A", "B"], id="many"))
    yield host
    host.close()


@pytest.fixture
def sizes(host, monkeypatch):
    """How many rows each transaction wrote."""
    found, writing = [], host.database.writing

    @contextmanager
    def counted(name, **named):
        with writing(name, **named) as transaction:
            append = transaction.append
            transaction.append = lambda rows: found.append(len(rows)) or append(rows)
            yield transaction

    monkeypatch.setattr(host.database, "writing", counted)
    return found


def together(host, *works):
    """Do works in threads that all wait for the study, in this order; return what each gave or raised."""
    found = [None] * len(works)

    def run(i):
        try:
            found[i] = works[i]()
        except Exception as error:
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
    with host.looking("many") as hosted:
        for i, thread in enumerate(threads):
            thread.start()
            while len(hosted.wishes) <= i:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return found


def logged(host):
    return [(row.kind, row.ticket, row.worker) for row in host.database.after("many", 0)]


def telling(host, ticket):
    return lambda: host.tell("many", [Told(ticket, 1.0)], f"w{ticket}").outcomes[0].outcome


def failing(host, error, *, late):
    def work(hosted, _):
        if late:
            hosted.study.ask(1)
        raise error

    return lambda: host._changed("many", "bad", work)


def check_replay(host):
    again = Host(Database(host.database.url))
    with host.looking("many") as here, again.looking("many") as there:
        assert list(here.study.events()) == list(there.study.events())
        assert here.digest == there.digest
        assert here.holders == there.holders
    again.database.close()


def test_changes_that_come_together_are_one_transaction(host, sizes):
    host.ask("many", "ann", 4)
    assert together(host, *(telling(host, ticket) for ticket in range(4))) == ["told"] * 4
    assert sizes == [4, 4]
    assert logged(host)[4:] == [("told", ticket, f"w{ticket}") for ticket in range(4)]
    check_replay(host)


def test_workers_that_ask_together_get_pulls_of_their_own(host, sizes):
    asked = together(host, *(lambda name=name: host.ask("many", name, 2) for name in ("ann", "bob", "ann")))
    assert [[pull.ticket for pull in found.pulls] for found in asked] == [[0, 1], [2, 3], [0, 1]]
    assert [pull.worker for found in asked for pull in found.pulls] == ["ann"] * 2 + ["bob"] * 2 + ["ann"] * 2
    assert sizes == [4]
    check_replay(host)


def test_the_same_reading_told_twice_together_is_one(host, sizes):
    host.ask("many", "ann", 1)
    assert together(host, telling(host, 0), telling(host, 0)) == ["told", "known"]
    assert sizes == [1, 1]


def test_who_is_refused_keeps_nobody_back(host, sizes):
    host.ask("many", "ann", 2)
    error = InvalidArgument("n cannot be")
    assert together(host, telling(host, 0), failing(host, error, late=False), telling(host, 1)) == [
        "told",
        error,
        "told",
    ]
    assert sizes == [2, 2]
    check_replay(host)


def test_who_fails_half_way_leaves_no_trace(host):
    """The study is then ahead of its log: it is read again, and the others change what was read."""
    host.ask("many", "ann", 2)
    error = InvalidArgument("n cannot be")
    found = together(host, telling(host, 0), failing(host, error, late=True), telling(host, 1))
    assert found == ["told", error, "told"]
    assert sorted(logged(host)[2:]) == [("told", 0, "w0"), ("told", 1, "w1")]
    check_replay(host)


def test_when_the_database_fails_nobody_is_acknowledged(tmp_path):
    host = Host(Database(str(tmp_path / "s.db")))
    host.create(NewStudy(arms=["A", "B"], id="many"))
    host.ask("many", "ann", 2)
    with sqlite3.connect(tmp_path / "s.db") as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON truearm_event BEGIN SELECT RAISE (FAIL, 'full'); END")
    found = together(host, telling(host, 0), telling(host, 1))
    assert [type(error) for error in found] == [DatabaseError] * 2
    other.execute("DROP TRIGGER full")
    other.close()
    assert logged(host)[2:] == []
    assert together(host, telling(host, 0), telling(host, 1)) == ["told", "told"]
    check_replay(host)
    host.close()
