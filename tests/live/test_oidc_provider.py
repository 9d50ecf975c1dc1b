"""node oidc-provider as a lab: what every scenario sends is what the provider counts."""

import csv
import json
from collections import Counter
from dataclasses import replace

import pytest
import requests
from command_line import CommandLine
from lab_client import quietly, skipping_without_node

from loadstone.audit.lab import host as audit_host
from loadstone.engine import gate
from loadstone.engine.gate import Allowance
from loadstone.engine.samples import Outcome
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import deployment
from loadstone.lab.keystone import settings
from loadstone.lab.processes import alive
from loadstone.oidc import target as oidc
from loadstone.oidc.prepare import prepare
from loadstone.oidc.scenarios import SCENARIOS, named
from loadstone.oidc.users import read_users
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits, Placement
from loadstone.target.choice import NamedTarget
from loadstone.target.connect import connected, issuer_of_lab

pytestmark = pytest.mark.live
NAME, ITERATIONS = "oidc-provider", 30
GRANTS = {
    "oidc-discover": {},
    "oidc-client-credentials": {"client_credentials": 1},
    "oidc-login": {"login": 1, "authorization_code": 1},
    "oidc-refresh": {"refresh_token": 1},
    "oidc-introspect": {"introspection": 1},
    "oidc-userinfo": {"userinfo": 1},
}


@pytest.fixture(scope="module")
def lab(lab_home):  # noqa: ARG001 (it chooses the folder)
    chosen = settings.read([("service", "oidc-provider"), ("scrypt-n", "1024")])
    with skipping_without_node():
        started = deployment.up(NAME, chosen, quietly)
    yield started
    deployment.down(NAME, purge=True)
    records = [record.process for record in started.state.records if record.process is not None]
    assert not any(alive(process) for process in records)


def seen_by(lab):
    return Counter(requests.get(f"{lab.url}/seen", timeout=30).json())


@pytest.mark.parametrize("name", GRANTS)
def test_a_scenario_sends_what_the_provider_counts(lab, name):
    with oidc.connected(issuer_of_lab(lab.name)) as provider:
        prepared = prepare(named(name), provider, lambda _: None)
        plan = prepared.plan(ClosedLoad(4, iterations=ITERATIONS), Limits(4), Placement())
        before = seen_by(lab)
        samples = gate.run(plan, Allowance(1000.0, 60.0), lambda _: True).samples
        counted = seen_by(lab) - before
    assert {Outcome(code) for code in samples.outcome} == {Outcome.OK}
    assert counted.pop("requests") == len(samples.outcome) == len(prepared.actions) * ITERATIONS
    assert counted == {grant: count * ITERATIONS for grant, count in GRANTS[name].items()}


def test_what_it_does_not_offer_is_refused_before_any_load(lab):
    refused = set(SCENARIOS) - set(GRANTS)
    assert refused == {"oidc-password", "oidc-logout"}
    for name in refused:
        words = "unsupported_grant_type" if name == "oidc-password" else "in place of a redirect"
        with (
            oidc.connected(issuer_of_lab(lab.name)) as provider,
            pytest.raises(EnvironmentUnusable, match=words),
        ):
            prepare(named(name), provider, lambda _: None)


def test_a_wrong_password_shows_what_the_page_says(lab, tmp_path):
    users = tmp_path / "users.csv"
    with users.open("w") as file:
        csv.writer(file).writerows((("username", "password"), ("u00000", "wrong")))
    words = "the login form came again .'Wrong name or password"
    choice = replace(issuer_of_lab(lab.name), users_file=users)
    with oidc.connected(choice) as provider, pytest.raises(EnvironmentUnusable, match=words):
        prepare(named("oidc-login"), provider, lambda _: None)


def test_it_is_a_deployment_as_others_are(lab):
    variables = lab.environment_variables()
    assert variables["LOADSTONE_OIDC_ISSUER"] == lab.url
    users = lab.folder / "secret" / "users.json"
    assert users.stat().st_mode & 0o077 == 0
    facts = dict(lab.facts())
    assert (facts["service"], facts["password hash"]) == ("oidc-provider", "scrypt, N=1024")
    assert "release" not in facts
    assert [member.part for member in lab.identity_members()] == ["provider"]
    # The same settings again: it runs already.
    again = deployment.up(lab.name, settings.read([*lab.state.settings]), quietly)
    assert again.pids() == lab.pids()


def test_what_measures_keystones_refuses_it(lab):
    with (
        pytest.raises(InvalidInput, match="is an OpenID provider"),
        connected(NamedTarget(lab.name), lambda _: None),
    ):
        pass
    with pytest.raises(InvalidInput, match="the rules are for Keystone in Python and Keycloak"):
        audit_host(lab)


def test_a_search_on_it_keeps_no_secret(lab, tmp_path, monkeypatch):
    monkeypatch.setenv("LOADSTONE_STORE", str(tmp_path / "store"))
    loadstone = CommandLine(lab.folder.parents[2])
    words = ("capacity", "--lab", lab.name, "--budget", "20s", "--json", "-", "--max-rate", "40")
    done = loadstone(*words)
    assert done.returncode in (0, 4), done.stderr
    assert json.loads(done.stdout)["measurements"][0]["scenario"] == "oidc-login"
    known = {user.password for user in read_users(lab.folder / "secret" / "users.json")}
    known.add(lab.environment_variables()["LOADSTONE_OIDC_CLIENT_SECRET"])
    kept = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert kept
    for path in kept:
        text = path.read_bytes().decode("latin1")
        assert not [secret for secret in known if secret in text]


STUDY = """\
title: A provider
factors: {server: {np: {service: oidc-provider, scrypt-n: 1024, expect: {password hash: scrypt}}}}
measurement: {scenario: oidc-client-credentials, budget_s: 20, warm_up_s: 1, max_rate_rps: 40}
costs: true
"""


def test_it_is_a_cell_of_a_study_and_a_wrong_hash_is_refused(lab, tmp_path):
    loadstone = CommandLine(lab.folder.parents[2])
    study, words = tmp_path / "study.yaml", ("--json", "-", "--store", str(tmp_path / "store"))
    study.write_text(STUDY)
    done = loadstone("study", "run", str(study), *words)
    assert done.returncode in (0, 4), done.stderr
    [row] = json.loads(done.stdout)["measurements"]
    assert (row["scenario"], len(row["run_ids"])) == ("oidc-client-credentials", 1)
    assert row["memory_mb"] > 10
    study.write_text(STUDY.replace("hash: scrypt", "hash: argon2"))
    refused = loadstone("study", "run", str(study), *words)
    assert refused.returncode == 3
    [row] = json.loads(refused.stdout)["measurements"]
    assert row["failures"] == ["password hash: expected argon2, and the target has scrypt, N=1024"]
