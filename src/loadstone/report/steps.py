"""The curve of a workload that was repeated at rising load."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from loadstone.report import figures
from loadstone.report.workload import cells
from loadstone.result import Performance


@dataclass(frozen=True, slots=True)
class Step:
    """A workload at one load; `position` is its place in the task, from 0."""

    position: int
    value: float
    performance: Performance


@dataclass(frozen=True, slots=True)
class Curve:
    """One workload's steps; `setting` is what rose, as the runner has it."""

    setting: str
    steps: tuple[Step, ...]

    @property
    def scenario(self) -> str:
        """Rally's short name."""
        return self.steps[0].performance.scenario


def curves(performances: Sequence[Performance]) -> tuple[Curve, ...]:
    """Group steps by the workload that they repeat; where the load falls, another one begins."""
    groups: list[list[Step]] = []
    for position, one in enumerate(performances):
        if not one.is_step:
            continue
        step = Step(position, _value(one), one)
        if groups and _goes_on(groups[-1][-1], step):
            groups[-1].append(step)
        else:
            groups.append([step])
    return tuple(Curve(_setting(group[0].performance), tuple(group)) for group in groups)


def load_of(performance: Performance) -> str:
    """Say at which load a step was: "concurrency 20"."""
    return f"{_setting(performance)} {_value(performance):g}"


def _goes_on(last: Step, step: Step) -> bool:
    is_same = _rest(last.performance) == _rest(step.performance)
    return is_same and last.position + 1 == step.position and last.value < step.value


def _runner(performance: Performance) -> tuple[str, dict[str, Any]]:
    ((name, settings),) = json.loads(performance.given)["runner"].items()
    return name, settings or {}


def _setting(performance: Performance) -> str:
    return "rps" if _runner(performance)[0] == "rps" else "concurrency"


def _value(performance: Performance) -> float:
    return float(_runner(performance)[1].get(_setting(performance), 1))


def _rest(performance: Performance) -> tuple[str, Any]:
    """Give what steps of one workload have in common."""
    name, settings = _runner(performance)
    settings.pop(_setting(performance), None)
    return performance.subtask, json.loads(performance.given) | {"runner": {name: settings}}


def tables(performances: Sequence[Performance]) -> Iterator[Table]:
    """Give a table for each workload that was repeated, a row for each step."""
    for curve in curves(performances):
        table = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"Steps of {curve.scenario}")
        for head in (curve.setting, "per s", "median", "95%ile", "99%ile", "success", "SLA"):
            table.add_column(head, justify="right", no_wrap=True)
        for step in curve.steps:
            held = step.performance.pass_sla
            verdict = Text("held", "green") if held else Text("failed", "bold red")
            table.add_row(f"{step.value:g}", *row(step), verdict)
        yield table


def row(step: Step) -> tuple[str, str, str, str, str]:
    """Give throughput, median, 95 %, 99 % and success as they are shown."""
    showing = step.performance.showing
    if showing is None:
        return (figures.MISSING,) * 5
    _, median, _, p95, p99, _, _, success, _ = cells(showing.total)
    return figures.rate(showing.throughput_rps), median, p95, p99, success
