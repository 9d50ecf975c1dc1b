"""What a host of a fleet installs: this machine's own files, and pinned dependencies."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import loadstone
from loadstone.engine.fleet import wheel
from loadstone.engine.version import version

ROOT = Path(__file__).parents[3]
PACKAGE = Path(loadstone.__file__).parent


def test_the_wheel_has_all_files_of_this_loadstone_and_pip_installs_it(tmp_path: Path) -> None:
    packed = wheel.pack(tmp_path)
    target = tmp_path / "target"
    options = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
    subprocess.run(
        [sys.executable, "-m", "venv", tmp_path / "venv"], check=True, capture_output=True
    )
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", *options, "--target", target, packed], check=True
    )
    installed = {
        path.relative_to(target): path.read_bytes()
        for path in (target / "loadstone").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    ours = {
        path.relative_to(PACKAGE.parent): path.read_bytes()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert installed == ours
    code = "from loadstone.engine.version import version; print(version())"
    shown = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
    )
    assert shown.stdout.strip() == version()


def test_the_same_files_give_the_same_wheel_and_key(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first, second = (wheel.pack(tmp_path / name) for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert wheel.key("1.0") == wheel.key("1.0")


def test_dependencies_are_those_of_the_lock_and_each_has_hashes() -> None:
    text = wheel.REQUIREMENTS.read_text().replace("\\\n", " ")
    locked = {
        (package["name"], package["version"]): {
            one["hash"] for one in (*package.get("wheels", ()), package.get("sdist", {"hash": ""}))
        }
        for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]
        if "version" in package
    }
    names = set()
    for line in text.splitlines():
        pin = re.match(r"([\w.-]+)==([\w.]+)", line)
        assert pin is not None, line
        hashes = set(re.findall(r"--hash=(sha256:[0-9a-f]{64})", line))
        assert hashes
        assert hashes <= locked[pin[1], pin[2]]
        names.add(pin[1])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = (*project["dependencies"], *project["optional-dependencies"]["fleet"])
    assert {re.split(r"[<>=\[]", one)[0] for one in wanted} <= names
    assert "loadstone" not in names
