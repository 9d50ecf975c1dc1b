import subprocess
import sys
from dataclasses import replace
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
@pytest.mark.parametrize("change", ["moved", "interpreter", "constraints", "marker"])
def test_an_environment_that_no_longer_fits_is_made_anew(tmp_path: Path, change: str) -> None:
    pins = tmp_path / "pins.txt"
    pins.write_text("a==1\n")
    made = replace(wanted(tmp_path), constraints=pins)
    made.prepare(quietly)
    match change:
        case "moved":
            made.folder.rename(tmp_path / "elsewhere")
            made = replace(made, root=tmp_path / "new")
            made.root.mkdir()
            (tmp_path / "elsewhere").rename(made.folder)
        case "interpreter":
            made.python.unlink()
            made.python.symlink_to(tmp_path / "removed")
        case "constraints":
            pins.write_text("a==2\n")
        case "marker":
            (made.folder / environment.MARKER).write_text("[]")
    (made.folder / "left-over").touch()
    made.prepare(quietly)
    assert not (made.folder / "left-over").exists()
    assert made.python.exists()


@pytest.mark.usefixtures("offline")
def test_a_patched_release_is_a_copy_whose_scripts_run_the_copy(tmp_path: Path) -> None:
    original = wanted(tmp_path)
    original.prepare(quietly)
    [packages] = original.folder.glob("lib/python*/site-packages")
    (packages / "service.py").write_text("print('as released')\n")
    script = original.folder / "bin" / "service"
    script.write_text(f"#!{original.python}\nimport service\n")
    script.chmod(0o755)
    patch = tmp_path / "fix.patch"
    patch.write_text(
        "--- a/service.py\n+++ b/service.py\n@@ -1 +1 @@\n"
        "-print('as released')\n+print('as patched')\n"
    )
    made = replace(original, title="service-1-ab12", patch=patch, unpatched=original.title)
    said: list[str] = []
    made.prepare(said.append)
    assert said[:2] == ["copying the environment of service-1", "applying fix.patch"]
    assert printed_by(made) == "as patched\n"
    assert printed_by(original) == "as released\n"
    said.clear()
    made.prepare(said.append)
    assert said == []


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it changes no file"),
        ("<html>not found</html>\n", "Only garbage was found in the patch input"),
        ("--- a/gone.py\n+++ b/gone.py\n@@ -1 +1 @@\n-a\n+b\n", "1 out of 1 hunk ignored"),
    ],
)
def test_a_patch_that_changes_nothing_is_refused(tmp_path: Path, text: str, why: str) -> None:
    original = wanted(tmp_path)
    patch = tmp_path / "fix.patch"
    patch.write_text(text)
    made = replace(original, title="service-1-ab12", patch=patch, unpatched=original.title)
    with pytest.raises(EnvironmentUnusable, match=f"does not apply to service-1-ab12: .*{why}"):
        made.prepare(quietly)
    assert made.installed() is None


@pytest.mark.usefixtures("offline")
def test_what_changes_while_it_is_installed_is_not_used(tmp_path: Path) -> None:
    def refuse() -> None:
        raise EnvironmentUnusable("it was changed")

    made = wanted(tmp_path)
    with pytest.raises(EnvironmentUnusable, match="it was changed"):
        replace(made, require_unchanged=refuse).prepare(quietly)
    assert not made.folder.exists()
    made.prepare(quietly)
    replace(made, require_unchanged=refuse).prepare(quietly)  # its content is known by now


def printed_by(made: ServiceEnvironment) -> str:
    command = [made.folder / "bin" / "service"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


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
