"""Facts of other services on the host: those that validate tokens, Nova, RabbitMQ, cron, and
brokers that Keystone sends notifications to."""

import re

from loadstone.audit.document import Document
from loadstone.audit.facts import Facts, SettingOrigin, Value, merged
from loadstone.audit.readers import sections, service
from loadstone.audit.readers.sections import number

AUTHTOKEN_CACHE_S = 300  # default of [keystone_authtoken] token_cache_time
NOVA: dict[str, Value] = {
    "vif_plugging_is_fatal": True,
    "vif_plugging_timeout": 300,
    "reserved_host_memory_mb": 512,
}
# The first of them that is set and not 0 counts: the second only for a node that Nova creates.
RATIOS = ("ram_allocation_ratio", "initial_ram_allocation_ratio")


def read(document: Document) -> Facts:
    """Return their facts."""
    values: dict[str, Value] = {}
    missing: dict[str, str] = {}
    cron = document.text("cron").strip()
    flushes = number(cron)
    if flushes is not None:
        values["cron.token_flush"] = flushes > 0
    elif cron.startswith("! "):
        missing["cron.token_flush"] = cron[2:]
    brokers, _ = service.part(document, "messaging")
    servers = [server for server in brokers.get("servers", ()) if isinstance(server, dict)]
    if servers:
        values["messaging.unreachable"] = tuple(
            f"{server.get('name')} ({server['error']})" for server in servers if "error" in server
        )
    others = Facts(values, missing)
    return merged((_consumers(document), _nova(document), _rabbit(document), others))


def _consumers(document: Document) -> Facts:
    found = sections.files(document.text("consumers"))
    if not found:
        return Facts(missing={"consumers.": "no service on this host validates tokens"})
    without, short = [], []
    readable = [file for file in found if file.problem is None]
    for file in readable:
        known = {option: value for (_, option), value in sections.settings((file,)).values.items()}
        if not (known.get("memcached_servers") or known.get("memcache_servers")):
            without.append(file.path)
        if (number(known.get("token_cache_time")) or AUTHTOKEN_CACHE_S) < AUTHTOKEN_CACHE_S:
            short.append(file.path)
    problem = sections.problem(found)
    # What is wrong in the files that can be read is wrong whatever the others say.
    if problem is not None and not without and not short:
        return Facts(missing={"consumers.": problem}, roles=frozenset({"consumer"}))
    values: dict[str, Value] = {
        "consumers.without_memcached": tuple(without),
        "consumers.short_cache": tuple(short),
    }
    worst = (without or short or [readable[0].path])[0]
    origins = dict.fromkeys(values, SettingOrigin(worst, 1))
    return Facts(values, {}, origins, frozenset({"consumer"}))


def _nova(document: Document) -> Facts:
    found = sections.files(document.text("nova"))
    if not found:
        return Facts(missing={"nova.": "no nova-compute on this host"})
    problem = sections.problem(found)
    if problem is not None:
        return Facts(missing={"nova.": problem}, roles=frozenset({"compute"}))
    known = sections.settings(found)
    values: dict[str, Value] = {}
    origins = {}
    for option, default in NOVA.items():
        text = known.values.get(("DEFAULT", option))
        values[f"nova.{option}"] = default if text is None else sections.typed(text, default)
        origins[f"nova.{option}"] = known.origins.get(
            ("DEFAULT", option), SettingOrigin(found[0].path, 1, is_default=True)
        )
    ratios = [number(known.values.get(("DEFAULT", option))) for option in RATIOS]
    ratio = next((one for one in ratios if one), None)
    missing = {}
    if ratio is None:
        # Its default depends on the release, which the file does not tell.
        missing["nova.ram_allocation_ratio"] = f"{found[-1].path} sets none of {', '.join(RATIOS)}"
    else:
        values["nova.ram_allocation_ratio"] = ratio
    return Facts(values, missing, origins, frozenset({"compute"}))


def _rabbit(document: Document) -> Facts:
    text = document.text("rabbitmq")
    if not text.strip():
        return Facts(missing={"rabbitmq.": "no RabbitMQ that answers on this host"})
    values: dict[str, Value] = {}
    # "Total: 2, limit: 32671" since 3.8; "{total_limit,32671}" before.
    limit = re.search(r"(?:limit: |total_limit,)(\d+)", text)
    if limit:
        values["rabbitmq.descriptors"] = int(limit[1])
    # "Network Partitions\n\n(none)" since 3.8; "{partitions,[]}" before.
    old = re.search(r"\{partitions,\[(.*?)\]\}", text, re.DOTALL)
    new = re.search(r"Network Partitions\s+(.+?)(?:\n\n|\Z)", text, re.DOTALL)
    if old or new:
        partitions = old[1] if old else (new[1] if new else "")
        values["rabbitmq.is_partitioned"] = partitions.strip() not in ("", "(none)")
    return Facts(values, {"rabbitmq.": "rabbitmqctl does not tell it"}, roles=frozenset({"broker"}))
