import socket

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import ports


def test_a_taken_port_that_is_asked_for_is_named() -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(EnvironmentUnusable, match=f"port {port} .*--port"):
            ports.choose(port)
        assert ports.choose(None, before=port) != port
    assert ports.choose(port) == port


def test_the_port_of_before_is_kept() -> None:
    port = ports.choose(None)
    assert ports.choose(None, before=port) == port
