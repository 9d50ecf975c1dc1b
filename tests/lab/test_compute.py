"""What can be missing when a compute cloud is started: one clear line, and nothing is left."""

import shutil
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import composition, deployment, diskspace, processes, state
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.compute.cloud import CloudLayout
from loadstone.lab.keystone.compute.compose import environment
from loadstone.lab.keystone.compute.database import ComputeDatabase
from loadstone.lab.keystone.compute.services import nova_services
from loadstone.lab.parts.server import Site
from loadstone.lab.programs import Program
from loadstone.lab.state import DeploymentPhase, DeploymentState


def quietly(line: str) -> None:
    """Say nothing."""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.processes
@pytest.mark.parametrize(
    ("level", "package", "program"),
    [
        ("nova", "mariadb-server", "mariadbd"),
        ("nova-split", "mariadb-server", "mariadbd"),
        ("nova-split", "rabbitmq-server", "rabbitmq-server"),
    ],
)
def test_a_server_that_is_not_installed_is_named_before_anything_is_made(
    home: Path, monkeypatch: pytest.MonkeyPatch, level: str, package: str, program: str
) -> None:
    installed = Program.find
    monkeypatch.setattr(
        Program, "find", lambda self: None if self.package == package else installed(self)
    )
    said: list[str] = []
    with pytest.raises(EnvironmentUnusable) as refused:
        deployment.up("c", settings.read([("compute", level)]), said.append)
    [line] = str(refused.value).splitlines()
    assert line.startswith("not installed: ")
    assert program in line
    assert line.endswith(f"install: apt-get install {package}")
    assert said == []
    assert deployment.every() == ()
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_without_room_no_environment_is_begun(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil._ntuple_diskusage(2000 * diskspace.MB, 1100 * diskspace.MB, 900 * diskspace.MB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    wanted = environment(home / "lab" / "c")
    with pytest.raises(EnvironmentUnusable) as refused:
        wanted.prepare(quietly)
    assert "1000 MB needed, 900 MB free" in str(refused.value)
    assert not wanted.folder.exists()


@pytest.mark.processes
def test_a_service_that_ends_while_it_starts_is_named_with_its_reason(home: Path) -> None:
    folder = home / "lab" / "deployments" / "c"
    programs = home / "environment" / "bin"
    programs.mkdir(parents=True)
    broken = programs / "nova-conductor"
    broken.write_text("#!/bin/sh\necho 'CRITICAL nova: no such table' >&2\nexit 1\n")
    broken.chmod(0o755)
    database = ComputeDatabase(Site(folder, 1), home / "data", "secret")
    cloud = CloudLayout(
        folder, home, programs.parent, "http://127.0.0.1:1/v3", {}, database, "secret"
    )
    conductor, *_ = nova_services(cloud)
    begun = DeploymentState("c", "r", DeploymentPhase.STARTING, processes.boot_id(), ())
    state.write(folder, begun)
    with pytest.raises(EnvironmentUnusable) as refused:
        composition.assemble(folder, begun, (conductor,), quietly)
    first, *_, last = str(refused.value).splitlines()
    assert first == "nova-conductor ended while starting"
    assert last.strip() == "CRITICAL nova: no such table"
    assert processes.marked(folder) == ()


@pytest.mark.processes
def test_a_service_that_is_started_again_is_healthy_once_it_listens_again(home: Path) -> None:
    folder = home / "lab" / "deployments" / "c"
    programs = home / "environment" / "bin"
    programs.mkdir(parents=True)
    listening = home / "listening"
    conductor = programs / "nova-conductor"
    conductor.write_text(
        "#!/bin/sh\necho starting\n"
        f"while [ ! -e {listening} ]; do sleep 0.05; done\n"
        "echo Join ServiceGroup membership for this service conductor\nsleep 60\n"
    )
    conductor.chmod(0o755)
    database = ComputeDatabase(Site(folder, 1), home / "data", "secret")
    cloud = CloudLayout(
        folder, home, programs.parent, "http://127.0.0.1:1/v3", {}, database, "secret"
    )
    service, *_ = nova_services(cloud)
    listening.touch()
    first = service.start()
    try:
        composition.await_health(service, first)
        processes.kill(processes.family(first))
        listening.unlink()
        again = service.start()
        assert not service.healthy()
        listening.touch()
        composition.await_health(service, again)
    finally:
        processes.end(processes.marked(folder), grace_s=0.0)
