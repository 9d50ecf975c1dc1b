"""Every scenario against `loadstone serve --oidc`: what was sent is what the service counted."""

import re
from collections import Counter
from dataclasses import replace

import pytest
from oidc_service import CLIENT_ID, SECRET, OidcService, oidc_service

from loadstone.engine import gate
from loadstone.engine.gate import Allowance
from loadstone.engine.samples import Outcome
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.oidc.client import Client
from loadstone.oidc.prepare import LEAST_SESSIONS, PreparedOidc, prepare
from loadstone.oidc.scenarios import SCENARIOS, named
from loadstone.oidc.target import connected
from loadstone.plan.load import ClosedLoad, ReplayLoad
from loadstone.plan.model import Limits, Placement, Plan

ITERATIONS = 40
# What the service grants per iteration of each scenario.
GRANTS = {
    "oidc-discover": {},
    "oidc-client-credentials": {"client_credentials": 1},
    "oidc-password": {"password": 1},
    "oidc-login": {"login": 1, "authorization_code": 1},
    "oidc-refresh": {"refresh_token": 1},
    "oidc-introspect": {"introspection": 1},
    "oidc-userinfo": {"userinfo": 1},
    "oidc-logout": {"login": 1, "authorization_code": 1, "logout": 1},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with oidc_service(tmp_path_factory.mktemp("oidc"), "--capacity=10000") as started:
        yield started


def plan(prepared: PreparedOidc, http="1.1", iterations=ITERATIONS) -> Plan:
    load = ClosedLoad(4, iterations=iterations)
    placement = Placement(http=http)
    return prepared.plan(load, Limits(4, drain_s=1.0), placement)


def run(service: OidcService, name: str, iterations: int = ITERATIONS):
    """Return the samples of a load, and what the service counted during it."""
    with service.connected() as provider:
        prepared = prepare(named(name), provider, lambda _: None)
        ready = plan(prepared, iterations=iterations)
        before = service.counts
        samples = gate.run(ready, Allowance(10_000.0, 60.0), lambda _: True).samples
        after = service.counts
    assert {Outcome(code) for code in samples.outcome} == {Outcome.OK}
    return prepared, samples, difference(before, after)


def difference(before, after):
    known = before.get("grants", {})
    grants = {name: value - known.get(name, 0) for name, value in after.get("grants", {}).items()}
    return {
        "grants": {name: value for name, value in grants.items() if value},
        "requests": sum(after["requests"].values()) - sum(before["requests"].values()),
        "worked": after["worked"] - before["worked"],
    }


def test_every_scenario_is_tested():
    assert set(GRANTS) == set(SCENARIOS)


@pytest.mark.parametrize("name", GRANTS)
def test_a_scenario_sends_what_the_service_counts(service, name):
    prepared, samples, counted = run(service, name)
    expected = {grant: count * ITERATIONS for grant, count in GRANTS[name].items()}
    assert counted["grants"] == expected
    assert counted["requests"] == len(samples.outcome) == len(prepared.actions) * ITERATIONS
    # One request of each flow takes a worker.
    assert counted["worked"] == ITERATIONS


def test_a_mix_sends_each_of_its_scenarios(service):
    _, samples, counted = run(service, "mix:oidc-login=1,oidc-refresh=3,oidc-userinfo=2", 120)
    grants = counted["grants"]
    assert grants["login"] == grants["authorization_code"]
    assert grants["login"] + grants["refresh_token"] + grants["userinfo"] == 120
    assert grants["refresh_token"] > grants["login"] > 0
    assert len(set(samples.iteration.tolist())) == 120


def test_users_take_turns_and_each_login_has_its_own_state_and_cookies(service):
    with service.connected() as provider:
        prepared = prepare(named("oidc-login"), provider, lambda _: None)
        ready = plan(prepared)
    assert ready.columns["user_name"] == ("ann", "bob")
    assert ready.columns["password"] == ("her%26pw%3D1", "his%20pw")
    assert ready.cookies
    # A cookie of an earlier login would bring a code without a password.
    assert service.counts["grants"].get("single_sign_on", 0) == 0


def test_refreshes_wait_for_a_session_if_more_are_due_than_there_are(service):
    load = ReplayLoad(tuple(number / 1e5 for number in range(400)))
    with service.connected() as provider:
        prepared = prepare(named("oidc-refresh"), provider, lambda _: None)
        ready = prepared.plan(load, Limits(200, drain_s=60.0), Placement())
        samples = gate.run(ready, Allowance(200_000.0, 120.0), lambda _: True).samples
    assert len(ready.chains["refresh_token"]) >= ready.limits.max_connections == 200
    assert [Outcome(code) for code in samples.outcome] == [Outcome.OK] * 400


def test_refreshes_in_flight_have_refresh_tokens_of_their_own(service):
    with service.connected() as provider:
        prepared = prepare(named("oidc-refresh"), provider, lambda _: None)
        chains = plan(prepared).chains["refresh_token"]
        assert len(set(chains)) == len(chains) >= LEAST_SESSIONS
        # Every load gets new ones: those of the last are used up.
        assert not set(plan(prepared).chains["refresh_token"]) & set(chains)


@pytest.mark.parametrize(
    ("name", "client", "words"),
    [
        ("oidc-client-credentials", Client(CLIENT_ID, "wrong"), "401: invalid_client"),
        ("oidc-client-credentials", Client("other", SECRET), "check --client-id"),
        ("oidc-login", Client("other", SECRET), "Invalid parameter: client_id"),
        ("oidc-login", Client(CLIENT_ID, SECRET, "http://127.0.0.1/no"), "--redirect-uri"),
        ("oidc-login", Client(CLIENT_ID, "wrong"), "exchange of the code of user ann"),
        ("oidc-introspect", Client(CLIENT_ID, "wrong"), "invalid_client"),
    ],
)
def test_what_cannot_work_is_explained_before_any_load(service, name, client, words):
    with (
        service.connected(client) as provider,
        pytest.raises(EnvironmentUnusable, match=words) as refused,
    ):
        prepare(named(name), provider, lambda _: None)
    for secret in (SECRET, "wrong", "her&pw"):
        assert secret not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("oidc-login", "the login form came again .*Invalid username or password"),
        ("oidc-password", "Invalid user credentials"),
        ("oidc-refresh", "the login form came again"),
        ("oidc-userinfo", "the login form came again"),
    ],
)
def test_a_wrong_password_is_explained_before_any_load(service, tmp_path, name, words):
    users = tmp_path / "wrong.json"
    users.write_text('[{"username": "ann", "password": "wrong"}]')
    with (
        connected(service.choice(users=users)) as provider,
        pytest.raises(EnvironmentUnusable, match=words),
    ):
        prepare(named(name), provider, lambda _: None)


def test_users_and_secret_are_asked_for_where_they_are_needed(service):
    with service.connected(Client(CLIENT_ID)) as provider:
        with pytest.raises(InvalidInput, match="client's secret"):
            prepare(named("oidc-client-credentials"), provider, lambda _: None)
        with pytest.raises(InvalidInput, match="--oidc-users"):
            prepare(named("oidc-login"), replace(provider, users=()), lambda _: None)


def test_tokens_that_would_expire_under_load_are_refused(tmp_path):
    with (
        oidc_service(tmp_path, "--token-life=60s") as short,
        short.connected() as provider,
    ):
        prepared = prepare(named("oidc-userinfo"), provider, lambda _: None)
        with pytest.raises(EnvironmentUnusable, match="the access tokens expire in"):
            prepared.plan(ClosedLoad(1, duration_s=60.0), Limits(), Placement())


def test_tokens_need_not_outlast_the_patience_of_a_task(tmp_path):
    said = []
    with (
        oidc_service(tmp_path, "--token-life=60s") as short,
        short.connected() as provider,
    ):
        prepared = prepare(named("oidc-userinfo"), provider, said.append)
        patient = Limits(drain_s=600.0)  # as with constant_for_duration
        prepared.plan(ClosedLoad(1, duration_s=5.0), patient, Placement())
        assert not [line for line in said if "expire" in line]
        prepared.plan(ClosedLoad(1, iterations=10), patient, Placement())
    assert re.fullmatch(r"  they expire in (59|60) s; iterations after that fail", said[-1])


def test_an_endless_mix_or_an_unknown_name_is_refused():
    for name, words in (
        ("oidc-logn", "did you mean 'oidc-login'"),
        ("mix:oidc-login=0", "a weight above 0"),
        ("mix:oidc-login=1,issue=1", "no scenario 'issue' of OpenID Connect"),
    ):
        with pytest.raises(InvalidInput, match=words):
            named(name)


def test_a_token_that_is_not_active_is_a_failure_although_the_status_is_200(service):
    with service.connected() as provider:
        prepared = prepare(named("oidc-introspect"), provider, lambda _: None)
        ready = plan(prepared)
    unknown = replace(ready, columns=ready.columns | {"access_token_form": ("unknown",)})
    samples = gate.run(unknown, Allowance(10_000.0, 60.0), lambda _: True).samples
    assert Counter(samples.outcome.tolist()) == {Outcome.WRONG_CONTENT: ITERATIONS}
    assert set(samples.status.tolist()) == {200}
