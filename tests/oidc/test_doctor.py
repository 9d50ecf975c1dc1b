"""`loadstone doctor --oidc ISSUER`: what stands against a measurement of a provider."""

import json

import pytest
from command_line import CommandLine
from fake_server import handled, serving
from oidc_service import CLIENT_ID, SECRET, oidc_service

from loadstone.oidc.client import Client
from loadstone.oidc.scenarios import SCENARIOS
from loadstone.oidc.target import OidcIssuer
from loadstone.target.check_provider import check_provider


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with oidc_service(tmp_path_factory.mktemp("oidc")) as started:
        yield started


@pytest.fixture
def doctor(tmp_path, service):
    """Run the command with a client and its secret; return it with its checks by name."""

    def run(*words, secret=SECRET, issuer=service.issuer):
        (tmp_path / "secret").write_text(f"{secret}\n")
        known = ("--client-id", CLIENT_ID, "--client-secret-file", tmp_path / "secret")
        done = CommandLine(tmp_path)(
            "doctor", "--oidc", issuer, *map(str, (*known, *words)), "--json", "-"
        )
        assert "Traceback" not in done.stderr
        assert secret not in done.stdout + done.stderr
        return done, {row["name"]: row for row in json.loads(done.stdout)}

    return run


def test_a_sound_provider_is_asked_for_each_scenario_once(doctor, service):
    before = sum(service.counts["requests"].values())
    done, checks = doctor("--oidc-users", service.users)
    assert done.returncode == 0, done.stderr
    scenarios = set(SCENARIOS) - {"oidc-discover"}
    others = {"address", "discovery", "clock", "keys", "other runs", "faults"}
    assert set(checks) == others | scenarios
    assert all(check["is_there"] for check in checks.values()), checks
    assert "with a login of" in checks["oidc-login"]["found"]
    assert sum(service.counts["requests"].values()) - before < 40


def test_without_users_their_scenarios_say_what_they_need(doctor):
    done, checks = doctor()
    assert done.returncode == 0, done.stderr
    assert checks["oidc-client-credentials"]["is_there"]
    assert not checks["oidc-login"]["is_there"]
    assert "needs users that can log in" in checks["oidc-login"]["found"]


def test_a_wrong_secret_is_said_with_a_hint_and_exit_code_3(doctor, service):
    done, checks = doctor("--oidc-users", service.users, secret="not-the-secret-at-all")
    assert done.returncode == 3
    assert "check --client-id and the client's secret" in checks["oidc-userinfo"]["found"]
    assert not checks["scenarios"]["is_there"]


def test_what_is_no_provider_ends_the_checks(doctor, service):
    done, checks = doctor(issuer=f"{service.issuer}/elsewhere")
    assert done.returncode == 3
    assert list(checks)[-2:] == ["discovery", "faults"]
    assert "without the metadata of an OpenID provider" in checks["discovery"]["found"]


def test_the_client_is_asked_for(tmp_path, service):
    done = CommandLine(tmp_path)("doctor", "--oidc", service.issuer)
    assert done.returncode == 2
    assert "--oidc needs --client-id" in done.stderr


@pytest.mark.parametrize(
    ("status", "keys", "found"),
    [(200, [], "/keys has no keys"), (200, None, "/keys has no keys"), (503, [], "HTTP 503")],
)
def test_keys_that_are_missing_are_not_said_to_be_a_good_answer(status, keys, found):
    def serve(request):
        base = f"http://{request.headers['Host']}"
        if request.path == "/keys":
            request.answer(status, {"keys": keys})
        else:
            request.answer(200, {"issuer": base, "jwks_uri": f"{base}/keys"})

    with serving(handled(serve)) as url:
        checks = {one.name: one for one in check_provider(OidcIssuer(url, Client("c")), str)}
    assert (checks["keys"].is_there, checks["keys"].found) == (False, found)
