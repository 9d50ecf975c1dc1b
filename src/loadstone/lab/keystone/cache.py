"""Keystone's cache settings, and the servers that they need."""

from pathlib import Path
from typing import assert_never

from loadstone.lab.keystone.settings import Cache, LabSettings, Option
from loadstone.lab.parts.memcached import Memcached
from loadstone.lab.parts.part import Part
from loadstone.lab.parts.server import Site
from loadstone.lab.ports import HOST, Ports

MEMORY = "dogpile.cache.memory"
BACKENDS = {
    Cache.MEMCACHED: "dogpile.cache.pymemcache",
    Cache.MEMCACHED_POOL: "oslo_cache.memcache_pool",
}
ENABLED = ("cache", "enabled", "true")
_LEVELS = {"dogpile.cache.null": Cache.LOCAL, MEMORY: Cache.MEMORY} | {
    backend: level for level, backend in BACKENDS.items()
}
_FALSE = ("false", "0", "off", "no")  # as oslo.config reads them


def cache_in_use(settings: LabSettings) -> str:
    """Return the cache's level, or the backend that the user's `conf.cache.backend` names."""
    own = {option: value for section, option, value in settings.conf if section == "cache"}
    is_off = settings.cache is Cache.OFF
    if own["enabled"].lower() in _FALSE if "enabled" in own else is_off:
        return Cache.OFF
    if "backend" in own:
        return _LEVELS.get(own["backend"], own["backend"])
    return Cache.LOCAL if is_off else settings.cache


def cache(
    level: Cache, count: int, folder: Path, ports: Ports
) -> tuple[tuple[Part, ...], tuple[Option, ...]]:
    """Return `count` servers if a cache level needs any, and its options for keystone.conf."""
    match level:
        case Cache.OFF:
            return (), (("cache", "enabled", "false"),)
        case Cache.LOCAL:
            return (), (ENABLED,)
        case Cache.MEMORY:
            return (), (ENABLED, ("cache", "backend", MEMORY))
        case Cache.MEMCACHED | Cache.MEMCACHED_POOL:
            return _memcached(BACKENDS[level], count, folder, ports)
        case _:
            assert_never(level)


def _memcached(
    backend: str, count: int, folder: Path, ports: Ports
) -> tuple[tuple[Part, ...], tuple[Option, ...]]:
    suffixes = [f"-{number}" for number in range(1, count + 1)] if count > 1 else [""]
    sites = [
        Site(folder, ports.allocate(f"{Memcached.kind}{suffix}"), suffix=suffix)
        for suffix in suffixes
    ]
    addresses = ",".join(f"{HOST}:{site.port}" for site in sites)
    return tuple(Memcached(site) for site in sites), (
        ENABLED,
        ("cache", "backend", backend),
        ("cache", "memcache_servers", addresses),
    )
