"""Workers on hosts that ssh reaches."""

from importlib.metadata import version as version_of
from pathlib import Path

import pytest

from loadstone.engine.fleet import ssh
from loadstone.engine.fleet.hosts_file import LAB, SshFleet, SshHost
from loadstone.engine.fleet.ssh import worker_names
from loadstone.engine.version import version

pytestmark = pytest.mark.pure


def test_workers_of_a_host_that_is_named_twice_have_names_of_their_own() -> None:
    hosts = (SshHost("host-2", 2), SshHost("host-3"), SshHost("host-2", role=LAB))
    names = [worker_names(hosts, place) for place in range(len(hosts))]
    assert names == [("host-2-1", "host-2-2"), ("host-3-1",), ("host-2-3",)]


def test_what_a_login_shell_prints_is_not_taken_for_a_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = SshHost("host-2", python="/opt/python")
    fleet = SshFleet(Path("fleet.yaml"), "10.0.0.1", (host,))
    ours = f"{version()} {version_of('distributed')}"
    monkeypatch.setattr(ssh, "_run", lambda *_: f"Welcome to host-2\n{ours}")
    assert ssh._ready(fleet, host) == "/opt/python"
