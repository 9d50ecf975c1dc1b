"""What `lab up` leaves when it is interrupted before it has begun, and `lab down --purge`."""

from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import deployment, state
from loadstone.lab.keystone import database, settings
from loadstone.lab.keystone.database import storage_folder
from loadstone.lab.state import DeploymentPhase, DeploymentState
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


@pytest.mark.usefixtures("home")
def test_the_data_of_a_lab_are_removed_although_its_sources_are_gone(
    tmp_path: Path,
) -> None:
    folder = deployment.folder_of("mine")
    data = storage_folder(folder, str(tmp_path))
    data.mkdir()
    known = (("release", "/gone/keystone"), ("storage", str(tmp_path)))
    state.write(folder, DeploymentState("mine", "r", DeploymentPhase.STOPPED, "", known))
    deployment.down("mine", purge=True)
    assert not folder.exists()
    assert not data.exists()


@pytest.mark.usefixtures("home")
def test_the_data_in_memory_of_a_lab_whose_state_cannot_be_read_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "SHARED_MEMORY", tmp_path)
    folder = deployment.folder_of("mine")
    data = storage_folder(folder, settings.TMPFS)
    for made in (folder, data):
        made.mkdir(parents=True)
    (folder / state.FILE).write_text('{"name": "mi')
    deployment.down("mine", purge=True)
    assert not folder.exists()
    assert not data.exists()


@pytest.mark.usefixtures("home")
def test_a_lab_is_removed_from_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object) -> None:
        raise EnvironmentUnusable("cannot write state.json: No space left on device")

    folder = deployment.folder_of("mine")
    state.write(folder, DeploymentState("mine", "r", DeploymentPhase.STOPPED, "", ()))
    monkeypatch.setattr(state, "write", fill)
    with pytest.raises(EnvironmentUnusable, match="No space left"):
        deployment.down("mine")
    deployment.down("mine", purge=True)
    assert not folder.exists()


@pytest.mark.parametrize("name", ["My Results", 'with"quote', "100%", "{it}", "$HOME"])
def test_a_home_that_servers_cannot_read_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / name))
    with pytest.raises(InvalidInput, match=r"set LOADSTONE_HOME to another folder$"):
        deployment.up("mine", settings.read([]), print)
    assert not (tmp_path / name / "lab").exists()


@pytest.mark.parametrize("name", ["what?", "a$b"])
@pytest.mark.usefixtures("home")
def test_a_storage_that_servers_cannot_read_is_refused_before_anything_starts(
    tmp_path: Path, name: str
) -> None:
    chosen = tmp_path / name
    chosen.mkdir()
    with pytest.raises(InvalidInput, match=r"give another one: --with storage=$"):
        deployment.up("mine", settings.read([("storage", str(chosen))]), print)
    assert not deployment.folder_of("mine").exists()
    assert not list(chosen.iterdir())
