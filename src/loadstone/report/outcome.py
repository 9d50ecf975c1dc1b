"""The outcome of a measurement: what its exit code is, and why it is not 0."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from loadstone.analysis.model import Cause, TrialState
from loadstone.errors import FELL_SHORT, EnvironmentUnusable, MeasurementInvalid
from loadstone.result.model import Measurement, Run
from loadstone.search.floor import FloorOutcome, floor_message, judge_floor


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a measurement does not end with 0: the table in docs/methodology.md, "Exit codes"."""

    code: int
    reason: str

    @property
    def is_failure(self) -> bool:
        """Whether the service fell short; else nothing valid is known of it."""
        return self.code == FELL_SHORT


def shortfalls(measurement: Measurement) -> tuple[Shortfall, ...]:
    """Return why a measurement does not end with 0, for each step of a workload."""
    return tuple(short for one in measurement.each for short in _of(one))


def summary(run: Run) -> str:
    """Describe in which respects a task's workloads fell short; empty if in none."""
    workloads = [shortfalls(one) for one in run.workloads]
    count = len(workloads)
    kinds = (
        (EnvironmentUnusable.exit_code, "could not be carried out"),
        (MeasurementInvalid.exit_code, "were not valid"),
        (FELL_SHORT, "broke their SLA"),
    )
    phrases = []
    for code, what in kinds:
        found = sum(any(short.code == code for short in shorts) for shorts in workloads)
        if found and count == 1:
            phrases.append(f"the workload {what.replace('were', 'was').replace('their', 'its')}")
        elif found:
            phrases.append(f"{found} of {count} workloads {what}")
    return ", ".join(phrases)


def _of(measurement: Measurement) -> Iterator[Shortfall]:
    if measurement.spec:
        return _of_workload(measurement)
    if measurement.policy == "search":
        return _of_search(measurement)
    if measurement.policy == "prediction":
        return _of_prediction(measurement)
    return _of_fixed_load(measurement)


def _of_search(measurement: Measurement) -> Iterator[Shortfall]:
    found = measurement.capacity
    if found is not None and found.rate_rps is not None:
        yield from _of_floor(measurement)
        return
    causes = {trial.verdict.cause for trial in measurement.trials}
    reason = found.words[0] if found is not None and found.words else "no N was found"
    is_inconsistent = found is not None and Cause.INCONSISTENT in found.causes
    if Cause.OBJECTIVE in causes and not is_inconsistent:
        yield Shortfall(FELL_SHORT, reason)
    elif (
        found is None
        or {Cause.GENERATOR, Cause.DRIFT, Cause.INCONSISTENT} & set(found.causes)
        or _went_away(measurement)
        # Without a number, noise says nothing about the service, but errors do.
        or Cause.ERRORS not in causes
    ):
        yield Shortfall(MeasurementInvalid.exit_code, reason)
    else:
        yield Shortfall(FELL_SHORT, reason)


def _of_floor(measurement: Measurement) -> Iterator[Shortfall]:
    least, found = measurement.least_rps, measurement.capacity
    if least is None or found is None:
        return
    outcome = judge_floor(found, least)
    if outcome is not FloorOutcome.REACHED:
        code = FELL_SHORT if outcome is FloorOutcome.MISSED else MeasurementInvalid.exit_code
        yield Shortfall(code, floor_message(found, least))


def _of_prediction(measurement: Measurement) -> Iterator[Shortfall]:
    if measurement.prediction is not None:
        return
    causes = {trial.verdict.cause for trial in measurement.trials}
    code = FELL_SHORT if Cause.ERRORS in causes else MeasurementInvalid.exit_code
    yield Shortfall(code, "nothing is predicted")


def _of_fixed_load(measurement: Measurement) -> Iterator[Shortfall]:
    invalid = MeasurementInvalid.exit_code
    of_state = {trial.verdict.state: trial for trial in measurement.trials}
    has_figures = any(trial.faults for trial in measurement.trials)
    if not of_state:
        yield Shortfall(invalid, f"no load was made: the measurement is {measurement.status}")
    elif TrialState.INVALID in of_state:
        reasons = "; ".join(of_state[TrialState.INVALID].verdict.reasons)
        yield Shortfall(invalid, reasons or "the load generator was the limit")
    elif "fault" in dict(measurement.parameters) and not has_figures:
        yield Shortfall(invalid, "the fault has no figures")
    elif any(not one.has_recovered for trial in measurement.trials for one in trial.faults):
        yield Shortfall(FELL_SHORT, "the service did not recover from the fault")
    elif TrialState.DEGRADED in of_state:
        reasons = "; ".join(of_state[TrialState.DEGRADED].verdict.reasons)
        yield Shortfall(FELL_SHORT, reasons or "the load degraded the service")


def _of_workload(workload: Measurement) -> Iterator[Shortfall]:
    health, runner = workload.health, json.loads(workload.spec)["runner"]
    if workload.failure is not None:
        yield Shortfall(EnvironmentUnusable.exit_code, workload.failure)
    # A closed loop has no target rate: a late generator makes it slower, not wrong.
    elif "rps" in runner and health is not None and not health.is_valid:
        reason = f"the requested rate was not kept: {'; '.join(health.limits)}"
        yield Shortfall(MeasurementInvalid.exit_code, reason)
    elif not workload.checks_passed:
        broken = ", ".join(row.criterion for row in workload.checks if not row.success)
        yield Shortfall(FELL_SHORT, f"the SLA is broken: {broken}")


def _went_away(measurement: Measurement) -> bool:
    """Return whether the target stopped answering during the measurement."""
    trials = measurement.trials
    return any(trial.stats.ok for trial in trials) and trials[-1].stats.ok == 0
