"""PostgreSQL, by its statistics views."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Timer
from typing import TYPE_CHECKING, Any

from loadstone.monitor.metrics import Reading
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.address import TIMEOUT_S, MonitorAddress
from loadstone.monitor.sources.service_source import KeptSource
from loadstone.system.installation import pip_install

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

# Above TIMEOUT_S, after which the server itself ends a statement.
HUNG_S = 5.0
COMMITS = "xact_commit"
# Sums over all databases; ours, unit, factor.
DATABASES = (
    (COMMITS, "commits_total", "1", 1.0),
    ("xact_rollback", "rollbacks_total", "1", 1.0),
    ("blks_hit", "buffer_hits_total", "1", 1.0),
    ("blks_read", "buffer_misses_total", "1", 1.0),
    ("tup_returned", "rows_scanned_total", "1", 1.0),
    ("tup_fetched", "rows_read_total", "1", 1.0),
    ("tup_inserted", "rows_inserted_total", "1", 1.0),
    ("tup_updated", "rows_updated_total", "1", 1.0),
    ("tup_deleted", "rows_deleted_total", "1", 1.0),
    ("deadlocks", "deadlocks_total", "1", 1.0),
    ("temp_bytes", "temporary_bytes_total", "B", 1.0),
    ("sessions", "connections_total", "1", 1.0),
    ("active_time", "active_seconds_total", "s", 1e-3),
    ("idle_in_transaction_time", "idle_in_transaction_seconds_total", "s", 1e-3),
)
DATABASES_SQL = "SELECT * FROM pg_stat_database"
OTHERS = "pid <> pg_backend_pid()"  # the monitor's own session does none of the measured work
SESSIONS = (
    ("connections", "true"),  # the monitor's own takes one, too
    ("active", f"state = 'active' AND {OTHERS}"),
    (
        "transactions_open",
        f"state IN ('active', 'idle in transaction') AND xact_start IS NOT NULL AND {OTHERS}",
    ),
    ("lock_waiters", "wait_event_type = 'Lock'"),
    ("io_waiters", "state = 'active' AND wait_event_type = 'IO'"),
    ("committing", "wait_event IN ('WALSync', 'WALWrite', 'WalSync', 'WalWrite')"),
    ("latch_waiters", "state = 'active' AND wait_event_type = 'LWLock'"),
)
SESSIONS_SQL = (  # noqa: S608  # constants
    "SELECT {} FROM pg_stat_activity WHERE backend_type = 'client backend'"
).format(", ".join(f"count(*) FILTER (WHERE {which})" for _, which in SESSIONS))
# Without pg_monitor (or pg_read_all_stats), the server shows of other users' sessions only that
# they exist: their state, and even their kind, is null.
HIDDEN_SQL = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE query = '<insufficient privilege>' AND datid IS NOT NULL"
)
WAL_SQL = "SELECT wal_sync, wal_sync_time, wal_bytes FROM pg_stat_wal"
WAL = (
    ("log_fsyncs_total", "1", 1.0),
    ("log_fsync_seconds_total", "s", 1e-3),
    ("log_bytes_total", "B", 1.0),
)
# The last connections of max_connections are for superusers and other roles with a privilege, not
# for Keystone; reserved_connections since PostgreSQL 16.
RESERVED = ("superuser_reserved_connections", "reserved_connections")
LIMIT_SQL = (  # noqa: S608  # constants
    "SELECT name, setting FROM pg_settings WHERE name IN ('max_connections', '{}')"
).format("', '".join(RESERVED))


@dataclass(slots=True)
class PostgresSource(KeptSource["Connection[Any]"]):
    """One server, on a kept connection."""

    _has_wal: bool = field(default=True, init=False)
    # By counter and database, at the last read.
    _counters: dict[tuple[str, Any], float] = field(default_factory=dict, init=False)
    _sums: dict[str, float] = field(default_factory=dict, init=False)  # by counter
    _own: int = field(default=0, init=False)  # statements of the monitor, each of which commits
    _commits: float = field(default=0.0, init=False)  # without these, at the last read

    def read(self) -> Iterator[Reading]:
        """Read counters and the state of sessions."""
        link = self._connected()
        try:
            with bounded(link):
                yield from self._readings(link)
        except Exception:
            self.close()
            raise

    def _readings(self, link: "Connection[Any]") -> Iterator[Reading]:
        databases = self._execute(link, DATABASES_SQL)
        names, rows = [one.name for one in databases.description or ()], databases.fetchall()
        for theirs, metric, unit, factor in DATABASES:
            if theirs in names:  # sessions and their times: since PostgreSQL 14
                value = self._sum(theirs, names, rows)
                if theirs == COMMITS:
                    # The server counts them late, and a counter must not fall.
                    self._commits = value = max(self._commits, value - self._own)
                yield Reading(self.name, metric, value * factor, unit)
        yield from self._sessions(link)
        yield from self._wal(link)
        settings = {name: int(value) for name, value in self._execute(link, LIMIT_SQL).fetchall()}
        reserved = sum(settings.get(name, 0) for name in RESERVED)
        limit = settings["max_connections"] - reserved
        yield Reading(self.name, "connections_limit", float(limit))

    def _sum(self, counter: str, names: list[str], rows: list[tuple[Any, ...]]) -> float:
        """Return the growth of a counter over all databases, plus its value at the first read.

        A plain sum falls when a database is dropped or its statistics are reset, and a counter
        that falls is taken for that of a server that was restarted.
        """
        for row in rows:
            key, value = (counter, row[names.index("datid")]), float(row[names.index(counter)] or 0)
            before = self._counters.get(key, 0.0)
            grown = value - before if value >= before else value
            self._sums[counter] = self._sums.get(counter, 0.0) + grown
            self._counters[key] = value
        return self._sums.get(counter, 0.0)

    def _sessions(self, link: "Connection[Any]") -> Iterator[Reading]:
        (hidden,) = self._execute(link, HIDDEN_SQL).fetchone() or (0,)
        if hidden:
            return  # what is not seen is not 0
        row = self._execute(link, SESSIONS_SQL).fetchone() or ()
        for (metric, _), value in zip(SESSIONS, row, strict=True):
            yield Reading(self.name, metric, float(value or 0))

    def _wal(self, link: "Connection[Any]") -> Iterator[Reading]:
        import psycopg

        if not self._has_wal:
            return
        try:
            row = self._execute(link, WAL_SQL).fetchone() or ()
        except psycopg.ProgrammingError:  # PostgreSQL 13 and earlier, 18 and later
            self._has_wal = False
            return
        for (metric, unit, factor), value in zip(WAL, row, strict=True):
            yield Reading(self.name, metric, float(value or 0) * factor, unit)

    def _execute(self, link: "Connection[Any]", statement: str) -> "Cursor[Any]":
        self._own += 1
        return link.execute(statement)

    def _connected(self) -> "Connection[Any]":
        if self._link is None:
            self._link = connect(self.address)
        return self._link


@contextmanager
def bounded(link: "Connection[Any]") -> Iterator[None]:
    """Break the connection off if the block takes too long.

    A server that is suspended does not keep statement_timeout, and psycopg waits without limit.
    """
    timer = Timer(HUNG_S, _break_off, (link,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # so that it finds this connection's descriptor, or none


def _break_off(link: "Connection[Any]") -> None:
    with suppress(Exception), socket.socket(fileno=os.dup(link.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def connect(address: MonitorAddress) -> "Connection[Any]":
    """Connect to a server. Raises Unreadable if it cannot be, or without psycopg."""
    try:
        import psycopg
    except ImportError:
        raise Unreadable(f"psycopg is not installed; {pip_install('psycopg[binary]')}") from None
    try:
        return psycopg.connect(
            host=address.host or address.path,
            port=address.port or 5432,
            user=address.user or None,
            password=address.password or None,
            dbname=address.database or "postgres",
            connect_timeout=int(TIMEOUT_S),
            application_name="loadstone monitor",
            options=f"-c statement_timeout={int(TIMEOUT_S * 1000)}",
            autocommit=True,
        )
    except psycopg.Error as problem:
        raise Unreadable(str(problem).strip().partition("\n")[0]) from None
