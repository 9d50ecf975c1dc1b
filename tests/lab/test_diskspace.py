import errno
import os
import shutil
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import diskspace


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil._ntuple_diskusage(100 * diskspace.MB, 95 * diskspace.MB, 5 * diskspace.MB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_said_before_anything_is_copied(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    with pytest.raises(EnvironmentUnusable, match=r"not enough space .*100 MB needed, 5 MB free"):
        diskspace.copy(tmp_path / "source", tmp_path / "deep" / "target")
    assert not (tmp_path / "deep").exists()


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "kept").write_text("x")
    os.mkfifo(source / "pipe")  # cannot be copied
    with pytest.raises(EnvironmentUnusable, match="cannot copy"):
        diskspace.copy(source, tmp_path / "target")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_a_copy_is_whole(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "kept").write_text("x")
    diskspace.copy(source, tmp_path / "target")
    assert (tmp_path / "target" / "kept").read_text() == "x"


def test_what_is_moved_replaces_what_a_killed_move_left(tmp_path: Path) -> None:
    for name in ("source", ".target"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    diskspace.move(tmp_path / "source", tmp_path / "target")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == [
        "target",
        "target/source",
    ]


FULL = "No space left on device"


@pytest.mark.parametrize(
    ("half", "problem"),
    [
        ("{}", OSError(errno.ENOSPC, FULL)),  # of a file
        ("{}/part", shutil.Error([("a", "b", FULL), ("c", "d", FULL)])),  # of a folder
    ],
)
def test_a_move_to_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: str, problem: OSError
) -> None:
    def move(_: Path, target: Path) -> None:
        begun = Path(half.format(target))
        begun.parent.mkdir(exist_ok=True)
        begun.touch()
        raise problem

    (tmp_path / "to").mkdir()
    monkeypatch.setattr(shutil, "move", move)
    with pytest.raises(EnvironmentUnusable, match=FULL):
        diskspace.move(tmp_path / "source", tmp_path / "to" / "target")
    assert [path.name for path in tmp_path.rglob("*")] == ["to"]
