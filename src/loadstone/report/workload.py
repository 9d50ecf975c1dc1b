"""A task's workload as tables and as data, in the columns that Rally's users know."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadstone.analysis.model import Durations, Stats
from loadstone.monitor.usage import deaths
from loadstone.report import figures, identity, profile, usage, words
from loadstone.result.model import Measurement

HEADS = ("min", "median", "90%ile", "95%ile", "99%ile", "max", "avg", "success", "count")


def parts(measurement: Measurement) -> Iterator[RenderableType]:
    """Return the tables of a fixed load for a terminal: a task's workload or a study's step."""
    if measurement.spec:
        yield Text.assemble((measurement.scenario, "bold"), "  ", (measurement.subtask, "dim"))
        yield Padding(Text("\n").join(_about(measurement)), (0, 0, 0, 2))
    else:
        yield Text.assemble((measurement.title, "bold"), "  ", (measurement.request, "dim"))
        yield Padding(Text(words.phase(measurement), "bold cyan"), (0, 0, 0, 2))
    stats = measurement.stats
    if stats is None:
        yield Padding(Text(_without_stats(measurement), "red"), (0, 0, 0, 2))
    else:
        yield Padding(_durations(stats), (0, 0, 0, 1))
        yield Padding(Text("\n".join(_lines(measurement, stats))), (0, 0, 1, 2))
        if stats.failures:
            yield Padding(_failures(stats), (0, 0, 1, 2))
    if measurement.checks:
        yield Padding(_sla(measurement), (0, 0, 1, 2))
    hooks = json.loads(measurement.spec).get("hooks") if measurement.spec else None
    if hooks and stats is not None:
        yield Padding(_hooks(measurement, hooks), (0, 0, 1, 2))
    if not measurement.spec:
        yield Padding(points(words.details(measurement)), (0, 0, 1, 2))


def _without_stats(measurement: Measurement) -> str:
    if measurement.status == "running":  # still running, or killed before it could be stored
        return "running: no result is stored yet"
    return f"{measurement.status}: no iteration was made"


def points(sentences: Sequence[str]) -> Table:
    """Return sentences as a bulleted list."""
    table = Table.grid(padding=(0, 1, 0, 0))
    for sentence in sentences:
        table.add_row("-", sentence)
    return table


def _about(measurement: Measurement) -> Iterator[Text]:
    """Yield a workload's load and its special settings."""
    runner = json.loads(measurement.spec)["runner"]
    yield Text(f"runner: {json.dumps(runner)}", "dim")
    if measurement.requests_as_rally:
        yield Text("requests: Rally's own sequence", "dim")
    health = measurement.health
    if health is not None and health.http == "2":
        yield Text("HTTP/2, one connection a thread", "dim")
    if health is not None and health.tls_resumption is not None:
        yield Text(words.handshakes(resumed=health.tls_resumption), "dim")
    if measurement.reduced:
        yield Text(reduction(measurement), "yellow")


def reduction(measurement: Measurement) -> str:
    """Describe which settings --at-most reduced."""
    parts = (f"{one.setting} {one.made:g} of {one.asked:g}" for one in measurement.reduced)
    return f"reduced by --at-most: {', '.join(parts)}"


def load_in_words(measurement: Measurement) -> str:
    """Describe a workload's load, from its runner."""
    return load_of_spec(measurement.spec)


def load_of_spec(text: str) -> str:
    """Describe the load of a workload from its spec in JSON."""
    ((name, options),) = json.loads(text)["runner"].items()
    settings: dict[str, Any] = options or {}
    return ", ".join(_load(name, settings)) or name


def _load(name: str, settings: dict[str, Any]) -> Iterator[str]:
    rps = settings.get("rps")
    if name == "serial":
        yield "one at a time"
    elif isinstance(rps, dict):
        yield f"{rps.get('start', '?')} to {rps.get('end', '?')} per s"
    elif rps is not None:
        yield f"{rps:g} per s"
    elif name in ("constant", "constant_for_duration"):
        yield f"{settings.get('concurrency', 1)} at a time"
    if "duration" in settings:
        yield f"{settings['duration']:g} s"
    elif name != "constant_for_duration":
        times = int(settings.get("times", 1))
        yield f"{times:,} iteration{'s' if times != 1 else ''}"


def _durations(stats: Stats) -> Table:
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title="Response times (sec)"
    )
    table.add_column("Action", overflow="fold", min_width=16)
    for name in HEADS:
        table.add_column(name, justify="right", no_wrap=True)
    for row in stats.actions:
        table.add_row(named(row), *cells(row))
    table.add_section()
    table.add_row(Text("total", "bold"), *cells(stats.total))
    table.add_row(" -> service time", *cells(stats.service))
    if stats.idle is not None:
        table.add_row(" -> idle", *cells(stats.idle))
    return table


def named(row: Durations) -> str:
    """Return an action's name as Rally shows it: indented inside another, with its repeats."""
    *outer, name = row.name.split("/")
    times = f" (x{row.repeats})" if row.repeats > 1 else ""
    return f"{' ' * len(outer)}{'-> ' if outer else ''}{name}{times}"


def cells(row: Durations) -> tuple[str, ...]:
    """Return a row's figures as they are shown, in the order of HEADS."""
    times = (row.min_s, row.median_s, row.p90_s, row.p95_s, row.p99_s, row.max_s, row.mean_s)
    shown = (figures.plain_s(time_s) for time_s in times)
    return (*shown, f"{100 * row.success:.1f}%", str(row.count))


def _lines(measurement: Measurement, stats: Stats) -> Iterator[str]:
    if measurement.resources is not None:
        yield measurement.resources.bottleneck.sentence
    yield from map(words.sentence, profile.sentences(measurement))
    yield f"Load duration: {stats.load_s:.3f} s"
    if measurement.spec:
        yield f"Full duration: {measurement.wall_s:.3f} s"
    yield f"Throughput: {figures.rate(stats.throughput_rps)} successful iterations per second"
    if stats.cut_off:
        yield f"Cut off, and in no figure: {stats.cut_off} iterations"
    if measurement.usage is not None:
        yield usage.line(measurement.usage, stats.total.ok)
        yield from (f"Under load {line}" for line in deaths(measurement.usage))
    yield from identity.lines(measurement.trial)
    if measurement.health is not None and measurement.health.retries:
        yield words.retried(measurement.health.retries)
    if measurement.health is not None and not measurement.health.is_valid:
        yield f"The load generator was the limit: {'; '.join(measurement.health.limits)}"
    if measurement.health is not None and measurement.health.ceiling:
        yield f"The rate is not the service's: {measurement.health.ceiling}"


def _failures(stats: Stats) -> Table:
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        title=f"Failures: {stats.failed} of {stats.total.count}",
        title_style="red",
    )
    table.add_column("count", justify="right", no_wrap=True)
    table.add_column("cause, with one full message", overflow="fold")
    for failure in stats.failures:
        table.add_row(str(failure.count), failure.message)
    return table


def _sla(measurement: Measurement) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("SLA", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("detail", overflow="fold")
    for row in measurement.checks:
        verdict = Text("PASS", "green") if row.success else Text("FAIL", "bold red")
        table.add_row(row.criterion, verdict, row.detail)
    return table


def _hooks(measurement: Measurement, hooks: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in ("hook", "at", "status", "took s"):
        table.add_column(head, overflow="fold")
    for run in measurement.hook_runs:
        command = _command(hooks[run.hook])
        moment = f"{run.value} s" if run.unit == "time" else f"iteration {run.value}"
        how = Text("failed: " + run.error[0], "red") if run.error else Text("success")
        table.add_row(command, moment, how, f"{run.finished_at_s - run.started_at_s:.3f}")
    acted = {run.hook for run in measurement.hook_runs}
    for number, hook in enumerate(hooks):
        if number not in acted:
            table.add_row(_command(hook), figures.MISSING, "its moment did not come", "")
    return table


def _command(hook: Mapping[str, Any]) -> str:
    """Return what a hook does: its command, or a fault's sentence."""
    action = next(iter(hook["action"].values()))
    return str(action["action"] if isinstance(action, dict) else action)
