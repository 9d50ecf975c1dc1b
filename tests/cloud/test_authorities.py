"""The authorities that preparation trusts are those of the system, as for load."""

import pytest

from loadstone.cloud import authorities
from loadstone.cloud.authorities import system_authorities

pytestmark = pytest.mark.pure


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)


def test_the_file_of_the_distribution_is_used(tmp_path, monkeypatch):
    bundle = tmp_path / "ca-certificates.crt"
    bundle.touch()
    monkeypatch.setattr(authorities, "_FILES", (str(tmp_path / "none"), str(bundle)))
    assert system_authorities() == str(bundle)


def test_ssl_cert_file_chooses_another(tmp_path, monkeypatch):
    own = tmp_path / "own.pem"
    own.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    assert system_authorities() == str(own)
