import socket
import ssl
import subprocess
import threading
from contextlib import ExitStack

import pytest
from authority import Authority
from fake_keystone import FakeKeystone
from fake_server import answering, handled, serving

from loadstone.cloud import connect, from_environment
from loadstone.errors import EnvironmentUnusable


def refused(env):
    """Connect, expecting the one line that says why not."""
    cloud = from_environment(env)
    with pytest.raises(EnvironmentUnusable) as problem, connect(cloud):
        pass
    line = str(problem.value)
    assert "\n" not in line
    assert env["OS_PASSWORD"] not in line
    assert line.startswith(cloud.auth_url)
    return line


@pytest.mark.parametrize("path", ["", "/", "/v3", "/v3/"])
def test_the_version_is_found_from_any_spelling_of_the_url(url, variables, path):
    with connect(from_environment({**variables, "OS_AUTH_URL": url + path})) as access:
        assert access.identity_url == f"{url}/v3"
        assert access.token()


def test_the_password_goes_to_the_server_that_was_named(fake, variables):
    other = FakeKeystone()
    with serving(other.handler()) as elsewhere:
        link = [{"rel": "self", "href": f"{elsewhere}/v3/"}]
        version = {"version": {"id": "v3.14", "status": "stable", "links": link}}
        fake.disturb = lambda method, _path: (200, version) if method == "GET" else None
        with connect(from_environment(variables)):
            pass
    assert fake.calls["POST", "/v3/auth/tokens"] == 1
    assert not other.calls


def test_a_token_stays_if_nobody_can_log_in_again(fake, variables):
    with connect(from_environment(variables)) as access:
        fake.disturb = lambda _method, path: 401 if path == "/v3/auth/tokens" else None
        with pytest.raises(EnvironmentUnusable, match="refused the credentials"):
            access.token(lasting_s=1e9)
        assert access.token() in fake.tokens


@pytest.mark.parametrize("path", ["/identity", "/identity/v3"])
def test_keystone_may_live_below_a_path(fake, url, variables, path):
    fake.prefix = "/identity"
    with connect(from_environment({**variables, "OS_AUTH_URL": url + path})) as access:
        assert access.identity_url == f"{url}/identity/v3"


def test_an_override_of_a_service_that_the_catalog_lacks_is_said_to_be_unused(url, variables):
    override = {"OS_COMPUTE_ENDPOINT_OVERRIDE": "http://127.0.0.1:8774/v2.1"}
    with connect(from_environment(variables | override)) as access:
        assert access.service_url("compute") is None
        missing = f"the catalog of {url}/v3 has no {{}} for interface public"
        unused = " (compute_endpoint_override is not used)"
        assert access.lacks("compute") == missing.format("compute") + unused
        assert access.lacks("network") == missing.format("network")


def test_a_wrong_password_is_one_line(variables):
    line = refused({**variables, "OS_PASSWORD": "not the one"})
    assert "refused the credentials of user admin (HTTP 401" in line
    assert "check password" in line


def test_nobody_listens(variables):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    line = refused({**variables, "OS_AUTH_URL": f"http://127.0.0.1:{port}/v3"})
    assert f"connection refused on port {port}" in line


def test_a_host_without_an_address(variables):
    line = refused({**variables, "OS_AUTH_URL": "http://keystone.invalid:5000/v3"})
    assert "no address for host 'keystone.invalid'" in line


def test_a_service_of_version_2_only(variables):
    link = [{"rel": "self", "href": "http://127.0.0.1/v2.0"}]
    body = b'{"versions":{"values":[{"id":"v2.0","status":"stable","links":%s}]}}'
    body %= str(link).replace("'", '"').encode()
    with serving(answering(300, body)) as url:
        line = refused({**variables, "OS_AUTH_URL": url})
    assert "offers v2, not the Identity API v3" in line


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>It works!</html>"),
        (200, b"[]"),
        (200, b'{"versions": "none"}'),
        (200, b'{"versions": {"values": [{}]}}'),
        (404, b"not here"),
        (403, b""),
    ],
)
def test_what_is_no_keystone(variables, status, body):
    with serving(answering(status, body)) as url:
        line = refused({**variables, "OS_AUTH_URL": url})
    assert "what answers there is not Keystone" in line
    assert "http://HOST:5000/v3" in line


def test_http_where_nginx_serves_https(variables):
    page = b"The plain HTTP request was sent to HTTPS port"
    with serving(answering(400, page)) as url:
        line = refused({**variables, "OS_AUTH_URL": url})
    assert line.endswith("answers HTTP 400; is this http where https is served?")


def test_a_keystone_that_is_down_behind_its_front(variables):
    with serving(answering(503, b"no backend")) as url:
        line = refused({**variables, "OS_AUTH_URL": url})
    assert "answers HTTP 503: Keystone, or a server that it needs, is down or overloaded" in line
    assert "no Keystone" not in line


@pytest.mark.parametrize(
    ("status", "words"),
    [(429, "a rate limiter refuses this machine"), (503, "is down or overloaded")],
)
def test_an_answer_that_asks_for_a_later_retry_is_an_answer(variables, status, words):
    headers = (("Retry-After", "3600"),)
    with serving(handled(lambda request: request.answer(status, b"later", headers))) as url:
        line = refused({**variables, "OS_AUTH_URL": url})
    assert f"answers HTTP {status}" in line
    assert words in line


def test_a_login_that_is_asked_to_wait_is_an_answer(fake, url, variables):
    limited = 429, {"error": {"message": "slow down"}}, (("Retry-After", "3600"),)
    fake.disturb = lambda method, _path: limited if method == "POST" else None
    line = refused({**variables, "OS_AUTH_URL": url})
    assert line.endswith("answered user admin with HTTP 429: slow down")


def test_http_spoken_where_something_else_listens(variables):
    with socket.create_server(("127.0.0.1", 0)) as odd:

        def close_each():
            for _ in range(8):
                try:
                    connection, _ = odd.accept()
                except OSError:
                    return
                connection.close()

        closer = threading.Thread(target=close_each, daemon=True)
        closer.start()
        refused({**variables, "OS_AUTH_URL": f"http://127.0.0.1:{odd.getsockname()[1]}/v3"})
        odd.shutdown(socket.SHUT_RDWR)
        closer.join()


def test_a_service_that_never_answers(variables, monkeypatch):
    monkeypatch.setattr("loadstone.cloud.session.ANSWER_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        line = refused({**variables, "OS_AUTH_URL": f"http://127.0.0.1:{port}/v3"})
    assert "connected, and no complete answer within" in line


def test_a_service_that_drips_is_not_waited_for_without_end(variables, monkeypatch):
    """A byte now and then: each gap is short, the answer never ends."""
    monkeypatch.setattr("loadstone.cloud.session.ANSWER_TIMEOUT_S", 0.3)
    monkeypatch.setattr("loadstone.cloud.session.TELL_S", 0.1)
    ended = threading.Event()

    def drip(request):
        request.send_response(200)
        request.send_header("Content-Length", "1000000")
        request.end_headers()
        while not ended.wait(0.05):
            request.wfile.write(b" ")
            request.wfile.flush()

    said = []
    try:
        with serving(handled(drip)) as url:
            cloud = from_environment({**variables, "OS_AUTH_URL": url})
            with pytest.raises(EnvironmentUnusable, match="no complete answer within"):
                connect(cloud, said.append)
            ended.set()
    finally:
        ended.set()
    assert said
    assert all(line.startswith(f"  waiting for GET {url}") for line in said)


def test_a_redirect_to_another_server_is_named_and_not_followed(variables):
    asked = []

    def elsewhere(request):
        asked.append(request.path)
        request.answer(200, {})

    def redirect(request):
        request.answer(302, None, (("Location", f"{other}/login?next=/v3"),))

    with serving(handled(elsewhere)) as other, serving(handled(redirect)) as url:
        line = refused({**variables, "OS_AUTH_URL": f"{url}/v3"})
    assert line.endswith(f"redirects to {other}/login; give the URL of Keystone itself")
    assert asked == []


def test_a_redirect_to_another_path_of_the_same_server_is_followed(fake, variables):
    def add_slash(request):
        if request.path == "/identity":
            request.answer(301, None, (("Location", "/identity/"),))
        else:
            fake.serve(request)

    fake.prefix = "/identity"
    with serving(handled(add_slash)) as url:
        cloud = from_environment({**variables, "OS_AUTH_URL": f"{url}/identity"})
        with connect(cloud) as access:
            assert access.identity_url == f"{url}/identity/v3"


def test_a_login_page_in_place_of_a_token_is_one_line(fake, variables):
    def log_in(request):
        if request.command == "POST":
            request.answer(200, b"<html>log in</html>")
        else:
            fake.serve(request)

    with serving(handled(log_in)) as url:
        line = refused({**variables, "OS_AUTH_URL": f"{url}/v3"})
    assert "could not log in: HTTP 200" in line
    assert "does a proxy or a login page stand in front of it?" in line


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
def test_a_refused_connection_says_that_the_proxy_is_not_used(variables, monkeypatch, name):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    env = {**variables, "OS_AUTH_URL": f"http://127.0.0.1:{port}/v3"}
    assert "proxy" not in refused(env)
    monkeypatch.setenv(name, "http://proxy.invalid:3128")
    assert f"the proxy of {name} is not used" in refused(env)


def test_a_host_that_drops_what_comes(variables, monkeypatch):
    monkeypatch.setattr("loadstone.cloud.session.CONNECT_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        address = full.getsockname()
        for _ in range(3):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(address)
        line = refused({**variables, "OS_AUTH_URL": f"http://127.0.0.1:{address[1]}/v3"})
    assert "no connection within" in line


@pytest.fixture
def tls(fake, tmp_path):
    """The fake behind TLS with a certificate that only its own file vouches for."""
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    files = ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")]
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            *files,
            *subject,
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    with serving(fake.handler(), context) as url:
        yield url, tmp_path / "cert"


def test_an_untrusted_certificate_says_how_to_trust_it(variables, tls):
    url, _ = tls
    line = refused({**variables, "OS_AUTH_URL": url})
    assert "certificate is not trusted (self-signed certificate)" in line
    assert "OS_CACERT" in line


def test_an_expired_certificate_is_named(fake, variables, tmp_path):
    authority = Authority(tmp_path, "ours")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("late", days_ago=3))
    with serving(fake.handler(), context) as url:
        line = refused({**variables, "OS_AUTH_URL": url, "OS_CACERT": str(authority.file)})
    assert "its TLS certificate has expired" in line


def test_a_certificate_for_another_name_is_not_one_of_an_unknown_ca(fake, variables, tmp_path):
    authority = Authority(tmp_path, "ours")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("server"))
    with serving(fake.handler(), context) as url:
        at = url.replace("127.0.0.1", "localhost")
        line = refused({**variables, "OS_AUTH_URL": at, "OS_CACERT": str(authority.file)})
    assert "its TLS certificate is for another name (Hostname mismatch" in line
    assert "OS_CACERT" not in line


def test_its_ca_or_insecure_lets_it_pass(variables, tls):
    url, ca_file = tls
    for extra in ({"OS_CACERT": str(ca_file)}, {"OS_INSECURE": "true"}):
        env = {**variables, "OS_AUTH_URL": url, **extra}
        with connect(from_environment(env)) as access:
            assert access.endpoint.scheme == "https"


def test_https_where_http_is_served(variables, url):
    line = refused({**variables, "OS_AUTH_URL": url.replace("http:", "https:")})
    assert "TLS failed" in line
    assert "is https served on this port" in line


def test_a_token_that_is_about_to_expire_is_replaced(fake, variables):
    with connect(from_environment(variables)) as access:
        first = access.token()
        assert access.token(lasting_s=600) == first
        fake.token_life_s = 7200
        second = access.token(lasting_s=3700)
        assert second != first
        assert access.token(lasting_s=3700) == second


def test_connections_that_the_server_drops_do_not_show(fake, variables):
    """uwsgi's http-socket closes idle connections without a word."""
    lost = iter([0, None, 0, 0, None, 0] + [None] * 50)
    fake.disturb = lambda _method, _path: next(lost)
    with connect(from_environment(variables)) as access:
        assert access.token()


def test_a_ca_file_that_is_gone_since_is_one_line(variables, tmp_path):
    """As that of a lab that another command has purged."""
    ca = Authority(tmp_path, "ca").file
    given = {**variables, "OS_AUTH_URL": "https://127.0.0.1:9/v3", "OS_CACERT": str(ca)}
    cloud = from_environment(given)
    ca.unlink()
    with pytest.raises(EnvironmentUnusable, match=r"^https://127\.0\.0\.1:9/v3: .*ca\.pem$"):
        connect(cloud)
