"""Settings that `lab up` and `loadstone demo` request of a deployment that exists."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadstone.engine.fleet.remote import RemoteAnswer
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import deployment, lab_host, processes, remote_lab, state
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.settings import LabSettings
from loadstone.lab.state import DeploymentPhase, DeploymentState
from loadstone.target.choice import OwnLab
from loadstone.target.connect import issuer_of_lab, own_lab


@pytest.mark.parametrize(
    ("phase", "pairs", "workers", "threads"),
    [
        (DeploymentPhase.RUNNING, (), 7, 3),
        (DeploymentPhase.RUNNING, (("threads", "4"),), 7, 4),
        (DeploymentPhase.STOPPED, (("workers", "2"),), 2, 1),
        (DeploymentPhase.STOPPED, (), 7, 3),
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


def running(folder: Path, chosen: LabSettings) -> DeploymentState:
    known = DeploymentState(
        *(folder.name, "r", DeploymentPhase.RUNNING, processes.boot_id(), chosen.pairs()),
        ports=(("web", 5000),),
        release=chosen.source.pairs(),
    )
    state.write(folder, known)
    return known


def test_a_patch_that_changed_while_the_lab_runs_is_told(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    patch = tmp_path / "fix.patch"
    patch.write_text("--- a\n")
    before = settings.read([("release", f"30.0.0+{patch}")])
    running(deployment.folder_of("mine"), before)
    assert deployment.up("mine", deployment.requested("mine", []), print).url.endswith(":5000/v3")
    patch.write_text("--- b\n")
    with pytest.raises(
        InvalidInput, match=rf"runs keystone 30.0.0 .*{before.source.digest}.*since"
    ):
        deployment.up("mine", deployment.requested("mine", []), print)


@pytest.mark.parametrize(
    ("size", "pool"), [("7", 57), ("0", None), ("", None), ("$max_overflow", None)]
)
def test_the_pool_of_a_lab_is_as_large_as_keystone_conf_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: str, pool: int | None
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    words = (("database", "mariadb"), ("conf.database.max_pool_size", size))
    running(deployment.folder_of("mine"), settings.read(words))
    assert deployment.load("mine").setup().pool == pool


def test_a_running_lab_does_not_need_its_patch(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    patch = tmp_path / "fix.patch"
    patch.write_text("--- a\n")
    chosen = settings.read([("release", f"30.0.0+{patch}"), ("workers", "3")])
    known = running(deployment.folder_of("mine"), chosen)
    patch.unlink()
    assert settings.started(known).source == chosen.source
    assert deployment.load("mine").setup().workers == 3
    same = deployment.requested("mine", [("workers", "3")])
    for requested in (deployment.requested("mine", []), same):
        assert deployment.up("mine", requested, print).url.endswith(":5000/v3")
    with pytest.raises(InvalidInput, match=r"runs with other settings \(workers=3, not 2\)"):
        deployment.up("mine", deployment.requested("mine", [("workers", "2")]), print)
    with pytest.raises(InvalidInput, match=r"^workers must be"):
        deployment.requested("mine", [("workers", "0")])


@pytest.mark.parametrize("service", ["oidc-provider", "keycloak", "hydra"])
def test_a_running_provider_is_found_after_the_default_release_has_changed(
    tmp_path: Path, monkeypatch, service: str
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    chosen = settings.read([("service", service)])
    known = running(deployment.folder_of("mine"), chosen)
    release = settings.read([("release", "29.1.0")]).source.pairs()
    state.write(deployment.folder_of("mine"), replace(known, release=release))
    assert settings.started(replace(known, release=release)) == chosen
    requested = deployment.requested("mine", [("service", service)])
    assert deployment.up("mine", requested, print).name == "mine"


def test_a_lab_whose_patch_is_gone_is_told_with_the_way_out(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    known = (("release", "30.0.0+/gone.patch"), ("workers", "3"))
    folder = deployment.folder_of("mine")
    state.write(folder, DeploymentState("mine", "r", DeploymentPhase.STOPPED, "", known))
    told = r"^lab mine cannot start as it was: .*gone.patch: No such file.*lab down mine --purge$"
    with pytest.raises(InvalidInput, match=told):
        deployment.requested("mine", [])
    with pytest.raises(InvalidInput, match=r"^workers must be"):
        deployment.requested("mine", [("workers", "0")])


def test_a_lab_of_a_later_release_hides_no_others(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    running(deployment.folder_of("mine"), LabSettings())
    later = (("service", "later-idp"), ("workers", "1"))
    folder = deployment.folder_of("later")
    state.write(folder, DeploymentState("later", "r", DeploymentPhase.STOPPED, "", later))
    with pytest.raises(EnvironmentUnusable, match="lab later was made by another release"):
        issuer_of_lab("later")
    assert issuer_of_lab("none") is None
    said: list[str] = []
    assert [one.name for one in deployment.every(said.append)] == ["mine"]
    assert "lab later was made by another release of Loadstone ('later-idp' is not" in said[0]
    deployment.down("later", purge=True)
    assert not folder.exists()


def test_a_lab_that_another_command_ends_is_lost(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    folder = deployment.folder_of("mine")
    known = running(folder, LabSettings())
    measured = deployment.find("mine")
    assert deployment.loss(measured) is None
    state.write(folder, replace(known, ports=(("web", 5001),)))  # a fault has changed something
    assert deployment.loss(measured) is None
    for changed in (replace(known, phase=DeploymentPhase.STOPPED), replace(known, run="another")):
        state.write(folder, changed)
        assert deployment.loss(measured) == "lab mine was ended by another command"
    deployment.down("mine", purge=True)
    assert deployment.loss(measured) == "lab mine was ended by another command"


def test_a_leftover_whose_state_cannot_be_read_is_removed_before_a_start(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    folder = deployment.folder_of("left")
    folder.mkdir(parents=True)
    (folder / state.FILE).write_text("{")
    found: list[bool] = []

    def up(name: str, *_: object, **__: object) -> deployment.Deployment:
        found.append(deployment.folder_of(name).exists())
        return deployment.Deployment(folder, running(folder, LabSettings()))

    monkeypatch.setattr(deployment, "up", up)
    with own_lab(OwnLab("left", LabSettings(), is_purged=True), print):
        assert found == [False]
    assert not folder.exists()


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which a lab is started and stopped without any processes."""
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    monkeypatch.setattr(deployment, "up", lambda name, *_, **__: deployment.load(name))
    monkeypatch.setattr(deployment, "down", lambda _: None)
    return tmp_path / "lab" / "deployments" / "demo"


def test_the_demo_refuses_a_lab_of_its_name_that_has_other_settings(demo: Path) -> None:
    known = LabSettings(port=5001, storage="tmpfs").pairs()
    state.write(demo, DeploymentState("demo", "r", DeploymentPhase.STOPPED, "", known))
    with (
        pytest.raises(InvalidInput, match=r"\(storage=tmpfs, not disk\).*lab down demo --purge"),
        own_lab(OwnLab("demo", LabSettings()), print),
    ):
        raise AssertionError("it was started")


def test_the_demo_starts_its_lab_again_after_a_default_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))

    def start(_: object, folder: Path, *__: object) -> deployment.Deployment:
        return deployment.Deployment(folder, running(folder, LabSettings(workers=1)))

    class Pipe:
        def release(self) -> None:
            """Nothing is watched."""

    monkeypatch.setattr(deployment, "_start", start)
    monkeypatch.setattr(deployment.watcher, "watch", lambda *_: Pipe())
    monkeypatch.setattr(deployment, "shut_down", lambda _: None)
    for _ in range(2):
        with own_lab(OwnLab("demo", LabSettings(workers=1)), print) as lab:
            folder = lab.folder
        state.write(folder, replace(lab.state, phase=DeploymentPhase.STOPPED))
        with own_lab(OwnLab("demo", LabSettings(workers=2)), print):
            pass
        state.write(folder, replace(lab.state, phase=DeploymentPhase.STOPPED))
    deployment.up("demo", LabSettings(workers=1), print)
    with (
        pytest.raises(InvalidInput, match=r"\(workers=1, not 2\)"),
        own_lab(OwnLab("demo", LabSettings(workers=2)), print),
    ):
        raise AssertionError("it is the user's")


def test_the_demo_starts_its_lab_again(demo: Path) -> None:
    known = LabSettings(port=5001).pairs()
    state.write(demo, DeploymentState("demo", "r", DeploymentPhase.STOPPED, "", known))
    with own_lab(OwnLab("demo", LabSettings()), print) as lab:
        assert lab.folder == demo


@pytest.mark.parametrize(
    ("known", "pairs", "workers", "address"),
    [
        ((("workers", "7"), ("address", "10.0.0.5")), (), 7, "10.0.0.5"),
        ((("workers", "7"),), (), 7, "10.0.0.9"),
        ((("workers", "7"), ("address", "10.0.0.5")), (("workers", "2"),), 2, "10.0.0.9"),
        ((), (("workers", "2"), ("address", "10.0.0.7")), 2, "10.0.0.7"),
    ],
)
def test_a_lab_on_a_host_of_a_fleet_starts_again_as_it_was(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    known: lab_host.Pairs,
    pairs: lab_host.Pairs,
    workers: int,
    address: str,
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    if known:
        stopped = DeploymentState("far", "r", DeploymentPhase.STOPPED, "", known)
        state.write(deployment.folder_of("far"), stopped)
    started: list[LabSettings] = []
    monkeypatch.setattr(deployment, "up", lambda _, chosen, *__, **___: started.append(chosen))
    monkeypatch.setattr(remote_lab, "POLL_S", 0.01)
    host = lab_host.LabHost("client", "none")

    class Member:
        """Answers at once, where a worker of a fleet would answer later."""

        def __getattr__(self, name: str) -> Callable[..., RemoteAnswer]:
            def call(*arguments: Any, **named: Any) -> RemoteAnswer:
                answer: Future[Any] = Future()
                answer.set_result(getattr(host, name)(*arguments, **named))
                return answer

            return call

    facts = lab_host.LabHostFacts("far", 1, "1", "", ())
    there = remote_lab.ConnectedHost("far", "10.0.0.9", Member(), facts)
    try:
        there.up("far", pairs, print, owned=False, purged=False)
    finally:
        host.release()
    assert [(one.workers, one.address) for one in started] == [(workers, address)]
