"""Keystone's cache settings, and the servers that they need."""

from pathlib import Path

from loadstone.lab.keystone.settings import Cache, LabSettings, Option
from loadstone.lab.parts.memcached import Memcached
from loadstone.lab.parts.server import Site
from loadstone.lab.ports import HOST, Ports

ENABLED = ("cache", "enabled", "true")
OPTIONS: dict[Cache, tuple[Option, ...]] = {
    Cache.OFF: (("cache", "enabled", "false"),),
    Cache.LOCAL: (ENABLED,),
    Cache.MEMORY: (ENABLED, ("cache", "backend", "dogpile.cache.memory")),
    Cache.MEMCACHED: (ENABLED, ("cache", "backend", "dogpile.cache.pymemcache")),
    Cache.MEMCACHED_POOL: (ENABLED, ("cache", "backend", "oslo_cache.memcache_pool")),
}
_LEVELS = {"dogpile.cache.null": Cache.LOCAL} | {
    value: level
    for level, options in OPTIONS.items()
    for _, option, value in options
    if option == "backend"
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
) -> tuple[tuple[Memcached, ...], tuple[Option, ...]]:
    """Return `count` servers if a cache level needs any, and its options for keystone.conf."""
    if not level.is_shared:
        return (), OPTIONS[level]
    suffixes = [f"-{number}" for number in range(1, count + 1)] if count > 1 else [""]
    sites = [
        Site(folder, ports.allocate(f"{Memcached.kind}{suffix}"), suffix=suffix)
        for suffix in suffixes
    ]
    addresses = ",".join(f"{HOST}:{site.port}" for site in sites)
    servers = ("cache", "memcache_servers", addresses)
    return tuple(map(Memcached, sites)), (*OPTIONS[level], servers)
