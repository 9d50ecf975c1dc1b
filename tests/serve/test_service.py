"""`loadstone serve` as its clients meet it: keystoneauth, openstacksdk, Loadstone itself."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import openstack
import pytest
import requests
from command_line import PASSWORD, CommandLine
from documents import only
from known_service import NAME, known_service, serving

from loadstone.serve import service

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


@pytest.mark.verify
def test_loadstone_prepares_measures_up_to_its_ceiling_and_removes(tmp_path):
    counts = tmp_path / "counts.json"
    with serving(f"--counts={counts}", "--user=known", "--project=known") as (port, _):
        ended = CommandLine(tmp_path)(
            *("capacity", "--scenario", "validate", "--users", "3", "--budget", "20s"),
            *("--max-rate", "200", "--json", "-"),
            url=f"http://127.0.0.1:{port}/v3",
        )
    found = only(json.loads(ended.stdout))
    assert "Traceback" not in ended.stderr
    assert sum(trial["errors"] for trial in found["trials"]) == 0
    seen = json.loads(counts.read_text())
    assert seen["requests"]["POST /v3/users"] == 3
    assert seen["requests"]["DELETE /v3/users/{id}"] == 3
    sent = sum(trial["requests"] for trial in found["trials"])
    assert seen["requests"]["GET /v3/auth/tokens"] == sent
    assert set(seen["answers"]) == {"200", "201", "204", "404"}
    assert seen["answers"]["404"] == 1  # whether the domain is gone is looked at once
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
    with serving("--token-life=3s") as (port, _):
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
    with known_service(1, 0.2, "--max-queue=1") as known, ThreadPoolExecutor(8) as pool:
        base = known.url.removesuffix("/v3")
        answers = list(pool.map(lambda _: log_in(base, NAME, PASSWORD, NAME), range(8)))
        statuses = {answer.status_code for answer in answers}
        assert statuses == {201, 503}
        assert log_in(base, NAME, PASSWORD, NAME).status_code == 201
        seen = requests.get(f"{base}/loadstone/counts", timeout=LONG_S).json()
    full = sum(answer.status_code == 503 for answer in answers)
    assert seen["turned_away"] == full
    assert seen["worked"] == 9 - full


def test_a_share_of_errors_comes_at_any_rate():
    with serving("--error-share=0.25") as (port, _):
        base = f"http://127.0.0.1:{port}"
        statuses = [log_in(base).status_code for _ in range(8)]
    assert statuses == 2 * [201, 201, 201, 500]


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
            [*words, f"--port-file={tmp_path / 'port'}", "--counts=-"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={k: v for k, v in os.environ.items() if not k.startswith("LOADSTONE_S")} | given,
            timeout=LONG_S,
            check=True,
        )
        exports, brace, counts = ended.stdout.partition("{")
        assert json.loads(brace + counts)["requests"] == {}
        lines = dict(line.removeprefix("export ").split("=", 1) for line in exports.splitlines())
        assert lines["OS_AUTH_URL"].endswith(f":{(tmp_path / 'port').read_text().strip()}/v3")
        shown[bool(given)] = lines["OS_PASSWORD"]
    assert len(shown[False]) > 20
    assert shown[True] == '"$LOADSTONE_SERVE_PASSWORD"'


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--host", "banana"), 2, "address"),
        (("--law", "bursty"), 2, "--capacity"),
        (("--capacity", "5", "--stall", "3s"), 2, "stall"),
        (("--capacity", "5", "--stall-every", "3s"), 2, "--stall-every needs --stall: without it"),
        (("--max-queue", "5"), 2, "--max-queue needs --capacity: without it nothing queues"),
        (("--seed", "1"), 2, "--seed needs --capacity"),
        (("--queue-timeout", "1s"), 2, "--queue-timeout needs --capacity"),
        (("--decline", "0.02"), 2, "--decline needs --capacity"),
        (("--capacity", "5", "--collapse-by", "3"), 2, "--collapse-by needs --collapse-above"),
        (("--burst", "1s"), 2, "--burst needs --limit: without it nothing is limited"),
        (("--lockout-for", "1s"), 2, "--lockout-for needs --lockout-after"),
        (("--over-connections", "wait"), 2, "--over-connections needs --max-connections"),
        (("--lockout-after", "3", "--lockout-for", "0"), 2, "--lockout-for"),
        (("--capacity", "5", "--queue-timeout", "0"), 2, "--queue-timeout"),
        (("--even-over", "10", "--stall-every", "3s"), 2, "--even-over, --stall-every need"),
        (("--user", ""), 2, "name"),
        (("--host", "192.0.2.1"), 3, "192.0.2.1"),
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


def statuses(base, requests_sent, user="admin"):
    return Counter(log_in(base, user).status_code for _ in range(requests_sent))


def seen_by(base):
    return requests.get(f"{base}/loadstone/counts", timeout=LONG_S).json()


def test_a_rate_limiter_refuses_with_429_and_says_when_to_come_again():
    # 0.1 tokens a second: nothing is refilled while the test runs for less than 10 s per token.
    with serving("--limit=0.01", "--burst=300s") as (port, _):
        base = f"http://127.0.0.1:{port}"
        assert statuses(base, 5) == {201: 3, 429: 2}
        refused = log_in(base)
        assert refused.json()["error"]["code"] == 429
        assert 0 < int(refused.headers["Retry-After"]) <= 100
        assert requests.get(f"{base}/v3", timeout=LONG_S).status_code == 200
        assert seen_by(base)["limited"] == 3


@pytest.mark.parametrize(
    "path", ["/v3//auth/tokens", "/v3/auth/tokens/", "//v3/auth/tokens", "/v3/%61uth/tokens"]
)
def test_a_limit_holds_for_every_spelling_of_a_path(path):
    with serving("--limit=0.01") as (port, _):
        base = f"http://127.0.0.1:{port}"
        assert log_in(base).status_code == 201
        assert requests.get(f"{base}{path}", timeout=LONG_S).status_code == 429


def test_each_user_has_a_bucket_where_the_limit_is_per_user():
    with serving("--limit=0.01", "--limit-per=user") as (port, _):
        base = f"http://127.0.0.1:{port}"
        assert [log_in(base).status_code for _ in range(2)] == [201, 429]
        assert [log_in(base, "nobody").status_code for _ in range(2)] == [401, 429]


def test_each_connection_has_a_bucket_where_the_limit_is_per_connection():
    with serving("--limit=0.01", "--limit-per=connection") as (port, _):
        url = f"http://127.0.0.1:{port}/v3/auth/tokens"
        for _ in range(2):
            with requests.Session() as session:
                answers = [session.get(url, timeout=LONG_S).status_code for _ in range(3)]
            assert answers == [401, 429, 429]


def test_a_limiter_that_delays_lets_everything_through_at_its_rate():
    with serving("--limit=20", "--burst=0s", "--limit-mode=delay") as (port, _):
        base = f"http://127.0.0.1:{port}"
        before_s = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: log_in(base), range(21)))
        assert {answer.status_code for answer in answers} == {201}
        assert time.monotonic() - before_s >= 1.0  # 20 tokens after the first
        assert seen_by(base)["delayed"] > 0


def test_who_waits_in_the_queue_too_long_gets_a_503_then():
    with known_service(1, 2.0, "--queue-timeout=500ms") as known, ThreadPoolExecutor(4) as pool:
        base = known.url.removesuffix("/v3")
        answers = list(pool.map(lambda _: log_in(base, NAME, PASSWORD, NAME), range(4)))
        timed_out = [answer for answer in answers if answer.status_code == 503]
        assert len(timed_out) == 3
        assert all(answer.elapsed.total_seconds() >= 0.5 for answer in timed_out)
        assert seen_by(base)["queue_timeouts"] == 3


def test_failures_begin_a_lockout_that_ends():
    with serving("--lockout-after=3", "--lockout-for=4s") as (port, _):
        base = f"http://127.0.0.1:{port}"
        assert statuses(base, 3, "nobody") == {401: 3}
        refused = log_in(base)
        assert refused.status_code == 403
        while (answer := log_in(base)).status_code == 403:
            assert 0 < int(answer.headers["Retry-After"]) <= 4
        assert answer.status_code == 201
        assert seen_by(base)["locked_out"] > 0


def reads_an_answer(connection):
    connection.sendall(b"GET /v3 HTTP/1.1\r\nHost: x\r\n\r\n")
    with http.client.HTTPResponse(connection) as answer:
        answer.begin()
        answer.read()
        return answer.status == 200


def test_a_connection_above_the_limit_is_refused_until_another_ends():
    with serving("--max-connections=2") as (port, _):
        address = ("127.0.0.1", port)
        with socket.create_connection(address) as one, socket.create_connection(address) as two:
            assert reads_an_answer(one)
            assert reads_an_answer(two)
            until_refused(address)
            one.close()
            assert seen_once_taken(f"http://127.0.0.1:{port}")


def until_refused(address):
    # Until the service has seen that enough are open, the kernel accepts for it.
    with contextlib.suppress(ConnectionRefusedError):
        while True:
            socket.create_connection(address).close()


def seen_once_taken(base):
    """The counts, as soon as the one connection that is allowed is free."""
    while True:
        try:
            return seen_by(base)
        except requests.ConnectionError:
            continue


def test_a_connection_above_the_limit_is_reset():
    with serving("--max-connections=1", "--over-connections=reset") as (port, _):
        address = ("127.0.0.1", port)
        with socket.create_connection(address) as one:
            assert reads_an_answer(one)
            with socket.create_connection(address) as two, pytest.raises(ConnectionResetError):
                two.recv(1)
        assert seen_once_taken(f"http://127.0.0.1:{port}")["connections_reset"] >= 1


def test_a_connection_above_the_limit_waits_for_another_to_end():
    with serving("--max-connections=1", "--over-connections=wait") as (port, _):
        address = ("127.0.0.1", port)
        one, two = socket.create_connection(address), socket.create_connection(address)
        with one, two, ThreadPoolExecutor(1) as pool:
            assert reads_an_answer(one)
            second = pool.submit(reads_an_answer, two)
            assert reads_an_answer(one)
            assert not second.done()
            one.close()
            assert second.result(LONG_S)


@pytest.mark.parametrize("path", ["/v3//auth/tokens", "/v3/auth/tokens/", "/v3/%61uth/tokens"])
def test_the_capacity_holds_for_every_spelling_of_a_path(path):
    with known_service(1, 0.01) as known:
        base = known.url.removesuffix("/v3")
        token = log_in(base, NAME, PASSWORD, NAME).headers["X-Subject-Token"]
        answer = requests.get(f"{base}{path}", headers=about(token), timeout=LONG_S)
        assert answer.status_code == 200
        assert seen_by(base)["worked"] == 2


def test_a_service_user_validates_the_tokens_of_others_and_revokes_none(cloud, base):
    identity = cloud.identity
    user = identity.create_user(name="nova", password="nova")
    project = identity.create_project(name="services")
    identity.assign_project_role_to_user(project, user, identity.find_role("service"))
    other = log_in(base).headers["X-Subject-Token"]
    token = log_in(base, "nova", "nova", "services").headers["X-Subject-Token"]
    validated = ask(base, "GET", "/auth/tokens", token, other)
    assert validated.json()["token"]["user"]["name"] == "admin"
    assert ask(base, "DELETE", "/auth/tokens", token, other).status_code == 403
    assert ask(base, "GET", "/users", token).status_code == 403
    identity.delete_user(user)
    identity.delete_project(project)


def test_a_member_reads_its_own_project_and_no_other(cloud, base):
    identity = cloud.identity
    user = identity.create_user(name="reader", password="reader")
    own = identity.create_project(name="mine")
    identity.assign_project_role_to_user(own, user, identity.find_role("member"))
    token = log_in(base, "reader", "reader", "mine").headers["X-Subject-Token"]
    assert ask(base, "GET", f"/projects/{own.id}", token).json()["project"]["name"] == "mine"
    other = identity.find_project("admin")
    assert ask(base, "GET", f"/projects/{other.id}", token).status_code == 403
    identity.delete_user(user)
    identity.delete_project(own)


def test_links_have_the_scheme_by_which_a_proxy_was_reached(base):
    asked = {"X-Forwarded-Proto": "https", "Host": "keystone.example"}
    found = requests.get(f"{base}/v3", headers=asked, timeout=LONG_S).json()
    assert found["version"]["links"][0]["href"] == "https://keystone.example/v3/"


@pytest.mark.parametrize(
    "sent", [b"", b"GET /v3", b"POST /v3 HTTP/1.1\r\nContent-Length: 9\r\n\r\n"]
)
def test_a_connection_that_brings_no_request_is_closed(sent):
    with serving("--idle-timeout=1s") as (port, _):
        with socket.create_connection(("127.0.0.1", port), timeout=LONG_S) as connection:
            connection.sendall(sent)
            assert connection.recv(1) == b""
        with socket.create_connection(("127.0.0.1", port), timeout=LONG_S) as connection:
            assert reads_an_answer(connection)
            assert connection.recv(1) == b""


def test_an_answer_that_takes_longer_than_the_idle_timeout_is_given():
    with known_service(1, 1.0, "--idle-timeout=800ms") as known:
        base = known.url.removesuffix("/v3")
        assert log_in(base, NAME, PASSWORD, NAME).status_code == 201


def test_valid_tokens_are_forgotten_only_with_a_warning():
    warnings = []
    with serving("--max-tokens=2", warnings=warnings) as (port, _):
        base = f"http://127.0.0.1:{port}"
        first, second = (log_in(base).headers["X-Subject-Token"] for _ in range(2))
        assert ask(base, "DELETE", "/auth/tokens", first, second).status_code == 204
        third = log_in(base).headers["X-Subject-Token"]
        assert ask(base, "GET", "/auth/tokens", third, first).status_code == 200
        assert seen_by(base)["tokens_evicted"] == 0
        log_in(base)
        assert ask(base, "GET", "/auth/tokens", third, first).status_code == 404
        assert seen_by(base)["tokens_evicted"] == 1
    told = "more tokens were valid than --max-tokens 2 allows: 1 of them forgotten."
    assert warnings == [f"loadstone: warning: {told}"]


def test_a_capacity_above_what_the_machine_can_serve_is_told():
    warnings = []
    requests_at_once = 500 * b"GET /v3/auth/tokens HTTP/1.1\r\nHost: x\r\n\r\n"
    with serving("--capacity=1000000", "--workers=10", warnings=warnings) as (port, _):
        ended = threading.Event()

        def load():
            with socket.create_connection(("127.0.0.1", port)) as connection:
                seen = 0
                while not ended.is_set():
                    connection.sendall(requests_at_once)
                    seen += 500
                    while seen > 0:
                        seen -= connection.recv(1 << 20).count(b"HTTP/1.1 401")

        with ThreadPoolExecutor(8) as pool:
            loads = [pool.submit(load) for _ in range(8)]
            while not seen_by(f"http://127.0.0.1:{port}")["kept"]["short_seconds"]:
                assert not any(load.done() for load in loads)
            ended.set()
    assert len(warnings) == 1
    assert "--capacity was more than this machine can serve" in warnings[0]


def test_no_answer_comes_before_its_service_time_is_over():
    """That short times are not rounded up is tested in rust/serve/src/timer.rs, without a clock."""
    with known_service(1, 2e-4) as known:
        url = f"{known.url}/auth/tokens"
        with requests.Session() as session:
            took_s = [session.get(url, timeout=LONG_S).elapsed.total_seconds() for _ in range(300)]
    assert min(took_s) >= 2e-4


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:5000/v3"),
        ("::", "http://[::1]:5000/v3"),
        ("127.0.0.2", "http://127.0.0.2:5000/v3"),
    ],
)
def test_the_url_is_one_that_a_client_can_use(host, url):
    settings = service.ServiceSettings(service.Admin("a", "b", "c"), host=host)
    assert service.environment_variables(settings, 5000)["OS_AUTH_URL"] == url
