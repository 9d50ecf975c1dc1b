"""Ports for servers that a test starts by number."""

import itertools

from loadstone.lab.ports import Ports

_PORTS = Ports({})
_NUMBERS = itertools.count()


def reserve_port() -> int:
    """Return a free port that no other test is given while this process lives."""
    return _PORTS.allocate(f"server {next(_NUMBERS)}")
