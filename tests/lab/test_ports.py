import socket

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import ports


def test_a_taken_port_that_is_asked_for_is_named() -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        port = server.getsockname()[1]
        book = ports.Ports({"database": port})
        with pytest.raises(EnvironmentUnusable, match=f"port {port} .*--port"):
            book.allocate("web", requested=port)
        assert book.allocate("database") != port
    assert book.allocate("web", requested=port) == port
    book.release()


def test_the_port_of_before_is_kept() -> None:
    port = ports.choose()
    book = ports.Ports({"web": port})
    assert book.allocate("web") == port
    book.release()


def test_a_port_that_was_given_is_given_to_no_one_else_before_its_server_listens() -> None:
    one, other = ports.Ports({}), ports.Ports({})
    port = one.allocate("web")
    try:
        with pytest.raises(EnvironmentUnusable, match=f"port {port} .*--port"):
            other.allocate("web", requested=port)
        assert other.allocate("database") != port
        assert ports.Ports({"web": port}, reservations=other.reservations).allocate("web") != port
    finally:
        one.release()
    assert other.allocate("web", requested=port) == port
    other.release()


def test_the_ports_of_a_deployment_differ() -> None:
    book = ports.Ports({"web": 15000, "database": 15000})
    assert book.allocate("web") != book.allocate("database")
    book.release()
