"""Counters of real servers, beside what a client knows that it did."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab_client import skipping_without_servers, token_of, until, validation_of

from loadstone.lab.deployment import Deployment
from loadstone.lab.parts.server import Site, listens
from loadstone.lab.ports import choose
from loadstone.lab.programs import Program, check
from loadstone.monitor.metrics import Metrics
from loadstone.monitor.sampler import Monitor
from loadstone.monitor.sources.open import open_source, open_sources

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

VALIDATIONS = 20


def watched(deployment: Deployment, requests: Callable[[], None]) -> Metrics:
    """Send requests between two looks."""
    with Monitor(
        open_sources(deployment.members, deployment.statistics()), every_s=1000
    ) as monitor:
        since_s = monitor.sample()
        requests()
        monitor.sample()
        assert monitor.missing == ()
        return monitor.metrics(since_s)


def validated(deployment: Deployment) -> Metrics:
    """Validate a token VALIDATIONS times between two looks; it is the administrator's own."""
    token = token_of(deployment.environment_variables())

    def validate() -> None:
        for _ in range(VALIDATIONS):
            assert validation_of(deployment.url, token).status_code == 200

    return watched(deployment, validate)


def test_uwsgi_haproxy_mariadb_and_memcached_count_what_was_asked(balanced_keystone) -> None:
    metrics = validated(balanced_keystone)
    nodes = [metrics.increase(f"uwsgi-{n}", "requests_total") for n in (1, 2)]
    # haproxy's health checks reach the nodes, too; its own count has the clients' alone.
    assert metrics.increase("haproxy/clients/frontend", "requests_total") == VALIDATIONS
    assert min(nodes) >= VALIDATIONS / 2
    assert metrics.increase("memcached", "gets_total") >= VALIDATIONS
    assert metrics.increase("memcached", "hits_total") > 0
    assert metrics.last("mariadb", "connections_limit") == 400
    assert metrics.increase("mariadb", "inserts_total") == 0
    assert metrics.increase("keystone", "cpu_seconds_total") is not None
    assert metrics.last("keystone", "processes") == 6  # two masters, four workers
    assert metrics.last("database", "processes") == 1
    assert metrics.increase("balancer", "cpu_seconds_total") is not None


def test_statements_of_the_monitor_itself_are_not_counted(balanced_keystone) -> None:
    sources = open_sources(balanced_keystone.members, balanced_keystone.statistics())
    with Monitor(sources, every_s=1000) as monitor:
        since_s = monitor.sample()
        for _ in range(10):
            monitor.sample()
        metrics = monitor.metrics(since_s)
    assert metrics.increase("mariadb", "statements_total") == 0
    assert metrics.increase("mariadb", "selects_total") == 0


def test_postgres_nginx_and_slapd_count_what_was_asked(nginx_keystone) -> None:
    user = nginx_keystone.directory_users()[0]
    metrics = watched(nginx_keystone, lambda: [token_of(user) for _ in range(5)])
    assert metrics.increase("nginx", "requests_total") == 5 + 1  # and its own page
    assert metrics.increase("uwsgi", "requests_total") == 5
    # Keystone keeps bound connections, so there may be fewer binds than logins.
    assert metrics.increase("slapd", "binds_total") >= 1
    assert metrics.increase("slapd", "searches_total") >= 5
    # Of 400, three are for superusers. Keystone has at least one, and the monitor one.
    assert metrics.last("postgres", "connections_limit") == 397
    assert metrics.last("postgres", "connections") >= 2
    assert metrics.last("directory", "processes") == 1


def test_apaches_daemons_are_keystone_and_the_rest_is_the_web_server(apache_keystone) -> None:
    metrics = validated(apache_keystone)
    assert metrics.last("keystone", "processes") == 2
    assert metrics.last("web", "processes") >= 2
    assert metrics.increase("apache", "requests_total") >= VALIDATIONS
    assert metrics.increase("keystone", "cpu_seconds_total") is not None


def test_the_statistics_of_uwsgi_are_for_its_owner_only(lab_keystone) -> None:
    # They show requests, and with them tokens.
    (path,) = (lab_keystone.folder / "run").glob("*.stats")
    assert path.stat().st_mode & 0o077 == 0
    assert lab_keystone.folder.stat().st_mode & 0o077 == 0


def test_the_monitors_database_user_may_read_counters_only(balanced_keystone) -> None:
    import pymysql

    (url,) = [one for one in balanced_keystone.statistics() if one.startswith("mariadb")]
    source = open_source(url)
    address = source.address
    with (
        contextlib.closing(
            pymysql.connect(
                host=address.host, port=address.port, user=address.user, password=address.password
            )
        ) as link,
        link.cursor() as cursor,
    ):
        with pytest.raises(pymysql.MySQLError, match="denied"):
            cursor.execute("SELECT * FROM keystone.user")
        cursor.execute("SHOW DATABASES")
        assert "keystone" not in [name for (name,) in cursor.fetchall()]


def test_loadstone_monitor_shows_a_labs_resources_as_data(lab_keystone) -> None:
    command = [sys.executable, "-m", "loadstone", "monitor", "--lab", lab_keystone.name]
    command += ["--for", "2s", "--json", "-", "--monitor", "memcached://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    names = [one["name"] for one in found["resources"]]
    assert "Keystone's CPU" in names
    assert "Keystone's worker threads" in names
    assert "the machine's CPU" in names
    assert done.stderr == ("memcached is not watched: 127.0.0.1:1: Connection refused\n")
    assert found["not_watched"] == [
        {"source": "memcached", "why": "127.0.0.1:1: Connection refused"}
    ]


@contextlib.contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


PROMETHEUS = """\
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: node
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def test_a_real_prometheus_gives_the_cores_that_node_exporter_saw(tmp_path: Path) -> None:
    with skipping_without_servers():
        check([Program(name, name) for name in ("prometheus", "prometheus-node-exporter")])
    node, server = choose(), choose()
    (tmp_path / "prometheus.yml").write_text(PROMETHEUS.format(port=node))
    exporter = ("prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{node}")
    prometheus = (
        "prometheus",
        f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{server}",
    )
    with running(*exporter), running(*prometheus):
        source = open_source(f"prometheus=http://127.0.0.1:{server}")
        found = []

        def has_cores() -> bool:
            with contextlib.suppress(Exception):  # neither listens at once, nor scrapes at once
                source._next_s = 0.0
                found[:] = source.read()
            return any(one.metric == "cpu_busy_seconds_total" for one in found)

        until(has_cores, "Prometheus has no cores")
        source.close()
    cores = [one for one in found if one.metric == "cpu_busy_seconds_total"]
    assert len(cores) == os.cpu_count()
    assert {one.source.partition("/")[0] for one in cores} == {f"machine@127.0.0.1:{node}"}
    (total,) = [one for one in found if one.metric == "memory_total_bytes"]
    assert total.value == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


SSHD = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
"""


@pytest.fixture
def ssh_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A real sshd on loopback, and an ssh that has a key for it."""
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
    if sshd is None:
        if os.environ.get("CI"):
            pytest.fail("sshd is not installed; install: apt-get install openssh-server")
        pytest.skip("sshd is not installed")
    for name in ("host", "user"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(keygen, check=True)
    port = choose()
    (tmp_path / "sshd_config").write_text(SSHD.format(port=port, folder=tmp_path))
    options = f"-p {port} -i {tmp_path}/user -o UserKnownHostsFile=/dev/null"
    options += " -o StrictHostKeyChecking=no -o LogLevel=ERROR -F none"
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} {options} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr("loadstone.monitor.sources.ssh.own_kernel", lambda: "another machine's")
    Path("/run/sshd").mkdir(exist_ok=True)
    with running(sshd, "-D", "-f", str(tmp_path / "sshd_config")):
        until(lambda: listens(Site(tmp_path, port)), "sshd does not listen")
        yield "127.0.0.1"


def test_another_machine_is_read_over_ssh(ssh_host: str, lab_keystone) -> None:
    token = token_of(lab_keystone.environment_variables())
    with Monitor([open_source(f"ssh={ssh_host}")]) as monitor:

        def has_two() -> bool:
            validation_of(lab_keystone.url, token)
            assert monitor.missing == ()
            times, _ = monitor.metrics().of(f"keystone@{ssh_host}", "cpu_seconds_total")
            return len(times) >= 3

        until(has_two, "nothing came over ssh")
        metrics = monitor.metrics()
    assert metrics.increase(f"keystone@{ssh_host}", "cpu_seconds_total") > 0
    assert metrics.increase(f"machine@{ssh_host}/cpu0", "cpu_busy_seconds_total") > 0
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert metrics.last(f"machine@{ssh_host}", "memory_total_bytes") == total


def test_a_host_that_refuses_is_named_with_sshs_own_words(ssh_host: str, tmp_path: Path) -> None:
    (tmp_path / "user.pub").write_text("")
    with Monitor([open_source(f"ssh={ssh_host}")]) as monitor:
        until(lambda: monitor.missing != (), "the refusal was not noticed")
    (missing,) = monitor.missing
    assert missing.source == f"ssh {ssh_host}"
    assert "Permission denied" in missing.why
