"""`--oidc` on the command line: what is refused, what is shown, and that no secret is."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from command_line import CommandLine
from documents import workloads
from oidc_service import CLIENT_ID, SECRET, oidc_service

from loadstone.cli import oidc
from loadstone.errors import InvalidInput
from loadstone.oidc.scenarios import SCENARIOS
from loadstone.oidc.users import read_users


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with oidc_service(tmp_path_factory.mktemp("oidc"), "--capacity=200") as started:
        yield started


@pytest.fixture
def loadstone(tmp_path):
    return CommandLine(tmp_path)


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return path


def test_help_names_every_scenario():
    assert set(oidc.SCENARIOS) == set(SCENARIOS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--oidc", "http://127.0.0.1:9"), "--oidc needs --client-id"),
        (("--client-id", "x"), "--client-id needs --oidc"),
        (("--oidc", "http://127.0.0.1:9", "--lab", "x"), "--lab does not go with --oidc"),
        (("--oidc", "http://127.0.0.1:9", "--users", "3"), "--users does not go with --oidc"),
        (("--scenario", "oidc-login"), "needs an OpenID provider: --oidc ISSUER"),
        (("--oidc", "http://127.0.0.1:9", "--client-id", "x"), "needs the client's secret"),
        (
            ("--oidc", "http://127.0.0.1:9", "--client-id", "x", "--scenario", "oidc-login"),
            "give a file with --oidc-users",
        ),
        (
            ("--oidc", "http://127.0.0.1:9", "--client-id", "x", "--scenario", "validate"),
            "no scenario 'validate' of OpenID Connect",
        ),
        (
            ("--oidc", "127.0.0.1", "--client-id", "x", "--scenario", "oidc-discover"),
            "it must begin with http:// or https://",
        ),
        (
            ("--oidc", "http://u:hidden-pw@h/", "--client-id", "x", "--scenario", "oidc-discover"),
            "--oidc: it must be only scheme, host, port and path",
        ),
        (
            ("--oidc", "http://192.0.2.1/", "--client-id", "x", "--scenario", "oidc-discover"),
            "add --yes-load-this-target",
        ),
    ],
)
def test_wrong_usage_is_one_line(loadstone, words, message):
    done = loadstone("capacity", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "hidden-pw" not in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name,pw\nann,x\n", "its first line must be username,password"),
        ("username,password\nann\n", "users.csv:2: user 1: password must be a text"),
        ("username,password\n", "has no users"),
    ],
)
def test_a_wrong_file_of_users_is_named_without_its_passwords(
    loadstone, tmp_path, content, message
):
    users = tmp_path / "users.csv"
    users.write_text(content)
    words = ("--oidc", "http://127.0.0.1:9", "--client-id", "x", "--oidc-users", str(users))
    done = loadstone("capacity", *words)
    assert (done.returncode, message in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["users.csv", "users.yaml"])
def test_a_file_of_users_that_is_missing_is_wrong_usage_in_each_format(tmp_path, name):
    path = tmp_path / name
    with pytest.raises(InvalidInput, match=f"^--oidc-users {path}: No such file or directory$"):
        read_users(path)


def test_a_byte_order_mark_is_not_a_part_of_the_first_column(tmp_path):
    path = tmp_path / "users.csv"
    path.write_text("username,password\nann,x\n", "utf-8-sig")
    assert [user.name for user in read_users(path)] == ["ann"]


def test_a_dry_run_sends_nothing_and_names_the_scenario(loadstone, service):
    before = service.counts["requests"]
    words = ("--oidc", service.issuer, "--client-id", CLIENT_ID, "--oidc-users", service.users)
    done = loadstone("capacity", *map(str, words), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "authorization code flow with PKCE" in done.stdout
    assert service.counts["requests"] == before


def test_a_fault_goes_with_a_provider(loadstone, service):
    words = ("--oidc", service.issuer, "--client-id", CLIENT_ID, "--oidc-users", service.users)
    fault = ("--do", "overload 2x for 5 seconds", "--rate", "50")
    done = loadstone("fault", *map(str, (*words, *fault)), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "overload 2x for 5 seconds, login with code and PKCE" in done.stdout


TASK = """
version: 2
title: Logins
subtasks:
- title: Logins
  scenario: {oidc-login: {}}
  runner: {constant: {times: 12, concurrency: 3}}
- title: Tokens and look-ups
  scenario: {"mix:oidc-client-credentials=1,oidc-introspect=3": {}}
  runner: {constant: {times: 20, concurrency: 2}}
"""


@pytest.fixture
def task_file(tmp_path):
    path = tmp_path / "logins.yaml"
    path.write_text(TASK)
    return path


def test_a_task_loads_a_provider_as_its_file_says(loadstone, service, secret_file, task_file):
    before = service.counts.get("grants", {})
    words = ("--oidc", service.issuer, "--client-id", CLIENT_ID, "--oidc-users", service.users)
    secret = ("--client-secret-file", secret_file, "--json", "-")
    done = loadstone("run", str(task_file), *map(str, (*words, *secret)))
    logins, mixed = workloads(json.loads(done.stdout))
    assert logins["total"]["count"] == 12
    assert mixed["total"]["count"] == 20
    # Each workload's preparation tries its operations once more, and a token is looked up.
    after = service.counts["grants"]
    assert 12 <= after["login"] - before.get("login", 0) <= 14
    assert SECRET not in f"{done.stdout}{done.stderr}"


@pytest.mark.parametrize(
    ("scenario", "words", "message"),
    [
        ("oidc-login", (), "logins.yaml:5: oidc-login: needs an OpenID provider: --oidc ISSUER"),
        (
            "oidc-login",
            ("--oidc", "http://127.0.0.1:9", "--client-id", "x"),
            "logins.yaml:5: oidc-login: needs users that can log in",
        ),
        (
            "issue",
            ("--oidc", "http://127.0.0.1:9", "--client-id", "x"),
            "logins.yaml:5: issue: needs an OpenStack cloud, not an OpenID provider",
        ),
        (
            "oidc-discover",
            ("--oidc", "http://127.0.0.1:9", "--client-id", "x", "--rally-requests"),
            "--rally-requests does not go with --oidc",
        ),
    ],
)
def test_a_task_of_another_service_than_the_target_is_refused(
    loadstone, task_file, scenario, words, message
):
    task_file.write_text(TASK.replace("oidc-login", scenario))
    done = loadstone("run", str(task_file), *words)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.fixture
def compared(loadstone, service, secret_file, tmp_path):
    """Two providers, of which the second has a tenth of the capacity, and their comparison."""
    slower = tmp_path / "slower"
    slower.mkdir()
    with oidc_service(slower, "--capacity=20") as other:
        two = ("--oidc", service.issuer, "--oidc", other.issuer)
        words = ("--client-id", CLIENT_ID, "--client-secret-file", secret_file)
        terms = ("--scenario", "oidc-client-credentials", "--seconds", "1", "--pairs", "4")
        done = loadstone("compare", *map(str, (*two, *words, *terms, "--json", "-")))
        yield service, other, done


@pytest.mark.long
def test_both_providers_of_a_comparison_are_loaded_and_named(compared):
    service, other, done = compared
    found = json.loads(done.stdout)
    assert service.issuer in done.stdout
    assert other.issuer in done.stdout
    assert found["document"] == "comparison"
    assert min(sum(one.counts["requests"].values()) for one in (service, other)) > 10


@pytest.mark.verify
def test_the_slower_of_two_providers_is_said(compared):
    _, _, done = compared
    assert done.returncode == 0, done.stderr
    assert "slower" in done.stdout


@contextmanager
def publishing(metadata: dict[str, str]) -> Iterator[str]:
    """Serve this metadata; {base} stands for the server's own origin."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            base = f"http://127.0.0.1:{self.server.server_address[1]}"
            body = json.dumps({k: v.format(base=base) for k, v in metadata.items()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"issuer": "http://other.example"}, "is of the issuer http://other.example"),
        (
            {"issuer": "{base}", "token_endpoint": "https://other.example/token"},
            "token_endpoint: leads to https://other.example:443",
        ),
        ({"issuer": "{base}", "token_endpoint": "no url"}, "cannot be used"),
        ({"name": "no provider"}, "without the metadata of an OpenID provider"),
    ],
)
def test_metadata_that_leads_elsewhere_is_refused(loadstone, secret_file, metadata, message):
    with publishing(metadata) as issuer:
        words = ("--oidc", issuer, "--client-id", "x", "--client-secret-file", str(secret_file))
        done = loadstone("capacity", *words)
    assert done.returncode == 3
    assert message in done.stderr


def test_a_prediction_without_the_providers_processes_is_refused_before_load(loadstone):
    with publishing({"issuer": "{base}"}) as issuer:
        words = ("--oidc", issuer, "--client-id", "x", "--scenario", "oidc-discover")
        done = loadstone("capacity", *words, "--predict")
    assert done.returncode == 2
    assert "those of this target are not known" in done.stderr


@pytest.mark.long
def test_a_search_of_logins_leaves_no_secret_anywhere(loadstone, service, secret_file, tmp_path):
    words = ("--oidc", service.issuer, "--client-id", CLIENT_ID, "--oidc-users", service.users)
    secret = ("--client-secret-file", secret_file, "--budget", "20s", "--json", "-")
    done = loadstone("capacity", *map(str, (*words, *secret)))
    assert done.returncode in (0, 4), done.stderr  # 4: the machine was too busy to say
    [found] = json.loads(done.stdout)["measurements"]
    assert found["scenario"] == "oidc-login"
    assert "keystone" not in f"{done.stdout}{done.stderr}".lower()
    counts = service.counts
    assert counts["grants"]["login"] >= counts["grants"]["authorization_code"] > 0
    stored = [path for path in tmp_path.rglob("*") if path.is_file() and path != secret_file]
    for text in (
        done.stdout,
        done.stderr,
        *(path.read_bytes().decode("latin1") for path in stored),
    ):
        for hidden in (SECRET, "her&pw=1", "his pw", "her%26pw"):
            assert hidden not in text
