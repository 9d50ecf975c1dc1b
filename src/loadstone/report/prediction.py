"""Predicted capacity as sentences and as data, beside the measured one."""

import math
from collections.abc import Iterator
from typing import Any

from loadstone.diagnosis.demand import BottleneckKind
from loadstone.diagnosis.prediction import LowLoadFigures, Prediction, cpu_s, is_upper_bound
from loadstone.report import figures
from loadstone.result.model import Measurement
from loadstone.result.outcome import why_not_predicted
from loadstone.search.low_load import of_low_load, of_requests_alone
from loadstone.search.model import Capacity, CapacityKind

# Effects that the demands at low load do not show, by the kind of limit found at N.
SOFTWARE = {
    BottleneckKind.CONNECTIONS: "connections that requests wait for",
    BottleneckKind.LOCK: "a lock that requests wait for",
    BottleneckKind.QUEUE: "a queue that is full",
    BottleneckKind.BALANCER: "the balancer's limit on sessions",
    BottleneckKind.WORKERS: "workers that are all busy",
}

# Limits that a low load does not reach.
NOT_RESOURCES: dict[CapacityKind | None, str] = {
    CapacityKind.OBJECTIVE: "the objective limits it, which a low load meets",
    CapacityKind.REFUSAL: "requests are refused from there on, and at a low load none are",
}


def as_data(measurement: Measurement) -> dict[str, Any] | None:
    """Return the prediction as JSON-compatible data, or None if there is none."""
    found = measurement.prediction
    if found is None:
        return None
    return {
        "rate_rps": found.rate_rps,
        "low_rps": found.low_rps,
        "high_rps": found.high_rps,
        "limit": found.limit,
        "at_rps": found.at_rps,
        "requests": found.requests,
        "words": list(sentences(measurement)),
    }


def sentences(measurement: Measurement) -> Iterator[str]:
    """Describe the prediction, and how a measured N differs from it."""
    found, trial = measurement.prediction, of_low_load(measurement.trials)
    if found is None:
        if trial is not None or measurement.policy == "prediction":
            yield f"nothing is predicted: {why_not_predicted(measurement)}"
        return
    if why := unwatched(measurement):
        yield (
            f"predicted from {figures.rate(found.at_rps)} a second: N at most about {rate(found)}, "
            f"where {found.limit} would give way; {why}"
        )
    else:
        yield (
            f"predicted from {figures.rate(found.at_rps)} a second: N about {rate(found)} "
            f"({interval(found)}); {found.limit} would give way first"
        )
    capacity = measurement.capacity
    if capacity is None or capacity.rate_rps is None:
        return
    # A lower N does not contradict an upper bound.
    if not why or (capacity.low_rps or capacity.rate_rps) > found.high_rps:
        yield _compared(found, capacity, measurement)


def headline(measurement: Measurement) -> str:
    """Describe the prediction in one sentence."""
    subject = figures.begun(measurement.title)
    found = measurement.prediction
    if found is None:
        return f"{subject}: N cannot be predicted."
    if unwatched(measurement):
        return f"{subject}: N is predicted to be at most {rate(found)} a second."
    return f"{subject}: N is predicted to be {rate(found)} a second ({interval(found)})."


def unwatched(measurement: Measurement) -> str:
    """Return why the prediction is only an upper bound; empty if it is more than that."""
    trial, alone = of_low_load(measurement.trials), of_requests_alone(measurement.trials)
    if trial is None or alone is None or trial.resources is None:
        return ""
    seen, response_s = trial.resources.observation, alone.stats.service.mean_s
    cost_s = cpu_s(seen)
    if cost_s is None or not is_upper_bound(seen, LowLoadFigures(response_s, 0.0)):
        return ""
    takes = figures.milliseconds(1000 * response_s)
    return (
        f"a request takes {takes} and {figures.milliseconds(1000 * cost_s)} of CPU, and what it "
        "waits for was not watched, so N may be far lower"
    )


def rate(found: Prediction) -> str:
    """Return the predicted rate."""
    return figures.rate(found.rate_rps)


def interval(found: Prediction) -> str:
    """Return the interval of the prediction."""
    return f"{figures.rate(found.low_rps)} to {figures.rate(found.high_rps)}"


def _compared(found: Prediction, capacity: Capacity, measurement: Measurement) -> str:
    measured_rps = capacity.rate_rps or math.nan
    low_rps = measured_rps if capacity.low_rps is None else capacity.low_rps
    high_rps = math.inf if capacity.high_rps is None else capacity.high_rps
    share = figures.percent(abs(measured_rps / found.rate_rps - 1))
    if high_rps < found.low_rps:
        if limit := NOT_RESOURCES.get(capacity.kind):
            return f"the measured N is {share} lower than predicted: {limit}"
        return (
            f"the measured N is {share} lower than predicted: something that looks idle at low "
            f"load is the limit, {_software(measurement)}"
        )
    if low_rps > found.high_rps:
        least = "at least " if capacity.high_rps is None else ""
        return (
            f"the measured N is {least}{share} higher than predicted: a request costs less under "
            "load (warm caches, work done in batches), or other programs took the cores while the "
            "prediction was made"
        )
    if capacity.high_rps is None:
        return f"the measured N is at least {figures.rate(low_rps)}, which the prediction allows"
    way = "above" if measured_rps >= found.rate_rps else "below"
    is_within = found.low_rps <= measured_rps <= found.high_rps
    how = "within its interval" if is_within else "and their intervals overlap"
    return f"the measured N is {share} {way} the prediction, {how}"


def _software(measurement: Measurement) -> str:
    kind = measurement.resources.bottleneck.kind if measurement.resources else None
    named = SOFTWARE.get(kind) if kind else None
    if named:
        return f"such as {named}, which is named above"
    return (
        "such as the limit of a queue, a connection pool, a lock, Python's global lock, or one "
        "thread that all requests pass"
    )
