"""The outcome of a measurement: what its exit code is, and why it is not 0."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadstone.analysis import decimals
from loadstone.analysis.fault import recoveries
from loadstone.analysis.model import Cause, Trial, TrialState
from loadstone.analysis.recovery import Recovery
from loadstone.analysis.stats import WORDS
from loadstone.diagnosis.demand import LEAST_REQUESTS
from loadstone.engine.outcome import Outcome
from loadstone.errors import FELL_SHORT, EnvironmentUnusable, MeasurementInvalid
from loadstone.result.model import Measurement, Run
from loadstone.search.floor import FloorOutcome, judge_floor
from loadstone.search.low_load import of_low_load
from loadstone.search.model import Capacity, CapacityKind

# More time does not mend what contradicts one capacity, or what the generator limited.
CONTRARY = {Cause.GENERATOR, Cause.DRIFT, Cause.INCONSISTENT}
# After an objective was missed, the service went away or changed: a lower rate may have met it.
VARIED = {Cause.DRIFT, Cause.INCONSISTENT}

NOT_ENDED = "it did not end"
NOT_SHOWN = (
    "the requests show neither that the service recovered from the fault nor that it did not; a "
    "longer --baseline and --observe, a higher --rate or more --repeats show more"
)
# Errors of requests that no connection was made for, and what to do.
_ADDRESS = "check the host and the port, and that the service runs"
NO_CONNECTION = {
    WORDS[Outcome.REFUSED]: _ADDRESS,
    WORDS[Outcome.CONNECT_FAILED]: _ADDRESS,
    WORDS[Outcome.CONNECT_TIMEOUT]: _ADDRESS,
    WORDS[Outcome.TLS_FAILED]: "check that https is served there, and give --insecure for a "
    "certificate that this machine does not trust",
    WORDS[Outcome.CERTIFICATE_EXPIRED]: "renew it, or give --insecure",
}
NOT_CONFIRMED = ", not confirmed"  # of bounds without N


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a measurement does not end with 0: the table in docs/methodology.md, "Exit codes"."""

    code: int
    reason: str
    may_need_time: bool = False  # a longer search may decide it


def exit_code(run: Run, *, is_clean: bool = True) -> int:
    """Return 0 if all criteria held and all created resources are removed, else the worst code."""
    codes = [short.code for one in run.measurements for short in shortfalls(one)]
    is_whole = run.status == "finished" and (bool(run.measurements) or run.kind == "task")
    if not is_whole and not any(one.failure for one in run.measurements):
        ended = EnvironmentUnusable if run.failure else MeasurementInvalid
        codes.append(ended.exit_code)
    return max((*codes, 0 if is_clean else FELL_SHORT))


def shortfalls(measurement: Measurement) -> tuple[Shortfall, ...]:
    """Return why a measurement does not end with 0, for each step of a workload."""
    return tuple(short for one in measurement.each for short in _of(one))


def summary(run: Run) -> str:
    """Describe in which respects a task's workloads fell short; empty if in none."""
    workloads = [{_in_words(short) for short in shortfalls(one)} for one in run.workloads]
    count = len(workloads)
    phrases = []
    for what in (*_WORDS.values(), _DID_NOT_END):
        found = sum(what in words for words in workloads)
        if found and count == 1:
            phrases.append(f"the workload {what.replace('were', 'was').replace('their', 'its')}")
        elif found:
            phrases.append(f"{found} of {count} workloads {what}")
    return ", ".join(phrases)


_WORDS = {
    EnvironmentUnusable.exit_code: "could not be carried out",
    MeasurementInvalid.exit_code: "were not valid",
    FELL_SHORT: "broke their SLA",
}
_DID_NOT_END = "did not end"


def _in_words(short: Shortfall) -> str:
    if short.reason == NOT_ENDED:
        return _DID_NOT_END
    return _WORDS.get(short.code, _WORDS[EnvironmentUnusable.exit_code])


def _of(measurement: Measurement) -> Iterator[Shortfall]:
    if measurement.failure is not None:
        return iter((Shortfall(measurement.failure_code, measurement.failure),))
    # What a fault leaves of N is a figure, and no aim.
    if measurement.is_repeat or measurement.held_fault:
        return iter(())
    # A search or a prediction may have its result all the same.
    if not measurement.has_ended and measurement.policy not in ("search", "prediction"):
        return iter((Shortfall(MeasurementInvalid.exit_code, NOT_ENDED),))
    if measurement.workload:
        return _of_workload(measurement)
    judges = {"search": _of_search, "prediction": _of_prediction}
    if measurement.policy not in judges and (why := _without_connection(measurement)):
        return iter((Shortfall(EnvironmentUnusable.exit_code, why),))
    return judges.get(measurement.policy, _of_fixed_load)(measurement)


def _of_search(measurement: Measurement) -> Iterator[Shortfall]:
    found = measurement.capacity
    if found is not None and found.rate_rps is not None:
        yield from _of_floor(measurement)
        return
    if found is not None and found.is_range:
        if measurement.least_rps is not None or measurement.accepts_range:
            yield from _of_floor(measurement)
            return
        reason = found.words[0] if found.words else _bounds(found)
        yield Shortfall(MeasurementInvalid.exit_code, reason, True)
        return
    causes = {trial.verdict.cause for trial in measurement.trials}
    if found is not None and not measurement.trials:  # several searches
        causes = set(found.causes)
    is_bounded = _is_bounded(found)
    reason = f"{_bounds(found)}{NOT_CONFIRMED}" if is_bounded else "no N was found"
    reason = found.words[0] if found is not None and found.words else reason
    has_varied = found is not None and bool(VARIED & set(found.causes))
    is_ended = measurement.status != "interrupted"
    needs_time = is_ended and (found is None or not (set(found.causes) & CONTRARY))
    is_met = any(trial.verdict.state is TrialState.SUSTAINED for trial in measurement.trials)
    is_met = is_met or (found is not None and found.low_rps is not None)
    has_failed = not measurement.trials or any(one.stats.failed for one in measurement.trials)
    if Cause.OBJECTIVE in causes and not has_varied and not is_met:
        yield Shortfall(FELL_SHORT, reason)
    elif (
        found is None
        or CONTRARY & set(found.causes)
        or _went_away(measurement)
        # A lower rate than those that failed may be sustained.
        or is_bounded
        # Without a number, noise says nothing about the service, but errors do.
        or Cause.ERRORS not in found.causes
        or not has_failed
    ):
        yield Shortfall(MeasurementInvalid.exit_code, reason, needs_time)
    else:
        yield Shortfall(FELL_SHORT, reason)


def _of_floor(measurement: Measurement) -> Iterator[Shortfall]:
    least, found = measurement.least_rps, measurement.capacity
    if least is None or found is None:
        return
    outcome = judge_floor(found, least)
    if outcome is not FloorOutcome.REACHED:
        is_missed = outcome is FloorOutcome.MISSED
        code = FELL_SHORT if is_missed else MeasurementInvalid.exit_code
        yield Shortfall(code, gate_sentence(measurement), not is_missed)


def gate_sentence(measurement: Measurement) -> str:
    """Say whether N reaches --fail-below: "gate missed: N 62 (46 to 76), 200 wanted"."""
    least, found = measurement.least_rps or 0.0, measurement.capacity
    outcome = judge_floor(found, least)
    words = {
        FloorOutcome.REACHED: "gate held",
        FloorOutcome.MISSED: "gate missed",
        FloorOutcome.UNDECIDED: "gate not decided",
    }
    known = _bounds(found, least)
    is_known = found is not None and (found.rate_rps is not None or found.is_range)
    if _is_bounded(found) and not is_known:
        known += NOT_CONFIRMED
    text = f"{words[outcome]}: {known}, {least:,.10g} wanted (--fail-below)"
    if (
        outcome is FloorOutcome.UNDECIDED
        and found is not None
        and found.kind is CapacityKind.CEILING
    ):
        text += "; a higher --max-rate may show more"
    return text


def _is_bounded(found: Capacity | None) -> bool:
    return found is not None and (found.low_rps is not None or found.high_rps is not None)


def _bounds(found: Capacity | None, wanted_rps: float | None = None) -> str:
    """Return N with its interval, as `_digits` does."""
    low, high = (found.low_rps, found.high_rps) if found is not None else (None, None)
    if found is None or (low is None and high is None):
        known = found.rate_rps if found is not None else None
        return "N not found" if known is None else f"N {_digits(known, wanted_rps)}"
    if low is None:
        return f"N below {_digits(high or 0.0, wanted_rps)}"
    if high is None:
        return f"N at least {_digits(low, wanted_rps)}"
    within = f"{_digits(low, wanted_rps)} to {_digits(high, wanted_rps)}"
    rate_rps = found.rate_rps
    return f"N {within}" if rate_rps is None else f"N {_digits(rate_rps, wanted_rps)} ({within})"


def _digits(rate_rps: float, wanted_rps: float | None) -> str:
    """Return a rate in four digits, or in more to show on which side of a wanted rate it is."""
    count = max(0, 3 - math.floor(math.log10(rate_rps))) if rate_rps > 0 else 0
    if wanted_rps is not None:
        count = decimals.needed(rate_rps, wanted_rps, count)
    text = f"{rate_rps:,.{count}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _of_prediction(measurement: Measurement) -> Iterator[Shortfall]:
    if measurement.prediction is not None:
        return
    causes = {trial.verdict.cause for trial in measurement.trials}
    code = FELL_SHORT if Cause.ERRORS in causes else MeasurementInvalid.exit_code
    remedy = "" if code == FELL_SHORT else ". Search for N, without --predict"
    yield Shortfall(code, f"nothing is predicted: {why_not_predicted(measurement)}{remedy}")


def why_not_predicted(measurement: Measurement) -> str:
    """Return why a low load does not predict a capacity."""
    trial = of_low_load(measurement.trials)
    if trial is None and any(one.stats.ok for one in measurement.trials):
        return "the low load did not begin"
    if trial is None or not trial.stats.ok:
        return "no request succeeded"
    if trial.resources is None:
        return "no resources were watched"
    ended = trial.resources.observation.requests
    if ended < LEAST_REQUESTS:
        return (
            f"{ended} {'request' if ended == 1 else 'requests'} ended at low load, and "
            f"{LEAST_REQUESTS} are needed to know what one costs"
        )
    return "the service's processes were not watched"


def _of_fixed_load(measurement: Measurement) -> Iterator[Shortfall]:
    invalid = MeasurementInvalid.exit_code
    of_state = {trial.verdict.state: trial for trial in measurement.trials}
    unmeasured = [sentence for _, sentence in unmeasured_faults(measurement)]
    states = _recoveries(measurement)
    if why := _nothing_known(measurement, unmeasured):
        yield Shortfall(invalid, why)
    elif Recovery.NOT_RECOVERED in states:
        yield Shortfall(FELL_SHORT, "the service did not recover from the fault")
    elif TrialState.DEGRADED in of_state:
        reasons = "; ".join(of_state[TrialState.DEGRADED].verdict.reasons)
        yield Shortfall(FELL_SHORT, reasons or "the load degraded the service")
    elif broken := [row for row in measurement.checks if not row.success]:
        reasons = "; ".join(row.detail or row.criterion for row in broken)
        yield Shortfall(FELL_SHORT, reasons)
    elif unmeasured:
        yield Shortfall(invalid, "; ".join(unmeasured))
    elif Recovery.NOT_SHOWN in states:
        yield Shortfall(invalid, NOT_SHOWN)
    elif any(_is_too_short(trial) for trial in measurement.trials):
        reasons = "; ".join(of_state[TrialState.UNDECIDED].verdict.reasons)
        yield Shortfall(invalid, reasons)


def _nothing_known(measurement: Measurement, unmeasured: Sequence[str]) -> str:
    """Return why a fixed load says nothing of the service; empty if it does."""
    invalid = [one for one in measurement.trials if one.verdict.state is TrialState.INVALID]
    if not measurement.trials:
        return f"no load was made: the measurement is {measurement.status}"
    if invalid:
        return "; ".join(invalid[-1].verdict.reasons) or "the load generator was the limit"
    if "fault" in dict(measurement.parameters) and not any(
        one.faults for one in measurement.trials
    ):
        return "; ".join(unmeasured) or "the fault has no figures"
    healths = [trial.health for trial in measurement.trials if trial.faults]
    limits = (why for one in healths if one is not None for why in one.limits)
    return "; ".join(dict.fromkeys(limits))


def _without_connection(measurement: Measurement) -> str:
    """Return why no request reached the service; empty if one did."""
    every = [trial.stats for trial in measurement.trials]
    kinds = {name for stats in every for name, _ in stats.errors}
    if any(stats.ok for stats in every) or not kinds or not kinds <= NO_CONNECTION.keys():
        return ""
    return "; ".join(f"no request reached it: {one}; {NO_CONNECTION[one]}" for one in sorted(kinds))


def _recoveries(measurement: Measurement) -> set[Recovery]:
    effects = [one for trial in measurement.trials for one in trial.faults]
    actions = {one.action for one in effects}
    by_action = ([one for one in effects if one.action == action] for action in actions)
    return {state for found in by_action for state in recoveries(found)}


def unmeasured_faults(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield actions with repeats without figures, and how many have none and why."""
    without = [one for trial in measurement.trials for one in trial.unmeasured_faults]
    repeats = Counter(one.action for one in without)
    repeats.update(one.action for trial in measurement.trials for one in trial.faults)
    for action, count in Counter(one.action for one in without).items():
        of_all = f"{count} of {repeats[action]} repeats {'has' if count == 1 else 'have'}"
        which = of_all if repeats[action] > 1 else "the fault has"
        reasons = dict.fromkeys(one.reason for one in without if one.action == action)
        yield action, f"{which} no figures: {'; '.join(reasons)}"


def _is_too_short(trial: Trial) -> bool:
    """Return whether a trial at a rate does not show if the service keeps up."""
    verdict = trial.verdict
    return (
        verdict.state is TrialState.UNDECIDED
        and trial.rate_rps is not None
        and bool(verdict.reasons)
    )


def _of_workload(measurement: Measurement) -> Iterator[Shortfall]:
    health, given = measurement.health, measurement.workload
    if health is not None and health.is_broken_off:
        yield Shortfall(MeasurementInvalid.exit_code, "; ".join(health.limits))
    # A closed loop has no target rate: a late generator makes it slower, not wrong.
    elif given and given.runner_name == "rps" and health is not None and not health.is_valid:
        reason = f"the requested rate was not kept: {'; '.join(health.limits)}"
        yield Shortfall(MeasurementInvalid.exit_code, reason)
    elif not measurement.checks_passed:
        rows = (row for row in measurement.checks if not row.success)
        broken = "; ".join(f"{r.criterion} ({r.detail})" if r.detail else r.criterion for r in rows)
        yield Shortfall(FELL_SHORT, f"the SLA is broken: {broken}")


def _went_away(measurement: Measurement) -> bool:
    """Return whether the target stopped answering during the measurement."""
    trials = measurement.trials
    return any(trial.stats.ok for trial in trials) and trials[-1].stats.ok == 0
