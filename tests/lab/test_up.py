"""State on disk after a failed or interrupted `lab up`, and after `lab down --purge`."""

import shutil
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import deployment, state, watcher
from loadstone.lab.keystone import compose, database, settings
from loadstone.lab.keystone.blueprint import Blueprint
from loadstone.lab.keystone.database import storage_folder
from loadstone.lab.parts.part import Part
from loadstone.lab.ports import Ports
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


@pytest.mark.parametrize("kept", [(), ("logs",)])
def test_a_start_that_is_killed_before_anything_is_there_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: tuple[str, ...]
) -> None:
    for name in kept:
        (tmp_path / "mine" / name).mkdir(parents=True)
    (tmp_path / "mine").mkdir(exist_ok=True)
    monkeypatch.setattr("sys.argv", ["watcher", str(tmp_path / "mine"), "run-1"])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO()))
    watcher._main()
    assert (tmp_path / "mine").exists() == bool(kept)


def test_what_was_there_before_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "shut_down", interrupted)
    kept = home / "lab" / "deployments" / "mine" / "logs" / "keystone.log"
    kept.parent.mkdir(parents=True)
    kept.write_text("what went wrong")
    with pytest.raises(KeyboardInterrupt):
        deployment.up("mine", settings.read([]), print)
    assert kept.exists()


class FakeDatabase(Part):
    """Data in memory, and the refusal of a setting by a later part."""

    name = "database"

    def __init__(self, blueprint: Blueprint) -> None:
        self.chosen = blueprint.settings
        self.data = storage_folder(blueprint.folder, self.chosen.storage)

    def prepare(self, _: object) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        (self.data / "keystone.db").touch()
        if self.chosen.conf:
            raise InvalidInput("Keystone has no such option")


@pytest.fixture
def two_storages(home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A stopped lab with its data in memory, and the folder of data that it does not use."""
    nobody = SimpleNamespace(release=lambda: None)
    monkeypatch.setattr(watcher, "watch", lambda *_: nobody)
    monkeypatch.setattr(Ports, "allocate", lambda *_: 1)
    monkeypatch.setattr(compose, "parts", lambda blueprint: (FakeDatabase(blueprint),))
    memory, other = home / "shm", home / "other"
    other.mkdir()
    monkeypatch.setattr(database, "SHARED_MEMORY", memory)
    deployment.up("mine", settings.read([("storage", "tmpfs"), ("workers", "2")]), print)
    deployment.down("mine")
    folder = deployment.folder_of("mine")
    return storage_folder(folder, settings.TMPFS), storage_folder(folder, str(other))


def test_a_start_that_is_refused_changes_neither_data_nor_settings(
    two_storages: tuple[Path, Path],
) -> None:
    kept, other = two_storages
    wrong = [("storage", str(other.parent)), ("conf.token.expires", "1")]
    before = deployment.requested("mine", [])
    with pytest.raises(InvalidInput, match="no such option"):
        deployment.up("mine", deployment.requested("mine", wrong), print)
    assert (kept / "keystone.db").exists()
    assert not other.exists()
    assert deployment.requested("mine", []) == before
    assert deployment.up("mine", before, print).facts()
    deployment.down("mine", purge=True)
    assert not kept.exists()


@pytest.mark.usefixtures("two_storages")
def test_starts_that_are_refused_keep_the_logs_of_the_one_before() -> None:
    folder = deployment.folder_of("mine")
    (folder / "logs" / "keystone.log").write_text("what went wrong")
    for _ in range(3):
        with pytest.raises(InvalidInput, match="no such option"):
            deployment.up("mine", settings.read([("conf.token.expires", "1")]), print)
    assert (folder / deployment.OLD_LOGS / "keystone.log").read_text() == "what went wrong"


def test_a_start_without_its_data_in_memory_is_told(two_storages: tuple[Path, Path]) -> None:
    kept, _ = two_storages
    lines: list[str] = []
    deployment.up("mine", deployment.requested("mine", []), lines.append)
    deployment.down("mine")
    assert not lines
    shutil.copytree(deployment.folder_of("mine"), deployment.folder_of("copy"))
    deployment.up("copy", deployment.requested("copy", []), lines.append)
    assert [line.partition(",")[0] for line in lines] == ["the data are gone from storage=tmpfs"]
    assert (kept / "keystone.db").exists()


def test_the_data_in_memory_end_with_a_start_on_another_storage(
    two_storages: tuple[Path, Path],
) -> None:
    kept, other = two_storages
    deployment.up("mine", settings.read([("storage", str(other.parent))]), print)
    assert not kept.exists()
    assert other.exists()


def test_data_in_memory_stay_if_their_folder_is_given_by_its_path(
    two_storages: tuple[Path, Path],
) -> None:
    kept, _ = two_storages
    deployment.up("mine", settings.read([("storage", str(kept.parent))]), print)
    assert (kept / "keystone.db").exists()


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
