"""A study before it runs: its plan, its duration, what was started."""

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.report import figures
from loadstone.store.location import StoreLocation
from loadstone.study import needs
from loadstone.study.duet import TRIAL_S, cell_pairs
from loadstone.study.estimate import about, estimate_s
from loadstone.study.journal import find
from loadstone.study.model import (
    FaultMeasurement,
    SearchMeasurement,
    StepsMeasurement,
    Study,
    Tasks,
)
from loadstone.study.order import turns
from loadstone.study.read import StudySource
from loadstone.system.redaction import Redaction


def plan(study: Study, seed: int, to: Console) -> None:
    """Print the cells, the order and the duration of a study."""
    _head(study, to)
    cells, count = len(study.cells), len(study.cells) * study.repeats
    to.print(
        f"{figures.counted(cells, 'cell')} x {study.repeats} = {count} {_measuring(study)}, "
        f"{study.pause_s:g} s between them: about {about(estimate_s(study))} in all.",
        soft_wrap=True,
    )
    if pairs := cell_pairs(study):
        each = f"at most {study.pairs_in_turns} pairs of trials of {TRIAL_S:g} s each"
        of_cells = f"{figures.counted(len(pairs), 'pair')} of cells"
        to.print(f"Then {of_cells} in turns, {each}.", soft_wrap=True)
    has_scenario = any(cell.scenario for cell in study.cells)
    scenario_head = ("scenario",) if has_scenario else ()
    factors = (factor.name for factor in study.factors)
    table = Table(*factors, *scenario_head, "settings", box=SIMPLE_HEAD, pad_edge=False)
    mask = Redaction(study.secrets)
    for cell in study.cells:
        settings = mask.text(" ".join(f"{key}={value}" for key, value in cell.settings))
        scenario = (cell.scenario,) if has_scenario else ()
        table.add_row(*(mask.text(level) for _, level in cell.levels), *scenario, settings)
    to.print(table)
    to.print(f"Order with --seed {seed}:", style="dim")
    for turn in turns(study, seed):
        to.print(
            f"  {turn.number}. {mask.text(str(turn.cell))} (repeat {turn.repeat})", style="dim"
        )


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
    except (EnvironmentUnusable, InvalidInput) as wrong:
        return f"{study_id}  {str(wrong).splitlines()[0]}"
    count = len(study.cells) * study.repeats + len(cell_pairs(study))
    done = sum(turn.run_id is not None for turn in ended.values())
    return f"{study_id}  {study.name}  {done} of {count} measured"


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
