"""Template databases: db_sync runs once per release and kind of database; deployments copy it.

db_sync takes most of a first start (about 15 s of CPU).
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loadstone.keystone.deploy import conf, manage
from loadstone.keystone.deploy.manage import CommandContext, Preparation
from loadstone.lab import composition, diskspace, locks, processes, state
from loadstone.lab.database import Database
from loadstone.lab.part import Part, Say

COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Schema(Part):
    """Keystone's tables in the data folder of a deployment, prepared before its database starts."""

    database: Database
    template: Path
    build: Callable[[Path], Database]  # the same kind of database in another folder
    place: CommandContext
    name: str = "schema"

    def prepare(self, say: Say) -> None:
        """Copy the template; create it first if it is missing."""
        data = self.database.data
        if data.exists():
            return
        with locks.held(self.template.with_name(f".{self.template.name}.lock")):
            if not (self.template / COMPLETE).exists():
                say("making the database (db_sync, once)")
                shutil.rmtree(self.template, ignore_errors=True)
                self._make(say)
                (self.template / COMPLETE).touch()
        diskspace.copy(self.template / "data", data)

    def logs(self) -> tuple[Path, ...]:
        """Return db_sync's log."""
        return (self.place.log,)

    def _make(self, say: Say) -> None:
        database = self.build(self.template / "data")
        database.prepare(say)
        process = database.start()
        try:
            if process is not None:
                composition.await_health(database, process)
            file = self.template / "keystone.conf"
            connection = (("database", "connection", database.connection()),)
            state.write_secret(file, conf.render(connection))
            manage.carry_out(Preparation(manage.options(file), sync=True), self.place)
        finally:
            (self.template / "keystone.conf").unlink(missing_ok=True)
            if process is not None:
                processes.stop(process, ask=database.ask)
