"""A task's workload as tables and as data, in the columns that Rally's users know."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadstone.analysis.performance import Figures, Showing
from loadstone.report import figures
from loadstone.report.rally_hooks import charts, hooks
from loadstone.result import Performance, Performed

HEADS = ("min", "median", "90%ile", "95%ile", "99%ile", "max", "avg", "success", "count")
WIDTH = 120  # Rally's table is as wide
MOST_LISTED = 6  # workloads of a task that have a line each in a list of runs


def parts(performance: Performance) -> Iterator[RenderableType]:
    """Give a workload's tables for a terminal."""
    title = Text.assemble((performance.scenario, "bold"), "  ", (performance.subtask, "dim"))
    yield title
    runner = json.loads(performance.given)["runner"]
    yield Padding(Text(f"runner: {json.dumps(runner)}", "dim"), (0, 0, 0, 2))
    if performance.requests_as_rally:
        yield Padding(Text("requests: Rally's own sequence", "dim"), (0, 0, 0, 2))
    if performance.health is not None and performance.health.http == "2":
        yield Padding(Text("HTTP/2, one connection a thread", "dim"), (0, 0, 0, 2))
    if performance.reduced:
        yield Padding(Text(reduction(performance), "yellow"), (0, 0, 0, 2))
    showing = performance.showing
    if showing is None:
        yield Padding(Text(f"{performance.status}: no iteration was made", "red"), (0, 0, 0, 2))
    else:
        yield Padding(_durations(showing), (0, 0, 0, 1))
        yield Padding(Text("\n".join(_lines(performance, showing))), (0, 0, 1, 2))
        if showing.failures:
            yield Padding(_failures(showing), (0, 0, 1, 2))
    yield Padding(_sla(performance), (0, 0, 1, 2))
    if performance.hook_runs:
        yield Padding(_hooks(performance), (0, 0, 1, 2))


def reduction(performance: Performance) -> str:
    """Say what was made smaller than the file asks for."""
    parts = (f"{one.setting} {one.made:g} of {one.asked:g}" for one in performance.reduced)
    return f"reduced by --at-most: {', '.join(parts)}"


def _durations(showing: Showing) -> Table:
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title="Response times (sec)"
    )
    table.add_column("Action", overflow="fold", min_width=16)
    for name in HEADS:
        table.add_column(name, justify="right", no_wrap=True)
    for row in showing.actions:
        table.add_row(named(row), *cells(row))
    table.add_section()
    table.add_row(Text("total", "bold"), *cells(showing.total))
    table.add_row(" -> service time", *cells(showing.service))
    if showing.idle is not None:
        table.add_row(" -> idle", *cells(showing.idle))
    return table


def named(row: Figures) -> str:
    """Give an action's name as Rally shows it: indented inside another, with its repeats."""
    *outer, name = row.name.split("/")
    times = f" (x{row.repeats})" if row.repeats > 1 else ""
    return f"{' ' * len(outer)}{'-> ' if outer else ''}{name}{times}"


def cells(row: Figures) -> tuple[str, ...]:
    """Give a row's figures as they are shown, in the order of HEADS."""
    times = (row.min_s, row.median_s, row.p90_s, row.p95_s, row.p99_s, row.max_s, row.mean_s)
    shown = (_seconds(time_s) for time_s in times)
    return (*shown, f"{100 * row.success:.1f}%", str(row.count))


def _seconds(time_s: float) -> str:
    if not math.isfinite(time_s):
        return figures.MISSING
    return f"{time_s:.{4 if time_s < 0.0995 else 3}f}"


def _lines(performance: Performance, showing: Showing) -> Iterator[str]:
    yield f"Load duration: {showing.load_s:.3f} s"
    yield f"Full duration: {performance.full_s:.3f} s"
    yield f"Throughput: {figures.rate(showing.throughput_rps)} successful iterations per second"
    if showing.cut_off:
        yield f"Cut off, and in no figure: {showing.cut_off} iterations"
    if performance.health is not None and not performance.health.is_valid:
        yield f"The load generator was the limit: {'; '.join(performance.health.limits)}"


def _failures(showing: Showing) -> Table:
    failed = showing.total.count - showing.total.ok
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        title=f"Failures: {failed} of {showing.total.count}",
        title_style="red",
    )
    table.add_column("count", justify="right", no_wrap=True)
    table.add_column("cause, with one full message", overflow="fold")
    for failure in showing.failures:
        table.add_row(str(failure.count), failure.message)
    return table


def _sla(performance: Performance) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("SLA", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("detail", overflow="fold")
    for row in performance.sla:
        verdict = Text("PASS", "green") if row.success else Text("FAIL", "bold red")
        table.add_row(row.criterion, verdict, row.detail)
    return table


def _hooks(performance: Performance) -> Table:
    given = json.loads(performance.given)["hooks"]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in ("hook", "at", "status", "took s"):
        table.add_column(head, overflow="fold")
    for run in performance.hook_runs:
        command = str(next(iter(given[run.hook]["action"].values())))
        place = f"{run.value} s" if run.unit == "time" else f"iteration {run.value}"
        how = Text("failed: " + run.error[0], "red") if run.error else Text("success")
        table.add_row(command, place, how, f"{run.finished_at_s - run.started_at_s:.3f}")
    return table


def listed(every: Sequence[Performed]) -> list[tuple[str, str, str]]:
    """Give a task's lines in a list of runs: name, median, success and SLA; one line of many."""
    if len(every) <= MOST_LISTED:
        return [_listed(performed) for performed in every]
    failed = sum(not performed.pass_sla for performed in every)
    verdict = f"{failed} failed" if failed else "all held"
    names = dict.fromkeys(performed.scenario for performed in every)
    others = f", {len(names) - 1} others" if len(names) > 1 else ""
    return [(f"{len(every)} workloads: {next(iter(names))}{others}", "", verdict)]


def _listed(performed: Performed) -> tuple[str, str, str]:
    if not performed.count and performed.pass_sla:
        return performed.scenario, "", "nothing ended"  # interrupted, or still at work
    success = performed.ok / performed.count if performed.count else 0.0
    median_s = math.nan if performed.median_s is None else performed.median_s
    held = "held" if performed.pass_sla else "failed"
    return performed.scenario, f"{_seconds(median_s)} s", f"{figures.percent(success)}, {held}"


def as_data(performance: Performance) -> dict[str, Any]:
    """Give a workload in what JSON knows; a number that is not known is null."""
    showing = performance.showing
    return {
        "subtask": performance.subtask,
        "scenario": performance.scenario,
        "description": performance.description,
        "status": performance.status,
        "failure": performance.failure,
        "given": json.loads(performance.given),
        "config_id": performance.config_id,
        "is_step": performance.is_step,
        "reduced": [asdict(one) for one in performance.reduced],
        "requests": "rally" if performance.requests_as_rally else "stated",
        "http": performance.health.http if performance.health else None,
        "start_time": performance.start_s,
        "load_seconds": showing.load_s if showing else None,
        "full_seconds": performance.full_s,
        "pass_sla": performance.pass_sla,
        "sla": [asdict(row) for row in performance.sla],
        "throughput_rps": showing.throughput_rps if showing else None,
        "total": _row(showing.total) if showing else None,
        "service_time": _row(showing.service) if showing else None,
        "idle": _row(showing.idle) if showing and showing.idle else None,
        "actions": [_row(row) for row in showing.actions] if showing else [],
        "failures": [asdict(failure) for failure in showing.failures] if showing else [],
        "cut_off": showing.cut_off if showing else 0,
        "generator_valid": performance.health.is_valid if performance.health else None,
        "generator_limits": list(performance.health.limits) if performance.health else [],
        "samples_file": performance.samples_file,
        "outputs": [{"iteration": one.iteration + 1, **charts(one)} for one in performance.outputs],
        "outputs_dropped": performance.outputs_dropped,
        "hooks": list(hooks(performance, json.loads(performance.given).get("hooks") or [])),
    }


def _row(row: Figures) -> dict[str, Any]:
    plain = asdict(row) | {"success": row.success}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in plain.items()
    }
