"""What of a task is to be carried out, and how."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from loadstone.engine.progress import Progress
from loadstone.errors import InvalidInput
from loadstone.plan.load import OpenLoop, peak_rps
from loadstone.plan.model import Placement
from loadstone.plan.runner import Pacing, pacing
from loadstone.task.model import Rps, Runner, Task, Workload


@dataclass(frozen=True, slots=True)
class Order:
    """A checked task, and within which limits it may load."""

    task: Task
    aborts_on_sla_failure: bool = False
    max_rate_rps: float = 5000.0  # of open loops; a closed one is as fast as the service
    budget_s: float = 3000.0  # of load, over all workloads
    paces_as_rally: bool = False  # keep a rate as Rally does, bursts included
    requests_as_rally: bool = False  # send all that Rally sends for an iteration
    placement: Placement = field(default_factory=Placement)


class Observer(Protocol):
    """Whoever shows what goes on."""

    def say(self, line: str) -> None:
        """Show one line that stays."""

    def progress(self, purpose: str, progress: Progress) -> None:
        """Show where a stretch of load stands."""


@dataclass(frozen=True, slots=True)
class Job:
    """One workload, ready to be loaded."""

    index: int  # in the task, from 0
    subtask: str
    workload: Workload
    pacing: Pacing
    requests_as_rally: bool
    placement: Placement

    @property
    def words(self) -> str:
        """Say what it does, and how hard."""
        runner = json.dumps(self.workload.given["runner"])[1:-1].replace('"', "")
        return f"{self.workload.scenario.name}, {runner}"


def jobs(order: Order) -> tuple[Job, ...]:
    """Give the task's workloads in order; InvalidInput names one that cannot be loaded."""
    return tuple(_jobs(order))


def _jobs(order: Order) -> Iterator[Job]:
    pairs = ((sub.title, one) for sub in order.task.subtasks for one in sub.workloads)
    for index, (title, workload) in enumerate(pairs):
        place = f"{workload.file}:{workload.line}"
        found = pacing(workload.runner, _processes(order, workload.runner))
        load = found.load
        if isinstance(load, OpenLoop) and peak_rps(load) > order.max_rate_rps:
            raise InvalidInput(
                f"{place}: {peak_rps(load):g} iterations a second are more than the "
                f"{order.max_rate_rps:g} that are allowed; raise --max-rate"
            )
        yield Job(index, title, workload, found, order.requests_as_rally, order.placement)


def _processes(order: Order, runner: Runner) -> int | None:
    """Give in how many processes Rally would keep the rate here; None: it is kept as asked."""
    if not order.paces_as_rally or not isinstance(runner, Rps):
        return None
    return min(os.cpu_count() or 1, runner.times, runner.max_concurrency or runner.times)
