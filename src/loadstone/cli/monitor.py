"""`loadstone monitor`: current use of resources, without load."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone.cli.choose import MONITOR, once
from loadstone.cli.duration import Span
from loadstone.cli.stored import JSON, is_stdout_free, write_json

if TYPE_CHECKING:
    from rich.table import Table

    from loadstone.diagnosis.demand import Observation, ResourceUse, Setup
    from loadstone.monitor.sampler import Monitor
    from loadstone.monitor.service import Members

WINDOW_S = 5.0  # averaged in the live table
MOST_ROWS = 12
SHORTEST_S = 1.0  # a shorter time says little, and can even give more than all cores


@click.command()
@once("--lab", metavar="NAME", help="Deployment started by `loadstone lab up NAME`.")
@MONITOR
@click.option(
    "--for", "for_s", type=Span(), metavar="TIME", help="Stop after this time, such as 30s."
)
@JSON
def monitor(
    lab: str | None, watched: tuple[str, ...], for_s: float | None, to: Path | None
) -> None:
    """Monitor this machine and a lab's servers, without load, until Ctrl-C.

    The live table shows the last 5 seconds; the table at the end shows the whole time,
    also if Ctrl-C comes before the time of --for is over.
    """
    from loadstone.diagnosis.demand import observe
    from loadstone.diagnosis.resources import without_rates
    from loadstone.monitor.sampler import Monitor
    from loadstone.monitor.sources.open import open_sources
    from loadstone.report import resources
    from loadstone.report.console import PrintableConsole

    if for_s is not None and for_s < SHORTEST_S:
        raise click.UsageError(
            f"--for must be {SHORTEST_S:g}s or more: the kernel counts CPU time in steps of 10 ms"
        )
    members, statistics, setup = _target(lab)
    with Monitor(open_sources(members, statistics, watched)) as running:
        interrupt = _watch(running, setup, for_s)
        running.sample()
        metrics, missing = running.metrics(), running.missing
    for line in (*map(str, missing), *without_rates(metrics)):
        click.echo(line, err=True)
    observation = observe(metrics, 0, setup)
    if to is not None:
        data = {
            "seconds": round(observation.duration_s, 3),
            "resources": resources.as_data(_others(observation), setup.service),
            "figures": dict(observation.figures),
            "not_watched": [{"source": one.source, "why": one.why} for one in missing],
        }
        write_json(data, to)
    if is_stdout_free(to):
        PrintableConsole().print(_table(observation))
    if interrupt is not None and for_s is not None:
        raise interrupt


def _others(observation: "Observation") -> "tuple[ResourceUse, ...]":
    """Return all uses except those of this program."""
    from loadstone.monitor.roles import Role

    return tuple(one for one in observation.uses if one.role != Role.GENERATOR)


def _target(lab: str | None) -> "tuple[Members, tuple[str, ...], Setup]":
    from loadstone.diagnosis.demand import Setup

    if lab is None:
        return (lambda: None), (), Setup()
    from loadstone.lab.deployment import find

    deployment = find(lab)
    return deployment.members, deployment.statistics(), deployment.setup()


def _watch(running: "Monitor", setup: "Setup", for_s: float | None) -> KeyboardInterrupt | None:
    """Show the live table until the time is over or Ctrl-C, which is returned."""
    from rich.live import Live

    from loadstone.diagnosis.demand import observe
    from loadstone.report.console import PrintableConsole

    end_s = time.monotonic() + (for_s if for_s is not None else float("inf"))
    with ExitStack() as stack:
        console = PrintableConsole(stderr=True)
        live = (
            stack.enter_context(Live(console=console, transient=True))
            if console.is_interactive and console.file.isatty()
            else None
        )
        try:
            while (left_s := end_s - time.monotonic()) > 0:
                time.sleep(min(left_s, 1.0))
                if live is not None:
                    observation = observe(running.newest(WINDOW_S), 0, setup)
                    live.update(_table(observation))
        except KeyboardInterrupt as interrupt:
            return interrupt
    return None


def _table(observation: "Observation") -> "Table":
    from loadstone.report.sections import tables
    from loadstone.report.terminal import drawn

    return drawn(tables.resources(_others(observation)[:MOST_ROWS]))
