"""MariaDB and MySQL, by their status variables."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.monitor.metrics import Reading
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.address import TIMEOUT_S
from loadstone.monitor.sources.service_source import KeptSource
from loadstone.system.installation import pip_install

if TYPE_CHECKING:
    from pymysql.connections import Connection

# Status variable, ours, unit, factor.
STATUS = {
    "Questions": ("statements_total", "1", 1.0),
    "Com_select": ("selects_total", "1", 1.0),
    "Com_insert": ("inserts_total", "1", 1.0),
    "Com_update": ("updates_total", "1", 1.0),
    "Com_delete": ("deletes_total", "1", 1.0),
    "Com_commit": ("commits_total", "1", 1.0),
    "Com_rollback": ("rollbacks_total", "1", 1.0),
    "Slow_queries": ("slow_statements_total", "1", 1.0),
    "Rows_read": ("rows_read_total", "1", 1.0),
    "Rows_sent": ("rows_sent_total", "1", 1.0),
    "Threads_connected": ("connections", "1", 1.0),
    "Threads_running": ("running", "1", 1.0),
    "Max_used_connections": ("connections_most", "1", 1.0),
    "Connections": ("connections_total", "1", 1.0),
    "Connection_errors_max_connections": ("connections_refused_total", "1", 1.0),
    "Aborted_connects": ("connections_aborted_total", "1", 1.0),
    "Innodb_buffer_pool_read_requests": ("buffer_reads_total", "1", 1.0),
    "Innodb_buffer_pool_reads": ("buffer_misses_total", "1", 1.0),
    "Innodb_row_lock_waits": ("lock_waits_total", "1", 1.0),
    "Innodb_row_lock_time": ("lock_wait_seconds_total", "s", 1e-3),
    "Innodb_row_lock_current_waits": ("lock_waiters", "1", 1.0),
    "Innodb_deadlocks": ("deadlocks_total", "1", 1.0),
    "Innodb_data_fsyncs": ("data_fsyncs_total", "1", 1.0),
    "Innodb_os_log_fsyncs": ("log_fsyncs_total", "1", 1.0),
    "Innodb_data_written": ("written_bytes_total", "B", 1.0),
    "Innodb_log_waits": ("log_waits_total", "1", 1.0),
    "Handler_read_rnd_next": ("rows_scanned_total", "1", 1.0),
    "Created_tmp_disk_tables": ("disk_tables_total", "1", 1.0),
    "wsrep_flow_control_paused_ns": ("galera_paused_seconds_total", "s", 1e-9),
    "wsrep_local_cert_failures": ("galera_conflicts_total", "1", 1.0),
}
STATUS_SQL = "SHOW GLOBAL STATUS WHERE Variable_name IN ({})".format(
    ", ".join(f"'{name}'" for name in STATUS)
)
# Sessions other than this one: in a transaction, in a statement, in a commit. While its commit is
# written to disk, a session is no longer in `innodb_trx`, and may have any state.
COMMITTING = "(COALESCE(p.info, '') LIKE 'COMMIT%' OR COALESCE(p.state, '') LIKE '%commit%')"
SESSIONS_SQL = (
    f"SELECT SUM(t.trx_id IS NOT NULL OR {COMMITTING}), "  # noqa: S608  # constants
    f"SUM(p.command <> 'Sleep'), SUM({COMMITTING}) "
    "FROM information_schema.processlist p LEFT JOIN information_schema.innodb_trx t "
    "ON t.trx_mysql_thread_id = p.id WHERE p.id <> CONNECTION_ID() AND p.user NOT IN "
    "('system user', 'event_scheduler')"
)
LOST = (2006, 2013)  # the connection: the server has gone, or does not answer in time
LIMIT_SQL = "SELECT @@max_connections"


@dataclass(slots=True)
class MariaDbSource(KeptSource["Connection"]):
    """One server, on a kept connection."""

    _limit: float = field(default=0.0, init=False)
    _sees_sessions: bool = field(default=True, init=False)
    _own: dict[str, int] = field(default_factory=dict, init=False)  # statements of this connection
    _statements: float = field(default=0.0, init=False)  # of all, at the last read

    def read(self) -> Iterator[Reading]:
        """Read counters and the state of sessions."""
        link = self._connected()
        self._count("Questions")
        try:
            with link.cursor() as cursor:
                cursor.execute(STATUS_SQL)
                rows = cursor.fetchall()
                self._note_restart(float(dict(rows).get("Questions", 0.0)))
                for theirs, value in rows:
                    ours, unit, factor = STATUS[theirs]
                    own = self._own.get(theirs, 0)
                    yield Reading(self.name, ours, float(value) * factor - own, unit)
        except Exception:
            self.close()
            raise
        yield Reading(self.name, "connections_limit", self._limit)
        if self._sees_sessions:
            yield from self._sessions(link)

    def _sessions(self, link: "Connection") -> Iterator[Reading]:
        import pymysql

        try:
            with link.cursor() as cursor:
                self._count("Questions", "Com_select")
                cursor.execute(SESSIONS_SQL)
                row = cursor.fetchone() or (0, 0, 0)
        except pymysql.MySQLError as problem:
            if problem.args and problem.args[0] in LOST:
                self.close()
            else:  # needs the privilege PROCESS
                self._sees_sessions = False
            return
        for metric, value in zip(("transactions_open", "active", "committing"), row, strict=True):
            yield Reading(self.name, metric, float(value or 0))

    def _note_restart(self, statements: float) -> None:
        """Forget this connection's earlier statements if the server counts from 0 again."""
        if statements < self._statements:
            self._own = {"Questions": 1}
        self._statements = statements

    def _count(self, *names: str) -> None:
        for name in names:
            self._own[name] = self._own.get(name, 0) + 1

    def _connected(self) -> "Connection":
        if self._link is not None:
            return self._link
        try:
            import pymysql
        except ImportError:
            raise Unreadable(f"PyMySQL is not installed; {pip_install('pymysql')}") from None
        address = self.address
        try:
            self._link = pymysql.connect(
                host=address.host or None,
                port=address.port or 3306,
                unix_socket=None if address.host else address.path,
                user=address.user or None,
                password=address.password,
                autocommit=True,
                connect_timeout=int(TIMEOUT_S),
                read_timeout=int(TIMEOUT_S),
            )
        except pymysql.MySQLError as problem:
            raise Unreadable(str(problem.args[-1])) from None
        with self._link.cursor() as cursor:
            cursor.execute(LIMIT_SQL)
            row = cursor.fetchone()
            self._limit = float(row[0]) if row else 0.0
        return self._link
