"""The rules that no reviewer should have to remember."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.processes
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no git checkout")
def test_nothing_of_the_package_is_ignored_by_git_and_so_missing_from_the_wheel():
    package = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    ]
    asked = ["git", "check-ignore", "--no-index", "--stdin"]
    given = "\n".join(package)
    ended = subprocess.run(
        asked, check=False, cwd=ROOT, input=given, capture_output=True, text=True
    )
    assert (ended.stdout, ended.returncode) == ("", 1), ended.stderr  # 1: none is ignored


@pytest.mark.processes
def test_the_flow_is_one_directional():
    lint = Path(sys.executable).parent / "lint-imports"
    subprocess.run([lint, "--no-cache"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


@pytest.mark.processes
def test_the_stub_matches_the_rust_module():
    subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "loadstone._engine"],
        check=True,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )


@pytest.mark.processes
def test_the_help_loads_nothing_heavy():
    """`loadstone --help` answers at once: what is heavy stays inside the commands that need it."""
    heavy = (
        "sqlalchemy",
        "openstack",
        "scipy",
        "jinja2",
        "rich",
        "numpy",
        "psutil",
        "keystoneauth1",
        "pydantic",
    )
    code = (
        "import sys; sys.argv = ['loadstone', '--help']\n"
        "from loadstone.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={**os.environ}
    )
    assert shown.stderr.strip() == "[]"
    assert "Exit codes" in shown.stdout


def test_only_the_engine_itself_calls_what_sends_load():
    """import-linter holds that only the gate runs an engine; this holds that there is no other."""
    package = ROOT / "src" / "loadstone"
    texts = {str(p.relative_to(package)): p.read_text() for p in package.rglob("*.py")}
    trees = {
        path: ast.parse(text)
        for path, text in texts.items()
        if "_engine" in text or "WorkerPool" in text
    }
    senders = {
        path
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module == "loadstone._engine"
        and "prepare" in {name.name for name in node.names}
    }
    assert senders == {"engine/local.py"}
    starters = {
        path
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "WorkerPool"
    }
    assert starters == {"engine/callables/run.py"}
