"""Effects of faults on clients, for a study of faults."""

from collections.abc import Iterator, Sequence

from loadstone.report import figures
from loadstone.report.sections import fault as faults
from loadstone.result.model import Measurement
from loadstone.study.model import FaultMeasurement, Study
from loadstone.study.table import TurnOutcome


def fault_lines(study: Study, outcomes: Sequence[TurnOutcome]) -> Iterator[str]:
    """Yield N and the effect of each fault, for each cell from its last repeat."""
    if not isinstance(study.measurement, FaultMeasurement):
        return
    last = {one.turn.cell: one.result for one in outcomes if one.result is not None}
    for cell, run in last.items():
        for measurement in run.measurements:
            for line in _lines(measurement):
                yield f"{cell}: {line}"


def _lines(measurement: Measurement) -> Iterator[str]:
    if measurement.policy == "search":
        shown = figures.n_per_second(measurement.capacity)
        notes = "".join(f" ({note})" for note in measurement.notes if "nothing broken" in note)
        yield f"{measurement.title}: N = {shown}{notes}"
        return
    found = faults.effects(measurement)
    for summary in faults.summaries(measurement):
        own = [one for one in found if one.action == summary.action]
        for sentence in faults.sentences(summary, own):
            yield f"{summary.action}: {sentence}"
