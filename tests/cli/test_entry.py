"""How the process begins."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from loadstone.cli import version
from loadstone.engine.version import version as engine_version


def test_ctrl_c_while_python_still_imports_ends_in_one_line():
    (entry,) = entry_points(group="console_scripts", name="loadstone")
    code = (
        "import sys\n"
        "class CtrlC:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, CtrlC())\n"
        f"from {entry.module} import {entry.attr}\n"
        f"{entry.attr}()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert ended.stderr == "loadstone: interrupted\n"
    assert ended.returncode == 130


def test_ctrl_c_within_generated_code_of_an_import_has_the_same_exit_code(tmp_path: Path):
    code = "import loadstone.errors\nexec('raise KeyboardInterrupt')\n"
    (tmp_path / "click.py").write_text(code)
    ended = subprocess.run(
        [sys.executable, "-m", "loadstone"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.stderr == "loadstone: interrupted\n"
    assert ended.returncode == 130


def test_the_version_names_the_commit_and_the_engine(loadstone):
    ended = loadstone("--version")
    assert ended.returncode == 0
    assert ended.stdout.startswith("loadstone 0.")
    assert f"engine {engine_version()})" in ended.stdout


def test_a_wheel_knows_its_commit(tmp_path: Path):
    package = tmp_path / "site-packages" / "loadstone"
    package.mkdir(parents=True)
    assert version.commit(package) == ""
    (package / "commit").write_text("0123456789ab\n")
    assert version.commit(package) == "0123456789ab"


def test_a_checkout_asks_git_for_its_commit(tmp_path: Path):
    git = ["git", "-C", tmp_path, "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "one"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    assert version.commit(tmp_path / "src" / "loadstone") == head.stdout[:12]
