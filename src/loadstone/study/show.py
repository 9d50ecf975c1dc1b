"""A study and its results, on a terminal and as data."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from loadstone.errors import InvalidInput
from loadstone.report import figures
from loadstone.store.location import StoreLocation, usual
from loadstone.study import needs
from loadstone.study.counted import count_lines
from loadstone.study.disturbance import disturbance_lines
from loadstone.study.estimate import about, estimate_s
from loadstone.study.faulted import fault_lines
from loadstone.study.first_failure import first_failures
from loadstone.study.journal import StudyJournal, find
from loadstone.study.model import (
    FaultMeasurement,
    SearchMeasurement,
    StepsMeasurement,
    Study,
    Tasks,
)
from loadstone.study.order import turns
from loadstone.study.read import StudySource
from loadstone.study.table import TableRow, TurnOutcome, differences, rows
from loadstone.study.wording import (
    cells,
    comparison_lines,
    heads,
    overview,
    published,
    reasons,
    when_and_where,
)

SCHEMA_VERSION = 1


def plan(study: Study, seed: int, to: Console) -> None:
    """Print the cells, the order and the duration of a study."""
    _head(study, to)
    count = len(study.cells) * study.repeats
    to.print(
        f"{len(study.cells)} cells x {study.repeats} = {count} {_measuring(study)}, "
        f"{study.pause_s:g} s between them: about {about(estimate_s(study))} in all.",
        soft_wrap=True,
    )
    has_scenario = any(cell.scenario for cell in study.cells)
    scenario_head = ("scenario",) if has_scenario else ()
    table = Table(*_factors(study), *scenario_head, "settings", box=SIMPLE_HEAD, pad_edge=False)
    for cell in study.cells:
        settings = " ".join(f"{key}={value}" for key, value in cell.settings)
        scenario = (cell.scenario,) if has_scenario else ()
        table.add_row(*(level for _, level in cell.levels), *scenario, settings)
    to.print(table)
    to.print(f"Order with --seed {seed}:", style="dim")
    for turn in turns(study, seed):
        to.print(f"  {turn.number}. {turn.cell} (repeat {turn.repeat})", style="dim")


def describe_builtin(source: StudySource) -> str:
    """Return one line: title and duration of a study and of its quick form."""
    full = source.study(quick=False)
    quick = source.study(quick=True)
    needed = needs.packages(full)
    servers = f"; needs {', '.join(needed)}" if needed else ""
    times = f"about {about(estimate_s(full))}; --quick: {about(estimate_s(quick))}"
    return f"{source.file}: {full.title} ({times}{servers})"


def describe_started(store: Path | StoreLocation, study_id: str) -> str:
    """Return one line: the progress of a study, or what is wrong with its journal."""
    try:
        journal = find(store, study_id)
        study, ended = journal.begun.study(), journal.ended()
    except InvalidInput as wrong:
        return f"{study_id}  {str(wrong).splitlines()[0]}"
    done = sum(turn.run_id is not None for turn in ended.values())
    return f"{study_id}  {study.name}  {done} of {len(study.cells) * study.repeats} measured"


def print_results(journal: StudyJournal, outcomes: Sequence[TurnOutcome], to: Console) -> None:
    """Print the table of a study, complete or not."""
    study = journal.begun.study()
    _head(study, to)
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=0)
    left, right = heads(study)
    for head in left:
        table.add_column(head, overflow="fold")
    for head in right:
        table.add_column(head, justify="right", no_wrap=True)
    lines = rows(study, outcomes)
    for row in lines:
        table.add_row(*cells(row))
    to.print(table)
    for line in reasons(lines):
        to.print(line, style="red", soft_wrap=True)
    for line in published(lines):
        to.print(line, style="dim")
    below = (
        *overview(study, lines),
        *comparison_lines(study, outcomes),
        *count_lines(study, outcomes),
        *first_failures(study, outcomes),
        *fault_lines(study, outcomes),
        *disturbance_lines(outcomes),
    )
    for line in below:
        to.print(line, soft_wrap=True)
    missing = sum(one.result is None for one in outcomes)
    if missing:
        to.print(
            f"{missing} of {len(outcomes)} measurements are missing; go on: "
            f"loadstone study run --resume {journal.study_id}{elsewhere(journal)}",
            soft_wrap=True,
        )
    to.print(when_and_where(journal, outcomes), style="dim", soft_wrap=True)


def as_data(journal: StudyJournal, outcomes: Sequence[TurnOutcome]) -> dict[str, Any]:
    """Return the results as JSON-compatible data; unknown numbers are null."""
    study = journal.begun.study()
    return {
        "schema_version": SCHEMA_VERSION,
        "study_id": journal.study_id,
        "study": study.name,
        "title": study.title,
        "source": study.source,
        "notes": list(study.notes),
        "quick": study.quick,
        "seed": journal.begun.seed,
        "started_at": journal.begun.started_at,
        "missing": sum(one.result is None for one in outcomes),
        "figure": {"name": study.figure[0], "unit": study.figure[1]},
        "rows": [_row(row) for row in rows(study, outcomes)],
        "differences": [
            {
                "factor": one.comparison.factor,
                "base": one.comparison.base,
                "other": one.comparison.other,
                "step": one.step,
                "where": dict(one.others),
                "ratio": one.ratio.mean,
                "low": one.ratio.low,
                "high": one.ratio.high,
                "count": one.ratio.count,
                "unit": one.unit,
                "p": one.p,
                "p_holm": one.p_holm,
                "answer": one.answer.value,
                "words": str(one),
            }
            for one in differences(study, outcomes)
        ],
    }


def _head(study: Study, to: Console) -> None:
    to.print(study.title, style="bold", soft_wrap=True)
    if study.source:
        to.print(f"After: {study.source}", style="dim", soft_wrap=True)
    if study.quick:
        to.print(f"Quick form: {study.quick}", soft_wrap=True)
    for note in study.notes:
        to.print(f"- {note}", soft_wrap=True)


def _measuring(study: Study) -> str:
    match study.measurement:
        case SearchMeasurement(budget_s=budget_s):
            return f"capacity searches of {figures.seconds(budget_s)} of load at most"
        case StepsMeasurement(steps=steps):
            listed = "; ".join(
                f"{step.name}: {step.iterations:,} x {step.scenario}, {step.concurrency} at once"
                + ("" if step.timed else ", not timed")
                for step in steps
            )
            return f"lists of steps ({listed})"
        case Tasks(names=names):
            return f"tasks ({', '.join(names)})"
        case FaultMeasurement(terms=terms):
            return f"loads with faults ({'; '.join(terms.sentences)}; each {terms.repeats} times)"


def _factors(study: Study) -> list[str]:
    return [factor.name for factor in study.factors]


def elsewhere(journal: StudyJournal) -> str:
    """Return the --store option of a study, empty for the default store."""
    return "" if journal.store == usual() else f" --store {shlex.quote(str(journal.store))}"


def _row(row: TableRow) -> dict[str, Any]:
    found = row.estimate
    return {
        "levels": dict(row.cell.levels),
        "step": row.step,
        "scenario": row.cell.scenario or None,
        "settings": dict(row.cell.settings),
        "value": found.value if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "confidence": found.confidence if found else None,
        "values": list(row.values),
        "repeats": row.repeats,
        "generator_valid": row.is_valid,
        "published": row.published.value if row.published else None,
        "published_words": row.published.words if row.published else None,
        "failures": list(row.failures),
        "run_ids": list(row.run_ids),
        "saturates": None if row.limits is None else list(row.limits),
    }
