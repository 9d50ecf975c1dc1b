"""A machine: cores, pressure, memory, disks, network, from the files of /proc."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from loadstone.monitor.metrics import Reading, with_source

PROC = Path("/proc")
FILES = (
    "stat",
    "meminfo",
    "vmstat",
    "diskstats",
    "net/dev",
    "net/netstat",
    "pressure/cpu",
    "pressure/io",
    "pressure/memory",
)
MACHINE = "machine"
TICKS = 100.0  # USER_HZ, which is 100 on all of Linux's common platforms
SECTOR_BYTES = 512  # unit of /proc/diskstats, whatever the disk's own
PAGE_BYTES = 4096
# Loop devices, RAM disks and partitions repeat the I/O of the disk below them.
NOT_DISKS = re.compile(r"loop|ram|zram|dm-|md|sr|fd|(sd|vd|xvd|hd)[a-z]+\d|(nvme|mmcblk)\w+p\d")
# TCP counters that indicate full queues.
TCP = {
    "ListenOverflows": "listen_overflows_total",
    "ListenDrops": "listen_drops_total",
    "TCPTimeouts": "tcp_timeouts_total",
    "TCPSynRetrans": "syn_retransmissions_total",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine."""

    name: ClassVar[str] = "this machine"
    is_remote: ClassVar[bool] = False

    def read(self) -> Iterator[Reading]:
        """Read all files that this kernel has."""
        return readings(read_files())

    def close(self) -> None:
        """Nothing is open."""


def read_files() -> dict[str, str]:
    """Return the contents of the files in /proc that this kernel has."""
    texts = {}
    for name in FILES:
        with suppress(OSError):
            texts[name] = (PROC / name).read_text()
    return texts


def readings(texts: Mapping[str, str], machine: str = MACHINE) -> Iterator[Reading]:
    """Parse the contents of files in /proc; skip a file in an unexpected format."""
    for name, read in _READERS.items():
        if name in texts:
            with suppress(ValueError, KeyError, IndexError):
                yield from list(read(texts[name], machine))


def _cpu(text: str, machine: str) -> Iterator[Reading]:
    for line in text.splitlines():
        fields = line.split()
        if not re.fullmatch(r"cpu\d+", fields[0]):
            continue
        # User time includes guest time (man 5 proc).
        user, nice, system, idle, iowait, irq, softirq, steal = (
            int(ticks) / TICKS for ticks in fields[1:9]
        )
        rows = (
            ("cpu_user_seconds_total", user + nice, "s"),
            ("cpu_system_seconds_total", system + irq + softirq, "s"),
            ("cpu_busy_seconds_total", user + nice + system + irq + softirq, "s"),
            ("cpu_iowait_seconds_total", iowait, "s"),
            ("cpu_steal_seconds_total", steal, "s"),
            ("cpu_idle_seconds_total", idle, "s"),
        )
        yield from with_source(f"{machine}/{fields[0]}", rows)


def _memory(text: str, machine: str) -> Iterator[Reading]:
    values = dict(line.split(":", 1) for line in text.splitlines())
    for theirs, ours in (
        ("MemTotal", "memory_total_bytes"),
        ("MemAvailable", "memory_available_bytes"),
    ):
        yield Reading(machine, ours, int(values[theirs].split()[0]) * 1024, "B")


def _swap(text: str, machine: str) -> Iterator[Reading]:
    values = dict(line.split(" ", 1) for line in text.splitlines())
    for theirs, ours in (
        ("pswpin", "swap_in_bytes_total"),
        ("pswpout", "swap_out_bytes_total"),
    ):
        yield Reading(machine, ours, int(values[theirs]) * PAGE_BYTES, "B")


def _disks(text: str, machine: str) -> Iterator[Reading]:
    for line in text.splitlines():
        # Documentation/admin-guide/iostats.rst of the kernel.
        _, _, disk, *fields = line.split()
        if NOT_DISKS.match(disk):
            continue
        values = [int(field) for field in fields]
        rows = (
            ("disk_busy_seconds_total", values[9] / 1000, "s"),
            ("disk_wait_seconds_total", (values[3] + values[7]) / 1000, "s"),
            ("disk_operations_total", values[0] + values[4], "1"),
            ("disk_read_bytes_total", values[2] * SECTOR_BYTES, "B"),
            ("disk_written_bytes_total", values[6] * SECTOR_BYTES, "B"),
        )
        yield from with_source(f"{machine}/disk/{disk}", rows)


def _network(text: str, machine: str) -> Iterator[Reading]:
    for line in text.splitlines()[2:]:
        card, _, rest = line.partition(":")
        values = [int(field) for field in rest.split()]
        rows = (
            ("network_received_bytes_total", values[0], "B"),
            ("network_sent_bytes_total", values[8], "B"),
            ("network_drops_total", values[3] + values[11], "1"),
        )
        yield from with_source(f"{machine}/network/{card.strip()}", rows)


def _tcp(text: str, machine: str) -> Iterator[Reading]:
    lines = [line.split() for line in text.splitlines()]
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        counters = dict(zip(names, values, strict=True))
        for theirs, ours in TCP.items():
            if theirs in counters:
                yield Reading(machine, ours, int(counters[theirs]))


def _pressure(kind: str) -> Callable[[str, str], Iterator[Reading]]:
    """Return a parser of pressure stall information: time in which some or all tasks waited."""

    def read(text: str, machine: str) -> Iterator[Reading]:
        for line in text.splitlines():
            scope, *fields = line.split()
            total_us = int(dict(field.split("=") for field in fields)["total"])
            yield Reading(machine, f"pressure_{kind}_{scope}_seconds_total", total_us / 1e6, "s")

    return read


_READERS: dict[str, Callable[[str, str], Iterator[Reading]]] = {
    "stat": _cpu,
    "meminfo": _memory,
    "vmstat": _swap,
    "diskstats": _disks,
    "net/dev": _network,
    "net/netstat": _tcp,
    "pressure/cpu": _pressure("cpu"),
    "pressure/io": _pressure("io"),
    "pressure/memory": _pressure("memory"),
}
