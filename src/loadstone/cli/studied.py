"""A study that the command line asks for: its journal, its measuring, its end."""

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.cli import outcome, performed
from loadstone.cli.capacity import command_line
from loadstone.cli.choose import of_deployment
from loadstone.cli.reference import of_reference
from loadstone.cli.terms import HIGHEST_RPS, Terms, order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.cli.study_options import Options
    from loadstone.perform.order import Order as TaskOrder
    from loadstone.result import Result
    from loadstone.run import Order
    from loadstone.store import Store
    from loadstone.study.cell import Bench, Observer
    from loadstone.study.journal import Journal
    from loadstone.study.model import Measurement
    from loadstone.study.order import Turn
    from loadstone.study.table import Outcome

MOST_CONNECTIONS = 256


def journal(options: "Options") -> "Journal":
    """Give the journal of the study to go on with, or begin that of a new one."""
    from loadstone import places
    from loadstone.study import journal, read

    store = options["folder"] or places.store()
    if options["resume"] is not None:
        return journal.find(store, options["resume"])
    source = read.find(str(options["name"]))
    source.study(quick=options["quick"])  # what cannot be read does not begin
    return journal.begin(store, source, quick=options["quick"], seed=options["seed"])


def bench(journal: "Journal", store: "Store", observer: "Observer") -> "Bench":
    """Give what measures the turns of a study."""
    from loadstone.study.cell import Bench

    study = journal.begun.study()

    def wanted(turn: "Turn") -> "Order | TaskOrder":
        return _order(study.measurement, turn)

    return Bench(
        study_id=journal.study_id,
        order=wanted,
        connect=of_deployment,
        reference=of_reference,
        store=store,
        observer=observer,
        command=command_line(),
    )


def _order(measurement: "Measurement", turn: "Turn") -> "Order | TaskOrder":
    from loadstone.study.model import Steps, Tasks
    from loadstone.study.stretches import order_of, task_of

    if isinstance(measurement, Steps):
        return order_of(measurement)
    if isinstance(measurement, Tasks):
        return task_of(measurement)
    said: Terms = {
        "budget_s": measurement.budget_s,
        # The file's ceiling is that of a Keystone.
        "max_rate_rps": HIGHEST_RPS if turn.cell.is_reference else measurement.max_rate_rps,
        "users": measurement.users,
        "method": measurement.method,
        "objective": measurement.objectives,
        "max_connections": MOST_CONNECTIONS,
        "curve_s": 0.0,
        "cores": (),
    }
    return order("study", (turn.cell.scenario,), said)


def exit_code(journal: "Journal", store: "Store", outcomes: "Sequence[Outcome]") -> int:
    """Give 0 when N was found in every turn, else the highest code of those without."""
    failures = [one.exit_code for one in journal.ended().values() if one.run_id is None]
    measurement = journal.begun.study().measurement
    for result in (one.result for one in outcomes if one.result is not None):
        code = performed.exit_code if result.performances else outcome.exit_code
        failures.append(code(store, _timed(result, measurement)))
    return max(failures, default=0)


def _timed(result: "Result", measurement: "Measurement") -> "Result":
    """Give a turn without the steps that have no row in the table: they only prepare."""
    from loadstone.study.figure import timed

    return replace(result, findings=timed(result, measurement))
