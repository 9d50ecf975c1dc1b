"""A study and what it found, on a terminal and as data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from loadstone import places
from loadstone.errors import InvalidInput
from loadstone.report import figures
from loadstone.search.model import Capacity
from loadstone.study.journal import Journal, find
from loadstone.study.model import Search, Steps, Study, Tasks
from loadstone.study.order import estimate_s, turns
from loadstone.study.table import Outcome, Row, differences, rows

SCHEMA_VERSION = 1


def plan(study: Study, seed: int, to: Console) -> None:
    """Print what a study would do, and in which order."""
    _head(study, to)
    count = len(study.cells) * study.repeats
    to.print(f"{len(study.cells)} cells x {study.repeats} = {count} {_measuring(study)}")
    has_scenario = any(cell.scenario for cell in study.cells)
    asked = ("scenario",) if has_scenario else ()
    table = Table(*_factors(study), *asked, "settings", box=SIMPLE_HEAD, pad_edge=False)
    for cell in study.cells:
        settings = " ".join(f"{key}={value}" for key, value in cell.settings)
        scenario = (cell.scenario,) if has_scenario else ()
        table.add_row(*(level for _, level in cell.levels), *scenario, settings)
    to.print(table)
    to.print(f"Order with --seed {seed}:", style="dim")
    for turn in turns(study, seed):
        to.print(f"  {turn.number}. {turn.cell} (repeat {turn.repeat})", style="dim")


def begun(store: Path, study_id: str) -> str:
    """Say in one line how far a study has come; of a damaged journal, what is wrong with it."""
    try:
        one = find(store, study_id)
        study, ended = one.begun.study(), one.ended()
    except InvalidInput as wrong:
        return f"{study_id}  {str(wrong).splitlines()[0]}"
    done = sum(turn.run_id is not None for turn in ended.values())
    return f"{study_id}  {study.name}  {done} of {len(study.cells) * study.repeats} measured"


def found(journal: Journal, outcomes: Sequence[Outcome], to: Console) -> None:
    """Print the table of a study, whether it has come to its end or not."""
    study = journal.begun.study()
    _head(study, to)
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=0)
    steps = ("step",) if study.steps != (None,) else ()
    for head in (*_factors(study), *steps):
        table.add_column(head, overflow="fold")
    for head in (" ".join(study.figure), "interval", "found", "published", "valid"):
        table.add_column(head, justify="right", no_wrap=True)
    lines = rows(study, outcomes)
    for row in lines:
        step = (row.step,) if row.step is not None else ()
        table.add_row(*(level for _, level in row.cell.levels), *step, *_figures(row))
    to.print(table)
    _footnotes(lines, to)
    for difference in differences(study, outcomes):
        to.print(f"{difference}{_test(difference.p)}", soft_wrap=True)
    missing = sum(one.result is None for one in outcomes)
    if missing:
        to.print(
            f"{missing} of {len(outcomes)} measurements are missing; go on: "
            f"loadstone study run --resume {journal.study_id}{_elsewhere(journal)}",
            soft_wrap=True,
        )
    to.print(f"Study {journal.study_id}, seed {journal.begun.seed}.", style="dim")


def as_data(journal: Journal, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Give the same for other programs; a number that is not known is null."""
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
                "words": str(one),
            }
            for one in differences(study, outcomes)
        ],
    }


def _head(study: Study, to: Console) -> None:
    to.print(study.title, style="bold")
    if study.source:
        to.print(f"After: {study.source}", style="dim")
    if study.quick:
        to.print(f"Quick form: {study.quick}")
    for note in study.notes:
        to.print(f"- {note}", soft_wrap=True)


def _measuring(study: Study) -> str:
    match study.measurement:
        case Search(budget_s=budget_s):
            in_all_s = round(estimate_s(study) or 0.0, -1)
            return (
                f"capacity searches of {figures.seconds(budget_s)} of load at most, "
                f"{study.pause_s:g} s between them: {figures.seconds(in_all_s)} in all, about."
            )
        case Steps(steps=steps):
            said = "; ".join(
                f"{step.name}: {step.iterations:,} x {step.scenario}, {step.concurrency} at once"
                + ("" if step.timed else ", not timed")
                for step in steps
            )
            return f"lists of steps, {study.pause_s:g} s between them. Each: {said}."
        case Tasks(names=names):
            return f"tasks, {study.pause_s:g} s between them. Each: {', '.join(names)}."


def _factors(study: Study) -> list[str]:
    return [factor.name for factor in study.factors]


def _figures(row: Row) -> tuple[str, ...]:
    valid = {None: figures.MISSING, True: "yes", False: "no"}[row.is_valid]
    failed = "failed" if row.failures and row.estimate is None else None
    found = row.estimate
    shown = None if found is None else Capacity(found.value, found.low, found.high, 0.0)
    return (
        failed or (figures.n(shown) if row.run_ids else figures.MISSING),
        figures.interval(shown),
        f"{row.found}/{row.repeats}",
        f"{row.published.value:g}" if row.published else "",
        valid,
    )


def _elsewhere(journal: Journal) -> str:
    return "" if journal.store == places.store() else f" --store {journal.store}"


def _footnotes(lines: Sequence[Row], to: Console) -> None:
    failed: dict[str, None] = {}  # the rows of a cell share its failures
    for row in lines:
        for failure in row.failures:
            failed[f"{row.cell}: {failure.splitlines()[0]}"] = None
    for line in failed:
        to.print(line, style="red", soft_wrap=True)
    for one in dict.fromkeys(row.published for row in lines):
        if one is not None and one.words:
            to.print(f"Published {one.value:g}: {one.words}", style="dim")


def _test(p: float | None) -> str:
    if p is None:
        return ": one alone shows no difference"
    return f": {'no difference shown' if p >= 0.05 else 'a difference'}, p = {p:.2g}"


def _row(row: Row) -> dict[str, Any]:
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
    }
