"""Names that are unique within a run, for formats that tell measurements apart by name."""

from collections import Counter
from collections.abc import Sequence

from loadstone.result.model import Measurement


def of_measurements(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """Name each measurement; a number distinguishes equal names."""
    return _unique([(one.scenario, of_measurement(one)) for one in measurements])


def of_measurement(measurement: Measurement) -> str:
    """Return the title, as "token issue"; with a study's step "token issue, serially"."""
    step = dict(measurement.parameters).get("step")
    return f"{measurement.title}, {step}" if step else measurement.title


def _unique(named: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    counts: Counter[tuple[str, str]] = Counter()
    names = []
    for scenario, name in named:
        counts[scenario, name] += 1
        number = counts[scenario, name]
        names.append(name if number == 1 else f"{name} ({number})")
    return tuple(names)
