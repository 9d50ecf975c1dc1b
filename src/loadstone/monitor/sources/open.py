"""Opens the sources named by the user or a lab."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from urllib.parse import urlsplit

from loadstone.errors import InvalidInput
from loadstone.monitor.service import Members
from loadstone.monitor.source import Source
from loadstone.monitor.sources.address import MonitorAddress, read_address
from loadstone.monitor.sources.apache import ApacheSource
from loadstone.monitor.sources.haproxy import HaproxySource
from loadstone.monitor.sources.jvm import JvmSource
from loadstone.monitor.sources.machine import Machine
from loadstone.monitor.sources.mariadb import MariaDbSource
from loadstone.monitor.sources.memcached import MemcachedSource
from loadstone.monitor.sources.nginx import NginxSource
from loadstone.monitor.sources.postgres import PostgresSource
from loadstone.monitor.sources.processes import Processes
from loadstone.monitor.sources.prometheus import QUERIES, Credentials, Prometheus, read_queries
from loadstone.monitor.sources.slapd import SlapdSource
from loadstone.monitor.sources.ssh import read_host
from loadstone.monitor.sources.uwsgi import UwsgiSource

PROMETHEUS_OPTIONS = ("queries", "user", "password-file", "token-file")
KINDS: dict[str, Callable[[MonitorAddress], Source]] = {
    "apache": ApacheSource,
    "haproxy": HaproxySource,
    "jvm": JvmSource,
    "mariadb": MariaDbSource,
    "memcached": MemcachedSource,
    "nginx": NginxSource,
    "postgres": PostgresSource,
    "slapd": SlapdSource,
    "uwsgi": UwsgiSource,
}


def open_source(text: str, taken: set[str] | None = None) -> Source:
    """Return the source of prometheus=URL[,NAME=VALUE...], ssh=HOST=HOST or a service's URL.

    A name that is `taken` gets a number, because counters of two sources make no series.
    """
    kind, equals, rest = text.partition("=")
    if equals and kind == "ssh":
        return read_host(rest)
    if equals and kind == "prometheus":
        return _prometheus(rest)
    address = read_address(text, tuple(KINDS))
    if taken is not None:
        names = chain((address.name,), (f"{address.kind}-{number}" for number in count(2)))
        address = replace(address, name=next(name for name in names if name not in taken))
        taken.add(address.name)
    return KINDS[address.kind](address)


def open_sources(
    members: Members, statistics: Iterable[str] = (), watched: Iterable[str] = ()
) -> tuple[Source, ...]:
    """Return this machine, a service's processes and counters, and the sources to be watched."""
    taken: set[str] = set()
    # One that is named twice is read once: two readings of one counter look like resets.
    opened = (open_source(text, taken) for text in dict.fromkeys((*statistics, *watched)))
    return (Machine(), Processes(members), *opened)


def _prometheus(rest: str) -> Prometheus:
    url, *options = rest.split(",")
    _check_url(url)
    given: dict[str, str] = {}
    for option in options:
        name, _, value = option.partition("=")
        if name not in PROMETHEUS_OPTIONS or not value or name in given:
            known = ", ".join(f"{one}=..." for one in PROMETHEUS_OPTIONS)
            raise InvalidInput(
                f"--monitor prometheus={url},...: after the URL may follow {known}, each once"
            )
        given[name] = value
    queries = Path(given["queries"]) if "queries" in given else QUERIES
    return Prometheus(url, read_queries(queries), _credentials(url, given))


def _check_url(url: str) -> None:
    """Refuse a URL that may hold a secret, without repeating it."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # its message quotes what may be a password
        raise InvalidInput(
            "--monitor prometheus=...: must be a URL such as http://prometheus:9090"
        ) from None
    if "@" in url or parts.query or parts.fragment:
        raise InvalidInput(
            "--monitor prometheus=...: no user, password or query in the URL; write the password "
            "to a file and give prometheus=URL,user=NAME,password-file=FILE"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(
            f"--monitor prometheus={url}: must be a URL such as http://prometheus:9090"
        )


def _credentials(url: str, given: Mapping[str, str]) -> Credentials | None:
    user, password, token = (given.get(one) for one in ("user", "password-file", "token-file"))
    if (user is None) != (password is None) or (token is not None and user is not None):
        raise InvalidInput(
            f"--monitor prometheus={url},...: user=NAME and password-file=FILE go together, "
            "or token-file=FILE alone"
        )
    file = password or token
    return None if file is None else Credentials(Path(file), user or "")
