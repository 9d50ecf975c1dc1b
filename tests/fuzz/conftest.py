"""Input from others, made up. A short run is in the gate; `make verify ONLY=fuzz` makes a long one.

Whatever is read, the answer is a value or one of Loadstone's own errors, in bounded memory.
"""

import resource
from collections.abc import Iterator

import pytest
from loopback import Behaviour, Serve, Server

# Far below what a length that is read from a file may ask for.
MOST_GROWTH_KB = 1_500_000


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """Fail if the peak of this process grew as no honest file makes it grow."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_GROWTH_KB


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers that stop with the test."""
    servers: list[Server] = []

    def start(behaviour: Behaviour) -> Server:
        servers.append(Server(behaviour))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
