"""`loadstone doctor --cloud NAME`: what stands against a measurement of a target."""

import json

import pytest
import yaml
from click.testing import CliRunner
from fake_keystone import PASSWORD

from loadstone.cli import loadstone
from loadstone.cloud.cloud import Endpoint
from loadstone.errors import InvalidInput
from loadstone.target.reservation import reserved

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def named(home, url, monkeypatch):
    """Write clouds.yaml with the cloud `test`, changed."""

    def write(**auth):
        own = {"auth_url": f"{url}/v3", "username": "admin", "password": PASSWORD}
        own |= {"user_domain_id": "default", **auth}
        file = home / "clouds.yaml"
        file.write_text(yaml.safe_dump({"clouds": {"test": {"auth": own}}}))
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(file))

    write()
    return write


def doctor(*words):
    words = ("doctor", *(words or ("--cloud", "test")))
    done = CliRunner().invoke(loadstone, [*words, "--json", "-"], standalone_mode=False)
    assert done.exception is None, done.exception
    return done.return_value, {row["name"]: row for row in json.loads(done.stdout)}


@pytest.mark.usefixtures("named")
def test_a_sound_target_is_logged_in_to_and_nothing_is_created(fake, home):
    before = dict(fake.calls)
    code, rows = doctor()
    assert code in (None, 0)
    assert all(row["is_there"] for row in rows.values()), rows
    assert set(rows) == {"address", "login", "rights", "role", "leftovers", "other runs", "faults"}
    assert rows["login"]["found"].count(",") == 2  # three logins
    written = {method for method, path in fake.calls if path != "/v3/auth/tokens"} - {"GET"}
    assert not written, (before, fake.calls)
    assert not list(home.glob("home/targets/*/measurements/*"))


def test_a_wrong_password_is_one_row_and_exit_code_3(named):
    named(password="wrong-one")
    code, rows = doctor()
    assert code == 3
    assert set(rows) == {"address", "login", "faults"}
    assert not rows["login"]["is_there"]
    assert "wrong-one" not in rows["login"]["found"]


@pytest.mark.usefixtures("named")
def test_what_an_earlier_run_left_is_named_with_the_command_that_removes_it(access):
    access.session.post(
        f"{access.identity_url}/domains",
        json={"domain": {"name": "loadstone-20261121-0931-ab12cd"}},
    )
    _, rows = doctor()
    assert not rows["leftovers"]["is_there"]
    assert not rows["leftovers"]["is_needed"]
    assert rows["leftovers"]["mend"] == (
        "loadstone results clean 20261121-0931-ab12cd --cloud test"
    )


@pytest.mark.usefixtures("named")
def test_another_measurement_is_named_and_does_not_learn_of_it(url):
    with reserved(Endpoint.parse(f"{url}/v3"), anyway=False) as other:
        _, rows = doctor()
        assert rows["other runs"]["found"] == other.name
        assert other.beside == ()


def test_a_cloud_or_a_lab_not_both():
    done = CliRunner().invoke(
        loadstone, ["doctor", "--cloud", "a", "--lab", "b"], standalone_mode=False
    )
    assert isinstance(done.exception, InvalidInput)
