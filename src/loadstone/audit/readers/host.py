"""Facts of the machine: CPUs, memory, kernel settings, clock."""

from math import ceil

from loadstone.audit.document import Document
from loadstone.audit.facts import Facts, Value
from loadstone.audit.readers import service
from loadstone.audit.readers.sections import number

MAX_CLOCK_ERROR_US = 16_000_000  # the kernel's value for "not synchronised", as systemd reads it


def read(document: Document) -> Facts:
    """Return the host's facts."""
    meta, cpu = document.pairs("meta"), document.pairs("cpu")
    values: dict[str, Value] = {
        "host.is_container": meta.get("container") == "1",
        "host.is_virtual": meta.get("virtual") == "1",
    }
    quota = _quota(cpu.get("quota", ""))
    _put(values, "host.cpu_quota", quota)
    counts = [number(cpu.get("cpus")), _count(cpu.get("allowed", ""))]
    counts += [ceil(quota)] if quota is not None else []
    _put(values, "host.cpus", min((one for one in counts if one is not None), default=None))
    governors = [line[9:] for line in document.text("cpu").splitlines() if line[:9] == "governor="]
    values["host.governors"] = tuple(sorted(set(governors)))
    values |= _memory(document) | _kernel(document) | _counters(document) | _system(document)
    values["host.name"] = meta.get("name", "?")
    return Facts(
        values, {"host.clock_is_synchronised": "neither chrony, systemd nor the kernel tells"}
    )


def _count(text: str) -> float | None:
    """Return how many CPUs a list of the kernel names, such as `0-3,8`; None: it names none."""
    total = 0.0
    for part in text.split(","):
        first, _, last = part.partition("-")
        ends = number(first), number(last or first)
        if ends[0] is None or ends[1] is None:
            return None
        total += ends[1] - ends[0] + 1
    return total


def _quota(text: str) -> float | None:
    """Return the CPUs that a control group may use: its quota over the period; None: no limit."""
    quota, period = ((*text.split(), "", "")[n] for n in (0, 1))
    microseconds, each = number(quota), number(period)
    if microseconds is None or each is None or microseconds <= 0 or each <= 0:
        return None
    return microseconds / each


def _put(values: dict[str, Value], name: str, value: Value | None) -> None:
    if value is not None:
        values[name] = value


def _memory(document: Document) -> dict[str, Value]:
    sizes = {}
    for line in document.text("memory").splitlines():
        name, _, rest = line.partition(":")
        fields = rest.split()
        if fields and fields[0].isdigit():
            sizes[name] = int(fields[0]) // 1024
    wanted = {
        "host.memory_mb": "MemTotal",
        "host.available_mb": "MemAvailable",
        "host.swap_mb": "SwapTotal",
    }
    values: dict[str, Value] = {fact: sizes[n] for fact, n in wanted.items() if n in sizes}
    limit = sizes.get("CgroupLimit")
    if limit is not None and limit < sizes.get("MemTotal", 0):
        free = max(0, limit - sizes.get("CgroupUsed", 0))
        values["host.memory_mb"] = limit
        values["host.available_mb"] = min(free, sizes.get("MemAvailable", free))
    return values


def _kernel(document: Document) -> dict[str, Value]:
    found = document.pairs("sysctl")
    values: dict[str, Value] = {}
    for fact, name in (
        ("host.somaxconn", "net/core/somaxconn"),
        ("host.netdev_max_backlog", "net/core/netdev_max_backlog"),
        ("host.syn_backlog", "net/ipv4/tcp_max_syn_backlog"),
        ("host.tw_reuse", "net/ipv4/tcp_tw_reuse"),
        ("host.swappiness", "vm/swappiness"),
    ):
        _put(values, fact, number(found.get(name)))
    ports = found.get("net/ipv4/ip_local_port_range", "").split()
    if len(ports) == 2:
        values["host.local_ports"] = int(ports[1]) - int(ports[0]) + 1
    fields = document.text("sysctl").split()
    if "tw" in fields[:-1]:
        _put(values, "host.time_wait", number(fields[fields.index("tw") + 1]))
    return values


def _counters(document: Document) -> dict[str, Value]:
    before, after = _counts(document.text("before")), _counts(document.text("after"))
    values: dict[str, Value] = {}
    for fact, name in (
        ("host.listen_drops", "ListenDrops"),
        ("host.listen_overflows", "ListenOverflows"),
        ("host.swapped_in_pages", "pswpin"),
        ("host.cpu_periods", "nr_periods"),
        ("host.throttled_periods", "nr_throttled"),
    ):
        if name in after:
            values[fact] = after[name]
            values[f"{fact}_now"] = after[name] - before.get(name, after[name])
    if "steal" in before and "steal" in after:
        spent = after["total"] - before["total"]
        values["host.steal_share"] = (after["steal"] - before["steal"]) / spent if spent else 0.0
    return values


def _counts(text: str) -> dict[str, int]:
    found = {}
    for line in text.splitlines():
        fields = line.split()
        if fields[:1] == ["cpu"] and len(fields) > 8:
            ticks = [int(field) for field in fields[1:9]]
            found["steal"], found["total"] = ticks[7], sum(ticks)
        elif len(fields) == 2 and fields[1].isdigit():
            found[fields[0]] = int(fields[1])
    return found


def _system(document: Document) -> dict[str, Value]:
    found = document.pairs("system")
    values: dict[str, Value] = {"host.has_tuned": "tuned" in found}
    if "tuned" in found:
        values["host.tuned_profile"] = found["tuned"] or "none"
    if "selinux" in found:
        values["host.selinux"] = found["selinux"]
    if "leap" in found:
        values["host.clock_is_synchronised"] = found["leap"] != "Not synchronised"
        _put(values, "host.clock_offset_s", number(found.get("offset")))
    elif found.get("ntp") in ("yes", "no"):
        values["host.clock_is_synchronised"] = found["ntp"] == "yes"
    else:
        clock, _ = service.part(document, "clock")
        if isinstance(clock.get("max_error_us"), int):
            values["host.clock_is_synchronised"] = clock["max_error_us"] < MAX_CLOCK_ERROR_US
    if "host.clock_is_synchronised" in values:
        offset_s = values.get("host.clock_offset_s")
        off = "" if offset_s is None else f", {offset_s:g} s off"
        values["host.clock"] = (
            f"{'' if values['host.clock_is_synchronised'] else 'not '}synchronised{off}"
        )
    return values
