"""Derived facts: the capacity of the service and its demand on other services."""

import math

from loadstone.audit.facts import Facts, MissingFact, Value
from loadstone.diagnosis.service import CACHE_REGIONS


def read(known: Facts) -> Facts:
    """Return the facts derived from those of one host."""
    values: dict[str, Value] = {}
    missing: dict[str, str] = {}
    for name, formula in (
        ("web.cpus", _cpus),
        ("web.memory_mb", _memory_mb),
        ("capacity.logins_per_s", _logins),
        ("capacity.db_connections", _connections),
        ("capacity.db_connections_most", _most_connections),
        ("capacity.cache_connections", _cache_connections),
        ("capacity.keys_needed", _keys),
        ("capacity.revocation_events", _events),
        ("capacity.workers", lambda facts: _n(facts, "web.processes") * _n(facts, "web.threads")),
    ):
        try:
            values[name] = formula(known)
        except MissingFact as lacking:
            missing[name] = f"{lacking.name}: {lacking.reason}"
        except (TypeError, ZeroDivisionError):
            missing[name] = "a setting that it is computed from is not a number"
    return Facts(values, missing)


def _n(facts: Facts, name: str) -> float:
    value = facts.get(name)
    if isinstance(value, int | float):
        return value
    raise TypeError(name)


def _cpus(facts: Facts) -> int:
    """Return the CPUs that Keystone may use: of its container, or else of the host."""
    cpus = _n(facts, "host.cpus")
    is_limited = facts.knows("web.cpu_quota")
    return int(min(cpus, math.ceil(_n(facts, "web.cpu_quota"))) if is_limited else cpus)


def _memory_mb(facts: Facts) -> float:
    """Return the memory that Keystone may use: of its container, or else of the host."""
    whole = _n(facts, "host.memory_mb")
    limited = facts.knows("web.memory_limit_mb")
    return min(whole, _n(facts, "web.memory_limit_mb")) if limited else whole


def _logins(facts: Facts) -> float:
    """Cores x 1000 / milliseconds of one password check: at most that many logins per second.

    A check leaves Python's lock to other threads, so that those of one process check side by side.
    """
    quotas = [_n(facts, name) for name in ("host.cpu_quota", "web.cpu_quota") if facts.knows(name)]
    threads = _n(facts, "web.processes") * _n(facts, "web.threads")
    cores = min(*quotas, _n(facts, "host.cpus"), threads)
    return cores * 1000 / _n(facts, "keystone.password_check_ms")


def _connections(facts: Facts) -> int:
    """A process uses one connection per thread and one more, up to its pool's size."""
    each = min(_n(facts, "web.threads") + 1, _pool(facts))
    return int(_n(facts, "web.processes") * each)


def _most_connections(facts: Facts) -> int:
    """As many as the pools allow; without a limit, as many as the threads use."""
    pool = _pool(facts)
    each = _n(facts, "web.threads") + 1 if math.isinf(pool) else pool
    return int(_n(facts, "web.processes") * each)


def _pool(facts: Facts) -> float:
    """Return the connections of one process's pool; SQLAlchemy's may have no limit."""
    size, overflow = (
        _n(facts, "conf.database.max_pool_size"),
        _n(facts, "conf.database.max_overflow"),
    )
    return math.inf if size <= 0 or overflow < 0 else size + overflow


def _cache_connections(facts: Facts) -> int:
    """Each of Keystone's regions has connections of its own, one per thread, or a pool of them."""
    each = _n(facts, "web.threads")
    if facts.get("conf.cache.backend") == "oslo_cache.memcache_pool":
        each = min(each, _n(facts, "conf.cache.memcache_pool_maxsize"))
    return int(_n(facts, "web.processes") * CACHE_REGIONS * each)


def _keys(facts: Facts) -> int:
    """Keystone's FAQ: lifetime of a token over the period of rotation, and two more."""
    lifetime_s = _n(facts, "conf.token.expiration") + _n(facts, "conf.token.allow_expired_window")
    return math.ceil(lifetime_s / _n(facts, "fernet.rotation_s")) + 2


def _events(facts: Facts) -> float:
    """Events per second times the time that each is kept (keystone/revoke/backends/base.py)."""
    kept_s = _n(facts, "conf.token.expiration") + _n(facts, "conf.revoke.expiration_buffer")
    return _n(facts, "revocation.last_hour") / 3600 * kept_s
