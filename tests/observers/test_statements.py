"""SQL statements that cannot be counted do not hold the run up."""

import socket
from types import SimpleNamespace

import psycopg
import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.faults import parts
from loadstone.monitor.sources import postgres
from loadstone.observers import statements


class HungLink:
    """A connection to a suspended server: it does not answer until it is broken off."""

    def __init__(self):
        self.line, self.server = socket.socketpair()
        self.fileno = self.line.fileno

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.line.close()
        self.server.close()

    def execute(self, *_):
        if not self.line.recv(1):
            raise psycopg.OperationalError("server closed the connection unexpectedly")


def test_a_database_that_hangs_does_not_hang_the_run(monkeypatch, tmp_path):
    record = SimpleNamespace(part="postgres", statistics="postgres://keystone@127.0.0.1:5432")
    monkeypatch.setattr(parts, "read_state", lambda _: SimpleNamespace(records=(record,)))
    monkeypatch.setattr(statements, "connect", lambda _: HungLink())
    monkeypatch.setattr(postgres, "HUNG_S", 0.0)
    with pytest.raises(EnvironmentUnusable, match="closed the connection"):
        statements.StatementView(tmp_path).begin()
