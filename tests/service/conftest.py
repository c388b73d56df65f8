import pytest

from .serving import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("served") / "studies.db", "--rate", "100000") as found:
        yield found


@pytest.fixture
def http(server):
    with server.client() as client:
        yield client
