"""Comparisons of a thing with itself are refused before anything is measured."""

from pathlib import Path

from click.testing import CliRunner

from loadstone.cli import loadstone
from loadstone.errors import InvalidInput
from loadstone.lab import state
from loadstone.lab.state import DeploymentPhase, DeploymentState


def test_a_lab_is_not_compared_with_itself() -> None:
    ended = CliRunner().invoke(loadstone, ["compare", "--lab", "x", "--lab", "x"])
    assert ended.exit_code == 2
    assert "--lab x is given twice" in ended.output


def test_a_change_that_changes_nothing_is_not_measured(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    folder = tmp_path / "lab" / "deployments" / "two"
    state.write(
        folder, DeploymentState("two", "r", DeploymentPhase.STOPPED, "b", (("workers", "1"),))
    )
    ended = CliRunner().invoke(loadstone, ["prove", "--lab", "two", "--set", "workers=1"])
    assert isinstance(ended.exception, InvalidInput)
    assert "--set workers=1: lab two has this already" in str(ended.exception)
