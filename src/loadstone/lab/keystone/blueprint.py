"""The settings, ports, passwords and folder of a deployment."""

from dataclasses import dataclass, field
from pathlib import Path

from loadstone.lab.keystone.settings import LabSettings
from loadstone.lab.ports import Ports


@dataclass(frozen=True, slots=True)
class Blueprint:
    """Folder, settings, ports and passwords of a deployment."""

    folder: Path
    settings: LabSettings
    ports: Ports
    port: int  # the port that clients use
    url: str
    admin_password: str = field(repr=False)
    database_password: str = field(repr=False)
    directory_password: str = field(repr=False)
    services_password: str = field(repr=False)  # of the compute cloud's
