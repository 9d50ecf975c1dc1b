import threading

import pytest
from authority import Authority
from fake_server import handled, serving

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.monitor.sources.address import read_address
from loadstone.monitor.sources.prometheus import Credentials
from loadstone.oidc.client import Client, read_secret
from loadstone.oidc.target import OidcIssuer, connected
from loadstone.system.redaction import Redaction


def test_authorities_that_cannot_be_read_are_refused_before_any_request(monkeypatch, tmp_path):
    for missing in (tmp_path / "ca.pem", tmp_path):
        monkeypatch.setenv("SSL_CERT_FILE", str(missing))
        with pytest.raises(InvalidInput, match=f"^SSL_CERT_FILE: {missing} is not a file"):
            _ = OidcIssuer("https://127.0.0.1:8443/realms/x", Client("load")).cloud
        assert OidcIssuer("http://127.0.0.1:8080/realms/x", Client("load")).cloud.who


def test_authorities_that_can_be_read_are_those_of_the_provider(monkeypatch, tmp_path):
    ca = Authority(tmp_path, "ca").file
    monkeypatch.setenv("SSL_CERT_FILE", str(ca))
    cloud = OidcIssuer("https://127.0.0.1:8443/realms/x", Client("load")).cloud
    assert cloud.tls.ca_file == str(ca)


def test_a_file_without_authorities_is_named(monkeypatch, tmp_path):
    (tmp_path / "ca.der").write_bytes(b"0\x82")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.der"))
    with pytest.raises(InvalidInput, match=r"^SSL_CERT_FILE: .*ca\.der has no certificate in PEM"):
        _ = OidcIssuer("https://127.0.0.1:8443/realms/x", Client("load")).cloud


def test_a_clients_secret_is_hidden_in_the_form_of_http_basic_too():
    client = Client("a client", "s3cr3t/+", in_body=True)
    choice = OidcIssuer("http://127.0.0.1:8080", client)
    basic = Client("a client", "s3cr3t/+").header
    said = f"invalid_client: bad header Authorization: {basic}"
    assert Redaction(choice.secrets).text(said) == (
        "invalid_client: bad header Authorization: Basic ***"
    )
    assert OidcIssuer("http://127.0.0.1:8080", Client("public")).secrets == frozenset()


def test_a_file_of_an_editor_that_writes_a_byte_order_mark_has_the_secret_alone(tmp_path):
    file = tmp_path / "secret"
    file.write_bytes(b"\xef\xbb\xbfs\xc3\xa9cret\r\n")
    assert read_secret(file) == "s\u00e9cret"
    url = f"mariadb://u@127.0.0.1:1?password-file={file}"
    assert read_address(url, ("mariadb",)).password == "s\u00e9cret"
    assert Credentials(file).header() == "Bearer s\u00e9cret"


def test_a_provider_that_drips_is_not_waited_for_without_end(monkeypatch):
    """A byte now and then: each gap is short, the answer never ends."""
    monkeypatch.setattr("loadstone.cloud.session.ANSWER_TIMEOUT_S", 0.3)
    monkeypatch.setattr("loadstone.cloud.session.TELL_S", 0.1)
    ended = threading.Event()

    def drip(request):
        request.send_response(200)
        request.send_header("Content-Length", "200")
        request.end_headers()
        for _ in range(200):
            if ended.wait(0.05):
                return
            request.wfile.write(b" ")
            request.wfile.flush()

    said = []
    try:
        with serving(handled(drip)) as url:
            provider = connected(OidcIssuer(url, Client("load")), said.append)
            with pytest.raises(EnvironmentUnusable, match="no complete answer in time"), provider:
                pass
            ended.set()
    finally:
        ended.set()
    assert said
    assert all(line.startswith(f"  waiting for GET {url}/.well-known/") for line in said)


@pytest.mark.parametrize(
    ("offered", "sent"),
    [
        (["private_key_jwt", "tls_client_auth"], 0),
        (["private_key_jwt", "client_secret_post"], 1),
        ([], 1),
    ],
)
def test_an_authentication_of_clients_that_load_cannot_have_is_named_before_any(offered, sent):
    posted = []

    def serve(request):
        base = f"http://{request.headers['Host']}"
        if request.command == "POST":
            posted.append(request.path)
            request.answer(401, {"error": "invalid_client"})
            return
        request.answer(
            200,
            {
                "issuer": base,
                "token_endpoint": f"{base}/token",
                "token_endpoint_auth_methods_supported": offered,
            },
        )

    with (
        serving(handled(serve)) as url,
        connected(OidcIssuer(url, Client("c", "s3cret"))) as provider,
        pytest.raises(EnvironmentUnusable) as refused,
    ):
        provider.grant({"grant_type": "client_credentials"}, "client credentials grant")
    assert len(posted) == sent
    named = "authenticate by private_key_jwt, tls_client_auth, and those of a load by "
    assert (named in str(refused.value)) is (sent == 0)


@pytest.mark.parametrize(
    ("status", "why"), [(503, "is down or overloaded"), (429, "a rate limiter refuses")]
)
def test_a_provider_that_is_overloaded_is_not_taken_for_another_service(status, why):
    with serving(handled(lambda request: request.answer(status, {}))) as url:
        provider = connected(OidcIssuer(url, Client("load")))
        with pytest.raises(EnvironmentUnusable, match=f"answers HTTP {status}: .*{why}"), provider:
            pass
