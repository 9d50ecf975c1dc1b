"""The exit code of a run: the table in docs/methodology.md, "Exit codes"."""

import json
from collections.abc import Sequence

from loadstone.analysis.model import Cause, TrialState
from loadstone.errors import FELL_SHORT, EnvironmentUnusable, MeasurementInvalid
from loadstone.keystone.clean import remaining
from loadstone.keystone.journal import JOURNAL
from loadstone.keystone.resources import Leftover
from loadstone.result import Measurement, Run
from loadstone.search.floor import FloorOutcome, judge_floor
from loadstone.store.store import Store


def exit_code(run: Run, left: Sequence[Leftover] = ()) -> int:
    """Return 0 if all criteria held and all created resources are removed, else the worst code."""
    codes = [code for one in run.measurements for code in _codes(one)]
    if not codes and run.kind != "task":
        codes = [MeasurementInvalid.exit_code]
    return max((*codes, FELL_SHORT if left else 0))


def leftovers(store: Store, run_id: str) -> tuple[Leftover, ...]:
    """Return the resources that a run created in its cloud and could not remove."""
    return remaining(store.folder(run_id) / JOURNAL)


def _codes(measurement: Measurement) -> list[int]:
    if measurement.spec:
        return [_code_of_workload(one) for one in measurement.each]
    if measurement.policy == "search":
        return [_code_of_search(measurement), _code_of_floor(measurement)]
    if measurement.policy == "prediction":
        return [_code_of_prediction(measurement)]
    return [_code_of_fixed_load(measurement)]


def _code_of_search(measurement: Measurement) -> int:
    found = measurement.capacity
    if found is not None and found.rate_rps is not None:
        return 0
    causes = {trial.verdict.cause for trial in measurement.trials}
    if Cause.OBJECTIVE in causes:
        return FELL_SHORT
    if (
        found is None
        or {Cause.GENERATOR, Cause.DRIFT} & set(found.causes)
        or _went_away(measurement)
    ):
        return MeasurementInvalid.exit_code
    # Without a number, noise says nothing about the service, but errors do.
    return FELL_SHORT if Cause.ERRORS in causes else MeasurementInvalid.exit_code


def _code_of_prediction(measurement: Measurement) -> int:
    if measurement.prediction is not None:
        return 0
    causes = {trial.verdict.cause for trial in measurement.trials}
    return FELL_SHORT if Cause.ERRORS in causes else MeasurementInvalid.exit_code


def _code_of_floor(measurement: Measurement) -> int:
    found = measurement.capacity
    # Without N, _code_of_search decides.
    if measurement.least_rps is None or found is None or found.rate_rps is None:
        return 0
    return {
        FloorOutcome.REACHED: 0,
        FloorOutcome.MISSED: FELL_SHORT,
        FloorOutcome.UNDECIDED: MeasurementInvalid.exit_code,
    }[judge_floor(found, measurement.least_rps)]


def _code_of_fixed_load(measurement: Measurement) -> int:
    states = {trial.verdict.state for trial in measurement.trials}
    if not states or TrialState.INVALID in states:
        return MeasurementInvalid.exit_code
    has_figures = any(trial.faults for trial in measurement.trials)
    if "fault" in dict(measurement.parameters) and not has_figures:
        return MeasurementInvalid.exit_code
    if any(not one.has_recovered for trial in measurement.trials for one in trial.faults):
        return FELL_SHORT
    return FELL_SHORT if TrialState.DEGRADED in states else 0


def _code_of_workload(workload: Measurement) -> int:
    if workload.failure is not None:
        return EnvironmentUnusable.exit_code
    health, runner = workload.health, json.loads(workload.spec)["runner"]
    # A closed loop has no target rate: a late generator makes it slower, not wrong.
    if "rps" in runner and health is not None and not health.is_valid:
        return MeasurementInvalid.exit_code
    return 0 if workload.checks_passed else FELL_SHORT


def _went_away(measurement: Measurement) -> bool:
    """Return whether the target stopped answering during the measurement."""
    trials = measurement.trials
    return any(trial.stats.ok for trial in trials) and trials[-1].stats.ok == 0
