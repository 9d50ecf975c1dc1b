"""Keystone's cache settings, and the server that they need."""

from pathlib import Path
from typing import assert_never

from loadstone.lab.keystone.settings import Cache, Option
from loadstone.lab.parts.memcached import Memcached
from loadstone.lab.parts.part import Part
from loadstone.lab.parts.server import Site
from loadstone.lab.ports import HOST, Ports

ENABLED = ("cache", "enabled", "true")


def cache(level: Cache, folder: Path, ports: Ports) -> tuple[tuple[Part, ...], tuple[Option, ...]]:
    """Return the parts that a cache level needs, and its options for keystone.conf."""
    match level:
        case Cache.OFF:
            return (), (("cache", "enabled", "false"),)
        case Cache.LOCAL:
            return (), (ENABLED,)
        case Cache.MEMORY:
            return (), (ENABLED, ("cache", "backend", "dogpile.cache.memory"))
        case Cache.MEMCACHED:
            port = ports.allocate("memcached")
            return (Memcached(Site(folder, port)),), (
                ENABLED,
                ("cache", "backend", "dogpile.cache.pymemcache"),
                ("cache", "backend_argument", f"url:{HOST}:{port}"),
            )
        case Cache.MEMCACHED_POOL:
            port = ports.allocate("memcached")
            return (Memcached(Site(folder, port)),), (
                ENABLED,
                ("cache", "backend", "oslo_cache.memcache_pool"),
                ("cache", "memcache_servers", f"{HOST}:{port}"),
            )
        case _:
            assert_never(level)
