"""Keystone 13 on Python 3.6, which no Debian package holds: it serves, or one line says so."""

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from lab_client import assert_serves, quietly, token_of

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import deployment, interpreters
from loadstone.lab.deployment import Deployment
from loadstone.lab.keystone import queens, settings

pytestmark = [pytest.mark.live, pytest.mark.verify]

SMALL = ("release=13.0.2", "workers=1")
Start = Callable[..., Deployment]


def has_python() -> bool:
    try:
        queens.python()
    except EnvironmentUnusable:
        return False
    return True


needs_python = pytest.mark.skipif(not has_python(), reason="pyenv install 3.6")


@pytest.fixture
def start_queens(start: Start) -> Start:
    return lambda *words: start(*SMALL, *words)


def test_without_python_3_6_one_line_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "_candidates", lambda _: iter(()))
    with pytest.raises(EnvironmentUnusable, match=r"^not installed: python3\.6, [^\n]*$"):
        deployment.up(name, settings.read(map(settings.split, SMALL)), quietly, owned=True)


@needs_python
def test_uuid_tokens_are_rows_beside_the_expired_ones(start_queens: Start) -> None:
    started = start_queens("token=uuid", "expired-tokens=300")
    assert_serves(started)
    assert len(token_of(started.environment_variables())) == 32
    facts = dict(started.facts())
    assert (facts["token"], facts["expired tokens"]) == ("uuid", "300")
    assert facts["python"].startswith("3.6.")
    [file] = started.folder.glob("data/*/keystone.db")
    with closing(sqlite3.connect(file)) as base:
        expired = "SELECT COUNT(*) FROM token WHERE expires < datetime('now')"
        assert base.execute(expired).fetchone() == (300,)


@needs_python
def test_fernet_serves_on_the_same_release(start_queens: Start) -> None:
    started = start_queens("token=fernet")
    assert_serves(started)
    assert len(token_of(started.environment_variables())) > 100
