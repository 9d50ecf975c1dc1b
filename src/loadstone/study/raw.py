"""Raw results of a study as CSV: a line for each repeat of each cell and step."""

import csv
import io
from collections.abc import Iterator, Sequence

from loadstone.study.journal import StudyJournal
from loadstone.study.model import Study
from loadstone.study.table import TurnOutcome, figure_of


def render(journal: StudyJournal, outcomes: Sequence[TurnOutcome]) -> str:
    """Return the lines in the order of measuring; unknown values are empty."""
    study = journal.begun.study()
    to = io.StringIO()
    writer = csv.writer(to, lineterminator="\n")
    factors = (factor.name for factor in study.factors)
    writer.writerow((
        *("turn", *factors, "step", "repeat", "run", "figure", "unit"),
        *("value", "low", "high", "generator_valid", "failure"),
    ))  # fmt: skip
    for outcome in sorted(outcomes, key=lambda one: one.turn.number):
        writer.writerows(_lines(study, outcome))
    return to.getvalue()


def _lines(study: Study, outcome: TurnOutcome) -> Iterator[tuple[object, ...]]:
    turn, found = outcome.turn, outcome.found(study)
    run_id = outcome.result.run_id if outcome.result else ""
    for step in study.steps:
        one = found.get(step)
        estimate = one.estimate if one else None
        numbers = (figure_of(estimate), estimate.low, estimate.high) if estimate else (None,) * 3
        why = outcome.failure or (one.shortcoming if one else None)
        yield (
            *(turn.number, *(level for _, level in turn.cell.levels)),
            *(step or "", turn.repeat, run_id, *study.figure, *numbers),
            *("" if one is None or one.is_valid is None else str(one.is_valid).lower(), why or ""),
        )
