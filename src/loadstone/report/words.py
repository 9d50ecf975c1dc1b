"""What the figures say, in plain words; nothing is said that they do not show."""

from collections.abc import Iterator

from loadstone.analysis.model import Cause, State, Trial
from loadstone.monitor.usage import Usage
from loadstone.report import figures
from loadstone.report.generator import generator_of
from loadstone.result import Finding
from loadstone.search.model import Capacity

# From here on the cores are the limit: what is left goes to the kernel's own bookkeeping.
BUSY = 0.9
# Below this, the service does not get to use the machine.
IDLE = 0.7
STOLEN = 0.02
OTHERS = 0.1
# A trial shows the machine "at N" from this share of N on.
NEAR = 0.9
# A shorter trial shows that the service answers, not that it keeps up.
LEAST_S = 5.0


def of(finding: Finding) -> tuple[str, ...]:
    """Say all that one search showed, most important first."""
    return tuple(dict.fromkeys((headline(finding), *shown(finding), *method(finding))))


def shown(finding: Finding) -> tuple[str, ...]:
    """Say what the figures show beside N itself."""
    said = [
        *(finding.capacity.words if finding.capacity else ()),
        *limit(finding),
        *below(finding),
        *above(finding),
        *errors(finding),
        *protocol(finding),
        *generator(finding),
        *finding.notes,
    ]
    return tuple(dict.fromkeys(map(sentence, said)))


def sentence(words: str) -> str:
    """Begin with a capital and end with a stop."""
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "!", "?", ")")) else ".")


def headline(finding: Finding) -> str:
    """Say N or that there is none; of one stretch of load, what came of it."""
    return n(finding) if finding.is_search else stretch(finding)


def n(finding: Finding) -> str:
    """Say N, or that there is none."""
    capacity = finding.capacity
    if capacity is None:
        return f"No capacity was found for {finding.title}: the search did not come to its end."
    subject = finding.title[:1].upper() + finding.title[1:]
    low, high = capacity.low_rps, capacity.high_rps
    found = figures.n(capacity)
    if has_interval(capacity):
        return f"{subject}: the service bears N = {found} a second ({_interval(capacity)})."
    if low is not None and high is not None:
        return f"{subject}: N lies somewhere in {found} a second."
    if low is not None:
        return f"{subject}: the service bears {found} a second; how much more is not known."
    if high is not None:
        return f"{subject}: N is {found} a second; no rate was seen to be sustained."
    return f"{subject}: N was not found."


def stretch(finding: Finding) -> str:
    """Say what came of one stretch of load."""
    subject = finding.title[:1].upper() + finding.title[1:]
    if not finding.trials:
        return f"{subject}: the load did not come to its end."
    summary = finding.trials[0].summary
    return (
        f"{subject}: {summary.ok:,} of {summary.due:,} ended well, "
        f"{figures.rate(summary.completed_rps)} a second, "
        f"{figures.milliseconds(summary.service_time.mean_ms)} each on average."
    )


def has_interval(capacity: Capacity | None) -> bool:
    """Say whether N is one number with an interval around it."""
    return capacity is not None and None not in (
        capacity.rate_rps,
        capacity.low_rps,
        capacity.high_rps,
    )


def sureness(capacity: Capacity) -> str:
    """Say how sure the interval is."""
    if capacity.confidence <= 0:
        return "how sure is not known"
    return (
        f"{figures.percent(capacity.confidence)} of such searches hold the truth in their interval"
    )


def limit(finding: Finding) -> Iterator[str]:
    """Say what one request costs and whether the CPU is what N rests on."""
    cost_s = finding.cpu_per_request_s
    if cost_s is not None:
        yield (
            f"One {finding.title} costs {figures.milliseconds(cost_s * 1000)} of CPU in the "
            f"service's processes."
        )
    near = at_n(finding)
    # Of a service elsewhere, this machine's cores say nothing.
    if near is None or near.usage is None or near.usage.service_cpu_s is None:
        return
    usage = near.usage
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


def below(finding: Finding) -> Iterator[str]:
    """Say how the service answers at the highest rate that it sustained."""
    trial = last_sustained(finding)
    if trial is None or trial.rate_rps is None:
        return
    latency = trial.summary.latency
    yield (
        f"At {figures.rate(trial.rate_rps)} a second it keeps up for "
        f"{figures.seconds(trial.summary.load_s)}: half of the answers come within "
        f"{figures.milliseconds(latency.p50_ms)}, 99 % within "
        f"{figures.milliseconds(latency.p99_ms)}."
    )


def above(finding: Finding) -> Iterator[str]:
    """Say how the service gives way at the lowest rate that it did not sustain."""
    trial = first_degraded(finding)
    if trial is None or trial.rate_rps is None:
        return
    offered = f"At {figures.rate(trial.rate_rps)} a second"
    growth = trial.summary.backlog_growth
    match trial.verdict.cause:
        case Cause.OVERLOAD if growth > 0:
            yield (
                f"{offered} only {figures.rate(trial.summary.throughput_rps)} complete: the work "
                f"that waits grows by {growth:.2f} s every second, and each answer takes longer "
                f"than the one before. The service is not broken, it is overtaken."
            )
        case Cause.DRIFT:
            yield f"{offered} it keeps up at first and then becomes slower."
        case Cause.ERRORS:
            yield f"{offered} requests fail: {figures.errors(trial)}."
        case Cause.OBJECTIVE:
            yield f"{offered} it keeps up, but slower than wanted."
        case Cause.OVERLOAD | Cause.GENERATOR | None:
            return


def errors(finding: Finding) -> Iterator[str]:
    """Say how many requests failed."""
    due = sum(trial.summary.due for trial in finding.trials)
    failed = sum(trial.summary.failed for trial in finding.trials)
    if not due:
        return
    if failed:
        yield f"{failed:,} of {due:,} requests failed."
    else:
        yield f"None of the {due:,} requests failed."


def protocol(finding: Finding) -> Iterator[str]:
    """Say over what requests went where it is not HTTP/1.1."""
    if any(trial.health.http == "2" for trial in finding.trials):
        yield "requests went over HTTP/2, one connection a thread of the load generator"


def generator(finding: Finding) -> Iterator[str]:
    """Say whether the load generator can be trusted, and what it took from the service."""
    found = generator_of(finding)
    if found is None:
        return
    if found.invalid_trials:
        which = ", ".join(str(number) for number in found.invalid_trials)
        one = len(found.invalid_trials) == 1
        trials = f"trial {which}: it says" if one else f"trials {which}: they say"
        yield f"The load generator was the limit in {trials} nothing of the service."
    if len(found.invalid_trials) < len(finding.trials):
        others = "In the others it"
        who = others if found.invalid_trials else "The load generator was not the limit: it"
        yield (
            f"{who} sent 99 % of the requests within {figures.milliseconds(found.lag_p99_ms)} of "
            f"their due time and used {figures.percent(found.cpu_share_max)} of a core."
        )


def method(finding: Finding) -> Iterator[str]:
    """Say how N was measured."""
    if not finding.trials or not finding.is_search:
        return
    saturated = sum(trial.rate_rps is None for trial in finding.trials)
    constant = len(finding.trials) - saturated
    count = f"{len(finding.trials)} trials" if len(finding.trials) > 1 else "1 trial"
    yield (
        f"The search made {count} with {figures.seconds(finding.load_s)} of load "
        f"({figures.seconds(finding.wall_s)} in all)."
    )
    if saturated:
        yield (
            f"In {saturated} of them the service was kept busy all the time and what it "
            f"completed was counted: that is its capacity."
        )
    if constant:
        yield (
            f"In {constant} of them requests were sent at a constant rate, however slow the "
            f"answers, and the latency was counted from the moment at which each was due; the "
            f"trial is sustained when the work that waits does not grow."
        )


def paced(finding: Finding) -> list[Trial]:
    """Give the trials at a constant rate that were meant to last, by rate."""
    found = [t for t in finding.trials if t.rate_rps is not None and t.planned_s >= LEAST_S]
    return sorted(found, key=lambda t: t.rate_rps or 0.0)


def last_sustained(finding: Finding) -> Trial | None:
    """Give the sustained trial with the highest rate."""
    found = [t for t in paced(finding) if t.verdict.state is State.SUSTAINED]
    return found[-1] if found else None


def first_degraded(finding: Finding) -> Trial | None:
    """Give the degraded trial with the lowest rate."""
    found = [t for t in paced(finding) if t.verdict.state is State.DEGRADED]
    return found[0] if found else None


def at_n(finding: Finding) -> Trial | None:
    """Give the longest valid trial in which the service completed about N a second."""
    capacity = finding.capacity
    n_rps = capacity.rate_rps if capacity else None
    if n_rps is None:
        return None
    near = [
        t
        for t in finding.trials
        if t.usage is not None
        and t.health.is_valid
        and t.summary.throughput_rps >= NEAR * n_rps
        and (t.rate_rps is None or t.rate_rps <= n_rps)
    ]
    # A saturated service works at N exactly.
    return max(near, key=lambda t: (t.rate_rps is None, t.summary.load_s), default=None)


def _interval(capacity: Capacity) -> str:
    sure = f"{figures.percent(capacity.confidence)} " if capacity.confidence > 0 else ""
    return f"{sure}interval {figures.interval(capacity)}"
