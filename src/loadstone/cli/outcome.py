"""How a measurement is given to the user: on stdout, and as the exit code."""

from typing import TextIO

from loadstone.analysis.model import Cause, State
from loadstone.errors import FELL_SHORT, MeasurementInvalid
from loadstone.keystone.clean import remaining
from loadstone.keystone.things import Leftover
from loadstone.report import terminal
from loadstone.report.data import as_data
from loadstone.result import Finding, Result
from loadstone.run import JOURNAL
from loadstone.store.store import Store

SHORTCOMINGS = {Cause.ERRORS, Cause.OBJECTIVE}


def show(result: Result, to: TextIO | None) -> None:
    """Give the result as data to `to`, and as a table unless that is stdout."""
    from loadstone.cli.stored import write_json

    if to is not None:
        write_json(as_data(result), to)
    if to is None or to.name != "-":
        terminal.show(result, terminal.console())


def exit_code(store: Store, result: Result) -> int:
    """Give 0 when every N was found and all that was made is gone, else what was in the way."""
    codes = [_code(finding) for finding in result.findings] or [MeasurementInvalid.exit_code]
    return max(*codes, FELL_SHORT if leftovers(store, result.run_id) else 0)


def leftovers(store: Store, run_id: str) -> tuple[Leftover, ...]:
    """Give what a run made in its cloud and could not remove."""
    return remaining(store.folder(run_id) / JOURNAL)


def _code(finding: Finding) -> int:
    if not finding.is_search:
        return _code_of_stretch(finding)
    if finding.capacity is not None and finding.capacity.rate_rps is not None:
        return 0
    is_invalid = any(trial.verdict.state is State.INVALID for trial in finding.trials)
    if is_invalid or _has_changed(finding):
        return MeasurementInvalid.exit_code
    # No number because of noise says nothing of the service; errors and missed objectives do.
    short = any(trial.verdict.cause in SHORTCOMINGS for trial in finding.trials)
    return FELL_SHORT if short else MeasurementInvalid.exit_code


def _code_of_stretch(finding: Finding) -> int:
    states = {trial.verdict.state for trial in finding.trials}
    if not states or State.INVALID in states:
        return MeasurementInvalid.exit_code
    return FELL_SHORT if State.DEGRADED in states else 0


def _has_changed(finding: Finding) -> bool:
    """Say whether the target changed underneath: it went away, or has two capacities."""
    trials, found = finding.trials, finding.capacity
    went_away = any(t.summary.ok for t in trials) and trials[-1].summary.ok == 0
    has_two = found is not None and None not in (found.low_rps, found.high_rps)
    return went_away or has_two
