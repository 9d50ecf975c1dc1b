"""Sentences about a measurement, each built from the trials that carry it."""

from collections import Counter
from collections.abc import Iterator
from typing import assert_never

from loadstone.analysis import decimals
from loadstone.analysis.model import Cause, Trial
from loadstone.diagnosis.finding import Finding, Severity
from loadstone.diagnosis.limit import (
    CpuVerdict,
    is_disturbed,
    is_stolen,
    judge_cpu,
    taken_by_others,
)
from loadstone.monitor.usage import Usage, deaths
from loadstone.report import figures, prediction, profile, resources, trial_figures
from loadstone.report.generator import cores_of, generator_of
from loadstone.report.section import Statement
from loadstone.report.sections.trials import (
    Edge,
    at_n,
    edge,
    healths,
    kept_up,
)
from loadstone.result.model import Measurement
from loadstone.result.outcome import gate_sentence
from loadstone.search.low_load import is_low_load
from loadstone.search.model import Capacity, CapacityKind

# What limits the rate at N, where it is not a resource.
LIMITS = {
    CapacityKind.SATURATION: "saturation: the service is full",
    CapacityKind.REFUSAL: "refusals: requests fail from here on",
    CapacityKind.COLLAPSE: "a collapse: throughput falls when a queue forms",
    CapacityKind.OBJECTIVE: "the objective: responses become too slow",
    CapacityKind.CEILING: "the load that is allowed, not by the service",
}
TIMES = {1: "once", 2: "twice"}
LEAST_GROWTH = 0.01  # seconds of work per second; less would be shown as 0.00
# How a trial at the edge of N failed, if it did not fall behind.
FAILED: dict[Cause | None, str] = {
    Cause.ERRORS: "had too many errors",
    Cause.OBJECTIVE: "was slower than wanted",
}


def of(measurement: Measurement) -> tuple[Statement, ...]:
    """Return what the figures of a measurement say apart from the answer, without duplicates."""
    warnings = (
        *died(measurement),
        *disturbed(measurement),
        *invalid(measurement),
        *held_back(measurement),
    )
    found = [
        *(Statement(sentence(text), Severity.WARNING) for text in warnings),
        *(Statement(sentence(text)) for text in _infos(measurement)),
    ]
    return tuple({one.text: one for one in reversed(found)}.values())[::-1]


def held_back(measurement: Measurement) -> Iterator[str]:
    """Say that the highest rate allowed, and not the service, set the rate of a fixed load."""
    ceilings = [trial.ceiling for trial in measurement.trials if trial.ceiling]
    if measurement.policy == "fixed" and ceilings:
        yield f"the rate is not the service's: {ceilings[-1]}"


def _infos(measurement: Measurement) -> Iterator[str]:
    if measurement.least_rps is not None:
        yield gate_sentence(measurement)
    if measurement.resources is not None:
        yield measurement.resources.bottleneck.sentence
        yield from measurement.resources.not_watched
    yield from measurement.capacity.words if measurement.capacity else ()
    yield from prediction.sentences(measurement)
    yield from resources.sentences(measurement)
    yield from profile.sentences(measurement)
    yield from costs(measurement)
    yield from below(measurement)
    yield from above(measurement)
    yield from errors(measurement)
    yield from protocol(measurement)
    yield from generator(measurement)
    yield from measurement.notes


def sentence(text: str) -> str:
    """Return a text with an initial capital and a full stop."""
    return figures.begun(text) + ("" if text.endswith((".", "!", "?", ")")) else ".")


def has_interval(capacity: Capacity | None) -> bool:
    """Return whether N is one number with an interval around it."""
    return capacity is not None and None not in (
        capacity.rate_rps,
        capacity.low_rps,
        capacity.high_rps,
    )


def _is_saturated(found: Capacity | None) -> bool:
    """Return whether N is what the full service completes."""
    kinds = (None, CapacityKind.SATURATION)
    return found is not None and has_interval(found) and found.kind in kinds


def costs(measurement: Measurement) -> Iterator[str]:
    """Describe the cost of a request, and whether the machine's cores limit N."""
    cost_s = measurement.cpu_per_request_s
    if cost_s is not None:
        yield (
            f"One {measurement.title} costs {figures.milliseconds(cost_s * 1000)} of CPU in the "
            f"service's processes, over the valid trials without a failed request."
        )
    usage = _usage_at_n(measurement)
    if usage is None:
        return
    if measurement.resources is None:  # its sentence says more
        cores = f"{figures.counted(usage.cores, 'core')} {'was' if usage.cores == 1 else 'were'}"
        busy = f"{cores} {figures.percent(usage.machine_busy)} busy at N"
        # Where refusals, an objective or a ceiling limits N, the cores say nothing of the limit.
        is_known = _is_saturated(measurement.capacity)
        match judge_cpu(usage) if is_known else CpuVerdict.UNCLEAR:
            case CpuVerdict.LIMIT:
                yield f"{busy}: the CPU is the limit."
            case CpuVerdict.SPARE:
                yield (
                    f"{busy}: the machine had CPU to spare, so too few workers, a lock or "
                    f"something outside of it is the limit."
                )
            case CpuVerdict.UNCLEAR:
                yield f"{busy}."
            case other:
                assert_never(other)
    if usage.service_busy is not None:
        generator = figures.percent(usage.generator_busy)
        yield f"The load generator, on the same machine, took {generator} of its CPU."


def machine_limit(measurement: Measurement) -> str | None:
    """Return that the machine's cores limit N, by its CPU clocks; None if they do not."""
    usage = _usage_at_n(measurement)
    if usage is None or judge_cpu(usage) is not CpuVerdict.LIMIT:
        return None
    cores = "its core was" if usage.cores == 1 else f"its {usage.cores} cores were"
    return f"the machine's CPU: {cores} {figures.percent(usage.machine_busy)} busy at N"


def by_others(measurement: Measurement) -> Finding | None:
    """Return the finding that other programs took the cores, unless a fault had them do so."""
    return None if takes_cpu(measurement) else taken_by_others(measurement.resources)


def takes_cpu(measurement: Measurement) -> bool:
    """Return whether the fault in force took CPU time from the service."""
    return measurement.held_fault.startswith("steal")


def disturbed(measurement: Measurement) -> Iterator[str]:
    """Describe what others took of the CPU at N."""
    usage = _usage_at_n(measurement)
    if usage is None:
        return
    if is_stolen(usage):
        yield (
            f"{figures.percent(usage.machine_steal)} of the CPU time was taken by other guests of "
            f"the same host: without them N may be higher."
        )
    if is_disturbed(usage) and not takes_cpu(measurement):
        yield (
            f"Other work on this machine took {figures.percent(usage.others_busy or 0.0)} of its "
            f"CPU, the service {figures.percent(usage.service_busy or 0.0)}: on a quiet machine N "
            f"may be higher."
        )


def _usage_at_n(measurement: Measurement) -> Usage | None:
    """Return the usage of this machine at N; None for a service on another machine."""
    near = at_n(measurement)
    known = near is not None and near.usage is not None and near.usage.service_cpu_s is not None
    return near.usage if near is not None and known else None


def below(measurement: Measurement) -> Iterator[str]:
    """Describe how the service answers at the highest rate that it sustained."""
    trial = kept_up(measurement)
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
    found = edge(measurement)
    if found is None:
        return
    offered = f"At {figures.rate(found.rate_rps)} a second"
    if found.sustained:
        yield f"{offered} it {both(found)}"
    yield from _degraded(offered, found.failed[0], is_only=not found.sustained)


def both(found: Edge) -> str:
    """Describe trials of one rate that disagree."""
    causes = {trial.verdict.cause for trial in found.failed}
    how = FAILED.get(causes.pop(), "fell behind") if len(causes) == 1 else "failed"
    held, failed = _times(len(found.sustained)), _times(len(found.failed))
    return f"kept up {held} and {how} {failed}: that is the upper edge of N"


def _times(count: int) -> str:
    return TIMES.get(count, f"{count} times")


def _degraded(offered: str, trial: Trial, *, is_only: bool) -> Iterator[str]:
    growth = trial.stats.backlog_growth
    match trial.verdict.cause:
        case Cause.OVERLOAD if growth > 0 and is_only:
            completed = completed_below(trial)
            only = f"only {completed} complete: the" if completed else "the"
            grows = f"{growth:.2f}" if growth >= LEAST_GROWTH else figures.rate(growth)
            yield (
                f"{offered} {only} backlog grows by {grows} s of work every second, and each "
                f"response takes longer than the one before. The service is overloaded, not broken."
            )
        case Cause.DRIFT if is_only:
            yield f"{offered} it keeps up at first and then becomes slower."
        case Cause.ERRORS:
            yield f"{offered} requests fail: {trial_figures.errors(trial)}."
        case Cause.OBJECTIVE:
            yield f"{offered} it keeps up, but slower than wanted."
        case _:
            return


def completed_below(trial: Trial) -> str:
    """Return the throughput, with the digits that tell it from the offered rate.

    Empty if it is not below that rate.
    """
    offered_rps, completed_rps = trial.rate_rps or 0.0, trial.stats.throughput_rps
    if completed_rps >= offered_rps:
        return ""
    shown = figures.rate(completed_rps)
    if shown != figures.rate(offered_rps):
        return shown
    return f"{completed_rps:,.{decimals.needed(completed_rps, offered_rps, 0)}f}"


def errors(measurement: Measurement) -> Iterator[str]:
    """Describe how many requests failed."""
    due = sum(trial.stats.due for trial in measurement.trials)
    ended = sum(trial.stats.ended for trial in measurement.trials)
    failed = sum(trial.stats.failed for trial in measurement.trials)
    if not due:
        return
    if failed:
        yield f"{failed:,} of {figures.counted(ended, 'request')} failed."
    elif not any(trial.stats.ok for trial in measurement.trials):
        none = "The only request was not" if due == 1 else f"None of the {due:,} requests was"
        yield f"{none} answered in the time given."
    else:
        none = f"None of the {ended:,} requests failed."
        yield "The only request succeeded." if ended == 1 else none
    if ended and (cut_off := due - ended):
        yield (
            "cut off when the load ended, counted neither as succeeded nor as failed: "
            f"{figures.counted(cut_off, 'request')}"
        )
    if count := sum(health.retries for health in healths(measurement)):
        yield retried(count)


def died(measurement: Measurement) -> Iterator[str]:
    """Describe which processes of the service died, and in which trial.

    Those of a trial with a fault are counted, since the fault may have ended them.
    """
    for trial in measurement.trials:
        if trial.usage is not None:
            where = "under load" if len(measurement.trials) == 1 else f"in trial {trial.number}"
            if not trial.had_fault:
                yield from (f"{where} {line}" for line in deaths(trial.usage))
    yield from _died_of_faults(measurement)


def _died_of_faults(measurement: Measurement) -> Iterator[str]:
    counts: dict[str, list[int]] = {}
    faulted = [one for one in measurement.trials if one.had_fault and one.usage is not None]
    for trial in faulted:
        ended = [one.part for one in trial.usage.ended if not one.is_elastic] if trial.usage else []
        for part, count in Counter(ended).items():
            counts.setdefault(part, []).append(count)
    for part, each in counts.items():
        least, most = min(each), max(each)
        many = f"{least} to {most}" if least < most else str(most)
        processes = "process" if most == 1 else "processes"
        trials = f"{len(each)} of {len(faulted)} trials" if len(faulted) > 1 else "the trial"
        yield f"{many} {processes} of {part} ended in {trials} with a fault"


def protocol(measurement: Measurement) -> Iterator[str]:
    """Describe the protocol if it is not HTTP/1.1."""
    if any(health.http == "2" for health in healths(measurement)):
        yield "requests went over HTTP/2, one connection a thread of the load generator"
    for resumed in {health.tls_resumption for health in healths(measurement)} - {None}:
        yield (
            "new connections resumed the TLS session of an earlier one"
            if resumed
            else "each new connection made a full TLS handshake"
        )


def retried(count: int) -> str:
    """Describe how many requests were sent a second time, and why."""
    which = "1 request was" if count == 1 else f"{count:,} requests were"
    return (
        f"{which} sent a second time: the service had closed the kept connection before it read "
        f"the first."
    )


def invalid(measurement: Measurement) -> Iterator[str]:
    """Describe in which trials the load generator or its connections were the limit."""
    found = generator_of(measurement)
    if found is not None and found.invalid_trials:
        which = ", ".join(str(number) for number in found.invalid_trials)
        one = len(found.invalid_trials) == 1
        trials = f"trial {which}: it says" if one else f"trials {which}: they say"
        yield f"The load generator was the limit in {trials} nothing of the service."
    few = [one.number for one in measurement.trials if one.verdict.cause is Cause.CONNECTIONS]
    if few:
        which = f"Trial {few[0]}" if len(few) == 1 else f"Trials {', '.join(map(str, few))}"
        yield f"{which} had too few connections to show what the service can do."


def generator(measurement: Measurement) -> Iterator[str]:
    """Describe how late the load generator sent, and the CPU that it used."""
    found = generator_of(measurement)
    if found is not None and len(found.invalid_trials) < len(measurement.trials):
        others = "In the others it"
        who = others if found.invalid_trials else "The load generator was not the limit: it"
        yield (
            f"{who} sent 99 % of the requests within {figures.milliseconds(found.lag_p99_ms)} of "
            f"their due time and used {figures.percent(found.cpu_share_max)} of "
            f"{cores_of(found.threads)}."
        )


def method(measurement: Measurement) -> Iterator[str]:
    """Describe how N was measured."""
    if not measurement.trials or measurement.policy != "search":
        return
    low = sum(is_low_load(trial) for trial in measurement.trials)
    saturated = sum(trial.rate_rps is None for trial in measurement.trials) - low
    constant = len(measurement.trials) - saturated - low
    yield (
        f"The search made {figures.counted(len(measurement.trials), 'trial')} with "
        f"{figures.seconds(measurement.load_s)} of load "
        f"({figures.seconds(measurement.wall_s)} in all)."
    )
    if low:
        which = _of_trials(low, measurement)
        yield f"{which} had a low load; the cost of a request there predicts N."
    if saturated:
        is_capacity = _is_saturated(measurement.capacity)
        yield (
            f"{_of_trials(saturated, measurement)} saturated the service and counted what it "
            f"completed{': that is its capacity' if is_capacity else ''}."
        )
    if constant:
        yield (
            f"{_of_trials(constant, measurement)} sent requests at a constant rate, however slow "
            f"the responses, and counted latency from the time at which each request was due. "
            f"Such a trial is sustained if the backlog does not grow."
        )


def _of_trials(count: int, measurement: Measurement) -> str:
    return "It" if len(measurement.trials) == 1 else f"{count} of them"
