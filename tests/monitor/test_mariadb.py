"""The monitor's own statements are left out of MariaDB's counters."""

from contextlib import contextmanager
from dataclasses import dataclass, field

import pymysql
import pytest

from loadstone.monitor.sources.mariadb import SESSIONS_SQL, STATUS_SQL
from loadstone.monitor.sources.open import open_source


@dataclass
class Server:
    """A connection to a server that counts the statements that it gets, and others."""

    counts: dict = field(default_factory=lambda: {"Questions": 0, "Com_select": 0})
    rows: tuple = ()
    sessions_fail_with: int | None = None

    @contextmanager
    def cursor(self):
        yield self

    def execute(self, sql):
        self.counts["Questions"] += 1
        if sql == STATUS_SQL:
            self.rows = tuple((name, str(count)) for name, count in self.counts.items())
        elif sql == SESSIONS_SQL and self.sessions_fail_with is not None:
            raise pymysql.err.OperationalError(self.sessions_fail_with, "it fails")
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


@pytest.mark.parametrize(
    ("code", "is_read_again"),
    [
        (1227, False),  # without the privilege PROCESS
        (2013, True),  # the server was too busy to answer in time
    ],
)
def test_sessions_that_could_not_be_read_once_are_read_again(code, is_read_again):
    source = open_source("mariadb://monitor@127.0.0.1:3306")
    source._link = Server(sessions_fail_with=code)
    assert "active" not in {one.metric for one in source.read()}
    source._link = Server()
    assert ("active" in {one.metric for one in source.read()}) is is_read_again
