"""Names the first workload that failed, in a study whose load rises until one fails."""

from collections.abc import Iterator, Sequence

from loadstone.report import figures
from loadstone.result.model import Measurement
from loadstone.study.figure import timed
from loadstone.study.model import Study, Tasks
from loadstone.study.table import TurnOutcome


def first_failures(study: Study, outcomes: Sequence[TurnOutcome]) -> Iterator[str]:
    """Yield, for each turn, the speed of its workloads and the first one that failed."""
    measurement = study.measurement
    if not isinstance(measurement, Tasks) or not measurement.until_failure:
        return
    for one in outcomes:
        if one.result is None:
            continue
        workloads = list(zip(measurement.names, timed(one.result, measurement), strict=False))
        where = f"{one.turn.cell}, repeat {one.turn.repeat}"
        for name, workload in workloads:
            yield f"{where}, {name}: {_summary(workload)}"
        failed = [name for name, workload in workloads if not workload.checks_passed]
        if failed:
            yield f"{where}: success fell at {failed[0]}"
        elif len(workloads) == len(measurement.names):
            yield f"{where}: no failure up to {measurement.names[-1]}, the last of the study"


def _summary(workload: Measurement) -> str:
    if workload.failure is not None or workload.stats is None:
        return workload.failure or "no iteration ended"
    stats = workload.stats
    ended = stats.ok + stats.failed
    summary = f"{stats.ok:,} of {ended:,} succeeded"
    if not stats.ok:
        return summary
    slowest = figures.seconds(stats.total.max_s)
    return f"{summary}, {figures.rate(stats.completed_rps)} per s, the slowest took {slowest}"
