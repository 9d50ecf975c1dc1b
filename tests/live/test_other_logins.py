"""Logins without a password of Keystone's: users of an OpenID provider, clients' certificates."""

from collections import Counter

import pytest
import requests
from lab_client import quietly, skipping_without_node
from made_users import users

from loadstone.engine import local
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.contexts.model import Users
from loadstone.keystone.contexts.workload import Actors
from loadstone.keystone.federation_file import read_federation
from loadstone.keystone.identity import Identity, Refused
from loadstone.keystone.journal import Journal
from loadstone.keystone.prepared import prepare
from loadstone.keystone.resources import Token
from loadstone.keystone.scenarios import SCENARIOS
from loadstone.lab import deployment
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.conf import PROTOCOL
from loadstone.lab.keystone.federation import IDENTITY_PROVIDER, PORT, PROJECT, issuer
from loadstone.lab.provider.credentials import CLIENT_ID, client_secret_file, users_file
from loadstone.lab.server_certificates import ServerCertificates
from loadstone.monitor.sampler import Monitor
from loadstone.monitor.sources.open import open_source
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits, Placement
from loadstone.target.choice import NamedTarget
from loadstone.target.connect import connected
from loadstone.workload.requests import Requests

pytestmark = pytest.mark.live
NAME, RUN, ITERATIONS = "other-logins", "20261127-1835-fe0123", 12
CHOSEN = (
    *(("web", "apache"), ("workers", "2"), ("database", "mariadb"), ("hash-rounds", "4")),
    *(("federation", "oidc-provider"), ("tls", "on"), ("client-certificates", "on")),
)


@pytest.fixture(scope="module")
def lab(lab_home):  # noqa: ARG001 (it chooses the folder)
    with skipping_without_node():
        started = deployment.up(NAME, settings.read(CHOSEN), quietly)
    yield started
    deployment.down(NAME, purge=True)


@pytest.fixture
def target(lab):
    with connected(NamedTarget(lab=lab.name), quietly) as target:
        yield target


def seen(target):
    issuer = target.federation.issuer.url
    return Counter(requests.get(f"{issuer}/seen", timeout=30).json())


def answered(target, name, journal):
    """Return outcomes and statuses of an iteration for each of some users."""
    with users(target.access, RUN, Users(1, 3), journal, quietly) as people:
        actors = Actors(people, Journal(journal, RUN), "round_robin")
        scenario = SCENARIOS[name]
        prepared = prepare(scenario, actors, target.access, quietly, target.federation)
        load = ClosedLoad(2, iterations=ITERATIONS)
        before = seen(target)
        samples = local.run(prepared.plan(target.access, load, Limits(), Placement())).samples
        return Counter(int(status) for status in samples.status), seen(target) - before


def test_each_login_is_looked_up_at_the_provider(target, tmp_path):
    statuses, counted = answered(target, "federated-login", tmp_path / "created.jsonl")
    assert statuses == {201: 2 * ITERATIONS}
    assert counted["introspection"] == ITERATIONS


@pytest.fixture
def federation(lab, tmp_path):
    """The file of --federation that says of the lab what of a cloud only its owner knows."""
    secret = tmp_path / "secret.txt"
    secret.write_text(client_secret_file(lab.folder).read_text())
    port = lab.state.port(PORT)
    path = tmp_path / "federation.yaml"
    path.write_text(
        f"identity_provider: {IDENTITY_PROVIDER}\nprotocol: {PROTOCOL}\nproject: {PROJECT}\n"
        f"issuer: {issuer(port)}\nclient_id: {CLIENT_ID}\nclient_secret_file: secret.txt\n"
        f"users_file: {users_file(lab.folder)}\n"
    )
    return path


@pytest.fixture
def cloud(lab, monkeypatch):
    for name, value in lab.environment_variables().items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("cloud")
def test_a_clouds_provider_is_named_in_a_file(federation, tmp_path):
    named = read_federation(federation, beyond_loopback=False)
    with connected(NamedTarget(federation=named), quietly) as target:
        statuses, counted = answered(target, "federated-login", tmp_path / "created.jsonl")
        assert secret_of(federation) in target.secrets
    assert statuses == {201: 2 * ITERATIONS}
    assert counted["introspection"] == ITERATIONS


def secret_of(federation):
    return (federation.parent / "secret.txt").read_text()


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("protocol: ", "protocol: x", "log in as a federated user: HTTP 401 .*; check iden"),
        ("project: ", "project: x", "has no project 'x.*; federated users need one"),
    ],
)
def test_a_login_that_cannot_work_is_explained_before_any_load(
    federation, old, new, words, tmp_path
):
    federation.write_text(federation.read_text().replace(old, new))
    named = read_federation(federation, beyond_loopback=False)
    with (
        connected(NamedTarget(federation=named), quietly) as target,
        pytest.raises(EnvironmentUnusable, match=words),
    ):
        answered(target, "federated-login", tmp_path / "created.jsonl")


def test_tokens_of_federated_users_are_valid_and_need_no_provider(target, tmp_path):
    statuses, counted = answered(target, "validate-federated", tmp_path / "created.jsonl")
    assert statuses == {200: ITERATIONS}
    assert counted["introspection"] == 0


def test_a_client_with_a_certificate_needs_no_secret(target, tmp_path):
    statuses, _ = answered(target, "oauth2-mtls", tmp_path / "created.jsonl")
    assert statuses == {200: ITERATIONS}


def test_without_the_certificate_the_client_is_refused(lab, target):
    form = {"grant_type": "client_credentials", "client_id": target.access.session.get_user_id()}
    trusted, url = str(ServerCertificates(lab.folder).ca), f"{lab.url}/OS-OAUTH2/token"
    client = str(ServerCertificates(lab.folder).client)
    refused = requests.post(url, data=form, verify=trusted, timeout=30)
    assert refused.status_code == 401
    answer = requests.post(url, data=form, verify=trusted, cert=client, timeout=30)
    assert answer.status_code == 200
    # Bound to the certificate (RFC 8705, 3.1): the API says so of the token.
    token = answer.json()["access_token"]
    headers = {"X-Auth-Token": target.access.token(60.0), "X-Subject-Token": token}
    shown = requests.get(
        f"{lab.url}/auth/tokens", headers=headers, verify=trusted, cert=client, timeout=30
    )
    assert "x5t#S256" in shown.json()["token"]["oauth2_credential"]


def test_apaches_own_figures_are_read_beside_tls(lab):
    [url] = [one for one in lab.statistics() if one.startswith("apache://")]
    with Monitor([open_source(url)]) as monitor:
        monitor.sample()
        assert monitor.missing == ()


def test_who_the_provider_does_not_know_is_refused(target):
    identity, unknown = Identity(target.access), Token("of nobody", 0.0)
    with pytest.raises(Refused, match="log in as a federated user: HTTP 401"):
        identity.issue_federated(target.federation.path, unknown, "any")


def test_a_lab_that_is_started_again_knows_its_users_still(lab, tmp_path):
    deployment.down(lab.name)
    deployment.up(lab.name, settings.read(CHOSEN), quietly)
    with connected(NamedTarget(lab=lab.name), quietly) as target:
        statuses, _ = answered(target, "federated-login", tmp_path / "created.jsonl")
    assert statuses == {201: 2 * ITERATIONS}


def test_no_secret_of_the_client_is_in_a_log_or_a_configuration_outside_the_secrets(lab):
    secret = lab.folder / "secret"
    known = {(secret / "client-secret").read_text()}
    for file in lab.folder.rglob("*"):
        if file.is_file() and secret not in file.parents and "mariadb" not in str(file):
            text = file.read_bytes().decode(errors="replace")
            assert not any(one in text for one in known), file


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("federated-login", "needs an identity provider whose users may log in"),
        ("oauth2-mtls", "needs a client's certificate: OS_CERT and OS_KEY"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_made(lab_keystone, name, words):
    with (
        connected(NamedTarget(lab=lab_keystone.name), quietly) as target,
        pytest.raises(InvalidInput, match=words),
    ):
        Requests(SCENARIOS[name]).require_usable(target)
