"""Template databases: schemas are made once per release and database server; deployments copy them.

Keystone's db_sync takes most of a first start (about 15 s of CPU), Nova's and Neutron's more.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.lab import composition, diskspace, processes, state
from loadstone.lab.keystone import conf, manage
from loadstone.lab.keystone.manage import CommandContext, Preparation
from loadstone.lab.parts.database import Database
from loadstone.lab.parts.part import Part
from loadstone.system import locks
from loadstone.system.say import Say

COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Schema(Part):
    """Tables in the data folder of a deployment, prepared before its database starts."""

    database: Database
    template: Path
    build: Callable[[Path], Database]  # the same kind of database in another folder
    # Makes the tables in a database that runs; the folder is private to it.
    fill: Callable[[Any, Path], None]
    log: Path
    name: str = "schema"

    def prepare(self, say: Say) -> None:
        """Copy the template; create it first if it is missing or of another server."""
        data = self.database.data
        if data.exists():
            return
        with locks.held(self.template.with_name(f".{self.template.name}.lock")):
            made = self.build(self.template / "data")
            if not ((self.template / COMPLETE).exists() and made.is_readable()):
                say(f"making the {self.name} (db_sync, once)")
                shutil.rmtree(self.template, ignore_errors=True)
                self._make(made, say)
                (self.template / COMPLETE).touch()
        diskspace.copy(self.template / "data", data)

    def logs(self) -> tuple[Path, ...]:
        """Return the log of the creation of the tables."""
        return (self.log,)

    def _make(self, database: Database, say: Say) -> None:
        database.prepare(say)
        process = database.start()
        files = self.template / "conf"
        try:
            if process is not None:
                composition.await_health(database, process)
            files.mkdir(mode=0o700)
            self.fill(database, files)
        finally:
            shutil.rmtree(files, ignore_errors=True)
            if process is not None:
                processes.stop(process, stop_signal=database.stop_signal)


def sync(place: CommandContext, database: Database, folder: Path) -> None:
    """Run Keystone's db_sync."""
    file = folder / "keystone.conf"
    (folder / manage.CONF_D).mkdir(mode=0o700)
    state.write_secret(file, conf.render((("database", "connection", database.connection()),)))
    manage.carry_out(Preparation(manage.options(file), sync=True), place)
