"""Database and cache operations per iteration of a study's steps, where MariaDB counts them."""

from collections.abc import Iterator, Sequence

from loadstone.diagnosis.demand import KINDS, Observation
from loadstone.report import figures
from loadstone.study.figure import timed
from loadstone.study.model import FaultMeasurement, Study
from loadstone.study.table import TurnOutcome

# What is counted, and its name.
SHOWN = (
    *zip(KINDS, ("SELECT", "INSERT", "UPDATE", "DELETE"), strict=True),
    *(("commits", "COMMIT"), ("rollbacks", "ROLLBACK")),
    *(("cache_gets", "cache gets"), ("cache_sets", "cache sets")),
)
LEAST = 0.05  # per iteration: less is not shown


def count_lines(study: Study, outcomes: Sequence[TurnOutcome]) -> Iterator[str]:
    """Yield the operations per iteration of each step of each cell, from its last repeat."""
    if isinstance(study.measurement, FaultMeasurement):
        return  # a fault has several rows, and the state of the service changes during its load
    last = {one.turn.cell: one.result for one in outcomes if one.result is not None}
    for cell, run in last.items():
        for step, one in zip(study.steps, timed(run, study.measurement), strict=False):
            # The longest load: a short one has what the first requests cost, and other work.
            watched = [(t.stats.ok, t.resources.observation) for t in one.trials if t.resources]
            longest = max(watched, key=lambda pair: pair[0], default=None)
            if longest is not None and (said := _kinds(longest[1])):
                where = f"{cell}, {step}" if step else f"{cell}"
                yield f"{where}: {said} an iteration"


def _kinds(seen: Observation) -> str:
    counts = dict(seen.figures)
    shown = ((counts.get(f"{kind}_per_request", 0.0), word) for kind, word in SHOWN)
    return ", ".join(f"{figures.rate(count)} {word}" for count, word in shown if count >= LEAST)
