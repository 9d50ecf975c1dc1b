"""Every scenario of OpenID Connect against a real Keycloak: what was sent is what it counted."""

from dataclasses import replace

import pytest
from keycloak import keycloak

from loadstone.engine import gate
from loadstone.engine.gate import Allowance
from loadstone.engine.samples import Outcome
from loadstone.errors import EnvironmentUnusable
from loadstone.oidc.client import Client
from loadstone.oidc.prepare import prepare
from loadstone.oidc.scenarios import SCENARIOS, named
from loadstone.oidc.target import connected
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Limits, Placement

pytestmark = [pytest.mark.live, pytest.mark.verify]
ITERATIONS = 20
PASSWORDS = {"oidc-login": 1, "oidc-password": 1, "oidc-logout": 1}  # checked per iteration


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with keycloak(tmp_path_factory.mktemp("keycloak")) as started:
        yield started


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_sends_what_keycloak_counts(server, name):
    load = OpenLoad(5.0, ITERATIONS / 5.0)
    with connected(server.choice) as provider:
        prepared = prepare(named(name), provider, lambda _: None)
        plan = prepared.plan(load, Limits(16, drain_s=20.0), Placement())
        before = server.counted()
        samples = gate.run(plan, Allowance(100.0, 60.0), lambda _: True).samples
        after = server.counted()
    assert {Outcome(code) for code in samples.outcome} == {Outcome.OK}
    assert len(samples.outcome) == len(prepared.actions) * ITERATIONS
    assert after[0] - before[0] == len(samples.outcome)
    assert after[1] - before[1] == PASSWORDS.get(name, 0) * ITERATIONS


@pytest.mark.parametrize(
    ("name", "client", "words"),
    [
        ("oidc-client-credentials", {"secret": "wrong"}, "unauthorized_client"),
        ("oidc-login", {"id": "other"}, "HTTP 400"),
        ("oidc-login", {"redirect_uri": "http://127.0.0.1/no"}, "Invalid parameter: redirect_uri"),
    ],
)
def test_what_cannot_work_is_explained_in_keycloaks_words(server, name, client, words):
    choice = server.choice
    given = {"id": choice.client.id, "secret": choice.client.secret, **client}
    with (
        connected(replace(choice, client=Client(**given))) as provider,
        pytest.raises(EnvironmentUnusable, match=words),
    ):
        prepare(named(name), provider, lambda _: None)


def test_a_wrong_password_shows_what_the_page_says(server, tmp_path):
    users = tmp_path / "users.json"
    users.write_text('[{"username": "u0", "password": "wrong"}]')
    choice = replace(server.choice, users_file=users)
    words = "the login form came again .*Invalid username or password"
    with connected(choice) as provider, pytest.raises(EnvironmentUnusable, match=words):
        prepare(named("oidc-login"), provider, lambda _: None)
