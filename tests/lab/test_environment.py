import sys
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import environment
from loadstone.lab.environment import ServiceEnvironment


def quietly(line: str) -> None:
    """Say nothing."""


def wanted(root: Path, *packages: str) -> ServiceEnvironment:
    return ServiceEnvironment(root, "service-1", packages, None, root / "deployment")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_OFFLINE", "PIP_NO_INDEX"):
        monkeypatch.setenv(name, "1")


@pytest.mark.usefixtures("offline")
def test_a_package_that_cannot_be_had_is_said_in_one_line_with_the_log(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnusable, match=r"cannot install service-1 .*log: "):
        wanted(tmp_path, "loadstone-no-such-package==1").prepare(quietly)


@pytest.mark.usefixtures("offline")
def test_a_half_made_environment_is_made_anew(tmp_path: Path) -> None:
    made = wanted(tmp_path)
    made.folder.mkdir(parents=True)
    (made.folder / "left-over").touch()
    made.prepare(quietly)
    assert not (made.folder / "left-over").exists()
    assert made.python.exists()
    assert dict(made.facts())["python"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}")
    said: list[str] = []
    made.prepare(said.append)
    assert said == []


def test_uv_is_not_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environment, "find_uv", lambda: None)
    made = wanted(tmp_path)
    made.prepare(quietly)
    assert (made.folder / "bin" / "pip").exists()


@pytest.mark.slow
def test_installers_get_no_secret_but_those_of_package_indexes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("OS_PASSWORD", "OS_USERNAME", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("UV_INDEX_OURS_PASSWORD", "of-our-index")
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setattr(environment, "find_uv", lambda: None)
    told = tmp_path / "told"
    interpreter = tmp_path / "python"
    interpreter.write_text(f'#!/bin/sh\nenv > {told}\nexec {sys.executable} "$@"\n')
    interpreter.chmod(0o755)
    made = ServiceEnvironment(
        tmp_path / "root", "service-1", (), None, tmp_path / "deployment", str(interpreter)
    )
    made.prepare(quietly)
    seen = told.read_text()
    assert "hunter2" not in seen
    assert "UV_INDEX_OURS_PASSWORD=of-our-index" in seen
    assert "LANG=C.UTF-8" in seen
