"""Opens the sources named by the user or a lab."""

from collections.abc import Callable, Iterable
from pathlib import Path

from loadstone.errors import InvalidInput
from loadstone.monitor.service import Members
from loadstone.monitor.source import Source
from loadstone.monitor.sources.address import Address, read_address
from loadstone.monitor.sources.apache import ApacheSource
from loadstone.monitor.sources.haproxy import HaproxySource
from loadstone.monitor.sources.machine import Machine
from loadstone.monitor.sources.mariadb import MariaDbSource
from loadstone.monitor.sources.memcached import MemcachedSource
from loadstone.monitor.sources.nginx import NginxSource
from loadstone.monitor.sources.postgres import PostgresSource
from loadstone.monitor.sources.processes import Processes
from loadstone.monitor.sources.prometheus import QUERIES, Prometheus, read_queries
from loadstone.monitor.sources.slapd import SlapdSource
from loadstone.monitor.sources.ssh import read_host
from loadstone.monitor.sources.uwsgi import UwsgiSource

KINDS: dict[str, Callable[[Address], Source]] = {
    "apache": ApacheSource,
    "haproxy": HaproxySource,
    "mariadb": MariaDbSource,
    "memcached": MemcachedSource,
    "nginx": NginxSource,
    "postgres": PostgresSource,
    "slapd": SlapdSource,
    "uwsgi": UwsgiSource,
}


def open_source(text: str) -> Source:
    """Return the source of prometheus=URL[,queries=FILE], ssh=HOST or a service's URL."""
    kind, equals, rest = text.partition("=")
    if equals and kind == "ssh":
        return read_host(rest)
    if equals and kind == "prometheus":
        return _prometheus(rest)
    address = read_address(text, tuple(KINDS))
    return KINDS[address.kind](address)


def open_sources(
    members: Members, statistics: Iterable[str] = (), watched: Iterable[str] = ()
) -> tuple[Source, ...]:
    """Return this machine, a service's processes and counters, and the sources to be watched."""
    opened = (open_source(text) for text in (*statistics, *watched))
    return (Machine(), Processes(members), *opened)


def _prometheus(rest: str) -> Prometheus:
    url, _, option = rest.partition(",")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(
            f"--monitor prometheus={url}: must be a URL such as http://prometheus:9090"
        )
    name, _, path = option.partition("=")
    if option and (name != "queries" or not path):
        raise InvalidInput(f"--monitor prometheus=...,{option}: only queries=FILE may follow")
    return Prometheus(url, read_queries(Path(path) if path else QUERIES))
