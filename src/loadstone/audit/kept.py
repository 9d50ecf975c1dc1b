"""Facts that every measurement keeps: the settings of the service, without volatile values.

`loadstone compare` shows in which of them two results differ.
"""

from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from loadstone.cloud.cloud import Endpoint
from loadstone.diagnosis.finding import AuditFinding
from loadstone.target.choice import NamedTarget, OwnLab, TargetChoice, place_of

if TYPE_CHECKING:
    from loadstone.audit.facts import HostFacts
    from loadstone.audit.transport import Host

TIMEOUT_S = 10.0
QUICK = {"AUDIT_QUICK": "1"}  # skips slow sections that hold no setting
KEPT = (
    *("conf.*", "uwsgi.*", "apache.*"),
    *("web.server", "web.processes", "web.threads", "web.open_files"),
    *("host.cpus", "host.cpu_quota", "host.memory_mb", "host.swap_mb", "host.swappiness"),
    *("host.governors",),
    *("host.tuned_profile", "host.somaxconn", "host.syn_backlog", "host.netdev_max_backlog"),
    *("host.local_ports", "host.tw_reuse", "host.is_virtual", "host.is_container", "host.selinux"),
    *("db.kind", "db.version", "db.max_connections", "db.buffer_mb", "db.applier_threads"),
    *("db.flush_log", "db.fsync", "db.is_galera", "db.query_cache_on", "db.skip_name_resolve"),
    *("memcached.max_connections", "memcached.memory_mb"),
    *("haproxy.balance", "haproxy.global_maxconn", "haproxy.frontend_maxconn", "haproxy.threads"),
    *("haproxy.server_maxconn", "haproxy.has_http_check"),
    *("keystone.version", "fernet.keys", "consumers.short_cache"),
)
# Names of files, and addresses, which differ between any two deployments of the lab.
_LEFT_OUT = (
    *("conf.file", "conf.cache_servers", "conf.cache.memcache_servers"),
    *("conf.cache.backend_argument", "uwsgi.file", "uwsgi.stats", "apache.file"),
    "uwsgi.processes",  # of one instance: web.processes has all
)
# Beginnings of the names of processes that run Keystone, and of those before it.
_KEYSTONE = ("keystone", "uwsgi", "gunicorn", "apache2", "httpd", "granian", "(wsgi:")
_FRONT = ("nginx", "haproxy")


@dataclass(frozen=True, slots=True)
class Kept:
    """Facts and findings about the service's settings, kept with a run."""

    facts: tuple[tuple[str, str], ...] = ()
    findings: tuple[AuditFinding, ...] = ()


def audited(choice: TargetChoice, endpoint: Endpoint) -> Kept:
    """Return facts and findings of a lab deployment, or of a Keystone on this machine.

    Empty for any other target. Never raises: facts that cannot be read are left out.
    """
    host = _host(choice, endpoint)
    if host is None:
        return Kept()
    # The rules are imported for a service that has settings here.
    from loadstone.audit.extract import extract
    from loadstone.audit.transport import collect

    [found] = collect([host], TIMEOUT_S)
    if found.document is None:
        return Kept()
    is_lab = not (isinstance(choice, NamedTarget) and choice.lab is None)
    known = extract(found.name, found.document, {"audit.is_lab": is_lab, "audit.hosts": 1})
    return Kept(of_host(known), findings(known))


def findings(host: "HostFacts") -> tuple[AuditFinding, ...]:
    """Return what the rules of the core find on a host, the most severe first."""
    from loadstone.audit.evaluate import evaluate
    from loadstone.audit.rule import select

    return tuple(
        AuditFinding(
            one.rule.id,
            one.severity.value,
            one.message,
            one.rule.fix.text,
            is_provable=one.rule.proof is not None,
        )
        for one in evaluate(select(()), [host]).findings()
    )


def of_host(host: "HostFacts") -> tuple[tuple[str, str], ...]:
    """Return the kept facts of a host as (name, text)."""
    from loadstone.audit.rule import format_value

    values = host.facts.values
    return tuple((name, format_value(values[name])) for name in sorted(values) if is_kept(name))


def is_kept(name: str) -> bool:
    """Return whether a fact is a setting."""
    return name not in _LEFT_OUT and any(fnmatchcase(name, pattern) for pattern in KEPT)


def _host(choice: TargetChoice, endpoint: Endpoint) -> "Host | None":
    if place_of(choice) is not None:  # on another machine
        return None
    match choice:
        case NamedTarget(lab=str(name)) | OwnLab(name=name):
            from loadstone.audit.lab import has_rules, host
            from loadstone.lab.deployment import find

            deployment = find(name)
            return host(deployment, **QUICK) if has_rules(deployment) else None
        case NamedTarget() if _is_keystone_here(endpoint):
            from loadstone.audit.transport import local

            return local(QUICK)
        case _:
            return None


def _is_keystone_here(endpoint: Endpoint) -> bool:
    """Return whether the endpoint is a Keystone that this machine serves.

    A port forwarded elsewhere, or a service of another kind, says nothing of this machine's
    settings. Whose process listens is not known of other users' processes; a Keystone that runs
    here counts then.
    """
    if endpoint.host not in ("localhost", "::1") and not endpoint.host.startswith("127."):
        return False
    listening = _listeners(endpoint.port)
    if listening and not any(name.startswith((*_KEYSTONE, *_FRONT)) for name in listening):
        return False
    return _keystone_runs()


def _listeners(port: int) -> frozenset[str]:
    """Return the names of the processes that listen on a port, as far as psutil can see them."""
    import psutil

    names = set()
    try:
        for connection in psutil.net_connections("tcp"):
            _, listens_on = connection.laddr or ("", 0)
            if connection.status == psutil.CONN_LISTEN and listens_on == port and connection.pid:
                with suppress(psutil.Error):
                    names.add(psutil.Process(connection.pid).name())
    except psutil.Error:
        return frozenset()
    return frozenset(names)


def _keystone_runs() -> bool:
    """Return whether a process of this machine runs Keystone."""
    import psutil

    for process in psutil.process_iter(["name", "cmdline"]):
        command_line = " ".join(process.info["cmdline"] or ())
        if (process.info["name"] or "").startswith(_KEYSTONE) and "keystone" in command_line:
            return True
    return False
