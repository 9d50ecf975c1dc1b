"""The settings, ports, passwords and folder of a deployment."""

from dataclasses import dataclass, field
from pathlib import Path

from loadstone.lab.keystone.deployment import url_of
from loadstone.lab.keystone.settings import LabSettings
from loadstone.lab.ports import Ports


@dataclass(frozen=True, slots=True)
class Blueprint:
    """Folder, settings, ports and passwords of a deployment."""

    folder: Path
    settings: LabSettings
    ports: Ports
    port: int  # the port that clients use
    # Empty for parts that are not prepared: those of a running deployment have theirs in files.
    admin_password: str = field(default="", repr=False)
    database_password: str = field(default="", repr=False)
    directory_password: str = field(default="", repr=False)
    services_password: str = field(default="", repr=False)  # of the compute cloud's

    @property
    def url(self) -> str:
        """URL of the Identity v3 endpoint."""
        return url_of(self.port, self.settings.host, has_tls=self.settings.tls.is_on)
