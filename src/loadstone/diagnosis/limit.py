"""Names the limit of a service, and what disturbed the measurement, from stored usage."""

from enum import StrEnum

from loadstone.diagnosis.bottleneck import FULL, OTHER_WORK
from loadstone.diagnosis.demand import BottleneckKind
from loadstone.diagnosis.finding import Finding, three_digits
from loadstone.diagnosis.resources import Resources
from loadstone.monitor.usage import Usage

NEAR_FULL = 0.6  # a resource that is busy for this share of the time is worth a look
SPARE = 0.7  # below this share of all cores, something else than the cores is the limit
STOLEN = 0.02  # share of the CPU time that other guests took: it lowers N by as much
OTHERS = 0.1  # share of the CPU time that other programs took
OTHER_CORES = 0.3  # an idle machine stays below, including its kernel's work for the load
WORKERS = "workers"
# Findings that the use of a CPU describes; the others need their sentence.
OF_THE_SERVICE = (WORKERS, "cpu")
OF_OTHERS = ("database-cpu", "balancer-cpu", "directory-cpu", "provider-cpu")


class CpuVerdict(StrEnum):
    """Whether the machine's CPU is the limit."""

    LIMIT = "limit"
    SPARE = "spare"
    UNCLEAR = "unclear"


def judge_cpu(usage: Usage) -> CpuVerdict:
    """Return whether the machine's cores limit the service."""
    if usage.machine_busy >= FULL:
        return CpuVerdict.LIMIT
    return CpuVerdict.SPARE if usage.machine_busy < SPARE else CpuVerdict.UNCLEAR


def is_stolen(usage: Usage) -> bool:
    """Return whether other guests of the same host took a share that matters."""
    return usage.machine_steal >= STOLEN


def is_disturbed(usage: Usage) -> bool:
    """Return whether other programs took a share that matters; False where that is unknown."""
    return usage.others_busy is not None and usage.others_busy >= OTHERS


def taken_by_others(resources: Resources | None) -> Finding | None:
    """Return the finding that other programs took the cores that the service waited for."""
    findings = resources.findings if resources is not None else ()
    return next((one for one in findings if one.id == OTHER_WORK), None)


def named_limit(resources: Resources | None) -> str | None:
    """Return the limiting resource with its figures; None if nothing watched is saturated."""
    if resources is None or not resources.findings:
        return None
    found, first = resources.bottleneck, resources.findings[0]
    if found.kind is BottleneckKind.NONE:
        if all(one.name != "others_cores" for one in first.evidence):
            return None
        _, _, who = found.sentence.partition(": ")
        return f"perhaps this machine's cores: {who.partition(',')[0].rstrip('.')}"
    use = resources.observation.use(BottleneckKind.CPU, found.role)
    service = resources.observation.service
    is_workers = first.id == service.finding(WORKERS)
    by_cpu = (*(service.finding(one) for one in OF_THE_SERVICE), *OF_OTHERS)
    if use is None or first.id not in by_cpu:
        sentence = found.sentence.rstrip(".")
        # It follows "limited by"; names such as MariaDB keep their capital.
        return f"the {sentence.removeprefix('The ')}" if sentence.startswith("The ") else sentence
    workers = resources.observation.figure("workers")
    name = use.name
    if is_workers and workers:
        name = service.part(f"{workers:.0f} workers" if workers > 1 else "one worker")
    demand_s = resources.observation.cpu_demand_s(found.role)
    cost = f", {three_digits(demand_s * 1000)} ms of CPU a request" if demand_s else ""
    cores = "core" if use.capacity == 1 else "cores"
    return f"{name}: {100 * use.utilisation:.0f} % of {use.capacity:.3g} {cores}{cost}"
