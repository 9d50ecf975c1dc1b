"""Keycloak as a lab: every scenario sends what it counts, and nothing of it is left."""

import json
import re
from dataclasses import replace

import pytest
import requests
from lab_client import quietly

from loadstone.audit import lab as audited
from loadstone.audit.extract import extract
from loadstone.audit.transport import collect
from loadstone.engine import gate
from loadstone.engine.gate import Allowance
from loadstone.engine.samples import Outcome
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import deployment
from loadstone.lab.keystone import settings
from loadstone.lab.processes import marked
from loadstone.lab.provider.password_hash import PasswordHash
from loadstone.oidc.client import Client
from loadstone.oidc.prepare import prepare
from loadstone.oidc.scenarios import SCENARIOS, named
from loadstone.oidc.target import connected
from loadstone.plan.load import OpenLoad
from loadstone.plan.model import Limits, Placement
from loadstone.target.connect import issuer_of_lab

pytestmark = [pytest.mark.live, pytest.mark.verify]
NAME, ITERATIONS, USERS = "keycloak", 20, 8
PASSWORDS = {"oidc-login": 1, "oidc-password": 1, "oidc-logout": 1}  # checked per iteration
_SERIES = re.compile(r"^(\w+)\{(.*)\} ([\d.eE+]+)$", re.MULTILINE)


def start(name, *words):
    pairs = [("service", "keycloak"), ("realm-users", str(USERS)), *map(settings.split, words)]
    try:
        return deployment.up(name, settings.read(pairs), quietly)
    except EnvironmentUnusable as missing:
        if "not installed" not in str(missing) and "Maven could not fetch" not in str(missing):
            raise
        pytest.skip(f"Keycloak cannot be installed: {missing}")


@pytest.fixture(scope="module")
def lab(lab_home):  # noqa: ARG001 (it chooses the folder)
    started = start(NAME)
    yield started
    deployment.down(NAME)
    assert not marked(started.folder)
    assert not (started.folder / "secret").exists()
    deployment.down(NAME, purge=True)


def test_the_audit_reads_a_real_keycloak(lab):
    (answer,) = collect([audited.host(lab)])
    found = extract(NAME, answer.document, {}).facts
    expected = {"command": "start", "db": "dev-file", "heap_mb": 512.0, "metrics_enabled": True}
    assert {name: found.values[f"keycloak.{name}"] for name in expected} == expected
    assert found.values["keycloak.java"] >= 17


def counted(lab):
    """Return how many requests of the realm it has answered, and passwords it has checked."""
    url = f"http://127.0.0.1:{lab.state.port('management')}/metrics"
    answered = checked = 0.0
    for name, labels, value in _SERIES.findall(requests.get(url, timeout=30).text):
        if name == "http_server_requests_seconds_count" and 'uri="/realms/' in labels:
            answered += float(value)
        if name == "keycloak_credentials_password_hashing_validations_total":
            checked += float(value)
    return answered, checked


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_sends_what_keycloak_counts(lab, name):
    load = OpenLoad(5.0, ITERATIONS / 5.0)
    with connected(issuer_of_lab(lab.name)) as provider:
        prepared = prepare(named(name), provider, lambda _: None)
        plan = prepared.plan(load, Limits(16, drain_s=20.0), Placement())
        before = counted(lab)
        samples = gate.run(plan, Allowance(100.0, 60.0), lambda _: True).samples
        after = counted(lab)
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
def test_what_cannot_work_is_explained_in_keycloaks_words(lab, name, client, words):
    choice = issuer_of_lab(lab.name)
    given = {"id": choice.client.id, "secret": choice.client.secret, **client}
    with (
        connected(replace(choice, client=Client(**given))) as provider,
        pytest.raises(EnvironmentUnusable, match=words),
    ):
        prepare(named(name), provider, lambda _: None)


def test_a_wrong_password_shows_what_the_page_says(lab, tmp_path):
    users = tmp_path / "users.json"
    users.write_text('[{"username": "u00000", "password": "wrong"}]')
    choice = replace(issuer_of_lab(lab.name), users_file=users)
    words = "the login form came again .*Invalid username or password"
    with connected(choice) as provider, pytest.raises(EnvironmentUnusable, match=words):
        prepare(named("oidc-login"), provider, lambda _: None)


def test_it_is_a_deployment_as_others_are(lab):
    facts = dict(lab.facts())
    assert facts["service"] == "keycloak"
    assert facts["password hash"].startswith("argon2, 5 iterations, 7168 KiB")
    assert [member.part for member in lab.identity_members()] == ["keycloak"] * 2  # script, Java
    assert len(json.loads((lab.folder / "secret" / "users.json").read_text())) == USERS
    again = deployment.up(lab.name, settings.read([*lab.state.settings]), quietly)
    assert again.pids() == lab.pids()
    with pytest.raises(InvalidInput, match="realm-users=8, not 50"):
        deployment.up(lab.name, settings.read([("service", "keycloak")]), quietly)


@pytest.mark.parametrize(
    "words",
    [
        ("database=postgres", "hash=pbkdf2-sha512", "hash-iterations=1000", "java=17"),
        ("database=mariadb", "hash=argon2", "hash-iterations=1", "heap-mb=300"),
    ],
)
def test_a_login_works_with_the_labs_databases_and_hashes(lab_home, words):  # noqa: ARG001
    started = start("other", *words)
    try:
        facts = dict(started.facts())
        stored = facts["password hash"]
        assert stored.startswith(
            "pbkdf2-sha512, 1000 iterations" if "database=postgres" in words else "argon2, 1 iter"
        )
        assert facts["java"].startswith("17.") or "java=17" not in words
        with connected(issuer_of_lab("other")) as provider:
            prepare(named("oidc-login"), provider, lambda _: None)
    finally:
        deployment.down("other", purge=True)
    assert not marked(started.folder)


def test_another_hash_than_the_chosen_one_is_refused(lab_home, monkeypatch):  # noqa: ARG001
    # Planted: the realm says less than the settings do.
    monkeypatch.setattr(PasswordHash, "policy", property(lambda _: "hashAlgorithm(pbkdf2-sha512) "
                                                         "and hashIterations(56000)"))  # fmt: skip
    words = "stored a password as pbkdf2-sha512, 56000 iterations, not as pbkdf2-sha512, 210000"
    with pytest.raises(EnvironmentUnusable, match=words):
        start("wrong", "hash=pbkdf2-sha512")
    assert not marked(deployment.folder_of("wrong"))
    deployment.down("wrong", purge=True)
