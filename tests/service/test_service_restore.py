"""Backups that are put in place of the file of a running server."""

import os
import shutil
import sqlite3

import pytest

from .serving import Server

READINGS = [{"arm": "A", "value": i / 7} for i in range(500)] + [{"arm": "B", "value": i / 9} for i in range(500)]


def give(http, key):
    return http.post("/studies/kept/readings", json={"key": str(key), "readings": READINGS})


@pytest.mark.parametrize("put", [shutil.copyfile, os.replace], ids=["overwritten", "renamed"])
def test_a_backup_put_in_place_of_the_file_of_a_running_server_is_not_destroyed(tmp_path, put):
    file, backup = tmp_path / "studies.db", tmp_path / "backup.db"
    with Server(file) as server, server.client() as http:
        http.post("/studies", json={"id": "kept", "arms": ["A", "B"], "passive": True}).raise_for_status()
        for key in range(4):
            give(http, key).raise_for_status()
        with sqlite3.connect(file) as source, sqlite3.connect(backup) as copy:
            source.backup(copy)
        source.close()
        copy.close()
        for key in range(4, 45):
            give(http, key).raise_for_status()
        assert (tmp_path / "studies.db-wal").stat().st_size > 1000 * 4096
        put(backup, file)
        for key in range(45, 48):
            answer = give(http, key)
            assert answer.status_code == 503
            assert "remove" in answer.json()["detail"]
            assert "-wal" in answer.json()["detail"]
        assert http.get("/studies/kept").status_code == 503
        assert http.get("/healthz").status_code == 503
        server.end()
    with Server(file) as server, server.client() as http:
        assert http.get("/studies/kept").json()["pulls"] == 4000
        assert give(http, 30).json()["added"] == 1000
        server.end()
    with sqlite3.connect(file) as found:
        assert found.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found.close()
