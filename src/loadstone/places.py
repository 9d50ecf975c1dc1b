"""Where Loadstone keeps things on this machine."""

import os
from pathlib import Path


def home() -> Path:
    """Give Loadstone's own folder: LOADSTONE_HOME, else the platform's data folder."""
    chosen = os.environ.get("LOADSTONE_HOME")
    if chosen:
        return Path(chosen).absolute()
    from platformdirs import user_data_path

    return user_data_path("loadstone")


def labs() -> Path:
    """Give the folder of the lab: environments, prepared databases, deployments."""
    return home() / "lab"


def store() -> Path:
    """Give the folder where results are kept unless --store names another."""
    return home() / "results"
