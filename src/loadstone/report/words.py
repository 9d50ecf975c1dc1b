"""Describes a search's results in sentences."""

import math
from collections.abc import Iterator
from typing import assert_never

from loadstone.analysis.model import Cause, Trial, TrialState
from loadstone.engine.health import Health
from loadstone.monitor.usage import Usage, deaths
from loadstone.report import figures, prediction, profile, resources, trial_figures
from loadstone.report.generator import generator_of
from loadstone.result.model import Measurement
from loadstone.search.floor import floor_message
from loadstone.search.low_load import is_low_load
from loadstone.search.model import Capacity, CapacityKind

# From this usage on the cores are the limit; the rest goes to the kernel's own work.
BUSY = 0.9
# Below this usage, something other than the cores limits the service.
IDLE = 0.7
STOLEN = 0.02
OTHERS = 0.1
# A trial with at least this share of N shows the machine "at N".
NEAR = 0.9
# What limits the rate at N.
LIMITS = {
    CapacityKind.SATURATION: "saturation: every worker is busy",
    CapacityKind.REFUSAL: "refusals: requests fail from here on",
    CapacityKind.COLLAPSE: "a collapse: throughput falls when a queue forms",
    CapacityKind.OBJECTIVE: "the objective: responses become too slow",
    CapacityKind.CEILING: "the load that is allowed, not by the service",
}
# seconds; a shorter trial does not show that the service sustains the rate
LEAST_S = 5.0


def of(measurement: Measurement) -> tuple[str, ...]:
    """Describe the whole result of a measurement, most important first."""
    return tuple(
        dict.fromkeys((headline(measurement), *details(measurement), *method(measurement)))
    )


def details(measurement: Measurement) -> tuple[str, ...]:
    """Describe the result apart from N."""
    least = measurement.least_rps
    lines = [
        *([floor_message(measurement.capacity, least)] if least is not None else []),
        *([measurement.resources.bottleneck.sentence] if measurement.resources else []),
        *(measurement.capacity.words if measurement.capacity else ()),
        *prediction.sentences(measurement),
        *resources.sentences(measurement),
        *profile.sentences(measurement),
        *limit(measurement),
        *below(measurement),
        *above(measurement),
        *errors(measurement),
        *died(measurement),
        *protocol(measurement),
        *generator(measurement),
        *measurement.notes,
    ]
    return tuple(dict.fromkeys(map(sentence, lines)))


def sentence(text: str) -> str:
    """Return a text with an initial capital and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", ")")) else ".")


def headline(measurement: Measurement) -> str:
    """Return N, the prediction, or the result of one phase of load in a sentence."""
    match measurement.policy:
        case "search":
            return n(measurement)
        case "prediction":
            return prediction.headline(measurement)
        case "fixed" | "steps":
            return phase(measurement)
        case _:
            assert_never(measurement.policy)


def n(measurement: Measurement) -> str:
    """Return N, or that there is none, in a sentence."""
    capacity = measurement.capacity
    if capacity is None:
        return f"No capacity was found for {measurement.title}: the search did not finish."
    subject = measurement.title[:1].upper() + measurement.title[1:]
    low, high = capacity.low_rps, capacity.high_rps
    found = figures.n(capacity)
    if has_interval(capacity):
        return f"{subject}: the service sustains N = {found} a second ({_interval(capacity)})."
    if low is not None and high is not None:
        return f"{subject}: N lies somewhere in {found} a second."
    if low is not None:
        return f"{subject}: the service sustains {found} a second; the upper limit is not known."
    if high is not None:
        return f"{subject}: N is {found} a second; no rate was seen to be sustained."
    return f"{subject}: N was not found."


def phase(measurement: Measurement) -> str:
    """Describe the result of one phase of load."""
    subject = measurement.title[:1].upper() + measurement.title[1:]
    if not measurement.trials:
        return f"{subject}: the load did not finish."
    stats = measurement.trials[0].stats
    return (
        f"{subject}: {stats.ok:,} of {stats.due:,} succeeded, "
        f"{figures.rate(stats.throughput_rps)} a second, "
        f"{figures.milliseconds(1000 * stats.service.mean_s)} each on average."
    )


def has_interval(capacity: Capacity | None) -> bool:
    """Return whether N is one number with an interval around it."""
    return capacity is not None and None not in (
        capacity.rate_rps,
        capacity.low_rps,
        capacity.high_rps,
    )


def confidence(capacity: Capacity) -> str:
    """Describe the confidence of the interval."""
    if capacity.confidence <= 0:
        return "confidence unknown"
    sure = figures.percent(capacity.confidence)
    limited = f"; limited by {LIMITS[capacity.kind]}" if capacity.kind else ""
    return f"{sure} confidence interval (its coverage is measured by simulation){limited}"


def limit(measurement: Measurement) -> Iterator[str]:
    """Describe the cost of a request, and whether the CPU limits N."""
    cost_s = measurement.cpu_per_request_s
    if cost_s is not None:
        yield (
            f"One {measurement.title} costs {figures.milliseconds(cost_s * 1000)} of CPU in the "
            f"service's processes, over all trials."
        )
    near = at_n(measurement)
    # This machine's cores are irrelevant to a service elsewhere.
    if near is None or near.usage is None or near.usage.service_cpu_s is None:
        return
    usage = near.usage
    if measurement.resources is not None:  # its sentence says more
        yield from _taken(usage)
        return
    cores = "1 core was" if usage.cores == 1 else f"{usage.cores} cores were"
    busy = f"{cores} {figures.percent(usage.machine_busy)} busy at N"
    if usage.machine_busy >= BUSY:
        yield f"{busy}: the CPU is the limit."
    elif usage.machine_busy < IDLE:
        yield (
            f"{busy}: the machine had CPU to spare, so too few workers, a lock or something "
            f"outside of it is the limit."
        )
    else:
        yield f"{busy}."
    yield from _taken(usage)


def _taken(usage: Usage) -> Iterator[str]:
    if usage.machine_steal >= STOLEN:
        yield (
            f"{figures.percent(usage.machine_steal)} of the CPU time was taken by other guests of "
            f"the same host: without them N would be higher."
        )
    others = usage.others_busy
    if usage.service_busy is None or others is None:
        return
    generator = figures.percent(usage.generator_busy)
    yield f"The load generator, on the same machine, took {generator} of its CPU."
    if others >= OTHERS:
        yield (
            f"Other work on this machine took {figures.percent(others)} of its CPU, the service "
            f"{figures.percent(usage.service_busy)}: on a quiet machine N would be higher."
        )


def below(measurement: Measurement) -> Iterator[str]:
    """Describe how the service answers at the highest rate that it sustained."""
    trial = last_sustained(measurement)
    if trial is None or trial.rate_rps is None:
        return
    latency = trial.stats.total
    yield (
        f"At {figures.rate(trial.rate_rps)} a second it keeps up for "
        f"{figures.seconds(trial.stats.load_s)}: half of the responses arrive within "
        f"{figures.milliseconds(1000 * latency.median_s)}, 99 % within "
        f"{figures.milliseconds(1000 * latency.p99_s)}."
    )


def above(measurement: Measurement) -> Iterator[str]:
    """Describe how the service degrades at the lowest rate that it did not sustain."""
    trial = first_degraded(measurement)
    if trial is None or trial.rate_rps is None:
        return
    offered = f"At {figures.rate(trial.rate_rps)} a second"
    growth = trial.stats.backlog_growth
    match trial.verdict.cause:
        case Cause.OVERLOAD if growth > 0:
            yield (
                f"{offered} only {figures.rate(trial.stats.throughput_rps)} complete: the backlog "
                f"grows by {growth:.2f} s of work every second, and each response takes longer "
                f"than the one before. The service is overloaded, not broken."
            )
        case Cause.DRIFT:
            yield f"{offered} it keeps up at first and then becomes slower."
        case Cause.ERRORS:
            yield f"{offered} requests fail: {trial_figures.errors(trial)}."
        case Cause.OBJECTIVE:
            yield f"{offered} it keeps up, but slower than wanted."
        case Cause.OVERLOAD | Cause.GENERATOR | Cause.CONNECTIONS | Cause.INCONSISTENT | None:
            return


def errors(measurement: Measurement) -> Iterator[str]:
    """Describe how many requests failed."""
    due = sum(trial.stats.due for trial in measurement.trials)
    failed = sum(trial.stats.failed for trial in measurement.trials)
    if not due:
        return
    if failed:
        yield f"{failed:,} of {due:,} requests failed."
    else:
        yield f"None of the {due:,} requests failed."
    if count := sum(health.retries for health in healths(measurement)):
        yield retried(count)


def died(measurement: Measurement) -> Iterator[str]:
    """Describe which processes of the service died, and in which trial."""
    for trial in measurement.trials:
        if trial.usage is not None:
            where = "under load" if len(measurement.trials) == 1 else f"in trial {trial.number}"
            yield from (f"{where} {line}" for line in deaths(trial.usage))


def protocol(measurement: Measurement) -> Iterator[str]:
    """Describe the protocol if it is not HTTP/1.1."""
    if any(health.http == "2" for health in healths(measurement)):
        yield "requests went over HTTP/2, one connection a thread of the load generator"
    for resumed in {health.tls_resumption for health in healths(measurement)} - {None}:
        yield handshakes(resumed=bool(resumed))


def handshakes(*, resumed: bool) -> str:
    """Describe the handshakes of new TLS connections."""
    if resumed:
        return "new connections resumed the TLS session of an earlier one"
    return "each new connection made a full TLS handshake"


def retried(count: int) -> str:
    """Describe how many requests were sent a second time, and why."""
    which = "1 request was" if count == 1 else f"{count:,} requests were"
    return (
        f"{which} sent a second time: the service had closed the kept connection before it read "
        f"the first."
    )


def generator(measurement: Measurement) -> Iterator[str]:
    """Describe whether the load generator was valid, and the CPU that it took from the service."""
    found = generator_of(measurement)
    if found is None:
        return
    if found.invalid_trials:
        which = ", ".join(str(number) for number in found.invalid_trials)
        one = len(found.invalid_trials) == 1
        trials = f"trial {which}: it says" if one else f"trials {which}: they say"
        yield f"The load generator was the limit in {trials} nothing of the service."
    if len(found.invalid_trials) < len(measurement.trials):
        others = "In the others it"
        who = others if found.invalid_trials else "The load generator was not the limit: it"
        yield (
            f"{who} sent 99 % of the requests within {figures.milliseconds(found.lag_p99_ms)} of "
            f"their due time and used {figures.percent(found.cpu_share_max)} of a core."
        )


def method(measurement: Measurement) -> Iterator[str]:
    """Describe how N was measured."""
    if not measurement.trials or measurement.policy != "search":
        return
    low = sum(is_low_load(trial) for trial in measurement.trials)
    saturated = sum(trial.rate_rps is None for trial in measurement.trials) - low
    constant = len(measurement.trials) - saturated - low
    count = f"{len(measurement.trials)} trials" if len(measurement.trials) > 1 else "1 trial"
    yield (
        f"The search made {count} with {figures.seconds(measurement.load_s)} of load "
        f"({figures.seconds(measurement.wall_s)} in all)."
    )
    if low:
        yield f"{low} of them had a low load; the cost of a request there predicts N."
    if saturated:
        yield (
            f"{saturated} of them saturated the service and counted what it completed: that is "
            f"its capacity."
        )
    if constant:
        yield (
            f"{constant} of them sent requests at a constant rate, however slow the responses, "
            f"and counted latency from the time at which each request was due. Such a trial is "
            f"sustained if the backlog does not grow."
        )


def healths(measurement: Measurement) -> list[Health]:
    """Return the load generator's health in each trial in which it is known."""
    return [trial.health for trial in measurement.trials if trial.health is not None]


def paced(measurement: Measurement) -> list[Trial]:
    """Return the full trials at a constant rate, ordered by rate."""
    found = [t for t in measurement.trials if t.rate_rps is not None and t.planned_s >= LEAST_S]
    return sorted(found, key=lambda t: t.rate_rps or 0.0)


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


def first_degraded(measurement: Measurement) -> Trial | None:
    """Return the degraded trial with the lowest rate."""
    found = [t for t in paced(measurement) if t.verdict.state is TrialState.DEGRADED]
    return found[0] if found else None


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


def _interval(capacity: Capacity) -> str:
    sure = f"{figures.percent(capacity.confidence)} " if capacity.confidence > 0 else ""
    return f"{sure}interval {figures.interval(capacity)}"
