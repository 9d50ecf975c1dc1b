"""The database that db_sync has been through: made once per release and kind, copied from then on.

db_sync takes most of a first start (about 15 s of CPU).
"""

import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from loadstone.keystone.deploy import conf, manage
from loadstone.keystone.deploy.manage import Order, Place
from loadstone.lab import composition, locks, processes
from loadstone.lab.part import Facts, Part, Say
from loadstone.lab.processes import Process

COMPLETE = "complete"


class Database(Part, Protocol):
    """A part that keeps data in one folder, which can be copied while it is stopped."""

    @property
    def data(self) -> Path:
        """The folder."""

    def connection(self) -> str:
        """Give SQLAlchemy's URL."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Keystone's tables in the data folder of a deployment, before its database starts."""

    database: Database
    template: Path
    build: Callable[[Path], Database]  # the same kind of database on another folder
    place: Place
    name: str = "schema"
    ask: signal.Signals = signal.SIGTERM

    def prepare(self, say: Say) -> None:
        """Copy the template; make that first where it is missing."""
        if self.database.data.exists():
            return
        with locks.held(self.template.with_name(f".{self.template.name}.lock")):
            if not (self.template / COMPLETE).exists():
                say("making the database (db_sync, once)")
                shutil.rmtree(self.template, ignore_errors=True)
                self._make(say)
                (self.template / COMPLETE).touch()
        half = self.database.data.with_name(f".{self.database.data.name}")
        shutil.rmtree(half, ignore_errors=True)
        half.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.template / "data", half)
        half.rename(self.database.data)

    def start(self) -> Process | None:
        """No process."""
        return None

    def healthy(self) -> bool:
        """Made is healthy."""
        return True

    def facts(self) -> Facts:
        """Nothing beside the database's."""
        return ()

    def logs(self) -> tuple[Path, ...]:
        """What db_sync said."""
        return (self.place.log,)

    def _make(self, say: Say) -> None:
        database = self.build(self.template / "data")
        database.prepare(say)
        process = database.start()
        try:
            if process is not None:
                composition.await_health(database, process)
            file = self.template / "keystone.conf"
            file.write_text(conf.render((("database", "connection", database.connection()),)))
            manage.carry_out(Order(manage.options(file), sync=True), self.place)
        finally:
            if process is not None:
                processes.stop(process, ask=database.ask)
