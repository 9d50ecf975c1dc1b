"""What other users of this machine find at the ports of a fleet."""

import contextlib
import socket
import ssl

import psutil
import pytest

from loadstone.engine.fleet import client
from loadstone.engine.fleet.address import LocalFleet

PATHS = ("/", "/status", "/info/main/workers.html", "/json/counts.json", "/metrics", "/health")


def listening() -> set[tuple[str, int]]:
    """Return the addresses at which this process and its descendants listen."""
    me = psutil.Process()
    found = set()
    for process in (me, *me.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            for link in process.net_connections("inet"):
                if link.status == psutil.CONN_LISTEN:
                    found.add((link.laddr.ip, link.laddr.port))
    return found


def plain_answer(port: int, path: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            return link.recv(65_536)
    return b""


def answer_without_certificate(port: int) -> bytes:
    """Return what a TLS client without a certificate is sent after the handshake."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        contextlib.suppress(ssl.SSLError, ConnectionError, TimeoutError),
        socket.create_connection(("127.0.0.1", port), timeout=2) as link,
        context.wrap_socket(link) as encrypted,
    ):
        return encrypted.recv(1)
    return b""


@pytest.fixture(scope="module")
def ports():
    before = listening()
    with client.opened(LocalFleet(1)):
        yield listening() - before


def test_a_local_fleet_listens_on_loopback_only(ports):
    assert ports
    assert {address for address, _ in ports} == {"127.0.0.1"}


def test_other_users_are_served_nothing(ports):
    for _, port in ports:
        for path in PATHS:
            answer = plain_answer(port, path)
            assert not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.0 200")), (port, path)
            assert b"tls://" not in answer
        assert answer_without_certificate(port) == b""
