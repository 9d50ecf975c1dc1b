"""Every level of every setting, against the real thing."""

import configparser
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from lab_client import (
    assert_serves,
    quietly,
    skipping_without_servers,
    token_of,
    until,
    validation_of,
)

from loadstone.lab import composition, deployment, ports, processes, state
from loadstone.lab.deployment import Deployment
from loadstone.lab.parts.rabbitmq import PortMapper, RabbitMq
from loadstone.lab.parts.server import Site
from loadstone.lab.state import DeploymentPhase, DeploymentState
from loadstone.observers.profile import workers

pytestmark = pytest.mark.live

Start = Callable[..., Deployment]


def assert_facts(started: Deployment, expected: dict[str, str]) -> None:
    facts = dict(started.facts())
    assert {name: facts[name][: len(begin)] for name, begin in expected.items()} == expected


def assert_workers_are_found(started: Deployment) -> None:
    """They are what a comparison in turns binds to cores, and what a profile samples."""
    settings = dict(started.state.settings)
    found = list(workers(started.identity_members))
    assert len(found) == int(settings["workers"]) * int(settings["nodes"])


def test_two_nodes_behind_haproxy_serve_with_mariadb_and_memcached(
    balanced_keystone: Deployment,
) -> None:
    assert_serves(balanced_keystone)
    assert_workers_are_found(balanced_keystone)
    expected = {"nodes": "2", "database": "MariaDB", "cache server": "memcached"}
    assert_facts(balanced_keystone, expected | {"storage": "tmpfs", "cache": "memcached-pool"})


def test_nginx_serves_with_postgresql_and_jws(nginx_keystone: Deployment) -> None:
    assert_serves(nginx_keystone)
    assert_workers_are_found(nginx_keystone)
    expected = {"web server": "nginx", "application server": "uwsgi", "token": "jws"}
    assert_facts(nginx_keystone, expected | {"database": "PostgreSQL", "storage": "tmpfs"})


def test_apache_serves_with_a_cache_in_memory(apache_keystone: Deployment) -> None:
    assert_serves(apache_keystone)
    assert_workers_are_found(apache_keystone)
    assert_facts(apache_keystone, {"web server": "apache", "cache": "memory"})


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (
            ("web=gunicorn", "workers=2", "cache=off", "allocator=malloc", "gc-threshold=10000"),
            {
                "web server": "gunicorn",
                "cache": "off",
                "Python's allocator": "malloc",
                "garbage collection": "after 10000 objects",
            },
        ),
        (("web=granian", "workers=1", "threads=2"), {"web server": "granian", "threads": "2"}),
        pytest.param(
            ("web=single",), {"web server": "wsgiref", "workers": "1"}, marks=pytest.mark.verify
        ),
        pytest.param(
            ("workers=1", "cache=memcached", "memcached-servers=3", "database=mariadb"),
            {"cache": "memcached", "database": "MariaDB"},
            marks=pytest.mark.verify,
        ),
        pytest.param(
            *(("workers=1", "release=25.0.0"), {"release": "keystone 25.0.0"}),
            marks=pytest.mark.verify,
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_it_serves_and_says_what_it_is(
    start: Start, words: tuple[str, ...], facts: dict[str, str]
) -> None:
    started = start(*words)
    assert_serves(started)
    assert_facts(started, facts)
    assert_workers_are_found(started)
    for process in processes.marked(started.folder):
        variables = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        assert (b"PYTHONMALLOC=malloc" in variables) == ("allocator=malloc" in words)
        assert (b"LOADSTONE_GC_THRESHOLD=10000" in variables) == ("gc-threshold=10000" in words)
    deployment.down(started.name, purge=True)
    assert processes.marked(started.folder) == ()
    assert not started.folder.exists()


def answer_of(started: Deployment, statement: str) -> str:
    """Return what the database answers to a user of Keystone."""
    conf = configparser.RawConfigParser(strict=False)
    conf.read(started.folder / "secret" / "keystone.conf")
    script = (
        "import sys, sqlalchemy\n"
        "with sqlalchemy.create_engine(sys.stdin.read()).connect() as connection:\n"
        f"    print(connection.execute(sqlalchemy.text({statement!r})).scalar())"
    )
    return subprocess.run(
        (started.python, "-c", script),
        input=conf["database"]["connection"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


@pytest.mark.verify
@pytest.mark.parametrize(
    ("database", "wanted", "answers"),
    [
        (
            "mariadb",
            ("db-flush=second", "db-isolation=read-committed"),
            {
                "SELECT @@innodb_flush_log_at_trx_commit": "2",
                "SELECT @@global.tx_isolation": "READ-COMMITTED",
            },
        ),
        (
            "postgres",
            ("db-flush=second", "db-isolation=repeatable-read"),
            {"SHOW synchronous_commit": "off", "SHOW transaction_isolation": "repeatable read"},
        ),
        (
            "mariadb",
            (),
            {
                "SELECT @@innodb_flush_log_at_trx_commit": "1",
                "SELECT @@global.tx_isolation": "REPEATABLE-READ",
            },
        ),
        (
            "postgres",
            (),
            {"SHOW synchronous_commit": "on", "SHOW transaction_isolation": "read committed"},
        ),
    ],
)
def test_the_database_keeps_transactions_as_it_is_told(
    start: Start, database: str, wanted: tuple[str, ...], answers: dict[str, str]
) -> None:
    started = start("workers=1", f"database={database}", *wanted)
    assert_serves(started)
    assert {one: answer_of(started, one) for one in answers} == answers


@pytest.mark.verify
@pytest.mark.parametrize(
    ("level", "header"), [("both", "keep-alive"), ("client", "keep-alive"), ("none", "close")]
)
def test_haproxy_keeps_the_connections_that_it_is_told(
    start: Start, level: str, header: str
) -> None:
    started = start("nodes=2", "workers=1", f"keep-alive={level}")
    assert_serves(started)
    answer = requests.get(started.url, timeout=30)
    assert answer.headers.get("Connection", "keep-alive").lower() == header


@pytest.mark.verify
def test_nodes_share_the_load_and_a_dead_one_is_named(start: Start) -> None:
    started = start("nodes=2", "workers=1", "balance=leastconn")
    assert_serves(started)
    [node] = [r.process for r in started.state.records if r.part == "uwsgi-2" and r.process]
    os.kill(node.pid, signal.SIGKILL)
    until(lambda: started.failure() is not None, "the dead node was not noticed")
    assert "uwsgi-2" in started.failure()


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


def test_users_in_ldap_have_tokens_and_the_administrator_is_in_sql(
    nginx_keystone: Deployment,
) -> None:
    assert_facts(nginx_keystone, {"identity": "ldap"})
    user = nginx_keystone.directory_users()[-1]
    answer = validation_of(nginx_keystone.url, token_of(user))
    assert answer.json()["token"]["user"]["domain"]["id"] == "directory"
    holders = [
        path
        for path in nginx_keystone.folder.rglob("*")
        if path.is_file() and user["OS_PASSWORD"].encode() in path.read_bytes()
    ]
    assert {path.relative_to(nginx_keystone.folder).parts[0] for path in holders} == {"secret"}


def test_a_broker_serves_on_loopback_and_is_gone_afterwards(tmp_path: Path) -> None:
    """RabbitMQ without the compute cloud that uses it."""
    folder = tmp_path / "broker"
    mapper, distribution, port = (ports.choose() for _ in range(3))
    parts = (
        PortMapper(Site(folder, mapper)),
        RabbitMq(Site(folder, port), mapper, distribution, "a-password-of-the-broker"),
    )
    begun = DeploymentState("broker", "r", DeploymentPhase.STARTING, processes.boot_id(), ())
    state.write(folder, begun)
    try:
        with skipping_without_servers():
            started = composition.assemble(folder, begun, parts, quietly)
        assert composition.failure(started) is None
        command_lines = [
            Path(f"/proc/{process.pid}/cmdline").read_bytes()
            for process in processes.marked(folder)
        ]
        assert not [line for line in command_lines if b"a-password-of-the-broker" in line]
    finally:
        processes.end(processes.marked(folder))
    assert processes.marked(folder) == ()
