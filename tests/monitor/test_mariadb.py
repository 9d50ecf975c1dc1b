"""The monitor's own statements are left out of MariaDB's counters."""

from contextlib import contextmanager
from dataclasses import dataclass, field

from loadstone.monitor.sources.mariadb import SESSIONS_SQL, STATUS_SQL
from loadstone.monitor.sources.open import open_source


@dataclass
class Server:
    """A connection to a server that counts the statements that it gets, and others."""

    counts: dict = field(default_factory=lambda: {"Questions": 0, "Com_select": 0})
    rows: tuple = ()

    @contextmanager
    def cursor(self):
        yield self

    def execute(self, sql):
        self.counts["Questions"] += 1
        if sql == STATUS_SQL:
            self.rows = tuple((name, str(count)) for name, count in self.counts.items())
        elif sql == SESSIONS_SQL:
            self.counts["Com_select"] += 1
            self.rows = ((0, 1, 0),)

    def fetchall(self):
        return self.rows

    def fetchone(self):
        return self.rows[0]

    def close(self):
        pass


def statements(source):
    return {one.metric: one.value for one in source.read()}["statements_total"]


def test_the_monitors_own_statements_are_left_out_also_after_a_restart_of_the_server():
    source = open_source("mariadb://monitor@127.0.0.1:3306")
    source._link = Server()
    assert [statements(source) for _ in range(50)] == [0] * 50
    source._link = Server({"Questions": 20, "Com_select": 10})  # restarted; others asked 20 times
    assert [statements(source) for _ in range(3)] == [20] * 3
