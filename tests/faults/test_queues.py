"""The limits of a lab's queues under overload."""

from pathlib import Path

import pytest
from scripted import Scripted, simulated

from loadstone.analysis.fault import Injection
from loadstone.analysis.fault_effect import effect
from loadstone.faults import queues
from loadstone.faults.sentence import read
from loadstone.lab import processes, state
from loadstone.lab.keystone import settings
from loadstone.lab.state import DeploymentPhase, DeploymentState

OVERLOAD = read("overload 2x for 2 seconds")
CONF = "defaults\n    timeout connect 5s\n    timeout client 60s\n"


@pytest.mark.parametrize(("nodes", "expected"), [("2", "connect 5s, client 60s"), ("1", None)])
def test_only_a_lab_of_several_nodes_waits_in_haproxy(
    tmp_path: Path, nodes: str, expected: str | None
) -> None:
    chosen = settings.read([("nodes", nodes)])
    known = DeploymentState(
        *("c", "r", DeploymentPhase.RUNNING, processes.boot_id()),
        settings=chosen.pairs(),
        release=chosen.source.pairs(),
    )
    state.write(tmp_path, known)
    # With one node, it is of an earlier start with more.
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "haproxy.conf").write_text(CONF)
    seen = effect(simulated(Scripted("dark", 10.0, 2.0), 1), Injection("overload", 10.0, 12.0))
    [found] = queues.findings(tmp_path, OVERLOAD, seen)
    evidence = {one.name: one.value for one in found.evidence}
    assert evidence.get("haproxy's time-outs") == expected
    assert ("haproxy has" in found.sentence) is (expected is not None)
