"""Names the first workload that failed, in a study whose load rises until one fails."""

from collections.abc import Iterator, Sequence

from loadstone.report import figures
from loadstone.result import Measurement
from loadstone.study.figure import timed
from loadstone.study.model import Study, Tasks
from loadstone.study.table import TurnOutcome


def first_failures(study: Study, outcomes: Sequence[TurnOutcome]) -> Iterator[str]:
    """Say for each turn how fast its workloads were, and which one was the first to fail."""
    measurement = study.measurement
    if not isinstance(measurement, Tasks) or not measurement.until_failure:
        return
    for one in outcomes:
        if one.result is None:
            continue
        made = list(zip(measurement.names, timed(one.result, measurement), strict=False))
        where = f"{one.turn.cell}, repeat {one.turn.repeat}"
        for name, workload in made:
            yield f"{where}, {name}: {_said(workload)}"
        failed = [name for name, workload in made if not workload.checks_passed]
        if failed:
            yield f"{where}: success fell at {failed[0]}"
        elif len(made) == len(measurement.names):
            yield f"{where}: no failure up to {measurement.names[-1]}, the last of the study"


def _said(workload: Measurement) -> str:
    if workload.failure is not None or workload.stats is None:
        return workload.failure or "no iteration ended"
    stats = workload.stats
    ended = stats.ok + stats.failed
    said = f"{stats.ok:,} of {ended:,} ended well"
    if not stats.ok:
        return said
    slowest = figures.seconds(stats.total.max_s)
    return f"{said}, {figures.rate(stats.completed_rps)} per s, the slowest took {slowest}"
