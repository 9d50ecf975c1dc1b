"""`loadstone serve` as its clients meet it: keystoneauth, openstacksdk, Loadstone itself."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import openstack
import pytest
import requests
from command_line import PASSWORD, CommandLine
from known_service import NAME, known_service, serving

LONG_S = 30.0
# The SDK warns of its own plans, for InfluxDB and for its resources.
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")


@pytest.fixture(scope="module")
def base():
    with serving() as (port, _):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def cloud(base):
    with contextlib.closing(connect(base)) as connection:
        yield connection


def connect(base, user="admin", password=PASSWORD, project="admin", domain="default"):
    return openstack.connection.Connection(
        auth={
            "auth_url": base,
            "username": user,
            "password": password,
            "project_name": project,
            "user_domain_id": domain,
            "project_domain_id": domain,
        },
        region_name="RegionOne",
    )


def log_in(base, user="admin", password=PASSWORD, project="admin"):
    domain = {"id": "default"}
    given = {"name": user, "domain": domain, "password": password}
    auth = {"identity": {"methods": ["password"], "password": {"user": given}}}
    auth["scope"] = {"project": {"name": project, "domain": domain}} if project else "unscoped"
    return requests.post(f"{base}/v3/auth/tokens", json={"auth": auth}, timeout=LONG_S)


def about(token, subject=None):
    return {"X-Auth-Token": token, "X-Subject-Token": subject or token}


def ask(base, method, path, token, subject=None, body=None):
    headers = about(token, subject)
    url = f"{base}/v3{path}"
    return requests.request(method, url, json=body, headers=headers, timeout=LONG_S)


def test_openstacksdk_makes_finds_changes_and_removes_all_that_it_knows(cloud):
    identity = cloud.identity
    domain = identity.create_domain(name="sdk")
    project = identity.create_project(name="sdk", domain_id=domain.id, description="one")
    user = identity.create_user(name="sdk", domain_id=domain.id, password="first", email="a@b")
    role = identity.create_role(name="sdk")
    assert identity.find_user("sdk", domain_id=domain.id).email == "a@b"
    assert identity.find_project("sdk").description == "one"
    assert identity.find_role("sdk").id == role.id
    assert identity.update_project(project, description="two").description == "two"
    identity.assign_project_role_to_user(project, user, role)
    assert identity.validate_user_has_project_role(project, user, role)
    assignments = list(identity.role_assignments(user_id=user.id))
    assert [assignment.scope["project"]["id"] for assignment in assignments] == [project.id]
    identity.unassign_project_role_from_user(project, user, role)
    assert list(identity.role_assignments(user_id=user.id)) == []
    identity.delete_role(role)
    identity.update_domain(domain, is_enabled=False)
    identity.delete_domain(domain)
    assert identity.find_user("sdk") is None
    assert identity.find_project("sdk") is None


def test_keystoneauth_rescopes_and_finds_the_service_in_the_catalog(cloud, base):
    token = cloud.session.get_token()
    assert cloud.session.get_endpoint(service_type="identity") == f"{base}/v3"
    again = openstack.connection.Connection(
        auth_type="token",
        auth={"auth_url": base, "token": token, "project_name": "admin"},
        default_domain_id="default",
    )
    with contextlib.closing(again):
        assert again.session.get_token() != token
        assert again.session.auth.get_access(again.session).role_names[0] == "admin"


def test_loadstone_prepares_measures_up_to_its_ceiling_and_removes(tmp_path):
    counts = tmp_path / "counts.json"
    with serving(f"--counts={counts}", "--user=known", "--project=known") as (port, _):
        ended = CommandLine(tmp_path)(
            *("capacity", "--scenario", "validate", "--users", "3", "--budget", "20s"),
            *("--max-rate", "200", "--json", "-"),
            url=f"http://127.0.0.1:{port}/v3",
        )
    found = json.loads(ended.stdout)
    assert "Traceback" not in ended.stderr
    assert sum(trial["errors"] for trial in found["trials"]) == 0
    seen = json.loads(counts.read_text())
    assert seen["requests"]["POST /v3/users"] == 3
    assert seen["requests"]["DELETE /v3/users/{id}"] == 3
    sent = sum(trial["requests"] for trial in found["trials"])
    assert seen["requests"]["GET /v3/auth/tokens"] == sent
    assert set(seen["answers"]) == {"200", "201", "204"}
    assert found["capacity"]["high_rps"] is None
    assert max(trial["rate_rps"] or 0 for trial in found["trials"]) <= 200
    assert any("ceiling" in words or "at least" in words for words in found["words"])


def test_what_was_sent_is_what_was_seen(base):
    counts = f"{base}/loadstone/counts"
    before = requests.get(counts, timeout=LONG_S).json()["requests"]
    token = log_in(base).headers["X-Subject-Token"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(base, "GET", "/auth/tokens", token), range(200)))
    assert {answer.status_code for answer in answers} == {200}
    after = requests.get(counts, timeout=LONG_S).json()["requests"]
    kind = "GET /v3/auth/tokens"
    assert after[kind] - before.get(kind, 0) == 200


def test_a_revoked_token_is_unknown_and_opens_nothing(base):
    mine, other = (log_in(base).headers["X-Subject-Token"] for _ in range(2))
    assert ask(base, "DELETE", "/auth/tokens", mine, other).status_code == 204
    assert ask(base, "GET", "/auth/tokens", mine, other).status_code == 404
    assert ask(base, "GET", "/auth/tokens", mine, "0" * 32).status_code == 404
    assert ask(base, "GET", "/users", other).status_code == 401


def test_tokens_expire():
    with serving("--token-life=1s") as (port, _):
        base = f"http://127.0.0.1:{port}"
        old = log_in(base).headers["X-Subject-Token"]
        statuses = [200]
        while statuses[-1] == 200:
            fresh = log_in(base).headers["X-Subject-Token"]
            statuses.append(ask(base, "GET", "/auth/tokens", fresh, old).status_code)
        assert statuses[-1] == 404
        assert ask(base, "GET", "/users", old).status_code == 401


@pytest.mark.parametrize(
    "spoil",
    [
        lambda identity, user: identity.update_user(user, is_enabled=False),
        lambda identity, user: identity.update_user(user, password="another"),
        lambda identity, user: identity.delete_user(user),
        lambda identity, _: identity.delete_project(identity.find_project("own")),
        lambda identity, user: identity.unassign_project_role_from_user(
            identity.find_project("own"), user, identity.find_role("member")
        ),
    ],
    ids=["disabled", "new password", "removed", "project removed", "role taken"],
)
def test_who_may_no_longer_has_no_token(cloud, base, spoil):
    identity = cloud.identity
    user = identity.create_user(name="own", password="own")
    project = identity.create_project(name="own")
    identity.assign_project_role_to_user(project, user, identity.find_role("member"))
    token = log_in(base, "own", "own", "own").headers["X-Subject-Token"]
    assert ask(base, "GET", "/auth/tokens", token).status_code == 200
    spoil(identity, user)
    assert ask(base, "GET", "/auth/tokens", token).status_code == 401
    assert log_in(base, "own", "own", "own").status_code == 401
    identity.delete_user(user, ignore_missing=True)
    identity.delete_project(project, ignore_missing=True)


def test_only_an_administrator_changes_anything(cloud, base):
    user = cloud.identity.create_user(name="plain", password="plain")
    token = log_in(base, "plain", "plain", None).headers["X-Subject-Token"]
    refused = ask(base, "POST", "/users", token, body={"user": {"name": "x"}})
    assert refused.status_code == 403
    assert "identity:create_user" in refused.json()["error"]["message"]
    assert ask(base, "GET", f"/users/{user.id}", token).status_code == 200
    cloud.identity.delete_user(user)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[1]", 400),
        (b'{"auth": 7}', 400),
        (b'{"auth": {"identity": {"methods": []}}}', 401),
        (b"x" * 200_000, 413),
    ],
)
def test_a_broken_body_is_refused_in_keystones_form(base, body, status):
    answer = requests.post(f"{base}/v3/auth/tokens", data=body, timeout=LONG_S)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == status
    assert answer.headers["Vary"] == "X-Auth-Token"


def test_a_service_without_room_says_so_and_serves_on():
    with known_service(1, 0.2, "--queue=1") as known, ThreadPoolExecutor(8) as pool:
        base = known.url.removesuffix("/v3")
        answers = list(pool.map(lambda _: log_in(base, NAME, PASSWORD, NAME), range(8)))
        statuses = {answer.status_code for answer in answers}
        assert statuses == {201, 503}
        assert log_in(base, NAME, PASSWORD, NAME).status_code == 201
        seen = requests.get(f"{base}/loadstone/counts", timeout=LONG_S).json()
    full = sum(answer.status_code == 503 for answer in answers)
    assert seen["turned_away"] == full
    assert seen["worked"] == 9 - full


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_and_what_was_seen_is_kept(tmp_path, number):
    counts = tmp_path / "counts.json"
    with serving(f"--counts={counts}") as (port, process):
        assert log_in(f"http://127.0.0.1:{port}").status_code == 201
        # A client that holds its connection open does not hold up the end.
        with socket.create_connection(("127.0.0.1", port)):
            process.send_signal(number)
            assert process.wait(timeout=LONG_S) == 0
    assert json.loads(counts.read_text())["requests"] == {"POST /v3/auth/tokens": 1}


def test_it_ends_when_its_parent_does():
    with serving() as (port, process):
        process.stdin.close()
        assert process.wait(timeout=LONG_S) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_password_is_made_and_shown_only_where_none_was_given(tmp_path):
    words = [sys.executable, "-m", "loadstone", "serve", "--until-stdin-closes"]
    shown = {}
    for given in ({}, {"LOADSTONE_SERVE_PASSWORD": PASSWORD}):
        ended = subprocess.run(
            [*words, f"--port-file={tmp_path / 'port'}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={k: v for k, v in os.environ.items() if not k.startswith("LOADSTONE_S")} | given,
            timeout=LONG_S,
            check=True,
        )
        lines = dict(
            line.removeprefix("export ").split("=", 1) for line in ended.stdout.splitlines()
        )
        assert lines["OS_AUTH_URL"].endswith(f":{(tmp_path / 'port').read_text()}/v3")
        shown[bool(given)] = lines["OS_PASSWORD"]
    assert len(shown[False]) > 20
    assert shown[True] == '"$LOADSTONE_SERVE_PASSWORD"'


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--host", "banana"), 2, "address"),
        (("--law", "bursty"), 2, "--capacity"),
        (("--capacity", "5", "--stall", "3s"), 2, "stall"),
        (("--queue", "5"), 2, "--queue needs --capacity: without it nothing queues"),
        (("--seed", "1"), 2, "--seed needs --capacity"),
        (("--even-over", "10", "--stall-every", "3s"), 2, "--even-over, --stall-every need"),
        (("--user", ""), 2, "name"),
        (("--host", "192.0.2.1"), 3, "192.0.2.1"),
        (("--port-file", "/proc/nowhere/port"), 3, "/proc/nowhere/port"),
    ],
)
def test_what_cannot_be_served_is_one_line(tmp_path, words, code, told):
    ended = CommandLine(tmp_path)("serve", *words)
    assert ended.returncode == code
    assert told in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_port_that_is_taken_is_named(tmp_path, base):
    port = base.rpartition(":")[2]
    ended = CommandLine(tmp_path)("serve", "--port", port)
    assert ended.returncode == 3
    assert port in ended.stderr
