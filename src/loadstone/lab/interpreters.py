"""Finds Python interpreters for services too old for current Pythons."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.lab.programs import SYSTEM_FOLDERS

TELL = "import sys; print('%d.%d' % sys.version_info[:2])"
PATIENCE_S = 20


def find(version: str, purpose: str) -> str:
    """Return the path of Python `version`, such as "3.6"; candidates are run to check it."""
    for path in _candidates(version):
        if _version(path) == version:
            return str(path)
    raise EnvironmentUnusable(
        f"not installed: python{version}, which {purpose} needs; no Debian package holds it: with "
        f"pyenv, `pyenv install {version}`, else put a python{version} on the PATH"
    )


def _candidates(version: str) -> Iterator[Path]:
    name = f"python{version}"
    places = ":".join([os.environ.get("PATH", os.defpath), SYSTEM_FOLDERS, "/usr/local/bin"])
    for folder in dict.fromkeys(filter(None, places.split(":"))):
        path = Path(folder) / name
        if path.is_absolute() and os.access(path, os.X_OK):
            yield path
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(root.glob(f"versions/{version}.*/bin/{name}"), reverse=True)


def _version(path: Path) -> str | None:
    try:
        completed = subprocess.run(
            (str(path), "-c", TELL),
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.strip() if completed.returncode == 0 else None
