"""Every level of every setting, against the real thing."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from lab_client import assert_serves, token_of, until, validation_of

from loadstone.keystone import deployment
from loadstone.keystone.deployment import Deployment
from loadstone.lab import processes

pytestmark = pytest.mark.live

Start = Callable[..., Deployment]


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        # Several levels each: what is tested is that each serves, not every pair of them.
        (
            ("web=nginx-uwsgi", "workers=1", "token=jws"),
            {"web server": "nginx", "application server": "uwsgi", "token": "jws"},
        ),
        (
            ("web=gunicorn", "workers=2", "cache=memcached", "database=mariadb"),
            {"web server": "gunicorn", "cache server": "memcached", "database": "MariaDB"},
        ),
        (
            ("web=granian", "workers=1", "threads=2", "cache=memcached-pool"),
            {"web server": "granian", "cache": "memcached-pool"},
        ),
        (("web=apache", "workers=1", "cache=memory"), {"web server": "apache", "cache": "memory"}),
        pytest.param(
            ("web=single", "cache=off"),
            {"web server": "wsgiref", "workers": "1", "cache": "off"},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(("workers=1", "release=25.0.0"), {"release": "keystone 25.0.0"}),
            marks=pytest.mark.slow,
        ),
        (
            ("workers=1", "database=postgres", "storage=tmpfs"),
            {"database": "PostgreSQL", "storage": "tmpfs"},
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_it_serves_and_says_what_it_is(
    start: Start, words: tuple[str, ...], facts: dict[str, str]
) -> None:
    started = start(*words)
    assert_serves(started)
    for name, value in facts.items():
        assert dict(started.facts())[name].startswith(value)
    deployment.down(started.name, purge=True)
    assert processes.marked(started.folder) == ()
    assert not started.folder.exists()


@pytest.mark.slow
def test_nodes_share_the_load_and_a_dead_one_is_named(start: Start) -> None:
    started = start("nodes=2", "workers=1", "balance=leastconn")
    assert_serves(started)
    assert dict(started.facts())["nodes"] == "2"
    [node] = [r.process for r in started.state.records if r.part == "uwsgi-2" and r.process]
    os.kill(node.pid, signal.SIGKILL)
    until(lambda: started.failure() is not None, "the dead node was not noticed")
    assert "uwsgi-2" in started.failure()


@pytest.mark.slow
def test_data_in_a_folder_of_the_users_goes_with_it(start: Start, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        started = start("workers=1", f"storage={folder}")
        [data] = folder.iterdir()
        assert next(data.rglob("keystone.db"))
        deployment.down(started.name)
    assert list(first.iterdir()) == []
    deployment.down(started.name, purge=True)
    assert list(second.iterdir()) == []


def test_users_in_ldap_have_tokens_and_the_administrator_is_in_sql(start: Start) -> None:
    started = start("workers=1", "identity=ldap")
    assert_serves(started)
    assert dict(started.facts())["identity"] == "ldap"
    user = started.directory_users()[-1]
    answer = validation_of(started.url, token_of(user))
    assert answer.json()["token"]["user"]["domain"]["id"] == "directory"
    holders = [
        path
        for path in started.folder.rglob("*")
        if path.is_file() and user["OS_PASSWORD"].encode() in path.read_bytes()
    ]
    assert {path.relative_to(started.folder).parts[0] for path in holders} == {"secret"}
