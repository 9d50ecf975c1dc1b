"""Facts of the database, from the one read-only login of Keystone or of the server's client."""

import re
from collections.abc import Mapping
from typing import Any

from loadstone.audit.document import Document
from loadstone.audit.facts import Facts, Value
from loadstone.audit.readers import processes, service
from loadstone.audit.readers.sections import number

THREADED = ("mariadbd", "mysqld")
SERVERS = (*THREADED, "postgres")
PAGE = 8192  # bytes; PostgreSQL counts shared_buffers in these
MYSQL = {
    "db.max_connections": "max_connections",
    "db.max_used_connections": "max_used_connections",
    "db.flush_log": "innodb_flush_log_at_trx_commit",
    "db.wait_timeout": "wait_timeout",
    "db.query_cache_size": "query_cache_size",
    "db.applier_threads": "wsrep_slave_threads",
    "db.cluster_size": "wsrep_cluster_size",
    "db.flow_control_paused": "wsrep_flow_control_paused",
    "db.receive_queue": "wsrep_local_recv_queue_avg",
    "db.cert_failures": "wsrep_local_cert_failures",
    "db.commits": "wsrep_local_commits",
}
COUNTS = {
    "revocation.events": "revocation_events",
    "revocation.last_hour": "revocations_last_hour",
    "revocation.expired": "revocations_expired",
    "revocation.left_over": "revocations_left_over",
    "directory.users": "directory_users",
    "keystone.users": "users",
    "keystone.projects": "projects",
    "keystone.application_credentials": "application_credentials",
    "keystone.token_rows": "token_rows",
}
OFF = ("off", "0", "")
# "$2b$12$" and "$bcrypt-sha256$v=2,t=2b,r=12" are bcrypt with cost 12.
BCRYPT_COST = re.compile(r"\$(?:2\w?\$|bcrypt-sha256\$.*\br=)(\d\d?)")


def read(document: Document) -> Facts:
    """Return the database's facts."""
    found, reason = service.part(document, "database")
    own = processes.named(processes.read(document), *SERVERS)
    local = _client(document)
    has_own = bool(own) or bool(local)
    if not found and local:
        found, reason = {"kind": "mysql", "variables": local}, None
        found = {**found, "data_bytes": local.get("data_bytes")}
    values: dict[str, Value] = {"db.is_here": has_own}
    # Each connection of PostgreSQL has a process of its own, with a limit of its own.
    threaded = processes.named(processes.read(document), *THREADED)
    limits = [process.open_files for process in threaded if process.open_files]
    if limits:
        values["db.open_files"] = min(limits)
    if not found:
        why = f"no login to the database: {reason}"
        missing = {"db.": why, "revocation.": why, **dict.fromkeys(COUNTS, why)}
        missing["keystone.stored_costs"] = why
        return Facts(values, missing, roles=frozenset({"database"} if has_own else ()))
    values["db.kind"] = kind = str(found["kind"])
    # A server of another application, or a login to one elsewhere, is not the database.
    names = ("postgres",) if kind == "postgresql" else THREADED
    values["db.is_here"] = bool(processes.named(processes.read(document), *names))
    values |= _variables(found) | _counts(found)
    reasons = {"db.": "the database does not tell it", "revocation.": "the table cannot be read"}
    return Facts(values, reasons, roles=frozenset({"database"}))


def _client(document: Document) -> dict[str, str]:
    rows = (line.split("\t") for line in document.text("mysql").splitlines())
    return {row[0].lower(): row[1] for row in rows if len(row) == 2}


def _variables(found: Mapping[str, Any]) -> dict[str, Value]:
    variables = {str(k): str(v) for k, v in (found.get("variables") or {}).items()}
    values: dict[str, Value] = {}
    if number(str(found.get("data_bytes"))) is not None:
        values["db.data_mb"] = float(found["data_bytes"]) / 2**20
    if found["kind"] == "mysql":
        return values | _mysql(variables)
    if found["kind"] == "postgresql":
        return values | _postgresql(variables, found)
    return values


def _mysql(variables: Mapping[str, str]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for fact, name in MYSQL.items():
        known = number(variables.get(name))
        if known is not None:
            values[fact] = known
    pool = number(variables.get("innodb_buffer_pool_size"))
    if pool is not None:
        values["db.buffer_mb"] = pool / 2**20
    values["db.query_cache_on"] = (
        variables.get("query_cache_type", "off").lower() not in OFF
        and (number(variables.get("query_cache_size")) or 0) > 0
    )
    values["db.skip_name_resolve"] = variables.get("skip_name_resolve", "off").lower() not in OFF
    values["db.is_galera"] = variables.get("wsrep_on", "off").lower() not in OFF
    values["db.is_synced"] = variables.get("wsrep_local_state_comment", "") == "Synced"
    values["db.version"] = variables.get("version", "?")
    return values


def _postgresql(variables: Mapping[str, str], found: Mapping[str, Any]) -> dict[str, Value]:
    values: dict[str, Value] = {"db.is_galera": False}
    limit = number(variables.get("max_connections"))
    if limit is not None:
        values["db.max_connections"] = limit
    reserved = number(variables.get("superuser_reserved_connections"))
    if limit is not None and reserved is not None:
        # Of roles with a privilege, since PostgreSQL 16.
        privileged = number(variables.get("reserved_connections")) or 0
        values["db.usable_connections"] = limit - reserved - privileged
    if number(str(found.get("connections"))) is not None:
        values["db.open_connections"] = int(found["connections"])
    buffers = number(variables.get("shared_buffers"))
    if buffers is not None:
        values["db.buffer_mb"] = buffers * PAGE / 2**20
    for fact, name in (("db.fsync", "fsync"), ("db.full_page_writes", "full_page_writes")):
        values[fact] = variables.get(name, "on") == "on"
    rows = [row for row in found.get("dead") or () if isinstance(row, list) and len(row) == 3]
    shares = [dead / (live + dead) for _, live, dead in rows if live + dead >= 1000]
    values["db.dead_share"] = max(shares, default=0.0)
    indexes = [row[1] for row in found.get("password_indexes") or () if isinstance(row, list)]
    if indexes:
        values["db.password_indexes"] = int(indexes[0])
    values["db.version"] = variables.get("server_version", "?")
    return values


def _counts(found: Mapping[str, Any]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for fact, name in COUNTS.items():
        known = number(str(found.get(name)))
        if known is not None:
            values[fact] = known
    hashes = found.get("hashes")
    if isinstance(hashes, dict):
        found_costs = map(BCRYPT_COST.match, hashes)
        values["keystone.stored_costs"] = tuple(int(cost[1]) for cost in found_costs if cost)
    return values
