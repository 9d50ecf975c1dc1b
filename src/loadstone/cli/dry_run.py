"""`--dry-run`: what a command would send and create."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone.cli.stored import is_stdout_free, write_json

if TYPE_CHECKING:
    from loadstone.workload.model import RunConfig
    from loadstone.workload.preview import LoadPreview, RunPreview, TargetPreview

DRY_RUN = click.option(
    "--dry-run",
    "is_dry",
    is_flag=True,
    help="Show what would be sent, where, for how long and what would be created. Nothing is sent, "
    "created or stored.",
)


def show_dry_run(previews: "Sequence[RunPreview]", to: Path | None) -> None:
    """Print previews; write them as JSON to `to`."""
    from loadstone.cli.watching import require_possible

    require_possible()  # what the command itself refuses
    if to is not None:
        write_json({"dry_run": True, "runs": [asdict(one) for one in previews]}, to)
    if is_stdout_free(to):
        for line in _lines(previews):
            click.echo(line)


def show_dry_config(config: "RunConfig", to: Path | None) -> None:
    """Print what a run would do; write it as JSON to `to`."""
    from loadstone.workload.preview import preview

    show_dry_run((preview(config),), to)


def _lines(previews: "Iterable[RunPreview]") -> Iterator[str]:
    yield "dry run: nothing was sent, created or stored"
    for one in previews:
        yield ""
        yield from _run(one)


def _run(one: "RunPreview") -> Iterator[str]:
    for target in one.targets:
        yield f"target     {_target(target)}"
        if target.lacks_permission:
            yield "           another machine: it is loaded only with --yes-load-this-target"
    yield f"sends from {one.fleet or 'this machine'}"
    seconds = _seconds(one.seconds_at_most)
    yield (
        f"load       at most {one.rate_per_s_at_most:g}/s, {one.in_flight_at_most:,} in flight, "
        f"{seconds}"
    )
    for created in one.creates or ("nothing before the load",):
        yield f"creates    {created}"
    if one.creates:
        yield "           and removes all of that at the end"
    if one.times > 1:
        yield f"repeats    all of this {one.times} times"
    for number, load in enumerate(one.loads, 1):
        yield from _load(number, load)


def _target(target: "TargetPreview") -> str:
    return target.chosen if target.url is None else f"{target.url} ({target.chosen})"


def _load(number: int, load: "LoadPreview") -> Iterator[str]:
    yield f"{number:3}. {load.title}: {load.request}"
    yield (
        f"     {load.load}; at most {load.rate_per_s_at_most:g}/s, {load.in_flight_at_most:,} in "
        f"flight, {_seconds(load.seconds_at_most)}"
    )
    if load.creates_in_load:
        yield f"     each iteration creates: {', '.join(load.creates_in_load)}"
    for sentence in load.faults:
        yield f"     breaks the target: {sentence}"
    if load.hooks:
        yield f"     hooks that run: {load.hooks}"


def _seconds(seconds: float | None) -> str:
    return "no time limit of its own" if seconds is None else f"{seconds:,.1f} s of load"
