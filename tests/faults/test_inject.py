"""Faults of a lab, without its servers."""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from scripted import Scripted, simulated

from loadstone.analysis.fault import Injection
from loadstone.analysis.fault_effect import effect
from loadstone.errors import InvalidInput
from loadstone.faults import keys, rolling
from loadstone.faults.inject import BUSY_LOOP, LabInjector, LoadInjector, core_shares
from loadstone.faults.journal import FaultTarget, Undo, UndoJournal
from loadstone.faults.sentence import read
from loadstone.lab import processes, state
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.settings import LabSettings, Option, TokenProvider
from loadstone.lab.parts import uwsgi
from loadstone.lab.processes import Process
from loadstone.lab.state import DeploymentPhase, DeploymentState, Record

ROTATE = read("rotate fernet keys for 0.1 seconds")


def lab(
    folder: Path, token: TokenProvider = TokenProvider.FERNET, conf: tuple[Option, ...] = ()
) -> LabInjector:
    chosen = replace(LabSettings(), token=token, conf=conf)
    known = DeploymentState(
        *("c", "r", DeploymentPhase.RUNNING, processes.boot_id()),
        settings=chosen.pairs(),
        release=chosen.source.pairs(),
    )
    state.write(folder, known)
    (folder / "keys" / "fernet").mkdir(parents=True)
    return LabInjector(folder, UndoJournal(folder / "journal.json", FaultTarget(folder)))


@pytest.mark.pure
@pytest.mark.parametrize(
    ("cores", "share", "expected"),
    [
        (2, 0.1, (0.2,)),
        (2, 0.5, (1.0,)),
        (4, 0.3, (1.0, 0.2)),
        (2, 1.0, (1.0, 1.0)),
        (8, 0.00001, (0.001,)),
    ],
)
def test_a_share_of_all_cores_is_taken_as_it_is_said(
    cores: int, share: float, expected: tuple[float, ...]
) -> None:
    assert core_shares(cores, share) == expected


@pytest.mark.processes
def test_a_busy_loop_takes_its_share_of_a_core() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run((sys.executable, "-P", "-c", BUSY_LOOP, "0.2", "1.0"), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used_s < 0.5


def test_keys_that_no_token_uses_are_not_rotated(tmp_path: Path) -> None:
    lab(tmp_path / "fernet").check(ROTATE)
    with pytest.raises(InvalidInput, match="token=fernet"):
        lab(tmp_path / "jws", TokenProvider.JWS).check(ROTATE)


def test_keys_are_rotated_where_keystone_conf_has_them(tmp_path: Path) -> None:
    repository = tmp_path / "elsewhere"
    repository.mkdir()
    for name in "01":
        (repository / name).touch()
    option = ("fernet_tokens", "key_repository", str(repository))
    injector = lab(tmp_path / "lab", conf=(option,))
    injector.check(ROTATE)
    assert not injector.inject(ROTATE).failure


def test_after_two_rotations_the_original_keys_are_restored(tmp_path: Path) -> None:
    injector = lab(tmp_path / "lab")
    repository = injector.folder / "keys" / "fernet"
    for name in "012":
        (repository / name).write_text(name)
    keys.copy(repository)
    injector.journal.note(Undo.KEYS, str(repository), injector.owner)  # of one that is in force
    keys.rotate(repository)
    assert not injector.inject(ROTATE).failure
    assert sorted(path.read_text() for path in repository.iterdir()) == ["0", "1", "2"]


@pytest.mark.parametrize(
    "option", ["ldap.password=Geheim-4711", "DEFAULT.transport_url=rabbit://u:Geheim@h"]
)
def test_a_secret_in_a_fault_is_refused_and_not_quoted(tmp_path: Path, option: str) -> None:
    injector = running(tmp_path / "lab", [("nodes", "2")], "haproxy", "node 1", "node 2")
    with pytest.raises(InvalidInput, match="is a secret") as refused:
        injector.check(read(f"rolling restart of keystone with {option}"))
    assert "Geheim" not in str(refused.value)


def test_a_fault_that_fails_with_the_disk_is_recorded_with_its_reason(tmp_path: Path) -> None:
    injector = lab(tmp_path / "lab")
    os.rmdir(injector.folder / "keys" / "fernet")
    assert "No such file" in injector.inject(ROTATE).failure


def running(folder: Path, pairs: Sequence[tuple[str, str]], *part_names: str) -> LabInjector:
    records = tuple(Record(name, Process(1, 1), 15, ()) for name in part_names)
    chosen = settings.read(pairs)
    known = DeploymentState(
        *("c", "r", DeploymentPhase.RUNNING, processes.boot_id()),
        settings=chosen.pairs(),
        release=chosen.source.pairs(),
        records=records,
    )
    state.write(folder, known)
    return LabInjector(folder, UndoJournal(folder / "journal.json", FaultTarget(folder)))


def test_haproxy_before_a_provider_is_not_reloaded(tmp_path: Path) -> None:
    fault = read("reload haproxy")
    before_hydra = running(tmp_path / "hydra", [("service", "hydra")], "hydra", "haproxy")
    with pytest.raises(InvalidInput, match=r"before an OpenID provider .*; restart it"):
        before_hydra.check(fault)
    before_hydra.check(read("restart haproxy service"))
    with pytest.raises(InvalidInput, match=r"has no haproxy; its parts are keycloak"):
        running(tmp_path / "keycloak", [("service", "keycloak")], "keycloak").check(fault)
    running(tmp_path / "nodes", [("nodes", "2")], "uwsgi-1", "uwsgi-2", "haproxy").check(fault)


@pytest.mark.parametrize(
    ("release", "target"),
    [("30.0.0", "29.1.0"), ("29.1.0", "25.0.0"), ("30.0.0", "30.0.0")],
)
def test_an_upgrade_does_not_go_back(tmp_path: Path, release: str, target: str) -> None:
    folder = running(tmp_path, [("release", release), ("database", "mariadb")]).folder
    rolling.require_upgrade(folder, read("upgrade keystone to 30.1.0"))
    with pytest.raises(InvalidInput, match=r"later release|already"):
        rolling.require_upgrade(folder, read(f"upgrade keystone to {target}"))
    with pytest.raises(InvalidInput, match=r"later release|already"):
        rolling.prepare(folder, read(f"upgrade keystone to {target}"), print)


@pytest.mark.parametrize(
    ("pairs", "bound"),
    [
        ([], "uWSGI has a listen queue of 1,024, no harakiri"),
        ([("listen", "100"), ("nodes", "2")], "uWSGI has a listen queue of 100 on each of 2 nodes"),
        ([("web", "apache")], "apache has a listen queue of 511."),
        ([("web", "gunicorn")], "gunicorn has a listen queue of 2,048."),
        ([("web", "granian")], "granian has a listen queue of 1,024."),
        ([("web", "single")], "single has a listen queue of 5."),
        ([("implementation", "rust")], ""),
        ([("service", "keycloak")], ""),
        ([("service", "hydra")], ""),
    ],
)
def test_an_overload_names_the_queue_of_the_lab_s_web_server(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pairs: Sequence[tuple[str, str]],
    bound: str,
) -> None:
    monkeypatch.setattr(uwsgi, "backlog", lambda wanted=uwsgi.BACKLOG: wanted)
    folder = running(tmp_path, pairs).folder
    seen = effect(simulated(Scripted("dark", 10.0, 1.0), 0), Injection("overload", 10.0, 11.0))
    found = LoadInjector(folder=folder).findings(read("overload 2x for 60 seconds"), seen)
    assert bool(found) == bool(bound)
    assert all(bound in one.sentence for one in found)
