"""A fixed load as a section: a workload of a task, a step of a study."""

import json
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from loadstone.analysis.model import Stats
from loadstone.diagnosis.finding import Severity
from loadstone.diagnosis.limit import named_limit
from loadstone.monitor.usage import deaths
from loadstone.report import figures, identity, profile, usage
from loadstone.report.generator import generator_of
from loadstone.report.section import (
    VALID,
    Answer,
    Certainty,
    Fact,
    NamedFigure,
    Statement,
    Transcript,
)
from loadstone.report.sections import fault, statements
from loadstone.report.sections.tables import hook_name
from loadstone.report.sections.trials import healths
from loadstone.result.model import WARM_UP, Measurement
from loadstone.result.task_workload import Settings, TaskWorkload


def answer(measurement: Measurement) -> Answer:
    """Return what a fault did to clients, or without one the throughput."""
    return fault.answer(measurement) or _throughput(measurement)


def _throughput(measurement: Measurement) -> Answer:
    stats = measurement.stats
    subject = figures.begun(measurement.title)
    if stats is None:
        return Answer("throughput", figures.NOT_FOUND, "", f"{subject}: {nothing(measurement)}.")
    if len(measurement.trials) > 1:
        return _of_several(subject, measurement)
    rate = figures.rate(stats.throughput_rps)
    said = f"{subject}: {stats.ok:,} of {stats.total.count:,} succeeded"
    if stats.ok:
        mean = figures.milliseconds(1000 * stats.total.mean_s)
        said += f", {rate} a second, {mean} each on average"
    return Answer("throughput", rate, "per second", f"{said}.", stats.throughput_rps)


def _of_several(subject: str, measurement: Measurement) -> Answer:
    """Return the mean throughput of several loads, without those that warm up."""
    every = [one.stats for one in measurement.trials if one.purpose != WARM_UP]
    every = every or [one.stats for one in measurement.trials]
    ok, count = sum(one.ok for one in every), sum(one.total.count for one in every)
    mean_rps = fmean(one.throughput_rps for one in every)
    rate = figures.rate(mean_rps)
    said = f"{ok:,} of {count:,} succeeded in {len(every)} loads, {rate} a second on average"
    return Answer("throughput", rate, "per second", f"{subject}: {said}.", mean_rps)


def nothing(measurement: Measurement) -> str:
    """Return why a load has no figures."""
    if measurement.status == "running":
        return "running: no result is stored yet"
    if measurement.status == "interrupted":  # a killed run may have made iterations
        return "interrupted: no result is stored"
    return f"{measurement.status}: no iteration was made"


def certainty(measurement: Measurement) -> Certainty:
    """Return whether the SLA held, or without one whether the load was as planned."""
    if not measurement.failure and not (measurement.trials and measurement.has_ended):
        return Certainty("undecided", "not completed")
    if measurement.workload and (judged := _sla(measurement)) is not None:
        return judged
    generator = generator_of(measurement)
    if generator is not None and not generator.is_valid:
        return Certainty("invalid", "load generator was the limit")
    failed = any(trial.stats.failed for trial in measurement.trials)
    return (
        Certainty("degraded", "requests failed")
        if failed and not _has_fault(measurement)
        else VALID
    )


def limit(measurement: Measurement) -> str:
    """Return what was full under the load, by name; empty if nothing was."""
    return named_limit(measurement.resources) or ""


def facts(measurement: Measurement) -> Iterator[Fact]:
    """Yield what limits, and what a fault did or how the load went."""
    if limited := limit(measurement):
        yield Fact("limited by", limited, rank=1, is_column=True)
    yield from fault.facts(measurement) if _has_fault(measurement) else _load(measurement)


def _has_fault(measurement: Measurement) -> bool:
    return any(trial.faults for trial in measurement.trials)


def _load(measurement: Measurement) -> Iterator[Fact]:
    """Yield the load, the times and the failures."""
    yield Fact("load", load_in_words(measurement), rank=4, is_column=True)
    if measurement.reduced:
        yield Fact("reduced", reduction(measurement), rank=0, tone="undecided")
    if measurement.requests_as_rally:
        yield Fact("requests", "Rally's own sequence, for comparison with it", rank=5)
    if any(health.http == "2" for health in healths(measurement)):
        yield Fact("protocol", "HTTP/2, one connection a thread", rank=5)
    if measurement.checks and measurement.checks_passed:
        names = dict.fromkeys(check.criterion for check in measurement.checks)
        yield Fact("SLA", f"held: {', '.join(names)}", rank=4)
    stats = measurement.stats
    if stats is None:
        yield Fact("measured", nothing(measurement), rank=2)
        return
    total = stats.total
    percentiles = (("p50", total.median_s), ("p95", total.p95_s), ("p99", total.p99_s))
    shown = ", ".join(f"{name} {figures.plain_s(time_s)}" for name, time_s in percentiles)
    p95 = f"{figures.plain_s(total.p95_s)} s"
    if total.ok and len(measurement.trials) == 1:
        yield Fact("times", f"{shown} s", rank=2)
        yield Fact("p95", p95, is_line=False, is_column=True)
    if hooks := _hooks(measurement):
        yield Fact("hooks", hooks, rank=4)
    for line in identity.lines(measurement.trial):
        yield Fact("Keystone", line.strip(), rank=5)


def _hooks(measurement: Measurement) -> str:
    """Describe how often hooks acted, what failed, and which never did; empty without hooks."""
    specs = measurement.workload.hooks if measurement.workload else ()
    if not specs:
        return ""
    runs = measurement.hook_runs
    acted = {run.hook for run in runs}
    parts = [f"acted {figures.counted(len(runs), 'time')}"]
    if failed := [run.error[0] for run in runs if run.error]:
        parts.append(f"{len(failed)} failed: {failed[0]}")
    never = [hook_name(spec, at) for at, spec in enumerate(specs) if at not in acted]
    parts += [f"{name}: its moment did not come" for name in never]
    return "; ".join(parts)


def _sla(measurement: Measurement) -> Certainty | None:
    """Return whether the SLA held; None without criteria."""
    if measurement.failure:
        return Certainty("degraded", "failed")
    if not measurement.checks_passed:
        names = ", ".join(row.criterion for row in measurement.checks if not row.success)
        return Certainty("degraded", f"SLA broken: {names}")
    if measurement.health is not None and not measurement.health.is_valid:
        return Certainty("invalid", "SLA held, but the load generator was the limit")
    return Certainty("sustained", "SLA held") if measurement.checks else None


def reduction(measurement: Measurement) -> str:
    """Describe which settings --at-most reduced."""
    parts = (f"{one.setting} {one.made:g} of {one.asked:g}" for one in measurement.reduced)
    return f"by --at-most: {', '.join(parts)}"


def described(measurement: Measurement) -> tuple[Statement, ...]:
    """Return what the figures of a task's workload say."""
    stats = measurement.stats
    found = [Statement(statements.sentence(one)) for one in _lines(measurement, stats)]
    warnings = [measurement.failure] if measurement.failure else []
    if measurement.reduced:
        warnings.append(f"not the load that the file asks for: reduced {reduction(measurement)}")
    if measurement.usage is not None:
        warnings += [f"under load {line}" for line in deaths(measurement.usage)]
    health = measurement.health
    if health is not None and not health.is_valid:
        warnings.append(f"the load generator was the limit: {'; '.join(health.limits)}")
    if health is not None and health.ceiling:
        warnings.append(f"the rate is not the service's: {health.ceiling}; raise --max-rate")
    texts = map(statements.sentence, warnings)
    return (*(Statement(one, Severity.WARNING) for one in texts), *found)


def _lines(measurement: Measurement, stats: Stats | None) -> Iterator[str]:
    if measurement.resources is not None:
        yield measurement.resources.bottleneck.sentence
        yield from measurement.resources.not_watched
    yield from profile.sentences(measurement)
    if stats is not None:
        total = stats.total
        yield (
            f"{total.ok:,} of {figures.counted(total.count, 'iteration')} succeeded, "
            f"{figures.rate(stats.throughput_rps)} a second"
        )
        yield (
            f"the load lasted {stats.load_s:.2f} s, with set-up and clean-up "
            f"{measurement.wall_s:.1f} s"
        )
        if stats.cut_off:
            yield (
                "cut off when the load ended, counted neither as succeeded nor as failed: "
                f"{figures.counted(stats.cut_off, 'iteration')}"
            )
        if measurement.usage is not None:
            yield usage.line(measurement.usage, stats.total.ok)
    yield from map(str.strip, identity.lines(measurement.trial))
    if measurement.requests_as_rally:
        yield "iterations sent Rally's own sequence of requests, for comparison with it"
    yield from statements.protocol(measurement)
    if measurement.health is not None and measurement.health.retries:
        yield statements.retried(measurement.health.retries)
    if measurement.hook_runs:
        failed = sum(run.status == "failed" for run in measurement.hook_runs)
        acted = figures.counted(len(measurement.hook_runs), "time")
        yield f"hooks acted {acted}, {failed or 'none'} failed"


def numbers(measurement: Measurement) -> Iterator[NamedFigure]:
    """Yield the figures by name; of several loads, their counts only."""
    stats = measurement.stats
    if stats is not None and len(measurement.trials) > 1:
        every = [trial.stats for trial in measurement.trials]
        yield NamedFigure("iterations", "iterations", sum(one.total.count for one in every))
        yield NamedFigure("failed", "failed iterations", sum(one.failed for one in every))
    elif stats is not None:
        yield NamedFigure("iterations", "iterations", stats.total.count)
        yield NamedFigure("failed", "failed iterations", stats.failed)
        yield NamedFigure("throughput_rps", "throughput", stats.throughput_rps, "/s")
        yield NamedFigure("p50_s", "median", stats.total.median_s, "s")
        yield NamedFigure("p95_s", "95 % within", stats.total.p95_s, "s")
        yield NamedFigure("p99_s", "99 % within", stats.total.p99_s, "s")


def load_in_words(measurement: Measurement) -> str:
    """Describe the load: of a workload, from its runner."""
    if measurement.workload:
        return load_of(measurement.workload, paced_as_rally=measurement.paced_as_rally)
    known = dict(measurement.parameters)
    if "iterations" in known and "at once" in known:
        iterations = figures.counted(int(known["iterations"]), "iteration")
        return f"{iterations}, {known['at once']} at a time"
    if measurement.policy == "turns":
        return "in turns with another target, whose turns count as waiting"
    rate_rps = measurement.trial.rate_rps if measurement.trial else None
    if rate_rps is None:  # a closed loop
        return known.get("load", "fixed load")
    return f"{figures.rate(rate_rps)} per s"


def listing(workload: TaskWorkload) -> Transcript:
    """Return a workload as its file has it."""
    return Transcript("The workload as its file has it", json.dumps(workload.as_data(), indent=2))


def load_of(workload: TaskWorkload, *, paced_as_rally: bool = False) -> str:
    """Describe the load of a task's workload from its runner."""
    name, settings = workload.runner_name, workload.runner_settings
    load = ", ".join(_load_words(name, settings, paced_as_rally=paced_as_rally)) or name
    return f"{load}, paced as Rally does" if paced_as_rally else load


def _load_words(name: str, settings: Settings, *, paced_as_rally: bool) -> Iterator[str]:
    rps = settings.get("rps")
    if name == "serial":
        yield "one at a time"
    elif isinstance(rps, dict):
        start, end = rps.get("start", "?"), rps.get("end", "?")
        last = end if paced_as_rally else _last_rate(rps, settings.get("times"))
        rates = start if start == last else f"{start} to {last}"
        yield f"{rates} per s" + ("" if last == end else f" ({end} is not reached)")
    elif rps is not None:
        yield f"{rps:g} per s"
    elif name in ("constant", "constant_for_duration"):
        yield f"{settings.get('concurrency', 1)} at a time"
    if "duration" in settings:
        yield f"{settings['duration']:g} s"
    elif name != "constant_for_duration":
        yield figures.counted(int(settings.get("times", 1)), "iteration")


def _last_rate(ramp: Settings, times: Any) -> Any:
    """Return the rate at which the last iterations of a ramp are due: its end, or a lower one."""
    known: dict[str, Any] = {"duration": 1, **ramp, "times": times}
    numbers = [known.get(name, 0) for name in ("start", "end", "step", "duration", "times")]
    rate, end, step, stage_s, times = numbers
    # What a task file may say; imported results may say anything.
    if not all(isinstance(one, int | float) and 1 <= one < 2**32 for one in numbers):
        return end
    while rate < end and times > rate * stage_s:
        times -= rate * stage_s
        rate = min(rate + step, end)
    return rate
