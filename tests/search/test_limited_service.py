"""Searches of `loadstone serve` with something in front of it, on real sockets."""

import pytest
from delay_proxy import delay_proxy
from known_service import known_service
from measured import is_unhindered, searched

from loadstone.search.model import CapacityKind

pytestmark = pytest.mark.verify


@pytest.mark.timeout(900)
def test_a_distant_service_is_found_over_as_many_connections_as_it_needs() -> None:
    capacity_rps = 300.0
    with known_service(2, 2 / capacity_rps) as known, delay_proxy(known.port, 1.0) as port:
        found, _ = searched(port, 45.0)
    assert is_unhindered(found)
    # 256 connections over 1 s would be 256/s. On a quiet machine it is within 3 %;
    # verification/search/limits.py has services that are 6 s away, too.
    assert found.rate_rps == pytest.approx(capacity_rps, rel=0.1)
    assert found.kind is CapacityKind.SATURATION


@pytest.mark.timeout(900)
def test_a_limiter_is_found_where_it_refuses() -> None:
    limit_rps, workers = 90.0, 8
    with known_service(workers, 0.02, f"--limit={limit_rps}", "--burst=100ms") as known:
        found, _ = searched(known.port, 45.0)
    assert is_unhindered(found)
    assert found.kind is CapacityKind.REFUSAL
    assert found.rate_rps == pytest.approx(limit_rps, rel=0.02)
    assert found.low_rps is not None
    assert found.high_rps is not None
    assert found.low_rps <= limit_rps <= found.high_rps
    assert "refuses with 429" in found.words[0]
