"""What all databases have in common."""

from pathlib import Path

from loadstone.lab.part import Part

USER = "keystone"  # of the database, in the servers
# A pool of connections in each thread of each worker, and room for the database's own.
CONNECTIONS = 400
BUFFER_MB = 256


class Database(Part):
    """A part that keeps its data in one folder, which can be copied while it is stopped."""

    __slots__ = ()
    data: Path

    def connection(self) -> str:
        """Give SQLAlchemy's URL; where there is a password it stands in it."""
        raise NotImplementedError
