"""Keystone 13 on Python 3.6, which no Debian package holds: it serves, or one line says so."""

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from lab_client import assert_serves, quietly, token_of

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone import deployment
from loadstone.keystone.deploy import queens, settings
from loadstone.keystone.deployment import Deployment

pytestmark = [pytest.mark.live, pytest.mark.slow]

SMALL = ("release=13.0.2", "workers=1", "hash-rounds=4")
Start = Callable[..., Deployment | None]


@pytest.fixture
def start_or_read_why(name: str) -> Start:
    """Start it; where no Python 3.6 is, the one clear line is what there is to see."""

    def start_it(*words: str) -> Deployment | None:
        chosen = settings.read([settings.split(word) for word in (*SMALL, *words)])
        try:
            queens.python()
        except EnvironmentUnusable:
            with pytest.raises(EnvironmentUnusable, match=r"^not installed: python3\.6, [^\n]*$"):
                deployment.up(name, chosen, quietly, owned=True)
            return None
        return deployment.up(name, chosen, quietly, owned=True)

    return start_it


def test_uuid_tokens_are_rows_beside_the_expired_ones(start_or_read_why: Start) -> None:
    started = start_or_read_why("token=uuid", "expired-tokens=300")
    if started is None:
        return
    assert_serves(started)
    assert len(token_of(started.environment_variables())) == 32
    facts = dict(started.facts())
    assert (facts["token"], facts["expired tokens"]) == ("uuid", "300")
    assert facts["python"].startswith("3.6.")
    [file] = started.folder.glob("data/*/keystone.db")
    with closing(sqlite3.connect(file)) as base:
        expired = "SELECT COUNT(*) FROM token WHERE expires < datetime('now')"
        assert base.execute(expired).fetchone() == (300,)


def test_fernet_serves_on_the_same_release(start_or_read_why: Start) -> None:
    started = start_or_read_why("token=fernet")
    if started is None:
        return
    assert_serves(started)
    assert len(token_of(started.environment_variables())) > 100
