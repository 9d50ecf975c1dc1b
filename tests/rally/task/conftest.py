from collections.abc import Callable
from pathlib import Path

import pytest

from loadstone.rally.task.checked import Checked
from loadstone.rally.task.problem import TaskInvalid
from loadstone.rally.task.read import read


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write a file into the test's folder and give its path."""

    def write_it(text: str, name: str = "task.yaml") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    return write_it


@pytest.fixture
def wrongs(write: Callable[..., str], tmp_path: Path) -> Callable[..., list[str]]:
    """Give the lines that a bad task file is refused with, without the folder's name."""

    def of(text: str, **options: str) -> list[str]:
        with pytest.raises(TaskInvalid) as refused:
            read(write(text), **options)
        assert refused.value.exit_code == 2
        return str(refused.value).replace(f"{tmp_path}/", "").splitlines()

    return of


@pytest.fixture
def good(write: Callable[..., str]) -> Callable[..., Checked]:
    """Read a task file that is good."""

    def of(text: str, **options: str) -> Checked:
        return read(write(text), **options)

    return of
