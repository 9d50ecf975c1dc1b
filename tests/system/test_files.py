import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.system import files


def test_what_fails_half_way_leaves_the_file_of_before_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "page"
    files.write(path, "before")
    with suppress(ZeroDivisionError), files.replaced(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_is_not_utf_8_is_written_all_the_same(tmp_path: Path) -> None:
    files.write(tmp_path / "page", "half\udc80")
    assert (tmp_path / "page").read_text() == "half?"


def test_a_private_file_is_private_also_in_place_of_one_that_was_not(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("before")
    path.chmod(0o644)
    files.write(path, "after", files.PRIVATE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "after"


def test_a_full_disk_is_said_in_one_line_and_a_device_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "device"
    path.symlink_to("/dev/full")
    with pytest.raises(EnvironmentUnusable, match=r"^cannot write .*/device: No space left on dev"):
        files.write(path, "text")
    assert path.is_symlink()


def test_a_path_that_cannot_even_be_looked_at_is_said_in_one_line(tmp_path: Path) -> None:
    # Like a folder that must not be entered, which root enters.
    with pytest.raises(EnvironmentUnusable, match=r"^cannot write .*: File name too long$"):
        files.write(tmp_path / ("x" * 300), "text")


def test_a_link_of_the_temporary_name_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _: "known")
    victim = tmp_path / "victim"
    victim.write_text("before")
    (tmp_path / f".page.{os.getpid()}.known.part").symlink_to(victim)
    with pytest.raises(EnvironmentUnusable, match="File exists"):
        files.write(tmp_path / "page", "after")
    assert victim.read_text() == "before"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no /dev/shm")
def test_a_file_in_memory_is_written_like_any_other() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder) / "secret"
        files.write(path, "x", files.PRIVATE)
        assert path.stat().st_mode & 0o777 == files.PRIVATE


def test_a_link_of_this_user_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    path, link = tmp_path / "page.html", tmp_path / "latest.html"
    path.write_text("old")
    link.symlink_to(path)
    files.write(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"


def test_links_that_lead_to_each_other_are_said_in_one_line(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    assert not files.is_writable(one)
    with pytest.raises(EnvironmentUnusable, match=r"cannot write .*one: Too many levels"):
        files.write(one, "text")
    assert sorted(tmp_path.iterdir()) == [one, other]
