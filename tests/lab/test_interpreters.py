import sys
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import interpreters

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def a_program(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]))
    path.chmod(0o755)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(interpreters, "SYSTEM_FOLDERS", "/nowhere")
    return tmp_path


def test_a_shim_that_runs_nothing_is_passed_over_for_pyenvs_own(home: Path) -> None:
    a_program(home / "shims" / "python9.9", "echo pyenv: python9.9: command not found; exit 127")
    real = a_program(home / "versions" / "9.9.1" / "bin" / "python9.9", "echo 9.9")
    assert interpreters.find("9.9", "it") == str(real)


def test_a_python_on_the_path_is_taken_by_its_own_word(home: Path) -> None:
    real = a_program(home / "shims" / f"python{HERE}", f'exec {sys.executable} "$@"')
    assert interpreters.find(HERE, "it") == str(real)


def test_a_missing_python_is_named_in_one_line(home: Path) -> None:
    a_program(home / "shims" / "python9.9", "echo 3.11")
    with pytest.raises(
        EnvironmentUnusable, match=r"^not installed: python9\.9, which it needs[^\n]*$"
    ):
        interpreters.find("9.9", "it")
