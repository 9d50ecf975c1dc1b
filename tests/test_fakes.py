"""The fake services of tests are used by clients that are killed."""

import socket
from urllib.parse import urlsplit

import pytest
from fake_cloud import FakeCloud
from fake_keystone import FakeKeystone
from fake_server import serving


@pytest.mark.parametrize("fake", [FakeCloud(), FakeKeystone()], ids=["cloud", "keystone"])
def test_a_client_killed_while_it_sent_is_no_error_of_the_fake(fake, capfd):
    with serving(fake.handler()) as url:
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port), timeout=10) as client:
            client.sendall(b"POST /v3/users HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
    assert not fake.calls
    assert capfd.readouterr().err == ""
