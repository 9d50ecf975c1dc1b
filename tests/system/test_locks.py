"""Locks between processes: who waits, and who is told that another one is at work."""

import threading
import time
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.system import locks


def test_a_lock_that_is_released_in_time_is_held(tmp_path: Path) -> None:
    path, is_held, release = tmp_path / "lock", threading.Event(), threading.Event()

    def other() -> None:
        with locks.held(path):
            is_held.set()
            release.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    assert is_held.wait(60)
    threading.Timer(0.2, release.set).start()
    with locks.held(path, busy="busy", wait_s=60.0):
        assert release.is_set()
    thread.join()


def test_a_lock_that_is_held_for_longer_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        locks.held(path),
        pytest.raises(EnvironmentUnusable, match="another is at work"),
        locks.held(path, busy="another is at work", wait_s=0.1),
    ):
        pass


def test_who_waited_for_a_lock_that_is_gone_has_the_new_one(tmp_path: Path) -> None:
    path, is_held = tmp_path / "lab" / "lock", threading.Event()
    inside: list[str] = []

    def second() -> None:
        is_held.wait(60)
        with locks.held(path):
            inside.append("second")
            with pytest.raises(EnvironmentUnusable), locks.held(path, busy="busy"):
                inside.append("third")

    thread = threading.Thread(target=second)
    thread.start()
    with locks.held(path):
        is_held.set()
        time.sleep(0.2)  # it waits
        path.unlink()  # purged with its lab
        path.parent.rmdir()
    thread.join(60)
    assert inside == ["second"]
    assert path.exists()


def test_a_lock_that_cannot_be_created_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "lock"
    with pytest.raises(EnvironmentUnusable) as refused, locks.held(path):
        pass
    assert str(refused.value).startswith(f"{path}: this lock cannot be created: ")
    assert "LOADSTONE_HOME" in str(refused.value)
