"""Statistics that PostgreSQL shows to some roles only, or has in some releases only."""

import socket
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from loadstone.monitor.metrics import Recorder
from loadstone.monitor.sources import postgres
from loadstone.monitor.sources.open import open_source
from loadstone.monitor.sources.postgres import (
    DATABASES,
    DATABASES_SQL,
    HIDDEN_SQL,
    LIMIT_SQL,
    RESERVED,
    SESSIONS,
    SESSIONS_SQL,
    WAL_SQL,
)


@dataclass
class Answers:
    """A connection to a server that hides so many sessions, and has these statistics."""

    hidden: int
    columns: tuple = ("datid", *(name for name, *_ in DATABASES))
    reserved: tuple = (3,)  # connections; for roles with a privilege since PostgreSQL 16
    databases: dict = field(default_factory=lambda: {1: 1, 2: 2})  # what each of them has counted
    sent: int = 0  # statements of the monitor, each of which commits in database 1

    def counted(self, database, count):
        commits = self.sent if database == 1 else 0
        return [count + commits * (name == "xact_commit") for name in self.columns[1:]]

    def execute(self, sql):
        self.sent += 1
        rows = {
            DATABASES_SQL: [
                (number, *self.counted(number, count)) for number, count in self.databases.items()
            ],
            HIDDEN_SQL: [(self.hidden,)],
            SESSIONS_SQL: [(0 if self.hidden else 7,) * len(SESSIONS)],
            WAL_SQL: [(1, 1, 1)],
            LIMIT_SQL: [
                ("max_connections", "100"),
                *((name, str(one)) for name, one in zip(RESERVED, self.reserved, strict=False)),
            ],
        }
        return Result(rows[sql], [SimpleNamespace(name=name) for name in self.columns])

    def close(self):
        pass


@dataclass
class Result:
    """The rows of a result, and its columns."""

    rows: list
    description: list

    def fetchone(self):
        return self.rows[0]

    def fetchall(self):
        return self.rows


def metrics_of(answers):
    source = open_source("postgres://monitor@127.0.0.1:5432")
    source._link = answers
    return {one.metric: one.value for one in source.read()}


def test_sessions_that_the_role_may_not_see_are_not_read_as_none():
    seen = metrics_of(Answers(hidden=7))
    assert not {metric for metric, _ in SESSIONS} & seen.keys()
    assert seen["commits_total"] == 3  # of both databases


def test_sessions_that_the_role_sees_are_counted():
    assert metrics_of(Answers(hidden=0))["connections"] == 7


@pytest.mark.parametrize(("reserved", "limit"), [((3,), 97), ((3, 7), 90), ((), 100)])
def test_reserved_connections_are_none_that_keystone_may_open(reserved, limit):
    assert metrics_of(Answers(hidden=0, reserved=reserved))["connections_limit"] == limit


def test_statistics_that_an_older_release_has_not_are_left_out():
    seen = metrics_of(Answers(hidden=0, columns=("datid", "xact_commit", "deadlocks")))
    assert (seen["commits_total"], seen["deadlocks_total"]) == (3, 3)
    assert "active_seconds_total" not in seen
    assert seen["connections"] == 7


@pytest.mark.parametrize(
    ("reads", "increase"),
    [
        ([{1: 5000, 2: 10}, {1: 5003, 2: 14}], 7),
        ([{1: 5000, 2: 10}, {1: 5003}, {1: 5005}], 5),  # DROP DATABASE
        ([{1: 5000, 2: 10}, {1: 5000, 2: 4}], 4),  # pg_stat_reset()
        ([{1: 5000, 2: 10}, {1: 2, 2: 1}], 4),  # a restart after a crash
        ([{1: 5000}, {1: 5000, 2: 6}], 6),  # CREATE DATABASE
    ],
)
def test_a_database_that_is_dropped_or_reset_is_no_restart_of_the_server(reads, increase):
    source, recorder = open_source("postgres://monitor@127.0.0.1:5432"), Recorder()
    source._link = answers = Answers(hidden=0)
    for number, databases in enumerate(reads):
        answers.databases = databases
        recorder.add(1000.0 + number, source.read())
    assert recorder.metrics().increase("postgres", "commits_total") == increase


def test_a_server_that_hangs_does_not_hang_its_monitor(monkeypatch):
    """As one that is suspended: it neither answers nor ends the statement."""

    class Hung:
        def __init__(self):
            self.line, self.server = socket.socketpair()
            self.fileno = self.line.fileno

        def execute(self, sql):
            if not self.line.recv(1):  # returns when the connection is broken off
                raise ConnectionError(sql)

        def close(self):
            self.line.close()
            self.server.close()

    monkeypatch.setattr(postgres, "HUNG_S", 0.0)
    source = open_source("postgres://monitor@127.0.0.1:5432")
    source._link = Hung()
    with pytest.raises(ConnectionError):
        list(source.read())
    assert source._link is None
