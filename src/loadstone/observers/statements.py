"""Counts the SQL statements of a lab's Keystone during a trial, by their shape.

MariaDB writes all statements into its general log, a table, for the time of the load. The log is
emptied at the end. That it is switched off is in the undo journal, so it is after a kill, too.
"""

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadstone.analysis.model import Trial
from loadstone.diagnosis.sql import SqlCount, counted
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults import database
from loadstone.faults.carried import undoing
from loadstone.faults.host import HERE, HostCommand
from loadstone.faults.journal import Owner, Undo, UndoJournal, UndoStep, of_lab
from loadstone.result.observer import TrialObserver
from loadstone.search.model import TrialRequest

BEGIN = "SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1"
END = "SET GLOBAL general_log = 0"
READ = (  # what Keystone sent: its user is that of `lab.parts.database`
    "SELECT argument FROM mysql.general_log WHERE command_type IN ('Query', 'Execute') "
    "AND user_host LIKE 'keystone[%'"
)
EMPTY = "TRUNCATE mysql.general_log; SET GLOBAL log_output = 'FILE'"
Say = Callable[[str], None]


@dataclass(slots=True)
class StatementLog(TrialObserver):
    """Counts the statements of the trials with the given purpose.

    A log that cannot be read never fails the run: the reason is reported in one line.
    """

    lab: Path
    say: Say
    purpose: str
    _undone: ExitStack = field(default_factory=ExitStack, init=False)
    _step: UndoStep | None = field(default=None, init=False)
    _found: tuple[SqlCount, ...] | None = field(default=None, init=False)

    def on_trial_begin(self, request: TrialRequest) -> None:
        """Switch the log on."""
        self._found = None
        if request.purpose != self.purpose or not has_log(self.lab):
            return
        try:
            off = shlex.join(database.mariadb_command(f"{END}; {EMPTY}"))
            place = shlex.quote(str(database.folder(self.lab)))
            command = HostCommand.here_and_now(HERE, f"cd {place} && {off}")
            owner = Owner.this()
            self._undone.enter_context(undoing(self._journal, owner, self.say))
            self._step = self._journal.note(Undo.COMMAND, command.as_json(), owner)
            database.run_mariadb(self.lab, BEGIN)
        except EnvironmentUnusable as problem:
            self.say(f"  SQL statements are not counted: {problem}")

    def on_load_end(self, samples: Samples | SampleFile) -> None:  # noqa: ARG002
        """Switch the log off, and count what is in it."""
        if self._step is None:
            return
        try:
            database.run_mariadb(self.lab, END)
            self._found = counted(_lines(database.run_mariadb(self.lab, READ)))
            database.run_mariadb(self.lab, EMPTY)
        except EnvironmentUnusable as problem:
            self.say(f"  SQL statements are not counted: {problem}")
            return  # the undo step is still in the journal
        self._journal.remove(self._step)
        self._step = None

    def on_trial_end(self, trial: Trial) -> Trial:
        """Add the counts."""
        return trial if self._found is None else replace(trial, statements=self._found)

    def close(self) -> None:
        """Undo what is left."""
        self._undone.close()

    @property
    def _journal(self) -> UndoJournal:
        return of_lab(self.lab)


def has_log(lab: Path) -> bool:
    """Return whether the lab's database can log its statements while it runs."""
    try:
        return database.kind(lab) == "mariadb"
    except InvalidInput:
        return False  # SQLite


def _lines(rows: str) -> Iterator[str]:
    """Yield the statements of the client's output, in which a line break is a backslash and n."""
    for row in rows.splitlines():
        yield row.replace("\\n", " ").replace("\\t", " ")
