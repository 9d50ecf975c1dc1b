from collections.abc import Iterator

import pytest

from loadstone.engine.fleet import connect
from loadstone.engine.fleet import fleet as fleets
from loadstone.engine.fleet.address import LocalFleet
from loadstone.engine.fleet.fleet import Fleet


@pytest.fixture(scope="session", autouse=True)
def _starts_further_ahead() -> Iterator[None]:
    """On a busy machine a host may hear of the common start late."""
    usual_s, fleets.LEAD_S = fleets.LEAD_S, 1.0
    yield
    fleets.LEAD_S = usual_s


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Three processes of this machine."""
    with connect.opened(LocalFleet(3)) as opened:
        yield opened
