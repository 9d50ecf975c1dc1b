"""Names that are unique within a run, for formats that tell measurements apart by name."""

from collections import Counter
from collections.abc import Iterable, Iterator

from loadstone.result.model import Measurement


def of_measurement(measurement: Measurement) -> str:
    """Return the title, as "token issue"; with a study's step "token issue, serially"."""
    step = dict(measurement.parameters).get("step")
    return f"{measurement.title}, {step}" if step else measurement.title


def unique(named: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a name for each scenario and name; a number distinguishes equal ones."""
    pairs = tuple(named)
    titles = frozenset(pairs)
    numbers: Counter[tuple[str, str]] = Counter()
    for scenario, name in pairs:
        numbers[scenario, name] += 1
        if numbers[scenario, name] == 1:
            yield name
            continue
        # The number may be part of another title, as in "issue", "issue", "issue (2)".
        while (scenario, f"{name} ({numbers[scenario, name]})") in titles:
            numbers[scenario, name] += 1
        yield f"{name} ({numbers[scenario, name]})"
