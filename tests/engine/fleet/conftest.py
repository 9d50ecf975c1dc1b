from collections.abc import Iterator

import pytest

from loadstone.engine.fleet import connect
from loadstone.engine.fleet.address import LocalFleet
from loadstone.engine.fleet.fleet import Fleet


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Three processes of this machine."""
    with connect.opened(LocalFleet(3)) as opened:
        yield opened
