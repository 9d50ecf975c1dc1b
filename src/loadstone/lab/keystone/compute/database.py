"""The database server of the compute cloud, beside Keystone's own."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.parts.mariadb import MariaDb


@dataclass(frozen=True, slots=True)
class ComputeDatabase(MariaDb):
    """MariaDB with a schema for each service."""

    kind = "compute-database"
    schemas = ("nova_api", "nova_cell0", "nova_cell1", "placement", "glance", "neutron")
    charset = "utf8"  # what Nova's schema is made for
    is_reported = False  # it is not Keystone's, and the cloud's row names it

    @property
    def state(self) -> Path:
        """Folder for the files that belong to the same data."""
        return self.data / "state"
