"""Database and cache operations per iteration of a study's steps, where MariaDB counts them."""

from collections.abc import Iterator, Sequence

from loadstone.analysis.model import Trial
from loadstone.diagnosis.demand import KINDS
from loadstone.report import figures
from loadstone.study.figure import timed
from loadstone.study.model import FaultMeasurement, Study
from loadstone.study.table import TurnOutcome

SQL = dict(zip(KINDS, ("SELECT", "INSERT", "UPDATE", "DELETE"), strict=True))
TRANSACTIONS = (("commits", "COMMIT"), ("rollbacks", "ROLLBACK"))
LEAST = 0.05  # per iteration: less is not shown


def count_lines(study: Study, outcomes: Sequence[TurnOutcome]) -> Iterator[str]:
    """Yield the operations per iteration of each step of each cell, from its last repeat."""
    if isinstance(study.measurement, FaultMeasurement):
        return  # a fault has several rows, and the state of the service changes during its load
    last = {one.turn.cell: one.result for one in outcomes if one.result is not None}
    for cell, run in last.items():
        for step, one in zip(study.steps, timed(run, study.measurement), strict=False):
            # The longest load: a short one has what the first requests cost, and other work.
            watched = [trial for trial in one.trials if trial.resources is not None]
            longest = max(watched, key=lambda trial: trial.stats.ok, default=None)
            if longest is not None and (said := _kinds(longest)):
                where = f"{cell}, {step}" if step else f"{cell}"
                yield f"{where}: {said} an iteration"


def _kinds(trial: Trial) -> str:
    if trial.resources is None:
        return ""
    counts = dict(trial.resources.observation.figures)
    names = [(f"{kind}_per_request", word) for kind, word in SQL.items()]
    names += [(f"{kind}_per_request", word) for kind, word in TRANSACTIONS]
    names += [(f"cache_{kind}_per_request", f"cache {kind}") for kind in ("gets", "sets")]
    shown = ((counts.get(name, 0.0), word) for name, word in names)
    return ", ".join(f"{figures.rate(count)} {word}" for count, word in shown if count >= LEAST)
