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
from loadstone.result.model import Measurement


@dataclass(frozen=True, slots=True)
class WorkloadStep:
    """A workload at one load; `position` is its index in the task."""

    position: int
    value: float
    measurement: Measurement


@dataclass(frozen=True, slots=True)
class Curve:
    """Steps of one workload; `setting` is the runner's setting that rises."""

    setting: str
    steps: tuple[WorkloadStep, ...]

    @property
    def scenario(self) -> str:
        """Rally's short name."""
        return self.steps[0].measurement.scenario


def curves(measurements: Sequence[Measurement]) -> tuple[Curve, ...]:
    """Return the curve of each workload that was repeated; steps without a load are left out."""
    found, position = [], 0
    for measurement in measurements:
        each = measurement.each if measurement.spec else ()
        if measurement.policy == "steps" and measurement.trials:
            steps = [WorkloadStep(at, _value(one), one) for at, one in enumerate(each, position)]
            loaded = tuple(step for step in steps if step.measurement.trials)
            found.append(Curve(_setting(measurement), loaded))
        position += len(each)
    return tuple(found)


def load_of(measurement: Measurement) -> str:
    """Return the load of a step, as "concurrency 20"."""
    setting, value = setting_and_value(measurement)
    return f"{setting} {value:g}"


def setting_and_value(measurement: Measurement) -> tuple[str, float]:
    """Return the setting that rises, and its value in this step: ("concurrency", 20.0)."""
    return _setting(measurement), _value(measurement)


def _runner(measurement: Measurement) -> tuple[str, dict[str, Any]]:
    ((name, settings),) = json.loads(measurement.spec)["runner"].items()
    return name, settings or {}


def _setting(measurement: Measurement) -> str:
    return "rps" if _runner(measurement)[0] == "rps" else "concurrency"


def _value(measurement: Measurement) -> float:
    return float(_runner(measurement)[1].get(_setting(measurement), 1))


def tables(measurements: Sequence[Measurement]) -> Iterator[Table]:
    """Return a table for each workload that was repeated, a row for each step."""
    for curve in curves(measurements):
        table = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"Steps of {curve.scenario}")
        for head in (curve.setting, "per s", "median", "95%ile", "99%ile", "success", "SLA"):
            table.add_column(head, justify="right", no_wrap=True)
        for step in curve.steps:
            held = step.measurement.checks_passed
            verdict = Text("held", "green") if held else Text("failed", "bold red")
            table.add_row(f"{step.value:g}", *row(step), verdict)
        yield table


def row(step: WorkloadStep) -> tuple[str, str, str, str, str]:
    """Return throughput, median, 95 %, 99 % and success as they are shown."""
    stats = step.measurement.stats
    if stats is None:
        return (figures.MISSING,) * 5
    _, median, _, p95, p99, _, _, success, _ = cells(stats.total)
    return figures.rate(stats.throughput_rps), median, p95, p99, success
