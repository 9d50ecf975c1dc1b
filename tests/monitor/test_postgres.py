"""PostgreSQL shows the sessions of other users to some roles only."""

from dataclasses import dataclass

from loadstone.monitor.sources.open import open_source
from loadstone.monitor.sources.postgres import (
    DATABASES,
    DATABASES_SQL,
    HIDDEN_SQL,
    LIMIT_SQL,
    SESSIONS,
    SESSIONS_SQL,
    WAL_SQL,
)


@dataclass
class Answers:
    """A connection to a server that hides so many sessions."""

    hidden: int

    def execute(self, sql):
        rows = {
            DATABASES_SQL: (1,) * len(DATABASES),
            HIDDEN_SQL: (self.hidden,),
            SESSIONS_SQL: (0 if self.hidden else 7,) * len(SESSIONS),
            WAL_SQL: (1, 1, 1),
            LIMIT_SQL: (100,),
        }
        return Row(rows[sql])

    def close(self):
        pass


@dataclass
class Row:
    """The only row of a result."""

    values: tuple

    def fetchone(self):
        return self.values


def metrics_of(hidden):
    source = open_source("postgres://monitor@127.0.0.1:5432")
    source._link = Answers(hidden)
    return {one.metric: one.value for one in source.read()}


def test_sessions_that_the_role_may_not_see_are_not_read_as_none():
    seen = metrics_of(hidden=7)
    assert not {metric for metric, _ in SESSIONS} & seen.keys()
    assert seen["connections_limit"] == 100
    assert seen["commits_total"] == 1


def test_sessions_that_the_role_sees_are_counted():
    assert metrics_of(hidden=0)["connections"] == 7
