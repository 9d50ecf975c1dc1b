"""CPU usage of a phase of load, as data and as text."""

from typing import Any

from loadstone.monitor.usage import Usage
from loadstone.report import figures
from loadstone.report.data import finite


def as_data(usage: Usage | None) -> dict[str, Any] | None:
    """Return the usage as JSON-compatible data; unknown numbers are null."""
    if usage is None:
        return None
    return {
        "cores": usage.cores,
        "machine_busy": finite(usage.machine_busy),
        "machine_steal": finite(usage.machine_steal),
        "service_cpu_seconds": finite(usage.service_cpu_s),
        "service_busy": finite(usage.service_busy),
        "generator_cpu_seconds": finite(usage.generator_cpu_s),
        "generator_busy": finite(usage.generator_busy),
        "ended_processes": [
            {"part": one.part, "pid": one.pid, "at_seconds": one.at_s} for one in usage.ended
        ],
    }


def line(usage: Usage, iterations: int) -> str:
    """Describe the CPU usage under a task's load; `iterations` are the successful ones."""
    cores = figures.counted(usage.cores, "core")
    generator = f"load generator {figures.percent(usage.generator_busy)}"
    service_s, others = usage.service_cpu_s, usage.others_busy
    if service_s is None or usage.service_busy is None or others is None:
        return f"CPU: {generator} of this machine's {cores}"
    each = f", {figures.milliseconds(service_s / iterations * 1000)} each" if iterations else ""
    return (
        f"CPU: service {service_s:.2f} s{each}; of {cores} the service used "
        f"{figures.percent(usage.service_busy)}, the {generator}, other work "
        f"{figures.percent(max(others, 0.0))}"
    )
