"""Hosts of their own network on this machine: namespaces on one bridge. Needs root.

Each of the processes that run tests side by side has a network of its own; another run of the tests
waits for it.
"""

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROCESS = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
BRIDGE = f"lsbr{PROCESS}"
HERE = f"10.213.{PROCESS}.1"


@dataclass(frozen=True)
class NetworkHost:
    """A namespace with one address."""

    name: str
    address: str

    def command(self, *words: str) -> list[str]:
        """Return the command that runs `words` there."""
        return ["ip", "netns", "exec", self.name, *words]

    def cut_off(self) -> None:
        """Take its link down."""
        ip("link", "set", f"ls{self.name}", "down")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def network(count: int) -> Iterator[Sequence[NetworkHost]]:
    """Make hosts and a bridge to this machine (`HERE`); remove them at the end."""
    hosts = [
        NetworkHost(f"lshost{PROCESS}-{n}", f"10.213.{PROCESS}.{n + 1}")
        for n in range(1, count + 1)
    ]
    with (Path(tempfile.gettempdir()) / f"loadstone-test-network-{PROCESS}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove(hosts)  # what a test that was killed has left
        try:
            make(hosts)
            yield hosts
        finally:
            remove(hosts)


def make(hosts: Sequence[NetworkHost]) -> None:
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("address", "add", f"{HERE}/24", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")
    for host in hosts:
        ip("netns", "add", host.name)
        outside = f"ls{host.name}"
        ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", host.name)
        ip("link", "set", outside, "master", BRIDGE, "up")
        inside = ("-n", host.name)
        ip(*inside, "address", "add", f"{host.address}/24", "dev", "eth0")
        ip(*inside, "link", "set", "eth0", "up")
        ip(*inside, "link", "set", "lo", "up")


def remove(hosts: Sequence[NetworkHost]) -> None:
    # The links by themselves: a namespace goes with its last process only.
    links = [f"ls{host.name}" for host in hosts]
    for words in (
        *(("link", "delete", link) for link in (*links, BRIDGE)),
        *(("netns", "delete", host.name) for host in hosts),
    ):
        subprocess.run(["ip", *words], check=False, capture_output=True)
