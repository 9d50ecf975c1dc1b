"""Facts of memcached as Keystone's host sees it, and of a memcached on the host itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from loadstone.audit.document import Document
from loadstone.audit.facts import Facts, Value
from loadstone.audit.readers import processes, service
from loadstone.audit.readers.sections import number


def read(document: Document) -> Facts:
    """Return the cache servers' facts."""
    own = processes.named(processes.read(document), "memcached")
    roles = frozenset({"cache"}) if own else frozenset[str]()
    values: dict[str, Value] = _arguments(own[0]) if own else {}
    found, reason = service.part(document, "memcached")
    servers = [server for server in found.get("servers", ()) if isinstance(server, dict)]
    if not servers:
        why = reason or "Keystone uses no memcached"
        return Facts(values, {"memcached.": why}, roles=roles)
    values["memcached.unreachable"] = tuple(
        f"{server.get('name')} ({server['error']})" for server in servers if "error" in server
    )
    alive = [server for server in servers if "error" not in server]
    if alive:
        values |= _statistics(alive)
    return Facts(values, {"memcached.": "no server answered"}, roles=roles)


def _arguments(process: processes.SeenProcess) -> dict[str, Value]:
    values: dict[str, Value] = {
        "memcached.memory_mb": number(process.option("-m", "--memory-limit")) or 64,
        "memcached.max_connections": number(process.option("-c", "--conn-limit")) or 1024,
    }
    if process.open_files:
        values["memcached.open_files"] = process.open_files
    return values


def _statistics(servers: Sequence[Mapping[str, Any]]) -> dict[str, Value]:
    """Return the figures of the worst server, and of all for hits."""

    def figures(name: str) -> list[float]:
        known = (number(str(server.get(name))) for server in servers)
        return [float(one) for one in known if one is not None]

    values: dict[str, Value] = {"memcached.rtt_ms": max(figures("rtt_ms"), default=0.0)}
    hits, misses = sum(figures("get_hits")), sum(figures("get_misses"))
    values["memcached.gets"] = int(hits + misses)
    values["memcached.hit_share"] = hits / (hits + misses) if hits + misses else 1.0
    values["memcached.evictions"] = int(sum(figures("evictions")))
    values["memcached.refused"] = int(
        sum(figures("listen_disabled_num")) + sum(figures("rejected_connections"))
    )
    values["memcached.connections"] = int(max(figures("curr_connections"), default=0))
    limits = figures("maxconns") or figures("max_connections")
    if limits:
        values["memcached.max_connections"] = int(min(limits))
    sizes = figures("limit_maxbytes")
    if sizes:
        values["memcached.memory_mb"] = int(min(sizes) / 2**20)
    return values
