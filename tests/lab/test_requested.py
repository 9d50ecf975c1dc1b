"""Settings that `lab up` requests of a deployment that may run already."""

from pathlib import Path

import pytest

from loadstone.lab import deployment, processes, state
from loadstone.lab.state import DeploymentState, Phase


@pytest.mark.parametrize(
    ("phase", "pairs", "workers", "threads"),
    [
        (Phase.RUNNING, (), 7, 3),
        (Phase.RUNNING, (("threads", "4"),), 7, 4),
        (Phase.STOPPED, (("workers", "2"),), 2, 1),
        (Phase.STOPPED, (), 7, 3),
    ],
)
def test_what_is_not_given_is_as_it_runs(
    tmp_path: Path, monkeypatch, phase, pairs, workers, threads
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    folder = tmp_path / "lab" / "deployments" / "two"
    known = (("workers", "7"), ("threads", "3"))
    state.write(folder, DeploymentState("two", "r", phase, processes.boot_id(), known))
    chosen = deployment.requested("two", pairs)
    assert (chosen.workers, chosen.threads) == (workers, threads)
