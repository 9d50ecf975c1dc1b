import pytest
from fake_keystone import PASSWORD, FakeKeystone
from fake_server import serving


@pytest.fixture(autouse=True)
def _no_cloud_of_the_user(monkeypatch):
    files = ("OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE")
    for name in ("OS_CLOUD", "OS_REGION_NAME", "OS_INTERFACE", *files):
        monkeypatch.delenv(name, raising=False)


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
        "OS_PROJECT_NAME": "admin",
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
    }
