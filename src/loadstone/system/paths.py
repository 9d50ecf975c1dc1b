"""Paths of the folders that Loadstone uses on this machine."""

import os
from pathlib import Path


def home() -> Path:
    """Return the home folder: LOADSTONE_HOME, else the data folder of the platform."""
    chosen = os.environ.get("LOADSTONE_HOME")
    if chosen:
        return Path(chosen).absolute()
    from platformdirs import user_data_path

    return user_data_path("loadstone")


def labs() -> Path:
    """Return the folder of the lab: environments, prepared databases, deployments."""
    return home() / "lab"


def deployments() -> Path:
    """Return the folder of the lab's deployments on this machine."""
    return labs() / "deployments"


def targets() -> Path:
    """Return the folder that says which targets other than labs are being measured."""
    return home() / "targets"


def environments() -> Path:
    """Return the folder of services' environments, links resolved: their scripts contain it."""
    return (labs() / "environments").resolve()


def store() -> Path:
    """Return the folder where results are kept unless --store names another."""
    return home() / "results"


def expanded(name: str) -> Path:
    """Return a path with `~` replaced; unchanged if there is no such home folder."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def existing(name: str) -> Path | None:
    """Return the path of a file or folder that exists; None for any other text."""
    path = expanded(name)
    try:
        return path if path.exists() else None
    except OSError:  # too long for a name, or in a folder that must not be read
        return None
