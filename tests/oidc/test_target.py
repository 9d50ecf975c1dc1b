import pytest

from loadstone.errors import InvalidInput
from loadstone.oidc.client import Client
from loadstone.oidc.target import OidcIssuer


def test_authorities_that_cannot_be_read_are_refused_before_any_request(monkeypatch, tmp_path):
    for missing in (tmp_path / "ca.pem", tmp_path):
        monkeypatch.setenv("SSL_CERT_FILE", str(missing))
        with pytest.raises(InvalidInput, match=f"^SSL_CERT_FILE: {missing} is not a file"):
            _ = OidcIssuer("https://127.0.0.1:8443/realms/x", Client("load")).cloud
        assert OidcIssuer("http://127.0.0.1:8080/realms/x", Client("load")).cloud.who


def test_authorities_that_can_be_read_are_those_of_the_provider(monkeypatch, tmp_path):
    (tmp_path / "ca.pem").touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    cloud = OidcIssuer("https://127.0.0.1:8443/realms/x", Client("load")).cloud
    assert cloud.tls.ca_file == str(tmp_path / "ca.pem")
