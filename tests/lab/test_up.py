"""What `lab up` leaves when it is interrupted before it has begun."""

from pathlib import Path

import pytest

from loadstone.lab import deployment
from loadstone.lab.keystone import settings
from loadstone.system import paths


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    return paths.home()


def interrupted(_: Path) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_before_anything_is_there_leaves_no_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "shut_down", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deployment.up("mine", settings.read([]), print)
    assert not [path for path in home.rglob("*") if path.name == "mine"]


def test_what_was_there_before_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "shut_down", interrupted)
    kept = home / "lab" / "deployments" / "mine" / "logs" / "keystone.log"
    kept.parent.mkdir(parents=True)
    kept.write_text("what went wrong")
    with pytest.raises(KeyboardInterrupt):
        deployment.up("mine", settings.read([]), print)
    assert kept.exists()
