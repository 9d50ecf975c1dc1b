import socket
import ssl
import subprocess
import threading
from contextlib import ExitStack

import pytest
from fake_keystone import answering, serving

from loadstone.errors import EnvironmentUnusable
from loadstone.target import connect, from_environment


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


@pytest.mark.parametrize("path", ["/identity", "/identity/v3"])
def test_keystone_may_live_below_a_path(fake, url, variables, path):
    fake.prefix = "/identity"
    with connect(from_environment({**variables, "OS_AUTH_URL": url + path})) as access:
        assert access.identity_url == f"{url}/identity/v3"


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
    assert "what answers there is no Keystone" in line
    assert "http://HOST:5000/v3" in line


def test_a_keystone_that_is_down_behind_its_front(variables):
    with serving(answering(503, b"no backend")) as url:
        line = refused({**variables, "OS_AUTH_URL": url})
    assert "HTTP 503" in line


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
    monkeypatch.setattr("loadstone.target.session.ANSWER_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        line = refused({**variables, "OS_AUTH_URL": f"http://127.0.0.1:{port}/v3"})
    assert "connected, and no answer within" in line


def test_a_host_that_drops_what_comes(variables, monkeypatch):
    monkeypatch.setattr("loadstone.target.session.CONNECT_TIMEOUT_S", 0.2)
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
