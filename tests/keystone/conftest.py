import pytest
from fake_keystone import PASSWORD, FakeKeystone
from fake_server import serving

from loadstone.cloud import connect, from_environment

RUN = "20261121-0931-ab12cd"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Retries stay, their waits go."""
    monkeypatch.setattr("loadstone.keystone.identity._RETRY_WAITS_S", (0.0,) * 4)
    monkeypatch.setattr("loadstone.keystone.contexts.users._REVOKED_S", 0.0)


@pytest.fixture
def fake():
    return FakeKeystone()


@pytest.fixture
def url(fake):
    with serving(fake.handler()) as url:
        yield url


@pytest.fixture
def variables(url):
    return {
        "OS_AUTH_URL": f"{url}/v3",
        "OS_USERNAME": "admin",
        "OS_PASSWORD": PASSWORD,
        "OS_USER_DOMAIN_ID": "default",
    }


@pytest.fixture
def access(variables):
    with connect(from_environment(variables, "--lab test")) as access:
        yield access


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "created.jsonl"


@pytest.fixture
def said():
    return []
