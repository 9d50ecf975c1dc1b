"""What preparation trusts and shows over TLS, the load trusts and shows too."""

import ssl
import subprocess

import pytest
from fake_server import serving
from made_users import users

from loadstone.cloud import connect, from_environment
from loadstone.engine import local
from loadstone.engine.samples import Outcome
from loadstone.keystone.compile import compile_plan
from loadstone.keystone.contexts.model import Users
from loadstone.keystone.scenarios import SCENARIOS
from loadstone.plan.load import ClosedLoad


def openssl(folder, *words):
    subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """Give a CA, and certificates of it for the server and for a client."""
    folder = tmp_path_factory.mktemp("tls")
    key = ["-newkey", "rsa:2048", "-nodes", "-days", "2"]
    openssl(folder, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca", "-subj", "/CN=test CA")
    for name in ("server", "client"):
        (folder / "ext").write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        openssl(
            folder, "req", *key, "-keyout", f"{name}.key", "-out", "csr", "-subj", f"/CN={name}"
        )
        signed = ["-CA", "ca", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "ext"]
        openssl(folder, "x509", "-req", "-in", "csr", "-out", name, "-days", "2", *signed)
    return folder


@pytest.fixture
def tls_url(fake, papers):
    """Serve the fake behind TLS; clients must show a certificate of the CA."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(papers / "server", papers / "server.key")
    context.load_verify_locations(papers / "ca")
    context.verify_mode = ssl.CERT_REQUIRED
    with serving(fake.handler(), context) as url:
        yield url


@pytest.mark.parametrize("trust", ["OS_CACERT", "OS_INSECURE"])
def test_ca_and_client_certificate_hold_for_both(tls_url, variables, papers, journal, trust):
    env = {
        **variables,
        "OS_AUTH_URL": tls_url,
        trust: str(papers / "ca") if trust == "OS_CACERT" else "true",
        "OS_CERT": str(papers / "client"),
        "OS_KEY": str(papers / "client.key"),
    }
    with (
        connect(from_environment(env)) as access,
        users(access, "tls1", Users(), journal, str) as people,
    ):
        load = ClosedLoad(workers=1, iterations=3)
        plan = compile_plan(SCENARIOS["issue"], access, people, {}, load)
        samples = local.run(plan).samples
    assert [Outcome(outcome) for outcome in samples.outcome] == [Outcome.OK] * 3
