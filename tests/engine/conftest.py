from collections.abc import Iterator

import pytest
from loopback import Behaviour, Serve, Server


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers that stop with the test."""
    servers: list[Server] = []

    def start(behaviour: Behaviour) -> Server:
        server = Server(behaviour)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.stop()
