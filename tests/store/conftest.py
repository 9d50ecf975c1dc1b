import pytest

from loadstone.store import location
from loadstone.store.store import Store


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.processes)])
def spoken(request, tmp_path):
    """What LOADSTONE_STORE says of a new store: a folder, or a database of a real server."""
    folder = tmp_path / "store"
    if request.param == "sqlite":
        return str(folder)
    server = request.getfixturevalue("postgresql")
    return server.url(server.new_database(), folder)


@pytest.fixture
def place(spoken):
    return location.read(spoken)


@pytest.fixture
def store(place):
    with Store.open(place) as store:
        yield store
