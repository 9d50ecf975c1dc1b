"""Every level of every setting, against the real thing."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
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

pytestmark = pytest.mark.live

Start = Callable[..., Deployment]


def assert_facts(started: Deployment, expected: dict[str, str]) -> None:
    facts = dict(started.facts())
    assert {name: facts[name][: len(begin)] for name, begin in expected.items()} == expected


def test_two_nodes_behind_haproxy_serve_with_mariadb_and_memcached(
    balanced_keystone: Deployment,
) -> None:
    assert_serves(balanced_keystone)
    expected = {"nodes": "2", "database": "MariaDB", "cache server": "memcached"}
    assert_facts(balanced_keystone, expected | {"storage": "tmpfs", "cache": "memcached-pool"})


def test_nginx_serves_with_postgresql_and_jws(nginx_keystone: Deployment) -> None:
    assert_serves(nginx_keystone)
    expected = {"web server": "nginx", "application server": "uwsgi", "token": "jws"}
    assert_facts(nginx_keystone, expected | {"database": "PostgreSQL", "storage": "tmpfs"})


def test_apache_serves_with_a_cache_in_memory(apache_keystone: Deployment) -> None:
    assert_serves(apache_keystone)
    assert_facts(apache_keystone, {"web server": "apache", "cache": "memory"})


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("web=gunicorn", "workers=2", "cache=off"), {"web server": "gunicorn", "cache": "off"}),
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
    deployment.down(started.name, purge=True)
    assert processes.marked(started.folder) == ()
    assert not started.folder.exists()


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
    mapper, distribution, port = (ports.choose(None) for _ in range(3))
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
