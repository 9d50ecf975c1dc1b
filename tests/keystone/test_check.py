"""`loadstone doctor --cloud NAME`: what stands against a measurement of a target."""

import json
import time
from email.utils import formatdate

import pytest
import yaml
from click.testing import CliRunner
from fake_keystone import PASSWORD

from loadstone.cli import loadstone
from loadstone.cloud.cloud import Endpoint
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.system.http_date import own_date
from loadstone.target.check import clock_of
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


@pytest.mark.parametrize(
    ("off_s", "is_sound", "words"),
    [
        (0.0, True, "this machine's, to within"),
        (3.0, True, "ahead of this machine's"),
        (-3.5, True, "behind this machine's"),
        (40.0, False, "ahead of this machine's"),
        (-40.0, False, "behind this machine's"),
    ],
)
def test_the_clock_is_compared_by_the_date_of_an_answer(off_s, is_sound, words):
    check = clock_of(lambda: formatdate(time.time() + off_s, usegmt=True))
    assert check.is_there is is_sound
    assert words in check.found


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_a_clock_without_a_date_is_not_compared(date):
    assert clock_of(lambda: date).is_there


def test_the_date_of_an_answer_from_a_cache_is_of_another_time():
    date = formatdate(usegmt=True)
    assert own_date({"Date": date}) == date
    assert own_date({"Date": date, "Age": "120"}) == ""
    assert own_date({}) == ""


@pytest.mark.usefixtures("named")
def test_a_sound_target_is_logged_in_to_and_nothing_is_created(fake, home):
    before = dict(fake.calls)
    code, rows = doctor()
    assert code in (None, 0)
    assert all(row["is_there"] for row in rows.values()), rows
    others = {"leftovers", "other runs", "faults"}
    assert set(rows) == {"address", "login", "clock", "rights", "role", *others}
    assert "this machine's, to within" in rows["clock"]["found"]
    assert rows["login"]["found"].count(",") == 2  # three logins
    tokens = ("POST", "/v3/auth/tokens")
    assert fake.calls[tokens] - before.get(tokens, 0) == 4  # one more to connect
    written = {method for method, path in fake.calls if path != "/v3/auth/tokens"} - {"GET"}
    assert not written, (before, fake.calls)
    assert not list(home.glob("home/targets/*/measurements/*"))


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(
    ("roles", "found"),
    [
        (["member", "admin"], "may list domains, and has the role admin"),
        (["reader"], "creating users was not tried, and the roles are reader, not admin"),
        ([], "creating users was not tried, and there is no role"),
    ],
)
def test_the_right_to_create_users_is_only_said_of_admins(fake, roles, found):
    fake.token_roles = roles
    _, rows = doctor()
    assert rows["rights"]["found"].endswith(found)


@pytest.mark.usefixtures("named")
def test_a_role_that_may_not_be_looked_for_is_not_told_to_be_created(fake):
    fake.disturb = lambda _method, path: 403 if path.endswith("/roles") else None
    _, rows = doctor()
    assert not rows["role"]["is_there"]
    assert "could not list roles: HTTP 403" in rows["role"]["found"]
    assert rows["role"]["mend"] == "give that role, or measure with --users 0"
    fake.disturb = lambda _method, _path: None
    fake.roles = {"r-admin": "admin"}
    _, rows = doctor()
    assert rows["role"]["mend"] == "create it: openstack role create member"


def test_a_wrong_password_is_one_row_and_exit_code_3(named):
    named(password="wrong-one")
    code, rows = doctor()
    assert code == 3
    assert set(rows) == {"address", "login", "faults"}
    assert not rows["login"]["is_there"]
    assert "wrong-one" not in rows["login"]["found"]


@pytest.mark.usefixtures("named")
def test_a_login_that_fails_after_others_is_a_row(fake):
    answers = iter([None, None, 503])
    fake.disturb = lambda _method, path: next(answers) if path.endswith("/tokens") else None
    code, rows = doctor()
    assert code == EnvironmentUnusable.exit_code
    assert rows["login"]["found"].endswith("HTTP 503: as told (after 2 that succeeded)")
    assert set(rows) == {"address", "login", "other runs", "faults"}


@pytest.mark.usefixtures("named")
def test_a_service_that_is_lost_during_the_checks_keeps_their_rows(fake):
    fake.disturb = lambda _method, path: 0 if path == "/v3/domains" else None
    code, rows = doctor()
    assert code == EnvironmentUnusable.exit_code
    assert "connection" in rows["answers"]["found"]
    assert rows["login"]["is_there"]


@pytest.mark.parametrize("status", [401, 429, 500])
@pytest.mark.usefixtures("named")
def test_a_failure_is_not_called_a_missing_right(fake, status):
    fake.disturb = lambda _method, path: status if path == "/v3/domains" else None
    _, rows = doctor()
    assert rows["rights"]["found"].startswith(f"domains were not listed: HTTP {status} ")
    assert "leftovers" not in rows or not rows["leftovers"]["is_there"]


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
        "on the machine that measured it, with its --store: "
        "loadstone results clean 20261121-0931-ab12cd --cloud test"
    )


def test_leftovers_are_found_where_a_part_of_the_domains_is_listed(fake, named):
    for name in ("Default", "sales", "loadstone-20261121-0931-ab12cd"):
        fake.add("domains", name)
    fake.page = 1
    named()
    _, rows = doctor()
    assert not rows["leftovers"]["is_there"]
    assert rows["leftovers"]["found"].startswith("of runs 20261121-0931-ab12cd")


def test_a_token_of_a_domain_does_not_say_that_nothing_is_left(fake, named):
    fake.add("domains", "loadstone-20261121-0931-ab12cd")
    named(domain_id="default")
    _, rows = doctor()
    assert rows["leftovers"]["found"].startswith("not looked for: Keystone lists for the token")


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
