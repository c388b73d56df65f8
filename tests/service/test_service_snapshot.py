"""Snapshots: a study that comes back from one goes on as if it had never been away."""

import sqlite3
import time
from contextlib import closing

import msgspec
import numpy as np
import pytest

from truearm.errors import ProtocolError
from truearm.events import Noted
from truearm.service import hosting, snapshot
from truearm.service.database import Database
from truearm.service.hosted import Hosted
from truearm.service.hosting import Host
from truearm.service.settings import Limits
from truearm.service.wire import NewStudy, Told
from truearm.study import Study

KINDS = [{}, {"rounds": True}, {"policy": "lucb"}, {"at_least": 10.0}, {"contamination": None}, {"seed": 3}]


def pulled(study, times, seed):
    draw = np.random.default_rng(seed)
    for _ in range(times):
        for pull in study.ask(5)[:4]:  # one stays out
            study.tell(
                pull, Noted(float(draw.normal(10)), {"host": "a", "large": 10**30, "deep": [1, {"x": None}]})
            )


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_a_study_goes_on_from_its_snapshot(options):
    study = Study(["A", "B", "C"], max_pulls=4000, **options)
    pulled(study, 60, 1)
    again = snapshot.from_bytes(snapshot.to_bytes(study))
    for one in (study, again):
        pulled(one, 80, 2)
        one.stop()
    assert list(again.events()) == list(study.events())
    assert again.result.to_dict() == study.result.to_dict()


HOSTILE = [
    ["record", "os:system", []],
    ["record", "truearm.cli:main", []],
    ["record", "truearm.__main__:main", []],
    ["record", "truearm.policies.toptwo:np", []],
    ["record", "truearm.events:Log", [["__class__", 1]]],
    ["numpy", "|O", [1], True, b"12345678"],
    ["numpy", "<f8", [10**12], True, b""],
    ["enum", "truearm.claims.certificate:Status", "nowhere"],
    ["unknown"],
    [],
    7,
]


@pytest.mark.parametrize("packed", HOSTILE, ids=str)
def test_nothing_but_records_of_studies_is_made(packed):
    with pytest.raises(ProtocolError, match="the snapshot cannot be read"):
        snapshot.from_bytes(msgspec.msgpack.encode(packed))


def kept(tmp_path):
    """Return a study that was decided, as a host has it, and the row of its last event."""
    with closing(Host(Database(str(tmp_path / "s.db")))) as host:
        host.create(NewStudy(arms=["A", "B"], id="kept", contamination=0.0))
        while pulls := host.ask("kept", "ann", 5).pulls:
            host.tell("kept", [Told(pull.ticket, pull.ticket % 7 + 9.0 * (pull.arm == "A")) for pull in pulls])
        with host.looking("kept") as hosted:
            return hosted, host.database.at("kept", hosted.position), host.database.at("kept", 0)


def brought_back(body, last, began):
    hosted = Hosted("kept", began)
    hosted.restore(last, body)
    return hosted


def test_a_snapshot_of_another_version_is_as_none(tmp_path, monkeypatch):
    hosted, last, began = kept(tmp_path)
    body = hosted.sealed()
    assert brought_back(body, last, began).position == last.position
    monkeypatch.setattr(snapshot, "__version__", "0.0")
    assert brought_back(body, last, began).position == 0


def test_a_snapshot_that_lacks_a_field_is_as_none(tmp_path, monkeypatch):
    """Whichever field it is: what has none is not the study that the log describes."""
    hosted, last, began = kept(tmp_path)
    for lacking in vars(hosted.study).keys() - snapshot._LEFT_OUT:
        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "_LEFT_OUT", {*snapshot._LEFT_OUT, lacking})
            body = hosted.sealed()
        assert brought_back(body, last, began).position == 0, lacking


@pytest.mark.parametrize("record", ["OpenBatch", "Log", "Verdict", "Problem", "State"])
def test_a_snapshot_that_lacks_a_part_of_a_record_is_as_none(tmp_path, monkeypatch, record):
    hosted, last, began = kept(tmp_path)
    parts, cut = snapshot._parts, []

    def fewer(value):
        found = parts(value)
        if type(value).__name__ == record:
            cut.append(found.pop())
        return found

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "_parts", fewer)
        body = hosted.sealed()
    assert cut
    assert brought_back(body, last, began).position == 0


def test_a_snapshot_of_other_parts_is_as_none(tmp_path):
    hosted, last, began = kept(tmp_path)
    shape, *parts = snapshot.opened(hosted.sealed())
    others = (parts, [shape, *parts, 1], [shape, *parts[:2], [[0]], parts[3]], [shape, *parts[:3], 7], 3, [])
    for other in others:
        assert brought_back(snapshot.sealed(other), last, began).position == 0
    whole = brought_back(snapshot.sealed([shape, *parts]), last, began)
    assert whole.study.result.to_dict() == hosted.study.result.to_dict()


def test_a_snapshot_that_cannot_be_used_is_taken_anew(tmp_path):
    """The first start after an upgrade replays the log, the second does not."""
    _, last, _ = kept(tmp_path)
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        connection.execute("UPDATE truearm_snapshot SET body = x'00'")
    for position in (0, last.position):
        with closing(Host(Database(str(tmp_path / "s.db")))) as host:
            assert host._read("kept").position == position
            host.ask("kept", "ann", 1)


def filled(path, readings, batch):
    draw = np.random.default_rng(3)
    with closing(Host(Database(str(path)), Limits(batch=batch))) as host:
        host.create(NewStudy(arms=["A", "B", "C"], id="large", contamination=0.0, max_pulls=10**8))
        for _ in range(readings // batch):
            pulls = host.ask("large", "w", batch).pulls
            values = draw.normal(size=len(pulls)).tolist()
            host.tell("large", [Told(p.ticket, v, {"host": "a"}) for p, v in zip(pulls, values, strict=True)])
        with host.looking("large") as hosted:
            return hosted.digest, hosted.study.readings


def test_a_crash_leaves_little_to_replay(tmp_path, monkeypatch):
    monkeypatch.setattr(hosting.Host, "close", lambda self: self.database.close())  # as if it were killed
    digest, readings = filled(tmp_path / "s.db", 10_000, 500)
    with closing(Host(Database(str(tmp_path / "s.db")))) as host:
        assert host._read("large").position > 10_000
        with host.looking("large") as hosted:
            assert (hosted.digest, hosted.study.readings) == (digest, readings)


@pytest.mark.slow
def test_a_million_readings_are_back_in_two_seconds(tmp_path, monkeypatch):
    """After a crash: CPU time, because other processes of the machine say nothing about this one."""
    monkeypatch.setattr(hosting.Host, "close", lambda self: self.database.close())
    digest, _ = filled(tmp_path / "s.db", 1_000_000, 10_000)
    began = time.process_time()
    with closing(Host(Database(str(tmp_path / "s.db")))) as host:
        assert host.ask("large", "w", 1).pulls
        spent = time.process_time() - began
        assert host.database.at("large", 2_000_000).digest == digest
    assert spent < 2
