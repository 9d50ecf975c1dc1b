import contextlib
import socket

import pytest
from keystoneauth1.exceptions import ConnectFailure

from loadstone.cloud import from_environment, require_permission
from loadstone.cloud.session import open_session
from loadstone.errors import EnvironmentUnusable, InvalidInput


def cloud(host):
    return from_environment(
        {
            "OS_AUTH_URL": f"http://{host}:5000/v3",
            "OS_USERNAME": "admin",
            "OS_PASSWORD": "s3cret",
            "OS_USER_DOMAIN_ID": "default",
        }
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "localhost", "[::1]"])
def test_this_machine_needs_no_permission(host):
    require_permission(cloud(host), yes=False)


@pytest.mark.parametrize("host", ["192.0.2.1", "0.0.0.0", "[2001:db8::1]"])
def test_any_other_target_needs_the_flag(host):
    with pytest.raises(InvalidInput) as problem:
        require_permission(cloud(host), yes=False)
    assert "--yes-load-this-target" in str(problem.value)
    assert host.strip("[]") in str(problem.value)
    require_permission(cloud(host), yes=True)


def test_a_name_that_also_leads_elsewhere_needs_the_flag(monkeypatch):
    def both(_host, port, **_):
        return [(socket.AF_INET, 1, 6, "", (a, port)) for a in ("127.0.0.1", "192.0.2.1")]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with pytest.raises(InvalidInput, match=r"192\.0\.2\.1"):
        require_permission(cloud("keystone.example"), yes=False)


def test_a_name_without_an_address_is_no_target():
    with pytest.raises(EnvironmentUnusable, match=r"keystone\.invalid"):
        require_permission(cloud("keystone.invalid"), yes=False)


def test_preparation_connects_to_the_address_that_was_checked(monkeypatch):
    """A name that leads to loopback at the first look-up, and elsewhere at the next."""
    outside = "192.0.2.1"
    looked_up, connected = [], []

    def rebinding(host, port, *_, **__):
        looked_up.append(host)
        address = "127.0.0.1" if looked_up.count("keystone.example") == 1 else outside
        literal = host if host != "keystone.example" else address
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (literal, port))]

    def connect_to(_, address):
        connected.append(address[0])
        raise ConnectionRefusedError("Connection refused")

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    monkeypatch.setattr(socket.socket, "connect", connect_to)
    session = open_session(cloud("keystone.example"), loopback_only=True)
    for _ in range(2):
        with contextlib.suppress(ConnectFailure, InvalidInput):
            session.get("http://keystone.example:5000/v3", authenticated=False)
    assert set(connected) == {"127.0.0.1"}
