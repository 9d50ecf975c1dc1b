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
from loadstone.study.journal import Journal, find
from loadstone.study.model import Study
from loadstone.study.order import estimate_s, turns
from loadstone.study.table import Outcome, Row, differences, rows

SCHEMA_VERSION = 1


def plan(study: Study, seed: int, to: Console) -> None:
    """Print what a study would do, and in which order."""
    _head(study, to)
    count = len(study.cells) * study.repeats
    terms = study.measurement
    to.print(
        f"{len(study.cells)} cells x {study.repeats} = {count} capacity searches of "
        f"{figures.seconds(terms.budget_s)} of load at most, {study.pause_s:g} s between them: "
        f"{figures.seconds(round(estimate_s(study), -1))} in all, about."
    )
    table = Table(*_factors(study), "scenario", "settings", box=SIMPLE_HEAD, pad_edge=False)
    for cell in study.cells:
        settings = " ".join(f"{key}={value}" for key, value in cell.settings)
        table.add_row(*(level for _, level in cell.levels), cell.scenario, settings)
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
    for head in _factors(study):
        table.add_column(head, overflow="fold")
    for head in ("N per s", "interval", "found", "published", "valid"):
        table.add_column(head, justify="right", no_wrap=True)
    lines = rows(study, outcomes)
    for row in lines:
        table.add_row(*(level for _, level in row.cell.levels), *_figures(row))
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
        "rows": [_row(row) for row in rows(study, outcomes)],
        "differences": [
            {
                "factor": one.comparison.factor,
                "base": one.comparison.base,
                "other": one.comparison.other,
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


def _factors(study: Study) -> list[str]:
    return [factor.name for factor in study.factors]


def _figures(row: Row) -> tuple[str, ...]:
    valid = {None: figures.MISSING, True: "yes", False: "no"}[row.is_valid]
    failed = "failed" if row.failures and row.capacity is None else None
    return (
        failed or (figures.n(row.capacity) if row.run_ids else figures.MISSING),
        figures.interval(row.capacity),
        f"{row.found}/{row.repeats}",
        f"{row.published.rate_rps:g}" if row.published else "",
        valid,
    )


def _elsewhere(journal: Journal) -> str:
    return "" if journal.store == places.store() else f" --store {journal.store}"


def _footnotes(lines: Sequence[Row], to: Console) -> None:
    for row in lines:
        for failure in row.failures:
            to.print(f"{row.cell}: {failure.splitlines()[0]}", style="red", soft_wrap=True)
    for one in dict.fromkeys(row.published for row in lines):
        if one is not None and one.words:
            to.print(f"Published {one.rate_rps:g}: {one.words}", style="dim")


def _test(p: float | None) -> str:
    if p is None:
        return ": one alone shows no difference"
    return f": {'no difference shown' if p >= 0.05 else 'a difference'}, p = {p:.2g}"


def _row(row: Row) -> dict[str, Any]:
    capacity = row.capacity
    return {
        "levels": dict(row.cell.levels),
        "scenario": row.cell.scenario,
        "settings": dict(row.cell.settings),
        "rate_rps": capacity.rate_rps if capacity else None,
        "low_rps": capacity.low_rps if capacity else None,
        "high_rps": capacity.high_rps if capacity else None,
        "confidence": capacity.confidence if capacity else None,
        "rates_rps": list(row.rates_rps),
        "repeats": row.repeats,
        "generator_valid": row.is_valid,
        "published_rps": row.published.rate_rps if row.published else None,
        "published": row.published.words if row.published else None,
        "failures": list(row.failures),
        "run_ids": list(row.run_ids),
    }
