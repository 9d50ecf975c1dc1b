"""Trials of a measurement that a report speaks of."""

import math
from dataclasses import dataclass

from loadstone.analysis.model import Cause, Trial, TrialState
from loadstone.engine.health import Health
from loadstone.result.model import Measurement
from loadstone.search.per_user import is_of_fewer_users

# A trial with at least this share of N shows the machine "at N".
NEAR = 0.9
# seconds; a shorter trial does not show that the service sustains the rate
LEAST_S = 5.0
SAME_RATE = 0.01  # relative difference of rates that count as one rate


@dataclass(frozen=True, slots=True)
class Edge:
    """The lowest rate that was not sustained, with all trials at that rate."""

    rate_rps: float
    failed: tuple[Trial, ...]
    sustained: tuple[Trial, ...]

    @property
    def cause(self) -> Cause | None:
        """Why the first of them failed."""
        return self.failed[0].verdict.cause


def edge(measurement: Measurement) -> Edge | None:
    """Return the lowest rate that failed; None if none did.

    With an interval of N, one that failed below it is not the edge: noise or an outage was the
    reason, or the service changed.
    """
    found = measurement.capacity
    is_known = found is not None and found.rate_rps is not None
    least_rps = found.low_rps or 0.0 if found is not None and is_known else 0.0
    return _edge(measurement, least_rps)


def _edge(measurement: Measurement, least_rps: float) -> Edge | None:
    failed = [t.rate_rps or 0.0 for t in _degraded(measurement)]
    rate_rps = next((one for one in failed if one >= least_rps), None)
    if rate_rps is None:
        return None
    near = [
        t for t in paced(measurement) if abs((t.rate_rps or 0) - rate_rps) <= SAME_RATE * rate_rps
    ]
    return Edge(
        rate_rps,
        tuple(t for t in near if t.verdict.state is TrialState.DEGRADED),
        tuple(t for t in near if t.verdict.state is TrialState.SUSTAINED),
    )


def healths(measurement: Measurement) -> list[Health]:
    """Return the load generator's health in each trial in which it is known."""
    return [trial.health for trial in measurement.trials if trial.health is not None]


def paced(measurement: Measurement) -> list[Trial]:
    """Return the full trials at a constant rate by all users, ordered by rate."""
    found = [
        t
        for t in measurement.trials
        if t.rate_rps is not None and t.planned_s >= LEAST_S and not is_of_fewer_users(t)
    ]
    return sorted(found, key=lambda t: t.rate_rps or 0.0)


def kept_up(measurement: Measurement) -> Trial | None:
    """Return the trial that shows a rate at which the service keeps up; None without one.

    A rate at which it also fell behind is no such rate.
    """
    trial, found = last_sustained(measurement), _edge(measurement, 0.0)
    at_edge = found.sustained if found else ()
    return None if any(trial is one for one in at_edge) else trial


def last_sustained(measurement: Measurement) -> Trial | None:
    """Return the sustained trial with the highest rate up to N at which no other trial failed.

    Without one, the sustained trial with the highest rate.
    """
    found = [t for t in paced(measurement) if t.verdict.state is TrialState.SUSTAINED]
    degraded = first_degraded(measurement)
    n_rps = measurement.capacity.rate_rps if measurement.capacity else None
    most_rps = math.inf if n_rps is None else n_rps
    failed_rps = math.inf if degraded is None else degraded.rate_rps or math.inf
    held = [t for t in found if (t.rate_rps or 0.0) <= most_rps and (t.rate_rps or 0) < failed_rps]
    return next(reversed(held or found), None)


def representative(measurement: Measurement) -> Trial | None:
    """Return the only trial of a fixed load, the last sustained one of a search, else None."""
    if measurement.policy == "search":
        return last_sustained(measurement)
    is_only = measurement.policy == "fixed" and len(measurement.trials) == 1
    return measurement.trial if is_only else None


def first_degraded(measurement: Measurement) -> Trial | None:
    """Return the degraded trial with the lowest rate."""
    return next(iter(_degraded(measurement)), None)


def _degraded(measurement: Measurement) -> list[Trial]:
    return [t for t in paced(measurement) if t.verdict.state is TrialState.DEGRADED]


def at_n(measurement: Measurement) -> Trial | None:
    """Return the longest valid trial in which the service completed about N a second."""
    capacity = measurement.capacity
    n_rps = capacity.rate_rps if capacity else None
    if n_rps is None:
        return None
    near = [
        t
        for t in measurement.trials
        if t.usage is not None
        and t.is_valid
        and t.stats.throughput_rps >= NEAR * n_rps
        and (t.rate_rps is None or t.rate_rps <= n_rps)
    ]
    # A saturated service runs exactly at N.
    return max(near, key=lambda t: (t.rate_rps is None, t.stats.load_s), default=None)
