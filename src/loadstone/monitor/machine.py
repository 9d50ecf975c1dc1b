"""Describes this machine."""

import os
import platform
from importlib.metadata import version
from pathlib import Path


def facts() -> tuple[tuple[str, str], ...]:
    """Return (name, value) pairs for the report: cores, memory, kernel, versions."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        ("loadstone", version("loadstone")),
        ("cores", str(os.cpu_count())),
        ("processor", processor()),
        ("memory", f"{memory_gib:.0f} GiB"),
        ("system", f"{platform.system()} {platform.release()}"),
        ("python", platform.python_version()),
    )


def processor() -> str:
    """Return the kernel's name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
