import pytest

from loadstone.store import Store


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store") as store:
        yield store
