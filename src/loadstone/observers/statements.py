"""Counts the SQL statements of a lab's Keystone during a trial, by their shape.

MariaDB writes all statements into its general log, a table, for the time of the load; the table is
emptied at the end. PostgreSQL's module pg_stat_statements counts them without values. That either
is switched off is in the undo journal, so it is after a kill, too.
"""

import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

from loadstone.analysis.model import Trial
from loadstone.diagnosis.sql import SqlCount, counted
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.faults import database, parts
from loadstone.faults.carried import undoing
from loadstone.faults.journal import Owner, Undo, UndoJournal, UndoStep, of_lab
from loadstone.lab.parts.database import USER
from loadstone.lab.parts.postgres import STATEMENTS_ON, has_statements
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.address import read_address
from loadstone.monitor.sources.postgres import bounded, connect
from loadstone.result.observer import TrialObserver
from loadstone.search.model import TrialRequest
from loadstone.system.say import Say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

PATIENCE_S = 5.0


@dataclass(slots=True)
class StatementLog(TrialObserver):
    """Counts the statements of the trials with the given purpose.

    If they cannot be counted the run goes on: the reason is reported in one line.
    """

    lab: Path
    say: Say
    purpose: str
    _undone: ExitStack = field(default_factory=ExitStack, init=False)
    _counter: "GeneralLog | StatementView | None" = field(default=None, init=False)
    _step: UndoStep | None = field(default=None, init=False)
    _found: tuple[SqlCount, ...] | None = field(default=None, init=False)

    def on_trial_begin(self, request: TrialRequest) -> None:
        """Begin to count."""
        self._found = None
        if request.purpose != self.purpose or (counter := _counter(self.lab)) is None:
            return
        try:
            owner, start = Owner.this(), parts.read_state(self.lab).run
            self._undone.enter_context(undoing(self._journal, owner, self.say))
            kind = database.kind(self.lab)
            self._step = self._journal.note(Undo.STATEMENTS, kind, owner, start)
            counter.begin()
            self._counter = counter
        except EnvironmentUnusable as problem:
            self.say(f"  SQL statements are not counted: {problem}")

    def on_load_end(self, samples: Samples | SampleFile) -> None:  # noqa: ARG002
        """Switch it off, and keep the counts."""
        counter, self._counter = self._counter, None
        if counter is None or self._step is None:
            return
        try:
            self._found = counted(counter.end())
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


def counts_statements(lab: Path) -> bool:
    """Return whether the lab's database can count its statements while it runs."""
    return _counter(lab) is not None


def _counter(lab: Path) -> "GeneralLog | StatementView | None":
    try:
        kind = database.kind(lab)
    except InvalidInput:
        return None  # SQLite
    if kind == "mariadb":
        return GeneralLog(lab)
    return StatementView(lab) if has_statements() else None


@dataclass(frozen=True, slots=True)
class GeneralLog:
    """MariaDB's log of all statements, in a table. Its methods raise EnvironmentUnusable."""

    lab: Path

    BEGIN = (
        "SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1"
    )
    READ = (  # what Keystone sent: its user is that of `lab.parts.database`
        "SELECT argument FROM mysql.general_log WHERE command_type IN ('Query', 'Execute') "
        "AND user_host LIKE 'keystone[%'"
    )

    def begin(self) -> None:
        """Switch the log on."""
        database.run_mariadb(self.lab, self.BEGIN)

    def end(self) -> Counter[str]:
        """Switch the log off, read and empty it; return how often each statement was sent."""
        database.run_mariadb(self.lab, database.LOG_OFF)
        # In the client's output a line break is a backslash and n.
        rows = database.run_mariadb(self.lab, self.READ).splitlines()
        database.run_mariadb(self.lab, database.EMPTY_LOG)
        return Counter(row.replace("\\n", " ").replace("\\t", " ") for row in rows)


@dataclass(slots=True)
class StatementView:
    """PostgreSQL's view pg_stat_statements, in which values are placeholders; see GeneralLog."""

    lab: Path
    _before: Counter[str] = field(default_factory=Counter, init=False)

    READ = (
        "SELECT query, sum(calls)::bigint FROM pg_stat_statements "
        "JOIN pg_roles ON pg_roles.oid = userid WHERE rolname = %s GROUP BY query"
    )
    SETTING = "SELECT current_setting('pg_stat_statements.track')"

    def begin(self) -> None:
        """Count what the module knows already, then switch it on."""
        with self._connected() as link:
            self._before = self._counts(link)
            database.set_postgres(self.lab, STATEMENTS_ON, is_set=True)
            end_s = time.monotonic() + PATIENCE_S
            while self._rows(link, self.SETTING) != [("top",)]:
                if time.monotonic() > end_s:
                    raise EnvironmentUnusable(
                        f"postgres of lab {self.lab.name} does not read its configuration again"
                    )
                time.sleep(0.02)

    def end(self) -> Counter[str]:
        """Switch it off; return what was added."""
        database.set_postgres(self.lab, STATEMENTS_ON, is_set=False)
        with self._connected() as link:
            return self._counts(link) - self._before

    def _counts(self, link: "Connection[Any]") -> Counter[str]:
        return Counter(dict(self._rows(link, self.READ, USER)))

    def _rows(
        self, link: "Connection[Any]", sql: LiteralString, *values: str
    ) -> list[tuple[Any, ...]]:
        with bounded(link):
            return link.execute(sql, values).fetchall()

    @contextmanager
    def _connected(self) -> "Iterator[Connection[Any]]":
        deployment = parts.read_state(self.lab)
        (url,) = (one.statistics for one in deployment.records if one.part == "postgres")
        try:
            link = connect(read_address(url, ("postgres",)))
        except Unreadable as problem:
            raise EnvironmentUnusable(f"postgres of lab {self.lab.name}: {problem}") from None
        import psycopg  # after `connect`, which says so if it is missing

        try:
            with link:
                yield link
        except psycopg.Error as problem:
            reason = str(problem).strip().partition("\n")[0]
            raise EnvironmentUnusable(f"postgres of lab {self.lab.name}: {reason}") from None
