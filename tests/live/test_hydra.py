"""Ory Hydra as a lab: what every scenario sends is what its login page and its counters show."""

from collections import Counter
from dataclasses import replace

import pytest
import requests
from lab_client import quietly

from loadstone.engine import gate
from loadstone.engine.gate import Allowance
from loadstone.engine.samples import Outcome
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import deployment
from loadstone.lab.keystone import settings
from loadstone.lab.processes import marked
from loadstone.oidc.prepare import prepare
from loadstone.oidc.scenarios import named
from loadstone.oidc.target import connected
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Limits, Placement
from loadstone.target.connect import issuer_of_lab

pytestmark = [pytest.mark.live, pytest.mark.verify]
NAME, ITERATIONS = "hydra", 20
PAGES = {"oidc-login": 1, "oidc-logout": 1}  # logins and consents per iteration
SCENARIOS = (
    *("oidc-login", "oidc-client-credentials", "oidc-refresh"),
    *("oidc-userinfo", "oidc-discover", "oidc-logout"),
)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def lab(lab_home, request):  # noqa: ARG001 (it chooses the folder)
    words = [("service", "hydra"), ("scrypt-n", "1024"), ("database", request.param)]
    try:
        started = deployment.up(NAME, settings.read(words), quietly)
    except EnvironmentUnusable as missing:
        if "not installed" not in str(missing) and "Go could not build" not in str(missing):
            raise
        pytest.skip(f"Hydra cannot be built: {missing}")
    yield started
    deployment.down(NAME)
    assert not marked(started.folder)
    assert not (started.folder / "secret").exists()
    deployment.down(NAME, purge=True)


def seen_by(lab):
    return Counter(requests.get(f"{lab.url}/seen", timeout=30).json())


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_sends_what_the_login_page_counts(lab, name):
    with connected(issuer_of_lab(lab.name)) as provider:
        prepared = prepare(named(name), provider, quietly)
        plan = prepared.plan(OpenLoad(5.0, ITERATIONS / 5.0), Limits(16, drain_s=20.0), Placement())
        before = seen_by(lab)
        samples = gate.run(plan, Allowance(100.0, 60.0), lambda _: True).samples
        seen = seen_by(lab) - before
    assert {Outcome(code) for code in samples.outcome} == {Outcome.OK}
    assert len(samples.outcome) == len(prepared.actions) * ITERATIONS
    expected = PAGES.get(name, 0) * ITERATIONS
    assert seen == Counter({"login": expected, "consent": expected} if expected else {})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("oidc-introspect", "publishes no introspection endpoint"),
        ("oidc-password", "unsupported_grant_type|unauthorized_client|invalid_request"),
    ],
)
def test_what_hydra_does_not_have_is_refused(lab, name, words):
    with (
        connected(issuer_of_lab(lab.name)) as provider,
        pytest.raises((EnvironmentUnusable, InvalidInput), match=words),
    ):
        prepare(named(name), provider, quietly)


def test_a_wrong_password_shows_what_the_page_says(lab, tmp_path):
    users = tmp_path / "users.json"
    users.write_text('[{"username": "u00000", "password": "wrong"}]')
    choice = replace(issuer_of_lab(lab.name), users_file=users)
    words = "the login form came again .*Wrong name or password"
    with connected(choice) as provider, pytest.raises(EnvironmentUnusable, match=words):
        prepare(named("oidc-login"), provider, quietly)


def test_it_is_a_deployment_as_others_are(lab):
    facts = dict(lab.facts())
    assert facts["service"] == "hydra"
    assert facts["password hash"] == "scrypt, N=1024"
    parts = {member.part for member in lab.identity_members()}
    assert {"hydra", "loginpage", "haproxy"} <= parts
