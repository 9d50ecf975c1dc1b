"""The processes of a target that was chosen by its URL."""

import os
from types import SimpleNamespace

import psutil
import pytest

from loadstone.cloud.cloud import Endpoint
from loadstone.monitor.service import ServiceProcess
from loadstone.target.local_service import members_at

URL = Endpoint.parse("http://localhost:5000/v3")


@pytest.fixture(autouse=True)
def listening(tmp_path, monkeypatch):
    """Port 5000 is listened to by this process."""
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    one = SimpleNamespace(
        status=psutil.CONN_LISTEN, laddr=SimpleNamespace(port=5000), pid=os.getpid()
    )
    monkeypatch.setattr(psutil, "net_connections", lambda _: [one])


def started_as(monkeypatch, *command):
    monkeypatch.setattr(psutil.Process, "cmdline", lambda _: list(command))


@pytest.mark.parametrize(
    "command",
    [
        ("/usr/bin/python3", "/opt/venv/bin/loadstone", "serve", "--port=5000"),
        ("/usr/bin/python3", "-P", "-m", "loadstone", "serve", "--until-stdin-closes"),
    ],
)
def test_the_process_of_loadstone_serve_is_found_by_its_port(monkeypatch, command):
    started_as(monkeypatch, *command)
    assert members_at(URL)() == (ServiceProcess(os.getpid(), "loadstone serve"),)
    assert members_at(Endpoint.parse("http://127.0.0.1:5001/v3"))() is None


def test_of_another_service_nobody_knows_all_processes(monkeypatch):
    started_as(monkeypatch, "/usr/sbin/haproxy", "-f", "/etc/haproxy/haproxy.cfg")
    assert members_at(URL)() is None
