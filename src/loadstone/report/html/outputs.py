"""Charts that a task's iterations produced, on the page."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from loadstone.report.hooks import charts
from loadstone.report.html.charts import MOST_POINTS
from loadstone.report.html.printed import PrintedChart, drawn, joined
from loadstone.result.model import Measurement

MOST_CHARTS = 12  # of one workload


def printed_charts(anchor: str, measurement: Measurement) -> tuple[PrintedChart, ...]:
    """Return the charts over all iterations, then those of single iterations."""
    return tuple(
        drawn(f"{anchor}-output-{number}", title, one)
        for number, (title, one) in enumerate(islice(_every(measurement), MOST_CHARTS), 1)
    )


def omissions(measurement: Measurement) -> tuple[str, ...]:
    """Describe which charts are not shown."""
    notes = []
    own = sum(len(one.complete) for one in measurement.outputs)
    over_all = max((len(one.additive) for one in measurement.outputs), default=0)
    if over_all + own > MOST_CHARTS:
        notes.append(
            f"Iterations gave {own:,} charts of their own; the first are shown, "
            "all are in the result as JSON (--json, --rally-json)."
        )
    if measurement.outputs_dropped:
        notes.append(f"{measurement.outputs_dropped:,} further charts were too much to keep.")
    return tuple(notes)


def _every(measurement: Measurement) -> Iterator[tuple[str, dict[str, Any]]]:
    outputs = measurement.outputs
    some = outputs[:: -(-len(outputs) // MOST_POINTS) or 1]
    additive = [(one.iteration + 1.0, charts(one)["additive"]) for one in some]
    for one in joined(additive, "iteration"):
        yield f"{one['title']}, over iterations", one
    for output in outputs:
        for one in charts(output)["complete"]:
            yield f"{one['title']}, iteration {output.iteration + 1}", one
