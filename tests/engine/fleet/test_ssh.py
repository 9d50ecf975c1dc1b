"""Workers on hosts that ssh reaches."""

import pytest

from loadstone.engine.fleet.hosts_file import LAB, SshHost
from loadstone.engine.fleet.ssh import worker_names

pytestmark = pytest.mark.pure


def test_workers_of_a_host_that_is_named_twice_have_names_of_their_own() -> None:
    hosts = (SshHost("host-2", 2), SshHost("host-3"), SshHost("host-2", role=LAB))
    names = [worker_names(hosts, place) for place in range(len(hosts))]
    assert names == [("host-2-1", "host-2-2"), ("host-3-1",), ("host-2-3",)]
