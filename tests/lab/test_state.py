import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import deployment, state
from loadstone.lab.processes import Process
from loadstone.lab.state import DeploymentPhase, DeploymentState, Record

STATE = DeploymentState(
    name="it",
    run="ab12",
    phase=DeploymentPhase.RUNNING,
    boot="a-boot",
    settings=(("workers", "2"),),
    ports=(("web", 15000),),
    python="/env/bin/python",
    release=(("text", "30.0.0"), ("version", "30.0.0"), ("digest", "")),
    facts=(("workers", "2"),),
    records=(
        Record("schema", None, int(signal.SIGTERM), ()),
        Record("uwsgi", Process(12, 34), int(signal.SIGINT), ("/logs/uwsgi.log",)),
    ),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "it"
    state.write(folder, STATE)
    assert state.read(folder) == STATE
    assert (folder / state.FILE).stat().st_mode & 0o777 == 0o600


def test_no_state_is_none(tmp_path: Path) -> None:
    assert state.read(tmp_path / "nothing") is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "it"}', '{"name": 1, "phase": "x"}'])
def test_a_broken_state_names_the_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / state.FILE).write_text(text)
    with pytest.raises(EnvironmentUnusable, match="--purge"):
        state.read(tmp_path)


def test_a_lab_of_another_user_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    for name in ("mine", "roots"):
        state.write(deployment.folder_of(name), replace(STATE, name=name))
    read, exists, its = Path.read_text, Path.exists, deployment.folder_of("roots") / state.FILE
    monkeypatch.setattr(Path, "read_text", lambda p: refuse(p) if p == its else read(p))
    monkeypatch.setattr(Path, "exists", lambda p: refuse(p) if p == its else exists(p))
    said: list[str] = []
    assert [one.name for one in deployment.every(said.append)] == ["mine"]
    assert len(said) == 1
    assert f"{its} cannot be read (Permission denied)" in said[0]
    with pytest.raises(EnvironmentUnusable, match="Permission denied"):
        deployment.find("roots")
    monkeypatch.setattr(deployment, "shut_down", refuse)
    with pytest.raises(EnvironmentUnusable, match=r"cannot end roots in .*Permission denied"):
        deployment.down("roots")


def test_only_a_refused_permission_is_another_users_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> str:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(EnvironmentUnusable, match=r"cannot be read \(Too many open files\)$"):
        state.read(tmp_path)


def test_text_of_another_encoding_is_a_broken_state(tmp_path: Path) -> None:
    (tmp_path / state.FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(EnvironmentUnusable, match="--purge"):
        state.read(tmp_path)


def test_another_boot_is_seen() -> None:
    assert not STATE.is_of_this_boot


def test_a_part_that_starts_again_replaces_its_record() -> None:
    again = Record("uwsgi", Process(56, 78), int(signal.SIGINT), ())
    assert STATE.with_record(again) == replace(STATE, records=(STATE.records[0], again))


def test_a_part_that_starts_again_keeps_its_place() -> None:
    """Parts stop in the reverse order, and `lab list` shows the PID of the last server."""
    mariadb, uwsgi = (Record(name, Process(1, 2), 15, ()) for name in ("mariadb", "uwsgi"))
    again = replace(mariadb, process=Process(3, 4))
    known = replace(STATE, records=(mariadb, uwsgi))
    assert known.with_record(again).records == (again, uwsgi)


def test_a_copy_of_a_running_lab_has_none_of_its_processes(tmp_path: Path) -> None:
    state.write(tmp_path / "it", STATE)
    shutil.copytree(tmp_path / "it", tmp_path / "backup")
    copied = state.read(tmp_path / "backup")
    assert copied is not None
    assert (copied.name, copied.phase) == ("backup", DeploymentPhase.STOPPED)
    assert not any(record.process for record in copied.records)
    assert copied.settings == STATE.settings
    assert state.read(tmp_path / "it") == STATE


def test_a_lab_in_a_copied_home_has_none_of_the_processes(tmp_path: Path) -> None:
    state.write(tmp_path / "home" / "it", STATE)
    shutil.copytree(tmp_path / "home", tmp_path / "backup")
    copied = state.read(tmp_path / "backup" / "it")
    assert copied is not None
    assert copied.phase is DeploymentPhase.STOPPED
    assert not any(record.process for record in copied.records)


def test_a_lab_whose_home_is_reached_by_a_link_is_no_copy(tmp_path: Path) -> None:
    state.write(tmp_path / "home" / "it", STATE)
    (tmp_path / "link").symlink_to("home")
    assert state.read(tmp_path / "link" / "it") == STATE


def test_a_lab_that_was_renamed_keeps_its_processes(tmp_path: Path) -> None:
    state.write(tmp_path / "it", STATE)
    (tmp_path / "it").rename(tmp_path / "other")
    assert state.read(tmp_path / "other") == replace(STATE, name="other")


def test_a_folder_that_is_not_named_as_a_lab_is_left_out_of_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    mine = deployment.folder_of("it")
    state.write(mine, STATE)
    shutil.copytree(mine, mine.with_name("it.old"))
    assert [one.name for one in deployment.every()] == ["it"]
    assert not deployment.is_here("it.old")
