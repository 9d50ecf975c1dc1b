"""Reasons why faults cannot control the lab's haproxy."""

from pathlib import Path

import pytest

from loadstone.errors import InvalidInput
from loadstone.faults import balancer
from loadstone.lab import processes, state
from loadstone.lab.processes import Process
from loadstone.lab.state import DeploymentPhase, DeploymentState, Record

HAPROXY = Record("haproxy", Process(1, 1), 15, ())
Pairs = tuple[tuple[str, str], ...]


@pytest.mark.parametrize(
    ("settings", "records", "said"),
    [
        ((), (), "has no haproxy; make one with several nodes"),
        # The path of its folder was too long for a Unix socket.
        ((), (HAPROXY,), "has no stats socket: the path of .* is too long"),
        ((("service", "hydra"),), (HAPROXY,), "stands before one provider, with no nodes"),
    ],
)
def test_the_reason_why_haproxy_cannot_be_controlled_is_given(
    tmp_path: Path, settings: Pairs, records: tuple[Record, ...], said: str
) -> None:
    state.write(
        tmp_path,
        DeploymentState(
            "it", "r", DeploymentPhase.RUNNING, processes.boot_id(), settings, records=records
        ),
    )
    assert not balancer.has_balancer(tmp_path)
    with pytest.raises(InvalidInput, match=said):
        balancer.is_up(tmp_path, "node-1")
