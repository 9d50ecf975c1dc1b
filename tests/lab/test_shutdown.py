"""Every part of a deployment is asked to stop in its own way, the last one first."""

import signal
from pathlib import Path

import pytest

from loadstone.lab import processes, shutdown, state
from loadstone.lab.processes import Process
from loadstone.lab.state import DeploymentPhase, DeploymentState, Record


def test_each_part_is_stopped_by_its_own_signal_the_last_one_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, signal.Signals]] = []
    monkeypatch.setattr(
        processes,
        "stop",
        lambda process, stop_signal: asked.append((process.pid, stop_signal)),
    )
    records = tuple(
        Record(name, Process(pid, 1), number, ())
        for name, pid, number in (
            ("mariadb", 101, signal.SIGTERM),
            ("node1", 102, signal.SIGQUIT),
            ("haproxy", 103, signal.SIGUSR1),
        )
    )
    folder = tmp_path / "it"
    begun = DeploymentState(
        "it", "r", DeploymentPhase.RUNNING, processes.boot_id(), (), records=records
    )
    state.write(folder, begun)
    shutdown.shut_down(folder)
    assert asked == [(103, signal.SIGUSR1), (102, signal.SIGQUIT), (101, signal.SIGTERM)]
    left = state.read(folder)
    assert left is not None
    assert left.phase is DeploymentPhase.STOPPED
    assert [record.process for record in left.records] == [None] * 3


def test_a_build_that_was_killed_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "it"
    state.write(
        folder, DeploymentState("it", "r", DeploymentPhase.STARTING, processes.boot_id(), ())
    )
    (state.scratch_folder(folder) / "hydra" / "cache").mkdir(parents=True)
    shutdown.shut_down(folder)
    assert [path.name for path in folder.iterdir()] == [state.FILE]
