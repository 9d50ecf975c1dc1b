"""Keystone 13 (Queens): the last release with UUID tokens, and the last Python that runs it."""

from pathlib import Path

from loadstone.lab import interpreters
from loadstone.lab.keystone.settings import Option

PYTHON = "3.6"
PIP = "pip==21.3.1"  # the last one for Python 3.6
PREPARE = "prepare_queens.py"
OLDER = {"pyuwsgi": "pyuwsgi==2.0.20"}  # the last with a wheel for this Python


def python() -> str:
    """Return the interpreter, or raise with what is missing."""
    return interpreters.find(PYTHON, "Keystone 13")


def older(package: str) -> str:
    """Return the requirement for the last version of a package that runs on this Python."""
    return OLDER.get(package.partition("==")[0], package)


def options(environment_python: Path) -> tuple[Option, ...]:
    """Return options that this release needs in addition: the path of its paste pipelines."""
    pipelines = environment_python.parent.parent / "etc" / "keystone" / "keystone-paste.ini"
    return (("paste_deploy", "config_file", str(pipelines)),)
