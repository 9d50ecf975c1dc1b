"""Every scenario of OpenID Connect against node oidc-provider: what was sent is what it counted."""

from collections import Counter

import pytest
from node_provider import REDIRECT_URI, USERS, node_provider, seen_by
from oidc_service import CLIENT_ID, SECRET

from loadstone.engine import gate
from loadstone.engine.gate import Allowance
from loadstone.engine.samples import Outcome
from loadstone.errors import EnvironmentUnusable
from loadstone.oidc.client import Client
from loadstone.oidc.prepare import prepare
from loadstone.oidc.scenarios import SCENARIOS, named
from loadstone.oidc.target import OidcIssuer, connected
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits, Placement

pytestmark = pytest.mark.live
ITERATIONS = 30
LOGIN = {"login": 1, "authorization_code": 1}
GRANTS = {
    "oidc-discover": {},
    "oidc-client-credentials": {"client_credentials": 1},
    "oidc-login": LOGIN,
    "oidc-refresh": {"refresh_token": 1},
    "oidc-introspect": {"introspection": 1},
    "oidc-userinfo": {"userinfo": 1},
}


@pytest.fixture(scope="module")
def issuer():
    with node_provider() as started:
        yield started


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users.csv"
    rows = (f"{name},{password}" for name, password in USERS.items())
    path.write_text("\n".join(("username,password", *rows)))
    return path


@pytest.mark.parametrize("name", GRANTS)
def test_a_scenario_sends_what_the_provider_counts(issuer, users, name):
    choice = OidcIssuer(issuer, Client(CLIENT_ID, SECRET, REDIRECT_URI), users)
    with connected(choice) as provider:
        prepared = prepare(named(name), provider, lambda _: None)
        plan = prepared.plan(ClosedLoad(4, iterations=ITERATIONS), Limits(4), Placement())
        before = Counter(seen_by(issuer))
        samples = gate.run(plan, Allowance(1000.0, 60.0), lambda _: True).samples
        counted = Counter(seen_by(issuer)) - before
    assert {Outcome(code) for code in samples.outcome} == {Outcome.OK}
    requests = counted.pop("requests")
    assert requests == len(samples.outcome) == len(prepared.actions) * ITERATIONS
    assert counted == {grant: count * ITERATIONS for grant, count in GRANTS[name].items()}


def test_what_it_does_not_offer_is_refused_before_any_load(issuer, users):
    choice = OidcIssuer(issuer, Client(CLIENT_ID, SECRET, REDIRECT_URI), users)
    refused = set(SCENARIOS) - set(GRANTS)
    assert refused == {"oidc-password", "oidc-logout"}
    for name in refused:
        words = "unsupported_grant_type" if name == "oidc-password" else "in place of a redirect"
        with connected(choice) as provider, pytest.raises(EnvironmentUnusable, match=words):
            prepare(named(name), provider, lambda _: None)


def test_a_wrong_password_shows_what_the_page_says(issuer, tmp_path):
    users = tmp_path / "users.json"
    users.write_text('[{"username": "ann", "password": "wrong"}]')
    choice = OidcIssuer(issuer, Client(CLIENT_ID, SECRET, REDIRECT_URI), users)
    words = "the login form came again .'Wrong name or password"
    with connected(choice) as provider, pytest.raises(EnvironmentUnusable, match=words):
        prepare(named("oidc-login"), provider, lambda _: None)
